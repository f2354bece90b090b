"""The choice of a figure for a run.

A robot gets the plant's own figure, ours for a robot with one, a general one, or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import TRUTH
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Plant

if TYPE_CHECKING:
    from rtmms.view.robot_panels import RobotOutline


FIGURES = {"manta": "rtmms.view.manta_figure"}
"""Modules with `draw(path, plant, trace, recent, statistics, outlined)`, by robot."""

GENERAL = "rtmms.view.run_figure"
"""Module for any plant that keeps its position or its velocity."""

OUTPUTS = "rtmms.view.outputs_figure"
"""Module for any other plant: its outputs over time."""

MAX_CURVES = 6


def drawing(robot: str, plant: Plant, outlined: RobotOutline | None = None) -> Callable[..., None] | None:
    """Return the function that draws the figure of a run.

    matplotlib loads at the first call of that function.

    Parameters
    ----------
    robot : str
        Name of the robot.
    plant : Plant
        Plant of the run.
    outlined : RobotOutline | None, optional
        The robot itself, for figures that show it; see `takes_outline`.

    Returns
    -------
    Callable[..., None] | None
        Function of `(path, trace, recent, statistics)`, or None where the plant has no outputs to draw.
    """
    about = describe_plant(plant)
    if about.truth is not None:
        if outlined is not None:
            outlined = replace(outlined, along=_Truth(outlined.along))
        draw = drawing(robot, about.truth, outlined)
        return None if draw is None else partial(_draw_truth, draw)
    if about.figure is not None:
        return about.figure
    if robot in FIGURES:
        return partial(_draw, FIGURES[robot], plant, {"outlined": outlined})
    if _has_position(plant):
        return partial(_draw, GENERAL, plant, {"robot": robot, "outlined": outlined})
    return partial(_draw, OUTPUTS, plant, {"robot": robot}) if small_outputs(plant) else None


def takes_outline(robot: str, plant: Plant) -> bool:
    """Return whether the figure of a plant shows the robot by an outline.

    Parameters
    ----------
    robot : str
        Name of the robot.
    plant : Plant
        Plant of the run.

    Returns
    -------
    bool
        True where `drawing` uses its `outlined`.
    """
    true_plant = describe_plant(plant).truth or plant
    return describe_plant(true_plant).figure is None and (robot in FIGURES or _has_position(true_plant))


class _Truth:
    """Samples of the truth, under its own names."""

    def __init__(self, samples: Any) -> None:
        self._samples = samples

    def read(self) -> tuple[Any, dict[str, Any]]:
        time, values = self._samples.read()
        return time, {name.removeprefix(TRUTH): value for name, value in values.items()}


def _draw_truth(draw: Callable[..., None], path: Any, trace: Any, recent: Any, statistics: Any) -> None:
    draw(path, _Truth(trace), _Truth(recent), statistics)


def small_outputs(plant: Plant) -> tuple[str, ...]:
    """Return the names of the outputs that fit in a panel.

    Parameters
    ----------
    plant : Plant
        The plant.

    Returns
    -------
    tuple[str, ...]
        Names of the outputs with at most MAX_CURVES numbers.
    """
    return tuple(channel.name for channel in plant.outputs if math.prod(channel.shape) <= MAX_CURVES)


def _has_position(plant: Plant) -> bool:
    """Return whether the plant keeps samples of a position or a velocity of shape (3,)."""
    shapes = {channel.name: channel.shape for channel in plant.outputs}
    trace_outputs = describe_plant(plant).trace_outputs
    return any(name in trace_outputs and shapes.get(name) == (3,) for name in ("position", "velocity"))


def _draw(
    module: str, plant: Any, more: dict[str, Any], path: Any, trace: Any, recent: Any, statistics: Any
) -> None:  # fmt: skip
    import_module(module).draw(path, plant, trace, recent, statistics, **more)
