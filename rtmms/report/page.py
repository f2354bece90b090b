"""Tables that a page of docs/ takes from a command, between marks.

`rtmms reproduce PAPER -o DIR` writes DIR/PAPER.md; `python -m rtmms.report.page docs/eel.md DIR/khalil2007.md` takes
its tables over. `rtmms bench tables` writes those that come from benchmarks/results and from the manta's parameters.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from rtmms.errors import ModelError
from rtmms.input_file import MIB, read_input_text
from rtmms.whole_file import beside

_BLOCK = re.compile(r"<!-- begin ([^>]+) -->\n(.*?)<!-- end \1 -->", re.DOTALL)


_MARK = re.compile(r"<!-- (?:begin|end) [^>]+ -->")


def marked(name: str, text: str) -> str:
    """The text between marks of that name."""
    return f"<!-- begin {name} -->\n{text}<!-- end {name} -->\n"


def blocks(page: str) -> dict[str, str]:
    """What stands between marks, by name; ModelError where a mark has no other."""
    found = _BLOCK.findall(page)
    marks = _MARK.findall(page)
    for begin, end in zip(marks[::2], [*marks[1::2], ""], strict=False):
        if end != begin.replace("begin", "end", 1) or not begin.startswith("<!-- begin"):
            raise ModelError(f"a mark has no other: expected <!-- begin NAME --> ... <!-- end NAME -->, got {begin}")
    return dict(found)


def filled(page: str, made: Mapping[str, str]) -> str:
    """The page with what stands between its marks written anew, where `made` has it."""
    return _BLOCK.sub(lambda found: marked(found[1], made.get(found[1], found[2])).rstrip("\n"), page)


if __name__ == "__main__":
    path, source = Path(sys.argv[1]), Path(sys.argv[2])
    old, made = (read_input_text(one, max_bytes=16 * MIB) for one in (path, source))
    with beside(path, "") as part:
        part.write_text(filled(old, blocks(made)), encoding="utf-8")
