"""Chains and links are resolutions of one fin: what converges, at what order, and the table's mesh is as it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.robots.manta.fin_layout import DAMPING, DRAG, LENGTH, MASS, STIFFNESS
from rtmms.robots.manta.model import link_fields
from rtmms.robots.manta.parameters import PRESETS, MantaParameters

LINKS = [3, 6, 12, 24]
FREQUENCY = 0.51
AMPLITUDE = math.radians(40.0)
PHASE = math.radians(30.0)
PERIODS = 4


def thrust(steps: int, **values: Any) -> float:
    """N, both fins along body x, mean over the last of PERIODS periods of `steps` steps each."""
    plant: Any = rtmms.load("manta", dt=1.0 / FREQUENCY / steps, body="fixed", **values)
    p = plant.parameters
    front = math.asin(p.back_rod_m * math.sin(AMPLITUDE) / p.front_rod_m)
    total = 0.0
    for k in range(PERIODS * steps):
        angle, s = 2.0 * math.pi * k / steps, min(k / steps * 2.0, 1.0)
        soft = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        a, b = soft * front * math.sin(angle + PHASE), soft * AMPLITUDE * math.sin(angle)
        plant.step(np.array([a, b, a, b]))
        if k >= (PERIODS - 1) * steps:
            total += float(plant.observe()["thrust"][:, 0].sum())
    return total / steps


def richardson(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float] | None:
    """(order, limit) from the last three sizes that double, or None where there are none or they do not converge."""
    known = dict(zip(sizes, values, strict=True))
    for n in sorted(known, reverse=True):
        if n % 4 == 0 and n // 2 in known and n // 4 in known:
            fine, coarse = known[n] - known[n // 2], known[n // 2] - known[n // 4]
            if fine == 0.0 or coarse / fine <= 1.0:
                return None
            return math.log2(coarse / fine), known[n] + fine / (coarse / fine - 1.0)
    return None


def test_the_tables_mesh_is_what_it_was():
    """To the last digit: 0.1 N m s at each joint of 30 chains of 3 links, whichever way it is read."""
    by_fin, by_joint = (link_fields(MantaParameters(damping_per=word))[0] for word in ("fin", "joint"))
    assert (by_fin == by_joint).all()
    assert (by_fin[DAMPING] == 0.1).all()
    assert PRESETS["paper"]["damping_per"] == "joint"


def compliance(fields, chain=0):
    """rad m / N: by how much a force across its tip bends a straight chain; and the same of damping, 1 / (N s)."""
    lever = np.cumsum(fields[LENGTH][::-1, chain])[::-1]
    return np.array([np.sum(lever**2 / (fields[field][:, chain])) for field in (STIFFNESS, DAMPING)])


@pytest.mark.parametrize(("bending", "order"), [("carried", 1.0), ("centred", 2.0)])
def test_a_fins_compliance_converges_over_links(bending, order):
    """A joint of the link that it carries stands at its segment's root end, which is of first order."""
    result = np.array([compliance(link_fields(MantaParameters(links=m, bending=bending))[0]) for m in LINKS])
    change = np.abs(np.diff(result, axis=0))
    assert np.log2(change[:-1] / change[1:])[-1] == pytest.approx([order, order], abs=0.25)


def test_sums_over_a_fin_do_not_depend_on_its_mesh():
    coarse, fine = (link_fields(MantaParameters(chains=n, links=3)) for n in (30, 240))
    for field in (MASS, DRAG, DAMPING, STIFFNESS):
        assert fine[0][field].sum() == pytest.approx(coarse[0][field].sum(), rel=2e-3), field
    assert coarse[2] == pytest.approx(fine[2], rel=1e-3)
    old, new = (link_fields(MantaParameters(chains=n, damping_per="joint"))[0][DAMPING].sum() for n in (30, 240))
    assert new == pytest.approx(8.0 * old)


def test_thrust_converges_over_chains_at_second_order():
    sizes = [4, 8, 16]
    values = [thrust(500, chains=n) for n in sizes]
    order, limit = richardson(sizes, values) or (0.0, 0.0)
    assert order == pytest.approx(2.0, abs=0.1)
    assert limit == pytest.approx(3.366, abs=0.005)
    assert math.log2((values[0] - limit) / (values[1] - limit)) == pytest.approx(2.0, abs=0.1)
    of_joints = [thrust(500, chains=n, damping_per="joint") for n in sizes]
    assert abs(of_joints[0] - of_joints[2]) > 10.0 * abs(values[0] - values[2])


def test_richardson_finds_order_and_limit_or_refuses():
    sizes = [10, 20, 40]
    order, limit = richardson(sizes, [5.0 + 3.0 / n**2 for n in sizes]) or (0.0, 0.0)
    assert (order, limit) == pytest.approx((2.0, 5.0))
    assert richardson(sizes, [1.0, 2.0, 4.0]) is None
    assert richardson([10, 20, 30], [1.0, 2.0, 3.0]) is None
