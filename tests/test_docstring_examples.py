"""Examples in docstrings run, and print what the docstrings have."""

from __future__ import annotations

import ast
import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = {"rtmms": "rtmms", "bridges": "rtmms_bridges", "controllers": "rtmms_controllers"}
"""Folders of the repository, and the names by which their modules are imported."""


def has_example(path: Path) -> bool:
    """Whether a docstring of a module, a class or a function has an example; the file is not imported."""
    text = path.read_text(encoding="utf-8")
    if ">>>" not in text:
        return False
    nodes = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
    ]
    return any(">>>" in (ast.get_docstring(node) or "") for node in nodes)


def modules() -> list[str]:
    result = []
    for place, package in PLACES.items():
        for path in sorted((ROOT / place).rglob("*.py")):
            if has_example(path):
                parts = path.relative_to(ROOT / place).with_suffix("").parts
                result.append(".".join((package, *(part for part in parts if part != "__init__"))))
    return result


MODULES = modules()


def test_there_are_examples() -> None:
    assert "rtmms.planning.cost" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted
    assert not result.failed
