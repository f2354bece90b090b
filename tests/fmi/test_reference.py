"""FMUs of the standard's own collection, and one of another tool's, as the plant: against fmpy, and by hand."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

import rtmms
from tests.cli.shell import rtmms as command

fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed: pip install 'rtmms[fmi]'")

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FMUS = {
    "Dahlquist": "Dahlquist.fmu", "VanDerPol": "VanDerPol_ME.fmu", "BouncingBall": "BouncingBall_ME.fmu",
    "CoupledClutches": "CoupledClutches_CS_linux64.fmu",
}  # fmt: skip
"""The name in its description, and the file's; those called ME hold co-simulation, too."""


@pytest.fixture(scope="module")
def fmus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    result = sorted((ROOT / "build" / "fmus").glob("pathsim-*.tar.gz"))
    if not result:
        pytest.skip("no reference FMUs: the command that fetches them is in tests/fmi/reference.txt")
    folder = tmp_path_factory.mktemp("reference")
    with tarfile.open(result[-1]) as archive:
        for member in archive.getmembers():
            name = Path(member.name).name
            if name in FMUS.values():
                data = archive.extractfile(member)
                assert data is not None
                (folder / name).write_bytes(data.read())
    return {name: str(folder / file) for name, file in FMUS.items()}


@pytest.mark.parametrize("name", FMUS)
def test_step_by_step_it_is_what_fmpy_gives(fmus: dict[str, str], name: str) -> None:
    plant = rtmms.load(fmus[name])
    steps = 40
    outputs = [channel.name for channel in plant.outputs if not channel.shape]
    assert outputs
    theirs = fmpy.simulate_fmu(
        fmus[name], fmi_type="CoSimulation", step_size=plant.dt, output_interval=plant.dt,
        stop_time=steps * plant.dt, output=outputs,
    )  # fmt: skip
    assert len(theirs) == steps + 1
    neutral = np.array([actuator.neutral for actuator in plant.actuators])
    moved = 0
    for row in theirs[1:]:
        plant.step(neutral)
        ours = plant.observe()
        for output in outputs:
            assert float(ours[output]) == pytest.approx(float(row[output]), abs=1e-12)
            moved += float(ours[output]) != float(theirs[0][output])
    assert moved


def test_dahlquists_equation_is_what_it_is_by_hand(fmus: dict[str, str]) -> None:
    """x' = -k x, integrated by it in Euler's explicit steps of 0.1 s."""
    plant = rtmms.load(fmus["Dahlquist"], k=2.0)
    assert plant.dt == pytest.approx(0.1)
    nothing, x = np.zeros(len(plant.actuators)), 1.0
    for _ in range(30):
        plant.step(nothing)
        x -= 0.1 * 2.0 * x
        assert float(plant.observe()["x"]) == pytest.approx(x, rel=1e-12)


def test_a_state_that_was_kept_goes_on_as_it_did(fmus: dict[str, str]) -> None:
    plant = rtmms.load(fmus["VanDerPol"])
    nothing = np.zeros(len(plant.actuators))
    for _ in range(20):
        plant.step(nothing)
    blob = plant.snapshot()
    for _ in range(20):
        plant.step(nothing)
    last = plant.observe()
    other = rtmms.load(fmus["VanDerPol"])
    other.restore(blob)
    for _ in range(20):
        other.step(nothing)
    assert all(np.array_equal(last[name], value) for name, value in other.observe().items())


def test_it_is_the_plant_of_a_run(fmus: dict[str, str], tmp_path: Path) -> None:
    done = command(
        tmp_path, "run", fmus["Dahlquist"], "--controller", "none", "--mode", "free", "--duration", "5", "--json"
    )
    assert done.status == 0, done.err
    assert done.report["steps"] == 50
    assert done.report["final"]["x"] == pytest.approx(0.9**50, rel=1e-12)
