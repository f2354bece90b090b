"""Plant within a Python program: the loop in one thread, its peers in others, ZeroMQ's inproc between them.

It is for tests of controllers, and for programs that need a plant without processes. Two threads of Python share one
interpreter, so it is not for real time.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rtmms.base.errors import ModelError
from rtmms.loop.clock import MonotonicClock
from rtmms.loop.loop import Loop, Outcome
from rtmms.loop.modes import Free, Lockstep
from rtmms.loop.policies import Policies
from rtmms.loop.statistics import Statistics
from rtmms.wire.plant.server import Server
from rtmms.wire.plant.sockets import Sockets

if TYPE_CHECKING:
    from rtmms.plant.protocol import Plant

_PACES: dict[str, type[Lockstep] | type[Free]] = {"lockstep": Lockstep, "free": Free}
_SERVE_NS = 2_000_000
_JOIN_S = 10.0
_numbers = itertools.count(1)


class Embedded:
    """Served plant within this program, as a context manager.

    Within the context, `rtmms.connect(embedded.exchange)` connects from any thread of this program.

    Parameters
    ----------
    plant : Plant
        The plant to serve.
    robot : str
        Its name.
    mode : str
        'lockstep' or 'free'.
    steps : int | None
        Number of steps after which the run ends. None ends it with the context.
    seed : int
        Seed of the reset at the begin, at least 0.

    Attributes
    ----------
    exchange : str
        Its exchange endpoint.
    outcome : Outcome or None
        Result of the run; None before its end.

    Raises
    ------
    ModelError
        If mode, steps or seed is invalid.
    """

    def __init__(self, plant: Plant, robot: str, mode: str, steps: int | None, seed: int) -> None:
        if mode not in _PACES:
            raise ModelError(f"embed: mode: expected lockstep or free, got '{mode}'")
        if steps is not None and steps < 1:
            raise ModelError(f"embed: steps: expected at least 1, got {steps}")
        if seed < 0:
            raise ModelError(f"embed: seed: expected at least 0, got {seed}")
        self.exchange = f"inproc://rtmms-{os.getpid()}-{next(_numbers)}"
        self.outcome: Outcome | None = None
        self._fault: BaseException | None = None
        self._steps, self._seed, self._mode, self._robot, self._plant = steps, seed, mode, robot, plant
        self._loop: Loop | None = None
        self._leave = False
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtmms plant", daemon=True)

    def wait(self, timeout_s: float | None = None) -> Outcome:
        """Wait for the end of the run, and return its result.

        Parameters
        ----------
        timeout_s : float | None, optional
            Longest wait, s. None waits for ever.

        Returns
        -------
        Outcome
            The result of the run.

        Raises
        ------
        TimeoutError
            If the run continues after the wait.
        Exception
            The plant's own exception, if it raised one.
        """
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"the plant still runs after {timeout_s:g} s")
        if self._fault is not None:
            raise self._fault
        assert self.outcome is not None
        return self.outcome

    def end(self, reason: str = "stop") -> None:
        """End the run after the present step; a second call does nothing.

        Parameters
        ----------
        reason : str, default 'stop'
            Reason of the end, for the report and the peers.
        """
        self._leave = True
        if self._loop is not None:
            self._loop.end(reason)

    def __enter__(self) -> Embedded:
        """Start the run, and wait until the plant is served."""
        self._thread.start()
        self._ready.wait()
        if self._fault is not None:
            raise self._fault
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        """End the run, and wait for its thread."""
        self.end()
        if kind is None:
            self.wait(_JOIN_S)
        else:
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        """Run the loop in this thread, which alone uses the plant's sockets."""
        reason = "the run ended"
        try:
            self._plant.reset(self._seed)
            ends = [f"{self.exchange}{role}" for role in ("", "-step", "-telemetry")]
            sockets = Sockets(*ends, inproc=True)
            try:
                server = Server(self._plant, robot=self._robot, mode=self._mode, seed=self._seed, sockets=sockets)
            except BaseException:
                sockets.close(0)
                raise
            with server:
                self._loop = Loop(self._plant, server, MonotonicClock(), _PACES[self._mode](), Policies(), Statistics(),
                                  steps=self._steps, seed=self._seed)  # fmt: skip
                self._ready.set()
                while self._mode == "lockstep" and not self._leave and not server.claimed.any():
                    server.serve(time.monotonic_ns() + _SERVE_NS)  # step 0 waits for the first claim
                    time.sleep(1e-4)
                self.outcome = self._loop.run()
                reason = f"the run ended: {self.outcome.message or self.outcome.ended}"
                server.close(reason)
        except BaseException as fault:
            self._fault = fault
        finally:
            self._ready.set()


def embed(
    plant: Plant, *, robot: str = "plant", mode: str = "lockstep", steps: int | None = None, seed: int = 0
) -> Embedded:
    """Serve a plant to peers within this program.

    Python's garbage collection is off during the run, as in every run.

    Parameters
    ----------
    plant : Plant
        The plant. It is reset with the seed at the entry; no other code may step it until the exit.
    robot : str, default 'plant'
        Its name.
    mode : str, default 'lockstep'
        'lockstep' (step 0 waits for the first claim) or 'free'.
    steps : int | None, optional
        Number of steps after which the run ends. None ends it with the block.
    seed : int, default 0
        Seed of the reset, at least 0.

    Returns
    -------
    Embedded
        The context manager.

    Raises
    ------
    ModelError
        If mode, steps or seed is invalid.
    """
    return Embedded(plant, robot, mode, steps, seed)
