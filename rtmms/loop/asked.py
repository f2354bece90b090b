"""What came with a request, checked before anything is done: no key that nobody reads, no number of another kind."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from rtmms.errors import ModelError, UnknownNameError

KNOWN: Mapping[str, tuple[str, ...]] = {
    "pause": (), "reset": ("seed",), "restore": ("state",), "resume": (), "snapshot": (), "step": ("count",),
}  # fmt: skip
"""The arguments of each request; those of `set` are the plant's own."""


def refuse_others(op: str, args: Mapping[str, Any]) -> None:
    """UnknownNameError for an argument that the request does not take."""
    for name in args:
        if name not in KNOWN.get(op, args):
            raise UnknownNameError(f"argument of {op}", str(name), KNOWN[op])


def whole(op: str, name: str, value: Any, least: int) -> int:
    """A whole number from `least` on; ModelError."""
    if type(value) is not int or value < least:
        raise ModelError(f"{op}: {name} must be a whole number >= {least}, got {value!r}"[:200])
    return value


def state(args: Mapping[str, Any]) -> bytes:
    """The snapshot in the arguments of restore; ModelError."""
    expected = "restore: state must be what a snapshot gave (base64 text)"
    if "state" not in args:
        raise ModelError(f"{expected}, got none")
    text = args["state"]
    if not isinstance(text, (str, bytes)):
        raise ModelError(f"{expected}, got {type(text).__name__}")
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ModelError(f"{expected}, got text that is not base64") from None
    if not blob:
        raise ModelError(f"{expected}, got nothing")
    return blob
