"""The processes of one trial of the fault tests: plant, controllers, proxies, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import rtmms
from rtmms.base.processes import KILL, end_with_parent

PEER_PRIORITY = 70
PEERS = "tests.faults.peers"
PROXY = "tests.faults.proxy"


@dataclass
class Bench:
    """The processes of one trial; all of them are ended when it is left."""

    folder: Path
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    exchange: str = ""

    def start(self, module: str, *text: str) -> subprocess.Popen[str]:
        """A process of our own, which prints a line when it is at work."""
        process = self.spawn([sys.executable, "-P", "-m", module, *text])
        assert process.stdout is not None
        if not process.stdout.readline():
            raise rtmms.ModelError(f"faults: {module} {' '.join(text)} did not start")
        return process

    def spawn(self, parts: Sequence[str], **more: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            parts, stdout=subprocess.PIPE, text=True, env=self.environment,
            preexec_fn=partial(end_with_parent, KILL, os.getpid()),
            **({"stderr": subprocess.DEVNULL} | more),
        )  # fmt: skip
        self.started.append(process)
        return process

    def proxy(self, *text: str) -> str:
        """A proxy to the plant; the endpoint that a controller is to use."""
        process = self.spawn([sys.executable, "-P", "-m", PROXY, self.exchange, *text])
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def controller(self, kind: str, *text: str) -> subprocess.Popen[str]:
        """A peer at SCHED_FIFO below the plant, where that is permitted: one that has its core when it needs it."""
        process = self.peer(kind, *text)
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{process.pid}/task").iterdir():  # ZeroMQ's own, too
                os.sched_setscheduler(
                    int(thread.name), os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PEER_PRIORITY)
                )
        return process

    def peer(self, kind: str, *text: str) -> subprocess.Popen[str]:
        return self.start(PEERS, kind, self.exchange, *text)

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
