"""A device on a pseudo-terminal, with its own COBS and CRC; bytes lost and flipped; unplugged and plugged in again."""

from __future__ import annotations

import contextlib
import os
import random
import struct
import time
import tty
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.untrusted import Refusal
from rtmms_bridges.lines.framing import Deframer, Line, decode, encode, longest
from rtmms_bridges.lines.packing import Packed
from rtmms_bridges.serial import Serial
from tests.bridges.harness import Companion, wait
from tests.wire.bench import Host

pytestmark = pytest.mark.full

STATE = tuple(Packed.from_word(word, "") for word in ("seq:u16", "step:u32", "position[1]:f32", "time:f64"))
OUT = struct.Struct("<HIfd")
COMMAND = tuple(Packed.from_word(word, "") for word in ("=171:u8", "seq:u8", "1:i16:1000"))
IN = struct.Struct("<BBh")
FRONT = ChannelMapping(channel="1", actuator="left.front")


def crc(data: bytes) -> int:
    """CRC-16/IBM-3740, bit by bit."""
    register = 0xFFFF
    for byte in data:
        register ^= byte << 8
        for _ in range(8):
            register = ((register << 1) ^ 0x1021 if register & 0x8000 else register << 1) & 0xFFFF
    return register


def stuff(data: bytes) -> bytes:
    """COBS, as its paper has it."""
    out, at = bytearray(), 0
    blocks = data.split(b"\0")
    for i, block in enumerate(blocks):
        at = 0
        while len(block) - at >= 254:
            out += b"\xff" + block[at : at + 254]
            at += 254
            if at == len(block) and i == len(blocks) - 1:
                return bytes(out)
        out += bytes((len(block) - at + 1,)) + block[at:]
    return bytes(out)


def unstuff(frame: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(frame):
        code = frame[at]
        out += frame[at + 1 : at + code]
        at += code
        if code < 255 and at < len(frame):
            out += b"\0"
    return bytes(out)


class Device:
    """The other end of a line: a pseudo-terminal behind a name, which can be taken away and put back."""

    def __init__(self, name: Path) -> None:
        self.name, self.seq, self.remainder = name, 0, b""
        self.bad = 0
        self.plug()

    def plug(self) -> None:
        self.master, self._slave = os.openpty()
        tty.setraw(self.master)
        os.set_blocking(self.master, False)
        self.name.symlink_to(os.ttyname(self._slave))
        self.remainder = b""

    def unplug(self) -> None:
        self.name.unlink()
        os.close(self.master)
        os.close(self._slave)

    def read(self) -> bytes:
        try:
            return os.read(self.master, 65536)
        except BlockingIOError:
            return b""

    def receive(self, spoil: Callable[[bytes], bytes] = bytes) -> list[tuple[Any, ...]]:
        """The states that have come."""
        *frames, self.remainder = (self.remainder + spoil(self.read())).split(b"\0")
        result = []
        for frame in filter(None, frames):
            data = unstuff(frame)
            if len(data) == OUT.size + 2 and crc(data[:-2]) == int.from_bytes(data[-2:], "little"):
                result.append(OUT.unpack(data[:-2]))
            else:
                self.bad += 1
        return result

    def frame(self, value: float) -> bytes:
        self.seq = (self.seq + 1) % 256
        payload = IN.pack(171, self.seq, round(1000 * value))
        return stuff(payload + crc(payload).to_bytes(2, "little")) + b"\0"

    def send(self, data: bytes) -> None:
        """All of it, in what pieces the line takes."""
        while data:
            try:
                data = data[os.write(self.master, data) :]
            except BlockingIOError:
                time.sleep(1e-3)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    device = Device(tmp_path / "line")
    yield device
    if device.name.is_symlink():
        device.unplug()


def serial(device: Device, **more: Any) -> Serial:
    stored = {"baud": 1_000_000, "state_fields": STATE, "command_fields": COMMAND, "channels": (FRONT,)}
    return Serial(device=str(device.name), **stored | more)


# -- frames ----------------------------------------------------------------------------------------------------------


def test_frames_are_what_the_page_states() -> None:
    assert crc(b"123456789") == 0x29B1
    noise = random.Random(1)
    for size in (1, 2, 5, 100, 251, 252, 253, 254, 255, 300, 507, 508, 509, 1000):
        for zeros in (0.0, 0.3, 1.0):
            payload = bytes(0 if noise.random() < zeros else noise.randrange(1, 256) for _ in range(size))
            frame = encode(payload)
            assert frame == stuff(payload + crc(payload).to_bytes(2, "little")) + b"\0"
            assert frame.count(0) == 1
            assert len(frame) <= longest(size)
            assert decode(frame[:-1]) == payload == unstuff(frame[:-1])[:-2]


@pytest.mark.parametrize(("frame", "reason"), [(b"\x05ab", "cobs"), (b"\x03ab", "short"), (b"\x05abcd", "crc")])
def test_what_is_no_frame_is_refused(frame: bytes, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode(frame)
    assert refused.value.reason == reason


def test_a_stream_in_pieces_with_a_beginning_that_was_missed() -> None:
    reasons: list[str] = []
    deframer = Deframer(8, reasons.append)
    stream = b"half a frame\0" + b"".join(encode(bytes((i, 0, i))) for i in range(1, 100))
    result = [payload for at in range(0, len(stream), 3) for payload in deframer.feed(stream[at : at + 3])]
    assert result == [bytes((i, 0, i)) for i in range(1, 100)]
    assert reasons == []


def test_a_line_that_never_ends_is_not_kept() -> None:
    reasons: list[str] = []
    deframer = Deframer(8, reasons.append)
    deframer.feed(b"\0")
    for _ in range(100):
        deframer.feed(b"\x55" * 1000)
        assert len(deframer._incomplete) == 0
    assert reasons == ["oversize"]
    deframer.feed(b"\0")
    assert deframer.feed(encode(b"good")) == [b"good"]


def test_the_line_carries_what_it_carries() -> None:
    line = Line(9600, 10)
    assert line.free(0.0)
    line.sent(96, 1.0)
    assert not line.free(1.09)
    assert line.free(1.1001)
    line.sent(96, 5.0)
    line.sent(96, 5.0)  # what goes on top has to wait for what is there
    assert not line.free(5.19)
    assert line.free(5.2001)
    assert line.time_s(960) == pytest.approx(1.0)


# -- both ways ---------------------------------------------------------------------------------------------------------


def test_states_out_and_commands_in(device: Device, make_host: Callable[..., Host]) -> None:
    with Companion(serial(device), make_host) as extra:
        states = [state for _ in range(3) for state in wait(device.receive)]
        for seq, step, _, at in states:
            assert at == pytest.approx(step * 1e-3)
            assert seq == states[0][0] + states.index((seq, step, _, at))
        device.send(b"\0" + device.frame(0.5))
        wait(lambda: extra.command[0] == 0.5)
        device.seq += 3
        device.send(device.frame(-0.25))
        wait(lambda: extra.command[0] == -0.25)
        assert extra.bridged.counts["commands_missed"] == 3
        wrong = IN.pack(170, 1, 900)
        device.send(stuff(wrong + crc(wrong).to_bytes(2, "little")) + b"\0" + b"\x05no\0" + b"x" * 50 + b"\0")
        wait(lambda: set(extra.bridged.counts.reasons()) == {"mark", "cobs", "oversize"})
        assert extra.command[0] == -0.25


def test_bytes_lost_and_flipped_never_pass_for_a_message(device: Device, make_host: Callable[..., Host]) -> None:
    noise = random.Random(3)

    def spoil(data: bytes) -> bytes:
        spoilt = bytearray()
        for byte in data:
            fate = noise.random()
            if fate > 0.02:
                spoilt.append(byte)
            elif fate > 0.01:
                spoilt.append(byte ^ 1 << noise.randrange(8))
        return bytes(spoilt)

    observed: list[float] = []
    with Companion(serial(device, channels=(FRONT,)), make_host) as extra:
        bridge = extra.bridged.bridge
        take = bridge.command
        bridge.command = lambda values: (observed.append(values["left.front"]), take(values))  # type: ignore
        output = {round(0.001 * n, 3) for n in range(1000)}
        wait(device.receive)
        device.send(b"\0")
        for n in range(1000):
            device.send(spoil(device.frame(0.001 * n)))
        wait(lambda: device.receive(spoil))
        wait(lambda: extra.bridged.counts["received"] + extra.bridged.counts["refused"] > 800)
        states = [state for _ in range(20) for state in wait(lambda: device.receive(spoil))]
    assert extra.bridged.counts["received"] > 500
    assert extra.bridged.counts["refused"] > 50
    assert {round(value, 3) for value in observed} <= output
    assert all(at == pytest.approx(step * 1e-3) for _, step, _, at in states)


def test_no_more_than_the_line_carries_and_the_newest_first(device: Device, make_host: Callable[..., Host]) -> None:
    """However slow this machine is, what comes out is no more than 480 bytes a second, and a frame in the air."""
    with Companion(serial(device, baud=4800), make_host) as extra:
        wait(lambda: extra.bridged.counts["states"] > 20)
        began, count, steps = time.monotonic(), 0, []
        device.read()
        while len(steps) < 15:
            before = len(device.remainder)
            result = device.receive()
            count += len(device.remainder) - before + len(result) * 22
            steps += [step for _, step, _, _ in result]
            lasted = time.monotonic() - began
            assert count <= 480 * lasted + 2 * longest(OUT.size)
            time.sleep(1e-3)
        assert extra.bridged.counts["dropped"] > 0
        assert extra.bridged.counts["dropped"] + extra.bridged.counts["sent"] <= extra.bridged.counts["states"]
        assert all(b > a for a, b in pairwise(steps))
        assert max(b - a for a, b in pairwise(steps)) > 1


def test_a_device_that_does_not_read(device: Device, make_host: Callable[..., Host]) -> None:
    """The terminal's buffer fills: states are dropped, nothing else."""
    bridge = serial(device, baud=100_000_000)
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["dropped"] > 20)
        device.send(b"\0" + device.frame(0.5))
        wait(lambda: extra.command[0] == 0.5)
        wait(device.receive)


def spoken(device: Device, value: float) -> bool:
    """A command, where there is room for it."""
    with contextlib.suppress(BlockingIOError):
        os.write(device.master, b"\0" + device.frame(value))
    return True


def test_noise_without_end_costs_no_state_and_no_memory(device: Device, make_host: Callable[..., Host]) -> None:
    chance, sent, received = random.Random(7), 0, 0
    kinds = (lambda: chance.randbytes(4096), lambda: bytes(512), lambda: b"\1" * 4096, lambda: device.frame(0.9)[:-3],
             lambda: device.frame(0.1) * 40)  # fmt: skip
    bridge = serial(device)
    with Companion(bridge, make_host) as extra:
        wait(device.receive)
        while sent < 1 << 18:
            try:
                sent += os.write(device.master, chance.choice(kinds)())
            except BlockingIOError:  # what the bridge has not taken waits in the kernel
                time.sleep(0.001)
            received += len(device.receive())
            assert len(bridge._deframer._incomplete) < 4096
        device.receive()
        wait(lambda: bool(device.receive()))  # the plant's states still come
        wait(lambda: spoken(device, 0.25) and extra.command[0] == 0.25)
        assert extra.bridged.fault is None
        reasons = extra.bridged.counts.reasons()
    assert received > 0
    assert reasons.keys() >= {"cobs", "oversize"}


# -- silence, and unplugging -----------------------------------------------------------------------------------------


def test_unplugged_and_plugged_in_again(device: Device, make_host: Callable[..., Host]) -> None:
    with Companion(serial(device), make_host) as extra:
        wait(device.receive)
        device.send(b"\0" + device.frame(0.5))
        wait(lambda: extra.command[0] == 0.5)
        device.unplug()
        wait(lambda: extra.bridged.counts["unplugged"] == 1)
        wait(lambda: extra.command[0] == 0.0)
        device.plug()
        wait(device.receive)
        device.send(b"\0" + device.frame(0.25))
        wait(lambda: extra.command[0] == 0.25)
        assert extra.bridged.counts["connections"] == 2


def test_a_device_that_is_not_there_at_first(device: Device, make_host: Callable[..., Host]) -> None:
    device.unplug()
    with Companion(serial(device, peer_lost="hold"), make_host) as extra:
        wait(lambda: any("trying again" in line for line in extra.bridged.messages))
        device.plug()
        wait(device.receive)
        device.send(b"\0" + device.frame(0.5))
        wait(lambda: extra.command[0] == 0.5)
        device.unplug()
        wait(lambda: extra.bridged.counts["unplugged"] == 1)
        states = extra.bridged.counts["states"]
        wait(lambda: extra.bridged.counts["states"] > states + 5)
        assert extra.command[0] == 0.5
    assert sum("trying again" in line for line in extra.bridged.messages) == 2


def test_a_silent_device_is_lost(device: Device, make_host: Callable[..., Host]) -> None:
    with Companion(serial(device, peer_timeout_s=1.0), make_host) as extra:
        wait(device.receive)
        device.send(b"\0" + device.frame(0.5))
        wait(lambda: extra.drove(0.5))
        wait(lambda: extra.command[0] == 0.0)
        assert any("the peer has been silent" in line for line in extra.bridged.messages)


def test_a_silent_plant_and_the_safe_values(device: Device, make_host: Callable[..., Host]) -> None:
    bridge = serial(device, watchdog_periods=50, safe={"position[1]": -7.0})
    with Companion(bridge, make_host) as extra:
        wait(device.receive)
        safe: list[Any] = []
        extra.running.errands.append(lambda: wait(lambda: safe))  # the plant's thread stands still
        safe += wait(lambda: [state for state in device.receive() if state[2] == -7.0])
        wait(lambda: [state for state in device.receive() if state[2] != -7.0])
    wait(lambda: [state for state in device.receive() if state[2] == -7.0])  # and at the end


def test_the_first_frame_of_a_line_is_taken_if_it_is_whole() -> None:
    reasons: list[str] = []
    assert Deframer(8, reasons.append).feed(encode(b"first") + encode(b"second")) == [b"first", b"second"]
    assert reasons == []


# -- what is configured ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "output"),
    [
        ({"baud": 0}, "baud"),
        ({"device": ""}, "device: expected a serial device"),
        ({"device": "pyproject.toml"}, "device: expected a serial device, got 'pyproject.toml'"),
        ({"peer_timeout_s": -1.0}, "peer_timeout_s"),
        ({"safe": {"speed": 1.0}}, "not a field of state_fields"),
        ({"paced": True, "channels": ()}, "expected a claim"),
        ({"command_fields": ()}, "command_fields: expected at least one"),
    ],
)
def test_words_that_make_no_sense(parts: dict[str, Any], output: str) -> None:
    stored = {"device": "/dev/null", "state_fields": STATE, "command_fields": COMMAND, "channels": (FRONT,)}
    with pytest.raises(rtmms.ModelError, match=output):
        Serial(**stored | parts)  # type: ignore[arg-type]


def test_a_channel_that_nobody_has(device: Device, make_host: Callable[..., Host]) -> None:
    with Companion(serial(device, claim=("left.*",), channels=()), make_host) as extra:
        wait(lambda: extra.bridged.fault)
    assert "channel of command_fields '1'" in str(extra.bridged.fault)
