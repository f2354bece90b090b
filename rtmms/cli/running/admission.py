"""The wait for the processes that a run starts: step 0 is theirs, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rtmms.errors import RtmmsError

if TYPE_CHECKING:
    from rtmms.cli.running.children import Children
    from rtmms.wire.plant.server import Server

ADMISSION_S = 10.0


class StartError(RtmmsError):
    """A run that could not begin. status is what the command exits with."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def await_peers(server: Server, children: Children, for_claim: bool, tell: Callable[[str], None]) -> None:
    """Until every process that was started is admitted and warm; StartError naming the one that is not.

    for_claim   and until somebody claims an actuator
    tell        what is waited for
    """
    expected = {child.peer for child in children.all}
    if expected:
        tell("waiting for " + ", ".join(sorted(expected)))
    elif for_claim:
        tell("waiting for a controller to claim an actuator")
    until = time.monotonic() + ADMISSION_S
    while True:
        server.serve(time.monotonic_ns() + 2_000_000)
        if expected <= server.admitted() and (not for_claim or bool(server.claimed.any())):
            return
        for child in children.ended():
            status = child.process.returncode
            raise StartError(child.obituary(status), 2 if status == 2 else 1)
        if expected and time.monotonic() > until:
            here = server.admitted()
            silent = ", ".join(child.name for child in children.all if child.peer not in here)
            raise StartError(f"{silent} did not say hello within {ADMISSION_S:g} s")
        time.sleep(0.0005)
