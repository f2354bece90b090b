"""Drag areas, linear drag, skin friction, flat plates: closed forms, identities with strips, frames, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.base.errors import ModelError
from rtmms.base.spatial import adjoint
from rtmms.mechanism.flow import fluid_wrench
from rtmms.model.compiled import State

RHO = 1000.0
NU = 1e-6
TURNED = m.at(0.1, -0.2, 0.05, roll=0.3, pitch=-0.4, yaw=0.7)


def wrench(*elements: Any, twist: Any, current: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    body = m.Body("hull", 1.0, inertia=np.eye(3))
    model = rtmms.compile(rtmms.Mechanism("hull", [body], elements=elements))
    state = State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(0), np.array(twist, dtype=float), np.zeros(0))
    return np.asarray(fluid_wrench(model, state, rtmms.fluids.Flow(current))[0])


def test_a_drag_area_of_one_number_is_that_of_a_sphere() -> None:
    v = np.array([0.3, -0.4, 1.2])
    result = wrench(m.DragArea("hull", 0.02), twist=[*v, 0, 0, 0])
    np.testing.assert_allclose(result, [*(-0.5 * RHO * 0.02 * np.linalg.norm(v) * v), 0, 0, 0], rtol=1e-12)


def test_a_drag_area_of_three_numbers_acts_along_each_axis() -> None:
    v, area = np.array([0.3, -0.4, 1.2]), np.array([0.01, 0.05, 0.02])
    result = wrench(m.DragArea("hull", area, 998.0), twist=[*v, 0, 0, 0])
    np.testing.assert_allclose(result, [*(-0.5 * 998.0 * area * np.abs(v) * v), 0, 0, 0], rtol=1e-12)


def test_a_drag_area_along_is_a_strip_of_a_metre() -> None:
    """The drag along was made of such a strip before."""
    twist = [0.7, 0.0, 0.0, 0.4, 0.0, 0.0]
    strip = m.Strip(1.0, (0.5 * RHO * 0.05, 0.0, 0.0))
    body = m.Body("hull", 1.0, inertia=np.eye(3), elements=[strip])
    model = rtmms.compile(rtmms.Mechanism("hull", [body]))
    state = State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(0), np.array(twist), np.zeros(0))
    expected = fluid_wrench(model, state, rtmms.fluids.Flow())[0]
    np.testing.assert_allclose(wrench(m.DragArea("hull", (0.05, 0, 0)), twist=twist), expected, rtol=1e-12)


def test_linear_drag_is_its_matrix() -> None:
    rng = np.random.default_rng(1)
    square = rng.normal(size=(6, 6))
    matrix = square @ square.T
    twist = rng.normal(size=6)
    np.testing.assert_allclose(wrench(m.LinearDrag("hull", matrix), twist=twist), -matrix @ twist, rtol=1e-12)
    x = adjoint(TURNED.rotation, TURNED.position)
    result = wrench(m.LinearDrag("hull", matrix, TURNED), twist=twist)
    np.testing.assert_allclose(result, -x.T @ matrix @ x @ twist, rtol=1e-10)
    short = wrench(m.LinearDrag("hull", matrix[:3, :3]), twist=twist)
    np.testing.assert_allclose(short, [*(-matrix[:3, :3] @ twist[:3]), 0, 0, 0], rtol=1e-12, atol=1e-15)


def test_linear_drag_stops_a_body_exponentially() -> None:
    """m v' = -c v along each of the body's axes."""
    body = m.Body("hull", 2.0, inertia=np.eye(3))
    drag = m.LinearDrag("hull", np.diag([1.0, 3, 5]))
    mechanism = rtmms.Mechanism("hull", [body], gravity=(0, 0, 0), elements=[drag])
    plant = rtmms.TreePlant(mechanism, 1e-2)
    plant.place(velocity=(1.0, 1.0, 1.0))
    for _ in range(100):
        plant.step(np.zeros(0))
    np.testing.assert_allclose(plant.observe()["velocity"], np.exp(-np.array([1.0, 3, 5]) / 2.0), rtol=1e-7)


def test_skin_friction_is_blasius_then_prandtl_and_schlichting() -> None:
    area, length = 0.3, 0.5
    skin = m.SkinFriction("hull", area, length)
    for v in (0.01, -0.2, 0.9):
        re = abs(v) * length / NU
        expected = -0.5 * RHO * area * 1.328 / math.sqrt(re) * abs(v) * v
        assert wrench(skin, twist=[v, 0.5, 0, 0, 0, 0]) == pytest.approx([expected, 0, 0, 0, 0, 0], rel=1e-12)
    for v in (2.0, -20.0):
        re = abs(v) * length / NU
        # Schlichting's table has A = 1700 at Re_t = 5e5, of a law that is 3 % off there
        friction = 0.455 / math.log10(re) ** 2.58 - 1700.0 / re
        assert wrench(skin, twist=[v, 0, 0, 0, 0, 0])[0] == pytest.approx(
            -0.5 * RHO * area * friction * abs(v) * v, rel=0.04
        )


def test_skin_friction_has_no_jump_at_its_transition() -> None:
    for transition in (5e4, 5e5, 3e6):
        skin = m.SkinFriction("hull", 1.0, 1.0, transition=transition)
        below, above = (wrench(skin, twist=[transition * NU * f, 0, 0, 0, 0, 0])[0] for f in (1 - 1e-9, 1 + 1e-9))
        assert above == pytest.approx(below, rel=1e-7)
        assert skin.coefficient(2.0 * transition) > skin.coefficient(transition) / math.sqrt(2.0)


def test_skin_friction_from_the_leading_edge_is_turbulent() -> None:
    result = wrench(m.SkinFriction("hull", 2.0, 1.0, transition=0.0), twist=[1.0, 0, 0, 0, 0, 0])[0]
    assert result == pytest.approx(-0.5 * RHO * 2.0 * 0.455 / 6.0**2.58, rel=1e-12)


def test_a_drag_curve_is_linear_between_its_rows_and_constant_outside() -> None:
    table = np.array([(0.1, 0.02), (0.4, 0.05), (0.5, 0.05), (0.9, 0.01)])
    curve = m.DragCurve("hull", table, 998.0)
    for v in (0.0, 0.05, -0.1, 0.2, -0.4, 0.45, 0.7, -0.9, 3.0):
        area = np.interp(abs(v), table[:, 0], table[:, 1])
        expected = [-0.5 * 998.0 * area * abs(v) * v, 0, 0, 0, 0, 0]
        np.testing.assert_allclose(wrench(curve, twist=[v, 0.3, -0.2, 0, 0, 0]), expected, rtol=1e-12, atol=1e-15)


def test_a_drag_curve_represents_the_laws_that_have_elements() -> None:
    """One area is a DragArea; the areas of Blasius's law at its rows are SkinFriction there."""
    twist = [0.7, 0.1, 0.0, 0.0, 0.0, 0.0]
    flat = m.DragCurve("hull", [(0.0, 0.05), (1.0, 0.05)])
    np.testing.assert_allclose(wrench(flat, twist=twist), wrench(m.DragArea("hull", (0.05, 0, 0)), twist=twist))
    skin = m.SkinFriction("hull", 0.3, 0.5)
    speeds = np.geomspace(0.05, 0.9, 16)
    curve = m.DragCurve("hull", [(v, 0.3 * skin.coefficient(v * 0.5 / NU)) for v in speeds])
    for v in speeds[[0, 7, 15]]:
        assert wrench(curve, twist=[v, 0, 0, 0, 0, 0])[0] == pytest.approx(wrench(skin, twist=[v, 0, 0, 0, 0, 0])[0])


@pytest.mark.parametrize(
    "element",
    [m.DragArea("hull", (0.1, 0.2, 0.3), placement=TURNED), m.DragArea("hull", 0.1, placement=TURNED),
     m.LinearDrag("hull", np.diag([1.0, 2, 3, 1, 2, 3]), TURNED), m.SkinFriction("hull", 0.2, 0.4, placement=TURNED),
     m.DragCurve("hull", [(0.1, 0.2), (0.5, 0.1), (1.0, 0.3)], placement=TURNED)],
    ids=["axes", "sphere", "linear", "skin", "curve"],
)  # fmt: skip
def test_only_the_velocity_against_the_water_counts_and_energy_is_taken(element: Any) -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        twist, current = rng.normal(size=6), rng.normal(size=3)
        still = wrench(element, twist=twist)
        assert still @ twist < 0.0
        moved = [*(twist[:3] + current), *twist[3:]]
        np.testing.assert_allclose(wrench(element, twist=moved, current=tuple(current)), still, rtol=1e-9, atol=1e-9)


def test_elements_of_a_body_and_of_a_mechanism_are_the_same() -> None:
    drag = m.DragArea("hull", (0.01, 0.02, 0.03))
    item = rtmms.compile(rtmms.Mechanism("hull", [m.Body("hull", 1.0, inertia=np.eye(3), elements=[drag])]))
    other = rtmms.compile(rtmms.Mechanism("hull", [m.Body("hull", 1.0, inertia=np.eye(3))], elements=[drag]))
    assert [(row, type(e)) for row, e in item.elements] == [(row, type(e)) for row, e in other.elements]


def test_a_flat_plate_is_an_ellipse_without_thickness() -> None:
    plate = m.plate_strip(0.05, 0.3, RHO, TURNED, drag=1.2, skin=0.01)
    thin = m.elliptic_strip(0.0, 0.05, 0.3, RHO, TURNED, drag=(0.0, 1.2, 0.0))
    np.testing.assert_allclose(plate.added, thin.added, rtol=1e-12)
    np.testing.assert_allclose(plate.added_inertia(), thin.added_inertia(), rtol=1e-12)
    assert plate.drag[1] == pytest.approx(thin.drag[1])
    assert plate.drag[0] == pytest.approx(0.5 * RHO * 0.01 * 4.0 * 0.05)  # both sides, 2 b high


def test_the_rolling_plate_meets_the_drag_of_its_parts() -> None:
    """1/2 rho C |w z| w z integrated over z from -b to b."""
    b, w, drag = 0.05, 3.0, 1.98
    z = np.linspace(-b, b, 20001)
    expected = np.trapezoid(0.5 * RHO * drag * np.abs(w * z) * w * z * z, z)
    assert m.plate_strip(b, 1.0, RHO).roll_drag * w * w == pytest.approx(expected, rel=1e-6)


def test_a_table_of_one_height_is_one_plate() -> None:
    whole = m.plate_strip(0.04, 0.3, RHO, m.at(0.15), drag=1.5, skin=0.02)
    parts = m.plate_strips([(0.0, 0.04), (0.1, 0.04), (0.3, 0.04)], RHO, drag=1.5, skin=0.02)
    np.testing.assert_allclose(
        sum(part.added_inertia() for part in parts), whole.added_inertia(), rtol=1e-9, atol=1e-12
    )
    assert sum(part.drag[1] * part.length for part in parts) == pytest.approx(whole.drag[1] * whole.length)
    assert sum(part.drag[0] * part.length for part in parts) == pytest.approx(whole.drag[0] * whole.length)


def test_a_table_has_the_means_of_a_triangle() -> None:
    """A delta fin: int pi b^2 dx = pi B^2 L / 3."""
    (fin,) = m.plate_strips([(0.0, 0.0), (0.2, 0.1)], RHO)
    assert fin.added[1] * fin.length == pytest.approx(RHO * math.pi * 0.1**2 * 0.2 / 3.0)
    assert fin.drag[1] * fin.length == pytest.approx(0.5 * RHO * 1.98 * 0.1 * 0.2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: m.DragArea("hull", -0.1), "dragarea.area: expected numbers >= 0 m2"),
        (lambda: m.DragArea("hull", (0.1, 0.2)), "dragarea.area must have shape"),
        (lambda: m.DragArea("keel", 0.1), "body: unknown body 'keel'"),
        (lambda: m.DragArea("hull", 0.1, 0.0), "dragarea.density: expected a number > 0"),
        (lambda: m.DragArea(None, 0.1), "body: expected the name of a body"),  # type: ignore[arg-type]
        (lambda: m.LinearDrag("hull", np.diag([-1.0, 1, 1])), "would feed energy in"),
        (lambda: m.LinearDrag("hull", np.eye(4)), r"expected shape \(3, 3\) or \(6, 6\)"),
        (lambda: m.SkinFriction("hull", 0.1, 0.0), "skinfriction.length: expected a number > 0 m"),
        (lambda: m.SkinFriction("hull", 0.1, 1.0, transition=100.0), "transition: expected 0"),
        (lambda: m.SkinFriction("hull", math.nan, 1.0), "skinfriction.wetted_area must be finite"),
        (lambda: m.DragCurve("hull", [(0.0, 0.1)]), r"dragcurve.table: expected 2 to 16 rows"),
        (lambda: m.DragCurve("hull", [(0.0, 0.1)] * 17), r"dragcurve.table: expected 2 to 16 rows"),
        (lambda: m.DragCurve("hull", [(0.2, 0.1), (0.2, 0.1)]), r"dragcurve.table\[1\]: expected speeds >= 0 m/s"),
        (lambda: m.DragCurve("hull", [(0.2, -0.1), (0.3, 0.1)]), r"dragcurve.table\[0\]: expected a drag area >= 0"),
        (lambda: m.DragCurve("hull", [(0.2, 0.1), (0.3, 0.1)], 0.0), "dragcurve.density: expected a number > 0"),
        (lambda: m.Strip(1.0), "expected one of DragArea, LinearDrag, SkinFriction, DragCurve, got"),
    ],
)  # fmt: skip
def test_refusals_name_place_and_expectation(make: Any, text: str) -> None:
    body = m.Body("hull", 1.0, inertia=np.eye(3))
    with pytest.raises(ModelError, match=text) as refused:
        rtmms.compile(rtmms.Mechanism("boat", [body], elements=[make()]))
    assert "mechanism 'boat': elements[0]" in str(refused.value)


def test_an_element_of_another_body_is_refused() -> None:
    body = m.Body("hull", 1.0, inertia=np.eye(3), elements=[m.DragArea("keel", 0.1)])
    with pytest.raises(ModelError, match=r"body 'hull': elements\[0\]: body: expected 'hull', got 'keel'"):
        rtmms.compile(rtmms.Mechanism("boat", [body]))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: m.plate_strip(0.0, 1.0, RHO), "half_height: expected a number > 0 m"),
        (lambda: m.plate_strip(0.1, 1.0, RHO, drag=-1.0), "drag: expected a number >= 0"),
        (lambda: m.plate_strips([(0.0, 0.1)], RHO), "two or more rows"),
        (lambda: m.plate_strips([(0.0, 0.1), (0.0, 0.2)], RHO), r"table\[1\]: expected x that rises"),
    ],
)
def test_refusals_of_plates(make: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        make()
