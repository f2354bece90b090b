"""What a visual is: surfaces that move with a part of a robot, and surfaces that bend with its model's points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rtmms.shapes.shape import Pose

Array = npt.NDArray[np.float64]
Faces = npt.NDArray[np.int64]
Mesh = tuple[Array, Faces]
"""(n, 3) m and (k, 3) indices, counter-clockwise as seen from outside."""
Colour = tuple[int, int, int]

WATER, AIR, GROUND, SPACE = "water", "air", "ground", "space"
SCENES = (WATER, AIR, GROUND, SPACE)


@dataclass(frozen=True, eq=False)
class Surface:
    """A closed surface of one colour.

    faces      (k, 3) indices of its vertices, counter-clockwise as seen from outside
    colour     red, green, blue, 0 to 255
    vertices   (n, 3) m, in its frame; None of a surface that bends: the visual tells them state by state
    frame      name of the part (`Shape.frames`) that it moves with; '' for the body
    opacity    0 to 1;  gloss  how much it shines, 0 to 1
    """

    name: str
    faces: Faces
    colour: Colour
    vertices: Array | None = None
    frame: str = ""
    opacity: float = 1.0
    gloss: float = 0.25


class Visual(Protocol):
    """The look of one robot.

    surfaces   fixed to parts, or bending
    scene      one of SCENES: where it belongs
    ground     m, body frame: the height of the ground under a robot that stands on it; None of others
    """

    @property
    def surfaces(self) -> tuple[Surface, ...]: ...
    @property
    def scene(self) -> str: ...
    @property
    def ground(self) -> float | None: ...

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """(n, 3) m, body frame, of each surface that bends, in their order.

        frames, skins   of the robot's shape: `Shape.frames` and `Shape.points`
        """


@dataclass(frozen=True, eq=False)
class Rigid:
    """A visual of parts that do not bend."""

    surfaces: tuple[Surface, ...]
    scene: str = GROUND
    ground: float | None = None

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        return ()


def fixed(
    name: str, mesh: Mesh, colour: Colour, frame: str = "", *, opacity: float = 1.0, gloss: float = 0.25
) -> Surface:
    """A surface that moves with a part."""
    vertices, faces = mesh
    return Surface(name, faces, colour, vertices, frame, opacity, gloss)
