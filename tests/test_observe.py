"""What `observe` returns stays what it was: of each robot and each composition, later steps and resets leave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import rtmms
from tests.test_settings import CASES, COMPOSITIONS, build, command_of


def assert_it_stays(plant: Any) -> None:
    plant.reset(0)
    outputs = plant.observe()
    stored: Mapping[str, Any] = {name: np.array(value) for name, value in outputs.items()}
    command = command_of(plant)
    for _ in range(20):
        plant.step(command)
        plant.observe()
    changed = [
        name for name, value in plant.observe().items() if not np.array_equal(value, stored[name], equal_nan=True)
    ]
    assert changed, "it moves"
    plant.reset(0)
    plant.observe()
    for name, value in stored.items():
        np.testing.assert_array_equal(outputs[name], value, err_msg=name)


@pytest.mark.parametrize("robot", CASES)
def test_of_each_robot_and_composition(robot: str) -> None:
    assert_it_stays(build(robot))
    for composed in COMPOSITIONS.values():
        try:
            whole = composed(build(robot))
        except rtmms.ModelError:  # no cheaper variants, no pose to sense
            continue
        assert_it_stays(whole)


@pytest.mark.full
def test_of_a_mujoco_model() -> None:
    pytest.importorskip("mujoco")
    assert_it_stays(rtmms.load("examples/mujoco/crawler.xml"))
