"""Reading a link's data socket with as few calls as can be: on the path of every state, each costs microseconds.

To ask ZeroMQ whether a message waits takes two system calls, and a recv that finds none takes four and an exception.
So the socket is asked only where the answer is not known already.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Any

import zmq

_NOW = int(zmq.NOBLOCK)
_EVENTS, _POLLIN = int(zmq.EVENTS), int(zmq.POLLIN)
_NEAR = ("ipc://", "inproc://", "tcp://127.", "tcp://[::1]", "tcp://localhost")


class Inbox:
    """The data socket of a link.

    descriptor  to wait on
    near        the plant is on this machine, so that its clock is ours
    """

    def __init__(self, socket: zmq.Socket[bytes], endpoint: str) -> None:
        self._get, self._recv, self._recv_all = socket.getsockopt, socket.recv, socket.recv_multipart
        self._single = socket.getsockopt(zmq.TYPE) == zmq.DEALER
        self.descriptor = int(socket.getsockopt(zmq.FD))
        self.near = endpoint.startswith(_NEAR)

    def next(self, *, told: bool) -> bytes | None:
        """The next message, None when there is none.

        told   the descriptor has just said that something came: then it is read without asking
        """
        if not told and not int(self._get(_EVENTS)) & _POLLIN:
            return None
        try:
            return self._recv(_NOW) if self._single else self._recv_all(_NOW)[-1]
        except zmq.Again:
            return None

    def current(self, message: dict[str, Any]) -> bool:
        """This state can still be answered in time: so the plant has not sent another one."""
        return self.near and bool(message.get("deadline_ns", 0) > monotonic_ns())
