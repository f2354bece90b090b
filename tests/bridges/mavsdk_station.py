"""A ground station by MAVSDK: the program of the test. Prints what it finds out as a JSON object.

python -m tests.bridges.mavsdk_station PORT

Lines on standard input: `look` prints all values; `arm` and `disarm` ask for it and print all values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from mavsdk import ComponentType, Configuration, Mavsdk
from mavsdk.plugins.action import Action, ActionError, ActionResult
from mavsdk.plugins.info import Info
from mavsdk.plugins.telemetry import Telemetry

from tests.wire.bench import PATIENCE_S


def look(telemetry: Telemetry, info: Info) -> dict[str, Any]:
    place, attitude, velocity = telemetry.position(), telemetry.attitude_euler(), telemetry.velocity_ned()
    version = info.get_version()
    return {
        "latitude_deg": place.latitude_deg, "longitude_deg": place.longitude_deg,
        "altitude_m": place.absolute_altitude_m, "height_m": place.relative_altitude_m,
        "roll_deg": attitude.roll_deg, "pitch_deg": attitude.pitch_deg, "yaw_deg": attitude.yaw_deg,
        "velocity_m_s": [velocity.north_m_s, velocity.east_m_s, velocity.down_m_s],
        "in_air": bool(telemetry.in_air()), "landed_state": telemetry.landed_state().name,
        "armed": bool(telemetry.armed()), "flight_mode": telemetry.flight_mode().name,
        "version": [version.flight_sw_major, version.flight_sw_minor, version.flight_sw_patch],
        "identity": info.get_identification().hardware_uid,
    }  # fmt: skip


def ask(action: Callable[[], object]) -> None:
    """Ask until there is an answer: MAVSDK gives up after 2 s, and a busy machine takes longer."""
    end = monotonic() + PATIENCE_S
    while True:
        try:
            action()
            return
        except ActionError as fault:
            if fault.result is not ActionResult.TIMEOUT or monotonic() > end:
                raise


def main(port: int) -> None:
    station = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
    station.add_any_connection(f"udpin://127.0.0.1:{port}")
    end, system = monotonic() + PATIENCE_S, None
    while system is None:
        system = station.first_autopilot(3.0)
        if monotonic() > end:
            raise SystemExit("MAVSDK finds no autopilot")
    telemetry, info, action = Telemetry(system), Info(system), Action(system)
    for line in sys.stdin:
        if line.strip() == "arm":
            ask(action.arm)
        if line.strip() == "disarm":
            ask(action.disarm)
        sleep(0.1)  # MAVSDK has no call that waits for a new value: the test asks again
        try:
            result = look(telemetry, info)
        except Exception as fault:  # values that have not come yet
            result = {"missing": repr(fault)}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
