"""rtmms bench episodes: commands stay within the limits and are held; what fails is counted, with its reason."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rtmms.errors import DivergedError
from rtmms.plant import Channel
from rtmms_benchmarks import episodes


class Fragile:
    """Moves by its first command; where that is above 0.9 it diverges."""

    dt = 0.1
    actuators = (Channel("a", lower=-1.0, upper=1.0), Channel("b"))
    outputs = (Channel("position", "m", (3,)), Channel("velocity", "m/s", (3,)))

    def __init__(self) -> None:
        self.at = np.zeros(3)

    def step(self, command: Any) -> None:
        if command[0] > 0.9:
            raise DivergedError(0.0, "position", {})
        self.at[0] += self.dt * command[0]

    def observe(self) -> dict[str, Any]:
        return {"position": self.at.copy(), "velocity": np.array([3.0, 4.0, 0.0])}

    def snapshot(self) -> bytes:
        return self.at.tobytes()

    def restore(self, blob: bytes) -> None:
        self.at = np.frombuffer(blob).copy()


def test_commands_are_held_within_the_limits() -> None:
    told = episodes.commands(Fragile(), 3, 1.0, 0.2)
    assert told.shape == (10, 2)
    np.testing.assert_array_equal(told[::2], told[1::2])
    assert len(np.unique(told[:, 0])) == 5
    assert np.abs(told).max() <= 1.0


def test_failures_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(episodes.rtmms, "load", lambda robot: Fragile())
    monkeypatch.setattr(episodes, "robots", lambda: ["fragile", "other"])
    assert episodes.main(True, only="frag", count=50, seconds=0.4) == 1
    (found,) = json.loads(capsys.readouterr().out)["robots"]
    drawn = [episodes.commands(Fragile(), seed, 0.4, 0.2)[:, 0].max() for seed in range(50)]
    assert found["episodes"] == 50
    assert set(found["failed"]) == {str(seed) for seed, most in enumerate(drawn) if most > 0.9}
    assert "position" in found["failed"][next(iter(found["failed"]))]
    assert found["fastest"] == 5.0
    assert 0.1 < found["farthest"] <= 0.36
    assert episodes.main(False, only="frag", count=1, seconds=0.4) == int(drawn[0] > 0.9)
    assert "1 episodes" in capsys.readouterr().out
