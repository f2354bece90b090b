"""The monitor's looks: before the first step, then when the loop gives it time; what its verdict does to the run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.loop.bench import Arrival, Bench, Happening, Plant, on_time

REMAINDER = (0.0, 0.25)
"""The command before there was one."""


class Watcher:
    """Stands for a Monitor: wants a look every `every` steps, and finds the run hopeless at its look number `last`."""

    def __init__(self, every: int = 1, last: int = 0, longest_us: float = 0.0) -> None:
        self.every, self.last, self.longest_ns = every, last, round(longest_us * 1000)
        self.commands: list[tuple[float, ...]] = []
        self.forgot = self.cleared = 0
        self.tape = np.zeros((0, 2))
        self.verdict = SimpleNamespace(sentence="too long")

    @property
    def hopeless(self) -> bool:
        return len(self.commands) == self.last

    def look(self, command: np.ndarray) -> int:
        self.commands.append(tuple(command.tolist()))
        return self.every

    def took(self, ns: int) -> None: ...

    def forget(self, step: int) -> None:
        self.forgot += 1

    def clear(self) -> None:
        self.cleared += 1


@pytest.mark.parametrize("mode", ["realtime", "lockstep", "free"])
def test_each_mode_gives_it_time_after_a_step_and_the_command_of_that_step(mode: str) -> None:
    watcher = Watcher(every=2)
    bench = Bench(mode, steps=7, arrivals=on_time(7), monitor=watcher)
    assert watcher.commands == [REMAINDER, *bench.plant.commands[0::2]]


def test_in_external_mode_as_well() -> None:
    watcher = Watcher()
    Bench("external", steps=3, arrivals=on_time(3), ticks=(0, 1000, 2000), monitor=watcher)
    assert len(watcher.commands) == 1 + 3


def test_in_real_time_it_waits_for_a_slack_that_is_long_enough() -> None:
    """A look of 700 us, 100 us for the next state, 30 us of margin: not where the step took 300 us of the 1000."""
    watcher = Watcher(longest_us=700)
    bench = Bench(steps=4, arrivals=on_time(4, us=10), cost_us={0: 300, 1: 50, 2: 300, 3: 50}, monitor=watcher)
    assert watcher.commands == [REMAINDER, *bench.plant.commands[1::2]]


def test_its_tape_has_the_commands_that_were_applied_and_not_those_that_came() -> None:
    """Of five steps three are answered in time; of the others, one late, the command before is held. Four rows."""
    watcher = Watcher()
    watcher.tape = np.full((4, 2), np.nan)
    answers = [item for item in on_time(5) if item.step != 2]
    bench = Bench(steps=5, arrivals=[*answers, Arrival(2_800, 2, {0: 9.0, 1: 9.0})], monitor=watcher)
    assert [tuple(row) for row in watcher.tape.tolist()] == bench.plant.commands[:4]
    assert bench.plant.commands[2] == bench.plant.commands[1]


def test_a_hopeless_run_ends_as_one_that_diverged() -> None:
    bench = Bench("lockstep", steps=9, arrivals=on_time(9), monitor=Watcher(last=1 + 3))
    assert (bench.outcome.ended, bench.outcome.message, bench.outcome.steps) == ("diverged", "too long", 3)


def test_a_reset_clears_it_and_a_change_makes_it_forget() -> None:
    watcher = Watcher()
    requests: list[Any] = [Happening(5_500, op="reset")]
    Bench("realtime", steps=9, arrivals=on_time(9), happenings=requests, monitor=watcher)
    assert (watcher.cleared, watcher.forgot) == (1, 0)


@pytest.mark.full
@pytest.mark.parametrize("cost_us", [{}, {2: 850}, {2: 1400}])
def test_nothing_of_it_is_within_a_step(cost_us: dict[int, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """In real time a look comes after the step has ended and before the next instant: with looks of 300 us the states
    go out, and steps begin and end, when they do without, also beside steps that leave little slack or none."""

    class Slow(Watcher):
        def look(self, command: np.ndarray) -> int:
            if running:
                running[0].log.append(("look", running[0].clock.now()))
                running[0].clock.advance(300_000)
                running[0].log.append(("looked", running[0].clock.now()))
            return super().look(command)

    running: list[Plant] = []
    times: list[list[Any]] = []
    step = Plant.step

    def timed(plant: Plant, command: np.ndarray) -> None:
        running[:] = [plant]
        times[-1].append(plant.clock.now())
        step(plant, command)
        times[-1].append(plant.clock.now())

    monkeypatch.setattr(Plant, "step", timed)
    published = []
    for monitor in (None, Slow(longest_us=300)):
        times.append([])
        bench = Bench(steps=6, arrivals=on_time(6), cost_us=cost_us, monitor=monitor)
        published.append([event for event in bench.log if event[0] == "publish"])
    assert times[0] == times[1]
    assert published[0] == published[1]
    kinds = [event[0] for event in bench.events]
    looks = [k for k, kind in enumerate(kinds) if kind == "look"]
    assert len(looks) >= 4
    assert all(kinds[k - 1 : k + 2] == ["step", "look", "looked"] for k in looks)
    assert all(k + 2 == len(kinds) or kinds[k + 2] == "publish" for k in looks)
