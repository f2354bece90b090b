"""Scene of a state, whoever draws it: the robot's pose, its surfaces, solids and forces, and the floor below it.

Films, stills, the live view and the page draw it; `colours.py` has its colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite, log10, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.attitude import HOME, Pose, Quaternion, Vector, rotate
from rtmms.base.contract import ESTIMATE, TRUTH
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import WATER
from rtmms.view.drawings import shape_of
from rtmms.view.visuals import visual_of
from rtmms.wire.protocol.received_state import PlantInfo

if TYPE_CHECKING:
    from rtmms.view.recording import Recording


Array = npt.NDArray[np.float64]


CURRENT = (("current_x_m_s", "current_y_m_s", "current_z_m_s"), ("wind_x_m_s", "wind_y_m_s", "wind_z_m_s"))

MAX_DRAWN = 1e9
"""Largest number that is drawn."""
MIN_SIZE_M = 1e-6
"""Declared size of a robot, m; a robot outside the two limits is drawn with a default size."""
MAX_SIZE_M = 1e6


@dataclass(frozen=True)
class Force:
    """Output that is drawn as arrows.

    Attributes
    ----------
    output : str
        Name of the output.
    rows : int
        Number of arrows.
    width : int
        Numbers of a row, the first three a force, N.
    frame : str
        Frame of the force.
    """

    output: str
    rows: int
    width: int
    frame: str


@dataclass(frozen=True)
class DrawnState:
    """One state, drawn.

    Attributes
    ----------
    pose : Pose
        Pose of the body in the world.
    ghost : Pose | None
        Pose by the estimate, None without one.
    skins : tuple[Array, ...]
        (n, 3) points of each skin, m, body frame.
    bent : tuple[Array, ...]
        (n, 3) vertices of each bending surface of the visual, m, body frame.
    frames : dict[str, Pose]
        Frames of the moving parts in the body's, by name.
    forces : Array
        (k, 2, 3) point of action (m) and force (N), body frame.
    """

    pose: Pose
    ghost: Pose | None
    skins: tuple[Array, ...]
    bent: tuple[Array, ...]
    frames: dict[str, Pose]
    forces: Array


class Picture:
    """Picture of one plant.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Attributes
    ----------
    shape : Shape or None
        None where only the pose of its body is known.
    visual : Visual or None
        Look of the robot, over its shape.
    needs : tuple of str
        Outputs that it is drawn from.
    current : tuple of float
        Velocity of the current, m/s, world, of the water or the air, as its parameters have it.
    size : float
        Approximate size of the robot, m.
    """

    def __init__(self, plant: PlantInfo) -> None:
        channels = {channel.name: channel for channel in plant.outputs}
        # a plant that is seen through sensors has the truth under other names
        owners = [f"{name}." for name in plant.robots]
        true = {name: _true(name, owners) for name in channels}
        self._names = {bare: name for name, bare in true.items() if bare != name}
        self._names.update({name: name for name, bare in true.items() if bare == name and name not in self._names})
        if owners:  # the first of several robots is where the picture is
            first = {name: self._names.get(owners[0] + name) for name in ("position", "quaternion")}
            self._names |= {name: output for name, output in first.items() if output is not None}
        bare = tuple(replace(channels[output], name=name) for name, output in self._names.items())
        self.shape = shape_of(replace(plant, outputs=bare))
        self.visual = visual_of(replace(plant, outputs=bare), self.shape)
        shapes = {channel.name: channel.shape for channel in bare}
        self._pose = tuple(n for n, size in (("position", 3), ("quaternion", 4)) if shapes.get(n) == (size,))
        self._ghost = tuple(
            ESTIMATE + n for n, size in (("position", 3), ("quaternion", 4)) if shapes.get(ESTIMATE + n) == (size,)
        )
        self._forces = tuple(
            Force(c.name, prod(c.shape[:-1]), c.shape[-1], c.frame)
            for c in bare
            if c.unit.split(",")[0] == "N" and c.shape and c.shape[-1] in (3, 6) and c.frame in ("body", "world")
        )
        self._owners = tuple(plant.robots)
        needed = [*self._pose, *self._ghost, *(force.output for force in self._forces)]
        self._shape_needs = self.shape.needs if self.shape else ()
        self.needs = tuple(dict.fromkeys(self._names[name] for name in (*needed, *self._shape_needs)))
        self.current = _current(next(iter(plant.robots.values()), plant).parameters)
        self.size = 1.0

    def measure(self, drawn: DrawnState) -> None:
        """Set the robot's size from a drawn state.

        Parameters
        ----------
        drawn : DrawnState
            The state.
        """
        points = self.points(drawn)
        size = 2.0 * float(np.abs(points).max()) if len(points) else 0.5
        self.size = size if MIN_SIZE_M < size < MAX_SIZE_M else 0.5

    def paths(self, recording: Recording) -> list[Array]:
        """Return the path of each robot's body in all states.

        Parameters
        ----------
        recording : Recording
            The recording.

        Returns
        -------
        list[Array]
            (n, 3) m, world; at the origin where no output has it.
        """
        shapes = {c.name: c.shape for c in recording.info.outputs}
        names = [self._names.get(f"{owner}.position") for owner in self._owners] or [self._names.get("position")]
        result = [recording.series(name) for name in names if name is not None and shapes.get(name) == (3,)]
        return result or [np.zeros((len(recording.time), 3))]

    def points(self, drawn: DrawnState) -> Array:
        """Return all visible points of the robot.

        Parameters
        ----------
        drawn : DrawnState
            The state.

        Returns
        -------
        Array
            (n, 3) m, body frame.
        """
        result = [points for points in (*drawn.skins, *drawn.bent) if len(points)]
        for surface in () if self.visual is None else self.visual.surfaces:
            if surface.vertices is not None:
                place, attitude = drawn.frames.get(surface.frame, HOME)
                result.append(surface.vertices @ quaternion_matrix(np.array(attitude)).T + np.array(place))
        return np.concatenate(result) if result else np.zeros((0, 3))

    def draw(self, outputs: Mapping[str, Any]) -> DrawnState:
        """Draw a state.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Numbers, or flat lists or arrays, by the plant's own names.

        Returns
        -------
        DrawnState
            The drawn state.
        """
        get = {name: _flat(outputs[output]) for name, output in self._names.items() if output in outputs}
        pose = _pose_of(get, self._pose)
        frames, skins, bent = dict[str, Pose](), tuple[Array, ...](), tuple[Array, ...]()
        if self.shape is not None and all(name in get for name in self._shape_needs):
            frames = self.shape.frames(get)
            skins = tuple(np.array(points, dtype=float).reshape(-1, 3) for points in self.shape.points(get))
            bent = () if self.visual is None else self.visual.bent(frames, skins)
        ghost = _pose_of(get, self._ghost, ESTIMATE) if self._ghost and all(n in get for n in self._ghost) else None
        return DrawnState(pose, ghost, skins, bent, frames, self._arrows(get, pose, frames))

    def _arrows(self, get: Mapping[str, list[float]], pose: Pose, frames: Mapping[str, Pose]) -> Array:
        """Return the arrows of forces.

        Row k of an output acts at the k-th moving part where there are as many, else at the body's origin.
        """
        result: list[tuple[Vector, Vector]] = []
        places = [position for position, _ in frames.values()]
        for force in self._forces:
            numbers = get.get(force.output)
            if numbers is None:
                continue
            for row in range(force.rows):
                x, y, z = numbers[row * force.width : row * force.width + 3]
                if not (isfinite(x) and isfinite(y) and isfinite(z)):
                    continue
                vector: Vector = (x, y, z)
                if force.frame == "world":
                    w, a, b, c = pose[1]
                    vector = rotate((w, -a, -b, -c), vector)
                result.append((places[row] if len(places) == force.rows > 1 else HOME[0], vector))
        return np.array(result, dtype=float).reshape(-1, 2, 3)


def _true(name: str, owners: Sequence[str]) -> str:
    """Return the name of an output without the prefix of the truth; `owners` are 'ROBOT.' of several robots."""
    for owner in owners:
        if name.startswith(owner):
            return owner + name.removeprefix(owner).removeprefix(TRUTH)
    return name.removeprefix(TRUTH)


def _current(scene: Mapping[str, Any]) -> tuple[float, ...]:
    for name in ("current_m_s", "wind_m_s"):
        if isinstance(scene.get(name), list | tuple) and len(scene[name]) == 3:
            return _speed(scene[name])
    for names in CURRENT:
        if names[0] in scene:
            return _speed([scene.get(k, 0.0) for k in names])
    return 0.0, 0.0, 0.0


def _speed(values: Sequence[Any]) -> tuple[float, ...]:
    """Return numbers, 0 for other values."""
    return tuple(float(v) if isinstance(v, int | float) and -MAX_DRAWN < v < MAX_DRAWN else 0.0 for v in values)


def _flat(value: Any) -> list[float]:
    """Return the numbers of a value; one that is none, or that no viewer can place, is 0."""
    if hasattr(value, "tolist"):
        value = value.ravel().tolist()
    numbers = value if isinstance(value, list) else [float(value)]
    return numbers if all(-MAX_DRAWN < x < MAX_DRAWN for x in numbers) else [
        x if -MAX_DRAWN < x < MAX_DRAWN else 0.0 for x in numbers
    ]  # fmt: skip


def _pose_of(get: Mapping[str, list[float]], names: tuple[str, ...], prefix: str = "") -> Pose:
    position: Vector = HOME[0]
    attitude: Quaternion = HOME[1]
    if prefix + "position" in names and prefix + "position" in get:
        x, y, z = get[prefix + "position"]
        position = (x, y, z)
    if prefix + "quaternion" in names and prefix + "quaternion" in get:
        w, a, b, c = get[prefix + "quaternion"]
        if w * w + a * a + b * b + c * c > 1e-6:  # else it is none
            attitude = (w, a, b, c)
    return position, attitude


def cell(size: float) -> float:
    """Return the cell of the floor's grid for a robot's size.

    Parameters
    ----------
    size : float
        Size of the robot, m.

    Returns
    -------
    float
        m: 1, or 0.1, 0.01 for smaller robots.
    """
    return float(10.0 ** floor(log10(max(size, 1e-9)) + 1e-9))


def floor_height(scene: str, ground: float | None, start: float, lowest: float, size: float) -> float:
    """Return the height of the floor under a robot, which it never crosses.

    Parameters
    ----------
    scene : str
        Name of the scene.
    ground : float | None
        Height of the ground of its visual, m, body frame; None without one.
    start : float
        z of its body at first, m, world.
    lowest : float
        z of its lowest point so far, or in the whole run, m, world.
    size : float
        Size of the robot, m.

    Returns
    -------
    float
        m, world.
    """
    if ground is not None:
        return min(start + ground, lowest)
    return lowest - (0.45 if scene == WATER else 0.25) * size
