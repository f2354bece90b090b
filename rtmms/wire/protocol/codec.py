"""One message to one frame and back: a msgpack map with `type`, sizes capped, every fault a named refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgpack import Packer, unpackb  # type: ignore[attr-defined]

from rtmms.wire.protocol.messages import Reason, Refused

_new_packer: Callable[..., Any] = Packer
_unpack: Callable[..., Any] = unpackb

LONGEST_OF_PLANT, LONGEST_LIST_OF_PLANT = 16 * 1024 * 1024, 65536
_LONGEST_LIST, _LONGEST_MAP = 1024, 4096
_SHORT = 1024
"""A frame of so many bytes can claim no more of anything than is allowed: unpackb's own limits are its length."""


def packer() -> Callable[[Any], bytes]:
    """A packing function to keep: its buffer is reused. Other libraries' numbers (float32, int64) travel as float64."""
    pack: Callable[[Any], bytes] = _new_packer(default=float).pack
    return pack


def decode(
    frame: bytes, cap: int, longest_list: int = _LONGEST_LIST, longest_map: int = _LONGEST_MAP
) -> dict[str, Any]:
    """The message in a frame of at most `cap` bytes.

    longest_list, longest_map  entries a list or a map may claim; each claim costs memory before its entries are read
    Refused (oversize, garbled, unknown_type) for anything that is not one whole msgpack map with a text `type`.
    """
    size = len(frame)
    if size > cap:
        raise Refused(Reason.OVERSIZE, f"a message may have {cap} bytes here, got more")
    try:
        message = (
            _unpack(frame)
            if size <= _SHORT
            else _unpack(
                frame,
                max_array_len=min(longest_list, size),  # memory is taken at the promise: keep it to what may come
                max_map_len=min(longest_map, size),
                max_str_len=cap,
                max_bin_len=cap,
                max_ext_len=16,
            )
        )
    except Exception as fault:  # whatever a decoder makes of a stranger's bytes, it is the stranger's fault
        raise Refused(Reason.GARBLED, f"not a msgpack message: {type(fault).__name__}") from None
    if type(message) is not dict:
        raise Refused(Reason.GARBLED, f"a message must be a map, got {type(message).__name__}")
    if type(message.get("type")) is not str:
        raise Refused(Reason.TYPE, "a message must have a 'type', as text")
    return message


def decode_from_plant(frame: bytes) -> dict[str, Any]:
    """A message from a plant that the peer has chosen to trust: states may carry long lists, and many outputs."""
    return decode(frame, LONGEST_OF_PLANT, LONGEST_LIST_OF_PLANT, LONGEST_LIST_OF_PLANT)
