"""The continuous eel as a plant: bits, refusals, commands, derivatives, sensors, the step beside it, plain Python."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.linearise import linearise
from rtmms.continuum.body import CosseratBody, Section
from rtmms.continuum.field import SETTLE, Field, check
from rtmms.continuum.plant import CosseratPlant
from rtmms.plant.monitor import step_error
from rtmms.plant.optional_protocols import HasCompiledOutputs, HasCompiledStep, HasStepErrorEstimator
from rtmms.sensing.sensed import Sensed
from rtmms.sensing.suite import read_profile

SMALL = {"nodes": 25, "dt": 0.01}


def run(plant: Any, steps: int, command: Any = None) -> Any:
    for _ in range(steps):
        plant.step(plant.neutral if command is None else command)
    return plant.observe()


def test_a_snapshot_goes_on_with_the_same_bits() -> None:
    plant: Any = rtmms.load("continuous_eel", preset="spatial", **SMALL)
    commands = plant.neutral + 0.1 * np.random.default_rng(1).normal(size=(60, 5))
    for command in commands[:30]:
        plant.step(command)
    stored, ends = plant.snapshot(), []
    for _ in range(2):
        plant.restore(stored)
        for command in commands[30:]:
            plant.step(command)
        ends.append({key: value.tobytes() for key, value in plant.observe().items()})
    assert ends[0] == ends[1]
    with pytest.raises(rtmms.ModelError, match="expected a snapshot of the present model, step, version"):
        rtmms.load("continuous_eel", preset="spatial", nodes=31, dt=0.01).restore(stored)
    assert isinstance(plant, HasCompiledStep)
    assert isinstance(plant, HasStepErrorEstimator)
    assert not isinstance(plant, HasCompiledOutputs)


def test_frequency_changes_without_a_jump() -> None:
    """The phase is the integral of the commanded frequency; the rest at its amplitude of before."""
    plant: Any = rtmms.load("continuous_eel", ramp_s=0.0, yaw_growth_rad_m2=0.0, **SMALL)
    phase, rate, observed = 0.0, 1.0, []
    for k in range(100):
        command = np.array([1.0 if k < 50 else 2.0, 1.0, 0.1])
        plant.step(command)
        phase += (command[0] * plant.dt) + (rate - command[0]) * (1.0 - math.exp(-20.0 * plant.dt)) / 20.0
        rate = command[0] + (rate - command[0]) * math.exp(-20.0 * plant.dt)
        observed.append(float(plant.observe()["curvature"][0, 2]))
    offset = 0.1 * (1.0 - (1.0 + 20.0 * plant.time) * math.exp(-20.0 * plant.time))
    assert observed[-1] == pytest.approx(0.3 * math.sin(2.0 * math.pi * phase) + offset, abs=1e-12)


def test_nodes_of_curvature() -> None:
    """At rest after a while, the curvature goes through the nodes; twice the curve, half the turn of a closed ring."""
    plant: Any = rtmms.load("continuous_eel", drive="nodes", pitched="on", curvature_nodes=4, nodes=37, dt=0.01)
    command = np.array([0.1, -0.2, 0.4, 0.3, 0.0, 0.1, -0.1, 0.2])
    observed = run(plant, 200, command)
    np.testing.assert_allclose(observed["curvature"][::4, 2], command[:4], atol=1e-12)
    np.testing.assert_allclose(observed["curvature"][::4, 1], command[4:], atol=1e-12)
    ring: Any = rtmms.load("continuous_eel", drive="nodes", curvature_nodes=3, nodes=37, points=5, dt=0.01)
    observed = run(ring, 300, np.full(3, 2.0 * math.pi / 2.08))
    np.testing.assert_allclose(observed["centreline"][-1], 0.0, atol=1e-6)


def test_linearised_and_sensed() -> None:
    plant: Any = rtmms.load("continuous_eel", preset="spatial", **SMALL)
    run(plant, 40)
    stored = plant.snapshot()
    linear = linearise(plant)
    assert plant.snapshot() == stored
    assert linear.a.shape == (22, 22)
    assert linear.b.shape == (22, 5)
    assert linear.error < 1e-6
    np.testing.assert_allclose(linear.a[:3, 6:9], np.eye(3) * plant.dt, atol=3e-3)
    error = step_error(plant.step_error_estimator(), plant.neutral)
    assert 0.0 < error.largest < 1e-3
    sensed = Sensed(plant, read_profile("typical", plant))
    sensed.reset()
    sensed.step(plant.neutral)
    assert any(name.startswith("imu") for name in sensed.observe())


def test_set_is_as_built() -> None:
    plant: Any = rtmms.load("continuous_eel", **SMALL)
    other: Any = rtmms.load("continuous_eel", **SMALL, c2=2.0, current_x_m_s=0.1, yaw_rad_m=0.4)
    plant.set(c2=2.0, current_x_m_s=0.1, yaw_rad_m=0.4)
    plant.reset()
    np.testing.assert_array_equal(run(plant, 20)["position"], run(other, 20)["position"])
    before = plant.snapshot()
    for name, arguments in (
        ("length_m", "cannot change while the plant runs"),
        ("c9", "unknown continuous_eel parameter"),
    ):
        with pytest.raises(rtmms.ModelError, match=arguments):
            plant.set(**{name: 1.0})
    assert plant.snapshot() == before


BODY = CosseratBody("own", 1.0, Section(0.05, 0.05))


def kinked(x: float, t: float, p: Any, out: Any) -> None:
    out[:] = 0.0
    out[0, 0] = 1.0
    out[0, 5] = math.sin(t)
    if p[0, 0] > 0.5 and x > 0.55:
        out[0, 5] = math.nan
    if p[0, 0] < -0.5:
        out[1, 5] = 0.5  # not the rate


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rtmms.load("continuous_eel", half_width_m=0.0), "half_width_m must be > 0"),
        (lambda: rtmms.load("continuous_eel", nodes=3), "nodes: expected at least 24 for this wavelength"),
        (
            lambda: rtmms.load("continuous_eel", drive="nodes", curvature_nodes=9, nodes=53),
            "nodes: expected at least 54",
        ),
        (lambda: rtmms.load("continuous_eel", wavelength_m=0.6, nodes=64), "nodes: expected at least 84"),
        (lambda: rtmms.load("continuous_eel", points=7), "points must be <= 5"),
        (lambda: rtmms.load("continuous_eel", drive="nodes", curvature_nodes=1), "curvature_nodes must be >= 2"),
        (lambda: rtmms.load("continuous_eel", preset="x"), "unknown continuous_eel preset"),
        (lambda: rtmms.load("continuous_eel", dt=0.0), "dt must be > 0 s"),
        (
            lambda: CosseratPlant(CosseratBody("own", 1.0, lambda x: Section(0.05 * (1.0 - x), 0.05)), field(0.0)),
            r"own: section at X = 1 m: half_width_m must be > 0, so that the section has an area",
        ),
        (
            lambda: check(field(1.0), np.linspace(0.0, 1.0, 11), np.array([0.5]), "own"),
            r"X = 0.6 m, t = 0.5 s.*xi\[5\]",
        ),
        (
            lambda: check(field(-1.0), np.linspace(0.0, 1.0, 3), np.array([0.5]), "own"),
            r"xi_t\[5\]: .*got 0.5",
        ),
        (lambda: CosseratPlant(BODY, field(0.0, no_code)), "strain field 'no_code': numba cannot compile"),
    ],
)
def test_refused(make: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make()


def no_code(x: float, t: float, p: Any, out: Any) -> None:
    out[0, 0] = nothing_of_that_name(x)  # type: ignore[name-defined]  # noqa: F821


def field(kind: float, function: Any = kinked) -> Any:
    return Field(function, np.array([kind]), np.array([SETTLE]), np.zeros((1, 0)))


def test_a_command_that_is_no_number_changes_nothing() -> None:
    plant: Any = rtmms.load("continuous_eel", **SMALL)
    run(plant, 3)
    before = plant.snapshot()
    for command, arguments in ((np.array([1.0, np.nan, 0.0]), "yaw.gain must be finite"), (np.zeros(2), "shape")):
        with pytest.raises(ValueError, match=arguments):
            plant.step(command)
    assert plant.snapshot() == before


def test_a_strain_that_is_lost_on_the_way_ends_the_run_with_its_place() -> None:
    def late(x: float, t: float, p: Any, out: Any) -> None:
        out[:] = 0.0
        out[0, 0] = 1.0 if x < 0.7 or t < 20.0 else math.nan

    plant = CosseratPlant(BODY, field(0.0, late), nodes=10, dt=0.5)
    run(plant, 39)
    before = plant.snapshot()
    with pytest.raises(rtmms.DivergedError, match=r"strain.*not finite at X = 0.75"):
        plant.step(np.zeros(0))
    assert plant.snapshot() == before
    assert plant.time == 19.5


PROGRAM = """
import numpy as np
from rtmms.robots import continuous_eel
plant = continuous_eel.in_paper_frame(preset="spatial", dt=0.01, nodes=10)
for k in range(5):
    plant.step(plant.neutral + 0.01 * k)
seen = plant.observe()
print(repr([float(x) for name in ("position", "quaternion", "internal_wrench", "work") for x in np.ravel(seen[name])]))
"""


@pytest.mark.full
def test_the_jit_changes_nothing() -> None:
    ends = []
    for off in ("0", "1"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": off, "RTMMS_QUIET": "1"}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
        ends.append(np.array(eval(done.stdout)))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9, atol=1e-9)


def test_nodes_that_are_not_given_are_as_many_as_the_curvatures_need() -> None:
    for values, nodes in (({}, 64), ({"wavelength_m": 0.6}, 84), ({"drive": "nodes", "curvature_nodes": 15}, 90)):
        plant: Any = rtmms.load("continuous_eel", **values)
        assert plant.parameters.nodes == nodes
        assert len(plant.grid.x) >= nodes
