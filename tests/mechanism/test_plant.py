"""What all plants made of mechanisms share: no allocation in a step, laws and filters exact."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.mechanism.joint_laws import Law, ramp, reference, settle
from rtmms.plant.validation import refuse_substeps
from rtmms.robots import eel, moth, quadrotor


@pytest.mark.parametrize("make", [lambda k: eel.load(substeps=k), lambda k: moth.load(start="rest", step_s=1e-3 / k)])
def test_substeps_allocate_nothing(make):
    """As many allocations (arrays that cross from Python) for a hundred substeps as for twenty."""
    from numba.core.runtime import _nrt_python as runtime
    from numba.core.runtime import rtsys

    counts = []
    for substeps in (20, 100):
        plant = make(substeps)
        command = plant.neutral
        plant.step(command)
        runtime.memsys_enable_stats()
        try:
            before = rtsys.get_allocation_stats().alloc
            plant.step(command)
            counts.append(rtsys.get_allocation_stats().alloc - before)
        finally:
            runtime.memsys_disable_stats()
    assert counts[0] == counts[1]


@pytest.mark.parametrize("arguments", [0, -1, 2**70, 10_001, 1.5, True, "2"])
def test_substeps_that_would_never_end_are_refused(arguments):
    with pytest.raises(ModelError, match="substeps must be a whole number from 1 to 10000, got"):
        refuse_substeps("hull", arguments)


def test_a_plant_has_at_most_ten_thousand_substeps():
    with pytest.raises(ModelError, match=r"quadrotor.*: substeps must be"):
        quadrotor.load(substeps=2**70)


def test_laws_carry_their_own_derivatives():
    """(q, qd, qdd) of a joint with gait, ramp, gain and offset, by differences of q."""
    plant = eel.load()
    plant.system.hold.servo[0] = 0.1, -0.4, 0.2, 0.5
    plant.system.hold.target[0] = 0.3, -0.1
    law, hold, h = plant.system.law, plant.system.hold, 1e-4
    for t in (0.0, 0.4, 1.3, 1.9, 3.0):
        q = [reference(law, hold, hold.coast, 0, t + k * h) for k in (-1, 0, 1)] if t else None
        if q is None:
            assert reference(law, hold, hold.coast, 0, 0.0)[0] == pytest.approx(0.1)
            continue
        assert q[1][1] == pytest.approx((q[2][0] - q[0][0]) / (2 * h), abs=1e-6)
        assert q[1][2] == pytest.approx((q[2][1] - q[0][1]) / (2 * h), abs=1e-6)


def test_settle_solves_its_equation():
    x, v, a = settle(0.3, -1.0, 0.8, 7.0, 0.2)
    assert a == pytest.approx(49.0 * (0.8 - x) - 14.0 * v, abs=1e-12)
    later = settle(*settle(0.3, -1.0, 0.8, 7.0, 0.15)[:2], 0.8, 7.0, 0.05)
    np.testing.assert_allclose(later, (x, v, a), atol=1e-12)
    assert settle(0.3, -1.0, 0.8, 7.0, 0.0)[:2] == pytest.approx((0.3, -1.0))


def test_ramp_is_smooth():
    assert ramp(0.0, 2.0) == (0.0, 0.0, 0.0)
    assert ramp(2.0, 2.0) == (1.0, 0.0, 0.0)
    np.testing.assert_allclose(ramp(1.0, 2.0), (0.5, 30 / 16 / 2, 0.0), atol=1e-15)
    assert ramp(0.0, 0.0)[0] == 1.0


def test_a_law_may_hold_each_joint_as_hard_as_it_likes():
    plant = moth.load(drive="torque", start="rest")
    kp = plant.system.law.kp
    assert np.count_nonzero(kp) == 2
    assert Law(np.zeros((3, 3))).kp == 0.0
