"""Boyer and Porez (2015): the paper's statements about locomotion, section by section, beside our results."""

from __future__ import annotations

import math
from pathlib import Path

from rtmms.locomotion.connections import Connection
from rtmms.locomotion.optimise import Best
from rtmms.locomotion.paths import Path as Gait
from rtmms.locomotion.paths import gait_path
from rtmms.locomotion.reconstruction import reconstruct
from rtmms.robots.shape_gaits import CENTRED, GAITS
from rtmms.studies import boyer2015_runs as runs
from rtmms.studies import boyer2015_wheels as wheels
from rtmms.studies import boyer2017_fish as fish
from rtmms.studies import boyer2017_wings as wings
from rtmms.studies.boyer2015_claims import CLAIMS
from rtmms.view.gait_figure import draw as gait_figures
from rtmms.view.tables import print_rows
from rtmms.view.verdict import PICTURE, Row, rows_of

MISSING = (
    "figure 10 draws a beam's frames, figure 11 a flowchart; figure 12 shows pictures of runs of other papers, without "
    "their numbers or parameters: a dead fish and hovering flight stand for it here"
)


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Run all parts, draw their figures, and print the numbers.

    The status is 1 if a necessary result does not hold.

    Parameters
    ----------
    out : Path | None, optional
        Folder of figures; None: no figures.
    as_json : bool, default False
        Print JSON.

    Returns
    -------
    int
        Exit status.
    """
    rows: list[Row] = []
    figures: list[Path] = []
    for part in (connections, wheels.part, soft):
        more, drawn = part(out)
        rows += more
        figures += drawn
    return print_rows("boyer2015", rows, figures, as_json, out)


def connections(out: Path | None) -> tuple[list[Row], list[Path]]:
    """Compute sections 4 to 6 without wheels: cat, satellite, Purcell's swimmer, three ellipses in a perfect fluid.

    Parameters
    ----------
    out : Path | None
        Folder of figures; None: no figures.

    Returns
    -------
    tuple[list[Row], list[Path]]
        Rows of the table, and files of the figures.
    """
    result = runs.connections()
    best = runs.best_stroke(result["purcell"])
    rows = rows_of(CLAIMS, runs.numbers(result, best))
    return rows, _curvatures(result, best, out) if out is not None else []


def soft(out: Path | None) -> tuple[list[Row], list[Path]]:
    """Compute section 9, toward soft systems: the dead fish and hovering flight of figure 12, as in boyer2017.

    Parameters
    ----------
    out : Path | None
        Folder of figures; None: no figures.

    Returns
    -------
    tuple[list[Row], list[Path]]
        Rows of the table, and files of the figures.
    """
    rows, drawn = fish.part(out, "boyer2015")
    more, stroke = wings.part(out, "boyer2015")
    missing = Row("figures 10 to 12", math.nan, "pictures", where="9", remarks=(MISSING,), shown="-", unjudged=PICTURE)
    return [*rows, *more, missing], [*drawn, *stroke]


def _curvatures(by_robot: dict[str, Connection], best: Best, out: Path) -> list[Path]:
    """Draw two figures for each robot: curvature with its gait, and the gait's net motion."""
    gaits: dict[str, tuple[str, Gait]] = {
        "cat": ("a cat turns over: one circle of its waist", gait_path("righting", 2, GAITS["cat"])),
        "satellite": ("a satellite: two wheels by 10 rad, and back", gait_path("rectangle", 2, GAITS["satellite"])),
        "fluid_swimmer": ("three ellipses in a perfect fluid", gait_path("stroke", 2, GAITS["fluid_swimmer"])),
        "purcell": ("Purcell's swimmer: the best stroke about the straight shape", CENTRED),
        "purcell-best": ("Purcell's swimmer: the best stroke found", best.path),
    }  # fmt: skip
    built: list[Path] = []
    for name, (title, path) in gaits.items():
        item = by_robot[name.removesuffix("-best")]
        built += gait_figures(item, path, reconstruct(item, path), title, out, f"boyer2015-{name}")
    return built
