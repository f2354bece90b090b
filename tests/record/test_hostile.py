"""Logs and traces of somebody else's making: a sentence each, whatever they contain; no code of others is run."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import rtmms
import rtmms.fmi.plant
from rtmms.base.errors import ModelError, safe_text
from rtmms.base.trust import refuse_foreign_code, refuse_library
from rtmms.cli.main import rtmms as program
from rtmms.fluids.flow_grid import Grid
from rtmms.record.commands import load
from rtmms.record.log import Step, open_log
from rtmms.record.origin import rebuild_plant
from rtmms.record.tables import write_csv
from rtmms.scenario.reading import read
from tests.cli.shell import rtmms as shell
from tests.parsers import trees_near
from tests.record.runs import record

ESCAPE = "\x1b]0;owned\x07"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "run.mcap"
    record(path, 5)
    return path


def rewritten(sound: Path, path: Path, name: str, change: Callable[[Any], Any]) -> Path:
    """The log with one attachment, or the messages of one topic, changed; its checksums are right."""
    from mcap.reader import make_reader
    from mcap.writer import Writer

    with sound.open("rb") as file, path.open("wb") as out:
        reader, writer = make_reader(file), Writer(out)
        writer.start()
        summary = reader.get_summary()
        assert summary is not None
        schemas = {k: writer.register_schema(s.name, s.encoding, s.data) for k, s in summary.schemas.items()}
        channels = {
            k: writer.register_channel(c.topic, c.message_encoding, schemas[c.schema_id])
            for k, c in summary.channels.items()
        }
        for iter_attachment in reader.iter_attachments():
            data = iter_attachment.data
            if iter_attachment.name == name:
                changed = change(json.loads(data))
                data = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
            writer.add_attachment(
                iter_attachment.create_time,
                iter_attachment.log_time,
                iter_attachment.name,
                iter_attachment.media_type,
                data,
            )
        for _, channel, message in reader.iter_messages():
            data = change(message.data) if channel.topic == name else message.data
            writer.add_message(channels[channel.id], message.log_time, data, message.publish_time, message.sequence)
        writer.finish()  # type: ignore[no-untyped-call]
    return path


def with_field(name: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda origin_fields: {**origin_fields, name: value}


ORIGINS = [
    (with_field("robot", 2**64), "robot: expected a name"),
    (with_field("dt", 1e-300), "dt: expected a step of 1e-09 to 1e"),
    (with_field("dt", float("inf")), "dt: expected a step"),
    (with_field("seed", float("nan")), "seed: expected a whole number"),
    (with_field("preset", 3), "preset: expected a name"),
    (with_field("parameters", [1]), "parameters: expected a table"),
    (with_field("parameters", {"robot": "cat"}), "parameters: expected a table without robot"),
    (with_field("sensors", "typical"), "sensors: expected tables"),
    (with_field("outputs", [{"name": "position", "shape": [10**30]}]), "outputs: expected at most 1000000 numbers"),
    (with_field("outputs", [{"name": "position", "shape": [-3]}]), "outputs: position: expected a shape"),
    (with_field("actuators", ["torque"]), "actuators: expected a list of channels"),
    (with_field("versions", None), "versions: expected a table"),
    (
        lambda _: b'{"robot":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "cannot be read: nested too deep",
    ),
    (
        lambda origin_fields: json.dumps(origin_fields).replace('"seed": 0', '"seed": ' + "9" * 5000).encode(),
        "Exceeds the limit",
    ),
]


@pytest.mark.full
@pytest.mark.parametrize(("change", "text"), ORIGINS)
def test_an_origin_that_no_run_wrote(sound: Path, tmp_path: Path, change: Callable[[Any], Any], text: str) -> None:
    path = rewritten(sound, tmp_path / "bad.mcap", "origin.json", change)
    with pytest.raises(ModelError, match=r"bad\.mcap: .*origin\.json( in the log cannot be read)?: ") as refusal:
        open_log(path)
    assert text in str(refusal.value)
    assert len(str(refusal.value)) < 400


MESSAGES = [
    lambda data: b"[" * 100_000,
    lambda data: b"[1]",
    lambda data: data[:-3],
    lambda data: b'{"step": ' + b"1" * 5000 + data[9:],
    lambda data: b'{"step": 0, "outputs": {}}',
    lambda data: re.sub(rb'"angle":[^,]*', b'"angle":[[1]]', data),
]


@pytest.mark.full
@pytest.mark.parametrize("change", MESSAGES)
def test_a_message_that_no_run_wrote(sound: Path, tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    log = open_log(rewritten(sound, tmp_path / "bad.mcap", "/state", change))
    with pytest.raises(ModelError, match=r"bad\.mcap: message \d+ of /state: (nested|expected)"):
        list(log.rows())


def field(name: str, value: Any) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), name: value}).encode()


@pytest.mark.full
@pytest.mark.parametrize(("topic", "change", "text"), [
    ("/outcome", field("outcome", {}), "outcome: expected str"),
    ("/outcome", field("outcome", "=1+1"), "outcome: expected unclaimed, applied, missed, reused"),
    ("/outcome", field("policy", [None]), "policy: expected str"),
    ("/outcome", field("overruns", "many"), "overruns: expected int"),
    ("/outcome", field("lateness_ns", 2**70), "lateness_ns: expected int"),
    ("/outcome", field("clamped", 3), "clamped: expected bool"),
    ("/timing", field("plant_ns", "x"), "plant_ns: expected int"),
    ("/event", field("seed", []), "seed: expected int"),
    ("/command", field("values", {"torque": "x", "offset": 0.0}), "expected a message"),
])  # fmt: skip
def test_a_field_of_another_kind(
    sound: Path, tmp_path: Path, topic: str, change: Callable[[bytes], bytes], text: str
) -> None:
    path = rewritten(sound, tmp_path / "bad.mcap", topic, change)
    with pytest.raises(ModelError, match=r"bad\.mcap: message \d+ of ") as refusal:
        list(open_log(path).rows())
    assert text in str(refusal.value)


def test_set_points_are_numbers_and_words(sound: Path, tmp_path: Path) -> None:
    def as_set_points(data: bytes) -> bytes:
        values = {"depth_m": None, "x_m": [1], "path": "line", "heading_deg": 3}
        return json.dumps({**json.loads(data), "event": "set_points", "values": values}).encode()

    path = rewritten(sound, tmp_path / "points.mcap", "/event", as_set_points)
    result = next(row.set_points for row in open_log(path).rows() if isinstance(row, Step) and row.set_points)
    assert result.keys() == {"depth_m", "path", "heading_deg"}
    assert np.isnan(result["depth_m"])


@pytest.mark.parametrize(("change", "text"), [
    (with_field("started", []), "started: expected text"), (with_field("rate", "x"), "rate: expected a number"),
    (with_field("duration", -1e300), "duration: expected a number"),
    (with_field("description", [1]), "description: expected a table"),
])  # fmt: skip
def test_an_origin_that_no_log_has(sound: Path, tmp_path: Path, change: Callable[[Any], Any], text: str) -> None:
    path = rewritten(sound, tmp_path / "bad.mcap", "origin.json", change)
    with pytest.raises(ModelError, match=r"bad\.mcap: origin\.json: ") as refusal:
        open_log(path)
    assert text in str(refusal.value)


def test_what_a_spreadsheet_would_compute_is_text(sound: Path, tmp_path: Path) -> None:
    def change(origin_fields: dict[str, Any]) -> dict[str, Any]:
        origin_fields["outputs"][0]["name"] = "=cmd|' /C calc'!A0"
        return origin_fields

    path = rewritten(sound, tmp_path / "calc.mcap", "origin.json", change)
    out = io.StringIO()
    with pytest.raises(ModelError):  # its messages have the old name
        write_csv(open_log(path), out)
    assert ",'=cmd|' /C calc'!A0" in out.getvalue()


@pytest.mark.parametrize("arguments", [("csv", "-o"), ("parquet", "-o"), ("parquet",)])
def test_a_table_never_takes_the_place_of_its_log(sound: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = tmp_path / "run.parquet"  # a log all the same
    path.write_bytes(sound.read_bytes())
    more = [str(path)] if "-o" in arguments else []
    with pytest.raises(ModelError, match="expected another file than the input"):
        program.main(["log", arguments[0], str(path), *arguments[1:], *more], standalone_mode=False)
    assert path.read_bytes() == sound.read_bytes()


@pytest.mark.full
def test_a_table_of_a_damaged_log_leaves_the_one_before(sound: Path, tmp_path: Path) -> None:
    path = rewritten(sound, tmp_path / "bad.mcap", "/outcome", field("outcome", {}))
    for kind, before in (("csv", "run,step,time,before"), ("parquet", "PAR1 before")):
        table = tmp_path / f"before.{kind}"
        table.write_text(before)
        with pytest.raises(ModelError, match="outcome: expected str"):
            program.main(["log", kind, str(path), "-o", str(table)], standalone_mode=False)
        assert table.read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.mcap", "before.csv", "before.parquet"]


@pytest.mark.parametrize("change", [
    with_field("report", []), with_field("report", {"summary": [1]}),
    with_field("report", {"tracking": {"depth_m": 1}}), with_field("report", {"timing_us": {"plant": {"p50": "x"}}}),
    with_field("report", {"schedule": {"period_us": []}}),
    with_field("changes", [{"step": -1}]), with_field("dropped", "many"), lambda origin_fields: [origin_fields],
    lambda _: b"[" * 100_000,
])  # fmt: skip
def test_an_end_that_no_run_wrote(sound: Path, tmp_path: Path, change: Callable[[Any], Any]) -> None:
    log = open_log(rewritten(sound, tmp_path / "bad.mcap", "end.json", change))
    with pytest.raises(ModelError, match=r"bad\.mcap: end\.json: "):
        _ = log.end


@pytest.mark.full
@pytest.mark.parametrize("part", ["origin.json", "end.json", "/state", "/outcome", "/command", "/timing"])
def test_any_value_in_a_log_is_read_or_refused_in_a_sentence(sound: Path, tmp_path: Path, part: str) -> None:
    @seed(1)
    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def reads(data: st.DataObject) -> None:
        def change(origin_fields: Any) -> bytes:
            tree = data.draw(
                trees_near(json.loads(origin_fields) if isinstance(origin_fields, bytes) else origin_fields)
            )
            return json.dumps(tree, default=str).encode("utf-8", "surrogatepass")

        refusal = "near.mcap"
        try:
            log = open_log(rewritten(sound, tmp_path / "near.mcap", part, change))
            _ = log.end
            write_csv(log, io.StringIO())
        except ModelError as fault:
            refusal = str(fault)
        assert "near.mcap" in refusal

    reads()


def test_the_log_as_it_was_is_read(sound: Path, tmp_path: Path) -> None:
    log = open_log(rewritten(sound, tmp_path / "same.mcap", "origin.json", lambda origin_fields: origin_fields))
    assert len(list(log.rows())) == 6
    assert log.end is not None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes")
def test_a_log_does_not_choose_which_file_of_others_is_run(tmp_path: Path) -> None:
    code = tmp_path / "theirs.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    code.chmod(0o666)
    origin = {"robot": f"{code}:Theirs", "dt": 1e-3, "preset": None, "parameters": {}}
    with pytest.raises(
        ModelError, match=r"theirs\.py:Theirs' is a file, which would run as code: if .*, add --trust-log"
    ):
        rebuild_plant(origin)
    with pytest.raises(
        ModelError, match=r"theirs\.py:Theirs': this file would run as code, but .*written by everybody"
    ):
        rebuild_plant(origin, trusted=True)
    assert not (tmp_path / "ran").exists()
    code.chmod(0o644)
    refuse_foreign_code(code, "")
    tmp_path.chmod(0o777)
    with pytest.raises(ModelError, match=r"written by everybody \(mode 0777\)"):
        refuse_foreign_code(code, "")
    tmp_path.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(code, 0, 65534)
        code.chmod(0o664)
        with pytest.raises(ModelError, match="written by a group"):
            refuse_foreign_code(code, "")
        os.chown(code, 65534, 65534)
        with pytest.raises(ModelError, match="another user"):
            refuse_foreign_code(code, "")


def _library(module: Any, name: str) -> str:
    return f"{module.__file__}:{name}"


HOSTILE = [
    (_library(logging, "basicConfig"), {"filename": "precious.txt", "filemode": "w"}, "Python's standard library"),
    (_library(subprocess, "getoutput"), {"cmd": "echo > precious.txt"}, "Python's standard library"),
    (_library(rtmms.fmi.plant, "load"), {"path": "evil.fmu"}, "rtmms"),
    (_library(msgpack, "packb"), {"o": 1}, "an installed package"),
]


@pytest.mark.parametrize(("robot", "parameters", "owner"), HOSTILE)
def test_files_of_libraries_are_no_plants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, robot: str, parameters: dict[str, Any], owner: str
) -> None:
    """By a log, by a log that the user trusts, and by the command line: nothing of them is called."""
    monkeypatch.chdir(tmp_path)
    Path("precious.txt").write_text("mine")
    origin = {"robot": robot, "dt": 1e-3, "preset": None, "parameters": parameters}
    with pytest.raises(ModelError, match="is a file, which would run as code"):
        rebuild_plant(origin)
    with pytest.raises(ModelError, match=f"belongs to {owner}; expected a file of your own"):
        rebuild_plant(origin, trusted=True)
    with pytest.raises(ModelError, match=f"belongs to {owner}; expected a file of your own"):
        rtmms.load(robot, **parameters)
    assert Path("precious.txt").read_text() == "mine"


def test_what_cannot_give_a_plant_is_not_called(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text(
        "from subprocess import getoutput\n"
        "class Not:\n    def __init__(self, **more): raise SystemExit(7)\n"
        "def wipe(dt=None) -> None: raise SystemExit(7)\n"
    )
    for name, text in (
        ("getoutput", "function that this file defines"),
        ("Not", "expected a class of a plant, got Not"),
        ("wipe", "annotation None"),
    ):
        with pytest.raises(ModelError, match=text):
            rtmms.load(f"{code}:{name}", dt=1e-3)


def test_a_figure_of_a_log_runs_nothing_that_the_log_names(sound: Path, tmp_path: Path) -> None:
    """`rtmms plot` of a log of a user's file: drawn from the log alone."""
    code = tmp_path / "theirs.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    path = rewritten(sound, tmp_path / "log.mcap", "origin.json", with_field("robot", f"{code}:robot"))
    done = shell(tmp_path, "plot", str(path), "-o", "run.png")
    assert done.status == 0, done.err
    assert (tmp_path / "run.png").stat().st_size > 10_000
    assert not (tmp_path / "ran").exists()
    done = shell(tmp_path, "replay", str(path))
    assert done.status == 2
    assert "add --trust-log" in done.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.full
def test_a_log_of_a_file_is_replayed_by_the_users_word(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text("from rtmms.robots.cat import load\n\ndef robot(dt=None):\n    return load(dt=dt)\n")
    log = tmp_path / "run.mcap"
    done = shell(
        tmp_path,
        "run",
        f"{code}:robot",
        "--controller",
        "none",
        "--mode",
        "free",
        "--duration",
        "0.1",
        "--log",
        str(log),
    )
    assert done.status == 0, done.err
    for arguments in (("--trust-log",), ("--robot", f"{code}:robot")):
        done = shell(tmp_path, "replay", str(log), "--check", *arguments)
        assert done.status == 0, done.err


def test_a_parameter_may_have_any_name(tmp_path: Path) -> None:
    """`word` and `path` are names of arguments within rtmms, too."""
    code = tmp_path / "mine.py"
    code.write_text("from rtmms.robots.cat import load\n\ndef robot(dt=None, word=''):\n    return load(dt=dt)\n")
    rtmms.load(f"{code}:robot", word="x")
    with pytest.raises(ModelError, match=r"unknown parameter of '.*mine\.py:robot' 'path'"):
        rtmms.load(f"{code}:robot", path="x")


def test_bytes_after_the_end_of_a_log_are_reported(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "longer.mcap"
    path.write_bytes(sound.read_bytes() + bytes(100))
    log = open_log(path)
    assert len(list(log.rows())) == 6
    assert log.damage == (f"100 bytes after the log's end, at byte {sound.stat().st_size}",)


@pytest.mark.full
def test_only_logs_are_overwritten(tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    arguments = ("run", "cat", "--controller", "none", "--mode", "free", "--duration", "0.01")
    for option in ("--log", "--trace"):
        done = shell(tmp_path, *arguments, option, str(precious))
        assert done.status == 2
        assert "--force overwrites" in done.err
        assert precious.read_text() == "mine"
    done = shell(tmp_path, *arguments, "--log", str(precious), "--force")
    assert done.status == 0, done.err
    assert precious.read_bytes()[:5] == b"\x89MCAP"
    assert shell(tmp_path, *arguments, "--log", str(precious)).status == 0


def test_the_files_of_an_environment_are_its_packages() -> None:
    with pytest.raises(ModelError, match=r"'x': '.*belongs to"):
        refuse_library(Path(np.__file__), "'x'")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(ModelError, match=r"pipe\.npz: is not a file"):
        load(tmp_path / "pipe.npz")


def test_a_trace_that_claims_more_than_there_is(tmp_path: Path) -> None:
    import zipfile

    origin = io.BytesIO()
    origin_fields = {
        "format": "rtmms command trace 1",
        "robot": "x",
        "dt": 1e-3,
        "seed": 0,
        "preset": None,
        "parameters": {},
    }
    np.save(origin, np.array(json.dumps(origin_fields)))
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "claim.npz", "w") as file:
        file.writestr("origin.npy", origin.getvalue())
        file.writestr("command.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    with pytest.raises(ModelError, match=r"claim\.npz: expected a command trace"):
        load(tmp_path / "claim.npz")


def test_words_of_others_do_not_steer_the_terminal() -> None:
    assert safe_text(f"a{ESCAPE}b\x9b2J\n\té") == "a\\x1b]0;owned\\x07b\\x9b2J\\x0a\\x09é"


def test_what_a_log_contains_is_printed_as_text(sound: Path, tmp_path: Path) -> None:
    """Escape sequences, line ends and rich's markup: `log info`, `compare` and `replay` print them as what they are."""

    def evil(origin_fields: dict[str, Any]) -> dict[str, Any]:
        versions = origin_fields["versions"] | {"rtmms": f"1{ESCAPE}"}
        return {**origin_fields, "mode": f"free\nwhole     yes{ESCAPE}", "versions": versions, "command_line": "\x9b2J"}

    log = rewritten(sound, tmp_path / "a.mcap", "origin.json", evil)
    item, other = tmp_path / "[" / "oops].mcap", tmp_path / "oops].mcap"
    for copy in (item, other):  # of one name, so that `compare` prints their paths: "[/oops]" is markup to rich
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(log.read_bytes())
    both = ("compare", "[/oops].mcap", "oops].mcap")
    for arguments in (("log", "info", str(log)), both, ("replay", str(log), "--trust-log")):
        result = shell(tmp_path, *arguments)
        assert result.status in (0, 2)
        assert "Traceback" not in result.err
        text = result.out + result.err
        assert not {character for character in text if character in "\x1b\x07\x9b"}
        assert "\nwhole     yes" not in result.out
    assert "[/oops].mcap" in shell(tmp_path, *both).out


@pytest.mark.full
def test_what_a_plant_sends_is_printed_as_text(tmp_path: Path) -> None:
    """`rtmms status` of a port that a program of others holds."""
    answer = {
        "robot": f"manta{ESCAPE}", "paused": False, "mode": "free\nmisses 0", "dt": 1e-3, "step": 1, "steps": None,
        "time": 0.0, "commands_applied": 0, "misses": 5, "late": 0, "overruns": 0,
        "peers": [{"name": f"a{ESCAPE}", "state": "\x1b[2J", "claim": ["left.*\x1b[2J"], "settable": {ESCAPE: "\x9b"}}],
    }  # fmt: skip
    code = (
        "import sys, json\nfrom rtmms.cli import live\n"
        "live._ask = lambda *_: json.loads(sys.argv[1])\n"
        "live.status.main(args=[], standalone_mode=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(answer)], capture_output=True, text=True, check=True)
    assert not {character for character in done.stdout if character in "\x1b\x07\x9b"}
    assert [line for line in done.stdout.splitlines() if line.startswith("misses")] == []
    assert "a\\x1b]0;owned\\x07 (\\x1b[2J): left.*\\x1b[2J" in done.stdout


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="descriptors")
def test_an_object_that_cannot_be_printed_is_a_failure(tmp_path: Path) -> None:
    """--json with standard output closed."""
    code = [sys.executable, "-m", "rtmms.cli.main", "log", "info", "--json"]
    record(tmp_path / "run.mcap", 3)
    result = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *code, str(tmp_path / "run.mcap")], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert result.stderr == "rtmms: --json: expected an open standard output for the JSON object, got a closed one\n"


SCENARIOS = [
    ('log = "../precious.mcap"', "in the folder that the scenario runs in"),
    ('log = "/tmp/precious.mcap"', "in the folder that the scenario runs in"),
    ('log = ".bashrc"', "expected a name that ends in .mcap"),
    ('trace = "mine.npz"', "rtmms did not make"),
    ('figure = "photo.png"', "rtmms did not make"),
    ('force = true\nlog = "a.mcap"', "force: is an option of the command line alone"),
    ('[[bridge]]\nname = "mqtt"\npassword_file = "../id_rsa"', "in the folder that the scenario runs in"),
    ('[[bridge]]\nname = "zenoh"\nzenoh_config = "~/z.json5"', "in the folder that the scenario runs in"),
]


@pytest.mark.parametrize(("text", "message"), SCENARIOS)
def test_a_scenario_reads_and_writes_below_its_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    for name in ("mine.npz", "photo.png"):
        Path(name).write_bytes(b"\x89PNG of mine")
    Path("s.toml").write_text(f'robot = "cat"\n{text}\n')
    with pytest.raises(ModelError, match=re.escape(message)):
        read(Path("s.toml"))


def test_a_scenario_overwrites_its_own_figure_and_log(tmp_path: Path, sound: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.mcap").write_bytes(sound.read_bytes())
    Path("run.png").write_bytes(b"\x89PNG tEXtSoftware Matplotlib version3.10")
    Path("s.toml").write_text('robot = "cat"\nlog = "run.mcap"\nfigure = "run.png"\n')
    assert read(Path("s.toml")).options == {"log": "run.mcap", "figure": "run.png"}


@pytest.mark.full
def test_zenoh_takes_no_endpoint_that_is_a_file() -> None:
    """Zenoh deletes what stands at the path of a socket."""
    zenoh = pytest.importorskip("rtmms_bridges.zenoh")
    bridge = next(var for var in vars(zenoh).values() if isinstance(var, type) and hasattr(var, "zenoh_config"))
    for field in ("listen", "connect"):
        with pytest.raises(ModelError, match=f"{field}: expected SCHEME/ADDRESS"):
            bridge(**{field: ("unixsock-stream//tmp/notes.txt",)})


def test_words_of_a_log_are_plain_in_a_table(sound: Path, tmp_path: Path) -> None:
    """Names of channels come from the log, too."""

    def evil(origin_fields: dict[str, Any]) -> dict[str, Any]:
        return {**origin_fields, "actuators": [{**origin_fields["actuators"][0], "name": "\x1b[2Jx"}]}

    result = shell(tmp_path, "log", "csv", str(rewritten(sound, tmp_path / "a.mcap", "origin.json", evil)))
    assert "\x1b" not in result.out + result.err
    assert "\\x1b[2Jx" in result.out


def test_a_shape_and_a_gap_without_end_are_refused(sound: Path, tmp_path: Path) -> None:
    many = rewritten(sound, tmp_path / "many.mcap", "origin.json", with_field("shape", {"parts": [{}] * 20_000}))
    with pytest.raises(ModelError, match="shape: expected a table of 10000 parts at most"):
        open_log(many)


@pytest.mark.full
def test_a_flow_that_unpacks_to_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "flow.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("u.npy", "w", force_zip64=True) as file,
    ):
        for _ in range(1100):
            file.write(bytes(1 << 20))
    with pytest.raises(ModelError, match="expected arrays of at most 64 MiB, got 1100 MiB once unpacked"):
        Grid.load(path)
