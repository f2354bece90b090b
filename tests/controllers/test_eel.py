"""The eel's controllers against its plants, step by step as lockstep would have it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.robots import eel
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.computed_torque import ComputedTorque
from rtmms_controllers.eel_wave import EelWave


def info_of(plant: Any) -> PlantInfo:
    return PlantInfo(
        robot="eel", dt=plant.dt, mode="lockstep", period_s=None, deadline_s=None, actuators=plant.actuators,
        outputs=plant.outputs, parameters=asdict(plant.parameters),
    )  # fmt: skip


def drive(controller: Any, plant: Any, steps: int) -> None:
    info = info_of(plant)
    controller.start(info)
    at = {channel.name: k for k, channel in enumerate(plant.actuators)}
    command = plant.neutral.copy()
    for k in range(steps):
        outputs = {name: value.ravel().tolist() for name, value in plant.observe().items()}
        message = {"step": k, "timestamp": k * plant.dt, "outputs": outputs}
        for name, value in controller.update(State(message, info)).items():
            command[at[name]] = value
        plant.step(command)


def test_the_wave_is_the_papers_gait_and_swims() -> None:
    current, wave = (
        eel.load(preset="paper", dt=2e-3),
        eel.load(preset="paper", gait="none", dt=2e-3, bandwidth_rad_s=100.0),
    )
    drive(EelWave(), wave, 3000)
    for _ in range(3000):
        current.step(current.neutral)
    np.testing.assert_allclose(wave.vector[7:43], current.vector[7:43], atol=1.5e-2)
    np.testing.assert_allclose(wave.vector[:3], current.vector[:3], atol=5e-3)
    assert current.vector[0] > 0.15


def test_offsets_turn_and_climb() -> None:
    ends = {}
    for name, more in (("yaw", {"yaw_offset_deg": 2.0}), ("pitch", {"pitch_offset_deg": 2.0}), ("none", {})):
        plant = eel.load(gait="none", dt=4e-3, start_depth_m=0.0)
        drive(EelWave(**more), plant, 2000)
        ends[name] = plant.vector[:3].copy()
    assert abs(ends["yaw"][1] - ends["none"][1]) > 0.1
    assert abs(ends["pitch"][2]) > 0.1
    assert abs(ends["none"][2]) < 1e-9


def test_the_waves_speed_decides_the_period() -> None:
    controller = EelWave(speed_m_s=1.8, period_s=7.0)
    assert controller._omega == pytest.approx(2.0 * np.pi / 1.0)


def test_computed_torque_follows_the_gait() -> None:
    """The torque-driven eel, held by its inverse model alone, follows the gait and swims like the motion-driven one."""
    values = {"preset": "paper", "dt": 1e-3}
    plant = eel.load(drive="torque", gait="none", kp_n_m=0.0, kd_n_m_s=0.0, current_y_m_s=0.05, **values)
    lead = eel.load(current_y_m_s=0.05, **values)
    controller = ComputedTorque()
    drive(controller, plant, 4000)
    for _ in range(4000):
        lead.step(lead.neutral)
    assert controller.error < 1e-3
    np.testing.assert_allclose(plant.vector[7:43], lead.vector[7:43], atol=1e-3)
    np.testing.assert_allclose(plant.vector[:3], lead.vector[:3], atol=2e-3)


@pytest.mark.parametrize(
    ("make", "plant", "text"),
    [
        (lambda: EelWave(), {}, "own gait is on; run it with --set gait=none"),
        (lambda: EelWave(), {"gait": "none", "drive": "torque"}, "expected actuators 'yaw1.angle'"),
        (lambda: ComputedTorque(), {}, "run the eel with drive=torque"),
        (lambda: ComputedTorque(gait="up"), {}, "gait: unknown gait 'up'; known: loop, planar"),
        (lambda: ComputedTorque(pitch_offset_rad=0.1), {}, "pitch_offset_rad: gait=planar does not use it"),
        (lambda: EelWave(period_s=-1.0), {}, "period_s: expected a number"),
        (lambda: EelWave(yaw_offset_deg=90.0), {}, "yaw_offset_deg: expected a number from -45 to 45"),
    ],
)
def test_refused(make: Any, plant: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make().start(info_of(eel.load(**plant)))


def test_a_law_has_its_own_derivatives() -> None:
    law, h = eel.load(gait="loop").law, 1e-5
    for time in (0.5, 1.3, 4.0):
        before, now, after = (law.at(time + k * h) for k in (-1, 0, 1))
        np.testing.assert_allclose(now[1], (after[0] - before[0]) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(now[2], (after[1] - before[1]) / (2 * h), atol=1e-7)
