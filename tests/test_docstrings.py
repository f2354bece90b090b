"""Docstrings are numpydoc: public functions have their sections, whose entries are the arguments.

ruff's rules `D` check the form of a docstring, but neither that sections are there nor what they list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("rtmms", "bridges", "controllers")
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$")
_COMMAND = re.compile(r"\b(command|group|option|argument)\(|\.command\b|overload|setter")
"""Decorators of functions without sections: click prints the docstrings of commands."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sections(text: str) -> dict[str, list[str]]:
    """Lines of each numpydoc section, by its heading."""
    found: dict[str, list[str]] = {"": []}
    name, lines = "", text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"[A-Z]\w+(?: \w+)?", line) and re.fullmatch(r"-{3,}", below):
            name = line
            found[name] = []
        elif not re.fullmatch(r"-{3,}", line):
            found[name].append(line)
    return found


def entries(lines: list[str]) -> list[str]:
    """Names of the entries of a section."""
    matches = [_ENTRY.match(line) for line in lines if line and not line.startswith(" ")]
    return [name.lstrip("*") for match in matches if match for name in match[1].split(", ")]


def arguments(function: Function) -> list[str]:
    """Names of a function's arguments, without that of the object or class of a method."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs]
    names = [one.arg for one in [*named, *([given.kwarg] if given.kwarg else [])]]
    is_of_class = any(ast.unparse(one) == "classmethod" for one in function.decorator_list)
    return [name for name in names if name != "self" and not (is_of_class and name == "cls")]


def functions(path: Path) -> Iterator[Function]:
    """Public functions of a file, and methods of its public classes."""

    def within(body: list[ast.stmt]) -> Iterator[Function]:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from within(node.body)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not (
                node.name.startswith("_") or any(_COMMAND.search(ast.unparse(one)) for one in node.decorator_list)
            ):
                yield node

    yield from within(ast.parse(path.read_text(encoding="utf-8")).body)


def faults(function: Function) -> Iterator[str]:
    """What a docstring lacks."""
    text = ast.get_docstring(function)
    if text is None:
        yield "no docstring"
        return
    found, expected = sections(text), arguments(function)
    listed = entries(found.get("Parameters", []))
    if sorted(listed) != sorted(expected):
        yield f"Parameters: expected {expected}, got {listed}"
    returned = ast.unparse(function.returns) if function.returns else "None"
    is_property = any("property" in ast.unparse(one) for one in function.decorator_list)
    if returned not in ("None", "Never", "NoReturn") and not is_property and not {"Returns", "Yields"} & found.keys():
        yield f"Returns: expected a section for {returned}"


@pytest.mark.parametrize("place", PLACES)
def test_sections_list_what_functions_take_and_return(place: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{function.lineno}: {function.name}: {fault}"
        for path in sorted((ROOT / place).rglob("*.py"))
        for function in functions(path)
        for fault in faults(function)
    ]
    assert not wrong, "\n".join(wrong)


def test_faults_are_found() -> None:
    text = '''def f(a: int, *b: int, c: int) -> int:
    """Return a sum.

    Parameters
    ----------
    a, *b : int
        Numbers.

    Notes
    -----
    c : no entry of the section above.
    """
'''
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(faults(function)) == [
        "Parameters: expected ['a', 'b', 'c'], got ['a', 'b']", "Returns: expected a section for int",
    ]  # fmt: skip
