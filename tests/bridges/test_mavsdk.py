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
                content: dict[str, Any] = json.loads(line)
                return content
        raise AssertionError("the station ended")

    def until(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What it finds out once that fits."""
        observed: list[dict[str, Any]] = []

        def look() -> bool:
            observed.append(self())
            return "missing" not in observed[-1] and fits(observed[-1])

        try:
            wait(look)
        except AssertionError:
            raise AssertionError(f"it saw last: {observed[-1]}") from None
        return observed[-1]


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


def on_the_ground(observed: dict[str, Any]) -> bool:
    return bool(
        (observed["latitude_deg"], observed["longitude_deg"]) == pytest.approx((47.0, 8.0), abs=1e-6)
        and (observed["altitude_m"], observed["height_m"]) == pytest.approx((400.05, 0.05), abs=1e-3)
        and (observed["roll_deg"], observed["pitch_deg"], observed["yaw_deg"])
        == pytest.approx((0.0, 0.0, 90.0), abs=1e-3)
        and observed["velocity_m_s"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
        and (observed["in_air"], observed["armed"], observed["flight_mode"]) == (False, False, "MANUAL")
        and observed["landed_state"] == "ON_GROUND"
    )


def test_it_finds_the_robot_and_arms_it(sight: Callable[[int], Sight]) -> None:
    port = reserve_ports()
    plant = Flyer()
    built = Mavlink(stations=(f"127.0.0.1:{port}",), channels=(AXIS,), home=HOME, autopilot=12, vehicle_type=2)
    with Sailing(built, mode="realtime", plant=plant):
        station = sight(port)
        # each value comes in a message of its own: the arrival of one does not prove that of another
        result = station.until(on_the_ground)
        assert result["version"] == [int(number) for number in re.findall(r"\d+", rtmms.__version__)[:3]]
        assert result["identity"].strip("0")
        station("arm")
        station.until(lambda observed: bool(observed["armed"]))
        plant.height = 3.0
        station.until(lambda observed: bool(observed["in_air"]) and observed["landed_state"] == "IN_AIR")
        station("disarm")
        station.until(lambda observed: not observed["armed"])
