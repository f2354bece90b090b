"""Descriptions: what is refused, by which words, and what the solids weigh."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import rtmms
from rtmms.base.spatial import rotation_about, rotation_to
from rtmms.model import (
    Body,
    Box,
    Cylinder,
    Ellipsoid,
    EllipticCylinder,
    HalfEllipsoid,
    Joint,
    Mechanism,
    Placement,
    Strip,
    at,
    khalil_kleinfinger,
)  # fmt: skip
from rtmms.model.solids import inertia_of

TURNED = Placement(rotation_about(np.array([0.6, 0, 0.8]), 0.7), np.array([0.1, 0.2, 0.3]))
UNIT = {"mass": 1.0, "inertia": np.eye(3)}


def pair(**joint):
    return Mechanism("pair", [Body("a", **UNIT), Body("b", **UNIT)], [Joint("j", "a", "b", **joint)])


def three(joints, bodies=("a", "b", "c")):
    return Mechanism("three", [Body(name, **UNIT) for name in bodies], [Joint(*j) for j in joints])


@pytest.mark.parametrize(
    ("mechanism", "parts"),
    [
        (three([("j", "a", "b"), ("k", "b", "c"), ("l", "a", "c")]), "closed loops.*cut the loop"),
        (three([("j", "b", "c"), ("k", "c", "b")]), "loop without a connection to the base 'a'"),
        (three([("j", "a", "b"), ("k", "b", "c"), ("l", "c", "a")]), "form a loop; remove one joint"),
        (three([("j", "a", "b"), ("k", "x", "c")]), "joint 'k': parent 'x' is not a body; known: a, b, c"),
        (three([("j", "a", "b"), ("k", "a", "y")]), "joint 'k': child 'y' is not a body"),
        (three([("j", "a", "b")]), "the base, got 'a', 'c'"),
        (three([("j", "a", "b"), ("j", "b", "c")]), "2 joints are named 'j'"),
        (three([("j", "a", "b")], bodies=("a", "b", "b")), "2 bodies are named 'b'"),
        (Mechanism("none", []), "at least one body"),
        (pair(axis=(0, 0, 0)), "joint 'j': axis must not be of zero length"),
        (pair(axis=(0, 1)), r"joint 'j': axis must have shape \(1, 3\)"),
        (pair(axis="up"), "joint 'j': axis"),
        (pair(placement=(0, 0, 1)), r"joint 'j': placement: expected a Placement, got \(0, 0, 1\)"),
        ([Body("a", **UNIT)], "compile: expected a Mechanism"),
        (Mechanism("m", ["a"]), r"bodies\[0\]: expected a Body, got 'a'"),
        (Mechanism("m", [Body("a", **UNIT)], ["j"]), r"joints\[0\]: expected a Joint, got 'j'"),
        (Mechanism("m", [Body("a", elements=["x"])]), r"body 'a': elements\[0\]: expected a Strip or Blade"),
        (Mechanism("m", [Body("a", solids=["x"])]), r"body 'a': solids\[0\]: expected a solid such as Box"),
        (pair(type="ball"), "type must be one of .*got 'ball'"),
        (pair(drive="both"), "drive must be one of"),
        (pair(damping=-1.0), "joint 'j': damping must be >= 0, got -1"),
        (pair(stiffness=math.nan), "joint 'j': stiffness must be finite"),
        (Mechanism("m", [Body("a", -0.1)]), "body 'a': mass must be >= 0 kg, got -0.1"),
        (Mechanism("m", [Body("a", 1e308, inertia=1e308 * np.eye(3))]), "body 'a': inertia must be at most 1e.100"),
        (Mechanism("m", [Body("a", 1e308, inertia=np.eye(3))]), "body 'a': mass and first_moment must be at most"),
        (Mechanism("m", [Body("a", 1.0, inertia=-np.eye(3))]), "body 'a': inertia must have no negative"),
        (Mechanism("m", [Body("a", 1.0, inertia=np.triu(np.ones((3, 3))))]), "body 'a': inertia must be symmetric"),
        (Mechanism("m", [Body("a", 1.0, inertia=np.eye(2))]), r"body 'a': inertia must have shape \(3, 3\)"),
        (Mechanism("m", [Body("a", 1.0, (1, 0, 0), 0.1 * np.eye(3))]), "about the body's origin"),
        (Mechanism("m", [Body("a", 1.0, inertia=np.diag([1, 1, 3]))]), "largest exceeds the others' sum"),
        (Mechanism("m", [Body("a", 1.0)]), "free base can move in a direction without inertia"),
        (Mechanism("m", [Body("a", **UNIT)], base="flying"), "base must be one of free"),
        (Mechanism("m", [Body("a", **UNIT)], gravity=9.81), r"gravity must have shape \(3,\)"),
        (Mechanism("m", [Body("a", solids=[Box(1, 0, 1, 1)])]), r"body 'a': solid 0: Box.y must be > 0"),
        (Mechanism("m", [Body("a", elements=[Strip(-1.0)])]), "strip.length must be"),
        (Mechanism("m", [Body("a", elements=[Strip(1.0, law="x")])]), "strip.law must be"),
        (
            Mechanism("m", [Body("a", **UNIT), Body("b")], [Joint("j", "a", "b")]),
            "joint 'j' is driven by torque, but its bodies have no",
        ),
    ],
)
def test_refused_with_the_place_and_what_is_expected(mechanism, parts):
    with pytest.raises(rtmms.ModelError, match=parts):
        rtmms.compile(mechanism)


@pytest.mark.full
def test_names_come_with_the_package_alone():
    """`import rtmms` is enough for rtmms.Mechanism, rtmms.compile and rtmms.dynamics, and costs no numba by itself."""
    arguments = """
import sys, rtmms
assert "numba" not in sys.modules and "scipy" not in sys.modules
names = ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "mass_matrix", "composite_inertia", "bias",
         "momentum", "energy", "centre_of_mass", "body_poses", "body_twists", "jacobian")
assert all(callable(getattr(rtmms.dynamics, name)) for name in names)
assert rtmms.compile(rtmms.Mechanism("m", [rtmms.model.Body("a", solids=[rtmms.model.Box(1, 1, 1, 1)])])).n == 0
"""
    subprocess.run([sys.executable, "-W", "error", "-c", arguments], check=True, timeout=60)


def test_massless_tips_may_be_driven_by_motion():
    rtmms.compile(Mechanism("m", [Body("a", **UNIT), Body("b")], [Joint("j", "a", "b", drive="motion")]))


def test_joints_come_in_the_order_given_with_parents_first():
    model = rtmms.compile(three([("k", "b", "c"), ("j", "a", "b")]))
    assert model.joint_names == ("j", "k")
    with pytest.raises(rtmms.UnknownNameError, match="unknown joint 'jj'"):
        model.joint("jj")
    with pytest.raises(ValueError, match="read-only"):
        model.constant[0, 0] = 1.0


@pytest.mark.parametrize(
    "solid",
    [
        Box(0.2, 0.3, 0.5, 700.0), EllipticCylinder(0.1, 0.2, 0.4, 900.0), Cylinder(0.1, 0.3, 500.0),
        Ellipsoid(0.1, 0.2, 0.3, 1000.0), HalfEllipsoid(0.1, 0.2, 0.3, 1000.0),
        HalfEllipsoid(0.1, 0.2, 0.3, 1000.0, TURNED),
    ],
    ids=lambda s: type(s).__name__,
)  # fmt: skip
def test_solids_are_the_integrals_of_their_points(solid):
    """Against a sum over 80^3 cells of the bounding box."""
    half = {
        "Box": lambda s: (s.x / 2, s.y / 2, s.z / 2),
        "EllipticCylinder": lambda s: (s.a, s.b, s.length / 2),
        "Cylinder": lambda s: (s.radius, s.radius, s.length / 2),
    }.get(type(solid).__name__, lambda s: (s.a, s.b, s.c))(solid)  # fmt: skip
    t = (np.arange(80) + 0.5) / 40.0 - 1.0
    u = np.stack(np.meshgrid(t, t, t, indexing="ij"), -1).reshape(-1, 3)
    name = type(solid).__name__
    inside = np.ones(len(u), bool)
    if "Ellipsoid" in name:
        inside = np.sum(u**2, axis=1) <= 1.0
    if "Cylinder" in name:
        inside = np.sum(u[:, :2] ** 2, axis=1) <= 1.0
    if name == "HalfEllipsoid":
        inside &= u[:, 2] > 0
    points = (u[inside] * half) @ solid.placement.rotation.T + solid.placement.position
    cell = solid.density * np.prod(half) / 40.0**3
    second = cell * points.T @ points
    got = inertia_of(solid)
    first = cell * points.sum(axis=0)
    assert got[0, 0] == pytest.approx(cell * len(points), rel=5e-3)
    expected = np.trace(second) * np.eye(3) - second
    np.testing.assert_allclose([got[5, 1], got[3, 2], got[4, 0]], first, atol=5e-3 * np.max(np.abs(first)) + 1e-12)
    np.testing.assert_allclose(got[3:, 3:], expected, atol=5e-3 * np.max(expected))


def test_khalil_kleinfinger_is_the_papers_matrix():
    alpha, d, theta, r = 0.3, 0.4, 0.7, 0.2
    ca, sa, ct, st = math.cos(alpha), math.sin(alpha), math.cos(theta), math.sin(theta)
    place = khalil_kleinfinger(alpha, d, theta, r)
    np.testing.assert_allclose(
        place.rotation, [[ct, -st, 0], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]], atol=1e-15
    )
    np.testing.assert_allclose(place.position, [d, -r * sa, r * ca], atol=1e-15)


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0.6, 0, -0.8), (1e-9, 0, -1)])
def test_rotation_to_an_axis(axis):
    axis = np.array(axis) / np.sqrt(np.dot(axis, axis))
    r = rotation_to(axis)
    np.testing.assert_allclose(r[:, 2], axis, atol=1e-12)
    np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-12)


def test_placements_are_checked():
    assert (at(1, 2, 3) @ at(1)).position.tolist() == [2, 2, 3]
    with pytest.raises(rtmms.ModelError, match="orthonormal"):
        Placement(2 * np.eye(3), np.zeros(3))
    with pytest.raises(rtmms.ModelError, match=r"expected rotation \(3, 3\)"):
        Placement(np.eye(3), np.zeros(2))


@pytest.mark.parametrize("size", [1e-3, 10.0])
def test_added_inertia_that_would_give_energy_is_refused(size):
    added = np.diag([size, size, size, size, size, -0.1 * size])
    with pytest.raises(rtmms.ModelError, match="no negative eigenvalue"):
        rtmms.compile(Mechanism("one", [Body("b", 100.0, inertia=100.0 * np.eye(3), added=added)]))


def test_a_turned_placement_is_scipys_and_a_urdfs():
    from scipy.spatial.transform import Rotation

    result = at(1.0, 2.0, 3.0, roll=0.3, pitch=-1.1, yaw=2.0)
    np.testing.assert_allclose(result.rotation, Rotation.from_euler("xyz", [0.3, -1.1, 2.0]).as_matrix(), atol=1e-15)
    assert result.position.tolist() == [1.0, 2.0, 3.0]
    assert np.array_equal(at(1.0).rotation, np.eye(3))
    with pytest.raises(rtmms.ModelError, match=r"roll, pitch and yaw must be finite, got 0\.0, nan, 0\.0"):
        at(pitch=math.nan)
