"""Each method has the order it declares, with each coupling, in water that is uniform or varies in space or time."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from rtmms.robots.manta import Manta, load
from rtmms.robots.manta.layout import POSITION, TWIST

SOFT = {"chains": 4, "joint_damping_n_m_s": 2e-4, "damping_per": "joint"}
"""Light damping, so that steps with a visible error are stable for the explicit method too."""
COMMAND = np.array([0.3, 0.3, 0.2, 0.25])
SECONDS = 0.0128


def swirl(x: float, y: float, z: float, t: float) -> tuple[float, float, float]:
    return 0.6 * math.sin(3.0 * y + 2.0 * z), 0.4 * math.cos(4.0 * x + z), 0.5 * math.sin(5.0 * y + 2.0 * x)


def pulse(x: float, y: float, z: float, t: float) -> tuple[float, float, float]:
    return 0.5 * math.sin(300.0 * t), 0.3 * math.cos(250.0 * t), 0.6 * math.sin(200.0 * t + 0.4)


FLOWS: dict[str, dict[str, Any]] = {
    "uniform": {"current_m_s": (0.3, -0.2, 0.1)},
    "space": {"current_field": swirl},
    "time": {"current_field": pulse},
}


def start() -> np.ndarray:
    """A state with everything moving, the servos under one command from here on."""
    plant = load(dt=1e-4, coupling="monolithic", integrator="rk4", **SOFT)
    for _ in range(100):
        plant.step(COMMAND)
    return plant._state.copy()


def end(common: np.ndarray, dt: float, **values: Any) -> np.ndarray:
    """Pose and twist of the body, and all joints, SECONDS after the common state."""
    plant: Manta = load(dt=dt, **SOFT, **values)
    plant._state[:] = common
    plant._state[:2] = 0.0  # the clock starts here, whatever dt
    for _ in range(round(SECONDS / dt)):
        plant.step(COMMAND)
    body = plant._state[POSITION : TWIST + 6]
    return np.concatenate([body, plant.system.joints.ravel()])


def distance(item: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(item - other).max())


def orders(steps: list[float], errors: list[float]) -> list[float]:
    return [math.log(a / b) / math.log(s / t) for a, b, s, t in zip(errors, errors[1:], steps, steps[1:], strict=False)]


@pytest.fixture(scope="module")
def common() -> np.ndarray:
    return start()


@functools.cache
def exact(flow: str) -> np.ndarray:
    return end(start(), 1e-5, integrator="rk4", coupling="monolithic", **FLOWS[flow])


@pytest.mark.full
@pytest.mark.parametrize("flow", list(FLOWS))
@pytest.mark.parametrize("coupling", ["iterated", "monolithic"])
@pytest.mark.parametrize(("integrator", "order", "steps"), [
    ("rk4", 4, [3.2e-4, 1.6e-4, 8e-5]), ("implicit", 2, [1.6e-4, 8e-5, 4e-5]),
])  # fmt: skip
def test_order(common: np.ndarray, integrator: str, order: int, steps: list[float], coupling: str, flow: str) -> None:
    """Against RK4 with small steps."""
    errors = [
        distance(end(common, dt, integrator=integrator, coupling=coupling, **FLOWS[flow]), exact(flow)) for dt in steps
    ]
    assert orders(steps, errors) == pytest.approx([order, order], abs=0.3)


@pytest.mark.full
@pytest.mark.parametrize("flow", list(FLOWS))
@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_the_sequential_couplings_lag_is_of_first_order(common: np.ndarray, integrator: str, flow: str) -> None:
    """Against the monolithic coupling at the same step."""
    steps = [1.6e-4, 8e-5, 4e-5]
    lags = [
        distance(
            *(end(common, dt, integrator=integrator, coupling=c, **FLOWS[flow]) for c in ("sequential", "monolithic"))
        )
        for dt in steps
    ]
    assert orders(steps, lags) == pytest.approx([1.0, 1.0], abs=0.15)


def test_the_iterated_coupling_converges_in_a_current() -> None:
    plant = load(dt=1.6e-4, coupling="iterated", current_m_s=(0.3, -0.2, 0.1), **SOFT)
    for _ in range(20):
        plant.step(COMMAND)
    assert float(plant.observe()["interface_passes"]) < 100
