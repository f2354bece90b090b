"""Which figure a run of a robot gets: the plant's own, ours for a robot that we know, or none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

FIGURES = {"manta": "rtmms.report.manta_figure"}
"""Modules with draw(path, plant, trace, recent, statistics), by robot."""


def drawing(robot: str, plant: Any) -> Callable[..., None] | None:
    """figure(path, trace, recent, statistics) for this plant, or None; matplotlib loads when it is called."""
    if hasattr(plant, "figure"):
        own: Callable[..., None] = plant.figure
        return own
    return partial(_draw, FIGURES[robot], plant) if robot in FIGURES else None


def _draw(module: str, plant: Any, path: Any, trace: Any, recent: Any, statistics: Any) -> None:
    import_module(module).draw(path, plant, trace, recent, statistics)
