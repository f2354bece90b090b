"""A paper's numbers beside ours: rows, printed as a table or as one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """what is compared; the paper's value and ours, numbers or words; unit; whether it reproduces, and why not."""

    what: str
    paper: Any
    ours: Any
    unit: str = ""
    reproduces: bool | None = None
    note: str = ""


def tell(paper: str, rows: list[Row], figures: list[Path], as_json: bool) -> int:
    """Print the rows and the figures' names; 0."""
    if as_json:
        print(json.dumps({"paper": paper, "rows": [asdict(row) for row in rows], "figures": [str(f) for f in figures]}))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{paper}: the paper beside rtmms", show_lines=False)
    for name in ("", "paper", "rtmms", "unit", "reproduces", "note"):
        table.add_column(name)
    for row in rows:
        verdict = {True: "yes", False: "no", None: "-"}[row.reproduces]
        table.add_row(row.what, _text(row.paper), _text(row.ours), row.unit, verdict, row.note)
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width of its own
        console = Console(width=140)
    console.print(table)
    for figure in figures:
        console.print(f"figure {figure}")
    return 0


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def canvas(rows: int = 1, columns: int = 1, size: tuple[float, float] = (7.0, 4.0)) -> tuple[Any, Any]:
    """A figure that needs no display, and its axes as matplotlib's `subplots` gives them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def save(figure: Any, out: Path, name: str) -> Path:
    """Write a figure as PNG; its path."""
    path = out / f"{name}.png"
    figure.savefig(path, dpi=120)
    return path
