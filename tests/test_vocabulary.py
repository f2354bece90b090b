"""Words that docs/glossary.md replaced: no name, text or page of the project has one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("rtmms", "bridges", "controllers", "benchmarks", "tests", "docs", "examples")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
"""A part of an identifier: of tell_damage and LineTold as well as of a sentence."""
_ALIAS = re.compile(r"^ +\w+ = Renamed\(.*$", re.M)
"""An old name that works for one version: it has to be there, and goes with that version."""
TEXTS = (".py", ".md", ".toml", ".txt", ".ipynb", ".c", ".h", ".cpp", ".ino", ".js")
"""Endings of the files that people read: also templates, notebooks, and clients in other languages."""
OLD_NAMES = (
    ROOT / "docs/glossary.md", ROOT / "docs/migration.md", ROOT / "tests/wire/peer/test_old_names.py", Path(__file__)
)  # fmt: skip
"""Files that list old names beside the new ones, or test them."""
_PICTURE = re.compile(r'"(?:image/png|text/html)": .*')
"""Output of a notebook that is no text of the project."""
_LIBRARIES = re.compile(r"\bdef tell\(self\) -> int|\b(?:self|strategy)\.tell\b")
"""Names that libraries give: `tell` of a file, and of pycma's strategy."""


def replaced_words() -> frozenset[str]:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").split("## Replaced words")[1]
    rows = re.findall(r"^\| ([a-z, ]+) \|", page, re.M)
    return frozenset(word.strip() for row in rows[1:] for word in row.split(","))


def old_names() -> frozenset[str]:
    """Quoted names that docs/migration.md lists, whole and by their last part: they work for one version."""
    page = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    names = re.findall(r"^\|[^|]+\| `([^`]+)` \|", page, re.M)
    assert len(names) > 40
    return frozenset(
        f"{quote}{name}{quote}" for full in names for name in (full, full.rpartition(".")[2]) for quote in '"`'
    )


def parts_of(text: str) -> list[str]:
    return [part.lower() for part in _PART.findall(text)]


def found_words() -> list[str]:
    """Replaced words in names of files and in their texts, with their places."""
    replaced, result = replaced_words(), list[str]()
    old = re.compile("|".join(map(re.escape, old_names())))
    for place in PLACES:
        for path in (ROOT / place).rglob("*"):
            if path.suffix not in TEXTS or path in OLD_NAMES or "node_modules" in path.parts:
                continue
            text = path.name + "\n" + path.read_text(encoding="utf-8", errors="replace")
            for allowed in (_ALIAS, _LIBRARIES, _PICTURE, old):
                text = allowed.sub("", text)
            arguments = sorted({part for part in parts_of(text) if part in replaced})
            result += [f"{path.relative_to(ROOT)}: {', '.join(arguments)}"] if arguments else []
    return result


def test_the_glossary_lists_them() -> None:
    assert {"told", "said", "heard", "witness", "woven"} <= replaced_words()
    assert "instead of" not in replaced_words()


@pytest.mark.parametrize(("text", "parts"), [
    ("tell_damage", ["tell", "damage"]), ("LineTold", ["line", "told"]), ("it says so", ["it", "says", "so"]),
    ("MAX_SAID", ["max", "said"]), ("untold", ["untold"]),
])  # fmt: skip
def test_an_identifier_has_its_parts(text: str, parts: list[str]) -> None:
    assert parts_of(text) == parts


def test_no_file_has_one() -> None:
    assert found_words() == [], "docs/glossary.md has words to use instead"


EMPTY_NAMES = frozenset({
    "told", "said", "found", "made", "kept", "given", "taken", "seen", "one", "own", "some", "most", "way", "words",
    "usual", "rest", "beside", "further",
})  # fmt: skip
"""Names that say nothing of the thing, whole or after underscores (style: never name anything so)."""
PUBLIC_NAMES = frozenset({("rtmms/base/memory.py", "given"), ("rtmms/plant/protocol.py", "most")})
"""(file, name): functions that are old names, which work for one version with a warning."""


def defined_names(tree: ast.AST) -> Iterator[str]:
    """Names that a file defines: functions, classes, parameters, variables and attributes; no old names that warn."""
    old = {target for node in ast.walk(tree) if isinstance(node, ast.Assign) and "Renamed(" in ast.unparse(node.value)
           for target in node.targets}  # fmt: skip
    for node in ast.walk(tree):
        if node in old:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_no_name_says_nothing_of_its_thing() -> None:
    defined = {
        (str(path.relative_to(ROOT)), name)
        for place in PLACES for path in (ROOT / place).rglob("*.py")
        for name in defined_names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_").lower() in EMPTY_NAMES
    }  # fmt: skip
    assert defined - PUBLIC_NAMES == set(), "name the thing: a noun of the field, or what the value is for"
    assert defined >= PUBLIC_NAMES, "the name is gone: remove it from PUBLIC_NAMES"
