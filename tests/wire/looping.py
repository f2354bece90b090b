"""A plant that steps on in a thread, or in a process of its own, for tests of what connects to it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from tests.wire.bench import PATIENCE_S, Host


class Looping:
    """Steps a host's server until it is asked to stop; requests are answered with what was asked."""

    def __init__(self, host: Host, pause_s: float = 1e-3) -> None:
        self.host, self.pause_s = host, pause_s
        self.errands: deque[Callable[[], Any]] = deque()  # done in the thread that has the sockets
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Looping:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, reason: str = "the run ended", names: Collection[str] = ()) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        self.host.server.close(reason, names)

    def wait(self, done: Any) -> None:
        end = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(1e-3)

    def _run(self) -> None:
        host = self.host
        while not self._stop.is_set():
            host.publish()
            host.collect(0.02)
            host.advance()
            host.serve()
            while self.errands:
                self.errands.popleft()()
            for request in host.server.requests():
                refused = request.op == "set"
                host.server.reply(request, not refused, {"op": request.op, **request.args}, "not this one")
            time.sleep(self.pause_s)


_PROGRAM = """
import sys, time
from tests.wire.bench import Host
host = Host(token=None)
print(host.exchange, flush=True)
while True:
    host.publish(); host.collect(0.01); host.advance(); host.serve()
"""


def plant_process() -> tuple[subprocess.Popen[str], str]:
    """A plant in a process of its own, and its exchange endpoint."""
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()
