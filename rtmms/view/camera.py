"""Cameras that go along with the robot, whatever their users do with them meanwhile."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


PATIENCE = 60
"""Pictures."""


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
        self._offset, self._new = np.array(begin.position) - np.array(begin.look_at), dict[int, tuple[int, float]]()

    def go(self, place: tuple[float, float, float]) -> None:
        """The robot is here now."""
        here = np.array(place)
        for number, client in self._server.get_clients().items():
            camera = client.camera
            if camera.update_timestamp == 0.0:  # it has not told yet
                continue
            look, eye = np.array(camera.look_at), np.array(camera.position)
            if self._is_new(number, eye - look, camera.update_timestamp):
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

    def _is_new(self, number: int, offset: Array, told_s: float) -> bool:
        """It has not said yet that it took up the camera that it was given; in the end it is left as it is."""
        left, before_s = self._new.get(number, (PATIENCE, told_s))
        if left and told_s != before_s and np.allclose(offset, self._offset, atol=0.02 * np.linalg.norm(offset)):
            left = 0
        self._new[number] = max(left - 1, 0), before_s
        return left > 0
