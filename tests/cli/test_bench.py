"""The words of `rtmms bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rtmms_benchmarks as benchmarks
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.cli.bench import _choices, _read, bench
from rtmms_benchmarks import loop
from rtmms_benchmarks.requirements import module, program, requires
from rtmms_benchmarks.setting import refuse_less


def _benchmark(as_json: bool, frames: int = 10, duration: float = 1.5, what: str = "", slow: bool = False) -> int:
    return 0


def test_parameters_with_defaults_are_options_of_their_type() -> None:
    parts = ["--frames", "20", "--duration=3", "--slow", "--what", "codec"]
    assert _read("x", parts, _choices(_benchmark)) == {"frames": 20, "duration": 3.0, "slow": True, "what": "codec"}
    assert _read("x", [], _choices(_benchmark)) == {}


@pytest.mark.parametrize(
    ("parts", "output"),
    [
        (["--frame", "3"], "did you mean --frames"),
        (["frames"], "unknown option of bench x 'frames'"),
        (["--frames"], "--frames needs a value"),
        (["--frames", "2.5"], "expected a whole number, got '2.5'"),
        (["--frames", "-1"], "expected a number >= 0"),
        (["--duration", "nan"], "expected a number >= 0"),
        (["--slow=perhaps"], "expected true or false, got 'perhaps'"),
    ],
)
def test_other_words_are_refused(parts: list[str], output: str) -> None:
    with pytest.raises(ModelError, match=output):
        _read("x", parts, _choices(_benchmark))


class _Point:
    """An entry point of a benchmark in this file."""

    def __init__(self, run: Any) -> None:
        self.module, self._run = __name__, run

    def load(self) -> Any:
        return self._run


def _bench(run: Any, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("rtmms.cli.bench.entry_points_of", lambda group: {"one": _Point(run)})
    return CliRunner().invoke(bench, ["one", *arguments])


def test_a_benchmark_that_lacks_something_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    @requires(lambda load, **_: [program("no-such-program", "apt install it") if load else "", module("os", "none")])
    def main(as_json: bool = False, load: bool = True) -> int:
        measured.append(load)
        return 0

    lacking = _bench(main, [], monkeypatch)
    assert isinstance(lacking.exception, ModelError)
    assert str(lacking.exception) == "bench one: expected the program no-such-program, found none: apt install it"
    assert measured == []
    assert _bench(main, ["--load=false"], monkeypatch).exit_code == 0
    assert measured == [False]


@pytest.mark.parametrize(
    "fault", [RtmmsError("no more"), ModelError("no more"), ZeroDivisionError(), KeyboardInterrupt()]
)
def test_what_a_benchmark_had_measured_is_written_when_it_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: BaseException
) -> None:
    def measure(rows: list[Any]) -> None:
        rows.append({"us": np.float64(1.5), "all": np.arange(2), "name": fault})
        raise fault

    def main(as_json: bool = False) -> int:
        table: dict[str, Any] = {"rows": []}
        nothing: list[int] = []
        measure(table["rows"])
        return len(nothing)

    monkeypatch.chdir(tmp_path)
    _bench(main, [], monkeypatch)
    (path,) = tmp_path.iterdir()
    left = json.loads(path.read_text())
    row = {"us": 1.5, "all": [0, 1], "name": str(fault)}
    assert left["measured"] == {"main": {"table": {"rows": [row]}}, "measure": {"rows": [row]}}
    assert left["benchmark"] == "one"


def test_refused_options_leave_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def main(as_json: bool = False, blocks: int = 0) -> int:
        wanted = [1, 2]
        refuse_less("one: --blocks", blocks, len(wanted))
        return 0

    monkeypatch.chdir(tmp_path)
    assert isinstance(_bench(main, [], monkeypatch).exception, ModelError)
    assert list(tmp_path.iterdir()) == []


def test_a_benchmark_states_all_programs_that_it_looks_for() -> None:
    """A program that is looked for while a benchmark measures ends it; `requires` looks before."""
    for path in (Path(benchmarks.__file__).parent).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "loaded(" in text and path.name != "yardsticks.py":
            assert "@requires" in text, path.name


def test_loop_needs_a_load_only_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    options: dict[str, Any] = {"blocks": 1, "seconds": 1.0, "rates": "1000"}
    assert loop.main.missing(load="idle", **options) == []
    assert ["stress-ng" in text for text in loop.main.missing(load="both", **options)] == [True]
