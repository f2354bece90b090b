"""Strangers at the step endpoint and at the exchange endpoint: counted, cut off, and in nobody's way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest
import zmq

from tests.wire.bench import Host, Raw


@pytest.fixture
def stranger(host: Host) -> Iterator[zmq.Socket[bytes]]:
    """One that knows the step endpoint and sends what a claimant would."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.linger = 0
        stranger.connect(host.server.endpoints["step"])
        for seq in range(1000, 1008):
            stranger.send(msgpack.packb({"type": "command", "seq": seq, "step": 0, "values": {"left.front": 1.0}}))
        yield stranger


def test_a_stranger_does_not_get_in_at_the_step_endpoint(host: Host, make_raw: Any, request: Any) -> None:
    peer = make_raw(host).join(["*"])
    host.publish()
    request.getfixturevalue("stranger")
    host.until(lambda: host.rejected.get("stranger") == 1)
    assert not host.something_comes(0.05)
    assert not host.collect(0.05)
    peer.command({"left.front": 0.25})
    assert host.collect()
    assert host.command[0] == 0.25
    assert set(host.rejected) == {"stranger"}  # libzmq comes back after a while and counts again


def test_a_stranger_that_waits_is_not_let_in_with_a_claimant(host: Host, make_raw: Any, stranger: Any) -> None:
    host.until(lambda: host.rejected.get("stranger") == 1)
    make_raw(host).join(["*"])
    assert not host.something_comes(0.05)
    assert set(host.rejected) == {"stranger"}  # libzmq comes back after a while and counts again


def test_a_stranger_that_is_quicker_than_a_claimant_is_not_received(host: Host, make_raw: Any, request: Any) -> None:
    """It takes the claimant's turn; what it sends is counted and no more, and the claimant's next turn comes."""
    peer = make_raw(host)
    peer.hello(["*"])
    request.getfixturevalue("stranger")
    host.until(lambda: host.rejected.get("stranger") == 8)
    peer.join(["*"])
    host.publish()
    assert not host.collect(0.05)
    peer.command({"left.front": 0.25})
    assert host.collect()
    assert host.command[0] == 0.25


def test_a_stranger_is_cut_off_as_soon_as_it_has_sent_who_it_is(host: Host, stranger: Any) -> None:
    monitor = stranger.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    host.until(lambda: monitor.poll(0))
    stranger.disable_monitor()
    monitor.close(0)
    assert host.rejected["stranger"] > 0


def test_a_flood_of_strangers_at_the_door_keeps_nobody_out(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    peer = make_raw(host).join(["*"])
    with zmq.Context() as context:
        strangers = [context.socket(zmq.DEALER) for _ in range(20)]
        for stranger in strangers:
            stranger.linger, stranger.sndhwm = 0, 4
            stranger.connect(host.exchange)
        frames = [os.urandom(50), msgpack.packb({"type": "hello", "protocol": 1, "name": "x", "claim": ["*"]})]
        for _ in range(200):
            for stranger in strangers:
                for frame in frames:
                    try:
                        stranger.send(frame, zmq.NOBLOCK)
                    except zmq.Again:
                        break
            host.publish()
            peer.command({"left.front": 0.1})
            assert host.collect()
            host.advance()
            host.serve()
        for stranger in strangers:
            stranger.close(0)
    report = host.server.report()
    assert len(report["peers"]) == 1
    assert report["peers"][0]["commands"] == 200
    assert report["rejected"]["token"] > 0
