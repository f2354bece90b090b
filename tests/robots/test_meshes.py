"""The mesh of each robot at its defaults against a finer one: as far off as the robot's page states, or less.

Each robot that has a mesh makes its usual motion at its own step. Compared are the farthest distance, of the length
travelled, and the work (mean power) of the actuators, as the accuracy of steps is (rtmms.plant.replay).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import rtmms
from rtmms.continuum.strain_modes import legendre
from rtmms.continuum.strain_rod import DEFAULT_POINTS, StrainRod
from rtmms.model import Rod, RodSection
from rtmms.plant.replay import MIN_WAY, work_error
from rtmms.robots.continuous_eel import ContinuousEel
from rtmms.robots.eel import Eel
from rtmms.robots.fish import Fish
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.modal_moth import ModalMoth
from rtmms.robots.moth import Moth
from tests.robots.gaits import gait

Array = npt.NDArray[np.float64]
ROBOTS = {
    "manta": MantaParameters, "eel": Eel, "moth": Moth, "modal_moth": ModalMoth, "fish": Fish,
    "continuous_eel": ContinuousEel,
}  # fmt: skip


@dataclass(frozen=True)
class Mesh:
    """knob: the parameter;  usual: its default;  fine: what it is compared with;  given: what else is chosen;  path,
    work: fractions, how far it may be off."""

    robot: str
    knob: str
    typical: int
    fine: int
    seconds: float
    path: float
    work: float
    arguments: dict[str, Any] = field(default_factory=dict)
    command: Callable[[float], Array] | None = None

    @property
    def name(self) -> str:
        chosen = ", ".join(f"{key}={value}" for key, value in self.arguments.items())
        return f"{self.robot} {self.knob} {chosen}".strip()


BENT = 2.0 * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
MESHES = [
    Mesh("manta", "chains", 30, 120, 4.0, 4e-5, 8e-5, command=gait()),
    Mesh("manta", "links", 3, 12, 4.0, 4.5e-3, 2.7e-2, command=gait()),
    Mesh("manta", "links", 3, 12, 4.0, 1.3e-3, 1.4e-2, {"bending": "centred"}, gait()),
    Mesh("eel", "nodes", 10, 40, 3.0, 1e-8, 1e-8),
    Mesh("moth", "nodes", 6, 24, 0.1, 2.5e-5, 1e-7, {"preset": "fit"}),
    Mesh("modal_moth", "sections", 8, 32, 0.1, 1.2e-4, 2.5e-6),
    Mesh("fish", "pieces", 3, 12, 5.0, 9e-4, 0.0),
    Mesh("fish", "pieces", 3, 12, 3.0, 5e-4, 4e-4, {"preset": "swimming"}),
    Mesh("fish", "joints", 8, 32, 5.0, 3.6e-3, 0.0),
    Mesh("continuous_eel", "nodes", 64, 256, 3.0, 2e-8, 2e-7),
    Mesh("continuous_eel", "nodes", 64, 256, 1.0, 4.5e-5, 2.5e-4, {"drive": "nodes"}, lambda time: BENT),
    Mesh("StrainRod", "nodes", 25, 97, 1.0, 5e-8, math.nan), Mesh("StrainRod", "shapes", 4, 8, 1.0, 3.5e-3, math.nan),
]  # fmt: skip
"""All of them. The joints of a swimming fish are none: its servos are of each joint, more of them another robot."""


def travel(mesh: Mesh, size: int) -> tuple[Array, float, float]:
    """Places (steps + 1, k), work (or sum of power), and the length that a way counts as at least."""
    if mesh.robot == "StrainRod":
        return _of_rod(mesh, size)
    chosen: dict[str, Any] = {mesh.knob: size, **mesh.arguments}
    plant: Any = rtmms.load(mesh.robot, **chosen)
    steps, estimator = round(mesh.seconds / plant.dt), plant.step_error_estimator()
    state, neutral = estimator.room(), np.array([actuator.neutral for actuator in plant.actuators])
    estimator.keep(state)
    places, power = [state.position.copy()], 0.0
    for k in range(steps):
        plant.step(neutral if mesh.command is None else mesh.command(k * plant.dt))
        estimator.keep(state)
        places.append(state.position.copy())
        power += estimator.power(state) * plant.dt if state.work is None else 0.0
    return np.array(places), power if state.work is None else float(state.work.sum()), MIN_WAY * estimator.length


def _of_rod(mesh: Mesh, size: int) -> tuple[Array, float, float]:
    """A soft rod of 1 m, held, that a force across its tip bends by about half its length."""
    section = RodSection(0.5, (2e-4, 1e-4, 1e-4), 1.0, 1.0, 1.0)
    shapes, nodes = (size, None) if mesh.knob == "shapes" else (4, size)
    rod = StrainRod(Rod("rod", "wall", 1.0, section), legendre(shapes), nodes=nodes)
    command, places = np.array([0.0, 2.0, 1.0, 0.0, 0.0, 0.0]), [rod.observe()["tip"]]
    for _ in range(round(mesh.seconds / rod.dt)):
        rod.step(command)
        places.append(rod.observe()["tip"])
    return np.array(places), math.nan, MIN_WAY


def off(mesh: Mesh) -> tuple[float, float]:
    """Errors of path and work at the default, fractions; nan for work that is not counted."""
    (places, work, _), (exact, done, least) = travel(mesh, mesh.typical), travel(mesh, mesh.fine)
    length = float(np.sum(np.linalg.norm(np.diff(exact, axis=0), axis=1)))
    apart = float(np.max(np.linalg.norm(places - exact, axis=1)))
    return apart / max(length, least), work_error(work, done, 0.0) if math.isfinite(work + done) else math.nan


@pytest.mark.full
@pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: mesh.name)
def test_a_mesh_is_as_fine_as_its_page_states(mesh: Mesh) -> None:
    path, work = off(mesh)
    assert path <= mesh.path
    assert math.isnan(mesh.work) or work <= mesh.work


def test_meshes_are_those_of_the_defaults() -> None:
    listed = {(mesh.robot, mesh.knob): mesh.typical for mesh in MESHES}
    assert listed.pop(("StrainRod", "nodes")) == DEFAULT_POINTS
    assert listed.pop(("StrainRod", "shapes")) == 4
    assert {robot for robot, _ in listed} == set(ROBOTS)
    for (robot, knob), default in listed.items():
        assert {f.name: f.default for f in fields(ROBOTS[robot])}[knob] == default, (robot, knob)


def test_the_default_fish_is_fine_and_a_coarser_one_is_worse() -> None:
    """The dead fish over 0.5 s: sections at Gauss points; half a per cent of its way is a coarse mesh's."""
    (mesh,) = [mesh for mesh in MESHES if mesh.name == "fish pieces" and mesh.seconds == 5.0]
    short = replace(mesh, seconds=0.5)
    path, work = off(short)
    assert path < 2e-3
    assert work == 0.0
    assert off(replace(short, typical=2))[0] > 1.5 * path
