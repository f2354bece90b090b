"""What else ArduPilot reads, found by its search where it looks, and never in another key's place."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import rtmms
from rtmms.plant.protocol import Channel
from rtmms_bridges.ardupilot import write
from rtmms_bridges.autopilot.sitl_keys import KEYS, WIND, KeyReader, nested
from rtmms_bridges.motion.imu import Imu
from tests.bridges.autopilot.sitl import read
from tests.bridges.test_ardupilot import MOTION


@pytest.mark.parametrize("chosen", [name for name in KEYS if name not in ("rc_10", "rc_11", "rc_12")])
def test_a_key_alone_is_taken_for_no_other(chosen: str) -> None:
    message = read(
        write(2.5, MOTION, Imu(), 0.0, nested({chosen: [1.0, 2.0, 3.0] if chosen == WIND else 9.0})).decode()
    )
    assert {name for name, (_, key) in KEYS.items() if key in message} == {chosen}


def test_some_keys_together_are_taken_for_no_others() -> None:
    values = {"airspeed": 3.0, "windvane_direction": 0.5, "rc_1": 1500.0, "rc_12": 1200.0, "battery_current": 2.0}
    message = read(write(2.5, MOTION, Imu(), 0.0, nested(values)).decode())
    assert {name: message[key] for name, (_, key) in KEYS.items() if key in message} == values


def test_wind_in_either_frame_is_given_north_east_down() -> None:
    def plant(frame: str) -> Any:
        return SimpleNamespace(outputs=(Channel("current", "m/s", (3,), frame), Channel("depth", "m")))

    state: Any = SimpleNamespace(outputs={"current": [1.0, 2.0, 0.5], "depth": 3.0})
    quarter = replace(MOTION, attitude=(math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)))  # x of the body is y of the world
    names = {"velocity_wind": "current", "rng_2": "depth"}
    assert KeyReader(names, plant("world"), math.pi / 2)(state, quarter) == {
        "rng_2": 3.0, "velocity_wind": pytest.approx((2.0, 1.0, -0.5)),
    }  # fmt: skip
    result = KeyReader(names, plant("body"), math.pi / 2)(state, quarter)
    assert result["velocity_wind"] == pytest.approx((1.0, -2.0, -0.5))
    with pytest.raises(
        rtmms.ModelError, match=r"more.velocity_wind: expected an output of the shape \(3,\), got 'depth'"
    ):
        KeyReader({"velocity_wind": "depth"}, plant("world"), 0.0)
    with pytest.raises(rtmms.ModelError, match=r"more.velocity_wind: .*'wind'"):
        KeyReader({"velocity_wind": "wind"}, plant("world"), 0.0)
