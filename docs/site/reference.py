"""For mkdocs (gen-files): pages of commands, of robots' parameters and of the Python face, from the code itself."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from inspect import cleandoc
from itertools import chain
from types import ModuleType
from typing import Any

import click
import mkdocs_gen_files

import rtmms
from rtmms.base.entry_points import entry_points_of
from rtmms.cli.main import COMMANDS
from rtmms.cli.main import rtmms as program

SECTION = re.compile(r"^[A-Z][a-z]+\n-{3,}$", re.MULTILINE)
"""Heading of a numpydoc section."""


def commands() -> Iterator[str]:
    yield "# Commands\n\nWhat `rtmms COMMAND --help` prints.\n"
    parent = click.Context(program, info_name="rtmms")
    for name in COMMANDS:
        command = program.get_command(parent, name)
        assert command is not None
        yield from _command(command, click.Context(command, info_name=name, parent=parent))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _command(inner, click.Context(inner, info_name=name, parent=context))


def robots() -> Iterator[str]:
    yield "# Parameters of the robots\n"
    yield "By `--set NAME=VALUE`, in a scenario's `[parameters]`, or as keywords of `rtmms.load`.\n"
    for _, entry in sorted(entry_points_of("rtmms.plants").items()):
        if not entry.module.startswith("rtmms."):
            continue
        module = import_module(entry.module)
        yield f"## {entry.name}\n\n{(module.__doc__ or '').strip()}\n"
        described = _parameters(module)
        if described is None:
            continue
        yield f"{SECTION.split(cleandoc(described.__doc__ or ''))[0].strip()}\n"
        yield "| parameter | default |\n|---|---|"
        for field in dataclasses.fields(described):
            yield f"| `{field.name}` | `{_default(field)}` |"
        yield ""


def _parameters(module: Any) -> Any:
    """The dataclass of a robot's parameters: the one of its module, or of `parameters` beside it."""
    for place in chain([module], _inner(module)):
        for value in vars(place).values():
            current = (
                isinstance(value, type)
                and dataclasses.is_dataclass(value)
                and value.__module__.startswith(place.__name__)
            )
            if current and _defaults(value) >= 4:
                return value
    return None


def _defaults(described: Any) -> int:
    return sum(field.default is not dataclasses.MISSING for field in dataclasses.fields(described))


def _inner(module: Any) -> Iterator[Any]:
    with suppress(ModuleNotFoundError):
        yield import_module(f"{module.__name__}.parameters")


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return repr(field.default_factory()) if field.default_factory is not dataclasses.MISSING else "must be given"


def python() -> Iterator[str]:
    yield "# Python\n\n`import rtmms`, and then:\n"
    yield from _members(rtmms)
    yield "\n# More of it\n\nThese packages are public too, and `import rtmms` gives them by name.\n"
    for name in PUBLIC:
        package = import_module(f"rtmms.{name}")
        yield f"# rtmms.{name}\n\n{cleandoc(package.__doc__ or '')}\n"
        yield from _members(package)
    yield "# rtmms.analysis\n\n" + "\n".join(f"::: {name}\n" for name in ANALYSIS)


PUBLIC = ("model", "fluids", "sensing", "dynamics")
ANALYSIS = (
    "rtmms.analysis.trim.trim_commands", "rtmms.analysis.linearise.linearise_step",
    "rtmms.analysis.linearise.linearise", "rtmms.analysis.period_map.period_map", "rtmms.analysis.linearise.Linear",
)  # fmt: skip
"""Beside `linearise` and `trim`, which rtmms itself has."""


def _members(package: Any) -> Iterator[str]:
    for name in package.__all__:
        value = getattr(package, name)
        if name == "__version__" or isinstance(value, ModuleType):
            continue
        if hasattr(value, "__qualname__") and value.__module__.startswith("rtmms."):
            yield f"::: {value.__module__}.{value.__qualname__}\n"
        else:
            yield f"::: {package.__name__}.{name}\n"


for page, build_page in (("commands", commands), ("robots", robots), ("python", python)):
    with mkdocs_gen_files.open(f"reference/{page}.md", "w") as file:
        file.write("\n".join(build_page()))
