"""MAVSDK, a library of ground stations, beside the bridge `mavlink`: what it finds out, and how it arms."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms_bridges.mavlink import Mavlink
from rtmms_bridges.motion.frames import Home
from tests.bridges.harness import ROOT, wait
from tests.bridges.swimmer import Sailing
from tests.bridges.test_mavlink import Flyer
from tests.ports import reserve_ports

pytest.importorskip("mavsdk.plugins", reason="needs MAVSDK 4 or newer: pip install mavsdk (as .ci/run does)")
pytestmark = pytest.mark.full

HOME = Home(lat_deg=47.0, lon_deg=8.0, alt_m=400.0)
AXIS = ChannelMapping(channel="z", actuator="thrust", scale=2.0)


class Sight:
    """A station of MAVSDK in a process of its own: its threads end with it."""

    def __init__(self, port: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bridges.mavsdk_station", str(port)], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, request: str = "look") -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise AssertionError("the station ended")

    def until(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What it finds out once that fits."""
        seen: list[dict[str, Any]] = []

        def look() -> bool:
            seen.append(self())
            return "missing" not in seen[-1] and fits(seen[-1])

        try:
            wait(look)
        except AssertionError:
            raise AssertionError(f"it saw last: {seen[-1]}") from None
        return seen[-1]


@pytest.fixture
def sight() -> Iterator[Callable[[int], Sight]]:
    stations: list[Sight] = []

    def start(port: int) -> Sight:
        stations.append(Sight(port))
        return stations[-1]

    yield start
    for station in stations:
        station.process.kill()
        station.process.communicate()


def on_the_ground(seen: dict[str, Any]) -> bool:
    return bool(
        (seen["latitude_deg"], seen["longitude_deg"]) == pytest.approx((47.0, 8.0), abs=1e-6)
        and (seen["altitude_m"], seen["height_m"]) == pytest.approx((400.05, 0.05), abs=1e-3)
        and (seen["roll_deg"], seen["pitch_deg"], seen["yaw_deg"]) == pytest.approx((0.0, 0.0, 90.0), abs=1e-3)
        and seen["velocity_m_s"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
        and (seen["in_air"], seen["armed"], seen["flight_mode"]) == (False, False, "MANUAL")
        and seen["landed_state"] == "ON_GROUND"
    )


def test_it_finds_the_robot_and_arms_it(sight: Callable[[int], Sight]) -> None:
    port = reserve_ports()
    plant = Flyer()
    made = Mavlink(stations=(f"127.0.0.1:{port}",), channels=(AXIS,), home=HOME, autopilot=12, vehicle_type=2)
    with Sailing(made, mode="realtime", plant=plant):
        station = sight(port)
        # each value comes in a message of its own: the arrival of one does not prove that of another
        found = station.until(on_the_ground)
        assert found["version"] == [int(number) for number in re.findall(r"\d+", rtmms.__version__)[:3]]
        assert found["identity"].strip("0")
        station("arm")
        station.until(lambda seen: bool(seen["armed"]))
        plant.height = 3.0
        station.until(lambda seen: bool(seen["in_air"]) and seen["landed_state"] == "IN_AIR")
        station("disarm")
        station.until(lambda seen: not seen["armed"])
