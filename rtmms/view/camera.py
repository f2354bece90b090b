"""Cameras that go along with the robot, whatever their users do with them meanwhile."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


PATIENCE, AGREED = 300, 3
"""Pictures, and reports of a browser in a row, until its camera is its user's."""


class Following:
    """Of all clients of a server.

    What a browser tells of its camera is some pictures old. A user turns it about its target, so the target says beside
    which of the robot's last places that was, and the camera keeps its distance to that place. A browser that has just
    come tells of its own camera before it has heard of ours: it is told again until it has.
    """

    def __init__(self, server: Any, place: tuple[float, float, float]) -> None:
        self._server = server
        self._places: deque[Array] = deque([np.array(place)], maxlen=120)
        self._targets: dict[int, Array] = {}
        begin = server.initial_camera
        self._offset = np.array(begin.position) - np.array(begin.look_at)
        self._new: dict[int, int] = {}

    def go(self, place: tuple[float, float, float]) -> None:
        """The robot is here now."""
        here = np.array(place)
        for number, client in self._server.get_clients().items():
            camera = client.camera
            if camera.update_timestamp == 0.0:  # it has not told yet
                continue
            look, eye = np.array(camera.look_at), np.array(camera.position)
            if self._is_new(number, camera):
                with client.atomic():
                    camera.position, camera.look_at = here + self._offset, here
                continue
            beside = self._targets.get(number, np.zeros(3))
            past = np.array(self._places)
            then = past[np.argmin(np.linalg.norm(past + beside - look, axis=1))]
            self._targets[number] = look - then
            if np.array_equal(then, here):
                continue
            with client.atomic():
                camera.position = here + (eye - then)
                camera.look_at = here + (look - then)
        self._places.append(here)

    def _is_new(self, number: int, camera: Any) -> bool:
        """It has not said yet that it took up the camera that it was given; in the end it is left as it is."""
        if number not in self._new:
            self._new[number], agreed = PATIENCE, [0]

            def heard(told: Any) -> None:  # from the browser, while `camera` is also what we wrote ourselves
                off = np.linalg.norm(told.position - told.look_at - self._offset)
                agreed[0] = agreed[0] + 1 if off < 0.02 * np.linalg.norm(self._offset) else 0
                if agreed[0] == AGREED:
                    self._new[number] = 0

            camera.on_update(heard)
        self._new[number] = max(self._new[number] - 1, 0)
        return self._new[number] > 0
