"""The estimate among a plant's outputs: with errors of the kinds that it knows of, it knows how wrong it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.sensing.data_sheets import Depth
from rtmms.sensing.readings import Consistency
from rtmms.sensing.sensed import Estimated
from rtmms.view.scene import Picture
from rtmms.wire.protocol.received_state import PlantInfo
from tests.sensing.mover import Mover
from tests.sensing.test_estimator import SENSORS, swim


def estimated(seed: int = 7) -> Estimated:
    plant = Estimated(Mover(swim, dt=5e-3), SENSORS)
    plant.reset(seed)
    return plant


def test_what_it_reports() -> None:
    plant = estimated()
    extra = Consistency(plant)
    extra.start(plant.observe())
    nothing: Any = None
    for step in range(4000):
        plant.step(np.zeros(1))
        if step >= extra.due:
            extra.after_step(step, (step + 1) * plant.dt, plant.observe(), np.zeros(1), nothing)
    result = extra.report()
    assert result["position_m"]["rms"] < 0.3
    assert result["attitude_deg"]["rms"] < 3.0
    assert all(0.05 < item["nees"] < 30.0 for item in result.values())


def test_it_is_among_the_outputs_and_viewers_draw_it() -> None:
    plant = estimated()
    for _ in range(400):
        plant.step(np.zeros(1))
    outputs = plant.observe()
    assert set(outputs) == {channel.name for channel in plant.outputs}
    for name, near in (("position", 0.3), ("quaternion", 0.05), ("velocity", 0.2)):
        assert outputs[f"estimate.{name}"] == pytest.approx(outputs[f"truth.{name}"], abs=near)
        assert (outputs[f"estimate.{name}"] != outputs[f"truth.{name}"]).any()
    info = PlantInfo("toy", plant.dt, "lockstep", None, None, plant.actuators, plant.outputs)
    drawn = Picture(info).draw(outputs)
    assert drawn.ghost is not None
    assert drawn.ghost[0] == pytest.approx(outputs["estimate.position"])
    assert drawn.pose[0] == pytest.approx(outputs["truth.position"])


def test_a_snapshot_holds_what_it_knows() -> None:
    item, other = estimated(), estimated(seed=8)
    for _ in range(333):
        item.step(np.zeros(1))
    blob = item.snapshot()
    other.restore(blob)
    assert other.snapshot() == blob
    for _ in range(200):
        item.step(np.zeros(1))
        other.step(np.zeros(1))
    assert other.snapshot() == item.snapshot()
    assert other.observe()["estimate.position"].tobytes() == item.observe()["estimate.position"].tobytes()
    other.reset(7)
    assert other.snapshot() == estimated().snapshot()
    for wrong in (b"", blob[:-8], blob[:40], blob[1:]):
        with pytest.raises(ModelError, match="restore"):
            other.restore(wrong)


def test_without_an_imu_there_is_none() -> None:
    with pytest.raises(ModelError, match="--estimate: expected an imu"):
        Estimated(Mover(), {"depth": Depth()})
