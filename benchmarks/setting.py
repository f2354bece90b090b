"""Setting of a benchmark: machine, versions, commit, load. Part of every result."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError

MEASURED = ("rtmms", "benchmarks/*.py", "controllers", "bridges", "examples", "pyproject.toml")
"""Paths whose changes change a measurement; results and pages do not."""


def _cpu() -> tuple[str, list[str]]:
    """Return the name of the processor, and its vector extensions."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine(), []
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = fields.get("flags", "").split()
    return fields.get("model name", platform.machine()), [f for f in ("avx2", "avx512f") if f in flags]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def refuse_less(name: str, value: float, least: float) -> None:
    """Refuse a value of an option below its least.

    Parameters
    ----------
    name : str
        The option, such as 'loop: --blocks'.
    value : float
        The value.
    least : float
        Its least.

    Raises
    ------
    ModelError
        It is below.
    """
    if value < least:
        raise ModelError(f"bench {name}: expected at least {least:g}, got {value:g}")


def machine() -> dict[str, Any]:
    """Return processor, cores, kernel and versions of libraries.

    Returns
    -------
    dict[str, Any]
        By name.
    """
    name, vectors = _cpu()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": name,
        "vectors": vectors,
        "cores": cores,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("rtmms", "numpy", "numba", "llvmlite", "pyzmq")},
    }


def commit() -> str | None:
    """Return the commit of the sources, with '+' where a path of MEASURED differs from it.

    Returns
    -------
    str | None
        None outside a checkout.
    """
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *arguments], check=True, capture_output=True, text=True, timeout=10
        ).stdout.strip()

    try:
        changes = git("status", "--porcelain", "--untracked-files=no", "--", *(f":(top){path}" for path in MEASURED))
        return git("rev-parse", "HEAD") + ("+" if changes else "")
    except (OSError, subprocess.SubprocessError):
        return None


def load() -> list[float] | None:
    """Return the load averages over the last 1, 5 and 15 minutes.

    Returns
    -------
    list[float] | None
        None where the system has none.
    """
    return [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else None


def now() -> str:
    """Return the present time.

    Returns
    -------
    str
        ISO 8601, UTC.
    """
    return datetime.now(UTC).isoformat(timespec="seconds")
