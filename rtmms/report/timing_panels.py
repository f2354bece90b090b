"""How a run kept its time: one histogram for each part of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.contract import PARTS
from rtmms.loop.statistics import Statistics
from rtmms.report.style import BLUE, CORAL, INK, MUTED, PAPER, SAND, TEAL, say

_TITLES = {
    "wake": "Wake: start after its instant",
    "exchange": "Exchange: state out, command in",
    "plant": "Plant: the step itself",
    "slack": "Slack: left of the period",
}
_COLOURS = {"wake": SAND, "exchange": BLUE, "plant": TEAL, "slack": MUTED}
_BINS = 60
_NARROWEST = 4.0


def timing_panels(axes: list[Any], statistics: Statistics) -> None:
    """Histograms of wake, exchange, plant and slack into four axes; log scales, quantiles and deadline marked."""
    for panel, part in zip(axes, PARTS, strict=True):
        panel.set_title(_TITLES[part])
        values, counts = statistics.histogram(part)
        if counts.sum() == 0:
            say(panel, f"no {part} in this mode" if statistics.steps else "no steps")
            continue
        deadline = statistics.deadline_us if part == "exchange" else None
        _histogram(panel, values, counts, _COLOURS[part])
        marks = {name: statistics.timing_us()[part][name] for name in ("p50", "p99", "p999", "max")}
        text = "   ".join(f"{label} {_short(marks[name])}" for name, label in
                          (("p50", "median"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max")))  # fmt: skip
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
    """Steps over time in us, both on log scales; a zero slack (an overrun) stands at the left end."""
    floor = 0.1
    shown = np.maximum(values, floor)
    low, high = shown.min(), shown.max()
    middle, span = np.sqrt(low * high), max(high / low, _NARROWEST)
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
    """Minor ticks at 2 and 5 alone."""
    lead = value / 10 ** np.floor(np.log10(value) + 1e-9)
    return f"{value:g}" if min(abs(lead - 2.0), abs(lead - 5.0)) < 1e-6 else ""


def _none(value: float, position: int | None = None) -> str:
    return ""
