"""Best gaits of a robot by its words: a front between two goals, by CMA-ES on rollouts.

One goal is held at values between its extremes while a run of CMA-ES optimises the other. The front has the candidates
that no other one exceeds in both goals. Candidates are rollouts of a coarser model, whose error is reported. The
front's members are then run on the robot's own model.

Hansen and Ostermeier, Evolutionary Computation 9(2), 2001; the library is cma.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.analysis.rollouts import Rollout
from rtmms.base.budget import OutOfTimeError
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import MIB, new_file_beside, read_input_text
from rtmms.base.install import install_command
from rtmms.base.source_declarations import fact
from rtmms.plant.description import describe_plant
from rtmms.plant.loading import build_plant, builder
from rtmms.plant.protocol import Plant
from rtmms.studies.sweep_in_process import InProcessExchange
from rtmms.version import VERSION
from rtmms.wire.peer.plugins import build

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

GOALS: Mapping[str, tuple[str, float, str]] = {
    "speed": ("mean_speed_m_s", -1.0, "m/s"), "cost_of_transport": ("cost_of_transport", 1.0, ""),
    "power": ("mean_power_w", 1.0, "W"),
}  # fmt: skip
"""Possible goals: the name in the robot's summary, -1 where more is better, unit."""

SECONDS = 30.0
"""Duration of a candidate's run, from rest, s: the summary is of the last whole cycles of its second half, as in `rtmms
run`.
"""
MAX_MEMBERS = 12
"""Largest number of members of a front."""
_SAMPLE_S = 0.02
_LOST = 1e3
_WEIGHT = 30.0
_START = 0.5
_SPREAD = 0.3

Values = Mapping[str, float] | None
"""Goals of a candidate by name; None where it is impossible: beyond limits, without speed, or diverged."""


@dataclass(frozen=True)
class Search:
    """Request of a search.

    Attributes
    ----------
    robot : str
        Name of the robot.
    goals : tuple[str, ...]
        One or two of GOALS.
    at : tuple[float, ...], default ()
        Values of the first goal at which the second is optimised.
    points : int, default 5
        Number of values between the extremes, where `at` is empty.
    most_power_w : float | None, optional
        Largest mean power, W; None for no limit.
    generations : int, default 15
        Generations of each run of CMA-ES.
    size : int, default 10
        Candidates in each generation.
    seed : int, default 0
        Seed of the candidates.
    parameters : Mapping[str, Any]
        Parameters of the robot, as for `rtmms.load`.
    """

    robot: str
    goals: tuple[str, ...]
    at: tuple[float, ...] = ()
    points: int = 5
    most_power_w: float | None = None
    generations: int = 15
    size: int = 10
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> str:
        """Return a key that differs for searches with different candidates.

        Returns
        -------
        str
            Ten hexadecimal digits.
        """
        decisive = [
            VERSION, self.robot, self.goals, self.at, self.points, self.most_power_w, self.generations, self.size,
            self.seed, sorted(self.parameters.items()), _words_of(self.robot),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:10]


@dataclass(frozen=True)
class Gait:
    """A gait of the front.

    Attributes
    ----------
    parameters : Mapping[str, float]
        Parameters of the controller.
    values : Mapping[str, float]
        Goals on the robot's own model.
    coarse : Mapping[str, float]
        Goals on the model of the search.
    """

    parameters: Mapping[str, float]
    values: Mapping[str, float]
    coarse: Mapping[str, float]


@dataclass(frozen=True)
class ParetoFront:
    """Result of a search.

    Attributes
    ----------
    gaits : tuple[Gait, ...]
        Gaits that no other one exceeds in all goals, by the first goal.
    default_values : Values
        Goals of the controller's default gait on the same model.
    error : Mapping[str, float]
        Error of the search's model: {goal: largest share of the value on the robot's own model}.
    tried : Array
        (k, goals) of all candidates, nan where one is impossible.
    controller : str
        Name of the controller.
    model : Mapping[str, Any]
        Parameters of the search's model.
    note : str, default ''
        Why the search ended early.
    """

    gaits: tuple[Gait, ...]
    default_values: Values
    error: Mapping[str, float]
    tried: Array
    controller: str
    model: Mapping[str, Any]
    note: str = ""
    """Reason of an early end of the search; '' without one."""


def check_request(asked: Search) -> Search:
    """Check a request.

    Parameters
    ----------
    asked : Search
        The request.

    Returns
    -------
    Search
        The checked request.

    Raises
    ------
    ModelError
        The goals do not fit together, or a library is missing.
    UnknownNameError
        A goal is unknown.
    """
    for goal in asked.goals:
        if goal not in GOALS:
            raise UnknownNameError("goal of --search", goal, GOALS)
    if not 1 <= len(asked.goals) <= 2 or len(set(asked.goals)) != len(asked.goals):
        raise ModelError(f"--search {','.join(asked.goals)}: expected one goal, or two different ones")
    if asked.at and len(asked.goals) == 1:
        raise ModelError(
            f"--at: expected two goals in --search, as --at lists values of the first, got only {asked.goals[0]}"
        )
    _words_of(asked.robot)
    if importlib.util.find_spec("cma") is None:
        raise ModelError(f"--search: needs the library cma: {install_command('search')}")
    return asked


def _words_of(robot: str) -> Mapping[str, Any]:
    """Return GAIT_SEARCH of the robot's module: its gaits."""
    result = fact(builder(robot).module, "GAIT_SEARCH")
    if not isinstance(result, dict):
        raise ModelError(
            f"robot '{robot}': --search: expected a robot whose gait has parameters to search, such as manta"
        )
    return result


class Model:
    """Plant that candidates run on, from rest, by the controller's own update.

    Parameters
    ----------
    robot : str
        Name of the robot.
    controller : str
        Name of the controller.
    plant : Plant
        The plant.
    threads : int | None
        Threads of the rollouts; None: as many as there are cores.

    Raises
    ------
    ModelError
        The robot has no summary of its runs.
    """

    def __init__(self, robot: str, controller: str, plant: Plant, threads: int | None) -> None:
        about = describe_plant(plant)
        if about.summarise is None:
            raise ModelError(f"robot '{robot}': --search: expected a robot with a summary of its runs, got one without")
        self.robot, self.controller, self.plant = robot, controller, plant
        self._summarise, self._traced = about.summarise, about.trace_outputs
        self.steps = round(SECONDS / plant.dt)
        self.every = max(1, round(_SAMPLE_S / plant.dt))
        self.pool = Rollout(plant, threads)
        plant.reset(0)
        self._first = {name: np.array(plant.observe()[name]) for name in about.trace_outputs}

    def values(self, gaits: Sequence[Mapping[str, float]], goals: Sequence[str]) -> list[Values]:
        """Return the goals of gaits.

        Parameters
        ----------
        gaits : Sequence[Mapping[str, float]]
            Words of each gait.
        goals : Sequence[str]
            Names of the goals.

        Returns
        -------
        list[Values]
            One for each gait.
        """
        tables = [self._commands(gait) for gait in gaits]
        there = [k for k, table in enumerate(tables) if table is not None]
        result: list[Values] = [None] * len(gaits)
        if not there:
            return result
        commands = np.array([tables[k] for k in there])
        runs = self.pool(commands, outputs=self._traced, every=self.every)
        time = np.concatenate([[0.0], runs.time])
        for row, k in enumerate(there):
            if runs.status[row] or not np.array_equal(runs.commands[row], commands[row]):
                continue  # it diverged, or is beyond what the actuators do
            trace = {name: np.concatenate([self._first[name][None], runs.outputs[name][row]]) for name in self._traced}
            summary = self._summarise(time, trace)
            values = {goal: summary.get(GOALS[goal][0]) for goal in goals}
            if all(value is not None and math.isfinite(value) for value in values.values()):
                result[k] = {goal: float(value) for goal, value in values.items()}  # type: ignore[arg-type]
        return result

    def _commands(self, options: Mapping[str, float]) -> Array | None:
        """Return the commands (steps, actuators), None where the controller refuses the gait."""
        plant = self.plant
        spec = self.controller + ":" * bool(options) + ",".join(f"{key}={value!r}" for key, value in options.items())
        try:
            direct = InProcessExchange(plant, self.robot, 0, {self.controller: build(spec)})
        except ModelError:
            return None
        command = np.array([channel.neutral for channel in plant.actuators], dtype=np.float64)
        out = np.empty((self.steps, len(command)))
        for k in range(self.steps):
            direct.pass_by(k)
            direct.collect(k, command, 0)
            out[k] = command
        return out


MAX_STATE_BYTES = 64 * MIB
"""Largest size of the state of a search."""


class SavedSearch:
    """Results of a search, generation by generation, in a file that is written whole or not at all.

    Parameters
    ----------
    path : Path | None
        The file; None: nothing is stored.
    key : str
        Key of the search; the state of another one is not used.

    Raises
    ------
    ModelError
        The file is no state of a search.
    """

    def __init__(self, path: Path | None, key: str) -> None:
        self.path, self.key = path, key
        self.generations: list[list[Values]] = []
        if path is not None and path.is_file():
            try:
                saved = json.loads(read_input_text(path, max_bytes=MAX_STATE_BYTES, expected="the state of a search"))
                stored = saved["generations"] if saved["key"] == key else []
                self.generations = [[None if value is None else dict(value) for value in values] for values in stored]
            except (ValueError, KeyError, TypeError):
                raise ModelError(
                    f"{path}: the file is not the state of a search; delete it to start the search again"
                ) from None

    def add(self, values: list[Values]) -> None:
        """Add a generation.

        Parameters
        ----------
        values : list[Values]
            Goals of its candidates.
        """
        self.generations.append(values)
        if self.path is not None:
            with new_file_beside(self.path, "-o") as part:
                part.write_text(json.dumps({"key": self.key, "generations": self.generations}), encoding="utf-8")


def search(
    asked: Search, *, file: Path | None = None, threads: int | None = None,
    report: Callable[[str, int, int], None] = lambda what, done, total: None, ends_early: bool = False,
) -> ParetoFront:  # fmt: skip
    """Search the front of gaits.

    The result is the same for the same seed, for any number of threads, and also after an interruption.

    Parameters
    ----------
    asked : Search
        The request.
    file : Path | None, optional
        File of the search's state.
    threads : int | None, optional
        Threads of the rollouts; None: as many as there are cores.
    report : Callable[[str, int, int], None], optional
        Receives the present task, and how many generations of how many are done; it may raise OutOfTimeError.
    ends_early : bool, default False
        Ctrl-C and OutOfTimeError end the search with the front of all results so far, and a note; without results they
        are raised.

    Returns
    -------
    ParetoFront
        The front.
    """
    declaration = _words_of(check_request(asked).robot)
    controller, ranges = str(declaration["controller"]), declaration["words"]
    coarse = build_plant(asked.robot, **{**declaration["model"], **asked.parameters})
    measured = tuple(dict.fromkeys((*asked.goals, *(("power",) if asked.most_power_w is not None else ()))))
    state, names = SavedSearch(file, asked.key()), list(ranges)
    archive: list[tuple[dict[str, float], Values]] = []
    note = ""
    model, done = Model(asked.robot, controller, coarse, threads), 0
    with model.pool:

        def measure(points: Array) -> list[Values]:
            nonlocal done
            gaits = [_gait(ranges, point) for point in points]
            if done < len(state.generations) and len(state.generations[done]) == len(gaits):
                result = state.generations[done]
            else:
                result = model.values(gaits, measured)
                del state.generations[done:]
                state.add(result)
            done += 1
            archive.extend(zip(gaits, result, strict=True))
            return result

        runs = len(asked.goals) + (len(asked.at) or asked.points) * (len(asked.goals) == 2)
        try:
            for k, (what, score) in enumerate(_tasks(asked, archive)):
                for points, put in _evolution(len(names), asked, k):
                    report(what, done, runs * asked.generations)
                    put([_penalised(item, asked, score) for item in measure(points)])
        except (KeyboardInterrupt, OutOfTimeError) as ended:
            if not ends_early or not any(_allowed(item, asked) for _, item in archive):
                raise
            why = "Ctrl-C" if isinstance(ended, KeyboardInterrupt) else str(ended)
            note = f"{why}: {done} of {runs * asked.generations} generations are done; these are the best gaits so far"
    if not note:
        report("the front on the robot's own model", done, runs * asked.generations)
    best = _thinned(_front([(gait, item) for gait, item in archive if _allowed(item, asked)], asked.goals), asked)
    full_model = Model(asked.robot, controller, build_plant(asked.robot, **asked.parameters), threads)
    with full_model.pool:
        full = full_model.values([gait for gait, _ in best], (*measured, *(g for g in GOALS if g not in measured)))
        (default,) = full_model.values([{}], tuple(GOALS))
    built = [Gait(gait, item, rough or {}) for (gait, rough), item in zip(best, full, strict=True) if item is not None]
    front = _front([(item, item.values) for item in built if _allowed(item.values, asked)], asked.goals)
    error = {
        goal: max(
            (abs(item.coarse[goal] - item.values[goal]) / abs(item.values[goal]) for item, _ in front), default=0.0
        )
        for goal in asked.goals
    }
    tried = np.array([[math.nan if item is None else item[goal] for goal in asked.goals] for _, item in archive])
    return ParetoFront(tuple(item for item, _ in front), default, error, tried, controller, declaration["model"], note)


def _thinned(front: list[Any], asked: Search) -> list[Any]:
    """Return the members that run on the robot's own model, MAX_MEMBERS at most.

    For each value of `at` it is the best that reaches it, and evenly from the others.
    """
    if len(front) <= MAX_MEMBERS:
        return front
    sign = GOALS[asked.goals[0]][1]
    reach = [sum(sign * (item[asked.goals[0]] - level) <= 0.0 for _, item in front) - 1 for level in asked.at]
    indices = {k for k in reach if k >= 0}
    for k in np.linspace(0, len(front) - 1, max(2, MAX_MEMBERS - len(indices))):
        indices.add(round(k))
    return [front[k] for k in sorted(indices)]


def _gait(ranges: Mapping[str, Any], point: Array) -> dict[str, float]:
    """Return the words of a point of the unit cube, rounded to digits that a person would type."""
    return {
        name: float(f"{lower + float(x) * (upper - lower):.5g}")
        for (name, (lower, upper)), x in zip(ranges.items(), point, strict=True)
    }


Score = Callable[[Mapping[str, float]], float]


def _tasks(asked: Search, archive: Sequence[tuple[Mapping[str, float], Values]]) -> Iterator[tuple[str, Score]]:
    """Return the score that each run of CMA-ES minimises: each goal alone, then the second with the first held."""
    for goal in asked.goals:
        yield f"best {goal}", _alone(goal)
    if len(asked.goals) < 2:
        return
    first, second = asked.goals
    sound = _front([item for item in archive if _allowed(item[1], asked)], asked.goals)
    ends = [[item[goal] for _, item in sound if item is not None] or [0.0, 1.0] for goal in asked.goals]
    levels = asked.at or tuple(np.linspace(min(ends[0]), max(ends[0]), asked.points + 2)[1:-1])
    sizes = [max(map(abs, values)) or 1.0 for values in ends]
    for level in levels:
        yield f"best {second} at {first} {level:.3g}", _held(first, second, float(level), sizes)


def _alone(goal: str) -> Score:
    return lambda values: GOALS[goal][1] * values[goal]


def _held(first: str, second: str, level: float, sizes: Sequence[float]) -> Score:
    """Return the second goal, plus a penalty where the first is worse than its level, both as shares of their sizes."""

    def score(values: Mapping[str, float]) -> float:
        short = max(0.0, GOALS[first][1] * (values[first] - level)) / sizes[0]
        return GOALS[second][1] * values[second] / sizes[1] + _WEIGHT * short

    return score


def _allowed(values: Values, asked: Search) -> bool:
    return values is not None and (asked.most_power_w is None or values["power"] <= asked.most_power_w)


def _penalised(values: Values, asked: Search, score: Score) -> float:
    if values is None:
        return _LOST
    if asked.most_power_w is None:
        return score(values)
    return score(values) + _WEIGHT * max(0.0, values["power"] / asked.most_power_w - 1.0)


def _evolution(n: int, asked: Search, run: int) -> Iterator[tuple[Array, Callable[[list[float]], None]]]:
    """Return the generations of one run of CMA-ES in the unit cube: the candidates, and a function of their scores."""
    import cma  # type: ignore[import-untyped]

    strategy = cma.CMAEvolutionStrategy(
        [_START] * n, _SPREAD,
        {"bounds": [0.0, 1.0], "seed": 1 + asked.seed * 1000 + run, "popsize": asked.size, "verbose": -9,
         "maxiter": asked.generations},
    )  # fmt: skip
    for _ in range(asked.generations):
        points = strategy.ask()
        yield np.array(points), partial(strategy.tell, points)


def _front(candidates: Sequence[tuple[Any, Values]], goals: Sequence[str]) -> list[tuple[Any, Values]]:
    """Return the candidates that no other one exceeds in all goals, by the first goal."""
    signs = [GOALS[goal][1] for goal in goals]
    rows = [(entry, tuple(sign * values[goal] for sign, goal in zip(signs, goals, strict=True)), values)
            for entry, values in candidates if values is not None]  # fmt: skip
    rows.sort(key=lambda row: row[1])
    front: list[tuple[Any, Values]] = []
    least = math.inf
    for item, scores, values in rows:
        if scores[-1] < least or not front:
            front.append((item, values))
            least = min(least, scores[-1]) if len(scores) > 1 else -math.inf
    return front
