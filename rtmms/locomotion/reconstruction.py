"""Where a path of shapes takes a mechanism: the reconstruction g' = -g A(r) rd (Boyer and Porez 2015, eqs 4 and 16).

Without time: `holonomy`, which no change of pace alters. With time: `reconstruct`, with twists, power and work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, rotation_vector
from rtmms.locomotion.connections import Connection
from rtmms.locomotion.group import NODES, WEIGHTS, composed, transport
from rtmms.locomotion.paths import Path, gait_path
from rtmms.model.compiled import Model
from rtmms.model.description import Mechanism
from rtmms.model.layout import PRISMATIC, T_KIND

FIRST_STEPS, MOST_STEPS = 16, 1 << 15
TOLERANCE = 1e-12
"""Of each smooth piece; they are doubled until the result stands still."""


@dataclass(frozen=True, eq=False)
class Motion:
    """A reconstructed motion, at the ends of its steps.

    time (m + 1,) s; shape, rate (m + 1, p); pose (m + 1, 7): position in m and quaternion, in the starting frame;
    heading (m + 1,) rad, turns about z summed up; twist (m + 1, 6) m/s, rad/s, body;
    effort (m + 1,): the drag's power (W), or twice the kinetic energy (J), see Connection.along
    work   J: dissipated (stokes), or put in wherever the kinetic energy grows, if nothing gives it back
    cost   integral of sqrt(effort) dt, whatever the pace: sqrt(W s), or sqrt(J) s
    """

    time: Array
    shape: Array
    rate: Array
    pose: Array
    heading: Array
    twist: Array
    effort: Array
    work: float
    cost: float
    planar: bool
    effort_name: str = "Twice the kinetic energy, J"

    @property
    def displacement(self) -> Array:
        """(3,) x, y, theta where planar, else (6,) rotation vector and position; in the starting frame."""
        return displacement(self.pose[-1], float(self.heading[-1]), self.planar)


def displacement(pose: Array, heading: float, planar: bool) -> Array:
    """See Motion.displacement."""
    if planar:
        return np.array([pose[0], pose[1], heading])
    return np.concatenate([rotation_vector(pose[3:]), pose[:3]])


def holonomy(
    mechanism: Mechanism | Model | Connection, path: Any, kind: str = "mechanical", cycles: int = 1, *,
    planar: bool | None = None, tolerance: float = TOLERANCE,
) -> Array:  # fmt: skip
    """The net motion after `cycles` times the path: (x, y, theta) in m and rad where planar, else (6,) rotation vector
    and position; in the starting frame.

    path       a Path, shapes (k, p) joined by straight lines, a function of t from 0 to 2 pi (see Path.of), or a word
               ('circle:a=1', see gait_path)
    tolerance  how much the last doubling of the steps may still change, of 1 m and 1 rad
    More than one cycle needs a path that ends where it begins (whole turns of revolute joints apart).
    """
    one = mechanism if isinstance(mechanism, Connection) else Connection(mechanism, kind, planar)
    way = path_of(one, path)
    check_path(one.model, way)
    if not isinstance(cycles, int) or isinstance(cycles, bool) or cycles < 1:
        raise ModelError(f"holonomy: cycles must be a whole number >= 1, got {cycles!r}")
    if cycles > 1 and not is_closed(one.model, way):
        raise ModelError(f"holonomy: {cycles} cycles need a path that ends where it begins, got {_end_of(way)}")
    pose, turned = _once(one, way, tolerance)
    whole = pose
    for _ in range(cycles - 1):
        whole = composed(whole, pose)
    return displacement(whole, cycles * turned, one.planar)


def net_pose(one: Connection, path: Any, tolerance: float = TOLERANCE) -> Array:
    """(7,) position and quaternion at the end of a path, in the starting frame."""
    way = path_of(one, path)
    check_path(one.model, way)
    return _once(one, way, tolerance)[0]


def path_of(one: Connection, path: Any) -> Path:
    """A path of that many shape variables, of whatever stands for one."""
    return gait_path(path, one.shape_size) if isinstance(path, str) else Path.of(path)


def check_path(model: Model, way: Path) -> None:
    """ModelError where it is of another number of shape variables."""
    if way.size != model.n:
        raise ModelError(
            f"{model.name}: a path must have {model.n} shape variables ({', '.join(model.joint_names)}), got {way.size}"
        )


def is_closed(model: Model, way: Path, within: float = 1e-9) -> bool:
    """Whether a path ends at its first shape, or whole turns of revolute joints from it."""
    first, last = way.ends
    gap = last - first
    turns = model.topology[1:, T_KIND] != PRISMATIC
    gap = np.where(turns, gap - 2.0 * np.pi * np.round(gap / (2.0 * np.pi)), gap)
    return bool(np.max(np.abs(gap)) <= within * max(1.0, float(np.max(np.abs(last)))))


def _end_of(way: Path) -> str:
    first, last = way.ends
    return f"{np.round(first, 6).tolist()} and {np.round(last, 6).tolist()}"


def _grid(way: Path, steps: int) -> tuple[Array, Array]:
    """Ends of `steps` steps in each smooth piece, (k,) s, and all nodes, (3 (k - 1),) s."""
    pieces = [np.linspace(a, b, steps + 1)[:-1] for a, b in zip(way.breaks[:-1], way.breaks[1:], strict=True)]
    ends = np.array([*np.concatenate(pieces), way.breaks[-1]])
    nodes = (ends[:-1, None] + np.diff(ends)[:, None] * NODES).ravel()
    return ends, nodes


def _moved(one: Connection, way: Path, steps: int) -> tuple[Array, Array, Array, Array]:
    """Ends of steps, poses, headings, efforts at the nodes."""
    ends, nodes = _grid(way, steps)
    twists, efforts = one.along(*way.motion(nodes))
    poses, turned = np.zeros((len(ends), 7)), np.zeros(len(ends))
    poses[0, 3] = 1.0
    transport(twists, np.diff(ends), poses, turned, np.zeros((8, 6)))
    return ends, poses, turned, efforts


def _once(one: Connection, way: Path, tolerance: float) -> tuple[Array, float]:
    """Pose and heading at the end of the path; steps are doubled until they change by no more than `tolerance`."""
    steps, before, change = FIRST_STEPS, None, np.inf
    while True:
        _, poses, turned, _ = _moved(one, way, steps)
        now = np.array([*poses[-1], turned[-1] if one.planar else 0.0])  # in space that sum has no limit of its own
        if before is not None:
            last, change = change, float(np.max(np.abs(now - before)))
            if change <= tolerance or (last < 1e-10 and change >= 0.25 * last):  # what is left is rounding
                return poses[-1], float(turned[-1])
        steps *= 2
        if steps > MOST_STEPS:
            raise ModelError(
                f"{one.model.name}: the path's motion does not settle: {change:.2g} at the last doubling of its steps; "
                "expected a path that is smooth between its breaks"
            )
        before = now


def reconstruct(
    mechanism: Mechanism | Model | Connection, path: Any, kind: str = "mechanical", cycles: int = 1, *,
    planar: bool | None = None, steps: int = 256,
) -> Motion:  # fmt: skip
    """The motion in time along `cycles` times the path: see Motion. steps: of each smooth piece, doubled until where it
    ends is that of `holonomy`.

    Work and cost are exact to sixth order in the step, the work of inertial kinds to second order where its sign turns.
    """
    one = mechanism if isinstance(mechanism, Connection) else Connection(mechanism, kind, planar)
    way = path_of(one, path)
    check_path(one.model, way)
    last = _once(one, way, TOLERANCE)[0]
    while True:
        ends, poses, turned, efforts = _moved(one, way, steps)
        if np.max(np.abs(poses[-1] - last)) < 100.0 * TOLERANCE or steps >= MOST_STEPS:
            break
        steps *= 2
    lengths = np.diff(ends)
    shape, rate = way.motion(ends)
    twist, effort = one.along(shape, rate)
    weighted = lengths * (efforts.reshape(-1, 3) @ WEIGHTS)
    cost = float(np.sum(lengths * (np.sqrt(np.maximum(efforts, 0.0)).reshape(-1, 3) @ WEIGHTS)))
    work = float(weighted.sum()) if one.kind == "stokes" else _put_in(efforts)
    pose, heading = [poses], [turned]
    for _ in range(cycles - 1):
        last = pose[-1][-1]
        pose.append(np.array([composed(last, step) for step in poses[1:]]))
        heading.append(heading[-1][-1] + turned[1:])
    rows = np.concatenate([np.arange(len(ends)), *([np.arange(1, len(ends))] * (cycles - 1))])
    cycle = np.concatenate([np.zeros(len(ends)), *(np.full(len(ends) - 1, k) for k in range(1, cycles))])
    return Motion(
        ends[rows] + cycle * way.duration, shape[rows], rate[rows], np.concatenate(pose), np.concatenate(heading),
        twist[rows], effort[rows], cycles * work, cycles * cost, one.planar,
        "Power, W" if one.kind == "stokes" else "Twice the kinetic energy, J",
    )  # fmt: skip


def _put_in(doubled: Array) -> float:
    """J: the sum of all growth of the kinetic energy over a closed path, from one node to the next and around."""
    energy = 0.5 * doubled
    return float(np.sum(np.maximum(np.diff(energy, append=energy[0]), 0.0)))
