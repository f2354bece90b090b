"""A paper's numbers beside ours: rows, printed as tables or as one JSON object; and how their figures are made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rtmms.report import style
from rtmms.report.endings import figure_file
from rtmms.report.page import marked
from rtmms.report.tables import Table, of_rows
from rtmms.report.verdict import Row, status
from rtmms.terminal import print_json, print_text
from rtmms.whole_file import beside

TITLE = "{}: the paper beside rtmms"


def as_tables(paper: str, rows: Sequence[Row]) -> dict[str, Table]:
    """By name: 'claims' of the rows that have no cases, 'readings' of those that have."""
    kinds = {"readings": [row for row in rows if row.case], "claims": [row for row in rows if not row.case]}
    return {name: of_rows(TITLE.format(paper), kind) for name, kind in kinds.items() if kind}


def tell(paper: str, rows: Sequence[Row], figures: Sequence[Path], as_json: bool, out: Path | None = None) -> int:
    """Print the rows and the figures' names, write the tables as `out`/PAPER.md; 1 if a row that must hold does not."""
    tables = as_tables(paper, rows)
    if out is not None:
        with beside(out / f"{paper}.md", "-o") as part:
            part.write_text(page(tables), encoding="utf-8")
    if as_json:
        found = {"paper": paper, "rows": [row.as_data() for row in rows], "figures": [str(f) for f in figures]}
        print_json(json.dumps(found, allow_nan=False))
        return told(rows)
    for table in tables.values():
        print_text(table.text().removesuffix("\n"))
    for figure in figures:
        print_text(f"figure {figure}")
    return told(rows)


def page(tables: Mapping[str, Table]) -> str:
    """Tables as Markdown, each between marks of its name, as docs/ has them (rtmms.report.page)."""
    return "\n".join(f"## {table.title}\n\n{marked(name, table.markdown())}" for name, table in tables.items())


def told(rows: Sequence[Row]) -> int:
    """The exit status; what must hold and does not is named on standard error."""
    for row in rows:
        if row.failed:
            wanted = row.target.words if row.target else ""
            print_text(f"rtmms: {row.name}: {row.shown} {row.unit}, must be {wanted}", err=True)
    return status(rows)


def canvas(rows: int = 1, columns: int = 1, size: tuple[float, float] = (7.0, 4.0)) -> tuple[Any, Any]:
    """A figure that needs no display, and its axes as matplotlib's `subplots` gives them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def save(figure: Any, out: Path, name: str) -> Path:
    """Write a figure; its path."""
    path = figure_file(out, name)
    style.save(figure, path, dpi=120)
    return path
