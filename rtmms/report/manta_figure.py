"""One page on a run of the manta: where it went, how its fins moved, and how the loop kept its time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.report.cycles import Period, last_period, up_crossings
from rtmms.report.fin_panels import chord_wave, span_profile, span_wave
from rtmms.report.robot_panels import along_path, fill_panel, of_period, strip
from rtmms.report.style import BLUE, CORAL, INK, MUTED, ORDERED, TEAL, figure, save, say, styled
from rtmms.report.timing_panels import timing_panels
from rtmms.robots.manta.summary import BACK
from rtmms.spatial import heading

if TYPE_CHECKING:
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import Recent, Trace
    from rtmms.report.outline import Outlined
    from rtmms.robots.manta import Manta

Array = npt.NDArray[np.float64]

WIDTH, HEIGHT = 16.0, 12.2
TALLER = 2.0
ROUND = 0.4
FRAMES = 6


def draw(
    path: Path, plant: Manta, trace: Trace, recent: Recent, statistics: Statistics, outlined: Outlined | None = None
) -> None:
    """Write the page to `path`, in the format of its ending; RtmmsError if that cannot be done.

    A run of any length will do, none at all included: a panel without its data says what is missing.
    outlined   the robot and states along the run to draw it in; None leaves it out
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
        _path(page.add_subplot(top[0]), plant, time, kept, outlined)
        _speed(page.add_subplot(top[1]), plant, time, kept)
        _robot(page.add_subplot(rows[1]), late, last, period, outlined)
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


def _path(panel: Any, plant: Manta, time: Array, kept: Mapping[str, Array], outlined: Outlined | None) -> None:
    """The plan view, coloured by time, with the manta where it was."""
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
    way = position[:, :2]
    points = way[:: max(1, len(way) // 4000)]
    shades = matplotlib.colormaps[ORDERED](0.9 * Normalize(time[0], time[-1] + 1e-9)(time[:: max(1, len(way) // 4000)]))
    panel.set(xlabel="x, m", ylabel="y, m")
    fill_panel(panel, way.min(axis=0), way.max(axis=0), 0.54)
    size = "" if outlined is None else along_path(panel, outlined, 0, 1, timed=True)
    panel.add_collection(LineCollection(list(np.stack([points[:-1], points[1:]], axis=1)), colors=shades[:-1], lw=2.0))
    rise = position[-1, 2] - position[0, 2]
    turned = round(float(np.degrees(yaw[-1] - yaw[0])), 1) + 0.0
    facts = [*([size] if size else []), f"height {rise:+.2f} m", f"heading {turned:+.1f} deg"]
    panel.text(0.995, 1.02, "   ·   ".join(facts), transform=panel.transAxes, ha="right", va="bottom", fontsize=8.5,
               color=MUTED)  # fmt: skip


def _robot(
    panel: Any, late: Array, last: Mapping[str, Array], period: Period | None, outlined: Outlined | None
) -> None:
    """It over the last flapping period."""
    if outlined is not None and period is not None:
        strip(panel, outlined.outline, of_period(late, last, period), FRAMES)
        return
    panel.set_title("The robot")
    say(panel, "less than one flapping period\nin the last seconds of the run" if len(late) else "no steps")


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
