"""Figures of gaits: over the shape space, and of a gait search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rtmms.base.spatial import Array
from rtmms.locomotion.connections import Connection
from rtmms.locomotion.paths import Path as Gait
from rtmms.locomotion.reconstruction import Motion
from rtmms.view.style import (
    BLUE,
    CORAL,
    GRID,
    INK,
    MUTED,
    ORDERED,
    TEAL,
    colours,
    figure,
    figure_file,
    project_style,
    save,
    write_note,
)

if TYPE_CHECKING:
    import numpy.typing as npt


# Figures of a gait: curvature and connection over the shape space with the gait in it, and where it leads.


GRID_POINTS = 61
"""Points a side of the height functions."""
ARROWS = 15
"""Points a side of the vector fields."""
PLANAR = ("x", "y", "theta")
SPATIAL = ("rotation x", "rotation y", "rotation z")
DIVERGING = "RdBu_r"


def draw(connection: Connection, gait: Gait, motion: Motion, title: str, out: Path, name: str) -> list[Path]:
    """Draw the figures of a gait.

    They are NAME-motion and, with exactly two shape variables, NAME-curvature.

    Parameters
    ----------
    connection : Connection
        Connection of the mechanism.
    gait : Gait
        The gait.
    motion : Motion
        Motion that the gait makes.
    title : str
        Title of both figures.
    out : Path
        Folder of the files.
    name : str
        NAME of the files, which end as `rtmms.view.style.figure_file` has it.

    Returns
    -------
    list[Path]
        Paths of the written files.

    Raises
    ------
    ModelError
        If a file of another kind would be lost.
    RtmmsError
        If the file cannot be written.
    """
    built = [figure_file(out, f"{name}-motion")]
    draw_motion(motion, connection.model.joint_names, title, built[0])
    if connection.shape_size == 2:
        built.insert(0, figure_file(out, f"{name}-curvature"))
        draw_curvature(connection, gait, title, built[0])
    return built


def draw_curvature(connection: Connection, gait: Gait, title: str, path: Path) -> None:
    """Draw curvature and connection over the shape space, with the gait in them.

    Parameters
    ----------
    connection : Connection
        Connection of a mechanism with two shape variables.
    gait : Gait
        The gait.
    title : str
        Title of the page.
    path : Path
        File of the figure; its ending sets the format.

    Raises
    ------
    RtmmsError
        If the file cannot be written.

    Notes
    -----
    The upper panels show the height functions -F of three components, the lower ones the vector fields of -A. The net
    motion of a small gait is the integral of -F over the enclosed area, with a counter-clockwise sense.
    """
    shapes = gait.sampled(720)
    axes = _axes(shapes, GRID_POINTS)
    height, field = np.full((3, GRID_POINTS, GRID_POINTS), np.nan), np.full((3, 2, ARROWS, ARROWS), np.nan)
    rows = slice(0, 3) if connection.planar else slice(3, 6)
    for i, r1 in enumerate(axes[0]):
        for j, r2 in enumerate(axes[1]):
            height[:, j, i] = -connection.curvature(np.array([r1, r2]))[rows, 0, 1]
    coarse = _axes(shapes, ARROWS)
    for i, r1 in enumerate(coarse[0]):
        for j, r2 in enumerate(coarse[1]):
            field[:, :, j, i] = -connection.at(np.array([r1, r2]))[rows]
    names = PLANAR if connection.planar else SPATIAL
    with project_style():
        page = figure(13.0, 8.4)
        page.text(0.05, 0.955, title, fontsize=16, fontweight="bold", color=INK)
        grid = page.add_gridspec(2, 3, left=0.055, right=0.965, top=0.88, bottom=0.07, hspace=0.34, wspace=0.26)
        for k, name in enumerate(names):
            panel = page.add_subplot(grid[0, k])
            maximum = float(np.nanpercentile(np.abs(height[k]), 98)) or 1.0
            levels = np.linspace(-maximum, maximum, 25)
            shown = panel.contourf(*axes, np.clip(height[k], -maximum, maximum), levels=levels, cmap=DIVERGING)
            panel.contour(*axes, height[k], levels=[0.0], colors=[MUTED], linewidths=0.8)
            page.colorbar(shown, ax=panel, shrink=0.9, ticks=np.linspace(-maximum, maximum, 5), format="%.2g")
            panel.set_title(f"Curvature, {name}")
            _gait(panel, shapes, connection.model.joint_names)
            panel = page.add_subplot(grid[1, k])
            size = np.hypot(*field[k])
            panel.quiver(*coarse, field[k, 0], field[k, 1], size, cmap=ORDERED, pivot="mid", width=0.004)
            panel.set_title(f"Connection -A, {name}")
            _gait(panel, shapes, connection.model.joint_names)
        save(page, path)


def _axes(shapes: Array, count: int) -> tuple[Array, Array]:
    """Return the axes of a square window around the gait, a quarter wider on either side."""
    low, high = shapes.min(axis=0), shapes.max(axis=0)
    middle, half = 0.5 * (low + high), 0.75 * max(float(np.max(high - low)), 1e-3)
    first, second = (np.linspace(middle[k] - half, middle[k] + half, count) for k in range(2))
    return first, second


def _gait(panel: Any, shapes: Array, names: tuple[str, ...]) -> None:
    panel.plot(shapes[:, 0], shapes[:, 1], color=INK, lw=1.8)
    k = len(shapes) // 8
    step = shapes[k + 1] - shapes[k]
    if np.any(step != 0.0):
        head = {"arrowstyle": "-|>", "color": INK, "lw": 1.8}
        panel.annotate("", shapes[k] + step * 1e-3, shapes[k], arrowprops=head)
    panel.set(xlabel=f"{names[0]}, rad", ylabel=f"{names[1]}, rad", aspect="equal")
    panel.grid(False)


def draw_motion(motion: Motion, names: tuple[str, ...], title: str, path: Path) -> None:
    """Draw path or rotation, shape and effort of a motion.

    Parameters
    ----------
    motion : Motion
        The motion. A planar one shows its path, a spatial one its rotation over time.
    names : tuple[str, ...]
        Names of the joints.
    title : str
        Title of the page.
    path : Path
        File of the figure; its ending sets the format.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    with project_style():
        page = figure(13.0, 4.6)
        page.text(0.05, 0.91, title, fontsize=16, fontweight="bold", color=INK)
        grid = page.add_gridspec(1, 3, left=0.06, right=0.975, top=0.78, bottom=0.13, wspace=0.24)
        panel = page.add_subplot(grid[0])
        if motion.planar:
            panel.plot(motion.pose[:, 0], motion.pose[:, 1], color=BLUE)
            panel.plot(*motion.pose[0, :2], "o", color=TEAL, ms=6, label="start")
            panel.plot(*motion.pose[-1, :2], "o", color=CORAL, ms=6, label="end")
            panel.set(xlabel="x, m", ylabel="y, m", title="Path of the base")
            panel.axis("equal")
        else:
            from rtmms.base.spatial import rotation_vector

            turn = np.array([rotation_vector(pose[3:]) for pose in motion.pose])
            for k, colour in enumerate(colours(3)):
                panel.plot(motion.time, turn[:, k], color=colour, label="xyz"[k])
            panel.set(xlabel="t, s", ylabel="rad", title="Rotation vector of the base")
        panel.legend(loc="best")
        panel = page.add_subplot(grid[1])
        if motion.shape.shape[1] <= 12:
            for k, colour in enumerate(colours(motion.shape.shape[1])):
                panel.plot(motion.time, motion.shape[:, k], color=colour, label=names[k])
            panel.legend(loc="best")
        else:
            write_note(panel, f"{motion.shape.shape[1]} shape variables")
        panel.set(xlabel="t, s", ylabel="rad", title="Shape")
        panel = page.add_subplot(grid[2])
        panel.plot(motion.time, motion.effort, color=CORAL)
        panel.set(xlabel="t, s", title=motion.effort_name)
        save(page, path)


# A front between two goals of a gait search, and all that was tried; of one goal, what was tried in its order.


class _GaitValues(Protocol):
    """Values of a gait, like those of rtmms.studies.gait_search.Gait."""

    @property
    def values(self) -> Mapping[str, float]: ...


class _SearchResult(Protocol):
    """Result of a search, like rtmms.studies.gait_search.ParetoFront."""

    @property
    def gaits(self) -> Sequence[_GaitValues]: ...
    @property
    def default_values(self) -> Mapping[str, float] | None: ...
    @property
    def tried(self) -> npt.NDArray[np.float64]: ...


UNITS = {"speed": "m/s", "power": "W"}


def draw_front(front: _SearchResult, goals: Sequence[str], robot: str, path: Path) -> None:
    """Draw the result of a gait search.

    With two goals the figure shows the front, the default gait and all candidates. With one goal it shows the values of
    the candidates in their order.

    Parameters
    ----------
    front : _SearchResult
        Result of the search.
    goals : Sequence[str]
        Names of the one or two goals.
    robot : str
        Name of the robot, for the title.
    path : Path
        File of the figure; its ending sets the format.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    with project_style():
        page = figure(6.5, 4.4)
        axes: Any = page.subplots()
        axes.set_title(f"{robot}: gaits by {' and '.join(_word(goal) for goal in goals)}")
        tried = front.tried
        if len(goals) == 1:
            axes.plot(tried[:, 0], ".", color=MUTED, markersize=3.0)
            axes.set(xlabel="candidate", ylabel=_label(goals[0]))
        else:
            axes.plot(tried[:, 0], tried[:, 1], ".", color=GRID, markersize=4.0, label="tried")
            rows = np.array([[gait.values[goal] for goal in goals] for gait in front.gaits]).reshape(-1, 2)
            axes.plot(rows[:, 0], rows[:, 1], "o-", color=BLUE, markersize=4.0, label="front")
            if front.default_values is not None:
                axes.plot(*[front.default_values[goal] for goal in goals], "s", color=CORAL, label="default gait")
            axes.set(xlabel=_label(goals[0]), ylabel=_label(goals[1]))
            if len(rows):
                top = 1.5 * max(
                    rows[:, 1].max(), front.default_values[goals[1]] if front.default_values is not None else 0.0
                )
                axes.set_ylim(0.0, top)
            axes.legend()
        page.tight_layout()
        save(page, path)


def _word(goal: str) -> str:
    return goal.replace("_", " ")


def _label(goal: str) -> str:
    unit = UNITS.get(goal)
    return _word(goal) + (f", {unit}" if unit else "")
