"""The usual exchange of a link: a receive that waits, a state and a command by their layouts, one send."""

from __future__ import annotations

import signal
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import rtmms
from rtmms.wire.peer.client import DescriptorWait, Link
from tests.wire.bench import PATIENCE_S, Host
from tests.wire.looping import Looping


class Timed(Host):
    """Its states can be answered for 1 s."""

    def publish(self, deadline_ns: int = 0) -> None:
        super().publish(deadline_ns or time.monotonic_ns() + 1_000_000_000)


@pytest.fixture
def tcp() -> Iterator[Looping]:
    host = Timed(token=None)
    host.step = 1000  # small numbers are written otherwise
    with Looping(host) as running:
        yield running


def _answered(link: Link, states: int, first: float = 0.1) -> int:
    """States are answered with ever new values; how many of them the link waited for by its receive alone."""
    default = 0
    for k, _ in zip(range(states), link, strict=False):
        default += link._step_codec is not None
        link.command({"left.front": first + 1e-3 * k})
    return default


def _first_bytes(post: Callable[[bytes, int], int], raw: bytes, flags: int) -> int:
    return post(raw[:10], flags)


def test_nearly_all_states_are_waited_for_by_their_receive_alone(tcp: Looping, monkeypatch: Any) -> None:
    waits = list[int]()
    ready = DescriptorWait.ready

    def counted(self: DescriptorWait, *arguments: Any) -> Any:
        waits.append(1)
        return ready(self, *arguments)

    monkeypatch.setattr(DescriptorWait, "ready", counted)
    monkeypatch.setattr("rtmms.wire.peer.client._EXCHANGE_NS", 1_000_000_000)  # on a slow machine states come seldom
    with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
        _answered(link, 20)
        waits.clear()
        assert _answered(link, 300, 0.3) > 200
        tcp.wait(lambda: tcp.host.command[0] == 0.3 + 1e-3 * 299)
    assert len(waits) < 100


def test_a_command_that_the_kernel_takes_in_pieces_arrives_whole_and_in_order(tcp: Looping, monkeypatch: Any) -> None:
    monkeypatch.setattr("rtmms.wire.peer.client._EXCHANGE_NS", 1_000_000_000)
    with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
        _answered(link, 50)
        shortened = 0
        for k, _ in zip(range(200), link, strict=False):
            post = link._post
            if link._step_codec is not None and k % 3 == 0:
                shortened += 1
                link._post = partial(_first_bytes, post)
            link.command({"left.front": 0.5 + 1e-3 * k})
            link.command({"left.back": 1e-3 * k})
        tcp.wait(lambda: tcp.host.command[:2].tolist() == [0.5 + 1e-3 * 199, 1e-3 * 199])
    assert shortened > 0
    assert set(tcp.host.rejected) <= {"step"}


def test_what_is_sent_at_the_entry_is_received_between_states_and_without_any(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*", errors="collect") as link:
        _answered(link, 100)
        result = list[bool]()
        link.post("pause", None, lambda ok, _: result.append(ok))
        until = time.monotonic() + PATIENCE_S
        while not result and time.monotonic() < until:
            _answered(link, 1)
        assert result == [True]
        _answered(link, 50)
        link.command({"nobody": 0.5})
        while not link.errors and time.monotonic() < until:
            _answered(link, 1)
        assert link.errors


def test_a_plant_that_sends_nothing_is_waited_for_until_it_sends_bye(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
        _answered(link, 50)
        tcp.pause_s = 0.35  # longer than the receive waits
        before = link._step
        _answered(link, 3)
        assert link._step >= before + 3
        tcp.end("enough")
        assert list(link)[3:] == []
    assert "enough" in link.ended


def test_what_a_handler_of_a_signal_raises_ends_the_wait_whatever_it_is(tcp: Looping) -> None:
    def ring(*_: object) -> None:
        raise TimeoutError("enough of this")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
            _answered(link, 50)
            tcp.pause_s = 0.5
            _answered(link, 1)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(TimeoutError, match="enough"):
                _answered(link, 10)
            tcp.pause_s = 1e-3
            _answered(link, 10)
            assert link.ended == link.lost == ""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_link_takes_attributes_of_the_users_and_weak_references(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
        link.mine = 1  # type: ignore[attr-defined]
        assert weakref.ref(link)() is link


def test_one_who_is_reported_an_answer_may_close_the_link(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
        _answered(link, 50)
        link.post("pause", None, lambda ok, _: link.close())
        for _ in link:
            link.command({"left.front": 0.1})
        assert link.ended == "the link is closed"
