"""Panels on how a manta's fins move: its shape over a period, and the waves along span and chord."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib
import mpl_toolkits.mplot3d  # noqa: F401  (registers the 3d projection)
import numpy as np
import numpy.typing as npt
from matplotlib.colors import LightSource, Normalize

from rtmms.report.cycles import Period, at, fundamental, lags_deg
from rtmms.report.fin_shape import LEFT, RIGHT, fin_points
from rtmms.report.style import CYCLE, INK, MUTED, colours, say, subscript

if TYPE_CHECKING:
    from rtmms.robots.manta import Manta

Array = npt.NDArray[np.float64]

HEIGHT_MAP = "RdYlBu_r"
STROBES = 16
CHORDS = 4
FINEST = 30
_SHORT = "less than one flapping period\nin the last seconds of the run"


def film(
    page: Any, cell: Any, plant: Manta, time: Array, kept: Mapping[str, Array], period: Period | None, frames: int
) -> None:
    """The whole manta at evenly spaced instants of the last period, fins coloured by their height."""
    title = "Fins over one flapping period"
    if period is None:
        panel = page.add_subplot(cell)
        panel.set_title(title)
        say(panel, _SHORT if len(time) else "no steps")
        return
    instants = period.start + period.seconds * np.arange(frames) / frames
    shapes = []
    for instant in instants:
        rods, joints = at(time, kept["rod_angle"], instant), at(time, kept["joint_position"], instant)
        shapes.append([fin_points(plant, fin, rods, joints) for fin in (LEFT, RIGHT)])
    high = max(0.05, max(float(np.abs(fin[..., 2]).max()) for pair in shapes for fin in pair))
    colour = Normalize(-high, high)
    box = cell.get_position(page)
    title += f" of {period.seconds:.3g} s, seen from behind and above"
    page.text(box.x0, box.y1 + 0.006, title, fontsize=10.5, fontweight="bold", color=INK)
    width = (box.width - 0.04) / frames
    for k, pair in enumerate(shapes):
        # wider than its share: a 3-D view leaves much of its box empty
        panel = page.add_axes(
            (box.x0 + (k - 0.15) * width, box.y0 - 0.035, 1.3 * width, box.height + 0.055), projection="3d"
        )
        _manta(panel, plant, pair, colour)
        page.text(
            box.x0 + (k + 0.5) * width, box.y0 - 0.012, "t = 0" if k == 0 else f"t = {k}/{frames} T",
            ha="center", fontsize=8.5, color=MUTED,
        )  # fmt: skip
    scale = page.add_axes((box.x1 - 0.03, box.y0 + 0.02, 0.006, box.height - 0.035))
    bar = page.colorbar(matplotlib.cm.ScalarMappable(colour, matplotlib.colormaps[HEIGHT_MAP]), cax=scale)
    bar.outline.set_visible(False)
    bar.ax.set_title("z, m", fontsize=8, fontweight="normal", loc="left", pad=4)


def _manta(panel: Any, plant: Manta, fins: list[Array], colour: Normalize) -> None:
    """Body, skin between body and supports, fins."""
    chart = matplotlib.colormaps[HEIGHT_MAP]
    root = np.asarray(plant.parameters.fin_root_m)
    u, v = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 49), np.linspace(np.pi, 0.0, 25))
    body = 0.5 * np.cos(v), 0.34 * np.sin(v) * np.cos(u), 0.12 * np.sin(v) * np.sin(u)
    panel.plot_surface(
        *body, color="#b9c8d6", linewidth=0, antialiased=False, rcount=25, ccount=49, lightsource=LightSource(160, 50)
    )
    for fin, side in zip(fins, (1.0, -1.0), strict=True):
        inner = fin[0].copy()
        inner[:, 1], inner[:, 2] = side * root[1], root[2]
        skin = np.linspace(inner, fin[0], 4)
        for sheet in (skin, fin):
            thin = sheet[:, :: max(1, sheet.shape[1] // FINEST)]
            middle = 0.25 * (thin[:-1, :-1] + thin[1:, :-1] + thin[:-1, 1:] + thin[1:, 1:])
            if middle.size == 0:  # one chain has no face
                panel.plot(*thin[:, 0].T, color=chart(colour(thin[-1, 0, 2])))
                continue
            panel.plot_surface(
                *np.moveaxis(thin, -1, 0), facecolors=chart(colour(middle[..., 2])), linewidth=0.15,
                edgecolor=(0.1, 0.2, 0.3, 0.35), shade=False, rcount=64, ccount=64,
            )  # fmt: skip
    panel.view_init(elev=30, azim=-148)
    reach = 0.82
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-0.5 * reach, 0.5 * reach))
    panel.set_box_aspect((2, 2, 1), zoom=1.55)
    panel.set_axis_off()
    panel.patch.set_alpha(0.0)


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
