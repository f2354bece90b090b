"""rtmms run --from LOG@SECONDS: a run that goes on from a recorded moment, with a pendulum."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.cli.main import main
from rtmms.record.log import Start, Step, open_log
from rtmms.record.origin import sha256_of
from tests.cli.shell import ROOT, rtmms

QUIET = ("--json", "--quiet")


def steps(path: Path) -> dict[int, tuple[bytes, bytes]]:
    """Command and outputs of each step."""
    return {row.step: (row.command.tobytes(), row.outputs.tobytes()) for row in open_log(path).rows()
            if isinstance(row, Step)}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds in lockstep, whose controller has a state of its own: a.mcap."""
    folder = tmp_path_factory.mktemp("branch")
    arguments = (
        "--mode",
        "lockstep",
        "--controller",
        "tired",
        "--duration",
        "2",
        "--seed",
        "3",
        "--set",
        "damping=0.3",
    )
    assert rtmms(folder, "run", "tuned", *arguments, "--log", "a.mcap", *QUIET).status == 0
    return folder


@pytest.mark.full
def test_a_branch_without_a_change_gives_the_bits_of_the_log(recorded: Path) -> None:
    """The controller goes on from where it was, too: the robot, its parameters, mode and controller are the log's."""
    result = rtmms(recorded, "run", "--from", "a.mcap@1.2", "--log", "same.mcap", *QUIET)
    assert result.status == 0, result.err
    report = result.report
    assert (report["robot"], report["mode"], report["seed"], report["steps"]) == ("tuned", "lockstep", 3, 80)
    assert report["from"] == {
        "log": "a.mcap", "sha256": sha256_of(recorded / "a.mcap"), "seconds": 1.2, "step": 120, "set": {}, "before": [],
    }  # fmt: skip
    whole, branch = steps(recorded / "a.mcap"), steps(recorded / "same.mcap")
    assert list(branch) == list(range(120, 200))
    assert branch == {k: whole[k] for k in branch}


@pytest.mark.full
def test_a_branch_replays_alone_and_is_branched_from_again(recorded: Path) -> None:
    """Its log has the state that it began with: nothing else is needed. The second branch sets a parameter."""
    assert rtmms(recorded, "run", "--from", "a.mcap@1", "--log", "one.mcap", "--set", "damping=2", *QUIET).status == 0
    folder = recorded / "alone"
    folder.mkdir()
    (recorded / "one.mcap").rename(folder / "one.mcap")
    assert rtmms(folder, "replay", "one.mcap", "--check").status == 0
    result = rtmms(folder, "run", "--from", "one.mcap@1.5", "--controller", "swing:amplitude=2", "--duration", "1",
                 "--log", "two.mcap", *QUIET)  # fmt: skip
    assert result.status == 0, result.err
    message = result.report["from"]
    assert (message["step"], message["set"], [entry["seconds"] for entry in message["before"]]) == (
        150,
        {"damping": 2},
        [1.0],
    )
    assert rtmms(folder, "replay", "two.mcap", "--check").status == 0
    item, two = steps(folder / "one.mcap"), steps(folder / "two.mcap")
    assert (min(two), max(two)) == (150, 249)
    assert item[150] != two[150]
    (first,) = [row for row in open_log(folder / "two.mcap").rows() if isinstance(row, Start)]
    assert first.outputs.tobytes() == item[149][1]


@pytest.mark.full
def test_a_parameter_that_is_set_acts_from_that_moment_on(recorded: Path) -> None:
    result = rtmms(recorded, "run", "--from", "a.mcap@1", "--log", "set.mcap", "--set", "damping=2", *QUIET)
    assert result.status == 0, result.err
    whole, branch = steps(recorded / "a.mcap"), steps(recorded / "set.mcap")
    rate = [np.frombuffer(item[100][1])[1] for item in (whole, branch)]
    assert rate[0] != rate[1]


@pytest.mark.full
def test_a_fault_begins_at_that_moment(recorded: Path) -> None:
    arguments = ("--set", "fault.torque=stuck=0", "--log", "stuck.mcap")
    result = rtmms(recorded, "run", "--from", "a.mcap@1", *arguments, *QUIET)
    assert result.status == 0, result.err
    assert rtmms(recorded, "replay", "stuck.mcap", "--check").status == 0
    again = rtmms(recorded, "run", "--from", "stuck.mcap@1.5", *QUIET)
    assert again.status == 0, again.err
    assert "in force as in the log: fault.torque; --set fault.torque= ends it" in again.err
    assert "are not repeated" not in again.err
    assert "are not repeated" in rtmms(recorded, "run", "--from", "stuck.mcap@1", *QUIET).err
    assert steps(recorded / "stuck.mcap")[199] != steps(recorded / "a.mcap")[199]


@pytest.mark.full
@pytest.mark.parametrize("mode", ["realtime", "free"])
def test_it_goes_on_in_other_modes(recorded: Path, mode: str) -> None:
    arguments = ("--mode", mode, "--duration", "0.3", "--controller", "swing", "--log", f"{mode}.mcap")
    result = rtmms(recorded, "run", "--from", "a.mcap@0.5", *arguments, *QUIET)
    assert (result.status, result.report["steps"], result.report["mode"]) == (0, 30, mode), result.err
    assert min(steps(recorded / f"{mode}.mcap")) == 50
    assert rtmms(recorded, "replay", f"{mode}.mcap", "--check").status == 0


@pytest.mark.full
def test_it_goes_on_from_the_end(recorded: Path) -> None:
    result = rtmms(recorded, "run", "--from", "a.mcap@2", "--duration", "0.1", "--log", "end.mcap", *QUIET)
    assert (result.status, result.report["steps"]) == (0, 10), result.err
    assert min(steps(recorded / "end.mcap")) == 200


@pytest.mark.full
def test_branches_are_compared_on_one_clock_and_named(recorded: Path) -> None:
    result = rtmms(recorded, "run", "--from", "a.mcap@1.5", "--log", "late.mcap", *QUIET)
    assert result.status == 0, result.err
    both = json.loads(rtmms(recorded, "compare", "a.mcap", "late.mcap", "-o", "both.png", "--json").out)
    assert list(both) == ["a", "late (a from 1.5 s)"]
    assert (recorded / "both.png").stat().st_size > 5_000
    assert rtmms(recorded, "plot", "late.mcap", "-o", "late.png").status == 0
    info = json.loads(rtmms(recorded, "log", "info", "late.mcap", "--json").out)
    assert (info["whole"], info["steps"], info["simulated_s"], info["missing"]) == (True, 50, 0.5, 0)
    assert info["from"]["seconds"] == 1.5
    assert "state" not in info["from"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--from", "a.mcap"), "--from a.mcap: expected LOG@SECONDS"),
        (("--from", "a.mcap@soon"), "with a number >= 0, got 'soon'"),
        (("--from", "a.mcap@-1"), "with a number >= 0, got '-1'"),
        (("--from", "a.mcap@3"), "expected a time from 0 s to 2 s, as the log has no others, got 3 s"),
        (("--from", "none.mcap@1"), "none.mcap: there is no such file"),
        (("mover", "--from", "a.mcap@1"), "expected the robot of the log, 'tuned', got 'mover'"),
        (("--from", "a.mcap@1", "--dt", "0.02"), "--dt 0.02: --from continues the log, so expected its value 0.01"),
        (("--from", "a.mcap@1", "--seed", "4"), "--seed 4: --from continues the log, so expected its value 3"),
        (("--from", "a.mcap@1", "--sensors", "typical"), "--sensors: not possible with --from: the log's sensors stay"),
        (("--from", "a.mcap@1", "--set", "dampin=1"), "did you mean damping?"),
        (("--from", "a.mcap@1", "--set", "fault.torqe=stuck"), "did you mean torque?"),
        (("--from", "a.mcap@1", "--controller", "swig"), "unknown controller 'swig'"),
        (("--from", "a.mcap@1", "--log", "./a.mcap"), "expected another file than the input a.mcap"),
        (("pendulum", "--trust-log"), "--trust-log: expected --from LOG@SECONDS with it"),
        ((), "Missing argument 'ROBOT'"),
    ],
)
def test_wrong_words_are_one_sentence(
    recorded: Path, arguments: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(recorded)
    monkeypatch.syspath_prepend(ROOT / "tests" / "plugins")
    current = () if "swig" in arguments else ("--controller", "none")
    log = () if "--log" in arguments else ("--log", "wrong.mcap")
    with pytest.raises(SystemExit) as ended:
        main(["run", *log, *arguments, *current, "--quiet"])
    err = capfd.readouterr().err
    assert ended.value.code == 2, err
    assert text in err
    assert "Traceback" not in err
    assert not (recorded / "wrong.mcap").exists()


def forged(recorded: Path, name: str, **changes: Any) -> None:
    """A copy of the log, of which the origin states something else."""
    from mcap.reader import make_reader
    from mcap.writer import Writer

    with (recorded / "a.mcap").open("rb") as file, (recorded / name).open("wb") as out:
        reader, writer = make_reader(file), Writer(out)
        writer.start()
        for iter_attachment in reader.iter_attachments():
            data = iter_attachment.data
            if iter_attachment.name == "origin.json":
                data = json.dumps({**json.loads(data), **changes}).encode()
            writer.add_attachment(
                iter_attachment.create_time,
                iter_attachment.log_time,
                iter_attachment.name,
                iter_attachment.media_type,
                data,
            )
        channels: dict[int, int] = {}
        for schema, channel, message in reader.iter_messages():
            assert schema is not None
            if channel.id not in channels:
                built = writer.register_schema(schema.name, schema.encoding, schema.data)
                channels[channel.id] = writer.register_channel(channel.topic, channel.message_encoding, built)
            writer.add_message(
                channels[channel.id], message.log_time, message.data, message.publish_time, message.sequence
            )
        writer.finish()


@pytest.mark.full
def test_a_log_is_data(recorded: Path) -> None:
    """A file that it names is run where the user allows it; of another version, or damaged at its beginning, it is none
    to go on from."""
    (recorded / "theirs.py").write_text("open('ran', 'w')\n")
    cases = {
        "robot": ({"robot": "theirs.py:robot"}, "add --trust-log"),
        "controller": ({"controllers": ["theirs.py"]}, "the log's controller 'theirs.py' names a file"),
        "word": ({"controllers": ["predictive:cost=theirs.py:deep"]}, "names a file, which would run as code"),
        "version": ({"versions": {"rtmms": "0.0.1"}}, "got one of 0.0.1"),
        "state": ({"branch": {"log": "x", "sha256": "0" * 64, "seconds": 0, "step": 0, "set": {}, "before": [],
                              "state": "%"}}, "branch: state: expected a snapshot"),
        "step": ({"branch": {"log": "x", "sha256": "0" * 64, "seconds": 0, "step": -1}}, "branch: step: expected"),
    }  # fmt: skip
    for name, (changes, text) in cases.items():
        forged(recorded, f"{name}.mcap", **changes)
        result = rtmms(recorded, "run", "--from", f"{name}.mcap@1", "--quiet")
        assert (result.status, text in result.err) == (2, True), (name, result.err)
        assert "Traceback" not in result.err
    assert not (recorded / "ran").exists()


@pytest.mark.full
def test_a_log_that_does_not_give_its_bits_is_none_to_go_on_from(recorded: Path) -> None:
    forged(recorded, "other.mcap", parameters={"damping": 0.31})
    result = rtmms(recorded, "run", "--from", "other.mcap@1", "--quiet")
    assert (result.status, "the replay of the log differs from the log: step 1: angle" in result.err) == (1, True), (
        result.err
    )


SLOW = """
import time
import rtmms

class Slow(rtmms.Controller):
    claim = ("*",)

    def update(self, state):
        time.sleep(0.02 * (state.step % 10 == 0))
        return {channel.name: 0.1 for channel in self.plant.actuators}

    def start(self, plant):
        self.plant = plant
"""


@pytest.mark.full
def test_a_controller_may_take_its_time_over_the_past(tmp_path: Path) -> None:
    """Whoever waits for it looks after requests meanwhile."""
    (tmp_path / "slow.py").write_text(SLOW)
    arguments = ("tuned", "--mode", "lockstep", "--controller", "slow.py", "--duration", "0.5", "--log", "slow.mcap")
    assert rtmms(tmp_path, "run", *arguments, *QUIET).status == 0
    result = rtmms(tmp_path, "run", "--from", "slow.mcap@0.3", "--trust-log", *QUIET)
    assert result.status == 0, result.err
    assert result.report["steps"] == 20


@pytest.mark.full
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    """With the manta: the branch without a change has the bits of the log."""
    page = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")
    (block,) = [part for part in page.split("```")[1::2] if "--from run.mcap@2" in part]
    for line in block.strip().splitlines():
        arguments = shlex.split(line, comments=True)[1:]
        result = rtmms(tmp_path, *arguments, *(("--quiet",) if arguments[0] == "run" else ()))
        assert result.status == 0, (line, result.err)
    whole, same, other = (steps(tmp_path / f"{name}.mcap") for name in ("run", "same", "other"))
    assert (min(same), max(same)) == (2000, 3999)
    assert same == {k: whole[k] for k in same}
    assert other[3000] != whole[3000]
    assert (tmp_path / "both.png").stat().st_size > 10_000
