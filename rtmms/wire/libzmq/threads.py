"""Placement of ZeroMQ's I/O threads.

The module does not import zmq, because a plant without keys does not need it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Threads:
    """Cores and priority of ZeroMQ's I/O threads.

    Parameters
    ----------
    priority : int | None, optional
        SCHED_FIFO priority of the step socket's thread. None leaves it unchanged.
    step_cpu : int | None, optional
        Core of the step socket's thread, best the loop's own. None allows any core.
    exchange_cpu : int | None, optional
        Core of the thread for the exchange and telemetry sockets. None allows any core.
    """

    priority: int | None = None
    step_cpu: int | None = None
    exchange_cpu: int | None = None
