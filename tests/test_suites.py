"""Which suite a test belongs to: the default one runs with the extra `test` alone, the full one has all the rest."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
INSTALLED = {"xdist", "resource", "pygeomag"}
"""What the extra `test` installs, or Python has on some systems."""


FULL = re.compile(r"^pytestmark = (\[[^]]*)?.*?pytest\.mark\.full\b", re.MULTILINE)


def needs(text: str) -> set[str]:
    """Packages beyond the extra `test` without which the code skips."""
    return set(re.findall(r"importorskip\(\s*['\"](\w+)", text)) - INSTALLED


def parts_of(text: str) -> tuple[str, dict[str, str]]:
    """The text of a module without its functions, and the text of each function, its decorators with it."""
    lines = text.splitlines(keepends=True)
    functions, remaining = {}, lines.copy()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)]) - 1
            functions[node.name] = "".join(lines[first : node.end_lineno])
            remaining[first : node.end_lineno] = [""] * (node.end_lineno - first)
    return "".join(remaining), functions


def test_what_needs_another_package_belongs_to_the_full_suite() -> None:
    """Otherwise the default suite skips it for want of the package, and the full suite leaves it out."""
    astray = []
    for path in FILES:
        remaining, functions = parts_of(path.read_text(encoding="utf-8"))
        if FULL.search(remaining):
            continue
        astray += [f"{path.name}: {needs(remaining)}"] if needs(remaining) else []
        others = {name: needs(text) for name, text in functions.items() if not name.startswith("test_")}  # fixtures too
        for name, text in functions.items():
            wanted = needs(text).union(*(others[match] for match in set(re.findall(r"\w+", text)) & set(others)))
            if name.startswith("test_") and wanted and "pytest.mark.full" not in text.partition("\ndef ")[0]:
                astray.append(f"{path.name}::{name}: {wanted}")
    assert astray == []


def test_the_extra_test_is_small() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {re.match(r"[\w-]+(\[\w+\])?", extra)[0] for extra in extras["test"]} == {  # type: ignore[index]
        "pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "rtmms[sensors]",
    }  # fmt: skip


@pytest.mark.parametrize(("mark", "fails"), [("", True), ("full", False), ("processes", False)])
def test_a_test_of_the_default_suite_that_starts_a_process_fails(mark: str, fails: bool) -> None:
    item: Any = SimpleNamespace(get_closest_marker=lambda name: name == mark)
    around = conftest.pytest_runtest_call(item)
    next(around)
    sys.audit("subprocess.Popen", "python", ["python", "-c", ""], None, None)  # as subprocess does; nothing starts
    if fails:
        with pytest.raises(pytest.fail.Exception, match=r"starts a process, so it belongs to the full suite .*'-c'"):
            next(around, None)
    else:
        next(around, None)
    conftest.started_processes.clear()  # this very test is one of the default suite


def test_the_default_suite_finds_what_a_fresh_clone_has(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = conftest.modules_beyond("rtmms", "test")
    assert not beyond & {"rtmms", "numpy", "numba", "zmq", "hypothesis", "xdist", "matplotlib"}
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    conftest.hide_modules({"colorsys"})
    assert find_spec("colorsys") is None
    assert find_spec("json") is not None
    with pytest.raises(ModuleNotFoundError):
        import_module("colorsys")


@pytest.mark.parametrize("value", [1, 2])
def test_a_module_of_a_tests_own_folder_is_forgotten_after_it(
    value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_a_test.py").write_text(f"gain = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = import_module("module_of_a_test")
    assert module.gain == value
