"""The usual step in one compiled call: nothing of Python within it, and whatever is unusual as without it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rtmms.loop.clock import Schedule
from rtmms.loop.log_row import RowHead
from rtmms.loop.loop import LoopServices
from rtmms.loop.miss_policies import PUBLISHED, RESOLVED
from rtmms.loop.modes import Lockstep, Realtime
from rtmms.loop.ports import Progress
from rtmms.loop.trace import CommandTrace
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.plant.fast_path import WireFastPath
from tests.record.runs import recorder
from tests.wire.bench import Toy
from tests.wire.plant.compiled_plant import Compiled, Observed, Run

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="Linux, and numba's compiler")

PERIOD_NS = 4_000_000
MANY = 200_000
"""Steps of a run that ends when the test has seen enough."""
PROGRAM = """
import sys, struct, msgpack, rtmms
with rtmms.connect(sys.argv[1], name=sys.argv[2], claim=sys.argv[3], token="secret", errors="collect") as link:
    names = link.plant.granted
    def raw(values, step=None, seq=None, **more):
        link._seq += 1
        message = {"type": "command", "seq": seq or link._seq, "step": k if step is None else step, "values": values}
        link._send(msgpack.packb(message | more))
    for state in link:
        k = state.step
        values = {name: 0.001 * min(k, 600) + 0.1 * i for i, name in enumerate(names)}
        WHAT
        link.command(values)
"""


def realtime(deadline: float = 0.9) -> Realtime:
    return Realtime(Schedule(PERIOD_NS, round(deadline * PERIOD_NS)), 10**10)


def program(what: str) -> str:
    return PROGRAM.replace("WHAT", what.replace("\n", "\n        "))


@pytest.mark.full
@pytest.mark.parametrize("recorded", [False, True])
def test_no_python_function_is_called_from_the_wake_up_to_the_end_of_the_step(recorded: bool, tmp_path: Path) -> None:
    """With a recorder, to the instant at which the row is written."""
    events: list[tuple[int, str]] = []
    windows: list[tuple[Progress, int]] = []
    stored = recorder(tmp_path / "run.mcap", Observed(), patient=False) if recorded else None

    def hook(frame: Any, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            events.append((time.monotonic_ns(), frame.f_code.co_name))

    class Hooked(Run):
        def _watch_codes(self) -> None:
            fast_path = self.loop._compiled._fast
            assert fast_path is not None
            if stored is not None:
                stored.bind(self.loop)
            commit = fast_path.commit

            def committed(code: int) -> Progress | None:
                passed = commit(code)
                if passed is not None and passed.resolved and passed.is_recorded is recorded:
                    windows.append(
                        (passed, passed.stepped if stored is None else stored._head[RowHead._fields.index("wall_ns")])
                    )
                return passed

            fast_path.commit = committed  # type: ignore[method-assign]
            sys.setprofile(hook)

    try:
        Hooked(
            realtime, steps=MANY, plant=Observed() if recorded else Compiled(), observers=[stored] if stored else [],
            until=lambda _: len(windows) > 50 and len(events) > 1000,
        )  # fmt: skip
    finally:
        sys.setprofile(None)
        if stored is not None:
            stored.close()
    assert len(windows) > 50
    assert all(
        passed.begun < passed.published < passed.gathered <= passed.called < passed.stepped <= end
        for passed, end in windows
    )
    ends = [(passed.begun, end) for passed, end in windows]
    within = [name for at, name in events if any(begun <= at <= stepped for begun, stepped in ends)]
    assert not within
    assert len(events) > 1000, "the hook saw nothing at all"


@pytest.mark.full
def test_a_plant_in_python_is_called_between_a_compiled_exchange_and_the_slack() -> None:
    run = Run(realtime, steps=MANY, plant=Toy(), until=lambda run: run.codes.count(RESOLVED) > 50)
    s = run.statistics
    assert s.applied + s.misses == s.steps < MANY
    assert run.plant.state[4] == pytest.approx(1e-3 * s.steps)


@pytest.mark.full
def test_a_plant_that_fails_in_a_compiled_step_reports_it() -> None:
    with pytest.raises(RuntimeError, match="status 7"):
        Run(Lockstep, steps=100, program=program("values[names[0]] = 1.1 if k == 80 else 0.0"))


UNUSUAL = {
    "usual": "pass",
    "whole numbers and others": "values = {n: (k % 3 - 1 if i % 2 else values[n]) for i, n in enumerate(names)}",
    "out of range": "if k % 7 == 0: values[names[1]] = 5.0 * (-1) ** k",
    "another order": "if k % 5 == 0: values = dict(reversed(values.items()))",
    "some only": "if k % 4 == 0: values = {names[2]: 0.5}",
    "nothing": "if k % 4 == 0: values = {}",
    "refused first": "if k % 5 == 0: raw({names[0]: float('nan')}); raw({'tail': 1.0}); raw(values, seq=1)",
    "ahead": "if k % 6 == 0: raw({names[0]: 0.7}, step=k + 2)\nif k % 6 == 2: continue",
    "malformed": "if k % 9 == 0: link._send(b'\\xc1')",
    "more fields": "if k % 3 == 0: raw(values, step=k, at=[k, 0.5]); continue",
    "another form": "raw(values, step=k)\ncontinue",
    "in two pieces": (
        "import time; data = link._encode(k + 1000, k, values); wire = link._at.data._connection\n"
        "link._seq = k + 1000\n"
        "wire.send(data[:20]); time.sleep(2e-3 * (k % 3 == 0)); wire.send(data[20:])\n"
        "continue"
    ),
    "two at once": (
        "link._seq = 2 * k + 1000\n"
        "link._send(link._encode(link._seq, k, dict.fromkeys(names, 0.3))[2:])\n"
        "link._seq += k % 2 == 0\n"  # else the second is refused
        "link._at.data._connection.send(bytes([4, 2, 1, 88]) + link._encode(link._seq, k, values))\n"
        "continue"
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("what", UNUSUAL)
def test_whatever_a_peer_sends_means_the_same_as_on_the_general_path(what: str, monkeypatch: Any) -> None:
    def lockstep() -> tuple[Any, ...]:
        toy = Compiled()
        trace = CommandTrace(toy.actuators, toy.outputs, 120)
        run = Run(Lockstep, steps=120, plant=toy, program=program(UNUSUAL[what]), services=LoopServices(commands=trace))
        message = run.server.report()
        peer = {key: value for key, value in message["peers"][0].items() if key not in ("late", "state")}
        return run, (trace.command.tolist(), trace.outcome.tolist(), trace.seq.tolist(), message["rejected"], peer)

    compiled, here = lockstep()
    monkeypatch.setattr(WireFastPath, "bind", lambda *_: False)
    general, there = lockstep()
    assert bool(compiled.codes or compiled.batches) is (what != "another form")
    assert not general.codes
    rarely = what in ("two at once", "in two pieces", "another form")
    assert compiled.codes.count(RESOLVED) > (-1 if rarely else 10), compiled.codes
    if what == "two at once":  # the second may come with the first, or in the next step's slack
        assert here[0][-1] == there[0][-1]
        return
    assert here == there


@pytest.mark.full
@pytest.mark.parametrize("policy", ["hold", "extrapolate", "home"])
def test_policies_stand_in_within_the_compiled_step(policy: str, monkeypatch: Any) -> None:
    def paced() -> tuple[Run, CommandTrace]:
        toy = Compiled()
        trace = CommandTrace(toy.actuators, toy.outputs, 120)
        what = "if 60 <= k < 70: continue"
        run = Run(
            realtime, steps=120, plant=toy, program=program(what), services=LoopServices(commands=trace), miss=policy
        )
        return run, trace

    for k in range(2):
        run, trace = paced()
        s = run.statistics
        assert s.steps == 120 == s.applied + s.misses + s.unclaimed
        assert [trace.outcome[k] for k in range(60, 70)] == [2] * 10
        before = trace.command[59] if trace.outcome[59] == 1 and trace.outcome[58] == 1 else None
        if before is not None and policy == "hold":
            assert (trace.command[60:70] == before).all()
        if before is not None and policy == "home":
            assert (abs(trace.command[69]) < abs(before)).all()
        if before is not None and policy == "extrapolate":
            assert trace.command[64][0] == pytest.approx(before[0] + 0.005)
        monkeypatch.setattr(WireFastPath, "bind", lambda *_: False)


@pytest.mark.full
@pytest.mark.parametrize("what", ["import os; os._exit(0)", "link.close(); sys.exit()"])
def test_a_peer_that_goes_is_missed_or_its_claim_is_free(what: str) -> None:
    """The run goes on until the plant has found that, so that a slow machine needs no other numbers."""

    class Watched(Run):
        def _watch_codes(self) -> None:
            super()._watch_codes()
            threading.Thread(target=self._end_soon, daemon=True).start()

        def _end_soon(self) -> None:
            while not any(peer["state"] in ("gone", "dead") for peer in self.server.report()["peers"]):
                time.sleep(0.01)
            lost = self.statistics.misses + self.statistics.unclaimed
            while self.statistics.misses + self.statistics.unclaimed < lost + 50:
                time.sleep(0.01)
            self.loop.end("stop")

    run = Watched(realtime, steps=MANY, program=program(f"if k == 60: {what}"))
    s = run.statistics
    assert s.steps == s.applied + s.misses + s.unclaimed
    assert (s.unclaimed if "close" in what else s.misses) >= 50
    assert run.outcome.ended == "stop"
    assert run.server.report()["peers"][0]["state"] == ("gone" if "close" in what else "dead")


@pytest.mark.full
def test_abort_ends_the_run_by_name() -> None:
    run = Run(realtime, steps=200, program=program("if k == 60: import time; time.sleep(1)"), miss="abort")
    assert run.outcome.ended == "policy"
    assert "p0 sent no command" in run.outcome.message


@pytest.mark.full
def test_several_claimants_are_taken_in_one_call() -> None:
    run = Run(Lockstep, ("left.front", "left.back", "right.*"), steps=300)
    assert run.statistics.applied == 300
    assert run.codes.count(RESOLVED) > 200
    assert [peer["commands"] for peer in run.server.report()["peers"]] == [300] * 3


@pytest.mark.full
def test_a_newcomer_is_let_in_while_steps_are_compiled() -> None:
    """It takes what the first one lets go of."""
    program_ = program("if k == 100: link.close(); sys.exit()")
    second = """
import sys, rtmms, time
time.sleep(0.3)
while True:
    try:
        link = rtmms.connect(sys.argv[1], name="next", claim="*", token="secret")
        break
    except rtmms.NotConnectedError:
        time.sleep(0.01)
for state in link:
    link.command(dict.fromkeys(link.plant.granted, 0.25))
"""
    import subprocess

    class Second(Run):
        def _watch_codes(self) -> None:
            super()._watch_codes()
            parts = [sys.executable, "-c", second, self.server.endpoints["exchange"]]
            self.peers.append(subprocess.Popen(parts))

    run = Second(realtime, steps=MANY, program=program_, until=lambda run: bool(run.plant.state[0] == 0.25))
    s = run.statistics
    assert MANY > s.steps == s.applied + s.misses + s.unclaimed
    assert s.unclaimed > 0
    assert [peer["name"] for peer in run.server.report()["peers"]] == ["p0", "next"]
    assert run.plant.state[0] == 0.25


@pytest.mark.full
def test_a_signal_within_a_compiled_step_is_heeded_at_once() -> None:
    """Python's handlers run between two calls: a wait ends for them."""
    ended: list[float] = []

    class Interrupted(Run):
        def _watch_codes(self) -> None:
            super()._watch_codes()
            signal.signal(signal.SIGALRM, lambda *_: (ended.append(time.monotonic()), self.loop.end("interrupt")))
            threading.Thread(target=self.ring, daemon=True).start()

        def ring(self) -> None:
            while not hasattr(self, "loop") or self.loop.step < 2:
                time.sleep(0.01)
            signal.raise_signal(signal.SIGALRM)

    try:
        run = Interrupted(lambda: Realtime(Schedule(150_000_000, 140_000_000), 10**10), steps=1000)
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert run.outcome.ended == "interrupt"
    assert 1 <= run.outcome.steps < 30


@pytest.mark.full
def test_the_compiled_step_is_handed_over_where_a_peer_is_late(monkeypatch: Any) -> None:
    what = "if k % 10 == 0: import time; time.sleep(6e-3)"

    def enough(run: Run) -> bool:
        return run.statistics.misses >= 15 and run.server.report()["late"] >= 10 and RESOLVED in run.codes

    run = Run(realtime, steps=MANY, program=program(what), until=enough)
    s = run.statistics
    assert MANY > s.steps == s.applied + s.misses + s.unclaimed
    assert set(run.codes) <= {PUBLISHED, RESOLVED, 0}
