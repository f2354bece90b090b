"""Snapshots: the bytes of a state, tied to a model and a step, with a checksum. One form for all of our plants.

An own mark, the length of what follows and its SHA-256, then the key of the model, the step and the count of steps, and
the state's bytes: what is damaged, of another model, or holds a number that is not finite is refused before anything
changes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError

_MAGIC = b"rtmms snapshot 3"
_HEAD = struct.Struct("<16sQ32s")
_MODEL = struct.Struct("<32sdq")


def seal(payload: bytes) -> bytes:
    """Bytes with their mark, length and checksum in front."""
    return _HEAD.pack(_MAGIC, len(payload), hashlib.sha256(payload).digest()) + payload


def unseal(blob: Any, name: str) -> bytes:
    """What `seal` got; ModelError for anything else. name: of the plant, for the refusal."""
    try:
        blob = bytes(memoryview(blob))
    except TypeError:
        raise ModelError(f"{name}: restore: expected the bytes of a snapshot, got {type(blob).__name__}") from None
    if len(blob) < _HEAD.size or not blob.startswith(_MAGIC):
        raise ModelError(f"{name}: restore: no snapshot of this version")
    _, size, digest = _HEAD.unpack_from(blob)
    payload: bytes = blob[_HEAD.size :]
    if len(payload) != size:
        raise ModelError(f"{name}: restore: the snapshot must have {_HEAD.size + size} bytes, got {len(blob)}")
    if hashlib.sha256(payload).digest() != digest:
        raise ModelError(f"{name}: restore: the snapshot is damaged, its checksum does not fit")
    return payload


def pack_state(key: bytes, dt: float, steps: int, *arrays: npt.NDArray[Any]) -> bytes:
    """A snapshot of arrays of float64 and int64.

    key    32 bytes of whatever decides the dynamics;  dt  s;  steps  since the reset
    """
    return seal(_MODEL.pack(key, dt, steps) + b"".join(array.tobytes() for array in arrays))


def unpack_state(
    blob: Any, name: str, key: bytes, dt: float, arrays: Mapping[str, npt.NDArray[Any]], *, finite: bool = True
) -> tuple[int, dict[str, npt.NDArray[Any]]]:
    """The count of steps, and new arrays as `pack_state` got them.

    arrays  by name, as they are now: their sizes and kinds
    finite  False where NaN has a meaning (the value of a sensor without a sample yet)
    ModelError where the snapshot is damaged, of another model, step or version, or where a number is not finite.
    """
    payload = unseal(blob, name)
    if len(payload) < _MODEL.size:
        raise ModelError(f"{name}: restore: the snapshot is of another kind of plant")
    found, step, steps = _MODEL.unpack_from(payload)
    if found != key or step != dt:
        raise ModelError(f"{name}: restore: the snapshot is of another model, step or version")
    size = _MODEL.size + sum(array.nbytes for array in arrays.values())
    if len(payload) != size or steps < 0:
        raise ModelError(f"{name}: restore: the snapshot's state must have {size} bytes, got {len(payload)}")
    at, out = _MODEL.size, {}
    for word, array in arrays.items():
        value = np.frombuffer(payload, array.dtype, array.size, at).reshape(array.shape)
        if finite and array.dtype == np.float64 and not np.all(np.isfinite(value)):
            raise ModelError(f"{name}: restore: the snapshot's {word} is not finite")
        out[word], at = value, at + array.nbytes
    return steps, out


class StatefulPlant:
    """Base of a plant whose state is one array: its time, its snapshots, and its state as forks have it.

    A subclass sets all of these, and overrides `_clear` where its scratch is no record's.

    dt       s
    memory   all of the state: that of `system`
    system   record of a layout (rtmms.base.memory)
    _name    of the plant, in refusals
    _key     32 bytes of whatever decides the dynamics
    _steps   since the reset
    """

    dt: float
    memory: npt.NDArray[np.float64]
    system: Any
    _name: str
    _key: bytes
    _steps: int

    @property
    def time(self) -> float:
        """s, simulated."""
        return self._steps * self.dt

    def snapshot(self) -> bytes:
        """Return the whole state, bit for bit, tied to this model and step."""
        return pack_state(self._key, self.dt, self._steps, self.memory)

    def restore(self, blob: bytes) -> None:
        """Go back to a snapshot of the same model; ModelError if it is another's, damaged, or not finite."""
        steps, found = unpack_state(blob, self._name, self._key, self.dt, self._state_arrays())
        self._clear()
        for name, array in self._state_arrays().items():
            array[...] = found[name]
        self._steps = steps

    def present(self) -> tuple[npt.NDArray[np.float64], int]:
        """Return a copy of the state as a fork has it, and the steps since the reset (rtmms.plant.protocol.HasFork)."""
        return self.memory.copy(), self._steps

    def put(self, state: npt.NDArray[np.float64], steps: int) -> None:
        """Put the plant into a state, as `restore` does (rtmms.plant.protocol.HasFork)."""
        self._clear()
        self.memory[:] = state
        self._steps = steps

    def _state_arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Parts of `memory` by name, in order."""
        return {"state": self.memory}

    def _clear(self) -> None:
        """Scratch as in a new plant."""
        self.system.clear()


def model_of(blob: bytes) -> bytes:
    """Return the identity of a snapshot's model and step: equal for two of one plant, whatever their states."""
    return blob[_HEAD.size : _HEAD.size + 40]


def seal_parts(*parts: bytes) -> bytes:
    """A snapshot made of others."""
    return seal(struct.pack("<Q", len(parts)) + b"".join(struct.pack("<Q", len(one)) + one for one in parts))


def unseal_parts(blob: Any, name: str, count: int | None) -> tuple[bytes, ...]:
    """Return the parts that `seal_parts` got; ModelError where they are damaged, or not `count` (None: any number)."""
    payload = unseal(blob, name)
    another = ModelError(f"{name}: restore: the snapshot is of another kind of plant")
    if len(payload) < 8:
        raise another
    (found,) = struct.unpack_from("<Q", payload)
    if found != count and (count is not None or not 0 < found <= len(payload)):
        raise another
    parts: list[bytes] = []
    at = 8
    for _ in range(found):
        (size,) = struct.unpack_from("<Q", payload, at) if len(payload) >= at + 8 else (-1,)
        if size < 0 or len(payload) < at + 8 + size:
            raise another
        parts.append(payload[at + 8 : at + 8 + size])
        at += 8 + size
    return tuple(parts)
