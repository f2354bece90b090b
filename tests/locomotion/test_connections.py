"""The local form and its curvature: against full momentum and drag, by differences, from other bodies; refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.base.spatial import Array
from rtmms.locomotion import Connection, connection, curvature
from rtmms.locomotion.connections import model_of
from rtmms.locomotion.group import bracket
from rtmms.model import Body, Joint, Mechanism
from tests.locomotion.bodies import KINDS, robot, rods, tilted
from tests.random_tree import random_tree


def by_momentum(mechanism: Mechanism, r: Array) -> Array:
    """-M^-1 M_r of the mass matrix: another recursion, and another solver."""
    model = rtmms.compile(mechanism)
    state = model.state()
    state.q = r
    whole = dynamics.mass_matrix(model, state)
    out: Array = np.linalg.solve(whole[:6, :6], whole[:6, 6:])
    return out


@pytest.mark.parametrize("seed", [1, 2])
def test_a_tree_s_connection_is_that_of_its_mass_matrix(seed: int) -> None:
    for added, kind in ((False, "mechanical"), (True, "hydrodynamic")):
        mechanism = random_tree(9, seed, added=added)
        r = np.random.default_rng(seed).normal(size=9)
        np.testing.assert_allclose(connection(mechanism, r, kind), by_momentum(mechanism, r), rtol=1e-10, atol=1e-12)


def test_mechanical_leaves_the_fluid_out_and_hydrodynamic_takes_it_in() -> None:
    mechanism, r = random_tree(5, 3, added=True), np.linspace(-0.5, 0.5, 5)
    alone, whole = connection(mechanism, r, "mechanical"), connection(mechanism, r, "hydrodynamic")
    assert np.max(np.abs(alone - whole)) > 1e-2
    np.testing.assert_allclose(whole, by_momentum(mechanism, r), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_the_momentum_or_the_drag_of_the_motion_is_0(name: str) -> None:
    item = Connection(robot(name), KINDS[name])
    rng = np.random.default_rng(4)
    for _ in range(5):
        r, rd = rng.normal(size=2), rng.normal(size=2)
        torque, left = item.drag(r, rd)
        assert np.max(np.abs(left[item.rows])) < 1e-13
        effort = item.along(r[None], rd[None])[1][0]
        assert torque @ rd == pytest.approx(effort, rel=1e-12)
        assert rd @ item.metric(r) @ rd == pytest.approx(effort, rel=1e-12)


def test_a_plane_is_found_and_projecting_is_as_good_as_space() -> None:
    fluid = Connection(robot("fluid_swimmer"), "hydrodynamic")
    assert fluid.planar
    assert Connection(rods(5), "stokes").planar
    assert not Connection(robot("cat")).planar
    assert not Connection(robot("satellite")).planar
    assert not Connection(tilted(robot("purcell")), "stokes").planar
    r = np.array([0.4, -0.9])
    space = Connection(robot("fluid_swimmer"), "hydrodynamic", planar=False).at(r)
    np.testing.assert_allclose(space[[0, 1, 5]], fluid.at(r), rtol=1e-13, atol=1e-15)
    assert not np.any(space[2:5])


@pytest.mark.parametrize("name", KINDS)
def test_the_curvature_is_that_of_differences(name: str) -> None:
    item, r, h = (
        Connection(robot(name), KINDS[name], planar=False if name == "cat" else None),
        np.array([0.3, 0.5]),
        1e-4,
    )

    def slope(k: int) -> Array:
        step = h * np.eye(2)[k]
        return _central(item, r, step) / h

    first, second = slope(0)[:, 1], slope(1)[:, 0]
    form = item.form(r).copy()
    wanted = (first - second - bracket(form[:, 0], form[:, 1]))[item.rows]
    result = item.curvature(r)
    np.testing.assert_allclose(result[:, 0, 1], wanted, atol=1e-10)
    np.testing.assert_array_equal(result[:, 1, 0], -result[:, 0, 1])
    np.testing.assert_allclose(item.curvature(r, bracketed=False)[:, 0, 1], (first - second)[item.rows], atol=1e-10)


def _central(item: Connection, r: Array, step: Array) -> Array:
    near = item.form(r + step).copy() - item.form(r - step).copy()
    far = item.form(r + 2 * step).copy() - item.form(r - 2 * step).copy()
    return (8.0 * near - far) / 12.0


@pytest.mark.parametrize("name", ["purcell", "fluid_swimmer"])
def test_from_another_body(name: str) -> None:
    """Its twist is the base's, carried over, and that of its joint."""
    item, r, rd = Connection(robot(name), KINDS[name]), np.array([0.3, 0.8]), np.array([0.7, -0.2])
    state = item.model.state()
    state.q, state.qd, state.twist = r, rd, item.twist(r, rd)
    for body in item.model.body_names:
        twist = dynamics.body_twists(item.model, state)[item.model.body(body)]
        np.testing.assert_allclose(-item.seen_from(body, r) @ rd, twist[[0, 1, 5]], atol=1e-14)


def test_a_model_and_a_description_are_the_same() -> None:
    mechanism = robot("purcell")
    r = [0.1, 0.2]
    np.testing.assert_array_equal(connection(mechanism, r, "stokes"), connection(model_of(mechanism), r, "stokes"))
    np.testing.assert_array_equal(curvature(mechanism, r, "stokes"), Connection(mechanism, "stokes").curvature(r))


def _two(**more: Any) -> Mechanism:
    return Mechanism("two", [Body("a", **more), Body("b", **more)], [Joint("hinge", "a", "b")])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: connection(_two(), [0.0], "stoke"), "did you mean stokes"),
        (lambda: connection(_two(), [0.0], "stokes"), r"expected bodies with drag \(Body.viscous\)"),
        (lambda: connection(_two(), [0.0]), "the motion Vx is undetermined, as it has no inertia"),
        (lambda: connection(_two(mass=1.0), [0.0], "nonholonomic"), r"expected contacts \(Mechanism.contacts"),
        (lambda: connection(robot("cat"), [0.0]), r"shape must be \(2,\) numbers, got \(1,\)"),
        (lambda: connection(robot("cat"), [0.0, np.nan]), "shape must be finite"),
        (lambda: connection("cat", [0.0, 0.0]), "expected a Mechanism or a compiled model"),  # type: ignore[arg-type]
        (lambda: connection(Mechanism("one", [Body("a", 1.0)]), []), "at least one joint"),
        (lambda: connection(replace(_two(mass=1.0), base="fixed"), [0.0]), "base that moves"),
        (lambda: connection(_two(viscous=np.eye(5)), [0.0], "stokes"), r"body 'a': viscous must have shape \(6, 6\)"),
        (lambda: connection(_two(viscous=-np.eye(6)), [0.0], "stokes"), "no negative eigenvalue"),
        (lambda: rtmms.TreePlant(_two(mass=1.0, inertia=np.eye(3), viscous=np.eye(6))), "ConnectionPlant"),
    ],
)  # fmt: skip
def test_refused(make: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make()
