"""The product's Python files as syntax trees, for tests that hold for each of them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("rtmms", "controllers", "bridges")


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """Every module, by its place in the project, with its syntax tree, which no test changes."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def dotted(node: ast.AST) -> str:
    """The code of an expression. A dotted name is put together here, which takes a hundredth of the time."""
    parts = []
    first = node
    while isinstance(first, ast.Attribute):
        parts.append(first.attr)
        first = first.value
    return ".".join([first.id, *reversed(parts)]) if isinstance(first, ast.Name) else ast.unparse(node)
