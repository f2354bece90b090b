"""Boyer and Porez (2015): what the paper says of locomotion, part by part, beside what we get."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from rtmms.report.beside import tell
from rtmms.report.verdict import Row

PARTS = (
    "rtmms.report.boyer2015.connections", "rtmms.report.boyer2015.wheels", "rtmms.report.boyer2015.soft",
)  # fmt: skip
"""Files with part(out) -> rows, figures: sections 4 to 6 by connections, and on wheels; section 9."""


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Run all parts, draw their figures into `out` if given, print the numbers; 1 if what must hold does not."""
    rows: list[Row] = []
    figures: list[Path] = []
    for name in PARTS:
        more, drawn = import_module(name).part(out)
        rows += more
        figures += drawn
    return tell("boyer2015", rows, figures, as_json, out)
