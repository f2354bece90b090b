"""Who takes the place of a client that is silent; a file that is closed is called for no more."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from rtmms.bridging.counters import Counters
from rtmms.bridging.runner import Runner
from rtmms.bridging.untrusted import Admission
from rtmms_bridges.lines.tcp_peer import TcpPeer
from rtmms_bridges.template import Template
from tests.bridges.by_hand import Desk


def peer(received: list[bytes]) -> TcpPeer:
    io: Any = Desk()
    return TcpPeer(
        io, Counters(), "127.0.0.1", 0, received=received.append, came=lambda: None, gone=lambda: None,
        admission=Admission(()),
    )  # fmt: skip


def test_a_call_without_anything_to_read_turns_nobody_away() -> None:
    """Another file with the same number had something to read."""
    result = peer([])
    place = result.address[:2]
    try:
        with socket.create_connection(place):
            result._on_knock()
        result._received_at -= 10.0
        with socket.create_connection(place) as other:
            result._on_knock()
            waiting = result._next
            assert waiting is not None
            result._on_next()
            assert result._next is waiting
            other.sendall(b"it is me")
            result._on_next()
            while result._next is waiting:
                result._on_next()
            assert result._client is waiting
    finally:
        result.close()


def test_a_file_that_a_call_closed_is_called_for_no_more() -> None:
    """Both can be read in one batch. The call for the one closes both, and watches a third with the number of one."""
    runner = Runner(Template(), None, "bridge", None, None)
    ends = [socket.socketpair() for _ in range(2)]
    called: list[int] = []
    fresh: list[socket.socket] = []

    def call(k: int) -> Callable[[], None]:
        def close_both() -> None:
            called.append(k)
            for near, _ in ends:
                runner.unwatch(near)
                near.close()
            near, far = socket.socketpair()
            fresh.extend((near, far))
            runner.watch(near, lambda: called.append(-1))

        return close_both

    for k, (near, far) in enumerate(ends):
        runner.watch(near, call(k))
        far.sendall(b"x")
    runner._attend_peer(1.0)
    assert len(called) == 1
    assert called[0] >= 0
    for item in (*fresh, *(far for _, far in ends)):
        item.close()
    runner._selector.close()
