"""Short runs of the manta in this process, kept as the loop keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np

import rtmms
from rtmms.base.contract import UNDEFINED
from rtmms.loop.ports import Applied
from rtmms.loop.statistics import Statistics
from rtmms.loop.trace import Recent, Trace
from rtmms.view.outline import figure_outline
from rtmms.view.robot_panels import RobotOutline, along, recent_names


def run(seconds: float, frequency: float = 1.0, timed: bool = True, **parameters: Any) -> tuple[Any, ...]:
    """(plant, trace, recent, statistics, outlined) after a gait of 40 deg, phase 40 deg; untimed as in free mode."""
    plant: Any = rtmms.load("manta", **parameters)
    steps = round(seconds / plant.dt)
    trace = Trace(plant.outputs, plant.trace_outputs, plant.dt, steps, 4096, 0.01)
    outline = figure_outline("manta", plant)
    assert outline is not None
    states = along(outline, plant, steps)
    assert states is not None
    recent = Recent(plant.outputs, recent_names(outline, plant), plant.dt)
    statistics = Statistics(deadline_us=900.0 if timed else None)
    random, command, applied = np.random.default_rng(0), np.zeros(4), Applied()
    outputs = plant.observe()
    observers = (trace, recent, states)
    for observer in observers:
        observer.start(outputs)
    for k in range(steps):
        cycle = 2.0 * np.pi * frequency * k * plant.dt
        command[:] = np.radians([35.0, 40.0, 35.0, 40.0]) * np.sin(cycle + np.radians([40.0, 0.0, 40.0, 0.0]))
        plant.step(command * min(1.0, k * plant.dt))
        wake, exchange, work, slack = (int(random.lognormal(m, 0.3)) for m in (9.0, 12.0, 8.7, 13.5))
        statistics.record(wake if timed else UNDEFINED, exchange, work, slack if timed else UNDEFINED)
        statistics.count(0)
        if any(k >= observer.due for observer in observers):
            outputs = plant.observe()
            for observer in observers:
                if k >= observer.due:
                    observer.after_step(k, (k + 1) * plant.dt, outputs, command, applied)
    return plant, trace, recent, statistics, RobotOutline(outline, states)
