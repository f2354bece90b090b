"""Controllers with `@rtmms.compiled`: what they send, in Python and compiled, and what is unusual on their way."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.loop.clock import Schedule
from rtmms.loop.loop import LoopServices
from rtmms.loop.miss_policies import RESOLVED
from rtmms.loop.modes import Lockstep, Realtime
from rtmms.loop.trace import CommandTrace
from rtmms.plant.protocol import Channel
from rtmms.wire.answering import prepare
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.protocol.received_state import PlantInfo, State
from tests.wire.bench import Host
from tests.wire.looping import Looping
from tests.wire.plant.compiled_plant import Compiled, Run

CONTROLLER = """
import sys, math, time, numpy as np, rtmms
from rtmms.wire import answering
from rtmms.wire.peer.running import run_controller

class Mine(rtmms.Controller):
    outputs = ("speed", "position")
    tunable_parameters = ("gain",)
    gain = 1.0

    def start(self, plant):
        self.memory = np.array([0.0, self.gain])

    def on_parameters_changed(self, values):
        super().on_parameters_changed(values)
        self.memory[1] = self.gain

    @rtmms.compiled
    def update(time, outputs, memory, command):
        memory[0] += 1.0
        EXTRA
        for k in range(len(command)):
            command[k] = memory[1] * (0.1 * math.sin(3.0 * time + k) + 1e-3 * outputs[0] + 1e-4 * outputs[1])

class Counted(answering.Answering):
    calls = 0
    def go(self):
        Counted.calls += 1
        super().go()

controller = Mine()
answering.prepare(controller.update)
run_controller(controller, sys.argv[1], name=sys.argv[2], token="secret", answering=ANSWERING)
print(Counted.calls, controller.memory[0], flush=True)
"""


def program(answering: str = "Counted", extra: str = "pass") -> str:
    return CONTROLLER.replace("ANSWERING", answering).replace("EXTRA", extra)


def lockstep(text: str, steps: int = 400) -> tuple[Run, CommandTrace]:
    toy = Compiled()
    trace = CommandTrace(toy.actuators, toy.outputs, steps)
    return Run(Lockstep, steps=steps, plant=toy, program=text, services=LoopServices(commands=trace)), trace


@pytest.mark.full
def test_the_compiled_way_computes_what_python_computes(capfd: pytest.CaptureFixture[str]) -> None:
    run, there = lockstep(program())
    result, updates = capfd.readouterr().out.split()
    assert run.codes.count(RESOLVED) > 300
    assert float(updates) == 400
    assert int(result) < (100 if AVAILABLE else 401)
    _, here = lockstep(program("None"))
    assert (there.command == here.command).all()
    assert (there.outcome == here.outcome).all()


@pytest.mark.full
def test_it_answers_in_real_time() -> None:
    run = Run(lambda: Realtime(Schedule(4e6, 3_600_000), 10**10), steps=200, program=program())
    s = run.statistics
    assert s.steps == 200 == s.applied + s.misses + s.unclaimed
    assert run.server.report()["peers"][0]["rejected"] == 0
    assert s.applied > 100


@pytest.mark.full
def test_an_update_that_raises_ends_the_controller_with_its_error(capfd: pytest.CaptureFixture[str]) -> None:
    text = program(extra="if memory[0] > 100.0: raise ValueError('too far')")
    run = Run(lambda: Realtime(Schedule(4e6, 3_600_000), 10**10), steps=150, program=text)
    assert run.statistics.misses >= 30
    assert "too far" in capfd.readouterr().err


@pytest.mark.full
def test_a_value_that_is_no_number_is_refused_and_the_last_good_one_kept() -> None:
    text = program(extra="if memory[0] > 100.0: memory[1] = math.nan")
    run = Run(lambda: Realtime(Schedule(4e6, 3_600_000), 10**10), steps=150, program=text)
    result = run.server.report()
    assert result["rejected"]["not_finite"] >= 40
    assert abs(run.plant.state[:4]).max() < 0.2


class Timed(Host):
    """Its states can be answered for 1 s, and are alike from the first on."""

    def __init__(self, **options: Any) -> None:
        super().__init__(token="secret", **options)
        self.step = 1000

    def publish(self, deadline_ns: int = 0) -> None:
        super().publish(time.monotonic_ns() + 1_000_000_000)


@pytest.mark.full
def test_it_goes_on_with_the_next_plant_whose_sockets_have_the_same_numbers(tmp_path: Path) -> None:
    ends = {role: f"ipc://{tmp_path}/{role}" for role in ("exchange", "step", "telemetry")}
    text = program().replace("answering=Counted", "answering=Counted, reconnect=True")
    with subprocess.Popen([sys.executable, "-c", text, ends["exchange"], "mine"], stdout=subprocess.DEVNULL) as process:
        try:
            for _ in range(2):
                host = Timed(**ends)
                with Looping(host) as running:
                    for _ in range(3):  # each time another value
                        before = host.command.copy()
                        running.wait(lambda host=host, before=before: (host.command != before).all())
        finally:
            process.kill()


@pytest.mark.full
def test_parameters_are_set_while_it_answers() -> None:
    class Setting(Run):
        def _watch_codes(self) -> None:
            super()._watch_codes()
            parts = "import sys, rtmms\nwith rtmms.connect(sys.argv[1], name='who', token='secret') as link: " \
                "print(link.request('set', {'p0.gain': 5.0}))"  # fmt: skip
            self.peers.append(subprocess.Popen([sys.executable, "-c", parts, self.server.endpoints["exchange"]]))

    run = Setting(lambda: Realtime(Schedule(4e6, 3_600_000), 10**10), steps=500, program=program())
    peers = {peer["name"]: peer for peer in run.server.report()["peers"]}
    assert peers["p0"]["settable"] == {"gain": 5.0}
    assert abs(run.plant.state[:4]).max() > 0.12


def test_it_is_an_update_like_any_other_where_it_is_called_from_python() -> None:
    class Mine(rtmms.Controller):
        claim = ("a", "b")

        @rtmms.compiled
        def update(time: Any, outputs: Any, memory: Any, command: Any) -> None:
            """Adds up."""
            command[0] += time
            command[1] = outputs[0] + outputs[3]

    info = PlantInfo("toy", 1e-3, "free", None, None, (), (Channel("v", "", (3,)), Channel("s")), ("a", "b"))
    item = State({"step": 1, "timestamp": 0.5, "outputs": {"v": [1.0, 2.0, 3.0], "s": 4.0}}, info)
    mine = Mine()
    assert [mine.update(item) for _ in range(2)] == [{"a": 0.5, "b": 5.0}, {"a": 1.0, "b": 5.0}]
    assert Mine.update(Mine(), item) == {"a": 0.5, "b": 5.0}
    assert Mine.update.__doc__ == "Adds up."
    mine.memory = [1.0]  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=r"Mine.memory: expected a numpy array"):
        mine.update(item)


@pytest.mark.skipif(not AVAILABLE, reason="compiled kernels are off")
def test_an_index_beyond_its_numbers_is_an_error_and_reaches_nothing() -> None:
    class Mine(rtmms.Controller):
        @rtmms.compiled
        def update(time: Any, outputs: Any, memory: Any, command: Any) -> None:
            command[3] = memory[7]

    kernel = prepare(Mine().update)
    command = np.zeros(2)
    with pytest.raises(IndexError):
        kernel(0.0, np.zeros(3), np.zeros(2), command)
    np.testing.assert_array_equal(command, 0.0)


def test_what_numba_does_not_take_is_reported() -> None:
    class Mine(rtmms.Controller):
        @rtmms.compiled
        def update(time: Any, outputs: Any, memory: Any, command: Any) -> None:
            command.append(Path("x"))

    if AVAILABLE:
        with pytest.raises(ModelError, match=r"numba cannot compile it: Untyped global name 'Path'.*line \d+\)"):
            prepare(Mine().update)
    with pytest.raises(ModelError, match="expected a function"):
        rtmms.compiled(3)  # type: ignore[arg-type]
