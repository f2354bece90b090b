"""rtmms run and serve in the mode external: a process outside ticks."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import environment, finish, start

TICKER = """
import rtmms, sys
with rtmms.connect(sys.argv[1], name='clock', ticks=True) as link:
    link.tick()
    for state in link:
        if state.step + 1 < int(sys.argv[2]):
            link.tick()
"""


def endpoint(process: subprocess.Popen[str]) -> str:
    """Where to tick: it is printed on standard error."""
    assert process.stderr is not None
    line = next(line for line in process.stderr if "waits for a tick" in line)
    return line.split()[-1]


def ticker(tmp_path: Path, exchange: str, steps: int) -> subprocess.Popen[str]:
    parts = [sys.executable, "-c", TICKER, exchange, str(steps)]
    return subprocess.Popen(parts, env=environment(tmp_path), text=True)


@pytest.mark.full
def test_run_answers_and_a_process_outside_ticks(tmp_path: Path) -> None:
    arguments = ("--mode", "external", "--duration", "0.5", "--deadline", "60", "--json", "--log", "run.mcap")
    process = start(tmp_path, "run", "pendulum", "--controller", "swing", *arguments)
    clock = ticker(tmp_path, endpoint(process), 50)
    result = finish(process)
    assert clock.wait(30) in (0, 1)  # it may find the plant gone before the bye
    report = result.report
    assert (result.status, report["ended"], report["steps"]) == (0, "duration", 50)
    exchange = report["exchange"]
    assert (exchange["commands_applied"], exchange["misses"], exchange["unclaimed"]) == (50, 0, 0)
    assert exchange["ticks"] == {"used": 50, "surplus": 0, "peer": "clock"}
    assert report["schedule"]["period_us"] is None
    assert report["schedule"]["deadline_us"] == pytest.approx(6e7)
    assert report["timing_us"]["slack"]["p50"] is None
    assert report["timing_us"]["wake"]["p50"] > 0
    assert report["log"]["whole"]
    replayed = finish(start(tmp_path, "replay", "run.mcap", "--check", "--json"))
    assert (replayed.status, replayed.report["same"], replayed.report["steps"]) == (0, True, 50)


@pytest.mark.full
def test_serve_without_ticks_waits_and_can_be_interrupted(tmp_path: Path) -> None:
    process = start(tmp_path, "serve", "pendulum", "--mode", "external", "--exchange", "tcp://127.0.0.1:*", "--json")
    endpoint(process)
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert (result.status, result.report["ended"], result.report["steps"]) == (0, "interrupt", 0)
    assert result.report["schedule"]["deadline_us"] == pytest.approx(9000, rel=0.2)  # as if ticks came at dt: 0.01 s


@pytest.mark.full
def test_it_learns_who_ticks_and_that_nobody_does_any_more(tmp_path: Path) -> None:
    arguments = ("--mode", "external", "--exchange", "tcp://127.0.0.1:*", "--duration", "1000", "--json")
    process = start(tmp_path, "serve", "pendulum", *arguments)
    assert process.stderr is not None
    clock = ticker(tmp_path, endpoint(process), 1 << 40)
    assert any("'clock' ticks" in line for line in process.stderr)
    clock.kill()
    clock.wait()
    assert any("'clock' ticks no more; steps wait for another" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    assert finish(process).report["ended"] == "interrupt"
