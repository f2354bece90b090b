"""Several robots in one picture: each where it is, in the frame of the first one's body."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from rtmms.base.attitude import HOME, at
from rtmms.plant.protocol import Channel
from rtmms.view.scene import Picture
from rtmms.wire.protocol.received_state import PlantInfo

HULL = {"parts": [{"name": "hull", "body": 0, "kind": "box", "position": [0.5, 0.0, 0.0],
                   "quaternion": [1.0, 0.0, 0.0, 0.0], "size": [1.0, 0.2, 0.2]}]}  # fmt: skip
POSE = (Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"))
TURNED = [sqrt(0.5), 0.0, 0.0, sqrt(0.5)]


def info(*robots: str, prefix: str = "") -> PlantInfo:
    item = PlantInfo("boat", 1e-3, "free", None, None, (), POSE, shape=HULL)
    outputs = tuple(Channel(f"{name}.{prefix}{c.name}", c.unit, c.shape, c.frame) for name in robots for c in POSE)
    return PlantInfo("world", 1e-3, "free", None, None, (), outputs, robots=dict.fromkeys(robots, item))


def outputs(prefix: str = "") -> dict[str, Any]:
    return {
        f"one.{prefix}position": [1.0, 2.0, 3.0], f"one.{prefix}quaternion": TURNED,
        f"two.{prefix}position": [1.0, 4.0, 3.0], f"two.{prefix}quaternion": [1.0, 0.0, 0.0, 0.0],
    }  # fmt: skip


@pytest.mark.parametrize("message", ["", "truth."])
def test_each_is_where_it_is(message: str) -> None:
    picture = Picture(info("one", "two", prefix=message))
    assert picture.shape is not None
    drawn = picture.draw(outputs(message))
    assert drawn.pose == ((1.0, 2.0, 3.0), tuple(TURNED))
    frames = drawn.frames
    places = {}
    for solid in picture.shape.solids:
        within = at(frames.get(solid.frame, HOME), solid.centre)
        places[solid.name.partition(".")[0]] = at(drawn.pose, within)
    np.testing.assert_allclose(places["one"], [1.0, 2.5, 3.0], atol=1e-12)  # its x looks along y
    np.testing.assert_allclose(places["two"], [1.5, 4.0, 3.0], atol=1e-12)


def test_without_a_pose_nothing_is_drawn() -> None:
    plant = info("one", "two")
    lost = PlantInfo("world", 1e-3, "free", None, None, (), plant.outputs[:3], robots=plant.robots)
    assert Picture(lost).shape is None
