"""Sections 4 to 6, the part of connections: cat, satellite, Purcell's swimmer, three ellipses in a perfect fluid."""

from __future__ import annotations

from pathlib import Path

from rtmms.report.boyer2015 import figures, runs
from rtmms.report.boyer2015.claims import CLAIMS
from rtmms.report.verdict import Row, rows_of


def part(out: Path | None) -> tuple[list[Row], list[Path]]:
    """Its rows, and its figures, drawn into `out` if given."""
    found = runs.connections()
    best = runs.best_stroke(found["purcell"])
    rows = rows_of(CLAIMS, runs.numbers(found, best))
    return rows, figures.draw(found, best, out) if out is not None else []
