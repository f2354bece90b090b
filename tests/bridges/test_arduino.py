"""The Arduino sketch, built for this machine: its frames are the bridge's own, and it drives a plant through it."""

from __future__ import annotations

import math
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rtmms.bridging.config import construct
from rtmms_bridges.lines.framing import Deframer, encode
from rtmms_bridges.serial import Serial
from tests.bridges.harness import Companion, wait
from tests.bridges.test_serial import Device
from tests.cli.shell import ROOT
from tests.wire.bench import Host

pytest.importorskip("serial", reason="needs pip install 'rtmms[serial]'")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform == "win32", reason="needs file descriptors that a process inherits"),
]

SKETCH = ROOT / "examples" / "arduino" / "manta_gait" / "manta_gait.ino"
CONFIG = SKETCH.with_name("serial.toml")
BOARD = Path(__file__).with_name("arduino")
STATE = struct.Struct("<BIIfB")
COMMAND = struct.Struct("<BBI4h")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sketch and a board's stand-in as a program; built without a warning."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++: needed to build the sketch")
    created = tmp_path_factory.mktemp("arduino") / "board"
    arguments = [
        "-std=gnu++17",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{BOARD}",
        str(BOARD / "board.cpp"),
        "-x",
        "c++",
    ]
    built = subprocess.run(
        [compiler, *arguments, str(SKETCH), "-o", str(created)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return created


class Running:
    """A board with its line on one end of a pair of sockets."""

    def __init__(self, program: Path) -> None:
        self.line, theirs = socket.socketpair()
        parts = [str(program), str(theirs.fileno())]
        self.process = subprocess.Popen(parts, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, text=True)
        theirs.close()
        self.line.settimeout(20.0)
        self.faults: list[str] = []
        self.deframer = Deframer(COMMAND.size, self.faults.append)
        assert self.line.recv(1) == b"\0"  # what it begins with

    def answers(self, count: int) -> list[tuple[Any, ...]]:
        result: list[tuple[Any, ...]] = []
        while len(result) < count:
            result += [COMMAND.unpack(payload) for payload in self.deframer.feed(self.line.recv(4096))]
        return result

    def end(self) -> str:
        self.line.close()
        output, _ = self.process.communicate(timeout=20)
        assert self.process.returncode == 0
        return output


@pytest.fixture
def running(board: Path) -> Iterator[Running]:
    built = Running(board)
    yield built
    built.line.close()
    built.process.kill()
    built.process.communicate()


def state(step: int, time_ms: int, height: float = 0.0, ok: int = 1, mark: int = 82) -> bytes:
    return encode(STATE.pack(mark, step, time_ms, height, ok))


def test_each_state_has_its_answer(running: Running) -> None:
    """Zeros in the payload and all; the angles are the sketch's law of the state's time and height."""
    values = [(k * 2_097_152, 97 * k, 0.1 * k - 0.5) for k in range(40)]
    running.line.sendall(b"".join(state(*item) for item in values))
    for k, ((mark, seq, step, *angles), (asked, time_ms, height)) in enumerate(
        zip(running.answers(40), values, strict=True)
    ):
        assert (mark, seq, step) == (171, k, asked)
        soft, cycle = min(1.0, time_ms / 1000), 2.0 * math.pi * (time_ms % 2000) / 2000
        bias = max(-0.15, min(0.15, 0.3 * height))
        front, back = (soft * 0.5 * math.sin(cycle + lead) + bias for lead in (0.7, 0.0))
        assert angles == pytest.approx([1e3 * front, 1e3 * back] * 2, abs=0.51)
    assert running.faults == []
    assert "LED 1" in running.end().split("\n")  # dark before the first state only where a loop went by without one


def test_what_is_broken_costs_the_frame_it_is_in(running: Running) -> None:
    flipped = bytearray(state(2, 2))
    flipped[3] ^= 0x10
    wrong = [
        b"half a frame\0", bytes(flipped), b"\x05ab\0", b"\0\0\0", b"x" * 300 + b"\0",
        encode(b"short"), encode(b"y" * 17),
        state(3, 3, mark=83), state(4, 4, ok=0), state(5, 5)[:-4] + b"\0", b"\xff" * 19 + b"\0",
    ]  # fmt: skip
    for junk in wrong:
        running.line.sendall(junk)
    running.line.sendall(state(6, 6))
    for junk in wrong:
        running.line.sendall(junk + state(7, 7))
    got = running.answers(1 + len(wrong))
    assert [(seq, step) for _, seq, step, *_ in got] == [(0, 6), *((k + 1, 7) for k in range(len(wrong)))]
    assert running.faults == []


@pytest.mark.parametrize("paced", [False, True])
def test_it_drives_a_plant_through_the_bridge(
    board: Path, paced: bool, tmp_path: Path, make_host: Callable[..., Host]
) -> None:
    """With the configuration that stands beside it, over a pseudo-terminal."""
    device = Device(tmp_path / "line")
    parts = {"config": str(CONFIG), "device": str(device.name), "peer_timeout_s": "5", "paced": str(paced).lower()}
    os.set_blocking(device.master, True)
    program = subprocess.Popen([str(board), str(device.master)], pass_fds=[device.master], stdout=subprocess.DEVNULL)
    try:
        with Companion(construct(Serial, "bridge", "serial", parts), make_host) as extra:
            wait(lambda: extra.bridged.counts["received"] > 20)
            wait(lambda: max(map(abs, extra.command)) > 0.02)
            newest = extra.commands[-1]
            assert newest[0] == newest[2]
            assert extra.bridged.counts["refused"] == 0
    finally:
        program.kill()
        program.wait()
        device.unplug()
