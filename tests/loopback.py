"""Wait until the system has delivered what this machine sent to itself.

Linux puts packets of the loopback in a queue of the sender's core. Usually it delivers them before `sendto` returns. On
a busy machine a kernel thread delivers them later. Then a packet to a closed port reaches a socket that is bound there
afterwards.
"""

from __future__ import annotations

import os
import socket
import time

DELIVERY_S = 0.05
"""Time for the delivery where a process cannot choose its core, s."""


def deliver_all() -> None:
    """Return when each packet that was sent before the call has arrived, or was refused."""
    if not hasattr(os, "sched_setaffinity"):
        time.sleep(DELIVERY_S)
        return
    cores = os.sched_getaffinity(0)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind(("127.0.0.1", 0))
            for core in cores:
                os.sched_setaffinity(0, {core})
                receiver.sendto(b"last", receiver.getsockname())  # the queue of a core keeps the order
                receiver.recv(8)
    finally:
        os.sched_setaffinity(0, cores)
