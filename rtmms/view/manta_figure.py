"""The figure of a manta's run, its panels of the fins, and the tables of its documentation page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.colors import Normalize

import rtmms.plant.loading
from rtmms.base.spatial import heading
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.manta.plant import BACK
from rtmms.robots.manta.rods import POINT, ROTATION, SUPPORT_SIZE, support_motion
from rtmms.view.cycles import Period, at, fundamental, lags_deg, last_period, up_crossings
from rtmms.view.parameter_table import parameters_table, table
from rtmms.view.robot_panels import along_path, fill_panel, mark_surface, of_period, strip
from rtmms.view.run_figure import timing_panels
from rtmms.view.style import (
    BLUE,
    CORAL,
    CYCLE,
    INK,
    MUTED,
    ORDERED,
    TEAL,
    colours,
    figure,
    project_style,
    save,
    subscript,
    write_note,
)

if TYPE_CHECKING:
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import Recent, Trace
    from rtmms.robots.manta import Manta
    from rtmms.view.robot_panels import RobotOutline


Array = npt.NDArray[np.float64]


# Where a manta's fins are, from rod and joint angles: for figures, in plain numpy.


LEFT = 0
RIGHT = 1
_support: Any = getattr(support_motion, "py_func", support_motion)  # a figure is no reason to compile


def fin_points(plant: Manta, fin: int, rods: Array, joints: Array) -> Array:
    """Compute the positions of a fin's joints from rod and joint angles.

    Parameters
    ----------
    plant : Manta
        The manta.
    fin : int
        LEFT or RIGHT.
    rods : Array
        Rod angles in the order of the plant's actuators, shape (4,), rad.
    joints : Array
        Joint angles of both fins, shape (2, m, n), rad.

    Returns
    -------
    Array
        Joints of every chain from root to free end, chains from back to front rod; shape (m + 1, n, 3), m, body frame.
    """
    finned, length = plant.model.finned, plant.model.links[0]
    support, zero = np.zeros(SUPPORT_SIZE), np.zeros(2)
    alpha = np.asarray(rods[2 * fin : 2 * fin + 2], dtype=np.float64)
    _support(finned.support_length, finned.r_front, finned.r_back, finned.roll, alpha, zero, zero, support, 0)
    m, n = length.shape
    angle = np.cumsum(joints[fin], axis=0)
    local = np.zeros((m + 1, n, 3))
    local[:, :, 0] = plant.model.station
    local[1:, :, 1] = np.cumsum(length * np.cos(angle), axis=0)
    local[1:, :, 2] = np.cumsum(length * np.sin(angle), axis=0)
    rotation = support[ROTATION : ROTATION + 9].reshape(3, 3)
    points: Array = finned.root + support[POINT : POINT + 3] + local @ rotation.T
    if fin == RIGHT:
        points[:, :, 1] *= -1.0
    return points


# Panels on how a manta's fins move: its rear edge over a period, and the waves along span and chord.


STROBES = 16
CHORDS = 4
_SHORT = "less than one flapping period\nin the last seconds of the run"


def span_profile(panel: Any, plant: Manta, time: Array, stored: Mapping[str, Array], period: Period | None) -> None:
    """Draw the rearmost chain of the left fin with its rod, from behind, through one period.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    plant : Manta
        The manta.
    time : Array
        Times of the last samples, shape (k,), s.
    stored : Mapping[str, Array]
        Samples by output.
    period : Period | None
        Last whole flapping period; with None the panel has a note instead.
    """
    panel.set_title("Rear edge of the left fin, from behind")
    if period is None:
        write_note(panel, _SHORT if len(time) else "no steps")
        return
    root = np.asarray(plant.parameters.fin_root_m)
    for k in range(STROBES):
        share = k / STROBES
        instant = period.start + share * period.seconds
        rods, joints = at(time, stored["rod_angle"], instant), at(time, stored["joint_position"], instant)
        chain = fin_points(plant, LEFT, rods, joints)[:, 0]
        # the rod, thin, then the links
        panel.plot((root[1], chain[0, 1]), (root[2], chain[0, 2]), color=MUTED, lw=0.6, alpha=0.6)
        panel.plot(chain[:, 1], chain[:, 2], color=CYCLE(share), lw=1.7, marker="o", ms=2.6)
    tips = []
    for instant in np.linspace(period.start, period.end, 120):
        rods, joints = at(time, stored["rod_angle"], instant), at(time, stored["joint_position"], instant)
        tips.append(fin_points(plant, LEFT, rods, joints)[-1, 0])
    panel.plot(*np.array(tips)[:, 1:].T, color=INK, lw=0.8, ls=":")
    panel.set(xlabel="y, m (outward)", ylabel="z, m")
    panel.set_aspect("equal", adjustable="datalim")
    bar = panel.get_figure().colorbar(
        matplotlib.cm.ScalarMappable(Normalize(0, 1), CYCLE), ax=panel, fraction=0.035, pad=0.02, ticks=(0, 0.5, 1)
    )
    bar.outline.set_visible(False)
    bar.ax.set_title("t/T", fontsize=8, fontweight="normal", loc="center", pad=4)


def span_wave(panel: Any, time: Array, stored: Mapping[str, Array], period: Period | None) -> None:
    """Draw the joint angles of the rearmost chain, which show how the bend travels outward.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    time : Array
        Times of the last samples, shape (k,), s.
    stored : Mapping[str, Array]
        Samples by output.
    period : Period | None
        Last whole flapping period, from which the lags are computed.
    """
    panel.set_title("Wave along the span: joints, rearmost chain")
    if len(time) < 2:
        write_note(panel, "no steps")
        return
    joints = stored["joint_position"][:, LEFT, :, 0]
    names = [f"q{subscript(j + 1)}" for j in range(joints.shape[1])]
    note = _lag_note(time, joints, period, "lag from joint to joint")
    _waves(panel, time, joints, names, note)


def chord_wave(panel: Any, plant: Manta, time: Array, stored: Mapping[str, Array], period: Period | None) -> None:
    """Draw the outermost joint angles of chains along the chord, which show how the bend travels aft.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    plant : Manta
        The manta.
    time : Array
        Times of the last samples, shape (k,), s.
    stored : Mapping[str, Array]
        Samples by output.
    period : Period | None
        Last whole flapping period, from which the lag is computed.
    """
    panel.set_title("Wave along the chord: outermost joints")
    if len(time) < 2:
        write_note(panel, "no steps")
        return
    chains = stored["joint_position"].shape[-1]
    chosen = np.unique(np.linspace(0, chains - 1, min(CHORDS, chains)).round().astype(int))[::-1]
    joints = stored["joint_position"][:, LEFT, -1, :][:, chosen]
    names = [f"chain {i + 1}" for i in chosen]
    if chains > 1:
        names[0], names[-1] = f"{names[0]} (front)", f"{names[-1]} (rear)"
    note = _lag_note(time, joints[:, [0, -1]], period, "lag from front to rear") if chains > 1 else ""
    _waves(panel, time, joints, names, note)


def _waves(panel: Any, time: Array, joints: Array, names: list[str], note: str) -> None:
    """Draw angles over time, one colour each, with legend and note above and below the curves."""
    for curve, name, colour in zip(np.degrees(joints).T, names, colours(len(names)), strict=True):
        panel.plot(time, curve, color=colour, label=name)
    low, high = panel.get_ylim()
    panel.set_ylim(low - 0.16 * (high - low), high + 0.16 * (high - low))
    panel.set(xlabel="time, s", ylabel="deg", xlim=(time[0], time[-1]))
    panel.axhline(0.0, color=MUTED, lw=0.7)
    panel.legend(loc="upper center", ncols=min(6, len(names)), handlelength=1.4, columnspacing=1.2)
    panel.text(0.5, 0.02, note, transform=panel.transAxes, ha="center", va="bottom", fontsize=8, color=MUTED)


def _lag_note(time: Array, joints: Array, period: Period | None, what: str) -> str:
    """Return a note of the lags between the fundamentals over the last whole period."""
    if period is None:
        return "less than one flapping period"
    inside = (time >= period.start) & (time <= period.end)
    if inside.sum() < 16 or joints.shape[1] < 2:
        return ""
    amplitude, phase = fundamental(time[inside], joints[inside], 1.0 / period.seconds)
    if np.any(np.degrees(amplitude) < 0.01):
        return ""
    lags = lags_deg(phase)
    if len(lags) > 4:
        return f"{what}: {lags.min():.0f} to {lags.max():.0f} deg"
    return f"{what}: " + ", ".join(f"{lag:.0f}" for lag in lags) + " deg"


# One page on a run of the manta: where it went, how its fins moved, and how the loop kept its time.


WIDTH_IN = 16.0
HEIGHT_IN = 12.2
EXTRA_HEIGHT_IN = 2.0
MAX_STRAIGHT_RATIO = 0.4
FRAMES = 6


def draw(
    path: Path, plant: Manta, trace: Trace, recent: Recent, statistics: Statistics, outlined: RobotOutline | None = None
) -> None:
    """Draw the page on a run of the manta.

    A run of any length is valid, also one without steps: a panel without data has a note instead.

    Parameters
    ----------
    path : Path
        File of the figure; its ending sets the format.
    plant : Manta
        The manta.
    trace : Trace
        Samples of the whole run.
    recent : Recent
        Samples of its last seconds.
    statistics : Statistics
        Times of the steps.
    outlined : RobotOutline | None, optional
        The robot and states along the run to draw it in; None leaves it out.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    time, stored = trace.read()
    late, last = recent.read()
    period = last_period(late, last["rod_angle"][:, BACK]) if len(late) else None
    with project_style():
        extent = np.ptp(stored["position"][:, :2], axis=0) if len(time) else np.zeros(2)
        taller = (
            EXTRA_HEIGHT_IN if extent[1] > MAX_STRAIGHT_RATIO * max(extent[0], 2.0) else 0.0
        )  # a path that turns gets the room
        high = HEIGHT_IN + taller
        page = figure(WIDTH_IN, high)
        _title(page, plant, time, stored, statistics)
        rows = page.add_gridspec(
            4, 1, left=0.05, right=0.975, top=1.0 - 1.28 / high, bottom=0.61 / high, hspace=0.42 * HEIGHT_IN / high,
            height_ratios=(2.5 + 0.9 * taller, 1.9, 2.5, 1.6),
        )  # fmt: skip
        top = rows[0].subgridspec(1, 2, wspace=0.14, width_ratios=(1.2 if taller else 1.9, 1.0))
        _path(page.add_subplot(top[0]), plant, time, stored, outlined)
        _speed(page.add_subplot(top[1]), plant, time, stored)
        _robot(page.add_subplot(rows[1]), late, last, period, outlined)
        third = rows[2].subgridspec(1, 3, wspace=0.2)
        span_profile(page.add_subplot(third[0]), plant, late, last, period)
        span_wave(page.add_subplot(third[1]), late, last, period)
        chord_wave(page.add_subplot(third[2]), plant, late, last, period)
        timing_panels(page, rows[3], statistics)
        save(page, path)


def _title(page: Any, plant: Manta, time: Array, stored: Mapping[str, Array], statistics: Statistics) -> None:
    summary = plant.summarise(time, stored)
    held = plant.parameters.body == "fixed"
    facts = []
    if summary["mean_speed_m_s"] is not None and not held:
        facts.append(f"{round(summary['mean_speed_m_s'], 3) + 0.0:.3f} m/s")
    if summary["mean_thrust_n"] is not None and held:
        facts.append(f"{round(summary['mean_thrust_n'], 2) + 0.0:.2f} N of thrust")
    if summary["mean_power_w"] is not None:
        facts.append(f"{summary['mean_power_w']:.2f} W")
    facts.append(f"{statistics.misses:,} misses")
    if statistics.stale:
        facts.append(f"{statistics.stale:,} stale steps")
    high = page.get_figheight()
    page.text(0.05, 1.0 - 0.46 / high, "Robotic manta", fontsize=21, fontweight="bold", color=INK, va="center")
    page.text(0.975, 1.0 - 0.46 / high, "   |   ".join(facts), fontsize=16, color=BLUE, va="center", ha="right")
    counts = statistics.counters()
    p = plant.parameters
    parts = [
        f"{counts['steps'] * plant.dt:.4g} s simulated in {counts['steps']:,} steps of {plant.dt * 1e3:g} ms",
        f"chains x links a fin: {p.chains} x {p.links}",
        f"coupling {plant.coupling}",
        f"body {p.body}",
        f"{counts['overruns']:,} overruns",
    ]
    for name, label, form in (("cost_of_transport", "cost of transport", ".3f"), ("strouhal", "Strouhal", ".2f")):
        if summary[name] is not None:
            parts.append(f"{label} {summary[name]:{form}}")
    turn = summary["turn_rate_deg_s"]
    if turn is not None and abs(turn) > 0.1:
        parts.append(f"turning {turn:+.1f} deg/s, radius {summary['turn_radius_m'] or 0.0:.2f} m")
    page.text(0.05, 1.0 - 0.81 / high, "   ·   ".join(parts), fontsize=10, color=MUTED, va="center")


# --- path -------------------------------------------------------------------------------------------------------------


def _path(panel: Any, plant: Manta, time: Array, stored: Mapping[str, Array], outlined: RobotOutline | None) -> None:
    """Draw the plan view, coloured by time, with the manta along it."""
    import matplotlib
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    panel.set_title("Path, seen from above")
    if plant.parameters.body == "fixed":
        write_note(panel, "the body is held: it goes nowhere")
        return
    if len(time) < 2:
        write_note(panel, "no steps")
        return
    position, yaw = stored["position"], heading(stored["quaternion"])
    route = position[:, :2]
    points = route[:: max(1, len(route) // 4000)]
    shades = matplotlib.colormaps[ORDERED](
        0.9 * Normalize(time[0], time[-1] + 1e-9)(time[:: max(1, len(route) // 4000)])
    )
    panel.set(xlabel="x, m", ylabel="y, m")
    fill_panel(panel, route.min(axis=0), route.max(axis=0), 0.54)
    size = "" if outlined is None else along_path(panel, outlined, 0, 1, timed=True)
    panel.add_collection(LineCollection(list(np.stack([points[:-1], points[1:]], axis=1)), colors=shades[:-1], lw=2.0))
    mark_surface(panel, plant, position, 0, 1)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(loc="best")
    rise = position[-1, 2] - position[0, 2]
    turned = round(float(np.degrees(yaw[-1] - yaw[0])), 1) + 0.0
    facts = [*([size] if size else []), f"height {rise:+.2f} m", f"heading {turned:+.1f} deg"]
    panel.text(0.995, 1.02, "   ·   ".join(facts), transform=panel.transAxes, ha="right", va="bottom", fontsize=8.5,
               color=MUTED)  # fmt: skip


def _robot(
    panel: Any, late: Array, last: Mapping[str, Array], period: Period | None, outlined: RobotOutline | None
) -> None:
    """Draw the robot over the last flapping period."""
    if outlined is not None and period is not None:
        strip(panel, outlined.outline, of_period(late, last, period), FRAMES)
        return
    panel.set_title("The robot")
    write_note(panel, "less than one flapping period\nin the last seconds of the run" if len(late) else "no steps")


# --- speed ------------------------------------------------------------------------------------------------------------


def _speed(panel: Any, plant: Manta, time: Array, stored: Mapping[str, Array]) -> None:
    """Draw forward speed and its mean over a period, or thrust where the body is held."""
    held = plant.parameters.body == "fixed"
    panel.set_title("Thrust over time" if held else "Speed over time")
    if len(time) < 2:
        write_note(panel, "no steps")
        return
    values = stored["thrust"][:, :, 0].sum(axis=1) if held else stored["velocity"][:, 0]
    colour, label = (TEAL, "of both fins") if held else (BLUE, "forward")
    panel.plot(time, values, color=colour, lw=0.9, alpha=0.75, label=label)
    crossings = up_crossings(time, stored["rod_angle"][:, BACK])
    if len(crossings) > 2:
        middle, mean = _period_means(time, values, crossings)
        panel.plot(middle, mean, color=CORAL, lw=2.0, label="mean of each period")
    panel.axhline(0.0, color=MUTED, lw=0.7)
    panel.set(xlabel="time, s", ylabel="N" if held else "m/s", xlim=(time[0], time[-1]))
    panel.margins(y=0.2)
    panel.legend(loc="lower right", ncols=2)


def _period_means(time: Array, values: Array, crossings: Array) -> tuple[Array, Array]:
    """Return middle in s and mean of each period between two up-crossings."""
    area = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(time))])
    mean = np.diff(np.interp(crossings, time, area)) / np.diff(crossings)
    return 0.5 * (crossings[1:] + crossings[:-1]), mean


# The tables of parameters and outputs in docs/manta.md, which `rtmms bench tables` writes.


MEANINGS = {
    "position": "mass centre of the body",
    "quaternion": "w, x, y, z, body to world",
    "velocity": "of the mass centre, x forward",
    "angular_velocity": "",
    "acceleration": "rate of the components of `velocity`",
    "angular_acceleration": "rate of the components of `angular_velocity`",
    "rod_angle": "left front, left back, right front, right back",
    "rod_rate": "",
    "rod_torque": "what the motors must give, by virtual power",
    "thrust": "[force; moment] of each fin on the body, about its mass centre; left, right",
    "rod_power": "into the rods",
    "drag_power": "lost to drag, of fins and body",
    "damping_power": "lost in the joints",
    "kinetic_energy": "of body and fins",
    "elastic_energy": "of the joints",
    "buoyancy_energy": "of the body's righting moment",
    "interface_passes": "of the last step, coupling `iterated`",
    "interface_residual": "by how much fins and body disagreed on its acceleration in the last step; 0 if `monolithic`",
    "tip": "free end of the rearmost chain of each fin",
    "joint_position": "fin, link from the root, chain from the back rod; 0 straight",
    "joint_velocity": "",
}


def parameter_table() -> str:
    """Return the table of every parameter with default, unit, range, meaning and source.

    Returns
    -------
    str
        Table in Markdown.
    """
    return parameters_table(MantaParameters)


def output_table() -> str:
    """Return the table of every output with unit, shape, frame and meaning.

    Returns
    -------
    str
        Table in Markdown.
    """
    lines = []
    for channel in rtmms.plant.loading.load("manta").outputs:
        shape = " x ".join(str(size) for size in channel.shape)
        lines.append((f"`{channel.name}`", channel.unit, shape, channel.frame, MEANINGS[channel.name]))
    return table(("output", "unit", "shape", "frame", ""), lines)
