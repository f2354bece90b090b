"""The nonholonomic connection: wheels that roll, axles that do not slide, on the same faces as the other kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rtmms
from rtmms.locomotion import Connection, Path, holonomy, reconstruct
from rtmms.locomotion.group import bracket
from rtmms.locomotion.reconstruction import net_pose
from rtmms.robots.wheeled import snake, unicycle
from tests.locomotion.bodies import loop
from tests.locomotion.test_holonomy import apart

P = unicycle.Unicycle()


def rectangle(s: float, turn: float) -> np.ndarray:
    """Wheel angles: s ahead, a turn to the left, s back, the turn back."""
    a, b = s / P.wheel_m, turn * P.half_track_m / P.wheel_m
    return np.array([[0.0, 0.0], [a, a], [a - b, a + b], [-b, b], [0.0, 0.0]])


@pytest.mark.parametrize(("s", "turn"), [(0.7, 0.9), (0.3, -2.0), (1.5, 4.0)])
def test_the_unicycle_s_rectangle(s: float, turn: float) -> None:
    net = holonomy(unicycle.describe(P), rectangle(s, turn), "nonholonomic")
    np.testing.assert_allclose(net, [s * (1.0 - math.cos(turn)), -s * math.sin(turn), 0.0], atol=1e-12)


def test_paces_ways_back_and_scallops() -> None:
    one, path = Connection(unicycle.describe(P), "nonholonomic"), Path.fourier(4.0 * loop(1))
    assert one.planar
    same = path.retimed(lambda t: t + 0.9 * np.sin(t), lambda t: 1.0 + 0.9 * np.cos(t), path.breaks)
    assert apart(net_pose(one, path), net_pose(one, same)) < 1e-10
    np.testing.assert_allclose(holonomy(one, [[0.0, 0.0], [2.0, 3.0], [0.0, 0.0]]), 0.0, atol=1e-12)
    motion = reconstruct(one, path)
    assert motion.work > 0.0
    a, b = one.model.ground.rows.shape
    assert a > 3
    assert b > 6


def test_its_curvature_is_the_bracket_alone() -> None:
    """A does not depend on the wheels' angles: dA is 0, and what is left parks the car."""
    one, r = Connection(unicycle.describe(P), "nonholonomic"), np.array([0.3, 0.5])
    np.testing.assert_allclose(one.curvature(r, bracketed=False), 0.0, atol=1e-15)
    form = one.form(r)
    np.testing.assert_allclose(one.curvature(r)[:, 0, 1], -bracket(form[:, 0], form[:, 1])[[0, 1, 5]], atol=1e-15)
    assert abs(one.curvature(r)[1, 0, 1]) > 1e-3


def test_redundant_contacts_that_contradict_the_rate_are_told_by_joint() -> None:
    one = Connection(snake.describe(snake.Snake()), "nonholonomic")
    r = np.linspace(0.1, 0.4, one.shape_size)
    with pytest.raises(rtmms.ModelError, match=r"contradict the contacts by .* m/s; let .* follow"):
        one.twist(r, np.ones(one.shape_size))
