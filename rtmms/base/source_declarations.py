"""Declarations of a module, read from its source: nothing of it runs, so that nobody waits for its imports.

A robot's module, the one of its entry point, may have CONTROLLER = "NAME", the default controller of the robot. It may
have CHOICES = {"coupling": ("NAME", ...)}, the possible values of parameters. GAIT_SEARCH declares the search for
gaits: the controller, its arguments with their ranges, and the arguments of a faster model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from rtmms.base.files import MIB, read_input

MAX_SOURCE_BYTES = 4 * MIB
"""Size of a module's source."""


def source(module: str) -> str:
    """Return the file of a module; its parent packages are imported.

    Parameters
    ----------
    module : str
        Name of the module.

    Returns
    -------
    str
        Path of the file; empty if there is none.
    """
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return ""
    return spec.origin or "" if spec is not None else ""


def syntax_tree(file: str) -> ast.Module | None:
    """Return the syntax tree of a file.

    Parameters
    ----------
    file : str
        Path of the file.

    Returns
    -------
    ast.Module | None
        The module; None if it cannot be read.
    """
    try:
        return ast.parse(read_input(file, max_bytes=MAX_SOURCE_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def literal(body: Iterable[ast.stmt], name: str) -> Any:
    """Return the value of NAME = ... among statements.

    Parameters
    ----------
    body : Iterable[ast.stmt]
        The statements.
    name : str
        The name.

    Returns
    -------
    Any
        The value; None if it is no literal.
    """
    for node in body:
        names = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(item, ast.Name) and item.id == name for item in names):
            try:
                return ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except (ValueError, TypeError):
                return None
    return None


def fact(module: str, name: str) -> Any:
    """Return a module's literal of a name.

    Parameters
    ----------
    module : str
        Name of the module.
    name : str
        The name.

    Returns
    -------
    Any
        The value; None if there is none.
    """
    tree = syntax_tree(source(module))
    return None if tree is None else literal(tree.body, name)


def first_line(module: str) -> str:
    """Return the first line of a module's docstring.

    Parameters
    ----------
    module : str
        Name of the module.

    Returns
    -------
    str
        The line; empty if it cannot be read.
    """
    tree = syntax_tree(source(module))
    return "" if tree is None else (ast.get_docstring(tree) or "").partition("\n")[0]
