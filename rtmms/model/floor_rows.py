"""Compile floors and markers to points in the rows' frames, with every check of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import Array
from rtmms.model.contacts import Floor, Marker
from rtmms.model.elements import checked_numbers
from rtmms.model.solids import Placement

F_ROW = 0
F_PLACE = 1
F_HEIGHT = 4
F_FRICTION = 5
F_STIFFNESS = 6
F_DAMPING = 7
F_DEPTH = 8
FLOOR_WIDTH = 9
"""Columns of a point.

Row of the model, place in the row's frame (3), height of the floor (m), coefficient of friction. Then stiffness (N/m),
damping (N s/m), and the depth at which the damping is whole (m).
"""
RATE_RAD_S = 100.0
"""Frequency of a tree on a floor with default stiffness, rad/s; it rests g / RATE^2 = 1 mm deep."""
DAMPING_RATIO = 0.7
"""Damping ratio of a tree on a floor with default damping."""
REST_M = 1e-3
"""Depth at which the damping is whole, m."""

Offsets = Mapping[str, tuple[int, Placement]]


def _at(body: Any, point: Any, offsets: Offsets, place: str) -> tuple[int, Array]:
    """Return the row of a body, and a point of it in the row's frame."""
    if body not in offsets:
        raise ModelError(f"{place}: body: {UnknownNameError('body', str(body), offsets)}")
    row, offset = offsets[body]
    return row, offset.position + offset.rotation @ checked_numbers(point, (3,), f"{place}: point")


def floor_rows(floors: Sequence[tuple[str, Floor]], offsets: Offsets, mass: float) -> Array:
    """Return the rows of all points that a floor may touch.

    Parameters
    ----------
    floors : Sequence[tuple[str, Floor]]
        Place of each floor, for messages, and the floor.
    offsets : Offsets
        Of each body its row, and its frame in the row's frame.
    mass : float
        Mass of the tree, kg, for a default stiffness.

    Returns
    -------
    (k, FLOOR_WIDTH) array
        One row for each point.

    Raises
    ------
    ModelError
        A floor is wrong; the message names it.
    """
    rows: list[Array] = []
    count = sum(len(floor.points) if isinstance(floor.points, Sequence | np.ndarray) else 0 for _, floor in floors)
    for place, floor in floors:
        points = floor.points
        if isinstance(points, str) or not isinstance(points, Sequence | np.ndarray) or len(points) == 0:
            raise ModelError(f"{place}: points: expected one or more points (x, y, z) in m, got {points!r}")
        numbers = {}
        for name in ("height", "friction", "stiffness", "damping"):
            value = getattr(floor, name)
            if value is None:
                continue
            numbers[name] = float(checked_numbers(value, (), f"{place}: {name}"))
            if name != "height" and (numbers[name] < 0.0 or (name == "stiffness" and numbers[name] == 0.0)):
                raise ModelError(f"{place}: {name}: expected a number {'>' if name == 'stiffness' else '>='} 0, "
                                 f"got {value!r}")  # fmt: skip
        stiffness = numbers.get("stiffness", mass * RATE_RAD_S**2 / count)
        damping = numbers.get("damping", 2.0 * DAMPING_RATIO * np.sqrt(stiffness * mass / count))
        for k, point in enumerate(points):
            row, at = _at(floor.body, point, offsets, f"{place}: points[{k}]")
            rows.append(
                np.array([row, *at, numbers["height"], numbers["friction"], stiffness, damping, REST_M])
            )  # fmt: skip
    return np.array(rows).reshape(-1, FLOOR_WIDTH)


def floor_reach(rows: Array, topology: Any, positions: Array, prismatic: int) -> float:
    """Return the largest possible distance of a floor's point from the base's origin.

    Parameters
    ----------
    rows : (k, FLOOR_WIDTH) array
        Points of floors.
    topology : (n + 1, 3) array of int
        Parent, kind of joint, imposed.
    positions : (n + 1, 3) array
        Each joint in its parent's frame, m.
    prismatic : int
        Kind of a prismatic joint.

    Returns
    -------
    float
        m; infinite where a joint slides.
    """
    reach = 0.0
    for point in rows:
        row, far = int(point[F_ROW]), float(np.linalg.norm(point[F_PLACE : F_PLACE + 3]))
        while row > 0:
            far += np.inf if topology[row, 1] == prismatic else float(np.linalg.norm(positions[row]))
            row = int(topology[row, 0])
        reach = max(reach, far)
    return reach


MARKER_WIDTH = 26
"""Columns of a marker.

Row, rotation by rows (9) and place (3) of its frame in the row's frame. Then the same of the body in whose frame the
output is; row -1 for the world.
"""


def marker_rows(markers: Sequence[Any], offsets: Offsets, where: str) -> tuple[tuple[str, str, Array], ...]:
    """Return the rows of markers.

    Parameters
    ----------
    markers : sequence of Marker
        Markers of the mechanism.
    offsets : Offsets
        Of each body its row, and its frame in the row's frame.
    where : str
        Name of the mechanism, for messages.

    Returns
    -------
    tuple of (str, str, array)
        Name, frame ('world' or a body's name) and row (MARKER_WIDTH,) of each marker.

    Raises
    ------
    ModelError
        A marker is wrong; the message names it.
    """
    built: list[tuple[str, str, Array]] = []
    for k, marker in enumerate(markers):
        place = f"{where}: markers[{k}]"
        if not isinstance(marker, Marker):
            raise ModelError(f"{place}: expected a Marker, got {marker!r}")
        if not isinstance(marker.name, str) or not marker.name or "." in marker.name:
            raise ModelError(f"{place}: name: expected a name without a dot, got {marker.name!r}")
        place = f"{place} '{marker.name}'"
        if any(marker.name == name for name, _, _ in built):
            raise ModelError(f"{place}: another marker has this name; expected different names")
        row = np.zeros(MARKER_WIDTH)
        row[0], row[10:13] = _at(marker.body, marker.point, offsets, place)
        row[1:10] = offsets[marker.body][1].rotation.ravel()
        row[13] = -1.0
        if marker.relative_to is not None:
            if marker.relative_to not in offsets:
                raise ModelError(f"{place}: relative_to: {UnknownNameError('body', str(marker.relative_to), offsets)}")
            other, offset = offsets[marker.relative_to]
            row[13], row[14:23], row[23:26] = other, offset.rotation.ravel(), offset.position
        built.append((marker.name, marker.relative_to or "world", row))
    return tuple(built)
