"""Docstrings are numpydoc: public functions have their sections, whose entries are the arguments.

ruff's rules `D` check the form of a docstring, but neither that sections are there nor what they list. A method with
`@override` inherits the docstring, and one of its own has only what it adds. Methods of public classes have it all.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("rtmms", "bridges", "controllers")
PUBLIC = ("rtmms", "rtmms.model", "rtmms.fluids", "rtmms.analysis", "rtmms.sensing")
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$")
_COMMAND = re.compile(r"\b(command|group|option|argument)\(|\.command\b|overload|setter")
"""Decorators of functions without sections: click prints the docstrings of commands."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sections(text: str) -> dict[str, list[str]]:
    """Lines of each numpydoc section, by its heading."""
    result: dict[str, list[str]] = {"": []}
    name, lines = "", text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"[A-Z]\w+(?: \w+)?", line) and re.fullmatch(r"-{3,}", below):
            name = line
            result[name] = []
        elif not re.fullmatch(r"-{3,}", line):
            result[name].append(line)
    return result


def entries(lines: list[str]) -> list[str]:
    """Names of the entries of a section."""
    matches = [_ENTRY.match(line) for line in lines if line and not line.startswith(" ")]
    return [name.lstrip("*") for match in matches if match for name in match[1].split(", ")]


def arguments(function: Function) -> list[str]:
    """Names of a function's arguments, without that of the object or class of a method."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs]
    names = [item.arg for item in [*named, *([args.kwarg] if args.kwarg else [])]]
    is_of_class = any(ast.unparse(item) == "classmethod" for item in function.decorator_list)
    return [name for name in names if name != "self" and not (is_of_class and name == "cls")]


def functions(path: Path) -> Iterator[Function]:
    """Public functions of a file, and methods of its public classes."""

    def within(body: list[ast.stmt]) -> Iterator[Function]:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from within(node.body)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not (
                node.name.startswith("_") or any(_COMMAND.search(ast.unparse(item)) for item in node.decorator_list)
            ):
                yield node

    yield from within(ast.parse(path.read_text(encoding="utf-8")).body)


def is_override(function: Function) -> bool:
    """Whether a method has the decorator of rtmms.base.override."""
    return any(ast.unparse(item) == "override" for item in function.decorator_list)


@cache
def documented() -> frozenset[tuple[str, str]]:
    """Pairs of a class and a method that it documents or inherits with documentation, by the classes' names."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for place in PLACES:
        for path in (ROOT / place).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, []).append(node)

    def methods(name: str) -> set[str]:
        nodes = classes.get(name, [])
        bases = {re.sub(r"\[.*", "", ast.unparse(base)).split(".")[-1] for node in nodes for base in node.bases}
        inherited = (methods(base) for base in bases - {name})
        current = (
            item for node in nodes for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
        )
        return set().union(*inherited) | {item.name for item in current if ast.get_docstring(item)}

    return frozenset((name, method) for name in classes for method in methods(name))


def faults(function: Function) -> Iterator[str]:
    """What a docstring lacks."""
    text = ast.get_docstring(function)
    if is_override(function):
        listed = entries(sections(text).get("Parameters", [])) if text else []
        unknown = sorted(set(listed) - set(arguments(function)))
        if unknown:
            yield f"Parameters: no arguments: {unknown}"
        return
    if text is None:
        yield "no docstring"
        return
    result, expected = sections(text), arguments(function)
    listed = entries(result.get("Parameters", []))
    if sorted(listed) != sorted(expected):
        yield f"Parameters: expected {expected}, got {listed}"
    returned = ast.unparse(function.returns) if function.returns else "None"
    is_property = any("property" in ast.unparse(item) for item in function.decorator_list)
    if returned not in ("None", "Never", "NoReturn") and not is_property and not {"Returns", "Yields"} & result.keys():
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


def test_methods_without_a_docstring_inherit_one() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{method.lineno}: {node.name}.{method.name}: no base class documents it"
        for place in PLACES
        for path in sorted((ROOT / place).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
        and is_override(method)
        and (node.name, method.name) not in documented()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PUBLIC)
def test_help_of_public_classes_is_complete(package: str) -> None:
    module = import_module(package)
    wrong = [
        f"{kind.__qualname__}.{name}: {fault}"
        for kind in (getattr(module, name) for name in getattr(module, "__all__", dir(module)))
        if isinstance(kind, type) and kind.__module__.startswith("rtmms.")
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and method.__module__.startswith("rtmms.")
        for fault in help_faults(method)
    ]
    assert not wrong, "\n".join(wrong)


def help_faults(method: object) -> Iterator[str]:
    """What `help` of a method lacks."""
    result = sections(inspect.getdoc(method) or "\n")
    expected = [name for name in inspect.signature(method).parameters if name != "self"]  # type: ignore[arg-type]
    if not any(result[""]):
        yield "no docstring"
    if sorted(entries(result.get("Parameters", []))) != sorted(expected):
        yield f"Parameters: expected {expected}"


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
