"""MAVLink frames out of a damaged stream, and signatures."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pymavlink.dialects.v20 import common

from rtmms.base.errors import ModelError
from rtmms_bridges.autopilot import mavframes
from rtmms_bridges.autopilot.mavframes import Reader, Signing, Writer, read_key
from tests.lines_of_python import Lines, excess

pytestmark = pytest.mark.full

KEY = bytes(range(32))


def axes(x: int) -> Any:
    return common.MAVLink_manual_control_message(1, x, 0, 0, 0, 0)


@pytest.fixture
def reasons() -> list[str]:
    return []


@pytest.fixture
def reader(reasons: list[str]) -> Reader:
    return Reader(reasons.append)


def test_a_stream_in_pieces_of_any_size(reader: Reader, reasons: list[str]) -> None:
    writer = Writer(255, 190)
    stream = b"".join(writer.pack(axes(x)) for x in range(300))
    cut, result, at = random.Random(1), [], 0
    while at < len(stream):
        size = cut.randint(1, 40)
        result += reader.feed(stream[at : at + size])
        at += size
    assert [message.x for message in result] == list(range(300))
    assert [message.get_seq() for message in result] == [i % 256 for i in range(300)]
    assert reasons == []


def test_version_1_is_read_too(reader: Reader) -> None:
    assert reader.feed(axes(7).pack(common.MAVLink(None, 255, 190), force_mavlink1=True))[0].x == 7


def test_a_broken_length_costs_that_frame_alone(reader: Reader, reasons: list[str]) -> None:
    writer = Writer(255, 190)
    frames = [bytearray(writer.pack(axes(x))) for x in range(30)]
    frames[3][1] = 200  # it promises more than there is: the next ones lie within it
    result = [message.x for frame in frames for message in reader.feed(bytes(frame))]
    assert result == [0, 1, 2, *range(4, 30)]
    assert set(reasons) <= {"crc", "malformed"}
    assert reasons


def test_bytes_flipped_and_lost(reader: Reader, reasons: list[str]) -> None:
    writer, noise = Writer(255, 190), random.Random(2)
    sent, result = 2000, []
    for x in range(sent):
        frame = bytearray(writer.pack(axes(x % 1000)))
        if x % 10 == 0:
            frame[noise.randrange(len(frame))] ^= 1 << noise.randrange(8)
        if x % 10 == 5:
            del frame[noise.randrange(len(frame))]
        result += reader.feed(bytes(frame))
    assert len(result) > 0.75 * sent
    assert {message.x % 10 for message in result} <= {1, 2, 3, 4, 6, 7, 8, 9, 0, 5}
    assert {"crc", "malformed"} <= set(reasons)


def test_a_stream_without_end_is_not_kept(reader: Reader) -> None:
    for _ in range(2000):
        reader.feed(b"\xfd\xff\x00" * 100)
        assert len(reader._incomplete) < 300


def test_a_datagram_stands_alone(reader: Reader, reasons: list[str]) -> None:
    frame = Writer(255, 190).pack(axes(1))
    assert reader.datagram(frame[:-4]) == []
    assert reasons == ["malformed"]
    assert len(reader.datagram(frame + frame)) == 2


def test_unknown_messages_and_flags_are_reported(reader: Reader, reasons: list[str]) -> None:
    frame = bytearray(Writer(255, 190).pack(axes(1)))
    unknown = bytes(frame[:7]) + b"\xff\xff\xff" + bytes(frame[10:])
    assert reader.feed(unknown) == []
    frame[2] = 0x80
    assert reader.datagram(bytes(frame)) == []
    assert reasons[:2] == ["unknown", "flags"]


# -- signatures ------------------------------------------------------------------------------------------------------


@pytest.fixture
def strict(reasons: list[str]) -> Reader:
    return Reader(reasons.append, Signing(KEY))


def test_signed_by_us_and_read_by_pymavlink() -> None:
    writer = Writer(1, 1, Signing(KEY))
    other = common.MAVLink(None)
    other.signing.secret_key = KEY
    for x in range(3):
        message = other.parse_char(writer.pack(axes(x)))
        assert message is not None
        assert message.get_signed()


def test_signed_by_pymavlink_and_read_by_us(strict: Reader, reasons: list[str]) -> None:
    other = common.MAVLink(None, 255, 190)
    other.signing.secret_key, other.signing.sign_outgoing, other.signing.link_id = KEY, True, 3
    other.signing.timestamp = Signing._now()
    assert [message.x for x in range(3) for message in strict.feed(axes(x).pack(other))] == [0, 1, 2]
    assert reasons == []


@pytest.mark.parametrize("wrong", ["unsigned", "key", "bit", "again", "old"])
def test_what_is_not_rightly_signed_is_refused(strict: Reader, reasons: list[str], wrong: str) -> None:
    good = Writer(255, 190, Signing(KEY))
    first = good.pack(axes(0))
    assert strict.feed(first)
    if wrong == "unsigned":
        frame = Writer(255, 190).pack(axes(1))
    elif wrong == "key":
        frame = Writer(255, 190, Signing(bytes(32))).pack(axes(1))
    elif wrong == "bit":
        broken = bytearray(good.pack(axes(1)))
        broken[-1] ^= 1
        frame = bytes(broken)
    elif wrong == "again":
        frame = first
    else:  # a stream that is new, and two minutes late
        late = Signing(KEY, link_id=9)
        late._now = lambda: Signing._now() - 12_000_000  # type: ignore[method-assign]
        frame = Writer(255, 190, late).pack(axes(1))
    assert strict.feed(frame) == []
    assert reasons == ["signature"]
    assert strict.feed(good.pack(axes(2)))


def test_a_forged_time_does_not_shut_the_right_sender_out(strict: Reader) -> None:
    good = Writer(255, 190, Signing(KEY))
    forged = bytearray(good.pack(axes(0)))
    forged[-12:-6] = b"\xff" * 6
    assert strict.feed(bytes(forged)) == []
    assert strict.feed(good.pack(axes(1)))


def test_senders_are_not_counted_without_end() -> None:
    signing = Signing(KEY)
    for system in range(256):
        Reader(lambda reason: None, signing).feed(Writer(system, 1, Signing(KEY)).pack(axes(0)))
    assert len(signing._newest) == 64


def test_keys_in_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY.hex() + "\n")
    file.chmod(0o600)
    assert read_key(str(file)) == KEY
    file.write_text("a pass phrase\n")
    assert len(read_key(str(file))) == 32
    file.chmod(0o644)
    with pytest.raises(ModelError, match="chmod 600"):
        read_key(str(file))
    with pytest.raises(ModelError, match="there is no such file"):
        read_key(str(tmp_path / "none"))
    file.write_text("")
    file.chmod(0o600)
    with pytest.raises(ModelError, match="empty"):
        read_key(str(file))


@pytest.mark.parametrize("head", [b"\xfd", b"\xfe", b"\xfe\xf8", b"\xfe\x6e", b"\xfd\x6e\x00"])
def test_work_by_the_byte_where_each_byte_could_begin_a_frame(head: bytes) -> None:
    reader, stranger, lines = Reader(lambda reason: None), (head * 4096)[:4096], Lines()
    lines.call(reader.feed, stranger)
    assert excess(lines.count, len(stranger)) <= 0


def nested() -> bytes:
    """A broken frame of 262 bytes in which each second byte begins one of 118, and a good one."""
    result = b"\xfe\xfe\x00\x00\x00\x6e" + 60 * b"\xfe\x6e" + Writer(255, 190).pack(axes(7))
    return result + bytes(262 - len(result))


def test_work_by_the_byte_where_one_byte_shows_that_many_frames_are_none(reader: Reader) -> None:
    stranger, lines, result = nested(), Lines(), []
    for i in range(20 * len(stranger)):
        at = i % len(stranger)
        result += lines.call(reader.feed, stranger[at : at + 1])  # type: ignore[arg-type, operator]
        assert excess(lines.count, 1) <= 0
    while reader.behind:
        result += reader.feed(b"")
    assert len(reader._incomplete) < 280
    assert len(result) >= 18


@pytest.mark.parametrize("piece", [3, 42, 130, 263])
def test_work_by_the_byte_of_pieces_of_any_size(reader: Reader, piece: int) -> None:
    stranger, lines = nested() + b"\xfd" * 300 + b"\xfe\x6e" * 200, Lines()
    for at in range(0, 20 * piece, piece):
        data = (stranger * 9)[at : at + piece]
        lines.call(reader.feed, data)
        assert excess(lines.count, piece) <= 0


def test_all_at_once_or_byte_by_byte_it_is_the_same() -> None:
    noise, once, many = random.Random(3), Reader(lambda reason: None), Reader(lambda reason: None)
    for x in range(200):
        frame = bytearray(nested() if x % 5 == 0 else Writer(255, 190).pack(axes(x)))
        frame[noise.randrange(len(frame))] ^= 1 << noise.randrange(8)
        all_at_once = once.feed(bytes(frame))
        while once.behind:
            all_at_once += once.feed(b"")
        by_bytes = [message for byte in frame for message in many.feed(bytes((byte,)))]
        while many.behind:
            by_bytes += many.feed(b"")
        assert [m.get_msgbuf() for m in all_at_once] == [m.get_msgbuf() for m in by_bytes]
        assert once._incomplete == many._incomplete


def test_the_quick_checksum_is_the_one_of_pymavlink() -> None:
    from pymavlink.dialects.v20 import common as of

    frame = bytearray(Writer(1, 1).pack(of.MAVLink_command_long_message(0, 0, 511, 0, 115, 5000, 0, 0, 0, 0, 0)))
    extra = bytes((of.MAVLink_command_long_message.crc_extra,))
    assert mavframes._intact(frame, extra)
    for at in range(1, len(frame)):
        frame[at] ^= 4
        assert not mavframes._intact(frame, extra)
        frame[at] ^= 4
