"""The plant's outputs, observed once a step at most, for whoever wants to see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmms.loop.ports import Applied, Array, Keeping, Observer
    from rtmms.plant import Plant

NEVER = 1 << 62


class View:
    """What the wire, the observers and a display see.

    due      the next step whose end an observer asked for, other than the keeper
    keeper   an observer whose rows are written by compiled code where a step is a usual one; None where there is none
    """

    def __init__(self, plant: Plant, observers: Sequence[Observer]) -> None:
        self._plant, self.observers, self.due = plant, tuple(observers), NEVER
        self.keeper: Keeping | None = None
        self._step = -1
        self._outputs: Mapping[str, Array] = {}

    def outputs(self, step: int) -> Mapping[str, Array]:
        """The outputs at t = step * dt."""
        if self._step != step:
            self._outputs = self._plant.observe()
            self._step = step
        return self._outputs

    def forget(self) -> None:
        """The state was changed from outside."""
        self._step = -1

    def clear(self) -> None:
        """The plant was reset."""
        for observer in self.observers:
            observer.clear()

    def start(self, step: int = 0) -> None:
        """`step` is next, the first one: the first state to the observers."""
        self.forget()
        for observer in self.observers:
            observer.start(self.outputs(step))
        self.due = self._next()

    def show(self, step: int, command: Array, applied: Applied, kept: bool) -> None:
        """The end of `step` to the observers that asked for it.  kept  the keeper has its row."""
        outputs, time = self.outputs(step + 1), (step + 1) * self._plant.dt
        for observer in self.observers:
            if observer.due <= step and not (kept and observer is self.keeper):
                observer.after_step(step, time, outputs, command, applied)
        self.due = self._next()

    def _next(self) -> int:
        return min((observer.due for observer in self.observers if observer is not self.keeper), default=NEVER)
