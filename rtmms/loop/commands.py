"""The trace of a run's commands: what a lockstep replay needs to give the same bits, and what to compare them by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rtmms.errors import ModelError

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.loop.ports import Applied, Array
    from rtmms.plant import Channel

MEMORY_LIMIT = 1 << 29
"""Bytes that a trace may take; a longer run needs the recorder, or a larger limit on purpose."""
LARGEST_OUTPUT = 4


class CommandTrace:
    """Every step's command, outcome and small outputs (at most 4 numbers each), in memory made before the run.

    command   (steps, n) as the plant got it: after the miss policy
    outcome   (steps,) uint8, a StepOutcome;  seq (steps,), lateness_ns (steps,) as in Applied
    check     (steps, c) the small outputs at the end of each step, flattened in the order of `checked`
    altered   steps at which a request changed the state from outside: such a run cannot be replayed
    Raises ModelError when the run does not fit into `limit` bytes.
    """

    def __init__(
        self, actuators: Sequence[Channel], outputs: Sequence[Channel], steps: int, limit: int = MEMORY_LIMIT
    ) -> None:
        self.checked = tuple(c for c in outputs if math.prod(c.shape) <= LARGEST_OUTPUT)
        width = sum(math.prod(channel.shape) for channel in self.checked)
        row = 8 * (len(actuators) + width + 2) + 1
        if row * steps > limit:
            raise ModelError(
                f"command trace: {steps} steps need {row * steps >> 20} MiB, more than the {limit >> 20} MiB "
                f"it may take; at most {limit // row} steps"
            )
        # written, not only reserved: a first touch within the run would be a page fault within a step
        self.command: Array = np.full((steps, len(actuators)), 0.0)
        self.check: Array = np.full((steps, width), 0.0)
        self.seq: npt.NDArray[np.int64] = np.full(steps, -1)
        self.lateness_ns: npt.NDArray[np.int64] = np.full(steps, 0)
        self.outcome: npt.NDArray[np.uint8] = np.full(steps, 0, dtype=np.uint8)
        self.steps = 0
        self.altered: list[int] = []
        self._slices: list[tuple[str, slice]] = []
        at = 0
        for channel in self.checked:
            size = math.prod(channel.shape)
            self._slices.append((channel.name, slice(at, at + size)))
            at += size

    def clear(self) -> None:
        """The plant was reset: the trace begins again."""
        self.steps, self.altered = 0, []

    def record(self, step: int, command: Array, outcome: int, applied: Applied, outputs: Mapping[str, Array]) -> None:
        """One finished step; beyond the memory made it is dropped (a run longer than it was declared)."""
        if step >= len(self.outcome):
            return
        self.command[step] = command
        self.outcome[step] = outcome
        self.seq[step] = applied.seq
        self.lateness_ns[step] = applied.lateness_ns
        row = self.check[step]
        for name, place in self._slices:
            value = outputs[name]
            row[place] = value if value.ndim < 2 else value.ravel()
        self.steps = step + 1

    def columns(self) -> list[str]:
        """The name of each column of `check`, for example 'velocity[0]'."""
        names: list[str] = []
        for channel in self.checked:
            size = math.prod(channel.shape)
            names += [channel.name] if channel.shape == () else [f"{channel.name}[{i}]" for i in range(size)]
        return names
