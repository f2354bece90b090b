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
from rtmms.planning.cost import Cost
from rtmms.planning.shadow import chosen, places
from rtmms.plant.protocol import Channel, HasFork, RollsOut

Array = npt.NDArray[np.float64]


# What a plan is made of, as methods see it.


class Words(Protocol):
    """Numbers (rows, k) that make the commands of a horizon.

    home    (rows, k) where a plan begins;  scale (k,) by how much candidates differ, 0 for what is fixed
    lower, upper  (k,)
    library plans that are always among the candidates
    names   of the k numbers
    """

    home: Array
    scale: Array
    lower: Array
    upper: Array

    @property
    def library(self) -> tuple[Array, ...]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def start(self) -> Array:
        """What the commands of a plan go on from, at rest."""

    def commands(self, plans: Array, state: Array, since: float, steps: int, dt: float) -> tuple[Array, Array]:
        """(plans, steps, actuators), each at the end of its step, and the state at the end of the first plan's.

        plans  (p, rows, k);  state  as of `start`; stays;  since  s, how long the plans have been in use"""

    def shifted(self, plan: Array, by: float) -> Array:
        """The same plan, as one that begins `by` s later."""


def within(words: Words, plans: Array) -> Array:
    found: Any = np.clip(plans, words.lower, words.upper)
    return found  # type: ignore[no-any-return]


def shifted_rows(plan: Array, span: float, by: float) -> Array:
    """Targets `span` s apart as they are `by` s later; the last one stays."""
    if len(plan) == 1:
        return plan.copy()
    at = np.arange(len(plan)) * span
    return np.array([np.interp(np.minimum(at + by, at[-1]), at, column) for column in plan.T]).T


# Cross-entropy: the mean and the spread of the next plan are those of the best quarter of the candidates.


ELITE, FLOOR, SMOOTH, GROWS = 0.25, 0.3, 0.5, 1.15
"""Share of the candidates that count; least spread, in the words' scales; of the spread, how much stays; how it grows
again from plan to plan."""


class CrossEntropy:
    """A method: candidates about a mean, a new mean from their costs (Rubinstein 1999)."""

    name = "cem"

    def __init__(self, words: Words, seed: int) -> None:
        self.words, self._seed = words, seed
        self.clear()

    def clear(self) -> None:
        """As new: the same candidates come again."""
        self._rng = np.random.default_rng(self._seed)
        self._spread = np.ones(self.words.home.shape)

    def candidates(self, mean: Array, count: int) -> Array:
        """(count, rows, k): the mean itself, then the library's, then random ones. Half of the variance is common to
        all rows."""
        words, rng = self.words, self._rng
        rows, k = mean.shape
        noise = rng.normal(size=(count, rows, k))
        if rows > 1:
            noise = np.sqrt(0.5) * noise + np.sqrt(0.5) * rng.normal(size=(count, 1, k))
        found = within(words, mean + noise * self._spread * words.scale)
        found[0] = mean
        for j, plan in enumerate(words.library[: max(0, count // 8)], 1):
            found[j] = plan
        return found

    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """The plan that follows from the costs; those that failed are infinite."""
        order = np.argsort(costs, kind="stable")
        sound = int(np.isfinite(costs).sum())
        if not sound:
            return before
        best = int(order[0])
        if 1 <= best <= len(self.words.library[: max(0, len(candidates) // 8)]):
            own: Array = candidates[best].copy()
            return own
        some = candidates[order[: max(2, min(sound, int(ELITE * len(candidates))))]]
        spread = some.std(axis=0) / np.where(self.words.scale > 0.0, self.words.scale, np.inf)
        kept = SMOOTH * self._spread + (1.0 - SMOOTH) * 1.2 * spread
        self._spread = np.clip(GROWS * np.clip(kept, FLOOR, 1.0), FLOOR, 1.0)
        found: Array = some.mean(axis=0)
        return found


# Model predictive path integral control: the mean of all candidates, weighed by exp(-cost / temperature).


TEMPERATURE = 0.3
"""Of the distance from the best cost to the median."""


class Mppi(CrossEntropy):
    """A method as CrossEntropy, with another mean and a spread that stays (Williams, Aldrich and Theodorou 2017)."""

    name = "mppi"

    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """The plan that follows from the costs."""
        sound = np.isfinite(costs)
        if not sound.any():
            return before
        found, least = costs[sound], float(costs[sound].min())
        heat = TEMPERATURE * max(float(np.median(found)) - least, 1e-12)
        weights = np.exp(-(found - least) / heat)
        mixed: Array = np.einsum("n,nrk->rk", weights / weights.sum(), candidates[sound])
        return mixed


# Predictive sampling: the best candidate is the plan (Howell et al. 2022).


class PredictiveSampling(CrossEntropy):
    """A method as CrossEntropy, without any mean."""

    name = "ps"

    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """The plan that follows from the costs."""
        best = int(np.argmin(costs))
        return candidates[best].copy() if np.isfinite(costs[best]) else before


# One plan: candidates, rollouts of the model under them, costs, the next mean; the best so far when time is up.


METHODS: dict[str, type[CrossEntropy]] = {one.name: one for one in (CrossEntropy, Mppi, PredictiveSampling)}
CHUNK = 16
"""Candidates between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What came of it.

    words     (rows, k);  good  False where no candidate ended well: the words are then those from before
    finished  candidates whose runs were taken;  failed  of these, runs that ended early or cost no number
    least, spread   of the costs: the least, and the median less the least
    path      (samples, 3) m, of the best candidate
    seconds   it took
    iterations   of a method that goes from one plan to a better one
    shown     (k, points, 3) m, of a few other candidates (rtmms.planning.shadow)
    """

    words: Array
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
    """Plans for a model of the robot.

    model      a plant of which many runs may go on (rtmms.plant.protocol.HasFork); its dt is the plan's grid
    samples    candidates of a plan;  threads  they run on;  seed  of what is random in them
    UnknownNameError for a method or an output of the cost that there is none of.
    """

    def __init__(
        self, model: Any, words: Words, cost: Cost, *, method: str = "cem", horizon_s: float = 2.5, samples: int = 32,
        threads: int = 1, seed: int = 0,
    ) -> None:  # fmt: skip
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        forking: Any = model if isinstance(model, HasFork) else None
        if (forking is None or forking.fork() is None) and not isinstance(model, RollsOut):
            raise ModelError("planner: this robot has no compiled steps to plan with")
        known = {channel.name for channel in model.outputs}
        if "position" not in known:
            raise ModelError(
                "planner: this robot has no output 'position', by which plans are drawn: plan for a robot with a free "
                "body"
            )
        for name in cost.outputs:
            if name not in known:
                raise UnknownNameError("output (of the cost)", name, sorted(known))
        self.model, self.words, self.cost, self.samples, self._threads = model, words, cost, samples, threads
        self.steps: int = round(horizon_s / model.dt)
        self.method = METHODS[method](words, seed)
        self.mean = words.home.copy()
        self.pool = Rollout(model, threads)

    def clear(self) -> None:
        """As new. The threads, too: they run where the thread runs that plans next."""
        self.pool.close()
        self.pool = Rollout(self.model, self._threads)
        self.method.clear()
        self.mean = self.words.home.copy()

    def close(self) -> None:
        """End its threads."""
        self.pool.close()

    def plan(
        self, state: Array, since: float, until: float = math.inf, fixed: Callable[[Array], Array] | None = None
    ) -> Plan:
        """From the model's present state.

        state  of the words, where the plan begins;  since  s, that the present mean has been in use then
        until  time.monotonic() from which on no further candidates are begun
        fixed  (p, steps, n) commands -> those that the robot obeys, where something holds it
        """
        begin = time.monotonic()
        if since > 0.0:
            self.mean = self.words.shifted(self.mean, since)
        plans = self.method.candidates(self.mean, self.samples)
        costs = np.full(len(plans), math.inf)
        done, path, least, ways = 0, np.zeros((0, 3)), math.inf, []
        while done < len(plans) and (done == 0 or time.monotonic() < until):
            part = slice(done, min(done + CHUNK, len(plans)))
            commands, _ = self.words.commands(plans[part], state, 0.0, self.steps, self.model.dt)
            if fixed is not None:
                commands = fixed(commands)
            names = dict.fromkeys((*self.cost.outputs, "position"))
            runs = self.pool(commands, outputs=tuple(names))
            found = self.cost.total(runs.outputs, runs.commands, runs.dt, runs.every, runs.steps)
            costs[part] = found
            ways.append(runs.outputs["position"][:, places(runs.outputs["position"].shape[1])])
            best = int(np.argmin(found))
            if found[best] < least:
                least, path = float(found[best]), runs.outputs["position"][best].copy()
            done = part.stop
        tried, cost = plans[:done], costs[:done]
        self.mean = self.method.mean(tried, cost, self.mean)
        sound = cost[np.isfinite(cost)]
        spread = float(np.median(sound) - sound.min()) if sound.size else math.nan
        shown = np.concatenate(ways)[chosen(cost)]
        seconds = time.monotonic() - begin
        return Plan(
            self.mean.copy(), bool(sound.size), done, done - int(sound.size), least, spread, path, seconds, shown=shown
        )


# Knots of the commands themselves, for any robot: straight lines between them, held after the last.


USUAL = 0.1
"""Of an actuator's range: by how much candidates differ."""


class Knots:
    """Words (rtmms.planning.planner): the values of all actuators at `rows` times, evenly spaced over the horizon.

    actuators  with limits to both sides, else ModelError;  home (n,) or (rows, n) their values at first
    period_s   of a gait: beyond its end a plan goes on as it was a period before; 0: it stays
    mixing     (n, n) words that are not the commands themselves: commands = mixing words, within their limits
    """

    def __init__(
        self, actuators: tuple[Channel, ...], rows: int, horizon_s: float, home: Array, period_s: float = 0.0,
        mixing: Array | None = None,
    ) -> None:  # fmt: skip
        for one in actuators:
            if one.lower is None or one.upper is None or not np.isfinite([one.lower, one.upper]).all():
                raise ModelError(f"knots: actuator '{one.name}' has no limits: a plan needs them to both sides")
        self.names = tuple(one.name for one in actuators)
        self.lower = np.array([one.lower for one in actuators], dtype=np.float64)
        self.upper = np.array([one.upper for one in actuators], dtype=np.float64)
        self.home = np.array(np.broadcast_to(np.clip(home, self.lower, self.upper), (rows, len(actuators))))
        self._mixing, self._most = mixing, (self.lower, self.upper)
        if mixing is not None:
            inverse = np.linalg.inv(mixing)
            self.home = self.home @ inverse.T
            middle, half = (
                inverse @ (0.5 * (self.lower + self.upper)),
                np.abs(inverse) @ (0.5 * (self.upper - self.lower)),
            )
            self.lower, self.upper = middle - half, middle + half
        self.scale = USUAL * (self.upper - self.lower)
        self.library = (self.home,)
        self.at, self._period = np.linspace(0.0, horizon_s, rows), min(period_s, horizon_s)

    def start(self) -> Array:
        """See Words."""
        return np.zeros(0)

    def commands(self, plans: Array, state: Array, since: float, steps: int, dt: float) -> tuple[Array, Array]:
        """See Words."""
        times = since + dt * np.arange(1, steps + 1)
        if len(self.at) == 1:
            return self._mixed(np.repeat(plans, steps, axis=1)), state.copy()
        row = np.clip(np.searchsorted(self.at, times, side="right") - 1, 0, len(self.at) - 2)
        part = np.clip((times - self.at[row]) / (self.at[1] - self.at[0]), 0.0, 1.0)[None, :, None]
        found = plans[:, row] + part * (plans[:, row + 1] - plans[:, row])
        return self._mixed(np.ascontiguousarray(found)), state.copy()

    def _mixed(self, words: Array) -> Array:
        """Commands (p, steps, n) of words."""
        if self._mixing is None:
            return words
        return np.ascontiguousarray(np.clip(words @ self._mixing.T, *self._most))

    def shifted(self, plan: Array, by: float) -> Array:
        """See Words."""
        later = self.at + by
        if self._period > 0.0:
            beyond = np.maximum(later - self.at[-1], 0.0)
            later = later - self._period * np.ceil(beyond / self._period - 1e-9)
        later = np.minimum(later, self.at[-1])
        return np.array([np.interp(later, self.at, column) for column in plan.T]).T


# A thread that computes for long beside a controller's answers to states.


BEHIND = 5
"""Nice values by which it gives way to the thread that answers."""
SWITCH_S = 0.2e-3
"""After which Python hands over to a thread that waits, in place of 5 ms: so long may a plan hold up an answer."""


class Background:
    """One thread; `submit` as that of an executor of the standard library.

    It runs on the cores that the process had when this was made, and behind what answers: a real-time loop takes light
    controllers onto its own core (docs/realtime.md), where a long computation would starve both.
    """

    def __init__(self, name: str) -> None:
        self._cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self._nice = os.getpriority(os.PRIO_PROCESS, 0) + BEHIND if hasattr(os, "getpriority") else 0
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin when what was submitted before is done."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        return self._pool.submit(self._run, function, arguments)

    def close(self) -> None:
        """Wait for the end of what was submitted. The next `submit` begins anew."""
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
