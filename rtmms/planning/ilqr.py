"""Iterative LQR within the limits of the actuators: one plan, improved by the derivatives of the model.

About the last plan's motion the model is linear and the cost quadratic. The best correction of such a problem is a
correction of each knot and a feedback on the deviation of the motion. Each step of the recursion is a quadratic
programme within the box of the limits; knots at a limit have no feedback:

    Q_uu du = -Q_u,  lower <= u + du <= upper,   K = -Q_uu^-1 Q_uz of the free knots

Tassa, Mansard and Todorov, Control-limited differential dynamic programming, ICRA 2014, without the second derivatives
of the model (Li and Todorov 2004). The state of the recursion is z = (x, u_before): commands go in straight lines from
knot to knot, and a change of them may have a cost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.stages import Motion, Slopes, Stages, multiply
from rtmms.base.errors import ModelError
from rtmms.base.jit import kernel
from rtmms.planning.box_qp import box_step
from rtmms.planning.cost import Cost, CostSlopes
from rtmms.planning.planner import Knots, Plan
from rtmms.planning.shown_candidates import SHOWN_POINTS, choose_candidates, places
from rtmms.plant.optional_protocols import HasCoordinates

Array = npt.NDArray[np.float64]

SHARES = (1.0, 0.5, 0.25, 0.1, 0.04, 0.01)
"""Shares of a correction that the line search tries."""
MIN_DECREASE_SHARE = 1e-4
"""Least decrease of the cost, as a share of the decrease of the quadratic problem."""
MIN_REGULARISATION = 1e-9
"""Regularisation, as a share of the largest diagonal element of Q_uu.

The next iteration, or plan, begins with the last value.
"""
MAX_REGULARISATION = 1e6
"""Regularisation, as a share of the largest diagonal element of Q_uu."""
FIRST_REGULARISATION = 1e-6
"""Regularisation at the start."""
RISE = 30.0
"""Factor by which the regularisation rises."""
FALL = 0.2
"""Factor by which the regularisation falls."""
MAX_TRIES = 3
"""Tries in an iteration."""
SETTLED = 1e-6
"""Relative decrease of the cost below which a plan ends."""


@dataclass
class QuadraticProblem:
    """Quadratic problem about a motion, with inputs in units of `reach`.

    Attributes
    ----------
    a : Array
        (s, k, k), see rtmms.analysis.stages.Slopes.
    before, at_end : Array
        (s, k, n), see there.
    gradient : Array
        (s, k + n) of the cost at a stage's end, by its state and its knot.
    hessian : Array
        (s, k + n, k + n), the same.
    change : float
        Cost of (u - u_before)^2, of each stage.
    moved : Array
        (s, n) u - u_before.
    lower, upper : Array
        (s, n) bounds of a correction.
    """

    a: Array
    before: Array
    at_end: Array
    gradient: Array
    hessian: Array
    change: float
    moved: Array
    lower: Array
    upper: Array


@dataclass
class Policy:
    """Result of the recursion.

    Attributes
    ----------
    correction : Array
        (s, n) corrections of the commands.
    gain : Array
        (s, n, k + n) feedback.
    linear, square : float
        The expected decrease of the cost is share * linear + share^2 * square.
    """

    correction: Array
    gain: Array
    linear: float
    square: float

    def promised(self, share: float) -> float:
        """Return the expected decrease of the cost.

        Parameters
        ----------
        share : float
            Share of the correction.

        Returns
        -------
        float
            In the cost's unit.
        """
        return share * self.linear + share * share * self.square


@kernel
def recursion(
    a: Any,
    before: Any,
    by_command: Any,
    gradient: Any,
    hessian: Any,
    change: float,
    moved: Any,
    lower: Any,
    upper: Any,
    regularisation: float,
    correction: Any,
    gain: Any,
    promised: Any,
) -> bool:
    """Solve the problem from the last stage to the first.

    Parameters
    ----------
    a, before, by_command, gradient, hessian, change, moved, lower, upper : Any, float
        Fields of Problem.
    regularisation : float
        Added to the diagonal of Q_uu.
    correction : Any
        (s, n), written.
    gain : Any
        (s, n, k + n), written.
    promised : Any
        (2,), written: linear and square of Policy.

    Returns
    -------
    bool
        False where Q_uu is not positive definite.
    """
    count, k, n = by_command.shape
    z, wide = k + n, k + 2 * n
    slope, bend = np.zeros(z), np.zeros((z, z))
    step, half, qq, q = np.zeros((z, wide)), np.empty((z, wide)), np.empty((wide, wide)), np.empty(wide)
    across, quu, damped, quz, qu = (
        np.zeros((wide, z)),
        np.empty((n, n)),
        np.empty((n, n)),
        np.empty((n, z)),
        np.empty(n),
    )
    qdu, qk, more = np.empty(n), np.empty((n, z)), np.empty((n, z))
    largest = 0.0
    promised[:] = 0.0
    for i in range(n):
        step[k + i, z + i] = across[z + i, k + i] = 1.0
    for t in range(count - 1, -1, -1):
        for i in range(z):
            slope[i] += gradient[t, i]
            for j in range(z):
                bend[i, j] += hessian[t, i, j]
        # (x, u)+ = (A B_before; 0 0) z + (B; 1) u
        for i in range(k):
            for j in range(k):
                step[i, j] = across[j, i] = a[t, i, j]
            for j in range(n):
                step[i, k + j] = across[k + j, i] = before[t, i, j]
                step[i, z + j] = across[z + j, i] = by_command[t, i, j]
        multiply(bend, step, half)
        multiply(across, half, qq)
        for i in range(wide):
            q[i] = 0.0
            for j in range(z):
                q[i] += across[i, j] * slope[j]
        for i in range(n):
            q[z + i] += 2.0 * change * moved[t, i]
            q[k + i] -= 2.0 * change * moved[t, i]
            qq[z + i, z + i] += 2.0 * change
            qq[k + i, k + i] += 2.0 * change
            qq[z + i, k + i] -= 2.0 * change
            qq[k + i, z + i] -= 2.0 * change
        for i in range(n):
            largest = max(largest, qq[z + i, z + i])
        for i in range(n):
            qu[i] = q[z + i]
            for j in range(n):
                quu[i, j] = damped[i, j] = qq[z + i, z + j]
            damped[i, i] += regularisation * largest
            for j in range(z):
                quz[i, j] = qq[z + i, j]
        du, feedback = correction[t], gain[t]
        for i in range(n):
            du[i] = correction[t + 1, i] if t + 1 < count else 0.0
        if box_step(damped, qu, quz, lower[t], upper[t], du, feedback) < 0:
            return False
        for i in range(n):
            qdu[i] = 0.0
            for j in range(n):
                qdu[i] += quu[i, j] * du[j]
            promised[0] -= du[i] * qu[i]
            promised[1] -= 0.5 * du[i] * qdu[i]
        # V of the policy, whatever was added to Q_uu
        multiply(quu, feedback, qk)
        for i in range(n):
            for j in range(z):
                more[i, j] = qk[i, j] + quz[i, j]
        for i in range(z):
            slope[i] = q[i]
            for j in range(n):
                slope[i] += feedback[j, i] * (qdu[j] + qu[j]) + quz[j, i] * du[j]
        for i in range(z):
            for j in range(z):
                bend[i, j] = qq[i, j]
            for w in range(n):
                f, p = feedback[w, i], quz[w, i]
                for j in range(z):
                    bend[i, j] += f * more[w, j] + p * feedback[w, j]
        for i in range(z):
            for j in range(i):
                bend[i, j] = bend[j, i] = 0.5 * (bend[i, j] + bend[j, i])
    return True


def backward(of: QuadraticProblem, regularisation: float) -> Policy | None:
    """Solve a problem.

    Parameters
    ----------
    of : QuadraticProblem
        The problem.
    regularisation : float
        Added to the diagonal of Q_uu.

    Returns
    -------
    Policy | None
        None where Q_uu is not positive definite.
    """
    count, k, n = of.at_end.shape
    correction, gain, promised = np.zeros((count, n)), np.zeros((count, n, k + n)), np.zeros(2)
    well = recursion(
        of.a, of.before, of.at_end, of.gradient, of.hessian, of.change, of.moved, of.lower, of.upper, regularisation,
        correction, gain, promised,
    )  # fmt: skip
    return Policy(correction, gain, float(promised[0]), float(promised[1])) if well else None


class IterativeLqr:
    """Planner by iterative LQR, with the interface of rtmms.planning.planner.Planner.

    Parameters
    ----------
    model : Any
        Model of the robot (rtmms.plant.HasCoordinates); its dt is the plan's grid.
    variables : Knots
        Knots of a plan: a stage from each to the next, whole steps of the model.
    cost : Cost
        The cost.
    samples : int, default 8
        Largest number of iterations.
    threads : int, default 1
        Threads that linearise and roll out.
    change : float, default 0.0
        Cost of a mean over the horizon of ((u - u_before) / reach)^2, reach half of an actuator's range.
    regularisation : float, default FIRST_REGULARISATION
        Its start.

    Raises
    ------
    ModelError
        Knots are no whole steps apart, the model has no compiled derivatives, or lacks an output of the cost.
    """

    def __init__(
        self, model: Any, variables: Knots, cost: Cost, *, samples: int = 8, threads: int = 1, change: float = 0.0,
        regularisation: float = FIRST_REGULARISATION,
    ) -> None:  # fmt: skip
        self.model, self.variables, self.cost, self.samples, self.change = model, variables, cost, samples, change
        stages = len(variables.at) - 1
        span = (variables.at[-1] - variables.at[0]) / max(1, stages)
        per = round(span / model.dt)
        if stages < 1 or per < 1 or abs(per * model.dt - span) > 1e-6 * span:
            raise ModelError(f"ilqr: knots must be whole steps of {model.dt:g} s apart, got {span:g} s")
        if not isinstance(model, HasCoordinates):
            raise ModelError(
                f"ilqr: a {type(model).__name__} has no compiled derivatives of its steps; give method=cem, mppi or ps"
            )
        self.stages = Stages(model, per, tuple(dict.fromkeys((*cost.outputs, "position"))), threads)
        for name in cost.outputs:
            if name not in self.stages.shapes:
                raise ModelError(f"ilqr: cost '{cost.__name__}': the model has no output '{name}'")
        self.slopes = CostSlopes(cost, self.stages)
        self.span = span
        self._first = regularisation
        self.clear()

    def clear(self) -> None:
        """Reset the planner to its initial state."""
        self.stages.close()
        self.mean = self.variables.home.copy()
        self._regularisation = self._first
        self.policy: Policy | None = None
        self.motion: Motion | None = None

    def close(self) -> None:
        """End the threads."""
        self.stages.close()

    def total(self, motion: Motion) -> float:
        """Return J of a motion; infinite where it ended early or its cost is no number.

        Parameters
        ----------
        motion : Motion
            The motion.

        Returns
        -------
        float
            J.
        """
        if not motion.whole:
            return math.inf
        outputs = {name: motion.outputs[name][None] for name in self.cost.outputs}
        knots = motion.knots[None, 1:]
        (result,) = self.cost.total(outputs, knots, self.span, 1, np.array([knots.shape[1]]))
        moved = np.diff(motion.knots, axis=0) / self.stages.reach
        return float(result + self.change * np.mean(np.sum(moved * moved, axis=1)))

    def problem(self, motion: Motion, slopes: Slopes, lower: Array, upper: Array) -> QuadraticProblem:
        """Return the quadratic problem about a motion.

        Parameters
        ----------
        motion : Motion
            The motion.
        slopes : Slopes
            Its derivatives.
        lower, upper : Array
            (n,) limits of the knots.

        Returns
        -------
        QuadraticProblem
            The problem.
        """
        reach, n = self.stages.reach, motion.knots.shape[1]
        gradient, hessian = self.slopes(motion, self.span, slopes.outputs)
        gradient[:, -n:] *= reach
        hessian[:, -n:, :] *= reach[:, None]
        hessian[:, :, -n:] *= reach
        return QuadraticProblem(
            slopes.a, slopes.before * reach, slopes.at_end * reach, gradient, hessian, self.change / len(gradient),
            np.diff(motion.knots, axis=0) / reach, (lower - motion.knots[1:]) / reach,
            (upper - motion.knots[1:]) / reach,
        )  # fmt: skip

    def plan(
        self, state: Array, since: float, until: float = math.inf, fixed: Callable[[Array], Array] | None = None
    ) -> Plan:
        """Make a plan from the model's present state; it does at least one iteration.

        The first knot, at the plan's start, stays. Actuators that something holds keep their last commands.

        Parameters
        ----------
        state : Array
            State of the variables; not used.
        since : float
            Time that the present mean has been in use, s.
        until : float, default math.inf
            time.monotonic() at which no further iteration begins.
        fixed : Callable[[Array], Array] | None, optional
            Function from (p, steps, n) commands to the ones that the robot obeys, where something holds it.

        Returns
        -------
        Plan
            The plan.
        """
        begin = time.monotonic()
        before = self.variables.shifted(self.mean, since) if since > 0.0 else self.mean.copy()
        knots, lower, upper = (
            np.clip(before, self.variables.lower, self.variables.upper),
            self.variables.lower,
            self.variables.upper,
        )
        if fixed is not None:
            knots, lower, upper = (fixed(item[None].copy())[0] for item in (knots, lower, upper))
        self.stages.follow()
        motion = self.stages.roll(knots)
        least = self.total(motion)
        at_first, iterations, failed = least, 0, 0
        self._tried: list[tuple[float, Motion]] = []
        if not math.isfinite(least):  # the last plan fails from here: as at the start
            failed = 1
            motion = self.stages.roll(np.concatenate([knots[:1], np.clip(self.variables.home[1:], lower, upper)]))
            least = at_first = self.total(motion)
        good = math.isfinite(least)
        self._tried.append((least, motion))
        while good and iterations < self.samples and (not iterations or time.monotonic() < until):
            result = self._iterate(motion, least, lower, upper, until if iterations else math.inf)
            if result is None:
                break
            iterations += 1
            better, cost = result
            settled = least - cost <= SETTLED * abs(least)
            motion, least = better, cost
            if settled:
                break
        if good:
            self.mean, self.motion = motion.knots.copy(), motion
            held = lower == upper  # asked for what it did before, to see whether it follows again
            self.mean[:, held] = before[:, held]
        else:
            self.mean, self._regularisation = before, self._first
        path = motion.outputs.get("position", np.zeros((0, 3)))
        spread = at_first - least if good else math.nan
        shown = self._others(motion, least)
        seconds = time.monotonic() - begin
        return Plan(
            self.mean.copy(), good, max(1, iterations), failed, least, spread, path, seconds, iterations, shown
        )  # fmt: skip

    def _others(self, best: Motion, least: float) -> Array:
        """Return (k, points, 3) m: positions of the motions that the line searches tried, and of the initial one."""
        tried, self._tried = [(cost, item) for cost, item in self._tried if item is not best and item.whole], []
        chosen_indices = choose_candidates([least, *(cost for cost, _ in tried)], 1.0)
        ways = [tried[k - 1][1].outputs.get("position", np.full((1, 3), np.nan)) for k in chosen_indices]
        return np.array([route[places(len(route))] for route in ways]).reshape(len(ways), SHOWN_POINTS, 3)

    def _iterate(
        self, motion: Motion, least: float, lower: Array, upper: Array, until: float
    ) -> tuple[Motion, float] | None:
        """Return a motion with a lower cost, and the cost; None where none is found, or time is up."""

        def going() -> bool:
            return time.monotonic() < until

        slopes = self.stages.slopes(motion, going)
        if slopes is None:
            return None
        problem = self.problem(motion, slopes, lower, upper)
        reach, n = self.stages.reach, motion.knots.shape[1]
        count = len(motion.knots) - 1
        lowest, highest = np.tile(lower, (count, 1)), np.tile(upper, (count, 1))
        for _ in range(MAX_TRIES):
            policy = backward(problem, self._regularisation)
            if policy is not None:
                self.policy = policy
                correction, gain = policy.correction * reach, policy.gain * reach[:, None]
                gain[:, :, -n:] /= reach
                if policy.promised(1.0) <= 1e-14 * abs(least):
                    return motion, least
                for at in range(0, len(SHARES), self.stages.threads):
                    shares = SHARES[at : at + self.stages.threads]
                    tried = self.stages.guide(motion, correction, gain, shares, lowest, highest)
                    for share, item in zip(shares, tried, strict=True):
                        cost = self.total(item)
                        self._tried.append((cost, item))
                        if cost < least and least - cost >= MIN_DECREASE_SHARE * policy.promised(share):
                            self._regularisation = max(MIN_REGULARISATION, FALL * self._regularisation)
                            return item, cost
                    if not going():
                        return None
            self._regularisation = max(self._first, RISE * self._regularisation)
        if self._regularisation > MAX_REGULARISATION:
            self._regularisation = self._first
        return None
