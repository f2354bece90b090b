"""A device on a serial line that sets the pace of a plant in lockstep."""

from __future__ import annotations

import time

import pytest

from rtmms.bridging.channels import ChannelMapping
from rtmms_bridges.lines.packing import Packed
from rtmms_bridges.serial import Serial
from tests.bridges.harness import wait
from tests.bridges.swimmer import Sailing
from tests.bridges.test_serial import Device, device, serial
from tests.wire.bench import PATIENCE_S

pytestmark = pytest.mark.full

__all__ = ["device"]

FIELDS = ("seq:u16", "step:u32", "velocity[0]:f32", "time:f64")
THRUST = ChannelMapping(channel="1", actuator="thrust")


def paced(device: Device) -> Serial:
    fields = tuple(Packed.from_word(word, "") for word in FIELDS)
    return serial(device, state_fields=fields, channels=(THRUST,), paced=True)


def test_in_lockstep_a_step_for_each_command(device: Device) -> None:
    with Sailing(paced(device)) as sailing:
        device.send(b"\0")
        assert {state[1] for state in wait(device.receive)} == {0}  # one that is not answered soon comes again
        for step in range(1, 30):
            device.send(device.frame(0.01 * step))
            result = wait(lambda step=step: [state for state in device.receive() if state[1] >= step])
            assert result[-1][1] == step
            assert result[-1][2] == pytest.approx(0.01 * step)
        assert len(sailing.plant.commands) == 29
        assert wait(device.receive)[-1][1] == 29  # one that is not answered comes again
        assert sailing.bridged.counts["sent_again"] >= 1
        device.send(b"\x03ab\0")
        device.send(device.frame(0.5))
        assert wait(lambda: [state for state in device.receive() if state[1] == 30])


def test_in_lockstep_an_unplugged_device_finds_the_plant_waiting(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmms_bridges.lines.pacing.HOLD_S", 0.1)
    with Sailing(paced(device)) as sailing:
        wait(device.receive)
        device.send(b"\0" + device.frame(0.5))
        wait(lambda: sailing.command[0] == pytest.approx(0.5))
        device.unplug()
        wait(lambda: sailing.loop.requests.paused)
        steps = len(sailing.plant.commands)
        assert steps <= 3
        device.plug()
        device.send(b"\0")

        def answered() -> bool:
            for _ in device.receive():  # what was sent while it was away is lost, and comes again
                device.send(device.frame(0.25))
            goes_on = not sailing.loop.requests.paused  # until the device is late again, which a busy machine makes it
            return goes_on and bool(sailing.command[0] == pytest.approx(0.25))

        wait(answered)


@pytest.mark.parametrize("away_s", [0.0, 0.4])
def test_each_step_gets_the_answer_to_itself_also_after_the_device_was_gone(
    device: Device, monkeypatch: pytest.MonkeyPatch, away_s: float
) -> None:
    """It answers every frame once; gone for longer than the plant is kept waiting, which is paused then."""
    hold = "rtmms_bridges.lines.pacing.HOLD_S"
    monkeypatch.setattr(hold, PATIENCE_S)
    answers: dict[int, float] = {}
    with Sailing(paced(device)) as sailing:
        device.send(b"\0")
        for part in range(2):
            while len(sailing.plant.commands) < 40 * (part + 1):
                for state in device.receive():
                    answers[state[1]] = 0.001 * (state[1] + 1)
                    device.send(device.frame(answers[state[1]]))
                time.sleep(1e-3)
            if part == 0:
                monkeypatch.setattr(hold, 0.1)
                device.unplug()
                time.sleep(away_s)
                device.plug()
                monkeypatch.setattr(hold, PATIENCE_S)
        message = [thrust for thrust, _ in sailing.plant.commands]
    late = [k for k, thrust in enumerate(message) if thrust not in (0.0, pytest.approx(0.001 * (k + 1)))]
    assert late == []
    assert sum(thrust == 0.0 for thrust in message) <= 3, "those while it was gone"
