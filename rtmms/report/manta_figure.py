"""One page on a run of the manta: where it went, how its fins moved, and how the loop kept its time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.report.cycles import last_period, up_crossings
from rtmms.report.fin_panels import chord_wave, film, span_profile, span_wave
from rtmms.report.fin_shape import LEFT, RIGHT, fin_points
from rtmms.report.robot_panels import spread
from rtmms.report.style import BLUE, CORAL, INK, MUTED, ORDERED, TEAL, figure, save, say, styled
from rtmms.report.timing_panels import timing_panels
from rtmms.robots.manta.summary import BACK
from rtmms.spatial import heading

if TYPE_CHECKING:
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import Recent, Trace
    from rtmms.robots.manta import Manta

Array = npt.NDArray[np.float64]

WIDTH, HEIGHT = 16.0, 12.2
TALLER = 2.0
ROUND = 0.4
FRAMES = 6
OUTLINES = 9


def draw(path: Path, plant: Manta, trace: Trace, recent: Recent, statistics: Statistics) -> None:
    """Write the page to `path`, in the format of its ending; RtmmsError if that cannot be done.

    A run of any length will do, none at all included: a panel without its data says what is missing.
    """
    time, kept = trace.read()
    late, last = recent.read()
    period = last_period(late, last["rod_angle"][:, BACK]) if len(late) else None
    with styled():
        extent = np.ptp(kept["position"][:, :2], axis=0) if len(time) else np.zeros(2)
        taller = TALLER if extent[1] > ROUND * max(extent[0], 2.0) else 0.0  # a path that turns gets the room
        high = HEIGHT + taller
        page = figure(WIDTH, high)
        _title(page, plant, time, kept, statistics)
        rows = page.add_gridspec(
            4, 1, left=0.05, right=0.975, top=1.0 - 1.28 / high, bottom=0.61 / high, hspace=0.42 * HEIGHT / high,
            height_ratios=(2.5 + 0.9 * taller, 1.9, 2.5, 1.6),
        )  # fmt: skip
        top = rows[0].subgridspec(1, 2, wspace=0.14, width_ratios=(1.2 if taller else 1.9, 1.0))
        _path(page.add_subplot(top[0]), plant, time, kept)
        _speed(page.add_subplot(top[1]), plant, time, kept)
        film(page, rows[1], plant, late, last, period, FRAMES)
        third = rows[2].subgridspec(1, 3, wspace=0.2)
        span_profile(page.add_subplot(third[0]), plant, late, last, period)
        span_wave(page.add_subplot(third[1]), late, last, period)
        chord_wave(page.add_subplot(third[2]), plant, late, last, period)
        fourth = rows[3].subgridspec(1, 4, wspace=0.2)
        timing_panels([page.add_subplot(fourth[k]) for k in range(4)], statistics)
        save(page, path)


def _title(page: Any, plant: Manta, time: Array, kept: Mapping[str, Array], statistics: Statistics) -> None:
    summary = plant.summarise(time, kept)
    held = plant.parameters.body == "fixed"
    facts = []
    if summary["mean_speed_m_s"] is not None and not held:
        facts.append(f"{round(summary['mean_speed_m_s'], 3) + 0.0:.3f} m/s")
    if summary["mean_thrust_n"] is not None and held:
        facts.append(f"{round(summary['mean_thrust_n'], 2) + 0.0:.2f} N of thrust")
    if summary["mean_power_w"] is not None:
        facts.append(f"{summary['mean_power_w']:.2f} W")
    facts.append(f"{statistics.misses:,} misses")
    high = page.get_figheight()
    page.text(0.05, 1.0 - 0.46 / high, "Robotic manta", fontsize=21, fontweight="bold", color=INK, va="center")
    page.text(0.975, 1.0 - 0.46 / high, "   |   ".join(facts), fontsize=16, color=BLUE, va="center", ha="right")
    counts = statistics.counters()
    p = plant.parameters
    words = [
        f"{counts['steps'] * plant.dt:.4g} s simulated in {counts['steps']:,} steps of {plant.dt * 1e3:g} ms",
        f"chains x links a fin: {p.chains} x {p.links}",
        f"coupling {plant.coupling}",
        f"body {p.body}",
        f"{counts['overruns']:,} overruns",
    ]
    for name, label, form in (("cost_of_transport", "cost of transport", ".3f"), ("strouhal", "Strouhal", ".2f")):
        if summary[name] is not None:
            words.append(f"{label} {summary[name]:{form}}")
    turn = summary["turn_rate_deg_s"]
    if turn is not None and abs(turn) > 0.1:
        words.append(f"turning {turn:+.1f} deg/s, radius {summary['turn_radius_m'] or 0.0:.2f} m")
    page.text(0.05, 1.0 - 0.81 / high, "   ·   ".join(words), fontsize=10, color=MUTED, va="center")


# --- path -------------------------------------------------------------------------------------------------------------


def _path(panel: Any, plant: Manta, time: Array, kept: Mapping[str, Array]) -> None:
    """The plan view, coloured by time, with the manta's own outline as heading ticks."""
    import matplotlib
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    panel.set_title("Path, seen from above")
    if plant.parameters.body == "fixed":
        say(panel, "the body is held: it goes nowhere")
        return
    if len(time) < 2:
        say(panel, "no steps")
        return
    position, yaw = kept["position"], heading(kept["quaternion"])
    x, y = position[:, 0], position[:, 1]
    reach = max(float(np.ptp(x)), float(np.ptp(y)))
    scale = max(1.0, 0.045 * reach)
    chart = matplotlib.colormaps[ORDERED]
    colour = Normalize(time[0], time[-1] + 1e-9)
    points = np.stack([x, y], axis=1)[:: max(1, len(x) // 4000)]
    shades = chart(0.9 * colour(time[:: max(1, len(x) // 4000)]))
    outline = _outline(plant) * scale
    # times stand beside the outlines, outside of a turn
    away = (1.06 if yaw[-1] - yaw[0] < -0.5 else -1.0) * scale
    for k in spread(x, y, OUTLINES, least=1.4 * scale):
        c, s = np.cos(yaw[k]), np.sin(yaw[k])
        corners = outline @ np.array([[c, s], [-s, c]]) + (x[k], y[k])
        shade = chart(0.9 * colour(time[k]))
        panel.fill(*corners.T, facecolor=(*shade[:3], 0.16), edgecolor=(*shade[:3], 0.75), lw=0.9)
        nose = np.array([(x[k], y[k]), (x[k] + 0.5 * scale * c, y[k] + 0.5 * scale * s)])
        panel.plot(*nose.T, color=shade, lw=1.4, solid_capstyle="round")
        panel.text(
            x[k] - away * s, y[k] + away * c, f"{time[k]:.3g} s", fontsize=7.5, color=MUTED, ha="center", va="center"
        )
    panel.add_collection(LineCollection(list(np.stack([points[:-1], points[1:]], axis=1)), colors=shades[:-1], lw=2.0))
    panel.set(xlabel="x, m", ylabel="y, m")
    _frame_equal(panel, x, y, 1.25 * scale)
    size = "to scale" if scale == 1.0 else f"drawn {scale:.1f} x its size"
    rise = position[-1, 2] - position[0, 2]
    turned = round(float(np.degrees(yaw[-1] - yaw[0])), 1) + 0.0
    panel.text(
        0.995, 1.02, f"outlines {size}   ·   height {rise:+.2f} m   ·   heading {turned:+.1f} deg",
        transform=panel.transAxes, ha="right", va="bottom", fontsize=8.5, color=MUTED,
    )  # fmt: skip


def _outline(plant: Manta) -> Array:
    """(k, 2) m, the manta from above, rods and joints at 0: the body's box as an ellipse, and the fins around it."""
    p = plant.parameters
    rest = np.zeros((2, p.links, p.chains))
    left = fin_points(plant, LEFT, np.zeros(4), rest)[:, :, :2]
    right = fin_points(plant, RIGHT, np.zeros(4), rest)[:, :, :2]

    def side(fin: Array) -> Array:
        """Out along the front chain, aft along the free ends, in along the rear chain."""
        return np.concatenate([fin[:, -1], fin[-1, ::-1], fin[::-1, 0]])

    half = np.linspace(0.0, np.pi, 25)
    ellipse = 0.5 * np.cos(half), 0.34 * np.sin(half)  # a half of the body, from nose to tail
    front, back = left[0, -1, 0], left[0, 0, 0]
    before, behind = ellipse[0] > front, ellipse[0] < back
    flank = np.stack(ellipse, axis=1)
    mirror = np.array([1.0, -1.0])
    outline: Array = np.concatenate(
        [flank[before], side(left), flank[behind], (flank[behind] * mirror)[::-1], side(right)[::-1],
         (flank[before] * mirror)[::-1]]
    )  # fmt: skip
    return outline


def _frame_equal(panel: Any, x: Array, y: Array, margin: float) -> None:
    """Equal scales on both axes that fill the panel: the limits widen where the path is narrow."""
    box, page = panel.get_position(), panel.get_figure()
    width, height = box.width * page.get_figwidth(), box.height * page.get_figheight()
    half_x, half_y = 0.5 * np.ptp(x) + margin, 0.5 * np.ptp(y) + margin
    unit = max(half_x / width, half_y / height)
    middle_x, middle_y = 0.5 * (x.max() + x.min()), 0.5 * (y.max() + y.min())
    panel.set_xlim(middle_x - unit * width, middle_x + unit * width)
    panel.set_ylim(middle_y - unit * height, middle_y + unit * height)
    panel.set_aspect("equal", adjustable="box")


# --- speed ------------------------------------------------------------------------------------------------------------


def _speed(panel: Any, plant: Manta, time: Array, kept: Mapping[str, Array]) -> None:
    """Forward speed and its mean over a period; thrust where the body is held."""
    held = plant.parameters.body == "fixed"
    panel.set_title("Thrust over time" if held else "Speed over time")
    if len(time) < 2:
        say(panel, "no steps")
        return
    values = kept["thrust"][:, :, 0].sum(axis=1) if held else kept["velocity"][:, 0]
    colour, label = (TEAL, "of both fins") if held else (BLUE, "forward")
    panel.plot(time, values, color=colour, lw=0.9, alpha=0.75, label=label)
    crossings = up_crossings(time, kept["rod_angle"][:, BACK])
    if len(crossings) > 2:
        middle, mean = _period_means(time, values, crossings)
        panel.plot(middle, mean, color=CORAL, lw=2.0, label="mean of each period")
    panel.axhline(0.0, color=MUTED, lw=0.7)
    panel.set(xlabel="time, s", ylabel="N" if held else "m/s", xlim=(time[0], time[-1]))
    panel.margins(y=0.2)
    panel.legend(loc="lower right", ncols=2)


def _period_means(time: Array, values: Array, crossings: Array) -> tuple[Array, Array]:
    """(middle s, mean) of each period between two up-crossings."""
    area = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(time))])
    mean = np.diff(np.interp(crossings, time, area)) / np.diff(crossings)
    return 0.5 * (crossings[1:] + crossings[:-1]), mean
