"""Modal bodies in any tree: against Lagrange's equations in plain numpy, rigid limits, many links, finite elements."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import mmwrite

import rtmms
from rtmms import dynamics
from rtmms.base.spatial import quaternion_matrix, rotation_about
from rtmms.dynamics import modal_motion
from rtmms.mechanism.plant import TreePlant
from rtmms.model.compiled import State
from rtmms.model.description import Body, Joint, Mechanism, Modal, Section
from rtmms.model.layout import C_DAMPING, C_STIFFNESS
from rtmms.model.modal import (
    bending,
    from_finite_elements,
    load_finite_elements,
    own_modes,
    sections_along,
    stiffness_of,
    twisting,
)
from rtmms.model.solids import Placement, at
from tests.physics.plain_modal import Plain

RNG = np.random.default_rng(3)


def turn():
    return quaternion_matrix(RNG.normal(size=4))


def solid(name, mass=1.0, **more):
    r = turn()
    return Body.about_centre(name, mass, 0.1 * RNG.normal(size=3), mass * r @ np.diag([0.02, 0.03, 0.04]) @ r.T, **more)


def spot():
    return Placement(turn(), 0.3 * RNG.normal(size=3))


def soft(name, modes, sections):
    pieces = [Section(solid(f"{name}.s{k}", 0.3), spot(), 0.3 * RNG.normal(size=(modes, 6))) for k in range(sections)]
    return solid(name, modal=Modal([f"m{i}" for i in range(modes)], 5.0 * RNG.uniform(1, 2, modes), pieces))


def joint(name, parent, child, **more):
    return Joint(name, parent, child, placement=spot(), axis=RNG.normal(size=3), **more)


def tree(base, soft_base=False):
    """Soft bodies in series and in parallel, joints on sections, one soft body fixed to another's frame."""
    bodies = [soft("ground", 2, 3) if soft_base else solid("ground"), soft("a", 3, 4), solid("b"), soft("c", 2, 3),
              solid("d"), solid("e"), soft("f", 1, 2)]  # fmt: skip
    joints = [
        joint("j1", "ground.s1" if soft_base else "ground", "a"), joint("j2", "a.s1", "b"),
        joint("j3", "a.s2", "c", type="prismatic"), joint("j4", "c", "d"),
        Joint("j5", "c.s0", "e", type="fixed", placement=spot()), Joint("j6", "a", "f", type="fixed", placement=spot()),
    ]  # fmt: skip
    return Mechanism("soft tree", bodies, joints, base=base, gravity=(0.3, -0.2, -9.81 if base == "fixed" else 0.0))


def any_state(model, seed):
    rng = np.random.default_rng(seed)
    state = model.state()
    state.q, state.qd = 0.4 * rng.normal(size=model.n), rng.normal(size=model.n)
    return state, rng.normal(size=model.n)


def test_lagranges_equations_give_the_same():
    mechanism = tree("fixed")
    model = rtmms.compile(mechanism)
    state, torque = any_state(model, 1)
    plain = Plain(mechanism, model.joint_names)
    result, (kinetic, potential) = dynamics.energy(model, state), plain.energy(state.q, state.qd)
    assert result.kinetic == pytest.approx(kinetic, rel=1e-12)
    assert result.gravity + result.elastic == pytest.approx(potential, rel=1e-12)
    ours, theirs = dynamics.forward_dynamics(model, state, torque).qdd, plain.accelerations(state.q, state.qd, torque)
    np.testing.assert_allclose(ours, theirs, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("soft_base", [False, True])
def test_inverse_direct_and_mass_matrix_agree(soft_base):
    model = rtmms.compile(tree("free", soft_base))
    state, torque = any_state(model, 2)
    state.twist = RNG.normal(size=6)
    direct = dynamics.forward_dynamics(model, state, torque)
    inverse = dynamics.inverse_dynamics(model, state, direct.qdd)
    np.testing.assert_allclose(inverse.torque, torque, atol=1e-11)
    np.testing.assert_allclose(inverse.base_acceleration, direct.base_acceleration, atol=1e-11)
    m, remaining = dynamics.mass_matrix(model, state), dynamics.bias(model, state)
    whole = np.concatenate([direct.base_acceleration, direct.qdd])
    np.testing.assert_allclose(m @ whole + remaining, np.concatenate([np.zeros(6), torque]), atol=1e-10)
    assert 0.5 * np.concatenate([state.twist, state.qd]) @ m @ np.concatenate([state.twist, state.qd]) == pytest.approx(
        dynamics.energy(model, state).kinetic, rel=1e-12
    )
    # body_accelerations are the rates of body_twists, jacobian their slope
    moved = [along(state, direct, s) for s in (1e-6, -1e-6)]
    slope = (dynamics.body_twists(model, moved[0]) - dynamics.body_twists(model, moved[1])) / 2e-6
    result = dynamics.body_accelerations(model, state, direct.qdd, direct.base_acceleration)
    np.testing.assert_allclose(result, slope, atol=1e-6 * np.abs(result).max())
    twists = dynamics.body_twists(model, state)
    j = dynamics.jacobian(model, state, "c.s1")
    np.testing.assert_allclose(j @ np.concatenate([state.twist, state.qd]), twists[model.body("c.s1")], atol=1e-12)


@pytest.mark.parametrize("soft_base", [False, True])
def test_rotors_springs_and_dampers_between_soft_bodies_count_both_ways(soft_base):
    whole = tree("free", soft_base)
    loose = [j if j.type == "fixed" else replace(j, rotor=0.07, damping=0.2, stiffness=0.5) for j in whole.joints]
    model = rtmms.compile(replace(whole, joints=loose))
    state, torque = any_state(model, 3)
    state.twist = RNG.normal(size=6)
    direct = dynamics.forward_dynamics(model, state, torque)
    np.testing.assert_allclose(dynamics.inverse_dynamics(model, state, direct.qdd).torque, torque, atol=1e-11)
    accelerations = np.concatenate([direct.base_acceleration, direct.qdd])
    result = dynamics.mass_matrix(model, state) @ accelerations + dynamics.bias(model, state)
    np.testing.assert_allclose(result, np.concatenate([np.zeros(6), torque]), atol=1e-10)


def along(state, rates, h):
    """The state h seconds on, to second order in what counts for a central difference."""
    w = state.twist[3:]
    size = np.linalg.norm(w)
    turned = state.rotation @ rotation_about(w / size, size * h)
    from rtmms.base.spatial import matrix_quaternion

    return State(
        state.position + h * state.rotation @ state.twist[:3], matrix_quaternion(turned), state.q + h * state.qd,
        state.twist + h * rates.base_acceleration, state.qd + h * rates.qdd,
    )  # fmt: skip


@pytest.mark.parametrize("soft_base", [False, True])
def test_momentum_stays_and_energy_is_what_the_joints_give(soft_base):
    model = rtmms.compile(replace(tree("free", soft_base), gravity=(0, 0, 0)))
    state, torque = any_state(model, 5)
    state.twist = RNG.normal(size=6)
    rates = dynamics.forward_dynamics(model, state, torque)

    def slope(f):
        near, far = (np.subtract(f(along(state, rates, h)), f(along(state, rates, -h))) / (2 * h) for h in (1e-4, 2e-4))
        return (4.0 * near - far) / 3.0

    size = np.abs(dynamics.momentum(model, state)).max()
    np.testing.assert_allclose(slope(lambda x: dynamics.momentum(model, x)), 0.0, atol=1e-7 * size)
    power = slope(lambda x: dynamics.energy(model, x).total)
    assert power == pytest.approx(torque @ state.qd, abs=1e-7 * abs(torque * state.qd).sum())


def test_without_deformation_it_is_the_rigid_tree():
    """Modes held at 0: the same accelerations and torques as of the sections fixed to the frame."""
    mechanism = tree("free", soft_base=True)
    names = {body.name for body in mechanism.bodies}
    bodies, joints = [], list(mechanism.joints)
    for body in mechanism.bodies:
        bodies.append(replace(body, modal=None))
        for section in body.modal.sections if body.modal else ():
            bodies.append(section.body)
            joints.append(Joint(f"fix {section.body.name}", body.name, section.body.name, type="fixed",
                                placement=section.placement))  # fmt: skip
    rigid, model = rtmms.compile(replace(mechanism, bodies=bodies, joints=joints)), rtmms.compile(mechanism)
    assert names < set(model.body_names) == set(rigid.body_names)
    still, _ = any_state(rigid, 7)
    still.twist = RNG.normal(size=6)
    state, drive = model.state(), np.zeros(model.n)
    held, torque = np.ones(model.n, dtype=bool), RNG.normal(size=rigid.n)
    state.twist = still.twist
    for k, name in enumerate(rigid.joint_names):
        j = model.joint(name)
        state.q[j], state.qd[j], drive[j], held[j] = still.q[k], still.qd[k], torque[k], False
    ours, theirs = (
        dynamics.hybrid_dynamics(model, state, drive, imposed=held),
        dynamics.forward_dynamics(rigid, still, torque),
    )
    np.testing.assert_allclose(ours.base_acceleration, theirs.base_acceleration, atol=1e-10)
    for k, name in enumerate(rigid.joint_names):
        assert ours.qdd[model.joint(name)] == pytest.approx(theirs.qdd[k], abs=1e-9)
    held[model.joint("a.m0")] = False
    with pytest.raises(rtmms.ModelError, match="all modes of a body, or none"):
        dynamics.hybrid_dynamics(model, state, drive, imposed=held)


def blade(title, m, c=0.02):
    return Body.about_centre(title, m, np.array([0.0, 0.0, -0.5 * c]), m * c * c / 12.0 * np.diag([1.0, 1.0, 0.0]))


def test_one_mode_twists_1_032_times_as_far_as_many_links_under_its_inertia():
    """Root turned about the leading edge at a constant acceleration: tip twist of sin(pi X / 2 l) and of 400 links with
    half-length ends, both from the torques that hold the shape; exactly 32 / pi^3."""
    length, mass, gi = 0.05, 5e-5, 3e-5
    wave = math.pi / (2 * length)
    k = stiffness_of([lambda x: wave * math.cos(wave * x)], lambda x: gi, length)
    pieces = sections_along("w", length, 8, lambda n, x, s: blade(n, mass * s / length),
                            {"twist": twisting(lambda x: math.sin(wave * x))})  # fmt: skip
    body = Body("w", modal=Modal(["twist"], k, pieces))
    root = [Joint("feather", "ground", "w", axis=(1, 0, 0), drive="motion")]
    model = rtmms.compile(Mechanism("one", [Body("ground", 1.0, inertia=np.eye(3)), body], root, "fixed", (0, 0, 0)))
    item = -dynamics.inverse_dynamics(model, model.state(), np.array([1.0, 0.0])).torque[1] / k[0, 0]
    n = 400
    h = length / n
    # static, linear: a chain of equal shafts; the last torque is of the piece beyond the joint
    inertia = np.array([0.5, *np.ones(n - 1), 0.5]) * mass / n * 0.02**2 / 3.0
    torque = np.cumsum(inertia[::-1])[::-1][1:]
    many = -np.sum(torque * h / gi)
    assert item / many == pytest.approx(1.032, abs=1e-3)
    assert item / many == pytest.approx(32.0 / math.pi**3, rel=1e-4)


def lattice(long=4):
    """A beam of cubes of springs, 4 nodes a section: nodes, scalar mass (consistent along the edges), stiffness."""
    nodes = np.array(
        [[0.1 * i, 0.04 * y, 0.05 * z] for i in range(long + 1) for y in (-1, 1) for z in (-1, 1)], dtype=float
    )
    k, mass = np.zeros((3 * len(nodes), 3 * len(nodes))), np.zeros((len(nodes), len(nodes)))
    for a in range(len(nodes)):
        for b in range(a):
            arm = nodes[a] - nodes[b]
            if np.linalg.norm(arm) < 0.16:
                e = np.kron([1.0, -1.0], arm / np.linalg.norm(arm))
                at_ = np.r_[3 * a : 3 * a + 3, 3 * b : 3 * b + 3]
                k[np.ix_(at_, at_)] += 2e3 * np.outer(e, e)
                mass[np.ix_([a, b], [a, b])] += 0.01 / 6.0 * np.array([[2.0, 1.0], [1.0, 2.0]])
    return nodes, mass, k


def test_a_finite_element_model_keeps_all_of_its_mass_and_its_own_modes(tmp_path):
    nodes, mass, k = lattice()
    modal = from_finite_elements("beam", nodes, mass, k, modes=4, clamped=range(4), places={"tip": len(nodes) - 1})
    wall = Body("wall", 1.0, inertia=np.eye(3))
    build = lambda body: rtmms.compile(
        Mechanism("b", [wall, body], [Joint("fix", "wall", "beam", type="fixed")], base="free", gravity=(0, 0, 0))
    )
    model = build(Body("beam", modal=modal))
    state = model.state()
    m = dynamics.mass_matrix(model, state)
    assert m[0, 0] == pytest.approx(1.0 + mass.sum(), rel=1e-12)
    np.testing.assert_allclose(m[6:, 6:], np.eye(4), atol=1e-10)  # modal masses of 1, and nothing between modes
    # the coupling with the whole body's motion is that of the mass matrix: rigid fields against the shapes
    _, shapes = modes_of(nodes, mass, k, 4)
    coupling = np.einsum("ab,kbi->ki", mass, shapes)
    np.testing.assert_allclose(np.abs(m[6:, :3]), np.abs(coupling), atol=1e-10)
    spin = np.einsum("ab,kabi->ki", mass, np.cross(nodes[None, :, None, :], shapes[:, None, :, :]))
    np.testing.assert_allclose(np.abs(m[6:, 3:6]), np.abs(spin), atol=1e-10)
    inertia = np.einsum("ab,ai,bj->ij", mass, nodes, nodes)
    np.testing.assert_allclose(m[3:6, 3:6], np.eye(3) + np.trace(inertia) * np.eye(3) - inertia, atol=1e-10)
    # a lumped model is its own points: the same accelerations as sections at its nodes
    lumped = np.diag(mass.sum(axis=1))
    first = build(Body("beam", modal=from_finite_elements("beam", nodes, lumped, k, modes=3, clamped=range(4))))
    values, shapes = modes_of(nodes, lumped, k, 3)
    sections = [Section(Body(f"n{a}", lumped[a, a]), Placement(np.eye(3), nodes[a]),
                        np.hstack([shapes[:, a], np.zeros((3, 3))])) for a in range(len(nodes))]  # fmt: skip
    second = build(Body("beam", modal=Modal(["mode1", "mode2", "mode3"], values, sections)))
    moving, force = any_state(first, 9)
    moving.q, moving.twist = 0.01 * moving.q, RNG.normal(size=6)
    signs = np.sign(
        np.sum(
            dynamics.mass_matrix(first, first.state())[6:, :6] * dynamics.mass_matrix(second, second.state())[6:, :6],
            axis=1,
        )
    )
    a = dynamics.forward_dynamics(first, moving, force)
    other = replace(moving, q=signs * moving.q, qd=signs * moving.qd)
    b = dynamics.forward_dynamics(second, other, signs * force)
    np.testing.assert_allclose(a.base_acceleration, b.base_acceleration, atol=1e-9 * np.abs(a.base_acceleration).max())
    np.testing.assert_allclose(a.qdd, signs * b.qdd, atol=1e-9 * np.abs(a.qdd).max())
    # files
    np.savez(tmp_path / "beam.npz", nodes=nodes, mass=mass, stiffness=k, clamped=np.arange(4))
    np.savetxt(tmp_path / "nodes.csv", nodes, delimiter=",")
    np.savetxt(tmp_path / "clamped.csv", np.arange(4), fmt="%d", delimiter=",")
    mmwrite(tmp_path / "mass.mtx", np.kron(mass, np.eye(3)))
    mmwrite(tmp_path / "stiffness.mtx", k)
    for path in (tmp_path / "beam.npz", tmp_path):
        np.testing.assert_allclose(load_finite_elements("beam", path, modes=4).stiffness, modal.stiffness, rtol=1e-8)
    free = from_finite_elements("beam", nodes, mass, k, modes=2)
    assert np.all(np.asarray(free.stiffness) > 1.0)


def modes_of(nodes, mass, k, count):
    from scipy.linalg import eigh

    free = np.arange(12, 3 * len(nodes))
    values, vectors = eigh(k[np.ix_(free, free)], np.kron(mass, np.eye(3))[np.ix_(free, free)])
    shapes = np.zeros((count, 3 * len(nodes)))
    shapes[:, free] = vectors[:, :count].T
    return values[:count], shapes.reshape(count, -1, 3)


def test_a_clamped_beam_has_its_frequencies():
    """Bending by x^2 to x^6 in its own modes: beta l of Euler and Bernoulli, 1.8751 and 4.6941, to 1e-3."""
    length, rho_a, ei = 1.0, 0.5, 2.0
    powers = (2, 3, 4, 5, 6)
    shapes = {f"x{p}": bending(lambda x, p=p: x**p, lambda x, p=p: p * x ** (p - 1)) for p in powers}
    curvature = [lambda x, p=p: p * (p - 1) * x ** (p - 2) for p in powers]
    pieces = sections_along("beam", length, 8, lambda n, x, s: Body(n, rho_a * s), shapes)
    mass = sum(s.body.mass * np.outer(s.shape[:, 1], s.shape[:, 1]) for s in pieces)
    current = own_modes(Modal(list(shapes), stiffness_of(curvature, lambda x: ei, length), pieces), mass, 2)
    beta = (np.asarray(current.stiffness) * rho_a / ei) ** 0.25
    np.testing.assert_allclose(beta, [1.8751, 4.6941], rtol=1e-3)
    model = rtmms.compile(Mechanism("b", [Body("beam", modal=current)], base="fixed", gravity=(0, 0, 0)))
    np.testing.assert_allclose(dynamics.mass_matrix(model, model.state()), np.eye(2), atol=1e-10)


def test_what_cannot_bend_so_is_refused():
    piece = Section(blade("s", 1.0), at(0.1), np.array([[0, 1.0, 0, 0, 0, 0]]))
    far = Section(blade("t", 1.0), at(0.2), np.array([[0, 1.0, 0, 0, 0, 0]]))
    make = lambda modal: rtmms.compile(Mechanism("m", [Body("b", 1.0, inertia=np.eye(3), modal=modal)]))
    whole = lambda modal: rtmms.compile(Mechanism("m", [Body("b", modal=modal)]))
    nodes, mass, k = lattice(1)
    cases = [
        (lambda: sections_along("b", 1.0, 2, lambda *a: blade("s", 1.0), {"m": twisting(lambda x: 0.1 + x)}),
         r"body 'b': modal: shape 'm': expected 0 at the clamped root X = 0"),
        (lambda: sections_along("b", 1.0, 2, lambda *a: blade("s", 1.0), {"m": twisting(lambda x: math.nan)}),
         r"shape 'm': expected 6 finite numbers at X = 0 m"),
        (lambda: make(Modal(["m"], 1.0, [replace(piece, shape=np.zeros((1, 6)))])), "expected a mode that moves mass"),
        (lambda: whole(Modal(["m"], 1.0, [piece, far])), "mode 'b.m' is not independent"),
        (lambda: make(Modal(["m"], np.ones((2, 2)), [piece])), "stiffness must be 1 finite"),
        (lambda: make(Modal(["m", "n"], np.ones((2, 2)), [piece])), "stiffness: expected no coupling of the modes"),
        (lambda: make(Modal(["m"], -1.0, [piece])), "stiffness must be 1 finite numbers >= 0"),
        (lambda: make(Modal(["m"], 1.0, [replace(piece, shape=np.ones((2, 6)))])),
         r"section 's': shape must have shape \(1, 6\)"),
        (lambda: make(Modal(["m"], 1.0, [3])), r"sections\[0\]: expected a Section"),
        (lambda: make(Modal([], 1.0, [piece])), "names: expected different names of modes"),
        (lambda: make(3), "expected a Modal"),
        (lambda: from_finite_elements("b", nodes, mass, k, modes=1, clamped=[99]), "clamped must be nodes 0 to 7"),
        (lambda: from_finite_elements("b", nodes, mass, k, modes=99), "modes must be 1 to 18"),
        (lambda: from_finite_elements("b", nodes, mass, k[:5, :5], modes=1),
         r"stiffness: expected finite numbers of shape \(24, 24\), got shape \(5, 5\)$"),
        (lambda: from_finite_elements("b", nodes, mass, k, modes=1, clamped=[0]),
         "expected 0 motions without stiffness"),
        (lambda: load_finite_elements("b", "no.npz", modes=1), "no.npz: there is no such file"),
    ]  # fmt: skip
    for build, message in cases:
        with pytest.raises(rtmms.ModelError, match=message):
            build()


def test_the_rotations_functions_are_their_series_on_both_sides_of_where_they_change():
    """cos n, (1 - cos n) / n2, (n - sin n) / n3, sin n / n, and the slopes over n of the second and third."""
    axis = np.array([0.6, -0.48, 0.64])
    plain = getattr(modal_motion.turning, "py_func", modal_motion.turning)
    for n2 in (0.0, 1e-6, 0.99 * modal_motion.MAX_SERIES_RAD2, 1.01 * modal_motion.MAX_SERIES_RAD2, 0.5, 4.0):
        sums = [
            math.fsum((-1.0) ** k * n2**k / math.factorial(2 * k + first) for k in range(30)) for first in (0, 2, 3, 1)
        ]
        slopes = [
            math.fsum((-1.0) ** k * 2 * k * n2 ** (k - 1) / math.factorial(2 * k + first) for k in range(1, 30))
            for first in (2, 3)
        ]
        result = plain(*(np.sqrt(n2) * axis))
        assert result[:4] == pytest.approx(sums, rel=2e-15 if n2 < modal_motion.MAX_SERIES_RAD2 else 1e-11)
        assert result[4:] == pytest.approx(slopes, rel=5e-6)


@pytest.mark.full  # the modal plants' kernels
def test_an_implicit_step_answers_the_slopes_of_all_springs_and_dampers():
    """(M + h (C + h K)) qdd = - rest - h K qd, of joints and modes, by a long step of implicit1."""
    whole, h = tree("fixed"), 0.05
    loose = [j if j.type == "fixed" else replace(j, rotor=0.07, damping=0.2, stiffness=0.5) for j in whole.joints]
    model = rtmms.compile(replace(whole, joints=loose))
    state, _ = any_state(model, 4)
    plant = TreePlant(model, h, method="implicit1", initial=state)
    plant.step(plant.neutral)
    qdd = (plant.vector[-model.n :] - state.qd) / h
    c, k = (model.constant[1 : model.n + 1, column] for column in (C_DAMPING, C_STIFFNESS))
    m, remaining = (part[..., -model.n :] for part in (dynamics.mass_matrix(model, state), dynamics.bias(model, state)))
    left = m[-model.n :] @ qdd + remaining + h * (c + h * k) * qdd + h * k * state.qd
    np.testing.assert_allclose(left, 0.0, atol=1e-9 * np.abs(remaining).max())
