"""What a module declares, read from its source: nothing of it is run, so that nobody pays for what it imports.

A robot's module, the one of its entry point, may have CONTROLLER = "NAME", what drives the robot where nothing else is
asked for, and CHOICES = {"coupling": ("NAME", ...)}, the values that a parameter may have. GAIT_SEARCH declares how its
gaits are sought: the controller, its words with their ranges, and what makes a quicker model of the robot.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from rtmms.base.files import MIB, read_input

MAX_BYTES = 4 * MIB
"""Of a module's source."""


def source(module: str) -> str:
    """The file of a module, '' where there is none. Packages that it lies in are imported."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return ""
    return spec.origin or "" if spec is not None else ""


def parsed(file: str) -> ast.Module | None:
    """The module in a file, None where it cannot be read."""
    try:
        return ast.parse(read_input(file, max_bytes=MAX_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def literal(body: Iterable[ast.stmt], name: str) -> Any:
    """The value of NAME = ... among statements, None where it is not written out there."""
    for node in body:
        names = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(one, ast.Name) and one.id == name for one in names):
            try:
                return ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except (ValueError, TypeError):
                return None
    return None


def fact(module: str, name: str) -> Any:
    """Return a module's literal of this name; None where there is none."""
    tree = parsed(source(module))
    return None if tree is None else literal(tree.body, name)


def first_line(module: str) -> str:
    """Return the module's docstring; '' where it cannot be read."""
    tree = parsed(source(module))
    return "" if tree is None else (ast.get_docstring(tree) or "").partition("\n")[0]
