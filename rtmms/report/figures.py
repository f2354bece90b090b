"""Which figure a run gets, and the general figure of outputs over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import TRUTH
from rtmms.plant.protocol import Composed, Plant, describe_plant
from rtmms.report.run_figure import timing_panels
from rtmms.report.style import INK, MUTED, SERIES, figure, save, say, styled

if TYPE_CHECKING:
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import Recent, Trace
    from rtmms.plant.protocol import Plant
    from rtmms.report.robot_panels import Outlined


# Which figure a run of a robot gets: the plant's own, ours for a robot that we know, a general one, or none.


FIGURES = {"manta": "rtmms.report.manta_figure"}
"""Modules with draw(path, plant, trace, recent, statistics, outlined), by robot."""

GENERAL = "rtmms.report.run_figure"
"""For any plant that keeps its position or its velocity."""

OUTPUTS = "rtmms.report.figures"
"""For any plant at all: its outputs over time."""

MOST_CURVES = 6


def drawing(robot: str, plant: Plant, outlined: Outlined | None = None) -> Callable[..., None] | None:
    """figure(path, trace, recent, statistics) for this plant, None where it has no outputs to draw; matplotlib loads
    when it is called.

    outlined   the robot itself, for those of our figures that show it (`takes_outline`)
    """
    about = describe_plant(plant)
    if about.truth is not None:
        if outlined is not None:
            outlined = replace(outlined, along=_Truth(outlined.along))
        draw = drawing(robot, about.truth, outlined)
        return None if draw is None else partial(_draw_truth, draw)
    if about.figure is not None:
        return about.figure
    if robot in FIGURES:
        return partial(_draw, FIGURES[robot], plant, {"outlined": outlined})
    if _says_where(plant):
        return partial(_draw, GENERAL, plant, {"robot": robot, "outlined": outlined})
    return partial(_draw, OUTPUTS, plant, {"robot": robot}) if small_outputs(plant) else None


def takes_outline(robot: str, plant: Plant) -> bool:
    """Whether this plant's figure shows the robot by an outline that it is handed."""
    own = describe_plant(plant).truth or plant
    return describe_plant(own).figure is None and (robot in FIGURES or _says_where(own))


class _Truth:
    """Samples of the truth, under its own names."""

    def __init__(self, samples: Any) -> None:
        self._samples = samples

    def read(self) -> tuple[Any, dict[str, Any]]:
        time, values = self._samples.read()
        return time, {name.removeprefix(TRUTH): value for name, value in values.items()}


def _draw_truth(draw: Callable[..., None], path: Any, trace: Any, recent: Any, statistics: Any) -> None:
    draw(path, _Truth(trace), _Truth(recent), statistics)


def small_outputs(plant: Plant) -> tuple[str, ...]:
    """Names of the outputs that a panel has room for."""
    return tuple(channel.name for channel in plant.outputs if math.prod(channel.shape) <= MOST_CURVES)


def _says_where(plant: Plant) -> bool:
    """The plant keeps samples of a position or a velocity, (3,)."""
    shapes = {channel.name: channel.shape for channel in plant.outputs}
    kept = describe_plant(plant).trace_outputs
    return any(name in kept and shapes.get(name) == (3,) for name in ("position", "velocity"))


def _draw(
    module: str, plant: Any, more: dict[str, Any], path: Any, trace: Any, recent: Any, statistics: Any
) -> None:  # fmt: skip
    import_module(module).draw(path, plant, trace, recent, statistics, **more)


# One page on a run of a plant of which nothing is known but its outputs: each over time, and the timing.


WIDTH, ROW = 16.0, 2.4
COLUMNS, MOST = 3, 12


def draw(path: Path, plant: Plant, trace: Trace, recent: Recent, statistics: Statistics, robot: str = "") -> None:
    """Write the page to `path`, in the format of its ending; RtmmsError if that cannot be done.

    trace    samples of the whole run: the first MOST of its outputs are drawn
    """
    time, kept = trace.read()
    units = {channel.name: channel.unit for channel in plant.outputs}
    shown = list(kept.items())[:MOST]
    count = max(1, -(-len(shown) // COLUMNS))
    height = ROW * (count + 1) + 1.6
    with styled():
        page = figure(WIDTH, height)
        name = robot or type(plant).__name__
        if isinstance(plant, Composed):
            name = ", ".join(f"{one} ({kind})" for one, kind in plant.kinds.items())
        counts = statistics.counters()
        told = f"{counts['steps'] * plant.dt:.4g} s simulated in {counts['steps']:,} steps of {plant.dt * 1e3:g} ms"
        if len(kept) > MOST:
            told += f"   ·   {MOST} of {len(kept)} outputs; rtmms log csv has all"
        page.text(0.05, 1.0 - 0.46 / height, name, fontsize=21, fontweight="bold", color=INK, va="center")
        page.text(0.05, 1.0 - 0.81 / height, told, fontsize=10, color=MUTED, va="center")
        rows = page.add_gridspec(
            count + 1, 1, left=0.05, right=0.975, top=1.0 - 1.28 / height, bottom=0.61 / height, hspace=0.6
        )
        for k, (output, values) in enumerate(shown):
            line = rows[k // COLUMNS].subgridspec(1, COLUMNS, wspace=0.18)
            panel: Any = page.add_subplot(line[k % COLUMNS])
            panel.set_title(output)
            if len(time) < 2:
                say(panel, "no steps")
                continue
            flat = values.reshape(len(values), -1)
            for i in range(flat.shape[1]):
                panel.plot(time, flat[:, i], color=SERIES[i % len(SERIES)], lw=1.0)
            panel.set(xlabel="time, s", ylabel=units[output] or "-", xlim=(time[0], time[-1]))
            panel.margins(y=0.15)
        last = rows[count].subgridspec(1, 4, wspace=0.2)
        timing_panels([page.add_subplot(last[k]) for k in range(4)], statistics)
        save(page, path)
