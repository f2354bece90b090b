"""Provide methods as data: the tableau of each, its order, and its range of stability.

A new one-step method is a `Tableau` and a line in METHODS. Stage i is at time c_i h, reached with the weights a_i of
the earlier stages' rates. The step is the mean of the stages' rates with weights b:

    y_i = y + h sum_j a_ij k_j,    k_i = f(t + c_i h, y_i),    y+ = y + h sum_i b_i k_i

With gamma > 0 the method is linearly implicit: k_i includes the slopes of springs, dampers and drag over gamma h
(Rosenbrock with inexact slopes, a W-method). `recall` is the factor of the previous stage's increment in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.memory import FLAG, Layout, model, number
from rtmms.base.spatial import Array


class Tableau(NamedTuple):
    """Coefficients of a one-step method, see the module.

    Attributes
    ----------
    c : tuple[float, ...]
        (s,) nodes.
    a : tuple[tuple[float, ...], ...]
        s rows of the lower triangle without its diagonal.
    b : tuple[float, ...]
        (s,) weights times `over`.
    over : float, default 1.0
        Common divisor of the weights.
    gamma : float, default 0.0
        Linearly implicit part of a step; 0 for an explicit method.
    recall : tuple[float, ...], default ()
        Factors of the previous stage's increment.
    """

    c: tuple[float, ...]
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    over: float = 1.0
    gamma: float = 0.0
    recall: tuple[float, ...] = ()

    @property
    def matrix(self) -> Array:
        """(s, s) matrix a with zeros filled in."""
        out = np.zeros((len(self.c), len(self.c)))
        for i, row in enumerate(self.a):
            out[i, : len(row)] = row
        return out


RK4 = Tableau(c=(0.0, 0.5, 0.5, 1.0), a=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), b=(1.0, 2.0, 2.0, 1.0), over=6.0)

IMPLICIT_EULER = Tableau(c=(0.0,), a=((),), b=(1.0,), gamma=1.0)

ROS2 = Tableau(c=(0.0, 1.0), a=((), (1.0,)), b=(1.0, 1.0), over=2.0, gamma=1.0 - float(np.sqrt(0.5)), recall=(0.0, 2.0))
"""Verwer's method, L-stable for this gamma, in increments a_1 = k_1, a_2 = k_2 + 2 k_1."""


class Multistep(NamedTuple):
    """Coefficients of a method that predicts, evaluates, corrects and evaluates.

    Attributes
    ----------
    predictor : tuple[float, float, float, float]
        Weights of the last four rates, newest first, times `ahead`.
    ahead : float
        Divisor of the predictor.
    corrector : tuple[float, float, float, float, float]
        Weights of the predicted rate, then of the last four, times `back`.
    back : float
        Divisor of the corrector.
    """

    predictor: tuple[float, float, float, float]
    ahead: float
    corrector: tuple[float, float, float, float, float]
    back: float


ADAMS = Multistep((55.0, -59.0, 37.0, -9.0), 24.0, (251.0, 646.0, -264.0, 106.0, -19.0), 720.0)
"""Adams-Bashforth 4 predicts, Adams-Moulton 5 corrects."""


METHOD = Layout(
    "Method",
    model("nodes", "stages"), model("matrix", "stages", "stages"), model("weights", "stages"), number("over"),
    number("gamma"), model("parts", "parts"), model("mix", "parts"), number("multistep", FLAG),
)  # fmt: skip
"""Record of a `Method` for the kernels."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method for the steps of a tree.

    Parameters
    ----------
    name : str
        Name by which users select it.
    order : int
        Order of the error at a fixed time.
    evaluations : int
        Evaluations of the equations of motion in each step.
    stability : float or None
        Bound of |lambda| dt within which it is stable; None without a bound. For rk4 it is the end of its real axis.
        For abam it is the radius of the half disc in its region (its real axis ends at 1.41).
    tableau : Tableau
        Of one step, or of the start of a multistep method.
    parts, mix : tuple, default (1,)
        Extrapolation: the step is taken in each of these numbers of parts, and the results are mixed.
    multistep : bool, default False
        Whether ADAMS continues from the start.
    """

    name: str
    order: int
    evaluations: int
    stability: float | None
    tableau: Tableau
    parts: tuple[int, ...] = (1,)
    mix: tuple[float, ...] = (1.0,)
    multistep: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a tableau with `recall`, for which a tree's step has no memory."""
        if self.tableau.recall:
            raise ValueError(
                f"{self.name}: expected a tableau without recall, as a step of a tree does not store earlier stages"
            )

    def values(self) -> dict[str, Any]:
        """Return the values of a record of METHOD.

        Returns
        -------
        dict[str, Any]
            Values by field.
        """
        t = self.tableau
        return {
            "nodes": np.array(t.c), "matrix": t.matrix, "weights": np.array(t.b), "over": t.over, "gamma": t.gamma,
            "parts": np.array(self.parts, dtype=float), "mix": np.array(self.mix), "multistep": self.multistep,
        }  # fmt: skip


METHODS = {
    method.name: method
    for method in (
        Method("rk4", 4, 4, 2.785, RK4),
        Method("implicit1", 1, 1, None, IMPLICIT_EULER),
        Method("implicit2", 2, 3, None, IMPLICIT_EULER, parts=(1, 2), mix=(-1.0, 2.0)),
        Method("abam", 5, 2, 0.92, RK4, multistep=True),
    )
}
