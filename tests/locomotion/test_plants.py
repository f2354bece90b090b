"""The robots that move by their shape alone, as plants: same bits, refusals, work, and where a gait takes them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.locomotion import Connection, Path, holonomy
from rtmms.locomotion.plant import ConnectionPlant
from tests.locomotion.bodies import KINDS, robot


def gaited(plant: Any, a: float, period: float, cycles: int) -> dict[str, Any]:
    """A circle of shapes as commands; the first cycle, in which it comes in, is left out: what follows is one state
    before and one after."""
    observed = []
    count = round(period / plant.dt)
    for cycle in range(cycles + 1):
        observed.append(plant.observe())
        for k in range(count):
            t = 2.0 * math.pi * k / count
            ramp = min(1.0, (k / count) * 2.0) if cycle == 0 else 1.0
            plant.step(np.array([a * ramp * math.cos(t), a * math.sin(t) * ramp]))
    observed.append(plant.observe())
    return {"first": observed[1], "last": observed[-1]}


@pytest.mark.parametrize("name", KINDS)
def test_a_snapshot_goes_on_with_the_same_bits(name: str) -> None:
    plant: Any = rtmms.load(name)
    commands = np.random.default_rng(1).normal(size=(60, 2)) * 0.5
    for command in commands[:30]:
        plant.step(command)
    stored = plant.snapshot()
    ends = []
    for _ in range(2):
        plant.restore(stored)
        for command in commands[30:]:
            plant.step(command)
        ends.append({key: value.tobytes() for key, value in plant.observe().items()})
    assert ends[0] == ends[1]
    plant.reset()
    np.testing.assert_array_equal(plant.observe()["position"], [0.0, 0.0, plant.start_height])
    with pytest.raises(rtmms.ModelError, match="expected a snapshot of the present model, step, version"):
        rtmms.load(name, dt=2e-3).restore(stored)


def test_purcell_goes_where_his_stroke_takes_him() -> None:
    """The shape follows the command through its filter: a circle stays one, smaller and later."""
    plant = rtmms.load("purcell", dt=2e-3)
    ends = gaited(plant, 1.0, 6.0, 1)
    shrunk = 1.0 / (1.0 + (2.0 * math.pi / 6.0 / 20.0) ** 2)
    held = 0.5 * plant.dt  # a command stays for a step: half of one late on average
    late = 2.0 * math.atan(2.0 * math.pi / 6.0 / 20.0) + 2.0 * math.pi / 6.0 * held
    wanted = holonomy(robot("purcell"), _late(shrunk, late), "stokes")
    before, after = ends["first"], ends["last"]
    angle = 2.0 * math.atan2(before["quaternion"][3], before["quaternion"][0])
    c, s = math.cos(angle), math.sin(angle)
    moved = np.array([[c, s], [-s, c]]) @ (after["position"] - before["position"])[:2]
    np.testing.assert_allclose(moved, wanted[:2], atol=1e-6)
    assert float(after["work"]) > float(before["work"])


def _late(a: float, phase: float) -> Path:
    def motion(t: Any) -> Any:
        c, s = np.cos(t - phase), np.sin(t - phase)
        return a * np.column_stack([c, s]), a * np.column_stack([-s, c])

    return Path(motion)


def test_purcell_s_outputs_are_those_of_his_connection() -> None:
    plant: Any = rtmms.load("purcell")
    item = Connection(robot("purcell"), "stokes")
    work, power = [], []
    for _ in range(200):
        plant.step(np.array([0.6, -0.9]))
        outputs = plant.observe()
        power.append(float(outputs["power"]))
        work.append(float(outputs["work"]))
        twist = item.twist(outputs["joint_position"], outputs["joint_velocity"])
        np.testing.assert_allclose(
            np.concatenate([outputs["velocity"], outputs["angular_velocity"]]), twist, atol=1e-14
        )
        torque, _ = item.drag(outputs["joint_position"], outputs["joint_velocity"])
        np.testing.assert_allclose(outputs["joint_torque"], torque, atol=1e-14)
        assert outputs["power"] == pytest.approx(outputs["joint_torque"] @ outputs["joint_velocity"], rel=1e-12)
    t = plant.dt * np.arange(1, 201)
    np.testing.assert_allclose(work[-1] - work[99], np.trapezoid(power[99:], t[99:]), rtol=1e-4)


@pytest.mark.parametrize("name", ["cat", "satellite", "fluid_swimmer"])
def test_by_torques_the_momentum_stays_0(name: str) -> None:
    plant: Any = rtmms.load(name, drive="torque")
    assert [channel.unit for channel in plant.actuators] == ["N m", "N m"]
    item = Connection(robot(name), KINDS[name])
    for k in range(300):
        plant.step(np.array([0.05 * math.cos(0.02 * k), -0.03]))
    state = plant.state
    assert np.max(np.abs(state.qd)) > 0.01
    np.testing.assert_allclose(state.twist, item.twist(state.q, state.qd), atol=1e-9)
    outputs = plant.observe()
    assert float(outputs["work"]) == pytest.approx(float(outputs["energy"]), rel=1e-6)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rtmms.load("purcell", length=2.0), "unknown purcell parameter 'length'; did you mean length_m"),
        (lambda: rtmms.load("purcell", length_m=0.0), "length_m must be > 0"),
        (lambda: rtmms.load("purcell", dt=0.0), "dt must be > 0 s"),
        (lambda: rtmms.load("purcell", preset="x"), "unknown purcell preset"),
        (lambda: rtmms.load("cat", drive="force"), "drive must be one of motion, torque"),
        (lambda: ConnectionPlant(robot("purcell"), [rtmms.model.JointMotion("middle")]), "unknown joint"),
        (lambda: ConnectionPlant(robot("purcell"), [rtmms.model.BodyWrench("middle")]), "expected JointMotion only"),
        (lambda: ConnectionPlant(robot("cat")), "expected bodies with drag"),
        (lambda: ConnectionPlant(robot("purcell"), initial=[0.0]), r"initial must have shape \(2,\)"),
    ],
)
def test_refused(make: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make()


def test_a_command_that_is_no_number_changes_nothing() -> None:
    plant = rtmms.load("purcell")
    plant.step(np.array([0.3, 0.1]))
    before = plant.snapshot()
    for command, parts in ((np.array([np.nan, 0.0]), "left.angle must be finite"), (np.zeros(3), "shape")):
        with pytest.raises(ValueError, match=parts):
            plant.step(command)
    assert plant.snapshot() == before


PROGRAM = """
import numpy as np, rtmms
plant = rtmms.load("purcell", dt=0.01)
for k in range(20):
    plant.step(np.array([0.4, -0.1 * k]))
seen = plant.observe()
print(repr([float(x) for name in ("position", "quaternion", "joint_torque", "work") for x in np.ravel(seen[name])]))
"""


@pytest.mark.full
def test_the_jit_changes_nothing() -> None:
    ends = []
    for off in ("1", "0"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": off}
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )  # fmt: skip
        ends.append(np.array(eval(ran.stdout)))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-11, atol=1e-13)


def test_a_step_without_inertia_allocates_nothing() -> None:
    from numba.core.runtime import _nrt_python as runtime
    from numba.core.runtime import rtsys

    plant, command = rtmms.load("purcell"), np.array([0.2, 0.1])
    runtime.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        for _ in range(100):
            plant.step(command)
        after = rtsys.get_allocation_stats().alloc
    finally:
        runtime.memsys_disable_stats()
    assert after == before
