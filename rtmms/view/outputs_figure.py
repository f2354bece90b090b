"""One page on a run of a plant with no position: each output over time, and the timing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.plant.optional_protocols import HasRobots
from rtmms.plant.protocol import Channel, Plant
from rtmms.view.run_figure import timing_panels, title_of
from rtmms.view.style import INK, MUTED, SERIES, figure, project_style, save, write_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import Recent, Trace


WIDTH_IN = 16.0
ROW_IN = 2.4
COLUMNS = 3
MAX_OUTPUTS = 12


def draw(path: Path, plant: Plant, trace: Trace, recent: Recent, statistics: Statistics, robot: str = "") -> None:
    """Draw the page on a run.

    Parameters
    ----------
    path : Path
        File of the figure; its ending sets the format.
    plant : Plant
        The plant.
    trace : Trace
        Samples of the whole run; the page shows the first MAX_OUTPUTS of them.
    recent : Recent
        Samples of its last seconds; not used.
    statistics : Statistics
        Times of the steps.
    robot : str, default ''
        Name of the robot, for the title.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    time, stored = trace.read()
    channels = {channel.name: channel for channel in plant.outputs}
    shown = list(stored.items())[:MAX_OUTPUTS]
    count = max(1, -(-len(shown) // COLUMNS))
    height = ROW_IN * (count + 1) + 1.6
    with project_style():
        page = figure(WIDTH_IN, height)
        name, file = title_of(robot, plant)
        if isinstance(plant, HasRobots):
            name = ", ".join(f"{name} ({kind})" for name, kind in plant.robot_types.items())
        counts = statistics.counters()
        title = f"{file}   ·   " if file else ""
        title += f"{counts['steps'] * plant.dt:.4g} s simulated in {counts['steps']:,} steps of {plant.dt * 1e3:g} ms"
        if len(stored) > MAX_OUTPUTS:
            title += f"   ·   {MAX_OUTPUTS} of {len(stored)} outputs; rtmms log csv has all"
        page.text(0.05, 1.0 - 0.46 / height, name, fontsize=21, fontweight="bold", color=INK, va="center")
        page.text(0.05, 1.0 - 0.81 / height, title, fontsize=10, color=MUTED, va="center")
        rows = page.add_gridspec(
            count + 1, 1, left=0.05, right=0.975, top=1.0 - 1.28 / height, bottom=0.61 / height, hspace=0.6
        )
        for k, (output, values) in enumerate(shown):
            line = rows[k // COLUMNS].subgridspec(1, COLUMNS, wspace=0.18)
            panel: Any = page.add_subplot(line[k % COLUMNS])
            panel.set_title(output)
            if len(time) < 2:
                write_note(panel, "no steps")
                continue
            flat = values.reshape(len(values), -1)
            labels = _labels(channels[output], flat.shape[1])
            for i in range(flat.shape[1]):
                panel.plot(time, flat[:, i], color=SERIES[i % len(SERIES)], lw=1.0, label=labels[i])
            if 1 < flat.shape[1] <= len(SERIES):
                panel.legend(ncols=6, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.98), frameon=False)
            panel.set(xlabel="time, s", ylabel=channels[output].unit or "-", xlim=(time[0], time[-1]))
            panel.margins(y=0.15)
        timing_panels(page, rows[count], statistics)
        save(page, path)


def _labels(channel: Channel, count: int) -> Sequence[str]:
    """Return names of the curves of an output."""
    if channel.name.rpartition(".")[2] == "quaternion":
        return "wxyz"
    if channel.frame and count == 3:
        return "xyz"
    return [f"[{i}]" for i in range(count)]
