"""Figures of the robots that connections move: curvature with their gait, and where it leads."""

from __future__ import annotations

from pathlib import Path

from rtmms.locomotion.connections import Connection
from rtmms.locomotion.gait_words import gait_path
from rtmms.locomotion.optimise import Best
from rtmms.locomotion.paths import Path as Gait
from rtmms.locomotion.reconstruction import reconstruct
from rtmms.report.gait_figure import draw as gait_figures
from rtmms.robots.shape_gaits import CENTRED, GAITS


def draw(found: dict[str, Connection], best: Best, out: Path) -> list[Path]:
    """Two for each robot."""
    gaits: dict[str, tuple[str, Gait]] = {
        "cat": ("a cat turns over: one circle of its waist", gait_path("righting", 2, GAITS["cat"])),
        "satellite": ("a satellite: two wheels by 10 rad, and back", gait_path("rectangle", 2, GAITS["satellite"])),
        "fluid_swimmer": ("three ellipses in a perfect fluid", gait_path("stroke", 2, GAITS["fluid_swimmer"])),
        "purcell": ("Purcell's swimmer: the best stroke about the straight shape", CENTRED),
        "purcell-best": ("Purcell's swimmer: the best stroke found", best.path),
    }  # fmt: skip
    made: list[Path] = []
    for name, (title, path) in gaits.items():
        one = found[name.removesuffix("-best")]
        made += gait_figures(one, path, reconstruct(one, path), title, out, f"boyer2015-{name}")
    return made
