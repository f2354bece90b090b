"""What a run sets at its own times: before which step, in which order, and what a failure does."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms.base.errors import ModelError
from rtmms.loop.chores import NEVER, Agenda, ScheduledChange
from tests.loop import bench as bench_module
from tests.loop.bench import Bench, Happening, Plant, World, on_time


def test_acts_are_taken_in_the_order_of_their_steps_and_again_after_a_rewind() -> None:
    acts = [ScheduledChange(5, "", {"a": 1}), ScheduledChange(2, "x", {"x.b": 2}), ScheduledChange(5, "", {"c": 3})]
    agenda = Agenda(acts)
    for _ in range(2):
        assert agenda.next == 2
        assert agenda.take(1) == []
        assert agenda.take(3) == [acts[1]]
        assert agenda.next == 5
        assert agenda.take(9) == [acts[0], acts[2]]
        assert agenda.next == NEVER
        assert agenda.take(10**9) == []
        agenda.rewind()


def test_an_empty_one_is_never_due() -> None:
    assert Agenda().next == NEVER


class Setting(Plant):
    """Takes its parameter `gain`, and logs it."""

    def set(self, **parameters: Any) -> None:
        if set(parameters) != {"gain"}:
            raise ModelError(f"no parameter {sorted(parameters)}")
        self.log.append(("set", self.count, parameters["gain"]))


def run(monkeypatch: pytest.MonkeyPatch, mode: str, acts: list[ScheduledChange], **more: Any) -> Bench:
    monkeypatch.setattr(bench_module, "Plant", Setting)
    return Bench(mode, agenda=Agenda(acts), **more)


@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
def test_the_plant_is_set_before_the_state_of_its_step_goes_out(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    acts = [
        ScheduledChange(1, "", {"gain": 2.0}),
        ScheduledChange(0, "", {"gain": 1.0}),
        ScheduledChange(1, "", {"gain": 3.0}),
    ]
    bench = run(monkeypatch, mode, acts, steps=3, arrivals=on_time(3))
    kinds = [(event[0], event[1]) if event[0] != "set" else event for event in bench.events]
    assert kinds == [
        ("set", 0, 1.0), ("publish", 0), ("step", 0), ("set", 1, 2.0), ("set", 1, 3.0), ("publish", 1), ("step", 1),
        ("publish", 2), ("step", 2),
    ]  # fmt: skip
    assert bench.counts == (3, 0, 0, 0)
    assert [change["step"] for change in bench.loop.changes] == [0, 1, 1]  # a replay sets them too


def test_it_begins_again_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [Happening(1_500, op="reset")]
    bench = run(
        monkeypatch, "realtime", [ScheduledChange(1, "", {"gain": 2.0})], steps=4, arrivals=on_time(9), happenings=asked
    )
    assert [event for event in bench.events if event[0] == "set"] == [("set", 1, 2.0), ("set", 1, 2.0)]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (ScheduledChange(1, "", {"gian": 2.0}, "run.toml:3"), "run.toml:3: no parameter ['gian']"),
        (
            ScheduledChange(1, "peer", {"peer.a": 2.0}, "run.toml:4"),
            "run.toml:4: set: this run has no peer 'peer' to send parameters to",
        ),
    ],
)
def test_what_cannot_be_set_ends_the_run(monkeypatch: pytest.MonkeyPatch, act: ScheduledChange, message: str) -> None:
    bench = run(monkeypatch, "lockstep", [act], steps=3, arrivals=on_time(3))
    assert (bench.outcome.ended, bench.outcome.message, bench.outcome.steps) == ("failed", message, 1)


class Reporting(World):
    """Takes parameters to its peers, who answer in the second look around after that."""

    looks, refuses = -1, False

    def pass_on(self, values: Any) -> None:
        self.log.append(("pass on", dict(values)))
        self.looks = 2

    def serve(self, until_ns: int) -> None:
        self.looks -= 1
        super().serve(until_ns)

    def unanswered(self) -> bool:
        return self.looks > 0

    def failures(self) -> list[str]:
        return ["peer: no such gain"] if self.refuses and self.looks == 0 else []


@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
def test_a_peer_is_waited_for_where_there_is_no_schedule(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(bench_module, "World", Reporting)
    bench = run(monkeypatch, mode, [ScheduledChange(1, "peer", {"peer.gain": 2.0})], steps=2, arrivals=on_time(2))
    assert (bench.outcome.ended, bench.counts) == ("duration", (2, 0, 0, 0))
    passed = bench.log.index(("pass on", {"peer.gain": 2.0}))
    after = [event[0] for event in bench.log[passed + 1 :]]
    assert after[: after.index("publish")].count("serve") == (2 if mode == "lockstep" else 0)


def test_a_peer_that_refuses_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "World", Reporting)
    monkeypatch.setattr(Reporting, "refuses", True)
    bench = run(monkeypatch, "lockstep", [ScheduledChange(1, "peer", {"peer.gain": 2.0})], steps=2, arrivals=on_time(2))
    assert (bench.outcome.ended, bench.outcome.message) == ("failed", "peer: no such gain")
    assert bench.outcome.steps <= 2


@pytest.mark.parametrize(
    ("settable", "message"),
    [
        ({"gain": 1.0}, "set: unknown parameter of peer 'gian'; did you mean gain?"),
        ({}, "set: 'peer' has no parameters that can change while it runs"),
    ],
)
def test_what_a_connected_peer_lacks_ends_the_run_before_its_first_step(
    monkeypatch: pytest.MonkeyPatch, settable: dict[str, float], message: str
) -> None:
    peers = {"peers": [{"name": "peer", "settable": settable}]}
    monkeypatch.setattr(bench_module.World, "report", lambda self: peers)
    act = ScheduledChange(2, "peer", {"peer.gian": 2.0}, "run.toml:4")
    bench = run(monkeypatch, "lockstep", [act], steps=3, arrivals=on_time(3))
    assert bench.outcome.ended == "failed"
    assert bench.outcome.message.startswith(f"run.toml:4: {message}")
    assert bench.outcome.steps == 0
