"""The loop of a bridge: states and commands, the peer's files, timer, watchdog, a plant that goes and comes back."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import rtmms
from rtmms.bridging.runner import MAX_BURST, MAX_STATES, PAUSE_S, UNPACED_S, RefusalLimit, Runner, _period_s
from tests.bridges.harness import Bridged, Companion, plant_info, state, wait
from tests.wire.bench import Host
from tests.wire.looping import Looping, plant_process


@dataclass(kw_only=True)
class Probe(rtmms.Bridge):
    """Notes what is called; its peer is the other end of a pair of sockets."""

    log: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    answering: bool = False

    def open(self, plant: rtmms.PlantInfo) -> None:
        self.log.append(f"open {plant.robot}")
        self.waits, self.tick_s = self.answering, 0.01
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.io.watch(self.ours, self.on_peer)

    def on_peer(self) -> None:
        text = self.ours.recv(4096).decode()
        if text == "post":
            self.io.post("reset")
        elif text == "close":
            self.io.unwatch(self.ours)
            self.io.unwatch(self.ours)  # twice is nothing
            self.log.append("unwatched")
        elif text.startswith("other "):
            self.command({"left.front": -1.0, text.partition(" ")[2]: 0.9})
        else:
            self.command({"left.front": float(text)})

    def on_state(self, state: rtmms.State) -> None:
        self.steps.append(state.step)

    def on_silence(self) -> None:
        self.log.append("silence")

    def tick(self, now: float) -> None:
        if self.log[-1] != "tick":
            self.log.append("tick")

    def close(self, reason: str) -> None:
        self.log.append(f"close {reason}")
        self.ours.close()
        self.theirs.close()


def test_an_observer_gets_telemetry_and_ends_with_the_plant(make_host: Callable[..., Host]) -> None:
    probe = Probe()
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 3)
        assert not extra.running.host.server.claimed.any()
        wait(lambda: extra.running.host.server.admitted() == {"bridge"})
    assert extra.bridged.reason.startswith("the plant ")  # sent bye, or is gone where that was lost
    assert probe.log == ["open toy", "tick", f"close {extra.bridged.reason}"]
    assert extra.bridged.counts["states"] == len(probe.steps)


def test_a_claimant_answers_each_state_at_once_with_the_newest_values(make_host: Callable[..., Host]) -> None:
    probe = Probe(claim=("left.*",))
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 3)
        probe.theirs.send(b"0.25")
        wait(lambda: extra.command[0] == 0.25)
        applied = extra.running.host.summaries[0]["commands"]
        wait(lambda: extra.running.host.summaries[0]["commands"] > applied + 5)
        assert extra.running.host.rejected == {}
        assert extra.command == [0.25, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [(b"other right.back", "not_claimed"), (b"other nosuch", "not_claimed"), (b"nan", "not_finite")],
)
def test_what_the_plant_would_refuse_leaves_the_last_good_command(
    bad: bytes, reason: str, make_host: Callable[..., Host]
) -> None:
    probe = Probe(claim=("left.*",))
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 3)
        probe.theirs.send(b"0.25")
        wait(lambda: extra.command[0] == 0.25)
        probe.theirs.send(bad)
        wait(lambda: extra.bridged.counts.reasons() == {reason: 1})
        assert extra.command[0] == 0.25
        probe.theirs.send(b"0.5")
        wait(lambda: extra.command[0] == 0.5)
        assert extra.running.host.rejected == {}


def test_one_that_waits_answers_when_its_peer_does(make_host: Callable[..., Host]) -> None:
    probe = Probe(claim=("*",), answering=True)
    with Companion(probe, make_host) as extra:
        wait(lambda: probe.steps)
        host = extra.running.host
        before = host.summaries[0]["commands"]
        wait(lambda: len(probe.steps) > 3)
        assert host.summaries[0]["commands"] == before
        probe.theirs.send(b"0.5")
        wait(lambda: extra.command[0] == 0.5)
        assert host.summaries[0]["commands"] == before + 1


def test_each_nth_step_only(make_host: Callable[..., Host]) -> None:
    probe = Probe(claim=("*",), every=5)
    with Companion(probe, make_host):
        wait(lambda: len(probe.steps) > 5)
    assert all(step % 5 == 0 for step in probe.steps)


def test_a_lower_rate(make_host: Callable[..., Host]) -> None:
    probe = Probe(claim=("*",), rate_hz=100.0)
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 5)
        assert extra.bridged.counts["states"] > len(probe.steps)
    assert all(b - a >= 5 for a, b in zip(probe.steps[1:], probe.steps[2:], strict=False))


def test_a_lower_rate_of_one_that_waits_does_not_hold_the_plant_up(make_host: Callable[..., Host]) -> None:
    probe = Probe(claim=("*",), rate_hz=100.0, answering=True)
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 2)
        wait(lambda: extra.running.host.summaries[0]["commands"] > 0)


class Endless:
    """A link on which there always is another state."""

    ended = ""
    errors: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.ends = socket.socketpair()
        self.plant = plant_info()
        self.polled = 0

    def filenos(self) -> tuple[int, int]:
        return self.ends[0].fileno(), self.ends[1].fileno()

    def poll(self) -> rtmms.State:
        self.polled += 1
        return state(self.plant, self.polled)

    def look_around(self) -> None: ...

    def close(self, *_: object) -> None:
        for end in self.ends:
            end.close()


def test_a_plant_that_never_pauses_does_not_keep_the_peer_waiting() -> None:
    probe, link = Probe(), Endless()
    runner = Runner(probe, None, "probe", None, None)
    probe.plant = dataclasses.replace(link.plant, granted=("left.front",))
    probe.open(link.plant)
    runner._link, runner._opened = link, True  # type: ignore[assignment]
    probe.theirs.send(b"0.5")
    ticks = []

    def tick(now: float) -> None:
        ticks.append(link.polled)
        link.ended = "enough" if len(ticks) > 2 else ""

    probe.tick = tick  # type: ignore[method-assign]
    assert runner._attend() == "enough"
    assert runner._values == {"left.front": 0.5}
    assert ticks[0] <= MAX_STATES
    probe.close("")
    link.close()
    runner._selector.close()


def test_requests_do_not_wait(make_host: Callable[..., Host]) -> None:
    probe = Probe(claim=("*",))
    asked: list[str] = []
    with Companion(probe, make_host) as extra:
        server = extra.running.host.server
        reply = server.reply
        server.reply = lambda request, *more: (asked.append(request.op), reply(request, *more))  # type: ignore
        wait(lambda: probe.steps)
        probe.theirs.send(b"post")
        wait(lambda: asked)
    assert asked == ["reset"]


def test_a_file_may_be_let_go_within_its_own_call(make_host: Callable[..., Host]) -> None:
    probe = Probe()
    with Companion(probe, make_host):
        wait(lambda: probe.steps)
        probe.theirs.send(b"close")
        wait(lambda: "unwatched" in probe.log)
        observed = len(probe.steps)
        wait(lambda: len(probe.steps) > observed + 2)


def test_the_watchdog_reports_a_silent_plant_and_states_end_the_silence(make_host: Callable[..., Host]) -> None:
    probe = Probe(claim=("*",), watchdog_periods=100)
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 3)
        extra.running.errands.append(lambda: wait(lambda: "silence" in probe.log))  # the plant's thread stands still
        wait(lambda: "silence" in probe.log)
        observed = len(probe.steps)
        wait(lambda: len(probe.steps) > observed + 2)
        assert extra.bridged.counts["silences"] >= 1


def test_states_wake_it_as_before_after_its_connection_broke(
    make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks around by itself so seldom that states would come too slowly if they did not wake it."""
    monkeypatch.setattr("rtmms.bridging.runner.CHECK_S", 1.0)
    probe = Probe(claim=("*",))
    with Companion(probe, make_host) as extra:
        steps: Any = extra.running.host.server._sockets.step
        for _ in range(2):
            wait(lambda: len(probe.steps) > 3)
            before = set(steps.connections.values())
            extra.running.errands.append(
                lambda: [steps.drop(connection) for connection in list(steps.connections.values())]
            )
            wait(lambda before=before: set(steps.connections.values()) - before)
            probe.steps.clear()
            wait(lambda: len(probe.steps) > 30)


def test_a_plant_that_comes_back_is_found_again(make_host: Callable[..., Host], free_endpoint: str) -> None:
    probe = Probe(claim=("*",))
    with Looping(make_host(token=None, exchange=free_endpoint)):
        bridged = Bridged(probe, free_endpoint, stay_s=60.0)
        bridged.start()
        wait(lambda: len(probe.steps) > 3)
    wait(lambda: any("waiting for another plant for 60 s" in line for line in bridged.messages))
    observed = len(probe.steps)
    with Looping(make_host(token=None, exchange=free_endpoint)) as second:
        wait(lambda: len(probe.steps) > observed + 3)
        probe.theirs.send(b"0.125")
        wait(lambda: second.host.command[0] == 0.125)
        assert bridged.counts["plants"] == 1
        bridged.stop()
    assert probe.log[0] == "open toy"
    assert probe.log.count("open toy") == 1
    assert probe.log[-1] == "close interrupted"


def test_another_robot_on_the_same_place_is_not_taken(make_host: Callable[..., Host], free_endpoint: str) -> None:
    probe = Probe()
    with Looping(make_host(token=None, exchange=free_endpoint)):
        bridged = Bridged(probe, free_endpoint, stay_s=60.0)
        bridged.start()
        wait(lambda: probe.steps)
    other = make_host(token=None, exchange=free_endpoint)
    other.server._plant.outputs = other.server._plant.outputs[:-1]
    with Looping(other):
        bridged.join()
    assert isinstance(bridged.fault, rtmms.RtmmsError)
    assert "has other actuators or outputs than the one before" in str(bridged.fault)
    assert probe.log[-1] == "close a fault in the bridge"


@pytest.mark.full
def test_a_killed_plant_ends_it() -> None:
    process, exchange = plant_process()
    with process:
        probe = Probe(claim=("*",))
        with Bridged(probe, exchange) as bridged:
            wait(lambda: probe.steps)
            process.kill()
            process.wait()
            bridged.join()
        assert "gone" in bridged.reason


@dataclass(kw_only=True)
class Faulty(Probe):
    def on_state(self, state: rtmms.State) -> None:
        raise RuntimeError("a bug")


def test_a_fault_of_the_bridge_closes_it_and_is_no_farewell(make_host: Callable[..., Host]) -> None:
    probe = Faulty(claim=("*",))
    with Companion(probe, make_host) as extra:
        extra.bridged.join()
        assert isinstance(extra.bridged.fault, RuntimeError)
        assert probe.log[-1] == "close a fault in the bridge"
        extra.running.wait(lambda: extra.running.host.server.dead())
        assert extra.running.host.server.claimed.all()  # the miss policy acts


@pytest.fixture
def free_endpoint() -> str:
    from tests.ports import reserve_ports

    return f"tcp://127.0.0.1:{reserve_ports()}"


def test_the_period_that_the_watchdog_counts_in() -> None:
    from dataclasses import replace

    info = plant_info()
    assert _period_s(replace(info, granted=("a",)), 4) == pytest.approx(4e-3)
    assert _period_s(info, 4) == pytest.approx(0.01)
    assert _period_s(replace(info, period_s=None), 1) == UNPACED_S


def test_more_than_telemetry_brings_is_reported(make_host: Callable[..., Host]) -> None:
    with Companion(Probe(rate_hz=500.0), make_host) as extra:
        wait(lambda: extra.bridged.messages)
        assert "without a claim the plant sends about 100 states a second" in extra.bridged.messages[0]
    with Companion(Probe(rate_hz=500.0), make_host, telemetry_hz=1000.0) as extra:
        wait(lambda: extra.bridged.counts["states"] > 10)
        assert extra.bridged.messages == []


# --- peers that send much that must be refused ---------------------------------------------------------------------


def test_refusals_beyond_a_measure_make_a_pause() -> None:
    nuisance = RefusalLimit()
    assert not nuisance.record_refusals(int(MAX_BURST), 10.0)
    assert not nuisance.record_refusals(int(MAX_BURST), 10.0), "nothing new"
    assert nuisance.record_refusals(int(MAX_BURST) + 1, 10.0)
    assert nuisance.until == pytest.approx(10.0 + PAUSE_S)
    assert not nuisance.record_refusals(int(MAX_BURST) + 20, 10.1), "so many in that time are let through"
    assert nuisance.record_refusals(10 * int(MAX_BURST), 10.1)


def test_states_are_answered_in_a_flood_of_garbage_and_the_peer_is_received_after_it(
    make_host: Callable[..., Host],
) -> None:
    probe = Probe(claim=("left.*",))
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 3)
        probe.theirs.setblocking(False)

        def flooded() -> bool:
            try:
                for _ in range(50):
                    probe.theirs.send(b"nan".ljust(4096))
            except BlockingIOError:
                pass
            return bool(extra.bridged.counts["pauses"] > 2)

        wait(flooded)
        observed = len(probe.steps)
        wait(lambda: (flooded(), len(probe.steps) > observed + 20)[1])
        wait(lambda: _drained(probe))
        probe.theirs.send(b"0.5")
        wait(lambda: extra.command[0] == 0.5)


def _drained(probe: Probe) -> bool:
    """The bridge has read all that lay there."""
    try:
        return not probe.ours.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
