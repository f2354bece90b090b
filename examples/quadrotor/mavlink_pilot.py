"""A MAVLink pilot for PX4 and ArduCopter in a simulation: arms, climbs, holds, turns by 90 deg, lands, disarms.

rtmms run quadrotor --controller none --mode lockstep --duration 600 --bridge px4
PX4_SIM_MODEL=none_iris build/px4_sitl_default/bin/px4
python examples/quadrotor/mavlink_pilot.py

The pilot is a ground station: it sends heartbeats, commands and positions. The numbers that it prints are the plant's.
ArduCopter without MAVProxy: --link tcp:127.0.0.1:5760.
"""

from __future__ import annotations

import argparse
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ["MAVLINK20"] = "1"
import numpy as np
from pymavlink import mavutil

import rtmms

M = mavutil.mavlink
SET_MODE, CUSTOM = M.MAV_CMD_DO_SET_MODE, M.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
COPTER_GUIDED, PX4_LOITER, PX4_OFFBOARD = (4, 0), (4, 3), (6, 0)
"""Modes and their submodes, as MAV_CMD_DO_SET_MODE has them."""
USE_POSITION_AND_YAW = 0b100111111000
MAX_REFUSALS = 150
CLIMB_S, SETTLE_S, TURN_S, STEADY_S, LAND_S = 30.0, 10.0, 8.0, 3.0, 60.0
"""Longest time of each phase, s of the plant's clock."""


class Record(threading.Thread):
    """Records the time (s), position (m) and heading (rad, to the left) of the plant until its end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, list[float], float]] = []
        self.start()

    def run(self) -> None:
        with rtmms.connect(name="pilot", outputs=("position", "quaternion"), timeout_s=300.0) as link:
            for state in link:
                position, (w, x, y, z) = (np.asarray(state[name]).tolist() for name in ("position", "quaternion"))
                yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
                self.samples.append((state.time, position, yaw))

    @property
    def now(self) -> tuple[float, list[float], float]:
        while not self.samples and self.is_alive():
            time.sleep(0.05)
        return self.samples[-1]


class Autopilot:
    """Sends commands to the autopilot at the other end of a link, and stores its last message of each kind."""

    def __init__(self, link: str, record: Record) -> None:
        self._record, self._sent_at = record, 0.0
        self.last: dict[str, Any] = {}
        self.target: tuple[float, ...] = ()  # north, east, down (m) and heading (rad), sent ten times a second
        self._link = mavutil.mavlink_connection(link, source_system=255, retries=100)
        while "HEARTBEAT" not in self.last:
            self.receive()
        for name in ("LOCAL_POSITION_NED", "ATTITUDE", "GLOBAL_POSITION_INT"):
            self.command(M.MAV_CMD_SET_MESSAGE_INTERVAL, getattr(M, f"MAVLINK_MSG_ID_{name}"), 1e5)

    def receive(self) -> Any:
        """Send the messages that are due, and return the autopilot's next message."""
        if not self._record.is_alive():
            raise SystemExit("the plant ended before the robot had landed")
        if time.monotonic() - self._sent_at > 0.1:
            self._sent_at = time.monotonic()
            self._link.mav.heartbeat_send(M.MAV_TYPE_GCS, M.MAV_AUTOPILOT_INVALID, 0, 0, 0)
            if self.target:
                *place, yaw = self.target
                frame = (0, self._link.target_system, 1, M.MAV_FRAME_LOCAL_NED, USE_POSITION_AND_YAW)
                self._link.mav.set_position_target_local_ned_send(*frame, *place, 0, 0, 0, 0, 0, 0, yaw, 0)
        message = self._link.recv_match(blocking=True, timeout=0.05)
        if message is not None and message.get_srcComponent() == 1:
            self.last[message.get_type()] = message
            if message.get_type() == "STATUSTEXT":
                print(f"    {message.text}", flush=True)
        return message

    def command(self, number: int, *values: float) -> bool:
        """Send a command, and return whether the autopilot accepts it."""
        values = (*values, *(0.0,) * (7 - len(values)))
        self._link.mav.command_long_send(self._link.target_system, 1, number, 0, *values)
        begin = time.monotonic()
        while time.monotonic() - begin < 3.0:
            message = self.receive()
            if message is not None and message.get_type() == "COMMAND_ACK" and message.command == number:
                return bool(message.result == M.MAV_RESULT_ACCEPTED)
        return False

    def require(self, *commands: tuple[float, ...]) -> None:
        """Send the commands once a second until the autopilot accepts all."""
        for _ in range(MAX_REFUSALS):
            if all(self.command(round(number), *values) for number, *values in commands):
                return
            self.wait(1.0)
        raise SystemExit(f"the autopilot refused the commands {commands} {MAX_REFUSALS} times")

    def wait(self, limit_s: float, condition: Callable[[], bool] = lambda: False) -> bool:
        """Wait for a condition, and return whether it is true within a time of the plant's clock."""
        end = self._record.now[0] + limit_s
        while not condition() and self._record.now[0] < end:
            self.receive()
        return condition()


@dataclass
class Flight:
    """The plant's numbers: heights over the start and distance in the hold, turn to the right, time of arming."""

    heights_m: tuple[float, float]
    drift_m: float
    turned_deg: tuple[float, float]
    armed_s: float


def fly(
    link: str = "udpin:127.0.0.1:14550", height_m: float = 5.0, hold_s: float = 30.0,
    on_phase: Callable[[str], None] = lambda phase: print(phase, flush=True),
) -> Flight:  # fmt: skip
    """Fly until the robot has landed; `on_phase` gets the name of each phase."""
    pilot = Autopilot(link, record := Record())
    is_px4 = pilot.last["HEARTBEAT"].autopilot == M.MAV_AUTOPILOT_PX4
    on_phase("waits")
    pilot.require((SET_MODE, CUSTOM, *(PX4_LOITER if is_px4 else COPTER_GUIDED)), (M.MAV_CMD_COMPONENT_ARM_DISARM, 1))
    armed_s, (_, _, ground), _ = record.now
    start, yaw = pilot.last["LOCAL_POSITION_NED"], pilot.last["ATTITUDE"].yaw
    on_phase("climbs")
    anywhere, above = ((math.nan,) * 3, pilot.last["GLOBAL_POSITION_INT"].alt * 1e-3) if is_px4 else ((0.0,) * 3, 0.0)
    pilot.require((M.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, *anywhere, above + height_m))
    pilot.wait(CLIMB_S, lambda: record.now[1][2] - ground > 0.8 * height_m)
    pilot.target = (start.x, start.y, start.z - height_m, yaw)
    if is_px4:
        pilot.wait(1.0)
        pilot.require((SET_MODE, CUSTOM, *PX4_OFFBOARD))
    pilot.wait(SETTLE_S)
    on_phase("holds")
    first = len(record.samples)
    pilot.wait(hold_s)
    hold, before = [position for _, position, _ in record.samples[first:]], record.now[2]
    on_phase("turns")
    pilot.target = (*pilot.target[:3], yaw + math.pi / 2.0)
    pilot.wait(TURN_S)
    first = len(record.samples)
    pilot.wait(STEADY_S)
    turns = [math.degrees((before - yaw) % (2.0 * math.pi)) for _, _, yaw in record.samples[first:]]
    on_phase("lands")
    pilot.require((M.MAV_CMD_NAV_LAND,))
    pilot.target = ()
    if not pilot.wait(LAND_S, lambda: not pilot.last["HEARTBEAT"].base_mode & M.MAV_MODE_FLAG_SAFETY_ARMED):
        raise SystemExit(f"the autopilot has not disarmed within {LAND_S:g} s")
    heights, drift = [z - ground for _, _, z in hold], max(math.dist(place[:2], hold[0][:2]) for place in hold)
    return Flight((min(heights), max(heights)), drift, (min(turns), max(turns)), armed_s)


def main() -> None:
    """Fly as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--link", default="udpin:127.0.0.1:14550", help="link to the autopilot, as pymavlink has it")
    parser.add_argument("--height", dest="height_m", type=float, default=5.0, help="height over the start, m")
    parser.add_argument("--hold", dest="hold_s", type=float, default=30.0, help="time at that height, s")
    flight = fly(**vars(parser.parse_args()))
    print(f"armed at {flight.armed_s:.1f} s of the plant's clock")
    print("held {:.3f} to {:.3f} m".format(*flight.heights_m), f"drifted by {flight.drift_m:.2f} m", sep=", ")
    print("turned by {:.1f} to {:.1f} deg".format(*flight.turned_deg))


if __name__ == "__main__":
    main()
