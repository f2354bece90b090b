"""Advice for peers that take longer than a step has: what a plant and a link measure, and what a run prints of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rtmms.cli.running.slow_peers import PeerPace, SlowPeers, advice
from rtmms.wire.peer.late_answers import ANSWER, EACH_NS, READING, SLOWEST, LateAnswers
from tests.cli.shell import rtmms as shell

PACE = PeerPace(period_s=1e-3, deadline_s=0.85e-3)


def peer(late: int = 900, commands: int = 1000, every: int = 1, delay: int = 0, **figures: float) -> dict[str, Any]:
    return {"name": "mine", "claim": ["*"], "late": late, "commands": commands, "every": every, "delay": delay,
            "metrics": figures}  # fmt: skip


def figures(typical: float, slowest: float | None = None, reading: float = 5.0) -> dict[str, float]:
    return {ANSWER: typical, SLOWEST: typical if slowest is None else slowest, READING: reading}


def test_a_slow_answer_has_two_ways_out() -> None:
    assert advice(peer(**figures(3100.0)), "controller mine", 1000, PACE) == (
        "controller mine takes 3.1 ms for an answer, and a command is due after 850 us (the period is 1 ms): "
        "run it with every=4, or run the plant with --rate 0.26"
    )


def test_a_few_late_answers_are_not_called_the_time_of_an_answer() -> None:
    text = advice(peer(late=87, **figures(5800.0)), "controller mine", 1000, PACE)
    assert text.startswith("controller mine takes 5.8 ms for its late answers (87 of 1000), and a command is due")


@pytest.mark.parametrize("usual_us", [700.0, 900.0, 1500.0, 3100.0, 9999.0, 47_000.0])
@pytest.mark.parametrize("slowest", [1.0, 1.4, 3.0])
def test_what_it_advises_leaves_room(usual_us: float, slowest: float) -> None:
    """With `every` periods between two states no answer waits for the one before, and each has its deadline."""
    text = advice(peer(**figures(usual_us, slowest * usual_us)), "controller mine", 1000, PACE)
    (every,) = map(int, re.findall(r"every=(\d+)", text))
    assert every * PACE.period_s > 1e-6 * (usual_us + 5.0)
    assert every * PACE.period_s + PACE.deadline_s > 1e-6 * slowest * usual_us
    rate = min(map(float, re.findall(r"--rate (\S+)", text)), default=1.0)
    assert 0.9 * PACE.period_s / rate >= 1e-6 * slowest * usual_us


def test_a_peer_that_has_every_already_gets_more() -> None:
    (every,) = re.findall(r"every=(\d+)", advice(peer(every=4, delay=4, **figures(4800.0)), "x", 4000, PACE))
    assert int(every) > 4


@pytest.mark.parametrize(
    ("item", "steps"),
    [(peer(late=10, **figures(3100.0)), 1000), (peer(late=20, **figures(100.0)), 1000), (peer(late=0), 1000),
     (peer(late=5, **figures(3100.0)), 0), (peer(late=30, commands=990), 1000)],
)  # fmt: skip
def test_no_advice_where_the_peer_is_not_the_cause(item: dict[str, Any], steps: int) -> None:
    """Few late commands; answers that take a tenth of their time; a peer that keeps up and reports nothing."""
    assert advice(item, "controller mine", steps, PACE) == ""


def test_a_peer_that_reports_nothing_is_measured_by_its_commands() -> None:
    text = advice(peer(late=249, commands=250), "peer 'c'", 1000, PACE)
    assert text.startswith("peer 'c' takes 4 ms for an answer")
    assert "every=5" in text


def test_the_longest_cause_is_named() -> None:
    reading = advice(peer(**figures(200.0, reading=1500.0)), "controller mine", 1000, PACE)
    assert reading.startswith("controller mine takes 1.5 ms to read a state")
    assert "ask for fewer outputs" in reading
    link = advice(peer(**figures(200.0)), "controller mine", 1000, PACE, delay_s=5e-3)
    assert link.startswith("--link delays each command of controller mine by 5 ms")
    assert "every=6" in link
    bridge = advice(peer(every=5, **figures(3100.0)), "bridge udp", 5000, PACE)
    assert bridge.startswith("bridge udp takes 3.1 ms for an answer")
    assert bridge.endswith(": run the plant with --rate 0.26")
    nearly = advice(peer(every=5, **figures(600.0)), "bridge udp", 5000, PeerPace(1e-3, 5e-4))
    assert nearly.endswith(": run the plant with --deadline 0.00067")


def test_it_comes_once_after_a_second_and_again_at_the_end() -> None:
    slow = SlowPeers(PACE, {"mine": "controller mine"}, {})
    late = peer(**figures(3100.0))
    assert slow.news([late], 999) == []
    (text,) = slow.news([late], 1000)
    assert slow.news([late], 1100) == []
    assert slow.at_end([late | figures(9000.0)], 5000) == [text]
    assert SlowPeers(PACE, {}, {}).at_end([late], 5000)[0].startswith("peer 'mine' takes 3.1 ms")
    assert SlowPeers(None, {}, {}).at_end([late], 5000) == []


def test_only_late_answers_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10 * EACH_NS
    monkeypatch.setattr("rtmms.wire.peer.late_answers.monotonic_ns", lambda: now)
    late = LateAnswers()
    late.read(7_000)
    assert late.answered(now - 3_000_000, now + 1) is None
    assert late.answered(now - 3_000_000, 0) is None
    assert late.answered(now - 3_000_000, now - 1) == {ANSWER: 3000.0, SLOWEST: 3000.0, READING: 7.0}
    assert late.answered(now - 5_000_000, now - 1) is None
    now += EACH_NS
    assert late.answered(now - 9_000_000, now - 1) == {ANSWER: 7000.0, SLOWEST: 9000.0, READING: 0.0}


SLOW = """
from time import sleep
import rtmms

class Slow(rtmms.Controller):
    claim = ("*",)

    def update(self, state):
        sleep(0.03)
        return {}
"""


@pytest.mark.full
def test_a_run_prints_it_while_it_goes_and_at_the_end(tmp_path: Path) -> None:
    """A controller that takes 30 ms where a command is due after 9 ms; the way out that is advised is taken."""
    (tmp_path / "slow.py").write_text(SLOW)
    arguments = ("run", "pendulum", "--dt", "0.01", "--duration", "3", "--json", "--controller")
    done = shell(tmp_path, *arguments, "slow.py")
    live, last = (re.findall(r"controller slow takes .*every=(\d+)", text) for text in (done.err, done.out))
    assert len(live) == 1
    assert live == last
    assert int(live[0]) >= 3
    again = shell(tmp_path, *arguments, f"slow.py:every={live[0]}")
    assert again.report["exchange"]["misses"] < 0.5 * done.report["exchange"]["misses"]
