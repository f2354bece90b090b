"""One plan: candidates, rollouts of the model under them, costs, the next mean; the best so far when time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.rollouts import Rollout
from rtmms.errors import ModelError, UnknownNameError
from rtmms.planning.cost import Cost
from rtmms.planning.cross_entropy import CrossEntropy
from rtmms.planning.mppi import Mppi
from rtmms.planning.predictive_sampling import PredictiveSampling
from rtmms.planning.shown import chosen, places
from rtmms.planning.words import Words
from rtmms.plant import Forking

Array = npt.NDArray[np.float64]

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
    shown     (k, points, 3) m, of a few other candidates (rtmms.planning.shown)
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

    model      a plant of which many runs may go on (rtmms.plant.Forking); its dt is the plan's grid
    samples    candidates of a plan;  threads  they run on;  seed  of what is random in them
    UnknownNameError for a method or an output of the cost that there is none of.
    """

    def __init__(
        self, model: Any, words: Words, cost: Cost, *, method: str = "cem", horizon_s: float = 2.5, samples: int = 32,
        threads: int = 1, seed: int = 0,
    ) -> None:  # fmt: skip
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        forking: Any = model if isinstance(model, Forking) else None
        if forking is None or forking.fork() is None:
            raise ModelError("planner: this robot has no compiled steps to plan with")
        known = {channel.name for channel in model.outputs}
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
        tried, told = plans[:done], costs[:done]
        self.mean = self.method.mean(tried, told, self.mean)
        sound = told[np.isfinite(told)]
        spread = float(np.median(sound) - sound.min()) if sound.size else math.nan
        shown = np.concatenate(ways)[chosen(told)]
        seconds = time.monotonic() - begin
        return Plan(
            self.mean.copy(), bool(sound.size), done, done - int(sound.size), least, spread, path, seconds, shown=shown
        )
