"""A and B of a step of any plant: against the complex step, against known matrices, and against the motion itself."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms.analysis import trim
from rtmms.analysis.linearise import linearise, linearise_step
from rtmms.robots import eel
from tests.pendulum import Pendulum
from tests.robots.gaits import gait


class PendulumChart:
    """Angle and rate."""

    names, size = ("angle", "rate"), np.array([1.0, 3.0])

    def __init__(self, plant):
        self.plant, self.here = plant, plant.state[:2].copy()

    def read(self):
        return self.plant.state[:2] - self.here

    def write(self, coordinates):
        self.plant.state[:2] = self.here + coordinates


class ChartedPendulum(Pendulum):
    def chart(self):
        return PendulumChart(self)


class TreeChart:
    """Of a plant of a mechanism, in the coordinates of its own linearisation."""

    def __init__(self, plant):
        self.plant, self.chart = plant, trim.TreeChart(plant.vector.copy(), np.flatnonzero(~plant.model.imposed))
        self.names, self.size = tuple(self.chart.names()), np.ones(self.chart.size)
        self.turn = plant.state.rotation

    def read(self):
        c = self.chart.coordinates(self.plant.vector)
        c[:3] = self.turn.T @ c[:3]
        return c

    def write(self, coordinates):
        c = coordinates.copy()
        c[:3] = self.turn @ c[:3]
        self.plant.vector[:] = self.chart.vector(c)


def test_a_known_step():
    """The pendulum's semi-implicit Euler by hand, at an angle where the sine is curved; the error is as estimated."""
    plant = ChartedPendulum(dt=1e-2, damping=0.1)
    plant.state[:2] = 0.9, 1.7
    blob = plant.snapshot()
    result = linearise(plant, commands=np.array([[0.3, 0.5]]))
    assert plant.snapshot() == blob
    rate = np.array([-1e-2 * 9.81 * np.cos(0.9), 1.0 - 1e-2 * 0.1])
    want = np.array([np.array([1.0, 0.0]) + 1e-2 * rate, rate])
    np.testing.assert_allclose(result.a, want, atol=1e-9)
    np.testing.assert_allclose(result.b, [[1e-4, 1e-4], [1e-2, 1e-2]], atol=1e-10)
    assert result.dt == 1e-2
    assert 0.0 < result.error < 1e-8
    assert (result.states, result.inputs) == (("angle", "rate"), ("torque", "offset"))


def test_mean_along_commands():
    plant = ChartedPendulum()
    plant.state[:2] = 0.5, 0.0
    commands = np.linspace(-1.0, 1.0, 40).reshape(20, 2)
    mean = linearise_step(plant, commands)
    total = 0.0
    for command in commands:
        total = total + linearise_step(plant, command).a / 20
        plant.step(command)
    np.testing.assert_allclose(mean.a, total, atol=1e-9)


def test_the_complex_step_agrees():
    """A straight, coasting eel: its step is exp(A dt), B that of torques held."""
    plant = eel.load(joints=3, dt=2e-3, drive="torque", gait="none", kp_n_m=0.0, kd_n_m_s=0.0)
    plant.vector[7 + plant.model.n] = -0.3
    chart = TreeChart(plant)
    step, exact = linearise_step(plant, chart=chart), linearise(plant).held(plant.dt)
    scale = np.max(np.abs(exact.a))
    np.testing.assert_allclose(step.a, exact.a, atol=1e-5 * scale)  # the coasting eel slows down as it goes
    np.testing.assert_allclose(step.b, exact.b, atol=1e-5 * np.max(np.abs(exact.b)))
    with pytest.raises(rtmms.ModelError, match="got a discrete one with steps"):
        step.held(1.0)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"coupling": "monolithic", "actuation": "ideal"},
        pytest.param({"coupling": "iterated", "added_mass": True}, marks=pytest.mark.full),
        {"body": "fixed"},
    ],
    ids=["sequential", "monolithic-ideal", "iterated", "held"],
)
def test_manta(arguments):
    """What a small error of everything becomes in a step, beside A and B; and the chart reads what it writes."""
    plant = rtmms.load("manta", chains=5, links=2, **arguments)
    command = gait()
    for k in range(700):
        plant.step(command(k * plant.dt))
    blob, u = plant.snapshot(), command(0.7)
    result = linearise(plant, commands=u)
    assert plant.snapshot() == blob
    assert result.error < 1e-3  # of ideal motors; 1e-6 of the others
    chart = plant.chart()
    rng = np.random.default_rng(1)
    x, du = 1e-7 * chart.size * rng.normal(size=len(chart.size)), 1e-7 * rng.normal(size=4)
    ends = []
    for sign in (1.0, -1.0):
        plant.restore(blob)
        chart.write(sign * x)
        np.testing.assert_allclose(chart.read(), sign * x, atol=1e-12)
        plant.step(u + sign * du)
        ends.append(chart.read())
    moved = (ends[0] - ends[1]) / 2.0 / chart.size
    want = (result.a @ x + result.b @ du) / chart.size
    np.testing.assert_allclose(moved, want, atol=2e-5 * np.max(np.abs(want)))  # kinks of the drag


def test_a_chart_changes_nothing_at_zero():
    """Writing zeros leaves all that the next step uses: the same bits but for the pose's rounding."""
    plant = rtmms.load("manta", chains=11, links=3)
    command = gait()
    for k in range(300):
        plant.step(command(k * plant.dt))
    blob, chart = plant.snapshot(), plant.chart()
    plant.step(command(0.3))
    want = plant._state.copy()
    plant.restore(blob)
    chart.write(np.zeros(len(chart.names)))
    plant.step(command(0.3))
    np.testing.assert_allclose(plant._state, want, atol=1e-13)


def test_refusals():
    with pytest.raises(rtmms.ModelError, match=r"plant: expected one with a method chart\(\), got a Pendulum"):
        linearise(Pendulum())
    with pytest.raises(rtmms.ModelError, match="over_period: expected a plant with a gait, got a"):
        linearise(ChartedPendulum(), over_period=True)
    with pytest.raises(rtmms.ModelError, match=r"shape \(steps, 2\), got \(1, 3\)"):
        linearise(ChartedPendulum(), commands=np.zeros(3))
    with pytest.raises(rtmms.ModelError, match="over_period: expected a periodic gait, got none"):
        linearise(eel.load(gait="none"), over_period=True)
