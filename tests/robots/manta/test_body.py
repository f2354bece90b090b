"""What acts on the manta's body, and the passes that find its acceleration, against the formulas; as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms.dynamics.recursion import move_pose
from rtmms.robots.manta import body as kernels
from rtmms.robots.manta import coupling as iterated
from rtmms.robots.manta.layout import ACCELERATION, POSITION, RODS, TWIST, W_FORCE, W_MATRIX, W_ON_BODY
from rtmms.robots.manta.rods import ROD_SIZE
from tests.robots.gaits import randomise


def plain(kernel):
    """The function that was compiled."""
    return getattr(kernel, "py_func", kernel)


@pytest.mark.parametrize("drag", ["norm", "componentwise"])
@pytest.mark.parametrize("moment", ["componentwise", "norm", "linear"])
def test_drag_is_each_laws_formula(drag, moment):
    plant = rtmms.load(
        "manta", chains=1, body_drag=drag, body_moment=moment, body_moment_coefficient=(0.1, 0.2, 0.3),
        body_drag_coefficient=(0.4, 0.5, 0.6),
    )  # fmt: skip
    body, draw = plant.model.body, np.random.default_rng(3)
    twist, water = draw.normal(size=6), draw.normal(size=3)
    work = np.concatenate([twist, water, np.zeros(6)])
    plain(kernels.body_drag)(body, work, 0, 6, 9)
    v, w, area, c = twist[:3] - water, twist[3:], body.drag_area, body.moment_coefficient
    assert len(set(area)) == len(set(c)) == 3
    size = np.linalg.norm(v) if drag == "norm" else np.abs(v)
    force = -0.5 * body.density * area * size * v
    spin = np.linalg.norm(w) if moment == "norm" else np.abs(w)
    about = -c * w if moment == "linear" else -0.5 * body.density * c * spin * w
    assert work[9:] == pytest.approx(np.concatenate([force, about]), rel=1e-13)


def test_the_body_alone_keeps_to_newton_and_euler():
    """M [V'; W'] = drag, buoyancy's moment r x R^T F and what turning axes take: - m W x V, - W x J W."""
    plant = rtmms.load("manta", chains=1, buoyancy_centre_m=(0.04, -0.03, 0.05))
    body, draw = plant.model.body, np.random.default_rng(4)
    twist, down = draw.normal(size=6), draw.normal(size=(3, 3))
    work = np.concatenate([down.ravel(), twist, np.zeros(3), np.zeros(12)])
    plain(kernels.body_drag)(body, work, 9, 15, 18)
    plain(kernels.body_force)(body, work, 0, 9, 15, 24)
    v, w, inertia = twist[:3], twist[3:], body.inertia
    expected = work[18:24].copy()
    expected[:3] -= body.mass * np.cross(w, v)
    expected[3:] += np.cross(body.buoyancy_centre, body.weight * down[2]) - np.cross(w, inertia * w)
    assert work[24:] == pytest.approx(expected, rel=1e-12)


def test_iterated_passes_end_where_the_whole_is_solved():
    """r = F - M a to nothing, from the lower triangle alone, by a matrix that is near the inverse."""
    draw = np.random.default_rng(5)
    root = draw.normal(size=(6, 6))
    matrix, force = root @ root.T + 6.0 * np.eye(6), draw.normal(size=6)
    finned = rtmms.load("manta", chains=1, coupling="iterated").model.finned
    finned.relaxation[:] = np.linalg.inv(matrix + 0.3 * np.eye(6)).ravel()
    work = np.full(max(W_FORCE, W_MATRIX + 36, W_ON_BODY) + 36, np.nan)
    work[W_MATRIX : W_MATRIX + 36] = np.where(np.tri(6), matrix, np.nan).ravel()
    work[W_FORCE : W_FORCE + 6] = force
    out = draw.normal(size=6)
    passes, residual = plain(iterated.iterated_acceleration)(finned, work, out)
    assert 1 < passes < finned.max_iterations
    assert residual <= finned.tolerance
    assert out == pytest.approx(np.linalg.solve(matrix, force), abs=2.0 * finned.tolerance)


def test_what_is_reported_a_state_is_the_state():
    plant = rtmms.load("manta", chains=5)
    randomise(plant, 8)
    observed, rods = plant.observe(), plant._state[RODS : RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)
    assert (observed["rod_angle"] == rods[:, 0]).all()
    assert (observed["rod_rate"] == rods[:, 1]).all()
    assert observed["rod_power"] == pytest.approx(observed["rod_torque"] @ rods[:, 1])


def test_what_is_solved_at_once_leaves_no_residual():
    for values in ({"coupling": "monolithic"}, {"body": "fixed"}):
        plant = rtmms.load("manta", chains=5, **values)
        plant.step(np.array([0.1, 0.2, 0.1, 0.2]))
        assert plant.observe()["interface_residual"] == 0.0


@pytest.mark.full  # samplers of its own to compile
def test_a_gradient_is_a_current_wherever_one_stands():
    """u = G x: at x it is the uniform current G x and the same gradient seen from the origin; body and fins alike."""
    gradient = np.array([[0.5, 0.1, 0.0], [0.0, -0.25, 0.2], [0.3, 0.0, -0.25]])
    result = []
    for place, current in ((np.array([1.0, -2.0, 0.5]), np.zeros(3)), (np.zeros(3), gradient @ [1.0, -2.0, 0.5])):
        plant = rtmms.load(
            "manta",
            chains=5,
            coupling="monolithic",
            current_gradient_1_s=tuple(gradient.ravel()),
            current_m_s=tuple(current),
        )
        randomise(plant, 6)
        plant._state[POSITION : POSITION + 3] = place
        result.append(plant.observe())
    for name in ("acceleration", "angular_acceleration", "thrust", "rod_torque", "drag_power"):
        assert result[0][name] == pytest.approx(result[1][name], rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("method", ["matched", "euler"])
def test_a_short_step_begins_with_the_accelerations_of_its_state(method):
    """And Euler's goes on by dt with the twist that it had, and with that acceleration."""
    dt = 1e-7
    plant = rtmms.load("manta", dt=dt, chains=5, coupling="monolithic", body_method=method, joint_damping_n_m_s=1e-4)
    randomise(plant, 9)
    command = plant.observe()["rod_angle"].copy()
    plant.step(command)  # from here on the rods accelerate by their servos
    observed, state = plant.observe(), plant._state.copy()
    plant.step(command)
    moved, expected = plant._state, np.concatenate([observed["acceleration"], observed["angular_acceleration"]])
    assert moved[ACCELERATION : ACCELERATION + 6] == pytest.approx(expected, rel=2e-3, abs=2e-3)
    assert moved[TWIST : TWIST + 6] == pytest.approx(state[TWIST : TWIST + 6] + dt * expected, rel=1e-9)
    if method == "euler":
        move_pose(state, POSITION, state[TWIST : TWIST + 6].copy(), 0, dt, state, POSITION)
        assert moved[POSITION : POSITION + 7] == pytest.approx(state[POSITION : POSITION + 7], abs=1e-15)
