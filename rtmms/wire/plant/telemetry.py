"""What observers get: states at a steady rate of wall time, packed where there is time and sent in the slack."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from rtmms.contract import Applied
from rtmms.plant import Plant
from rtmms.wire.plant.selection import Selection
from rtmms.wire.protocol.port import Publishing


class Telemetry:
    """
    robot   the topic;  hz   states per second of wall time, at most
    """

    def __init__(self, socket: Publishing, plant: Plant, robot: str, hz: float) -> None:
        self._socket, self._topic = socket, robot.encode()
        self._selection = Selection(plant.outputs, "telemetry")
        self._gap_ns = round(1e9 / hz)
        self._frame = b""
        self._due_ns = 0

    @property
    def due(self) -> bool:
        """The next one is to be packed now: there may be somebody who gets it."""
        return monotonic_ns() >= self._due_ns and self._socket.wanted

    def pack(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:
        """One state. The next is due on a grid, so that the mean rate is kept where steps come at about that rate;
        from now after a gap."""
        now_ns, due_ns = monotonic_ns(), self._due_ns + self._gap_ns
        self._due_ns = due_ns if due_ns > now_ns else now_ns + self._gap_ns
        self._frame = self._selection.packed(step, time, deadline_ns, budget_ns, outputs, applied)

    def send(self) -> None:
        """What was packed."""
        if self._frame:
            frame, self._frame = self._frame, b""
            self._socket.send(self._topic, frame)

    def serve(self, until_ns: int) -> None:
        """Newcomers, and those that are still to be sent it."""
        self._socket.serve(until_ns)
