"""Iterative LQR: Riccati's gain on a linear plant, optimality within limits, swings, and what does not change."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.analysis.stages import Stages
from rtmms.planning.cost import CostSlopes
from rtmms.planning.ilqr import IterativeLqr
from rtmms.planning.planner import Knots
from tests.pendulum import Pendulum

Q = (3.0, 1.0, 0.2, 0.1)
"""Diagonal of the weights on the carts' places and speeds."""
R = (0.02, 0.05)
"""Diagonal of the weights on the carts' forces."""
END = (5.0, 4.0, 1.0, 1.0)
"""Diagonal of the weights on the last state."""


@rtmms.cost(outputs=("joint_position", "joint_velocity"))
def brought_home(state: Any, command: Any, time: float) -> float:
    q, v, u = state.joint_position, state.joint_velocity, command
    return 3.0 * q[0] ** 2 + q[1] ** 2 + 0.2 * v[0] ** 2 + 0.1 * v[1] ** 2 + 0.02 * u[0] ** 2 + 0.05 * u[1] ** 2  # type: ignore[no-any-return]


@brought_home.terminal
def at_home(state: Any) -> float:
    q, v = state.joint_position, state.joint_velocity
    return 5.0 * q[0] ** 2 + 4.0 * q[1] ** 2 + v[0] ** 2 + v[1] ** 2  # type: ignore[no-any-return]


def carts(limit: float = 1e3, dt: float = 0.05) -> Any:
    """Two carts on a line, the second on the first, on springs: linear."""
    block = m.Box(0.1, 0.1, 0.1, 1000.0)
    bodies = [m.Body(name, solids=[block]) for name in ("rail", "one", "two")]
    sliding: dict[str, Any] = {"type": "prismatic", "axis": (1.0, 0.0, 0.0)}
    joints = [
        m.Joint("first", "rail", "one", stiffness=3.0, damping=0.4, **sliding),
        m.Joint("second", "one", "two", stiffness=8.0, damping=0.1, **sliding),
    ]
    tree = rtmms.Mechanism("carts", bodies, joints, base="fixed", gravity=(0.0, 0.0, 0.0))
    return rtmms.TreePlant(tree, dt=dt, actuators=[m.JointTorque("first", limit), m.JointTorque("second", limit)])


def away(plant: Any) -> Any:
    """The carts out of place, on their way."""
    plant.reset()
    state = plant.present()[0]
    state[plant.coordinates().state_indices] = [0.4, -0.3, 0.2, 0.5]
    plant.put(state, 0)
    return plant


def planner(plant: Any, rows: int, horizon_s: float, **more: Any) -> IterativeLqr:
    return IterativeLqr(plant, Knots(plant.actuators, rows, horizon_s, np.zeros(2)), brought_home, **more)


STAGES = 12


def riccati(a: np.ndarray, b: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Gains, and the Hessian / 2 of the cost to go, of sum (x'Qx of the next state + u'Ru) / STAGES + x'END x."""
    p, gains = np.diag(END), []
    for _ in range(STAGES):
        w = p + np.diag(Q) / STAGES
        k = -np.linalg.solve(np.diag(R) / STAGES + b.T @ w @ b, b.T @ w @ a)
        p = a.T @ w @ (a + b @ k)
        gains.append(k)
    return gains[::-1], p


@pytest.mark.full
def test_one_iteration_on_a_linear_plant_is_riccatis() -> None:
    plant = away(carts())
    linear = rtmms.linearise(plant)
    gains, p = riccati(linear.a, linear.b)
    x = plant.present()[0][plant.coordinates().state_indices]
    result = planner(plant, STAGES + 1, STAGES * plant.dt, regularisation=0.0)
    expected = result.plan(np.zeros(0), 0.0)
    policy = result.policy
    assert policy is not None
    assert expected.iterations <= 2
    assert expected.least == pytest.approx(x @ p @ x, rel=1e-7)
    for t in range(STAGES):
        np.testing.assert_allclose(1e3 * policy.gain[t, :, :4], gains[t], atol=2e-6 * np.abs(gains[t]).max())
    np.testing.assert_allclose(policy.gain[:, :, 4:], 0.0, atol=1e-9)  # a command that is held knows none before
    state = x
    for t in range(STAGES):
        u = gains[t] @ state
        np.testing.assert_allclose(expected.variables[t + 1], u, atol=1e-5 * np.abs(gains[0] @ x).max())
        state = linear.a @ state + linear.b @ u


def objective(iterative_lqr: IterativeLqr, knots: np.ndarray) -> float:
    return iterative_lqr.total(iterative_lqr.stages.roll(knots))


@pytest.mark.parametrize("change", [0.0, 0.3])
def test_within_limits_a_plan_is_optimal(change: float) -> None:
    """Straight lines from knot to knot, four steps a stage, forces at most 1 N: the conditions of Karush, Kuhn and
    Tucker, by differences of the cost itself."""
    plant = away(carts(limit=1.0))
    result = planner(plant, 9, 8 * 4 * plant.dt, samples=60, change=change)
    expected = result.plan(np.zeros(0), 0.0)
    knots, limit = expected.variables, 1.0
    assert np.abs(knots).max() <= limit
    at_limit = np.abs(knots[1:]) >= limit - 1e-9
    assert 2 <= at_limit.sum() < at_limit.size - 2
    slope, by = np.zeros_like(knots[1:]), 1e-4
    for t, i in np.ndindex(*slope.shape):
        ends = []
        for sign in (1.0, -1.0):  # beyond its limit the plant itself would stop a force
            moved = knots.copy()
            moved[t + 1, i] = np.clip(moved[t + 1, i] + sign * by, -limit, limit)
            ends.append((objective(result, moved), moved[t + 1, i]))
        slope[t, i] = (ends[0][0] - ends[1][0]) / (ends[0][1] - ends[1][1])
    assert (slope[at_limit] * np.sign(knots[1:][at_limit]) <= 1e-6).all()
    assert np.abs(slope[~at_limit]).max() < 2e-4 * np.abs(slope).max()
    assert expected.least == pytest.approx(objective(result, knots), rel=1e-12)


@rtmms.cost(outputs=("joint_position", "joint_velocity"))
def upright(state: Any, command: Any, time: float) -> float:
    q, v = state.joint_position[0], state.joint_velocity[0]
    return 1.0 + np.cos(q) + 0.02 * v * v + 0.02 * command[0] ** 2  # type: ignore[no-any-return]


@upright.terminal
def stands(state: Any) -> float:
    q, v = state.joint_position[0], state.joint_velocity[0]
    return 10.0 * (1.0 + np.cos(q)) + v * v  # type: ignore[no-any-return]


def pendulum() -> Any:
    """A rod of 0.25 kg and 0.5 m that a third of the torque that would hold it level must bring up."""
    rod = m.Box(0.02, 0.05, 0.5, 500.0, m.at(z=-0.25))
    bodies = [m.Body("mount", solids=[rod]), m.Body("rod", solids=[rod])]
    tree = rtmms.Mechanism("pendulum", bodies, [m.Joint("hinge", "mount", "rod", axis=(0, 1, 0))], base="fixed")
    return rtmms.TreePlant(tree, dt=0.02, actuators=[m.JointTorque("hinge", 0.2)])


def test_the_cost_never_rises_and_the_pendulum_swings_up() -> None:
    plant = pendulum()
    knots = Knots(plant.actuators, 31, 3.0, np.zeros(1))
    knots.home[1:, 0] = 0.02  # hanging still no slope shows where to
    result = IterativeLqr(plant, knots, upright, samples=1)
    costs = [objective(result, knots.home)]
    for _ in range(150):
        expected = result.plan(np.zeros(0), 0.0)
        costs.append(expected.least)
        assert expected.spread >= 0.0
    assert (np.diff(costs) <= 1e-12).all()
    angle = result.motion.outputs["joint_position"][-1, 0] if result.motion is not None else 0.0
    assert math.cos(angle) < -0.98
    assert np.abs(expected.variables).max() <= 0.2


@rtmms.cost(outputs=("position", "quaternion", "velocity", "angular_velocity"))
def level(state: Any, command: Any, time: float) -> float:
    p, q, v, w = state.position, state.quaternion, state.velocity, state.angular_velocity
    tilt = q[1] ** 2 + q[2] ** 2
    effort = 0.0
    for i in range(4):
        effort += 1e-6 * (command[i] - 468.0) ** 2
    return (  # type: ignore[no-any-return]
        p[0] ** 2 + p[1] ** 2 + p[2] ** 2 + 2.0 * tilt + 0.05 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
        + 0.01 * (w[0] ** 2 + w[1] ** 2 + w[2] ** 2) + effort
    )  # fmt: skip


@pytest.fixture(scope="module")
def quadrotor() -> Any:
    return rtmms.load("quadrotor", dt=0.02)


def test_a_quadrotor_that_lies_on_its_back_rights_itself(quadrotor: Any) -> None:
    quadrotor.reset()
    quadrotor.place(quaternion=(0.1, math.sqrt(0.99), 0.0, 0.0))
    result = IterativeLqr(
        quadrotor, Knots(quadrotor.actuators, 31, 1.2, np.full(4, 468.0)), level, samples=80, threads=2, change=1e-3
    )
    expected = result.plan(np.zeros(0), 0.0)
    assert result.motion is not None
    q = result.motion.outputs["quaternion"][-1]
    assert 2.0 * math.asin(math.hypot(q[1], q[2])) < math.radians(10.0)
    assert expected.variables.min() >= 0.0
    assert expected.variables.max() <= 800.0
    alone = IterativeLqr(
        quadrotor, Knots(quadrotor.actuators, 31, 1.2, np.full(4, 468.0)), level, samples=80, change=1e-3
    )
    assert alone.plan(np.zeros(0), 0.0).variables.tobytes() == expected.variables.tobytes()
    result.close()


def test_when_time_is_up_the_best_so_far_counts(quadrotor: Any) -> None:
    """One iteration is always done: a plan that is late is better than none."""
    quadrotor.reset()
    result = IterativeLqr(quadrotor, Knots(quadrotor.actuators, 11, 0.2, np.full(4, 468.0)), level)
    expected = result.plan(np.zeros(0), 0.0, time.monotonic() - 1.0)
    assert (expected.good, expected.iterations) == (True, 1)
    assert expected.shown.shape[1:] == (3, 3)
    assert len(expected.shown) >= 1  # the motion that it began from
    assert np.abs(expected.shown - expected.path[[3, 6, 9]]).max() > 1e-6
    assert expected.spread > 0.0


def test_the_warm_start_is_the_rest_of_the_last_plan(quadrotor: Any) -> None:
    quadrotor.reset()
    result = IterativeLqr(quadrotor, Knots(quadrotor.actuators, 11, 0.2, np.full(4, 468.0)), level, samples=3)
    result.plan(np.zeros(0), 0.0)
    mean = result.mean.copy()
    result.samples = 0
    expected = result.plan(np.zeros(0), 0.04)
    np.testing.assert_allclose(expected.variables[:9], mean[2:], rtol=1e-14)
    np.testing.assert_allclose(expected.variables[9:], mean[[-1, -1]])


def test_what_something_holds_is_planned_with(quadrotor: Any) -> None:
    def stuck(commands: Any) -> Any:
        commands[..., 1] = 500.0
        return commands

    quadrotor.reset()
    result = IterativeLqr(quadrotor, Knots(quadrotor.actuators, 11, 0.2, np.full(4, 460.0)), level, samples=3)
    expected = result.plan(np.zeros(0), 0.0, fixed=stuck)
    assert result.motion is not None
    np.testing.assert_array_equal(result.motion.knots[:, 1], 500.0)
    np.testing.assert_array_equal(expected.variables[:, 1], 460.0)  # asked for as before: it might follow again
    assert np.abs(expected.variables[1:, 0] - 460.0).min() > 0.1


@rtmms.cost(outputs=("position", "quaternion", "velocity", "angular_velocity"), memory=1)
def odd(state: Any, command: Any, time: float, memory: Any) -> float:
    memory[0] += 0.3
    p, q, v, w = state.position, state.quaternion, state.velocity, state.angular_velocity
    near = np.exp(-0.5 * (p[0] - v[1]) ** 2) * (1.0 + time) + q[0] * q[3] * p[2] + q[1] ** 2 * memory[0]
    return 4.0 + near + p[1] * w[2] + 1e-6 * command[1] * command[2] * p[0]  # type: ignore[no-any-return]


def test_slopes_of_a_cost_are_those_along_the_chart(quadrotor: Any) -> None:
    """The gradient against differences of the cost where the plant's own chart puts it; no Hessian is indefinite."""
    quadrotor.reset()
    quadrotor.place(
        position=(0.3, 0.2, -0.4), quaternion=(0.8, 0.2, -0.4, 0.4), velocity=(0.1, 0.5, 0.2),
        angular_velocity=(0.3, -0.2, 1.0),
    )  # fmt: skip
    stages = Stages(quadrotor, 1, odd.outputs)
    knots = np.tile([468.0, 500.0, 450.0, 470.0], (3, 1))
    motion = stages.roll(knots)
    slopes = CostSlopes(odd, stages)
    gradient, hessian = slopes(motion, 0.02, {})
    k = len(stages.coordinates.names)
    before = slopes.remembered(motion.outputs, motion.knots[1:], np.array([0.02, 0.04]))
    assert before[1, 0] == 0.3
    quadrotor.put(motion.states[2], 2)
    chart = quadrotor.chart()

    def cost(x: np.ndarray) -> float:
        chart.write(x[:k])
        outputs = quadrotor.observe()
        memory = np.array([0.3])
        value = odd.running(as_fields(outputs), knots[2] + x[k:], 0.04, memory)
        return float(value) / 2.0

    size = np.concatenate([stages.coordinates.size, stages.reach])
    by = 1e-5 * size
    for i in range(k + 4):
        x = np.zeros(k + 4)
        x[i] = by[i]
        assert gradient[1, i] * size[i] == pytest.approx((cost(x) - cost(-x)) / 2e-5, abs=3e-6)
    assert (np.linalg.eigvalsh(hessian * size[:, None] * size)[:, 0] > -1e-9).all()


def as_fields(observed: dict[str, Any]) -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(**{name.replace(".", "_"): value for name, value in observed.items()})


def test_a_convex_cost_has_its_own_hessian(quadrotor: Any) -> None:
    @rtmms.cost(outputs=("position", "velocity"))
    def bowl(state: Any, command: Any, time: float) -> float:
        p, v = state.position, state.velocity
        return 2.0 * p[0] ** 2 + (p[1] - v[2]) ** 2 + 1e-4 * (command[0] - command[1]) ** 2  # type: ignore[no-any-return]

    quadrotor.reset()
    stages = Stages(quadrotor, 2, bowl.outputs)
    motion = stages.roll(np.full((3, 4), 480.0))
    _, hessian = CostSlopes(bowl, stages)(motion, 0.04, {})
    k = len(stages.coordinates.names)
    expected = np.zeros((k + 4, k + 4))
    expected[0, 0], expected[1, 1], expected[8, 8] = 4.0, 2.0, 2.0
    expected[1, 8] = expected[8, 1] = -2.0
    expected[k, k] = expected[k + 1, k + 1] = 2e-4
    expected[k, k + 1] = expected[k + 1, k] = -2e-4
    scale = np.concatenate([stages.coordinates.size, stages.reach])
    np.testing.assert_allclose(hessian[0] * scale[:, None] * scale, expected / 2.0 * scale[:, None] * scale, atol=1e-6)


def test_what_does_not_fit_is_refused(quadrotor: Any) -> None:
    with pytest.raises(rtmms.ModelError, match=r"knots must be whole steps of 0\.02 s apart, got 0\.05"):
        IterativeLqr(quadrotor, Knots(quadrotor.actuators, 3, 0.1, np.full(4, 468.0)), level)
    with pytest.raises(rtmms.ModelError, match="no output 'joint_position'"):
        IterativeLqr(quadrotor, Knots(quadrotor.actuators, 3, 0.08, np.full(4, 468.0)), upright)
    with pytest.raises(rtmms.ModelError, match="expected a plant with compiled steps"):
        Stages(Pendulum(), 1)
