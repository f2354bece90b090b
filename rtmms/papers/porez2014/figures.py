"""Figures 5 to 8 of Porez, Boyer and Belkhiri (2014) again, from one stroke on the periodic orbit of each reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.dynamics import body_poses
from rtmms.model import Blade, Model, State
from rtmms.report.beside import canvas, save
from rtmms.spatial import Array

SNAPSHOTS = 10
VIEWS = (("sagittal: n and a", 1, 2), ("coronal: s and a", 0, 2))


@dataclass(frozen=True)
class Stroke:
    """One period on the periodic orbit, 400 samples: stroke, tip bending with stroke, tip twist (rad), torque (N m),
    power (W) of the right wing; moved (400, 3): the thorax along n and a (m, less the period's travel) and its pitch
    (rad); velocity (400, 3) and angular velocity of the thorax; force of the air (400, 3) N, world; the state vector at
    the period's start; model and states."""

    time: Array
    stroke: Array
    bend: Array
    twist: Array
    torque: Array
    power: Array
    moved: Array
    velocity: Array
    spin: Array
    air: Array
    vector: Array = field(repr=False)
    model: Model = field(repr=False)
    states: list[State] = field(repr=False)


def draw(strokes: dict[str, Stroke], out: Path) -> list[Path]:
    """Figures 6 to 8, every reading in the same axes, and figure 5 of the reading that is the default."""
    figure, axes = canvas(2, 1, (7.0, 6.0))
    figure7, axes7 = canvas(3, 1, (7.0, 8.0))
    figure8, axes8 = canvas(2, 1, (7.0, 6.0))
    for name, s in strokes.items():
        t = s.time / s.time[-1]
        line = axes[0].plot(t, s.velocity[:, 1], label=f"{name}: n")[0]
        axes[0].plot(t, s.velocity[:, 2], "--", color=line.get_color())
        axes[1].plot(t, s.spin[:, 0], label=name)
        axes7[0].plot(t, np.degrees(s.bend), label=name)
        axes7[1].plot(t, np.degrees(s.twist))
        axes7[2].plot(t, 1e3 * s.torque)
        axes8[0].plot(t, s.air[:, 1], label=name)
        axes8[1].plot(t, s.air[:, 2])
    axes[0].set(ylabel="m/s, body (dashed: a)", title="Fig. 6: linear and angular velocity of the thorax")
    axes[1].set(xlabel="t / T", ylabel="rad/s about s")
    axes7[0].plot(t, np.degrees(s.stroke), "k:", label="stroke")
    axes7[0].set(ylabel="stroke and bending (deg)", title="Fig. 7: the right wing's tip, and its stroke torque")
    axes7[1].set(ylabel="twist (deg)")
    axes7[2].set(xlabel="t / T", ylabel="torque (mN m)")
    axes8[0].set(ylabel="along n (N)", title="Fig. 8: force of the air on the robot, world")
    axes8[1].axhline(-s.model.mass * float(s.model.gravity[2]), color="k", linestyle=":", linewidth=0.8)
    axes8[1].set(xlabel="t / T", ylabel="along a (N; dotted: weight)")
    for panel in (axes[0], axes7[0], axes8[0]):
        panel.legend()
    shown = strokes.get("rho pi c^2 / 4", s)
    return [
        save(_snapshots(shown), out, "porez2014-fig05"),
        save(figure, out, "porez2014-fig06"),
        save(figure7, out, "porez2014-fig07"),
        save(figure8, out, "porez2014-fig08"),
    ]


def _snapshots(s: Stroke) -> Any:
    """Figure 5: blades and thorax at ten instants, in two views."""
    figure, axes = canvas(2, SNAPSHOTS, (15.0, 4.0))
    blades = {s.model.body_names[k]: k for k in range(len(s.model.body_names)) if "blade" in s.model.body_names[k]}
    chords = [element for _, element in s.model.elements if isinstance(element, Blade)]
    for k in range(SNAPSHOTS):
        rotation, position = body_poses(s.model, s.states[k * len(s.states) // SNAPSHOTS])
        for row, (title, a, b) in enumerate(VIEWS):
            panel = axes[row, k]
            for (name, body), blade in zip(blades.items(), chords, strict=True):
                l, c = blade.length, blade.chord
                outline = np.array([[0, 0, 0], [l, 0, 0], [l, 0, -c], [0, 0, -c], [0, 0, 0]], dtype=float)
                points = 1e3 * (position[body] + outline @ rotation[body].T)
                panel.plot(points[:, a], points[:, b], "C0" if name.startswith("right") else "C1", linewidth=0.8)
            spine = 1e3 * (position[0] + np.array([[0, 0, -0.028], [0, 0, 0.028]]) @ rotation[0].T)
            panel.plot(spine[:, a], spine[:, b], "k", linewidth=2.0)
            panel.set(xlim=(-80, 80), ylim=(-45, 45), aspect="equal", xticks=[], yticks=[])
            if k == 0:
                panel.set(ylabel=title)
            if row == 0:
                panel.set(title=f"{k / SNAPSHOTS:g} T")
    figure.suptitle("Fig. 5: one stroke (right wing blue, left orange; 160 mm across)")
    return figure
