"""What a log says of its plant, for figures: channels, parameters and shape, without the plant."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rtmms.contract import TRUTH
from rtmms.plant import Channel, Plant, robots
from rtmms.record.origin import rebuilt

if TYPE_CHECKING:
    from rtmms.plant import Array
    from rtmms.record.log import Log

USUAL = ("position", "quaternion", "velocity", "power", "work")
"""What is sampled over a run whose log does not say which outputs its plant wanted sampled."""


class LoggedPlant:
    """The plant of a log as far as figures ask for it; it cannot be stepped.

    dt s; actuators, outputs, trace_outputs, recent_outputs, parameters, shape: as in rtmms.plant
    """

    def __init__(self, log: Log, prefix: str = "") -> None:
        """prefix   of the names of the outputs that belong to it, taken off"""
        origin = log.origin
        self.dt = float(origin["dt"])
        self.actuators = tuple(_channel(one) for one in origin["actuators"])
        told = [_channel(one, prefix) for one in origin["outputs"] if one["name"].startswith(prefix)]
        self.outputs: tuple[Channel, ...] = tuple(told)
        self.parameters: Mapping[str, Any] = origin.get("description") or {}
        self.shape: Mapping[str, Any] = origin.get("shape") or {}
        self.trace_outputs = self._named(origin.get("trace_outputs", [prefix + name for name in USUAL]), prefix)
        self.recent_outputs = self._named(origin.get("recent_outputs", []), prefix)
        report = {} if log.end is None else log.end.told.get("report") or {}
        self._summary = report.get("summary") or {}

    def _named(self, names: Any, prefix: str) -> tuple[str, ...]:
        known = {channel.name for channel in self.outputs}
        listed = names if isinstance(names, list) else []
        return tuple(name for one in listed if (name := str(one).removeprefix(prefix)) in known)

    def summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """As the run's own report has it."""
        return {str(k): v for k, v in self._summary.items() if v is None or isinstance(v, int | float)}

    def reset(self, seed: int = 0) -> None:
        raise self._refusal()

    def step(self, command: Array) -> None:
        raise self._refusal()

    def observe(self) -> dict[str, Array]:
        raise self._refusal()

    def snapshot(self) -> bytes:
        raise self._refusal()

    def restore(self, blob: bytes) -> None:
        raise self._refusal()

    @staticmethod
    def _refusal() -> TypeError:
        return TypeError("a log's plant has no state: `rtmms replay` makes one")


class LoggedSensed(LoggedPlant):
    """The same seen through sensors: `truth` is the plant itself (rtmms.plant.PlantDescription)."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.truth: Plant = LoggedPlant(log, TRUTH)
        self.sensors: Mapping[str, Any] = MappingProxyType(log.origin["sensors"])


def plant_of(log: Log) -> Plant:
    """What figures draw a log by: one of rtmms's own robots, built from its parameters, else what the log says.

    Nothing that the log names is imported or run.
    """
    point = robots().get(log.origin["robot"])
    ours = point is not None and point.dist is not None and point.dist.name == "rtmms"
    if ours and not str(log.origin["preset"]).endswith(".toml"):
        return rebuilt(log.origin)
    return LoggedSensed(log) if log.origin.get("sensors") else LoggedPlant(log)


def _channel(told: Mapping[str, Any], prefix: str = "") -> Channel:
    return Channel(
        str(told["name"]).removeprefix(prefix), told.get("unit", ""), tuple(told.get("shape", ())),
        str(told.get("frame", "")),
    )  # fmt: skip
