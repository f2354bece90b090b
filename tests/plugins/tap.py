"""A third party's bridge, and ones that fail: each state's time into a file, which is its peer."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import rtmms


@dataclass(kw_only=True)
class Tap(rtmms.Bridge):
    """Writes the time of each state into a file."""

    file: str
    fate: str = ""
    at_s: float = 0.3

    def open(self, plant: rtmms.PlantInfo) -> None:
        if self.fate == "refuse":
            raise rtmms.ModelError(f"fate: the plant '{plant.robot}' is not to our liking")
        self.stream = open(self.file, "a", buffering=1)  # noqa: SIM115 - closed in close

    def on_state(self, state: rtmms.State) -> None:
        self.stream.write(f"{state.time:.6f}\n")
        self.counts.add("sent")
        if state.time >= self.at_s:
            if self.fate == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fate == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if self.fate == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if self.fate == "hang":
                time.sleep(60)
            if self.fate == "fail":
                raise RuntimeError("a fault in the bridge")

    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self.stream.write("again\n")

    def close(self, reason: str) -> None:
        if hasattr(self, "stream"):
            self.stream.write(f"closed: {reason}\n")
            self.stream.close()


@dataclass(kw_only=True)
class Bare(rtmms.Bridge):
    """Needs what is not there."""

    requires = {"no_such_module": "no-such-package"}  # noqa: RUF012

    def on_state(self, state: rtmms.State) -> None: ...


class NoBridge:
    """Not one."""


@dataclass(kw_only=True)
class Needing(rtmms.Bridge):
    """The same, with an extra of its own package."""

    extra = "more"
    requires = {"no_such.module": "no-such-package"}  # noqa: RUF012

    def on_state(self, state: rtmms.State) -> None: ...
