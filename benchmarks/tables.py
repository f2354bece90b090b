"""`rtmms bench tables`: writes what pages quote of the results that are kept, so that no page can say anything else.

A page has a part between `<!-- table: NAME -->` and `<!-- end -->` for each table, or sentence with figures, that comes
from benchmarks/results. `--check` writes nothing and exits with 1 where a page is not up to date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms_benchmarks import tables_faults, tables_loop, tables_rest

ROOT = Path(__file__).resolve().parents[1]
_PART = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_MARK = re.compile(r"<!-- (?:table: |end -->)")

Part = tuple[Callable[..., str], tuple[str, ...]]
PARTS: dict[str, Part] = {
    "in-real-time": (tables_rest.in_real_time, ("loop", "soak_hour")),
    "loop-run": (tables_loop.run, ("loop",)),
    "loop-times": (tables_loop.times, ("loop",)),
    "loop-ratios": (tables_loop.ratios, ("loop",)),
    "loop-misses": (tables_loop.misses, ("loop",)),
    "loop-paces": (tables_loop.paces, ("loop", "loop_10khz")),
    "ring": (tables_loop.ring, ("loop",)),
    "limit": (tables_rest.limit, ("limit",)),
    "exchange": (tables_rest.exchange, ("exchange",)),
    "hour": (tables_rest.hour, ("soak_hour",)),
    "faults-run": (tables_faults.run, ("faults",)),
    "faults": (tables_faults.faults, ("faults",)),
    "watched": (tables_rest.watched, ("watched",)),
}
"""By the part's name: who writes it, and the results that he is given."""


def main(as_json: bool = False, check: bool = False) -> int:
    """The command. Exit status 1 where `check` finds a page that is not up to date."""
    old = stale(ROOT)
    if not check:
        for page, text in old.items():
            (ROOT / page).write_text(text, encoding="utf-8")
    if as_json:
        print(json.dumps({"stale" if check else "written": sorted(old)}))
    else:
        told = "not up to date: run rtmms bench tables" if check else "written"
        print("\n".join(f"{page}: {told}" for page in sorted(old)) or "all pages are up to date")
    return int(check and bool(old))


def stale(root: Path) -> dict[str, str]:
    """The pages below `root` that are not as they should be, and what they should be."""
    kept: dict[str, Any] = {}

    def result(name: str) -> Any:
        if name not in kept:
            kept[name] = json.loads((root / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        return kept[name]

    def part(name: str) -> str:
        write, of = PARTS[name]
        return write(*map(result, of))

    found = {}
    for path in pages(root):
        text, page = path.read_text(encoding="utf-8"), str(path.relative_to(root))
        new = filled(page, text, part, PARTS)
        if new != text:
            found[page] = new
    return found


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def filled(page: str, text: str, part: Callable[[str], str], known: Mapping[str, object]) -> str:
    """A page's text with each of its parts written anew; ModelError for a mark without its other, or a part that is
    not known."""

    def one(match: re.Match[str]) -> str:
        begin, name, inside, end = match.groups()
        if name not in known:
            raise UnknownNameError(f"table of {page}", name, known)
        if _MARK.search(inside):
            raise ModelError(f"bench tables: {page}: expected <!-- end --> behind table '{name}', got another mark")
        return f"{begin}\n{part(name)}\n\n{end}"

    new, count = _PART.subn(one, text)
    if len(_MARK.findall(text)) != 2 * count:
        raise ModelError(f"bench tables: {page}: a mark has no other: expected <!-- table: NAME --> ... <!-- end -->")
    return new
