"""What of a caller's errors pythonfmu3's binary must not see: it answers every Python exception with fmi3Fatal.

It has no other answer to give but in doStep, where a status is returned. And on its way there it drops its references
to the slave, to drop them once more when the instance is freed: a host that goes on, or only cleans up, then uses freed
memory.
"""

from __future__ import annotations

import ctypes
import functools
import json
import weakref
import zlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rtmms.errors import ModelError

MOST_SAID = 300
_HEAD = b"rtmms fmu state 1 "
_alive: weakref.WeakSet[Any] = weakref.WeakSet()
_Method = TypeVar("_Method", bound=Callable[..., Any])


def guarded(method: _Method) -> _Method:
    """Of a slave: whatever it raises becomes one ModelError with one sentence, and the slave outlives it."""

    @functools.wraps(method)
    def within(self: Any, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except Exception as fault:
            _keep(self)
            raise ModelError(sentence(fault)) from None

    return within  # type: ignore[return-value]


def sentence(fault: Exception) -> str:
    """A fault on one line, not too long."""
    text = str(fault) if isinstance(fault, ModelError) else f"{type(fault).__name__}: {fault}"
    return " ".join(text.split())[:MOST_SAID]


def _keep(slave: Any) -> None:
    """The references that the binary is about to drop: of the instance, its class, and its list of messages."""
    count = getattr(ctypes.pythonapi, "Py_IncRef", None)  # none where a host hides the interpreter's symbols
    if count is not None:
        for one in (slave, type(slave), slave.log_queue):
            count(ctypes.py_object(one))


# --- variables --------------------------------------------------------------------------------------------------------


class Variables:
    """Reading and writing variables, all of a call or none; before pythonfmu3's Fmi3Slave among the bases.

    get_float64(vrs), set_float64(vrs, values) and so on for each kind of variable are added below.
    """

    vars: dict[int, Any]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        _alive.add(self)

    def _read(self, kind: str, vrs: Iterable[int]) -> Any:
        self._known(kind, vrs)
        return getattr(super(), f"get_{kind.lower()}")(vrs)

    def _write(self, kind: str, vrs: list[int], values: list[Any]) -> None:
        self._known(kind, vrs)
        for vr in vrs:
            if self.vars[vr].setter is None:
                name, causality = self.vars[vr].name, self.vars[vr].causality.name
                raise ModelError(f"{name}: expected an input or a parameter to set, got {causality} {name}")
        if len(values) != len(vrs):  # what can be set has one value each
            raise ModelError(f"set: expected {len(vrs)} values, got {len(values)}")
        getattr(super(), f"set_{kind.lower()}")(vrs, values)

    def _known(self, kind: str, vrs: Iterable[int]) -> None:
        for vr in vrs:
            variable = self.vars.get(vr)
            if variable is None:
                raise ModelError(f"value reference {vr}: expected one from 0 to {len(self.vars) - 1}")
            if type(variable).__name__ != kind:
                raise ModelError(f"{variable.name}: expected a call for {type(variable).__name__}, got one for {kind}")


def _reader(kind: str) -> Callable[..., Any]:
    return guarded(lambda self, vrs: self._read(kind, vrs))


def _writer(kind: str) -> Callable[..., Any]:
    return guarded(lambda self, vrs, values: self._write(kind, vrs, values))


for _kind in ("Float64", "Int64", "Int32", "UInt64", "Boolean", "String", "Real", "Integer"):
    setattr(Variables, f"get_{_kind.lower()}", _reader(_kind))
    setattr(Variables, f"set_{_kind.lower()}", _writer(_kind))


# --- states -----------------------------------------------------------------------------------------------------------


def state_to_bytes(state: dict[str, Any]) -> bytes:
    """A state as JSON, behind its checksum."""
    text = json.dumps(state).encode()
    return _HEAD + f"{zlib.crc32(text):08x}\n".encode() + text


def state_from_bytes(given: bytes) -> dict[str, Any]:
    """The state; ModelError where a bit of it is not as it was written.

    The binary does not say whose call this is, and so whose references it drops: every slave is kept. Those who did not
    ask are then never freed.
    """
    try:
        head = len(_HEAD)
        if given[:head] != _HEAD:
            raise ModelError(f"serialised state: expected one of an FMU of rtmms, got {len(given)} other bytes")
        text = given[head + 9 :]
        if given[head : head + 9] != f"{zlib.crc32(text):08x}\n".encode():
            raise ModelError("serialised state: expected what was written, got other bytes (the checksum differs)")
        found: dict[str, Any] = json.loads(text)
        return found
    except Exception as fault:
        for slave in _alive:
            _keep(slave)
        raise ModelError(sentence(fault)) from None
