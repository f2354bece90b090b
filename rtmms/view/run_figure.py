"""The figure of any robot's run, with panels of joints and of the loop's timing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import PARTS, QUANTILES
from rtmms.base.errors import RtmmsError
from rtmms.base.robot_title import robot_title
from rtmms.loop.statistics import Statistics
from rtmms.mechanism.plant import TreePlant
from rtmms.plant.description import describe_plant
from rtmms.view.cycles import PeriodMeans, attitude_angles, period_means
from rtmms.view.figures import MAX_CURVES
from rtmms.view.robot_panels import along_path, fill_panel, mark_surface, stretch, strip
from rtmms.view.style import (
    BLUE,
    CORAL,
    INK,
    MUTED,
    ORDERED,
    PAPER,
    PURPLE,
    SAND,
    SERIES,
    TEAL,
    colours,
    figure,
    project_style,
    save,
    write_note,
)

if TYPE_CHECKING:
    from rtmms.loop.trace import Recent, Trace
    from rtmms.plant.protocol import Plant
    from rtmms.view.robot_panels import RobotOutline


Array = npt.NDArray[np.float64]


# What joints did at the end of a run: over one more period of the robot's own gait, or over the last seconds kept.


Ahead = tuple[Array, dict[str, Array]]

SHOWN = ("joint_position", "joint_torque")

MIN_STEPS = 20
MAX_SAMPLES = 200
SHOWN_S = 4.0
PANELS = 2
STILL = 1e-9


Shown = tuple[str, str, Array, Array]
"""Contents of a panel: title, unit, times (n,) in s, and values (n, k)."""


def joint_curves(plant: Plant, recent: Recent, ahead: Ahead | None) -> list[Shown]:
    """Return at most two outputs of the joints that move.

    For a robot with its own gait they cover one more period with the run's last command held; see `one_more_period`.
    For any other robot they cover the last seconds of its `recent_outputs`.

    Parameters
    ----------
    plant : Plant
        The plant.
    recent : Recent
        Samples of the run's last seconds.
    ahead : Ahead | None
        Result of `one_more_period`.

    Returns
    -------
    list[Shown]
        Panels: title, unit, times in s, and values of each.

    Notes
    -----
    One more period shows a fast gait at the resolution of the simulation.
    """
    if ahead is not None:
        time, values = ahead[0], {name: ahead[1][name] for name in SHOWN}
        when = "one more period, the last command held"
    else:
        time, values = recent.read()
        late = time >= (time[-1] - SHOWN_S) if len(time) else slice(None)
        time, values = time[late], {name: value[late] for name, value in values.items()}
        when = "the last seconds"
    units = {channel.name: channel.unit for channel in plant.outputs}
    result = [(f"{name.replace('_', ' ').capitalize()}: {when}", units[name], time, value.reshape(len(time), -1))
             for name, value in values.items() if len(time) > 1 and np.abs(value).max(initial=0.0) > STILL]  # fmt: skip
    return result[:PANELS]


def one_more_period(plant: Plant, more: tuple[str, ...] = ()) -> Ahead | None:
    """Simulate the next period of the plant's own gait.

    The plant keeps the state that it had before.

    Parameters
    ----------
    plant : Plant
        The plant.
    more : tuple[str, ...], optional
        Outputs beside `joint_position` and `joint_torque`.

    Returns
    -------
    Ahead | None
        Times in s and samples by output. None without a gait, for a period of few steps, and for one that cannot be
        run.
    """
    if not isinstance(plant, TreePlant) or not np.any(plant.law.motion[:, 1:]):
        return None
    steps = math.ceil(2.0 * math.pi / plant.law.omega / plant.dt)
    if steps < MIN_STEPS:
        return None
    blob, command, stride = plant.snapshot(), plant.commanded.copy(), max(1, steps // MAX_SAMPLES)
    names, time, rows = tuple(dict.fromkeys((*SHOWN, *more))), [], []
    try:
        for k in range(steps + 1):
            if k % stride == 0:
                outputs = plant.observe()
                time.append(plant.time)
                rows.append([outputs[name] for name in names])
            plant.step(command)
    except RtmmsError:
        return None  # a run that ended because it cannot go on
    finally:
        plant.restore(blob)
    return np.array(time), {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _panel(panel: Any, title: str, unit: str, time: Array, values: Array) -> None:
    panel.set_title(title)
    moving = np.flatnonzero(np.max(np.abs(values), axis=0) > STILL)
    for colour, k in zip(colours(len(moving)), moving, strict=True):
        panel.plot(time, values[:, k], color=colour, lw=1.0, label=f"{k + 1}")
    still = values.shape[1] - len(moving)
    note = ""
    if len(moving) > MAX_CURVES:
        note = f"{len(moving)} curves, first to last from dark to light"
    elif values.shape[1] > 1:
        panel.legend(loc="upper right", ncols=len(moving), columnspacing=1.0, handlelength=1.4, frameon=True,
                     facecolor=PAPER, framealpha=0.8, edgecolor="none")  # fmt: skip
    note += ("; " if note and still else "") + (f"{still} more at 0" if still else "")
    panel.set(xlabel=f"time, s      {note}".rstrip(), ylabel=unit or "-", xlim=(time[0], time[-1]))
    panel.margins(y=0.1)


# How a run kept its time: one histogram for each part of a step.


_TITLES = {
    "wake": "Wake: start after its instant",
    "exchange": "Exchange: state out, command in",
    "plant": "Plant: the step itself",
    "slack": "Slack: left of the period",
}
_COLOURS = {"wake": SAND, "exchange": BLUE, "plant": TEAL, "slack": MUTED}
_BINS = 60
_MIN_SPAN_RATIO = 4.0


def timing_panels(page: Any, place: Any, statistics: Statistics) -> None:
    """Draw histograms of the parts of a step that the run's mode has.

    The scales are logarithmic; quantiles and deadline are marked.

    Parameters
    ----------
    page : Figure
        The figure.
    place : SubplotSpec
        Part of its grid, in which the histograms are side by side.
    statistics : Statistics
        Times of the steps. Without a step there is one panel with a note.
    """
    parts = [part for part in PARTS if statistics.histogram(part)[1].sum() > 0]
    row = place.subgridspec(1, max(1, len(parts)), wspace=0.2)
    axes = [page.add_subplot(row[k]) for k in range(max(1, len(parts)))]
    if not parts:
        axes[0].set_title("Time of a step")
        write_note(axes[0], "no steps")
        return
    for panel, part in zip(axes, parts, strict=True):
        panel.set_title(_TITLES[part])
        values, counts = statistics.histogram(part)
        deadline = statistics.deadline_us if part == "exchange" else None
        _histogram(panel, values, counts, _COLOURS[part])
        marks = statistics.timing_us()[part]
        text = "   ".join(f"{word} {_short(marks[name])}" for name, (_, word) in QUANTILES.items())
        panel.set_xlabel(f"µs      {text}")
        if marks["p50"]:
            panel.axvline(marks["p50"], color=INK, lw=0.9)
        if deadline is not None:
            left, right = panel.get_xlim()
            panel.set_xlim(left, max(right, deadline * 1.6))
            panel.axvline(deadline, color=CORAL, lw=1.4)
            left, right = panel.get_xlim()
            side = "right" if np.log(deadline / left) > 0.5 * np.log(right / left) else "left"
            panel.text(
                deadline, 0.97, f" deadline {_short(deadline)} ", color=CORAL, ha=side, va="top",
                transform=panel.get_xaxis_transform(), fontsize=8,
                bbox={"facecolor": PAPER, "alpha": 0.75, "lw": 0, "pad": 1.0},
            )  # fmt: skip
    axes[0].set_ylabel("steps")


def _histogram(panel: Any, values: Any, counts: Any, colour: Any) -> None:
    """Draw steps over time in us, both on logarithmic scales.

    A slack of zero, which is an overrun, is at the left end.
    """
    floor = 0.1
    shown = np.maximum(values, floor)
    low, high = shown.min(), shown.max()
    middle, span = np.sqrt(low * high), max(high / low, _MIN_SPAN_RATIO)
    edges = np.geomspace(middle / np.sqrt(span) * 0.9, middle * np.sqrt(span) * 1.1, _BINS + 1)
    heights, _ = np.histogram(shown, bins=edges, weights=counts)
    panel.stairs(heights, edges, fill=True, color=colour, alpha=0.85, lw=0)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(edges[0], edges[-1])
    panel.set_ylim(0.6, heights.max() * 12.0)
    panel.xaxis.set_major_formatter(_plain)
    panel.yaxis.set_major_formatter(_plain)  # powers would be written as their markup
    panel.yaxis.set_minor_formatter(_none)
    panel.xaxis.set_minor_formatter(_few if span < 30 else _none)


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _plain(value: float, position: int | None = None) -> str:
    return f"{value:g}"


def _few(value: float, position: int | None = None) -> str:
    """Return the label of a minor tick at 2 or 5, and "" for any other."""
    lead = value / 10 ** np.floor(np.log10(value) + 1e-9)
    return f"{value:g}" if min(abs(lead - 2.0), abs(lead - 5.0)) < 1e-6 else ""


def _none(value: float, position: int | None = None) -> str:
    return ""


# One page on a run of any plant with a position: its path with the robot along it, speed, attitude, what else it
# kept, the robot over a period, and the timing.


WIDTH_IN = 16.0
"""Width of the page, inches."""
FRAME_IN = 1.9
"""Margins of the page, inches."""
ROW_IN = 1.245
"""Height of a row of height 1 with the space below it, inches."""
MAX_OTHERS = 4
MIN_PERIODS = 12
MIN_EXTENT_M = 1e-3
NOTHING = 1e-9
"""Bound in any unit below which a value is rounding, which a panel would show as a motion."""
MIN_SAMPLES = 20
"""Samples a period; with fewer the path is not the true one."""
HEADLINE = ("mean_speed_m_s", "mean_power_w", "mean_thrust_n")
"""Entries of a summary that come first, with the misses."""
AXES = ("x", "y", "z")
ANGLES = ("roll", "pitch", "yaw")
TURN = "attitude"
UNITS = {"_w_kg": "W/kg", "_deg_s": "deg/s", "_rad_s": "rad/s", "_m_s": "m/s", "_rad": "rad", "_deg": "deg",
         "_w": "W", "_n": "N", "_m": "m", "_j": "J"}  # fmt: skip


def draw(
    path: Path, plant: Plant, trace: Trace, recent: Recent, statistics: Statistics, robot: str = "",
    outlined: RobotOutline | None = None,
) -> None:  # fmt: skip
    """Draw the page on a run of any plant with a position.

    Parameters
    ----------
    path : Path
        File of the figure; its ending sets the format.
    plant : Plant
        The plant.
    trace : Trace
        Samples of the whole run: `position` (3,) in m, world; `velocity` (3,) in m/s, body; `quaternion` (4,); and
        others. Panels of missing outputs have a note or leave their space to others.
    recent : Recent
        Samples of the last seconds: the plant's `recent_outputs`, and the outputs that the outline reads.
    statistics : Statistics
        Times of the steps.
    robot : str, default ''
        Name of the robot, for the title.
    outlined : RobotOutline | None, optional
        The robot and states along the run to draw it in; None leaves it out.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    time, stored = trace.read()
    outline = None if outlined is None else outlined.outline
    names = {channel.name for channel in plant.outputs}
    ahead = one_more_period(plant, (*(() if outline is None else outline.needs), *(names & {"position", "velocity"})))
    shown = stretch(outline, ahead, *recent.read())
    summarise = describe_plant(plant).summarise
    summary = {} if len(time) < 2 or summarise is None else summarise(time, stored)
    means = period_means(time, stored, shown.seconds, summary) if shown is not None and shown.seconds else None
    costs = means is not None and means.cost is not None
    others = _others(plant, stored)[: MAX_OTHERS - costs]
    joints = joint_curves(plant, recent, ahead)
    heights = {"path": 2.5, "robot": 1.3, "others": 1.7, "joints": 2.0, "timing": 1.6}
    for name, absent in (("robot", outline is None), ("others", not others and not costs), ("joints", not joints)):
        if absent:
            del heights[name]
    with project_style():
        high = FRAME_IN + ROW_IN * sum(heights.values())
        page = figure(WIDTH_IN, high)
        _title(page, plant, summary, statistics, robot)
        grid = page.add_gridspec(
            len(heights), 1, left=0.05, right=0.975, top=1.0 - 1.28 / high, bottom=0.61 / high,
            hspace=0.48, height_ratios=list(heights.values()),
        )  # fmt: skip
        rows = {name: grid[k] for k, name in enumerate(heights)}
        top = rows["path"].subgridspec(1, 3, wspace=0.18)
        when, samples, of = _finest(time, stored, ahead)
        along = None if of else outlined  # of one beat the strip below has the phases
        _path(page.add_subplot(top[0]), f"Path{of}, seen from above", 0, 1, when, samples, along, plant)
        _path(
            page.add_subplot(top[1]), f"Path{of}, seen from the side", _along(samples), 2, when, samples, along, plant
        )
        _speed(page.add_subplot(top[2]), of, when, samples, None if of else means)
        if outline is not None:
            strip(page.add_subplot(rows["robot"]), outline, shown)
        if "others" in rows:
            second = rows["others"].subgridspec(1, len(others) + costs, wspace=0.18)
            for k, (name, unit, values) in enumerate(others):
                _curves(page.add_subplot(second[k]), name, unit, time, values, means)
            if means is not None and means.cost is not None:
                _costs(page.add_subplot(second[len(others)]), time, means)
        if "joints" in rows:
            third = rows["joints"].subgridspec(1, len(joints), wspace=0.12)
            for k, curve in enumerate(joints):
                _panel(page.add_subplot(third[k]), *curve)
        timing_panels(page, rows["timing"], statistics)
        save(page, path)


def title_of(robot: str, plant: Plant) -> tuple[str, str]:
    """Return the title of a figure of the plant, and the file of its robot.

    Parameters
    ----------
    robot : str
        Name of the robot; with "" the name of the plant's class is used.
    plant : Plant
        The plant.

    Returns
    -------
    tuple[str, str]
        Title and name of the file, which is "" for none.
    """
    name = getattr(getattr(plant, "model", None), "name", "")
    return robot_title(robot or type(plant).__name__, name if isinstance(name, str) else "")


def _title(page: Any, plant: Plant, summary: Mapping[str, Any], statistics: Statistics, robot: str) -> None:
    high = page.get_figheight()
    counts = statistics.counters()
    name, file = title_of(robot, plant)
    page.text(0.05, 1.0 - 0.46 / high, name, fontsize=21, fontweight="bold", color=INK, va="center")
    headline = {key: summary.get(key) for key in HEADLINE}
    facts = [_describe_entry(key, value).removeprefix("mean ").partition(" ")[2] for key, value in headline.items()
             if value is not None]  # fmt: skip
    facts += [f"{counts['misses']:,} misses"] + ([] if facts else [f"{counts['overruns']:,} overruns"])
    facts += [f"{counts['stale']:,} stale steps"] if counts["stale"] else []
    page.text(0.975, 1.0 - 0.46 / high, "   |   ".join(facts), fontsize=16, color=BLUE, va="center", ha="right")
    parts = [file] if file else []
    parts += [f"{counts['steps'] * plant.dt:.4g} s simulated in {counts['steps']:,} steps of {plant.dt * 1e3:g} ms"]
    if summary:
        parts += [_describe_entry(key, value) for key, value in summary.items() if value is not None]
    page.text(0.05, 1.0 - 0.81 / high, "   ·   ".join(parts), fontsize=10, color=MUTED, va="center")


def _describe_entry(key: str, value: float) -> str:
    """Return an entry of the summary for people: 'mean_speed_m_s', 0.4 becomes 'mean speed 0.4 m/s'."""
    for ending, unit in UNITS.items():
        if key.endswith(ending):
            return f"{key.removesuffix(ending).replace('_', ' ')} {value:.4g} {unit}"
    return f"{key.replace('_', ' ')} {value:.4g}"


def _finest(
    time: Array, stored: Mapping[str, Array], ahead: tuple[Array, Mapping[str, Array]] | None
) -> tuple[Array, Mapping[str, Array], str]:
    """Return the run's samples with a note of them.

    Where they have few samples a period, these are the samples of one more period of the gait.
    """
    if ahead is None or len(time) < 2 or not {"position", "velocity"} <= set(ahead[1]):
        return time, stored, ""
    seconds = float(ahead[0][-1] - ahead[0][0])
    return (
        (time, stored, "")
        if seconds > MIN_SAMPLES * float(np.median(np.diff(time)))
        else (*ahead, " of one more period")
    )


def _along(stored: Mapping[str, Array]) -> int:
    """Return the horizontal axis along which the robot moved further, without its sway."""
    if "position" not in stored or not len(stored["position"]):
        return 0
    net = np.abs(stored["position"][-1, :2] - stored["position"][0, :2])
    extent = np.ptp(stored["position"][:, :2], axis=0)
    return int(np.argmax(net if net.max() > 0.5 * extent.max() else extent))


def _path(
    panel: Any, title: str, a: int, b: int, time: Array, stored: Mapping[str, Array], outlined: RobotOutline | None,
    plant: Plant,
) -> None:  # fmt: skip
    """Draw two of the world's coordinates, coloured by time, with the robot along them."""
    import matplotlib
    from matplotlib.collections import LineCollection

    panel.set_title(title)
    if len(time) < 2 or "position" not in stored:
        write_note(panel, "no steps" if len(time) < 2 else "no position")
        return
    x, y = stored["position"][:, a], stored["position"][:, b]
    thin = slice(None, None, max(1, len(x) // 4000))
    points = np.stack([x[thin], y[thin]], axis=1)
    shades = matplotlib.colormaps[ORDERED](0.9 * np.linspace(0.0, 1.0, len(points)))
    panel.add_collection(LineCollection(list(np.stack([points[:-1], points[1:]], axis=1)), colors=shades[:-1], lw=1.8))
    mark_surface(panel, plant, stored["position"], a, b)
    panel.plot(x[0], y[0], "o", color=TEAL, ms=6, label="start")
    panel.plot(x[-1], y[-1], "o", color=CORAL, ms=6, label="end")
    fill_panel(panel, np.array([x.min(), y.min()]), np.array([x.max(), y.max()]), 0.57, MIN_EXTENT_M)
    panel.set(xlabel=f"{AXES[a]}, m", ylabel=f"{AXES[b]}, m")
    note = "" if outlined is None else along_path(panel, outlined, a, b)
    panel.text(0.995, 1.02, note, transform=panel.transAxes, ha="right", va="bottom", fontsize=8.5, color=MUTED)
    panel.legend(loc="best")


def _speed(panel: Any, of: str, time: Array, stored: Mapping[str, Array], means: PeriodMeans | None) -> None:
    """Draw components and size of the base's velocity, and the net speed of each period."""
    panel.set_title(f"Velocity of the base{of}, its own axes")
    if len(time) < 2 or "velocity" not in stored:
        write_note(panel, "no steps" if len(time) < 2 else "no velocity")
        return
    for k, colour in enumerate(SERIES[:3]):
        panel.plot(time, stored["velocity"][:, k], color=colour, lw=1.0, label=AXES[k])
    panel.plot(time, np.linalg.norm(stored["velocity"], axis=1), color=INK, lw=1.4, alpha=0.7, label="size")
    if means is not None and means.speed is not None:
        _mean(panel, means.middle, means.speed, "way of each period")
    panel.set(xlabel="time, s", ylabel="m/s", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)
    panel.legend(loc="best", ncols=5, columnspacing=1.0, handlelength=1.4)


def _mean(panel: Any, middle: Array, values: Array, label: str) -> None:
    """Draw the mean of each period, with a point where there are few."""
    few = len(middle) < MIN_PERIODS
    panel.plot(middle, values, color=PURPLE, lw=2.0, marker="o" if few else "", ms=4.0, label=label)


def _costs(panel: Any, time: Array, means: PeriodMeans) -> None:
    panel.set_title("Cost of transport of each period")
    if means.cost is not None:
        _mean(panel, means.middle, means.cost, "")
    panel.set(xlabel="time, s", ylabel="-", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)


def _others(plant: Plant, stored: Mapping[str, Array]) -> list[tuple[str, str, Array]]:
    """Return title, unit and values (k, c) of at most four remaining outputs.

    The attitude comes first, then scalars and short vectors.
    """
    units = {channel.name: channel.unit for channel in plant.outputs}
    result: list[tuple[str, str, Array]] = []
    for name, values in stored.items():
        if name == "quaternion":
            angles = np.degrees(attitude_angles(values))
            if np.any(np.abs(angles) > NOTHING):
                result.insert(0, (TURN, "deg", angles))
        elif np.all(np.abs(values) < NOTHING):
            continue
        elif name not in ("position", "velocity") and values[:1].size <= MAX_CURVES:
            result.append((name.replace("_", " "), units[name], values.reshape(len(values), -1)))
    return result[:MAX_OTHERS]


def _curves(panel: Any, title: str, unit: str, time: Array, values: Array, means: PeriodMeans | None) -> None:
    panel.set_title(title[:1].upper() + title[1:])
    if len(time) < 2:
        write_note(panel, "no steps")
        return
    count = values.shape[1]
    names = ANGLES if title == TURN else AXES if count == len(AXES) else [f"{k + 1}" for k in range(count)]
    for k in range(count):
        panel.plot(time, values[:, k], color=SERIES[k % len(SERIES)], lw=1.0, label=names[k] if count > 1 else "")
    if count > 1:
        panel.legend(loc="upper right", ncols=count, columnspacing=1.0, handlelength=1.4, frameon=True, facecolor=PAPER,
                     framealpha=0.8, edgecolor="none")  # fmt: skip
    if title == "power" and means is not None and means.power is not None:
        _mean(panel, means.middle, means.power, "mean of each period")
        panel.legend(loc="upper right", frameon=True, facecolor=PAPER, framealpha=0.8, edgecolor="none")
    panel.set(xlabel="time, s", ylabel=unit or "-", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)
