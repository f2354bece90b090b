"""One page on a run of any plant that says where it is: its path with the robot along it, speed, attitude, what else it
kept, the robot over a period, and the timing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.plant import describe_plant
from rtmms.report.attitude import attitude_angles
from rtmms.report.joint_panels import joint_panels, one_more_period
from rtmms.report.period_means import PeriodMeans, period_means
from rtmms.report.robot_panels import along_path, fill_panel, stretch, strip
from rtmms.report.style import BLUE, CORAL, INK, MUTED, ORDERED, PAPER, PURPLE, SERIES, TEAL, figure, save, say, styled
from rtmms.report.timing_panels import timing_panels

if TYPE_CHECKING:
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import Recent, Trace
    from rtmms.plant import Plant
    from rtmms.report.outline import Outlined

Array = npt.NDArray[np.float64]

WIDTH, HEIGHT, STRIP = 16.0, 11.6, 1.8
MOST_CURVES = 6
MOST_OTHERS = 4
FEW_PERIODS = 12
LEAST_M = 1e-3
NOTHING = 1e-9
"""In whatever unit: rounding, drawn as large as the panel, would look like motion."""
LEAST_SAMPLES = 20
"""Of a period: with fewer the path is not what it was."""
HEADLINE = ("mean_speed_m_s", "mean_power_w", "mean_thrust_n")
"""Of a summary: what is told first, beside the misses."""
AXES = ("x", "y", "z")
UNITS = {"_w_kg": "W/kg", "_deg_s": "deg/s", "_rad_s": "rad/s", "_m_s": "m/s", "_rad": "rad", "_deg": "deg",
         "_w": "W", "_n": "N", "_m": "m", "_j": "J"}  # fmt: skip


def draw(
    path: Path, plant: Plant, trace: Trace, recent: Recent, statistics: Statistics, robot: str = "",
    outlined: Outlined | None = None,
) -> None:  # fmt: skip
    """Write the page to `path`, in the format of its ending; RtmmsError if that cannot be done.

    trace    kept over the whole run: 'position' (3,) m world, 'velocity' (3,) m/s body, 'quaternion' (4,), and others;
             what is missing leaves its panel to what is there
    recent   the last seconds of what the plant names in `recent_outputs`, and of what the outline needs
    outlined the robot and states along the run to draw it in; None leaves it out
    """
    time, kept = trace.read()
    outline = None if outlined is None else outlined.outline
    told = {channel.name for channel in plant.outputs}
    ahead = one_more_period(plant, (*(() if outline is None else outline.needs), *(told & {"position", "velocity"})))
    shown = stretch(outline, ahead, *recent.read())
    summarise = describe_plant(plant).summarise
    found = {} if len(time) < 2 or summarise is None else summarise(time, kept)
    means = period_means(time, kept, shown.seconds, found) if shown is not None and shown.seconds else None
    with styled():
        high = HEIGHT + (STRIP if outline is not None else 0.0)
        page = figure(WIDTH, high)
        _title(page, plant, found, statistics, robot)
        rows = page.add_gridspec(
            5 if outline is not None else 4, 1, left=0.05, right=0.975, top=1.0 - 1.28 / high, bottom=0.61 / high,
            hspace=0.48, height_ratios=(2.5, *((1.3,) if outline is not None else ()), 1.7, 2.0, 1.6),
        )  # fmt: skip
        top = rows[0].subgridspec(1, 3, wspace=0.18)
        when, way, of = _finest(time, kept, ahead)
        along = None if of else outlined  # of one beat the strip below has the phases
        _path(page.add_subplot(top[0]), f"Path{of}, seen from above", 0, 1, when, way, along)
        _path(page.add_subplot(top[1]), f"Path{of}, seen from the side", _along(way), 2, when, way, along)
        _speed(page.add_subplot(top[2]), of, when, way, None if of else means)
        if outline is not None:
            strip(page.add_subplot(rows[1]), outline, shown)
        costs = means is not None and means.cost is not None
        others = _others(plant, kept)[: MOST_OTHERS - costs]
        second = rows[-3].subgridspec(1, max(1, len(others) + costs), wspace=0.18)
        for k, (name, unit, values) in enumerate(others):
            _curves(page.add_subplot(second[k]), name, unit, time, values, means)
        if means is not None and means.cost is not None:
            _costs(page.add_subplot(second[len(others)]), time, means)
        third = rows[-2].subgridspec(1, 2, wspace=0.12)
        joint_panels([page.add_subplot(third[k]) for k in range(2)], plant, recent, ahead)
        fourth = rows[-1].subgridspec(1, 4, wspace=0.2)
        timing_panels([page.add_subplot(fourth[k]) for k in range(4)], statistics)
        save(page, path)


def _title(page: Any, plant: Plant, found: Mapping[str, Any], statistics: Statistics, robot: str) -> None:
    high = page.get_figheight()
    counts = statistics.counters()
    name = robot or type(plant).__name__
    page.text(0.05, 1.0 - 0.46 / high, name.capitalize(), fontsize=21, fontweight="bold", color=INK, va="center")
    headline = {key: found.get(key) for key in HEADLINE}
    facts = [_words(key, value).removeprefix("mean ").partition(" ")[2] for key, value in headline.items()
             if value is not None]  # fmt: skip
    facts += [f"{counts['misses']:,} misses"] + ([] if facts else [f"{counts['overruns']:,} overruns"])
    page.text(0.975, 1.0 - 0.46 / high, "   |   ".join(facts), fontsize=16, color=BLUE, va="center", ha="right")
    words = [f"{counts['steps'] * plant.dt:.4g} s simulated in {counts['steps']:,} steps of {plant.dt * 1e3:g} ms"]
    if found:
        words += [_words(key, value) for key, value in found.items() if value is not None]
    page.text(0.05, 1.0 - 0.81 / high, "   ·   ".join(words), fontsize=10, color=MUTED, va="center")


def _words(key: str, value: float) -> str:
    """'mean_speed_m_s', 0.4 -> 'mean speed 0.4 m/s'."""
    for ending, unit in UNITS.items():
        if key.endswith(ending):
            return f"{key.removesuffix(ending).replace('_', ' ')} {value:.4g} {unit}"
    return f"{key.replace('_', ' ')} {value:.4g}"


def _finest(
    time: Array, kept: Mapping[str, Array], ahead: tuple[Array, Mapping[str, Array]] | None
) -> tuple[Array, Mapping[str, Array], str]:
    """The run's samples, or one more period of a gait of which they have few, and what to say of it."""
    if ahead is None or len(time) < 2 or not {"position", "velocity"} <= set(ahead[1]):
        return time, kept, ""
    seconds = float(ahead[0][-1] - ahead[0][0])
    return (
        (time, kept, "")
        if seconds > LEAST_SAMPLES * float(np.median(np.diff(time)))
        else (*ahead, " of one more period")
    )


def _along(kept: Mapping[str, Array]) -> int:
    """The horizontal axis along which it got further, sway apart."""
    if "position" not in kept or not len(kept["position"]):
        return 0
    net = np.abs(kept["position"][-1, :2] - kept["position"][0, :2])
    extent = np.ptp(kept["position"][:, :2], axis=0)
    return int(np.argmax(net if net.max() > 0.5 * extent.max() else extent))


def _path(
    panel: Any, title: str, a: int, b: int, time: Array, kept: Mapping[str, Array], outlined: Outlined | None
) -> None:  # fmt: skip
    """Two of the world's coordinates, coloured by time, with the robot along them."""
    import matplotlib
    from matplotlib.collections import LineCollection

    panel.set_title(title)
    if len(time) < 2 or "position" not in kept:
        say(panel, "no steps" if len(time) < 2 else "no position")
        return
    x, y = kept["position"][:, a], kept["position"][:, b]
    thin = slice(None, None, max(1, len(x) // 4000))
    points = np.stack([x[thin], y[thin]], axis=1)
    shades = matplotlib.colormaps[ORDERED](0.9 * np.linspace(0.0, 1.0, len(points)))
    panel.add_collection(LineCollection(list(np.stack([points[:-1], points[1:]], axis=1)), colors=shades[:-1], lw=1.8))
    panel.plot(x[0], y[0], "o", color=TEAL, ms=6, label="start")
    panel.plot(x[-1], y[-1], "o", color=CORAL, ms=6, label="end")
    fill_panel(panel, np.array([x.min(), y.min()]), np.array([x.max(), y.max()]), 0.57, LEAST_M)
    panel.set(xlabel=f"{AXES[a]}, m", ylabel=f"{AXES[b]}, m")
    said = "" if outlined is None else along_path(panel, outlined, a, b)
    panel.text(0.995, 1.02, said, transform=panel.transAxes, ha="right", va="bottom", fontsize=8.5, color=MUTED)
    panel.legend(loc="best")


def _speed(panel: Any, of: str, time: Array, kept: Mapping[str, Array], means: PeriodMeans | None) -> None:
    """The three components and the size of the base's velocity; the way made good in each period."""
    panel.set_title(f"Velocity of the base{of}, its own axes")
    if len(time) < 2 or "velocity" not in kept:
        say(panel, "no steps" if len(time) < 2 else "no velocity")
        return
    for k, colour in enumerate(SERIES[:3]):
        panel.plot(time, kept["velocity"][:, k], color=colour, lw=1.0, label=AXES[k])
    panel.plot(time, np.linalg.norm(kept["velocity"], axis=1), color=INK, lw=1.4, alpha=0.7, label="size")
    if means is not None and means.speed is not None:
        _mean(panel, means.middle, means.speed, "way of each period")
    panel.set(xlabel="time, s", ylabel="m/s", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)
    panel.legend(loc="best", ncols=5, columnspacing=1.0, handlelength=1.4)


def _mean(panel: Any, middle: Array, values: Array, label: str) -> None:
    """Of each period; a point where there are few."""
    few = len(middle) < FEW_PERIODS
    panel.plot(middle, values, color=PURPLE, lw=2.0, marker="o" if few else "", ms=4.0, label=label)


def _costs(panel: Any, time: Array, means: PeriodMeans) -> None:
    panel.set_title("Cost of transport of each period")
    if means.cost is not None:
        _mean(panel, means.middle, means.cost, "")
    panel.set(xlabel="time, s", ylabel="-", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)


def _others(plant: Plant, kept: Mapping[str, Array]) -> list[tuple[str, str, Array]]:
    """(title, unit, (k, c)) of what is left to show, four at most: attitude first, then scalars and short vectors."""
    units = {channel.name: channel.unit for channel in plant.outputs}
    found: list[tuple[str, str, Array]] = []
    for name, values in kept.items():
        if name == "power" and np.all(np.abs(values) < NOTHING):
            continue  # nothing of this robot is driven by what power is told of
        if name == "quaternion":
            found.insert(0, ("turn: roll, pitch, yaw", "deg", np.degrees(attitude_angles(values))))
        elif name not in ("position", "velocity") and values[:1].size <= MOST_CURVES:
            found.append((name.replace("_", " "), units[name], values.reshape(len(values), -1)))
    return found[:MOST_OTHERS]


def _curves(panel: Any, title: str, unit: str, time: Array, values: Array, means: PeriodMeans | None) -> None:
    panel.set_title(title[:1].upper() + title[1:])
    if len(time) < 2:
        say(panel, "no steps")
        return
    if np.all(np.abs(values) < NOTHING):
        say(panel, "all at 0")
        return
    for k in range(values.shape[1]):
        panel.plot(time, values[:, k], color=SERIES[k % len(SERIES)], lw=1.0)
    if title == "power" and means is not None and means.power is not None:
        _mean(panel, means.middle, means.power, "mean of each period")
        panel.legend(loc="upper right", frameon=True, facecolor=PAPER, framealpha=0.8, edgecolor="none")
    panel.set(xlabel="time, s", ylabel=unit or "-", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)
