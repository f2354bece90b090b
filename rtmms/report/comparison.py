"""Runs side by side: a table of how far off their set-points, at what effort and how timely, and a figure of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.report.style import SERIES, figure, save, say, styled

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Run:
    """One of them.

    report   the run's, as far as it came to one
    time (n,) s, depth (n,) m, positive down, heading (n,) deg, speed (n,) m/s along body x;  empty: not told
    command (n, a) as the plant got it, in the actuators' units
    """

    name: str
    report: Mapping[str, Any]
    time: Array
    command: Array
    depth: Array = field(default_factory=lambda: np.zeros(0))
    heading: Array = field(default_factory=lambda: np.zeros(0))
    speed: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def effort(self) -> float | None:
        """Root mean square of the commands' rates, unit/s."""
        if len(self.time) < 2:
            return None
        rates = np.diff(self.command, axis=0) / np.diff(self.time)[:, None]
        return float(np.sqrt(np.mean(rates**2)))


def table(runs: Sequence[Run]) -> list[tuple[str, list[float | str | None]]]:
    """Rows: what, and its value of each run; None where a run has none."""
    rows: list[tuple[str, list[float | str | None]]] = [
        (name, [run.report.get(name) for run in runs]) for name in ("robot", "mode", "seed", "ended", "simulated_s")
    ]
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


def draw(runs: Sequence[Run], path: Path) -> None:
    """The figure. RtmmsError where it cannot be written."""
    with styled():
        page = figure(10.0, 8.5)
        panels = page.subplots(3, 2)
        for axes, (title, unit, name) in zip(panels.flat[:3], (
            ("Depth", "m", "depth"), ("Heading", "deg", "heading"), ("Speed", "m/s", "speed"),
        ), strict=True):  # fmt: skip
            axes.set_title(title)
            told = [(k, run) for k, run in enumerate(runs) if len(getattr(run, name))]
            for k, run in told:
                axes.plot(run.time, getattr(run, name), color=SERIES[k % len(SERIES)], label=run.name)
            if not told:
                say(axes, "not told by these robots")
            axes.set(xlabel="time, s", ylabel=unit)
        panels.flat[1].legend() if any(len(run.heading) for run in runs) else None
        if any(len(run.depth) for run in runs):
            panels.flat[0].invert_yaxis()
        names = list(dict.fromkeys(name for run in runs for name in (run.report.get("tracking") or {})))
        _bars(panels.flat[3], "Off the set-points, rms", names, runs,
              lambda run, name: _below(run.report, "tracking", name, "rms"))  # fmt: skip
        _bars(panels.flat[4], "Effort", ["command rate, rms", "mean_power_w"], runs, _effort)
        timed = ["plant p50", "plant p99", "exchange p50", "exchange p99"]
        _bars(panels.flat[5], "Timing, us", timed, runs,
              lambda run, name: _below(run.report, "timing_us", *name.split()))  # fmt: skip
        page.tight_layout()
        save(page, path)


def _bars(axes: Any, title: str, names: list[str], runs: Sequence[Run], pick: Any) -> None:
    axes.set_title(title)
    kept = [name for name in names if any(_number(pick(run, name)) for run in runs)]
    if not kept:
        say(axes, "none of these runs has one")
        return
    width = 0.8 / len(runs)
    for k, run in enumerate(runs):
        values = [pick(run, name) for name in kept]
        heights = [float(value) if _number(value) else math.nan for value in values]
        axes.bar(np.arange(len(kept)) + (k + 0.5) * width - 0.4, heights, width, color=SERIES[k % len(SERIES)])
    axes.set_xticks(range(len(kept)), kept, fontsize=7.0, rotation=15)
    axes.set_yscale("log")


def _effort(run: Run, name: str) -> Any:
    return run.effort if name.startswith("command") else _below(run.report, "summary", name)


def _number(value: Any) -> bool:
    """What is drawn as a bar; a robot of others may put words into its summary."""
    return isinstance(value, int | float) and abs(value) < 1e300


def _below(table: Any, *names: str) -> Any:
    for name in names:
        table = table.get(name) if isinstance(table, Mapping) else None
    return table
