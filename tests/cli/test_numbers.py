"""Every option that is a number: what is none, or beyond what can be counted, is refused by its name."""

from __future__ import annotations

import click
import pytest

from rtmms.cli.option_types import NumberType, Range
from tests.cli.shell import rtmms
from tests.cli.test_files import commands

NO_NUMBERS = ("nan", "inf", "-inf", "1e400", "x", "", "0x10", "1,5", "-1e-300")
NO_COUNTS = ("nan", "inf", "1.5", "x", "", "-1", str(10**30), str(-(10**30)))

OPTIONS = [(name, command, param) for name, command in commands() for param in command.params]
KINDS = (click.types.FloatParamType, click.types.IntParamType, NumberType)
NUMBERS = [option for option in OPTIONS if isinstance(option[2].type, KINDS)]


@pytest.mark.parametrize(
    ("name", "command", "option"), NUMBERS, ids=[f"{name} {option.opts[0]}" for name, _, option in NUMBERS]
)
def test_what_is_no_number_is_refused(name: str, command: click.Command, option: click.Parameter) -> None:
    counts = isinstance(option.type, click.types.IntParamType) and not isinstance(option.type, click.FloatRange)
    assert counts or isinstance(option.type, (NumberType, Range)), (
        f"{name} {option.opts[0]}: click's own type takes nan"
    )
    context = click.Context(command)
    for value in NO_COUNTS if counts else NO_NUMBERS:
        with pytest.raises(click.BadParameter, match=r"expected|not a valid|not in the range"):
            option.type.convert(value, option, context)


def test_there_are_options_to_try() -> None:
    assert len(NUMBERS) > 60


@pytest.mark.parametrize(
    "arguments",
    [
        ("gaits", "manta", "--search", "speed,power", "--at", "nan"),
        ("gaits", "manta", "--search", "speed,power", "--at", "0.1,inf"),
        ("movie", "none.mcap", "-o", "a.gif", "--from", "nan"),
        ("movie", "none.mcap", "-o", "a.gif", "--size", "nanxnan"),
        ("run", "--from", "none.mcap@nan"), ("run", "--from", "none.mcap@-1"),
        ("identify", "none.csv", "--fit", "a", "--bounds", "a=nan:1"),
        ("identify", "none.csv", "--fit", "a", "--prior", "a=1:inf"),
        ("run", "manta", "--quiet", "--controller", "none", "--set", "drag_coefficient=nan"),
        ("run", "manta", "--quiet", "--controller", "none", "--set", "chains=inf"),
        ("run", "manta", "--link", "gait:delay_ms=nan"), ("run", "manta", "--controller", "gait:amplitude_deg=nan"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_numbers_within_text_are_refused(tmp_path: object, arguments: tuple[str, ...]) -> None:
    result = rtmms(tmp_path, *arguments)  # type: ignore[arg-type]
    assert result.status == 2, result.err
    assert "Traceback" not in result.err
    assert any(item in result.err for item in ("nan", "inf", "-1")), result.err
