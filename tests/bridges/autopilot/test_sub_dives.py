"""The ArduPilot bridge between `bluerov2` and an imitation of ArduSub's frame vectored-6dof, on a clock of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import atan2, degrees, radians
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.description import describe_plant
from rtmms_bridges.ardupilot import ArduPilot
from tests.bridges.autopilot.imitated_sub import MOTORS, ImitatedSub
from tests.bridges.autopilot.rehearsal import Rehearsal, Tank, rehearsals


@pytest.fixture
def rehearse(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Rehearsal, ImitatedSub]]]:
    def sub(run: Rehearsal) -> ImitatedSub:
        bridge = run.bridge
        assert isinstance(bridge, ArduPilot)
        imitated = ImitatedSub(bridge._socket.getsockname())
        imitated.attend = run.attend
        return imitated

    plant: Any = rtmms.load("bluerov2", dt=1e-3, start_depth_m=0.0)
    airframe = describe_plant(plant).airframe
    yield from rehearsals(monkeypatch, partial(ArduPilot, port=0), sub, plant=Tank(plant), airframe=airframe)


def observed(run: Rehearsal) -> tuple[float, float, float]:
    """Depth (m), heading (deg, to the right from the world's x), speed ahead (m/s)."""
    now = run.plant.observe()
    w, x, y, z = now["quaternion"]
    heading = degrees(atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return -now["position"][2], -heading, now["velocity"][0]


@pytest.mark.full  # half a minute each on a quiet machine
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
def test_it_holds_depth_and_heading_and_drives_ahead(rehearse: Any, mode: str) -> None:
    """Depth 2 m within 5 cm and heading 90 deg to the right within 2 deg, at rest and in 10 s of surge."""
    run, sub = rehearse(mode)
    run.start(sub)
    sub.heading = run.bridge.home.x_bearing + radians(90.0)  # it starts at the bearing of the world's x
    run.run(10.0, until=lambda: sub.armed)
    run.run(15.0)
    for forward, seconds in ((0.0, 3.0), (0.5, 10.0), (0.0, 5.0)):
        sub.forward = forward
        for _ in range(round(seconds / 0.5)):
            run.run(0.5)
            depth, heading, _ = observed(run)
            assert depth == pytest.approx(2.0, abs=0.05)
            assert heading == pytest.approx(90.0, abs=2.0)
        assert (observed(run)[2] > 0.4) == (forward > 0.0)
    assert run.plant.resets == 0


def test_each_pulse_moves_the_robot_as_the_frame_has_it() -> None:
    """Signs of the first motion by each motor alone: ArduSub's factors, in forward, right, down."""
    plant: Any = rtmms.load("bluerov2", dt=1e-3, thruster_s=0.0, horizontal_below_m=0.0)
    info = rtmms.PlantInfo("bluerov2", 1e-3, "lockstep", None, None, plant.actuators, plant.outputs,
                           airframe=describe_plant(plant).airframe)  # fmt: skip
    built = ArduPilot()._channel_map(info)
    assert [entry.channel for entry in built.entries] == [str(k) for k in range(1, 9)]
    names = [channel.name for channel in plant.actuators]
    for k, (roll, pitch, yaw, up, forward, right) in enumerate(MOTORS):
        for pulse, sense in ((1700.0, 1.0), (1300.0, -1.0)):
            pulses = {str(i): 1500.0 for i in range(1, 9)} | {str(k + 1): pulse}
            values = built.to_actuators(pulses)
            command = np.array([values[name] for name in names])
            assert np.count_nonzero(command) == 1
            plant.reset()
            plant.step(command)
            now = plant.observe()
            (u, v, w), (p, q, r) = now["velocity"], now["angular_velocity"]
            motion = np.array([p, -q, -r, w, u, -v])
            signs = np.sign(np.where(np.abs(motion) > 1e-6, motion, 0.0)).tolist()
            # the factor of pitch is positive for the nose up, as the gyroscope's in forward, right, down
            assert signs == [sense * item for item in (roll, pitch, yaw, up, forward, right)], f"motor {k + 1}"


def test_full_pulses_are_full_commands() -> None:
    plant: Any = rtmms.load("bluerov2", dt=1e-3)
    info = rtmms.PlantInfo("bluerov2", 1e-3, "lockstep", None, None, plant.actuators, plant.outputs,
                           airframe=describe_plant(plant).airframe)  # fmt: skip
    built = ArduPilot()._channel_map(info)
    for pulse, value in ((1100.0, -1.0), (1500.0, 0.0), (1900.0, 1.0)):
        values = built.to_actuators({str(i): pulse for i in range(1, 9)})
        assert values == pytest.approx(dict.fromkeys(values, value))
