"""One page on a run of any plant that says where it is: path, speed, attitude, what else it kept, and the timing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.plant import Summarised
from rtmms.report.attitude import attitude_angles
from rtmms.report.joint_panels import joint_panels
from rtmms.report.style import BLUE, CORAL, INK, MUTED, ORDERED, SERIES, TEAL, figure, save, say, styled
from rtmms.report.timing_panels import timing_panels

if TYPE_CHECKING:
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import Recent, Trace
    from rtmms.plant import Plant

Array = npt.NDArray[np.float64]

WIDTH, HEIGHT = 16.0, 11.6
MOST_CURVES = 6
LEAST_M = 1e-3
HEADLINE = ("mean_speed_m_s", "mean_power_w", "mean_thrust_n")
"""Of a summary: what is told first, beside the misses."""
AXES = ("x", "y", "z")
UNITS = {"_w_kg": "W/kg", "_deg_s": "deg/s", "_rad_s": "rad/s", "_m_s": "m/s", "_rad": "rad", "_deg": "deg",
         "_w": "W", "_n": "N", "_m": "m", "_j": "J"}  # fmt: skip


def draw(path: Path, plant: Plant, trace: Trace, recent: Recent, statistics: Statistics, robot: str = "") -> None:
    """Write the page to `path`, in the format of its ending; RtmmsError if that cannot be done.

    trace    kept over the whole run: 'position' (3,) m world, 'velocity' (3,) m/s body, 'quaternion' (4,), and others;
             what is missing leaves its panel to what is there
    recent   the last seconds of what the plant names in `recent_outputs`
    """
    time, kept = trace.read()
    with styled():
        page = figure(WIDTH, HEIGHT)
        _title(page, plant, time, kept, statistics, robot)
        rows = page.add_gridspec(
            4, 1, left=0.05, right=0.975, top=1.0 - 1.28 / HEIGHT, bottom=0.61 / HEIGHT, hspace=0.48,
            height_ratios=(2.5, 1.7, 2.0, 1.6),
        )  # fmt: skip
        top = rows[0].subgridspec(1, 3, wspace=0.18)
        _path(page.add_subplot(top[0]), "Path, seen from above", 0, 1, time, kept)
        _path(page.add_subplot(top[1]), "Path, seen from the side", _along(kept), 2, time, kept)
        _speed(page.add_subplot(top[2]), time, kept)
        others = _others(plant, kept)
        second = rows[1].subgridspec(1, max(1, len(others)), wspace=0.18)
        for k, (name, unit, values) in enumerate(others):
            _curves(page.add_subplot(second[k]), name, unit, time, values)
        third = rows[2].subgridspec(1, 2, wspace=0.12)
        joint_panels([page.add_subplot(third[k]) for k in range(2)], plant, recent)
        fourth = rows[3].subgridspec(1, 4, wspace=0.2)
        timing_panels([page.add_subplot(fourth[k]) for k in range(4)], statistics)
        save(page, path)


def _title(
    page: Any, plant: Plant, time: Array, kept: Mapping[str, Array], statistics: Statistics, robot: str
) -> None:  # fmt: skip
    counts = statistics.counters()
    found = plant.summarise(time, kept) if len(time) > 1 and isinstance(plant, Summarised) else {}
    name = robot or type(plant).__name__
    page.text(0.05, 1.0 - 0.46 / HEIGHT, name.capitalize(), fontsize=21, fontweight="bold", color=INK, va="center")
    headline = {key: found.get(key) for key in HEADLINE}
    facts = [_words(key, value).removeprefix("mean ").partition(" ")[2] for key, value in headline.items()
             if value is not None]  # fmt: skip
    facts += [f"{counts['misses']:,} misses"] + ([] if facts else [f"{counts['overruns']:,} overruns"])
    page.text(0.975, 1.0 - 0.46 / HEIGHT, "   |   ".join(facts), fontsize=16, color=BLUE, va="center", ha="right")
    words = [f"{counts['steps'] * plant.dt:.4g} s simulated in {counts['steps']:,} steps of {plant.dt * 1e3:g} ms"]
    if found:
        words += [_words(key, value) for key, value in found.items() if value is not None]
    page.text(0.05, 1.0 - 0.81 / HEIGHT, "   ·   ".join(words), fontsize=10, color=MUTED, va="center")


def _words(key: str, value: float) -> str:
    """'mean_speed_m_s', 0.4 -> 'mean speed 0.4 m/s'."""
    for ending, unit in UNITS.items():
        if key.endswith(ending):
            return f"{key.removesuffix(ending).replace('_', ' ')} {value:.4g} {unit}"
    return f"{key.replace('_', ' ')} {value:.4g}"


def _along(kept: Mapping[str, Array]) -> int:
    """The horizontal axis along which the path is longer."""
    if "position" not in kept or not len(kept["position"]):
        return 0
    return int(np.argmax(np.ptp(kept["position"][:, :2], axis=0)))


def _path(panel: Any, title: str, a: int, b: int, time: Array, kept: Mapping[str, Array]) -> None:
    """Two of the world's coordinates, coloured by time."""
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
    _frame_equal(panel, x, y)
    panel.set(xlabel=f"{AXES[a]}, m", ylabel=f"{AXES[b]}, m")
    panel.legend(loc="best")


def _frame_equal(panel: Any, x: Array, y: Array) -> None:
    """Equal scales on both axes that fill the panel."""
    box, page = panel.get_position(), panel.get_figure()
    width, height = box.width * page.get_figwidth(), box.height * page.get_figheight()
    unit = 0.57 * max(float(np.ptp(x)) / width, float(np.ptp(y)) / height, LEAST_M / width)
    middle_x, middle_y = 0.5 * (x.max() + x.min()), 0.5 * (y.max() + y.min())
    panel.set_xlim(middle_x - unit * width, middle_x + unit * width)
    panel.set_ylim(middle_y - unit * height, middle_y + unit * height)
    panel.set_aspect("equal", adjustable="box")


def _speed(panel: Any, time: Array, kept: Mapping[str, Array]) -> None:
    """The three components and the size of the base's velocity."""
    panel.set_title("Velocity of the base, its own axes")
    if len(time) < 2 or "velocity" not in kept:
        say(panel, "no steps" if len(time) < 2 else "no velocity")
        return
    for k, colour in enumerate(SERIES[:3]):
        panel.plot(time, kept["velocity"][:, k], color=colour, lw=1.0, label=AXES[k])
    panel.plot(time, np.linalg.norm(kept["velocity"], axis=1), color=INK, lw=1.4, alpha=0.7, label="size")
    panel.set(xlabel="time, s", ylabel="m/s", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)
    panel.legend(loc="best", ncols=4)


def _others(plant: Plant, kept: Mapping[str, Array]) -> list[tuple[str, str, Array]]:
    """(title, unit, (k, c)) of what is left to show, four at most: attitude first, then scalars and short vectors."""
    units = {channel.name: channel.unit for channel in plant.outputs}
    found: list[tuple[str, str, Array]] = []
    for name, values in kept.items():
        if name == "quaternion":
            found.insert(0, ("turn: roll, pitch, yaw", "deg", np.degrees(attitude_angles(values))))
        elif name not in ("position", "velocity") and values[:1].size <= MOST_CURVES:
            found.append((name.replace("_", " "), units[name], values.reshape(len(values), -1)))
    return found[:4]


def _curves(panel: Any, title: str, unit: str, time: Array, values: Array) -> None:
    panel.set_title(title[:1].upper() + title[1:])
    if len(time) < 2:
        say(panel, "no steps")
        return
    for k in range(values.shape[1]):
        panel.plot(time, values[:, k], color=SERIES[k % len(SERIES)], lw=1.0)
    panel.set(xlabel="time, s", ylabel=unit or "-", xlim=(time[0], time[-1]))
    panel.margins(y=0.15)
