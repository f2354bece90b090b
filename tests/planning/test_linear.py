"""Linear plans of a moth: the model of half strokes, and the quadratic programme over its knots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import rtmms
from rtmms.planning.linear import LinearPlanner, StrokeMap, lines, stroke_map

HALF = 20
PLACE = np.zeros(3)


@pytest.fixture(scope="module")
def moth() -> Any:
    return rtmms.load("moth", dt=1e-3)


@pytest.fixture(scope="module")
def linear(moth: Any) -> StrokeMap:
    return stroke_map(moth, HALF)


def mirrored(k: int) -> np.ndarray:
    """Left and right exchanged, of x by its names: body y, roll and yaw change sign, joints and filters their side."""
    return np.array([1.0, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1])[:k]


def test_it_predicts_twenty_half_strokes_of_the_full_model(moth: Any, linear: StrokeMap) -> None:
    rng = np.random.default_rng(0)
    knots = 0.01 * rng.standard_normal((22, 4))
    knots[0] = 0.0
    moth.reset()
    x = np.zeros(len(linear.coordinates.names))
    for j in range(20):
        x = linear.after(j % 2, x, knots[j : j + 3])
        for command in lines(knots[j : j + 3], HALF):
            moth.step(command)
        if j in (0, 9, 19):
            true = linear.off((j + 1) % 2, moth.present()[0], 0.0, PLACE)
            assert np.linalg.norm((x - true)[:12]) < 0.03 * np.linalg.norm(true[:12])
    moth.reset()


def test_commands_go_in_lines_from_knot_to_knot() -> None:
    result = np.concatenate([lines(np.array([[0.0], [1.0], [3.0]]), 4), lines(np.array([[1.0], [3.0], [3.0]]), 4)])
    np.testing.assert_allclose(result[:, 0], [0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.0, 3.0])


def test_like_knots_on_both_sides_move_it_in_its_plane_of_symmetry(linear: StrokeMap) -> None:
    """Of the commands (right.offset, right.gain, left.offset, left.gain) the mirror image is (-l.o, l.g, -r.o, r.g)."""
    for half in linear.halves:
        for b in (half.before, half.between, half.after):
            image = mirrored(12)[:, None] * b[:12, [2, 3, 0, 1]] * [-1.0, 1.0, -1.0, 1.0]
            np.testing.assert_allclose(b[:12], image, atol=2e-5 * np.abs(b[:12]).max())


def test_places_and_headings_are_all_alike(moth: Any, linear: StrokeMap) -> None:
    state = linear.orbit[1].copy()
    moth.put(state, HALF)
    moth.place(
        position=np.array([1.0, 2.0, 3.0]), quaternion=np.array([np.cos(0.4), 0.0, 0.0, np.sin(0.4)]),
        velocity=np.zeros(3), angular_velocity=np.zeros(3),
    )  # fmt: skip
    here = moth.present()[0]
    psi = linear.yaw(1, here)
    assert psi == pytest.approx(0.8, abs=1e-9)
    x = linear.off(1, here, psi, np.array([1.0, 2.0, 3.0]))
    moth.put(state, HALF)
    moth.place(
        position=np.zeros(3), quaternion=np.array([1.0, 0.0, 0.0, 0.0]), velocity=np.zeros(3),
        angular_velocity=np.zeros(3),
    )  # fmt: skip
    np.testing.assert_allclose(x, linear.off(1, moth.present()[0], 0.0, PLACE), atol=1e-12)
    moth.reset()


def test_its_feedback_is_stable_and_without_limits_the_plan_is_that_feedback(moth: Any, linear: StrokeMap) -> None:
    planner = LinearPlanner(linear, 10, np.full(4, -1e3), np.full(4, 1e3))
    assert planner.poles[0] < 1.0
    state = linear.orbit[0].copy()
    state[linear.coordinates.pose + 1] += 0.01
    zero = np.zeros(4)
    plan = planner.plan(0, state, zero, zero, PLACE, 0.0)
    x = linear.off(0, state, 0.0, PLACE)
    np.testing.assert_allclose(plan.variables[0], -planner.gain[0] @ np.concatenate([x, zero, zero]), atol=1e-9)
    np.testing.assert_allclose(plan.path[0], [0.0, 0.01, 0.0], atol=1e-12)


def test_within_limits_it_is_the_least_of_the_box_by_scipy(moth: Any, linear: StrokeMap) -> None:
    planner = LinearPlanner(linear, 8, np.full(4, -0.02), np.full(4, 0.02))
    state = linear.orbit[1].copy()
    state[linear.coordinates.pose : linear.coordinates.pose + 3] += 0.05, 0.1, -0.05
    plan = planner.plan(1, state, np.zeros(4), np.zeros(4), PLACE, 0.0)
    z = np.concatenate([linear.off(1, state, 0.0, PLACE), np.zeros(8)])
    # 1/2 v'Hv + g'v = 1/2 |L'v + L^-1 g|^2 + ...
    lower = np.linalg.cholesky(planner._h[1])
    result: Any = lsq_linear(lower.T, -np.linalg.solve(lower, planner._cross[1] @ z), (-0.02, 0.02), tol=1e-14)
    assert np.isclose(np.abs(result.x), 0.02).sum() > 4
    np.testing.assert_allclose(plan.variables.ravel(), result.x, atol=1e-6)


def test_the_wind_is_found_and_how_to_stay_in_it_is_consistent(moth: Any, linear: StrokeMap) -> None:
    planner = LinearPlanner(linear, 4, np.full(4, -0.4), np.full(4, 0.4))
    wind, x = np.array([0.1, -0.2, 0.05]), np.zeros(len(linear.coordinates.names))
    for j in range(400):
        phase = j % 2
        planner.observer.learn(phase, linear.halves[phase].wind @ wind, x, x)
    np.testing.assert_allclose(planner.observer.wind, wind, atol=1e-9)
    np.testing.assert_allclose(planner.observer.remaining_error[0], 0.0, atol=1e-6)
    first, second = planner.staying()
    k, n = len(x), 4
    d = planner.observer.disturbance(1)
    again = linear.after(1, second[:k], np.array([second[k : k + n], second[k + n :], first[k + n :]])) + d
    off = again - first[:k]
    assert np.linalg.norm(off[:3]) < 1e-7
    assert np.linalg.norm(off[6:]) < 1e-6


def test_a_model_off_its_orbit_is_refused() -> None:
    with pytest.raises(rtmms.ModelError, match="expected a model in the same state after each stroke"):
        stroke_map(rtmms.load("moth", dt=1e-3, start="rest"), HALF)
