"""Tables as text and as Markdown, and the table of a paper's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtmms.report.verdict import DIFFERS, Row


@dataclass(frozen=True, slots=True)
class Table:
    """title, heads and lines of as many cells; notes below it."""

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Aligned."""
        widths = [max(len(line[k]) for line in (self.heads, *self.lines)) for k in range(len(self.heads))]
        out = [self.title, ""] if self.title else []
        for line in (self.heads, ["-" * width for width in widths], *self.lines):
            out.append("  " + "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
        return "\n".join(out) + "\n\n" + "".join(f"{note}\n" for note in self.notes) + ("\n" if self.notes else "")

    def markdown(self) -> str:
        """The same as Markdown, without the title."""
        lines = [f"| {' | '.join(self.heads)} |", "|" + "---|" * len(self.heads)]
        lines += [f"| {' | '.join(line)} |" for line in self.lines]
        notes = "\n" + "\n".join(self.notes) + "\n" if self.notes else ""
        return "\n".join(lines) + "\n" + notes


class _Remarks:
    """Numbers for sentences, so that a sentence said of many rows stands once below the table."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def number(self, rows: Sequence[Row]) -> str:
        out: list[str] = []
        for sentence in (sentence for row in rows for sentence in row.remarks):
            if sentence not in self.said:
                self.said.append(sentence)
            mark = str(self.said.index(sentence) + 1)
            out += [] if mark in out else [mark]
        return ", ".join(out)

    @property
    def notes(self) -> list[str]:
        return [f"{k}. {sentence}." for k, sentence in enumerate(self.said, 1)]


def of_rows(title: str, rows: Sequence[Row]) -> Table:
    """A line a row; where rows have cases, a line a name with a column for each case, which says where it differs."""
    remarks = _Remarks()
    cases = list(dict.fromkeys(row.case for row in rows))
    if cases == [""]:
        places = [[row.where] if any(other.where for other in rows) else [] for row in rows]
        front = ["where"] if places and places[0] else []
        heads = [*front, "", "paper", "ours", "unit", "agrees if", "verdict", "remark"]
        lines = [
            [*place, row.name, _paper(row), row.shown, row.unit, row.target.words if row.target else "", row.verdict,
             remarks.number([row])]
            for place, row in zip(places, rows, strict=True)
        ]  # fmt: skip
        return Table(title, heads, lines, remarks.notes)
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    lines = []
    for name, same in by_name.items():
        of_case, first = {row.case: row for row in same}, same[0]
        cells = [_judged(of_case[case]) if case in of_case else "" for case in cases]
        agrees = first.target.words if first.target else first.unjudged
        lines.append([name, first.unit, _paper(first), agrees, *cells, remarks.number(same)])
    return Table(title, ["", "unit", "paper", "agrees if", *cases, "remark"], lines, remarks.notes)


def _judged(row: Row) -> str:
    return f"{row.shown} {DIFFERS}" if row.verdict == DIFFERS else row.shown


def _paper(row: Row) -> str:
    return row.paper if isinstance(row.paper, str) else f"{row.paper:g}"
