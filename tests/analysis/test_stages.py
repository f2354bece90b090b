"""Stages of a motion: rolled out as by hand, and their slopes on the manta, by its structure and by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.stages import Motion, Slopes, Stages

STEPS = 3


@pytest.fixture(scope="module")
def manta() -> Any:
    plant = rtmms.load("manta", dt=0.02, chains=4)
    for k in range(40):
        plant.step(0.4 * np.sin(0.08 * k + np.array([0.5, 0.0, 0.5, 0.0])))
    return plant


def knots(count: int = 4) -> np.ndarray:
    return 0.4 * np.sin(0.2 * np.arange(count)[:, None] + np.array([0.5, 0.0, 0.3, 0.0]))


def test_a_motion_goes_as_steps_by_hand_do(manta: Any) -> None:
    """Straight lines between the knots; outputs in the state and beside it; the plant stays where it is."""
    stages, values = Stages(manta, STEPS, ("position", "rod_power")), knots()
    before = manta.snapshot()
    result = stages.roll(values)
    assert manta.snapshot() == before
    for t in range(3):
        for j in range(STEPS):
            w = (j + 1) / STEPS
            manta.step(values[t] + w * (values[t + 1] - values[t]) if j < STEPS - 1 else values[t + 1])
        outputs = manta.observe()
        np.testing.assert_allclose(result.outputs["position"][t], outputs["position"], rtol=1e-12, atol=1e-15)
        assert result.outputs["rod_power"][t] == pytest.approx(float(outputs["rod_power"]), rel=1e-12)
        np.testing.assert_allclose(result.states[t + 1], manta.present()[0], rtol=1e-9, atol=1e-13)
    manta.restore(before)
    assert result.whole


def slopes(plant: Any, motion: Motion, threads: int, structured: bool = True) -> Slopes:
    stages = Stages(plant, STEPS, ("position", "rod_power"), threads)
    if not structured:
        for i in range(threads):
            stages._pool.fork(i)
        stages.plant = Bare(plant)
    result = stages.slopes(motion)
    stages.close()
    assert result is not None
    return result


class Bare:
    """A plant without its structure."""

    def __init__(self, plant: Any) -> None:
        self.dt, self.present = plant.dt, plant.present


def test_slopes_by_structure_are_those_by_differences(manta: Any) -> None:
    motion = Stages(manta, STEPS, ("position", "rod_power")).roll(knots())
    item, other = slopes(manta, motion, 1), slopes(manta, motion, 2, structured=False)
    coordinates = manta.coordinates()
    size, reach = coordinates.size, 1.2
    for a, b, by in (
        (item.a, other.a, size), (item.before, other.before, reach), (item.at_end, other.at_end, reach),
    ):  # fmt: skip
        np.testing.assert_allclose(a * by / size[:, None], b * by / size[:, None], atol=3e-6)
    assert np.abs(item.before[0]).max() > 1e-3
    np.testing.assert_allclose(item.outputs["rod_power"], other.outputs["rod_power"], atol=1e-12)
    again = slopes(manta, motion, 2)
    assert again.a.tobytes() == item.a.tobytes()


def test_slopes_report_where_a_motion_beside_goes(manta: Any) -> None:
    """A knot and the knot before it displaced: states and power after the stage, against the slopes."""
    stages = Stages(manta, STEPS, ("position", "rod_power"))
    base = knots()
    motion = stages.roll(base)
    result = stages.slopes(motion)
    assert result is not None
    parts, k = manta.coordinates().state_indices, len(manta.coordinates().names)
    by, ends = 1e-5, []
    for sign in (1.0, -1.0):
        moved = base.copy()
        moved[1, 2] += sign * by
        ends.append(stages.roll(moved))
    off = [(ends[0].states[t] - ends[1].states[t])[parts][6:] / (2.0 * by) for t in range(4)]
    np.testing.assert_allclose(off[1], result.at_end[0][6:, 2], atol=1e-5 * np.abs(off[1]).max())
    first = result.at_end[0][:, 2]
    np.testing.assert_allclose(
        off[2], (result.a[1] @ first + result.before[1][:, 2])[6:], atol=1e-5 * np.abs(off[2]).max()
    )
    power = (ends[0].outputs["rod_power"][0] - ends[1].outputs["rod_power"][0]) / (2.0 * by)
    assert result.outputs["rod_power"].shape == (3, 1, k)
    assert result.outputs["rod_power"][0, 0] @ first == pytest.approx(float(power), rel=1e-3, abs=1e-3)


def test_feedback_leads_back(manta: Any) -> None:
    """With a gain on the rods' own angles alone the knots move by it, and stay in their box."""
    stages = Stages(manta, STEPS, ("position",), 2)
    base, count = knots(), 3
    motion = stages.roll(base)
    k = len(manta.coordinates().names)
    correction, gain = np.full((count, 4), 0.1), np.zeros((count, 4, k + 4))
    gain[:, 0, k] = -2.0  # of the first rod: by how much the knot before it is off
    limit = np.full((count, 4), 0.45)
    item, half = stages.guide(motion, correction, gain, (1.0, 0.5), -limit, limit)
    np.testing.assert_allclose(half.knots[1], np.minimum(base[1] + 0.05, 0.45))
    off = half.knots[1, 0] - base[1, 0]
    assert half.knots[2, 0] == pytest.approx(min(base[2, 0] + 0.05 - 2.0 * off, 0.45))
    assert np.abs(item.knots[1:]).max() <= 0.45
    stages.close()


def test_slopes_take_up_parameters_that_change(manta: Any) -> None:
    """What is kept from plan to plan is not kept beyond a change of the plant."""
    stages, values, before = Stages(manta, STEPS), knots(), manta.parameters.drag_coefficient
    try:
        stages.follow()
        first = stages.slopes(stages.roll(values))
        stages.follow()
        stored = stages._structures[0]
        manta.set(drag_coefficient=2.0 * before)
        stages.follow()
        motion = stages.roll(values)
        result, anew = stages.slopes(motion), slopes(manta, motion, 1)
    finally:
        manta.set(drag_coefficient=before)
    assert stored is not None
    assert first is not None
    assert result is not None
    np.testing.assert_array_equal(result.a, anew.a)
    assert np.abs(result.a - first.a).max() > 1e-4
