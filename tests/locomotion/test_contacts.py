"""Axles, wheels and planes as elements: what is refused, and the place that the error names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rtmms
from rtmms import locomotion
from rtmms import model as m
from rtmms.analysis.equilibrium import Inverse
from tests.locomotion.mechanisms import chain

BODY = m.Body("hull", 1.0, inertia=np.diag([0.1, 0.1, 0.1]))
RIM = m.Body("rim", 0.1, inertia=np.diag([1e-3, 1e-3, 1e-3]))


def cart(*contacts: object, axis: tuple[float, float, float] = (0.0, 1.0, 0.0), kind: str = "revolute") -> m.Mechanism:
    joint = m.Joint("wheel", "hull", "rim", type=kind, axis=axis)
    return m.Mechanism("cart", [BODY, RIM], [joint], contacts=contacts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (cart(m.Axle("rear")), "mechanism 'cart': contacts[0] (Axle): 'rear' is not a body; known: hull, rim"),
        (cart(m.Plane("hull"), m.Plane("sky")), "contacts[1] (Plane): 'sky' is not a body"),
        (cart(m.Wheel("rim", 0.1)), "contacts[0] (Wheel): 'rim' is not a joint; known: wheel"),
        (cart(m.Wheel("wheel", 0.0)), "radius must be > 0 m, got 0.0"),
        (cart(m.Wheel("wheel", 0.1, normal=(0, 0, 0))), "normal must be finite and not 0"),
        (cart(m.Wheel("wheel", 0.1, normal=(0, 1, 0))), "must be level with the ground, got an angle of 90 deg"),
        (cart(m.Wheel("wheel", 0.1), kind="prismatic"), "joint 'wheel' must be revolute, got 'prismatic'"),
        (cart(m.Axle("hull", placement=3)), "placement must be a Placement, got 3"),  # type: ignore[arg-type]
        (cart("axle"), "contacts[0]: expected an Axle, a Wheel, a Plane or a Floor, got 'axle'"),
        (cart(m.Axle("hull"), m.Axle("hull", m.at(1.0))), "2 of them have the name 'hull.axle'; give each its own"),
        (cart(m.Wheel("wheel", 0.1, name="a"), m.Wheel("wheel", 0.1, name="b")), "joint 'wheel' has two wheels"),
        (replace(cart(m.Plane("hull")), base="fixed"), "contacts need base='free', got base='fixed'"),
    ],
)  # fmt: skip
def test_refused(mechanism: m.Mechanism, message: str) -> None:
    with pytest.raises(rtmms.ModelError) as error:
        rtmms.compile(mechanism)
    assert message in str(error.value)


def test_motion_without_inertia() -> None:
    """What the contacts hold needs no inertia; what they leave free does."""
    empty = m.Mechanism("sledge", [m.Body("hull", 1.0)], contacts=[m.Plane("hull"), m.Axle("hull")])
    with pytest.raises(rtmms.ModelError, match="the contacts allow a motion of wz that has no inertia"):
        rtmms.compile(empty)
    rtmms.compile(replace(empty, contacts=[*empty.contacts, m.Axle("hull", m.at(1.0), name="rear")]))


def test_digest_knows_the_contacts() -> None:
    item = rtmms.compile(chain(3))
    two = rtmms.compile(replace(chain(3), contacts=chain(3).contacts[:-1]))
    assert item.digest != two.digest
    assert not item.ground.rows.flags.writeable
    assert two.ground.names == item.ground.names[:-1]


def test_an_inverse_model_knows_no_contacts() -> None:
    with pytest.raises(rtmms.ModelError, match="chain: inverse model: expected no contacts"):
        Inverse(rtmms.compile(chain(3)))


def test_names_of_the_face() -> None:
    assert (locomotion.Axle, locomotion.Wheel, locomotion.Plane) == (m.Axle, m.Wheel, m.Plane)


def test_rank_and_what_fell() -> None:
    model = rtmms.compile(chain(4, "motion"))
    straight, arc, bent = np.zeros(3), np.full(3, 0.4), np.array([0.4, -0.3, 0.5])
    assert locomotion.rank(model, bent).rank == 6
    assert locomotion.rank(model, bent).joints == ()
    for r in (straight, arc):  # a snake of constant curvature slides along its own circle
        fallen = locomotion.rank(model, r)
        assert fallen.rank == 5
        assert "Vx" in fallen.free
        assert set(fallen.joints) == {"j1", "j2", "j3"}
        with pytest.raises(rtmms.ModelError, match=r"chain: the contacts leave .*Vx.* free, where j1, j2, j3 stand"):
            locomotion.nonholonomic(model, r)
    near = locomotion.rank(model, arc + np.array([1e-6, 0, 0]))
    assert near.rank == 6
    assert near.weak
    with pytest.warns(RuntimeWarning, match=r"leave Vx.* free, .*: A has rank 6 of 6 \(all but: least singular value"):
        form = locomotion.nonholonomic(model, arc + np.array([1e-6, 0, 0]))
    a, b = locomotion.rows(model, arc + np.array([1e-6, 0, 0]))
    best = np.linalg.lstsq(a, b, rcond=None)[0]
    assert np.abs(a.T @ (a @ form - b)).max() < 1e-9 * np.abs(a @ best).max()


def test_rates_follow_or_contradict() -> None:
    model = rtmms.compile(chain(5, "motion"))
    r = np.array([0.4, -0.3, 0.5, 0.2])
    with pytest.raises(
        rtmms.ModelError, match=r"rates of j1, j2, j3, j4 contradict the contacts by .*; let j\d, j\d follow"
    ):
        locomotion.rates(model, r, np.ones(4))
    eta, rd = locomotion.rates(model, r, [1.0, 0.5, np.nan, np.nan])
    a, b = locomotion.rows(model, r)
    assert np.abs(a @ eta + b @ rd).max() < 1e-14
    assert rd[0] == 1.0
    assert np.allclose(-locomotion.nonholonomic(model, r) @ rd, eta, atol=1e-12)
    with pytest.raises(
        rtmms.ModelError,
        match=r"the contacts do not determine the rates of .*; give these rates, or",
    ):
        locomotion.rates(model, np.zeros(4), [0.0, 0.0, np.nan, np.nan])
    # the connection takes complex shapes: its slope by a complex step is the difference's
    step = locomotion.nonholonomic(model, r + 1e-30j * np.eye(4)[1]).imag / 1e-30
    plain = locomotion.nonholonomic(model, r + 1e-6 * np.eye(4)[1]) - locomotion.nonholonomic(
        model, r - 1e-6 * np.eye(4)[1]
    )
    assert np.allclose(step, plain / 2e-6, atol=1e-7)
    for bad, message in ((np.zeros(3), r"shape \(4,\), got \(3,\)"), (np.full(4, np.nan), "must be finite")):
        with pytest.raises(rtmms.ModelError, match=message):
            locomotion.rows(model, bad)
