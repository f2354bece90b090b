"""The estimator beside a plant with sensors: what it publishes, over a socket of its own."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.sensing import Sensed
from rtmms.sensing.data_sheets import Imu
from rtmms_bridges.estimator import Estimator
from tests.bridges.by_hand import opened
from tests.bridges.harness import plant_info, state
from tests.sensing.mover import Mover
from tests.sensing.test_estimator import SENSORS, swim
from tests.wire.bench import PATIENCE_S

pytestmark = pytest.mark.full

FILE = """
profile = "typical"
[imu]
rate_hz = 200.0
[mag]
field_t = [2e-5, 0.0, -4e-5]
noise_t = 1e-7
[dvl]
position_m = [0.1, 0.05, -0.2]
[depth]
position_m = [0.3, 0.0, 0.1]
[gps]
surface_m = -1e6
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(PATIENCE_S)
        yield listener


def outputs(plant: Sensed) -> dict[str, Any]:
    """As the wire carries them to one that did not ask for the truth."""
    return {name: value.tolist() for name, value in plant.observe().items() if not name.startswith("truth.")}


def test_what_it_publishes(listener: socket.socket, tmp_path: Path) -> None:
    file = tmp_path / "sensors.toml"
    file.write_text(FILE)
    plant = Sensed(Mover(swim, dt=5e-3), SENSORS)
    plant.reset(3)
    true = plant.observe()
    heading = 2.0 * np.degrees(np.arctan2(true["truth.quaternion"][3], true["truth.quaternion"][0]))
    bridge = Estimator(
        to=(f"127.0.0.1:{listener.getsockname()[1]}",), sensors=str(file), publish_hz=10.0, heading_deg=float(heading),
        position=tuple(true["truth.position"].tolist()),
    )  # fmt: skip
    info = plant_info(*(c for c in plant.outputs if not c.name.startswith("truth.")))
    opened(bridge, info)
    assert any("--telemetry-hz 400" in line for line in bridge.io.messages)  # type: ignore[attr-defined]
    for step in range(1, 1001):
        plant.step(np.zeros(1))
        bridge.on_state(state(info, 5 * step, **outputs(plant)))
    sent = bridge.counts["sent"]
    assert 49 <= sent <= 51
    received = [json.loads(listener.recv(4096)) for _ in range(sent)]
    times = [item["time"] for item in received]
    assert times == sorted(times)
    assert np.diff(times) == pytest.approx(0.1, abs=6e-3)
    last, true = received[-1], plant.observe()
    assert last["estimate.position"] == pytest.approx(true["truth.position"], abs=0.5)
    assert last["estimate.quaternion"] == pytest.approx(true["truth.quaternion"], abs=0.05)
    assert last["estimate.velocity"] == pytest.approx(true["truth.velocity"], abs=0.2)
    assert len(last["estimate.deviation"]) == 9
    assert not last["estimate.lost"]
    bridge.on_state(state(info, 0, **outputs(plant)))  # the plant began anew, and so does the estimate
    assert json.loads(listener.recv(4096))["estimate.position"] == pytest.approx(
        received[0]["estimate.position"], abs=0.1
    )
    bridge.close("the end")


def test_a_plant_that_it_cannot_be_for() -> None:
    plant = Mover()
    with pytest.raises(rtmms.ModelError, match="expected an imu among the sensors"):
        opened(Estimator(), plant_info(*plant.outputs))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"claim": ("rod",)}, "claim: expected none, as this bridge"), ({"rate_hz": 5.0}, "publish_hz is the rate"),
        ({"to": ()}, "to: expected at least one"), ({"position": (1.0,)}, "position: expected 3 numbers, got 1"),
        ({"sensors": "ideal"}, "unknown sensors 'ideal'"),
    ],
)  # fmt: skip
def test_what_it_refuses(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.RtmmsError, match=text):
        Estimator(**arguments)


def test_nobody_listens() -> None:
    plant = Sensed(Mover(dt=5e-3), {"imu": Imu(rate_hz=100.0)})
    info = plant_info(*(c for c in plant.outputs if not c.name.startswith("truth.")))
    bridge = opened(Estimator(to=("127.0.0.1:1",)), info)
    for step in range(1, 40):
        plant.step(np.zeros(1))
        bridge.on_state(state(info, 5 * step, **outputs(plant)))
    assert bridge.counts["sent"] + bridge.counts["dropped"] > 10
    bridge.close("the end")
