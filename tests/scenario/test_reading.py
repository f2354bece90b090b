"""Scenarios from their files: what is read, and what is refused, with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rtmms.base.errors import ModelError
from rtmms.base.parameters import parameters_of
from rtmms.base.toml_file import toml_value
from rtmms.loop.impairment import Impairment
from rtmms.scenario import Event, judge, read
from rtmms.scenario.expectations import expectation
from rtmms.scenario.plant import agenda
from rtmms.scenario.tables import EventTable, RobotTable, SweepTable
from rtmms.scenario.toml_lines import line_of, lines
from tests.pendulum import Pendulum
from tests.wrong_values import wrong_values

WHOLE = """\
robot = "manta"          # the error has its line
mode = "lockstep"
on-miss = "home"

[parameters]
"chains" = 8
current_m_s = [0.1, 0.0, 0.0]

[[controller]]
name = "gait"
amplitude_deg = 30.0
[[controller]]
file = "mine.py"
every = 2
flag = true

[[event]]
at_s = 4
set = { "gait.amplitude_deg" = 20.0 }
[[event]]
at_s = 2.0
[event.set]
gait.frequency_hz = 0.5
drag_coefficient = 1.0

[expect]
mean_speed_m_s = ">= 0.1"
"final.position[2]" = "< 1"
exchange.misses = "== 0"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_scenario(tmp_path: Path) -> None:
    result = read(write(tmp_path, WHOLE))
    assert (result.robot, dict(result.options)) == ("manta", {"mode": "lockstep", "on_miss": "home"})
    assert result.parameters == {"chains": 8, "current_m_s": [0.1, 0.0, 0.0]}
    assert result.controllers == ("gait:amplitude_deg=30.0", f"{tmp_path}/mine.py:every=2,flag=true")
    assert [event.at_s for event in result.events] == [2.0, 4.0]
    assert result.events[0].values == {"gait.frequency_hz": 0.5, "drag_coefficient": 1.0}
    assert [event.line for event in result.events] == [20, 17]
    assert [(item.name, item.text) for item in result.expect] == [
        ("mean_speed_m_s", ">= 0.1"), ("final.position[2]", "< 1.0"), ("exchange.misses", "== 0.0"),
    ]  # fmt: skip


def test_a_fault_begins_and_ends(tmp_path: Path) -> None:
    text = 'robot = "manta"\n[[event]]\nat_s = 2\nfault = "slow"\ntarget = "left.front"\nvalue = 0.5\nuntil_s = 3\n'
    result = read(write(tmp_path, text))
    assert [(event.at_s, dict(event.values)) for event in result.events] == [
        (2.0, {"fault.left.front": "slow=0.5"}), (3.0, {"fault.left.front": ""}),
    ]  # fmt: skip


def faults(*times: tuple[str, float, float | None]) -> str:
    text = 'robot = "manta"\n'
    for target, at_s, until_s in times:
        text += f'[[event]]\nat_s = {at_s}\nfault = "stuck"\ntarget = "{target}"\nvalue = 0.1\n'
        text += "" if until_s is None else f"until_s = {until_s}\n"
    return text


@pytest.mark.parametrize("other_first", [False, True])
@pytest.mark.parametrize(
    "other", [(2.0, 2.5), (2.5, 4.0), (0.5, 1.5), (1.0, 3.0), (1.0, None), (2.0, None), (0.5, None)]
)
def test_faults_of_a_target_that_overlap_are_refused(
    tmp_path: Path, other: tuple[float, float | None], other_first: bool
) -> None:
    """The end of one would end the other: a target has one fault."""
    both = [("left.front", 1.0, 3.0), ("left.front", *other)]
    with pytest.raises(ModelError, match=r"'left\.front' has another fault at t = .*expected separate times"):
        read(write(tmp_path, faults(*(reversed(both) if other_first else both))))
    read(write(tmp_path, faults(both[0], ("left.back", *other))))


@pytest.mark.parametrize("later_first", [False, True])
def test_a_fault_that_begins_where_another_ends_begins_after_it(tmp_path: Path, later_first: bool) -> None:
    both = [("left.front", 1.0, 2.0), ("left.front", 2.0, 3.0)]
    result = read(write(tmp_path, faults(*(reversed(both) if later_first else both))))
    assert [(event.at_s, event.values["fault.left.front"]) for event in result.events] == [
        (1.0, "stuck=0.1"), (2.0, ""), (2.0, "stuck=0.1"), (3.0, ""),
    ]  # fmt: skip


def test_a_fault_without_an_end_may_be_replaced(tmp_path: Path) -> None:
    result = read(write(tmp_path, faults(("left.front", 1.0, None), ("left.front", 2.0, None))))
    assert [event.at_s for event in result.events] == [1.0, 2.0]


@pytest.mark.parametrize(("at_s", "step"), [
    (0.0, 0), (0.3, 30), (0.304, 31), (0.3 + 1e-12, 30), (0.29999999, 30), (0.3049999, 31), (0.98, 98), (0.99, 99),
])  # fmt: skip
def test_an_event_acts_at_the_first_step_that_begins_at_its_time_or_later(at_s: float, step: int) -> None:
    plant = Pendulum()
    built = agenda((Event(at_s, {"damping": 0.2}, 1),), plant, (), "s.toml", 100)
    assert built.next == step


def test_an_event_after_the_begin_of_the_last_step_is_refused() -> None:
    with pytest.raises(ModelError, match=r"s\.toml:1: event at 0\.995 s: expected at most 0\.99 s, where the last"):
        agenda((Event(0.995, {"damping": 0.2}, 1),), Pendulum(), (), "s.toml", 100)


def test_files_are_looked_for_beside_it(tmp_path: Path) -> None:
    assert read(write(tmp_path, 'robot = "own.py:robot"')).robot == f"{tmp_path}/own.py:robot"
    assert read(write(tmp_path, 'robot = "arm.urdf"')).robot == f"{tmp_path}/arm.urdf"
    assert read(write(tmp_path, 'robot = "/far/arm.urdf"')).robot == "/far/arm.urdf"


HEAD = 'robot = "manta"\n\n'
FAULT = HEAD + '[[event]]\nat_s = 1\nfault = "a"\ntarget = "b"\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("mode = 1\n", 1, "robot: expected a text"),
        ("robot = 3", 1, 'robot: expected a text such as "manta", got 3'),
        (HEAD + "moed = 1", 3, "unknown key 'moed'; did you mean mode"),
        (HEAD + "[mode]\na = 1", 3, "mode: expected a single value, got a table"),
        (HEAD + "[parameter]\na = 1", 3, "did you mean parameters"),
        (HEAD + "[parameters]\na = nan", 4, "parameters.a: expected a finite number, got nan"),
        (HEAD + "[parameters]\nb = [1.0, inf]", 4, "parameters.b: expected a finite number"),
        (HEAD + "[parameters]\n[parameters.c]\nd = 1", 4, "parameters.c: expected a value, got a table"),
        (HEAD + 'controller = "gait"', 3, "expected tables [[controller]], got 'gait'"),
        (HEAD + '[[controller]]\nname="gait"\n[[controller]]\nevery = 2', 5, 'expected name = "..." or file'),
        (HEAD + '[[controller]]\nname="gait"\na = [1]', 5, "controller gait: a: expected a single value, got a list"),
        (HEAD + '[[controller]]\nname="gait"\na = "b,c=1"', 5, "expected a value without a comma"),
        (HEAD + "[[event]]\nat_s = 1\nset = {}", 5, "event: set: expected"),
        (HEAD + "[[event]]\nat_s = 1\nset = { a = nan }", 5, "expected a finite number, got nan"),
        (HEAD + '[[event]]\nat_s = 1\nfault = "stuck"', 3, "event: target: expected a text, got nothing"),
        (
            HEAD + '[[event]]\nat_s = 1\nfault = "a"\ntarget = "b"\nset = { c = 1 }',
            7,
            "expected a fault or set, got both",
        ),
        (
            HEAD + '[[event]]\nat_s = 1\nfault = "a"\ntarget = "b"\nuntil_s = 1',
            7,
            "expected a time after at_s, 1 s, got 1",
        ),
        (HEAD + "[[event]]\nat_s = 1\nset = { c = 1 }\nuntil_s = 2", 6, "until_s: expected a fault with it"),
        (HEAD + "[sensors]\nprofile = 3", 4, "sensors.profile: expected a text, got 3"),
        (HEAD + "[sensors]\nimu = 3", 4, "sensors.imu: expected a table [sensors.imu], got 3"),
        (HEAD + "[expect]\na = 3", 4, "expect: a: expected a text such as '<= 0.03'"),
        (HEAD + '[expect]\na = "~ 3"', 4, "with one of <=, >=, ==, !=, <, >, got '~ 3'"),
        (HEAD + '[expect]\na = "< fast"', 4, "expected a number after <, got 'fast'"),
        (HEAD + '[expect]\na = "< nan"', 4, "expected a finite number"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ModelError) as fault:
        read(path)
    assert str(fault.value).startswith(f"{path}:{line}: ")
    assert message in str(fault.value)


def test_a_file_that_is_none_or_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        read(tmp_path / "none.toml")
    with pytest.raises(ModelError, match="line 1"):
        read(write(tmp_path, "robot = = 3\n"))


def test_lines_of_keys() -> None:
    text = 'a = 1\n# b = 2\n[t."x.y"]  # a table\nk.l = 1\n[[e]]\nk = 1\n[[e]]\n  k = [\n  1,\n]\n'
    result = lines(text)
    assert result[("a",)] == 1
    assert ("b",) not in result
    assert (result["t", "x.y"], result["t", "x.y", "k", "l"]) == (3, 4)
    assert (result["e", 0, "k"], result["e", 1], result["e", 1, "k"]) == (6, 7, 8)
    assert line_of(result, ("e", 1, "missing", "deeper")) == 7
    assert line_of(result, ("nowhere",)) == 1


REPORT: dict[str, Any] = {
    "summary": {"mean_speed_m_s": 0.5}, "exchange": {"misses": 3}, "ended": "stop",
    "final": {"position": [1.0, 2.0], "depth.time": 0.5},
    "coupling": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("mean_speed_m_s", ">= 0.5", True), ("mean_speed_m_s", "> 0.5", False), ("exchange.misses", "== 3", True),
        ("exchange.misses", "!= 3", False), ("final.position[1]", "<= 2", True), ("final.position[-1]", "< 2", False),
        ("final.position[2]", "<= 2", False), ("final.position", "<= 2", False), ("ended", "== stop", True),
        ("ended", "!= stop", False), ("ended", "<= 3", False), ("nothing", ">= 0", False), ("coupling", "== 0", False),
        ("exchange.misses.more", "== 3", False), ("final.depth.time", "< 1", True), ("final.depth", "< 1", False),
    ],
)  # fmt: skip
def test_a_report_is_held_to_what_was_expected(name: str, text: str, holds: bool) -> None:
    (finding,) = judge([expectation(name, text)], REPORT)
    assert finding.holds is holds
    assert finding.sentence.startswith(f"expected {name} ")


@pytest.mark.parametrize(
    ("name", "limit", "holds"),
    [
        ("max_misses", 3, True), ("max_misses", 2, False), ("max_misses", "3", True), ("max_misses", "30%", True),
        ("max_misses", "29.9%", False), ("max_stale", "0%", True), ("max_stale", 0, True),
        ("max_overruns", 0, False), ("max_overruns", "10%", True),
    ],
)  # fmt: skip
def test_a_limit_of_steps_is_an_expectation(name: str, limit: int | str, holds: bool) -> None:
    report = {"steps": 10, "exchange": {"misses": 3, "stale": 0}, "schedule": {"overruns": 1}}
    (finding,) = judge([expectation(name, limit)], report)
    assert finding.holds is holds
    assert finding.sentence.startswith(f"expected {name} <= ")


@pytest.mark.parametrize("limit", [-1, True, "<= 3", "101%"])
def test_a_limit_of_steps_that_is_none_is_refused(limit: object) -> None:
    with pytest.raises(ModelError, match="expected a count from 0"):
        expectation("max_stale", limit)


def test_an_event_may_set_a_vector(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(HEAD + "[[event]]\nat_s = 1.0\nset = { current_m_s = [0.2, 0, 0.0] }\n")
    assert read(path).events[0].values == {"current_m_s": [0.2, 0, 0.0]}


# Tables whose keys are declared: a wrong value of each key is refused at its line.

DECLARED: dict[str, Any] = {"robot": RobotTable, "event": EventTable, "link": Impairment, "sweep": SweepTable}
NEEDED = {"robot": {"robot": '"manta"'}, "event": {"at_s": "1.0"}, "link": {"controller": '"gait"'}, "sweep": {}}
KEYS = [(table, name) for table, kind in DECLARED.items() for name in parameters_of(kind)]


@pytest.mark.parametrize(("table", "name"), KEYS, ids=[f"{table} {name}" for table, name in KEYS])
def test_a_wrong_value_of_a_declared_key_is_refused_with_its_line(tmp_path: Path, table: str, name: str) -> None:
    head = "" if table == "robot" else 'robot = "manta"\n'
    head += f"[{table}]\n" if table == "sweep" else f"[[{table}]]\n"
    head += "".join(f"{key} = {value}\n" for key, value in NEEDED[table].items() if key != name)
    for key, value in ((name, value) for value in wrong_values(parameters_of(DECLARED[table])[name])):
        path = write(tmp_path, f"{head}{key} = {toml_value(value)}\n")
        with pytest.raises(ModelError) as fault:
            read(path)
        assert str(fault.value).startswith(f"{path}:{head.count(chr(10)) + 1}: {table}: {key}")
    path = write(tmp_path, f"{head}{name}x = 1\n")
    with pytest.raises(ModelError, match=f":{head.count(chr(10)) + 1}: {table}: unknown key of {table} '{name}x'"):
        read(path)
