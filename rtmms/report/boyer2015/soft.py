"""Section 9, toward soft systems: the dead fish and hovering flight of figure 12, by the rooms of boyer2017."""

from __future__ import annotations

import math
from pathlib import Path

from rtmms.report.boyer2017 import fish, wings
from rtmms.report.verdict import PICTURE, Row

MISSING = (
    "figure 10 draws a beam's frames, figure 11 a flowchart; figure 12 shows pictures of runs of other papers, without "
    "their numbers or parameters: a dead fish and hovering flight stand for it here"
)


def part(out: Path | None) -> tuple[list[Row], list[Path]]:
    """Its rows, and its figures, drawn into `out` if given."""
    rows, drawn = fish.part(out, "boyer2015")
    more, stroke = wings.part(out, "boyer2015")
    missing = Row("figures 10 to 12", math.nan, "pictures", where="9", remarks=(MISSING,), shown="-", unjudged=PICTURE)
    return [*rows, *more, missing], [*drawn, *stroke]
