"""`rtmms trim`, as a user types it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from rtmms.cli.main import main
from rtmms.cli.trim import as_table, trim


def said(*words: str) -> dict:
    """The one object of a run in this process."""
    result = CliRunner().invoke(trim, [*words, "--json"], standalone_mode=False)
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


@pytest.mark.slow  # finds an orbit and its springs, each trial a flight
def test_moth_by_stiffness():
    """Softer springs lift as much as a wider stroke: the paper's amplitude hovers at 0.928 of its stiffness."""
    found = said("moth", "--set", "start=rest", "--unknown", "stiffness")
    assert found["stiffness_factor"] == pytest.approx(0.92770, abs=1e-4)
    assert found["amplitude_factor"] == 1.0
    assert found["mean_speed_m_s"] < 1e-9
    assert "0.92769" in as_table(found)


def test_eel_takes_a_step_that_divides_its_period():
    found = said("eel", "--preset", "paper", "--set", "period_s=1.9995", "--set", "joints=3", "--unknown", "none")
    assert found["period_s"] == pytest.approx(1.9995)
    assert found["residual"] < 1e-6


def test_manta_swims_straight():
    found = said("manta", "--set", "chains=3", "--set", "links=2", "--dt", "0.005", "--gait", "amplitude_deg=30")
    x, y, z = found["travel_m"]
    assert x == pytest.approx(found["mean_speed_m_s"] * found["period_s"], rel=1e-9)
    assert x > 0.5
    assert max(abs(y), abs(z)) < 1e-7
    assert found["residual"] < 1e-8
    assert found["multipliers"][0] == pytest.approx(1.0, abs=1e-4)
    assert found["multipliers"][4] < 0.99  # four neutral directions: three of place, and heading


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("eeel",), "did you mean eel?"),
        (("eel", "--set", "gait=none"), "trim needs a periodic gait"),
        (("eel", "--unknown", "stiffness"), "none has one"),
        (("eel", "--unknown", "amp"), "did you mean amplitude?"),
        (("eel", "--gait", "phase_deg=3"), "has a gait of its own"),
        (("eel", "--set", "dt=3"), "use --dt"),
        (("manta", "--unknown", "amplitude"), "only the state can be found"),
        (("manta", "--gait", "phase=3"), "did you mean phase_deg?"),
        (("manta", "--gait", "phase_deg=x"), "expected a finite number"),
        (("manta", "--gait", "frequency_hz=0"), "must be > 0 Hz"),
        (("manta", "--set", "body_mass_kg=-1"), "body_mass_kg"),
    ],
)
def test_wrong_words(capsys, words, text):
    with pytest.raises(SystemExit) as ended:
        main(["trim", *words])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert text in err
    assert "Traceback" not in err
    assert out == ""
