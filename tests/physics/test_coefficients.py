"""Coefficients of strips against those of a circle, a plate and a sphere in the textbooks; ramps and their rates."""

from __future__ import annotations

import math

import pytest

from rtmms.mechanism.joint_laws import ramp
from rtmms.model.description import Placement
from rtmms.model.elements import elliptic_strip

RHO = 1000.0


def test_a_strip_of_circular_section_has_a_cylinders_coefficients() -> None:
    """Drag on the diameter, the displaced water as added mass across, none about the axis (Newman, table 4.3)."""
    strip = elliptic_strip(0.1, 0.1, 0.5, RHO, Placement(), drag=(0.02, 1.1, 1.2), roll=1.3)
    assert strip.drag == pytest.approx((0.5 * RHO * 0.02 * math.pi * 0.1, 0.5 * RHO * 1.1 * 0.2, 0.5 * RHO * 1.2 * 0.2))
    assert strip.added == pytest.approx((0.0, RHO * math.pi * 0.01, RHO * math.pi * 0.01))
    assert (strip.roll_drag, strip.displaced) == pytest.approx((0.0, RHO * math.pi * 0.01))


def test_a_thin_strip_is_a_plate() -> None:
    """Half-width 0.1 along e2, no thickness: across e3 the plate's rho pi a^2, about e1 rho pi a^4 / 8, along e2
    nothing."""
    strip = elliptic_strip(0.1, 0.0, 0.5, RHO, Placement(), drag=(0.01, 1.0, 2.0), added=(1.5, 1.0, 0.7), roll=3.0)
    assert strip.added == pytest.approx((1.5 * RHO * math.pi * 1e-4 / 8.0, 0.0, 0.7 * RHO * math.pi * 0.01))
    assert strip.drag == pytest.approx((0.5 * RHO * 0.01 * math.pi * 0.05, 0.0, 0.5 * RHO * 2.0 * 0.2))
    assert strip.roll_drag == pytest.approx(0.5 * RHO * 3.0 * 1e-4)


def test_a_ramp_and_its_rates() -> None:
    """From rest to rest, and each rate the difference of the one before."""
    assert ramp(0.0, 2.0) == (0.0, 0.0, 0.0)
    assert ramp(2.0, 2.0) == (1.0, 0.0, 0.0)
    assert ramp(1.0, 2.0)[0] == pytest.approx(0.5)
    h = 1e-5
    for t in (0.2, 0.7, 1.3, 1.9):
        for k in (0, 1):
            slope = (ramp(t + h, 2.0)[k] - ramp(t - h, 2.0)[k]) / (2 * h)
            assert ramp(t, 2.0)[k + 1] == pytest.approx(slope, rel=1e-7)
