"""A plant seen through its sensors: what they tell, and the truth under names of its own."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rtmms.addresses import ARGUMENTS
from rtmms.contract import TRUTH
from rtmms.errors import ModelError
from rtmms.jit import COMPILED, native
from rtmms.plant import (
    Account,
    Accounted,
    Channel,
    Coupled,
    Described,
    Drawn,
    Entry,
    Plant,
    Settable,
    Summarised,
    Surrounded,
    Tunable,
    Twinned,
)
from rtmms.sensing import door
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
        self._seen: dict[str, Array] | None = None
        suite, self._time_step = self.suite, np.array([self.dt])
        self._words = door.words_of({
            door.TIMING: suite.timing, door.BLOCK: suite.block, door.MOTION: self._motion,
            door.SCRATCH: self._scratch, door.STATE: self._state, door.DT: self._time_step,
        })  # fmt: skip
        for place, array in ((door.SENSORS, suite.timing), (door.BLOCKS, suite.block), (door.N_MOTION, self._motion),
                             (door.N_SCRATCH, self._scratch), (door.N_STATE, self._state)):  # fmt: skip
            self._words[place] = len(array)
        self._address = self._words.ctypes.data
        self._accounted: Accounted | None = None
        self._inner: Entry | None = None
        self._bind()
        self._offer()
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """See Plant; the sensors are switched on anew, with errors that the seed decides."""
        self.truth.reset(seed)
        self._words[door.SEED], self._words[door.STEPS] = seed, 0
        self._motion[:] = 0.0
        self._motion[M_BEFORE] = -1.0
        told = getattr(getattr(self.truth, "parameters", None), "gravity_m_s2", None)
        self._motion[M_GRAVITY] = told if isinstance(told, float) else _STANDARD_GRAVITY
        if COMPILED:
            door.enter_start(self._address)
        else:
            start(self.suite.timing, self.suite.block, seed, self._state)
        self._changed()
        self._look()

    def step(self, command: Array) -> None:
        """See Plant."""
        self.truth.step(command)
        self._words[door.STEPS] += 1
        motion = self._motion
        motion[M_BEFORE:M_GRAVITY] = motion[M_TIME:M_BEFORE]
        self._changed()
        self._look()

    def enter(self) -> Entry | None:
        """See rtmms.plant.Entered."""
        if self._accounted is None:
            return None
        inner = self._accounted.enter()
        if inner is None:
            return None
        if inner is not self._inner:
            self._inner = inner
            self._words[door.FUNCTION] = inner.function
            self._arguments[0, : len(inner.arguments)] = inner.arguments
            self._entry = Entry(native(door.enter_step, self._address), (self._address,), inner.command)
        return self._entry

    def entered(self, status: int) -> None:
        """See rtmms.plant.Entered."""
        self._seen = None
        assert self._accounted is not None
        self._accounted.entered(status)

    def account(self) -> Account | None:
        """See rtmms.plant.Accounted: what the sensors tell, and the truth."""
        if self._accounted is None:
            return None
        at = self._state.ctypes.data
        numbers = {name: (at + 8 * place.start, place.stop - place.start) for name, place, _ in self._told}
        numbers |= {TRUTH + name: part for name, part in self._true.items()}
        return Account(native(door.enter_account, self._address), (self._address,), numbers)

    def observe(self) -> dict[str, Array]:
        """See Plant."""
        state = self._state
        seen = {name: state[place].copy() if plain else state[place][0].copy() for name, place, plain in self._told}
        if self._seen is None:
            self._seen = self.truth.observe()
        for name, value in self._seen.items():
            seen[TRUTH + name] = value
        return seen

    def snapshot(self) -> bytes:
        """See Plant: of the plant, the sensors' state and what of the last motion they need."""
        inner = self.truth.snapshot()
        head = _HEAD.pack(_MAGIC, int(self._words[door.SEED]), int(self._words[door.STEPS]), len(inner))
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
        self._words[door.SEED], self._words[door.STEPS] = seed, steps
        self._changed()

    def _changed(self) -> None:
        """The plant's outputs are no longer those that were asked for."""
        self._seen, self._words[door.FRESH] = None, 0

    def _look(self) -> None:
        if self._accounted is None:
            seen = self._seen = self.truth.observe()
            for name, place in self._moving:
                self._motion[place] = seen[name]
        if COMPILED:
            door.enter_look(self._address)
        else:
            words, suite = self._words, self.suite
            self._motion[M_TIME] = words[door.STEPS] * self.dt
            look(suite.timing, suite.block, int(words[door.SEED]), self._motion, self._scratch, self._state)

    def _bind(self) -> None:
        """Where compiled code can ask the plant for its step and its outputs, it shall."""
        account = self.truth.account() if COMPILED and isinstance(self.truth, Accounted) else None
        if account is None or not all(name in account.numbers for name, _ in self._moving):
            return
        assert isinstance(self.truth, Accounted)
        self._accounted, self._true = self.truth, account.numbers
        rows = [(*account.numbers[name], place.start, place.stop - place.start) for name, place in self._moving]
        assert all(count == room for _, count, _, room in rows)
        self._gathered = np.array([row[: door.ROW] for row in rows], dtype=np.int64).reshape(-1, door.ROW)
        self._arguments = np.zeros((2, ARGUMENTS), dtype=np.int64)  # of its step, of what writes its outputs
        self._arguments[1, : len(account.arguments)] = account.arguments
        words = self._words
        words[door.ACCOUNT], words[door.ACCOUNT_ARGUMENTS] = account.function, self._arguments[1].ctypes.data
        words[door.ARGUMENTS] = self._arguments[0].ctypes.data
        words[door.GATHERED], words[door.N_GATHERED] = self._gathered.ctypes.data, len(self._gathered)

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
        self._changed()


def _of_the_truth(summarise: Any) -> Callable[[Array, Mapping[str, Array]], dict[str, float | None]]:
    def summary(time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        found: dict[str, float | None] = summarise(
            time, {name.removeprefix(TRUTH): value for name, value in trace.items()}
        )
        return found

    return summary
