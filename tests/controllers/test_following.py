"""Rods that do not follow: reported, and reported again when they do; rods that lag as their servos should are none."""

from __future__ import annotations

from math import pi, radians
from typing import Any

import numpy as np
import pytest

from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.following import RodMonitor
from rtmms_controllers.strokes import RODS

ENCODER = (Channel("encoder.angle", "rad", (4,)), Channel("encoder.time", "s"))
TRUTH = (Channel("rod_angle", "rad", (4,)),)
SERVO = {"servo_frequency_hz": 5.0, "servo_damping": 0.7, "rod_rate_limit_rad_s": 8.0,
         "rod_acceleration_limit_rad_s2": 200.0}  # fmt: skip


def servo(away: float, rate: float) -> float:
    """rad/s2, of 5 Hz and 0.7, at most 8 rad/s and 200 rad/s2."""
    omega, zeta = 10.0 * pi, 0.7
    wanted = max(-8.0, min(8.0, omega / (2.0 * zeta) * away))
    return max(-200.0, min(200.0, 2.0 * zeta * omega * (wanted - rate)))


class Rods:
    """The manta's servos, and a controller that asks for a stroke each 5 ms with one sample of delay."""

    def __init__(self, outputs: tuple[Channel, ...], parameters: dict[str, Any]) -> None:
        self.messages: list[str] = []
        self.following = RodMonitor("autopilot", self.messages.append)
        self.plant = PlantInfo("manta", 1e-3, "lockstep", None, None, (), outputs, parameters=parameters)
        self.following.start(self.plant)
        self.ideal = parameters.get("actuation") == "ideal"
        self.outputs, self.silent = {output.name for output in outputs}, False
        self.time, self.step = 0.0, 0
        self.angle, self.rate = np.zeros(4), np.zeros(4)
        self.sent: list[np.ndarray] = [np.zeros(4)] * 2
        self.stuck: dict[int, float] = {}
        self.last = np.zeros(4), 0.0

    def go(self, seconds: float, amplitude: float = radians(30.0), hz: float = 0.8) -> None:
        for _ in range(round(seconds / 5e-3)):
            if not self.silent:
                self.last = self.angle.copy(), self.time
            message = {"rod_angle": self.angle.copy(), "encoder.angle": self.last[0], "encoder.time": self.last[1]}
            observed = {name: value for name, value in message.items() if name in self.outputs}
            self.following.look(State({"step": self.step, "timestamp": self.time, "outputs": observed}, self.plant))
            asked = amplitude * np.sin(2.0 * pi * hz * self.time + np.array([0.0, -1.0, 0.0, -1.0]))
            self.following.sent(dict(zip(RODS, asked.tolist(), strict=True)))
            self.sent = [self.sent[1], asked]
            for _ in range(5):
                for k in range(4):
                    wanted = self.stuck.get(k, float(self.sent[0][k]))
                    self.rate[k] += 1e-3 * servo(wanted - self.angle[k], self.rate[k])
                    self.angle[k] = wanted if self.ideal else self.angle[k] + 1e-3 * self.rate[k]
                self.time += 1e-3
                self.step += 1


@pytest.mark.parametrize(("outputs", "more"), [(ENCODER, {}), (TRUTH, {}), (TRUTH, {"actuation": "ideal"})])
def test_a_stuck_rod_is_reported_and_its_return(outputs: tuple[Channel, ...], more: dict[str, Any]) -> None:
    rods = Rods(outputs, SERVO | more)
    rods.go(3.0)
    rods.go(2.0, radians(45.0), 1.5)
    assert (rods.messages, rods.following.stuck) == ([], ())
    rods.stuck[0] = radians(10.0)
    rods.go(2.0)
    assert rods.following.stuck == ("left.front",)
    assert len(rods.messages) == 1
    assert "left.front does not follow its command" in rods.messages[0]
    assert 5.0 < float(rods.messages[0].split("t = ")[1].split()[0]) < 6.0
    rods.stuck.clear()
    rods.go(3.0)
    assert rods.following.stuck == ()
    assert len(rods.messages) == 2
    assert "left.front follows again after" in rods.messages[1]


def test_nothing_is_reported_of_what_is_not_known() -> None:
    silent = Rods(ENCODER, SERVO)
    silent.go(1.0)
    silent.silent = True
    silent.go(2.0)
    assert silent.messages == []
    for rods in (Rods((), SERVO), Rods(TRUTH, {})):
        rods.stuck[1] = 0.0
        rods.go(2.0)
        assert rods.messages == []


def test_a_reset_begins_anew() -> None:
    rods = Rods(TRUTH, SERVO)
    rods.stuck[2] = 0.3
    rods.go(2.0)
    assert rods.following.stuck == ("right.front",)
    rods.time, rods.step, rods.stuck = 0.0, 0, {}
    rods.angle[:] = rods.rate[:] = 0.0
    rods.sent = [np.zeros(4)] * 2
    rods.go(1.0)
    assert rods.following.stuck == ()
    assert len(rods.messages) == 1
