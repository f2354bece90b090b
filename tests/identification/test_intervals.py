"""How often the truth lies within an interval of 95 %: white noise, noise that wanders, a first state nobody knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmms.studies.fit_evidence import assess_fit, autocovariance, correlations
from rtmms.studies.fit_prediction import free_start
from rtmms.studies.fit_unknowns import asked_for
from rtmms.studies.fitting import Settings, fit
from tests.identification.swimming import build as manta
from tests.identification.swinging import TRUTH, build, recorded, swung, wandering


def off(at_rest: bool, stored: float, seeds: range) -> np.ndarray:
    """(seeds, parameters): errors in standard errors."""
    run, rows = swung(at_rest), []
    for seed in seeds:
        recording = recorded(run, at_rest=at_rest, saved=stored, seed=seed)
        solution = fit([recording], asked_for(list(TRUTH), [recording], build(), {}, {}),
                       Settings(others=0, hold_out=0.0))  # fmt: skip
        evidence = assess_fit(solution)
        rows.append([(solution.values[n] - TRUTH[n]) / e for n, e in zip(TRUTH, evidence.error, strict=True)])
    return np.array(rows)


@pytest.mark.parametrize(("at_rest", "saved"), [(True, 0.0), (False, 0.0), (True, 0.9)])
def test_errors_are_of_the_size_that_is_stated(at_rest: bool, saved: float) -> None:
    """Four draws of two parameters: a sum of squares beyond 26 has a chance of one in a thousand."""
    assert np.sum(off(at_rest, saved, range(4)) ** 2) < 26.0


@pytest.mark.full
@pytest.mark.parametrize(("at_rest", "saved"), [(True, 0.0), (False, 0.0), (True, 0.9), (False, 0.9), (True, 0.5)])
def test_an_interval_of_95_percent_holds_95_percent(at_rest: bool, saved: float) -> None:
    """60 draws of two parameters: of 120 that hold with 95 % fewer than 106 do with a chance of one in two hundred."""
    inside = np.abs(off(at_rest, saved, range(60))) <= 1.96
    assert inside.sum() >= 104


def test_what_of_a_first_state_is_unknown() -> None:
    """Of a fixed base its joints, of a free one its pose; joints that a motion is imposed on are not."""
    import rtmms

    def movable(plant: Any) -> list[str]:
        state = free_start(plant)
        return [word for (word, *_), free in zip(state.names, state.movable, strict=True) if free]

    base = ["x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "wx", "wy", "wz"]
    assert movable(build()) == ["joint_position[0]", "joint_velocity[0]"]
    assert movable(manta()) == base
    assert movable(rtmms.load("torpedo")) == base


@pytest.mark.parametrize("saved", [0.0, 0.5, 0.9, -0.6])
def test_the_variance_of_a_mean_of_residuals_that_wander(saved: float) -> None:
    """Of an autoregressive process it is (1 + a) / (1 - a) times that of white noise."""
    result = []
    for seed in range(20):
        gamma = autocovariance(wandering(np.random.default_rng(seed), 1000, saved)[:, 0])
        result.append(2.0 * gamma.sum() - gamma[0])
    assert np.median(result) == pytest.approx((1.0 + saved) / (1.0 - saved), rel=0.2)


def test_correlations_of_a_process_of_second_order() -> None:
    """rho_1 = a1 / (1 - a2), rho_k = a1 rho_(k-1) + a2 rho_(k-2)."""
    rho = correlations(np.array([1.2, -0.5]), 5)
    assert rho[1] == pytest.approx(1.2 / 1.5)
    assert rho[2:] == pytest.approx(1.2 * rho[1:-1] - 0.5 * rho[:-2])
