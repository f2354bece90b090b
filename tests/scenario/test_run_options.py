"""An option of a run is declared once: commands, scenarios, plans and studies have it from its declaration."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import click
import pytest

from rtmms.base.errors import ModelError
from rtmms.cli.run import run, serve
from rtmms.cli.running.one_case import why_not
from rtmms.cli.running.plan import Plan, command_options, study_options
from rtmms.cli.running.scenario import merge_options, scenario
from rtmms.cli.sweep import sweep
from rtmms.scenario import run_options as declarations
from rtmms.scenario.run_options import Option, StudyUse, run_options
from rtmms.studies.sweep_study import Base
from tests.cli.shell import rtmms


@pytest.fixture
def shake(monkeypatch: pytest.MonkeyPatch) -> Option:
    """A new option, declared as the others are."""
    hint = Annotated[float, Option("Shake the table (default {default}).", unit="Hz", study=StudyUse.CARRIED)]
    built = declarations.option_declaration("shake_hz", hint, 2.0)
    monkeypatch.setitem(run_options(), "shake_hz", built)  # type: ignore[misc]
    return built


def text_of(decorator: Any, *text: str) -> tuple[str, dict[str, Any]]:
    """Help of a command with these options, and the values that it reads."""
    command = click.command("try")(decorator(lambda **values: values))
    context = command.make_context("try", list(text))
    return command.get_help(context), context.params


def test_a_new_option_needs_its_declaration_alone(shake: Option, tmp_path: Path) -> None:
    for decorator in (command_options("run"), command_options("serve")):
        output, values = text_of(decorator, "--shake-hz", "3")
        assert values["shake_hz"] == 3.0
        assert "--shake-hz HZ" in output
        assert "Shake the table (default 2)." in output
    output, values = text_of(study_options())
    assert values["shake_hz"] is None
    assert "--shake-hz HZ" in output
    with pytest.raises(click.BadParameter, match="expected a number > 0 Hz, got '-1'"):
        text_of(command_options("run"), "--shake-hz", "-1")
    path = tmp_path / "s.toml"
    path.write_text('robot = "manta"\nshake-hz = 3\n')
    result = scenario(str(path))
    assert merge_options(result, {}, ())["shake_hz"] == 3.0
    assert why_not(shake, 3.0) == ""
    for text, message in (
        ('shake-hz = "fast"', "s.toml:2: shake_hz: expected a number, got 'fast'"),
        ("shake-hz = -1", "s.toml:2: shake_hz: expected a number > 0 Hz, got '-1'"),
        ("shakehz = 1", "s.toml:2: unknown key 'shakehz'; did you mean shake_hz"),
    ):
        path.write_text(f'robot = "manta"\n{text}\n')
        with pytest.raises(ModelError) as fault:
            scenario(str(path))
        assert message in str(fault.value)


def test_each_option_has_a_field_of_the_plan_and_of_a_case() -> None:
    for kind in (Plan, Base):
        assert {run_option.field for run_option in run_options().values()} <= {field.name for field in fields(kind)}


@pytest.mark.parametrize("name", run_options())
def test_the_commands_have_the_option(name: str) -> None:
    item = run_options()[name]
    for word, command in (("run", run), ("serve", serve)):
        assert (name in {param.name for param in command.params}) is (word in item.commands)
    assert item.study is not StudyUse.CARRIED or name in {param.name for param in sweep.params}


@pytest.mark.parametrize(
    "option", [run_option for run_option in run_options().values() if run_option.key], ids=lambda item: item.name
)
def test_a_scenario_refuses_what_the_option_is_not(option: Option, tmp_path: Path) -> None:
    key = option.word.lstrip("-")
    (tmp_path / "s.toml").write_text(f'robot = "manta"\n{key} = [1]\n')
    with pytest.raises(ModelError, match=rf"s\.toml:2: {key}: expected a single value"):
        scenario(str(tmp_path / "s.toml"))
    wrong = '"fast"' if option.value_type in (bool, int, float) else "true"
    (tmp_path / "s.toml").write_text(f'robot = "manta"\n{key} = {wrong}\n')
    with pytest.raises(ModelError, match=rf"s\.toml:2: {option.file_key}: "):
        scenario(str(tmp_path / "s.toml"))


@pytest.mark.full
def test_a_number_that_is_none_is_refused_by_each_command(tmp_path: Path) -> None:
    for run_option in run_options().values():
        if run_option.value_type in (int, float):
            result = rtmms(tmp_path, run_option.commands[0], "pendulum", run_option.word, "x")
            assert result.status == 2
            assert run_option.word in result.err
