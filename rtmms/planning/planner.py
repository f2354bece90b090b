"""One plan: candidates, rollouts, costs, and the next mean, by cross-entropy, MPPI or predictive sampling."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import get_native_id
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.analysis.rollouts import Rollout
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.override import override
from rtmms.planning.cost import Cost
from rtmms.planning.shown_candidates import choose_candidates, places
from rtmms.plant.optional_protocols import HasFork, SupportsRollouts
from rtmms.plant.protocol import Channel

Array = npt.NDArray[np.float64]


# What a plan is made of, as methods see it.


class PlanVariables(Protocol):
    """Numbers (rows, k) that define the commands of a horizon.

    Attributes
    ----------
    home : Array
        (rows, k) start of the first plan.
    scale : Array
        (k,) spread of the candidates, 0 for fixed numbers.
    lower, upper : Array
        (k,) limits.
    """

    home: Array
    scale: Array
    lower: Array
    upper: Array

    @property
    def library(self) -> tuple[Array, ...]:
        """Plans that are always among the candidates."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the k numbers."""
        ...

    def start(self) -> Array:
        """Return the state from which the commands of a plan continue, at rest.

        Returns
        -------
        Array
            Knots of the variables' own length.
        """

    def commands(self, plans: Array, state: Array, since: float, steps: int, dt: float) -> tuple[Array, Array]:
        """Return the commands of plans, and the state at the end of the first plan's.

        Parameters
        ----------
        plans : Array
            (p, rows, k) plans.
        state : Array
            As of `start`; it is not changed.
        since : float
            Time that the plans have been in use, s.
        steps : int
            Number of steps.
        dt : float
            Step, s.

        Returns
        -------
        tuple[Array, Array]
            (plans, steps, actuators), each at the end of its step, and the state.
        """

    def shifted(self, plan: Array, by: float) -> Array:
        """Return the same plan, as one that begins later.

        Parameters
        ----------
        plan : Array
            (rows, k) plan.
        by : float
            Time by which it begins later, s.

        Returns
        -------
        Array
            (rows, k).
        """


def clip_plans(variables: PlanVariables, plans: Array) -> Array:
    """Clip plans to the limits.

    Parameters
    ----------
    variables : PlanVariables
        Limits.
    plans : Array
        (..., k) plans.

    Returns
    -------
    Array
        A copy.
    """
    result: Any = np.clip(plans, variables.lower, variables.upper)
    return result  # type: ignore[no-any-return]


def shifted_rows(plan: Array, span: float, by: float) -> Array:
    """Return targets at equal intervals as they are some time later; the last one stays.

    Parameters
    ----------
    plan : Array
        (rows, k) plan.
    span : float
        Interval, s.
    by : float
        Time by which it begins later, s.

    Returns
    -------
    Array
        (rows, k).
    """
    if len(plan) == 1:
        return plan.copy()
    at = np.arange(len(plan)) * span
    return np.array([np.interp(np.minimum(at + by, at[-1]), at, column) for column in plan.T]).T


# Cross-entropy: the mean and the spread of the next plan are those of the best quarter of the candidates.


ELITE_SHARE = 0.25
"""Share of the candidates that count."""
MIN_SPREAD = 0.3
"""Spread of the candidates, in the variables' scales."""
KEPT_SPREAD_SHARE = 0.5
"""Share of the spread that stays."""
SPREAD_GROWTH = 1.15
"""Growth of the spread from plan to plan."""


class CrossEntropy:
    """Method of candidates about a mean, with a new mean from the best ones (Rubinstein 1999).

    Parameters
    ----------
    variables : PlanVariables
        Words of the plans.
    seed : int
        Seed of the random candidates.
    """

    name = "cem"

    def __init__(self, variables: PlanVariables, seed: int) -> None:
        self.variables, self._seed = variables, seed
        self.clear()

    def clear(self) -> None:
        """Reset to the initial state: the same candidates come again."""
        self._rng = np.random.default_rng(self._seed)
        self._spread = np.ones(self.variables.home.shape)

    def candidates(self, mean: Array, count: int) -> Array:
        """Return candidates: the mean itself, then the library's, then random ones.

        Half of the variance is common to all rows.

        Parameters
        ----------
        mean : Array
            (rows, k) mean plan.
        count : int
            Number of candidates.

        Returns
        -------
        Array
            (count, rows, k).
        """
        variables, rng = self.variables, self._rng
        rows, k = mean.shape
        noise = rng.normal(size=(count, rows, k))
        if rows > 1:
            noise = np.sqrt(0.5) * noise + np.sqrt(0.5) * rng.normal(size=(count, 1, k))
        result = clip_plans(variables, mean + noise * self._spread * variables.scale)
        result[0] = mean
        for j, plan in enumerate(variables.library[: max(0, count // 8)], 1):
            result[j] = plan
        return result

    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """Return the plan that follows from the costs.

        Parameters
        ----------
        candidates : Array
            (count, rows, k) candidates.
        costs : Array
            (count,), infinite for failed candidates.
        before : Array
            (rows, k) the last mean.

        Returns
        -------
        Array
            (rows, k).
        """
        order = np.argsort(costs, kind="stable")
        sound = int(np.isfinite(costs).sum())
        if not sound:
            return before
        best = int(order[0])
        if 1 <= best <= len(self.variables.library[: max(0, len(candidates) // 8)]):
            best_plan: Array = candidates[best].copy()
            return best_plan
        subset = candidates[order[: max(2, min(sound, int(ELITE_SHARE * len(candidates))))]]
        spread = subset.std(axis=0) / np.where(self.variables.scale > 0.0, self.variables.scale, np.inf)
        mixed_spread = KEPT_SPREAD_SHARE * self._spread + (1.0 - KEPT_SPREAD_SHARE) * 1.2 * spread
        self._spread = np.clip(SPREAD_GROWTH * np.clip(mixed_spread, MIN_SPREAD, 1.0), MIN_SPREAD, 1.0)
        result: Array = subset.mean(axis=0)
        return result


# Model predictive path integral control: the mean of all candidates, weighed by exp(-cost / temperature).


TEMPERATURE = 0.3
"""Temperature, as a share of the distance from the best cost to the median."""


class Mppi(CrossEntropy):
    """Method as CrossEntropy, with a weighted mean and a constant spread (Williams, Aldrich and Theodorou 2017)."""

    name = "mppi"

    @override
    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """Return the weighted mean of the candidates."""
        sound = np.isfinite(costs)
        if not sound.any():
            return before
        result, least = costs[sound], float(costs[sound].min())
        heat = TEMPERATURE * max(float(np.median(result)) - least, 1e-12)
        weights = np.exp(-(result - least) / heat)
        mixed: Array = np.einsum("n,nrk->rk", weights / weights.sum(), candidates[sound])
        return mixed


# Predictive sampling: the best candidate is the plan (Howell et al. 2022).


class PredictiveSampling(CrossEntropy):
    """Method as CrossEntropy, which keeps the best candidate instead of a mean."""

    name = "ps"

    @override
    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """Return the best candidate."""
        best = int(np.argmin(costs))
        return candidates[best].copy() if np.isfinite(costs[best]) else before


# One plan: candidates, rollouts of the model under them, costs, the next mean; the best so far when time is up.


METHODS: dict[str, type[CrossEntropy]] = {item.name: item for item in (CrossEntropy, Mppi, PredictiveSampling)}
CHUNK = 16
"""Candidates between two checks of the time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, and the statistics of its computation.

    Attributes
    ----------
    variables : Array
        (rows, k) variables of the plan.
    good : bool
        False where no candidate ended well: the variables are then the former ones.
    finished : int
        Candidates whose runs were taken.
    failed : int
        Runs among these that ended early or whose cost is no number.
    least : float
        Least cost.
    spread : float
        Median less the least cost.
    path : Array
        (samples, 3) m, of the best candidate.
    seconds : float
        Duration of the computation.
    iterations : int, default 1
        Iterations of a method that improves a plan step by step.
    shown : Array
        (k, points, 3) m, of a few other candidates (rtmms.planning.shown_candidates).
    """

    variables: Array
    good: bool
    finished: int
    failed: int
    least: float
    spread: float
    path: Array
    seconds: float
    iterations: int = 1
    shown: Array = field(default_factory=lambda: np.zeros((0, 0, 3)))


class Planner:
    """Planner by rollouts of a model of the robot.

    Parameters
    ----------
    model : Any
        Plant with forks for many runs (rtmms.plant.HasFork); its dt is the plan's grid.
    variables : PlanVariables
        Words of the plans.
    cost : Cost
        The cost.
    method : str, default 'cem'
        'cem', 'mppi' or 'ps'.
    horizon_s : float, default 2.5
        Horizon, s.
    samples : int, default 32
        Candidates of a plan.
    threads : int, default 1
        Threads of the rollouts.
    seed : int, default 0
        Seed of the random candidates.

    Raises
    ------
    UnknownNameError
        The method or an output of the cost is unknown.
    ModelError
        The robot has no compiled steps, or no output 'position'.
    """

    def __init__(
        self, model: Any, variables: PlanVariables, cost: Cost, *, method: str = "cem", horizon_s: float = 2.5,
        samples: int = 32, threads: int = 1, seed: int = 0,
    ) -> None:  # fmt: skip
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        forking: Any = model if isinstance(model, HasFork) else None
        if (forking is None or forking.fork() is None) and not isinstance(model, SupportsRollouts):
            raise ModelError("planner: expected a robot with compiled steps, got one whose steps are in Python")
        known = {channel.name for channel in model.outputs}
        if "position" not in known:
            raise ModelError("planner: expected a robot with a free body, got one without the output 'position'")
        for name in cost.outputs:
            if name not in known:
                raise UnknownNameError("output (of the cost)", name, sorted(known))
        self.model, self.variables, self.cost, self.samples, self._threads = model, variables, cost, samples, threads
        self.steps: int = round(horizon_s / model.dt)
        self.method = METHODS[method](variables, seed)
        self.mean = variables.home.copy()
        self.pool = Rollout(model, threads)

    def clear(self) -> None:
        """Reset to the initial state; the threads, too, so that they run on the cores of the next caller."""
        self.pool.close()
        self.pool = Rollout(self.model, self._threads)
        self.method.clear()
        self.mean = self.variables.home.copy()

    def close(self) -> None:
        """End the threads."""
        self.pool.close()

    def plan(
        self, state: Array, since: float, until: float = math.inf, fixed: Callable[[Array], Array] | None = None
    ) -> Plan:
        """Make a plan from the model's present state.

        Parameters
        ----------
        state : Array
            State of the variables at the plan's start.
        since : float
            Time that the present mean has been in use at that time, s.
        until : float, default math.inf
            time.monotonic() from which on no further candidates begin.
        fixed : Callable[[Array], Array] | None, optional
            Function from (p, steps, n) commands to the ones that the robot obeys, where something holds it.

        Returns
        -------
        Plan
            The plan.
        """
        begin = time.monotonic()
        if since > 0.0:
            self.mean = self.variables.shifted(self.mean, since)
        plans = self.method.candidates(self.mean, self.samples)
        costs = np.full(len(plans), math.inf)
        done, path, least, ways = 0, np.zeros((0, 3)), math.inf, []
        while done < len(plans) and (done == 0 or time.monotonic() < until):
            part = slice(done, min(done + CHUNK, len(plans)))
            commands, _ = self.variables.commands(plans[part], state, 0.0, self.steps, self.model.dt)
            if fixed is not None:
                commands = fixed(commands)
            names = dict.fromkeys((*self.cost.outputs, "position"))
            runs = self.pool(commands, outputs=tuple(names))
            result = self.cost.total(runs.outputs, runs.commands, runs.dt, runs.every, runs.steps)
            costs[part] = result
            ways.append(runs.outputs["position"][:, places(runs.outputs["position"].shape[1])])
            best = int(np.argmin(result))
            if result[best] < least:
                least, path = float(result[best]), runs.outputs["position"][best].copy()
            done = part.stop
        tried, cost = plans[:done], costs[:done]
        self.mean = self.method.mean(tried, cost, self.mean)
        sound = cost[np.isfinite(cost)]
        spread = float(np.median(sound) - sound.min()) if sound.size else math.nan
        shown = np.concatenate(ways)[choose_candidates(cost)]
        seconds = time.monotonic() - begin
        return Plan(
            self.mean.copy(), bool(sound.size), done, done - int(sound.size), least, spread, path, seconds, shown=shown
        )


# Knots of the commands themselves, for any robot: straight lines between them, held after the last.


DEFAULT_SPREAD = 0.1
"""Spread of the candidates, of an actuator's range."""


class Knots:
    """Words (rtmms.planning.planner): the values of all actuators at `rows` times, evenly spaced over the horizon.

    Parameters
    ----------
    actuators : tuple[Channel, ...]
        Actuators with both limits.
    rows : int
        Number of knots.
    horizon_s : float
        Horizon, s.
    home : Array
        (n,) or (rows, n) initial values.
    period_s : float, default 0.0
        Period of a gait: beyond its end a plan repeats its last period; 0: it stays.
    mixing : Array | None, optional
        (n, n) for variables that are not the commands themselves: commands = mixing variables, within their limits.

    Raises
    ------
    ModelError
        An actuator lacks a limit.
    """

    def __init__(
        self, actuators: tuple[Channel, ...], rows: int, horizon_s: float, home: Array, period_s: float = 0.0,
        mixing: Array | None = None,
    ) -> None:  # fmt: skip
        for actuator in actuators:
            if (
                actuator.lower is None
                or actuator.upper is None
                or not np.isfinite([actuator.lower, actuator.upper]).all()
            ):
                raise ModelError(
                    f"knots: actuator '{actuator.name}': expected a lower and an upper limit, which plans need"
                )
        self.names = tuple(item.name for item in actuators)
        self.lower = np.array([item.lower for item in actuators], dtype=np.float64)
        self.upper = np.array([item.upper for item in actuators], dtype=np.float64)
        self.home = np.array(np.broadcast_to(np.clip(home, self.lower, self.upper), (rows, len(actuators))))
        self._mixing, self._command_bounds = mixing, (self.lower, self.upper)
        if mixing is not None:
            inverse = np.linalg.inv(mixing)
            self.home = self.home @ inverse.T
            middle, half = (
                inverse @ (0.5 * (self.lower + self.upper)),
                np.abs(inverse) @ (0.5 * (self.upper - self.lower)),
            )
            self.lower, self.upper = middle - half, middle + half
        self.scale = DEFAULT_SPREAD * (self.upper - self.lower)
        self.library = (self.home,)
        self.at, self._period = np.linspace(0.0, horizon_s, rows), min(period_s, horizon_s)

    def start(self) -> Array:
        """Return an empty state, as knots have none.

        Returns
        -------
        Array
            (0,).
        """
        return np.zeros(0)

    def commands(self, plans: Array, state: Array, since: float, steps: int, dt: float) -> tuple[Array, Array]:
        """Return the commands of plans: straight lines between knots.

        Parameters
        ----------
        plans : Array
            (p, rows, n) plans.
        state : Array
            Not used.
        since : float
            Time that the plans have been in use, s.
        steps : int
            Number of steps.
        dt : float
            Step, s.

        Returns
        -------
        tuple[Array, Array]
            (p, steps, n), each at the end of its step, and the state.
        """
        times = since + dt * np.arange(1, steps + 1)
        if len(self.at) == 1:
            return self._mixed(np.repeat(plans, steps, axis=1)), state.copy()
        row = np.clip(np.searchsorted(self.at, times, side="right") - 1, 0, len(self.at) - 2)
        part = np.clip((times - self.at[row]) / (self.at[1] - self.at[0]), 0.0, 1.0)[None, :, None]
        result = plans[:, row] + part * (plans[:, row + 1] - plans[:, row])
        return self._mixed(np.ascontiguousarray(result)), state.copy()

    def _mixed(self, variables: Array) -> Array:
        """Return the commands (p, steps, n) of variables."""
        if self._mixing is None:
            return variables
        return np.ascontiguousarray(np.clip(variables @ self._mixing.T, *self._command_bounds))

    def shifted(self, plan: Array, by: float) -> Array:
        """Return the same plan, as one that begins later.

        Parameters
        ----------
        plan : Array
            (rows, n) plan.
        by : float
            Time by which it begins later, s.

        Returns
        -------
        Array
            (rows, n).
        """
        later = self.at + by
        if self._period > 0.0:
            beyond = np.maximum(later - self.at[-1], 0.0)
            later = later - self._period * np.ceil(beyond / self._period - 1e-9)
        later = np.minimum(later, self.at[-1])
        return np.array([np.interp(later, self.at, column) for column in plan.T]).T


# A thread that computes for long beside a controller's answers to states.


BEHIND = 5
"""Nice values by which the thread's priority is below that of the answering thread."""
SWITCH_S = 0.2e-3
"""Time after which Python switches to a waiting thread, in place of 5 ms, s: the longest delay of an answer by a plan.
"""


class BackgroundThread:
    """One thread, with `submit` as an executor of the standard library.

    It runs on the cores that the process had when this was made, with a lower priority than the answering thread. A
    real-time loop moves light controllers onto its own core (docs/realtime.md), where a long computation would starve
    both.

    Parameters
    ----------
    name : str
        Prefix of the thread's name.
    """

    def __init__(self, name: str) -> None:
        self._cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self._nice = os.getpriority(os.PRIO_PROCESS, 0) + BEHIND if hasattr(os, "getpriority") else 0
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a function after those submitted before.

        Parameters
        ----------
        function : Callable[..., Any]
            Function to run.
        *arguments : Any
            Its arguments.

        Returns
        -------
        Future[Any]
            Future of its result.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        return self._pool.submit(self._run, function, arguments)

    def close(self) -> None:
        """Wait for the end of all submitted functions; the next `submit` starts a new thread."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with suppress(OSError):  # each time: who places a process places all of its threads
            if self._cores:
                os.sched_setaffinity(0, self._cores)
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, get_native_id(), self._nice)
        return function(*arguments)
