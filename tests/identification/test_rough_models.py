"""Models whose outputs jump near the result: the fit reports values, advice, and no standard errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.protocol import Channel

STEPS = 200
NOISE_M = 1e-2
RATE_M_S = 0.5


class Slider:
    """x' = command rate, and a part that changes sign at each 1e-6 m/s of the rate, as of an unstable step."""

    dt = 0.01
    actuators = (Channel("push", "1", lower=-2.0, upper=2.0, neutral=1.0),)
    outputs = (Channel("x", "m"),)

    def __init__(self, rate: float = 0.48, jump_m: float = 0.0) -> None:
        self.rate, self.jump_m = float(rate), float(jump_m)
        self.parameters = {"rate": self.rate}
        self.reset()

    def reset(self, seed: int = 0) -> None:
        self.state = np.zeros(2)

    def step(self, command: np.ndarray) -> None:
        self.state += self.dt * np.array([self.rate * command[0], 1.0])

    def observe(self) -> dict[str, np.ndarray]:
        jump = self.jump_m * math.copysign(1.0, math.sin(1e6 * self.rate + 40.0 * self.state[1]))
        return {"x": np.array(self.state[0] + jump)}

    def snapshot(self) -> bytes:
        return self.state.tobytes()

    def restore(self, blob: bytes) -> None:
        self.state = np.frombuffer(blob).copy()


def fitted(jump_m: float) -> Any:
    time = Slider.dt * np.arange(STEPS + 1)
    push = 1.0 + 0.5 * np.sin(3.0 * time)
    x = RATE_M_S * Slider.dt * np.concatenate([[0.0], np.cumsum(push[:-1])])
    x += NOISE_M * np.random.default_rng(3).normal(size=STEPS + 1)
    columns = {"time": time, "command.push": push, "x": x}
    return rtmms.identify(
        lambda **values: Slider(**values, jump_m=jump_m), columns, ["rate"], at_rest=True, hold_out=0.0, starts=1
    )


def test_a_smooth_model_has_standard_errors_and_no_advice() -> None:
    result = fitted(0.0)
    assert abs(result.values["rate"] - RATE_M_S) < 3.0 * result.standard_errors["rate"] < 0.01
    assert result.report["advice"] == []


@pytest.mark.parametrize("jump_m", [0.005, 0.02])
def test_a_model_that_jumps_has_no_standard_errors_and_advice(jump_m: float) -> None:
    result = fitted(jump_m)
    assert result.values["rate"] == pytest.approx(RATE_M_S, abs=0.05)
    assert math.isnan(result.standard_errors["rate"])
    assert np.isnan(result.covariance).all()
    assert result.report["parameters"]["rate"]["standard_error"] is None
    advice = result.report["advice"][0]
    assert advice.startswith("rate: near 0.")
    assert "no standard errors; give a shorter --dt" in advice


def test_a_jump_far_below_the_noise_has_no_effect() -> None:
    result = fitted(1e-7)
    assert 0.0 < result.standard_errors["rate"] < 0.003
    assert result.report["advice"] == []
