"""What benchmarks need of a machine: `rtmms bench` checks it before the benchmark measures anything.

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
    """Decorator: attach a check of requirements to a benchmark.

    Parameters
    ----------
    check : callable
        Takes the options of the benchmark by name, and returns a sentence for each requirement, '' where it is met.
        Raises ModelError for options that are wrong on every machine.
    """

    def attach(benchmark: Benchmark) -> Benchmark:
        benchmark.missing = lambda **options: [text for text in check(**options) if text]  # type: ignore[attr-defined]
        return benchmark

    return attach


def program(name: str, advice: str) -> str:
    """Return '' where a program is on the path, else what to do."""
    return "" if shutil.which(name) else f"expected the program {name}, found none: {advice}"


def module(name: str, extra: str) -> str:
    """Return '' where a module is installed, else what to do.  extra: of rtmms, which brings it."""
    return "" if find_spec(name) else f"expected the module {name}, found none: {install_command(extra)}"


def linux() -> str:
    """Return '' on Linux."""
    return "" if sys.platform == "linux" else f"reads /proc: expected Linux, got {sys.platform}"


def writable(option: str, path: str) -> str:
    """Return '' where a file can be written, or no path is given."""
    folder = Path(path).parent
    if not path or (folder.is_dir() and os.access(folder, os.W_OK)):
        return ""
    return f"{option} {path}: expected a folder that can be written, got '{folder}': name another one"
