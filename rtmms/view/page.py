"""Run as one page, also within a notebook."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from rtmms.base.files import PAGE_MARK, new_file_beside
from rtmms.record.log import drawing, open_log
from rtmms.view.camera import smooth_path
from rtmms.view.recording import Recording, read_recording
from rtmms.view.scene import Picture
from rtmms.view.stage import Stage, end, serve

# A run as one page: no server, no network, played in any browser.


FRAMES_HZ = 30.0
MAX_PATH_POINTS = 1000
"""Points of the path in a page."""


def write_page(recording: Recording, path: Path, progress: Callable[[int, int], None]) -> int:
    """Write a recording as a page.

    Parameters
    ----------
    recording : Recording
        The recording.
    path : Path
        The file.
    progress : Callable[[int, int], None]
        Receives the number of drawn pictures and of all.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    RtmmsError
        The file cannot be written.
    """
    server = serve("127.0.0.1", 0, recording.info.robot)
    try:
        picture = Picture(recording.info)
        paths = picture.paths(recording)
        stage = Stage(server, picture, picture.draw(recording.outputs(0)), model=False)
        times = recording.pictures(1.0 / FRAMES_HZ)
        rows = np.minimum(np.searchsorted(recording.time, times), len(recording.time) - 1)
        stride = max(1, len(rows) // MAX_PATH_POINTS)
        stage.trace([path[rows[::stride]] for path in paths])
        targets = smooth_path(paths[0], recording.time, picture.size)
        scene_serializer = server.get_scene_serializer()
        for number, k in enumerate(rows):
            drawn = picture.draw(recording.outputs(int(k)))
            stage.show(drawn, targets[k])
            stage.aim(recording.tracked(float(recording.time[k])), drawn)
            scene_serializer.insert_sleep(1.0 / FRAMES_HZ)
            if number % 20 == 0:
                progress(number, len(rows))
        text = scene_serializer.as_html().replace("<head>", f"<head>{PAGE_MARK}", 1)
    finally:
        end(server)
    with new_file_beside(path, "--html") as part:
        part.write_text(text, encoding="utf-8")
    return len(text)


# A run in a cell of a notebook: the page of `rtmms view LOG --html`, within a frame.


@dataclass(frozen=True)
class NotebookPage:
    """Page that a notebook shows.

    Attributes
    ----------
    text : str
        HTML of the page.
    height : int
        Height of the frame, pixels.
    """

    text: str
    height: int

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.text)}" width="100%" height="{self.height}" frameborder="0"></iframe>'


def show(log: str | Path, height: int = 480) -> NotebookPage:
    """Show the run of a log, as the last line of a cell. Needs `rtmms[view]`.

    Parameters
    ----------
    log : str | Path
        The file.
    height : int, default 480
        Height of the frame, pixels.

    Returns
    -------
    NotebookPage
        The page.

    Raises
    ------
    ModelError
        The file is no log, or its run cannot be drawn.
    """
    file = Path(log)
    with tempfile.TemporaryDirectory() as folder, drawing(file):
        page = Path(folder) / "run.html"
        write_page(read_recording(open_log(file)), page, lambda done, of: None)
        return NotebookPage(page.read_text(encoding="utf-8"), height)
