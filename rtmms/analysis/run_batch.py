"""Batch of runs of a plant's forks, and the kernel that advances it without Python.

A caller describes runs as a `Batch`: their initial states, commands, displacements, feedback, and the results to write.
rtmms.analysis.fork_pool has the forks, and the threads on which they run.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import carray

from rtmms.base.jit import kernel
from rtmms.base.pointers import call, numbers_at
from rtmms.base.spatial import unit_quaternion_rows
from rtmms.plant.optional_protocols import Coordinates

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Coordinates of a state as compiled code reads and moves them (rtmms.plant.Coordinates).


@kernel
def turn(state: Any, at: int, axis: int, angle: float) -> None:
    """Multiply the quaternion at state[at] by the rotation by an angle about one of its axes.

    Parameters
    ----------
    state : Any
        (w,) state, changed in place.
    at : int
        Index of the quaternion.
    axis : int
        0 to 2.
    angle : float
        Angle, rad.
    """
    c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
    w, x, y, z = state[at], state[at + 1], state[at + 2], state[at + 3]
    if axis == 0:
        w, x, y, z = w * c - x * s, x * c + w * s, y * c + z * s, z * c - y * s
    elif axis == 1:
        w, x, y, z = w * c - y * s, x * c - z * s, y * c + w * s, z * c + x * s
    else:
        w, x, y, z = w * c - z * s, x * c + y * s, y * c - x * s, z * c + w * s
    state[at], state[at + 1], state[at + 2], state[at + 3] = w, x, y, z


@kernel
def rotation(quaternion: Any, out: Any) -> None:
    """Write the matrix of a quaternion by rows.

    Parameters
    ----------
    quaternion : Any
        (4,) quaternion.
    out : Any
        (9,) result.
    """
    rows = unit_quaternion_rows(quaternion[0], quaternion[1], quaternion[2], quaternion[3])
    for k in range(9):
        out[k] = rows[k]


@kernel
def move(state: Any, indices: Any, pose: int, frame: Any, m: int, by: float) -> None:
    """Displace a state along one coordinate.

    Parameters
    ----------
    state : Any
        (w,) state, changed in place.
    indices : Any
        (k,) index in the state of each coordinate.
    pose : int
        Index of the pose, < 0 for none.
    frame : Any
        (9,) rotation of the pose before.
    m : int
        Index of the coordinate.
    by : float
        Displacement, in the coordinate's unit.
    """
    if pose < 0 or m >= 6:
        state[indices[m]] += by
    elif m < 3:  # p = p_ref + R_ref e
        for k in range(3):
            state[pose + k] += frame[3 * k + m] * by
    else:  # R = R_ref exp theta^
        turn(state, pose + 3, m - 3, by)


@kernel
def coordinates_of(state: Any, indices: Any, pose: int, reference: Any, frame: Any, out: Any) -> None:
    """Write the coordinates of a state: its pose from a reference, and words as they are.

    Parameters
    ----------
    state : Any
        (w,) state.
    indices : Any
        (k,) index in the state of each coordinate.
    pose : int
        Index of the pose, < 0 for none.
    reference : Any
        (7,) pose.
    frame : Any
        (9,) rotation of the reference.
    out : Any
        (k,) result, the pose's 6 first.
    """
    first = 0
    if pose >= 0:
        first = 6
        dx, dy, dz = state[pose] - reference[0], state[pose + 1] - reference[1], state[pose + 2] - reference[2]
        for k in range(3):
            out[k] = frame[k] * dx + frame[3 + k] * dy + frame[6 + k] * dz
        w, x, y, z = reference[3], -reference[4], -reference[5], -reference[6]
        a, b, c, d = state[pose + 3], state[pose + 4], state[pose + 5], state[pose + 6]
        cosine = w * a - x * b - y * c - z * d
        ux, uy, uz = w * b + x * a + y * d - z * c, w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a
        sine = math.sqrt(ux * ux + uy * uy + uz * uz)
        if cosine < 0.0:  # the shorter way
            cosine, ux, uy, uz = -cosine, -ux, -uy, -uz
        factor = 2.0 * math.atan2(sine, cosine) / sine if sine > 1e-12 else 2.0
        out[3], out[4], out[5] = factor * ux, factor * uy, factor * uz
    for i in range(first, indices.shape[0]):
        out[i] = state[indices[i]]


@kernel
def copy(source: Any, out: Any) -> None:
    """Copy an array number by number, which becomes vector instructions.

    Parameters
    ----------
    source : Any
        (n,) numbers.
    out : Any
        (n,) result.
    """
    for i in range(out.shape[0]):
        out[i] = source[i]


# A batch of runs, and the kernel that advances it.

FUNCTION, ARGUMENTS_AT, COMMAND_AT, START_AT, STATE_AT, SETTLE, SETTLE_AT, ACCOUNT, ACCOUNT_AT, NUMBERS_AT = range(10)
"""Words of a packed fork: its step, its settling and its account, each as a function and the address of its arguments;
addresses of command, start and state; from NUMBERS_AT on address and length of each output of the account.
"""


class Batch(NamedTuple):
    """Runs of one plant: their initial states, their commands, and the results to write.

    An array with one row instead of r serves all runs. An array without rows disables its part.

    Attributes
    ----------
    starts : Array
        (r, w) initial state of each run, as a Fork has it.
    counts : Integers
        (r,) steps since the reset before each run.
    commands : Array
        (r, s, n) commands that go in straight lines to each row, `stage` steps each; a single row is held in all steps.
    steps : int
        Steps of each run.
    dt : float
        Length of a step, s.
    status : Integers
        (r,), written: 0, or the status of the step that failed.
    done : Integers
        (r,), written: steps that were taken.
    stop : Integers
        (1,) any value but 0 ends the runs after their present step.
    stage : int, default 1
        Steps from one row of commands to the next.
    before : Array, default np.zeros(0)
        (n,) command before the first row, where a stage has more than one step or feedback writes it.
    run_forks : Integers, optional
        (r, words) packed forks of single runs; rows of 0 and runs without a row use the fork of their thread.
    state_indices, pose : Integers, int
        Fields of `Coordinates`.
    by : Array, default np.zeros((0, 0))
        (d, k + 2 n) displacements of the coordinates, of the command before, and of all rows of commands.
    displacements : Integers, optional
        (r, 3) row of `by` of each run, and the first and the end of the numbers in it that displace the run.
    settles : npt.NDArray[np.bool_], default np.zeros(0, dtype=bool)
        (r,) whether the numbers that depend on the displaced coordinates are updated.
    reference : Array, default np.zeros(7)
        (7,) pose from which the pose at the end is measured.
    errors : Array, default np.zeros((0, 0))
        (r, k), written: coordinates at the end.
    base : Array, default np.zeros((0, 0))
        (s + 1, w) motion that feedback refers to: its states before each stage and after the last.
    base_rows : Array, default np.zeros((0, 0))
        (s + 1, n) commands of that motion.
    correction, gain, share : Array
        (s, n), (s, n, k + n), (r,) feedback: row t of `commands` is written as base_rows[t + 1] + share correction[t] +
        gain[t] (x - x_base, u_before - u_base_before), clamped to the limits.
    lower, upper : Array, default np.zeros((0, 0))
        (s, n) limits of rows that feedback writes.
    every : int, default 1
        Steps from one sample to the next. A run of no steps is sampled at its start.
    places : Integers, optional
        (p, 2) begin and length in the state of the first numbers of a sample; numbers of the account follow them.
    samples : Array, default np.zeros((0, 0, 0))
        (r, samples, width), written.
    states : Array, default np.zeros((0, 0, 0))
        (r, samples, w), written: whole states at the same times.
    applied : Array, default np.zeros((0, 0, 0))
        (r, steps, n), written: command of each step.
    ends : Array, default np.zeros((0, 0))
        (r, w), written: state of each successful run at its end. May be the same array as `starts`.
    recovered : Array, default np.zeros((0, 0))
        (r, w), written: state of each failed run, where the plant recovers it (`Fork.recovery_state`).
    """

    starts: Array
    counts: Integers
    commands: Array
    steps: int
    dt: float
    status: Integers
    done: Integers
    stop: Integers
    stage: int = 1
    before: Array = np.zeros(0)
    run_forks: Integers = np.zeros((0, 0), dtype=np.int64)
    state_indices: Integers = np.zeros(0, dtype=np.int64)
    pose: int = -1
    by: Array = np.zeros((0, 0))
    displacements: Integers = np.zeros((0, 3), dtype=np.int64)
    settles: npt.NDArray[np.bool_] = np.zeros(0, dtype=bool)
    reference: Array = np.zeros(7)
    errors: Array = np.zeros((0, 0))
    base: Array = np.zeros((0, 0))
    base_rows: Array = np.zeros((0, 0))
    correction: Array = np.zeros((0, 0))
    gain: Array = np.zeros((0, 0, 0))
    share: Array = np.zeros(0)
    lower: Array = np.zeros((0, 0))
    upper: Array = np.zeros((0, 0))
    every: int = 1
    places: Integers = np.zeros((0, 2), dtype=np.int64)
    samples: Array = np.zeros((0, 0, 0))
    states: Array = np.zeros((0, 0, 0))
    applied: Array = np.zeros((0, 0, 0))
    ends: Array = np.zeros((0, 0))
    recovered: Array = np.zeros((0, 0))


def batch_of(
    starts: Array, counts: Any, commands: Array, dt: float, *, runs: int | None = None, steps: int | None = None,
    **fields: Any,
) -> Batch:  # fmt: skip
    """Return a batch with its status, done and stop arrays.

    Parameters
    ----------
    starts, counts, commands, dt : Array, Any, float
        Fields of `Batch`.
    runs : int | None, optional
        Number of runs; None: the rows of `commands`.
    steps : int | None, optional
        Steps of a run; None: one for each row of commands.
    **fields : Any
        Other fields of `Batch`.

    Returns
    -------
    Batch
        The batch.
    """
    count = len(commands) if runs is None else runs
    return Batch(
        _writable(starts, np.float64), _writable(np.atleast_1d(counts), np.int64), _writable(commands, np.float64),
        int(commands.shape[1] if steps is None else steps), float(dt),
        np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64), np.zeros(1, dtype=np.int64), **fields,
    )  # fmt: skip


def _writable(array: Any, dtype: Any) -> Any:
    """Return the array, or a copy that has the same type for compiled code: contiguous, and not read-only."""
    return np.require(array, dtype, ("C", "W"))


@kernel
def _displace(
    by: Any, begin: int, end: int, indices: Any, pose: int, state: Any, frame: Any, before: Any, more: Any
) -> None:
    """Displace a run by numbers begin to end of by (k + 2 n,).

    They are for its start, for the command before it (n,), and for the addition to its rows of commands, more (n,).
    """
    k, n = indices.shape[0], more.shape[0]
    if pose >= 0:
        rotation(state[pose + 3 : pose + 7], frame)
    for m in range(begin, end):
        if m < k:
            move(state, indices, pose, frame, m, by[m])
        elif m < k + n:
            before[m - k] += by[m]
        else:
            more[m - k - n] = by[m]


@kernel
def _correct(batch: Any, run: int, t: int, state: Any, before: Any, frame: Any, off: Any, out: Any) -> None:
    """Write a row of commands, out (n,), by feedback at stage t, whose command before is `before` (n,)."""
    indices, pose, k, n, first = batch.state_indices, batch.pose, batch.state_indices.shape[0], out.shape[0], 0
    if pose >= 0:
        first = 6
        rotation(batch.base[t, pose + 3 : pose + 7], frame)
        coordinates_of(state, indices[:6], pose, batch.base[t, pose : pose + 7], frame, off)
    for i in range(first, k):
        off[i] = state[indices[i]] - batch.base[t, indices[i]]
    for i in range(n):
        off[k + i] = before[i] - batch.base_rows[t, i]
    for i in range(n):
        u = batch.base_rows[t + 1, i] + batch.share[run] * batch.correction[t, i]
        for j in range(k + n):
            u += batch.gain[t, i, j] * off[j]
        out[i] = min(max(u, batch.lower[t, i]), batch.upper[t, i])


@kernel
def _sample(places: Any, fork: Any, state: Any, samples: Any, states: Any, run: int, sample: int) -> None:
    """Write a sample of a run: words of its state, numbers of its account, and the whole state."""
    if len(samples):
        at = 0
        for p in range(len(places)):
            begin = places[p, 0]
            for i in range(begin, begin + places[p, 1]):
                samples[run, sample, at] = state[i]
                at += 1
        if len(fork) > NUMBERS_AT:
            call(fork[ACCOUNT], fork[ACCOUNT_AT])
        for p in range(NUMBERS_AT, len(fork), 2):
            numbers = carray(numbers_at(fork[p]), (fork[p + 1],))
            for i in range(fork[p + 1]):
                samples[run, sample, at] = numbers[i]
                at += 1
    if len(states):
        copy(state, states[run, sample])


@kernel
def advance(thread_fork: Any, batch: Any, order: Any, begin: int, end: int) -> int:
    """Advance runs order[begin:end] of a batch.

    Parameters
    ----------
    thread_fork : Any
        (words,) packed fork of all runs without a row of `run_forks`.
    batch : Any
        The runs.
    order : Any
        (j,) indices of runs.
    begin, end : int
        Part of the order.

    Returns
    -------
    int
        Place in `order` of a run that failed, whose fork must be cleared before the next run; -1 when all runs are
        done.
    """
    # local names, because each look into the batch counts references, in every step
    starts, counts, commands, run_forks, stop = batch.starts, batch.counts, batch.commands, batch.run_forks, batch.stop
    by, displacements, settles, gain = batch.by, batch.displacements, batch.settles, batch.gain
    places, samples, states, applied = batch.places, batch.samples, batch.states, batch.applied
    status_of, done, errors, ends, state_indices = (
        batch.status,
        batch.done,
        batch.errors,
        batch.ends,
        batch.state_indices,
    )
    n, k, steps, stage, rows = commands.shape[2], state_indices.shape[0], batch.steps, batch.stage, commands.shape[1]
    width, dt, every, pose = starts.shape[1], batch.dt, batch.every, batch.pose
    displaced, fed_back, recorded = len(displacements) > 0, len(gain) > 0, len(applied) > 0
    adds = displaced or fed_back  # 0.0 to the latter's rows, so that no command is -0.0
    frame, before, more, off = np.empty(9), np.zeros(n), np.zeros(n), np.empty(k + n)
    for at in range(begin, end):
        if stop[0] != 0:
            return -1
        run = order[at]
        fork = thread_fork
        if len(run_forks) and run_forks[run, FUNCTION] != 0:
            fork = run_forks[run]
        function, arguments = fork[FUNCTION], fork[ARGUMENTS_AT]
        state = carray(numbers_at(fork[STATE_AT]), (width,))
        command, start = carray(numbers_at(fork[COMMAND_AT]), (n,)), carray(numbers_at(fork[START_AT]), (1,))
        of = run if len(commands) > 1 else 0
        first = counts[run if len(counts) > 1 else 0]
        copy(starts[run if len(starts) > 1 else 0], state)
        done[run], status = 0, 0
        if len(batch.before):
            copy(batch.before, before)
        if displaced:
            for i in range(n):
                more[i] = 0.0
            row, number, number_end = displacements[run, 0], displacements[run, 1], displacements[run, 2]
            _displace(by[row], number, number_end, state_indices, pose, state, frame, before, more)
            if settles[run]:
                start[0] = first * dt
                status = call(fork[SETTLE], fork[SETTLE_AT])
        if steps == 0 and status == 0:
            start[0] = first * dt
            _sample(places, fork, state, samples, states, run, 0)
        t, j, since, sample = 0, 0, 0, 0  # the stage, the step in it, the steps since the last sample
        for s in range(steps):
            if status != 0:
                break
            if fed_back and j == 0:
                _correct(batch, run, t, state, before if t == 0 else commands[of, t - 1], frame, off, commands[of, t])
            j += 1
            for i in range(n):
                b = commands[of, t, i] + more[i] if adds else commands[of, t, i]
                if j < stage:  # on the straight line to the row
                    a = before[i] if t == 0 else commands[of, t - 1, i] + more[i]
                    b = a + j / stage * (b - a)
                command[i] = b
            if recorded:
                for i in range(n):
                    applied[run, s, i] = command[i]
            start[0] = (first + s) * dt
            status = call(function, arguments)
            if status != 0:
                break
            done[run] = s + 1
            if j == stage:
                j = 0
                if rows > 1:
                    t += 1
            since += 1
            if since == every:
                start[0] = (first + s + 1) * dt  # outputs are of the state, whose time this is
                _sample(places, fork, state, samples, states, run, sample)
                since, sample = 0, sample + 1
            if stop[0] != 0:
                break
        status_of[run] = status
        if status != 0:
            return int(at)
        if len(errors):
            if pose >= 0:
                rotation(batch.reference[3:7], frame)
            coordinates_of(state, state_indices, pose, batch.reference, frame, errors[run])
        if len(ends):
            copy(state, ends[run])
    return -1


class DisplacedRuns(NamedTuple):
    """Runs displaced to either side, for central differences: runs 2 m and 2 m + 1 by the m-th displacement.

    Attributes
    ----------
    size : Array
        (d,) size of each displacement to either side.
    by, displacements, settles : Array, Integers, npt.NDArray[np.bool_]
        Fields of `Batch`.
    """

    size: Array
    by: Array
    displacements: Integers
    settles: npt.NDArray[np.bool_]

    def order(self, *which: range) -> Integers:
        """Return the runs of some of the displacements.

        Parameters
        ----------
        *which : range
            Ranges of displacements.

        Returns
        -------
        Integers
            Indices of runs.
        """
        return np.concatenate([np.arange(2 * part.start, 2 * part.stop) for part in which])

    def slopes(self, ends: Array) -> Array:
        """Return the central differences of results of the runs.

        Parameters
        ----------
        ends : Array
            (2 j, ...) results of the runs of the first j displacements.

        Returns
        -------
        Array
            (j, ...), a row of each displacement.
        """
        result = ends[0::2] - ends[1::2]
        result *= (0.5 / self.size[: len(result)])[:, None]
        return result


def displaced_along(coordinates: Coordinates, by: Array) -> DisplacedRuns:
    """Return displacements by all numbers of each row at once, of the coordinates and of the commands.

    Parameters
    ----------
    coordinates : Coordinates
        Coordinates of the plant.
    by : Array
        (d, k + n) displacements.

    Returns
    -------
    DisplacedRuns
        d displacements.
    """
    k, runs = len(coordinates.names), 2 * len(by)
    size = np.concatenate([by[:, :k], np.zeros((len(by), by.shape[1] - k)), by[:, k:]], axis=1)
    displacements = np.array([(run, 0, size.shape[1]) for run in range(runs)], dtype=np.int64)
    both = np.stack([size, -size], axis=1).reshape(runs, -1)
    return DisplacedRuns(np.ones(len(by)), both, displacements, np.ones(runs, dtype=bool))


def displaced_by_each(coordinates: Coordinates, by: Array) -> DisplacedRuns:
    """Return displacements by each number, of the coordinates and of the commands.

    Parameters
    ----------
    coordinates : Coordinates
        Coordinates of the plant.
    by : Array
        (k + n,) displacements.

    Returns
    -------
    DisplacedRuns
        A displacement for each number, and for each command before.
    """
    k, n = len(coordinates.names), len(by) - len(coordinates.names)
    size = np.concatenate([by, by[k:]])
    runs = np.arange(2 * len(size))
    settles = np.concatenate([coordinates.has_dependents, np.zeros(2 * n, dtype=bool)])
    displacements = np.stack([runs % 2, runs // 2, runs // 2 + 1], axis=1)
    return DisplacedRuns(size, np.stack([size, -size]), displacements, np.repeat(settles, 2))
