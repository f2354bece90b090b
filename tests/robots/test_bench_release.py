"""rtmms bench release: each benchmark's result is stored, a failed one leaves the old result, and pages are written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms_benchmarks import release, setting, tables

pytestmark = pytest.mark.usefixtures("clean_checkout")


@pytest.fixture
def clean_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(setting, "commit", lambda: "0123456789ab")
    monkeypatch.setattr(release, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "main", lambda **_: 0)


def answering(text: str, status: int = 0) -> Any:
    def run(arguments: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(arguments, status, stdout=text)

    return run


def test_each_measurement_is_a_benchmark_and_each_stored_result_of_a_page_is_measured() -> None:
    from importlib.metadata import entry_points

    known = {entry.name for entry in entry_points(group="rtmms.benchmarks")}
    assert {measurement.split()[0] for measurement in release.MEASUREMENTS.values()} <= known
    quoted = {result for _, results in tables.PARTS.values() for result in results}
    assert quoted == set(release.MEASUREMENTS)


def test_a_result_has_its_setting_and_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", answering('{"rows": [1.5], "cells": [1, 2, 3]}'))
    assert release.measure("water", ["water"], tmp_path) == ""
    stored = json.loads((tmp_path / "water.json").read_text())
    assert (stored["command"], stored["rows"], stored["commit"]) == ("rtmms bench water", [1.5], "0123456789ab")
    assert {"machine", "at", "load"} <= set(stored)
    assert "cells" not in stored


def test_a_failed_benchmark_leaves_the_last_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "water.json").write_text("{}")
    monkeypatch.setattr(release, "measure", lambda name, arguments: "exit status 3" if name == "water" else "")
    assert release.main(as_json=True, only="water,plant") == 1
    assert json.loads(capsys.readouterr().out) == {"stored": ["plant"], "failed": {"water": "exit status 3"}}
    monkeypatch.undo()
    monkeypatch.setattr(subprocess, "run", answering("", 3))
    assert "exit status 3" in release.measure("water", ["water"], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["water.json"]
    assert (tmp_path / "water.json").read_text() == "{}"


def test_a_result_with_a_finding_is_stored_and_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", answering('{"counts": {"silent wrongs": 1}}', 1))
    assert "exit status 1" in release.measure("guards", ["guards"], tmp_path)
    assert json.loads((tmp_path / "guards.json").read_text())["counts"] == {"silent wrongs": 1}


def test_a_wrong_name_and_a_changed_checkout_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="watre"):
        release.main(only="watre")
    monkeypatch.setattr(setting, "commit", lambda: "0123456789ab+")
    with pytest.raises(ModelError, match="commit them first"):
        release.main(only="water")
