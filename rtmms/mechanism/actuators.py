"""Provide the description of a tree's actuators, on joints (torque, servo, motion, stops) and on bodies (wrenches).

Tendons are in rtmms.mechanism.tendon_paths. `attached` converts descriptions to the arrays that kernels read. Each
error names the actuator, joint or body.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    BOUNDED,
    BRAKING,
    CEILING,
    FIRM,
    FLOOR,
    LOWER,
    MAX_SPEED,
    MAX_TORQUE,
    OFFSET,
    SATURATES,
    STOP_DAMPING,
    STOP_STIFFNESS,
    TORQUE,
    UPPER,
    Actuator,
    no_bounds,
)
from rtmms.mechanism.tendons import POINT_WIDTH, TENDON_WIDTH
from rtmms.model.compiled import Model
from rtmms.model.description import JOINT_TYPES, Mechanism
from rtmms.model.elements import checked_numbers
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
        for one in others:
            if (j, one) in self._roles:
                raise ModelError(
                    f"{self.place}: {self._roles[j, one]} acts on joint '{self.model.joint_names[j]}' already, and the "
                    "two would set the same numbers; expected one of them"
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

    def fastest(self, j: int, most: Any, braking_time: Any) -> None:
        """Set a highest rate of a joint, the lowest of several, and the braking time of its limits.

        Parameters
        ----------
        j : int
            Index of the coordinate.
        most : float or None
            Highest rate, rad/s or m/s.
        braking_time : float or None
            Braking time, s.

        Raises
        ------
        ModelError
            Another actuator of the joint has another braking time.
        """
        if most is not None:
            self.bounds[j, MAX_SPEED] = min(self.bounds[j, MAX_SPEED], self.number("fastest", most, above=True))
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
        model, (carrier, own) = self.model, self.body(body)
        pose = own @ placement
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
class Attachable(Protocol):
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


@dataclass(frozen=True)
class JointTorque:
    """A torque (or force) on a joint: channel JOINT.torque, N m or N.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    limit : float, optional
        Largest command, N m or N; None for none.
    name : str, optional
        Name of the channel, in place of JOINT.torque.
    fastest : float, optional
        Highest rate of the joint, rad/s or m/s, which a brake keeps (see `JointLimit`); None for none.
    braking_time : float, optional
        Time of that brake, s (see `JointLimit`); None for 4 ms.

    Examples
    --------
    >>> from rtmms import model as m
    >>> motor = m.JointTorque("shoulder", limit=5.0)
    """

    joint: str
    limit: float | None = None
    name: str | None = None
    fastest: float | None = None
    braking_time: float | None = None

    def attach(self, to: Attachment) -> None:
        """Add the channel JOINT.torque.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.fastest(j, self.fastest, self.braking_time)
        most = None if self.limit is None else to.number("limit", self.limit, above=True)
        least = None if most is None else -most
        to.on_joint(to.channel(self.name or f"{self.joint}.torque", to.effort(j), least, most), TORQUE, j)


@dataclass(frozen=True)
class JointServo:
    """A PD servo: torque = stiffness (a - q) + damping (a' - qd), at most `limit`; channel JOINT.angle, rad or m.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    stiffness : float
        N m/rad or N/m.
    damping : float, default 0.0
        N m s/rad or N s/m.
    limit : float, optional
        Largest torque of everything that drives the joint, N m or N; None for none.
    lower, upper, neutral : float, optional
        Limits and neutral value of the command, rad or m.
    bandwidth : float, default 20.0
        rad/s: a follows the command through a critically damped filter of second order.
    name : str, optional
        Name of the channel, in place of JOINT.angle.
    fastest : float, optional
        Highest rate of the joint, rad/s or m/s (see `JointLimit`); None for none.
    braking_time : float, optional
        Time of the brake that keeps `fastest`, s (see `JointLimit`); None for 4 ms.

    Examples
    --------
    >>> from rtmms import model as m
    >>> servo = m.JointServo("shoulder", stiffness=20.0, damping=1.0, lower=-1.0, upper=1.0)
    """

    joint: str
    stiffness: float
    damping: float = 0.0
    limit: float | None = None
    lower: float | None = None
    upper: float | None = None
    bandwidth: float = 20.0
    name: str | None = None
    neutral: float = 0.0
    fastest: float | None = None
    braking_time: float | None = None

    def attach(self, to: Attachment) -> None:
        """Add the channel JOINT.angle and the servo's gains.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.take(j, "target", "target", "spring")
        to.fastest(j, self.fastest, self.braking_time)
        to.kp[j] = to.number("stiffness", self.stiffness, above=True)
        to.kd[j] = to.number("damping", self.damping)
        if self.limit is not None:
            to.bounds[j, MAX_TORQUE] = to.number("limit", self.limit, above=True)
            to.bounds[j, BOUNDED] = 1.0
        _follow(self, j, to)


@dataclass(frozen=True)
class JointAffine:
    """An affine law without a filter, as MJCF's motor, position and velocity: channel JOINT.command.

    Several of them may drive one joint; their torques add.

    Parameters
    ----------
    joint : str
        Name of the joint.
    gain : float, default 1.0
        N m (N) for a command of 1.
    stiffness, damping : float, default 0.0
        N m/rad and N m s/rad (N/m, N s/m): the torque is gain command - stiffness q - damping qd.
    limit : float, optional
        Largest torque of everything that drives the joint, N m or N.
    lower, upper, neutral : float, optional
        Limits and neutral value of the command.
    name : str, optional
        Name of the channel, in place of JOINT.command.
    unit : str, default ''
        Unit of the channel.

    Examples
    --------
    >>> from rtmms import model as m
    >>> position = m.JointAffine("shoulder", gain=20.0, stiffness=20.0, damping=1.0, unit="rad")
    """

    joint: str
    gain: float = 1.0
    stiffness: float = 0.0
    damping: float = 0.0
    limit: float | None = None
    lower: float | None = None
    upper: float | None = None
    neutral: float = 0.0
    name: str | None = None
    unit: str = ""

    def attach(self, to: Attachment) -> None:
        """Add the channel JOINT.command and the gains of the law.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        gain = to.number("gain", self.gain, least=-math.inf)
        if self.stiffness or self.damping or self.limit is not None:
            to.take(j, "spring", "target")
        to.kp[j] += to.number("stiffness", self.stiffness)
        to.kd[j] += to.number("damping", self.damping)
        if self.limit is not None:
            to.bounds[j, MAX_TORQUE] = min(to.bounds[j, MAX_TORQUE], to.number("limit", self.limit, above=True))
            to.bounds[j, FIRM] = SATURATES
        lower, upper = to.limits(self.lower, self.upper)
        neutral = to.number("neutral", self.neutral, least=-math.inf)
        channel = to.channel(self.name or f"{self.joint}.command", self.unit, lower, upper, neutral)
        to.drives.append(Actuator(channel, TORQUE, j, gain))


@dataclass(frozen=True)
class JointMotion:
    """An imposed motion: a linear servo of second order prescribes the joint's position, and its torque follows.

    The servo is critically damped: q'' = w^2 (command - q) - 2 w q'. The channel is JOINT.angle, rad or m.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    lower, upper, neutral : float, optional
        Limits and neutral value of the command, rad or m.
    bandwidth : float, default 20.0
        w, rad/s.
    name : str, optional
        Name of the channel, in place of JOINT.angle.
    limit : float, optional
        Largest torque, N m or N: the joint leaves the motion where it would need more; None for none.
    fastest : float, optional
        Highest rate of the joint, rad/s or m/s (see `JointLimit`); None for none.
    braking_time : float, optional
        Time of the brake that keeps `fastest`, s. A joint with `limit` returns to its motion critically damped in that
        time (see `JointLimit`). None for 4 ms.

    Examples
    --------
    >>> from rtmms import model as m
    >>> fin = m.JointMotion("fin", lower=-0.5, upper=0.5, bandwidth=30.0)
    """

    joint: str
    lower: float | None = None
    upper: float | None = None
    bandwidth: float = 20.0
    name: str | None = None
    neutral: float = 0.0
    limit: float | None = None
    fastest: float | None = None
    braking_time: float | None = None

    def attach(self, to: Attachment) -> None:
        """Add the channel JOINT.angle of the motion.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        j = to.joint(self.joint)
        to.take(j, "target", "target", "spring")
        to.fastest(j, self.fastest, self.braking_time)
        if self.limit is not None:
            refuse_imposed(to, j)
            to.bounds[j, MAX_TORQUE] = to.number("limit", self.limit, above=True)
            to.bounds[j, [FIRM, BOUNDED]] = 1.0
        elif not to.model.imposed[j]:
            raise ModelError(f"{to.place}: joint '{self.joint}' must have drive='motion', got drive='torque'")
        _follow(self, j, to)


@dataclass(frozen=True)
class JointSpeed:
    """An imposed rate: a lag of first order, q'' = w (command - q'), prescribes the rate, and the torque follows.

    The channel is JOINT.speed, rad/s or m/s.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    lower, upper, neutral : float, optional
        Limits and neutral value of the command, rad/s or m/s.
    bandwidth : float, default 20.0
        w, rad/s.
    name : str, optional
        Name of the channel, in place of JOINT.speed.

    Examples
    --------
    >>> from rtmms import model as m
    >>> wheel = m.JointSpeed("wheel", lower=-10.0, upper=10.0)
    """

    joint: str
    lower: float | None = None
    upper: float | None = None
    bandwidth: float = 20.0
    neutral: float = 0.0
    name: str | None = None

    def attach(self, to: Attachment) -> None:
        """Add the channel JOINT.speed.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        j = to.joint(self.joint)
        if not to.model.imposed[j]:
            raise ModelError(f"{to.place}: joint '{self.joint}' must have drive='motion', got drive='torque'")
        to.take(j, "target", "target")
        lower, upper = to.limits(self.lower, self.upper)
        to.bandwidth[j] = -to.number("bandwidth", self.bandwidth, above=True)
        neutral = to.number("neutral", self.neutral, least=-math.inf)
        name = self.name or f"{self.joint}.speed"
        to.on_joint(to.channel(name, f"{to.angle(j)}/s", lower, upper, neutral), OFFSET, j)


def refuse_imposed(to: Attachment, j: int) -> None:
    """Raise an error where a joint's motion is imposed.

    Parameters
    ----------
    to : Attachment
        Arrays of the tree, with the place for the message.
    j : int
        Index of the coordinate.

    Raises
    ------
    ModelError
        The joint has drive='motion'.
    """
    if to.model.imposed[j]:
        name = to.model.joint_names[j]
        raise ModelError(
            f"{to.place}: joint '{name}': expected drive='torque', got drive='motion', whose torque is computed"
        )


def _follow(servo: JointServo | JointMotion, j: int, to: Attachment) -> None:
    lower, upper = to.limits(servo.lower, servo.upper)
    to.bandwidth[j] = to.number("bandwidth", servo.bandwidth, above=True)
    neutral = to.number("neutral", servo.neutral, least=-math.inf)
    to.on_joint(to.channel(servo.name or f"{servo.joint}.angle", to.angle(j), lower, upper, neutral), OFFSET, j)


@dataclass(frozen=True)
class JointStop:
    """The ends of a joint: beyond lower or upper a spring and a damper push back; it has no channel.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    lower, upper : float
        rad or m.
    stiffness : float
        N m/rad or N/m; an explicit method needs sqrt(stiffness / inertia) dt < 1.
    damping : float, default 0.0
        N m s/rad or N s/m.

    Examples
    --------
    >>> from rtmms import model as m
    >>> stop = m.JointStop("shoulder", -1.0, 1.0, stiffness=200.0, damping=1.0)
    """

    joint: str
    lower: float
    upper: float
    stiffness: float
    damping: float = 0.0

    def attach(self, to: Attachment) -> None:
        """Set the spring and the damper of the joint.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.take(j, "stop", "stop")
        lower, upper = to.limits(self.lower, self.upper)
        to.bounds[j, [LOWER, UPPER, BOUNDED]] = lower, upper, 1.0
        to.bounds[j, STOP_STIFFNESS] = to.number("stiffness", self.stiffness, above=True)
        to.bounds[j, STOP_DAMPING] = to.number("damping", self.damping)


@dataclass(frozen=True)
class JointLimit:
    """Limits of a joint's position and rate that it never passes, whatever drives it; it has no channel.

    rtmms.mechanism.joint_laws describes how they act. A stop pushes only inwards. Servos and motions of the joint do
    not become faster than `fastest`. On a joint whose motion is imposed without a limit of torque, only `fastest` is
    possible; there `lower` and `upper` belong to its command. A method whose steps are longer than T / 2 brakes over
    two of its steps. The verdict of the run reports the resulting change.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    lower, upper : float, optional
        rad or m; None for none.
    fastest : float, optional
        rad/s or m/s; None for none.
    braking_time : float, optional
        T, s: a stop begins to brake the joint critically 2 T qd before its limit; None for 4 ms.

    Examples
    --------
    >>> from rtmms import model as m
    >>> limit = m.JointLimit("shoulder", lower=-1.0, upper=1.0, fastest=6.0)
    """

    joint: str
    lower: float | None = None
    upper: float | None = None
    fastest: float | None = None
    braking_time: float | None = None

    def attach(self, to: Attachment) -> None:
        """Set the limits of the joint.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        j = to.joint(self.joint)
        lower, upper = to.limits(self.lower, self.upper)
        if to.model.imposed[j] and not (lower is None and upper is None):
            raise ModelError(
                f"{to.place}: joint '{self.joint}' has an imposed motion: expected lower and upper at its JointMotion"
            )
        if lower is not None:
            to.bounds[j, FLOOR] = max(to.bounds[j, FLOOR], lower)
        if upper is not None:
            to.bounds[j, CEILING] = min(to.bounds[j, CEILING], upper)
        if not to.bounds[j, FLOOR] <= to.bounds[j, CEILING]:
            raise ModelError(
                f"{to.place}: the limits of joint '{self.joint}' have no position in common: lower "
                f"{to.bounds[j, FLOOR]:g}, upper {to.bounds[j, CEILING]:g}"
            )
        to.fastest(j, self.fastest, self.braking_time)


COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True)
class BodyWrench:
    """Force and moment on a body at a pose, along the pose's axes: channels BODY.fx .. BODY.mz, N and N m.

    Parameters
    ----------
    body : str
        Name of the body.
    components : Sequence[str], default COMPONENTS
        Some of 'fx', 'fy', 'fz', 'mx', 'my', 'mz'.
    placement : Placement, optional
        Pose in the body's frame.
    force_limit : float, optional
        Largest force of a command, N; None for none.
    moment_limit : float, optional
        Largest moment of a command, N m; None for none.
    name : str, optional
        First part of the channels' names, in place of BODY.

    Examples
    --------
    >>> from rtmms import model as m
    >>> push = m.BodyWrench("hull", components=("fx", "mz"), force_limit=10.0)
    """

    body: str
    components: Sequence[str] = COMPONENTS
    placement: Placement = field(default_factory=Placement)
    force_limit: float | None = None
    moment_limit: float | None = None
    name: str | None = None

    def attach(self, to: Attachment) -> None:
        """Add a channel for each component.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        if not self.components:
            raise ModelError(f"{to.place}: components must be some of {', '.join(COMPONENTS)}, got none")
        for component in self.components:
            if component not in COMPONENTS:
                raise UnknownNameError(f"component of {to.place}", str(component), COMPONENTS)
            k = COMPONENTS.index(component)
            given = self.force_limit if k < 3 else self.moment_limit
            most = None if given is None else to.number("limit", given, above=True)
            unit = "N" if k < 3 else "N m"
            channel = to.channel(f"{self.name or self.body}.{component}", unit, None if most is None else -most, most)
            to.on_body(channel, self.body, self.placement, np.eye(6)[k])


@dataclass(frozen=True)
class DirectedWrench:
    """A force and a moment on a body in a fixed direction, times the command: channel BODY.command.

    Parameters
    ----------
    body : str
        Name of the body.
    wrench : (6,) sequence of float
        N and N m for a command of 1, along the axes of `placement`; the force is at its origin.
    placement : Placement, optional
        Pose in the body's frame.
    lower, upper, neutral : float, optional
        Limits and neutral value of the command.
    name : str, optional
        Name of the channel, in place of BODY.command.
    unit : str, default ''
        Unit of the channel.

    Examples
    --------
    >>> from rtmms import model as m
    >>> rotor = m.DirectedWrench("hull", (0, 0, 1, 0, 0, 0.02), m.at(0.1, 0.1), lower=0, unit="N")
    """

    body: str
    wrench: Sequence[float]
    placement: Placement = field(default_factory=Placement)
    lower: float | None = None
    upper: float | None = None
    neutral: float = 0.0
    name: str | None = None
    unit: str = ""

    def attach(self, to: Attachment) -> None:
        """Add the channel BODY.command.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        wrench = checked_numbers(self.wrench, (6,), f"{to.place}: wrench")
        lower, upper = to.limits(self.lower, self.upper)
        neutral = to.number("neutral", self.neutral, least=-math.inf)
        channel = to.channel(self.name or f"{self.body}.command", self.unit, lower, upper, neutral)
        to.on_body(channel, self.body, self.placement, wrench)


@dataclass(frozen=True)
class Thruster:
    """A thrust along x of its pose: channel NAME.command; the command x lags, and the thrust is f(x) at once.

    Parameters
    ----------
    body : str
        Name of the body.
    placement : Placement, optional
        Pose in the body's frame.
    coefficient : float, optional
        f = coefficient |x| x, N for a command of 1; either this or `curve` is required.
    curve : Sequence[tuple[float, float]], default ()
        Points (command, thrust in N), commands ascending: f is linear between them, and constant beyond them.
    moment : float, default 0.0
        Moment about x per newton of thrust, m, by which a propeller's torque acts on its body.
    time_constant : float, default 0.0
        Time constant of the lag, s; 0 for none.
    lower, upper : float, optional
        Limits of the command.
    unit : str, default ''
        Unit of the command.
    name : str, optional
        First part of the channel's name; None: 'BODY.thruster'.
    inertia : float, default 0.0
        Inertia about x of the part that spins with the command, kg m2; the command is then in rad/s, see `Rotor`.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Thruster("hull", m.at(x=-0.2), coefficient=1e-4, name="stern").channel_name
    'stern.command'
    """

    body: str
    placement: Placement = field(default_factory=Placement)
    coefficient: float | None = None
    curve: Sequence[tuple[float, float]] = ()
    moment: float = 0.0
    time_constant: float = 0.0
    lower: float | None = None
    upper: float | None = None
    unit: str = ""
    name: str | None = None
    inertia: float = 0.0

    @property
    def channel_name(self) -> str:
        """Name of its channel."""
        return f"{self.name or f'{self.body}.thruster'}.command"

    def attach(self, to: Attachment) -> None:
        """Add the channel NAME.command.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        if (self.coefficient is None) == (len(self.curve) == 0):
            got = "both" if len(self.curve) else "neither"
            raise ModelError(f"{to.place}: expected coefficient or curve, got {got}")
        curve = [] if not len(self.curve) else curve_points(self.curve, to.place)
        c = 0.0 if self.coefficient is None else to.number("coefficient", self.coefficient, least=-math.inf)
        lower, upper = to.limits(self.lower, self.upper)
        if curve:
            lower = curve[0][0] if lower is None else lower
            upper = curve[-1][0] if upper is None else upper
        channel = to.channel(self.channel_name, self.unit, lower, upper)
        wrench = np.array([1.0, 0.0, 0.0, to.number("moment", self.moment, least=-math.inf), 0.0, 0.0])
        lag, momentum = to.number("time_constant", self.time_constant), (to.number("inertia", self.inertia), 0.0, 0.0)
        to.on_body(
            channel, self.body, self.placement, wrench, lag=lag, coefficients=(0.0, c), curve=curve, momentum=momentum
        )


@dataclass(frozen=True)
class Rotor:
    """A rotor along z of its pose: channel NAME.speed, rad/s, 0 to max_speed; thrust k_t w^2, drag torque k_d w^2.

    Parameters
    ----------
    body : str
        Name of the body.
    placement : Placement, optional
        Pose in the body's frame.
    thrust_coefficient : float, default 1e-05
        k_t, N s2/rad2.
    drag_coefficient : float, default 0.0
        k_d, N m s2/rad2.
    spin : int, default 1
        1: it turns counter-clockwise about its z, and its drag turns the body clockwise; -1: the opposite.
    time_constant : float, default 0.0
        Time constant of the motor, s: w follows the command with that lag.
    max_speed : float, optional
        Largest command, rad/s; None for none.
    name : str, optional
        First part of the channel's name; None: 'BODY.rotor'.
    inertia : float, default 0.0
        Inertia about z, kg m2: with h = spin inertia w the body has the moment -W x h - h'. The body's own inertia
        contains the rotor as if it did not spin; w is relative to the body. 0: its angular momentum is neglected.

    Examples
    --------
    >>> from rtmms import model as m
    >>> front = m.Rotor("hull", m.at(x=0.2), thrust_coefficient=1e-5, max_speed=800.0, name="front")
    """

    body: str
    placement: Placement = field(default_factory=Placement)
    thrust_coefficient: float = 1e-5
    drag_coefficient: float = 0.0
    spin: int = 1
    time_constant: float = 0.0
    max_speed: float | None = None
    name: str | None = None
    inertia: float = 0.0

    def attach(self, to: Attachment) -> None:
        """Add the channel NAME.speed.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        if self.spin not in (1, -1):
            raise ModelError(f"{to.place}: spin must be 1 or -1, got {self.spin!r}")
        most = None if self.max_speed is None else to.number("max_speed", self.max_speed, above=True)
        channel = to.channel(f"{self.name or f'{self.body}.rotor'}.speed", "rad/s", 0.0, most)
        k_t = to.number("thrust_coefficient", self.thrust_coefficient, above=True)
        k_d = to.number("drag_coefficient", self.drag_coefficient)
        wrench = np.array([0.0, 0.0, 1.0, 0.0, 0.0, -self.spin * k_d / k_t])
        lag = to.number("time_constant", self.time_constant)
        momentum = (0.0, 0.0, self.spin * to.number("inertia", self.inertia))
        to.on_body(
            channel, self.body, self.placement, wrench, lag=lag, coefficients=(0.0, k_t), momentum=momentum
        )  # fmt: skip


@dataclass(frozen=True)
class ReactionWheel:
    """A wheel about z of its pose without thrust: channel NAME.speed, rad/s relative to the body, of either sign.

    Parameters
    ----------
    body : str
        Name of the body.
    inertia : float
        Inertia about z, kg m2: with h = inertia w the body has the moment -W x h - h', see `Rotor`.
    placement : Placement, optional
        Pose in the body's frame.
    time_constant : float, default 0.1
        s, > 0: w follows the command with that lag.
    max_speed : float, optional
        Largest speed, rad/s; None for none.
    name : str, optional
        First part of the channel's name; None: 'BODY.wheel'.

    Examples
    --------
    >>> from rtmms import model as m
    >>> wheel = m.ReactionWheel("bus", inertia=1e-3, max_speed=500.0)
    """

    body: str
    inertia: float
    placement: Placement = field(default_factory=Placement)
    time_constant: float = 0.1
    max_speed: float | None = None
    name: str | None = None

    def attach(self, to: Attachment) -> None:
        """Add the channel NAME.speed.

        Parameters
        ----------
        to : Attachment
            Arrays of the tree, to which the channels and numbers are added.

        Raises
        ------
        ModelError, UnknownNameError
            The description does not fit the tree; the message names the actuator.
        """
        most = None if self.max_speed is None else to.number("max_speed", self.max_speed, above=True)
        least = None if most is None else -most
        channel = to.channel(f"{self.name or f'{self.body}.wheel'}.speed", "rad/s", least, most)
        momentum = (0.0, 0.0, to.number("inertia", self.inertia, above=True))
        lag = to.number("time_constant", self.time_constant, above=True)
        to.on_body(
            channel, self.body, self.placement, np.zeros(6), lag=lag, coefficients=(0.0, 0.0), momentum=momentum
        )  # fmt: skip


def curve_points(curve: Any, place: str) -> list[tuple[float, float]]:
    """Return the points of a curve as numbers.

    Parameters
    ----------
    curve : (k, 2) array_like
        Points (command, thrust in N).
    place : str
        Place of the actuator, for the message.

    Returns
    -------
    list[tuple[float, float]]
        The points.

    Raises
    ------
    ModelError
        There are fewer than two points, or their commands do not ascend.
    """
    try:
        points = np.array(curve, dtype=float)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1:] != (2,) or len(points) < 2 or not np.isfinite(points).all():
        raise ModelError(f"{place}: curve must be two or more points (command, thrust), got {curve!r}")
    if np.any(np.diff(points[:, 0]) <= 0.0):
        raise ModelError(f"{place}: the curve's commands must rise, got {points[:, 0].tolist()}")
    return [(float(x), float(y)) for x, y in points]


@dataclass(frozen=True, eq=False)
class Attached:
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


def attached(
    model: Model, actuators: Sequence[Any], drives: Sequence[Actuator] = (), rods: Sequence[Rod] = (),
    strained: Mapping[str, tuple[Rod, Array]] | None = None,
) -> Attached:  # fmt: skip
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
    Attached
        The arrays.

    Raises
    ------
    ModelError, UnknownNameError
        The description does not fit the tree; the message names the actuator.
    """
    to = Attachment(model, rods, strained)
    to.drives += drives
    for k, one in enumerate(_listed(actuators)):
        to.place = f"{model.name}: actuators[{k}] ({type(one).__name__})"
        if isinstance(one, type) or not isinstance(one, Attachable):
            kinds = (
                "JointTorque, JointServo, JointAffine, JointMotion, JointSpeed, JointStop, JointLimit, BodyWrench, "
                "DirectedWrench, Thruster, Rotor, ReactionWheel, Tendon"
            )
            raise ModelError(f"{model.name}: actuators[{k}]: expected a {kinds}, got {one!r}")
        one.attach(to)
    to.drives = [_at_most(drive, to) for drive in to.drives]
    momentum = np.array(to.momentum).reshape(-1, 3)
    return Attached(
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
    most = float(to.bounds[j, MAX_SPEED])
    if math.isinf(most):
        return drive
    if abs(channel.neutral) > most:
        raise ModelError(
            f"{to.model.name}: '{channel.name}': neutral must be at most the maximum speed of the joint, "
            f"{most:g}, got {channel.neutral:g}"
        )
    lower = -most if channel.lower is None else min(max(channel.lower, -most), most)
    upper = most if channel.upper is None else min(max(channel.upper, -most), most)
    return replace(drive, channel=replace(channel, lower=lower, upper=upper))


def _listed(actuators: Any) -> Sequence[Any]:
    if isinstance(actuators, Attachable) or not isinstance(actuators, Sequence):
        raise ModelError(f"actuators: expected a list of actuators, got {actuators!r}")
    return actuators


def imposing(mechanism: Mechanism, actuators: Sequence[Any]) -> Mechanism:
    """Return the mechanism with drive='motion' on every joint that a JointMotion without a limit or a JointSpeed moves.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    actuators : Sequence[Any]
        Its actuators.

    Returns
    -------
    Mechanism
        The same object where nothing is imposed.
    """
    wanted = {
        one.joint
        for one in _listed(actuators)
        if isinstance(one, JointSpeed) or (isinstance(one, JointMotion) and one.limit is None)
    }
    if not wanted:
        return mechanism

    def coordinates(joint: Any) -> set[str]:
        count = JOINT_TYPES.get(joint.type, 1)
        return {joint.name} if count < 2 else {f"{joint.name}.{k + 1}" for k in range(count)}

    joints = [replace(j, drive="motion") if coordinates(j) & wanted else j for j in mechanism.joints]
    return replace(mechanism, joints=joints)
