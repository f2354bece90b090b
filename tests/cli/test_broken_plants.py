"""Plants of a user's file that break the rules of a plant: the run names the plant's fault, and ends as failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms import rollout
from rtmms.base.errors import ModelError, RtmmsError, RtmmsWarning
from rtmms.loop.chores import View
from rtmms.loop.trace import CommandTrace
from rtmms.plant.protocol import Channel
from rtmms.plant.validation import checked_outputs
from tests.cli.shell import ROOT, rtmms
from tests.loop import bench as bench_module
from tests.loop.bench import Bench, on_time
from tests.plugins import broken_plants

FILE = ROOT / "tests" / "plugins" / "broken_plants.py"


@pytest.mark.parametrize(("kind", "text"), [
    ("TextSnapshot", r"snapshot\(\): expected bytes, got str"),
    ("SameNames", "output 'x': expected unique names, got it 2 times"),
    ("SameActuators", "actuator 'u': expected unique names, got it 2 times"),
])  # fmt: skip
def test_what_is_wrong_from_the_start_is_refused(kind: str, text: str) -> None:
    checked_outputs(broken_plants.Plain())
    with pytest.raises(ModelError, match=text):
        checked_outputs(getattr(broken_plants, kind)())


def test_a_neutral_value_beyond_its_limits_is_warned_of() -> None:
    with pytest.warns(RtmmsWarning, match=r"actuator 'u': neutral: expected a value within its limits, -1\.0 to 1\.0"):
        checked_outputs(broken_plants.Neutral())


@pytest.mark.parametrize("kind", ["Shape", "Missing"])
def test_outputs_that_change_during_a_run_are_named_with_the_step(kind: str) -> None:
    plant = getattr(broken_plants, kind)()
    view = View(plant, ())
    for step in range(broken_plants.BREAKS_AT):
        view.outputs(step)
        plant.step([0.0])
    with pytest.raises(RtmmsError, match=rf"step {broken_plants.BREAKS_AT}: output 'x': "):
        view.outputs(broken_plants.BREAKS_AT)


def test_a_plant_that_ends_its_program_does_not_end_ours() -> None:
    class Plant(bench_module.Plant):
        def step(self, command: object) -> None:
            raise SystemExit(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_module, "Plant", Plant)
        with pytest.raises(RuntimeError, match=r"the plant called sys\.exit\(0\) in step 0"):
            Bench(steps=3, arrivals=on_time(3))


def test_a_plant_may_write_into_its_command() -> None:
    """The run holds the command for the steps without another, and the log has it."""

    class Plant(bench_module.Plant):
        def step(self, command: Any) -> None:
            super().step(command)
            command[:] = 99.0

    trace = CommandTrace((Channel("a"), Channel("b")), (Channel("sum"),), 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_module, "Plant", Plant)
        bench = Bench(steps=4, arrivals=on_time(1), commands=trace)  # held from step 1 on
    assert bench.plant.commands == [(0.5, 0.0)] * 4
    assert trace.command.tolist() == [[0.5, 0.0]] * 4


def test_runs_side_by_side_leave_the_commands_as_they_were() -> None:
    commands = np.full((2, 5, 1), 0.1)
    writing = rollout(broken_plants.WritesCommand(), commands, outputs=("x",))
    assert (commands == 0.1).all()
    plain = rollout(broken_plants.Plain(), commands, outputs=("x",))
    assert np.array_equal(writing.outputs["x"], plain.outputs["x"])


def test_runs_side_by_side_name_an_output_that_changes() -> None:
    with pytest.raises(RtmmsError, match=r"rollout: run 0, sample 49: output 'x': expected the declared shape \(2,\)"):
        rollout(broken_plants.Shape(), np.zeros((1, 60, 1)), outputs=("x",))


@pytest.mark.full
@pytest.mark.parametrize(("kind", "text"), [
    ("Shape", "step 50: output 'x': expected the declared shape (2,) from observe(), got (1,)"),
    ("Missing", "step 50: output 'x': the plant declares it"), ("Exits", "the plant called sys.exit(0)"),
])  # fmt: skip
def test_a_run_ends_as_failed_and_its_log_can_be_read(tmp_path: Path, kind: str, text: str) -> None:
    result = rtmms(tmp_path, "run", f"{FILE}:{kind}", "--controller", "none", "--mode", "free", "--duration", "1",
                   "--log", "run.mcap", "--json", "--quiet")  # fmt: skip
    assert (result.status, "Traceback" in result.err, text in result.err) == (1, False, True), result.err
    if kind != "Exits":  # which ends it while its step is timed, before the run
        assert (result.report["ended"], result.report["steps"]) == ("failed", broken_plants.BREAKS_AT)
        assert rtmms(tmp_path, "log", "info", "run.mcap").status == 0


@pytest.mark.full
def test_what_a_plant_prints_does_not_precede_the_report(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", f"{FILE}:Prints", "--controller", "none", "--mode", "free", "--duration", "0.1",
                   "--json", "--quiet")  # fmt: skip
    assert (result.status, result.report["steps"]) == (0, 10)
    assert "a word from the plant" in result.err
