"""Force models against their own definitions: sums over points, work, Galilean and energy identities."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.base.spatial import quaternion_matrix, skew
from rtmms.fluids.ambient import SAMPLE, Flow, Wave, sample
from rtmms.mechanism.flow import fluid_wrench
from rtmms.mechanism.plant import TreePlant
from rtmms.model import Blade, Body, Joint, Mechanism, Placement, State, Strip, elliptic_strip
from rtmms.model.elements import Tether, Wake
from rtmms.model.elongated import elongated_body
from rtmms.robots import eel
from tests.random_tree import random_state

RNG = np.random.default_rng(0)
PLACE = Placement(quaternion_matrix(RNG.normal(size=4)), RNG.normal(size=3) * 0.3)
BODY = {"mass": 2.0, "inertia": np.eye(3)}


def single(*elements, gravity=(0, 0, 0), **body):
    return rtmms.compile(Mechanism("one", [Body("b", **{**BODY, **body}, elements=elements)], gravity=gravity))


def test_strip_drag_is_the_sum_over_its_sections():
    strip = Strip(0.7, drag=(0.3, 20.0, 12.0), roll_drag=0.4, placement=PLACE)
    model, e = single(strip), PLACE.rotation
    state = random_state(model, 4)
    force, moment = np.zeros(3), np.zeros(3)
    cells = 4000
    for x in (np.arange(cells) + 0.5) / cells * 0.7 - 0.35:
        point = PLACE.position + e[:, 0] * x
        v = e.T @ (state.twist[:3] + np.cross(state.twist[3:], point))
        n = np.hypot(v[1], v[2])
        f = -e @ np.array([0.3 * abs(v[0]) * v[0], 20.0 * n * v[1], 12.0 * n * v[2]]) * 0.7 / cells
        force += f
        moment += np.cross(point, f)
    w1 = (e.T @ state.twist[3:])[0]
    moment -= e[:, 0] * 0.4 * abs(w1) * w1 * 0.7
    got = fluid_wrench(model, state, strip_nodes=40)[0]
    np.testing.assert_allclose(got, [*force, *moment], rtol=1e-5)


def test_ten_nodes_are_enough():
    model = single(Strip(0.4, drag=(0.3, 20.0, 12.0), placement=PLACE))
    state = random_state(model, 6)
    few, many = (fluid_wrench(model, state, strip_nodes=k)[0] for k in (10, 60))
    np.testing.assert_allclose(few, many, rtol=1e-4)


def test_the_papers_added_mass_is_the_sum_over_its_sections():
    """-M_a eta' - int m_a (classical acceleration), (48), (49): no other term."""
    strip = Strip(0.7, added=(0.2, 9.0, 5.0), law="khalil2007", placement=PLACE)
    model, e = single(strip), PLACE.rotation
    state = random_state(model, 4)
    out = dynamics.forward_dynamics(model, state, np.zeros(0), wrench=fluid_wrench(model, state))
    v, w, a = state.twist[:3], state.twist[3:], out.base_acceleration
    force, moment = np.zeros(3), np.zeros(3)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    for x, weight in zip(0.35 * nodes, 0.35 * weights, strict=True):
        r = PLACE.position + e[:, 0] * x
        classical = a[:3] + np.cross(w, v) + np.cross(a[3:], r) + np.cross(w, np.cross(w, r))
        f = -e @ (np.array([0.0, 9.0, 5.0]) * (e.T @ classical)) * weight
        force += f
        moment += np.cross(r, f)
    moment -= e[:, 0] * 0.2 * 0.7 * (e[:, 0] @ a[3:])
    rigid = np.concatenate([2.0 * (a[:3] + np.cross(w, v)), a[3:]])  # mass 2, inertia the identity
    np.testing.assert_allclose(rigid, [*force, *moment], atol=1e-12)


def blade_force(blade, v):
    """Force a metre at velocity v of the pressure point, blade frame, from the words of the definition."""
    t, w = np.array([0.0, 0, 1]), np.array([0.0, 1, 0])
    speed = np.linalg.norm(v)
    n = v / speed
    w = w if -w @ n >= 0 else -w
    beta = np.arctan2(-w @ n, -t @ n)
    u = np.cross(n, np.cross(t, n))
    u /= np.linalg.norm(u)
    q = 0.5 * blade.density * blade.chord * speed**2
    return -q * ((1.92 - 1.55 * np.cos(2 * beta)) * n + 1.8 * np.sin(2 * beta) * u)


def test_blade_is_the_sum_over_its_sections():
    blade = Blade(0.05, 0.02, 1.2, placement=PLACE, added=0.0)
    model, e = single(blade), PLACE.rotation
    state = random_state(model, 9)
    force, moment = np.zeros(3), np.zeros(3)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    for x, weight in zip(0.025 * (1 + nodes), 0.025 * weights, strict=True):
        r = PLACE.position + e @ np.array([x, 0.0, -0.4 * 0.02])
        f = e @ blade_force(blade, e.T @ (state.twist[:3] + np.cross(state.twist[3:], r))) * weight
        force += f
        moment += np.cross(r, f)
    got = fluid_wrench(model, state, blade_nodes=6)[0]
    np.testing.assert_allclose(got, [*force, *moment], rtol=1e-8)
    assert got[:3] @ state.twist[:3] + got[3:] @ state.twist[3:] < 0.0  # the air takes energy
    assert not np.any(fluid_wrench(model, model.state()))


@pytest.mark.parametrize(
    "element", [Strip(0.5, added=(0.2, 9.0, 5.0), placement=PLACE), Blade(0.5, 0.3, 10.0, placement=PLACE)]
)
def test_added_inertia_is_the_fluids_kinetic_energy(element):
    """1/2 eta^T M_a eta = 1/2 int m_a V_n^2."""
    e, twist = PLACE.rotation, np.random.default_rng(1).normal(size=6)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    total, kind = 0.0, isinstance(element, Strip)
    for x, weight in zip(0.25 * nodes, 0.25 * weights, strict=True):
        local = np.array([x, 0, 0]) if kind else np.array([x + 0.25, 0, -0.12])
        v = e.T @ (twist[:3] - skew(PLACE.position + e @ local) @ twist[3:])
        if kind:
            total += 0.5 * weight * (9.0 * v[1] ** 2 + 5.0 * v[2] ** 2 + 0.2 * (e.T @ twist[3:])[0] ** 2)
        else:
            total += 0.5 * weight * 0.25 * 10.0 * np.pi * 0.3**2 * v[1] ** 2
    assert 0.5 * twist @ element.added_inertia() @ twist == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("law", ["kirchhoff", "khalil2007"])
def test_a_neutral_body_goes_with_an_accelerating_fluid(law):
    strip = elliptic_strip(0.1, 0.2, 0.5, 1000.0, PLACE, law=law)
    mass = strip.displaced * strip.length
    inertia = np.eye(3) * mass
    body = Body.about_centre("b", mass, PLACE.position, inertia, elements=[strip])
    model = rtmms.compile(Mechanism("fish", [body], gravity=(0, 0, 0)))
    flow = Flow((0.1, 0.2, 0.3), waves=[Wave((0.5, -0.2, 0.4), omega=3.0, phase=0.3)])
    now = np.zeros(SAMPLE)
    sample(flow.pack(), np.zeros(3), 0.7, 0.0, 0.0, 0.0, now)
    state = random_state(model, 3)
    state.twist[:3], state.twist[3:] = state.rotation.T @ now[:3], 0.0
    wrench = fluid_wrench(model, state, flow, 0.7)
    out = dynamics.forward_dynamics(model, state, np.zeros(0), wrench=wrench)
    np.testing.assert_allclose(state.rotation @ out.base_acceleration[:3], now[12:], atol=1e-12)
    np.testing.assert_allclose(out.base_acceleration[3:], 0.0, atol=1e-12)


def test_energy_identity_in_a_flow_with_gradient():
    """d/dt (T_b + 1/2 p.eta_r + p.u) = m_displaced gamma.v in a steady flow without drag (Kirchhoff)."""
    strip = Strip(0.5, added=(0.2, 9.0, 5.0), displaced=4.0, placement=PLACE)
    model = single(strip)
    slope = RNG.normal(size=(3, 3))
    flow = Flow((0.4, -0.1, 0.2), gradient=slope)
    state = random_state(model, 12)
    out = dynamics.forward_dynamics(model, state, np.zeros(0), wrench=fluid_wrench(model, state, flow))
    added, rigid = strip.added_inertia(), model.inertia(0) - strip.added_inertia()

    def energy(position, rotation, twist):
        u = rotation.T @ (np.array(flow.velocity) + slope @ (position + rotation @ PLACE.position))
        relative = twist - np.concatenate([u, np.zeros(3)])
        p = added @ relative
        return 0.5 * twist @ rigid @ twist + 0.5 * p @ relative + p[:3] @ u

    h = 1e-30j
    r = state.rotation
    moved = energy(
        state.position + h * (r @ state.twist[:3]),
        r + h * (r @ skew(state.twist[3:])),
        state.twist + h * out.base_acceleration,
    )
    centre = state.position + r @ PLACE.position
    u = np.array(flow.velocity) + slope @ centre
    v = r @ (state.twist[:3] + np.cross(state.twist[3:], PLACE.position))
    assert moved.imag / 1e-30 == pytest.approx(4.0 * 0.5 * (slope @ u) @ v, rel=1e-12)


def test_waves_and_their_derivatives():
    flow = Flow((0.1, 0, 0), np.diag([0.1, 0.2, -0.3]), [Wave((0.3, 0.1, 0.2), (1.0, 2.0, 0.5), 1.5, 0.2)]).pack()

    def u(x, t):
        out = np.zeros(SAMPLE, complex)
        sample(flow, np.zeros(3), t, *x, out)
        return out

    x, t, h = np.array([0.3, 0.1, -0.2]), 0.6, 1e-30
    at = u(x.astype(complex), complex(t)).real
    for b in range(3):
        step = x + 1j * h * np.eye(3)[b]
        np.testing.assert_allclose(u(step, complex(t))[:3].imag / h, at[3:12].reshape(3, 3)[:, b], atol=1e-14)
    np.testing.assert_allclose(u(x.astype(complex), t + 1j * h)[:3].imag / h, at[12:], atol=1e-14)


def test_a_function_of_place_and_time_is_a_flow_too():
    model = single(Strip(0.5, drag=(0.3, 20.0, 12.0), placement=PLACE))
    state = State(np.array([1.0, 2, 3]), np.array([1.0, 0, 0, 0]), np.zeros(0), np.zeros(6), np.zeros(0))
    observed = []

    def field(x, t):
        observed.append((x.copy(), t))
        return np.array([0.3, 0.2, -0.1])

    got = fluid_wrench(model, state, Flow(field=field), 0.25)
    np.testing.assert_allclose(got, fluid_wrench(model, state, Flow((0.3, 0.2, -0.1))), atol=1e-14)
    np.testing.assert_allclose(observed[0][0], state.position + PLACE.position)
    assert observed[0][1] == 0.25
    with pytest.raises(rtmms.ModelError, match="field must return 3 finite numbers"):
        fluid_wrench(model, state, Flow(field=lambda x, t: np.array([np.nan, 0, 0])))
    with pytest.raises(rtmms.ModelError, match="flow: gradient must be"):
        fluid_wrench(model, state, Flow(gradient=np.zeros(3)))


def test_a_function_costs_the_step_its_second_order():
    """An eel in water that moves in place and time, and its outputs: the present water, not the last step's."""
    like = eel.load(joints=2)

    def end(dt):
        field = lambda x, t: np.array([0.3 * np.sin(2.0 * t + x[0]), 0.2 * np.cos(3.0 * t), 0.0])
        plant = TreePlant(like.model, dt, like.law, like.drives, flow=Flow(field=field), nodes=like.nodes)
        for _ in range(round(0.96 / dt)):
            plant.step(plant.neutral)
        return plant

    exact = end(1e-3).vector
    errors = [np.max(np.abs(end(dt).vector - exact)) for dt in (24e-3, 12e-3)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)
    plant = end(24e-3)
    observed, blob = plant.observe(), plant.snapshot()
    plant.reset()
    plant.observe()
    plant.restore(blob)
    np.testing.assert_array_equal(plant.observe()["joint_torque"], observed["joint_torque"])


def test_buoyancy_lifts_what_is_lighter_than_its_fluid():
    from rtmms.model import Ellipsoid

    solid = Ellipsoid(0.1, 0.2, 0.3, 500.0)
    body = Body("b", solids=[solid], fluid_density=1000.0)
    model = rtmms.compile(Mechanism("cork", [body]))
    out = dynamics.forward_dynamics(model, model.state(), np.zeros(0))
    np.testing.assert_allclose(out.base_acceleration, [0, 0, 9.81, 0, 0, 0], atol=1e-12)


TETHER = Tether((30.0, 20.0, 10.0), (3.0, 2.0, 1.0), (0.1, -0.2, 0.3), (1.0, 2.0, -0.5), PLACE)


def test_a_tether_pulls_at_its_point():
    """F = - k (x - anchor) - c x', along the world's axes, at the point."""
    model = single(TETHER)
    state = random_state(model, 11)
    turn, arm = quaternion_matrix(state.orientation), PLACE.position + PLACE.rotation @ TETHER.point
    speed = turn @ (state.twist[:3] + np.cross(state.twist[3:], arm))
    stretch = state.position + turn @ arm - TETHER.anchor
    force = turn.T @ (-np.array(TETHER.stiffness) * stretch - np.array(TETHER.damping) * speed)
    np.testing.assert_allclose(fluid_wrench(model, state)[0], [*force, *np.cross(arm, force)], rtol=1e-12)


def swirling(t, x, y, z, out):
    """A velocity that is linear in place and time, with its gradient and rate."""
    out[0] = 0.1 * x + 0.3 * y - 0.2 * z + 0.5 * t
    out[1] = 0.4 * x - 0.3 * y + 0.1 * z - 0.3 * t
    out[2] = 0.2 * x - 0.3 * y + 0.2 * z + 0.2 * t
    out[3], out[4], out[5] = 0.1, 0.3, -0.2
    out[6], out[7], out[8] = 0.4, -0.3, 0.1
    out[9], out[10], out[11] = 0.2, -0.3, 0.2
    out[12], out[13], out[14] = 0.5, -0.3, 0.2


@pytest.mark.parametrize("flow", [Flow((0.2, -0.1, 0.3), acceleration=(0.5, 0.4, -0.3)), Flow(compiled=swirling)])
def test_energy_closes_term_by_term_for_bodies_that_turn_any_way(flow):
    """d/dt of all that is stored against the powers reported, by steps of RK4 to either side."""
    strip = Strip(0.7, drag=(0.3, 2.0, 1.2), roll_drag=0.4, added=(0.2, 3.0, 2.0), displaced=1.5, placement=PLACE)
    turns = PLACE.rotation, PLACE.rotation @ np.diag([-1.0, -1.0, 1.0])
    wakes = [Wake((0.02, 0.8, 0.6), Placement(turn, 0.2 * turn[0])) for turn in turns]
    arm = Body.about_centre("arm", 0.5, (0.1, 0.2, 0.0), np.eye(3) * 0.1, elements=[strip, *wakes])
    bodies = [Body("b", **BODY, elements=[strip, TETHER, *wakes]), arm]
    joint = Joint("j", "b", "arm", axis=(0.48, 0.6, 0.64), placement=PLACE, stiffness=2.0, damping=0.3)
    tree = Mechanism("two", bodies, [joint], gravity=(0.0, 0.0, -9.81))
    h, observed = 1e-4, []
    plant = TreePlant(tree, h, initial=random_state(rtmms.compile(tree), 12), flow=flow, audited=True)
    for _ in range(5):
        observed.append({name: float(value) for name, value in plant.observe().items() if np.ndim(value) == 0})
        plant.step(plant.neutral)
    rate = np.dot([1.0, -8.0, 0.0, 8.0, -1.0], [item["energy"] for item in observed]) / (12.0 * h)
    powers = [observed[2][f"{name}_power"] for name in ("flow", "wake", "drag", "damping")]
    assert min(map(abs, powers)) > 0.01
    assert rate == pytest.approx(sum(powers), abs=1e-8 * sum(map(abs, powers)))


def test_an_elongated_body_with_its_axes_exchanged_exchanges_its_sides():
    values = {"start": 0.0, "end": 0.4, "pieces": 3, "density": 1000.0, "friction": 0.01}
    item = elongated_body("b", lambda x: (0.02 + 0.01 * x, 0.05 - 0.02 * x), **values, cross=(0.7, 1.1))
    other = elongated_body("b", lambda x: (0.05 - 0.02 * x, 0.02 + 0.01 * x), **values, cross=(1.1, 0.7))
    for mine, theirs in zip(item.elements, other.elements, strict=True):
        np.testing.assert_allclose(mine.drag, np.array(theirs.drag)[[0, 2, 1]], rtol=1e-12)
        np.testing.assert_allclose(mine.added, np.array(theirs.added)[[0, 2, 1]], rtol=1e-12)
        assert mine.displaced == pytest.approx(theirs.displaced, rel=1e-12)
    first = 0.2 * (1.0 - np.sqrt(0.6))  # m, the first of three points of Gauss
    assert item.elements[0].drag[1] == pytest.approx(1000.0 * 0.7 * (0.05 - 0.02 * first), rel=1e-12)


def test_sections_of_an_elongated_body_add_up_to_it_and_too_few_are_refused():
    """A cone of 0.4 m from (0.02, 0.05) to (0.024, 0.042) m: mass, first and second moment are those of polynomials."""
    values = {"half_axes": lambda x: (0.02 + 0.01 * x, 0.05 - 0.02 * x), "start": 0.0, "end": 0.4, "density": 800.0}
    x = np.polynomial.Polynomial([0.0, 1.0])
    area = 800.0 * np.pi * (0.02 + 0.01 * x) * (0.05 - 0.02 * x)
    mass, moment, about = ((area * x**k).integ()(0.4) for k in range(3))
    across = (0.25 * area * (0.05 - 0.02 * x) ** 2).integ()(0.4)
    body = elongated_body("b", pieces=3, **values)
    assert body.mass == pytest.approx(mass, rel=1e-12)
    assert body.first_moment[0] == pytest.approx(moment, rel=1e-12)
    assert body.inertia[1, 1] == pytest.approx(about + across, rel=1e-12)
    with pytest.raises(rtmms.ModelError, match=r"body 'b': 1 sections are too few: the error .* is 31 %"):
        elongated_body("b", pieces=1, **values)


def test_the_couple_of_a_tapering_section_is_that_of_its_own_acceleration():
    """M (a - a without it) = - m dV2/dt about e3, V2 across at the middle (48): of the acceleration that is found."""
    e, m, result, h = PLACE.rotation, 0.7 * 0.05, [], 1e-6  # 0.7 m of 0.05 kg
    for couple in (0.0, 0.05):
        strip = Strip(0.7, drag=(0.3, 20.0, 12.0), added=(0.2, 3.0, 2.0), couple=couple, placement=PLACE)
        tree = Mechanism("one", [Body("b", **BODY, elements=[strip])], gravity=(0, 0, -9.81))
        model = rtmms.compile(tree)
        state = random_state(model, 13)
        plant = TreePlant(tree, h, initial=state)
        plant.step(plant.neutral)
        result.append((plant.vector[-6:] - state.twist) / h)
    across = e[:, 1] @ (result[1][:3] + np.cross(result[1][3:], PLACE.position))
    lacking = dynamics.mass_matrix(model, state) @ (result[1] - result[0])
    assert abs(m * across) > 0.01
    np.testing.assert_allclose(lacking, [0.0, 0.0, 0.0, *(-m * across * e[:, 2])], atol=2e-4 * abs(m * across))


def test_each_wake_pulls_at_its_own_body():
    """F = p V1 - 1/2 (p . eta) e1 about its place, p = M_f eta, where V1 < 0 (of two on each body, one)."""
    turns = PLACE.rotation, PLACE.rotation @ np.diag([-1.0, -1.0, 1.0])
    wakes = [Wake((0.02, 0.8, 0.6), Placement(turn, 0.2 * turn[0])) for turn in turns]
    bodies = [Body(name, **BODY, elements=wakes) for name in ("b", "arm")]
    model = rtmms.compile(Mechanism("two", bodies, [Joint("j", "b", "arm", placement=PLACE)], gravity=(0, 0, 0)))
    state = random_state(model, 14)
    twists, result = dynamics.body_twists(model, state), fluid_wrench(model, state)
    for name in ("b", "arm"):
        row, wrench = model.body(name), np.zeros(6)
        for wake in wakes:
            turn, at = wake.placement.rotation, wake.placement.position
            v, w = turn.T @ (twists[row][:3] + np.cross(twists[row][3:], at)), turn.T @ twists[row][3:]
            added = np.array([0.0, *wake.added[1:]]) * v, np.array([wake.added[0], 0.0, 0.0]) * w
            if v[0] < 0.0:
                force = turn @ (added[0] * v[0] - 0.5 * (added[0] @ v + added[1] @ w) * np.eye(3)[0])
                wrench += [*force, *(turn @ added[1] * v[0] + np.cross(at, force))]
        np.testing.assert_allclose(result[row], wrench, rtol=1e-12, atol=1e-14)
