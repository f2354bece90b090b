"""Displacements between poses: the inverse of a move, up to half a turn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rtmms.plant.coordinates import displace_pose, displacement


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, 3.0, math.pi - 1e-6, math.pi - 1e-9, math.pi])
def test_a_displacement_is_that_of_the_move(angle: float) -> None:
    chance = np.random.default_rng(5)
    for _ in range(50):
        axis, quaternion = chance.normal(size=3), chance.normal(size=4)
        move = np.concatenate([chance.normal(size=3), angle * axis / np.linalg.norm(axis)])
        pose = np.concatenate([chance.normal(size=3), quaternion / np.linalg.norm(quaternion)])
        result = displacement(pose, displace_pose(pose, move))
        np.testing.assert_allclose(result[:3], move[:3], atol=1e-12)
        assert np.linalg.norm(result[3:]) == pytest.approx(angle, abs=1e-7)
        same = min(
            float(np.linalg.norm(result[3:] - sign * move[3:])) for sign in ((1.0, -1.0) if angle > 3.1 else (1.0,))
        )
        assert same < 1e-5, "half a turn is the same about both directions of its axis"
