"""Messages on a line that loses and flips bytes: COBS frames with a CRC-16, each ended by a zero byte.

A frame is COBS(payload, CRC-16 of it, low byte first) and 0. The CRC is CRC-16/IBM-3740, also called CCITT-FALSE:
polynomial 0x1021, from 0xFFFF, not reflected, not inverted; of "123456789" it is 0x29B1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rtmms.bridging.untrusted import Refusal

END = b"\0"
_CRC_BYTES = 2


def encode(payload: bytes) -> bytes:
    """A frame, with its end."""
    from cobs import cobs
    from fastcrc import crc16

    return bytes(cobs.encode(payload + crc16.ibm_3740(payload).to_bytes(_CRC_BYTES, "little"))) + END


def decode(frame: bytes) -> bytes:
    """The payload of a frame without its end. Refusal: cobs, short, crc."""
    from cobs import cobs
    from fastcrc import crc16

    try:
        data = bytes(cobs.decode(frame))
    except cobs.DecodeError as fault:
        raise Refusal("cobs", str(fault)) from None
    if len(data) <= _CRC_BYTES:
        raise Refusal("short", "no payload")
    payload = data[:-_CRC_BYTES]
    if crc16.ibm_3740(payload) != int.from_bytes(data[-_CRC_BYTES:], "little"):
        raise Refusal("crc", "the checksum does not fit")
    return payload


def longest(payload: int) -> int:
    """Bytes of a frame with so many bytes of payload, with its end, at most."""
    data = payload + _CRC_BYTES
    return data + 1 + (data - 1) // 254 + 1


class Deframer:
    """Payloads out of a stream. What is broken costs the frame it is in, and the next zero byte begins anew.

    limit    bytes of payload that a frame may have
    refuse   gets the reason for each frame that is passed over: cobs, short, crc, oversize
    """

    def __init__(self, limit: int, refuse: Callable[[str], Any]) -> None:
        self._longest, self._refuse = longest(limit), refuse
        self._rest = bytearray()
        self._skipping = False
        self._joining = True  # the first piece may be the end of a frame whose beginning we missed: that is no fault

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads of the frames that end with these bytes. Keeps at most one frame."""
        found = []
        *ended, open_end = data.split(END)
        for piece in ended:
            self._rest += piece
            if self._skipping:
                self._skipping = False
            elif len(self._rest) >= self._longest:
                self._fault("oversize")
            elif self._rest:
                try:
                    found.append(decode(bytes(self._rest)))
                except Refusal as refusal:
                    self._fault(refusal.reason)
            self._rest.clear()
            self._joining = False
        self._rest += open_end
        if len(self._rest) >= self._longest and not self._skipping:
            self._fault("oversize")
            self._skipping = True
        if self._skipping:
            self._rest.clear()
        return found

    def _fault(self, reason: str) -> None:
        if not self._joining:
            self._refuse(reason)


class Line:
    """How much a serial line carries: nothing is sent before what was sent has had its time on the line.

    bits_per_byte  start, data, parity and stop bits
    """

    def __init__(self, baud: float, bits_per_byte: float) -> None:
        self._byte_s = bits_per_byte / baud
        self._free_at = 0.0

    def free(self, now: float) -> bool:
        """What was sent is through."""
        return now >= self._free_at

    def sent(self, count: int, now: float) -> None:
        """So many bytes were handed over."""
        self._free_at = max(now, self._free_at) + count * self._byte_s

    def time_s(self, count: int) -> float:
        """What so many bytes take."""
        return count * self._byte_s

    def clear(self) -> None:
        """Another line."""
        self._free_at = 0.0
