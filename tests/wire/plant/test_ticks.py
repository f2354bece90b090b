"""Ticks over real sockets: who may send them, how they pass on, what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rtmms
from rtmms.wire.plant.keepalive import SILENT_NS
from rtmms.wire.protocol.errors import NotConnectedError
from tests.wire.bench import PATIENCE_S, Host, Raw
from tests.wire.looping import Looping


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host(mode="external")


def tick(peer: Raw, seq: int) -> None:
    peer.send_message(type="tick", seq=seq)
    peer.host.arrived()
    peer.host.serve()


def test_one_that_asks_for_it_ticks_without_a_claim(host: Host, raw: Raw) -> None:
    raw.join([], ticks=True)
    assert raw.welcome["ticks"] is True
    assert (len(raw.welcome["identity"]), raw.welcome["period_s"]) == (16, None)
    assert raw.welcome["deadline_s"] == pytest.approx(5e-4)
    assert not host.server.claimed.any()
    tick(raw, 1)
    assert host.server.next_tick(0) > 0
    assert host.server.next_tick(0) == 0
    assert host.server.report()["ticks"] == {"used": 1, "surplus": 0, "peer": "raw"}
    host.publish()
    assert raw.read_message()["type"] == "state"  # it sees where the plant is
    assert host.collect()  # and is not waited for


def test_the_instant_of_a_tick_is_when_it_came(host: Host, raw: Raw) -> None:
    raw.join([], ticks=True)
    before = time.monotonic_ns()
    tick(raw, 1)
    after = time.monotonic_ns()
    assert before <= host.server.next_tick(0) <= after


def test_a_claimant_may_tick_where_nobody_else_does(host: Host, raw: Raw) -> None:
    raw.join(["left.*"])
    tick(raw, 5)
    assert host.server.ticks_waiting() == 1
    host.publish()
    raw.command({"left.front": 0.5})
    assert host.collect()
    assert host.command[0] == 0.5


@pytest.mark.parametrize(
    ("seq", "code"), [(7, "seq"), (3, "seq"), (1 << 63, "seq"), ("8", "wrong_type"), (None, "wrong_type")]
)
def test_a_tick_that_does_not_rise_is_refused_and_counted(host: Host, raw: Raw, seq: Any, code: str) -> None:
    raw.join([], ticks=True)
    tick(raw, 7)
    tick(raw, seq)
    assert host.server.ticks_waiting() == 1
    assert host.rejected == {code: 1}
    assert raw.receive_error()["code"] == code


def test_a_burst_leaves_sixteen_and_counts_the_rest(host: Host, raw: Raw) -> None:
    raw.join([], ticks=True)
    for seq in range(1, 41):
        raw.send_message(type="tick", seq=seq)
    host.until(lambda: host.server.ticks_waiting() == 16 and host.server.report()["ticks"]["surplus"] == 24)
    assert [host.server.next_tick(0) > 0 for _ in range(17)] == [True] * 16 + [False]


def test_dropped_ticks_are_surplus(host: Host, raw: Raw) -> None:
    raw.join([], ticks=True)
    tick(raw, 1)
    host.server.drop_ticks()
    assert host.server.next_tick(0) == 0
    assert host.server.report()["ticks"] == {"used": 0, "surplus": 1, "peer": "raw"}


def test_only_one_ticks_until_it_sends_bye(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    first, second = make_raw(host).join([], "first", ticks=True), make_raw(host)
    refusal = second.hello([], "second", ticks=True)
    assert (refusal["code"], refusal["text"]) == (
        "claim_held", "hello: expected one peer that sends ticks, got a second; peer 'first' sends them already",
    )  # fmt: skip
    driver = make_raw(host).join(["*"], "driver")
    tick(driver, 1)
    assert driver.receive_error()["code"] == "not_claimed"
    first.send_message(type="bye", reason="done")
    host.until(lambda: "first" not in host.server.admitted())
    second.join([], "second", ticks=True)
    tick(second, 1)
    assert host.server.ticks_waiting() == 1
    assert host.server.report()["ticks"]["peer"] == "second"


def test_a_killed_ticker_makes_room(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    first = make_raw(host).join([], "first", ticks=True)
    first.vanish()
    host.until(lambda: "first" not in host.server.admitted())  # nothing is published meanwhile: it is asked
    second = make_raw(host).join([], "second", ticks=True)
    tick(second, 1)
    assert host.server.ticks_waiting() == 1


def test_one_that_is_silent_for_long_makes_room_and_is_notified(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    first = make_raw(host).join([], "first", ticks=True)
    begun = time.monotonic_ns()
    host.until(lambda: "first" not in host.server.admitted())
    assert time.monotonic_ns() - begun > SILENT_NS
    second = make_raw(host).join([], "second", ticks=True)
    tick(second, 1)
    assert host.server.ticks_waiting() == 1
    while (output := first.read_message())["type"] == "state":
        pass
    assert (output["type"], "second" in output["reason"]) == ("bye", True)


def test_a_silent_one_whose_place_nobody_took_ticks_on(host: Host, raw: Raw) -> None:
    raw.join([], ticks=True)
    host.until(lambda: "raw" not in host.server.admitted())
    tick(raw, 1)
    assert host.server.ticks_waiting() == 1
    assert "raw" in host.server.admitted()


def test_ticks_before_the_warm_up_and_without_the_token_are_refused(host: Host, raw: Raw) -> None:
    assert raw.hello([], ticks=True, token="wrong")["code"] == "token"
    assert raw.hello([], ticks="yes")["code"] == "wrong_type"
    welcome = raw.hello([], ticks=True)
    raw.data = raw._dealer(welcome["identity"])
    raw.data.connect(welcome["step_endpoint"])
    host.until(lambda: raw.data is not None and raw.data.poll(0))
    tick(raw, 1)
    assert host.rejected["too_early"] == 1


def test_one_that_only_ticks_cannot_command(host: Host, raw: Raw) -> None:
    raw.join([], ticks=True)
    host.publish()
    raw.command({})
    assert raw.receive_error()["code"] == "not_claimed"


@pytest.mark.parametrize("mode", ["realtime", "lockstep", "free"])
def test_other_modes_keep_their_own_time(make_host: Callable[..., Host], make_raw: Any, mode: str) -> None:
    host = make_host(mode=mode)
    assert make_raw(host).hello([], ticks=True)["code"] == "mode"
    peer = make_raw(host).join(["*"])
    tick(peer, 1)
    assert peer.receive_error()["code"] == "unknown_type"


class Ticked(Looping):
    """A plant that steps at each tick, and waits for commands for wait_s at most."""

    wait_s = 0.2

    def _run(self) -> None:
        while not self._stop.is_set():
            if self.host.server.next_tick(time.monotonic_ns() + 2_000_000):
                self.host.publish()
                self.host.collect(self.wait_s)
                self.host.advance()
            self.host.serve()


@pytest.fixture
def ticked(host: Host) -> Iterator[Ticked]:
    with Ticked(host) as looping:
        yield looping


def test_a_link_ticks_and_another_one_answers(ticked: Ticked) -> None:
    exchange = ticked.host.exchange
    with (
        rtmms.connect(exchange, name="driver", claim="*", token="secret") as driver,
        rtmms.connect(exchange, name="clock", ticks=True, token="secret") as clock,
    ):
        assert clock.plant.ticks
        assert not driver.plant.ticks
        clock.tick()  # waits for its own warm-up; the driver's may still be under way
        for k in range(1, 30):
            state = next(clock)
            assert state.step == k - 1
            clock.tick()
            driver.look_around()
        ticked.wait(lambda: ticked.host.step == 30)


def test_a_claimant_ticks_itself_step_by_step(ticked: Ticked) -> None:
    ticked.wait_s = PATIENCE_S
    with rtmms.connect(ticked.host.exchange, claim="*", ticks=True, token="secret") as link:
        link.tick()
        for state in link:
            link.command({"left.front": 0.01 * state.step})
            if state.step == 20:
                break
            link.tick()
        ticked.wait(lambda: ticked.host.step == 21)
        assert ticked.host.command[0] == pytest.approx(0.2)
    assert ticked.host.server.report()["late"] == 0


def test_one_that_is_slow_to_begin_is_asked_whether_it_is_there_and_loses_no_tick(ticked: Ticked) -> None:
    with rtmms.connect(ticked.host.exchange, ticks=True, token="secret") as link:
        time.sleep(0.5)  # meanwhile the plant asks, with states that look like the last of the warm-up
        for k in range(1, 11):
            link.tick()
            ticked.wait(lambda k=k: ticked.host.step == k)
    assert ticked.host.rejected == {}


def test_a_link_without_either_cannot_tick(ticked: Ticked) -> None:
    with (
        rtmms.connect(ticked.host.exchange, token="secret") as link,
        pytest.raises(rtmms.ModelError, match="has neither ticks nor a claim"),
    ):
        link.tick()


def test_a_tick_to_a_plant_that_has_ended_reports_it(ticked: Ticked) -> None:
    with rtmms.connect(ticked.host.exchange, ticks=True, token="secret") as link:
        link.tick()
        ticked.end("enough")
        ticked.wait(lambda: next(link, None) is None)
        with pytest.raises(NotConnectedError, match="tick: the plant"):
            link.tick()
