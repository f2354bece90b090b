"""A run as one page: no server, no network, played in any browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.errors import RtmmsError
from rtmms.view.picture import Picture
from rtmms.view.recording import Recording
from rtmms.view.stage import Stage, end, serve
from rtmms.whole_file import beside

FRAMES_HZ = 20.0


def _frame(server: Any, path: Any, size: float) -> None:
    """The camera does not follow in a page: all of the path is in sight from the start, if it is not too long."""
    low, high = path.min(axis=0), path.max(axis=0)
    extent = min(float(np.linalg.norm(high - low)), 12.0 * size)
    if extent > 2.0 * size:
        middle = path[0] + (0.5 * (low + high) - path[0]) * min(1.0, 12.0 * size / float(np.linalg.norm(high - low)))
        server.initial_camera.look_at = tuple(middle)
        server.initial_camera.position = tuple(middle + np.array([-0.35, -0.75, 0.5]) * (extent + size))


def write_page(recording: Recording, path: Path, progress: Callable[[int, int], None]) -> int:
    """Write the recording as a page; its size in bytes. RtmmsError where the file cannot be written.

    progress   called with the pictures that are drawn and all of them
    """
    server = serve("127.0.0.1", 0, recording.info.robot)
    try:
        picture = Picture(recording.info)
        stage = Stage(server, picture, picture.draw(recording.outputs(0)))
        stage.forces.visible = False
        times = recording.pictures(1.0 / FRAMES_HZ)
        rows = np.minimum(np.searchsorted(recording.time, times), len(recording.time) - 1)
        drawn = [picture.draw(recording.outputs(int(k))) for k in rows]
        path_points = np.array([one.pose[0] for one in drawn])
        if len(path_points) > 1:
            stage.trace(path_points)
        _frame(server, path_points, picture.size)
        kept = server.get_scene_serializer()
        for number, (k, one) in enumerate(zip(rows, drawn, strict=True)):
            stage.show(one)
            stage.aim(recording.tracked(float(recording.time[k])), one)
            kept.insert_sleep(1.0 / FRAMES_HZ)
            if number % 20 == 0:
                progress(number, len(drawn))
        text = kept.as_html()
    finally:
        end(server)
    try:
        with beside(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RtmmsError(f"--html {path}: {error.strerror}") from None
    return len(text)
