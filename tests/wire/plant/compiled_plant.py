"""A plant whose step is compiled, a loop around it, and controllers in processes of their own: what the tests of the
compiled step run."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import carray

from rtmms.base.jit import kernel, native
from rtmms.base.pointers import numbers_at
from rtmms.loop.clock import MonotonicClock
from rtmms.loop.loop import Loop, LoopServices
from rtmms.loop.pace import Pace
from rtmms.loop.policies import Policies
from rtmms.loop.statistics import Statistics
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep
from rtmms.wire.plant.server import Server
from tests.wire.bench import PATIENCE_S, Toy


@kernel
def advance(state: int, command: int) -> int:
    """Four rods where they are commanded to be, and a clock of 1 ms; status 7 for a first rod above 1."""
    y, u = carray(numbers_at(state), (5,)), carray(numbers_at(command), (4,))
    if u[0] > 1.0:
        return 7
    for i in range(4):
        y[i] = u[i]
    y[4] += 1e-3
    return 0


class Compiled(Toy):
    """The toy of the other tests, with a step that compiled code can take."""

    def __init__(self) -> None:
        super().__init__()
        self.command = np.zeros(4)
        self.calls = self.entered_times = 0
        arguments = (self.state.ctypes.data, self.command.ctypes.data)
        self.entry = CompiledStep(native(advance, *arguments), arguments, self.command.ctypes.data)

    def reset(self, seed: int = 0) -> None:
        if hasattr(self, "state"):
            self.state[:] = 0.0
        else:
            super().reset(seed)

    def step(self, command: np.ndarray) -> None:
        self.calls += 1
        super().step(command)

    def compiled_step(self) -> CompiledStep | None:
        return self.entry

    def finish_compiled_step(self, status: int) -> None:
        self.entered_times += 1
        if status:
            raise RuntimeError(f"status {status}")


@kernel
def report(state: int, out: int) -> int:
    """Position, quaternion, speed, thrust and joint angles of the toy."""
    y, result = carray(numbers_at(state), (5,)), carray(numbers_at(out), (27,))
    for i in range(3):
        result[i] = y[i]
    result[3], result[7] = 1.0, y[4]
    for i in range(4):
        result[8 + i] = i + 1.0
    for i in range(15):
        result[12 + i] = i
    return 0


class Observed(Compiled):
    """One whose outputs compiled code can get, too."""

    def compiled_outputs(self) -> CompiledOutputs | None:
        self.out = np.zeros(27)
        arguments = (self.state.ctypes.data, self.out.ctypes.data)
        sizes = (("position", 0, 3), ("quaternion", 3, 4), ("speed", 7, 1), ("thrust", 8, 4), ("joint_angle", 12, 15))
        return CompiledOutputs(
            native(report, *arguments), arguments, {name: (arguments[1] + 8 * at, n) for name, at, n in sizes}
        )


START_S = 60.0
"""A controller may have to compile what it answers by, on a machine that is busy."""

STEADY = """
import sys, rtmms
with rtmms.connect(sys.argv[1], name=sys.argv[2], claim=sys.argv[3], token="secret", errors="raise") as link:
    for state in link:
        {}
        link.command({{name: state.step * 1e-4 + 0.01 * k for k, name in enumerate(link.plant.granted)}})
"""


class Run:
    """One run in this process.

    what   Python that a controller does with each `state` before it answers
    until  what ends the run before its steps are over: a slow machine takes as many steps as it needs for that
    """

    def __init__(
        self, pace: Callable[[], Pace], claims: Sequence[str] = ("*",), *, steps: int = 300, plant: Any = None,
        what: str = "pass", program: str = "", services: LoopServices | None = None, observers: Any = (),
        until: Callable[[Run], bool] | None = None, **policies: Any,
    ) -> None:  # fmt: skip
        self.plant = plant or Compiled()
        built = pace()
        self.server = Server(
            self.plant, robot="toy", token="secret", mode=built.mode, deadline_s=5e-4,
            **dict.fromkeys(("exchange", "step", "telemetry"), "tcp://127.0.0.1:*"),
        )  # fmt: skip
        text = program or STEADY.format(what)
        self.peers = [
            subprocess.Popen([sys.executable, "-c", text, self.server.endpoints["exchange"], f"p{k}", claim])
            for k, claim in enumerate(claims)
        ]
        try:
            end = time.monotonic() + START_S
            while len(self.server.admitted()) < len(claims):
                self.server.serve(time.monotonic_ns() + 2_000_000)
                assert time.monotonic() < end, "not admitted"
                time.sleep(5e-4)
            self.statistics = Statistics()
            self.loop = Loop(
                self.plant, self.server, MonotonicClock(), built, Policies(**policies), self.statistics, observers,
                steps=steps, services=services,
            )  # fmt: skip
            self.codes: list[int] = []
            self._watch_codes()
            self.batches = 0
            batch = self.loop._compiled.run_batch

            def batched() -> bool:
                before = self.loop.step
                result = batch()
                self.batches += self.loop.step - before
                return result

            self.loop._compiled.run_batch = batched  # type: ignore[method-assign]
            if until is not None:
                threading.Thread(target=self._end_when, args=(until,), daemon=True).start()
            self.outcome = self.loop.run()
        finally:
            self.server.close()
            for peer in self.peers:
                try:
                    peer.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    peer.kill()
                    peer.wait()

    def _end_when(self, done: Callable[[Run], bool]) -> None:
        while not done(self):
            time.sleep(0.01)
        self.loop.end("stop")

    def _watch_codes(self) -> None:
        fast = self.loop._compiled._fast
        if fast is not None:
            commit = fast.commit

            def committed(code: int) -> Any:
                self.codes.append(code)
                return commit(code)

            fast.commit = committed  # type: ignore[method-assign]
