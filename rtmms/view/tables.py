"""Tables as text, as Markdown and as blocks of pages, and a paper's numbers beside ours."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.base.files import MIB, new_file_beside, read_input_text
from rtmms.base.terminal import print_json, print_text
from rtmms.view import style
from rtmms.view.style import figure_file
from rtmms.view.verdict import DIFFERS, Row, status

# Tables as text and as Markdown, and the table of a paper's rows.


@dataclass(frozen=True, slots=True)
class Table:
    """A table with as many cells in each line as in its head.

    Parameters
    ----------
    title : str
        Title above the table.
    heads : Sequence[str]
        Titles of the columns.
    lines : Sequence[Sequence[str]]
        Cells of each line.
    notes : Sequence[str], optional
        Notes below the table.

    Examples
    --------
    >>> print(Table("", ("name", "unit"), [("speed", "m/s")]).markdown(), end="")
    | name | unit |
    |---|---|
    | speed | m/s |
    """

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Return the table as text with aligned columns.

        Returns
        -------
        str
            The text with title and notes.
        """
        widths = [max(len(line[k]) for line in (self.heads, *self.lines)) for k in range(len(self.heads))]
        out = [self.title, ""] if self.title else []
        for line in (self.heads, ["-" * width for width in widths], *self.lines):
            out.append("  " + "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
        return "\n".join(out) + "\n\n" + "".join(f"{note}\n" for note in self.notes) + ("\n" if self.notes else "")

    def markdown(self) -> str:
        """Return the table in Markdown, without the title.

        Returns
        -------
        str
            The table with its notes.
        """
        lines = [f"| {' | '.join(self.heads)} |", "|" + "---|" * len(self.heads)]
        lines += [f"| {' | '.join(line)} |" for line in self.lines]
        notes = "\n" + "\n".join(self.notes) + "\n" if self.notes else ""
        return "\n".join(lines) + "\n" + notes


class _TableNotes:
    """Numbers for sentences, which show a sentence about many rows once below the table."""

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def number(self, rows: Sequence[Row]) -> str:
        out: list[str] = []
        for sentence in (sentence for row in rows for sentence in row.remarks):
            if sentence not in self.remarks:
                self.remarks.append(sentence)
            mark = str(self.remarks.index(sentence) + 1)
            out += [] if mark in out else [mark]
        return ", ".join(out)

    @property
    def notes(self) -> list[str]:
        return [f"{k}. {sentence}." for k, sentence in enumerate(self.remarks, 1)]


def rows_as_table(title: str, rows: Sequence[Row]) -> Table:
    """Return the table of a paper's rows.

    Without cases there is a line for each row. Otherwise there is a line for each name and a column for each case,
    which shows the cases that differ.

    Parameters
    ----------
    title : str
        Title of the table.
    rows : Sequence[Row]
        The rows.

    Returns
    -------
    Table
        The table, with remarks as notes.
    """
    remarks = _TableNotes()
    cases = list(dict.fromkeys(row.case for row in rows))
    if cases == [""]:
        places = [[row.where] if any(other.where for other in rows) else [] for row in rows]
        front = ["where"] if places and places[0] else []
        heads = [*front, "", "paper", "ours", "unit", "agrees if", "verdict", "remark"]
        lines = [
            [
                *place,
                row.name,
                _paper(row),
                row.shown,
                row.unit,
                row.target.range_text if row.target else "",
                row.verdict,
                remarks.number([row]),
            ]
            for place, row in zip(places, rows, strict=True)
        ]
        return Table(title, heads, lines, remarks.notes)
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    lines = []
    for name, same in by_name.items():
        of_case, first = {row.case: row for row in same}, same[0]
        cells = [_judged(of_case[case]) if case in of_case else "" for case in cases]
        agrees = first.target.range_text if first.target else first.unjudged
        lines.append([name, first.unit, _paper(first), agrees, *cells, remarks.number(same)])
    return Table(title, ["", "unit", "paper", "agrees if", *cases, "remark"], lines, remarks.notes)


def _judged(row: Row) -> str:
    return f"{row.shown} {DIFFERS}" if row.verdict == DIFFERS else row.shown


def _paper(row: Row) -> str:
    return row.paper if isinstance(row.paper, str) else f"{row.paper:g}"


# Tables that a page of docs/ takes from a command, between marks.
#
# `rtmms reproduce PAPER -o DIR` writes DIR/PAPER.md. `python -m rtmms.view.tables docs/eel.md DIR/khalil2007.md`
# takes its tables over. `rtmms bench tables` writes those that come from benchmarks/results and from the manta's
# parameters.


_BLOCK = re.compile(r"<!-- begin ([^>]+) -->\n(.*?)<!-- end \1 -->", re.DOTALL)


_MARK = re.compile(r"<!-- (?:begin|end) [^>]+ -->")


def text_between_marks(name: str, text: str) -> str:
    """Return a text between marks.

    Parameters
    ----------
    name : str
        Name in the marks.
    text : str
        The text, which ends with a newline.

    Returns
    -------
    str
        The marks with the text between them.
    """
    return f"<!-- begin {name} -->\n{text}<!-- end {name} -->\n"


def blocks(page: str) -> dict[str, str]:
    r"""Return the texts between the marks of a page.

    Parameters
    ----------
    page : str
        Text of the page.

    Returns
    -------
    dict[str, str]
        Texts by name of their marks.

    Raises
    ------
    ModelError
        If a mark has no matching one.

    Examples
    --------
    >>> blocks(text_between_marks("speeds", "a\n"))
    {'speeds': 'a\n'}
    """
    result = _BLOCK.findall(page)
    marks = _MARK.findall(page)
    for begin, end in zip(marks[::2], [*marks[1::2], ""], strict=False):
        if end != begin.replace("begin", "end", 1) or not begin.startswith("<!-- begin"):
            raise ModelError(f"expected <!-- begin NAME --> ... <!-- end NAME -->, got {begin} without its other mark")
    return dict(result)


def fill_page(page: str, built: Mapping[str, str]) -> str:
    """Return a page with new texts between its marks.

    Parameters
    ----------
    page : str
        Text of the page.
    built : Mapping[str, str]
        New texts by name; other marks keep their text.

    Returns
    -------
    str
        The new page.
    """
    return _BLOCK.sub(lambda match: text_between_marks(match[1], built.get(match[1], match[2])).rstrip("\n"), page)


if __name__ == "__main__":
    path, source = Path(sys.argv[1]), Path(sys.argv[2])
    old, new = (read_input_text(item, max_bytes=16 * MIB) for item in (path, source))
    with new_file_beside(path, "") as part:
        part.write_text(fill_page(old, blocks(new)), encoding="utf-8")


# A paper's numbers beside ours: rows, printed as tables or as one JSON object; and how their figures are made.


TITLE = "{}: the paper beside rtmms"


def as_tables(paper: str, rows: Sequence[Row]) -> dict[str, Table]:
    """Return the tables of a paper.

    Parameters
    ----------
    paper : str
        Name of the paper.
    rows : Sequence[Row]
        Its rows.

    Returns
    -------
    dict[str, Table]
        `claims` with the rows without cases, and `readings` with those with cases; an empty table is left out.
    """
    kinds = {"readings": [row for row in rows if row.case], "claims": [row for row in rows if not row.case]}
    return {name: rows_as_table(TITLE.format(paper), kind) for name, kind in kinds.items() if kind}


def print_rows(paper: str, rows: Sequence[Row], figures: Sequence[Path], as_json: bool, out: Path | None = None) -> int:
    """Print the rows and the names of the figures.

    Parameters
    ----------
    paper : str
        Name of the paper.
    rows : Sequence[Row]
        Its rows.
    figures : Sequence[Path]
        Paths of its figures.
    as_json : bool
        Whether to print one JSON object.
    out : Path | None, optional
        Folder for PAPER.md with the tables; None writes none.

    Returns
    -------
    int
        Exit status, 1 if a row that must hold does not.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    tables = as_tables(paper, rows)
    if out is not None:
        with new_file_beside(out / f"{paper}.md", "-o") as part:
            part.write_text(page(tables), encoding="utf-8")
    if as_json:
        result = {"paper": paper, "rows": [row.as_data() for row in rows], "figures": [str(f) for f in figures]}
        print_json(json.dumps(result, allow_nan=False))
        return print_verdicts(rows)
    for table in tables.values():
        print_text(table.text().removesuffix("\n"))
    for figure in figures:
        print_text(f"figure {figure}")
    return print_verdicts(rows)


def page(tables: Mapping[str, Table]) -> str:
    """Return tables in Markdown, each between marks of its name, as the pages of docs/ have them.

    Parameters
    ----------
    tables : Mapping[str, Table]
        Tables by name.

    Returns
    -------
    str
        Text of the page.
    """
    return "\n".join(
        f"## {table.title}\n\n{text_between_marks(name, table.markdown())}" for name, table in tables.items()
    )


def print_verdicts(rows: Sequence[Row]) -> int:
    """Print each row that must hold and does not to standard error.

    Parameters
    ----------
    rows : Sequence[Row]
        The rows.

    Returns
    -------
    int
        Exit status, 1 if there is such a row.
    """
    for row in rows:
        if row.failed:
            wanted = row.target.range_text if row.target else ""
            print_text(f"rtmms: {row.name}: {row.shown} {row.unit}, must be {wanted}", err=True)
    return status(rows)


def canvas(rows: int = 1, columns: int = 1, size: tuple[float, float] = (7.0, 4.0)) -> tuple[Any, Any]:
    """Return a figure that needs no display, and its axes.

    Parameters
    ----------
    rows, columns : int
        Number of panels in each direction.
    size : tuple[float, float], optional
        Width and height in inches.

    Returns
    -------
    tuple[Any, Any]
        Figure, and axes as matplotlib's `subplots` returns them.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def save(figure: Any, out: Path, name: str) -> Path:
    """Write a figure of a paper.

    Parameters
    ----------
    figure : Figure
        The figure.
    out : Path
        Folder of the file.
    name : str
        Name of the figure, without an ending.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    ModelError
        If a file of another kind would be lost.
    RtmmsError
        If the file cannot be written.
    """
    path = figure_file(out, name)
    style.save(figure, path, dpi=120)
    return path
