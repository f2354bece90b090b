"""What plans are made of: gait parameters against the closed form of a gait, knots against interpolation; methods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.planning.planner import METHODS, CrossEntropy, Knots
from rtmms.planning.strokes import Strokes
from rtmms.planning.waves import Waves
from rtmms.plant.protocol import Channel

RATIO = 0.185 / 0.215


def strokes(rows: int = 1) -> Strokes:
    return Strokes(RATIO, 1.2, 0.5, rows, 2.0)


def test_variables_that_stay_are_a_gait() -> None:
    parts = strokes()
    plan, state = parts.home[None].copy(), parts.start()
    plan[0, 0, 5:7] = 0.05
    state[1:] = plan[0, 0]
    commands, end = parts.commands(plan, state, 0.0, 200, 0.01)
    theta = 2.0 * math.pi * 0.5 * 0.01 * np.arange(1, 201)
    amplitude, lead = plan[0, 0, 1], plan[0, 0, 3]
    front = math.asin(RATIO * math.sin(amplitude)) * np.sin(theta + lead) + 0.05
    np.testing.assert_allclose(commands[0, :, 0], front, atol=1e-12)
    np.testing.assert_allclose(commands[0, :, 3], amplitude * np.sin(theta) - 0.05, atol=1e-12)
    assert end[0] == pytest.approx(2.0 * math.pi)


def test_a_plan_goes_on_where_it_was_left() -> None:
    """In one piece or in two, with targets that move within the horizon, it makes the same commands."""
    parts = strokes(3)
    plan = np.random.default_rng(1).uniform(parts.lower, parts.upper, (1, 3, 9))
    whole, _ = parts.commands(plan, parts.start(), 0.0, 60, 0.02)
    first, state = parts.commands(plan, parts.start(), 0.0, 25, 0.02)
    second, _ = parts.commands(plan, state, 25 * 0.02, 35, 0.02)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, atol=1e-13)


def test_a_shifted_plan_is_the_same_later() -> None:
    parts = strokes(3)
    plan = np.random.default_rng(1).uniform(parts.lower, parts.upper, (3, 9))
    later = parts.shifted(plan, 0.5)
    np.testing.assert_allclose(later[0], 0.5 * (plan[0] + plan[1]))
    np.testing.assert_allclose(later[2], plan[2])
    np.testing.assert_array_equal(strokes().shifted(plan[:1], 0.5), plan[:1])


def test_rods_stay_within_their_limit() -> None:
    parts = Strokes(RATIO, 0.4, 0.5, 1, 2.0)
    plan = np.tile(parts.upper, (1, 1, 1))
    commands, _ = parts.commands(plan, parts.start(), 0.0, 300, 0.02)
    assert np.abs(commands).max() == pytest.approx(0.4)


def two() -> tuple[Channel, ...]:
    return Channel("a", "N", (), "", -1.0, 1.0), Channel("b", "N", (), "", 0.0, 10.0)


def test_knots_are_straight_lines_held_after_the_last() -> None:
    parts = Knots(two(), 3, 1.0, np.array([0.0, 20.0]))
    assert parts.home[0].tolist() == [0.0, 10.0]  # within the limits
    plan = np.array([[[0.0, 0.0], [1.0, 5.0], [-1.0, 10.0]]])
    commands, _ = parts.commands(plan, parts.start(), 0.0, 12, 0.125)
    times = 0.125 * np.arange(1, 13)
    np.testing.assert_allclose(commands[0, :, 0], np.interp(times, [0.0, 0.5, 1.0], plan[0, :, 0]))
    later, _ = parts.commands(parts.shifted(plan[0], 0.5)[None], parts.start(), 0.0, 4, 0.125)
    np.testing.assert_allclose(later[0], commands[0, 4:8])
    alone, _ = Knots(two(), 1, 1.0, np.zeros(2)).commands(plan[:, :1], parts.start(), 0.0, 4, 0.125)
    assert alone.shape == (1, 4, 2)


def test_knots_of_mixed_variables_are_those_of_their_commands() -> None:
    mixing = np.array([[1.0, 1.0], [1.0, -1.0]])
    plain, mixed = (
        Knots(two(), 3, 1.0, np.array([0.5, 20.0])),
        Knots(two(), 3, 1.0, np.array([0.5, 20.0]), mixing=mixing),
    )
    plans = np.stack([mixed.home, mixed.home + 0.1])
    (first, moved), _ = mixed.commands(plans, mixed.start(), 0.0, 4, 0.25)
    np.testing.assert_allclose(first, plain.commands(plain.home[None], plain.start(), 0.0, 4, 0.25)[0][0])
    np.testing.assert_allclose(moved - first, np.tile([0.2, 0.0], (4, 1)), atol=1e-12)
    corners = np.array([[a, b] for a in (plain.lower[0], plain.upper[0]) for b in (plain.lower[1], plain.upper[1])])
    parts = np.linalg.solve(mixing, corners.T).T  # each command can be reached
    np.testing.assert_allclose(parts.min(axis=0), mixed.lower)
    np.testing.assert_allclose(parts.max(axis=0), mixed.upper)
    far, _ = mixed.commands(np.full((1, 3, 2), 1e6), mixed.start(), 0.0, 4, 0.25)
    assert (far <= plain.upper).all()


def test_knots_need_limits() -> None:
    with pytest.raises(rtmms.ModelError, match="actuator 'a': expected a lower and an upper limit"):
        Knots((Channel("a", "N"),), 2, 1.0, np.zeros(1))


@pytest.mark.parametrize("name", METHODS)
def test_methods_find_the_least_cost(name: str) -> None:
    """Of a bowl whose bottom lies two scales away from where they begin."""
    parts = Knots(two(), 2, 1.0, np.array([0.0, 5.0]))
    goal = np.array([0.4, 7.0])
    method, mean = METHODS[name](parts, 3), parts.home.copy()
    for _ in range(40):
        tried = method.candidates(mean, 32)
        costs = np.sum(((tried - goal) / parts.scale) ** 2, axis=(1, 2))
        costs[5] = math.inf
        mean = method.mean(tried, costs, mean)
    assert np.abs((mean - goal) / parts.scale).max() < 0.5
    assert ((parts.lower <= mean) & (mean <= parts.upper)).all()


@pytest.mark.parametrize("name", METHODS)
def test_where_all_candidates_fail_the_plan_stays(name: str) -> None:
    parts = strokes()
    method: Any = METHODS[name](parts, 0)
    mean = parts.home + np.where(parts.scale > 0.0, 0.01, 0.0)
    tried = method.candidates(mean, 16)
    np.testing.assert_array_equal(tried[0], mean)
    assert method.mean(tried, np.full(16, math.inf), mean) is mean


def test_a_plan_of_the_library_is_taken_whole() -> None:
    parts = strokes()
    method = CrossEntropy(parts, 0)
    tried = method.candidates(parts.home + 0.01, 32)
    costs = np.ones(32)
    costs[2] = 0.0
    np.testing.assert_array_equal(method.mean(tried, costs, parts.home), parts.library[1])


def waves(rows: int = 2) -> Waves:
    """Of three links with yaw, pitch and roll."""
    return Waves(
        (0, 3, 6), (1, 4, 7), 9, growth=0.2, lag=0.5, amplitude=0.1, frequency_hz=0.8, limit=1.5, rows=rows,
        horizon_s=2.5,
    )  # fmt: skip


def test_variables_of_a_wave_that_stay_run_along_the_chain() -> None:
    parts = waves(1)
    plan, state = np.array([[[0.1, 0.02, -0.03]]]), np.array([0.0, 0.1, 0.02, -0.03])
    commands, end = parts.commands(plan, state, 0.0, 125, 0.01)
    theta = 2.0 * math.pi * 0.8 * 0.01 * np.arange(1, 126)
    for i, joint in enumerate((0, 3, 6)):
        share = math.exp(0.2 * (i - 2))
        np.testing.assert_allclose(commands[0, :, joint], 0.02 + 0.1 * share * np.sin(theta - 0.5 * i), atol=1e-12)
        np.testing.assert_allclose(commands[0, :, joint + 1], -0.03, atol=1e-12)
    assert not commands[..., 2::3].any()
    np.testing.assert_allclose(end, [2.0 * math.pi, 0.1, 0.02, -0.03])


def test_a_plan_of_a_wave_goes_on_where_it_was_left() -> None:
    parts = waves()
    plan = np.random.default_rng(1).uniform(parts.lower, parts.upper, (2, 2, 3))
    whole, _ = parts.commands(plan, parts.start(), 0.0, 60, 0.02)
    first, state = parts.commands(plan[:1], parts.start(), 0.0, 25, 0.02)
    second, _ = parts.commands(plan[:1], state, 25 * 0.02, 35, 0.02)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1)[0], whole[0], atol=1e-13)
    np.testing.assert_allclose(parts.shifted(plan[0], 1.25)[0], 0.5 * (plan[0, 0] + plan[0, 1]))
