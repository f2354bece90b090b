"""Requirements of benchmarks, which `rtmms bench` checks before the measurement.

A benchmark declares them at its function:

    @requires(lambda load, **_: [program("stress-ng", "apt install stress-ng")] if load == "loaded" else [])
    def main(as_json: bool = False, load: str = "loaded") -> int: ...
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from rtmms.base.install import install_command

Benchmark = TypeVar("Benchmark", bound=Callable[..., Any])


def requires(check: Callable[..., Iterable[str]]) -> Callable[[Benchmark], Benchmark]:
    """Attach a check of requirements to a benchmark, as a decorator.

    Parameters
    ----------
    check : Callable[..., Iterable[str]]
        Receives the options of the benchmark by name, and returns a sentence for each requirement, '' where it is met.
        It raises ModelError for options that are wrong on every machine.

    Returns
    -------
    Callable[[Benchmark], Benchmark]
        The decorator.
    """

    def attach(benchmark: Benchmark) -> Benchmark:
        benchmark.missing = lambda **options: [text for text in check(**options) if text]  # type: ignore[attr-defined]
        return benchmark

    return attach


def program(name: str, advice: str) -> str:
    """Return the advice for a missing program.

    Parameters
    ----------
    name : str
        The program.
    advice : str
        The next action.

    Returns
    -------
    str
        '' where it is on the path.
    """
    return "" if shutil.which(name) else f"expected the program {name}, found none: {advice}"


def module(name: str, extra: str) -> str:
    """Return the advice for a missing module.

    Parameters
    ----------
    name : str
        The module.
    extra : str
        Extra of rtmms that brings it.

    Returns
    -------
    str
        '' where it is installed.
    """
    return "" if find_spec(name) else f"expected the module {name}, found none: {install_command(extra)}"


def linux() -> str:
    """Return the advice for another system than Linux.

    Returns
    -------
    str
        '' on Linux.
    """
    return "" if sys.platform == "linux" else f"reads /proc: expected Linux, got {sys.platform}"


def writable(option: str, path: str) -> str:
    """Return the advice for a file that cannot be written.

    Parameters
    ----------
    option : str
        The option.
    path : str
        The file, '' for none.

    Returns
    -------
    str
        '' where it can be written, or no path is given.
    """
    folder = Path(path).parent
    if not path or (folder.is_dir() and os.access(folder, os.W_OK)):
        return ""
    return f"{option} {path}: expected a folder that can be written, got '{folder}': name another one"
