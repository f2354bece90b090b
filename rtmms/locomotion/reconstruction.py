"""Compute the motion of a mechanism along a path of shapes: the reconstruction g' = -g A(r) rd.

Without time: `holonomy`, which no change of pace alters. With time: `reconstruct`, with twists, power and work.

Notes
-----
Boyer and Porez 2015, eqs 4 and 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, rotation_vector
from rtmms.locomotion.connections import Connection
from rtmms.locomotion.group import NODES, WEIGHTS, compose_poses, transport
from rtmms.locomotion.paths import Path, gait_path
from rtmms.model.compiled import Model
from rtmms.model.description import Mechanism
from rtmms.model.layout import PRISMATIC, T_KIND

MIN_STEPS = 16
MAX_STEPS = 1 << 15
TOLERANCE = 1e-12
"""Tolerance of each smooth piece; the steps are doubled until the result changes by no more."""


@dataclass(frozen=True, eq=False)
class Motion:
    """A reconstructed motion, at the ends of its steps.

    Attributes
    ----------
    time : (m + 1,) array
        s.
    shape, rate : (m + 1, p) array
        Shapes, rad or m, and their rates.
    pose : (m + 1, 7) array
        Position, m, and quaternion, in the starting frame.
    heading : (m + 1,) array
        Sum of turns about z, rad.
    twist : (m + 1, 6) array
        m/s, rad/s, body.
    effort : (m + 1,) array
        The drag's power, W, or twice the kinetic energy, J, see `Connection.along`.
    work : float
        J: dissipated (stokes), or put in wherever the kinetic energy grows, if nothing gives it back.
    cost : float
        Integral of sqrt(effort) dt, independent of the pace: sqrt(W s), or sqrt(J) s.
    planar : bool
        Whether the motion is on SE(2).
    effort_name : str, optional
        Name and unit of the effort, for the report.
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
        """Net motion in the starting frame: (3,) x, y, theta where planar, else (6,) rotation vector and position."""
        return displacement(self.pose[-1], float(self.heading[-1]), self.planar)


def displacement(pose: Array, heading: float, planar: bool) -> Array:
    """Return the net motion of a pose, see `Motion.displacement`.

    Parameters
    ----------
    pose : (7,) array
        Position, m, and quaternion.
    heading : float
        Sum of turns about z, rad.
    planar : bool
        Whether the motion is on SE(2).

    Returns
    -------
    array
        (3,) where planar, else (6,).
    """
    if planar:
        return np.array([pose[0], pose[1], heading])
    return np.concatenate([rotation_vector(pose[3:]), pose[:3]])


def holonomy(
    mechanism: Mechanism | Model | Connection, path: Any, kind: str = "mechanical", cycles: int = 1, *,
    planar: bool | None = None, tolerance: float = TOLERANCE,
) -> Array:  # fmt: skip
    """Compute the net motion after some cycles of a path, in the starting frame.

    Parameters
    ----------
    mechanism : Mechanism or Model or Connection
        A connection, or a description or compiled model of which one is made.
    path : Path, str, array_like or callable
        A Path, a word such as 'circle:a=1' (`gait_path`), or whatever `Path.of` takes.
    kind : str, default 'mechanical'
        One of `connections.KINDS`; it has no effect on a connection that is given.
    cycles : int, default 1
        Number of cycles. More than one need a path that ends at its start (whole turns of revolute joints apart).
    planar : bool, optional
        True: SE(2), projected; False: SE(3); None: SE(2) where all joints and bodies are planar.
    tolerance : float, default TOLERANCE
        Largest change at the last doubling of the steps, of 1 m and 1 rad.

    Returns
    -------
    array
        (3,) x, y, theta in m and rad where planar, else (6,) rotation vector and position.

    Raises
    ------
    ModelError
        The path or the number of cycles is wrong, or the motion does not converge.
    """
    item = mechanism if isinstance(mechanism, Connection) else Connection(mechanism, kind, planar)
    route = path_of(item, path)
    check_path(item.model, route)
    if not isinstance(cycles, int) or isinstance(cycles, bool) or cycles < 1:
        raise ModelError(f"holonomy: cycles must be a whole number >= 1, got {cycles!r}")
    if cycles > 1 and not is_closed(item.model, route):
        raise ModelError(f"holonomy: {cycles} cycles need a path that ends where it begins, got {_end_of(route)}")
    pose, turned = _once(item, route, tolerance)
    whole = pose
    for _ in range(cycles - 1):
        whole = compose_poses(whole, pose)
    return displacement(whole, cycles * turned, item.planar)


def net_pose(connection: Connection, path: Any, tolerance: float = TOLERANCE) -> Array:
    """Return the pose at the end of a path, in the starting frame.

    Parameters
    ----------
    connection : Connection
        Connection of the mechanism.
    path : Path, str, array_like or callable
        A Path, a word such as 'circle:a=1' (`gait_path`), or whatever `Path.of` takes.
    tolerance : float, default TOLERANCE
        Largest change at the last doubling of the steps, of 1 m and 1 rad.

    Returns
    -------
    (7,) array
        Position, m, and quaternion.
    """
    route = path_of(connection, path)
    check_path(connection.model, route)
    return _once(connection, route, tolerance)[0]


def path_of(connection: Connection, path: Any) -> Path:
    """Return the path that a value describes, for the shape variables of a connection.

    Parameters
    ----------
    connection : Connection
        Connection of the mechanism.
    path : Path, str, array_like or callable
        A Path, a word such as 'circle:a=1' (`gait_path`), or whatever `Path.of` takes.

    Returns
    -------
    Path
        The path.
    """
    return gait_path(path, connection.shape_size) if isinstance(path, str) else Path.of(path)


def check_path(model: Model, path: Path) -> None:
    """Raise ModelError where a path has another number of shape variables than a model.

    Parameters
    ----------
    model : Model
        Compiled model.
    path : Path
        The path.

    Raises
    ------
    ModelError
        The numbers differ.
    """
    if path.size != model.n:
        raise ModelError(
            f"{model.name}: a path must have {model.n} shape variables ({', '.join(model.joint_names)}), got "
            f"{path.size}"
        )


def is_closed(model: Model, path: Path, within: float = 1e-9) -> bool:
    """Return whether a path ends at its first shape, or whole turns of revolute joints from it.

    Parameters
    ----------
    model : Model
        Compiled model.
    path : Path
        The path.
    within : float, default 1e-09
        Tolerance, as a share of the last shape's size, at least 1.

    Returns
    -------
    bool
        True for a closed path.
    """
    first, last = path.ends
    gap = last - first
    turns = model.topology[1:, T_KIND] != PRISMATIC
    gap = np.where(turns, gap - 2.0 * np.pi * np.round(gap / (2.0 * np.pi)), gap)
    return bool(np.max(np.abs(gap)) <= within * max(1.0, float(np.max(np.abs(last)))))


def _end_of(path: Path) -> str:
    """Return the first and the last shape as text."""
    first, last = path.ends
    return f"{np.round(first, 6).tolist()} and {np.round(last, 6).tolist()}"


def _grid(path: Path, steps: int) -> tuple[Array, Array]:
    """Return the ends of `steps` steps in each smooth piece, (k,) s, and all nodes, (3 (k - 1),) s."""
    pieces = [np.linspace(a, b, steps + 1)[:-1] for a, b in zip(path.breaks[:-1], path.breaks[1:], strict=True)]
    ends = np.array([*np.concatenate(pieces), path.breaks[-1]])
    nodes = (ends[:-1, None] + np.diff(ends)[:, None] * NODES).ravel()
    return ends, nodes


def _moved(connection: Connection, path: Path, steps: int) -> tuple[Array, Array, Array, Array]:
    """Return the ends of steps, poses, headings, and efforts at the nodes."""
    ends, nodes = _grid(path, steps)
    twists, efforts = connection.along(*path.motion(nodes))
    poses, turned = np.zeros((len(ends), 7)), np.zeros(len(ends))
    poses[0, 3] = 1.0
    transport(twists, np.diff(ends), poses, turned, np.zeros((8, 6)))
    return ends, poses, turned, efforts


def _once(connection: Connection, path: Path, tolerance: float) -> tuple[Array, float]:
    """Return pose and heading at the end of the path; steps are doubled until they change by at most `tolerance`."""
    steps, before, change = MIN_STEPS, None, np.inf
    while True:
        _, poses, turned, _ = _moved(connection, path, steps)
        now = np.array(
            [*poses[-1], turned[-1] if connection.planar else 0.0]
        )  # in space that sum has no limit of its own
        if before is not None:
            last, change = change, float(np.max(np.abs(now - before)))
            if change <= tolerance or (last < 1e-10 and change >= 0.25 * last):  # what is left is rounding
                return poses[-1], float(turned[-1])
        steps *= 2
        if steps > MAX_STEPS:
            raise ModelError(
                f"{connection.model.name}: the motion along the path does not converge: the last doubling of the "
                f"number of steps changes it by {change:.2g}; expected a path that is smooth between its breaks"
            )
        before = now


def reconstruct(
    mechanism: Mechanism | Model | Connection, path: Any, kind: str = "mechanical", cycles: int = 1, *,
    planar: bool | None = None, steps: int = 256,
) -> Motion:  # fmt: skip
    """Compute the motion in time along some cycles of a path.

    Work and cost are exact to sixth order in the step. The work of inertial kinds is exact to second order where its
    sign turns.

    Parameters
    ----------
    mechanism : Mechanism or Model or Connection
        A connection, or a description or compiled model of which one is made.
    path : Path, str, array_like or callable
        A Path, a word such as 'circle:a=1' (`gait_path`), or whatever `Path.of` takes.
    kind : str, default 'mechanical'
        One of `connections.KINDS`; it has no effect on a connection that is given.
    cycles : int, default 1
        Number of cycles.
    planar : bool, optional
        True: SE(2), projected; False: SE(3); None: SE(2) where all joints and bodies are planar.
    steps : int, default 256
        Steps of each smooth piece; they are doubled until the end of the motion is that of `holonomy`.

    Returns
    -------
    Motion
        The motion.

    Raises
    ------
    ModelError
        The path is wrong, or the motion does not converge.
    """
    item = mechanism if isinstance(mechanism, Connection) else Connection(mechanism, kind, planar)
    route = path_of(item, path)
    check_path(item.model, route)
    last = _once(item, route, TOLERANCE)[0]
    while True:
        ends, poses, turned, efforts = _moved(item, route, steps)
        if np.max(np.abs(poses[-1] - last)) < 100.0 * TOLERANCE or steps >= MAX_STEPS:
            break
        steps *= 2
    lengths = np.diff(ends)
    shape, rate = route.motion(ends)
    twist, effort = item.along(shape, rate)
    weighted = lengths * (efforts.reshape(-1, 3) @ WEIGHTS)
    cost = float(np.sum(lengths * (np.sqrt(np.maximum(efforts, 0.0)).reshape(-1, 3) @ WEIGHTS)))
    work = float(weighted.sum()) if item.kind == "stokes" else _put_in(efforts)
    pose, heading = [poses], [turned]
    for _ in range(cycles - 1):
        last = pose[-1][-1]
        pose.append(np.array([compose_poses(last, step) for step in poses[1:]]))
        heading.append(heading[-1][-1] + turned[1:])
    rows = np.concatenate([np.arange(len(ends)), *([np.arange(1, len(ends))] * (cycles - 1))])
    cycle = np.concatenate([np.zeros(len(ends)), *(np.full(len(ends) - 1, k) for k in range(1, cycles))])
    return Motion(
        ends[rows] + cycle * route.duration, shape[rows], rate[rows], np.concatenate(pose), np.concatenate(heading),
        twist[rows], effort[rows], cycles * work, cycles * cost, item.planar,
        "Power, W" if item.kind == "stokes" else "Twice the kinetic energy, J",
    )  # fmt: skip


def _put_in(doubled: Array) -> float:
    """Return the sum of all growth of the kinetic energy over a closed path, from node to node and around, J."""
    energy = 0.5 * doubled
    return float(np.sum(np.maximum(np.diff(energy, append=energy[0]), 0.0)))
