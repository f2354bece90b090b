"""SIGKILL of a command leaves no process of it: workers, controllers, bridges, the display, the log's writer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.shell import start
from tests.ports import reserve_ports

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="the system has no signal at the end of a parent"),
]

SCENARIO = """robot = "pendulum"
duration = 20.0
[[controller]]
name = "swing"
[expect]
"final.angle" = ">= -100"
"""
LONG = ("--controller", "swing", "--duration", "20", "--vary", "damping=0.0:0.4:400")
COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "sweep": (("sweep", "pendulum", *LONG, "--threads", "2", "-o", "t.parquet"), 3),
    "envelope": (("envelope", "one.toml", "-o", "env", "--threads", "2", "--no-measure", "--seeds", "50"), 3),
    "envelope that measures": (("envelope", "one.toml", "-o", "env", "--threads", "2"), 2),
    "run": (("run", "pendulum", "--controller", "swing", "--bridge", "udp:bind_port={0}", "--log", "run.mcap",
             "--exchange", "tcp://127.0.0.1:*", "--duration", "600"), 3),
    "serve": (("serve", "pendulum", "--bridge", "udp:bind_port={0}", "--bridge", "udp:bind_port={1}", "--exchange",
               "tcp://127.0.0.1:*"), 2),
}  # fmt: skip
"""Words, and how many processes they have at least while they are at work."""


@pytest.mark.parametrize("name", COMMANDS)
def test_no_process_of_a_killed_command_is_left(tmp_path: Path, name: str) -> None:
    (tmp_path / "one.toml").write_text(SCENARIO)
    parts, count = COMMANDS[name]
    port = reserve_ports(2)
    process = start(tmp_path, *(word.format(port, port + 1) for word in parts))
    try:
        family = _awaited(lambda: result if len(result := _descendants(process.pid)) >= count else [])
        assert len(family) >= count, f"{name} started {len(family)} processes"
        _awaited(lambda: [1] if all(_cpu_s(pid) > 0.05 for pid in family) else [], 10.0)  # they have begun their work
        family = sorted({*family, *_descendants(process.pid)})
    finally:
        begun = time.monotonic()
        process.kill()
        process.wait()
    _awaited(lambda: [1] if not any(_alive(pid) for pid in family) else [])
    print(f"{name}: {len(family)} processes ended within {time.monotonic() - begun:.2f} s")
    assert [pid for pid in family if _alive(pid)] == []
    process.communicate()  # closes the pipes


def _awaited(look: Callable[[], list[int]], seconds: float = 90.0) -> list[int]:
    """What is found as soon as something is."""
    until = time.monotonic() + seconds
    while not (result := look()) and time.monotonic() < until:
        time.sleep(0.05)
    return result


def _descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that these have."""
    result: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            current = [int(word) for word in thread.read_text().split()]
        except OSError:
            continue
        for item in current:
            result += [item, *_descendants(item)]
    return result


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _alive(pid: int) -> bool:
    return bool(result := _stat(pid)) and result[0] not in "ZX"


def _cpu_s(pid: int) -> float:
    """Processor time of a process; of one that has ended or waits by nature, plenty."""
    result = _stat(pid)
    tracker = b"resource_tracker" in _command_line(pid)
    return 1.0 if not result or tracker else 0.01 * (int(result[11]) + int(result[12]))


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
