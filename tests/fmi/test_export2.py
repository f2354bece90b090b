"""Our robots as FMUs of FMI 2: judged by fmpy's validator, simulated by fmpy, and in an SSP beside a controller."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.fmi.export import export
from rtmms.fmi.exported_fmi2 import scalars
from tests.cli.shell import ROOT
from tests.cli.shell import rtmms as command
from tests.fmi.test_export import PARAMETERS, STEPS, gait, simulated

fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed: pip install 'rtmms[fmi]'")
pytest.importorskip("pythonfmu", reason="pythonfmu is not installed: pip install 'rtmms[fmi]'")

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def manta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export("manta", tmp_path_factory.mktemp("fmu2") / "manta.fmu", parameters=PARAMETERS, fmi=2)


def test_the_validator_finds_nothing(manta: Path) -> None:
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(manta)) == []


def test_every_actuator_and_every_number_of_an_output_is_a_variable(manta: Path) -> None:
    plant, result = rtmms.load("manta", **PARAMETERS), fmpy.read_model_description(str(manta))
    variables = {v.name: v for v in result.modelVariables}
    assert result.fmiVersion == "2.0"
    for channel in plant.actuators:
        item = variables[channel.name]
        assert (item.causality, float(item.min), float(item.max), item.unit) == (
            "input", channel.lower, channel.upper, "rad",
        )  # fmt: skip
        assert float(item.start) == channel.neutral
    numbers = [name for channel in plant.outputs for name in scalars(channel)]
    simulation = result.coSimulation
    assert {"position[0]", "position[2]"} <= set(numbers)
    field = next(channel for channel in plant.outputs if len(channel.shape) > 1)
    assert f"{field.name}[{','.join(str(n - 1) for n in field.shape)}]" in numbers
    assert [name for name, variable in variables.items() if variable.causality == "output"] == numbers
    assert variables["velocity[1]"].unit == "m/s"
    assert {unit.name for unit in result.unitDefinitions} >= {"rad", "m", "m/s", "W"}
    assert simulation.canBeInstantiatedOnlyOncePerProcess
    assert float(result.defaultExperiment.stepSize) == plant.dt
    assert simulation.canGetAndSetFMUstate
    assert simulation.canSerializeFMUstate
    assert not simulation.canHandleVariableCommunicationStepSize


def outputs_of(plant: Any) -> dict[str, float]:
    """Of a plant of ours, by the names of FMI 2."""
    outputs = plant.observe()
    return {
        name: float(number)
        for channel in plant.outputs
        for name, number in zip(scalars(channel), np.ravel(outputs[channel.name]), strict=True)
    }


def test_fmpy_simulates_what_we_run_bit_for_bit(manta: Path) -> None:
    result, plant = simulated(manta, STEPS), rtmms.load("manta", **PARAMETERS)
    for step in range(STEPS):
        if step % 20 == 0:
            assert {name: result[name][step] for name in result} == outputs_of(plant), step
        plant.step(gait(step))
    assert abs(float(plant.observe()["velocity"][0])) > 1e-3  # it moved


AS_A_PLANT = """
import json, sys
import numpy as np, rtmms
from tests.fmi.test_export import gait
from tests.fmi.test_export2 import outputs_of
theirs = rtmms.load(sys.argv[1])
for step in range(100):
    theirs.step(gait(step))
blob = theirs.snapshot()
for step in range(100, 120):
    theirs.step(gait(step))
theirs.restore(blob)
print(json.dumps({name: float(value) for name, value in theirs.observe().items()}))
"""

WRONG = """
import sys
import numpy as np, rtmms
try:
    rtmms.load(sys.argv[1], dt=1.5e-3).step(np.zeros(4))
except rtmms.DivergedError as fault:
    print(fault)
"""


def in_a_process_of_its_own(program: str, path: Path) -> str:
    """One instance a process, as the FMU declares."""
    child = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=120,
                           check=False, cwd=ROOT)  # fmt: skip
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_it_runs_as_a_plant_with_the_same_bits_also_from_a_state(manta: Path) -> None:
    ours = rtmms.load("manta", **PARAMETERS)
    for step in range(100):
        ours.step(gait(step))
    assert json.loads(in_a_process_of_its_own(AS_A_PLANT, manta)) == outputs_of(ours)


def test_a_step_of_another_length_is_discarded(manta: Path) -> None:
    assert "failed with status 2 (discard)" in in_a_process_of_its_own(WRONG, manta)


SSP = """
import json, sys
from fmpy.ssp.simulation import simulate_ssp
found = simulate_ssp(sys.argv[1], stop_time=float(sys.argv[2]), step_size=1e-3)
print(json.dumps({name: found[name].tolist() for name in found.dtype.names}))
"""


def test_an_ssp_of_robot_and_controller_runs_in_fmpy(manta: Path, tmp_path: Path) -> None:
    """The example's controller. fmpy gives each component at a step what the others had at the one before."""
    build = [sys.executable, "-m", "pythonfmu", "build", "-f", str(ROOT / "examples/fmi/flap.py"), "-d", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, timeout=120, cwd=tmp_path)
    ssp, steps = tmp_path / "swim.ssp", 300
    with zipfile.ZipFile(ssp, "w") as archive:
        archive.write(ROOT / "examples/fmi/SystemStructure.ssd", "SystemStructure.ssd")
        archive.write(manta, "resources/manta.fmu")
        archive.write(tmp_path / "Flap.fmu", "resources/Flap.fmu")
    child = subprocess.run([sys.executable, "-c", SSP, str(ssp), str((steps - 0.5) * 1e-3)], capture_output=True,
                           text=True, timeout=120, check=False)  # fmt: skip
    assert child.returncode == 0, child.stderr
    content = json.loads(child.stdout)
    plant, time, height, rods = rtmms.load("manta", **PARAMETERS), 0.0, 0.0, (0.0, 0.0)
    for step in range(steps):
        assert content["time"][step] == time
        plant.step(np.array(rods * 2))
        amplitude, phase = 0.4 - 0.2 * height, 2.0 * math.pi * 0.6 * (time + 1e-3)
        rods = amplitude * math.sin(phase), amplitude * math.sin(phase - 0.6)
        x, _, height = plant.observe()["position"].tolist()
        got = [
            content[name][step] for name in ("robot.position[0]", "robot.position[2]", "controller.front")
        ]  # fmt: skip
        assert got == [x, height, rods[0]], step
        time += 1e-3
    assert abs(x) > 1e-4


def test_the_command_writes_either_version(tmp_path: Path) -> None:
    for version, text in (("2", "2.0"), ("3", "3.0")):
        path = tmp_path / f"{version}.fmu"
        result = command(
            tmp_path, "export-fmu", "manta", "--fmi", version, "-o", str(path), "--set", "chains=6", "--json"
        )
        assert result.status == 0, result.err
        assert result.report["fmi"] == int(version)
        assert fmpy.read_model_description(str(path)).fmiVersion == text
    result = command(tmp_path, "export-fmu", "manta", "--fmi", "1", "-o", str(tmp_path / "1.fmu"))
    assert result.status == 2
    assert "'1' is not one of '2', '3'" in result.err
    assert not (tmp_path / "1.fmu").exists()


def test_an_export_leaves_nothing_behind(tmp_path: Path) -> None:
    places = list(sys.path)
    export("manta", tmp_path / "m.fmu", parameters=PARAMETERS, fmi=2)
    assert sys.path == places
    assert "rtmms_robot2" not in sys.modules
    assert [path.name for path in tmp_path.iterdir()] == ["m.fmu"]
