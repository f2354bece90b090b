"""rtmms reproduce: a paper's figures and numbers, computed again, beside the paper's."""

from __future__ import annotations

from pathlib import Path

import click

from rtmms.base.entry_points import entry_points_of
from rtmms.cli.option_types import KnownName, folder
from rtmms.view.style import FORMATS, written_as

GROUP = "rtmms.papers"
"""Entry points: main(out: Path | None, as_json: bool) -> int | None."""


@click.command()
@click.argument("paper", type=KnownName("paper", sorted(entry_points_of(GROUP))))
@click.option("-o", "--output", "out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of figures and tables.")  # fmt: skip
@click.option("--format", "form", type=KnownName("format", FORMATS), default=FORMATS[0], show_default=True,
              help="Format of the figures.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reproduce(paper: str, out: Path | None, form: str, as_json: bool) -> int:
    """Compute the figures and numbers of PAPER again and print them beside the paper's.

    Exit 1 where a row that must hold whatever the paper states does not; distances from the paper leave it at 0.
    """
    if out is not None:
        folder("-o", out)
    with written_as(form):
        status: int | None = entry_points_of(GROUP)[paper].load()(out, as_json)
    return status or 0
