"""What gaits do: the numbers known for the robots, and what must hold of any connection and any gait."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.base.spatial import Array
from rtmms.locomotion import Connection, Path, gait_path, holonomy, reconstruct
from rtmms.locomotion.connections import PLANAR
from rtmms.locomotion.group import compose_poses, inverted, logarithm
from rtmms.locomotion.reconstruction import _moved, net_pose
from rtmms.robots import cat, fluid_swimmer, satellite
from tests.locomotion.bodies import KINDS, loop, purcell_from_the_left, robot, rods

RECTANGLE = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0], [0.0, 0.0]]
KNOWN = {
    "purcell": (Path.circle(1.0), (0.1484970643, 0.0402010991, 0.0)),
    "fluid_swimmer": (Path.circle(0.5), (0.7259539483, 0.0964967286, 0.0)),
    "satellite": (RECTANGLE, (-0.0382059925, 0.0321583142, 0.1651868933)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_gaits(name: str) -> None:
    path, wanted = KNOWN[name]
    np.testing.assert_allclose(holonomy(robot(name), path, KINDS[name])[:3], wanted, rtol=0.0, atol=1e-8)


def pose(connection: Connection, path: Any) -> Array:
    return net_pose(connection, path, 1e-13)


def apart(a: Array, b: Array) -> float:
    """How far two poses are from one another, m and rad."""
    return float(np.max(np.abs(logarithm(compose_poses(inverted(a), b)))))


@pytest.mark.parametrize("name", KINDS)
def test_no_change_of_pace_alters_it(name: str) -> None:
    item, path = Connection(robot(name), KINDS[name]), Path.fourier(loop(1))
    same = path.retimed(lambda t: t + 0.9 * np.sin(t), lambda t: 1.0 + 0.9 * np.cos(t), path.breaks)
    assert apart(pose(item, path), pose(item, same)) < 1e-10
    assert apart(pose(item, path), pose(item, path.lasting(0.3))) < 1e-10
    assert reconstruct(item, same, steps=4096).cost == pytest.approx(
        reconstruct(item, path, steps=4096).cost, rel=1e-10
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_gait_backwards_undoes_it(name: str) -> None:
    item, path = Connection(robot(name), KINDS[name]), Path.fourier(loop(2))
    assert apart(pose(item, path.reversed()), inverted(pose(item, path))) < 1e-10


@pytest.mark.parametrize("name", KINDS)
def test_a_way_there_and_back_leads_nowhere(name: str) -> None:
    """The scallop: one variable opens and shuts, each way at its own pace."""
    item, start, end = Connection(robot(name), KINDS[name]), np.array([0.2, -0.3]), np.array([1.1, 0.8])

    def scallop(t: Array) -> tuple[Array, Array]:
        share, rate = np.sin(0.5 * t) ** 2 + 0.1 * np.sin(t) ** 2, 0.5 * np.sin(t) + 0.1 * np.sin(2.0 * t)
        return start + share[:, None] * (end - start), rate[:, None] * (end - start)

    assert np.max(np.abs(logarithm(pose(item, Path(scallop))))) < 1e-10
    assert np.max(np.abs(logarithm(pose(item, [start, end, start])))) < 1e-10


def test_a_wheel_that_turns_on_and_on_is_no_scallop() -> None:
    """Only a way that can be drawn together leads nowhere: a wheel's whole turn ends at its first shape, and moves."""
    item = Connection(robot("satellite"), "mechanical")
    turned = holonomy(item, [[0.0, 0.0], [2.0 * math.pi, 0.0]], cycles=2)
    assert abs(turned[0]) > 0.1
    np.testing.assert_allclose(turned[:3], 2.0 * holonomy(item, [[0.0, 0.0], [2.0 * math.pi, 0.0]])[:3], atol=1e-12)


def test_another_reference_body() -> None:
    """The same swimmer seen from its left rod: both move alike, h^-1 g h over a closed gait."""
    path, middle = Path.fourier(loop(3)), Connection(robot("purcell"), "stokes")
    left = Connection(purcell_from_the_left(), "stokes")
    r = np.array([0.4, 0.7])
    # its own base stands in the joint, with its x along the rod
    np.testing.assert_allclose(left.at(r), middle.seen_from("left", r), atol=1e-13)
    state = middle.model.state()
    state.q = path.ends[0]
    rotation, place = dynamics.body_poses(middle.model, state)
    k = middle.model.body("left")
    angle = math.atan2(rotation[k, 1, 0], rotation[k, 0, 0])
    h = np.array([*place[k], math.cos(0.5 * angle), 0.0, 0.0, math.sin(0.5 * angle)])
    assert apart(pose(left, path), compose_poses(inverted(h), compose_poses(pose(middle, path), h))) < 1e-10


@pytest.mark.parametrize("name", KINDS)
def test_cycles_follow_one_another(name: str) -> None:
    item, path = Connection(robot(name), KINDS[name]), Path.fourier(loop(4))
    single = pose(item, path)
    three = reconstruct(item, path, cycles=3)
    assert apart(three.pose[-1], compose_poses(single, compose_poses(single, single))) < 1e-9
    np.testing.assert_allclose(three.displacement, holonomy(item, path, cycles=3), atol=1e-9)
    assert three.time[-1] == pytest.approx(3 * path.duration)
    assert len(three.time) == len(three.pose) == len(three.shape) == len(three.twist)


@pytest.mark.parametrize("name", KINDS)
def test_the_area_rule_and_its_order(name: str) -> None:
    """log g = -iint F: the distance shrinks with the fourth power of the loop's size, and without the bracket with the
    second alone."""
    item, r = Connection(robot(name), KINDS[name], planar=False), np.array([0.4, 0.7])
    flux = {retained: item.curvature(r, bracketed=retained)[:, 0, 1] for retained in (True, False)}
    sizes = 0.1 * 0.5 ** np.arange(4)
    off = {True: [], False: []}
    for a in sizes:
        # from the middle out, around and back: the loop is seen from where F is taken
        spoke = Path.polygon([r, r + np.array([a, 0.0])])
        out, around = pose(item, spoke), pose(item, Path.circle(a, r))
        net = logarithm(compose_poses(out, compose_poses(around, inverted(out))))
        for stored in off:
            off[stored].append(np.max(np.abs(net + math.pi * a * a * flux[stored])) / a**2)
    orders = {name: np.log2(np.array(errors[:-1]) / errors[1:]) for name, errors in off.items()}
    assert np.min(orders[True]) > 1.9
    assert np.max(np.abs(orders[False])) < 0.2
    assert off[False][-1] > 100.0 * off[True][-1]


def test_the_order_of_the_motion_on_the_group() -> None:
    item, path = Connection(robot("cat")), Path.circle(1.0)
    ends = [_moved(item, path, steps)[1][-1] for steps in (8, 16, 32, 256)]
    errors = [apart(end, ends[-1]) for end in ends[:-1]]
    assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > 5.5


ROOMS = {"cat": cat, "satellite": satellite, "fluid_swimmer": fluid_swimmer}


@pytest.mark.parametrize("name", ROOMS)
def test_the_full_dynamics_accelerate_as_the_connection_states(name: str) -> None:
    """At eta = -A rd the equations of motion give eta' = -A rdd - (dA rd) rd: no momentum comes in."""
    item, rng = Connection(robot(name), KINDS[name]), np.random.default_rng(8)
    model = rtmms.compile(robot(name))
    for _ in range(4):
        r, rd, rdd = rng.normal(size=(3, 2))
        state = model.state()
        state.q, state.qd, state.twist = r, rd, item.twist(r, rd)
        slope, form = item.slopes(r), item.form(r)
        wanted = -form @ rdd - np.einsum("kaj,k,j->a", slope, rd, rd)
        result = dynamics.inverse_dynamics(model, state, rdd)
        np.testing.assert_allclose(result.base_acceleration, wanted, atol=1e-11)
        energy = dynamics.energy(model, state).kinetic
        assert energy == pytest.approx(0.5 * item.along(r[None], rd[None])[1][0], rel=1e-12)
        # power balance: what the joints put in is the rate of that energy
        h = 1e-5
        ahead, behind = (
            item.along((r + s * h * rd + 0.5 * h * h * rdd)[None], (rd + s * h * rdd)[None])[1][0] for s in (1.0, -1.0)
        )
        assert result.torque @ rd == pytest.approx(0.5 * (ahead - behind) / (2.0 * h), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", ROOMS)
def test_a_plant_moves_as_the_connection_states(name: str) -> None:
    """A shape that is moved, on a free base that starts at rest: momentum and twist are off by the step's error alone,
    which falls with its fourth power."""
    worst = []
    for dt in (4e-3, 1e-3):
        plant: Any = ROOMS[name].load(dt=dt)
        item, off, momentum = Connection(plant.model, KINDS[name]), 0.0, 0.0
        for command in ([0.7, -0.4], [-0.5, 0.6]):
            for _ in range(round(0.3 / dt)):
                plant.step(np.array(command))
                state = plant.state
                off = max(off, float(np.max(np.abs(state.twist - item.twist(state.q, state.qd)))))
                momentum = max(momentum, float(np.max(np.abs(dynamics.momentum(plant.model, state)))))
        worst.append((off, momentum))
    assert worst[1][0] < 1e-6
    assert worst[1][1] < 1e-6
    assert np.all(np.log(np.array(worst[0]) / worst[1]) / math.log(4.0) > 3.5)


def test_power_balance_of_the_fluid_s_dissipation() -> None:
    """What the joints put in, by their torques, is what the drag takes, and the sum along a cycle."""
    item, path = Connection(robot("purcell"), "stokes"), Path.fourier(loop(6))
    done = reconstruct(item, path, steps=128)
    by_torque = np.array([item.drag(r, rd)[0] @ rd for r, rd in zip(done.shape, done.rate, strict=True)])
    np.testing.assert_allclose(by_torque, done.effort, rtol=1e-10)
    mean = float(np.mean(by_torque[:-1])) * path.duration  # periodic: the trapezoidal rule is exact to rounding
    assert done.work == pytest.approx(mean, rel=1e-10)
    assert done.work >= done.cost**2 / path.duration


def test_inertia_gives_back_what_it_takes() -> None:
    """Along a closed gait the actuators' work is 0 in the sum; `work` counts what is put in alone."""
    item, path = Connection(robot("fluid_swimmer"), "hydrodynamic"), Path.circle(0.5, (0.3, 0.0))
    done = reconstruct(item, path)
    assert done.effort[0] == pytest.approx(done.effort[-1], rel=1e-12)
    rises = np.diff(0.5 * done.effort)
    assert done.work == pytest.approx(rises[rises > 0.0].sum(), rel=1e-3)


def test_paths_of_every_sort_are_the_same() -> None:
    item = Connection(robot("purcell"), "stokes")
    known = holonomy(item, Path.circle(1.0))
    plain = holonomy(item, lambda t: [math.cos(t), math.sin(t)])  # takes no complex number
    both = holonomy(item, lambda t: (np.array([math.cos(t), math.sin(t)]), np.array([-math.sin(t), math.cos(t)])))
    numpy = holonomy(item, lambda t: np.array([np.cos(t), np.sin(t)]))
    word, plant = holonomy(item, "circle:a=1"), holonomy(rtmms.load("purcell"), "circle", "stokes")  # type: ignore[arg-type]
    for result in (word, plant, plain, both, numpy, holonomy(item, Path.fourier([[0, 1, 0], [0, 0, 1]]))):
        np.testing.assert_allclose(result, known, atol=1e-11)
    many = 2000
    t = np.linspace(0.0, 2.0 * math.pi, many + 1)
    corners = holonomy(item, np.column_stack([np.cos(t), np.sin(t)]), tolerance=1e-9)
    np.testing.assert_allclose(corners, known, atol=1e-5)


def test_a_robots_own_gait_lets_a_form_of_its_name_have_parameters() -> None:
    current = {"rectangle": "rectangle:a=10,b=10"}
    item, other = gait_path("rectangle", 2, current), gait_path("rectangle:a=2,b=3", 2, current)
    assert np.abs(item.sampled(9)).max() > np.abs(other.sampled(9)).max() == 3.0


def test_a_long_chain_in_the_plane_is_where_space_has_it() -> None:
    chain, path = rods(8), Path.fourier(loop(7, 7))
    flat = Connection(chain, "stokes")
    assert flat.planar
    net = holonomy(flat, path)
    assert abs(net[2]) > 1e-3
    twists, _ = flat.along(*path.motion(np.array([0.3])))
    assert not np.any(twists[:, np.setdiff1d(np.arange(6), PLANAR)])


@pytest.mark.parametrize(
    ("path", "more", "text"),
    [
        (Path.fourier(np.zeros((3, 3))), {}, r"must have 2 shape variables \(left, right\), got 3"),
        ([[0.0, 0.0], [1.0, 1.0]], {"cycles": 2}, "need a path that ends where it begins"),
        (Path.circle(1.0), {"cycles": 0}, "cycles must be a whole number >= 1"),
        ([[0.0, np.nan], [1.0, 1.0]], {}, "expected at least 2 shapes"),
        ([[0.0, 0.0]], {}, "expected at least 2 shapes"),
        (lambda t: [abs(math.cos(1.7 * t)) ** 0.3, 0.0], {}, "does not converge"),
    ],
)
def test_refused(path: Any, more: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        holonomy(robot("purcell"), path, "stokes", **more)
