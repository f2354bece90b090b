"""Faults of sensors and actuators, which begin and end while a run goes on: as a parameter 'fault.TARGET' of the plant.

The value is a word, or a word with a number, 'bias=0.5'; '' ends the fault. Sensors (TARGET is the sensor's name):
silent,
stuck (at what was told last), bias=, spikes= (in both directions, of one sample in twenty). Actuators (TARGET is the
actuator's name): stuck (where it is) or stuck= (a value), slow= (the rate at which it follows, unit/s).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rtmms.errors import ModelError, UnknownNameError
from rtmms.plant import Coupled, Described, Drawing, Drawn, Plant, Settable, Summarised, Surrounded, Tunable
from rtmms.sensing.layout import BIAS, SILENT, SOUND, SPIKES, STUCK
from rtmms.spatial import Array

FAULT = "fault."
SENSOR_FAULTS: Mapping[str, tuple[int, bool, bool]] = {
    "silent": (SILENT, False, False), "stuck": (STUCK, False, False), "bias": (BIAS, True, True),
    "spikes": (SPIKES, True, True),
}  # fmt: skip
"""Code; whether it takes a number, and must."""

A_STUCK, A_SLOW = 1, 2
ACTUATOR_FAULTS: Mapping[str, tuple[int, bool, bool]] = {"stuck": (A_STUCK, True, False), "slow": (A_SLOW, True, True)}
_MAGIC = b"rtmms-faulty-1\0"
_HEAD = struct.Struct("<15sQ")


def read_fault(target: str, value: Any, known: Mapping[str, tuple[int, bool, bool]]) -> tuple[float, float]:
    """(code, number) of 'bias=0.5'; number is nan where none is given. ModelError, UnknownNameError."""
    if not isinstance(value, str):
        raise ModelError(f"{FAULT}{target}: expected a word, as '{next(iter(known))}', got {value!r}")
    word, equals, text = value.partition("=")
    if not value:
        return float(SOUND), 0.0
    if word not in known:
        raise UnknownNameError(f"fault of {target}", word, known)
    code, takes, needs = known[word]
    if not equals:
        if needs:
            raise ModelError(f"{FAULT}{target}: {word}: expected {word}=NUMBER")
        return float(code), math.nan
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not takes or not math.isfinite(number):
        expected = f"{word}=NUMBER" if takes else word
        raise ModelError(f"{FAULT}{target}: expected {expected}, got '{value}'")
    if word == "slow" and number < 0.0:
        raise ModelError(f"{FAULT}{target}: slow: expected a rate >= 0, got {number:g}")
    return float(code), number


class Faulty:
    """A plant whose actuators may fail: between what is commanded and what the plant gets.

    Everything else is the plant's own. Its step costs some us more, and is entered from Python.
    """

    def __init__(self, plant: Plant) -> None:
        self.sound, self.dt, self.actuators, self.outputs = plant, plant.dt, plant.actuators, plant.outputs
        n = len(plant.actuators)
        self._names = [channel.name for channel in plant.actuators]
        self._neutral = np.array([channel.neutral for channel in plant.actuators], dtype=float)
        self._memory = np.zeros((3, n))  # what the plant got last, code and number of each one's fault
        self._memory[0] = self._neutral
        self.set: Callable[..., None] = self._set
        self.settable = (
            *(FAULT + name for name in self._names),
            *(plant.settable if isinstance(plant, Tunable) else ()),
        )
        if isinstance(plant, Summarised):
            self.trace_outputs, self.summarise = plant.trace_outputs, plant.summarise
        if isinstance(plant, Drawn):
            self.recent_outputs = plant.recent_outputs
        if isinstance(plant, Drawing):
            self.figure = plant.figure
        if isinstance(plant, Surrounded):
            self.medium = plant.medium
        if isinstance(plant, Coupled):
            self.coupling = plant.coupling
        if isinstance(plant, Described):
            self.parameters = plant.parameters

    def reset(self, seed: int = 0) -> None:
        """See Plant; faults end."""
        self.sound.reset(seed)
        self._memory[:] = 0.0
        self._memory[0] = self._neutral

    def step(self, command: Array) -> None:
        """See Plant."""
        before, codes, numbers = self._memory
        for i in range(len(codes)):
            wanted = command[i]
            if codes[i] == A_STUCK:
                wanted = numbers[i]
            elif codes[i] == A_SLOW:
                most = numbers[i] * self.dt
                wanted = min(max(wanted, before[i] - most), before[i] + most)
            before[i] = wanted
        self.sound.step(before)

    def observe(self) -> dict[str, Array]:
        """See Plant."""
        return self.sound.observe()

    def snapshot(self) -> bytes:
        """See Plant."""
        inner = self.sound.snapshot()
        return b"".join((_HEAD.pack(_MAGIC, len(inner)), inner, self._memory.tobytes()))

    def restore(self, blob: bytes) -> None:
        """See Plant."""
        if len(blob) < _HEAD.size or not blob.startswith(_MAGIC):
            raise ModelError("restore: this is no snapshot of a plant whose actuators may fail")
        _, size = _HEAD.unpack_from(blob)
        if len(blob) != _HEAD.size + size + self._memory.nbytes:
            raise ModelError("restore: a snapshot of a plant with other actuators")
        self.sound.restore(blob[_HEAD.size : _HEAD.size + size])
        self._memory[:] = np.frombuffer(blob, np.float64, offset=_HEAD.size + size).reshape(self._memory.shape)

    def _set(self, **parameters: Any) -> None:
        own: dict[int, tuple[float, float]] = {}
        for name, value in parameters.items():
            if name.startswith(FAULT):
                target = name.removeprefix(FAULT)
                if target not in self._names:
                    raise UnknownNameError("actuator or sensor", target, self._names)
                own[self._names.index(target)] = read_fault(target, value, ACTUATOR_FAULTS)
        rest = {name: value for name, value in parameters.items() if not name.startswith(FAULT)}
        if rest or not own:
            if not isinstance(self.sound, Settable):
                name = next(iter(rest), "")
                raise ModelError(f"set: this plant has no parameter '{name}' that can change while it runs")
            self.sound.set(**rest)
            if isinstance(self.sound, Described):
                self.parameters = self.sound.parameters
        for i, (code, number) in own.items():
            self._memory[1, i] = code
            self._memory[2, i] = self._memory[0, i] if math.isnan(number) else number
