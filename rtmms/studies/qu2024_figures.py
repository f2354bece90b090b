"""Figures 7 to 11 of Qu 2024 from our runs, and two of our own: the coupling's error and what each reading changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.view.style import (
    BLUE,
    CORAL,
    INK,
    MUTED,
    SERIES,
    TEAL,
    colours,
    figure,
    figure_file,
    project_style,
    save,
    subscript,
)

Results = Mapping[str, Any]

ANIMALS_M_S = (0.25, 0.47)
ROBOTS_M_S = (0.51, 0.70)
WRENCH = ("Fx, N", "Fy, N", "Fz, N", "Mx, N m", "My, N m", "Mz, N m")


def draw_all(result: Results, folder: Path) -> Iterator[Path]:
    """Write one file for each figure into a folder.

    Parameters
    ----------
    result : Results
        Result of rtmms.studies.qu2024.compute.
    folder : Path
        The folder.

    Yields
    ------
    Path
        Files.
    """
    pages: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "fig07_waves": (waves, result["fig7"]),
        "fig08_thrust": (thrust, result["fig8"]),
        "fig09_speed": (speed, result["fig9"]),
        "fig10_paths": (paths, result["fig10_11"]),
        "fig11_wrench": (wrench, result["fig10_11"]),
        "coupling_error": (coupling, result["coupling"]),
        "readings": (readings, result["readings"]),
    }
    for name, (paint, data) in pages.items():
        with project_style():
            page = paint(data)
            save(page, figure_file(folder, name))
        yield figure_file(folder, name)


def _titled(page: Any, text: str) -> None:
    page.suptitle(text, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK)


def waves(result: Results) -> Any:
    """Draw figure 7: waves in the fin.

    Parameters
    ----------
    result : Results
        Data of the figure.

    Returns
    -------
    : Figure
        The page.
    """
    page = figure(12.0, 4.4)
    left, right = page.subplots(1, 2, gridspec_kw={
        "left": 0.06, "right": 0.985, "top": 0.84, "bottom": 0.12, "wspace": 0.16,
    })  # fmt: skip
    gait = result["gait"]
    _titled(page, f"Fig. 7: waves in the fin, body held  ({gait['frequency_hz']:g} Hz, amplitude "
                  f"{gait['left_amplitude_deg']:g} deg, phase {gait['left_phase_deg']:g} deg)")  # fmt: skip
    cycles = result["time_s"] * gait["frequency_hz"]
    shades = colours(result["rear_deg"].shape[1])
    for j, colour in enumerate(shades):
        left.plot(cycles, result["front_deg"][:, j], color=colour, ls="--", label=f"q{subscript(j + 1)} front chain")
        left.plot(cycles, result["rear_deg"][:, j], color=colour, label=f"q{subscript(j + 1)} rear chain")
        right.plot(cycles, result["rear_deg"][:, j], color=colour, label=f"q{subscript(j + 1)}")
    lags = ", ".join(f"{lag:.1f}" for lag in result["chord_lag_deg"])
    left.set_title(f"Along the chord: rear after front by {lags} deg")
    lags = ", ".join(f"{lag:.1f}" for lag in result["rear_lag_deg"])
    right.set_title(f"Along the span, rear chain: joint after joint by {lags} deg")
    for panel in (left, right):
        low, high = panel.get_ylim()
        panel.set(xlabel="t/T", ylabel="joint angle, deg", xlim=(0, cycles[-1]), ylim=(low, high + 0.3 * (high - low)))
        panel.legend(loc="upper center", ncols=3)
    return page


def thrust(result: Results) -> Any:
    """Draw figure 8: mean thrust.

    Parameters
    ----------
    result : Results
        Data of the figure.

    Returns
    -------
    : Figure
        The page.
    """
    page = figure(12.0, 4.4)
    left, right = page.subplots(1, 2, gridspec_kw={
        "left": 0.06, "right": 0.985, "top": 0.84, "bottom": 0.12, "wspace": 0.16,
    })  # fmt: skip
    _titled(page, "Fig. 8: mean thrust of both fins, body held")
    for k, frequency in enumerate(result["frequency_hz"]):
        style = {"color": SERIES[k % len(SERIES)], "marker": "o", "ms": 4, "label": f"{frequency:g} Hz"}
        left.plot(result["amplitude_deg"], result["thrust_by_amplitude_n"][k], **style)
        right.plot(result["phase_deg"], result["thrust_by_phase_n"][k], **style)
    left.set_title("Over the amplitude, phase 30 deg")
    left.set(xlabel="amplitude, deg", ylabel="mean thrust, N")
    right.set_title("Over the phase, amplitude 30 deg")
    right.set(xlabel="phase by which the front rod leads, deg", ylabel="mean thrust, N")
    right.axhline(0.0, color=MUTED, lw=0.8)
    for panel in (left, right):
        panel.legend(loc="upper left")
    return page


def speed(result: Results) -> Any:
    """Draw figure 9: speed from rest.

    Parameters
    ----------
    result : Results
        Data of the figure.

    Returns
    -------
    : Figure
        The page.
    """
    page = figure(12.0, 4.8)
    panel = page.subplots(gridspec_kw={"left": 0.06, "right": 0.985, "top": 0.89, "bottom": 0.12})
    _titled(page, "Fig. 9: speed from rest at 0.6 Hz, phase 40 deg")
    panel.axhspan(*ANIMALS_M_S, color=TEAL, alpha=0.10, lw=0)
    time = result["time_s"]
    panel.text(
        time[-1], ANIMALS_M_S[1] - 0.01, "animals while they forage ", ha="right", va="top", color=TEAL, fontsize=8
    )
    for value in ROBOTS_M_S:
        panel.axhline(value, color=MUTED, lw=0.9, ls=":")
        panel.text(time[-1], value, f"another robot {value:g} ", ha="right", va="bottom", color=MUTED, fontsize=8)
    for k, row in enumerate(result["settled"]):
        colour = SERIES[k % len(SERIES)]
        label = f"amplitude {row['amplitude_deg']:g} deg: {row['speed_m_s']:.3f} m/s"
        panel.plot(time, result["speed_m_s"][k], color=colour, lw=1.2, label=label)
        at = row["reaches_95_percent_s"]
        panel.plot(at, 0.95 * row["speed_m_s"], "o", color=colour, ms=6, mec="white")
    panel.plot([], [], "o", color=MUTED, ms=6, mec="white", label="95 % of it reached")
    panel.set(xlabel="time, s", ylabel="speed along body x, m/s", xlim=(0, time[-1]), ylim=(0, None))
    panel.legend(loc="lower right", ncols=1, bbox_to_anchor=(0.86, 0.02))
    return page


_GAITS = {"phase": ("phase 40 and 0 deg", BLUE, "-"), "amplitude": ("amplitude 40 and 20 deg", CORAL, "--")}


def paths(result: Results) -> Any:
    """Draw figure 10: paths of the turns.

    Parameters
    ----------
    result : Results
        Data of the figure.

    Returns
    -------
    : Figure
        The page.
    """
    page = figure(8.4, 7.0)
    panel = page.subplots(gridspec_kw={"left": 0.09, "right": 0.975, "top": 0.925, "bottom": 0.08})
    _titled(page, "Fig. 10: turning at 0.8 Hz, 20 periods from rest, seen from above")
    for name, (label, colour, style) in _GAITS.items():
        item = result[name]
        at = item["position_m"]
        rate, radius = item["turn_rate_deg_s"]["10_to_20"], item["turn_radius_m"]["10_to_20"]
        text = f"{label}: {abs(rate):.1f} deg/s to the {'left' if rate > 0 else 'right'}, radius {radius:.2f} m"
        panel.plot(at[:, 0], at[:, 1], color=colour, ls=style, lw=1.8, label=text)
        each = np.searchsorted(
            item["time_s"], np.arange(0.0, item["time_s"][-1] + 1e-9, 5.0 / item["gait"]["frequency_hz"])
        )
        panel.plot(*at[each.clip(0, len(at) - 1), :2].T, "o", color=colour, ms=5, mec="white")
    panel.plot([], [], "o", color=MUTED, ms=5, mec="white", label="every 5 periods")
    panel.plot(0.0, 0.0, marker=(3, 0, -90), color=INK, ms=12)
    panel.set(xlabel="x, m", ylabel="y, m")
    panel.set_aspect("equal", adjustable="datalim")
    panel.margins(0.1)
    low, high = panel.get_ylim()
    panel.set_ylim(low, high + 0.14 * (high - low))
    panel.legend(loc="upper left")
    return page


def wrench(result: Results) -> Any:
    """Draw figure 11: resultant wrench on the body.

    Parameters
    ----------
    result : Results
        Data of the figure.

    Returns
    -------
    : Figure
        The page.
    """
    page = figure(14.0, 7.0)
    panels = page.subplots(2, 3, sharex=True, gridspec_kw={
        "left": 0.055, "right": 0.985, "top": 0.86, "bottom": 0.08, "wspace": 0.2, "hspace": 0.2,
    })  # fmt: skip
    _titled(page, "Fig. 11: resultant wrench on the body while turning, body frame, about its mass centre")
    for name, (label, colour, style) in _GAITS.items():
        item = result[name]
        cycles = item["time_s"] * item["gait"]["frequency_hz"]
        for k, panel in enumerate(panels.flat):
            panel.plot(cycles, item["resultant_wrench"][:, k], color=colour, ls=style, lw=1.0, label=label)
    for k, panel in enumerate(panels.flat):
        panel.set_title(WRENCH[k])
        panel.axhline(0.0, color=MUTED, lw=0.7)
        panel.set_xlim(0, cycles[-1])
        if k > 2:
            panel.set_xlabel("t/T")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    page.legend(handles, labels, loc="upper right", ncols=2, bbox_to_anchor=(0.985, 0.945), fontsize=9)
    return page


def coupling(result: Results) -> Any:
    """Draw the error of not solving fins and body together, over the step, beside the method's own error.

    Parameters
    ----------
    result : Results
        Data of the figure.

    Returns
    -------
    : Figure
        The page.
    """
    page = figure(8.4, 5.6)
    panel = page.subplots(gridspec_kw={"left": 0.1, "right": 0.975, "top": 0.91, "bottom": 0.11})
    _titled(page, f"Error over the step, {result['simulated_s']:g} s of swimming")
    steps = np.array(result["dt_s"]) * 1e3
    names = {
        "sequential": ("sequential against monolithic", CORAL, "o"),
        "iterated": ("iterated against monolithic", TEAL, "s"),
        "monolithic": (f"monolithic against itself at {result['reference_dt_s'] * 1e3:g} ms", BLUE, "^"),
    }
    for name, (label, colour, marker) in names.items():
        item = result[name]
        text = "rounding and tolerance" if item["order"] is None else f"order {item['order']:.2f}"
        panel.loglog(steps, item["position_m"], marker=marker, color=colour, label=f"{label}: {text}")
    panel.set(xlabel="step, ms", ylabel="greatest difference of position, m")
    panel.set_xticks(steps, [f"{step:g}" for step in steps])
    panel.minorticks_off()
    low, high = panel.get_ylim()
    panel.set_ylim(low, high * (high / low) ** 0.3)
    panel.legend(loc="upper left")
    return page


def readings(result: Any) -> Any:
    """Draw the effect of each other reading, in percent of the default.

    Parameters
    ----------
    result : Any
        Data of the figure.

    Returns
    -------
    : Figure
        The page.
    """
    rows = result[1:][::-1]
    page = figure(12.0, 1.6 + 0.34 * max(1, len(rows)))
    panels = page.subplots(1, 3, sharey=True, gridspec_kw={
        "left": 0.24, "right": 0.975, "top": 1.0 - 0.72 / page.get_figheight(),
        "bottom": 0.5 / page.get_figheight(), "wspace": 0.12,
    })  # fmt: skip
    _titled(page, "What another reading of the paper changes, in percent of the default")
    columns = (
        ("thrust_40_n", "Mean thrust, 40 deg"),
        ("speed_m_s", "Swimming speed"),
        ("turn_rate_deg_s", "Turn rate"),
    )
    for panel, (key, title) in zip(panels, columns, strict=True):
        values = [row["change_percent"][key] for row in rows]
        reach = 100.0
        shown = [0.0 if value is None else float(np.clip(value, -reach, reach)) for value in values]
        panel.barh(range(len(rows)), shown, color=[TEAL if value >= 0 else CORAL for value in shown], height=0.62)
        for k, value in enumerate(values):
            text = "diverged" if value is None else f"{value:+.1f}" if abs(value) >= 0.05 else "0"
            side = 1.0 if shown[k] >= 0 else -1.0
            inside = abs(shown[k]) > 0.75 * reach
            panel.text(
                shown[k] - side * 3 if inside else shown[k] + side * 3, k, text, va="center", fontsize=8,
                ha=("right" if inside else "left") if side > 0 else ("left" if inside else "right"),
                color="white" if inside else INK,
            )  # fmt: skip
        panel.set_title(title)
        panel.set(xlim=(-reach, reach), xticks=(-50, 0, 50), ylim=(-0.7, len(rows) - 0.3))
        panel.axvline(0.0, color=MUTED, lw=0.8)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
    panels[0].set_yticks(range(len(rows)), [row["reading"] for row in rows])
    return page
