"""Section 9, toward soft systems: the dead fish and hovering flight of figure 12, by the rooms of boyer2017.

Figure 10 draws a beam's frames and figure 11 a flowchart: the recursions themselves, which every row stands on. Figure
12 shows pictures of runs of other papers, without numbers.
"""

from __future__ import annotations

from pathlib import Path

from rtmms.report.boyer2017 import fish, wings
from rtmms.report.verdict import Row


def part(out: Path | None) -> tuple[list[Row], list[Path]]:
    """Its rows, and its figures, drawn into `out` if given."""
    rows, drawn = fish.part(out, "boyer2015")
    more, stroke = wings.part(out, "boyer2015")
    return [*rows, *more], [*drawn, *stroke]
