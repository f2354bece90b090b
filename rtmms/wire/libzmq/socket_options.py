"""Options that plant and peer set on sockets of libzmq."""

from __future__ import annotations

import zmq

Socket = zmq.Socket[bytes]
NOW = int(zmq.NOBLOCK)
NOW_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
EVENTS = int(zmq.EVENTS)
POLLIN = int(zmq.POLLIN)


def set_family(socket: Socket, endpoint: str) -> None:
    """Allow IPv6 on a socket before an IPv6 address is used.

    Parameters
    ----------
    socket : Socket
        A socket that is neither bound nor connected.
    endpoint : str
        Its address.
    """
    if "[" in endpoint:
        socket.setsockopt(zmq.IPV6, 1)
