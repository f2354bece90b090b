"""Telemetry for observers: states at a steady rate of wall time, packed if there is time and sent in the slack."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from rtmms.base.contract import Applied
from rtmms.plant.protocol import Plant
from rtmms.wire.plant.state_message import Selection
from rtmms.wire.protocol.port import Publishing


class Telemetry:
    """States for observers at a steady rate of wall time.

    They are packed when there is time, and sent in the slack.

    Parameters
    ----------
    socket : Publishing
        The telemetry socket.
    plant : Plant
        The plant.
    robot : str
        Topic of the messages.
    hz : float
        Most states a second of wall time.
    """

    def __init__(self, socket: Publishing, plant: Plant, robot: str, hz: float) -> None:
        self._socket, self._topic = socket, robot.encode()
        self._selection = Selection(plant.outputs, "telemetry")
        self._gap_ns = round(1e9 / hz)
        self._frame = b""
        self._due_ns = 0

    @property
    def due(self) -> bool:
        """Whether the next state is to be packed now, because somebody may receive it."""
        return monotonic_ns() >= self._due_ns and self._socket.wanted

    def pack(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:
        """Pack one state.

        The next one is due on a grid, so that the mean rate is kept if steps come at about that rate. After a gap it is
        due a period from now.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        outputs : Mapping[str, Any]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
        now_ns, due_ns = monotonic_ns(), self._due_ns + self._gap_ns
        self._due_ns = due_ns if due_ns > now_ns else now_ns + self._gap_ns
        self._frame = self._selection.packed(step, time, deadline_ns, budget_ns, outputs, applied)

    def send(self) -> None:
        """Send the packed state."""
        if self._frame:
            frame, self._frame = self._frame, b""
            self._socket.send(self._topic, frame)

    def serve(self, until_ns: int) -> None:
        """Admit newcomers, and continue unfinished messages.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        self._socket.serve(until_ns)
