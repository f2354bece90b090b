"""Costs of plans, and their first and second derivatives."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.stages import Motion, Stages
from rtmms.base.errors import ModelError
from rtmms.plant.coordinates import rotations

Array = npt.NDArray[np.float64]


# What a plan costs.
#
#     J = 1 / T int_0^T running(state, command, time) dt + terminal(state)
#
# Both are plain functions that numba compiles; `state` has the outputs that the cost names, as arrays.


POSE = ("position", "quaternion", "velocity", "angular_velocity")
MAX_MEMORY_NUMBERS = 1024


class Cost:
    """Running cost, and a terminal one if it has been set (see `cost`).

    Parameters
    ----------
    running : Callable[..., float]
        Function of (state, command, time[, memory[, data]]).
    outputs : Sequence[str]
        Names of the plant's outputs that `state` has, a dot in a name written as _.
    memory : int
        Count of numbers of a run's own, 0 at its start.
    data : Any, default ()
        Last argument of the functions, if they have one: any tuple that numba accepts.
    """

    def __init__(self, running: Callable[..., float], outputs: Sequence[str], memory: int, data: Any = ()) -> None:
        self.running, self.outputs, self.memory, self.data = running, tuple(outputs), memory, data
        self.terminal_cost: Callable[..., float] | None = None
        self.__doc__, self.__name__ = running.__doc__, running.__name__
        self.__module__ = running.__module__
        self._total: Any = None
        _takes(running, 3, "running cost", "(state, command, time[, memory[, data]])")

    def terminal(self, function: Callable[..., float]) -> Cost:
        """Set the terminal cost; use it as a decorator.

        Parameters
        ----------
        function : Callable[..., float]
            terminal(state[, memory[, data]]).

        Returns
        -------
        Cost
            The cost itself.
        """
        _takes(function, 1, "terminal cost", "(state[, memory[, data]])")
        self.terminal_cost = function
        return self

    def __call__(self, *values: Any) -> float:
        """Return the running cost of one sample."""
        return self.running(*values)

    def total(self, outputs: Mapping[str, Array], commands: Array, dt: float, every: int, steps_taken: Any) -> Array:
        """Return J of each run; infinite where it ended early or a cost is no number.

        Parameters
        ----------
        outputs : Mapping[str, Array]
            {name: (runs, samples, *shape)} after each `every` steps of dt.
        commands : Array
            (runs or 1, steps or 1, actuators) commands.
        dt : float
            Step, s.
        every : int
            Steps from sample to sample.
        steps_taken : Any
            (runs,) steps that each run took.

        Returns
        -------
        Array
            (runs,).

        Raises
        ------
        ModelError
            The functions do not compile.
        """
        runs, samples = next(iter(outputs.values())).shape[:2]
        costs = np.full(runs, math.inf)
        memory = np.zeros(max(1, self.memory))
        self._call(
            "total", outputs, commands, dt * every, every, samples, np.asarray(steps_taken), memory, self.data, costs
        )
        return costs

    def each(
        self, outputs: Mapping[str, Array], commands: Array, times: Array, memories: Array, weight: float,
        lasts: npt.NDArray[np.bool_],
    ) -> Array:  # fmt: skip
        """Return the costs of single samples.

        Each is the running cost; for a run's last sample, `weight` times the terminal cost is added.

        Parameters
        ----------
        outputs : Mapping[str, Array]
            {name: (count, *shape)}.
        commands : Array
            (count, actuators) commands.
        times : Array
            (count,) times, s.
        memories : Array
            (count, max(1, memory)) memory of a run before the sample; the memory after it, written.
        weight : float
            Factor on the terminal cost.
        lasts : npt.NDArray[np.bool_]
            (count,) whether a sample is the last of its run.

        Returns
        -------
        Array
            (count,).
        """
        costs = np.empty(len(commands))
        self._call("each", outputs, commands, times, memories, weight, lasts, self.data, costs)
        return costs

    def _call(self, name: str, outputs: Mapping[str, Array], *values: Any) -> None:
        """Call one of the compiled loops, or raise ModelError where the functions do not compile."""
        from numba.core.errors import NumbaError

        if self._total is None:
            self._total = _evaluator(self)
        try:
            getattr(self._total, name)(self._total.State(*(outputs[output] for output in self.outputs)), *values)
        except NumbaError as fault:
            raise ModelError(f"cost '{self.__name__}': numba cannot compile it: {_reason(str(fault))}") from None
        except IndexError:
            raise ModelError(f"cost '{self.__name__}': an index is beyond the end of its array") from None


def cost(function: Any = None, *, outputs: Sequence[str] = POSE, memory: int = 0) -> Any:
    """Decorate a running cost `f(state, command, time)` for the controller `predictive`; numba compiles it.

    `@NAME.terminal` decorates the cost of a run's last state.

    Parameters
    ----------
    function : Any, optional
        f(state, command, time). `state` has the named outputs at one sample: state.position (3,) and so on, in their
        units and frames. `command` is (actuators,) in the plant's order, `time` the seconds since the plan's start.
    outputs : Sequence[str], optional
        Names of the outputs.
    memory : int, default 0
        With memory=k the function is f(state, command, time, memory), with k numbers of the run's own, 0 at first.

    Returns
    -------
    Any
        The cost, or a decorator where no function is given.

    Raises
    ------
    ModelError
        The function has another signature, or an argument is wrong.

    Examples
    --------
    >>> import rtmms
    >>> @rtmms.cost(outputs=("position",))
    ... def height(state, command, time):
    ...     return (state.position[2] + 2.0) ** 2
    >>> height.outputs
    ('position',)
    """
    if isinstance(memory, bool) or not isinstance(memory, int) or not 0 <= memory <= MAX_MEMORY_NUMBERS:
        raise ModelError(f"cost: memory: expected a whole number from 0 to {MAX_MEMORY_NUMBERS}, got {memory!r}")
    if isinstance(outputs, str) or not outputs:
        raise ModelError(f"cost: outputs: expected names of outputs, got {outputs!r}")
    if function is None:
        return lambda running: Cost(running, outputs, memory)
    if not callable(function):
        raise ModelError(f"cost: expected a function f(state, command, time), got {function!r}")
    return Cost(function, outputs, memory)


def _takes(function: Any, least: int, what: str, expected: str) -> int:
    try:
        count = len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        count = -1
    if not least <= count <= least + 2:
        raise ModelError(f"{what} '{getattr(function, '__name__', function)}': expected a function {expected}")
    return count


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r'File "([^<"]+)", line (\d+)')
_FIELD = re.compile(r"Unknown attribute '(\w+)' of type State")


def _reason(text: str) -> str:
    """Return the cause from numba's account of a failed compilation, and its place in the person's own file."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines()]
    cause = next((line for line in lines if line and not line.startswith("Failed in")), "no reason is given")
    field, place = _FIELD.search(cause), _PLACE.search("\n".join(lines))
    if field is not None:
        cause = f"state has no '{field[1]}'; name it in outputs=(...)"
    elif place is None and "iadd" in cause:
        cause = "expected a number from it, got something else, or nothing"
    return f"{place[1]}, line {place[2]}: {cause[:300]}" if place is not None else cause[:300]


def _compiled(function: Any) -> Any:
    """Compile a person's function with checks of each index."""
    from numba import njit
    from numba.core.dispatcher import Dispatcher

    return function if isinstance(function, Dispatcher) else njit(function, boundscheck=True)


def _record(fields: Sequence[str]) -> Any:
    """Return a type with these fields; numba accepts the plain namedtuple."""
    make: Any = namedtuple
    return make("State", fields)


class _evaluator:
    """Compiled loops of one cost: `total` for all runs, `each` for samples; `State` is the type of the outputs."""

    def __init__(self, of: Cost) -> None:
        from numba import njit

        fields = [re.sub(r"\W", "_", name) for name in of.outputs]
        self.State: Any = _record(fields)
        more = ("memory", "data")
        ran = ", ".join(("state", "command", "time", *more)[: _takes(of.running, 3, "running cost", "")])
        last = of.terminal_cost
        ended = ", ".join(("state", *more)[: _takes(last, 1, "terminal cost", "")]) if last is not None else ""
        # numba makes a namedtuple of slices only where its fields are written out
        source = f"""
def total(outputs, commands, dt, every, samples, taken, memory, data, costs):
    for run in range(len(costs)):
        if taken[run] < samples * every:
            continue
        memory[:] = 0.0
        row = run if len(commands) > 1 else 0
        found = 0.0
        for sample in range(samples):
            state = State({", ".join(f"outputs.{field}[run, sample]" for field in fields)})
            step = (sample + 1) * every - 1
            command = commands[row, step if commands.shape[1] > 1 else 0]
            time = (sample + 1) * dt
            found += running({ran})
            {"if sample == samples - 1:" if last is not None else "pass"}
            {f"    found += samples * terminal({ended})" if last is not None else ""}
        if np.isfinite(found):
            costs[run] = found / samples

def each(outputs, commands, times, memories, weight, lasts, data, costs):
    for run in range(len(costs)):
        memory, command, time = memories[run], commands[run], times[run]
        state = State({", ".join(f"outputs.{field}[run]" for field in fields)})
        found = running({ran})
        if lasts[run]:
            found += {f"weight * terminal({ended})" if last is not None else "0.0"}
        costs[run] = found
"""
        names: dict[str, Any] = {"State": self.State, "np": np, "running": _compiled(of.running)}
        if last is not None:
            names["terminal"] = _compiled(last)
        exec(source, names)
        self.total, self.each = njit(names["total"], nogil=True), njit(names["each"], nogil=True)


# First and second derivatives of a cost by the coordinates of a state and by the command, sample by sample.
#
# A cost sees outputs: those of a pose are displaced in its chart, others number by number, all with their curvature.
# What does not stand in the state comes in by its slope alone (Gauss and Newton's approximation). Hessians are made
# positive semidefinite: negative eigenvalues are set to 0. What a cost remembers of earlier samples is taken as it is.


STEP = 1e-3
"""Step of second differences, of a coordinate's size; their rounding is 1e-16 / STEP^2."""


class CostSlopes:
    """Derivatives of one cost of a plant's stages; the stages have the cost's outputs.

    Parameters
    ----------
    cost : Cost
        The cost.
    stages : Stages
        The stages.
    """

    def __init__(self, cost: Cost, stages: Stages) -> None:
        self.cost, self._stages = cost, stages
        coordinates, places = stages.coordinates, stages.places
        self._k, self._n = len(coordinates.names), len(stages.reach)
        at = {int(word): i for i, word in enumerate(coordinates.state_indices) if coordinates.pose < 0 or i >= 6}
        pose = range(coordinates.pose, coordinates.pose + 7) if coordinates.pose >= 0 else range(0)
        self._posed: list[tuple[str, int]] = []  # outputs within the pose, and where each begins there
        self._single: list[tuple[str, int]] = []  # output, which of its numbers
        self._rows: list[int] = []  # of the coordinates
        self._varied: list[tuple[str, int]] = []
        steps: list[float] = []
        for name in cost.outputs:
            size = int(np.prod(stages.shapes[name], dtype=np.int64))
            if name not in places:
                self._varied += [(name, i) for i in range(size)]
                continue
            begin = places[name][0]
            if begin in pose:
                self._posed.append((name, begin - coordinates.pose))
                continue
            for i in range(size):
                if begin + i in at:
                    self._single.append((name, i))
                    self._rows.append(at[begin + i])
                    steps.append(STEP * float(coordinates.size[at[begin + i]]))
        first = list(STEP * coordinates.size[:6]) if self._posed else []
        self._steps = np.array([*first, *steps, *[STEP] * len(self._varied), *(STEP * stages.reach)])
        self._six = len(first)
        self._directions()

    def _directions(self) -> None:
        """Fill the rows of displacements: none, each to both sides, each pair to both sides."""
        m = len(self._steps)
        displacements = np.diag(self._steps)
        self._pairs = list(itertools.combinations(range(m), 2))
        both = np.array([displacements[i] + displacements[j] for i, j in self._pairs]).reshape(-1, m)
        self._moves = np.concatenate([np.zeros((1, m)), displacements, -displacements, both, -both])
        if self._six:  # turns as quaternions (cos, sin axis) of half the angle
            turned = self._moves[:, 3:6]
            angle = np.linalg.norm(turned, axis=1)
            share = np.where(angle > 0.0, np.sin(0.5 * angle) / np.where(angle > 0.0, angle, 1.0), 0.5)
            self._turns = np.concatenate([np.cos(0.5 * angle)[:, None], share[:, None] * turned], axis=1)

    def remembered(self, outputs: Mapping[str, Array], commands: Array, times: Array) -> Array:
        """Return the memory before each sample.

        Parameters
        ----------
        outputs : Mapping[str, Array]
            {name: (s, *shape)}.
        commands : Array
            (s, actuators) commands.
        times : Array
            (s,) times, s.

        Returns
        -------
        Array
            (s, memory).
        """
        cost = self.cost
        stored, now = np.zeros((len(commands), max(1, cost.memory))), np.zeros((1, max(1, cost.memory)))
        if cost.memory:
            never = np.zeros(1, dtype=np.bool_)
            for t in range(len(commands)):
                stored[t] = now[0]
                cost.each({name: outputs[name][t : t + 1] for name in cost.outputs}, commands[t : t + 1],
                          times[t : t + 1], now, 0.0, never)  # fmt: skip
        return stored

    def __call__(self, motion: Motion, dt: float, set_points: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return gradient (s, k + n) and Hessian (s, k + n, k + n) of each sample's share of J.

        Parameters
        ----------
        motion : Motion
            Its samples are the ends of its stages.
        dt : float
            s of a stage.
        set_points : Mapping[str, Array]
            {name: (s, numbers, k)} slopes of outputs that are not part of the state.

        Returns
        -------
        tuple[Array, Array]
            Gradient and Hessian.

        Raises
        ------
        ModelError
            A cost is not finite.
        """
        outputs, commands = motion.outputs, motion.knots[1:]
        count, p, m = len(commands), len(self._moves), len(self._steps)
        times: Array = dt * np.arange(1, count + 1, dtype=np.float64)
        memories = np.repeat(self.remembered(outputs, commands, times), p, axis=0)
        lasts = np.repeat(np.arange(count) == count - 1, p)
        values = {name: np.repeat(outputs[name], p, axis=0) for name in self.cost.outputs}
        moves = np.tile(self._moves, (count, 1))
        if self._posed:
            at = self._stages.coordinates.pose + 3
            self._displace(values, motion.states[1:, at : at + 4])
        for i, (name, number) in enumerate([*self._single, *self._varied]):
            values[name].reshape(len(moves), -1)[:, number] += moves[:, self._six + i]
        pushed = np.repeat(commands, p, axis=0) + moves[:, m - self._n :]
        costs = self.cost.each(values, pushed, np.repeat(times, p), memories, float(count), lasts).reshape(count, p)
        if not np.isfinite(costs).all():
            raise ModelError(
                f"cost '{self.cost.__name__}': expected finite values close to the plan, got others; check "
                "divisions by numbers close to 0"
            )
        return self._spread(*self._differences(costs / count), set_points)

    def _displace(self, values: dict[str, Array], attitude: Array) -> None:
        """Displace poses: p = p_ref + R_ref e, q = q_ref (cos, sin axis) of half the angle.

        Attitude (s, 4) is q_ref.
        """
        for name, begin in self._posed:
            if begin == 0:
                values[name] += (self._moves[:, :3] @ rotations(attitude).transpose(0, 2, 1)).reshape(-1, 3)
            else:
                values[name] = (self._turns @ _before(attitude).transpose(0, 2, 1)).reshape(-1, 4)

    def _differences(self, costs: Array) -> tuple[Array, Array]:
        """Return gradient (s, m) and Hessian (s, m, m) by the displaced numbers, from the costs (s, moves)."""
        m, h = len(self._steps), self._steps
        none, up, down = costs[:, :1], costs[:, 1 : 1 + m], costs[:, 1 + m : 1 + 2 * m]
        gradient = (up - down) / (2.0 * h)
        hessian = np.zeros((len(costs), m, m))
        hessian[:, range(m), range(m)] = (up - 2.0 * none + down) / (h * h)
        pairs = len(self._pairs)
        if pairs:
            i, j = np.array(self._pairs).T
            ahead, behind = costs[:, 1 + 2 * m : 1 + 2 * m + pairs], costs[:, 1 + 2 * m + pairs :]
            mixed = (ahead + behind + 2.0 * none - up[:, i] - up[:, j] - down[:, i] - down[:, j]) / (2.0 * h[i] * h[j])
            hessian[:, i, j] = hessian[:, j, i] = mixed
        scaled = hessian * h[:, None] * h  # so that rounding of one does not pass for curvature of another
        values, vectors = np.linalg.eigh(scaled)
        worst = values[:, 0] < 0.0
        if worst.any():
            eigenvalues = np.maximum(values[worst], 0.0)
            hessian[worst] = (
                (vectors[worst] * eigenvalues[:, None]) @ vectors[worst].transpose(0, 2, 1) / (h[:, None] * h)
            )
        return gradient, hessian

    def _spread(self, gradient: Array, hessian: Array, set_points: Mapping[str, Array]) -> tuple[Array, Array]:
        """Distribute gradient and Hessian to the coordinates of the state and the commands."""
        count, m, k, n = len(gradient), len(self._steps), self._k, self._n
        rows = np.array([*range(self._six), *self._rows], dtype=np.int64)
        if not self._varied:
            at = np.concatenate([rows, k + np.arange(n)])
            g, h = np.zeros((count, k + n)), np.zeros((count, k + n, k + n))
            g[:, at] = gradient
            h[:, at[:, None], at] = hessian
            return g, h
        by = np.zeros((count, m, k + n))
        by[:, range(len(rows)), rows] = 1.0
        for i, (name, number) in enumerate(self._varied):
            by[:, len(rows) + i, :k] = set_points[name][:, number]
        by[:, range(m - n, m), range(k, k + n)] = 1.0
        across = by.transpose(0, 2, 1)
        return np.einsum("smz,sm->sz", by, gradient), across @ hessian @ by


def _before(q: Array) -> Array:
    """Return the matrices (s, 4, 4) that map a quaternion r to q r."""
    w, x, y, z = q.T
    return np.stack([w, -x, -y, -z, x, w, -z, y, y, z, w, -x, z, -y, x, w], axis=1).reshape(-1, 4, 4)
