"""Plain shapes in a fluid: their volume, by points drawn in a box around them."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.fluids.shapes import volume
from rtmms.model.solids import Placement
from rtmms.model.urdf import Shape

INSIDE = {
    "sphere": ((0.3,), (0.6, 0.6, 0.6), lambda p: np.linalg.norm(p, axis=1) < 0.3),
    "cylinder": ((0.2, 0.5), (0.4, 0.4, 0.5), lambda p: np.hypot(p[:, 0], p[:, 1]) < 0.2),
    "box": ((0.2, 0.3, 0.4), (0.4, 0.6, 0.8), lambda p: (np.abs(p) < [0.1, 0.15, 0.2]).all(axis=1)),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_volume(kind: str) -> None:
    sizes, around, inside = INSIDE[kind]
    points = (np.random.default_rng(2).random((200_000, 3)) - 0.5) * around
    assert volume(Shape(kind, sizes, Placement())) == pytest.approx(inside(points).mean() * np.prod(around), rel=0.02)
