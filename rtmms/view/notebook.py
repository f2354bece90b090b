"""A run in a cell of a notebook: the page of `rtmms view LOG --html`, within a frame."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rtmms.record.log import drawing, open_log
from rtmms.view.page import write_page
from rtmms.view.recording import recorded


@dataclass(frozen=True)
class Shown:
    """What a notebook shows of it is the page.  text: its HTML;  height: of the frame, pixels"""

    text: str
    height: int

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.text)}" width="100%" height="{self.height}" frameborder="0"></iframe>'


def show(log: str | Path, height: int = 480) -> Shown:
    """The run that a log holds, to be the last line of a cell. Needs `rtmms[view]`.

    log     the file;  height: of the frame, pixels
    ModelError where the file is no log, or what it holds cannot be drawn.
    """
    file = Path(log)
    with tempfile.TemporaryDirectory() as folder, drawing(file):
        page = Path(folder) / "run.html"
        write_page(recorded(open_log(file)), page, lambda done, of: None)
        return Shown(page.read_text(encoding="utf-8"), height)
