"""`applied` states what was used for the step before: which command, how late it was, which policy stood in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.wire.bench import Host, Raw
from tests.wire.plant.test_commands import deliver, exchange

SECOND = 1_000_000_000


@pytest.fixture
def peer(raw: Raw) -> Raw:
    """Admitted, with all actuators, at step 0 published with a deadline in a second."""
    raw.join(["*"])
    raw.host.publish(deadline_ns=time.monotonic_ns() + SECOND)
    raw.read_message()
    return raw


def applied(host: Host) -> tuple[int, int]:
    return host.server.applied.seq, host.server.applied.step


def test_a_command_in_time_has_a_negative_lateness(peer: Raw) -> None:
    peer.command({"left.front": 0.1})
    assert exchange(peer)
    assert applied(peer.host) == (peer.seq, 0)
    assert -SECOND < peer.host.server.applied.lateness_ns < 0


def test_one_that_came_early_is_as_early_as_it_came_not_as_it_was_used(peer: Raw) -> None:
    peer.command({"left.front": 0.1}, step=0)
    peer.command({"left.front": 0.2}, step=1)
    deliver(peer)
    assert exchange(peer)
    peer.host.serve()  # it is read in the slack, and waits
    time.sleep(0.05)
    peer.host.publish(deadline_ns=time.monotonic_ns() + SECOND)
    assert exchange(peer)
    assert applied(peer.host) == (peer.seq, 1)
    assert peer.host.server.applied.lateness_ns < -SECOND


def test_a_late_one_read_in_the_slack_is_not_reported_to_have_been_used_for_the_step_before(peer: Raw) -> None:
    host = peer.host
    peer.command({"left.front": 0.1})
    assert exchange(peer)
    used = applied(host)
    host.publish(deadline_ns=time.monotonic_ns() - 1)  # step 1
    assert not host.collect(0.0)
    peer.command({"left.front": 9.0}, step=1)
    deliver(peer)
    host.serve()
    assert host.server.report()["late"] == 1
    assert applied(host) == used  # what state 2 will have of step 1
    assert not host.server.applied.clamped
    host.step = 2
    host.publish()
    assert not host.collect(0.0)
    assert applied(host) == (peer.seq, 1)  # what state 3 will have of step 2
    assert host.server.applied.lateness_ns > 0
    assert host.server.applied.clamped
    assert host.command[0] == 1.2
    assert host.server.renewed.all()


def test_a_second_command_for_a_step_that_has_gone_on_is_held_for_the_next(peer: Raw) -> None:
    host = peer.host
    peer.command({"left.front": 0.1})
    assert exchange(peer)
    first = applied(host)
    peer.command({"left.front": 0.2}, step=0)  # before the deadline, but the step has its commands
    deliver(peer)
    host.serve()
    assert applied(host) == first
    assert host.command[0] == 0.1
    assert host.server.report()["late"] == 1
    host.step = 1
    host.publish()
    assert not host.collect(0.0)
    assert host.command[0] == 0.2
    assert applied(host) == (peer.seq, 0)


def test_of_two_for_one_step_that_still_waits_for_another_peer_the_newest_counts(make_host: Any, make_raw: Any) -> None:
    host = make_host()
    left, right = make_raw(host).join(["left.*"], "left"), make_raw(host).join(["right.*"], "right")
    host.publish()
    left.command({"left.front": 0.1})
    left.command({"left.front": 0.2})
    host.arrived()
    assert not host.collect(0.1)
    right.command({"right.front": 0.3})
    assert host.collect()
    assert (host.command[0], host.command[2]) == (0.2, 0.3)
    assert host.server.report()["late"] == 0


def test_free_mode_counts_what_came_in_the_slack_as_new(make_host: Callable[..., Host], make_raw: Any) -> None:
    peer = make_raw(make_host(mode="free")).join(["*"])
    host = peer.host
    host.publish()
    assert not host.server.collect(host.step, host.command, 0)
    peer.command({"left.front": 0.1})
    deliver(peer)
    host.serve()
    host.advance()
    host.publish()
    assert host.server.applied.seq == -1  # state 1 is of step 0
    assert host.server.collect(host.step, host.command, 0)  # applied, not reused
    assert host.command[0] == 0.1
    assert host.server.applied.seq == peer.seq
    host.advance()
    host.publish()
    assert not host.server.collect(host.step, host.command, 0)  # once


def test_an_unknown_actuator_is_answered_with_its_near_miss(peer: Raw) -> None:
    peer.command({"left.fornt": 0.1})
    deliver(peer)
    peer.host.collect(0.0)
    error = peer.receive_error()
    assert error["code"] == "unknown_actuator"
    assert error["text"].startswith("command: there is no actuator 'left.fornt'; did you mean left.front")


def test_a_name_that_is_far_too_long_is_not_compared_with_anything(peer: Raw) -> None:
    peer.command({"x" * 20_000: 0.1})
    deliver(peer)
    peer.host.collect(0.0)
    assert "did you mean" not in peer.receive_error()["text"]
