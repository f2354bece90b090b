"""What a plant tells of how its shape moves it: which connection, its named gaits, the limits of its joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from rtmms.locomotion.paths import Path
from rtmms.locomotion.reconstruction import Motion
from rtmms.locomotion.waves import Gait
from rtmms.model.compiled import Model
from rtmms.plant import Plant
from rtmms.spatial import Array


@dataclass(frozen=True)
class Locomotion:
    """kind of its connection (rtmms.locomotion.connections); words of its own gaits by name; what `rtmms gaits` seeks.

    gaits   {name: gait}: a word as `rtmms gaits --gait` takes it ('circle:a=1'), a Path, or Sines
    note    {name: words} that say what such a gait is
    goal    what the best gait is sought for: 'distance' or 'turn' (rtmms.locomotion.optimise)
    shape   m or rad: a gait of about that amplitude is where the search begins
    travel  the motion of so many cycles of a gait, from rest, where it takes dynamics; None: the connection tells it
    """

    kind: str
    gaits: Mapping[str, Gait] = field(default_factory=dict)
    note: Mapping[str, str] = field(default_factory=dict)
    goal: str = "distance"
    shape: float = 1.0
    travel: Callable[[Model, Path, int], Motion] | None = None


@runtime_checkable
class Locomoting(Plant, Protocol):
    """A plant of a mechanism whose net motion follows from its shape's motion."""

    model: Model
    locomotion: Locomotion | None


def limits(plant: Locomoting) -> tuple[Array, Array]:
    """(p,) least and (p,) greatest shape: of the plant's angle actuators; infinite where there is none."""
    names = plant.model.joint_names
    least, greatest = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    for channel in plant.actuators:
        joint, _, what = channel.name.rpartition(".")
        if what == "angle" and joint in names:
            k = names.index(joint)
            least[k] = -np.inf if channel.lower is None else channel.lower
            greatest[k] = np.inf if channel.upper is None else channel.upper
    return least, greatest
