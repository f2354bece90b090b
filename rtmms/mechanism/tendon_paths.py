"""Provide the description of a tendon: its path over bodies and soft rods, and the quantity that is commanded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.override import override
from rtmms.base.spatial import Array, rotation_about
from rtmms.dynamics.hybrid import stand
from rtmms.mechanism.actuator_arrays import PUSH, ActuatorDescription, Attachment
from rtmms.mechanism.joint_laws import Actuator
from rtmms.mechanism.tendons import (
    CHANNEL,
    COUNT,
    DAMPING,
    FACTOR,
    FIRST,
    FIXED,
    FRICTION,
    KIND,
    LENGTH,
    PLACE,
    POINT_WIDTH,
    PUSHES,
    RATE,
    ROW,
    SLIP,
    SPEED,
    START,
    STIFFNESS,
    TENDON_WIDTH,
    TENSION,
)
from rtmms.model.elements import checked_numbers
from rtmms.model.layout import S_WORLD_POS, S_WORLD_ROT
from rtmms.model.rods import Rod
from rtmms.model.solids import Placement

COMMANDS = {"tension": TENSION, "length": LENGTH, "rate": RATE, "none": FIXED}
UNITS = {"tension": "N", "length": "m", "rate": "m/s", "none": "m"}


@dataclass(frozen=True, eq=False)
class Tendon(ActuatorDescription):
    """A tendon through points of bodies and soft rods: channel NAME.tension (N), NAME.length (m) or NAME.rate (m/s).

    Parameters
    ----------
    name : str
        Name of the tendon.
    path : Sequence[tuple[str, Any]]
        Points from the winch, at the first, to the fixed end: (BODY, (x, y, z)), m in the body's frame, or (ROD, (X, y,
        z)) with X along a soft rod, y and z from its axis there.
    command : str, default 'tension'
        'tension', 'length', 'rate' or 'none', see Notes.
    stiffness, damping : float, optional
        N/m and N s/m of the whole tendon, at its winch; not for a commanded tension.
    friction : float or sequence of float, default 0.0
        Coefficient at the points between the ends, one number or one for each. A turn by theta leaves exp(-friction
        theta) of the tension where the tendon slides, see rtmms.mechanism.tendons.
    slip : float, default 0.001
        m/s: friction is smooth in the sliding rate v, its sign is v / sqrt(v^2 + slip^2).
    lower, upper : float, optional
        Limits of the command; a tension's lower is >= 0.
    neutral : float, optional
        Neutral command; None: 0 N, 0 m/s, or the length at which the tendon is just taut with all joints at 0.
    bandwidth : float, default 20.0
        rad/s: length and rate follow the command with it (JointMotion, JointSpeed).
    time_constant : float, default 0.0
        s: the tension follows the command with that lag; 0 for none.
    pushes : bool, default False
        Whether it is a stiff rod, which pushes as well as it pulls; without friction.
    gain : float, default 1.0
        N, for a tension that pushes as well: the tension is the gain times the command.
    channel : str, optional
        Whole name of its channel, in place of NAME.COMMAND.

    Notes
    -----
    With 'tension' the tendon pulls with the command, and never pushes. With 'length' the command is the length that the
    winch leaves; the tension is that of stiffness and damping, 0 where it is slack. With 'rate' the command is the rate
    of that length. With 'none' it is a cable of the constant length `neutral`, without a channel.

    An explicit method needs sqrt(stiffness / mass) dt < 1.

    Examples
    --------
    >>> from rtmms import model as m
    >>> left = m.Tendon("left", [("hull", (0.0, 0.02, 0.0)), ("tail", (-0.1, 0.02, 0.0))], upper=20.0)
    """

    name: str
    path: Sequence[tuple[str, Any]]
    command: str = "tension"
    stiffness: float | None = None
    damping: float = 0.0
    friction: Any = 0.0
    slip: float = 1e-3
    lower: float | None = None
    upper: float | None = None
    neutral: float | None = None
    bandwidth: float = 20.0
    time_constant: float = 0.0
    pushes: bool = False
    gain: float = 1.0
    channel: str | None = None

    @override
    def attach(self, to: Attachment) -> None:
        to.place = f"{to.place} '{self.name}'"
        if not isinstance(self.pushes, bool):
            raise ModelError(f"{to.place}: pushes: expected True or False, got {self.pushes!r}")
        if self.command not in COMMANDS:
            raise ModelError(f"{to.place}: command must be one of {', '.join(COMMANDS)}, got {self.command!r}")
        row, points, kind = np.zeros(TENDON_WIDTH), self.points(to), COMMANDS[self.command]
        lower, upper = to.limits(self.lower, self.upper)
        taut = taut_length(to, points)
        start, neutral = self._start(to, taut)
        row[PUSHES], row[FACTOR] = float(self.pushes), to.number("gain", self.gain, least=-math.inf)
        if self.gain != 1.0 and not (self.pushes and kind == TENSION):
            raise ModelError(
                f"{to.place}: gain: expected 1, as only a tension with pushes=True has a gain, got {self.gain:g}"
            )
        if self.pushes and any(point[FRICTION] > 0.0 for point in points):
            raise ModelError(f"{to.place}: friction: expected 0 with pushes=True, got {self.friction!r}")
        if kind == TENSION:
            lower = 0.0 if lower is None and not self.pushes else lower
            pulls_back = lower is not None and lower < 0.0 and not self.pushes
            if pulls_back or self.stiffness is not None or self.damping != 0.0:
                what = f"lower = {lower:g} N" if pulls_back else "stiffness or damping"
                raise ModelError(
                    f"{to.place}: command='tension': expected lower >= 0, no stiffness and no damping, got {what}"
                )
            row[SPEED] = to.number("time_constant", self.time_constant)
        else:
            if self.stiffness is None:
                raise ModelError(f"{to.place}: a commanded {self.command} needs stiffness, N/m, got none")
            row[STIFFNESS] = to.number("stiffness", self.stiffness, above=True)
            row[DAMPING] = to.number("damping", self.damping)
            row[SPEED] = to.number("bandwidth", self.bandwidth, above=True)
        row[FIRST], row[COUNT] = len(to.tendon_points), len(points)
        row[CHANNEL], row[KIND], row[START] = -1.0 if kind == FIXED else len(to.drives), kind, start
        row[SLIP] = to.number("slip", self.slip, above=True)
        if kind == FIXED:
            to.tendons.append(row)
            to.tendon_points += points
            return
        unit = UNITS[self.command] if self.gain == 1.0 else ""
        name = self.channel or f"{self.name}.{self.command}"
        channel = to.channel(name, unit, lower, upper, neutral)
        to.tendons.append(row)
        to.tendon_points += points
        to.drives.append(Actuator(channel, PUSH, to.model.n))

    def _start(self, to: Attachment, taut: float) -> tuple[float, float]:
        """Return the filtered command at the start, and the neutral command."""
        neutral_length = None if self.neutral is None else to.number("neutral", self.neutral, least=-math.inf)
        if self.command in ("length", "none"):
            length = taut if neutral_length is None else neutral_length
            return length, length
        neutral = 0.0 if neutral_length is None else neutral_length
        return (taut if self.command == "rate" else self.gain * neutral), neutral

    def points(self, to: Attachment) -> list[Array]:
        """Return the points as rows of rtmms.mechanism.tendons.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, with the place for messages.

        Returns
        -------
        list of (POINT_WIDTH,) array
            One row for each point.

        Raises
        ------
        ModelError, UnknownNameError
            A point is wrong; the message has its place.
        """
        path: Any = self.path
        if isinstance(path, str) or not isinstance(path, Sequence) or len(path) < 2:
            raise ModelError(f"{to.place}: path must be two or more points (BODY, (x, y, z)), got {path!r}")
        inner = len(path) - 2
        each = (inner,) if np.ndim(self.friction) else ()
        friction = np.broadcast_to(checked_numbers(self.friction, each, f"{to.place}: friction"), (inner,))
        if np.any(friction < 0.0):
            raise ModelError(f"{to.place}: friction must be >= 0, got {friction.tolist()}")
        points: list[Array] = []
        for k, point in enumerate(path):
            place = f"{to.place}: path[{k}]"
            if not isinstance(point, Sequence) or len(point) != 2 or not isinstance(point[0], str):
                raise ModelError(f"{place}: expected (BODY, (x, y, z)), got {point!r}")
            row = np.zeros(POINT_WIDTH)
            at = checked_numbers(point[1], (3,), place)
            row[ROW], row[PLACE : PLACE + 3] = on_body(to, point[0], at, place)
            row[FRICTION] = friction[k - 1] if 0 < k <= inner else 0.0
            if points and np.array_equal(points[-1][:FRICTION], row[:FRICTION]):
                raise ModelError(f"{place}: expected a point away from the one before, got the same")
            points.append(row)
        if len({float(point[ROW]) for point in points}) == 1:
            raise ModelError(
                f"{to.place}: path: expected points on at least two bodies that move relative to each other, "
                "got points of one body"
            )
        return points


def on_body(to: Attachment, name: str, point: Array, place: str) -> tuple[int, Array]:
    """Return the row of the model, and the place in its frame, of a point of a body or of a soft rod.

    Parameters
    ----------
    to : Attachment
        Arrays of the tree.
    name : str
        Name of the body or rod.
    point : (3,) array
        m, in the body's frame; (X, y, z) on a rod.
    place : str
        Place of the point, for messages.

    Returns
    -------
    (int, (3,) array)
        Row, and place, m. On a rod by strain modes the row is negative, and the place has the number of the rod's
        point.

    Raises
    ------
    ModelError, UnknownNameError
        There is no such body or point.
    """
    if name in to.strained:
        bent, along = to.strained[name]
        check_within(bent, float(point[0]), place)
        node = float(np.argmin(np.abs(along - point[0])))
        return -1 - list(to.strained).index(name), np.array([node, point[1], point[2]])
    rod = next((rod for rod in to.rods if rod.name == name), None)
    if rod is not None:
        name, point = on_link(rod, point, place)
    elif name not in to.model.body_names:
        raise UnknownNameError(
            f"body of {place}", name, (*to.model.body_names, *(rod.name for rod in to.rods), *to.strained)
        )
    row, body_place = to.body(name)
    return row, body_place.position + body_place.rotation @ point


def check_within(rod: Rod, x: float, place: str) -> None:
    """Check that a point is on a rod.

    Parameters
    ----------
    rod : Rod
        The rod.
    x : float
        Distance from the root, m.
    place : str
        Place of the point, for the message.

    Raises
    ------
    ModelError
        x is beyond the rod's ends.
    """
    if not 0.0 <= x <= rod.length_m:
        raise ModelError(f"{place}: X must be within rod '{rod.name}', 0 to {rod.length_m:g} m, got {x:g}")


def on_link(rod: Rod, point: Array, place: str) -> tuple[str, Array]:
    """Return the link of a rod that carries a point, and the point in the link's frame.

    Parameters
    ----------
    rod : Rod
        The rod.
    point : (3,) array
        (X, y, z), m.
    place : str
        Place of the point, for the message.

    Returns
    -------
    (str, (3,) array)
        Name of the link's body, and the point, m.

    Raises
    ------
    ModelError
        X is beyond the rod's ends.
    """
    x = float(point[0])
    check_within(rod, x, place)
    for j, (_, end, origin) in enumerate(rod.pieces()):
        if x <= end or j == rod.elements:
            name = f"{rod.name}.{j}" if j else f"{rod.name}.root"
            return name, np.array([x - origin, point[1], point[2]])
    raise AssertionError


def at_rest(rod: Rod, x: float) -> Placement:
    """Return the placement of a rod's section in the root's frame, without stress.

    Parameters
    ----------
    rod : Rod
        The rod.
    x : float
        Distance from the root, m.

    Returns
    -------
    Placement
        Placement of the section.
    """
    place, pieces = Placement(), 100
    for k in range(pieces):
        middle = (k + 0.5) * x / pieces
        bend = np.asarray(rod.curvature(middle) if callable(rod.curvature) else rod.curvature, dtype=float)
        angle = float(np.linalg.norm(bend)) * x / pieces
        turn = rotation_about(bend / np.linalg.norm(bend), angle) if angle > 0.0 else np.eye(3)
        half = rotation_about(bend / np.linalg.norm(bend), 0.5 * angle) if angle > 0.0 else np.eye(3)
        place = place @ Placement(turn, half @ np.array([x / pieces, 0.0, 0.0]))
    return place


def taut_length(to: Attachment, points: Sequence[Array]) -> float:
    """Return the length of a path with all joints at 0.

    Parameters
    ----------
    to : Attachment
        Arrays of the tree.
    points : sequence of (POINT_WIDTH,) array
        Points of the path.

    Returns
    -------
    float
        m.
    """
    model, state = to.model, to.model.state()
    s = model.scratch()
    stand(model, state.position, state.orientation, state.q, s)
    places = []
    for point in points:
        row, place = int(point[ROW]), point[PLACE : PLACE + 3]
        if row < 0:
            rod, along = list(to.strained.values())[-1 - row]
            row, carrier = to.body(rod.body)
            section = carrier @ rod.placement @ at_rest(rod, float(along[int(place[0])]))
            place = section.position + section.rotation @ np.array([0.0, place[1], place[2]])
        turn = s[row, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3)
        places.append(s[row, S_WORLD_POS : S_WORLD_POS + 3] + turn @ place)
    return float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
