"""`rtmms bench mutants`: what a mutant is, and that the docs tell of each that lives in the result that is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtmms_benchmarks.mutant_kinds import mutants

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''def f(a, b, c):
    """A text - of (1.0 + 2) words."""
    c[1] += a * b
    return max(a, b) - g(a, b)
'''


def test_each_kind_of_change_once_and_none_in_texts(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(SOURCE, encoding="utf-8")
    found = [one.text().splitlines()[one.line - 1].strip() for one in mutants(tmp_path, path)]
    assert sorted(found) == sorted([
        "c[0] += a * b", "c[1] -= a * b", "c[1] += a + b",
        "return max(a, b) + g(a, b)", "return max(a, b)", "return max(a, b) - g(b, a)",
    ])  # fmt: skip
    assert all(one.matters() for one in mutants(tmp_path, path))


def test_a_zero_that_is_added_is_left_alone(tmp_path: Path) -> None:
    """Its sign and its absence change nothing; what stands before it, or is 0 by its value alone, may."""
    path = tmp_path / "zero.py"
    path.write_text("def f(a, b):\n    a[b + 0] = b - 0.0 + False\n    return 0 + b\n", encoding="utf-8")
    found = [(one.line, one.text().splitlines()[one.line - 1].strip()) for one in mutants(tmp_path, path)]
    assert sorted(found) == [
        (2, "a[b + 0] = b - 0.0"), (2, "a[b + 0] = b - 0.0 - False"), (2, "a[b + 0] = b - 0.125 + False"),
        (3, "return 0"), (3, "return 0 - b"),
    ]  # fmt: skip


@pytest.mark.full
def test_the_code_of_functions_that_are_loaded_is_exchanged(tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    from rtmms_benchmarks.mutant_tests import exchanged

    before, after, path = "def f(x):\n    return x + 1\n", "def f(x):\n    return x - 1\n", str(tmp_path / "two.py")
    names: dict[str, Any] = {}
    exec(compile(before, path, "exec", dont_inherit=True), names)
    f = names["f"]
    assert exchanged(before, after, path, [f])
    assert f(1) == 0
    assert not exchanged(before, after, path, [f])  # nothing is as it was before


def test_the_docs_tell_of_each_survivor() -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "mutants.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "guards.md").read_text(encoding="utf-8")
    tried, killed = sum(room["tried"] for room in kept), sum(room["killed"] for room in kept)
    assert f"{killed} of {tried}: {100.0 * killed / tried:.1f} %" in page
    places = [one["place"].rpartition("/")[2].partition(":") for room in kept for one in room["survivors"]]
    assert len(places) == tried - killed
    assert [
        place for place in places if not any(place[0] in row and f":{place[2]}" in row for row in page.split("\n"))
    ] == []
