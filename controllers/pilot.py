"""Depth, pitch, roll, heading and speed of the manta, held by cascades whose outputs are the inputs of the mixer.

    heading    yaw = p_r (r_wanted - r) + i_r int,  r_wanted = p_psi (psi_wanted - psi) + the path's own turn
    depth      pitch word = p e + i int e + the path's own climb
    roll       roll word = p e + i int e - d rate;  pitch: bias word likewise
    speed      thrust = steady(v) + p e + i int e

Where the motion has doubts (`Motion.doubts`) the pilot falls back, see FALLBACK.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, radians
from typing import Annotated

from rtmms.base.attitude import wrap_angle
from rtmms.base.parameters import Parameter

from .loops import Loop
from .mixing import StrokeLimits, mix
from .senses import Motion
from .strokes import Stroke

FALLBACK = {
    "depth": ("depth",),
    "imu": ("depth", "heading", "roll", "pitch", "speed"),
    "estimate": ("depth", "heading", "roll", "pitch", "speed"),
    "dvl": ("speed",),
    "mag": (),
}
"""Loops that keep their integrals without feedback while a sensor is silent or the estimate is lost."""


STROKE_LIMITS = StrokeLimits(radians(30.0), radians(60.0), radians(12.0), radians(15.0))
"""Strokes for which the gains are designed."""


@dataclass(frozen=True)
class Gains:
    """Gains of the cascades, from the period-averaged model (tests/controllers/test_gains.py); SI.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    depth_p: Annotated[float, Parameter("Proportional gain of the depth.", "1/m", ge=0, le=110, live=True)] = 5.5
    depth_i: Annotated[float, Parameter("Integral gain of the depth.", "1/(m s)", ge=0, le=20, live=True)] = 0.46
    climb_d: Annotated[float, Parameter("Derivative gain of the climb.", "s/m", ge=0, le=20, live=True)] = 0.0
    heading_p: Annotated[float, Parameter("Proportional gain of the heading.", "1/s", ge=0, le=20, live=True)] = 1.0
    turn_p: Annotated[float, Parameter("Proportional gain of the turn.", "s/rad", ge=0, le=94, live=True)] = 4.7
    turn_i: Annotated[float, Parameter("Integral gain of the turn.", "1/rad", ge=0, le=20, live=True)] = 0.8
    roll_p: Annotated[float, Parameter("Proportional gain of the roll.", "1/rad", ge=0, le=80, live=True)] = 4.0
    roll_i: Annotated[float, Parameter("Integral gain of the roll.", "1/(rad s)", ge=0, le=60, live=True)] = 3.0
    roll_d: Annotated[float, Parameter("Derivative gain of the roll.", "s/rad", ge=0, le=20, live=True)] = 0.0
    pitch_i: Annotated[float, Parameter("Integral gain of the pitch.", "1/(rad s)", ge=0, le=270, live=True)] = 13.5
    pitch_d: Annotated[float, Parameter("Derivative gain of the pitch.", "s/rad", ge=0, le=20, live=True)] = 0.0
    speed_p: Annotated[float, Parameter("Proportional gain of the speed.", "s/m", ge=0, le=50, live=True)] = 2.5
    speed_i: Annotated[float, Parameter("Integral gain of the speed.", "1/m", ge=0, le=20, live=True)] = 0.375
    steady_s2_m2: Annotated[float, Parameter(
        "Ratio of the steady thrust word to the square of the speed.", "s2/m2", ge=0, le=38,
    )] = 1.9
    # fmt: on


@dataclass(slots=True)
class Aim:
    """Set-points of the pilot.

    Attributes
    ----------
    depth : float, default 0.0
        Depth, m, positive down.
    pitch, roll, heading : float, default 0.0
        Angles, rad.
    speed : float, default 0.4
        Speed, m/s, over the ground.
    climb : float, default 0.0
        Rate of climb, m/s, upward, of the path itself.
    turn : float, default 0.0
        Turn rate, rad/s, of the path itself.
    """

    depth: float = 0.0
    pitch: float = 0.0
    roll: float = 0.0
    heading: float = 0.0
    speed: float = 0.4
    climb: float = 0.0
    turn: float = 0.0


_MAX_TURN_RAD_S = 0.35
"""Largest wanted turn, rad/s: the limit of phase and amplitude at 0.4 m/s."""
_REDUCTION_1_S = 0.1
"""Rate at which thrust is reduced in a turn, 1/s."""
_RESTORATION_1_S = 0.1
"""Rate at which thrust is restored after a turn, 1/s."""


class Pilot:
    """Cascades from the motion to the strokes.

    Parameters
    ----------
    gains : Gains
        Gains of the cascades.
    most : StrokeLimits
        Largest strokes.
    """

    def __init__(self, gains: Gains, stroke_limits: StrokeLimits) -> None:
        self.depth, self.turn = Loop(0.0, 0.0, 0.0, 1.0), Loop(0.0, 0.0, 0.0, 0.6)
        self.roll, self.pitch = Loop(0.0, 0.0, 0.0, 0.8), Loop(0.0, 0.0, 0.0, 0.5)
        self.speed = Loop(0.0, 0.0, 0.0, 1.0)
        self.max_strokes, self._time, self.room = stroke_limits, inf, 1.0
        self.tune(gains)
        self.fallen: set[str] = set()

    def tune(self, gains: Gains) -> None:
        """Use other gains; the loops keep their integrals.

        Parameters
        ----------
        gains : Gains
            Gains of the cascades.
        """
        self.gains = g = gains
        for loop, p, i, d in (
            (self.depth, g.depth_p, g.depth_i, g.climb_d), (self.turn, g.turn_p, g.turn_i, 0.0),
            (self.roll, g.roll_p, g.roll_i, g.roll_d), (self.pitch, 0.0, g.pitch_i, g.pitch_d),
            (self.speed, g.speed_p, g.speed_i, 0.0),
        ):  # fmt: skip
            loop.p, loop.i, loop.d = p, i, d

    def __call__(self, aim: Aim, now: Motion) -> tuple[Stroke, Stroke]:
        """Return the strokes, left and right."""
        if now.time < self._time:
            for loop in (self.depth, self.turn, self.roll, self.pitch, self.speed):
                loop.reset()
            self._time, self.room = now.time, 1.0
        dt, self._time = now.time - self._time, now.time
        self.fallen = {loop for doubt in now.doubts for loop in FALLBACK.get(doubt, ())}
        blind, gains = self.fallen, self.gains
        steady = gains.steady_s2_m2 * aim.speed * abs(aim.speed)
        thrust = self.speed.hold(steady) if "speed" in blind else self.speed(
            aim.speed - now.velocity[0], 0.0, dt, steady)  # fmt: skip
        if "heading" in blind:
            yaw = self.turn.hold()
        else:
            wanted = aim.turn + gains.heading_p * wrap_angle(aim.heading - now.yaw)
            wanted = max(-_MAX_TURN_RAD_S, min(_MAX_TURN_RAD_S, wanted))
            yaw = self.turn(wanted - now.rate[2], 0.0, dt)
            # a turn that is as hard as it can be, and not enough: the speed gives way
            full = abs(yaw) >= self.turn.max_output and yaw * (wanted - now.rate[2]) > 0.0
            self.room = max(0.2, min(1.0, self.room + dt * (-_REDUCTION_1_S if full else _RESTORATION_1_S)))
            maximum = min(self.room, 1.0 - abs(yaw))
            if thrust > maximum:
                self.speed.integral = min(self.speed.integral, max(0.0, maximum - steady))
                thrust = maximum
        climb = now.world_velocity[2]
        lift = self.depth.hold() if "depth" in blind else self.depth(
            -now.position[2] - aim.depth, climb - aim.climb, dt, aim.climb / CLIMB)  # fmt: skip
        roll = self.roll.hold() if "roll" in blind else self.roll(aim.roll - now.roll, now.rate[0], dt)
        bias = self.pitch.hold() if "pitch" in blind else self.pitch(aim.pitch - now.pitch, now.rate[1], dt)
        return mix(self.max_strokes, thrust, yaw, lift, roll, bias)


CLIMB = 0.1
"""Climb by a pitch word of 1 at 0.4 m/s, m/s."""
