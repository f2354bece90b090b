"""docs/tutorials: what is printed there works when it is typed in its order. Blocks of `sh` are run; those of `python`,
`toml` and `xml` are written to the file that their first line names; `text` is for the eye, or for a second terminal:
what is at work there (a board, an autopilot) is played by a peer of BESIDE."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from math import sin
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from pymavlink import mavutil

from rtmms.record.log import Step, open_log
from tests.bridges.autopilot import sitl
from tests.cli.shell import environment

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"```(sh|python|toml|xml)\n(.*?)```", re.DOTALL)
CREATED = {"start": ["manta.png"], "steer": ["turn.mcap", "turn.gif"],
        "serial": ["board.mcap", "board.gif"], "ardupilot": ["dive.gif", "dive.svg"], "px4": ["px4.svg"],
        "control_design": ["gain.npz"], "learning": ["policy.npy"], "several_robots": ["two.mcap"],
        "urdf": ["arm.mcap", "arm.gif"], "own_bridge": ["lamp/pyproject.toml", "swim.csv"],
        "fish_video": ["seen.mcap", "fitted.toml", "fit.html", "figures/fishsim-speeds.png"],
        "identify": ["pool.mcap", "fitted.toml", "fit.html"],
        "replay": ["both.png", "run.csv", "run.svg", "run.gif", "run.html"]}  # fmt: skip


@contextmanager
def _board(folder: Path) -> Iterator[None]:
    """The page's own stand-in for a board, in its second terminal."""
    pytest.importorskip("serial", reason="needs pip install 'rtmms[serial]'")
    process = subprocess.Popen([sys.executable, "board.py"], cwd=folder)
    try:
        while not (folder / "line").exists():
            assert process.poll() is None
            time.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def _alongside(drive: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
    """An autopilot, in a thread, until the page is at its end."""
    ended = Event()
    thread = Thread(target=drive, args=(ended.is_set,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30.0)


def _ardupilot(ended: Callable[[], bool]) -> None:
    with sitl.Autopilot(9002, resend_s=sitl.RESEND_S) as autopilot:
        while not ended():
            pulse = 1500 + round(300.0 * sin(4.0 * autopilot.clock))
            autopilot.pulses[:4] = [pulse] * 4
            with suppress(AssertionError):
                autopilot.exchange(tries=1)


def _px4(ended: Callable[[], bool]) -> None:
    link: Any = None
    while link is None and not ended():
        with suppress(OSError):
            link = mavutil.mavlink_connection("tcp:127.0.0.1:4560", retries=0, dialect="common")
        time.sleep(0.05)
    link.mav.heartbeat_send(0, 12, 0, 0, 0)
    while not ended():
        received = link.recv_match(type=["HIL_SENSOR"], blocking=True, timeout=0.5)
        if received is not None:
            angle = 0.5 * sin(4e-6 * received.time_usec)
            with suppress(OSError):
                link.mav.hil_actuator_controls_send(received.time_usec, [angle] * 4 + [0.0] * 12, 129, 1)
    link.close()


PEERS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "serial": _board, "ardupilot": lambda folder: _alongside(_ardupilot), "px4": lambda folder: _alongside(_px4),
}  # fmt: skip


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=[pytest.mark.full] * (page.stem in PEERS)) for page in PAGES]
)
def test_it_works_as_printed(page: Path, tmp_path: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    for kind, text in blocks:
        if kind != "sh":
            name = text.splitlines()[0].removeprefix("# ").removeprefix("<!-- ").removesuffix(" -->")
            assert name.endswith((".py", ".toml", ".urdf"))
            (tmp_path / name).write_text(text)
    with PEERS.get(page.stem, nullcontext)(tmp_path):
        _typed(page, blocks, tmp_path)


def _typed(page: Path, blocks: list[tuple[str, str]], tmp_path: Path) -> None:
    message = dict[str, str]()
    for kind, text in blocks:
        if kind != "sh":
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program in ("rtmms", "python"), line
            ours = ["-m", "rtmms.cli.main"] if program == "rtmms" else []
            ran = subprocess.run(
                [sys.executable, *ours, *arguments], cwd=tmp_path, capture_output=True,
                env=environment(tmp_path) | {"PATH": os.environ["PATH"]}, text=True, timeout=240, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, f"{line}\n{ran.stderr}"
            message[line] = ran.stdout
    for file in CREATED[page.stem]:
        assert (tmp_path / file).stat().st_size > 100, file
    if page.stem in PEERS:  # it moved by what came from there
        steps = [row for row in open_log(next(tmp_path.glob("*.mcap"))).rows() if isinstance(row, Step)]
        commands = np.array([row.command for row in steps])
        assert len(steps) in (2000, 3000, 4000)
        assert (np.ptp(commands, axis=0) > 0.2).all()
    if page.stem == "steer":
        (report,) = (out for line, out in message.items() if "pilot.py" in line)
        assert float(re.search(r"turn rate +(-?[\d.]+)", report).group(1)) < -1.0  # type: ignore[union-attr]
