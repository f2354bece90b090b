"""A case of a sweep is the run that `rtmms run` makes of the same scenario, to the bit, or it is refused by name.

The options are those of click's own list, the keys those of the scenario's reader: a new one fails here until it has an
example.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.base.parameters import parameters_of
from rtmms.cli.main import rtmms as program
from rtmms.cli.run import run
from rtmms.cli.running.one_case import why_not
from rtmms.cli.sweep import sweep
from rtmms.scenario.links import KEYS as LINK_KEYS
from rtmms.scenario.reading import TABLES
from rtmms.scenario.run_options import StudyUse, run_options
from rtmms.scenario.tables import EventTable, RobotTable
from tests.cli.shell import rtmms

SINGLE = """
robot = "manta"
dt = 0.01
duration = 0.2
{options}
[parameters]
drag_coefficient = 1.4
{parameters}
[[controller]]
name = "gait"
frequency_hz = 0.9
{tables}
"""
TWO = """
dt = 0.01
duration = 0.1
[[robot]]
name = "leader"
robot = "manta"
{keys}
[[robot]]
name = "follower"
robot = "manta"
position = [-3.0, 0.5, -1.0]
[[controller]]
name = "gait"
robot = "leader"
[[event]]
at_s = 0.05
set = {{ "leader.gait.frequency_hz" = 0.5 }}
"""


def item(options: str = "", parameters: str = "", tables: str = "") -> str:
    return SINGLE.format(options=options, parameters=parameters, tables=tables)


def replaced(before: str, after: str) -> str:
    assert before in SINGLE
    return item().replace(before, after)


def link(text: str) -> str:
    return item(tables=f'[[link]]\ncontroller = "gait"\n{text}\n')


def event(text: str) -> str:
    return item(tables=f"[[event]]\n{text}\n")


TYPICAL = '[sensors]\nprofile = "typical"\n'
SHOWN: dict[str, str] = {
    "controllers": replaced("frequency_hz = 0.9", "frequency_hz = 0.4"), "links": link("delay_ms = 30"),
    "set_": replaced("1.4", "1.1"), "duration": replaced("0.2", "0.13"), "dt": replaced("dt = 0.01", "dt = 0.005"),
    "coupling": item('coupling = "monolithic"'), "preset": item('preset = "paper"'), "sensors": item(tables=TYPICAL),
    "seed": item("seed = 7", tables=TYPICAL),
}  # fmt: skip
"""Options that a study carries and that change the motion, each with an example."""
OTHERS: dict[tuple[str, ...], str] = {
    ("robots",): TWO.format(keys=""),
    ("estimate", "tracking_start"): item("estimate = true\ntracking-start = 0.1", tables=TYPICAL),
    ("priority", "affinity", "exchange", "step", "telemetry", "telemetry_hz", "as_json", "quiet", "log", "trace",
     "figure", "mode"): item("""
priority = "off"
affinity = "off"
exchange = "tcp://127.0.0.1:0"
step = "tcp://127.0.0.1:0"
telemetry = "tcp://127.0.0.1:0"
telemetry-hz = 10
as_json = true
quiet = true
log = "one.mcap"
trace = "one.npz"
figure = "one.png"
mode = "lockstep"
"""),
}  # fmt: skip
"""The other options that a study carries, in scenarios of several."""
BRIDGE = item(tables='[[bridge]]\nname = "udp"')


def refused() -> dict[str, str]:
    """Each key that a study refuses, with a scenario that has another value than the default."""
    keys = {
        name: run_option
        for name, run_option in run_options().items()
        if run_option.study is StudyUse.REFUSED and run_option.key
    }
    result = {}
    for name, option in keys.items():
        other = next((word for word in option.names if word not in ("lockstep", option.default)), None)
        value = json.dumps(other) if other else "true" if option.value_type is bool else str((option.default or 0) + 1)
        result[name] = item(f"{name.replace('_', '-')} = {value}")
    return result


REFUSES = {**refused(), "force": item("force = true")}
"""`force` is refused by every command."""

TABLES_OF_ONE: dict[tuple[str, ...], str] = {
    ("robot", "parameters", "sensors", "controller", "link", "event", "expect"): item(
        parameters="current_m_s = [0.1, 0.0, 0.0]",
        tables="""amplitude_deg = 20.0
[sensors]
profile = "typical"
[sensors.depth]
rate_hz = 50.0
[[link]]
controller = "gait"
loss = 0.5
[[event]]
at_s = 0.1
set = { drag_coefficient = 0.7 }
[expect]
"final.truth.rod_power" = ">= -1e9"
""",
    ),
    ("sweep",): item(tables="[sweep.over]\nseed = [0]"),
}
"""Tables of a scenario; a study refuses `bridge`."""
OF_ROBOT: dict[tuple[str, ...], str] = {
    ("name", "robot", "position", "heading_deg", "parameters", "sees"): TWO.format(keys="""
position = [0.0, 0.2, -1.5]
heading_deg = 30.0
parameters = { drag_coefficient = 0.9 }
sees = ["follower"]
"""),
    ("estimate", "sensors"): TWO.format(keys='estimate = true\nsensors = "typical"'),
    ("preset",): TWO.format(keys='preset = "paper"').replace("dt = 0.01", ""),  # both robots have its step
}  # fmt: skip
OF_EVENT: dict[tuple[str, ...], str] = {
    ("at_s", "set", "fault", "target", "until_s"): item(tables="""
[[event]]
at_s = 0.05
set = { drag_coefficient = 0.7 }
[[event]]
at_s = 0.1
set = { "gait.frequency_hz" = 0.3 }
[[event]]
at_s = 0.05
fault = "stuck"
target = "left.front"
until_s = 0.1
[[event]]
at_s = 0.05
fault = "stuck"
target = "right.back"
"""),
    ("value",): event('at_s = 0.05\nfault = "stuck"\ntarget = "left.front"\nvalue = 0.1'),
}  # fmt: skip
OF_LINK: dict[tuple[str, ...], str] = {
    ("delay_ms", "jitter_ms", "loss", "duplicate", "reorder"): link(
        "delay_ms = 30\njitter_ms = 20\nloss = 0.4\nduplicate = 0.5\nreorder = 0.5"
    ),
    ("rate_hz",): link("rate_hz = 20"),
    ("from_s", "until_s"): link("loss = 1.0\nfrom_s = 0.05\nuntil_s = 0.1"),
}
KEYS = {
    f"{kind} {' '.join(names)}": text
    for kind, examples in (("table", TABLES_OF_ONE), ("robot", OF_ROBOT), ("event", OF_EVENT), ("link", OF_LINK))
    for names, text in examples.items()
}


def names_of(examples: dict[tuple[str, ...], str]) -> set[str]:
    """The keys of all scenarios, each of which contains those that it is for."""
    for names, text in examples.items():
        for name in names:
            assert re.search(name.rstrip("_").replace("_", "[-_]"), text) or name in ("mode", "robots"), name
    return {name for names in examples for name in names}


# --- That nothing is left out


def test_every_option_that_a_study_carries_has_an_example() -> None:
    carried = {name for name, run_option in run_options().items() if run_option.study is not StudyUse.REFUSED}
    assert {"robots", "mode", *carried} == {*SHOWN, *names_of(OTHERS), "force", "keys"}, (
        "an option that a study carries needs an example"
    )


def test_every_key_of_a_scenario_has_an_example() -> None:
    assert {*names_of(TABLES_OF_ONE), "bridge"} == set(TABLES)
    assert names_of(OF_ROBOT) == set(parameters_of(RobotTable))
    assert names_of(OF_EVENT) == set(parameters_of(EventTable))
    assert names_of(OF_LINK) == set(LINK_KEYS)


def test_defaults_are_carried() -> None:
    assert why_not(run_options()["mode"], "lockstep") == ""
    assert [
        name for name, run_option in run_options().items() if name != "mode" and why_not(run_option, run_option.default)
    ] == []


def test_an_option_of_run_is_one_of_sweep_or_refused_by_name() -> None:
    current = {word for param in sweep.params for word in param.opts}
    missing = []
    for param in run.params:
        word = max(param.opts, key=len)
        if not word.startswith("-") or word in current:
            continue
        with pytest.raises(click.NoSuchOption) as result:
            sweep.make_context("sweep", ["manta", "-o", "t.parquet", word, "1"])
        missing.append(str(param.name))
        assert word in str(result.value.format_message())
    carried = {name for name, run_option in run_options().items() if run_option.study is StudyUse.CARRIED}
    assert not carried & set(missing), "what a case carries can be typed, too"


@pytest.mark.full  # a sweep needs pyarrow before it reads anything
@pytest.mark.parametrize("name", REFUSES)
def test_what_a_study_cannot_carry_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "s.toml").write_text(REFUSES[name])
    key = name.replace("_", "[-_]")
    for command in ("sweep", "envelope"):
        arguments = ["-o", str(tmp_path / "t.parquet"), "--vary", "seed=0,1"] if command == "sweep" else ["-o", "env"]
        with pytest.raises(ModelError, match=rf"s\.toml:\d+: {key}: "):
            program.main([command, str(tmp_path / "s.toml"), *arguments], standalone_mode=False)
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


@pytest.mark.full  # a sweep needs pyarrow before it reads anything
def test_a_bridge_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(BRIDGE)
    parts = ["sweep", str(tmp_path / "s.toml"), "-o", str(tmp_path / "t.parquet"), "--vary", "seed=0,1"]
    with pytest.raises(ModelError, match=r"s\.toml:\d+: \[\[bridge\]\]: a study has no peers but its controllers"):
        program.main(parts, standalone_mode=False)


# --- To the bit


def row_of(folder: Path, text: str, *arguments: str) -> dict[str, Any]:
    """The one row of a sweep."""
    pq = pytest.importorskip("pyarrow.parquet")
    (folder / "s.toml").write_text(text)
    result = rtmms(folder, "sweep", "s.toml", "-o", "t.parquet", "--vary", "seed=" + seed_of(text), "--threads", "1",
                 "--quiet", *arguments)  # fmt: skip
    assert result.status == 0, result.err
    rows: list[dict[str, Any]] = pq.read_table(folder / "t.parquet").to_pylist()
    assert len(rows) == 1
    return rows[0]


def seed_of(text: str) -> str:
    match = re.search(r"^seed = (\d+)$", text, re.MULTILINE)
    return match[1] if match else "0"


def run_of(folder: Path, text: str) -> dict[str, Any]:
    """The report of the run."""
    (folder / "s.toml").write_text(text)
    result = rtmms(folder, "run", "s.toml", "--mode", "lockstep", "--json", "--quiet")
    assert result.status == 0, result.err
    return result.report


def assert_same(row: dict[str, Any], report: dict[str, Any]) -> None:
    """All numbers of the row that the run's report has are the report's, and there are many."""
    assert (row["ended"], row["steps"]) == (report["ended"], report["steps"])
    result = 0
    for name, value in row.items():
        head, _, remaining = name.partition(".")
        output, bracket, place = remaining.partition("[")
        if head == "final":
            numbers = np.asarray(report["final"][output], dtype=float).ravel()
            assert value == numbers[int(place.rstrip("]")) if bracket else 0], name
            result += 1
        elif head == "tracking" and report["tracking"]:
            quantity, _, measure = remaining.rpartition(".")
            assert value == report["tracking"][quantity][measure], name
    assert result >= 8


def motion_of(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key.startswith("final.")}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, dict[str, Any]]:
    """The end of the scenario without any option, and with sensors: True."""
    folder = tmp_path_factory.mktemp("plain")
    return {False: motion_of(row_of(folder, item())), True: motion_of(row_of(folder, item(tables=TYPICAL)))}


@pytest.mark.full
@pytest.mark.parametrize("name", SHOWN)
def test_an_option_in_a_scenario_gives_the_bits_of_run(
    tmp_path: Path, name: str, plain: dict[bool, dict[str, Any]]
) -> None:
    row = row_of(tmp_path, SHOWN[name])
    assert_same(row, run_of(tmp_path, SHOWN[name]))
    assert motion_of(row) != plain[name == "seed"], "the example shows nothing"


@pytest.mark.full
@pytest.mark.parametrize("text", OTHERS.values(), ids=[" ".join(names) for names in OTHERS])
def test_other_options_in_a_scenario_give_the_bits_of_run(tmp_path: Path, text: str) -> None:
    assert_same(row_of(tmp_path, text), run_of(tmp_path, text))


@pytest.mark.full
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_a_scenario_give_the_bits_of_run(tmp_path: Path, name: str) -> None:
    assert_same(row_of(tmp_path, KEYS[name]), run_of(tmp_path, KEYS[name]))


@pytest.mark.full
def test_options_of_the_command_line_give_the_bits_of_run(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    arguments = ("--controller", "gait:frequency_hz=0.8", "--duration", "0.2", "--dt", "0.01", "--sensors", "typical",
             "--coupling", "monolithic", "--link", "gait:delay_ms=20", "--set", "drag_coefficient=1.1", "--estimate",
             "--tracking-start", "0.1")  # fmt: skip
    result = rtmms(tmp_path, "sweep", "manta", *arguments, "--vary", "seed=5", "-o", "t.parquet", "--quiet")
    assert result.status == 0, result.err
    one_run = rtmms(tmp_path, "run", "manta", *arguments, "--seed", "5", "--mode", "lockstep", "--json", "--quiet")
    assert_same(pq.read_table(tmp_path / "t.parquet").to_pylist()[0], one_run.report)


@pytest.mark.full
def test_several_robots_differ_by_name(tmp_path: Path) -> None:
    """--vary takes a parameter of one robot, and of one robot's controller."""
    pq = pytest.importorskip("pyarrow.parquet")
    text = TWO.format(keys="")
    (tmp_path / "s.toml").write_text(text)
    result = rtmms(tmp_path, "sweep", "s.toml", "--vary", "follower.drag_coefficient=0.9,1.5", "--vary",
                 "leader.gait.amplitude_deg=10,30", "-o", "t.parquet", "--threads", "1", "--quiet")  # fmt: skip
    assert result.status == 0, result.err
    row = pq.read_table(tmp_path / "t.parquet").to_pylist()[2]
    changed = text.replace('robot = "leader"\n', 'robot = "leader"\namplitude_deg = 10\n')
    changed = changed.replace("-1.0]\n", "-1.0]\nparameters = { drag_coefficient = 1.5 }\n")
    assert_same(row, run_of(tmp_path, changed))
    for over, message in (
        ("leadr.drag_coefficient=1,2", "unknown robot or controller 'leadr'; did you mean leader"),
        ("leader.drag=1,2", "unknown manta parameter 'drag'"),
    ):
        result = rtmms(tmp_path, "sweep", "s.toml", "--vary", over, "-o", "u.parquet", "--quiet")
        assert (result.status, message in result.err) == (2, True), result.err


@pytest.mark.full
def test_the_file_of_a_single_run_is_named_and_not_written(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "s.toml").write_text(item('log = "one.mcap"\nfigure = "one.png"'))
    result = rtmms(tmp_path, "sweep", "s.toml", "-o", "t.parquet", "--vary", "seed=0,1", "--quiet", "--json")
    assert (result.status, json.loads(result.out)["runs"]) == (0, 2)
    assert "s.toml: log, figure: ignored, as only single runs write these files, not studies" in result.err
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["s.toml", "t.parquet"]
