"""A plant for the fault harness: starts at once, and costs nothing."""

from __future__ import annotations

from typing import Any

from tests.wire.bench import Toy


class Rods(Toy):
    """Four rods that are where they are commanded to be."""

    def __init__(self, dt: float) -> None:
        self.dt = dt
        super().__init__()


def load(dt: float | None = None, preset: str | None = None, **parameters: Any) -> Rods:
    return Rods(0.01 if dt is None else dt)
