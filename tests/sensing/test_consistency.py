"""The estimator beside a run: with errors of the kinds that it knows of, it knows how wrong it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmms.errors import ModelError
from rtmms.sensing import Sensed
from rtmms.sensing.consistency import Consistency
from rtmms.sensing.parts import Depth
from tests.sensing.test_estimator import SENSORS, begun


def test_what_it_reports() -> None:
    plant, _ = begun(7, SENSORS)
    assert isinstance(plant, Sensed)
    beside = Consistency(plant.sensors, plant.dt)
    beside.start(plant.observe())
    nothing: Any = None
    for step in range(4000):
        plant.step(np.zeros(1))
        if step >= beside.due:
            beside.after_step(step, (step + 1) * plant.dt, plant.observe(), np.zeros(1), nothing)
    found = beside.report()
    assert found["position_m"]["rms"] < 0.3
    assert found["attitude_deg"]["rms"] < 3.0
    assert all(0.05 < one["nees"] < 30.0 for one in found.values())


def test_without_an_imu_there_is_none() -> None:
    with pytest.raises(ModelError, match="--estimate: expected an imu"):
        Consistency({"depth": Depth()}, 1e-3)
