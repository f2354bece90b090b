"""Whether the estimate knows how wrong it is, whatever the plant's step: NEES of the velocity, 3 where it does.

Each robot with `typical` sensors and an imu among them is in the list by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.loading import robots
from rtmms.sensing import Sensed, read_profile
from rtmms.sensing.data_sheets import Depth, Imu
from tests.sensing import replayed
from tests.sensing.mover import Mover
from tests.sensing.test_estimator import swim

QUICK = ("manta", "torpedo")
STEPS_S = (1e-3, 10e-3)
EACH_S = (2e-3, 10e-3)
"""Steps of the test of each robot: that of 1 ms takes two thirds of the time, and two robots have it above."""
OTHER_STEPS_S = {"tendon_fish": (1e-3, 2e-3)}
"""Its strips and cables run away in steps of 5 ms."""
SEEDS = 40
"""Number of runs in the longer step."""
SHORTER_SEEDS = 12
"""Number of them that are run again in the shorter step, which takes five times as long."""
MIN_NEES = 2.4
MAX_NEES = 3.7
"""Bounds of the mean of 40 runs. Runs scatter by 1.4 about 3, so a mean of 12 has no such bounds."""
WITHOUT = {
    "moth": "it tumbles without a controller, beyond what its imu measures", "modal_moth": "as the moth",
    "purcell": "without inertia it has no velocity", "cat": "it falls, and has no outputs of a base's motion",
}  # fmt: skip
"""Robots that are left out, and why."""


def nees(robot: str, dt: float, seeds: int, seconds: float, folder: Path) -> tuple[np.ndarray, float]:
    """NEES of the velocity of each run, (seeds,), and rms of the velocity's error over all runs, m/s."""
    plant = rtmms.load(robot, dt=dt)
    drive = replayed.DRIVES.get(robot, replayed.neutral)
    path = folder / "truth.npy"
    np.save(path, truth(robot, plant, seconds, drive))
    sensors = {
        name: item for name, item in read_profile("typical", plant).items() if isinstance(item, replayed._SAMPLED)
    }  # fmt: skip
    gravity = float(getattr(plant.parameters, "gravity_m_s2", 0.0))  # type: ignore[attr-defined]
    known = replayed.Known(dt, gravity, sensors, str(path))
    result = np.array([replayed.judged(known, seed, (seconds,), 0.25)[0] for seed in range(seeds)])
    k = replayed.PARTS.index("velocity_m_s")
    return result[:, 1, k], float(np.sqrt(result[:, 0, k].mean()))


def truth(robot: str, plant: Any, seconds: float, drive: Any) -> Any:
    plant.reset()
    command, rows = drive(plant), []
    for k in range(round(seconds / plant.dt) + 1):
        outputs = plant.observe()
        rows.append(np.concatenate([outputs[name] for name, _, _ in replayed._MOTION]))
        plant.step(np.asarray(command(k, outputs), dtype=float))
    return np.array(rows)


@pytest.mark.parametrize("robot", QUICK)
def test_the_estimate_is_as_sure_at_10_ms_as_at_1_ms(robot: str, tmp_path: Path) -> None:
    fine, coarse = (nees(robot, dt, 10, 16.0, tmp_path) for dt in (STEPS_S[0], STEPS_S[-1]))
    assert 2.2 < fine[0].mean() < 3.8
    assert coarse[0].mean() == pytest.approx(fine[0].mean(), rel=0.2)
    assert coarse[1] == pytest.approx(fine[1], rel=0.1)


@pytest.mark.full
@pytest.mark.parametrize("robot", [name for name in sorted(robots()) if name not in WITHOUT])
def test_nees_over_the_step_of_each_robot(robot: str, tmp_path: Path) -> None:
    plant = rtmms.load(robot)
    expected = {channel.name for channel in plant.outputs}
    if not {name for name, _, _ in replayed._MOTION} <= expected or "imu" not in read_profile("typical", plant):
        pytest.skip("it has no imu")
    shorter_s, longer_s = OTHER_STEPS_S.get(robot, EACH_S)
    longer, _ = nees(robot, longer_s, SEEDS, 20.0, tmp_path)
    assert MIN_NEES < longer.mean() < MAX_NEES
    shorter, _ = nees(robot, shorter_s, SHORTER_SEEDS, 20.0, tmp_path)
    assert shorter.mean() == pytest.approx(longer[:SHORTER_SEEDS].mean(), rel=0.1)


def test_sensors_that_look_at_a_recording_report_what_they_report_in_the_run() -> None:
    sensors = {"imu": Imu(rate_hz=100.0, gyro_noise_rad_s_rt_hz=1e-3), "depth": Depth(rate_hz=50.0, noise_m=0.01)}
    run = Sensed(Mover(swim, dt=5e-3), sensors)
    run.reset(4)
    rows = [np.concatenate([run.observe()[f"truth.{name}"] for name, _, _ in replayed._MOTION])]
    for _ in range(100):
        run.step(np.zeros(1))
        rows.append(np.concatenate([run.observe()[f"truth.{name}"] for name, _, _ in replayed._MOTION]))
    again = Sensed(Mover(swim, dt=5e-3), sensors)
    again.reset(4)
    table, at, suite = np.array(rows), 0, again.suite
    while at < 100:
        at = replayed._until_news(
            table, at, 5e-3, suite.timing, suite.block, 4, suite.places[2].start, again._motion,
            again.system.scratch, again._state,
        )  # fmt: skip
    assert again._state.tobytes() == run._state.tobytes()
