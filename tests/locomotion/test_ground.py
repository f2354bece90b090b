"""Dynamics on the ground: the recursion against dense matrices, a DAE in full coordinates, and identities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rtmms import model as m
from rtmms.base.spatial import adjoint, rotation_z
from rtmms.dynamics import bias, body_twists, energy, ground_dynamics, mass_matrix, stopped
from rtmms.locomotion import reduced, rows
from rtmms.model.description import facing
from tests.locomotion.mechanisms import chain, held_far_out, state_of, wheeled_tree
from tests.random_tree import random_state

CASES = [
    chain(8), chain(8, plane=False), chain(5, ["motion", *["torque"] * 3]), chain(3, "motion"), chain(2, "motion"),
    *(wheeled_tree(n, seed) for n, seed in ((1, 3), (3, 4), (6, 5), (9, 6), (12, 7))),
    *(held_far_out(n, seed) for n, seed in ((3, 8), (4, 9), (6, 10))),
]  # fmt: skip


def slip(model: m.Model, state: m.State) -> float:
    a, b = rows(model, state.q)
    return float(np.abs(a @ state.twist + b @ state.qd).max())


@pytest.mark.parametrize("case", range(len(CASES)))
def test_recursion_is_the_dense_formula(case: int) -> None:
    model = m.compile_model(CASES[case])
    state = stopped(model, state_of(model, case))
    assert slip(model, state) < 1e-12
    drive = np.random.default_rng(case).normal(size=model.n)
    wrench = np.random.default_rng(case + 1).normal(size=(len(model.body_names), 6))
    fast, dense = ground_dynamics(model, state, drive, wrench=wrench), reduced(model, state, drive, wrench=wrench)
    size = max(1.0, np.abs(dense.base_acceleration).max(), np.abs(dense.qdd).max())
    assert fast.rank == dense.rank
    assert np.allclose(fast.base_acceleration, dense.base_acceleration, rtol=0, atol=1e-10 * size)
    assert np.allclose(fast.qdd, dense.qdd, rtol=0, atol=1e-10 * size)
    a, b = rows(model, state.q)
    big = max(1.0, np.abs(dense.reaction).max())
    assert np.allclose(a.T @ fast.reaction, dense.ground_wrench, rtol=0, atol=1e-10 * size * big)
    assert np.allclose((fast.torque + b.T @ fast.reaction), dense.load, rtol=0, atol=1e-10 * size * big)
    assert fast.torque @ state.qd == pytest.approx(dense.power, rel=1e-9, abs=1e-10 * size * big)
    # least torque moves reactions along what redundant rows leave open, and nothing that is unique
    other = reduced(model, state, drive, wrench=wrench, least="torque")
    assert np.allclose(other.load, dense.load, atol=1e-9 * size)
    assert other.unique == dense.unique
    assert np.linalg.norm(other.torque[model.imposed]) <= np.linalg.norm(dense.torque[model.imposed]) + 1e-9 * size
    assert np.linalg.norm(dense.reaction) <= np.linalg.norm(other.reaction) + 1e-9 * size
    if dense.unique:
        assert np.allclose(fast.reaction, dense.reaction, rtol=0, atol=1e-9 * size * big)


def test_impact_is_the_least_change_in_the_kinetic_energy() -> None:
    model = m.compile_model(chain(6, ["motion", *["torque"] * 4]))
    before = state_of(model, 2)
    after = stopped(model, before)
    change = np.concatenate([after.twist - before.twist, after.qd - before.qd])
    mass, (a, b) = mass_matrix(model, before), rows(model, before.q)
    free = np.concatenate([np.ones(6, dtype=bool), ~model.imposed])
    # the impulses are reactions alone: M change = C^T impulse on what is free; imposed rates stay
    impulse = (mass @ change)[free]
    assert np.linalg.norm(impulse - np.hstack([a, b])[:, free].T @ np.linalg.lstsq(
        np.hstack([a, b])[:, free].T, impulse, rcond=None)[0]) < 1e-12  # fmt: skip
    assert after.qd[0] == before.qd[0]
    # energy lost is that of the change, where nothing is imposed (Carnot)
    loose = m.compile_model(chain(6))
    before = state_of(loose, 3)
    after = stopped(loose, before)
    change = np.concatenate([after.twist - before.twist, after.qd - before.qd])
    lost = energy(loose, before).kinetic - energy(loose, after).kinetic
    assert lost == pytest.approx(0.5 * change @ mass_matrix(loose, before) @ change, rel=1e-11)
    assert lost > 0.0


def test_another_reference_body() -> None:
    """The same mechanism seen from another frame of its base moves alike."""
    mechanism = chain(5, ["motion", *["torque"] * 3])
    model = m.compile_model(mechanism)
    turn = rotation_z(0.7)
    other = m.compile_model(facing(mechanism, turn))
    state = stopped(model, state_of(model, 1))
    x = adjoint(turn, np.zeros(3))
    observed = replace_state(state, twist=x @ state.twist)
    assert slip(other, observed) < 1e-12
    drive = np.array([0.3, -0.2, 0.1, 0.05])
    item, two = ground_dynamics(model, state, drive), ground_dynamics(other, observed, drive)
    assert np.allclose(two.base_acceleration, x @ item.base_acceleration, atol=1e-10)
    assert np.allclose(two.qdd, item.qdd, atol=1e-10)
    assert np.allclose(two.torque, item.torque, atol=1e-10)


def replace_state(state: m.State, **new: np.ndarray) -> m.State:
    out = state.copy()
    for name, value in new.items():
        setattr(out, name, value)
    return out


@pytest.mark.parametrize("case", [0, 2, 6, 7])
def test_power(case: int) -> None:
    """Reactions do no work: dE/dt is the power of the joints less what dampers take."""
    model = m.compile_model(CASES[case])
    state = stopped(model, state_of(model, case))
    drive = np.random.default_rng(9).normal(size=model.n)
    result = ground_dynamics(model, state, drive)
    nu = np.concatenate([state.twist, state.qd])
    nud = np.concatenate([result.base_acceleration, result.qdd])
    # the kinetic energy's rate is nu . (M nud + what is quadratic), which bias holds, gravity and springs apart
    power = nu @ (mass_matrix(model, state) @ nud + bias(model, state))
    assert power == pytest.approx(result.torque @ state.qd, rel=1e-9, abs=1e-9)


def test_full_coordinates() -> None:
    """Against a DAE in the plane: three free rods, joints and axles all as multipliers, in plain numpy."""
    h, mass, inertia, damping, spring = 0.1, 0.5, 0.5 * 0.04 / 12, 0.01, 0.3

    def jacobian(x: np.ndarray) -> np.ndarray:
        out = np.zeros((2 * 2 + 3, 9))
        for k in range(3):
            t = x[3 * k + 2]
            out[4 + k, 3 * k : 3 * k + 2] = -np.sin(t), np.cos(t)
            if k < 2:  # rear of k is front of k + 1, centres at (x, y)
                u = x[3 * k + 5]
                out[2 * k, [3 * k, 3 * k + 2, 3 * k + 3, 3 * k + 5]] = 1, h * np.sin(t), -1, h * np.sin(u)
                out[2 * k + 1, [3 * k + 1, 3 * k + 2, 3 * k + 4, 3 * k + 5]] = 1, -h * np.cos(t), -1, -h * np.cos(u)
        return out

    masses = np.tile([mass, mass, inertia], 3)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        x, v = y[:9], y[9:]
        j = jacobian(x)
        jd = (jacobian(x + 1e-6 * v) - jacobian(x - 1e-6 * v)) / 2e-6
        force = np.zeros(9)
        for k in range(2):
            q, qd = x[3 * k + 5] - x[3 * k + 2], v[3 * k + 5] - v[3 * k + 2]
            torque = -spring * q - damping * qd
            force[3 * k + 5] += torque
            force[3 * k + 2] -= torque
        whole = np.block([[np.diag(masses), -j.T], [j, np.zeros((7, 7))]])
        a = np.linalg.solve(whole, np.concatenate([force, -jd @ v]))[:9]
        return np.concatenate([v, a])

    description = chain(3)
    model = m.compile_model(replace(description, joints=[replace(joint, rotor=0.0) for joint in description.joints]))
    start = stopped(
        model, replace_state(model.state(), q=np.array([0.6, -0.4]), twist=np.array([0.5, 0, 0, 0, 0, 0.0]))
    )

    def tree(_: float, y: np.ndarray) -> np.ndarray:
        state = replace_state(model.state(), q=y[3:5], twist=np.array([y[5], y[6], 0, 0, 0, y[7]]), qd=y[8:10])
        result = ground_dynamics(model, state, np.zeros(2))
        c, s = np.cos(y[2]), np.sin(y[2])
        planar = result.base_acceleration[[0, 1, 5]]
        return np.concatenate([[c * y[5] - s * y[6], s * y[5] + c * y[6], y[7]], y[8:10], planar, result.qdd])

    def centres(y: np.ndarray) -> np.ndarray:
        angle, front, out = y[2], y[:2].copy(), []
        for k in range(3):
            angle = angle + (y[2 + k] if k else 0.0)
            along = np.array([np.cos(angle), np.sin(angle)])
            out += [*(front - h * along), angle]
            front = front - 2 * h * along
        return np.array(out)

    y0 = np.concatenate([np.zeros(3), start.q, start.twist[[0, 1, 5]], start.qd])
    x0, step = centres(y0), 1e-7
    moved = y0.copy()
    d = tree(0.0, y0)[:5]
    moved[:5] += step * d
    back = y0.copy()
    back[:5] -= step * d
    v0 = (centres(moved) - centres(back)) / (2 * step)
    options = {"rtol": 1e-10, "atol": 1e-11, "method": "DOP853"}
    item = solve_ivp(tree, (0.0, 0.8), y0, **options).y[:, -1]
    two = solve_ivp(rate, (0.0, 0.8), np.concatenate([x0, v0]), **options).y[:9, -1]
    assert np.allclose(centres(item), two, rtol=0, atol=2e-7)


def test_rows_are_velocities_of_bodies() -> None:
    """e . eta_b of each axle, from the bodies' own twists; a wheel's contact point stands still."""
    mechanism = wheeled_tree(6, 11)
    model = m.compile_model(mechanism)
    state = random_state(model, 4)
    a, b = rows(model, state.q)
    slips = dict(zip(model.ground.names, a @ state.twist + b @ state.qd, strict=True))
    twists = body_twists(model, state)
    for contact in mechanism.contacts:
        if isinstance(contact, m.Axle):
            x = adjoint(contact.placement.rotation, contact.placement.position)
            expected = (x @ twists[model.body(contact.body)])[1]
            assert slips[f"{contact.body}.axle"] == pytest.approx(expected, abs=1e-12)
        elif isinstance(contact, m.Wheel):
            joint = next(joint for joint in mechanism.joints if joint.name == contact.joint)
            carrier, q = twists[model.body(joint.parent)], state.qd[model.joint(joint.name)]
            turning = carrier[3:] + q * np.array([0.0, 1.0, 0.0])
            hub = joint.placement.position
            point = carrier[:3] + np.cross(carrier[3:], hub) + np.cross(turning, [0.0, 0.0, -contact.radius])
            assert slips[f"{contact.joint}.rolling"] == pytest.approx(point[0], abs=1e-12)
