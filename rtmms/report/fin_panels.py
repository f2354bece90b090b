"""Panels on how a manta's fins move: its rear edge over a period, and the waves along span and chord."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.colors import Normalize

from rtmms.report.cycles import Period, at, fundamental, lags_deg
from rtmms.report.fin_shape import LEFT, fin_points
from rtmms.report.style import CYCLE, INK, MUTED, colours, say, subscript

if TYPE_CHECKING:
    from rtmms.robots.manta import Manta

Array = npt.NDArray[np.float64]

STROBES = 16
CHORDS = 4
_SHORT = "less than one flapping period\nin the last seconds of the run"


def span_profile(panel: Any, plant: Manta, time: Array, kept: Mapping[str, Array], period: Period | None) -> None:
    """The rearmost chain of the left fin with its rod, seen from behind, through one period."""
    panel.set_title("Rear edge of the left fin, from behind")
    if period is None:
        say(panel, _SHORT if len(time) else "no steps")
        return
    root = np.asarray(plant.parameters.fin_root_m)
    for k in range(STROBES):
        share = k / STROBES
        instant = period.start + share * period.seconds
        rods, joints = at(time, kept["rod_angle"], instant), at(time, kept["joint_position"], instant)
        chain = fin_points(plant, LEFT, rods, joints)[:, 0]
        # the rod, thin, then the links
        panel.plot((root[1], chain[0, 1]), (root[2], chain[0, 2]), color=MUTED, lw=0.6, alpha=0.6)
        panel.plot(chain[:, 1], chain[:, 2], color=CYCLE(share), lw=1.7, marker="o", ms=2.6)
    tips = []
    for instant in np.linspace(period.start, period.end, 120):
        rods, joints = at(time, kept["rod_angle"], instant), at(time, kept["joint_position"], instant)
        tips.append(fin_points(plant, LEFT, rods, joints)[-1, 0])
    panel.plot(*np.array(tips)[:, 1:].T, color=INK, lw=0.8, ls=":")
    panel.set(xlabel="y, m (outward)", ylabel="z, m")
    panel.set_aspect("equal", adjustable="datalim")
    bar = panel.get_figure().colorbar(
        matplotlib.cm.ScalarMappable(Normalize(0, 1), CYCLE), ax=panel, fraction=0.035, pad=0.02, ticks=(0, 0.5, 1)
    )
    bar.outline.set_visible(False)
    bar.ax.set_title("t/T", fontsize=8, fontweight="normal", loc="center", pad=4)


def span_wave(panel: Any, time: Array, kept: Mapping[str, Array], period: Period | None) -> None:
    """Joint angles of the rearmost chain: how the bend travels outward."""
    panel.set_title("Wave along the span: joints, rearmost chain")
    if len(time) < 2:
        say(panel, "no steps")
        return
    joints = kept["joint_position"][:, LEFT, :, 0]
    names = [f"q{subscript(j + 1)}" for j in range(joints.shape[1])]
    note = _lag_note(time, joints, period, "lag from joint to joint")
    _waves(panel, time, joints, names, note)


def chord_wave(panel: Any, plant: Manta, time: Array, kept: Mapping[str, Array], period: Period | None) -> None:
    """Heights of the chains' free ends relative to the body along the chord: how the bend travels aft."""
    panel.set_title("Wave along the chord: outermost joints")
    if len(time) < 2:
        say(panel, "no steps")
        return
    chains = kept["joint_position"].shape[-1]
    chosen = np.unique(np.linspace(0, chains - 1, min(CHORDS, chains)).round().astype(int))[::-1]
    joints = kept["joint_position"][:, LEFT, -1, :][:, chosen]
    names = [f"chain {i + 1}" for i in chosen]
    if chains > 1:
        names[0], names[-1] = f"{names[0]} (front)", f"{names[-1]} (rear)"
    note = _lag_note(time, joints[:, [0, -1]], period, "lag from front to rear") if chains > 1 else ""
    _waves(panel, time, joints, names, note)


def _waves(panel: Any, time: Array, joints: Array, names: list[str], note: str) -> None:
    """Angles over time, one colour each, legend and note above and below the curves."""
    for curve, name, colour in zip(np.degrees(joints).T, names, colours(len(names)), strict=True):
        panel.plot(time, curve, color=colour, label=name)
    low, high = panel.get_ylim()
    panel.set_ylim(low - 0.16 * (high - low), high + 0.16 * (high - low))
    panel.set(xlabel="time, s", ylabel="deg", xlim=(time[0], time[-1]))
    panel.axhline(0.0, color=MUTED, lw=0.7)
    panel.legend(loc="upper center", ncols=min(6, len(names)), handlelength=1.4, columnspacing=1.2)
    panel.text(0.5, 0.02, note, transform=panel.transAxes, ha="center", va="bottom", fontsize=8, color=MUTED)


def _lag_note(time: Array, joints: Array, period: Period | None, what: str) -> str:
    """The lags of the fundamentals over the last whole period, in words."""
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
