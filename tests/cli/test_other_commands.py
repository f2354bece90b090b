"""rtmms list, doctor, bench and --help, and what is loaded to read the words."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError
from rtmms.cli import doctor
from rtmms.cli.main import COMMANDS, EXAMPLES
from rtmms.cli.main import rtmms as program
from rtmms.cli.option_types import NumberType
from rtmms.cli.reproduce import GROUP as PAPERS
from rtmms.plant.protocol import refuse_fixed
from rtmms.wire.addresses import first_port
from tests.cli.shell import environment, rtmms
from tests.every import every
from tests.pendulum import Pendulum


def test_list_names_the_plug_ins(tmp_path: Path) -> None:
    report = rtmms(tmp_path, "list", "--json").report
    assert set(report) == {"robots", "controllers", "bridges"}
    assert "pendulum" in [entry["name"] for entry in report["robots"]]
    swing = next(entry for entry in report["controllers"] if entry["name"] == "swing")
    assert swing["parameters"] == [{"name": "amplitude", "kind": "float", "default": 1.0, "required": False}]
    result = rtmms(tmp_path, "list", "controllers")
    assert "amplitude (float, default 1.0)" in result.out
    assert "robots" not in result.out


def test_list_alone_is_a_line_each_and_a_name_reports_all_of_it(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "list")
    every = [item for kind in rtmms(tmp_path, "list", "--json").report.values() for item in kind]
    assert result.out.count("\n") == len(every) + 4  # a line for each, for each kind, and how to go on
    assert "amplitude" not in result.out
    assert "amplitude (float, default 1.0)" in rtmms(tmp_path, "list", "swing").out
    robot = rtmms(tmp_path, "list", "pendulum", "--json").report
    assert [item["name"] for item in robot["actuators"]] == ["torque", "offset"]
    text = rtmms(tmp_path, "list", "pendulum").out
    for arguments in ("actuators:", "outputs:", "step 0.01 s"):
        assert arguments in text
    wrong = rtmms(tmp_path, "list", "pendulun")
    assert (wrong.status, "did you mean pendulum" in wrong.err) == (2, True)
    far = rtmms(tmp_path, "list", "nosuch")
    assert (far.status, "did you mean" in far.err, "known: " in far.err) == (2, False, True)


def test_doctor_looks_at_everything_and_breaks_nothing(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "doctor", "--json")
    assert result.status == 0
    topics = {finding["topic"] for finding in result.report["findings"]}
    assert {"python", "numba", "robots", f"port {first_port()}", "compiler cache", "cores"} <= topics
    assert rtmms(tmp_path, "doctor").out.count("\n") >= len(topics)


@pytest.mark.parametrize(("package", "state", "status"), [("numpy", "good", 0), ("no-such-package", "bad", 1)])
def test_doctor_reports_of_a_package_what_is_so(
    package: str, state: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", (package,))
    for part in ("_plugins", "_ports", "_machine", "_real_time"):
        monkeypatch.setattr(doctor, part, list)
    assert doctor.doctor.main(["--json"], standalone_mode=False) == status
    output = json.loads(capsys.readouterr().out)
    assert output["ok"] is (status == 0)
    assert next(finding["state"] for finding in output["findings"] if finding["topic"] == package) == state


def test_bench_without_a_name_lists(tmp_path: Path) -> None:
    assert json.loads(rtmms(tmp_path, "bench", "--json").out)["benchmarks"] == sorted(
        json.loads(rtmms(tmp_path, "bench", "--json").out)["benchmarks"]
    )


def test_help_and_version(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "--help")
    assert result.status == 0
    for command in ("run", "serve", "control", "list", "replay", "reproduce", "bench", "doctor"):
        assert command in result.out


def test_the_help_of_each_ends_with_an_example_that_is_one_of_it() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys()
    for name, example in EXAMPLES.items():
        assert example.startswith(f"rtmms {name}")
        command = program.get_command(click.Context(program), name)
        assert command is not None
        assert (command.epilog or "").endswith(example)
        if not isinstance(command, click.Group):
            command.make_context(name, shlex.split(example)[2:])


def commands(group: click.Group, ctx: click.Context, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Return each command, and each of a group of commands, with its words."""
    result: list[tuple[tuple[str, ...], Any]] = []
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        inner = isinstance(command, click.Group)
        result += commands(command, ctx, (*path, name)) if inner else [((*path, name), command)]
    return result


def test_an_option_of_one_path_is_refused_where_it_is_given_twice() -> None:
    """Click takes the last of them: a log that somebody expects would not be written."""
    count = 0
    for path, command in commands(program, click.Context(program)):
        for option in command.params:
            if not isinstance(option, click.Option) or not isinstance(option.type, click.Path):
                continue
            word = max(option.opts, key=len)
            result = CliRunner().invoke(program, [*path, word, "x", f"{word}=y"])
            assert (result.exit_code, f"Option '{word}' is given 2 times" in result.output) == (2, True), (path, word)
            count += 1
    assert count > 30


@pytest.mark.full
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("rtmms ser", {"serve"}),
        ("rtmms run pendu", {"pendulum"}),
        ("rtmms run manta --mode l", {"lockstep"}),
        ("rtmms run manta --controller sw", {"swing"}),
        ("rtmms bridge tap", {"tap"}),
    ],
)
def test_the_shell_completes_names(typed: str, offered: set[str], tmp_path: Path) -> None:
    """As bash asks (click's protocol): the words so far, and which of them is being typed."""
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_RTMMS_COMPLETE": "bash_complete"}
    ran = subprocess.run(
        [sys.executable, "-m", "rtmms.cli.main"],
        env=environment(tmp_path) | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert {line.partition(",")[2] for line in ran.stdout.splitlines()} == offered, ran.stderr


def test_every_paper_s_report_is_there() -> None:
    papers = entry_points_of(PAPERS)
    assert {"boyer2015", "boyer2017", "khalil2007", "porez2014", "qu2024"} <= papers.keys()
    for paper in papers.values():
        assert callable(paper.load())


@pytest.mark.full
def test_the_words_are_read_without_numpy_and_the_display_needs_neither_numpy_nor_numba(tmp_path: Path) -> None:
    code = (
        "import sys, rtmms.cli.main, rtmms.cli.run, rtmms.cli.run\n"
        "import rtmms.cli.running.session, rtmms.cli.running.display\n"
        "from rtmms.cli.running.plan import plan\n"
        "plan('pendulum', {}, ('swing',))\n"
        "print([name for name in ('numpy', 'numba', 'scipy', 'hdrh', 'zmq') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True,
                          check=True, timeout=30)  # fmt: skip
    assert result.stdout.strip() == "[]"


def test_a_robot_is_listed_with_its_presets_and_choices() -> None:
    """Of a robot that needs no kernel to be built."""
    from importlib.metadata import entry_points

    from rtmms.cli.list import _choices, _declared
    from rtmms.robots.fish import Fish
    from rtmms.robots.manta.parameters import MantaParameters

    point = {entry.name: entry for entry in entry_points(group="rtmms.plants")}
    assert _declared(point["eel"], "PRESETS")["loop"] == {"gait": "loop"}
    assert _declared(point["moth"], "PRESETS") == {**_declared(point["moth"], "PRESETS")} != {}
    assert "paper" in _declared(point["manta"], "PRESETS")
    assert _declared(point["torpedo"], "PRESETS") == {}
    fish = type("Observed", (), {"parameters": Fish()})()
    assert _choices(fish, point["fish"])["flow"][0] == "street"
    plant = type("Observed", (), {"parameters": MantaParameters()})()
    assert _choices(plant, point["manta"])["body"] == ["free", "fixed"]


@pytest.mark.parametrize("command", ["plot", "compare"])
def test_a_figure_of_an_unknown_format_is_refused_before_anything_is_read(command: str) -> None:
    parts = [command, "no.mcap", *(["other.mcap"] if command == "compare" else []), "-o", "run.xyz"]
    with pytest.raises(ModelError, match=r"-o run.xyz: expected a name that ends in .png, .pdf, .svg"):
        program.main(parts, standalone_mode=False)


@pytest.mark.parametrize("parameters", ["manta", "urdf"])
def test_each_value_that_list_prints_can_be_typed(parameters: str) -> None:
    from dataclasses import asdict

    from rtmms.base.parameters import build
    from rtmms.cli.list import _short, _values
    from rtmms.cli.option_types import value
    from rtmms.robots import urdf
    from rtmms.robots.manta import parameters as manta

    known = manta.MantaParameters() if parameters == "manta" else urdf.Options()
    printed = {name: _short(value) for name, value in _values(type("Observed", (), {"parameters": known})()).items()}
    assert printed["buoyancy_centre_m" if parameters == "manta" else "stop_n_m"] in ("[0.0,0.0,0.05]", "none")
    typed = {name: value(text) for name, text in printed.items() if not text.endswith("...")}
    assert len(typed) >= len(asdict(known)) - 1
    if parameters == "manta":
        assert manta.build(None, typed) == known
    else:
        assert build(urdf.Options, typed, robot="urdf") == known


def test_a_robot_of_a_file_is_reported_by_its_tree() -> None:
    from rtmms import model
    from rtmms.cli.list import _of_a_file
    from rtmms.mechanism.plant import TreePlant

    tree = model.Mechanism("one", [model.Body("only", 2.0, inertia=np.eye(3))])
    assert _of_a_file(TreePlant(tree)) == "1 body, 2 kg, 0 joints, free base"
    assert _of_a_file(Pendulum()).startswith("theta'' = torque")


def test_set_of_a_name_that_a_controller_has_reports_how_to_write_it() -> None:
    from types import SimpleNamespace

    from rtmms.loop.requests import HANDLERS

    class Settable(Pendulum):
        settable = ("damping",)

        def set(self, **values: object) -> None:
            refuse_fixed("pendulum", values, self.settable, ("damping", "coupling"))

    peers = [{"name": "dh", "settable": {"depth_m": 1.0}}, {"name": "view", "settable": {}}]
    exchange = SimpleNamespace(report=lambda: {"peers": peers})
    asked = SimpleNamespace(run=SimpleNamespace(plant=Settable(), exchange=exchange))
    operation = HANDLERS["set"][1]
    with pytest.raises(ModelError, match=r"unknown pendulum parameter 'depth_m'; did you mean dh\.depth_m\?$"):
        operation(asked, {"depth_m": 1})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"unknown pendulum parameter 'foo'; known: damping, dh\.depth_m$"):
        operation(asked, {"foo": 1})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="coupling cannot change while the plant runs; what can change: damping"):
        operation(asked, {"coupling": 1})  # type: ignore[arg-type]


def _ranged() -> list[tuple[str, str]]:
    """(command, option) of each option whose value lies in a range of numbers."""
    result = []
    for name in COMMANDS:
        command = program.get_command(click.Context(program), name)
        inner = command.commands.items() if isinstance(command, click.Group) else [("", command)]
        for more, item in inner:
            assert item is not None
            options = [option for option in item.params if isinstance(option.type, (click.FloatRange, NumberType))]
            result += [(f"{name} {more}".strip(), option.opts[0]) for option in options]
    return result


@every("command, option", _ranged())
def test_no_range_takes_nan(command: str, option: str) -> None:
    parsed: Any = program.get_command(click.Context(program), command.partition(" ")[0])
    for word in command.split()[1:]:
        parsed = parsed.commands[word]
    (parameter,) = [param for param in parsed.params if option in param.opts]
    with pytest.raises(click.BadParameter, match=r"expected a (finite )?number.*, got 'nan'"):
        parameter.type.convert("nan", parameter, None)
