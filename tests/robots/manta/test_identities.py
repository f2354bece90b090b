"""The manta's physics by identities: power, order, mirror, Galilei, coupling."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.base.spatial import quaternion_matrix
from rtmms.dynamics.recursion import move_pose
from rtmms.robots.manta import load
from rtmms.robots.manta.coupling import move_supports
from rtmms.robots.manta.fin_layout import AN, LANES, LENGTH, QDD, L
from rtmms.robots.manta.layout import POSITION, QUATERNION, RODS, SUPPORTS, TWIST
from rtmms.robots.manta.rods import POINT, ROD_SIZE, ROTATION, SUPPORT_SIZE
from tests.robots.gaits import gait, randomise, run


def energy(plant):
    o = plant.observe()
    return float(o["kinetic_energy"] + o["elastic_energy"] + o["buoyancy_energy"])


def true_joint_accelerations(plant):
    """(rows, LANES) as `observe` found them."""
    return plant.system.rows[:, QDD * LANES : (QDD + 1) * LANES].copy()


def moved(plant, state, h, observed, qdd):
    """The state h seconds along its own flow, to second order in h (even errors cancel in central differences)."""
    s = plant._state
    s[:] = state
    twist = state[TWIST : TWIST + 6]
    rate = np.concatenate([observed["acceleration"], observed["angular_acceleration"]])
    move_pose(state, POSITION, twist + 0.5 * h * rate, 0, h, s, POSITION)
    s[TWIST : TWIST + 6] = twist + h * rate
    rods, was = (a[RODS : RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE) for a in (s, state))
    rods[:, 0] = was[:, 0] + h * was[:, 1] + 0.5 * h * h * was[:, 2]
    rods[:, 1] = was[:, 1] + h * was[:, 2]
    assert move_supports(plant.model.finned, s, RODS, ROD_SIZE, s, SUPPORTS)
    before = state[-plant.system.joints.size :].reshape(plant.system.joints.shape)
    plant.system.joints[:, :LANES] = before[:, :LANES] + h * before[:, LANES:] + 0.5 * h * h * qdd
    plant.system.joints[:, LANES:] = before[:, LANES:] + h * qdd


CASES = [
    {"chains": 1, "links": 1},
    {"chains": 1, "links": 3},
    {"chains": 1, "links": 5},
    {"chains": 30, "links": 3},
    {"chains": 7, "links": 3, "body": "fixed"},
    {"chains": 18, "links": 3, "added_mass": True},
    pytest.param({"chains": 5, "links": 2, "fin_normal": "neighbour"}, marks=pytest.mark.full),  # kernels of its own
    {"chains": 5, "links": 3, "support_roll": "zero", "body_moment": "linear", "body_drag": "componentwise"},
    {"chains": 9, "links": 3, "current_m_s": (0.3, -0.2, 0.1)},
    {"chains": 20, "links": 3, "left_chains_lost": 9, "right_chains_lost": 1},
    {"chains": 2, "links": 3, "buoyancy_centre_m": (0.04, -0.03, 0.05), "body_moment": "norm"},
]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(f"{k}={v}" for k, v in c.items()))
def test_power_balance_of_a_state(case, seed):
    """Power of the rods = rate of energy + power lost, at random states; one chain a fin tests the chain itself."""
    plant = load(coupling="monolithic", **case)
    randomise(plant, seed, body=case.get("body") != "fixed")
    outputs = plant.observe()
    qdd = true_joint_accelerations(plant)
    state = plant._state.copy()
    h = 2e-4 / (1.0 + float(np.abs(qdd).max()) * 1e-4)
    levels = []
    for k in (-3, -2, -1, 1, 2, 3):
        moved(plant, state, k * h, outputs, qdd)
        levels.append(energy(plant))
    e = np.array(levels)
    rate = float(np.dot([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0], e)) / (60.0 * h)
    terms = np.array([outputs["rod_power"], -outputs["drag_power"], -outputs["damping_power"]])
    # the moved state is exact to second order, so the sixth-order difference still leaves h^2
    half = []
    for k in (-3, -2, -1, 1, 2, 3):
        moved(plant, state, 0.5 * k * h, outputs, qdd)
        half.append(energy(plant))
    finer = float(np.dot([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0], half)) / (30.0 * h)
    best = finer + (finer - rate) / 3.0
    if "current_m_s" in case:
        # the body's frame of reference moves with the world: the same balance holds, drag working on moving water
        assert float(outputs["drag_power"]) != 0.0
    assert best == pytest.approx(float(terms.sum()), abs=1e-9 * np.abs(terms).sum() + 1e-9 * abs(rate))


def throughput(plant, command, seconds, every=1):
    """Largest residual of the balance along a run, relative to the work of the rods; of every so many steps."""
    n, gap = round(seconds / plant.dt) // every, every * plant.dt
    rows = np.empty((n + 1, 3))
    for k in range(n + 1):
        o = plant.observe()
        rows[k] = o["rod_power"], o["drag_power"] + o["damping_power"], 0.0
        rows[k, 2] = o["kinetic_energy"] + o["elastic_energy"] + o["buoyancy_energy"]
        for i in range(every if k < n else 0):
            plant.step(command((k * every + i) * plant.dt))
    net = rows[:, 0] - rows[:, 1]
    work = np.concatenate([[0.0], np.cumsum(0.5 * gap * (net[1:] + net[:-1]))])
    return np.abs(rows[:, 2] - rows[0, 2] - work).max() / np.trapezoid(np.abs(rows[:, 0]), dx=gap)


@pytest.mark.full
@pytest.mark.parametrize("body", ["free", "fixed"])
def test_power_balance_along_a_run_falls_with_the_step(body):
    """1e-6 at 0.1 ms, monolithic; 1.75 is what is left of order 2 when the joints' damping is this stiff."""
    coarse, fine = (throughput(load(dt=dt, coupling="monolithic", body=body), gait(), 3.0) for dt in (2e-4, 1e-4))
    assert fine < 1e-6
    assert np.log2(coarse / fine) > 1.6


@pytest.mark.full
@pytest.mark.parametrize("added_mass", [False, True])
def test_power_balance_with_light_damping_has_order_two(added_mass):
    values = {"coupling": "monolithic", "joint_damping_n_m_s": 1e-3, "added_mass": added_mass}
    residual = [throughput(load(dt=dt, **values), gait(), 1.5) for dt in (4e-4, 2e-4)]
    assert np.log2(residual[0] / residual[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.full
@pytest.mark.parametrize(("added_mass", "least"), [(False, 2e-6), (True, 1e-5)])
def test_the_account_itself_is_not_what_loses_order(added_mass, least):
    """States of fine steps, looked at every millisecond, close the balance to what those steps leave: the quadrature
    and the powers are sound, and what a step of 1 ms leaves, 4e-5 and 4e-4, is in its states."""
    plant = load(dt=5e-5, coupling="monolithic", added_mass=added_mass)
    assert throughput(plant, gait(), 1.5, every=20) < least


def end_state(dt, seconds=0.5, **parameters):
    """Position, attitude and twist at the end, the command being the control points of one smooth motion."""
    plant = load(dt=dt, actuation="ideal", **parameters)
    command = gait(ramp=0.5)
    for k in range(round(seconds / dt)):
        plant.step(command((k + 2) * dt))  # the spline is two steps late
    o = plant.observe()
    return np.concatenate([o["position"], o["quaternion"], o["velocity"], o["angular_velocity"]])


def orders(steps, errors):
    return [np.log(a / b) / np.log(s / t) for a, b, s, t in zip(errors, errors[1:], steps, steps[1:], strict=False)]


def test_order_of_the_implicit_step_is_two():
    steps = [4e-3, 2e-3, 1e-3]
    reference = end_state(1e-4, coupling="monolithic")
    errors = [np.abs(end_state(dt, coupling="monolithic") - reference).max() for dt in steps]
    assert errors[-1] < 2e-5
    assert orders(steps, errors) == pytest.approx([2.0, 2.0], abs=0.1)


def test_order_of_the_sequential_coupling_is_one_and_iterating_removes_it():
    steps = [4e-3, 2e-3, 1e-3]
    whole = [end_state(dt, coupling="monolithic") for dt in steps]
    lag = [np.abs(end_state(dt) - w).max() for dt, w in zip(steps, whole, strict=True)]
    assert orders(steps, lag) == pytest.approx([1.0, 1.0], abs=0.15)
    for dt, w in zip(steps, whole, strict=True):
        assert end_state(dt, coupling="iterated") == pytest.approx(w, abs=1e-10)


@pytest.mark.full
def test_order_of_rk4_is_four():
    """Light joints' damping, so that steps with a visible error are still stable; the rods' spline is only C2, so the
    motion is a servo's that has its command from the start."""
    soft = {"integrator": "rk4", "coupling": "monolithic", "joint_damping_n_m_s": 2e-4, "chains": 4}
    soft["damping_per"] = "joint"

    def end(dt):
        plant = load(dt=dt, **soft)
        for _ in range(round(0.064 / dt)):
            plant.step(np.array([0.3, 0.3, 0.2, 0.25]))
        return plant._state[TWIST : TWIST + 6].copy()

    # the reference of the servo runs up within the first step, which differs with dt: start all from one common state
    start = load(dt=1e-4, **soft)
    for _ in range(100):
        start.step(np.array([0.3, 0.3, 0.2, 0.25]))
    common = start._state.copy()

    def from_common(dt):
        plant = load(dt=dt, **soft)
        plant._state[:] = common
        for _ in range(round(0.0128 / dt)):
            plant.step(np.array([0.3, 0.3, 0.2, 0.25]))
        return plant._state[TWIST : TWIST + 6].copy()

    assert np.isfinite(end(4e-4)).all()
    steps = [3.2e-4, 1.6e-4, 8e-5]
    reference = from_common(1e-5)
    errors = [np.abs(from_common(dt) - reference).max() for dt in steps]
    assert orders(steps, errors) == pytest.approx([4.0, 4.0], abs=0.35)


def test_rk4_and_the_implicit_step_agree():
    a, b = (load(dt=5e-6, coupling="monolithic", integrator=i) for i in ("rk4", "implicit"))
    command = gait(ramp=0.01)
    for k in range(2000):
        a.step(command(k * 5e-6))
        b.step(command(k * 5e-6))
    x, y = a.observe(), b.observe()
    for name in ("velocity", "joint_position", "rod_torque", "thrust"):
        assert x[name] == pytest.approx(y[name], rel=2e-3, abs=2e-6), name


@pytest.mark.parametrize("coupling", ["sequential", "monolithic"])
def test_mirrored_commands_swim_the_mirrored_way(coupling):
    left, right = load(coupling=coupling), load(coupling=coupling)
    command = gait(right=(20.0, 0.0), ramp=0.3)
    for k in range(600):
        c = command(k * 1e-3)
        left.step(c)
        right.step(c[[2, 3, 0, 1]])
    a, b = left.observe(), right.observe()
    assert abs(a["position"][1]) > 1e-4
    assert a["position"] == pytest.approx(b["position"] * [1, -1, 1], abs=1e-12)
    assert a["angular_velocity"] == pytest.approx(b["angular_velocity"] * [-1, 1, -1], abs=1e-12)
    assert a["joint_position"] == pytest.approx(b["joint_position"][::-1], abs=1e-12)
    assert a["thrust"][0] == pytest.approx(b["thrust"][1] * [1, -1, 1, -1, 1, -1], abs=1e-10)


def test_a_symmetric_gait_yaws_by_nothing():
    plant = load()
    time, trace = run(plant, gait(), 10.0, 20)
    s = plant.summarise(time, trace)
    assert abs(s["turn_rate_deg_s"]) < 1e-9
    assert np.abs(plant.observe()["position"][1]) < 1e-9


@pytest.mark.parametrize("added_mass", [False, True])
def test_galilean_invariance(added_mass):
    """Swimming in a current is swimming in still water seen from a boat that drifts with it.

    Exact in the equations; the step, in body axes that turn, keeps it to its own order.
    """
    current = np.array([0.4, -0.3, 0.2])
    common = {"coupling": "monolithic", "added_mass": added_mass, "buoyancy_centre_m": (0.0, 0.0, 0.0)}
    still, drifting = load(**common), load(current_m_s=tuple(current), **common)
    drifting._state[TWIST : TWIST + 3] = current
    command = gait(right=(20.0, 0.0), ramp=0.3)
    for k in range(800):
        still.step(command(k * 1e-3))
        drifting.step(command(k * 1e-3))
    a, b = still.observe(), drifting.observe()
    assert b["joint_position"] == pytest.approx(a["joint_position"], abs=1e-8)
    assert b["quaternion"] == pytest.approx(a["quaternion"], abs=1e-8)
    assert b["position"] - 0.8 * current == pytest.approx(a["position"], abs=1e-4)


@pytest.mark.full  # samplers of its own to compile
def test_a_field_that_is_uniform_is_the_uniform_current():
    by_field = load(current_field=lambda x, y, z, t: (0.4, -0.3, 0.2))
    by_value = load(current_m_s=(0.4, -0.3, 0.2))
    command = gait(ramp=0.3)
    for k in range(400):
        by_field.step(command(k * 1e-3))
        by_value.step(command(k * 1e-3))
    a, b = by_field.observe(), by_value.observe()
    for name in ("velocity", "joint_position", "rod_torque"):
        assert a[name] == pytest.approx(b[name], abs=2e-5), name


@pytest.mark.full
def test_a_field_is_sampled_where_the_links_are():
    """A current that grows with x: the same as the closed form, through --set's gradient and through a function."""
    gradient = (0.5, 0.0, 0.0, 0.0, -0.25, 0.0, 0.0, 0.0, -0.25)
    a = load(current_gradient_1_s=gradient)
    b = load(current_field=lambda x, y, z, t: (0.5 * x, -0.25 * y, -0.25 * z))
    for plant in (a, b):
        plant._state[POSITION] = 1.0
        for _ in range(200):
            plant.step(np.zeros(4))
    assert a._state == pytest.approx(b._state, abs=1e-12)
    # the body, 1 m downstream of the source, is dragged along with 0.5 m/s at first
    assert 0.0 < a.observe()["velocity"][0] < 0.5


def places(plant):
    """Of the middles of the links, as vectors of the support's axes (a field of the place gives these), and of
    the body: by matrices, from the joints' angles."""
    memory, state, lanes = plant.system, plant._state, np.arange(LANES)
    m, blocks, attitude = plant.parameters.links, plant._blocks, quaternion_matrix(state[QUATERNION : QUATERNION + 4])
    result = np.zeros((2, blocks, m, 3, LANES))
    angles = np.cumsum(memory.joints[:, :LANES].reshape(2, blocks, m, LANES), axis=2)
    for f, b in np.ndindex(2, blocks):
        mirror = np.diag([1.0, 1.0 - 2.0 * f, 1.0])
        s = SUPPORTS + f * SUPPORT_SIZE
        support, root = state[s + ROTATION : s + ROTATION + 9].reshape(3, 3), state[s + POINT : s + POINT + 3]
        end = np.stack([memory.param[f, b, m * L + lanes], 0.0 * lanes, 0.0 * lanes])
        for j in range(m):
            along = np.stack([0.0 * lanes, np.cos(angles[f, b, j]), np.sin(angles[f, b, j])])
            link = memory.param[f, b, j * L + LENGTH * LANES + lanes] * along
            body = mirror @ ((plant.model.finned.root + root)[:, None] + support @ (end + 0.5 * link))
            world = state[POSITION : POSITION + 3, None] + attitude @ body
            result[f, b, j] = support.T @ mirror @ attitude.T @ world
            end += link
    return np.append(result, state[POSITION : POSITION + 3])


def test_a_field_is_sampled_where_the_links_will_be():
    """A field that reports the place itself: seen h ahead it is that of the state h later, to second order in h."""
    plant = load(chains=7, current_field=lambda x, y, z, t: (x, y, z))
    randomise(plant, 5)
    state, observed = plant._state.copy(), plant.observe()
    qdd, memory, off = true_joint_accelerations(plant), plant.system, []

    def sampled(ahead):
        drift, body, s = np.zeros_like(memory.drift), np.zeros(3), plant._state
        plant._sampler.gather(
            plant.model.finned, memory.param, s, POSITION, s, TWIST, s, SUPPORTS, memory.joints, ahead, 0.0, drift, body
        )
        return np.append(drift, body)

    assert sampled(0.0) == pytest.approx(places(plant), abs=1e-12)
    for h in (2e-5, 1e-5):
        plant._state[:] = state
        foretold = sampled(h)
        moved(plant, state, h, observed, qdd)
        off.append(np.abs(foretold - sampled(0.0)).max())
    assert np.abs(foretold - sampled(-h)).max() > 20.0 * off[1]  # the state has moved by more than what is compared
    assert off[1] < 1e-6
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.2)


def test_drag_on_a_fin_towed_straight_is_the_plate_formula():
    """Heave of the stiff, held fin: F = 1/2 rho C_D A V^2, and the moment acts at the middle of each chain."""
    plant = load(young_modulus_pa=1e14, body="fixed", current_m_s=(0.0, 0.0, -1.0))
    for _ in range(50):
        plant.step(np.zeros(4))
    area = float(plant.model.links[0].sum() * plant.parameters.support_length_m / plant.parameters.chains)
    assert area == pytest.approx(0.0709, abs=1e-4)
    o = plant.observe()
    assert o["thrust"][:, 2] == pytest.approx(-0.5 * 1000.0 * 1.5 * area, rel=1e-4)
    assert o["thrust"][0, 3] == pytest.approx(-o["thrust"][1, 3], rel=1e-12)


def test_neighbours_normals_of_a_flat_fin_are_the_links_own():
    a, b = (load(fin_normal=n, body="fixed", current_m_s=(0.1, 0.2, -1.0)) for n in ("link", "neighbour"))
    for plant in (a, b):
        randomise(plant, 4, body=False, rods=False, shape=0.0)
        plant.system.joints[:, LANES:] = 0.0
    assert a.observe()["thrust"] == pytest.approx(b.observe()["thrust"], abs=1e-12)


def test_three_links_known_and_any_number_of_links_agree():
    """The path compiled for three links and the one for any number are one kernel in two layouts."""
    plant = load(coupling="monolithic")
    randomise(plant, 9)
    a = plant.observe()
    plant._many = 3
    b = plant.observe()
    for name in ("acceleration", "angular_acceleration", "thrust", "rod_torque"):
        assert b[name] == pytest.approx(a[name], rel=1e-12, abs=1e-12), name
    state = plant._state.copy()
    plant.step(np.full(4, 0.1))
    stepped = plant._state.copy()
    plant._state[:] = state
    plant._many = None
    plant.step(np.full(4, 0.1))
    assert plant._state == pytest.approx(stepped, rel=1e-11, abs=1e-12)


def test_surplus_lanes_weigh_nothing_and_follow_the_last_chain():
    plant = load(chains=17)
    command = gait(ramp=0.2)
    for k in range(300):
        plant.step(command(k * 1e-3))
    lanes = plant.system.joints.reshape(2, 2, 3, 2, LANES)[:, 1]
    assert (lanes == lanes[..., :1]).all()
    assert plant.system.rows[:, AN * LANES : (AN + 1) * LANES].any()
    assert QUATERNION == POSITION + 3
