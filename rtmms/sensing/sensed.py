"""A plant seen through its sensors: what they tell, and the truth under names of its own."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rtmms.contract import TRUTH
from rtmms.errors import ModelError
from rtmms.plant import Channel, Coupled, Described, Drawn, Plant, Settable, Summarised, Surrounded, Tunable, Twinned
from rtmms.sensing.faults import FAULT, SENSOR_FAULTS, read_fault
from rtmms.sensing.layout import (
    M_BEFORE,
    M_GRAVITY,
    M_POSITION,
    M_QUATERNION,
    M_RATE,
    M_TIME,
    M_VELOCITY,
    T_FAULT,
)
from rtmms.sensing.parts import Sensor
from rtmms.sensing.suite import assemble
from rtmms.sensing.timing import look, start
from rtmms.spatial import Array

_MAGIC = b"rtmms-sensed-1\0"
_HEAD = struct.Struct("<15sQqQ")
_STANDARD_GRAVITY = 9.80665
_MOVING = (("position", M_POSITION, 3), ("quaternion", M_QUATERNION, 4), ("velocity", M_VELOCITY, 3),
           ("angular_velocity", M_RATE, 3))  # fmt: skip


def seen_through(plant: Plant, sensors: Mapping[str, Sensor]) -> Plant:
    """The plant with its sensors; without any, itself."""
    return Sensed(plant, sensors) if sensors else plant


class Sensed:
    """A plant around a plant: its actuators, and as outputs what the sensors tell, by 'SENSOR.quantity', with the truth
    under 'truth.NAME'. What the plant can do beside that it still can, under its own names where a person gives them.

    sensors   by name, see rtmms.sensing.parts
    Raises ModelError where a sensor cannot be on this plant.
    """

    def __init__(self, plant: Plant, sensors: Mapping[str, Sensor]) -> None:
        self.truth, self.dt, self.actuators = plant, plant.dt, plant.actuators
        self.sensors = dict(sensors)
        self.suite = assemble(sensors, plant)
        truth = tuple(replace(channel, name=TRUTH + channel.name) for channel in plant.outputs)
        self.outputs: tuple[Channel, ...] = (*self.suite.channels, *truth)
        self._state = np.zeros(self.suite.size)
        self._motion = np.zeros(self.suite.motion)
        self._scratch = np.zeros(self.suite.widest)
        self._told = [
            (channel.name, place, bool(channel.shape))
            for channel, place in zip(self.suite.channels, self.suite.places, strict=True)
        ]
        known = {channel.name for channel in plant.outputs}
        self._moving = [(name, slice(at, at + size)) for name, at, size in _MOVING if name in known]
        self._moving += list(self.suite.vectors.items())
        self._seed = 0
        self._steps = 0
        self._seen: dict[str, Array] = {}
        self._offer()
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """See Plant; the sensors are switched on anew, with errors that the seed decides."""
        self.truth.reset(seed)
        self._seed, self._steps = seed, 0
        self._motion[:] = 0.0
        self._motion[M_BEFORE] = -1.0
        told = getattr(getattr(self.truth, "parameters", None), "gravity_m_s2", None)
        self._motion[M_GRAVITY] = told if isinstance(told, float) else _STANDARD_GRAVITY
        start(self.suite.timing, self.suite.block, seed, self._state)
        self._look()

    def step(self, command: Array) -> None:
        """See Plant."""
        self.truth.step(command)
        self._steps += 1
        motion = self._motion
        motion[M_BEFORE:M_GRAVITY] = motion[M_TIME:M_BEFORE]
        self._look()

    def observe(self) -> dict[str, Array]:
        """See Plant."""
        state = self._state
        seen = {name: state[place].copy() if plain else state[place][0].copy() for name, place, plain in self._told}
        for name, value in self._seen.items():
            seen[TRUTH + name] = value
        return seen

    def snapshot(self) -> bytes:
        """See Plant: of the plant, the sensors' state and what of the last motion they need."""
        inner = self.truth.snapshot()
        head = _HEAD.pack(_MAGIC, self._seed, self._steps, len(inner))
        return b"".join((head, inner, self._motion.tobytes(), self._state.tobytes()))

    def restore(self, blob: bytes) -> None:
        """See Plant."""
        own = (self._motion.size + self._state.size) * 8
        if len(blob) < _HEAD.size + own or not blob.startswith(_MAGIC):
            raise ModelError("restore: this is no snapshot of a plant with these sensors")
        _, seed, steps, size = _HEAD.unpack_from(blob)
        if len(blob) != _HEAD.size + size + own:
            raise ModelError("restore: a snapshot of a plant with other sensors")
        self.truth.restore(blob[_HEAD.size : _HEAD.size + size])
        at = _HEAD.size + size
        self._motion[:] = np.frombuffer(blob, np.float64, self._motion.size, at)
        self._state[:] = np.frombuffer(blob, np.float64, self._state.size, at + self._motion.nbytes)
        self._seed, self._steps = seed, steps
        self._seen = self.truth.observe()

    def _look(self) -> None:
        seen, motion = self.truth.observe(), self._motion
        motion[M_TIME] = self._steps * self.dt
        for name, place in self._moving:
            motion[place] = seen[name]
        self._seen = seen
        suite = self.suite
        look(suite.timing, suite.block, self._seed, motion, self._scratch, self._state)

    def _offer(self) -> None:
        """What the plant offers beside a plant's members: members of ours, so that whoever asks by isinstance finds
        them."""
        plant = self.truth
        if isinstance(plant, Summarised):
            self.trace_outputs = tuple(TRUTH + name for name in plant.trace_outputs)
            self.summarise = _of_the_truth(plant.summarise)
        if isinstance(plant, Drawn):
            self.recent_outputs = tuple(TRUTH + name for name in plant.recent_outputs)
        self.set: Callable[..., None] = self._set
        self.settable = (
            *(FAULT + name for name in self.sensors),
            *(plant.settable if isinstance(plant, Tunable) else ()),
        )
        if isinstance(plant, Surrounded):
            self.medium = plant.medium
        if isinstance(plant, Coupled):
            self.coupling = plant.coupling
        if isinstance(plant, Described):
            self.parameters = plant.parameters
        if isinstance(plant, Twinned):
            self.twin = plant.twin

    def _set(self, **parameters: Any) -> None:
        """Faults of sensors are ours, see rtmms.sensing.faults; the rest is the plant's."""
        own = {}
        for name, value in parameters.items():
            target = name.removeprefix(FAULT)
            if name.startswith(FAULT) and target in self.sensors:
                own[target] = read_fault(target, value, SENSOR_FAULTS)
        rest = {name: value for name, value in parameters.items() if name.removeprefix(FAULT) not in own}
        if rest or not own:
            if not isinstance(self.truth, Settable):
                name = next(iter(rest), "")
                raise ModelError(f"set: this plant has no parameter '{name}' that can change while it runs")
            self.truth.set(**rest)
        for row, name in zip(self.suite.timing, self.sensors, strict=True):
            if name in own:
                self._state[int(row[T_FAULT]) : int(row[T_FAULT]) + 2] = own[name]
        if isinstance(self.truth, Described):
            self.parameters = self.truth.parameters
        self._seen = self.truth.observe()


def _of_the_truth(summarise: Any) -> Callable[[Array, Mapping[str, Array]], dict[str, float | None]]:
    def summary(time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        found: dict[str, float | None] = summarise(
            time, {name.removeprefix(TRUTH): value for name, value in trace.items()}
        )
        return found

    return summary
