"""Provide the description of a tree's actuators, on joints (torque, servo, motion, stops) and on bodies (wrenches).

Tendons are in rtmms.mechanism.tendon_paths; rtmms.mechanism.actuator_arrays has the arrays to which an actuator adds
its channels and numbers. Each error names the actuator, joint or body.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError, renamed_fields
from rtmms.base.override import override
from rtmms.mechanism.actuator_arrays import ActuatorDescription, Attachment, list_of_actuators
from rtmms.mechanism.joint_laws import (
    BOUNDED,
    CEILING,
    FIRM,
    FLOOR,
    LOWER,
    MAX_TORQUE,
    OFFSET,
    SATURATES,
    STOP_DAMPING,
    STOP_STIFFNESS,
    TORQUE,
    UPPER,
    Actuator,
)
from rtmms.model.description import JOINT_TYPES, Mechanism
from rtmms.model.elements import checked_numbers
from rtmms.model.solids import Placement


@renamed_fields(fastest="max_rate")
@dataclass(frozen=True)
class JointTorque(ActuatorDescription):
    """A torque (or force) on a joint: channel JOINT.torque, N m or N.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    limit : float, optional
        Largest command, N m or N; None for none.
    name : str, optional
        Name of the channel, in place of JOINT.torque.
    max_rate : float, optional
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
    max_rate: float | None = None
    braking_time: float | None = None

    @override
    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.limit_rate(j, self.max_rate, self.braking_time)
        maximum = None if self.limit is None else to.number("limit", self.limit, above=True)
        least = None if maximum is None else -maximum
        to.on_joint(to.channel(self.name or f"{self.joint}.torque", to.effort(j), least, maximum), TORQUE, j)


@renamed_fields(fastest="max_rate")
@dataclass(frozen=True)
class JointServo(ActuatorDescription):
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
    max_rate : float, optional
        Highest rate of the joint, rad/s or m/s (see `JointLimit`); None for none.
    braking_time : float, optional
        Time of the brake that keeps `max_rate`, s (see `JointLimit`); None for 4 ms.

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
    max_rate: float | None = None
    braking_time: float | None = None

    @override
    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.take(j, "target", "target", "spring")
        to.limit_rate(j, self.max_rate, self.braking_time)
        to.kp[j] = to.number("stiffness", self.stiffness, above=True)
        to.kd[j] = to.number("damping", self.damping)
        if self.limit is not None:
            to.bounds[j, MAX_TORQUE] = to.number("limit", self.limit, above=True)
            to.bounds[j, BOUNDED] = 1.0
        _follow(self, j, to)


@dataclass(frozen=True)
class JointAffine(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
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


@renamed_fields(fastest="max_rate")
@dataclass(frozen=True)
class JointMotion(ActuatorDescription):
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
    max_rate : float, optional
        Highest rate of the joint, rad/s or m/s (see `JointLimit`); None for none.
    braking_time : float, optional
        Time of the brake that keeps `max_rate`, s. A joint with `limit` returns to its motion critically damped in that
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
    max_rate: float | None = None
    braking_time: float | None = None

    @override
    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        to.take(j, "target", "target", "spring")
        to.limit_rate(j, self.max_rate, self.braking_time)
        if self.limit is not None:
            refuse_imposed(to, j)
            to.bounds[j, MAX_TORQUE] = to.number("limit", self.limit, above=True)
            to.bounds[j, [FIRM, BOUNDED]] = 1.0
        elif not to.model.imposed[j]:
            raise ModelError(f"{to.place}: joint '{self.joint}' must have drive='motion', got drive='torque'")
        _follow(self, j, to)


@dataclass(frozen=True)
class JointSpeed(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
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
class JointStop(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.take(j, "stop", "stop")
        lower, upper = to.limits(self.lower, self.upper)
        to.bounds[j, [LOWER, UPPER, BOUNDED]] = lower, upper, 1.0
        to.bounds[j, STOP_STIFFNESS] = to.number("stiffness", self.stiffness, above=True)
        to.bounds[j, STOP_DAMPING] = to.number("damping", self.damping)


@renamed_fields(fastest="max_rate")
@dataclass(frozen=True)
class JointLimit(ActuatorDescription):
    """Limits of a joint's position and rate that it never passes, whatever drives it; it has no channel.

    rtmms.mechanism.joint_laws describes how they act. A stop pushes only inwards. Servos and motions of the joint do
    not become faster than `max_rate`. On a joint whose motion is imposed without a limit of torque, only `max_rate` is
    possible; there `lower` and `upper` belong to its command. A method whose steps are longer than T / 2 brakes over
    two of its steps. The verdict of the run reports the resulting change.

    Parameters
    ----------
    joint : str
        Name of the coordinate.
    lower, upper : float, optional
        rad or m; None for none.
    max_rate : float, optional
        rad/s or m/s; None for none.
    braking_time : float, optional
        T, s: a stop begins to brake the joint critically 2 T qd before its limit; None for 4 ms.

    Examples
    --------
    >>> from rtmms import model as m
    >>> limit = m.JointLimit("shoulder", lower=-1.0, upper=1.0, max_rate=6.0)
    """

    joint: str
    lower: float | None = None
    upper: float | None = None
    max_rate: float | None = None
    braking_time: float | None = None

    @override
    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        lower, upper = to.limits(self.lower, self.upper)
        if to.model.imposed[j] and not (lower is None and upper is None):
            raise ModelError(
                f"{to.place}: joint '{self.joint}': expected no lower and upper here, as its motion is imposed; give "
                "them to its JointMotion"
            )
        if lower is not None:
            to.bounds[j, FLOOR] = max(to.bounds[j, FLOOR], lower)
        if upper is not None:
            to.bounds[j, CEILING] = min(to.bounds[j, CEILING], upper)
        if not to.bounds[j, FLOOR] <= to.bounds[j, CEILING]:
            raise ModelError(
                f"{to.place}: joint '{self.joint}': expected limits that leave a position, got lower "
                f"{to.bounds[j, FLOOR]:g} above upper {to.bounds[j, CEILING]:g}"
            )
        to.limit_rate(j, self.max_rate, self.braking_time)


COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True)
class BodyWrench(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
        if not self.components:
            raise ModelError(f"{to.place}: components must be some of {', '.join(COMPONENTS)}, got none")
        for component in self.components:
            if component not in COMPONENTS:
                raise UnknownNameError(f"component of {to.place}", str(component), COMPONENTS)
            k = COMPONENTS.index(component)
            limit = self.force_limit if k < 3 else self.moment_limit
            maximum = None if limit is None else to.number("limit", limit, above=True)
            unit = "N" if k < 3 else "N m"
            channel = to.channel(
                f"{self.name or self.body}.{component}", unit, None if maximum is None else -maximum, maximum
            )
            to.on_body(channel, self.body, self.placement, np.eye(6)[k])


@dataclass(frozen=True)
class DirectedWrench(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
        wrench = checked_numbers(self.wrench, (6,), f"{to.place}: wrench")
        lower, upper = to.limits(self.lower, self.upper)
        neutral = to.number("neutral", self.neutral, least=-math.inf)
        channel = to.channel(self.name or f"{self.body}.command", self.unit, lower, upper, neutral)
        to.on_body(channel, self.body, self.placement, wrench)


@dataclass(frozen=True)
class Thruster(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
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
class Rotor(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
        if self.spin not in (1, -1):
            raise ModelError(f"{to.place}: spin must be 1 or -1, got {self.spin!r}")
        maximum = None if self.max_speed is None else to.number("max_speed", self.max_speed, above=True)
        channel = to.channel(f"{self.name or f'{self.body}.rotor'}.speed", "rad/s", 0.0, maximum)
        k_t = to.number("thrust_coefficient", self.thrust_coefficient, above=True)
        k_d = to.number("drag_coefficient", self.drag_coefficient)
        wrench = np.array([0.0, 0.0, 1.0, 0.0, 0.0, -self.spin * k_d / k_t])
        lag = to.number("time_constant", self.time_constant)
        momentum = (0.0, 0.0, self.spin * to.number("inertia", self.inertia))
        to.on_body(
            channel, self.body, self.placement, wrench, lag=lag, coefficients=(0.0, k_t), momentum=momentum
        )  # fmt: skip


@dataclass(frozen=True)
class ReactionWheel(ActuatorDescription):
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

    @override
    def attach(self, to: Attachment) -> None:
        maximum = None if self.max_speed is None else to.number("max_speed", self.max_speed, above=True)
        least = None if maximum is None else -maximum
        channel = to.channel(f"{self.name or f'{self.body}.wheel'}.speed", "rad/s", least, maximum)
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
        item.joint
        for item in list_of_actuators(actuators)
        if isinstance(item, JointSpeed) or (isinstance(item, JointMotion) and item.limit is None)
    }
    if not wanted:
        return mechanism

    def coordinates(joint: Any) -> set[str]:
        count = JOINT_TYPES.get(joint.type, 1)
        return {joint.name} if count < 2 else {f"{joint.name}.{k + 1}" for k in range(count)}

    joints = [replace(j, drive="motion") if coordinates(j) & wanted else j for j in mechanism.joints]
    return replace(mechanism, joints=joints)
