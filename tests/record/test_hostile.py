"""Logs and traces of somebody else's making: a sentence each, whatever they say; no code of others is run."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.errors import ModelError, shown
from rtmms.record.commands import load
from rtmms.record.log import open_log
from rtmms.record.origin import rebuilt
from rtmms.record.origin_checks import refuse_foreign_code
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
        for found in reader.iter_attachments():
            data = found.data
            if found.name == name:
                changed = change(json.loads(data))
                data = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
            writer.add_attachment(found.create_time, found.log_time, found.name, found.media_type, data)
        for _, channel, message in reader.iter_messages():
            data = change(message.data) if channel.topic == name else message.data
            writer.add_message(channels[channel.id], message.log_time, data, message.publish_time, message.sequence)
        writer.finish()  # type: ignore[no-untyped-call]
    return path


def with_field(name: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda told: {**told, name: value}


ORIGINS = [
    (with_field("robot", 2**64), "robot: expected a name"),
    (with_field("dt", 1e-300), "dt: expected a step of 1e-09 to 1e"),
    (with_field("dt", float("inf")), "dt: expected a step"),
    (with_field("seed", float("nan")), "seed: expected a whole number"),
    (with_field("preset", 3), "preset: expected a name"),
    (with_field("parameters", [1]), "parameters: expected a table"),
    (with_field("sensors", "typical"), "sensors: expected tables"),
    (with_field("outputs", [{"name": "position", "shape": [10**30]}]), "outputs: expected at most 1000000 numbers"),
    (with_field("outputs", [{"name": "position", "shape": [-3]}]), "outputs: position: expected a shape"),
    (with_field("actuators", ["torque"]), "actuators: expected a list of channels"),
    (with_field("versions", None), "versions: expected a table"),
    (lambda told: b'{"robot":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "origin.json: nested too deep"),
    (lambda told: json.dumps(told).replace('"seed": 0', '"seed": ' + "9" * 5000).encode(), "Exceeds the limit"),
]


@pytest.mark.parametrize(("change", "text"), ORIGINS)
def test_an_origin_that_no_run_wrote(sound: Path, tmp_path: Path, change: Callable[[Any], Any], text: str) -> None:
    path = rewritten(sound, tmp_path / "bad.mcap", "origin.json", change)
    with pytest.raises(ModelError, match=r"bad\.mcap: .*origin\.json: ") as told:
        open_log(path)
    assert text in str(told.value)
    assert len(str(told.value)) < 400


MESSAGES = [
    lambda data: b"[" * 100_000,
    lambda data: b"[1]",
    lambda data: data[:-3],
    lambda data: b'{"step": ' + b"1" * 5000 + data[9:],
    lambda data: b'{"step": 0, "outputs": {}}',
]


@pytest.mark.parametrize("change", MESSAGES)
def test_a_message_that_no_run_wrote(sound: Path, tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    log = open_log(rewritten(sound, tmp_path / "bad.mcap", "/state", change))
    with pytest.raises(ModelError, match=r"bad\.mcap: a message of /state, \d+: \w+Error: "):
        list(log.rows())


@pytest.mark.parametrize("change", [
    with_field("changes", [{"step": -1}]), with_field("dropped", "many"), lambda told: [told],
    lambda told: b"[" * 100_000,
])  # fmt: skip
def test_an_end_that_no_run_wrote(sound: Path, tmp_path: Path, change: Callable[[Any], Any]) -> None:
    log = open_log(rewritten(sound, tmp_path / "bad.mcap", "end.json", change))
    with pytest.raises(ModelError, match=r"bad\.mcap: end\.json: "):
        _ = log.end


def test_the_log_as_it_was_is_read(sound: Path, tmp_path: Path) -> None:
    log = open_log(rewritten(sound, tmp_path / "same.mcap", "origin.json", lambda told: told))
    assert len(list(log.rows())) == 6
    assert log.end is not None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes")
def test_a_log_does_not_choose_which_file_of_others_is_run(tmp_path: Path) -> None:
    code = tmp_path / "theirs.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    code.chmod(0o666)
    origin = {"robot": f"{code}:Theirs", "dt": 1e-3, "preset": None, "parameters": {}}
    with pytest.raises(ModelError, match=r"theirs\.py:Theirs', which would run as code: .*written by everybody"):
        rebuilt(origin)
    assert not (tmp_path / "ran").exists()
    code.chmod(0o644)
    refuse_foreign_code(code, "")
    if os.geteuid() == 0:
        os.chown(code, 65534, 65534)
        with pytest.raises(ModelError, match="another user"):
            refuse_foreign_code(code, "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(ModelError, match=r"pipe\.npz: is not a file"):
        load(tmp_path / "pipe.npz")


def test_a_trace_that_claims_more_than_there_is(tmp_path: Path) -> None:
    import zipfile

    origin = io.BytesIO()
    told = {"format": "rtmms command trace 1", "robot": "x", "dt": 1e-3, "seed": 0, "preset": None, "parameters": {}}
    np.save(origin, np.array(json.dumps(told)))
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "claim.npz", "w") as file:
        file.writestr("origin.npy", origin.getvalue())
        file.writestr("command.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    with pytest.raises(ModelError, match=r"claim\.npz: is not a command trace"):
        load(tmp_path / "claim.npz")


def test_words_of_others_do_not_steer_the_terminal() -> None:
    assert shown(f"a{ESCAPE}b\x9b2J\n\té") == "a\\x1b]0;owned\\x07b\\x9b2J\n\té"
