"""The fin's mechanism: pose by closed form, first and second derivatives against complex steps."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.robots.manta import rods as s

L = 0.315
R1 = 0.215
R2 = 0.185
STEP = 1e-30


def motion(alpha, rate, accel, roll=s.ROLL_MEAN):
    """The kernel's own Python source, so that complex numbers pass through it."""
    out = np.zeros(s.SUPPORT_SIZE, dtype=complex)
    source = getattr(s.support_motion, "py_func", s.support_motion)
    assert source(L, R1, R2, roll, np.asarray(alpha), np.asarray(rate), np.asarray(accel), out, 0)
    return out


def rotation(a):
    return a[s.ROTATION : s.ROTATION + 9].reshape(3, 3)


@pytest.mark.parametrize("roll", [s.ROLL_MEAN, s.ROLL_ZERO])
@pytest.mark.parametrize("seed", range(5))
def test_first_and_second_derivatives_follow_the_pose(seed, roll):
    rng = np.random.default_rng(seed)
    alpha, rate, accel = rng.uniform(-0.7, 0.7, 2), rng.uniform(-3, 3, 2), rng.uniform(-30, 30, 2)
    here = motion(alpha, rate, accel, roll).real
    # one complex step along the motion: positions give rates, rates give accelerations
    ahead = motion(alpha + 1j * STEP * rate, rate + 1j * STEP * accel, accel, roll)
    change = ahead.imag / STEP
    assert change[s.POINT : s.POINT + 3] == pytest.approx(here[s.POINT_RATE : s.POINT_RATE + 3], abs=1e-12)
    assert change[s.POINT_RATE : s.POINT_RATE + 3] == pytest.approx(here[s.POINT_ACCEL : s.POINT_ACCEL + 3], abs=1e-11)
    spin = rotation(here).T @ rotation(change)  # R^T R' = omega^
    omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    assert spin == pytest.approx(-spin.T, abs=1e-12)
    assert omega == pytest.approx(here[s.OMEGA : s.OMEGA + 3], abs=1e-12)
    assert change[s.OMEGA : s.OMEGA + 3] == pytest.approx(here[s.OMEGA_RATE : s.OMEGA_RATE + 3], abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_support_spans_both_rods_and_its_frame_is_orthonormal(seed):
    a1, a2 = np.random.default_rng(seed).uniform(-0.8, 0.8, 2)
    out = motion([a1, a2], [0.0, 0.0], [0.0, 0.0]).real
    r = rotation(out)
    assert r.T @ r == pytest.approx(np.eye(3), abs=1e-14)
    front = out[s.POINT : s.POINT + 3] + L * r[:, 0]
    assert front[1:] == pytest.approx([R1 * np.cos(a1), R1 * np.sin(a1)], abs=1e-14)


def test_jacobian_gives_the_twist():
    rng = np.random.default_rng(7)
    alpha, rate = rng.uniform(-0.7, 0.7, 2), rng.uniform(-3, 3, 2)
    out = motion(alpha, rate, [0.0, 0.0]).real
    columns = [out[o : o + 6] for o in (s.JACOBIAN_FRONT, s.JACOBIAN_BACK)]
    twist = rate[0] * columns[0] + rate[1] * columns[1]
    assert twist[:3] == pytest.approx(rotation(out).T @ out[s.POINT_RATE : s.POINT_RATE + 3], abs=1e-13)
    assert twist[3:] == pytest.approx(out[s.OMEGA : s.OMEGA + 3], abs=1e-13)


def test_slide_of_the_front_tip():
    """B slides along x by 13 mm at A = 40 deg, phase 40 deg (equal-height rule for the front rod)."""
    back = np.radians(40.0)
    front = np.arcsin(R2 * np.sin(back) / R1)
    w = np.linspace(0.0, 2.0 * np.pi, 721)
    x = [
        motion([front * np.sin(t + np.radians(40.0)), back * np.sin(t)], [0, 0], [0, 0]).real[s.ROTATION] * L for t in w
    ]
    assert np.ptp(x) == pytest.approx(0.013, abs=0.0005)


def test_a_singular_geometry_is_reported():
    out = np.zeros(s.SUPPORT_SIZE)
    args = (L, R1, R2, s.ROLL_MEAN)
    remaining = (np.zeros(2), np.zeros(2))
    assert s.support_motion(*args, np.radians([51.0, -51.0]), *remaining, out, 0)
    assert not s.support_motion(*args, np.radians([52.5, -52.5]), *remaining, out, 0)
