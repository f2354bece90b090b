"""rtmms reproduce: a paper's figures and numbers again, beside ours."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from rtmms.cli.words import Near, folder
from rtmms.report.endings import FORMATS, written_as

PAPERS = {
    "boyer2015": "rtmms.report.boyer2015.reproduce",
    "boyer2017": "rtmms.report.boyer2017.reproduce",
    "khalil2007": "rtmms.report.khalil2007.reproduce",
    "porez2014": "rtmms.report.porez2014.reproduce",
    "qu2024": "rtmms.report.qu2024.reproduce",
}
"""Papers by name; each module has main(out: Path | None, as_json: bool) -> int | None."""


@click.command()
@click.argument("paper", type=Near("paper", PAPERS))
@click.option("-o", "--output", "out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Where figures and tables go.")  # fmt: skip
@click.option("--format", "form", type=Near("format", FORMATS), default=FORMATS[0], show_default=True,
              help="Of the figures.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reproduce(paper: str, out: Path | None, form: str, as_json: bool) -> int:
    """Compute the figures and numbers of PAPER again and print them beside the paper's.

    Exit 1 where a row that must hold whatever the paper says does not; distances from the paper leave it at 0.
    """
    if out is not None:
        folder("-o", out)
    with written_as(form):
        status: int | None = import_module(PAPERS[paper]).main(out, as_json)
    return status or 0
