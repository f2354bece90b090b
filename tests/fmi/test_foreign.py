"""Another tool's FMU as the plant of our loop: one written in C, followed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import DivergedError, ModelError, UnknownNameError
from tests.cli.shell import rtmms as command
from tests.fmi.lags import build

pytestmark = pytest.mark.full

DT = 0.01


@pytest.fixture(scope="module")
def lag(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("lag"), 3))


def by_hand(commands: np.ndarray, gain: float = 2.0) -> float:
    """x after each command (u0, u1, open) has been held for a step."""
    x = 0.0
    for u0, u1, valve in commands:
        if valve >= 0.5:
            x += DT * (gain * (u0 - u1) - x)
    return x


def test_inputs_are_actuators_and_outputs_are_outputs(lag: str) -> None:
    plant = rtmms.load(lag)
    assert isinstance(plant, rtmms.Plant)
    assert [a.name for a in plant.actuators] == ["u[0]", "u[1]", "open"]
    assert [(a.lower, a.upper, a.neutral) for a in plant.actuators] == [(-50, 50, 0), (-50, 50, 0), (None, None, 1)]
    assert [(o.name, o.unit, o.shape) for o in plant.outputs] == [("x", "m", ()), ("y", "", (2,)), ("count", "", ())]
    assert plant.dt == DT


def test_a_run_equals_the_one_by_hand(lag: str) -> None:
    plant = rtmms.load(lag)
    commands = np.random.default_rng(5).uniform(-3.0, 3.0, (200, 3))
    for item in commands:
        plant.step(item)
    observed, x = plant.observe(), by_hand(commands)
    assert float(observed["x"]) == x
    assert observed["y"].tolist() == [x, -x]
    assert float(observed["count"]) == 200


def test_reset_seed_and_parameters(lag: str) -> None:
    plant = rtmms.load(lag, gain=3.0)
    item = np.array([[1.0, 0.5, 1.0]])
    plant.step(item[0])
    first = float(plant.observe()["x"])
    plant.step(item[0])
    plant.reset(seed=7)
    assert float(plant.observe()["count"]) == 0
    plant.step(item[0])
    assert float(plant.observe()["x"]) == first == by_hand(item, 3.0)


def test_snapshot_and_restore_give_the_same_bits(lag: str) -> None:
    plant = rtmms.load(lag)
    commands = np.random.default_rng(1).uniform(-1.0, 1.0, (40, 3))
    for item in commands[:20]:
        plant.step(item)
    blob = plant.snapshot()
    for item in commands[20:]:
        plant.step(item)
    last = plant.observe()
    other = rtmms.load(lag)
    other.restore(blob)
    for item in commands[20:]:
        other.step(item)
    assert all(np.array_equal(last[name], value) for name, value in other.observe().items())
    with pytest.raises(ModelError, match="expected one of the same FMU, step"):
        rtmms.load(lag, dt=0.02).restore(blob)


def test_a_tunable_parameter_is_set_while_it_runs(lag: str) -> None:
    plant = rtmms.load(lag)
    plant.set(gain=5.0)  # type: ignore[attr-defined]
    item = np.array([[1.0, 0.0, 1.0]])
    plant.step(item[0])
    assert float(plant.observe()["x"]) == by_hand(item, 5.0)
    with pytest.raises(ModelError, match="seed cannot be changed while it runs"):
        plant.set(seed=2)  # type: ignore[attr-defined]


def test_an_error_of_the_fmu_is_a_divergence_with_what_it_sent(lag: str) -> None:
    plant = rtmms.load(lag, gain=-9000.0)
    with pytest.raises(DivergedError, match="the lag burst") as fault:
        plant.step(np.array([2.0, 0.0, 1.0]))
    assert fault.value.last_good["x"] == 0.0


def test_an_fmu_that_asks_to_end_is_obeyed(lag: str) -> None:
    plant = rtmms.load(lag)
    for _ in range(10):
        plant.step(np.array([50.0, 0.0, 1.0]))
    with pytest.raises(DivergedError, match="the FMU requested the end of the simulation"):
        plant.step(np.array([50.0, 0.0, 1.0]))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"dt": 0.015}, "dt must be a multiple of the FMU's step of 0.01 s, got 0.015"),
        ({"dt": -1.0}, "dt must be > 0 s"),
        ({"gian": 3.0}, "unknown parameter of .* 'gian'; did you mean gain"),
        ({"gain": "large"}, "gain: expected a finite number, got 'large'"),
        ({"preset": "paper"}, "an FMU has no presets"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(lag: str, arguments: dict, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        rtmms.load(lag, **arguments)


def test_files_that_are_no_fmu(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such file"):
        rtmms.load(str(tmp_path / "none.fmu"))
    (tmp_path / "text.fmu").write_text("no zip")
    with pytest.raises(ModelError, match="not an FMU"):
        rtmms.load(str(tmp_path / "text.fmu"))
    with pytest.raises(UnknownNameError):
        rtmms.load("manta.fmi")


@pytest.mark.parametrize("bad", [[1.0, 2.0], [1.0, np.nan, 0.0]])
def test_bad_commands(lag: str, bad: list[float]) -> None:
    plant = rtmms.load(lag)
    with pytest.raises(ValueError, match="expected 3 finite numbers"):
        plant.step(np.array(bad))


def test_fmi_2(tmp_path: Path) -> None:
    path = str(build(tmp_path, 2))
    with pytest.raises(ModelError, match="declares no step"):
        rtmms.load(path)
    plant = rtmms.load(path, dt=0.01, gain=4.0)
    x = 0.0
    for u in (1.0, -2.0, 0.5):
        plant.step(np.array([u]))
        x += 0.01 * (4.0 * u - x)
    assert float(plant.observe()["x"]) == x
    with pytest.raises(ModelError, match="cannot return its state"):
        plant.snapshot()
    plant.reset()
    assert float(plant.observe()["x"]) == 0.0


@pytest.mark.parametrize("version", [2, 3])
def test_it_runs_in_our_loop(tmp_path: Path, version: int) -> None:
    path = str(build(tmp_path, version))
    arguments = ["run", path, "--controller", "none", "--mode", "free", "--duration", "1", "--json", "--quiet"]
    result = command(
        tmp_path, *arguments, *(["--dt", "0.01"] if version == 2 else []), "--log", str(tmp_path / "lag.mcap")
    )
    assert result.status == 0, result.err
    assert result.report["steps"] == 100
    assert result.report["robot"] == path
    assert result.report["final"]["x"] == 0.0
    assert result.report["log"]["whole"]


def test_a_wrong_file_is_a_wrong_word(tmp_path: Path) -> None:
    (tmp_path / "a.fmu").write_text("no")
    result = command(tmp_path, "run", str(tmp_path / "a.fmu"), "--json")
    assert result.status == 2
    assert "not an FMU" in result.err
    assert "Traceback" not in result.err
