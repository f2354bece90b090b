"""Runs side by side, as a table and as a figure.

Both show how far each run was off its set-points, at which effort, and how timely the loop was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.view.style import SERIES, figure, project_style, save, write_note

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


CONTROLLERS = "controllers"
WIDTH_IN = 12.0
"""Width of the page, inches."""
PANEL_IN = 2.35
"""Height of a plot over time, inches."""
NUMBER_IN = 1.35
"""Height of a row of numbers, inches."""
LINE_IN = 0.24
"""Height of a line of the head, inches."""
COLUMNS = 3
DEFAULT_QUANTITIES = ("depth_m", "heading_deg", "speed_m_s")
"""Quantities to draw for runs without set-points."""
UNITS = {"_m_s": "m/s", "_deg": "deg", "_m": "m", "_w": "W", "_rad": "rad", "_n": "N"}
NUMBERS = (("mean_power_w", "mean power"), ("cost_of_transport", "cost of transport"))
"""Entries of a run's summary in the figure, with their titles."""
TIMES = (("plant", "p99"), ("exchange", "p99"))
ROUNDING = 1e-9
MAX_TITLE_LENGTH = 110


@dataclass(frozen=True, eq=False)
class Run:
    """One of the runs to compare.

    Parameters
    ----------
    name : str
        Name of the run in the table and the figure.
    report : Mapping[str, Any]
        The run's report, as far as the run came to one.
    time : Array
        Times of the samples, shape (n,), s.
    command : Array
        Commands as the plant got them, shape (n, a), in the actuators' units.
    series : Mapping[str, Array], optional
        True values, shape (n,) each, by names as set-points have them; see rtmms.loop.trace.
    set_points : Sequence[tuple[float, Mapping[str, Any]]], optional
        Pairs of a time in s and {name: value}, the set-points of the controllers from that time on.
    settings : Mapping[str, Any], optional
        Settings of the run by name: controllers, their parameters, and those of the robot.
    unit : str, default ''
        Unit of the commands; "" where they have several.
    """

    name: str
    report: Mapping[str, Any]
    time: Array
    command: Array
    series: Mapping[str, Array] = field(default_factory=dict)
    set_points: Sequence[tuple[float, Mapping[str, Any]]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""

    @property
    def effort(self) -> float | None:
        """Root mean square of the commands' rates, unit/s; None with fewer than two samples."""
        if len(self.time) < 2:
            return None
        rates = np.diff(self.command, axis=0) / np.diff(self.time)[:, None]
        return float(np.sqrt(np.mean(rates**2)))


def table(runs: Sequence[Run]) -> list[tuple[str, list[float | str | None]]]:
    """Return the rows of the table of the runs.

    Parameters
    ----------
    runs : Sequence[Run]
        The runs, one column each.

    Returns
    -------
    list[tuple[str, list[float | str | None]]]
        Pairs of a row's name and its value for each run; the value is None where a run has none.
    """
    rows: list[tuple[str, list[float | str | None]]] = [
        (name, [run.report.get(name) for run in runs]) for name in ("robot", "mode", "seed", "ended", "simulated_s")
    ]
    rows.append((CONTROLLERS, [run.settings.get(CONTROLLERS) for run in runs]))
    rows += [(name, list(values)) for name, values in differing(runs).items() if name not in ("mode", "seed")]
    quantities = dict.fromkeys(name for run in runs for name in (run.report.get("tracking") or {}))
    for name in quantities:
        for number in ("rms", "max", "settled_s"):
            rows.append((f"{name} {number}", [_below(run.report, "tracking", name, number) for run in runs]))
    for name in dict.fromkeys(name for run in runs for name in (run.report.get("summary") or {})):
        rows.append((name, [(run.report.get("summary") or {}).get(name) for run in runs]))
    rows.append(("command rate, rms", [run.effort for run in runs]))
    for part in ("plant", "exchange"):
        for quantile in ("p50", "p99"):
            rows.append((f"{part} {quantile}, us", [_below(run.report, "timing_us", part, quantile) for run in runs]))
    rows.append(("misses", [_below(run.report, "exchange", "misses") for run in runs]))
    rows.append(("overruns", [_below(run.report, "schedule", "overruns") for run in runs]))
    return [row for row in rows if any(value is not None for value in row[1])]


def differing(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the settings that are not the same in all runs.

    Parameters
    ----------
    runs : Sequence[Run]
        The runs.

    Returns
    -------
    dict[str, list[Any]]
        One value for each run, by name of the setting; None where a run has none.
    """
    names = dict.fromkeys(name for run in runs for name in run.settings)
    settings = {name: [run.settings.get(name) for run in runs] for name in names if name != CONTROLLERS}
    return {name: values for name, values in settings.items() if any(value != values[0] for value in values)}


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw the figure of the runs.

    Its head names the runs and their differences. Below are quantities over time with their set-points. The numbers
    follow, each in its own unit.

    Parameters
    ----------
    runs : Sequence[Run]
        The runs, one colour each.
    path : Path
        File of the figure; its ending sets the format.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    tracked = list(dict.fromkeys(name for run in runs for name in (run.report.get("tracking") or {})))
    shown = [name for name in (tracked or DEFAULT_QUANTITIES) if any(name in run.series for run in runs)]
    numbers = _numbers(runs, tracked)
    lines = _head(runs)
    plots, tallies = -(-max(len(shown), 1) // COLUMNS), -(-max(len(numbers), 1) // (COLUMNS + 1))
    top = 0.7 + LINE_IN * len(lines)
    tall = 0.32 + 0.2 * len(runs) + 0.55
    high = top + plots * (PANEL_IN + 0.65) + tallies * max(NUMBER_IN, tall) + 0.3
    with project_style():
        page = figure(WIDTH_IN, high)
        page.text(0.04, 1.0 - 0.3 / high, "Runs side by side", fontsize=16, fontweight="bold", va="center")
        for k, (colour, label) in enumerate(lines):
            page.text(0.04, 1.0 - (0.62 + LINE_IN * k) / high, label, color=colour, fontsize=9.5, va="center")
        middle = 1.0 - (top + plots * (PANEL_IN + 0.65)) / high
        over = page.add_gridspec(plots, COLUMNS, left=0.07, right=0.98, top=1.0 - (top + 0.25) / high,
                                 bottom=middle + 0.5 / high, hspace=0.5, wspace=0.25)  # fmt: skip
        for k, name in enumerate(shown):
            _over_time(page.add_subplot(over[k // COLUMNS, k % COLUMNS]), name, runs)
        if not shown:
            write_note(page.add_subplot(over[0, :]), "these robots have no position")
        below = page.add_gridspec(tallies, COLUMNS + 1, left=0.07, right=0.96, top=middle - 0.2 / high,
                                  bottom=0.35 / high, hspace=0.9, wspace=0.35)  # fmt: skip
        for k, (title, values) in enumerate(numbers):
            _tally(page.add_subplot(below[k // (COLUMNS + 1), k % (COLUMNS + 1)]), title, values)
        save(page, path)


def _head(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return one line a run: its colour, and its name, its controllers and its own settings."""
    others, result = differing(runs), []
    for k, run in enumerate(runs):
        heading = f"{run.name}:  {run.settings.get(CONTROLLERS) or 'no controller'}"
        settings = [f"{name} {_short(values[k])}" for name, values in others.items() if values[k] is not None]
        heading += f"   ({', '.join(settings)})" if settings else ""
        cut = heading if len(heading) <= MAX_TITLE_LENGTH else heading[: MAX_TITLE_LENGTH - 1] + "…"
        result.append((SERIES[k % len(SERIES)], cut))
    return result


def _over_time(axes: Any, name: str, runs: Sequence[Run]) -> None:
    """Draw a quantity of all runs, and their set-points dashed in the colour of the run."""
    axes.set_title(_title(name))
    for k, run in enumerate(runs):
        colour = SERIES[k % len(SERIES)]
        if name in run.series:
            # wider below, so that curves which agree are both seen
            axes.plot(run.time, _rounded(run.series[name]), color=colour, lw=min(3.0, 1.3 + 0.9 * (len(runs) - 1 - k)))
        points = [(t, float(there[name])) for t, there in run.set_points if _number(there.get(name))]
        if points and len(run.time):
            since, values = zip(*points, strict=True)
            end = float(run.time[-1])
            dashed: Any = (0, (5, 3))
            axes.step([*since, end], [*values, values[-1]], where="post", color=colour, lw=1.0, ls=dashed)
    axes.set(xlabel="time, s", ylabel=_unit(name))
    axes.margins(y=0.12)
    if name == "depth_m":
        axes.invert_yaxis()


def _rounded(values: Array) -> Array:
    """Return the values, or zeros where they are rounding errors alone.

    A panel would show those errors as a motion.
    """
    return values if np.nanmax(np.abs(values), initial=0.0) > ROUNDING else np.zeros_like(values)


def _numbers(runs: Sequence[Run], tracked: Sequence[str]) -> list[tuple[str, list[Any]]]:
    """Return the title with its unit and a value for each run, of each panel of numbers."""
    result = []
    for name in tracked:
        off = [_below(run.report, "tracking", name, "rms") for run in runs]
        result.append((f"{_title(name)}, rms off its set-point, {_unit(name)}", off))
    for name, title in NUMBERS:
        unit = f", {_unit(name)}" if _unit(name) else ""
        result.append((title + unit, [_below(run.report, "summary", name) for run in runs]))
    units = {run.unit for run in runs}
    unit = units.pop() if len(units) == 1 else ""
    result.append(("command rate, rms" + (f", {unit}/s" if unit else ""), [run.effort for run in runs]))
    result += [(f"{part}, {quantile}, µs", [_below(run.report, "timing_us", part, quantile) for run in runs])
              for part, quantile in TIMES]  # fmt: skip
    return [(title, values) for title, values in result if any(_number(value) for value in values)]


def _tally(axes: Any, title: str, values: Sequence[Any]) -> None:
    """Draw one bar a run from 0, all in one unit, each with its number."""
    axes.set_title(title, fontsize=8.5)
    heights = [float(value) if _number(value) else 0.0 for value in values]
    axes.barh(range(len(values)), heights, color=[SERIES[k % len(SERIES)] for k in range(len(values))], height=0.7)
    for k, value in enumerate(values):
        word = f" {value:.4g}" if _number(value) else " none"
        axes.annotate(word, (max(heights[k], 0.0), k), va="center", fontsize=8.0)
    axes.set(yticks=[], xlim=(min(0.0, *heights), (max(heights) or 1.0) * 1.3))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=4)


def _title(name: str) -> str:
    """Return the title of a quantity: 'heading_deg' becomes 'Heading'."""
    ending = next((ending for ending in UNITS if name.endswith(ending)), "")
    return name.removesuffix(ending).replace("_", " ").capitalize()


def _unit(name: str) -> str:
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _number(value: Any) -> bool:
    """Check that a figure can show the value, because the summary of an installed robot may have text."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _below(table: Any, *names: str) -> Any:
    for name in names:
        table = table.get(name) if isinstance(table, Mapping) else None
    return table
