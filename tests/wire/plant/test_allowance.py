"""One that floods: so many of its messages a step and no more, in nobody's way; who goes on is hung up on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from rtmms.wire.plant.allowance import FLOOD_STEPS, max_messages
from rtmms.wire.plant.peers import DEAD, LIVE
from rtmms.wire.plant.sockets import Sockets
from tests.wire.bench import PATIENCE_S, Host, Raw

FAR_NS = int(PATIENCE_S * 1e9)


def stepped(host: Host) -> bool:
    """A step with a deadline that is far away: it ends when nobody is waited for."""
    host.publish(time.monotonic_ns() + FAR_NS)
    complete = host.collect()
    host.advance()
    return complete


def poured(flooder: Raw, many: int) -> None:
    for _ in range(many):
        flooder.command({"left.front": 0.5}, flooder.host.step)


@pytest.mark.parametrize(("period_s", "limit"), [(1e-4, 4), (1e-3, 5), (1e-2, 50)])
def test_so_many_for_a_period(period_s: float, limit: int) -> None:
    assert max_messages(period_s) == limit


def test_a_flood_is_read_a_little_a_step_and_the_other_peer_is_served(
    host: Host, make_raw: Callable[[Host], Raw]
) -> None:
    flooder, good = make_raw(host), make_raw(host)
    flooder.join(["left.*"], "flooder")
    good.join(["right.*"], "good")
    maximum = host.server._port._allowance.max_step_messages
    assert maximum == 5
    flooding, _ = host.server._peers.claimants
    host.publish(time.monotonic_ns() + FAR_NS)
    poured(flooder, 40 * maximum)
    good.command({"right.front": 0.25})
    assert host.collect()
    for _ in range(20):
        before = flooding.commands + flooding.rejected
        host.advance()
        host.publish(time.monotonic_ns() + FAR_NS)
        good.command({"right.front": 0.25})
        assert not host.collect()  # and it came back before the deadline, without the flooder's answer
        assert host.server.waiting_for() == ("flooder",)
        host.server._port.read_in_slack(time.monotonic_ns() + FAR_NS)
        assert flooding.commands + flooding.rejected - before <= maximum
    assert host.command[2] == 0.25
    assert flooding.state is LIVE


def test_one_that_goes_on_is_hung_up_on_and_counted(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    flooder = make_raw(host)
    flooder.join(["*"])
    (peer,) = host.server._peers.claimants
    for _ in range(2 * FLOOD_STEPS):
        poured(flooder, 2 * host.server._port._allowance.max_step_messages)
        host.arrived() if not peer.message_count else None
        stepped(host)
        if host.rejected.get("busy"):
            break
    assert host.rejected["busy"] == 1
    assert "the connection is closed" in peer.refusal
    host.publish(time.monotonic_ns() + FAR_NS)
    assert peer.state is DEAD


def test_one_that_sends_ahead_now_and_then_is_received_out(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    (peer,) = host.server._peers.claimants
    stepped_for: list[Any] = []
    host.publish(time.monotonic_ns() + FAR_NS)
    for ahead in range(12):
        raw.command({"left.front": 0.01 * ahead}, host.step + ahead)
    assert host.collect()
    for ahead in range(1, 12):
        host.advance()
        host.publish(time.monotonic_ns() + FAR_NS)
        stepped_for.append(host.collect())
        assert host.command[0] == pytest.approx(0.01 * ahead)
    assert stepped_for == [True] * 11
    assert peer.floods < FLOOD_STEPS
    assert host.rejected == {}


def test_where_one_connection_cannot_be_closed_the_claim_is_taken_away(
    make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]
) -> None:
    """With keys, by libzmq, which closes no connection of a ROUTER by itself."""
    anywhere = ("tcp://127.0.0.1:*",) * 3
    host = make_host(sockets=Sockets(*anywhere, libzmq=True))
    flooder, good = make_raw(host), make_raw(host)
    flooder.join(["left.*"], "flooder")
    good.join(["right.*"], "good")
    end = time.monotonic() + PATIENCE_S
    while not host.rejected.get("busy") and time.monotonic() < end:
        host.publish(time.monotonic_ns() + 20_000_000)
        poured(flooder, 2 * host.server._port._allowance.max_step_messages)
        good.command({"right.front": 0.25}, host.step)
        host.collect(0.02)
        host.advance()
    assert host.rejected["busy"] == 1
    assert [peer.name for peer in host.server._peers.claimants] == ["good"]
    assert not host.server.claimed[:2].any()
    assert flooder.data is not None
    while (message := flooder.read_message())["type"] != "bye":
        pass
    assert "the connection is closed" in message["reason"]
    while flooder.data.poll(100):
        assert msgpack.unpackb(flooder.data.recv())["type"] != "bye"
    host.publish(time.monotonic_ns() + FAR_NS)
    good.command({"right.front": 0.5}, host.step)
    assert host.collect()  # nobody waits for the other one
