"""`rtmms trim`, as a user types it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from rtmms.analysis.trim import Periodic, Trim, as_words
from rtmms.analysis.trim import command_coordinates_as_words as commands_as_words
from rtmms.cli.main import main
from rtmms.cli.trim import as_table, steady_table, trim


def trimmed(*text: str) -> dict:
    """The one object of a run in this process."""
    result = CliRunner().invoke(trim, [*text, "--json"], standalone_mode=False)
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


@pytest.mark.full  # finds an orbit and its springs, each trial a flight
def test_moth_by_stiffness():
    """Softer springs lift as much as a wider stroke: the paper's amplitude hovers at 0.928 of its stiffness."""
    result = trimmed("moth", "--set", "start=rest", "--unknown", "stiffness")
    assert result["stiffness_factor"] == pytest.approx(0.92770, abs=1e-4)
    assert result["amplitude_factor"] == 1.0
    assert result["mean_speed_m_s"] < 1e-9
    assert "0.92769" in as_table(result)


def test_eel_takes_a_step_that_divides_its_period():
    result = trimmed("eel", "--preset", "paper", "--set", "period_s=1.9995", "--set", "joints=3", "--unknown", "none")
    assert result["period_s"] == pytest.approx(1.9995)
    assert result["residual"] < 1e-6


def test_manta_swims_straight():
    result = trimmed("manta", "--set", "chains=3", "--set", "links=2", "--dt", "0.005", "--gait", "amplitude_deg=30")
    x, y, z = result["travel_m"]
    assert x == pytest.approx(result["mean_speed_m_s"] * result["period_s"], rel=1e-9)
    assert x > 0.5
    assert max(abs(y), abs(z)) < 1e-7
    assert result["residual"] < 1e-8
    assert result["multipliers"][0] == pytest.approx(1.0, abs=1e-4)
    assert result["multipliers"][4] < 0.99  # four neutral directions: three of place, and heading


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("eeel",), "did you mean eel?"),
        (("eel", "--set", "gait=none"), "trim: expected a robot with a periodic gait"),
        (("eel", "--unknown", "stiffness"), "expected joints with springs, got none"),
        (("eel", "--unknown", "amp"), "did you mean amplitude?"),
        (("eel", "--gait", "phase_deg=3"), "has its own gait"),
        (("eel", "--set", "dt=3"), "use --dt"),
        (("eel", "--speed", "0.3", "--unknown", "amplitude"), "--unknown: expected none: with targets"),
        (("manta", "--speed", "0.3", "--gait", "phase_deg=3"), "--gait: expected none: with targets"),
        (("quadrotor", "--speed", "nan"), "expected a number m/s, got 'nan'"),
        (("quadrotor", "--depth", "3"), "expected a robot in water"),
        (("manta", "--unknown", "amplitude"), "trim finds only its state"),
        (("manta", "--gait", "phase=3"), "did you mean phase_deg?"),
        (("manta", "--gait", "phase_deg=x"), "expected a finite number"),
        (("manta", "--gait", "frequency_hz=0"), "must be > 0 Hz"),
        (("manta", "--set", "body_mass_kg=-1"), "body_mass_kg"),
    ],
)
def test_wrong_words(capsys, arguments, text):
    with pytest.raises(SystemExit) as ended:
        main(["trim", *arguments])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert text in err
    assert "Traceback" not in err
    assert out == ""


def test_targets_in_the_units_of_their_options(capsys):
    """deg/s there, rad/s in Python; a person reads the same numbers."""
    numbers = trimmed("quadrotor", "--speed", "1", "--turn-rate", "20")
    assert numbers["reached"]
    assert numbers["message"] == ""
    assert numbers["targets"] == {"speed_m_s": 1.0, "turn_rate_deg_s": pytest.approx(20.0), "climb_m_s": 0.0}
    assert numbers["motion"]["turn_rate_deg_s"] == pytest.approx(20.0, abs=0.1)
    assert "turn_rate_deg_s" in steady_table(numbers)
    assert "(target 20)" in steady_table(numbers)


def test_a_target_out_of_reach_is_status_1(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["trim", "quadrotor", "--climb", "500", "--json"])
    out, err = capsys.readouterr()
    assert ended.value.code == 1
    numbers = json.loads(out)
    assert not numbers["reached"]
    assert numbers["misses"]["climb_m_s"] < 0.0
    assert "climb 500 m/s is not reached: the nearest is" in err


@pytest.mark.parametrize(("above", "stable"), [(-0.001, True), (5e-7, True), (2e-6, False), (0.05, False)])
def test_stable_is_what_the_largest_multiplier_implies(above: float, stable: bool) -> None:
    """Of a robot with a gait of its own, to 1e-6; from commands, whose map is differenced, to 1e-4."""
    size = np.array([1.0 + above, 0.5], dtype=complex)
    current = Trim(np.zeros(13), 1.0, 1.0, 0.0, size, np.zeros(3), 1)
    plant: Any = SimpleNamespace(model=SimpleNamespace(name="x"), law=SimpleNamespace(omega=1.0))
    parts = as_words(plant, current)
    assert parts["stable"] is stable
    assert f"{'yes' if stable else 'no'} (largest multiplier below 1 + 1e-06)" in as_table(parts)
    commanded = commands_as_words("x", Periodic(b"", 1.0, 0.0, np.array([1.0 + 100.0 * above]), np.zeros(3), 1))
    assert commanded["stable"] is stable
