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
    """Return a frame with its end.

    Parameters
    ----------
    payload : bytes
        The payload.

    Returns
    -------
    bytes
        The frame.
    """
    from cobs import cobs
    from fastcrc import crc16

    return bytes(cobs.encode(payload + crc16.ibm_3740(payload).to_bytes(_CRC_BYTES, "little"))) + END


def decode(frame: bytes) -> bytes:
    """Return the payload of a frame without its end.

    Parameters
    ----------
    frame : bytes
        The frame.

    Returns
    -------
    bytes
        The payload.

    Raises
    ------
    Refusal
        With reason cobs, short or crc.
    """
    from cobs import cobs
    from fastcrc import crc16

    try:
        data = bytes(cobs.decode(frame))
    except cobs.DecodeError as fault:
        raise Refusal("cobs", str(fault)) from None
    if len(data) <= _CRC_BYTES:
        raise Refusal(
            "short", f"expected a payload and {_CRC_BYTES} bytes of checksum in a frame, got {len(data)} bytes in all"
        )
    payload = data[:-_CRC_BYTES]
    if crc16.ibm_3740(payload) != int.from_bytes(data[-_CRC_BYTES:], "little"):
        raise Refusal("crc", "the checksum is wrong")
    return payload


def longest(payload: int) -> int:
    """Return the most bytes of a frame with its end.

    Parameters
    ----------
    payload : int
        Bytes of the payload.

    Returns
    -------
    int
        Bytes of the frame.
    """
    data = payload + _CRC_BYTES
    return data + 1 + (data - 1) // 254 + 1


class Deframer:
    """Payloads of a stream; a fault costs its frame, and the next zero byte begins anew.

    Parameters
    ----------
    limit : int
        Most bytes of a payload.
    refuse : Callable[[str], Any]
        Called with the reason of each skipped frame: cobs, short, crc, oversize.
    """

    def __init__(self, limit: int, refuse: Callable[[str], Any]) -> None:
        self._longest, self._refuse = longest(limit), refuse
        self._incomplete = bytearray()
        self._skipping = False
        self._joining = True  # the first piece may be the end of a frame whose beginning we missed: that is no fault

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads of the frames that end with these bytes; at most one frame is stored.

        Parameters
        ----------
        data : bytes
            New bytes of the stream.

        Returns
        -------
        list[bytes]
            The payloads.
        """
        result = []
        *ended, open_end = data.split(END)
        for piece in ended:
            self._incomplete += piece
            if self._skipping:
                self._skipping = False
            elif len(self._incomplete) >= self._longest:
                self._fault("oversize")
            elif self._incomplete:
                try:
                    result.append(decode(bytes(self._incomplete)))
                except Refusal as refusal:
                    self._fault(refusal.reason)
            self._incomplete.clear()
            self._joining = False
        self._incomplete += open_end
        if len(self._incomplete) >= self._longest and not self._skipping:
            self._fault("oversize")
            self._skipping = True
        if self._skipping:
            self._incomplete.clear()
        return result

    def _fault(self, reason: str) -> None:
        if not self._joining:
            self._refuse(reason)


class Line:
    """Capacity of a serial line: nothing is sent before the earlier bytes have had their time on the line.

    Parameters
    ----------
    baud : float
        Baud rate.
    bits_per_byte : float
        Start, data, parity and stop bits.
    """

    def __init__(self, baud: float, bits_per_byte: float) -> None:
        self._byte_s = bits_per_byte / baud
        self._free_at = 0.0

    def free(self, now: float) -> bool:
        """Return whether all sent bytes are through.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            True if they are.
        """
        return now >= self._free_at

    def sent(self, count: int, now: float) -> None:
        """Record sent bytes.

        Parameters
        ----------
        count : int
            Number of bytes.
        now : float
            Monotonic time, s.
        """
        self._free_at = max(now, self._free_at) + count * self._byte_s

    def time_s(self, count: int) -> float:
        """Return the time of bytes on the line.

        Parameters
        ----------
        count : int
            Number of bytes.

        Returns
        -------
        float
            Time, s.
        """
        return count * self._byte_s

    def clear(self) -> None:
        """Reset for another line."""
        self._free_at = 0.0
