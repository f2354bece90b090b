"""Snapshots: the bytes of a state, tied to a model and a step, with a checksum, in one form for all of our plants.

A snapshot has its own mark, the length of the rest and its SHA-256. The key of the model, the step, the count of steps
and the state's bytes follow. A snapshot is refused before anything changes if it is damaged, of another model, or has a
number that is not finite.
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
    """Return bytes with mark, length and checksum before them.

    Parameters
    ----------
    payload : bytes
        The bytes.

    Returns
    -------
    bytes
        The sealed bytes.
    """
    return _HEAD.pack(_MAGIC, len(payload), hashlib.sha256(payload).digest()) + payload


def unseal(blob: Any, name: str) -> bytes:
    """Return the payload of sealed bytes.

    Parameters
    ----------
    blob : Any
        The sealed bytes.
    name : str
        Name of the plant, for the error.

    Returns
    -------
    bytes
        The payload of `seal`.

    Raises
    ------
    ModelError
        If the bytes are no snapshot of this version, or damaged.
    """
    try:
        blob = bytes(memoryview(blob))
    except TypeError:
        raise ModelError(f"{name}: restore: expected the bytes of a snapshot, got {type(blob).__name__}") from None
    if len(blob) < _HEAD.size or not blob.startswith(_MAGIC):
        raise ModelError(f"{name}: restore: expected a snapshot of this version of rtmms, got other bytes")
    _, size, digest = _HEAD.unpack_from(blob)
    payload: bytes = blob[_HEAD.size :]
    if len(payload) != size:
        raise ModelError(f"{name}: restore: expected a snapshot of {_HEAD.size + size} bytes, got {len(blob)}")
    if hashlib.sha256(payload).digest() != digest:
        raise ModelError(f"{name}: restore: the snapshot is damaged: its checksum is wrong")
    return payload


def pack_state(key: bytes, dt: float, steps: int, *arrays: npt.NDArray[Any]) -> bytes:
    """Return a snapshot of arrays of float64 and int64.

    Parameters
    ----------
    key : bytes
        32 bytes that depend on all that determines the dynamics.
    dt : float
        Simulated time of a step, s.
    steps : int
        Steps since the reset.
    *arrays : npt.NDArray[Any]
        The arrays.

    Returns
    -------
    bytes
        The snapshot.
    """
    return seal(_MODEL.pack(key, dt, steps) + b"".join(array.tobytes() for array in arrays))


def unpack_state(
    blob: Any, name: str, key: bytes, dt: float, arrays: Mapping[str, npt.NDArray[Any]], *, finite: bool = True
) -> tuple[int, dict[str, npt.NDArray[Any]]]:
    """Return the count of steps and new arrays of a snapshot.

    Parameters
    ----------
    blob : Any
        The snapshot.
    name : str
        Name of the plant, for the error.
    key : bytes
        32 bytes, as of `pack_state`.
    dt : float
        Simulated time of a step, s.
    arrays : Mapping[str, npt.NDArray[Any]]
        Present arrays by name, which have the sizes and types.
    finite : bool, default True
        False if NaN has a meaning (the value of a sensor without a sample yet).

    Returns
    -------
    tuple[int, dict[str, npt.NDArray[Any]]]
        Steps since the reset, and arrays by name.

    Raises
    ------
    ModelError
        If the snapshot is damaged, of another model, step or version, or if a number is not finite.
    """
    payload = unseal(blob, name)
    if len(payload) < _MODEL.size:
        raise ModelError(f"{name}: restore: expected a snapshot of this kind of plant, got one of another kind")
    model_key, step, steps = _MODEL.unpack_from(payload)
    if model_key != key or step != dt:
        raise ModelError(
            f"{name}: restore: expected a snapshot of the present model, step, version and parameters, got one of "
            "others; set the parameters that the plant had then"
        )
    size = _MODEL.size + sum(array.nbytes for array in arrays.values())
    if len(payload) != size or steps < 0:
        raise ModelError(f"{name}: restore: the snapshot's state must have {size} bytes, got {len(payload)}")
    at, out = _MODEL.size, {}
    for word, array in arrays.items():
        value = np.frombuffer(payload, array.dtype, array.size, at).reshape(array.shape)
        if finite and array.dtype == np.float64 and not np.all(np.isfinite(value)):
            raise ModelError(f"{name}: restore: the snapshot is damaged: its {word} is not finite")
        out[word], at = value, at + array.nbytes
    return steps, out


class StatefulPlant:
    """Base of a plant with one array as its state: its time, its snapshots, and its state for forks.

    A subclass sets all attributes, and overrides `_clear` if its scratch is not in a record.

    Attributes
    ----------
    dt : float
        Simulated time of a step, s.
    memory : npt.NDArray[np.float64]
        All of the state: that of `system`.
    system : Any
        Record of a layout (rtmms.base.memory).
    _name : str
        Name of the plant, for errors.
    _key : bytes
        32 bytes that depend on all that determines the dynamics.
    _steps : int
        Steps since the reset.
    """

    dt: float
    memory: npt.NDArray[np.float64]
    system: Any
    _name: str
    _key: bytes
    _steps: int

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self._steps * self.dt

    def snapshot(self) -> bytes:
        """Return the whole state, bit for bit, tied to this model and step.

        Returns
        -------
        bytes
            The snapshot.
        """
        return pack_state(self._key, self.dt, self._steps, self.memory)

    def restore(self, blob: bytes) -> None:
        """Return to a snapshot of the same model.

        Parameters
        ----------
        blob : bytes
            The snapshot.

        Raises
        ------
        ModelError
            If it is another model's, damaged, or not finite.
        """
        steps, result = unpack_state(blob, self._name, self._key, self.dt, self._state_arrays())
        self._clear()
        for name, array in self._state_arrays().items():
            array[...] = result[name]
        self._steps = steps

    def present(self) -> tuple[npt.NDArray[np.float64], int]:
        """Return a copy of the state for a fork, and the steps since the reset (rtmms.plant.HasFork).

        Returns
        -------
        tuple[npt.NDArray[np.float64], int]
            State and number of steps.
        """
        return self.memory.copy(), self._steps

    def put(self, state: npt.NDArray[np.float64], steps: int) -> None:
        """Set the state, as `restore` does (rtmms.plant.HasFork).

        Parameters
        ----------
        state : npt.NDArray[np.float64]
            The state.
        steps : int
            Steps since the reset.
        """
        self._clear()
        self.memory[:] = state
        self._steps = steps

    def _state_arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the parts of `memory` by name, in order."""
        return {"state": self.memory}

    def _clear(self) -> None:
        """Reset scratch as in a new plant."""
        self.system.clear()


def model_of(blob: bytes) -> bytes:
    """Return the identity of a snapshot's model and step, equal for all snapshots of one plant.

    Parameters
    ----------
    blob : bytes
        The snapshot.

    Returns
    -------
    bytes
        40 bytes.
    """
    return blob[_HEAD.size : _HEAD.size + 40]


def seal_parts(*parts: bytes) -> bytes:
    """Return a snapshot of several snapshots.

    Parameters
    ----------
    *parts : bytes
        The snapshots.

    Returns
    -------
    bytes
        The combined snapshot.
    """
    return seal(struct.pack("<Q", len(parts)) + b"".join(struct.pack("<Q", len(part)) + part for part in parts))


def unseal_parts(blob: Any, name: str, count: int | None) -> tuple[bytes, ...]:
    """Return the parts of a combined snapshot.

    Parameters
    ----------
    blob : Any
        The combined snapshot.
    name : str
        Name of the plant, for the error.
    count : int | None
        Expected number of parts; None: any number.

    Returns
    -------
    tuple[bytes, ...]
        The parts of `seal_parts`.

    Raises
    ------
    ModelError
        If they are damaged, or not `count`.
    """
    payload = unseal(blob, name)
    another = ModelError(f"{name}: restore: expected a snapshot of this kind of plant, got one of another kind")
    if len(payload) < 8:
        raise another
    (result,) = struct.unpack_from("<Q", payload)
    if result != count and (count is not None or not 0 < result <= len(payload)):
        raise another
    parts: list[bytes] = []
    at = 8
    for _ in range(result):
        (size,) = struct.unpack_from("<Q", payload, at) if len(payload) >= at + 8 else (-1,)
        if size < 0 or len(payload) < at + 8 + size:
            raise another
        parts.append(payload[at + 8 : at + 8 + size])
        at += 8 + size
    return tuple(parts)
