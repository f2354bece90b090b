"""Running the command in a process of its own, as a user would, with the test plug-ins installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The one object on standard output."""
        found: dict[str, Any] = json.loads(self.out, parse_constant=lambda word: 1 / 0)
        return found


def environment(tmp_path: Path) -> dict[str, str]:
    """The test plug-ins on the path, and a runtime directory of the test's own."""
    parts = [str(ROOT / "tests" / "plugins"), str(ROOT), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(part for part in parts if part)
    return os.environ | {"PYTHONPATH": path, "XDG_RUNTIME_DIR": str(tmp_path), "COLUMNS": "200"}


def start(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rtmms.cli.main", *words], cwd=tmp_path, env=environment(tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], timeout_s: float = 200) -> Said:
    out, err = process.communicate(timeout=timeout_s)
    return Said(process.returncode, out, err)


def rtmms(tmp_path: Path, *words: str) -> Said:
    """`rtmms WORDS`, to its end."""
    return finish(start(tmp_path, *words))
