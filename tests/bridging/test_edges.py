"""The loop of a bridge where somebody comes, goes, sends nonsense or falls silent."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rtmms.bridging.runner import FIRST_LINES, LINE_INTERVAL_S, MAX_LINE_LENGTH, LinePrinter
from rtmms.cli import bridge as command
from tests.bridges.harness import Bridged, Companion, wait
from tests.bridges.swimmer import Sailing, Swimmer
from tests.bridging.test_runner import Probe
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S, Host
from tests.wire.looping import Looping


def test_the_plant_gets_the_farewell_before_the_peer_is(make_host: Callable[..., Host]) -> None:
    """Closing a peer's library may take its time, and a plant in lockstep waits."""
    probe = Probe(claim=("*",))
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 3)
        server, free = extra.running.host.server, []
        close = probe.close

        def slow(reason: str) -> None:
            wait(lambda: not server.claimed.any())
            free.append(True)
            close(reason)

        probe.close = slow  # type: ignore[method-assign]
        extra.bridged.stop()
        assert free


def test_a_new_plant_is_not_driven_by_what_was_for_the_last_one(make_host: Callable[..., Host]) -> None:
    probe, place = Probe(claim=("*",)), f"tcp://127.0.0.1:{reserve_ports()}"
    with Looping(make_host(token=None, exchange=place)) as first:
        bridged = Bridged(probe, place, stay_s=60.0)
        bridged.start()
        wait(lambda: probe.steps)
        probe.theirs.send(b"0.75")
        wait(lambda: first.host.command[0] == 0.75)
    probe.steps.clear()
    with Looping(make_host(token=None, exchange=place)) as second:
        wait(lambda: len(probe.steps) > 5)
        assert second.host.command[0] == 0.0
        probe.theirs.send(b"0.5")
        wait(lambda: second.host.command[0] == 0.5)
        bridged.stop()


@pytest.mark.parametrize(("how", "left"), [("hold", 0.25), ("neutral", 0.0)])
def test_a_peer_that_is_silent_is_lost_once(make_host: Callable[..., Host], how: Any, left: float) -> None:
    probe = Probe(claim=("left.*",), peer_timeout_s=0.2, peer_lost=how)
    with Companion(probe, make_host) as extra:
        wait(lambda: len(probe.steps) > 3)
        assert not extra.bridged.counts["peer_lost"], "a peer that never sent is not lost"
        for count in (1, 2):
            since = len(extra.commands)
            probe.theirs.send(b"0.25")
            wait(lambda since=since: extra.drove(0.25, since))
            wait(lambda count=count: extra.bridged.counts["peer_lost"] == count)
            wait(lambda: extra.command[0] == left)
            step = extra.running.host.step
            wait(lambda step=step: extra.running.host.step > step + 300)
            assert extra.command[0] == left
            assert extra.bridged.counts["peer_lost"] == count


class Swimming(Probe):
    """Drives the swimmer, whose actuators have other names."""

    def command(self, values: Any) -> None:
        super().command({"thrust" if name == "left.front" else name: value for name, value in values.items()})


def test_a_plant_that_waits_for_the_peer_is_not_silent() -> None:
    probe = Swimming(claim=("*",), answering=True, watchdog_periods=1)
    with Sailing(probe) as sailing:
        wait(lambda: probe.steps)
        threading.Event().wait(0.5)  # five times what the watchdog allows
        assert "silence" not in probe.log
        gate = threading.Event()
        step = sailing.plant.step
        sailing.plant.step = lambda values: (gate.wait(PATIENCE_S), step(values))
        probe.theirs.send(b"1.0")
        wait(lambda: "silence" in probe.log)  # it has its answer now, and does not go on
        gate.set()
        wait(lambda: len(probe.steps) > 1)


def test_in_lockstep_a_wrong_answer_lets_the_last_good_one_stand() -> None:
    probe = Swimming(claim=("*",), answering=True)
    with Sailing(probe) as sailing:
        for count, word in enumerate((b"1.0", b"other nosuch", b"other nosuch", b"nan", b"1.5"), 1):
            wait(lambda count=count: len(probe.steps) == count)
            probe.theirs.send(word)
        wait(lambda: len(probe.steps) == 6)
        assert [thrust for thrust, _ in sailing.plant.commands] == [1.0, 1.0, 1.0, 1.0, 1.5]
        assert isinstance(sailing.plant, Swimmer)
        assert sailing.bridged.counts.reasons() == {"not_claimed": 2, "not_finite": 1}


# -- what is reported ------------------------------------------------------------------------------------------------


def test_lines_that_a_peer_causes_are_few_and_harmless() -> None:
    result: list[str] = []
    log = LinePrinter(result.append)
    for i in range(1000):
        log(f"line {i}", 5.0)
    assert result == [f"line {i}" for i in range(FIRST_LINES)]
    log("\x1b[2Jred\n\u200b" + "x" * 5000, 5.0 + LINE_INTERVAL_S)
    assert result[FIRST_LINES] == f"({1000 - FIRST_LINES} more lines were not printed)"
    assert result[-1].startswith("\\x1b[2Jred\\x0a\\x200bxxx")
    assert len(result[-1]) < MAX_LINE_LENGTH + 20
    log("another", 5.0 + LINE_INTERVAL_S)
    log.end()
    assert result[-1] == "(1 more lines were not printed)"
    log("grüße, 5 µs", 1e6)
    assert result[-1] == "grüße, 5 µs"


@pytest.mark.skipif(sys.platform == "win32", reason="no pipe can be asked there")
def test_a_reader_that_has_stopped_costs_the_line_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    full = 0
    while True:
        try:
            full += os.write(theirs, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(theirs, True)
    with os.fdopen(theirs, "w") as result, os.fdopen(ours, "rb") as read:
        monkeypatch.setattr(sys, "stderr", result)
        done = threading.Thread(target=command._print_in_time, args=("nobody reads this",), daemon=True)
        done.start()
        done.join(PATIENCE_S)
        assert not done.is_alive()
        assert read.read(full) == b"x" * full
        command._print_in_time("and this one comes")
        assert read.readline() == b"rtmms bridge: and this one comes\n"
        monkeypatch.undo()
