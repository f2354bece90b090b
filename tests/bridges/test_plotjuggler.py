"""Telemetry as PlotJuggler's ZeroMQ subscriber reads it: a subscriber that applies its rules to a real run."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq

from rtmms.wire.addresses import TELEMETRY
from tests.cli.shell import finish, start
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S

pytestmark = pytest.mark.full


class PlotJuggler:
    """ "ZMQ Subscriber" with the msgpack parser and 'use field as timestamp': series by name, as (time, value).

    One frame is the payload, two are topic and payload; a third would be taken for part of the payload. Maps become
    topic/a/b, lists a[0], booleans 0 and 1; bin, ext and nil are passed over; a list at the top is a batch.
    """

    def __init__(self, endpoint: str = TELEMETRY, time_field: str = "timestamp") -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.socket.connect(endpoint)
        self.time_field = time_field
        self.series: dict[str, list[tuple[float, float]]] = {}
        self.texts: dict[str, list[tuple[float, str]]] = {}

    def read(self, messages: int) -> None:
        for _ in range(messages):
            assert self.socket.poll(int(6e3 * PATIENCE_S)), "no telemetry"
            frames = self.socket.recv_multipart()
            assert 1 <= len(frames) <= 2, "a third frame would spoil the payload"
            topic = frames[0].decode() if len(frames) == 2 else ""
            message = msgpack.unpackb(frames[-1])
            for item in message if isinstance(message, list) else [message]:
                time = item[self.time_field]  # one message without it turns it off for the topic
                assert isinstance(time, float)
                self._put(topic, item, time)

    def _put(self, name: str, value: Any, time: float) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                self._put(f"{name}/{key}" if name else key, inner, time)
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                self._put(f"{name}[{i}]", inner, time)
        elif isinstance(value, bool | int | float):
            self.series.setdefault(name, []).append((time, float(value)))
        elif isinstance(value, str):
            self.texts.setdefault(name, []).append((time, value))
        else:
            raise AssertionError(f"{name} would not be drawn: {type(value).__name__}")

    def close(self) -> None:
        self.context.destroy(linger=0)


def observed(tmp_path: Path, robot: str, *text: str, messages: int = 30) -> PlotJuggler:
    """What it has of a served robot."""
    port = reserve_ports()
    ends = [word for end in ("exchange", "step") for word in (f"--{end}", "tcp://127.0.0.1:*")]
    process = start(tmp_path, "serve", robot, *ends, "--telemetry", f"tcp://127.0.0.1:{port}", "--quiet", *text)
    reader = PlotJuggler(f"tcp://127.0.0.1:{port}")
    try:
        reader.read(messages)
    finally:
        reader.close()
        process.send_signal(signal.SIGINT)
        assert finish(process).status == 0
    return reader


def held(reader: PlotJuggler, topic: str) -> None:
    """What holds for every robot."""
    assert all(name.startswith(topic + "/") for name in reader.series)
    times = [time for time, _ in reader.series[f"{topic}/step"]]
    assert times == sorted(set(times))
    assert len({len(points) for points in reader.series.values()}) == 1, "every series has every message"
    assert all(math.isfinite(value) for points in reader.series.values() for _, value in points)


def test_a_pendulum(tmp_path: Path) -> None:
    reader = observed(tmp_path, "pendulum", "--dt", "0.01")
    held(reader, "pendulum")
    outputs = {name for name in reader.series if "/outputs/" in name}
    assert {"pendulum/outputs/angle", "pendulum/outputs/velocity[0]", "pendulum/outputs/shape[7]"} <= outputs
    assert set(reader.series["pendulum/applied/clamped"][0][1:]) <= {0.0, 1.0}
    assert set(reader.texts) == {"pendulum/type", "pendulum/applied/policy"}
    steps = [value for _, value in reader.series["pendulum/step"]]
    assert [round(value * 0.01, 9) for value in steps] == [
        pytest.approx(time) for time, _ in reader.series["pendulum/step"]
    ]


def test_the_manta(tmp_path: Path) -> None:
    reader = observed(tmp_path, "manta")
    held(reader, "manta")
    for name in ("position[2]", "quaternion[3]", "thrust[11]", "rod_angle[0]", "joint_position[179]", "kinetic_energy"):
        assert f"manta/outputs/{name}" in reader.series
