"""Convert the descriptions of a tree's actuators to the arrays that kernels read.

Each description adds its channels and numbers to an `Attachment`; `arrays_of_actuators` converts all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import Array
from rtmms.mechanism.body_actuators import (
    CHANNEL,
    FIRST,
    LAG,
    LENGTH,
    LINEAR,
    PUSH_WIDTH,
    QUADRATIC,
    ROW,
    WRENCH,
)
from rtmms.mechanism.joint_laws import (
    BRAKING,
    MAX_SPEED,
    OFFSET,
    Actuator,
    no_bounds,
)
from rtmms.mechanism.tendons import POINT_WIDTH, TENDON_WIDTH
from rtmms.model.compiled import Model
from rtmms.model.layout import PRISMATIC, T_KIND
from rtmms.model.rods import Rod
from rtmms.model.solids import Placement
from rtmms.plant.protocol import Channel

PUSH = 3
"""Kind of an actuator on a body, beside TORQUE, OFFSET and GAIN; its joint index is n, which no joint has."""


class Attachment:
    """Arrays of a tree's actuators under construction, for a compiled model.

    Parameters
    ----------
    model : Model
        Compiled tree.
    rods : Sequence[Rod], default ()
        Soft rods that became links.
    strained : mapping of str to (Rod, array), optional
        Rods by strain modes, with the X (m) of their points.

    Attributes
    ----------
    place : str
        Place of the present actuator, at the start of each error message.
    drives : list of Actuator
        Channels so far.
    """

    def __init__(
        self, model: Model, rods: Sequence[Rod] = (), strained: Mapping[str, tuple[Rod, Array]] | None = None
    ) -> None:
        n = model.n
        self.strained = {} if strained is None else strained
        self.model, self.place, self.rods = model, "", rods
        self.drives: list[Actuator] = []
        self.kp, self.kd, self.bandwidth = np.zeros(n), np.zeros(n), np.full(n, np.nan)
        self.bounds = no_bounds(n)
        self.braking = np.full(n, np.nan)
        self.pushes: list[Array] = []
        self.momentum: list[Array] = []
        self.tendons: list[Array] = []
        self.tendon_points: list[Array] = []
        self.curve: list[tuple[float, float]] = []
        self._roles: dict[tuple[int, str], str] = {}

    def take(self, j: int, role: str, *others: str) -> None:
        """Take a role at a joint that only one actuator can have.

        Parameters
        ----------
        j : int
            Index of the coordinate.
        role : str
            The role: 'target', 'stop', or 'spring', which several may have.
        *others : str
            Roles that no other actuator of the joint may have.

        Raises
        ------
        ModelError
            Another actuator of the joint has one of these roles.
        """
        for other in others:
            if (j, other) in self._roles:
                raise ModelError(
                    f"{self.place}: joint '{self.model.joint_names[j]}': expected one actuator of this kind, got "
                    f"{self._roles[j, other]} as well; remove one of the two"
                )
        self._roles[j, role] = self.place

    def joint(self, name: str) -> int:
        """Return the index of a joint's coordinate.

        Parameters
        ----------
        name : str
            Name of the coordinate.

        Returns
        -------
        int
            Index in q.

        Raises
        ------
        UnknownNameError
            There is no such coordinate.
        """
        if name not in self.model.joint_names:
            raise UnknownNameError(f"joint of {self.place}", str(name), self.model.joint_names)
        return self.model.joint(name)

    def number(self, name: str, value: Any, *, least: float = 0.0, above: bool = False) -> float:
        """Return a finite number within its bound.

        Parameters
        ----------
        name : str
            Name of the value, for the message.
        value : object
            Value to check.
        least : float, default 0.0
            Lower bound.
        above : bool, default False
            Whether the bound itself is excluded.

        Returns
        -------
        float
            The number.

        Raises
        ------
        ModelError
            The value is no such number.
        """
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or number < least or (above and number == least):
            raise ModelError(f"{self.place}: {name} must be {'>' if above else '>='} {least:g}, got {value!r}")
        return number

    def limits(self, lower: Any, upper: Any) -> tuple[float | None, float | None]:
        """Return both limits as numbers.

        Parameters
        ----------
        lower, upper : float or None
            Limits; None for none.

        Returns
        -------
        (float or None, float or None)
            The limits.

        Raises
        ------
        ModelError
            A limit is no finite number, or lower is not less than upper.
        """
        low, high = (
            None if value is None else self.number(name, value, least=-math.inf)
            for name, value in (("lower", lower), ("upper", upper))
        )  # fmt: skip
        if low is not None and high is not None and low >= high:
            raise ModelError(f"{self.place}: lower must be less than upper, got {low:g} and {high:g}")
        return low, high

    def angle(self, j: int) -> str:
        """Return the unit of a joint's position.

        Parameters
        ----------
        j : int
            Index of the coordinate.

        Returns
        -------
        str
            'm' or 'rad'.
        """
        return "m" if self.model.topology[j + 1, T_KIND] == PRISMATIC else "rad"

    def effort(self, j: int) -> str:
        """Return the unit of a joint's torque.

        Parameters
        ----------
        j : int
            Index of the coordinate.

        Returns
        -------
        str
            'N' or 'N m'.
        """
        return "N" if self.model.topology[j + 1, T_KIND] == PRISMATIC else "N m"

    def channel(self, name: str, unit: str, lower: float | None, upper: float | None, neutral: float = 0.0) -> Channel:
        """Return a channel after checks of its name and its neutral value.

        Parameters
        ----------
        name : str
            Name of the channel.
        unit : str
            SI unit.
        lower, upper : float or None
            Limits of the command; None for none.
        neutral : float, default 0.0
            Neutral command.

        Returns
        -------
        Channel
            The channel.

        Raises
        ------
        ModelError
            The name is taken, or the neutral value is beyond a limit.
        """
        if any(drive.channel.name == name for drive in self.drives):
            raise ModelError(f"{self.place}: another actuator has the name '{name}'; give this one its own name")
        if not (-math.inf if lower is None else lower) <= neutral <= (math.inf if upper is None else upper):
            raise ModelError(f"{self.place}: neutral must be within its limits {lower} and {upper}, got {neutral:g}")
        return Channel(name, unit, lower=lower, upper=upper, neutral=neutral)

    def limit_rate(self, j: int, maximum: Any, braking_time: Any) -> None:
        """Set a highest rate of a joint, the lowest of several, and the braking time of its limits.

        Parameters
        ----------
        j : int
            Index of the coordinate.
        maximum : float or None
            Highest rate, rad/s or m/s.
        braking_time : float or None
            Braking time, s.

        Raises
        ------
        ModelError
            Another actuator of the joint has another braking time.
        """
        if maximum is not None:
            self.bounds[j, MAX_SPEED] = min(self.bounds[j, MAX_SPEED], self.number("max_rate", maximum, above=True))
        if braking_time is None:
            return
        time = self.number("braking_time", braking_time, above=True)
        if not math.isnan(self.braking[j]) and self.braking[j] != time:
            raise ModelError(
                f"{self.place}: braking_time: expected {self.braking[j]:g} s, like the other actuators of "
                f"this joint, got {time:g}"
            )
        self.braking[j] = self.bounds[j, BRAKING] = time

    def on_joint(self, channel: Channel, kind: int, j: int) -> None:
        """Add a channel that moves a joint.

        Parameters
        ----------
        channel : Channel
            The channel.
        kind : int
            TORQUE, OFFSET or GAIN.
        j : int
            Index of the coordinate.
        """
        self.drives.append(Actuator(channel, kind, j))

    def on_body(
        self, channel: Channel, body: str, placement: Placement, wrench: Array, *, lag: float = 0.0,
        coefficients: tuple[float, float] = (1.0, 0.0), curve: Sequence[tuple[float, float]] = (),
        momentum: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:  # fmt: skip
        """Add a channel that exerts a wrench on a body, in proportion to its lagged value.

        Parameters
        ----------
        channel : Channel
            The channel.
        body : str
            Name of the body.
        placement : Placement
            Pose of the wrench's frame in the body's frame.
        wrench : (6,) array
            Force, N, and moment, N m, for a value of 1, in the frame of `placement`.
        lag : float, default 0.0
            Time constant of the command, s.
        coefficients : tuple[float, float], default (1.0, 0.0)
            Linear and quadratic coefficient of the value.
        curve : sequence of (float, float), default ()
            Points (command, value) in place of the coefficients.
        momentum : (3,) sequence of float, default (0.0, 0.0, 0.0)
            Angular momentum of a spinning part at 1 rad/s, kg m2, in the frame of `placement`.

        Raises
        ------
        ModelError, UnknownNameError
            The placement or the body is wrong, or a spinning part has no lag.
        """
        if not isinstance(placement, Placement):
            raise ModelError(f"{self.place}: placement must be a Placement, got {placement!r}")
        if any(momentum) and not lag > 0.0:
            raise ModelError(f"{self.place}: a rotor with inertia needs time_constant > 0 s, got {lag:g}")
        model, (carrier, body_place) = self.model, self.body(body)
        pose = body_place @ placement
        row = np.zeros(PUSH_WIDTH)
        row[ROW], row[CHANNEL], row[LAG] = carrier, len(self.drives), lag
        row[LINEAR], row[QUADRATIC], row[FIRST], row[LENGTH] = *coefficients, len(self.curve), len(curve)
        force, moment = pose.rotation @ wrench[:3], pose.rotation @ wrench[3:]
        row[WRENCH : WRENCH + 3], row[WRENCH + 3 :] = force, moment + np.cross(pose.position, force)
        self.curve += curve
        self.pushes.append(row)
        self.momentum.append(pose.rotation @ np.asarray(momentum, dtype=float))
        self.drives.append(Actuator(channel, PUSH, model.n))

    def body(self, name: str) -> tuple[int, Placement]:
        """Return the row that carries a body, and the body's placement in the row's frame.

        Parameters
        ----------
        name : str
            Name of the body.

        Returns
        -------
        (int, Placement)
            Row of the model, and the placement.

        Raises
        ------
        UnknownNameError
            There is no such body.
        """
        model = self.model
        if name not in model.body_names:
            raise UnknownNameError(f"body of {self.place}", str(name), model.body_names)
        k = model.body(name)
        return int(model.carrier[k]), Placement(model.offset_rotation[k], model.offset_position[k])


@runtime_checkable
class ActuatorDescription(Protocol):
    """An actuator as a user describes it."""

    def attach(self, to: Attachment) -> None:
        """Add the channels and numbers of the actuator to a tree's arrays.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message begins with `to.place`.
        """


@dataclass(frozen=True, eq=False)
class ActuatorArrays:
    """Arrays of a tree's actuators for the kernels.

    Parameters
    ----------
    drives : tuple[Actuator, ...]
        Channels in the order of the command.
    kp, kd : (n,) array
        Stiffness and damping of each joint's servo, N m/rad and N m s/rad.
    bandwidth : (n,) array
        rad/s; negative for commanded rates, NaN without an actuator.
    bounds : (n, BOUND_WIDTH) array
        Limits of each joint, see `rtmms.mechanism.joint_laws`.
    pushes : (a, PUSH_WIDTH) array
        Actuators on bodies, see `rtmms.mechanism.body_actuators`.
    curve : (k, 2) array
        Points of all curves.
    momentum : (a, 3) array or None
        Angular momentum of spinning parts at 1 rad/s, kg m2; None where nothing spins.
    tendons, tendon_points : array
        Tendons and their points, see `rtmms.mechanism.tendons`.
    """

    drives: tuple[Actuator, ...]
    kp: Array
    kd: Array
    bandwidth: Array
    bounds: Array
    pushes: Array
    curve: Array
    momentum: Array | None
    tendons: Array
    tendon_points: Array


def arrays_of_actuators(
    model: Model, actuators: Sequence[Any], drives: Sequence[Actuator] = (), rods: Sequence[Rod] = (),
    strained: Mapping[str, tuple[Rod, Array]] | None = None,
) -> ActuatorArrays:  # fmt: skip
    """Convert descriptions of actuators to arrays for a compiled model.

    Parameters
    ----------
    model : Model
        Compiled tree.
    actuators : Sequence[Any]
        Descriptions.
    drives : Sequence[Actuator], default ()
        Channels of joints that are resolved already; they come first, unchanged.
    rods : Sequence[Rod], default ()
        Soft rods that became links.
    strained : mapping of str to (Rod, array), optional
        Rods by strain modes, by name, with the X (m) of their points.

    Returns
    -------
    ActuatorArrays
        The arrays.

    Raises
    ------
    ModelError, UnknownNameError
        The description does not fit the tree; the message names the actuator.
    """
    to = Attachment(model, rods, strained)
    to.drives += drives
    for k, item in enumerate(list_of_actuators(actuators)):
        to.place = f"{model.name}: actuators[{k}] ({type(item).__name__})"
        if isinstance(item, type) or not isinstance(item, ActuatorDescription):
            kinds = (
                "JointTorque, JointServo, JointAffine, JointMotion, JointSpeed, JointStop, JointLimit, BodyWrench, "
                "DirectedWrench, Thruster, Rotor, ReactionWheel, Tendon"
            )
            raise ModelError(f"{model.name}: actuators[{k}]: expected a {kinds}, got {item!r}")
        item.attach(to)
    to.drives = [_at_most(drive, to) for drive in to.drives]
    momentum = np.array(to.momentum).reshape(-1, 3)
    return ActuatorArrays(
        tuple(to.drives), to.kp, to.kd, to.bandwidth, to.bounds,
        np.array(to.pushes).reshape(-1, PUSH_WIDTH), np.array(to.curve, dtype=float).reshape(-1, 2),
        momentum if np.any(momentum) else None, np.array(to.tendons).reshape(-1, TENDON_WIDTH),
        np.array(to.tendon_points).reshape(-1, POINT_WIDTH),
    )  # fmt: skip


def _at_most(drive: Actuator, to: Attachment) -> Actuator:
    """Return the drive of a commanded rate, limited to the joint's highest rate; any other unchanged."""
    j, channel = drive.joint, drive.channel
    if drive.kind != OFFSET or not 0 <= j < to.model.n or not to.bandwidth[j] < 0.0:
        return drive
    maximum = float(to.bounds[j, MAX_SPEED])
    if math.isinf(maximum):
        return drive
    if abs(channel.neutral) > maximum:
        raise ModelError(
            f"{to.model.name}: '{channel.name}': neutral must be at most the maximum speed of the joint, "
            f"{maximum:g}, got {channel.neutral:g}"
        )
    lower = -maximum if channel.lower is None else min(max(channel.lower, -maximum), maximum)
    upper = maximum if channel.upper is None else min(max(channel.upper, -maximum), maximum)
    return replace(drive, channel=replace(channel, lower=lower, upper=upper))


def list_of_actuators(actuators: Any) -> Sequence[Any]:
    """Return actuators, which must be a list.

    Parameters
    ----------
    actuators : Any
        The actuators as a user gives them.

    Returns
    -------
    Sequence[Any]
        The same object.

    Raises
    ------
    ModelError
        They are one actuator, or no list.
    """
    if isinstance(actuators, ActuatorDescription) or not isinstance(actuators, Sequence):
        raise ModelError(f"actuators: expected a list of actuators, got {actuators!r}")
    return actuators
