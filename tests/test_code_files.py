"""Which files run as code: those that the user named, those below the scenario that the user named, and no other ones.

A log, a scenario, a study, or a command line reaches a Python file or an FMU in many ways. Each is tried with a file
that leaves a mark when it runs.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rtmms
from rtmms.base import trust
from rtmms.base.errors import ModelError
from rtmms.record.origin import rebuild_plant

from .cli.shell import rtmms as shell
from .record.test_hostile import record, rewritten
from .sources import modules

CODE = """\
from pathlib import Path
Path({mark!r}).touch()
import rtmms
from rtmms.planning.cost import cost
from rtmms.robots.cat import load

def make(dt=None, **more):
    return load(dt=dt)

class Control(rtmms.Controller):
    def update(self, state):
        return {{}}

class Bridged(rtmms.Bridge):
    def on_state(self, state):
        pass
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A working directory with a scenario's folder in it, and a file of code elsewhere."""
    (tmp_path / "here" / "bundle").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    write_code(tmp_path / "elsewhere" / "evil.py", tmp_path)
    assert trust.VARIABLE not in os.environ
    yield tmp_path
    assert trust.VARIABLE not in os.environ, "the list of files outlived the command"


def write_code(path: Path, place: Path) -> Path:
    path.write_text(CODE.format(mark=str(place / "ran")))
    return path


def ran(place: Path) -> bool:
    return (place / "ran").exists()


QUICK = ("--mode", "lockstep", "--duration", "0.002", "--controller", "none", "--quiet")

SCENARIOS: dict[str, tuple[str, str]] = {
    "the robot": ('robot = "{evil}:make"', "run"),
    "a robot of several": ('[[robot]]\nname = "a"\nrobot = "{evil}:make"', "run"),
    "the robots of a world, as lists": (
        'robot = "world"\n[parameters]\nrobots = [["a", "{evil}:make"], ["b", "cat"]]', "run"),
    "the robots of a world, of three parts": (
        'robot = "world"\n[parameters]\nrobots = [["a", "{evil}:make", {{}}]]', "run"),
    "the robots of a world, as tables": (
        'robot = "world"\n[parameters]\nrobots = [{{name = "a", robot = "{evil}:make"}}]', "run"),
    "a world among several robots": (
        '[[robot]]\nname = "w"\nrobot = "world"\nparameters = {{robots = [["a", "{evil}:make"]]}}', "run"),
    "a world in a world": (
        'robot = "world"\n[parameters]\n'
        'robots = [["w", "world", {{parameters = {{robots = [["a", "{evil}:make"]]}}}}]]', "run"),
    "a controller": ('robot = "manta"\n[[controller]]\nfile = "{evil}"', "run"),
    "a controller by its name": ('robot = "manta"\n[[controller]]\nname = "{evil}:Control"', "run"),
    "a cost": ('robot = "manta"\n[[controller]]\nname = "predictive"\ncost = "{evil}:deep"', "run"),
    "a cost within the name": ('robot = "manta"\n[[controller]]\nname = "predictive:cost={evil}:deep"', "run"),
    "a bridge": ('robot = "manta"\n[[bridge]]\nfile = "{evil}"', "run"),
    "the robot of a study": ('robot = "{evil}:make"\n[sweep.over]\nseed = [0, 1]', "sweep"),
    "a world of a study": (
        'robot = "world"\n[parameters]\nrobots = [["a", "{evil}:make"]]\n[sweep.over]\nseed = [0, 1]', "sweep"),
    "a controller of a study": (
        'robot = "manta"\n[[controller]]\nfile = "{evil}"\n[sweep.over]\nseed = [0, 1]', "sweep"),
    "a cost of a study": (
        'robot = "manta"\n[[controller]]\nname = "predictive"\ncost = "{evil}:deep"\n[sweep.over]\nseed = [0, 1]',
        "sweep"),
}  # fmt: skip


@pytest.mark.parametrize("variant", SCENARIOS)
@pytest.mark.parametrize("up", ["../../elsewhere/evil.py", "{absolute}"])
def test_a_scenario_runs_no_code_from_elsewhere(place: Path, variant: str, up: str) -> None:
    evil = up.format(absolute=place / "elsewhere" / "evil.py")
    text, command = SCENARIOS[variant]
    scenario = place / "here" / "bundle" / "scenario.toml"
    scenario.write_text(text.format(evil=evil))
    more = ("-o", "table.parquet") if command == "sweep" else ("--mode", "lockstep", "--duration", "0.002", "--quiet")
    for folder in (place / "here", scenario.parent):
        done = shell(folder, command, os.path.relpath(scenario, folder), *more)
        assert done.status == 2, done
        assert not ran(place)
        assert "Traceback" not in done.err


LOGS: dict[str, Callable[[str], dict[str, Any]]] = {
    "the robot": lambda evil: {"robot": f"{evil}:make", "parameters": {}},
    "robots of a world, as lists": lambda evil: {"robot": "world", "parameters": {"robots": [["a", f"{evil}:make"]]}},
    "robots of a world, as tables": lambda evil: {
        "robot": "world", "parameters": {"robots": [{"name": "a", "robot": f"{evil}:make"}]}
    },
    "a world in a world": lambda evil: {
        "robot": "world",
        "parameters": {"robots": [["w", "world", {"parameters": {"robots": [["a", f"{evil}:make"]]}}]]},
    },
    "a table of a world in a world": lambda evil: {
        "robot": "world",
        "parameters": {"robots": [
            {"name": "w", "robot": "world", "parameters": {"robots": [{"name": "a", "robot": f"{evil}:make"}]}}
        ]},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "run.mcap"
    record(path, 5)
    return path


@pytest.mark.parametrize("variant", LOGS)
def test_a_log_runs_no_code(place: Path, sound: Path, variant: str) -> None:
    evil = str(place / "elsewhere" / "evil.py")
    hostile = LOGS[variant](evil)
    log = rewritten(sound, place / "here" / "log.mcap", "origin.json", lambda origin: {**origin, **hostile})
    for arguments in (
        ("replay", "log.mcap"), ("replay", "--check", "log.mcap"), ("run", "--from", "log.mcap@0", *QUICK),
        ("identify", "log.mcap", "--fit", "mass_kg"), ("log", "csv", "log.mcap"), ("plot", "log.mcap", "-o", "a.png"),
    ):  # fmt: skip
        done = shell(log.parent, *arguments)
        assert not ran(place), arguments
        assert "Traceback" not in done.err
        if arguments[0] in ("replay", "run", "identify"):
            assert done.status == 2, (arguments, done)
    origin = {"dt": 1e-3, "preset": None, "seed": 0, **hostile}
    with pytest.raises(ModelError):
        rebuild_plant(origin)
    assert not ran(place)


def test_data_runs_no_fmu_from_elsewhere(place: Path, sound: Path) -> None:
    """It is native code; a file that is none is refused for its place, before anybody reads it."""
    evil = place / "elsewhere" / "evil.fmu"
    evil.write_bytes(b"no archive")
    scenario, text = place / "here" / "bundle" / "scenario.toml", "would run as code"
    for route in (f'robot = "{evil}"', f'robot = "world"\n[parameters]\nrobots = [["a", "{evil}"]]'):
        scenario.write_text(route)
        done = shell(scenario.parent, "run", "scenario.toml", *QUICK)
        assert (done.status, text in done.err) == (2, True), done
    for hostile in (
        {"robot": str(evil), "parameters": {}}, {"robot": "world", "parameters": {"robots": [["a", str(evil)]]}},
    ):  # fmt: skip
        log = rewritten(sound, place / "here" / "log.mcap", "origin.json", lambda origin, more=hostile: origin | more)
        done = shell(log.parent, "replay", "log.mcap")
        assert (done.status, "--trust-log" in done.err) == (2, True), done
    with trust.named_on_command_line([str(evil)]):
        rtmms.plant.loading.builder(str(evil))


def test_a_log_runs_what_the_user_trusts(place: Path) -> None:
    evil = str(place / "elsewhere" / "evil.py")
    for robot in ("the robot", "robots of a world, as lists", "robots of a world, as tables"):
        (place / "ran").unlink(missing_ok=True)
        rebuild_plant({"dt": 1e-3, "preset": None, "seed": 0, **LOGS[robot](evil)}, trusted=True)
        assert ran(place), robot


def test_a_user_runs_what_they_name(place: Path) -> None:
    """On the command line, wherever it stands there; and beside or below the scenario that they name."""
    evil = place / "elsewhere" / "evil.py"
    extra = write_code(place / "here" / "bundle" / "own.py", place)
    below = extra.parent / "parts" / "own.py"
    below.parent.mkdir()
    write_code(below, place)
    scenario = extra.parent / "scenario.toml"
    for arguments, text in (
        ((f"{evil}:make", *QUICK), ""),
        (("../elsewhere/evil.py:make", *QUICK), ""),
        (("world", "--set", f'robots=[["a", "{evil}:make"]]', *QUICK), ""),
        (("bundle/scenario.toml", *QUICK), 'robot = "own.py:make"'),
        (("bundle/scenario.toml", *QUICK), 'robot = "parts/own.py:make"'),
    ):
        (place / "ran").unlink(missing_ok=True)
        scenario.write_text(text)
        done = shell(place / "here", "run", *arguments)
        assert ran(place), (arguments, text, done)


def test_a_program_of_the_user_runs_what_it_names(place: Path) -> None:
    evil = place / "elsewhere" / "evil.py"
    for build in (
        lambda: rtmms.load(f"{evil}:make"),
        lambda: rtmms.load("world", robots=[["a", f"{evil}:make"]]),
        lambda: rtmms.World([("a", f"{evil}:make")]),
    ):
        (place / "ran").unlink(missing_ok=True)
        build()
        assert ran(place)


def test_a_users_file_loads_what_it_names(place: Path) -> None:
    """The plant that the user names on the command line is a program of theirs."""
    evil = place / "elsewhere" / "evil.py"
    mine = place / "here" / "mine.py"
    mine.write_text(f"import rtmms\ndef make(dt=None):\n    return rtmms.load({f'{evil}:make'!r}, dt=dt)\n")
    shell(mine.parent, "run", "mine.py:make", *QUICK)
    assert ran(place)


def test_a_world_in_a_world_is_refused() -> None:
    with pytest.raises(ModelError, match="robot 'w': robot: expected one robot, got a world"):
        rtmms.World([("w", "world", {"parameters": {"robots": [("a", "cat")]}})])
    inner = rtmms.World([("a", "cat")])
    with pytest.raises(ModelError, match="robot 'w': robot: expected one robot, got a world"):
        rtmms.World([("w", inner)])


def test_a_child_runs_what_its_parent_permits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child's own arguments may come from a scenario: they permit nothing."""
    evil = place / "elsewhere" / "evil.py"
    monkeypatch.setenv(trust.VARIABLE, json.dumps([]))
    done = shell(place / "here", "control", f"{evil}:Control", "--timeout", "0.01")
    assert done.status == 2
    assert "got one that only data names" in done.err
    assert not ran(place)
    monkeypatch.setenv(trust.VARIABLE, json.dumps([str(evil.resolve())]))
    shell(place / "here", "control", f"{evil}:Control", "--timeout", "0.01")
    assert ran(place)
    monkeypatch.delenv(trust.VARIABLE)


def test_a_worker_of_a_cluster_runs_what_its_client_permits(place: Path) -> None:
    """It does not inherit the client's environment."""
    evil = place / "elsewhere" / "evil.py"
    with trust.named_on_command_line(["manta"]):
        permitted = trust.permitted_files()
    with trust.asked_by_process(permitted), pytest.raises(ModelError, match="would run as code"):
        rtmms.plant.loading.build_plant(f"{evil}:make")
    assert not ran(place)
    with trust.named_on_command_line([f"{evil}:make"]):
        permitted = trust.permitted_files()
    with trust.asked_by_process(permitted):
        rtmms.plant.loading.build_plant(f"{evil}:make")
    assert ran(place)


@pytest.mark.parametrize("text", ["[", "3", '{"a": 1}', "[1, null]", ""])
def test_a_damaged_list_permits_nothing(place: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(trust.VARIABLE, text)
    with pytest.raises(ModelError, match="would run as code"):
        trust.refuse_unnamed(place / "elsewhere" / "evil.py", "robot")
    monkeypatch.delenv(trust.VARIABLE)


def test_an_argument_names_files_between_delimiters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b c.py", "x=y.fmu"):
        (tmp_path / name).touch()
    evil = tmp_path / "evil.py"
    evil.touch()
    named = {
        "a.py:make": "a.py", "predictive:cost=a.py:deep,rate=3": "a.py", "controller=b c.py:x": "b c.py",
        '[["a","a.py:make"]]': "a.py", "x=y.fmu": "x=y.fmu", "\0a.py": "", "a.pyc": "", "~nobody/a.py": "",
    }  # fmt: skip
    for argument, name in named.items():
        with trust.named_on_command_line([argument]):
            for file in ("a.py", "b c.py", "x=y.fmu", "evil.py"):
                if file == name:
                    trust.refuse_unnamed(file, "robot")
                else:
                    with pytest.raises(ModelError):
                        trust.refuse_unnamed(file, "robot")


RUNS_CODE = {"exec_module", "exec", "eval", "run_path", "run_module", "CDLL", "LoadLibrary", "spec_from_file_location"}
"""Calls that run what a file holds."""

CHECKED: dict[str, str] = {
    "rtmms/base/trust.py": "run_file asks refuse_unnamed",
    "rtmms/planning/cost.py": "the source is the project's own",
    "rtmms/fmi/exported_fmi3.py": "the library that runs this FMU already",
    "rtmms/base/memory.py": "sizes of arrays in layouts, of the project's own",
    "rtmms/wire/peer/step_messages.py": "the source has the names of actuators as literals",
}


def test_each_way_to_run_a_file_passes_the_check() -> None:
    """A module that runs files stands in `CHECKED`, with what keeps data from them; the system's library is no file."""
    result = set()
    for module, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            system = name == "CDLL" and isinstance(node.args[0], ast.Constant)
            if name in RUNS_CODE and not system:
                result.add(module)
    assert result == set(CHECKED)
