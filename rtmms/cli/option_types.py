"""Words of the command line: values typed by a person, checked where they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import KINDS, refuse_closed_folder, refuse_output
from rtmms.base.override import override
from rtmms.base.source_declarations import fact
from rtmms.base.toml_file import read_toml
from rtmms.plant.loading import builder

if TYPE_CHECKING:
    from rtmms.scenario.run_options import Option

FIGURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".eps", ".ps")
"""Endings of the formats in which figures can be written."""


def refuse_figure(word: str, path: Path, sources: tuple[Path, ...] = (), *, force: bool | None = None) -> None:
    """Refuse a path to which no figure can be written, before anything is computed.

    Parameters
    ----------
    word : str
        Option, for messages.
    path : Path
        File of the figure.
    sources : tuple[Path, ...], default ()
        Files that must not be overwritten.
    force : bool | None, optional
        Overwrite any file; None: there is no such option.

    Raises
    ------
    ModelError
        The format is wrong, or the place cannot be written.
    """
    if path.suffix.lower() not in FIGURES:
        raise ModelError(f"{word} {path}: expected a name that ends in {', '.join(FIGURES)}")
    way_out = "the file is unchanged" if force is None else "--force overwrites"
    refuse_output(path, word, None if force else KINDS[path.suffix.lower()], sources, way_out)


class KnownName(click.ParamType):
    """One of some names; the error for another word has near misses.

    Parameters
    ----------
    kind : str
        Kind of name, for messages.
    known : Iterable[str]
        The names.
    """

    name = "name"

    def __init__(self, kind: str, known: Iterable[str]) -> None:
        self.kind, self.known = kind, tuple(known)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a word."""
        if value not in self.known:
            self.fail(str(UnknownNameError(self.kind, str(value), self.known)), param, ctx)
        return str(value)

    @override
    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the names for the help."""
        return "|".join(self.known)

    @override
    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with the text so far."""
        return [CompletionItem(name) for name in self.known if name.startswith(incomplete)]


class Installed(click.ParamType):
    """A plug-in of a group, or another word of the command: only the shell's completion uses the names.

    Parameters
    ----------
    group : str
        Group of entry points.
    """

    name = "text"

    def __init__(self, group: str) -> None:
        self.group = group

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word itself."""
        return str(value)

    @override
    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the plug-ins that begin with the text so far, else files."""
        names = sorted(entry_points_of(self.group))
        result = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return result or [CompletionItem(incomplete, type="file")]


MIN_NUMBER = 1e-9
"""Magnitude of a typed number; times within the two limits are whole nanoseconds of 64 bits."""
MAX_NUMBER = 1e9


MAX_THREADS = 4096
INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of SIGINT, as a shell has it."""


class Range(click.FloatRange):
    """A finite number in a range. Click's own type accepts nan, which passes every comparison, and inf."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number, and refuse one that is not finite."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"expected a finite number in the range {self._describe_range()}, got '{value}'", param, ctx)
        return number


class LimitOfSteps(click.ParamType):
    """A count of steps, or a share of them with %."""

    name = "limit"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a limit."""
        from rtmms.loop.policies import parse_limit

        try:
            parse_limit(str(value))
        except ModelError as fault:
            self.fail(str(fault), param, ctx)
        return str(value)


class NumberType(click.ParamType):
    """A number from MIN_NUMBER to MAX_NUMBER, or 0 where `zero` is allowed; where it is `signed`, of either sign, or 0.

    Parameters
    ----------
    unit : str
        Unit, for messages.
    zero : bool, default False
        0 is allowed.
    signed : bool, default False
        Negative numbers are allowed.
    """

    name = "number"

    def __init__(self, unit: str, *, zero: bool = False, signed: bool = False) -> None:
        self.unit, self.zero, self.signed = unit, zero or signed, signed

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or (number < 0 and not self.signed) or (number == 0 and not self.zero):
            expected = "" if self.signed else ">= 0" if self.zero else "> 0"
            text = " ".join(word for word in ("expected a number", expected, self.unit) if word)
            self.fail(f"{text}, got '{value}'", param, ctx)
        if number and not MIN_NUMBER <= abs(number) <= MAX_NUMBER:
            unit = f" {self.unit}" if self.unit else ""
            self.fail(f"expected a number from {MIN_NUMBER:g} to {MAX_NUMBER:g}{unit}, got '{value}'", param, ctx)
        return number

    @override
    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the unit for the help."""
        return (self.unit or "number").upper()


def value(text: str) -> bool | int | float | str | list[Any]:
    """Read a typed value; the model checks its limits.

    Parameters
    ----------
    text : str
        'true' or 'false', a whole number, a number, a list in brackets as `rtmms list` prints it, or any text.

    Returns
    -------
    bool | int | float | str | list[Any]
        The value, or the text itself.

    Examples
    --------
    >>> from rtmms.cli.option_types import value
    >>> value("true"), value("3"), value("0.5"), value("[1, 2]"), value("hover")
    (True, 3, 0.5, [1, 2], 'hover')
    """
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("[") and text.endswith("]"):
        try:
            return list(json.loads(text))
        except ValueError:
            return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def settings(pairs: Iterable[str], option: str = "--set ") -> dict[str, Any]:
    """Read pairs of a key and a value.

    Parameters
    ----------
    pairs : Iterable[str]
        'key=value' each. 'fault.TARGET=' has no value: it ends the fault.
    option : str, default '--set '
        Option before each, for messages.

    Returns
    -------
    dict[str, Any]
        Values by key.

    Raises
    ------
    ModelError
        A pair lacks a key or '=', or a key is named twice.

    Examples
    --------
    >>> from rtmms.cli.option_types import settings
    >>> settings(["span_m=1.2", "gait=none"])
    {'span_m': 1.2, 'gait': 'none'}
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        key = key.strip()
        if not equals or not key or not (text or key.startswith("fault.")):
            raise ModelError(f"{option}{pair}: expected key=value")
        if key in result:
            raise ModelError(f"{option}{pair}: '{key}' is set twice")
        result[key] = value(text.strip())
    return result


DASK = click.option(
    "--dask", metavar="ADDRESS", help="Run on a Dask cluster instead, for example tls://127.0.0.1:8786.",
)  # fmt: skip
DASK_SECURITY = click.option(
    "--dask-security", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
    help="TLS for --dask: a file with ca, cert and key, the names of PEM files.",
)  # fmt: skip


def check_choice(robot: str, parameter: str, word: str | None) -> None:
    """Check a word for a parameter that the robot's module declares (rtmms.base.source_declarations).

    Parameters
    ----------
    robot : str
        Name of the robot.
    parameter : str
        Name of the parameter.
    word : str | None
        The word; None: it was not given.

    Raises
    ------
    UnknownNameError
        There is no such word.
    ModelError
        The robot has no such choice.
    """
    if word is None:
        return
    known = (fact(builder(robot).module, "CHOICES") or {}).get(parameter)
    if known is None:
        raise ModelError(
            f"--{parameter} {word}: expected none, as robot '{robot}' has no variants of {parameter}; remove the option"
        )
    if word not in known:
        raise UnknownNameError(f"{parameter} of {robot}", word, known)


def refuse_preset(preset: str | None) -> None:
    """Refuse a --preset that is an unreadable file.

    Parameters
    ----------
    preset : str | None
        Word of --preset.

    Raises
    ------
    ModelError
        The file cannot be read; the message names the option.
    """
    if preset is not None and preset.endswith(".toml"):
        read_toml(preset, "--preset")


def folder(option: str, path: Path) -> Path:
    """Return the folder of an option, made where there is none.

    Parameters
    ----------
    option : str
        The option, for messages.
    path : Path
        The folder.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ModelError
        It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise ModelError(f"{option} {path}: {fault.strerror or fault}") from None
    refuse_closed_folder(path, f"{option} {path}")
    return path


def declared_option(declared: Option, default: Any, text: str) -> Callable[[Any], Any]:
    """Return a declared option of a run as a decorator of a command.

    Parameters
    ----------
    declared : Option
        The declaration.
    default : Any
        Default of the command.
    text : str
        Help of the command.

    Returns
    -------
    Callable[[Any], Any]
        Decorator of a command.
    """
    return click.option(
        declared.word, declared.name, type=type_of(declared), multiple=declared.repeats, default=default,
        is_flag=declared.value_type is bool, metavar=declared.metavar or None, help=text,
    )  # fmt: skip


def type_of(declared: Option) -> click.ParamType:
    """Return the click type that reads a declared option's value.

    Parameters
    ----------
    declared : Option
        The declaration.

    Returns
    -------
    click.ParamType
        The type.
    """
    kind = declared.value_type
    if declared.names:
        return KnownName(declared.kind, declared.names)
    if declared.limit:
        return LimitOfSteps()
    if declared.group:
        return Installed(declared.group)
    if kind is float:
        return NumberType(declared.unit, zero=declared.zero)
    if kind is int:
        return click.IntRange(declared.least, declared.max_value)
    if kind is Path:
        return click.Path(path_type=Path, dir_okay=declared.writes is None)
    return click.BOOL if kind is bool else click.STRING


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Combine several options into one decorator, in the given order.

    Parameters
    ----------
    *decorators : Callable[[Any], Any]
        Decorators of options.

    Returns
    -------
    Callable[[Any], Any]
        Decorator of a command.
    """

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def as_in_run(*names: str) -> Callable[[Any], Any]:
    """Return the decorator with some options of `rtmms run`, for a command that has them too.

    Parameters
    ----------
    *names : str
        Names of the options.

    Returns
    -------
    Callable[[Any], Any]
        Decorator of a command.
    """
    from rtmms.scenario.run_options import run_options  # not with every command

    result = [run_options()[name] for name in names]
    return options(*(declared_option(item, item.default, item.help_text(item.default)) for item in result))


def given_options(context: click.Context) -> set[str]:
    """Return the names of the options on the command line.

    Parameters
    ----------
    context : click.Context
        The command's context.

    Returns
    -------
    set[str]
        Names of the function's parameters.
    """
    source = click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is source}


def refuse_without_effect(context: click.Context, names: Iterable[str], expected: str) -> None:
    """Refuse options on the command line that have no effect with the others.

    Parameters
    ----------
    context : click.Context
        The command's context.
    names : Iterable[str]
        Names of the function's parameters.
    expected : str
        What must be, or must not be, beside them, for the error.

    Raises
    ------
    click.UsageError
        One of them is on the command line.
    """
    option_names = given_options(context) & set(names)
    if option_names:
        option_texts = {param.name: param.opts[-1] for param in context.command.params}
        raise click.UsageError(
            f"{', '.join(sorted(option_texts[name] for name in option_names))}: expected {expected} with it"
        )
