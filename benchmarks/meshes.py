"""What the meshes of all robots are off by at their defaults: `rtmms bench mesh`, its first table.

Each robot that has a mesh makes its usual motion at its own step, on the mesh of its defaults and on a finer one. Told
is how far the two come apart, as the accuracy of steps is (rtmms.monitor.replay): the farthest distance, of the length
travelled, and the work (mean power) of the actuators. Where a robot's mesh is a number of its paper, so is its error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import rtmms
from rtmms.continuum.shapes import legendre
from rtmms.continuum.strain_rod import StrainRod
from rtmms.model import Rod, RodSection
from rtmms.monitor.replay import SHORTEST, work_error
from rtmms.plant import HasPower

from .guards_cases import flapping

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mesh:
    """knob: the parameter;  usual: its default;  fine: what it is compared with;  given: what else is chosen."""

    robot: str
    knob: str
    usual: int
    fine: int
    seconds: float
    given: dict[str, Any]
    command: Callable[[float], Array] | None = None

    @property
    def name(self) -> str:
        chosen = ", ".join(f"{key}={value}" for key, value in self.given.items())
        return f"{self.robot} {chosen}".strip()


def meshes() -> list[Mesh]:
    """All of them. The joints of a swimming fish are none: its servos are of each joint, more of them another robot."""
    bent = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    return [
        Mesh("manta", "chains", 30, 120, 4.0, {}, flapping()), Mesh("manta", "links", 3, 12, 4.0, {}, flapping()),
        Mesh("manta", "links", 3, 12, 4.0, {"bending": "centred"}, flapping()),
        Mesh("eel", "nodes", 10, 40, 3.0, {}), Mesh("moth", "nodes", 6, 24, 0.1, {"preset": "fit"}),
        Mesh("modal_moth", "sections", 8, 32, 0.1, {}), Mesh("fish", "pieces", 3, 12, 5.0, {}),
        Mesh("fish", "pieces", 3, 12, 3.0, {"preset": "swimming"}), Mesh("fish", "joints", 8, 32, 5.0, {}),
        Mesh("continuous_eel", "nodes", 64, 256, 3.0, {}),
        Mesh("continuous_eel", "nodes", 64, 256, 1.0, {"drive": "nodes"}, lambda t: 2.0 * bent),
        Mesh("StrainRod", "nodes", 25, 97, 1.0, {}), Mesh("StrainRod", "shapes", 4, 8, 1.0, {}),
    ]  # fmt: skip


def way(mesh: Mesh, size: int) -> tuple[Array, float, float]:
    """Places (steps + 1, k), work (or sum of power), and the length that a way counts as at least."""
    if mesh.robot == "StrainRod":
        return _of_rod(mesh, size)
    chosen: dict[str, Any] = {mesh.knob: size, **mesh.given}
    plant: Any = rtmms.load(mesh.robot, **chosen)
    steps, twin = round(mesh.seconds / plant.dt), plant.twin()
    state, neutral = twin.room(), np.array([one.neutral for one in plant.actuators])
    twin.keep(state)
    places, power = [state.position.copy()], 0.0
    for k in range(steps):
        plant.step(neutral if mesh.command is None else mesh.command(k * plant.dt))
        twin.keep(state)
        places.append(state.position.copy())
        power += twin.power(state) * plant.dt if isinstance(twin, HasPower) else 0.0
    return np.array(places), power if state.work is None else float(state.work.sum()), SHORTEST * twin.length


def _of_rod(mesh: Mesh, size: int) -> tuple[Array, float, float]:
    """A soft rod of 1 m, held, that a force across its tip bends by about half its length."""
    section = RodSection(0.5, (2e-4, 1e-4, 1e-4), 1.0, 1.0, 1.0)
    shapes, nodes = (size, None) if mesh.knob == "shapes" else (4, size)
    rod = StrainRod(Rod("rod", "wall", 1.0, section), legendre(shapes), nodes=nodes)
    command, places = np.array([0.0, 2.0, 1.0, 0.0, 0.0, 0.0]), [rod.observe()["tip"]]
    for _ in range(round(mesh.seconds / rod.dt)):
        rod.step(command)
        places.append(rod.observe()["tip"])
    return np.array(places), float(command[:3] @ (places[-1] - places[0])), SHORTEST


def off(mesh: Mesh) -> tuple[float, float]:
    """Errors of path and work at the default, fractions."""
    (places, work, _), (exact, done, least) = way(mesh, mesh.usual), way(mesh, mesh.fine)
    length = float(np.sum(np.linalg.norm(np.diff(exact, axis=0), axis=1)))
    apart = float(np.max(np.linalg.norm(places - exact, axis=1)))
    return apart / max(length, least), work_error(work, done, 0.0)


def study(only: str = "") -> list[dict[str, Any]]:
    """A row for each of the meshes whose robot's name begins so."""
    rows = []
    for mesh in meshes():
        if mesh.robot.startswith(only):
            print(f"mesh: {mesh.name}: {mesh.knob}", file=sys.stderr, flush=True)
            path, work = off(mesh)
            rows.append({"robot": mesh.name, "mesh": mesh.knob, "default": mesh.usual, "beside": mesh.fine,
                         "path": path, "work": work})  # fmt: skip
    return rows


def tell(rows: list[dict[str, Any]]) -> None:
    """For a reader, as the robots' pages have it."""
    print("| robot | mesh | default | beside | path off by | work off by |\n|---|---|---|---|---|---|")
    for row in rows:
        told = [f"{100.0 * row[name]:.2g} %" for name in ("path", "work")]
        print(f"| {row['robot']} | {row['mesh']} | {row['default']} | {row['beside']} | {told[0]} | {told[1]} |")
