"""Our robots as FMUs: judged by fmpy's validator, simulated by fmpy, and compared with our own run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.fmi.export import export
from rtmms.fmi.read_description import base_units
from tests.cli.shell import rtmms as command

fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed: pip install 'rtmms[fmi]'")
pytest.importorskip("pythonfmu3", reason="pythonfmu3 is not installed: pip install 'rtmms[fmi]'")

pytestmark = pytest.mark.full

PARAMETERS = {"chains": 6}
STEPS = 400


@pytest.fixture(scope="module")
def manta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export("manta", tmp_path_factory.mktemp("fmu") / "manta.fmu", parameters=PARAMETERS)


def gait(step: int) -> np.ndarray:
    return 0.5 * np.sin(2e-2 * step + np.arange(4.0))


def test_the_validator_finds_nothing(manta: Path) -> None:
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(manta)) == []


def test_every_actuator_and_output_is_a_variable(manta: Path) -> None:
    plant, result = rtmms.load("manta", **PARAMETERS), fmpy.read_model_description(str(manta))
    variables = {v.name: v for v in result.modelVariables}
    for channel in plant.actuators:
        item = variables[channel.name]
        assert (item.causality, float(item.min), float(item.max)) == ("input", channel.lower, channel.upper)
        assert item.unit == "rad"
    for channel in plant.outputs:
        assert variables[channel.name].causality == "output"
        assert tuple(variables[channel.name].shape or ()) == channel.shape
    simulation = result.coSimulation
    assert float(simulation.fixedInternalStepSize) == plant.dt == float(result.defaultExperiment.stepSize)
    assert simulation.canGetAndSetFMUstate
    assert simulation.canSerializeFMUstate
    assert not simulation.canHandleVariableCommunicationStepSize


SIMULATE = """
import json, sys
import fmpy, numpy as np
path, steps, dt = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
names = ["left.front", "left.back", "right.front", "right.back"]
given = np.zeros(steps + 1, dtype=[("time", float)] + [(name, float) for name in names])
given["time"] = np.arange(steps + 1) * dt
for i, name in enumerate(names):
    given[name] = 0.5 * np.sin(2e-2 * np.arange(steps + 1) + i)
outputs = [v.name for v in fmpy.read_model_description(path).modelVariables if v.causality == "output"]
found = fmpy.simulate_fmu(path, stop_time=steps * dt, step_size=dt, output_interval=dt, input=given, output=outputs)
print(json.dumps({name: found[name].tolist() for name in outputs}))
"""


def simulated(path: Path, steps: int) -> dict[str, Any]:
    """fmpy's own master in a process of its own, as a user of that tool would have it."""
    child = subprocess.run(
        [sys.executable, "-c", SIMULATE, str(path), str(steps), "1e-3"], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def test_fmpy_simulates_what_we_run(manta: Path) -> None:
    result, plant = simulated(manta, STEPS), rtmms.load("manta", **PARAMETERS)
    for step in range(STEPS):
        for name, value in plant.observe().items():
            assert np.allclose(np.reshape(result[name][step], value.shape), value, rtol=1e-12, atol=1e-12), (step, name)
        plant.step(gait(step))
    assert abs(float(plant.observe()["velocity"][0])) > 1e-3  # it moved


def test_our_own_fmu_runs_as_a_plant_with_the_same_bits(manta: Path) -> None:
    ours, theirs = rtmms.load("manta", **PARAMETERS), rtmms.load(str(manta))
    for step in range(100):
        ours.step(gait(step))
        theirs.step(gait(step))
    blob = theirs.snapshot()
    for step in range(100, 120):
        theirs.step(gait(step))
    theirs.restore(blob)
    outputs = theirs.observe()
    assert all(np.array_equal(value, outputs[name]) for name, value in ours.observe().items())


def test_inputs_beyond_their_limits_are_moved_to_them(manta: Path) -> None:
    ours, theirs = rtmms.load("manta", **PARAMETERS), rtmms.load(str(manta))
    limit = ours.actuators[0].upper or 0.0
    for _ in range(20):
        ours.step(np.full(4, limit))
        theirs.step(np.full(4, 10.0 * limit))
    assert np.array_equal(ours.observe()["rod_angle"], theirs.observe()["rod_angle"])


def test_an_fmu_of_a_file_is_of_that_file(tmp_path: Path) -> None:
    """Whatever the folder of the tool, and no longer when the file has changed."""
    pytest.importorskip("yourdfpy")
    current, other = tmp_path / "own", tmp_path / "other"
    for folder, name in ((current, "one"), (other, "two")):
        folder.mkdir()
        links = "".join(f'<link name="{name}{k}"/>' for k in range(2))
        inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        links = links.replace("/>", f'><inertial><mass value="1"/>{inertia}</inertial></link>')
        joint = f'<parent link="{name}0"/><child link="{name}1"/><axis xyz="0 1 0"/>'
        text = f'<robot name="r">{links}<joint name="{name}" type="continuous">{joint}</joint></robot>'
        (folder / "robot.urdf").write_text(text)
    exported = subprocess.run(
        [sys.executable, "-m", "rtmms.cli.main", "export-fmu", "robot.urdf", "-o", "robot.fmu"],
        cwd=current,
        check=False,
        capture_output=True,
        text=True,
    )
    assert exported.returncode == 0, exported.stderr

    def simulate() -> subprocess.CompletedProcess[str]:
        code = "import fmpy; print(fmpy.simulate_fmu('../own/robot.fmu', stop_time=0.01, step_size=0.001).dtype.names)"
        return subprocess.run([sys.executable, "-c", code], cwd=other, check=False, capture_output=True, text=True)

    assert "joint_position" in simulate().stdout
    (current / "robot.urdf").write_text((other / "robot.urdf").read_text())
    assert "robot.urdf': expected the file from which this FMU was exported, got another" in simulate().stderr
    (current / "robot.urdf").unlink()
    assert "robot.urdf: there is no such file" in simulate().stderr


def test_several_steps_within_one_communication_step(manta: Path) -> None:
    ours, theirs = rtmms.load("manta", **PARAMETERS), rtmms.load(str(manta), dt=4e-3)
    for step in range(10):
        theirs.step(gait(step))
        for _ in range(4):
            ours.step(gait(step))
    assert np.array_equal(ours.observe()["position"], theirs.observe()["position"])


def test_the_seed_is_a_parameter(tmp_path: Path) -> None:
    path = export("manta", tmp_path / "m.fmu", seed=3, parameters=PARAMETERS)
    seed = next(v for v in fmpy.read_model_description(str(path)).modelVariables if v.name == "seed")
    assert (seed.causality, int(seed.start)) == ("parameter", 3)


@pytest.mark.parametrize("robot", ["eel", "moth"])
def test_the_other_robots_are_valid_too(robot: str, tmp_path: Path) -> None:
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(export(robot, tmp_path / f"{robot}.fmu"))) == []


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "out" / "manta.fmu"
    path.parent.mkdir()
    result = command(tmp_path, "export-fmu", "manta", "-o", str(path), "--set", "chains=6", "--json")
    assert result.status == 0, result.err
    assert (result.report["file"], result.report["bytes"]) == (str(path), path.stat().st_size)
    assert "rtmms is needed" in result.report["needs"]
    assert [p.name for p in path.parent.iterdir()] == ["manta.fmu"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["mantra", "-o", "{}/a.fmu"], "unknown robot 'mantra'; did you mean manta"),
        (["manta", "-o", "{}/a.zip"], "expected a name that ends in .fmu"),
        (["manta", "-o", "{}/none/a.fmu"], "there is no folder"),
        (["manta", "-o", "{}/a.fmu", "--set", "chians=3"], "chians"),
        (["manta", "-o", "{}/a.fmu", "--set", "dt=3"], "use --dt"),
    ],
)
def test_wrong_words(parts: list[str], text: str, tmp_path: Path) -> None:
    result = command(tmp_path, "export-fmu", *(word.format(tmp_path) for word in parts))
    assert result.status == 2
    assert text in result.err
    assert "Traceback" not in result.err
    assert not list(tmp_path.glob("*.fmu"))


def test_an_fmu_is_not_exported_again(manta: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a robot that is not an FMU"):
        export(str(manta), tmp_path / "b.fmu")
    with pytest.raises(UnknownNameError):
        export("none", tmp_path / "b.fmu")


@pytest.mark.parametrize(
    ("unit", "results"),
    [
        ("m/s2", {"m": 1, "s": -2}), ("N m", {"kg": 1, "m": 2, "s": -2}), ("rad", {"rad": 1}),
        ("W", {"kg": 1, "m": 2, "s": -3}),
        ("kg m2", {"kg": 1, "m": 2}), ("", None), ("N, N m", None), ("m/s/s", None), ("furlong", None),
    ],
)  # fmt: skip
def test_units_are_defined_by_base_units(unit: str, results: dict[str, int] | None) -> None:
    assert base_units(unit) == results
