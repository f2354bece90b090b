"""MAVLink frames in a stranger's bytes, and signatures of MAVLink 2.

pymavlink decodes. This module finds frames and judges signatures, because pymavlink's own reader has three faults. It
stores all it has read while a stream is never silent. It loses a good frame after each broken length. It notes a
signature's time before it knows whether the signature is right, so that one forged frame shuts out the station with the
key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from binascii import crc_hqx
from collections.abc import Callable
from itertools import cycle
from time import time
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.base.files import open_input
from rtmms.bridging.untrusted import Refusal

V1 = 0xFE
V2 = 0xFD
_SIGNED = 0x01
_SIGNATURE = 13
_MAX_STREAMS = 64
_EXTRA_BYTES = 24
_HIDING = ("malformed", "flags", "crc")
"""Reasons of frames that may have a broken length, which hides the following frames."""
_BEGIN = re.compile(b"[\xfd\xfe]")
_EPOCH_S = 1420070400.0  # 2015-01-01, in units of 10 us
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_MAX_LATE_10_US = 6_000_000  # a stream that is new may be a minute late


class Reader:
    """Messages of the dialect in a stream, or in datagrams.

    Parameters
    ----------
    refuse : Callable[[str], None]
        Called with the reason of each skipped piece: malformed, crc, unknown, flags, signature.
    signing : Signing | None, optional
        Required signatures. None: frames with a signature are accepted like those without.

    Attributes
    ----------
    behind : bool
        Whether bytes were left for the next call, feed(b""). One byte can show that a frame of 280 was none, and each
        of the 280 may begin another one.
    """

    behind = False

    def __init__(self, refuse: Callable[[str], None], signing: Signing | None = None) -> None:
        from pymavlink.dialects.v20 import common

        self._refuse, self._signing = refuse, signing
        self._decode = common.MAVLink(None).decode
        self._longest = {number: kind.unpacker.size for number, kind in common.mavlink_map.items()}
        self._extra = {number: bytes((kind.crc_extra,)) for number, kind in common.mavlink_map.items()}
        self._error = common.MAVError
        self._incomplete = bytearray()

    def datagram(self, data: bytes) -> list[Any]:
        """Return the messages of one datagram; a remainder counts as malformed.

        Parameters
        ----------
        data : bytes
            The datagram.

        Returns
        -------
        list[Any]
            The messages.
        """
        result = self.feed(data)
        if self._incomplete:
            self._incomplete.clear()
            self._refuse("malformed")
        return result

    def feed(self, data: bytes) -> list[Any]:
        """Return the messages that are complete with these bytes.

        It looks at as many possible begins of a frame as there are new bytes, and _EXTRA_BYTES more. It stores less
        than one frame unless it is behind.

        Parameters
        ----------
        data : bytes
            New bytes of the stream.

        Returns
        -------
        list[Any]
            The messages.
        """
        remaining, old = self._incomplete, len(self._incomplete)
        remaining += data
        result: list[Any] = []
        at, end, left, skipped = 0, len(remaining), len(data) + _EXTRA_BYTES, False
        while at < end and left > 0:
            if remaining[at] not in (V1, V2):
                begin = _BEGIN.search(remaining, at)
                at, left, skipped = begin.start() if begin else end, left - 1, True
                continue
            size = _size(remaining, at)
            if size == 0 or at + size > end:
                break
            reason = self._fault(remaining, at, size) or self._accept_frame(bytes(remaining[at : at + size]), result)
            if reason == "malformed":
                skipped = True
            elif reason:
                self._refuse(reason)
            step = 1 if reason in _HIDING else size
            left -= step if at else max(0, step - old)
            at += step
        if skipped:
            self._refuse("malformed")
        del remaining[:at]
        self.behind = left <= 0 and at < end
        return result

    def _fault(self, data: bytearray, at: int, size: int) -> str:
        """Return the cheaply found fault of the whole frame at a place; empty for none."""
        number = data[at + 5] if data[at] == V1 else int.from_bytes(data[at + 7 : at + 10], "little")
        if data[at + 1] > self._longest.get(number, 255):
            return "malformed"
        if data[at] == V2 and data[at + 2] & ~_SIGNED:
            return "flags"
        if number not in self._extra:
            return "unknown"
        signature = _SIGNATURE if data[at] == V2 and data[at + 2] & _SIGNED else 0
        return "" if _intact(data[at : at + size - signature], self._extra[number]) else "crc"

    def _accept_frame(self, frame: bytes, result: list[Any]) -> str:
        """Decode an intact frame and append its message, or return its fault."""
        try:
            message = self._decode(bytearray(frame))
        except self._error:
            return "crc"
        except (ValueError, IndexError, TypeError):
            return "malformed"
        signed = frame[0] == V2 and frame[2] & _SIGNED
        if self._signing is not None and not (signed and self._signing.accepts(frame)):
            return "signature"
        result.append(message)
        return ""


def _size(data: bytearray, at: int) -> int:
    """Return the length of the frame at a place; 0 while that is unknown."""
    left = len(data) - at
    if data[at] == V1:
        return data[at + 1] + 8 if left > 1 else 0
    if left < 3:
        return 0
    return data[at + 1] + 12 + (_SIGNATURE if data[at + 2] & _SIGNED else 0)


def _intact(frame: bytearray, extra: bytes) -> bool:
    """Return whether the checksum at the end of a frame without signature is right: CRC-16/MCRF4XX.

    It is the mirror of binascii's CRC. pymavlink computes its own byte by byte in Python. If each byte of a stranger's
    could begin a frame of 255, one byte would cost as much as 255.
    """
    result = crc_hqx((frame[1:-2] + extra).translate(_MIRRORED), 0xFFFF)
    return frame[-2:].translate(_MIRRORED) == result.to_bytes(2, "big")


class Signing:
    """Signatures with one shared key: 48 bits of SHA-256, and a time that must rise from frame to frame.

    Parameters
    ----------
    key : bytes
        32 bytes.
    link_id : int, default 0
        Id of our link.

    Raises
    ------
    ModelError
        If the key has another length.
    """

    def __init__(self, key: bytes, link_id: int = 0) -> None:
        if len(key) != 32:
            raise ModelError(f"a signing key has 32 bytes, got {len(key)}")
        self._key, self._link = key, link_id
        self._newest: dict[tuple[int, int, int], int] = {}
        self._sent = 0

    def accepts(self, frame: bytes) -> bool:
        """Return whether a whole signed frame has a valid signature, and is newer than all from its sender.

        Parameters
        ----------
        frame : bytes
            The frame.

        Returns
        -------
        bool
            True if it has.
        """
        expected = hashlib.sha256(self._key + frame[:-6]).digest()[:6]
        if not hmac.compare_digest(expected, frame[-6:]):
            return False
        stream = (frame[-13], frame[5], frame[6])
        stamp = int.from_bytes(frame[-12:-6], "little")
        least = self._newest.get(stream, max(self._now(), *self._newest.values(), 0) - _MAX_LATE_10_US)
        if stamp <= least or (stream not in self._newest and len(self._newest) >= _MAX_STREAMS):
            return False
        self._newest[stream] = stamp
        return True

    def stamp(self, mav: Any) -> None:
        """Prepare an instance of pymavlink's MAVLink for its next message: key, and a time after the last.

        Parameters
        ----------
        mav : Any
            The instance.
        """
        self._sent = max(self._sent + 1, self._now())
        signing = mav.signing
        signing.secret_key, signing.sign_outgoing = self._key, True
        signing.link_id, signing.timestamp = self._link, self._sent

    @staticmethod
    def _now() -> int:
        return int((time() - _EPOCH_S) * 1e5)


class Writer:
    """Writer of numbered MAVLink 2 messages of one system and component, signed if there is a key.

    Parameters
    ----------
    system, component : int
        Our ids.
    signing : Signing | None, optional
        Signatures; None for none.
    """

    def __init__(self, system: int, component: int, signing: Signing | None = None) -> None:
        from pymavlink.dialects.v20 import common

        self._mav = common.MAVLink(None, system, component)
        self._signing = signing

    def pack(self, message: Any) -> bytes:
        """Return the bytes of a message.

        Parameters
        ----------
        message : Any
            The message.

        Returns
        -------
        bytes
            The frame.
        """
        mav = self._mav
        if self._signing is not None:
            self._signing.stamp(mav)
        packed = bytes(message.pack(mav))
        mav.seq = (mav.seq + 1) % 256
        return packed


MAX_KEY_BYTES = 4096


def read_key(path: str) -> bytes:
    """Return the signing key of a file: 64 hexadecimal digits, or any other text, with its SHA-256 as the key.

    Ground stations make a key of a pass phrase in the latter way.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    bytes
        32 bytes.

    Raises
    ------
    ModelError
        If others may read the file, or if it is empty.
    """
    with open_input(os.path.expanduser(path), expected="a file of a key", max_bytes=MAX_KEY_BYTES) as file:
        if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise ModelError(f"{path}: others may read this key: chmod 600 {path}")
        text = file.read(MAX_KEY_BYTES).strip()
    if not text:
        raise ModelError(f"{path}: expected a key, got an empty file")
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    return key if len(key) == 32 else hashlib.sha256(text).digest()


def fuzz_stream(means: Callable[[Any], object], signing: Signing | None = None) -> Callable[[bytes], str]:
    """Return a parser for fuzz tests that reads frames as datagrams and as pieces of one long stream, in turns.

    Parameters
    ----------
    means : Callable[[Any], object]
        Function of a message, which may raise Refusal.
    signing : Signing | None, optional
        Required signatures; None for none.

    Returns
    -------
    Callable[[bytes], str]
        Function from bytes to the reason of the refusal, or 'taken'.
    """
    reasons: list[str] = []
    stream, single = Reader(reasons.append, signing), Reader(reasons.append, signing)
    turns = cycle((stream.feed, single.datagram))

    def read(data: bytes) -> str:
        """Return the result for a piece of bytes.

        Parameters
        ----------
        data : bytes
            The bytes.

        Returns
        -------
        str
            Reason of the first refusal, or 'taken'.
        """
        reasons.clear()
        for message in next(turns)(data):
            try:
                means(message)
            except Refusal as refusal:
                reasons.append(refusal.reason)
        return reasons[0] if reasons else "taken"

    return read
