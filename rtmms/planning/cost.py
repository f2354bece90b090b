"""What a plan costs.

    J = 1 / T int_0^T running(state, command, time) dt + terminal(state)

Both are plain functions that numba compiles; `state` has the outputs that the cost names, as arrays.
"""

from __future__ import annotations

import inspect
import math
import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError

Array = npt.NDArray[np.float64]

POSE = ("position", "quaternion", "velocity", "angular_velocity")
MOST_MEMORY = 1024


class Cost:
    """A running cost, and a terminal one where it has been given (see `cost`).

    outputs  names of the plant's outputs that `state` has, a dot in a name written as _
    memory   numbers of a run's own, 0 at its start
    data     what the functions get as their last argument, if they take it: any tuple that numba knows
    """

    def __init__(self, running: Callable[..., float], outputs: Sequence[str], memory: int, data: Any = ()) -> None:
        self.running, self.outputs, self.memory, self.data = running, tuple(outputs), memory, data
        self.terminal_cost: Callable[..., float] | None = None
        self.__doc__, self.__name__ = running.__doc__, running.__name__
        self.__module__ = running.__module__
        self._total: Any = None
        _takes(running, 3, "running cost", "(state, command, time[, memory[, data]])")

    def terminal(self, function: Callable[..., float]) -> Cost:
        """Decorator of terminal(state[, memory[, data]])."""
        _takes(function, 1, "terminal cost", "(state[, memory[, data]])")
        self.terminal_cost = function
        return self

    def __call__(self, *given: Any) -> float:
        return self.running(*given)

    def total(self, outputs: Mapping[str, Array], commands: Array, dt: float, every: int, taken: Any) -> Array:
        """(runs,) J of each run; infinite where it ended early or a cost is no number.

        outputs   {name: (runs, samples, *shape)} after each `every` steps of dt
        commands  (runs or 1, steps or 1, actuators)
        taken     (runs,) steps that each took
        ModelError where the functions do not compile.
        """
        runs, samples = next(iter(outputs.values())).shape[:2]
        costs = np.full(runs, math.inf)
        memory = np.zeros(max(1, self.memory))
        self._call("total", outputs, commands, dt * every, every, samples, np.asarray(taken), memory, self.data, costs)
        return costs

    def each(
        self, outputs: Mapping[str, Array], commands: Array, times: Array, memories: Array, weight: float,
        lasts: npt.NDArray[np.bool_],
    ) -> Array:  # fmt: skip
        """(count,) of samples one by one: the running cost, and where one is a run's last `weight` times the terminal
        one.

        outputs   {name: (count, *shape)};  commands (count, actuators);  times (count,) s
        memories  (count, max(1, memory)) what a run's memory is before the sample; afterwards it is what is there then
        """
        costs = np.empty(len(commands))
        self._call("each", outputs, commands, times, memories, weight, lasts, self.data, costs)
        return costs

    def _call(self, name: str, outputs: Mapping[str, Array], *given: Any) -> None:
        """One of the compiled loops; ModelError where the functions do not compile."""
        from numba.core.errors import NumbaError

        if self._total is None:
            self._total = _evaluator(self)
        try:
            getattr(self._total, name)(self._total.State(*(outputs[one] for one in self.outputs)), *given)
        except NumbaError as fault:
            raise ModelError(f"cost '{self.__name__}': numba cannot compile it: {_reason(str(fault))}") from None
        except IndexError:
            raise ModelError(f"cost '{self.__name__}': an index is beyond the end of what it stands behind") from None


def cost(function: Any = None, *, outputs: Sequence[str] = POSE, memory: int = 0) -> Any:
    """Decorator of a running cost `f(state, command, time)` for the controller `predictive`; numba compiles it.

    state    has the outputs that are named, at one sample: state.position (3,) and so on, in their units and frames
    command  (actuators,) in the plant's order;  time  s since the plan begins
    memory   with memory=k the function takes (state, command, time, memory): k numbers of the run's own, 0 at first
    `@NAME.terminal` decorates the cost of a run's last state. ModelError for another signature.
    """
    if isinstance(memory, bool) or not isinstance(memory, int) or not 0 <= memory <= MOST_MEMORY:
        raise ModelError(f"cost: memory: expected a whole number from 0 to {MOST_MEMORY}, got {memory!r}")
    if isinstance(outputs, str) or not outputs:
        raise ModelError(f"cost: outputs: expected names of outputs, got {outputs!r}")
    if function is None:
        return lambda found: Cost(found, outputs, memory)
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
    """Of numba's account of what it cannot compile: the cause, and its place in the person's own file."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines()]
    cause = next((line for line in lines if line and not line.startswith("Failed in")), "no reason is given")
    field, place = _FIELD.search(cause), _PLACE.search("\n".join(lines))
    if field is not None:
        cause = f"state has no '{field[1]}'; name it in outputs=(...)"
    elif place is None and "iadd" in cause:
        cause = "expected a number from it, got something else, or nothing"
    return f"{place[1]}, line {place[2]}: {cause[:300]}" if place is not None else cause[:300]


def _compiled(function: Any) -> Any:
    """With a look at each index: what a person writes may be wrong."""
    from numba import njit
    from numba.core.dispatcher import Dispatcher

    return function if isinstance(function, Dispatcher) else njit(function, boundscheck=True)


def _record(fields: Sequence[str]) -> Any:
    """A type with these fields; numba knows the plain namedtuple."""
    make: Any = namedtuple
    return make("State", fields)


class _evaluator:
    """Of one cost: `total` writes the costs of all runs, `each` those of samples; `State` is what they take the outputs
    in."""

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
            state = State({", ".join(f"outputs.{one}[run, sample]" for one in fields)})
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
        state = State({", ".join(f"outputs.{one}[run]" for one in fields)})
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
