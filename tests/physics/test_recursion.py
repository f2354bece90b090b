"""The recursion against itself and against definitions, on random trees."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.base.spatial import ad, matrix_quaternion, quaternion_matrix, rotation_about
from rtmms.model import Body, Joint, Mechanism, Placement, State
from rtmms.model.layout import C_WEIGHT, C_WEIGHT_MOMENT
from tests.random_tree import random_state, random_tree

SIZES = [(1, 0), (2, 1), (3, 2), (7, 3), (20, 4), (60, 5)]


def close(got, expected, tolerance=1e-10):
    scale = np.max(np.abs(expected)) + 1e-12
    np.testing.assert_allclose(got, expected, atol=tolerance * scale, rtol=0)


@pytest.mark.parametrize(("joints", "seed"), SIZES)
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_fast_path_of_inverse_is_identity(joints, seed, base):
    model = rtmms.compile(random_tree(joints, seed, base=base, friction=True))
    state, qdd = random_state(model, seed), np.random.default_rng(seed).normal(size=joints)
    inverse = dynamics.inverse_dynamics(model, state, qdd)
    direct = dynamics.forward_dynamics(model, state, inverse.torque)
    close(direct.qdd, qdd, 1e-8)
    close(direct.base_acceleration, inverse.base_acceleration, 1e-8)


@pytest.mark.parametrize(("joints", "seed"), SIZES)
def test_any_mix_of_drives_agrees(joints, seed):
    """Whatever subset is imposed, the same motion comes with the same torques."""
    model = rtmms.compile(random_tree(joints, seed, friction=True))
    rng = np.random.default_rng(seed)
    state, torque = random_state(model, seed), rng.normal(size=joints)
    direct = dynamics.forward_dynamics(model, state, torque)
    imposed = rng.random(joints) < 0.5
    mixed = dynamics.hybrid_dynamics(model, state, np.where(imposed, direct.qdd, torque), imposed=imposed)
    close(mixed.qdd, direct.qdd, 1e-9)
    np.testing.assert_allclose(mixed.torque, torque, atol=1e-8 * max(1.0, np.max(np.abs(direct.qdd))))
    close(mixed.base_acceleration, direct.base_acceleration, 1e-9)


@pytest.mark.parametrize(("joints", "seed"), SIZES)
def test_mass_matrix_and_bias_close_the_equation_of_motion(joints, seed):
    """M nu' + C = tau, M symmetric and positive."""
    model = rtmms.compile(random_tree(joints, seed, friction=True))
    state, torque = random_state(model, seed), np.random.default_rng(seed).normal(size=joints)
    matrix, c = dynamics.mass_matrix(model, state), dynamics.bias(model, state)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix)[0] > 0.0
    close(matrix[:6, :6], dynamics.composite_inertia(model, state), 1e-14)
    out = dynamics.forward_dynamics(model, state, torque)
    residual = matrix @ np.concatenate([out.base_acceleration, out.qdd]) + c
    np.testing.assert_allclose(residual, np.concatenate([np.zeros(6), torque]), atol=1e-10 * np.max(np.abs(c)))


@pytest.mark.parametrize(("joints", "seed"), SIZES)
def test_mass_matrix_is_the_jacobians(joints, seed):
    """M = sum J^T M_b J + rotors, with every body's own Jacobian: another route than the composite recursion."""
    mechanism = random_tree(joints, seed, friction=True)
    model, rotors = rtmms.compile(mechanism), np.array([joint.rotor for joint in mechanism.joints])
    state = random_state(model, seed)
    total = np.diag(np.concatenate([np.zeros(6), rotors]))
    nu = np.concatenate([state.twist, state.qd])
    twists = dynamics.body_twists(model, state)
    for body in mechanism.bodies:
        j = dynamics.jacobian(model, state, body.name)
        current = _inertia(body)
        total += j.T @ current @ j
        close(j @ nu, twists[model.body(body.name)], 1e-12)
    close(dynamics.mass_matrix(model, state), total, 1e-12)
    close(dynamics.energy(model, state).kinetic, 0.5 * nu @ total @ nu, 1e-12)


def _inertia(body):
    from rtmms.base.spatial import inertia_matrix

    return inertia_matrix(body.mass, body.first_moment, body.inertia) + body.added


@pytest.mark.parametrize(("joints", "seed"), SIZES[:5])
def test_power_in_is_the_rate_of_energy(joints, seed):
    """tau . qd + f_0 . eta_0 + outside power = dE/dt, the derivative by a complex step along the motion."""
    mechanism = random_tree(joints, seed)
    model = rtmms.compile(mechanism)
    rng = np.random.default_rng(seed)
    state, torque, wrench = random_state(model, seed), rng.normal(size=joints), rng.normal(size=(joints + 1, 6))
    out = dynamics.forward_dynamics(model, state, torque, wrench=wrench)
    power = torque @ state.qd + np.sum(wrench * dynamics.body_twists(model, state))
    close(_rate(lambda s: dynamics.energy(model, s).total, state, out), power, 1e-10)


@pytest.mark.parametrize(("joints", "seed"), SIZES[:5])
def test_momentum_changes_by_the_outside_wrench(joints, seed):
    mechanism = random_tree(joints, seed)
    model = rtmms.compile(mechanism)
    rng = np.random.default_rng(seed)
    state, wrench = random_state(model, seed), rng.normal(size=(joints + 1, 6))
    out = dynamics.forward_dynamics(model, state, rng.normal(size=joints), wrench=wrench)
    rotation, position = dynamics.body_poses(model, state)
    outside = np.zeros(6)
    for k in range(joints + 1):
        force = rotation[k] @ wrench[k, :3]
        outside += np.concatenate([force, rotation[k] @ wrench[k, 3:] + np.cross(position[k], force)])
    weight = model.mass * model.gravity
    outside += np.concatenate([weight, np.cross(dynamics.centre_of_mass(model, state), weight)])
    close(_rate(lambda s: dynamics.momentum(model, s), state, out), outside, 1e-10)


def _rate(function, state, out, step=1e-30):
    """d/dt of a function of the state, by a complex step."""
    rotation, w = state.rotation, state.twist[3:]
    q = state.orientation
    spin = 0.5 * np.array([
        -q[1] * w[0] - q[2] * w[1] - q[3] * w[2], q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
        q[0] * w[1] + q[3] * w[0] - q[1] * w[2], q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
    ])  # fmt: skip
    moved = State(
        state.position + 1j * step * (rotation @ state.twist[:3]),
        q + 1j * step * spin,
        state.q + 1j * step * state.qd,
        state.twist + 1j * step * out.base_acceleration,
        state.qd + 1j * step * out.qdd,
    )
    return np.imag(function(moved)) / step


@pytest.mark.parametrize(("joints", "seed"), SIZES[:4])
def test_accelerations_are_derivatives_of_twists(joints, seed):
    model = rtmms.compile(random_tree(joints, seed))
    state = random_state(model, seed)
    out = dynamics.forward_dynamics(model, state, np.zeros(joints))
    got = dynamics.body_accelerations(model, state, out.qdd, out.base_acceleration)
    close(got, _rate(lambda s: dynamics.body_twists(model, s), state, out), 1e-12)


def test_one_body_is_newton_and_euler():
    """M eta' - ad_eta^T M eta = f for a single body with a full inertia, written out."""
    mechanism = random_tree(0, 7)
    model = rtmms.compile(mechanism)
    state, wrench = random_state(model, 8), np.arange(6.0)[None]
    out = dynamics.forward_dynamics(model, state, np.zeros(0), wrench=wrench)
    matrix = model.inertia(0)
    c = model.constant[0]
    g = state.rotation.T @ model.gravity
    weight = np.concatenate([c[C_WEIGHT] * g, np.cross(c[C_WEIGHT_MOMENT : C_WEIGHT_MOMENT + 3], g)])
    expected = np.linalg.solve(matrix, ad(state.twist).T @ matrix @ state.twist + wrench[0] + weight)
    close(out.base_acceleration, expected, 1e-12)


def test_prescribed_base_takes_the_wrench_that_a_free_one_would_need():
    free = rtmms.compile(random_tree(6, 11))
    held = rtmms.compile(random_tree(6, 11, base="prescribed"))
    state, torque, values = random_state(free, 1), np.arange(6.0), np.linspace(-1.0, 1.0, 6)
    out = dynamics.forward_dynamics(held, state, torque, base_acceleration=values)
    wrench = np.zeros((7, 6))
    wrench[0] = out.base_wrench
    again = dynamics.forward_dynamics(free, state, torque, wrench=wrench)
    close(again.base_acceleration, values, 1e-9)
    close(again.qdd, out.qdd, 1e-9)


def test_motion_does_not_depend_on_the_frames_it_is_described_in():
    """The same robot seen from a turned world, without gravity, has the same accelerations."""
    mechanism = random_tree(9, 12)
    model = rtmms.compile(Mechanism("still", mechanism.bodies, mechanism.joints, gravity=(0, 0, 0)))
    state = random_state(model, 2)
    turned = state.copy()
    turn = rotation_about(np.array([0.6, 0.0, 0.8]), 1.1)
    turned.orientation = matrix_quaternion(turn @ state.rotation)
    turned.position = turn @ state.position + 3.0
    a, b = (dynamics.forward_dynamics(model, s, np.ones(9)) for s in (state, turned))
    close(b.qdd, a.qdd, 1e-12)
    close(b.base_acceleration, a.base_acceleration, 1e-12)


def test_fixed_joints_and_serial_joints_are_what_they_stand_for():
    """A universal joint is two revolutes with a massless body between; a welded body is part of its parent."""
    rng = np.random.default_rng(3)
    bodies = random_tree(2, 21).bodies
    place = Placement(quaternion_matrix(rng.normal(size=4)), rng.normal(size=3))
    weld = Joint("weld", "body1", "body2", "fixed", place)
    short = rtmms.compile(
        Mechanism("short", bodies, [Joint("u", "body0", "body1", "universal", place), weld])
    )  # fmt: skip
    long = rtmms.compile(
        Mechanism(
            "long",
            [*bodies, Body("between")],
            [
                Joint("a", "body0", "between", placement=place, axis=(1, 0, 0)),
                Joint("b", "between", "body1", axis=(0, 1, 0)),
                weld,
            ],
        )
    )
    assert short.joint_names == ("u.1", "u.2")
    state = random_state(short, 5)
    a, b = (dynamics.forward_dynamics(m, state, np.array([0.3, -0.2])) for m in (short, long))
    close(a.qdd, b.qdd, 1e-13)
    close(a.base_acceleration, b.base_acceleration, 1e-13)
    j = dynamics.jacobian(short, state, "body2")
    close(j @ np.concatenate([state.twist, state.qd]), dynamics.body_twists(short, state)[short.body("body2")], 1e-12)


def test_coulomb_friction_and_rotors():
    """A slide of mass m on a rotor J, by hand: (m + J) qdd = tau - c qd - F_s sign(qd); at rest nothing holds."""
    bodies = [Body("rail", 1.0, inertia=np.eye(3)), Body("slide", 2.0, inertia=np.eye(3))]
    joints = [Joint("s", "rail", "slide", "prismatic", damping=0.5, coulomb=3.0, rotor=0.4, axis=(1, 0, 0))]
    model = rtmms.compile(Mechanism("slide", bodies, joints, base="fixed", gravity=(0, 0, -9.81)))
    state = model.state()
    for rate in (1.5, -1.5, 0.0):
        state.qd[0] = rate
        want = (7.0 - 0.5 * rate - 3.0 * np.sign(rate)) / 2.4
        assert dynamics.forward_dynamics(model, state, [7.0]).qdd[0] == pytest.approx(want, rel=1e-14)
        assert dynamics.inverse_dynamics(model, state, [want]).torque[0] == pytest.approx(7.0, rel=1e-14)
    assert dynamics.mass_matrix(model, state)[0, 0] == pytest.approx(2.4, rel=1e-14)


def test_wrong_arguments_are_refused_by_name():
    model = rtmms.compile(random_tree(3, 1))
    state = model.state()
    with pytest.raises(rtmms.ModelError, match=r"drive must have shape \(3,\), got \(2,\)"):
        dynamics.forward_dynamics(model, state, np.zeros(2))
    with pytest.raises(rtmms.ModelError, match="finite"):
        dynamics.forward_dynamics(model, state, np.array([0.0, np.nan, 0.0]))
    with pytest.raises(rtmms.ModelError, match="wrench"):
        dynamics.forward_dynamics(model, state, np.zeros(3), wrench=np.zeros((3, 6)))
    state.twist = np.zeros(5)
    with pytest.raises(rtmms.ModelError, match="twist"):
        dynamics.energy(model, state)
