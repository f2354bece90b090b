"""What each method promises: its order, its evaluations a step, and where it is stable."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Method:
    """order: of the error at a fixed time; evaluations: of the equations of motion, each step;

    stability: the |lambda| dt beyond which a run is stopped as unstable; None where there is no bound. For rk4 the end
    of its negative real axis; for abam the radius of the half disc that its region holds (its real axis ends at 1.41).
    """

    name: str
    order: int
    evaluations: int
    stability: float | None


METHODS = {
    "rk4": Method("rk4", 4, 4, 2.785),
    "implicit": Method("implicit", 1, 1, None),
    "implicit2": Method("implicit2", 2, 3, None),
    "abam": Method("abam", 5, 2, 0.92),
}
