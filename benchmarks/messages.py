"""`rtmms bench messages`: each error, warning and line for a person that the code can print, in one list for a reader.

It reads the source: arguments of `raise`, of warnings, and of the calls that print to standard error. `{...}` is what a
run fills in.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("rtmms", "bridges", "controllers", "benchmarks")
PRINTS = frozenset({"print_text", "log", "warn", "_print", "warn_renamed"})
"""Functions and methods that print a line for a person."""
MIN_WORDS = 3
"""Shorter texts are codes and names."""


def text_of(node: ast.expr) -> str:
    """Return the text of a string expression, with `{...}` for each value.

    Parameters
    ----------
    node : ast.expr
        Any expression.

    Returns
    -------
    str
        Empty for other expressions.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value) + "}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.IfExp):
        return " | ".join(filter(None, (text_of(node.body), text_of(node.orelse))))
    return ""


def messages(source: str) -> Iterator[tuple[int, str]]:
    """Yield the messages of one file.

    Parameters
    ----------
    source : str
        Python code.

    Yields
    ------
    tuple[int, str]
        Line and text.
    """
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if isinstance(node, ast.Raise) or name in PRINTS:
            text = ": ".join(filter(None, map(text_of, call.args)))
            if len(text.split()) >= MIN_WORDS:
                yield call.lineno, text


def main(as_json: bool = False, room: str = "") -> int:
    """Print the messages of all rooms, or of one folder or file of the repository.

    Parameters
    ----------
    as_json : bool, optional
        Whether the output is JSON.
    room : str, optional
        Folder or file, as rtmms/loop; empty: all.

    Returns
    -------
    int
        0.
    """
    result: list[dict[str, object]] = []
    for start in (ROOT / room,) if room else (ROOT / name for name in ROOMS):
        for file in sorted(start.rglob("*.py")) if start.is_dir() else [start]:
            place = file.relative_to(ROOT).as_posix()
            lines = sorted(set(messages(file.read_text(encoding="utf-8"))))
            result += [{"file": place, "line": line, "text": text} for line, text in lines]
    if as_json:
        print(json.dumps({"messages": result}))
    else:
        print("\n".join(f"{item['file']}:{item['line']}: {item['text']}" for item in result))
    return 0
