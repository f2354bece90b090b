"""Words that docs/glossary.md replaced: no room of the project has more of them than its allowance.

`python -m tests.test_vocabulary` counts again and writes allowances that became smaller.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ALLOWANCES = Path(__file__).with_name("replaced_words.toml")
PLACES = ("rtmms", "bridges", "controllers", "benchmarks", "tests", "docs", "examples")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
"""A part of an identifier: of tell_damage and LineTold as well as of a sentence."""
_ALIAS = re.compile(r"^ +\w+ = Renamed\(.*$", re.M)
"""An old name that works for one version: it has to be there, and goes with that version."""
OLD_NAMES = (ROOT / "docs/glossary.md", ROOT / "docs/migration.md")
"""Pages that list old names beside the new ones."""


def replaced_words() -> frozenset[str]:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").split("## Replaced words")[1]
    rows = re.findall(r"^\| ([a-z, ]+) \|", page, re.M)
    return frozenset(word.strip() for row in rows[1:] for word in row.split(","))


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "rtmms" and len(parts) > 2 else parts[0]


def parts_of(text: str) -> list[str]:
    return [part.lower() for part in _PART.findall(text)]


def counts() -> Counter[str]:
    """Replaced words of each room, in names of files and in their texts."""
    replaced, found = replaced_words(), Counter[str]()
    for place in PLACES:
        for path in (ROOT / place).rglob("*"):
            if path.suffix not in (".py", ".md", ".toml") or path in OLD_NAMES:
                continue
            text = path.name + "\n" + _ALIAS.sub("", path.read_text(encoding="utf-8", errors="replace"))
            found[room_of(path)] += sum(part in replaced for part in parts_of(text))
    return found


def allowances() -> dict[str, int]:
    found: dict[str, int] = tomllib.loads(ALLOWANCES.read_text(encoding="utf-8"))
    return found


def test_the_glossary_lists_them() -> None:
    assert {"told", "said", "heard", "witness", "woven"} <= replaced_words()
    assert "instead of" not in replaced_words()


@pytest.mark.parametrize(("text", "parts"), [
    ("tell_damage", ["tell", "damage"]), ("LineTold", ["line", "told"]), ("it says so", ["it", "says", "so"]),
    ("MAX_SAID", ["max", "said"]), ("untold", ["untold"]),
])  # fmt: skip
def test_an_identifier_has_its_parts(text: str, parts: list[str]) -> None:
    assert parts_of(text) == parts


def test_no_room_has_more_than_its_allowance() -> None:
    allowed = allowances()
    more = {room: f"{n}, allowed {allowed.get(room, 0)}" for room, n in counts().items() if n > allowed.get(room, 0)}
    assert not more, "docs/glossary.md has words to use instead"


if __name__ == "__main__":
    before = allowances() if ALLOWANCES.exists() else {}
    now = {room: min(n, before.get(room, n)) for room, n in sorted(counts().items()) if n}
    ALLOWANCES.write_text("".join(f'"{room}" = {n}\n' for room, n in now.items()), encoding="utf-8")
    print(f"{sum(now.values())} replaced words in {len(now)} rooms")
