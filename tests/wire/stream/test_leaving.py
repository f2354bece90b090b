"""Connections that are given up: one at a time, in the slack that there is; and how little is read of a stranger."""

from __future__ import annotations

import socket
from typing import Any, cast

import pytest

from rtmms.wire.protocol.port import SocketCallbacks
from rtmms.wire.stream import listener as leaving
from rtmms.wire.stream.listener import (
    _CLOSE_NS,
    _MAX_CLOSE_INTERVAL_NS,
    _MAX_CLOSING,
    _MIN_CLOSE_INTERVAL_NS,
    STRANGER_READ_BYTES,
    ClosingSockets,
    Connection,
    Listener,
)
from rtmms.wire.stream.zmtp import GREETING, message_of_frames, ready


class Closed:
    """In place of a socket: reports its number when it is closed."""

    def __init__(self, number: int, expected: list[int]) -> None:
        self.number, self.numbers = number, expected

    def close(self) -> None:
        self.numbers.append(self.number)


def test_one_at_a_time_where_there_is_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10**12]
    monkeypatch.setattr(leaving, "monotonic_ns", lambda: now[0])
    room, result = ClosingSockets(), list[int]()
    for number in range(4):
        room.add(cast(Any, Closed(number, result)))
    assert result == []
    room.serve(now[0] + _CLOSE_NS)
    room.serve(now[0] + _CLOSE_NS)  # too soon after the one before
    assert result == [0]
    now[0] += _MIN_CLOSE_INTERVAL_NS
    room.serve(now[0] + _CLOSE_NS - 1)  # too little time
    assert result == [0]
    room.serve(now[0] + _CLOSE_NS)
    assert result == [0, 1]
    now[0] += _MAX_CLOSE_INTERVAL_NS
    room.serve(now[0] + 1)  # there never is time
    assert result == [0, 1, 2]
    room.close()
    assert result == [0, 1, 2, 3]
    assert not room.close_one()


def test_no_more_than_so_many_wait() -> None:
    room, result = ClosingSockets(), list[int]()
    for number in range(_MAX_CLOSING + 3):
        room.add(cast(Any, Closed(number, result)))
    assert result == [0, 1, 2]


def test_of_a_stranger_a_little_is_read_at_a_time_and_of_one_that_is_known_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    read = Connection.read

    def counted(self: Connection, *maximum: int) -> bool | None:
        asked.append(maximum)
        return read(self, *maximum)

    monkeypatch.setattr(Connection, "read", counted)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        listener, known = Listener([bound], 1 << 20), set[bytes]()
        listener.attend(SocketCallbacks(known=known.__contains__), 1 << 20)
        with socket.create_connection(bound.getsockname()) as peer:
            peer.sendall(GREETING + ready(b"DEALER") + message_of_frames([bytes(3 * STRANGER_READ_BYTES)]))
            received = None
            while received is None:
                listener.serve(1 << 62)
                received = listener.next()
            assert set(asked) == {(STRANGER_READ_BYTES,)}
            asked.clear()
            known.add(received[0])
            peer.sendall(message_of_frames([bytes(3 * STRANGER_READ_BYTES)]))
            while listener.next() is None:
                listener.serve(1 << 62)
            assert set(asked) == {()}
        listener.close()


def test_one_that_is_cut_off_is_closed_with_the_listener_or_where_no_descriptor_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        listener = Listener([bound], 1000)
        peers = [socket.create_connection(bound.getsockname()) for _ in range(2)]
        for peer in peers:
            peer.sendall(b"no ZeroMQ")
        while len(listener._leaving._sockets) < 2:
            listener.serve(0 if listener._leaving._sockets else 1 << 62)  # without time nothing is closed
            listener._leaving._closed_ns = 1 << 62
            listener.serve(1 << 62)
        assert listener.connections == {}
        assert listener._give_way()
        assert len(listener._leaving._sockets) == 1
        listener.close()
        for peer in peers:
            peer.settimeout(10.0)
            try:
                while peer.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            peer.close()
