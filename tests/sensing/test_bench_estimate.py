"""The benchmark of the estimate: its command, what it refuses, and that the replayed sensors are a run's own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rtmms.errors import ModelError, UnknownNameError
from rtmms.sensing import Sensed
from rtmms.sensing.data_sheets import Depth, Imu
from rtmms_benchmarks import estimate
from tests.sensing.mover import Mover
from tests.sensing.test_estimator import swim


def test_sensors_that_look_at_a_recording_tell_what_they_tell_in_the_run() -> None:
    sensors = {"imu": Imu(rate_hz=100.0, gyro_noise_rad_s_rt_hz=1e-3), "depth": Depth(rate_hz=50.0, noise_m=0.01)}
    run = Sensed(Mover(swim, dt=5e-3), sensors)
    run.reset(4)
    rows = [np.concatenate([run.observe()[f"truth.{name}"] for name, _, _ in estimate._MOTION])]
    for _ in range(100):
        run.step(np.zeros(1))
        rows.append(np.concatenate([run.observe()[f"truth.{name}"] for name, _, _ in estimate._MOTION]))
    again = Sensed(Mover(swim, dt=5e-3), sensors)
    again.reset(4)
    table, at, suite = np.array(rows), 0, again.suite
    while at < 100:
        at = estimate._until_news(
            table, at, 5e-3, suite.timing, suite.block, 4, suite.places[2].start, again._motion,
            again._system.scratch, again._state,
        )  # fmt: skip
    assert again._state.tobytes() == run._state.tobytes()


@pytest.mark.parametrize(
    ("words", "fault", "text"),
    [
        ({"robots": "torpdo"}, UnknownNameError, "did you mean torpedo"),
        ({"until": "soon"}, ModelError, "--until: expected seconds, as 20,60, got 'soon'"),
        ({"until": "1"}, ModelError, "--until: expected at least 4, got 1"),
        ({"seeds": 0}, ModelError, "--seeds: expected at least 1, got 0"),
    ],
)
def test_what_it_refuses(words: dict[str, str | int], fault: type[Exception], text: str) -> None:
    with pytest.raises(fault) as told:
        estimate.main(**words)  # type: ignore[arg-type]
    assert text in str(told.value)


@pytest.mark.full
def test_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate.main(as_json=True, robots="torpedo", seeds=1, until="5,10", workers=1) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)["torpedo"]
    assert list(found) == ["5", "10"]
    assert all(0.05 < part["nees"] < 30.0 for part in found["10"].values())
    assert "1 of 1 seeds" in said.err
