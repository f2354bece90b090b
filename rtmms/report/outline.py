"""What a figure is handed to draw a robot with, by whoever knows the robots' shapes, and the states that it draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.contract import TRUTH
from rtmms.loop.trace import Trace
from rtmms.plant import describe_plant

if TYPE_CHECKING:
    from rtmms.plant import Plant

Array = npt.NDArray[np.float64]

ALONG = 256
"""Most states that are kept of a whole run to draw the robot from."""
POSE = ("position", "quaternion")


class Look(NamedTuple):
    """Triangles (k, 3, 3), m, body frame, outwards, and their colour: red, green, blue, 0 to 1."""

    faces: Array
    colour: tuple[float, float, float]


class Surfaces(NamedTuple):
    """A robot in one state, m, body frame: flat faces (k, 3) of skins and of solids, and lines (k, 3); or what it looks
    like instead."""

    skins: list[Array]
    solids: list[Array]
    lines: list[Array]
    looks: Sequence[Look] = ()

    def points(self) -> Array:
        """(n, 3) of all that is drawn."""
        return np.concatenate(
            [*self.skins, *self.solids, *self.lines, *(look.faces.reshape(-1, 3) for look in self.looks)]
        )

    def turned(self, rotation: Array) -> Surfaces:
        """In the frame into which the rotation turns components."""
        skins, solids, lines = ([one @ rotation.T for one in part] for part in (self.skins, self.solids, self.lines))
        return Surfaces(skins, solids, lines, [Look(look.faces @ rotation.T, look.colour) for look in self.looks])


class Samples(Protocol):
    """States of a run, as a trace has them."""

    def read(self) -> tuple[Array, dict[str, Array]]: ...


class Outline(Protocol):
    """Draws one robot."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Outputs that it is drawn from."""

    def __call__(self, outputs: Mapping[str, Any]) -> Surfaces:
        """outputs: arrays of any shape, by name."""


@dataclass(frozen=True)
class Outlined:
    """A robot's outline, and states of the whole run to draw it in: samples of its needs and of the pose."""

    outline: Outline
    along: Samples


def as_told(plant: Plant, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the plant's own outputs as it tells them, through sensors too; those that it has."""
    prefix = "" if describe_plant(plant).truth is None else TRUTH
    known = {channel.name for channel in plant.outputs}
    return tuple(prefix + name for name in names if prefix + name in known)


def along(outline: Outline | None, plant: Plant, steps: int | None, first: int = 0) -> Trace | None:
    """An empty trace for `Outlined`, of a run of so many steps from `first` on; None without an outline."""
    if outline is None:
        return None
    names = as_told(plant, (*POSE, *outline.needs))
    return Trace(plant.outputs, names, plant.dt, steps, ALONG, first=first)


def recent_names(outline: Outline | None, plant: Plant) -> tuple[str, ...]:
    """Outputs of the last seconds of a run that its figure needs."""
    own = describe_plant(plant).recent_outputs
    return tuple(dict.fromkeys((*own, *as_told(plant, () if outline is None else outline.needs))))
