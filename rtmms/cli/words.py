"""The words of the command line: values typed by a person, checked where they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rtmms.base.declared import fact
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import KINDS, refuse_closed_folder, refuse_output
from rtmms.base.toml_file import read_toml
from rtmms.plant.protocol import builder

if TYPE_CHECKING:
    from rtmms.scenario.options import Option

FIGURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".eps", ".ps")
"""Endings of the formats in which figures can be written."""


def refuse_figure(word: str, path: Path, sources: tuple[Path, ...] = (), *, force: bool | None = None) -> None:
    """ModelError where no figure can be written to `path`, before anything is computed: its format, its place.

    force  whatever file stands there is overwritten; None: there is no such option
    """
    if path.suffix.lower() not in FIGURES:
        raise ModelError(f"{word} {path}: expected a name that ends in {', '.join(FIGURES)}")
    way_out = "it stays as it is" if force is None else "--force overwrites"
    refuse_output(path, word, None if force else KINDS[path.suffix.lower()], sources, way_out)


class Near(click.ParamType):
    """One of some names; anything else is refused with the near misses."""

    name = "name"

    def __init__(self, kind: str, known: Iterable[str]) -> None:
        self.kind, self.known = kind, tuple(known)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.known:
            self.fail(str(UnknownNameError(self.kind, str(value), self.known)), param, ctx)
        return str(value)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "|".join(self.known)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.known if name.startswith(incomplete)]


class Installed(click.ParamType):
    """A plug-in of a group, or whatever else the command takes: only the shell's completion looks at the names."""

    name = "text"

    def __init__(self, group: str) -> None:
        self.group = group

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = sorted({entry.name for entry in entry_points(group=self.group)})
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


LEAST, MOST = 1e-9, 1e9
"""Of a number that is typed: times in this range are whole nanoseconds of 64 bits."""


MAX_THREADS = 4096


class Range(click.FloatRange):
    """A finite number in a range. Click's own type takes nan, which passes every comparison, and inf."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"expected a finite number in the range {self._describe_range()}, got '{value}'", param, ctx)
        return number


class LimitOfSteps(click.ParamType):
    """A count of steps, or a share of them with %."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from rtmms.loop.policies import parse_limit

        try:
            parse_limit(str(value))
        except ModelError as fault:
            self.fail(str(fault), param, ctx)
        return str(value)


class Number(click.ParamType):
    """A number from LEAST to MOST, or 0 where `zero` is allowed; where it is `signed`, of either sign, or 0."""

    name = "number"

    def __init__(self, unit: str, *, zero: bool = False, signed: bool = False) -> None:
        self.unit, self.zero, self.signed = unit, zero or signed, signed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or (number < 0 and not self.signed) or (number == 0 and not self.zero):
            expected = "" if self.signed else ">= 0" if self.zero else "> 0"
            text = " ".join(word for word in ("expected a number", expected, self.unit) if word)
            self.fail(f"{text}, got '{value}'", param, ctx)
        if number and not LEAST <= abs(number) <= MOST:
            unit = f" {self.unit}" if self.unit else ""
            self.fail(f"expected a number from {LEAST:g} to {MOST:g}{unit}, got '{value}'", param, ctx)
        return number

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return (self.unit or "number").upper()


def value(text: str) -> bool | int | float | str | list[Any]:
    """'true' and 'false', whole numbers, numbers, a list in brackets as `rtmms list` prints it, else the text itself;
    its limits are the model's."""
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
    """['key=value', ...] -> {key: value}; ModelError for a pair without a key or '=', or a key named twice.

    option  what was typed before each, for the message. 'fault.TARGET=' has no value: it ends the fault"""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        key = key.strip()
        if not equals or not key or not (text or key.startswith("fault.")):
            raise ModelError(f"{option}{pair}: expected key=value")
        if key in found:
            raise ModelError(f"{option}{pair}: '{key}' is set twice")
        found[key] = value(text.strip())
    return found


def plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name."""
    return {point.name: point for point in entry_points(group=group)}


DASK = click.option(
    "--dask", metavar="ADDRESS", help="Run on a Dask cluster instead, for example tls://127.0.0.1:8786.",
)  # fmt: skip
DASK_SECURITY = click.option(
    "--dask-security", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
    help="TLS for --dask: a file with ca, cert and key, the names of PEM files.",
)  # fmt: skip


def check_choice(robot: str, parameter: str, word: str | None) -> None:
    """That the robot's module declares a parameter of these words (rtmms.base.declared). None: it was not asked for.
    UnknownNameError; ModelError of a robot that has no such choice."""
    if word is None:
        return
    known = (fact(builder(robot).module, "CHOICES") or {}).get(parameter)
    if known is None:
        raise ModelError(f"--{parameter} {word}: robot '{robot}' has no {parameter} to choose")
    if word not in known:
        raise UnknownNameError(f"{parameter} of {robot}", word, known)


def refuse_preset(preset: str | None) -> None:
    """ModelError, naming the option, for a --preset that is a file which cannot be read."""
    if preset is not None and preset.endswith(".toml"):
        read_toml(preset, "--preset")


def folder(option: str, path: Path) -> Path:
    """The folder of an option, made where there is none; ModelError where it cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise ModelError(f"{option} {path}: {fault.strerror or fault}") from None
    refuse_closed_folder(path, f"{option} {path}")
    return path


def declared_option(declared: Option, default: Any, text: str) -> Callable[[Any], Any]:
    """Return a declared option of a run as a decorator of a command that has this default and help."""
    return click.option(
        declared.word, declared.name, type=type_of(declared), multiple=declared.repeats, default=default,
        is_flag=declared.value_type is bool, metavar=declared.metavar or None, help=text,
    )  # fmt: skip


def type_of(declared: Option) -> click.ParamType:
    """Return what reads a declared option's value."""
    kind = declared.value_type
    if declared.names:
        return Near(declared.kind, declared.names)
    if declared.limit:
        return LimitOfSteps()
    if declared.group:
        return Installed(declared.group)
    if kind is float:
        return Number(declared.unit, zero=declared.zero)
    if kind is int:
        return click.IntRange(declared.least, declared.most)
    if kind is Path:
        return click.Path(path_type=Path, dir_okay=declared.writes is None)
    return click.BOOL if kind is bool else click.STRING


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in the order given."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def as_in_run(*names: str) -> Callable[[Any], Any]:
    """Return the decorator with some options of `rtmms run`, for a command that has them too."""
    from rtmms.scenario.options import run_options  # not with every command

    found = [run_options()[name] for name in names]
    return options(*(declared_option(one, one.default, one.help_text(one.default)) for one in found))
