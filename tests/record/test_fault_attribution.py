"""Causes of misses in the log: judged late, kept with a later step, and no hindrance to a replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader

from rtmms.loop.clock import FakeClock, Schedule
from rtmms.loop.fault_attribution import FaultAttribution
from rtmms.loop.loop import Loop, LoopServices
from rtmms.loop.modes import Realtime
from rtmms.loop.policies import Policies
from rtmms.loop.statistics import Statistics
from rtmms.record.log import open_log
from tests.pendulum import Pendulum
from tests.record.runs import Scripted, recorder

PERIOD_NS = 10_000_000


class Forgetful(Scripted):
    """Does not answer step 5; the deadline passes."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock

    def collect(self, step: int, command: Any, until_ns: int) -> bool:
        if step == 5:
            self.fresh[0] = False
            self.clock.sleep_until(until_ns)
            return False
        return super().collect(step, command, until_ns)

    def waiting_for(self) -> tuple[str, ...]:
        return ("swing",)


@pytest.mark.full
def test_the_cause_of_a_miss_is_an_event_of_the_log(tmp_path: Path) -> None:
    path, plant, clock = tmp_path / "run.mcap", Pendulum(), FakeClock(10**9)
    stored = recorder(path, plant)
    plant.reset(0)
    attribution = FaultAttribution(PERIOD_NS, PERIOD_NS // 2, None, lambda: (0, 0))
    loop = Loop(
        plant, Forgetful(clock), clock, Realtime(Schedule(PERIOD_NS, PERIOD_NS // 2)), Policies(), Statistics(),
        [stored],
        steps=40, services=LoopServices(attribution=attribution),
    )  # fmt: skip
    stored.bind(loop)
    outcome = loop.run()
    stored.finish({"ended": outcome.ended, "message": "", "steps": loop.step}, plant.snapshot())
    stored.close()
    with path.open("rb") as file:
        output = [json.loads(message.data) for _, channel, message in make_reader(file).iter_messages("/event")]
    (result,) = [event for event in output if event["event"] == "causes"]
    assert (result["step"], result["miss"], result["overrun"]) == (5, "peer_late", "")
    assert [row.step for row in open_log(path).rows()] == [0, *range(40)]
