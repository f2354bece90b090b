"""Which robots a controller is written for, as its class says in `robots`: read from its source, nothing is run.

A controller may import what takes seconds, or threads of its own: the plant's process must not load it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec

from rtmms.errors import ModelError
from rtmms.user_file import is_file
from rtmms.wire.peer.plugins import controllers


def check_robot(name: str, robot: str) -> None:
    """ModelError where controller `name` is written for other robots than `robot`, and some other is for that one.

    A robot that no installed controller is written for is a user's own, and may share actuators with one of ours."""
    own = declared(name)
    if not own or robot in own:
        return
    fitting = sorted(other for other in controllers() if robot in declared(other))
    if fitting:
        raise ModelError(
            f"controller '{name}' drives {', '.join(own)}, not {robot}; controllers of {robot}: {', '.join(fitting)}"
        )


def declared(name: str) -> tuple[str, ...]:
    """Of an installed controller or FILE.py[:CLASS]; () where it names none, or its source cannot be read."""
    if is_file(name):
        file, _, wanted = name.rpartition(":") if not name.endswith(".py") else (name, "", "")
    else:
        point = controllers().get(name)
        if point is None:
            return ()
        file, wanted = _source(point.module), point.attr
    try:
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return ()
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if not wanted:
        classes = [node for node in classes if any(isinstance(part, ast.FunctionDef) and part.name == "update"
                                                   for part in node.body)]  # fmt: skip
    found = [node for node in classes if node.name == (wanted or node.name)]
    return next(_robots(found[0]), ()) if len(found) == 1 else ()


def _source(module: str) -> str:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return ""
    return spec.origin or "" if spec is not None else ""


def _robots(controller: ast.ClassDef) -> Iterator[tuple[str, ...]]:
    """The value of `robots = (...)` in a class, if it is written out."""
    for node in controller.body:
        names = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(one, ast.Name) and one.id == "robots" for one in names):
            try:
                value = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except (ValueError, TypeError):
                return
            if isinstance(value, (tuple, list)) and all(isinstance(one, str) for one in value):
                yield tuple(value)
