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
    beside = Consistency(plant)
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


def test_it_is_among_the_outputs_and_viewers_draw_it() -> None:
    plant = estimated()
    for _ in range(400):
        plant.step(np.zeros(1))
    seen = plant.observe()
    assert set(seen) == {channel.name for channel in plant.outputs}
    for name, near in (("position", 0.3), ("quaternion", 0.05), ("velocity", 0.2)):
        assert seen[f"estimate.{name}"] == pytest.approx(seen[f"truth.{name}"], abs=near)
        assert (seen[f"estimate.{name}"] != seen[f"truth.{name}"]).any()
    info = PlantInfo("toy", plant.dt, "lockstep", None, None, plant.actuators, plant.outputs)
    drawn = Picture(info).draw(seen)
    assert drawn.ghost is not None
    assert drawn.ghost[0] == pytest.approx(seen["estimate.position"])
    assert drawn.pose[0] == pytest.approx(seen["truth.position"])


def test_a_snapshot_holds_what_it_knows() -> None:
    one, other = estimated(), estimated(seed=8)
    for _ in range(333):
        one.step(np.zeros(1))
    blob = one.snapshot()
    other.restore(blob)
    assert other.snapshot() == blob
    for _ in range(200):
        one.step(np.zeros(1))
        other.step(np.zeros(1))
    assert other.snapshot() == one.snapshot()
    assert other.observe()["estimate.position"].tobytes() == one.observe()["estimate.position"].tobytes()
    other.reset(7)
    assert other.snapshot() == estimated().snapshot()
    for wrong in (b"", blob[:-8], blob[:40], blob[1:]):
        with pytest.raises(ModelError, match="restore"):
            other.restore(wrong)


def test_without_an_imu_there_is_none() -> None:
    with pytest.raises(ModelError, match="--estimate: expected an imu"):
        Estimated(Mover(), {"depth": Depth()})
