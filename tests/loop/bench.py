"""The test bench of the loop: a fake clock, a scripted world, and a log of what happened when.

Times are in us from the start of the schedule (t_0), one period being 1000 us, so that a scenario reads like a
time table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rtmms.loop.clock import FakeClock, Schedule
from rtmms.loop.loop import Loop, LoopServices, Outcome
from rtmms.loop.modes import External, Free, Lockstep, Realtime
from rtmms.loop.pace import Pace
from rtmms.loop.policies import Policies
from rtmms.loop.ports import Applied, Exchange
from rtmms.loop.statistics import Statistics
from rtmms.plant.protocol import Channel

PERIOD_US = 1000
DT = 1e-3
US = 1000


@dataclass(frozen=True)
class Arrival:
    """A command on the wire: comes at `us` (after t_0), meant for `step`, with `values` of some actuators of `peer`."""

    us: float
    step: int
    values: Mapping[int, float]
    seq: int = -1
    peer: str = "peer"
    stale: bool = False


@dataclass(frozen=True)
class Happening:
    """Something else that serve finds from `us` on: claims taken or released, a request, a process that died."""

    us: float
    claim: Sequence[int] = ()
    release: Sequence[int] = ()
    op: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    dead: str = ""


class Plant:
    """Two actuators; the state counts steps and sums commands; a step takes cost_us[k]."""

    def __init__(self, clock: FakeClock, log: list[Any], cost_us: Mapping[int, float] | None = None) -> None:
        self.clock, self.log, self.cost = clock, log, dict(cost_us or {})
        self.dt = DT
        self.actuators = (Channel("a", lower=-1.0, upper=1.0), Channel("b", lower=-1.0, upper=1.0, neutral=0.25))
        self.outputs = (Channel("sum"),)
        self.commands: list[tuple[float, ...]] = []
        self.observed = 0
        self.reset()

    def reset(self, seed: int = 0) -> None:
        self.total, self.count = float(seed), 0

    def step(self, command: np.ndarray) -> None:
        self.log.append(("step", self.count, tuple(round(float(v), 6) for v in command)))
        self.commands.append(tuple(float(v) for v in command))
        self.clock.advance(int(self.cost.get(self.count, 10) * US))
        self.total += float(command.sum())
        self.count += 1

    def observe(self) -> dict[str, Any]:
        self.observed += 1
        return {"sum": np.array(self.total)}

    def snapshot(self) -> bytes:
        return f"{self.total!r} {self.count}".encode()

    def restore(self, blob: bytes) -> None:
        total, count = blob.split()
        self.total, self.count = float(total), int(count)


@dataclass
class Request:
    op: str
    args: Mapping[str, Any]


class World(Exchange):
    """An Exchange by a script. Follows the wire's rules for what is fresh, stale, ahead and late."""

    def __init__(
        self, clock: FakeClock, log: list[Any], claimed: Mapping[str, Sequence[int]], arrivals: Sequence[Arrival],
        happenings: Sequence[Happening] = (), ticks: Sequence[float] = (),
    ) -> None:  # fmt: skip
        self.clock, self.log = clock, log
        self.ticks, self.tick_queue, self.surplus = sorted(ticks), [], 0
        self.owner = {index: peer for peer, indices in claimed.items() for index in indices}
        self.claimed = np.array([i in self.owner for i in range(2)])
        self.fresh = np.zeros(2, dtype=np.bool_)
        self.renewed = np.zeros(2, dtype=np.bool_)
        self.applied = Applied()
        self.t0 = clock.now()
        self.arrivals = sorted(arrivals, key=lambda a: a.us)
        self.happenings = sorted(happenings, key=lambda h: h.us)
        self.newest: dict[str, int] = {}
        self.late = 0
        self.rejected: dict[str, int] = {}
        self.asked: list[Request] = []
        self.replies: list[tuple[str, Any, str | None]] = []
        self.published: list[tuple[int, float, int, int, str]] = []
        self.deadline_ns, self.collecting = 0, -1

    def at(self, us: float) -> int:
        return self.t0 + round(us * US)

    def publish(self, step, time, deadline_ns, budget_ns, outputs, applied) -> None:  # type: ignore[no-untyped-def]
        self.deadline_ns = deadline_ns
        self.log.append(("publish", step, (self.clock.now() - self.t0) / US))
        self.published.append((step, time, deadline_ns, budget_ns, applied.policy))

    def collect(self, step: int, command: np.ndarray, until_ns: int) -> bool:
        if step != self.collecting:
            self.collecting = step
            self.fresh[:] = False
            self.applied.stale = False
            self._ahead(step, command)
        while True:
            while self.arrivals and self.at(self.arrivals[0].us) <= self.clock.now():
                self._take(self.arrivals.pop(0), step, command, free=until_ns == 0)
            complete = bool((self.fresh >= self.claimed).all())
            if complete or until_ns <= self.clock.now():
                return complete
            arriving = self.at(self.arrivals[0].us) if self.arrivals else until_ns
            self.clock.sleep_until(min(arriving, until_ns))

    def _ahead(self, step: int, command: np.ndarray) -> None:
        for waiting in [w for w in getattr(self, "waiting", []) if w.step == step]:
            self.waiting.remove(waiting)
            self._use(waiting, command)

    def _take(self, arrival: Arrival, step: int, command: np.ndarray, free: bool) -> None:
        seq = arrival.seq if arrival.seq >= 0 else arrival.step
        if seq <= self.newest.get(arrival.peer, -1):
            self.rejected["stale"] = self.rejected.get("stale", 0) + 1
            return
        self.newest[arrival.peer] = seq
        if free:
            self._use(arrival, command)
        elif arrival.step > step:
            self.waiting = [*getattr(self, "waiting", []), arrival]
        elif arrival.step < step:
            self._hold(arrival, command)
        elif self.deadline_ns and self.at(arrival.us) > self.deadline_ns:
            # the loop woke from collect at the deadline: what lies beyond it is for the next call
            self._hold(arrival, command)
        else:
            self._use(arrival, command)

    def _hold(self, arrival: Arrival, command: np.ndarray) -> None:
        self.late += 1
        for index, value in arrival.values.items():
            command[index] = value
        for index, owner in self.owner.items():
            self.renewed[index] |= owner == arrival.peer

    def _use(self, arrival: Arrival, command: np.ndarray) -> None:
        for index, owner in self.owner.items():
            if owner == arrival.peer:
                self.fresh[index] = True
        for index, value in arrival.values.items():
            command[index] = value
        self.applied.seq, self.applied.step = max(self.newest.values()), arrival.step
        self.applied.stale = self.applied.stale or arrival.stale

    def serve(self, until_ns: int) -> None:
        self.log.append(("serve", (self.clock.now() - self.t0) / US))
        while self.happenings and self.at(self.happenings[0].us) <= max(self.clock.now(), until_ns):
            happening = self.happenings.pop(0)
            if happening.dead:
                self.dead = (*getattr(self, "dead", ()), happening.dead)
            for index in happening.release:
                self.claimed[index] = False
                self.owner.pop(index)
            for index in happening.claim:
                self.claimed[index] = True
                self.owner[index] = "late"
            if happening.op:
                self.asked.append(Request(happening.op, happening.args))

    def _receive_ticks(self) -> None:
        while self.ticks and self.at(self.ticks[0]) <= self.clock.now():
            came = self.at(self.ticks.pop(0))
            if len(self.tick_queue) < 16:
                self.tick_queue.append(came)
            else:
                self.surplus += 1

    def next_tick(self, until_ns: int) -> int:
        self._receive_ticks()
        if not self.tick_queue:
            coming = self.at(self.ticks[0]) if self.ticks else until_ns
            self.clock.sleep_until(min(coming, until_ns))
            self._receive_ticks()
        if not self.tick_queue:
            return 0
        self.log.append(("tick", (self.tick_queue[0] - self.t0) / US))
        return self.tick_queue.pop(0)

    def ticks_waiting(self) -> int:
        self._receive_ticks()
        return len(self.tick_queue)

    def drop_ticks(self) -> None:
        self._receive_ticks()
        self.surplus += len(self.tick_queue)
        self.tick_queue.clear()

    def waiting_for(self) -> tuple[str, ...]:
        return tuple(sorted({self.owner[i] for i in range(2) if self.claimed[i] and not self.fresh[i]}))

    def report(self) -> dict[str, Any]:
        return {"late": self.late, "rejected": self.rejected, "peers": []}

    def requests(self) -> list[Request]:
        asked, self.asked = self.asked, []
        return asked

    def reply(self, request: Request, ok: bool = True, result: Any = None, error: str | None = None) -> None:
        assert ok == (error is None)
        self.replies.append((request.op, result, error))

    def watch(self) -> Sequence[str]:
        dead, self.dead = getattr(self, "dead", ()), ()
        return dead


class Bench:
    """One scenario, run on construction: outcome, log, statistics and the commands the plant got."""

    def __init__(
        self, mode: str = "realtime", *, steps: int | None = 3, claimed: Mapping[str, Sequence[int]] | None = None,
        arrivals: Sequence[Arrival] = (), happenings: Sequence[Happening] = (), deadline_us: float = 500,
        cost_us: Mapping[int, float] | None = None, wake_late_us: float = 0, ticks: Sequence[float] = (),
        first_us: float = 0, period_us: float = PERIOD_US, **options: Any,
    ) -> None:  # fmt: skip
        self.clock, self.log = FakeClock(10**9), []
        self.clock.wake_late_ns = round(wake_late_us * US)
        self.plant = Plant(self.clock, self.log, cost_us)
        claims = {"peer": (0, 1)} if claimed is None else claimed
        self.world = World(self.clock, self.log, claims, arrivals, happenings, ticks)
        if mode == "realtime":
            self.world.t0 += round(period_us * US)  # the schedule gives its first step one period to come
        self.statistics = Statistics(64)
        self.schedule = Schedule(period_us * US, round(deadline_us * US))
        pace: Pace = {
            "realtime": lambda: Realtime(self.schedule, round(first_us * US)), "lockstep": Lockstep, "free": Free,
            "external": lambda: External(round(deadline_us * US)),
        }[mode]()  # fmt: skip
        observers = options.pop("observers", ())
        extra = {
            key: options.pop(key)
            for key in ("commands", "status", "attribution", "monitor", "agenda")
            if key in options
        }
        self.loop = Loop(
            self.plant, self.world, self.clock, pace, Policies(**options), self.statistics, observers, steps=steps,
            services=LoopServices(watch=self.world.watch, **extra),
        )  # fmt: skip
        self.outcome: Outcome = self.loop.run()

    @property
    def events(self) -> list[Any]:
        """The log without the serving."""
        return [event for event in self.log if event[0] != "serve"]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """(applied, misses, unclaimed, reused)."""
        s = self.statistics
        return s.applied, s.misses, s.unclaimed, s.reused


def on_time(steps: range | int, value: float = 0.5, us: float = 100) -> list[Arrival]:
    """A peer that answers each step `us` after its start, both actuators, with value + step / 100."""
    each = steps if isinstance(steps, range) else range(steps)
    return [Arrival(k * PERIOD_US + us, k, {0: value + k / 100, 1: 0.0}) for k in each]
