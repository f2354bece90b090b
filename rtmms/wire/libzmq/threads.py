"""Where ZeroMQ's I/O threads run. (Without zmq: a plant without keys has no use for them.)"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Threads:
    """
    priority  SCHED_FIFO priority of the step socket's thread; None leaves it as it is
    step_cpu  core of the step socket's thread, best the loop's own; None anywhere
    exchange_cpu  core of the thread for the door and telemetry; None anywhere
    """

    priority: int | None = None
    step_cpu: int | None = None
    exchange_cpu: int | None = None
