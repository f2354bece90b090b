"""Traces of a run in fixed memory: samples of outputs, commands, and errors of set-points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.analysis.courses import Course, read_course
from rtmms.base.contract import PLANNED_MOTION, PLANNED_SAMPLES, TRUTH
from rtmms.base.errors import ModelError
from rtmms.base.override import override
from rtmms.loop.ports import Observer

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.loop.ports import Applied, Array
    from rtmms.plant.protocol import Channel


# Samples of a run's outputs in fixed memory: over the whole run, and of the last seconds.


MAX_SAMPLES = 32768


def _columns(outputs: Sequence[Channel], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    shapes = {channel.name: channel.shape for channel in outputs}
    return {name: shapes[name] for name in names}


class Trace(Observer):
    """Evenly spaced samples of some outputs over a run of any length.

    A sample is taken every `stride` steps. When the memory is full, the stride doubles. New samples then replace, one
    by one, those that are not on the new grid, so that no step copies everything. So the newest part of the run is as
    dense as the oldest, except during a doubling. If the number of steps is known, the stride is chosen at the start.

    Parameters
    ----------
    outputs : Sequence[Channel]
        The plant's channels.
    names : Sequence[str]
        Names of the stored outputs.
    dt : float
        Simulated time of a step, s.
    steps : int | None
        Steps of the run; None if unknown.
    capacity : int, default MAX_SAMPLES
        Most samples.
    apart_s : float, default 0.0
        Least time between samples, s, because observing a state costs several times a step.
    first : int, default 0
        Step with which the run begins; 0 again after a reset.

    Attributes
    ----------
    due : int
        Next step whose end is wanted; the loop reads it.
    """

    def __init__(
        self, outputs: Sequence[Channel], names: Sequence[str], dt: float, steps: int | None,
        capacity: int = MAX_SAMPLES, apart_s: float = 0.0, first: int = 0,
    ) -> None:  # fmt: skip
        self.names, self.dt, self.capacity, self.first = tuple(names), dt, capacity, first
        self.stride = max(1, round(apart_s / dt))
        if steps is not None:
            self.stride = max(self.stride, math.ceil((steps + 1) / capacity))
        self._values = {name: np.full((capacity, *shape), 0.0) for name, shape in _columns(outputs, self.names).items()}
        self._step = np.full(capacity, -1, dtype=np.int64)
        self._free: npt.NDArray[np.int64] = np.arange(capacity)
        self._next = 0
        self.due = 0

    def clear(self) -> None:
        """Discard the samples; the stride remains."""
        self._step.fill(-1)
        self._free, self._next, self.due, self.first = np.arange(self.capacity), 0, 0, 0

    @override
    def start(self, outputs: Mapping[str, Array]) -> None:
        """Store the state before the first step."""
        if self.first % self.stride == 0:
            self._write(self.first, outputs)
        self.due = (self.first // self.stride + 1) * self.stride - 1

    @override
    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Store the state at the end of a step."""
        self._write(step + 1, outputs)
        self.due = ((step + 1) // self.stride + 1) * self.stride - 1

    def _write(self, at_step: int, outputs: Mapping[str, Array]) -> None:
        if self._next == len(self._free):
            self.stride *= 2
            self._free, self._next = np.flatnonzero(self._step % self.stride), 0
            if at_step % self.stride:
                return
        place = self._free[self._next]
        for name, column in self._values.items():
            column[place] = outputs[name]
        self._step[place] = at_step
        self._next += 1

    def read(self) -> tuple[Array, dict[str, Array]]:
        """Return the samples, sorted by time and evenly spaced.

        During a doubling the older, denser half is thinned in the copy.

        Returns
        -------
        tuple[Array, dict[str, Array]]
            Time (k,), s, and (k, *shape) values by name.
        """
        stored = np.flatnonzero((self._step >= 0) & (self._step % self.stride == 0))
        stored = stored[np.argsort(self._step[stored])]
        time: Array = self._step[stored].astype(np.float64) * self.dt
        return time, {name: column[stored] for name, column in self._values.items()}


class Recent(Observer):
    """Last samples of some outputs, one every `stride` steps, in a ring (fin shapes for the figure).

    Parameters
    ----------
    outputs : Sequence[Channel]
        The plant's channels.
    names : Sequence[str]
        Names of the stored outputs.
    dt : float
        Simulated time of a step, s.
    seconds : float, default 4.0
        Simulated time that the ring covers, s.
    rows : int, default 512
        Samples in the ring.
    """

    def __init__(
        self, outputs: Sequence[Channel], names: Sequence[str], dt: float, *, seconds: float = 4.0, rows: int = 512
    ) -> None:
        self.names, self.dt, self.rows = tuple(names), dt, rows
        self.stride = max(1, math.ceil(seconds / (rows * dt)))
        self._values = {name: np.full((rows, *shape), 0.0) for name, shape in _columns(outputs, self.names).items()}
        self._step = np.full(rows, -1, dtype=np.int64)
        self._written = 0
        self.due = self.stride - 1

    def clear(self) -> None:
        """Discard the samples."""
        self._step.fill(-1)
        self._written, self.due = 0, self.stride - 1

    @override
    def start(self, outputs: Mapping[str, Array]) -> None:
        """Do nothing, because the ring has the end of the run."""

    @override
    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Store the state at the end of a step."""
        place = self._written % self.rows
        for name, column in self._values.items():
            column[place] = outputs[name]
        self._step[place] = step + 1
        self._written += 1
        self.due = step + self.stride

    def read(self) -> tuple[Array, dict[str, Array]]:
        """Return the samples, oldest first.

        Returns
        -------
        tuple[Array, dict[str, Array]]
            Time (k,), s, and (k, *shape) values by name.
        """
        stored = np.flatnonzero(self._step >= 0)
        stored = stored[np.argsort(self._step[stored])]
        time: Array = self._step[stored].astype(np.float64) * self.dt
        return time, {name: column[stored] for name, column in self._values.items()}


# The trace of a run's commands: a lockstep replay needs them for the same bits, and compares its results with the
# trace.


MAX_MEMORY_BYTES = 1 << 29
"""Most bytes of a trace; a longer run needs the recorder, or a larger limit on purpose."""
MAX_OUTPUT_NUMBERS = 4


class CommandTrace:
    """Every step's command, outcome and small outputs (at most 4 numbers each), in memory allocated before the run.

    Parameters
    ----------
    actuators : Sequence[Channel]
        The plant's actuators.
    outputs : Sequence[Channel]
        The plant's outputs.
    steps : int
        Steps of the run.
    limit : int, default MAX_MEMORY_BYTES
        Most bytes.

    Attributes
    ----------
    command : (steps, n) array
        The command as the plant received it, after the miss policy.
    outcome : (steps,) uint8 array
        A StepOutcome.
    seq, lateness_ns : (steps,) array
        As in Applied.
    check : (steps, c) array
        The small outputs at the end of each step, flattened in the order of `checked`.
    altered : list of int
        Steps at which a request changed the state from outside; such a run cannot be replayed.

    Raises
    ------
    ModelError
        If the run does not fit into `limit` bytes.
    """

    def __init__(
        self, actuators: Sequence[Channel], outputs: Sequence[Channel], steps: int, limit: int = MAX_MEMORY_BYTES
    ) -> None:
        self.checked = tuple(c for c in outputs if math.prod(c.shape) <= MAX_OUTPUT_NUMBERS)
        width = sum(math.prod(channel.shape) for channel in self.checked)
        row = 8 * (len(actuators) + width + 2) + 1
        if row * steps > limit:
            raise ModelError(
                f"command trace: {steps} steps need {row * steps >> 20} MiB, more than the limit of "
                f"{limit >> 20} MiB; expected at most {limit // row} steps"
            )
        # written, not only allocated: a first access during the run would be a page fault within a step
        self.command: Array = np.full((steps, len(actuators)), 0.0)
        self.check: Array = np.full((steps, width), 0.0)
        self.seq: npt.NDArray[np.int64] = np.full(steps, -1)
        self.lateness_ns: npt.NDArray[np.int64] = np.full(steps, 0)
        self.outcome: npt.NDArray[np.uint8] = np.full(steps, 0, dtype=np.uint8)
        self.steps = 0
        self.altered: list[int] = []
        self._slices: list[tuple[str, slice]] = []
        at = 0
        for channel in self.checked:
            size = math.prod(channel.shape)
            self._slices.append((channel.name, slice(at, at + size)))
            at += size

    def clear(self, parameters_set: bool = False) -> None:
        """Begin the trace again, because the plant was reset.

        Parameters
        ----------
        parameters_set : bool, default False
            Whether a request had set a parameter: a reset does not set it back, so the run cannot be replayed.
        """
        self.steps, self.altered = 0, [0] if parameters_set else []

    def record(self, step: int, command: Array, outcome: int, applied: Applied, outputs: Mapping[str, Array]) -> None:
        """Store a finished step; steps beyond the memory are dropped (a run longer than declared).

        Parameters
        ----------
        step : int
            Index of the step.
        command : Array
            The command over the step.
        outcome : int
            Its StepOutcome.
        applied : Applied
            Results of the step's exchange.
        outputs : Mapping[str, Array]
            Outputs at its end.
        """
        if step >= len(self.outcome):
            return
        self.command[step] = command
        self.outcome[step] = outcome
        self.seq[step] = applied.seq
        self.lateness_ns[step] = applied.lateness_ns
        row = self.check[step]
        for name, place in self._slices:
            value = outputs[name]
            row[place] = value if value.ndim < 2 else value.ravel()
        self.steps = step + 1

    def columns(self) -> list[str]:
        """Return the name of each column of `check`, for example 'velocity[0]'.

        Returns
        -------
        list[str]
            The names.
        """
        names: list[str] = []
        for channel in self.checked:
            size = math.prod(channel.shape)
            names += [channel.name] if channel.shape == () else [f"{channel.name}[{i}]" for i in range(size)]
        return names


# Deviation of a run from its controllers' set-points: the truth of each sample against the set-point at that time.


SAMPLE_S = 0.02
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Multiples of it, modulo 1, cover the interval from 0 to 1 evenly (Weyl)."""
CELLS_WITHOUT_POINTS = 50
"""Samples that are left out while there are no set-points."""
HELD_S = 1.0
"""Time within its band after which a set-point counts as reached, s."""
SHARE = 0.05
"""Width of the band as a share of the set-point's step; it is not less than the quantity's own band."""
_BANDS = {"_m": 0.03, "_deg": 3.0, "_m_s": 0.05}
_FIRST_ROOM = 1 << 12
"""Samples for which there is room at the start."""
_MAX_TRACKED_SAMPLES = 1 << 20
"""Samples of a set-point's course."""
_TRUTH = ("position", "quaternion", "velocity")


def _angle(k: int) -> Callable[[Mapping[str, Array]], float]:
    def angle_of(outputs: Mapping[str, Array]) -> float:
        w, x, y, z = (float(component) for component in outputs["quaternion"])
        if k == 0:
            return math.degrees(math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)))
        if k == 1:
            return math.degrees(math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x)))))
        return math.degrees(math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))

    return angle_of


def _place(k: int, sign: float = 1.0) -> Callable[[Mapping[str, Array]], float]:
    return lambda outputs: sign * float(outputs["position"][k])


QUANTITIES: Mapping[str, Callable[[Mapping[str, Array]], float]] = {
    "depth_m": _place(2, -1.0), "altitude_m": _place(2), "x_m": _place(0), "y_m": _place(1), "z_m": _place(2),
    "roll_deg": _angle(0), "pitch_deg": _angle(1), "heading_deg": _angle(2), "yaw_deg": _angle(2),
    "speed_m_s": lambda outputs: float(outputs["velocity"][0]),
}  # fmt: skip
"""Quantities that may be tracked, from the truth: position, attitude, body-x velocity.

cross_track_m, of a course, is not among them.
"""
CROSS = "cross_track_m"


class _Samples:
    """Time, set-point and error of one quantity (samples, 3), in an array that doubles when it is full."""

    __slots__ = ("_rows", "count")

    def __init__(self) -> None:
        self._rows, self.count = np.empty((_FIRST_ROOM, 3)), 0

    def add(self, time: float, point: float, error: float) -> None:
        if self.count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        row = self._rows[self.count]
        row[0], row[1], row[2] = time, point, error
        self.count += 1

    def all(self) -> Array:
        return self._rows[: self.count]


class Tracking(Observer):
    """Observer of the errors between set-points and truth.

    Parameters
    ----------
    dt : float
        Simulated time of a step, s.
    set_points : Callable[[], Mapping[str, Any]]
        Returns the present set-points by name.
    from_s : float, default 0.0
        Simulated time before which errors do not count, s.
    report : Callable[[int, Mapping[str, Any]], None] | None, optional
        Called when the set-points change, with the step at whose end they are seen.

    Attributes
    ----------
    due : int
        Next step whose end is wanted; the loop reads it.
    """

    def __init__(
        self, dt: float, set_points: Callable[[], Mapping[str, Any]], from_s: float = 0.0,
        report: Callable[[int, Mapping[str, Any]], None] | None = None,
    ) -> None:  # fmt: skip
        self._dt, self._ask, self._from_s, self._report = dt, set_points, from_s, report
        self._last_points: Mapping[str, Any] = {}
        self._stride = max(1, round(SAMPLE_S / dt))
        self._cell = 0
        self._rows: dict[str, _Samples] = {}
        self._truth: dict[str, Array] = {}
        self._courses: dict[str, tuple[Course | None, float]] = {}
        self._unknown: dict[str, None] = {}
        self.due = 0

    def clear(self) -> None:
        """Discard all samples."""
        self._rows.clear()
        self._truth.clear()
        self._courses.clear()
        self._last_points = {}
        self._cell, self.due = 0, 0

    @override
    def start(self, outputs: Mapping[str, Array]) -> None:
        """Begin with the state before the first step."""
        self._cell, self.due = 0, self._stride - 1

    @override
    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Store the errors at the end of a step."""
        points = self._ask()
        self._wait(step, 1 if points else CELLS_WITHOUT_POINTS)
        if points != self._last_points:
            self._last_points = points
            if self._report is not None:
                self._report(step, points)
        if not points:
            return
        truths: dict[str, Mapping[str, Array]] = {}
        for name, wanted in points.items():
            prefix = name[: name.rfind(".") + 1]
            truth = truths.get(prefix)
            if truth is None:
                truth = truths[prefix] = self._truth_of(outputs, prefix)
            rows = self._rows.get(name)
            if rows is None:
                rows = self._rows[name] = _Samples()
            if rows.count >= _MAX_TRACKED_SAMPLES:
                continue
            try:
                error, point = self._error(name, name.removeprefix(prefix), wanted, truth)
            except KeyError:  # the plant has no pose
                continue
            if math.isfinite(error):
                rows.add(time, point, error)

    def _wait(self, step: int, cells: int) -> None:
        """Set the next step of a sample, some cells of SAMPLE_S later.

        Its place within the cell differs from cell to cell, so that the samples of a periodic motion see all its
        phases, whatever its period is.
        """
        self._cell = max(self._cell, step // self._stride - 1)  # of a run that begins late, in one go
        while self.due <= step:
            self._cell += cells
            self.due = self._stride - 1 + math.floor((self._cell + self._cell * GOLDEN % 1.0) * self._stride)

    def _truth_of(self, outputs: Mapping[str, Array], prefix: str = "") -> Mapping[str, Array]:
        """Return the truth by the outputs' own names, or all outputs without a truth.

        `prefix` is the first part of the output names of one of several robots.
        """
        if prefix:
            for begin in (prefix + TRUTH, prefix):
                result = {name: outputs[begin + name] for name in _TRUTH if begin + name in outputs}
                if result:
                    return result
            return {}
        for name in _TRUTH:
            if TRUTH + name in outputs:
                self._truth[name] = outputs[TRUTH + name]
        return self._truth or outputs

    def _error(self, place: str, name: str, wanted: Any, truth: Mapping[str, Array]) -> tuple[float, float]:
        """Return the error of a set-point, and its value.

        `place` is the name of the set-point, after its robot's if there are several.
        """
        if name == CROSS and isinstance(wanted, str):
            return self._off_course(place, wanted, np.asarray(truth["position"], dtype=float)), 0.0
        of = QUANTITIES.get(name)
        if isinstance(wanted, str):
            return math.nan, 0.0
        if of is None:
            if name not in (CROSS, PLANNED_MOTION, PLANNED_SAMPLES):
                self._unknown[place] = None
            return math.nan, 0.0
        error = of(truth) - float(wanted)
        if name.endswith("_deg"):
            error = (error + 180.0) % 360.0 - 180.0
        return error, float(wanted)

    def _off_course(self, place: str, course_text: str, position: Array) -> float:
        key = place + " " + course_text
        if key not in self._courses:
            try:
                self._courses[key] = read_course(course_text), 0.0
            except ModelError:
                self._courses[key] = None, 0.0
        result, along = self._courses[key]
        if result is None:
            return math.nan
        along = result.nearest(position, along)
        self._courses[key] = result, along
        if along >= result.whole_m - 1e-6:
            return math.nan
        return float(np.linalg.norm(position - result.at(along)[0]))

    def warnings(self) -> list[str]:
        """Return a sentence for the set-points that cannot be compared with anything.

        Returns
        -------
        list[str]
            At most one.
        """
        if not self._unknown:
            return []
        known = ", ".join([*QUANTITIES, CROSS])
        return [f"set-points {', '.join(self._unknown)}: expected names of quantities to compare them with: {known}"]

    def report(self) -> dict[str, dict[str, float | None]]:
        """Return the errors of each quantity from when it has settled at each set-point.

        A set-point that changes before it is reached does not count, unless it changes more than once in HELD_S.

        Returns
        -------
        dict[str, dict[str, float | None]]
            rms, max, mean and settled_s by quantity. settled_s counts from the last change; None if it never settled:
            then the second half since the last change counts.
        """
        return {name: _judged(name, rows.all(), self._from_s) for name, rows in self._rows.items() if rows.count}


def _judged(name: str, rows: Array, from_s: float) -> dict[str, float | None]:
    time, point, error = rows.T
    counts = np.zeros(len(time), dtype=bool)
    unit = next((end for end in ("_m_s", "_deg", "_m") if name.endswith(end)), "_m")
    band = 5.0 * _BANDS[unit] if name.endswith(CROSS) else _BANDS[unit]
    edges = [0, *(np.flatnonzero(np.diff(point)) + 1), len(time)]
    settled: float | None = None
    for first, last in itertools.pairwise(edges):
        within = np.abs(error[first:last]) <= max(band, SHARE * abs(float(error[first])))
        at = _held(
            within, max(1, round(HELD_S / max(SAMPLE_S, float(np.median(np.diff(time))) if len(time) > 1 else 1.0)))
        )
        settled = None if at is None else float(time[first + at] - time[first])
        if at is not None:
            counts[first + at : last] = True
        elif last == len(time):
            counts[first + len(within) // 2 :] = True
        elif time[last - 1] - time[first] < HELD_S:  # the set-point moves all the time
            counts[first:last] = True
    counts &= time >= from_s
    counted_errors = error[counts]
    if not len(counted_errors):
        return {"rms": None, "max": None, "mean": None, "settled_s": settled}
    return {
        "rms": float(np.sqrt(np.mean(counted_errors**2))),
        "max": float(np.max(np.abs(counted_errors))),
        "mean": float(np.mean(counted_errors)),
        "settled_s": settled,
    }


def _held(within: Any, samples: int) -> int | None:
    """Return the index of the first of `samples` consecutive true values; None if there are none."""
    run = 0
    for k, item in enumerate(within):
        run = run + 1 if item else 0
        if run >= samples:
            return k - samples + 1
    return None
