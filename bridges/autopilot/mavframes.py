"""MAVLink frames out of bytes that a stranger sent, and signatures as MAVLink 2 has them.

pymavlink decodes; finding frames and judging signatures is done here, because pymavlink's own reader keeps what it has
read for as long as a stream never falls silent, loses a good frame after each broken length, and notes a signature's
time before it knows whether the signature is right: one forged frame then shuts out the station that has the key.
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

V1, V2 = 0xFE, 0xFD
_SIGNED = 0x01
_SIGNATURE = 13
_MOST_STREAMS = 64
_BEHIND = 24
_HIDING = ("malformed", "flags", "crc")
"""Such a frame may have a broken length, which hides what follows."""
_BEGIN = re.compile(b"[\xfd\xfe]")
_EPOCH_S = 1420070400.0  # 2015-01-01, in units of 10 us
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_LATE = 6_000_000  # a stream that is new may be a minute late


class Reader:
    """Messages of the dialect out of a stream, or out of datagrams.

    refuse   gets the reason for each piece that is passed over: malformed, crc, unknown, flags, signature
    signing  whose signatures are asked for; None: frames with a signature are taken like those without
    behind   bytes were left for the next look, feed(b""): one byte can show that a frame of 280 was none,
             and each of the 280 may begin another one
    """

    behind = False

    def __init__(self, refuse: Callable[[str], None], signing: Signing | None = None) -> None:
        from pymavlink.dialects.v20 import common

        self._refuse, self._signing = refuse, signing
        self._decode = common.MAVLink(None).decode
        self._longest = {number: kind.unpacker.size for number, kind in common.mavlink_map.items()}
        self._extra = {number: bytes((kind.crc_extra,)) for number, kind in common.mavlink_map.items()}
        self._error = common.MAVError
        self._rest = bytearray()

    def datagram(self, data: bytes) -> list[Any]:
        """The messages of one datagram; what is left over of it counts as malformed."""
        found = self.feed(data)
        if self._rest:
            self._rest.clear()
            self._refuse("malformed")
        return found

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes. Looks at as many bytes that could begin a frame as came, and
        _BEHIND more. Keeps less than one frame, where it is not behind."""
        rest, old = self._rest, len(self._rest)
        rest += data
        found: list[Any] = []
        at, end, left, skipped = 0, len(rest), len(data) + _BEHIND, False
        while at < end and left > 0:
            if rest[at] not in (V1, V2):
                begin = _BEGIN.search(rest, at)
                at, left, skipped = begin.start() if begin else end, left - 1, True
                continue
            size = _size(rest, at)
            if size == 0 or at + size > end:
                break
            reason = self._fault(rest, at, size) or self._taken(bytes(rest[at : at + size]), found)
            if reason == "malformed":
                skipped = True
            elif reason:
                self._refuse(reason)
            step = 1 if reason in _HIDING else size
            left -= step if at else max(0, step - old)
            at += step
        if skipped:
            self._refuse("malformed")
        del rest[:at]
        self.behind = left <= 0 and at < end
        return found

    def _fault(self, data: bytearray, at: int, size: int) -> str:
        """What is wrong with the whole frame that begins there, found cheaply, '' for nothing."""
        number = data[at + 5] if data[at] == V1 else int.from_bytes(data[at + 7 : at + 10], "little")
        if data[at + 1] > self._longest.get(number, 255):
            return "malformed"
        if data[at] == V2 and data[at + 2] & ~_SIGNED:
            return "flags"
        if number not in self._extra:
            return "unknown"
        signature = _SIGNATURE if data[at] == V2 and data[at + 2] & _SIGNED else 0
        return "" if _intact(data[at : at + size - signature], self._extra[number]) else "crc"

    def _taken(self, frame: bytes, found: list[Any]) -> str:
        """Decode an intact frame and append its message; else what is wrong with it."""
        try:
            message = self._decode(bytearray(frame))
        except self._error:
            return "crc"
        except (ValueError, IndexError, TypeError):
            return "malformed"
        signed = frame[0] == V2 and frame[2] & _SIGNED
        if self._signing is not None and not (signed and self._signing.accepts(frame)):
            return "signature"
        found.append(message)
        return ""


def _size(data: bytearray, at: int) -> int:
    """Length of the frame that begins there, 0 while that cannot be known."""
    left = len(data) - at
    if data[at] == V1:
        return data[at + 1] + 8 if left > 1 else 0
    if left < 3:
        return 0
    return data[at + 1] + 12 + (_SIGNATURE if data[at + 2] & _SIGNED else 0)


def _intact(frame: bytearray, extra: bytes) -> bool:
    """Whether the checksum at the end of a frame without signature is right: CRC-16/MCRF4XX.

    It is the mirror of the CRC that binascii has. pymavlink takes its own byte by byte in Python: where each byte of a
    stranger's could begin a frame of 255, one byte would cost as much as 255.
    """
    found = crc_hqx((frame[1:-2] + extra).translate(_MIRRORED), 0xFFFF)
    return frame[-2:].translate(_MIRRORED) == found.to_bytes(2, "big")


class Signing:
    """Signatures with one shared key: 48 bits of SHA-256, and a time that must rise from frame to frame.

    key   32 bytes
    """

    def __init__(self, key: bytes, link_id: int = 0) -> None:
        if len(key) != 32:
            raise ModelError(f"a signing key has 32 bytes, got {len(key)}")
        self._key, self._link = key, link_id
        self._newest: dict[tuple[int, int, int], int] = {}
        self._sent = 0

    def accepts(self, frame: bytes) -> bool:
        """Is a whole signed frame rightly signed, and newer than all from its sender?"""
        expected = hashlib.sha256(self._key + frame[:-6]).digest()[:6]
        if not hmac.compare_digest(expected, frame[-6:]):
            return False
        stream = (frame[-13], frame[5], frame[6])
        stamp = int.from_bytes(frame[-12:-6], "little")
        least = self._newest.get(stream, max(self._now(), *self._newest.values(), 0) - _LATE)
        if stamp <= least or (stream not in self._newest and len(self._newest) >= _MOST_STREAMS):
            return False
        self._newest[stream] = stamp
        return True

    def stamp(self, mav: Any) -> None:
        """Prepares an instance of pymavlink's MAVLink for its next message: key, and a time after the last."""
        self._sent = max(self._sent + 1, self._now())
        signing = mav.signing
        signing.secret_key, signing.sign_outgoing = self._key, True
        signing.link_id, signing.timestamp = self._link, self._sent

    @staticmethod
    def _now() -> int:
        return int((time() - _EPOCH_S) * 1e5)


class Writer:
    """Bytes of messages, numbered, as MAVLink 2 from one system and component; signed where there is a key."""

    def __init__(self, system: int, component: int, signing: Signing | None = None) -> None:
        from pymavlink.dialects.v20 import common

        self._mav = common.MAVLink(None, system, component)
        self._signing = signing

    def pack(self, message: Any) -> bytes:
        mav = self._mav
        if self._signing is not None:
            self._signing.stamp(mav)
        packed = bytes(message.pack(mav))
        mav.seq = (mav.seq + 1) % 256
        return packed


MAX_KEY_BYTES = 4096


def read_key(path: str) -> bytes:
    """A signing key from a file: 64 hexadecimal digits, or any other text, whose SHA-256 is the key.

    The latter is how ground stations make a key of a pass phrase. ModelError for a file that others may read.
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
    """For the fuzz tests: the frames as datagrams and as pieces of one long stream, in turns."""
    reasons: list[str] = []
    stream, single = Reader(reasons.append, signing), Reader(reasons.append, signing)
    turns = cycle((stream.feed, single.datagram))

    def read(data: bytes) -> str:
        reasons.clear()
        for message in next(turns)(data):
            try:
                means(message)
            except Refusal as refusal:
                reasons.append(refusal.reason)
        return reasons[0] if reasons else "taken"

    return read
