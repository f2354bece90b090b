"""Description of a tree's actuators: on joints (torque, servo, motion, stops), on bodies (wrenches, thrusters,
rotors, wheels); tendons stand in rtmms.mechanism.tendon_paths. `attached` turns it into the arrays that kernels read;
its refusals name the actuator, joint or body."""

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
    FASTEST,
    FIRM,
    FLOOR,
    LOWER,
    MOST,
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
"""Kind of an actuator on a body, beside TORQUE, OFFSET and GAIN; its joint is one that there is none of."""


class Attachment:
    """Arrays in the making, for a compiled model; `place` begins every refusal."""

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

    def joint(self, name: str) -> int:
        if name not in self.model.joint_names:
            raise UnknownNameError(f"joint of {self.place}", str(name), self.model.joint_names)
        return self.model.joint(name)

    def number(self, name: str, value: Any, *, least: float = 0.0, above: bool = False) -> float:
        """A finite number >= least, or > least."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or number < least or (above and number == least):
            raise ModelError(f"{self.place}: {name} must be {'>' if above else '>='} {least:g}, got {value!r}")
        return number

    def limits(self, lower: Any, upper: Any) -> tuple[float | None, float | None]:
        """Both as numbers, None where there is none."""
        low, high = (
            None if value is None else self.number(name, value, least=-math.inf)
            for name, value in (("lower", lower), ("upper", upper))
        )  # fmt: skip
        if low is not None and high is not None and low >= high:
            raise ModelError(f"{self.place}: lower must be less than upper, got {low:g} and {high:g}")
        return low, high

    def angle(self, j: int) -> str:
        return "m" if self.model.topology[j + 1, T_KIND] == PRISMATIC else "rad"

    def effort(self, j: int) -> str:
        return "N" if self.model.topology[j + 1, T_KIND] == PRISMATIC else "N m"

    def channel(self, name: str, unit: str, lower: float | None, upper: float | None, neutral: float = 0.0) -> Channel:
        if any(drive.channel.name == name for drive in self.drives):
            raise ModelError(f"{self.place}: there is an actuator '{name}' already; give this one a name")
        if not (-math.inf if lower is None else lower) <= neutral <= (math.inf if upper is None else upper):
            raise ModelError(f"{self.place}: neutral must be within its limits {lower} and {upper}, got {neutral:g}")
        return Channel(name, unit, lower=lower, upper=upper, neutral=neutral)

    def fastest(self, j: int, most: Any, braking_time: Any) -> None:
        """Set a highest rate of joint j, the lowest of several, and the braking time of its limits; None for neither.

        Raises ModelError where another actuator of the joint has another braking time.
        """
        if most is not None:
            self.bounds[j, FASTEST] = min(self.bounds[j, FASTEST], self.number("fastest", most, above=True))
        if braking_time is None:
            return
        time = self.number("braking_time", braking_time, above=True)
        if not math.isnan(self.braking[j]) and self.braking[j] != time:
            raise ModelError(
                f"{self.place}: braking_time: expected {self.braking[j]:g} s, as of the joint's others, got {time:g}"
            )
        self.braking[j] = self.bounds[j, BRAKING] = time

    def on_joint(self, channel: Channel, kind: int, j: int) -> None:
        self.drives.append(Actuator(channel, kind, j))

    def on_body(
        self, channel: Channel, body: str, placement: Placement, wrench: Array, *, lag: float = 0.0,
        coefficients: tuple[float, float] = (1.0, 0.0), curve: Sequence[tuple[float, float]] = (),
        momentum: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:  # fmt: skip
        """A channel that pushes with `wrench` (6,) in the frame at `placement` on the body, times its value.

        momentum  (3,) kg m2, in that frame: the angular momentum at 1 rad/s of what spins there
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
        """The row that carries a body, and where the body stands in the row's frame."""
        model = self.model
        if name not in model.body_names:
            raise UnknownNameError(f"body of {self.place}", str(name), model.body_names)
        k = model.body(name)
        return int(model.carrier[k]), Placement(model.offset_rotation[k], model.offset_position[k])


@runtime_checkable
class Attachable(Protocol):
    """An actuator as a person describes it."""

    def attach(self, to: Attachment) -> None:
        """Add its channels and numbers; ModelError or UnknownNameError that begins with `to.place`."""


@dataclass(frozen=True)
class JointTorque:
    """A torque (or force) on a joint: channel JOINT.torque, N m or N. limit: of the command, None for none.

    fastest  rad/s or m/s, of the joint, which a brake holds (see JointLimit); None for none
    braking_time  s, of that brake (see JointLimit); None for 4 ms
    """

    joint: str
    limit: float | None = None
    name: str | None = None
    fastest: float | None = None
    braking_time: float | None = None

    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.fastest(j, self.fastest, self.braking_time)
        most = None if self.limit is None else to.number("limit", self.limit, above=True)
        least = None if most is None else -most
        to.on_joint(to.channel(self.name or f"{self.joint}.torque", to.effort(j), least, most), TORQUE, j)


@dataclass(frozen=True)
class JointServo:
    """A PD servo: torque = stiffness (a - q) + damping (a' - qd), at most `limit`; channel JOINT.angle, rad or m.

    stiffness, damping    N m/rad, N m s/rad (N/m, N s/m)
    limit                 N m or N, of all that drives the joint; None for none
    lower, upper, neutral of the command
    bandwidth             rad/s: a follows the command through a critically damped filter of second order
    fastest               rad/s or m/s, of the joint (see JointLimit); None for none
    braking_time          s, of the brake that holds `fastest` (see JointLimit); None for 4 ms
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
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        to.fastest(j, self.fastest, self.braking_time)
        to.kp[j] = to.number("stiffness", self.stiffness, above=True)
        to.kd[j] = to.number("damping", self.damping)
        if self.limit is not None:
            to.bounds[j, MOST] = to.number("limit", self.limit, above=True)
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
    gain : float
        N m (N) for a command of 1.
    stiffness, damping : float
        N m/rad and N m s/rad (N/m, N s/m): the torque is gain command - stiffness q - damping qd.
    limit : float, optional
        N m or N, largest size of all that drives the joint.
    lower, upper, neutral : float, optional
        Of the command.
    name, unit : str, optional
        Of the channel.

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
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        gain = to.number("gain", self.gain, least=-math.inf)
        to.kp[j] += to.number("stiffness", self.stiffness)
        to.kd[j] += to.number("damping", self.damping)
        if self.limit is not None:
            to.bounds[j, MOST] = min(to.bounds[j, MOST], to.number("limit", self.limit, above=True))
            to.bounds[j, FIRM] = SATURATES
        lower, upper = to.limits(self.lower, self.upper)
        neutral = to.number("neutral", self.neutral, least=-math.inf)
        channel = to.channel(self.name or f"{self.joint}.command", self.unit, lower, upper, neutral)
        to.drives.append(Actuator(channel, TORQUE, j, gain))


@dataclass(frozen=True)
class JointMotion:
    """An imposed motion: the joint stands where a linear servo of second order has it, and its torque follows.

    The servo is critically damped: q'' = w^2 (command - q) - 2 w q'; channel JOINT.angle, rad or m.
    lower, upper, neutral   of the command;  bandwidth  w, rad/s
    limit   N m or N, of its torque: the joint leaves the motion where it would take more; None for none
    fastest rad/s or m/s, of the joint (see JointLimit); None for none
    braking_time  s, of the brake that holds `fastest`; a joint with `limit` returns to its motion critically damped in
                  that time (see JointLimit). None for 4 ms
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
        j = to.joint(self.joint)
        to.fastest(j, self.fastest, self.braking_time)
        if self.limit is not None:
            refuse_imposed(to, j)
            to.bounds[j, MOST] = to.number("limit", self.limit, above=True)
            to.bounds[j, [FIRM, BOUNDED]] = 1.0
        elif not to.model.imposed[j]:
            raise ModelError(f"{to.place}: joint '{self.joint}' must have drive='motion', got drive='torque'")
        _follow(self, j, to)


@dataclass(frozen=True)
class JointSpeed:
    """An imposed rate: the joint turns as fast as a lag of first order has it, q'' = w (command - q'), and its torque
    follows; channel JOINT.speed, rad/s or m/s.

    lower, upper, neutral   of the command;  bandwidth  w, rad/s
    """

    joint: str
    lower: float | None = None
    upper: float | None = None
    bandwidth: float = 20.0
    neutral: float = 0.0
    name: str | None = None

    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        if not to.model.imposed[j]:
            raise ModelError(f"{to.place}: joint '{self.joint}' must have drive='motion', got drive='torque'")
        lower, upper = to.limits(self.lower, self.upper)
        to.bandwidth[j] = -to.number("bandwidth", self.bandwidth, above=True)
        neutral = to.number("neutral", self.neutral, least=-math.inf)
        name = self.name or f"{self.joint}.speed"
        to.on_joint(to.channel(name, f"{to.angle(j)}/s", lower, upper, neutral), OFFSET, j)


def refuse_imposed(to: Attachment, j: int) -> None:
    if to.model.imposed[j]:
        name = to.model.joint_names[j]
        raise ModelError(f"{to.place}: joint '{name}' must have drive='torque', got drive='motion': its torque follows")


def _follow(servo: JointServo | JointMotion, j: int, to: Attachment) -> None:
    lower, upper = to.limits(servo.lower, servo.upper)
    to.bandwidth[j] = to.number("bandwidth", servo.bandwidth, above=True)
    neutral = to.number("neutral", servo.neutral, least=-math.inf)
    to.on_joint(to.channel(servo.name or f"{servo.joint}.angle", to.angle(j), lower, upper, neutral), OFFSET, j)


@dataclass(frozen=True)
class JointStop:
    """Where a joint ends: beyond lower or upper (rad or m) a spring and a damper push back. It has no channel.

    stiffness, damping   N m/rad, N m s/rad (N/m, N s/m); an explicit method needs sqrt(stiffness / inertia) dt < 1
    """

    joint: str
    lower: float
    upper: float
    stiffness: float
    damping: float = 0.0

    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        refuse_imposed(to, j)
        lower, upper = to.limits(self.lower, self.upper)
        to.bounds[j, [LOWER, UPPER, BOUNDED]] = lower, upper, 1.0
        to.bounds[j, STOP_STIFFNESS] = to.number("stiffness", self.stiffness, above=True)
        to.bounds[j, STOP_DAMPING] = to.number("damping", self.damping)


@dataclass(frozen=True)
class JointLimit:
    """How far a joint goes, and how fast: limits that it never passes, whatever drives it. It has no channel; how it
    is held: rtmms.mechanism.joint_laws.

    lower, upper   rad or m;  fastest  rad/s or m/s; None for none
    braking_time   s, T: a stop begins to brake the joint critically 2 T qd before its limit; None for 4 ms
    A stop pushes inwards alone. Servos and motions of the joint get no faster. On a joint whose motion is imposed
    without a limit of torque only `fastest` can be: there `lower` and `upper` are those of its command. A method whose
    steps are longer than T / 2 brakes over two of its steps; the verdict of the run reports what that changes.
    """

    joint: str
    lower: float | None = None
    upper: float | None = None
    fastest: float | None = None
    braking_time: float | None = None

    def attach(self, to: Attachment) -> None:
        j = to.joint(self.joint)
        lower, upper = to.limits(self.lower, self.upper)
        if to.model.imposed[j] and not (lower is None and upper is None):
            raise ModelError(
                f"{to.place}: joint '{self.joint}' has an imposed motion: expected lower and upper at its JointMotion"
            )
        if lower is not None:
            to.bounds[j, FLOOR] = lower
        if upper is not None:
            to.bounds[j, CEILING] = upper
        to.fastest(j, self.fastest, self.braking_time)


COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True)
class BodyWrench:
    """Force and moment on a body at a pose, along the pose's axes: channels BODY.fx .. BODY.mz, N and N m.

    components   which of the six;  force_limit, moment_limit  N, N m, of a command; None for none
    """

    body: str
    components: Sequence[str] = COMPONENTS
    placement: Placement = field(default_factory=Placement)
    force_limit: float | None = None
    moment_limit: float | None = None
    name: str | None = None

    def attach(self, to: Attachment) -> None:
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
    wrench : sequence of float, length 6
        N and N m for a command of 1, along the axes of `placement`; the force is at its origin.
    placement : Placement
        Pose in the body's frame.
    lower, upper, neutral : float, optional
        Of the command.
    name, unit : str, optional
        Of the channel.

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
        wrench = checked_numbers(self.wrench, (6,), f"{to.place}: wrench")
        lower, upper = to.limits(self.lower, self.upper)
        neutral = to.number("neutral", self.neutral, least=-math.inf)
        channel = to.channel(self.name or f"{self.body}.command", self.unit, lower, upper, neutral)
        to.on_body(channel, self.body, self.placement, wrench)


@dataclass(frozen=True)
class Thruster:
    """A thrust along x of its pose: channel NAME.command. The command x lags, the thrust is f(x) at once.

    coefficient    f = coefficient |x| x, N for a command of 1; or
    curve          points (command, thrust in N), commands rising: f runs straight between them, and is held beyond them
    moment         m: moment about x per newton of thrust, what a propeller's torque leaves on its body
    time_constant  s, of the lag; 0 for none;  lower, upper, unit  of the command
    inertia        kg m2 about x of what spins with the command, which is then in rad/s: see Rotor
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

    spin           1: it turns counter-clockwise about its z, and its drag turns the body clockwise; -1 the other way
    time_constant  s, of the motor: w follows the command with that lag
    inertia        kg m2 about z: with h = spin inertia w the body feels -W x h - h'. The body's own inertia holds the
                   rotor as if it did not spin, w is relative to the body. 0: its angular momentum is left out
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
    """A wheel about z of its pose that pushes no air: channel NAME.speed, rad/s relative to the body, of either sign.

    inertia        kg m2 about z: with h = inertia w the body feels -W x h - h', see Rotor
    time_constant  s, > 0: w follows the command with that lag;  max_speed  rad/s, None for none
    """

    body: str
    inertia: float
    placement: Placement = field(default_factory=Placement)
    time_constant: float = 0.1
    max_speed: float | None = None
    name: str | None = None

    def attach(self, to: Attachment) -> None:
        most = None if self.max_speed is None else to.number("max_speed", self.max_speed, above=True)
        least = None if most is None else -most
        channel = to.channel(f"{self.name or f'{self.body}.wheel'}.speed", "rad/s", least, most)
        momentum = (0.0, 0.0, to.number("inertia", self.inertia, above=True))
        lag = to.number("time_constant", self.time_constant, above=True)
        to.on_body(
            channel, self.body, self.placement, np.zeros(6), lag=lag, coefficients=(0.0, 0.0), momentum=momentum
        )  # fmt: skip


def curve_points(curve: Any, place: str) -> list[tuple[float, float]]:
    """Points of a curve as numbers; ModelError where their commands do not rise."""
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
    """What the kernels get of a tree's actuators. bandwidth (n,) rad/s, NaN without an actuator; momentum (a, 3) of
    actuators on bodies, None where nothing spins; tendons and their points: rtmms.mechanism.tendons."""

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
    """Resolve descriptions against a compiled model; `drives` come first, as they are.

    rods      that became links;  strained  rods by strain modes, by name, with the X (m) of their points
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
    """The drive of a commanded rate with its command limited to the joint's highest rate; any other as it is."""
    j, channel = drive.joint, drive.channel
    if drive.kind != OFFSET or not 0 <= j < to.model.n or not to.bandwidth[j] < 0.0:
        return drive
    most = float(to.bounds[j, FASTEST])
    if math.isinf(most):
        return drive
    if abs(channel.neutral) > most:
        raise ModelError(
            f"{to.model.name}: '{channel.name}': neutral must be at most the joint's fastest {most:g}, got "
            f"{channel.neutral:g}"
        )
    lower = -most if channel.lower is None else min(max(channel.lower, -most), most)
    upper = most if channel.upper is None else min(max(channel.upper, -most), most)
    return replace(drive, channel=replace(channel, lower=lower, upper=upper))


def _listed(actuators: Any) -> Sequence[Any]:
    if isinstance(actuators, Attachable) or not isinstance(actuators, Sequence):
        raise ModelError(f"actuators: expected a list of actuators, got {actuators!r}")
    return actuators


def imposing(mechanism: Mechanism, actuators: Sequence[Any]) -> Mechanism:
    """The mechanism with drive='motion' on every joint that a JointMotion without a limit or a JointSpeed moves."""
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
