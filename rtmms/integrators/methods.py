"""What each method promises: its order, its evaluations a step, and where it is stable."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Method:
    """order: of the error at a fixed time; evaluations: of the equations of motion, each step;
    stability: the largest |lambda| dt that it bears on the negative real axis, None where there is no bound."""

    name: str
    order: int
    evaluations: int
    stability: float | None


METHODS = {
    "rk4": Method("rk4", 4, 4, 2.785),
    "implicit": Method("implicit", 1, 1, None),
    "implicit2": Method("implicit2", 2, 3, None),
    "abam": Method("abam", 5, 2, 1.1),
}
