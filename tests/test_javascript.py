"""JavaScript of the project parses, also where the libraries that it uses are missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    path for folder in ("rtmms", "examples", "tests", "docs") for path in (ROOT / folder).rglob("*.js")
)  # fmt: skip


def check(node: str, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([node, "--check", "-"], input=text, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def node() -> str:
    program = shutil.which("node")
    if program is None:
        pytest.skip("no node")
    return program


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_parses(node: str, path: Path) -> None:
    assert check(node, path.read_text(encoding="utf-8")).stderr == ""


def test_a_name_that_is_declared_twice_is_found(node: str) -> None:
    assert "already been declared" in check(node, "function main(name) { const name = 1; }").stderr
