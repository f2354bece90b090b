"""rtmms envelope, with a pendulum: its files, its limits, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtmms.base.errors import ModelError
from rtmms.cli.main import rtmms as program
from rtmms.studies.envelope import Ranges, farthest, measure_link
from tests.cli.shell import ROOT, rtmms

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

pytestmark = pytest.mark.full

SCENARIO = """robot = "pendulum"
duration = 0.5
[[controller]]
name = "swing"
[expect]
"final.angle" = ">= {}"
"exchange.misses" = "== 0"
"""
SMALL = ("--delay", "0:40:3", "--loss", "0:1:2", "--jitter", "0:20:2", "--rates", "100,10", "--seeds", "2")


@pytest.fixture
def envelope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command in this process, with the test plug-ins installed; status and standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "plugins"))
    (tmp_path / "one.toml").write_text(SCENARIO.format("-100"))

    def run(*text: str) -> tuple[int, str]:
        values = ["envelope", *text, "--threads", "1", "--quiet", "--no-measure"]
        return program.main(values, standalone_mode=False), capsys.readouterr().out

    return run


def test_it_writes_maps_lines_a_figure_and_the_limits(tmp_path: Path, envelope: Any) -> None:
    status, out = envelope("one.toml", "-o", "env", *SMALL, "--json")
    content = json.loads(out)
    assert (status, content["controller"], content["runs"], content["seeds"]) == (0, "swing", 20, 2)
    assert content["limits"] == {"delay_ms": 40.0, "loss": 1.0, "jitter_ms": 20.0, "rate_hz": 10.0}
    assert content["left_out"] == ["exchange.misses"]
    assert json.loads((tmp_path / "env" / "envelope.json").read_text()) == content
    rows = pq.read_table(tmp_path / "env" / "map.parquet").to_pylist()
    assert [row["link.swing.delay_ms"] for row in rows[::4]] == [0.0, 20.0, 40.0]
    angle = {(row["link.swing.delay_ms"], row["link.swing.loss"]): row["final.angle"] for row in rows}
    assert angle[0.0, 0.0] != angle[40.0, 0.0], "a delay is felt"
    assert angle[0.0, 1.0] == angle[40.0, 1.0], "where nothing arrives, its delay is nothing"
    assert (tmp_path / "env" / "envelope.png").stat().st_size > 10_000


def test_where_the_tolerance_is_left_there_the_limit_is(tmp_path: Path, envelope: Any) -> None:
    """Between what a sound link and one that loses all come to."""
    envelope("one.toml", "-o", "env", *SMALL)
    rows = pq.read_table(tmp_path / "env" / "map.parquet").to_pylist()
    sound, nothing = (next(r["final.angle"] for r in rows if r["link.swing.loss"] == loss) for loss in (0.0, 1.0))
    sign = ">=" if sound > nothing else "<="
    text = SCENARIO.format(0.5 * (sound + nothing)).replace(">=", sign)
    (tmp_path / "two.toml").write_text(text)
    content = json.loads(envelope("two.toml", "-o", "two", *SMALL, "--json")[1])
    assert content["limits"]["loss"] == 0.0
    assert content["limits"]["delay_ms"] is not None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("one.toml", "--loss", "0:2:3"), r"--loss: loss: expected a number from 0 to 1, got 2"),
        (("one.toml", "--delay", "-1:3:3"), r"--delay: delay_ms: expected a number from 0 to 10000, got -1"),
        (("one.toml", "--rates", "0"), r"--rates: rate_hz: expected a number > 0"),
        (("one.toml", "--of", "swim"), r"unknown controller 'swim'; did you mean swing"),
        (("none.toml",), "expected a tolerance that runs of a study report"),
        (("pendulum",), "expected a scenario FILE.toml"),
        (
            ("one.toml", "--delay", "0:1:10000", "--loss", "0:1:10000"),
            "--delay, --loss and --seeds: 500,000,000 runs; ex",
        ),
        (("one.toml", "--jitter", "0:1:9000000"), "--jitter and --seeds: 45,000,000 runs; expected at most 10,000,000"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_written(
    tmp_path: Path, envelope: Any, arguments: tuple[str, ...], text: str
) -> None:
    (tmp_path / "none.toml").write_text(SCENARIO.format(1).partition("[expect]")[0])
    with pytest.raises(ModelError, match=text):
        envelope(*arguments, "-o", "env")
    assert not (tmp_path / "env").exists()


ROBOTS = """duration = 1.0
dt = 0.02
[[robot]]
name = "one"
robot = "quadrotor"
[[robot]]
name = "two"
robot = "quadrotor"
position = [0.0, 3.0, 0.0]
[[controller]]
name = "hover"
robot = "one"
[[controller]]
name = "hover"
robot = "two"
[expect]
"tracking.one.z_m.rms" = "<= 100"
"""


def test_of_several_robots_one_controllers_link_is_tried(tmp_path: Path, envelope: Any) -> None:
    (tmp_path / "robots.toml").write_text(ROBOTS)
    with pytest.raises(ModelError, match=r"--of: expected one of one\.hover, two\.hover"):
        envelope("robots.toml", "-o", "env", *SMALL)
    arguments = ("--delay", "0,100", "--loss", "0,1", "--jitter", "0", "--rates", "50", "--seeds", "1")
    status, out = envelope("robots.toml", "--of", "one.hover", "-o", "env", *arguments, "--json")
    assert (status, json.loads(out)["limits"]["delay_ms"]) == (0, 100.0)
    rows = pq.read_table(tmp_path / "env" / "map.parquet").to_pylist()
    assert len({row["tracking.one.z_m.rms"] for row in rows}) > 1, "the link of this robot's controller matters"


def test_a_sweep_takes_links(tmp_path: Path, envelope: Any, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", "one.toml", "--vary", "link.swing.loss=0,1", "-o", "s.parquet", "--threads", "1", "--quiet"]
    assert program.main(arguments, standalone_mode=False) == 0
    rows = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert rows[0]["final.angle"] != rows[1]["final.angle"]
    for over, text in (
        ("link.swing.los=0,1", "unknown key of link 'los'; did you mean loss"),
        ("link.swim.loss=0,1", "unknown controller 'swim'"),
        ("link.swing.loss=0,3", "loss: expected a number from 0 to 1, got 3"),
    ):
        with pytest.raises(ModelError, match=text):
            program.main([*arguments[:3], over, *arguments[4:]], standalone_mode=False)


def test_the_limit_is_before_the_first_failure() -> None:
    assert farthest([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 0.8, 1.0]) == 2.0
    assert farthest([1.0], [0.5]) is None


def test_a_machine_is_half_its_exchange_each_way() -> None:
    timing = {"p50": 40.0, "max": 900.0}
    report = {"exchange": {"commands_applied": 980, "stale": 10, "misses": 10}, "timing_us": {"exchange": timing},
              "steps": 1000}  # fmt: skip
    assert measure_link(report) == {"delay_ms": 0.02, "worst_delay_ms": 0.45, "loss": 0.01, "steps": 1000}
    unknown = {
        "exchange": {"commands_applied": 0, "stale": 0, "misses": 0},
        "timing_us": {"exchange": dict.fromkeys(timing)},
    }
    assert measure_link(unknown | {"steps": 0})["loss"] is None


def test_the_tables_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(SCENARIO.format("-100"))
    for workers in ("1", "2"):
        arguments = ("one.toml", "-o", f"env{workers}", *SMALL, "--threads", workers, "--quiet", "--no-measure")
        assert rtmms(tmp_path, "envelope", *arguments).status == 0
    for name in ("map", "jitter", "rate"):
        item, two = (tmp_path / f"env{workers}" / f"{name}.parquet" for workers in ("1", "2"))
        assert item.read_bytes() == two.read_bytes()


def test_values_are_tried_from_the_mildest_on_in_whatever_order_they_are_given() -> None:
    values = Ranges((100.0, 0.0, 50.0, 50.0), (0.2, 0.1), (20.0, 0.0), (5.0, 200.0, 10.0))
    assert (values.delay_ms, values.loss, values.jitter_ms) == ((0.0, 50.0, 100.0), (0.1, 0.2), (0.0, 20.0))
    assert values.rate_hz == (200.0, 10.0, 5.0)
