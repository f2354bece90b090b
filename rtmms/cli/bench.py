"""rtmms bench: measurements, found by entry points (group rtmms.benchmarks).

A benchmark is a callable(as_json: bool, ...) -> int. Its further parameters, which have defaults, are its options:
`frames: int = 1000` is `--frames N`, of the type of its default. Those before a `/` are words without a name: `rtmms
bench against REV`. Its attribute `missing(**options)`, if it has one, lists missing requirements. The command calls it
before the measurement. If a benchmark fails, the command writes the results so far to a file.
"""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import click

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.option_types import NumberType

GROUP = "rtmms.benchmarks"
_ELSEWHERE = "bench: benchmarks are in the repository, not in the wheel: clone it and run pip install -e . there"


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--OPTION VALUE]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(name: str | None, arguments: tuple[str, ...], as_json: bool) -> int:
    """Run the benchmark NAME; without one, list them. `rtmms bench NAME --options` lists its options."""
    listed = entry_points_of(GROUP)
    known = {key: point for key, point in listed.items() if find_spec(point.module.partition(".")[0]) is not None}
    if name in listed.keys() - known.keys() or (listed and not known):
        raise ModelError(_ELSEWHERE)
    if name is None:
        if as_json:
            print_json(json.dumps({"benchmarks": sorted(known)}))
        else:
            print_text("\n".join(sorted(known)) or "no benchmarks are installed")
        return 0
    if name not in known:
        raise UnknownNameError("benchmark", name, known)
    run: Callable[..., int | None] = known[name].load()
    choices = _choices(run)
    bare = [word for word in arguments[: _bare(run)] if not word.startswith("-")]
    arguments = arguments[len(bare) :]
    if arguments == ("--options",):
        print_text("\n".join(f"--{key.replace('_', '-')} {default}" for key, default in choices.items()) or "none")
        return 0
    options = _read(name, arguments, choices)
    _refuse_missing(name, run, choices | options)
    try:
        return int(run(as_json, *bare, **options) or 0)
    except BaseException as fault:
        _save_measured(name, known[name].module.partition(".")[0], fault)
        raise


def _refuse_missing(name: str, run: Callable[..., Any], options: dict[str, Any]) -> None:
    """Raise ModelError for missing requirements of a benchmark, which its attribute `missing` lists."""
    missing = getattr(run, "missing", None)
    result = missing(**options) if missing is not None else []
    if result:
        raise ModelError(f"bench {name}: {'; '.join(result)}")


def _save_measured(name: str, package: str, fault: BaseException) -> None:
    """Write the results of a benchmark that failed: tables and lists of its functions that had not returned."""
    measured: dict[str, Any] = {}
    depth = 0
    frame = fault.__traceback__
    while frame is not None:
        code, names = frame.tb_frame.f_code, frame.tb_frame.f_globals
        if str(names.get("__name__", "")).partition(".")[0] == package:
            depth += code.co_name != "refuse_less"
            result = {key: plain for key, value in frame.tb_frame.f_locals.items() if (plain := _plain(value))}
            if result:
                measured[code.co_name] = result
        frame = frame.tb_next
    if not measured or (isinstance(fault, ModelError) and depth == 1):  # it refused its options
        return
    text = json.dumps({"benchmark": name, "failed": f"{type(fault).__name__}: {fault}", "measured": measured}, indent=1)
    for folder in (".", None):
        with suppress(OSError):
            with tempfile.NamedTemporaryFile(
                "w", prefix=f"bench-{name}-", suffix=".json", dir=folder, delete=False, encoding="utf-8"
            ) as file:
                file.write(text)
            print_text(f"rtmms: bench {name} was interrupted; its results so far are in {file.name}", err=True)
            return


def _plain(value: Any) -> Any:
    """Return a table or a list as JSON can store it, None for anything else and for what is empty."""
    if not isinstance(value, (dict, list, tuple)) or not value:
        return None
    try:
        return json.loads(json.dumps(value, default=_number))
    except (TypeError, ValueError, RecursionError):
        return None


def _number(value: Any) -> Any:
    """Return an array or a number of numpy as Python has it, and text for anything else."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _bare(run: Callable[..., Any]) -> int:
    """Return the number of its words without a name."""
    kinds = [p.kind for p in inspect.signature(run).parameters.values()]
    return max(0, kinds.count(inspect.Parameter.POSITIONAL_ONLY) - 1)


def _choices(run: Callable[..., Any]) -> dict[str, bool | int | float | str]:
    """Return the options of a benchmark by name, with their defaults: those that can be typed."""
    parameters = list(inspect.signature(run).parameters.values())[1:]
    named = [p for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY]
    return {p.name: p.default for p in named if isinstance(p.default, (bool, int, float, str))}


def _read(name: str, arguments: Sequence[str], choices: dict[str, Any]) -> dict[str, Any]:
    """Convert ['--frames', '5'] to {'frames': 5}, or raise ModelError for an unknown option or another type."""
    result: dict[str, Any] = {}
    left = list(arguments)
    while left:
        word, equals, text = left.pop(0).partition("=")
        key = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or key not in choices:
            known = [f"--{choice.replace('_', '-')}" for choice in choices]
            raise UnknownNameError(f"option of bench {name}", word, known)
        if isinstance(choices[key], bool) and not equals:
            result[key] = True
            continue
        if not equals:
            if not left:
                raise ModelError(f"bench {name}: {word} needs a value")
            text = left.pop(0)
        result[key] = _typed(f"bench {name}: {word}", text, choices[key])
    return result


def _typed(place: str, text: str, default: bool | int | float | str) -> bool | int | float | str:
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ModelError(f"{place}: expected true or false, got '{text}'")
        return text == "true"
    try:
        value = NumberType("", zero=True).convert(text, None, None)
    except click.BadParameter as fault:
        raise ModelError(f"{place}: {fault.message}") from None
    if isinstance(default, int):
        if value != int(value):
            raise ModelError(f"{place}: expected a whole number, got '{text}'")
        return int(value)
    return value
