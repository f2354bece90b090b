"""A pilot with a remote control for Betaflight's simulator: arms, climbs, holds, turns by 90 deg, lands, disarms.

rtmms run quadrotor --controller none --mode realtime --duration 600 --bridge betaflight:rc_listen=9005
obj/betaflight_4.6.0_SITL
python examples/quadrotor/betaflight_pilot.py

Betaflight holds the attitude that the sticks ask for (its mode ANGLE); the pilot sees the robot, and moves the sticks.
Channels: roll, pitch, throttle, yaw, the switch that arms and that of ANGLE, as betaflight_quadrotor.txt has them.
"""

from __future__ import annotations

import argparse
import math
import socket
import struct
from collections.abc import Callable, Sequence
from time import monotonic

import numpy as np

import rtmms
from rtmms.base.attitude import rotate

WAIT_S = 2.0
"""Time before the pilot tries to arm, s.

Betaflight calibrates its gyroscope for ten seconds or more and refuses to arm until then: the pilot tries again.
"""
ARMED_S = 1.0
"""Time that the switch is on before the pilot climbs, or waits for the next try, s."""
CLIMB_M_S = 0.5
"""Speed of the climb, m/s."""
TURN_S = 12.0
"""Time from the turn to the descent, s."""
DESCENT_M_S = 0.3
"""Speed of the descent, m/s."""
IDLE_RAD_S = 20.0
"""Motors that turn faster are armed ones."""
HOVER_THROTTLE = 0.587
"""Throttle with which the quadrotor hovers."""
MAX_TILT = math.radians(10.0)
"""Largest tilt that the pilot asks for, rad."""
ANGLE_LIMIT = math.radians(60.0)
"""Attitude at the end of a stick, as Betaflight's angle_limit has it."""
YAW_RATE = math.radians(20.0)
"""Turn that the pilot asks for at most, rad/s."""
FULL_YAW_RATE = math.radians(70.0)
"""Turn at the end of the stick by Betaflight's rates, in the middle of the stick's way, rad/s."""


class Pilot:
    """Sticks for a flight: climb to a height over the start, hold for a time, turn by 90 deg, hold again, land.

    Parameters
    ----------
    height_m : float
        Height over the start.
    hold_s : float
        Time at that height, before the turn.
    """

    def __init__(self, height_m: float, hold_s: float) -> None:
        self.height_m, self.hold_s = height_m, hold_s
        self._begin(0.0, (0.0, 0.0, 0.0))
        self._time = math.inf

    def _begin(self, time: float, position: Sequence[float]) -> None:
        """Begin a flight at this time and place."""
        self.phase, self.start = "waits", position
        self._since = self._time = time
        self._push = 0.0

    def sticks(
        self, time: float, position: Sequence[float], quaternion: Sequence[float], velocity: Sequence[float],
        motors: Sequence[float],
    ) -> list[int]:  # fmt: skip
        """Return the 16 channels, us.

        Parameters
        ----------
        time : float
            Time of the plant, s.
        position : sequence of float
            Position, m, world.
        quaternion : sequence of float
            Attitude (w, x, y, z), body to world.
        velocity : sequence of float
            Velocity, m/s, body.
        motors : sequence of float
            Speeds of the motors, rad/s.
        """
        if time < self._time:  # the first state, or the plant began anew
            self._begin(time, position)
        lapse, self._time = min(0.1, time - self._time), time
        vx, vy, vz = rotate(quaternion, velocity)
        w, x, y, z = quaternion
        yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        height = position[2] - self.start[2]
        target, rate = self._target(time - self._since, height, min(motors) > IDLE_RAD_S)
        if self.phase in ("waits", "landed"):
            return self._channels(0.0, 0.0, 0.0, 0.0, armed=False)
        if self.phase == "arms":
            return self._channels(0.0, 0.0, 0.0, 0.0, armed=True)
        error = target - height
        if abs(error) < 0.3:
            self._push = max(-2.0, min(2.0, self._push + 1.0 * error * lapse))
        thrust = 1.0 + (4.0 * error + 4.5 * (rate - vz) + self._push) / 9.81
        ax = 1.0 * (self.start[0] - position[0]) - 1.6 * vx
        ay = 1.0 * (self.start[1] - position[1]) - 1.6 * vy
        forward, left = math.cos(yaw) * ax + math.sin(yaw) * ay, math.cos(yaw) * ay - math.sin(yaw) * ax
        heading = math.pi / 2.0 if self.phase in ("turns", "lands") else 0.0
        off = math.remainder(heading - yaw, 2.0 * math.pi)
        throttle = HOVER_THROTTLE * math.sqrt(max(0.1, thrust))
        return self._channels(-left / 9.81, forward / 9.81, throttle, off, armed=True)

    def _target(self, since: float, height: float, is_armed: bool) -> tuple[float, float]:
        """Height and climb that the phase asks for, m and m/s; the next phase where this one is over."""
        top = self.height_m
        if self.phase == "waits":
            return self._next("arms", since >= WAIT_S, 0.0)
        if self.phase == "arms":
            return self._next("climbs" if is_armed else "waits", since >= ARMED_S, 0.0)
        if self.phase == "climbs":
            now = min(top, CLIMB_M_S * since)
            return self._next("holds", since >= top / CLIMB_M_S + 4.0, now, CLIMB_M_S if now < top else 0.0)
        if self.phase == "holds":
            return self._next("turns", since >= self.hold_s, top)
        if self.phase == "turns":
            return self._next("lands", since >= TURN_S, top)
        return self._next("landed", self.phase == "landed" or height < 0.01, top - DESCENT_M_S * since, -DESCENT_M_S)

    def _next(self, phase: str, is_over: bool, height: float, rate: float = 0.0) -> tuple[float, float]:
        if is_over and phase != self.phase:
            self.phase, self._since = phase, self._time
        return height, rate

    @staticmethod
    def _channels(roll: float, pitch: float, throttle: float, off: float, *, armed: bool) -> list[int]:
        """Pulses, us, for roll (right) and pitch (forward), rad, throttle, 0 to 1, and a turn to the left, rad."""
        tilts = [500.0 * max(-MAX_TILT, min(MAX_TILT, angle)) / ANGLE_LIMIT for angle in (roll, pitch)]
        turn = 500.0 * max(-YAW_RATE, min(YAW_RATE, off)) / FULL_YAW_RATE
        sticks = [1500 + tilts[0], 1500 + tilts[1], 1000 + 1000 * min(0.9, throttle), 1500 - turn]
        return [*(round(stick) for stick in sticks), 1800 if armed else 1000, 1800, *[1000] * 10]


def fly(
    height_m: float = 2.0, hold_s: float = 20.0, port: int = 9005,
    on_phase: Callable[[str], None] = lambda phase: None, limit_s: float = 600.0,
) -> tuple[list[float], float]:  # fmt: skip
    """Fly until the robot has landed.

    Parameters
    ----------
    height_m, hold_s : float
        As those of `Pilot`.
    port : int
        Port of this machine that gets the channels.
    on_phase : callable
        Called with the name of each phase.
    limit_s : float
        Time after which the flight ends with an error, s of wall time.

    Returns
    -------
    tuple
        Heights over the start in the hold, m, and the heading after the turn, deg.
    """
    pilot = Pilot(height_m, hold_s)
    heights: list[float] = []
    turned = 0.0
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names = ("position", "quaternion", "velocity", "motor")
    phase, begun = "", monotonic()
    with rtmms.connect(name="pilot", outputs=names, timeout_s=300.0) as link:
        for state in link:
            position, quaternion, velocity, motors = (np.asarray(state[name]).tolist() for name in names)
            channels = pilot.sticks(state.time, position, quaternion, velocity, motors)
            sender.sendto(struct.pack("<d16H", state.time, *channels), ("127.0.0.1", port))
            if pilot.phase != phase:
                phase = pilot.phase
                on_phase(phase)
                if phase == "holds":
                    heights = []
                if phase == "landed":
                    return heights, turned
            if monotonic() - begun > limit_s:
                raise SystemExit(f"the robot had not landed after {limit_s:g} s: the last phase was '{phase}'")
            if phase == "holds":
                heights.append(position[2] - pilot.start[2])
            if phase == "turns":
                w, x, y, z = quaternion
                turned = math.degrees(math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
    raise SystemExit("the plant ended before the robot had landed")


def main() -> None:
    """Fly as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--height", type=float, default=2.0, help="height over the start, m")
    parser.add_argument("--hold", type=float, default=20.0, help="time at that height, s")
    parser.add_argument("--port", type=int, default=9005, help="rc_listen of the bridge")
    arguments = parser.parse_args()
    heights, turned = fly(
        arguments.height, arguments.hold, arguments.port, lambda phase: print(phase, flush=True)
    )  # fmt: skip
    off = max(abs(height - arguments.height) for height in heights)
    print(f"height off by {100.0 * off:.1f} cm at most, turned by {turned:.1f} deg")


if __name__ == "__main__":
    main()
