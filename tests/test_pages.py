"""Every fenced block and every command of README.md and docs/: each is run by a test that is named here, or is at least
read as Python or as a command line is; a block that is neither stands in one table with its reason.

A command is taken in by the program's own parser, and `run` and `serve` up to where the plant would be loaded, so
that a wrong option, controller, parameter or mode of a page is found here without running anything.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import pytest

from rtmms.base.entry_points import entry_points_of
from rtmms.cli.main import rtmms as program
from tests.every import every

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

RUN_BY = {
    "README.md": "tests/test_examples.py",
    "docs/README.md": "tests/site/test_first_page.py",
    "docs/continuous_eel.md": "tests/continuum/test_page.py",
    "docs/dynamics.md": "tests/physics/test_page.py",
    "docs/hold_a_depth.md": "tests/test_hold_a_depth_page.py",
    "docs/learning.md": "tests/gym/test_environments.py",
    "docs/linear_models.md": "tests/analysis/test_derivatives.py",
    "docs/log.md": "tests/record/test_log_arrays.py",
    "docs/many_runs.md": "tests/analysis/test_rollouts.py",
    "docs/locomotion.md": "tests/locomotion/test_page.py",
    "docs/predictive.md": "tests/controllers/test_predictive.py",
    "docs/identification.md": "tests/identification/test_page.py",
    "docs/own_robot.md": "tests/test_own_robot_page.py",
    "docs/actuators.md": "tests/test_own_robot_page.py",
    "docs/tendons.md": "tests/test_own_robot_page.py",
    "docs/polars.md": "tests/test_own_robot_page.py",
    "docs/contacts.md": "tests/test_own_robot_page.py",
    "docs/elements.md": "tests/test_own_robot_page.py",
    "docs/urdf.md": "tests/test_own_robot_page.py",
    "docs/mujoco.md": "tests/mujoco_models/test_page.py",
    "docs/plants.md": "tests/test_examples.py",
    "docs/realtime.md": "tests/wire/answering/test_page.py",
    "docs/rods.md": "tests/continuum/test_page.py",
    "docs/scenarios.md": "tests/scenario/test_examples.py",
    "docs/bridges/can.md": "tests/bridges/test_can.py",
    "docs/estimator.md": "tests/sensing/test_page.py",
    "docs/world.md": "tests/world/test_page.py",
    "docs/sensors.md": "tests/sensing/test_page.py",
    "docs/protocol.md": "tests/wire/plant/test_c_client.py",
}
"""Pages whose blocks of code a test runs; those of docs/tutorials all are, by tests/test_tutorials.py."""

READ_ONLY = {
    ("docs/flows.md", "python"): "a part of a program; tests/fluids has flows like it",
    ("docs/fuzzing.md", "python"): "a sketch: parse and MyRefusal are the reader's own",
    ("docs/guards.md", "python"): "a part of a loop: plant and command are the reader's own",
    ("docs/manta.md", "python"): "a part of a program: command is the reader's own",
    ("docs/report.md", "json"): "a part of a report",
    ("docs/view.md", "python"): "an attribute of a plant; tests/shapes reads one like it",
    ("docs/bridges/estimator.md", "python"): "listens for ever",
    ("docs/bridges/zenoh.md", "python"): "listens for ever, on a session of another machine",
    ("docs/bridges/foxglove.md", "json"): "what Foxglove sends",
    ("docs/bridges/serial.md", "c"): "the loop of a CRC; tests/bridges/test_arduino.py builds a device with it",
    ("docs/bridges/udp.md", "c"): "a layout; a part of a device's program",
    ("docs/plants.md", "toml"): "a part of a pyproject.toml",
    ("docs/links.md", "toml"): "a table of a scenario; tests/cli/test_links.py has ones like it",
}
"""Blocks that no test runs, and why: those of Python, TOML and JSON are read for their syntax."""

COMMANDS_OF_OTHERS = (
    "pip install", "gcc", "sim_vehicle.py", "PX4_SIM_MODEL=", "mosquitto_", "lcm-gen", "make ", "helics_broker",
    "python3 -m venv", ".venv/bin/pip install", ".venv/bin/python", "python ",
)  # fmt: skip


PLANTS_OF_READERS = ("cart",)
"""Made by `rtmms new` in a tutorial."""


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    text: str


def _blocks() -> Iterator[Block]:
    for page in PAGES:
        for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
            yield Block(str(page.relative_to(ROOT)), language, text)


def _indented() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        remaining = FENCE.sub("", page.read_text(encoding="utf-8"))
        for line in re.findall(r"^    (rtmms .*)$", remaining, re.MULTILINE):
            yield str(page.relative_to(ROOT)), line


BLOCKS = list(_blocks())
SHELL = [(block.page, line.strip()) for block in BLOCKS if block.language in ("sh", "", "text")
         for line in block.text.splitlines() if line.strip()]  # fmt: skip


def _commands() -> list[tuple[str, str]]:
    """(page, command line of ours), bare of remarks behind it and of where its output goes."""
    result = []
    for page, line in [*SHELL, *_indented()]:
        for part in line.replace(".venv/bin/", "").split("&&"):
            if part.strip().startswith("rtmms "):
                result.append((page, re.split(r"\s{2,}|\s+#\s|\s+>\s", part.strip())[0]))
    return sorted(set(result))


@every("block", [block for block in BLOCKS if block.language not in ("sh", "", "text")])
def test_a_block_is_run_by_a_test_or_has_its_reason(block: Block) -> None:
    if block.page.startswith("docs/tutorials/") and block.language in ("python", "toml", "xml"):
        return
    if (block.page, block.language) in READ_ONLY:
        match block.language:
            case "python":
                ast.parse(block.text)
            case "toml":
                tomllib.loads(block.text)
            case "json":
                json.loads(block.text)
        return
    assert block.page in RUN_BY, "neither run by a test (RUN_BY) nor excused (READ_ONLY)"


@every("block", [block for block in BLOCKS if block.language in ("python", "toml", "json")])
def test_a_block_can_be_read(block: Block) -> None:
    {"python": ast.parse, "toml": tomllib.loads, "json": json.loads}[block.language](dedent(block.text))


@every("page", RUN_BY)
def test_the_test_of_a_page_reads_it(page: str) -> None:
    named = "client.c" if page == "docs/protocol.md" else Path(page).name
    assert named in (ROOT / RUN_BY[page]).read_text(encoding="utf-8")


def test_nothing_is_excused_that_is_not_there() -> None:
    there = {(block.page, block.language) for block in BLOCKS}
    assert set(READ_ONLY) <= there
    assert set(RUN_BY) <= {block.page for block in BLOCKS}


def test_every_line_of_a_shell_is_ours_or_known() -> None:
    of_shell = [(block.page, line.strip()) for block in BLOCKS if block.language == "sh"
                for line in block.text.splitlines() if line.strip()]  # fmt: skip
    known = ("rtmms ", ".venv/bin/rtmms ", *COMMANDS_OF_OTHERS)
    assert [(page, line) for page, line in of_shell if not line.startswith(known)] == []
    assert len(_commands()) > 90


MAX_LINE_LENGTH = 140
"""Characters of a line of prose."""


@every("page", [*PAGES, ROOT / "CONTRIBUTING.md"])
def test_no_line_of_prose_is_too_long(page: Path) -> None:
    prose = re.sub(r"^(?:\|| {4,}).*$", "", FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    assert [line for line in prose.splitlines() if len(line) > MAX_LINE_LENGTH] == []


class _Loaded(Exception):
    """All words were taken; now the plant would be loaded."""


@every("page, line", _commands())
def test_a_command_of_a_page_is_understood(page: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, *arguments = shlex.split(line)[1:]
    monkeypatch.chdir(ROOT)
    if name in ("run", "serve") and not _of_a_reader(arguments):

        def stop(*_: Any, **__: Any) -> None:
            raise _Loaded

        monkeypatch.setattr("rtmms.cli.running.session.Session.execute", stop)
        with pytest.raises(_Loaded):
            program.main([name, *arguments], standalone_mode=False)
        return
    command = program.get_command(click.Context(program), name)
    assert command is not None
    while True:
        context = command.make_context(name, list(arguments), resilient_parsing=False)
        if not isinstance(command, click.Group):
            return
        name, inner, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        assert inner is not None
        command = inner


def _inline() -> list[tuple[str, str]]:
    """(page, command in a line of prose or in a cell), which may have placeholders such as FILE."""
    result = set()
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        prose = FENCE.sub("", page.read_text(encoding="utf-8"))
        result |= {(page.name, " ".join(line.split())) for line in re.findall(r"`(rtmms [a-z][^`]*)`", prose)}
    return sorted(result)


def test_a_command_in_a_sentence_exists_with_its_options() -> None:
    assert len(_inline()) > 90
    assert [f"{page}: `{line}`" for page, line in _inline() if not _is_known(line.split()[1:])] == []


def _is_known(arguments: list[str]) -> bool:
    """The command exists, and each of its options does; of `bench`, also the benchmark and its options."""
    arguments = [word.partition("|")[0] for word in arguments]
    command = program.get_command(click.Context(program), arguments[0])
    if isinstance(command, click.Group) and len(arguments) > 1 and arguments[1].islower():
        command, arguments = command.commands.get(arguments[1]), arguments[1:]
    if command is None:
        return False
    known = {name for param in [*command.params, *program.params] for name in [*param.opts, *param.secondary_opts]}
    known |= {"--help", "--options"} if arguments[0] == "bench" else {"--help"}
    if arguments[0] == "bench" and len(arguments) > 1 and arguments[1].islower():
        points = entry_points_of("rtmms.benchmarks")
        if arguments[1] not in points:
            return False
        options = signature(points[arguments[1]].load()).parameters
        known |= {"--options", *(f"--{name.replace('_', '-')}" for name in options)}
    return {word.partition("=")[0] for word in arguments if word.startswith("--")} <= known


def _of_a_reader(parts: list[str]) -> bool:
    """It names a plant or a file that the page has the reader write, or that an earlier command left."""
    if parts[0] in PLANTS_OF_READERS:
        return True
    files = re.findall(r"[\w/]+\.(?:py|csv|npz|fmu|toml|urdf|mcap)\b", " ".join(parts))
    return any(not (ROOT / file).exists() for file in files if file != "run.mcap") or "my_board.toml" in files
