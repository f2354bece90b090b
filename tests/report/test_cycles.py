"""Periods, fundamentals and lags of signals whose answers are known; the figures' gait against the controllers'."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.robots.manta.plant import Flapping
from rtmms.view.cycles import at, fundamental, lags_deg, last_period, peak, up_crossings
from rtmms_controllers.rods import SoftStart, rod_angles


def test_the_last_period_of_a_sine() -> None:
    time = np.arange(0.0, 5.3, 0.01)
    period = last_period(time, 2.0 + np.sin(2.0 * np.pi * 0.7 * time - 1.0))
    assert period is not None
    assert period.seconds == pytest.approx(1.0 / 0.7, rel=2e-3)
    assert 5.3 - period.end < 1.0 / 0.7


@pytest.mark.parametrize("signal", [np.zeros(50), np.linspace(0.0, 1.0, 50)])
def test_no_period_in_what_does_not_repeat(signal: np.ndarray) -> None:
    assert last_period(np.arange(50) * 0.01, signal) is None
    assert last_period(np.empty(0), np.empty(0)) is None
    assert len(up_crossings(np.arange(2.0), np.arange(2.0))) == 0


def test_fundamental_and_lags_beside_harmonics() -> None:
    frequency, time = 0.51, np.linspace(0.0, 2.0 / 0.51, 400, endpoint=False)
    cycle = 2.0 * np.pi * frequency * time
    signal = np.stack([3.0 * np.sin(cycle + 0.4) + 0.5 * np.sin(3.0 * cycle) + 1.0, 2.0 * np.sin(cycle - 0.1)], axis=1)
    amplitude, phase = fundamental(time, signal, frequency)
    np.testing.assert_allclose(amplitude, [3.0, 2.0], rtol=1e-12)
    np.testing.assert_allclose(phase, [0.4, -0.1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(lags_deg(phase), [np.degrees(0.5)])


def test_lags_stay_within_half_a_turn() -> None:
    np.testing.assert_allclose(lags_deg(np.radians([-170.0, 170.0, -10.0])), [20.0, 180.0])


def test_a_value_between_samples() -> None:
    time, values = np.array([0.0, 1.0, 3.0]), np.array([[0.0], [2.0], [6.0]])
    assert at(time, values, 2.0) == pytest.approx(4.0)
    assert at(time, values, 3.0) == pytest.approx(6.0)


def test_the_figures_gait_is_the_controllers() -> None:
    """The report may not import the controllers, so it has the formula too: they must agree."""
    gait = Flapping(40.0, 30.0, 0.8, right_amplitude_deg=20.0, right_phase_deg=-10.0)
    time, ratio, start = np.linspace(0.0, 3.0, 31), 0.185 / 0.215, SoftStart(1.0)
    angles = gait.angles(time, ratio)
    for k, instant in enumerate(time):
        cycle, strength = 2.0 * np.pi * 0.8 * instant, start(instant)
        left = rod_angles(cycle, np.radians(40.0), np.radians(30.0), 0.0, ratio, strength)
        right = rod_angles(cycle, np.radians(20.0), np.radians(-10.0), 0.0, ratio, strength)
        np.testing.assert_allclose(angles[k], [*left, *right], rtol=0, atol=1e-14)


def test_a_peak_lies_between_samples() -> None:
    """Of the largest sample and its neighbours, also where it is the first or the last one."""
    angle = 2.0 * np.pi * np.arange(400) / 400
    for late in (0.1234, 0.0004, 0.9991):
        share, top = peak(3.0 * np.cos(angle - 2.0 * np.pi * late) + np.cos(2.0 * (angle - 2.0 * np.pi * late)))
        assert share == pytest.approx(late, abs=1e-5)
        assert top == pytest.approx(4.0, abs=1e-6)
