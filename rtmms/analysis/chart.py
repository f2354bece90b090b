"""Coordinates of any plant's state: what a plant offers to be linearised and trimmed."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rtmms.coordinates import displaced, displacement
from rtmms.errors import ModelError
from rtmms.plant import Plant
from rtmms.spatial import Array

__all__ = ["Chart", "Charted", "chart_of", "displaced", "displacement"]


class Chart(Protocol):
    """Coordinates of a plant's state around where the plant stood when the chart was made: all 0 there.

    names  of the coordinates, in order
    size   (k,) what counts as one of each
    """

    names: tuple[str, ...]
    size: Array

    def read(self) -> Array:
        """(k,) of the plant's present state."""

    def write(self, coordinates: Array) -> None:
        """Put the plant into the state of these coordinates; whatever else it keeps stays as it is."""


@runtime_checkable
class Charted(Protocol):
    """A plant that gives coordinates of its state: with `chart` any plant can be linearised and trimmed."""

    def chart(self) -> Chart:
        """Coordinates around the present state."""


def chart_of(plant: Plant) -> Chart:
    """The plant's own chart; ModelError where it has none."""
    if isinstance(plant, Charted):
        return plant.chart()
    raise ModelError(
        f"linearise: a {type(plant).__name__} gives no coordinates of its state; give it a method chart(), or pass one "
        "(rtmms.analysis.chart.Chart: names, size, read, write)"
    )
