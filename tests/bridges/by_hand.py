"""A bridge that a test calls by hand, without a loop or a plant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import rtmms
from rtmms.bridging.counters import Counters
from rtmms.bridging.runner import watch_of
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.wire.protocol.welcome import plain_parameters
from tests.bridges.harness import plant_info


class Desk:
    """What the loop offers a bridge, noted down."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.commands: list[dict[str, float]] = []

    def watch(self, *_: Any) -> None: ...

    def unwatch(self, *_: Any) -> None: ...

    def command(self, values: Mapping[str, float]) -> None:
        self.commands.append(dict(values))

    def post(self, op: str, **args: Any) -> None: ...

    def ask(self, op: str, done: Any, **args: Any) -> None: ...

    def log(self, text: str) -> None:
        self.messages.append(text)


B = TypeVar("B", bound=rtmms.Bridge)


def opened(bridge: B, info: PlantInfo) -> B:
    """The bridge, open for that plant; its `io` is a Desk."""
    if not info.selected:
        info = replace(info, selected=tuple(channel.name for channel in info.outputs))
    bridge.io, bridge.plant, bridge.counts, bridge.peer_watch = (
        Desk(),
        info,
        Counters(),
        watch_of(bridge),
    )
    try:
        bridge.open(info)
    except Exception:
        bridge.close("a fault in open")  # as the loop does
        raise
    return bridge


def swum(chains: int = 6, steps: int = 500, granted: tuple[str, ...] = ()) -> tuple[PlantInfo, dict[str, Any]]:
    """A manta as its welcome describes it, and its outputs, as the wire carries them, after some swimming."""
    plant: Any = rtmms.load("manta", chains=chains)
    for k in range(steps):
        ramp = min(1.0, k / 100)
        plant.step([0.5 * ramp, 0.4 * ramp, 0.5 * ramp, 0.3 * ramp])
    names = tuple(channel.name for channel in plant.outputs)
    info = plant_info(*plant.outputs, actuators=plant.actuators, robot="manta")
    info = replace(info, parameters=plain_parameters(plant), selected=names, granted=granted)
    return info, {
        name: value.ravel().tolist() if value.shape else float(value) for name, value in plant.observe().items()
    }
