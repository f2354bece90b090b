"""What is kept of a run while it goes: for the summary, the figure and the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtmms.errors import ModelError
from rtmms.plant import Summarised
from rtmms.report.figures import small_outputs

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.commands import CommandTrace
    from rtmms.loop.trace import Recent, Trace
    from rtmms.plant import Plant

TRACE_BYTES = 1 << 26
TRACE_APART_S = 0.01


class Keepers:
    """The observers of a run, made before it: what the summary, the figure and the replay need."""

    def __init__(self, plan: Plan, plant: Plant, steps: int | None) -> None:
        from rtmms.loop.commands import CommandTrace
        from rtmms.loop.trace import CAPACITY, Recent, Trace

        self.trace: Trace | None = None
        self.recent: Recent | None = None
        self.outlined: Outlined | None = None
        self.commands: CommandTrace | None = None
        states: Trace | None = None
        kept = plant.trace_outputs if isinstance(plant, Summarised) else ()
        if not kept and plan.figure is not None:
            kept = small_outputs(plant)
        if kept:
            row = sum(plant.observe()[name].nbytes for name in kept)
            capacity = max(1024, min(CAPACITY, TRACE_BYTES // max(1, row)))
            self.trace = Trace(plant.outputs, kept, plant.dt, steps, capacity, TRACE_APART_S)
        if plan.figure is not None:
            from rtmms.report.outline import Outlined, along, recent_names
            from rtmms.shapes.outline import figure_outline

            outline = figure_outline(plan.robot, plant)
            self.recent = Recent(plant.outputs, recent_names(outline, plant), plant.dt)
            states = along(outline, plant, steps)
            if outline is not None and states is not None:
                self.outlined = Outlined(outline, states)
        if plan.trace is not None:
            if steps is None:
                raise ModelError("--trace: needs a --duration")
            self.commands = CommandTrace(plant.actuators, plant.outputs, steps)
        self.observers = tuple(observer for observer in (self.trace, self.recent, states) if observer is not None)
