"""A, B and C of one step of any plant, or of the map of a period, for control: by differences of compiled steps.

    linear = rtmms.linearise(plant, command)
    x = linear.deviation(plant)             # later: the deviation from there, (k,)
    x_next = linear.a @ x + linear.b @ u    # u: the command less the one that was given

A plant whose equations have a known structure (`rtmms.analysis.derivatives`) has A and B of a step by it. A plant with
forks and coordinates of its state (`rtmms.plant.HasCoordinates`) is stepped on its forks. Any other plant with
a chart is stepped through snapshot, restore and step (`linearise_step`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import pi
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rtmms.analysis.block_matrices import Bordered
from rtmms.analysis.chained_steps import TOGETHER, chain_steps
from rtmms.analysis.chart import HasStructure, Structure, chart_of
from rtmms.analysis.fork_pool import ForkPool, PackedFork
from rtmms.analysis.linearise import DIFFERENCE_STEP as STEP
from rtmms.analysis.linearise import HasStepDerivatives, Linear, OperatingPoint, linearise_step, reach_of
from rtmms.analysis.run_batch import Batch, batch_of, displaced_along, displaced_by_each
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.base.jit import COMPILED
from rtmms.base.processes import core_count
from rtmms.base.renamed_outputs import present_output
from rtmms.base.snapshot import model_of
from rtmms.base.spatial import Array
from rtmms.base.terminal import console
from rtmms.mechanism.plant import TreePlant
from rtmms.mechanism.running import Running
from rtmms.plant.coordinates import displacement
from rtmms.plant.description import describe_plant, present_values
from rtmms.plant.optional_protocols import Coordinates, HasCoordinates
from rtmms.plant.protocol import Plant
from rtmms.plant.validation import read_command

# A and B of a step by the structure of the equations, for the plants whose structure is known.


def structure_of(plant: Any, by: Array) -> Structure | None:
    """Return the plant's own structure (rtmms.analysis.chart.HasStructure), or that of a tree.

    Parameters
    ----------
    plant : Any
        Any plant.
    by : Array
        (k + n,) displacement of coordinates and commands to either side, for parts by differences.

    Returns
    -------
    Structure | None
        None where only differences are possible.
    """
    if isinstance(plant, HasStructure):
        return plant.structure(by)
    if COMPILED and isinstance(plant, Running):
        from rtmms.analysis.tree_jacobian import TreeJacobian, has_tree_structure  # its kernels are for who asks

        if has_tree_structure(plant):
            return TreeJacobian(plant, by)
    return None


METHODS = ("structure", "differences")
PROBES = 2
"""Directions in which everything is displaced at once, to estimate the error of the slopes."""
PARAMETER_STEP = 1e-4
"""Step of a parameter, relative; of one that is 0, in its own unit."""
LONG_STEPS = 200_000
"""Steps from which on a bar on standard error shows the progress."""
STRUCTURED_STEPS = 100
"""Cost of A and B of a step by structure, with their products, in steps, for that bar."""
MIN_PARALLEL_STEPS = 500
"""Steps from which on several threads are used."""


def linearise(
    plant: Plant, command: Any = None, outputs: Sequence[str] = (), with_respect_to: Sequence[str] = (),
    period: bool = False, *, threads: int | None = None, method: str | None = None,
) -> Linear:  # fmt: skip
    """Compute x[k + 1] = A x[k] + B u[k], y[k] = C x[k] around the plant's present state, of one step or of a period.

    x are errors in the plant's coordinates, zero at the present state, in SI units, see `Linear`. The plant is left in
    its state.

    Parameters
    ----------
    plant : Plant
        Any plant with a chart or coordinates of its state.
    command : Any, optional
        (n_actuators,) held over the step. Default: the command that a plant of a mechanism holds now, else the neutral
        one. Of a period: (steps, n_actuators), default those of the plant's own gait; u is added to all of them.
    outputs : Sequence[str], default ()
        Names of outputs, whose slopes are the rows of C, flattened.
    with_respect_to : Sequence[str], default ()
        Names of `plant.settable`: P has a column for each number, x[k + 1] = A x + B u + P (p - p0).
    period : bool, default False
        The map of a period: x[k + 1] is the error a period later, around the plant's state at that time.
    threads : int | None, optional
        None: one for a step of a small plant, else as many as there are cores.
    method : str | None, optional
        'structure' or 'differences' of all coordinates, one by one; None: the first where the plant has it.

    Returns
    -------
    Linear
        A, B, C and P, with names, units and an error.

    Raises
    ------
    ArgumentError
        An argument has the wrong type or shape.
    UnknownNameError
        A name or the method is unknown.
    ModelError
        The plant has no chart, or not the structure or period that is requested.
    DivergedError
        The step itself fails.

    Notes
    -----
    For one step A maps into the chart around the old pose. Differences are central, with 1e-6 of each coordinate's
    size; where the model has a kink (|w| w at w = 0) they return the mean of both sides.
    """
    if not isinstance(plant, Plant):
        raise ArgumentError(f"linearise: plant: expected a plant, as rtmms.load returns, got {plant!r:.60}")
    for word, names in (("outputs", outputs), ("with_respect_to", with_respect_to)):
        if isinstance(names, str):
            raise ArgumentError(f"linearise: {word}: expected a sequence of names, got '{names}'")
    if not isinstance(period, bool):
        raise ArgumentError(f"linearise: period: expected True or False, got {period!r:.60}")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ArgumentError(f"linearise: threads: expected a whole number from 1 on, got {threads!r:.60}")
    if method not in (None, *METHODS):
        raise UnknownNameError("method of linearise", str(method), METHODS)
    known = {channel.name: channel for channel in plant.outputs}
    outputs = [present_output(str(name), known) for name in outputs]
    for name in outputs:
        if name not in known:
            raise UnknownNameError("output", str(name), known)
    commands = _commands(plant, command, period)
    room = _room(plant) if isinstance(plant, HasCoordinates) else None
    if room is not None:
        with room.lock, np.errstate(all="ignore"):
            result = _compiled(plant, room, commands, period, threads, with_respect_to, method)  # type: ignore[arg-type]
    else:
        if method is not None:
            raise ModelError(
                f"linearise: method: expected none, as a {type(plant).__name__} has no compiled steps, got '{method}'"
            )
        if period or with_respect_to:
            what = "period" if period else "with_respect_to"
            raise ModelError(
                f"linearise: {what}: expected a plant with compiled steps, got a {type(plant).__name__}, whose steps "
                "are in Python"
            )
        derivatives = plant.step_derivatives(commands[0]) if isinstance(plant, HasStepDerivatives) else None
        result = linearise_step(plant, commands) if derivatives is None else derivatives
    if outputs:
        rows, units, c = _output_slopes(plant, outputs)
        result = replace(result, c=c, outputs=rows, output_units=units)
    return result


def _commands(plant: Plant, values: Any, period: bool) -> Array:
    """Return the commands (steps, n_actuators), finite."""
    n = len(plant.actuators)
    if not period:
        if values is None:
            held = getattr(plant, "commanded", None)
            values = [c.neutral for c in plant.actuators] if held is None else held
        return read_command("linearise", plant.actuators, values)[None, :].copy()
    if values is None:
        return _gait(plant)
    try:
        commands = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"linearise: command: expected numbers of shape (steps, {n}), got {values!r:.60}") from None
    if commands.ndim != 2 or commands.shape[1] != n or not len(commands):
        raise ArgumentError(
            f"linearise: command: expected an array of shape (steps, {n}) with period=True, got shape {commands.shape}"
        )
    if not np.isfinite(commands).all():
        step, which = (int(k) for k in np.argwhere(~np.isfinite(commands))[0])
        raise ArgumentError(f"linearise: command: must be finite, got {commands[step, which]} in step {step}")
    return commands


def _gait(plant: Plant) -> Array:
    """Return the commands of a period of the plant's own gait."""
    commanded = describe_plant(plant).gait
    if commanded is not None:
        steps = max(1, round(commanded.gait_period() / plant.dt))
        return np.ascontiguousarray(commanded.gait_commands(steps))
    if not isinstance(plant, TreePlant) or not np.any(plant.law.motion[:, 1:]):
        raise ModelError(
            f"linearise: period: a {type(plant).__name__} has no periodic gait; give the commands of a period "
            "with command="
        )
    length = 2.0 * pi / plant.law.omega
    steps = round(length / plant.dt)
    if abs(steps * plant.dt - length) > 1e-6 * length:
        raise ModelError(
            f"linearise: period: expected a whole number of steps in a period of {length:.6g} s, got dt = "
            f"{plant.dt:.6g} s; set dt = {length / max(1, steps):.12g}"
        )
    return np.tile(plant.neutral, (steps, 1))


class _Workspace:
    """Forks of a plant, and its structure, which remain between calls.

    `key` is the plant's when they were new; `by` (k + n,) is the displacement of differences to either side.
    """

    def __init__(self, plant: Any, key: bytes) -> None:
        self.key, self.coordinates, self.lock = key, plant.coordinates(), Lock()
        self.by = STEP * np.concatenate([self.coordinates.size, reach_of(plant.actuators)])
        self.probes = 0.5 * self.by * np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, len(self.by)))
        self.probed = displaced_along(self.coordinates, self.probes)
        self.displaced = displaced_by_each(self.coordinates, self.by)
        self.pool = ForkPool(plant, 1, "linearise")
        self.structures: list[Structure] = []
        self._probing: Batch | None = None
        runs = len(self.displaced.settles)
        self._books = np.zeros((2, runs), dtype=np.int64)
        self._errors = np.zeros((runs, len(self.coordinates.names)))

    def structure(self, plant: Any, count: int) -> list[Structure]:
        """Return so many evaluators of A and B by the plant's structure; none where it has none."""
        while len(self.structures) < count:
            item = structure_of(plant, self.by)
            if item is None:
                break
            self.structures.append(item)
        return self.structures[:count]

    def probing(self, origin: Array, first: int, commands: Array, dt: float) -> Batch:
        """Return runs from a state under commands: the first undisturbed, the others displaced by the probes.

        The room uses its memory again where the number of commands is the same.
        """
        coordinates, displaced, batch = self.coordinates, self.probed, self._probing
        if batch is None or batch.commands.shape[1:] != commands.shape:
            runs = 1 + len(displaced.settles)
            batch = self._probing = batch_of(
                np.zeros((1, len(origin))),
                0,
                np.zeros((1, *commands.shape)),
                dt,
                runs=runs,
                state_indices=coordinates.state_indices.copy(),
                pose=coordinates.pose,
                reference=np.zeros(7),
                by=displaced.by,
                displacements=np.concatenate([np.zeros((1, 3), dtype=np.int64), displaced.displacements]),
                settles=np.concatenate([[False], displaced.settles]),
                errors=np.zeros((runs, len(coordinates.names))),
                ends=np.zeros((runs, len(origin))),
            )
        batch.starts[0], batch.counts[0], batch.commands[0] = origin, first, commands
        if coordinates.pose >= 0:
            batch.reference[:] = origin[coordinates.pose : coordinates.pose + 7]
        return batch

    def displacing(self, probing: Batch) -> Batch:
        """Return runs as those of the probes, displaced by each coordinate and command.

        The room uses its memory again.
        """
        displaced = self.displaced
        return probing._replace(
            status=self._books[0], done=self._books[1], by=displaced.by, displacements=displaced.displacements,
            settles=displaced.settles, errors=self._errors, ends=np.zeros((0, 0)),
        )  # fmt: skip


_rooms: WeakKeyDictionary[Any, _Workspace] = WeakKeyDictionary()


def _room(plant: HasCoordinates) -> _Workspace | None:
    """Return the room of a plant; None for a plant that is stepped by Python alone."""
    key = model_of(plant.snapshot())  # type: ignore[attr-defined]
    room = _rooms.get(plant)
    if room is None or room.key != key:
        room = _Workspace(plant, key)
        if not room.pool.has_forks():
            return None
        _rooms[plant] = room
    return room


def _compiled(
    plant: HasCoordinates, room: _Workspace, commands: Array, period: bool, threads: int | None,
    parameters: Sequence[str], method: str | None,
) -> Linear:  # fmt: skip
    work = _Differences(plant, room, commands, period)
    result = work.by_structure(threads) if method != "differences" else None
    if result is None and method == "structure":
        raise ModelError(
            f"linearise: method: 'structure' does not support this {type(plant).__name__}, or a step fails; use "
            "method='differences'"
        )
    packed, b = work.slope(threads) if result is None else result
    error = work.wrong(packed, b)
    p, named = work.by_parameters(parameters) if parameters else (None, ())
    coordinates, actuators = work.coordinates, work.actuators
    return Linear(
        packed,
        b,
        coordinates.names,
        tuple(actuator.name for actuator in actuators),
        len(commands) * work.dt if period else work.dt,
        error,
        coordinates.units,
        tuple(actuator.unit for actuator in actuators),
        p=p,
        parameters=named,
        around=OperatingPoint(coordinates, work.origin, b""),
        method="differences" if result is None else "structure",
    )


class _Differences:
    """Differences of one call.

    `origin` (w,) is the plant's state, with its history at 0; `first` the steps since its reset. `batch` has the
    undisturbed run, and those of the probes, with the pose from which the pose after is measured.
    """

    def __init__(self, plant: HasCoordinates, room: _Workspace, commands: Array, period: bool) -> None:
        known: Any = plant
        self.actuators, self.dt = known.actuators, float(known.dt)
        self.plant, self.room, self.coordinates, self.commands, self.period = (
            plant,
            room,
            room.coordinates,
            commands,
            period,
        )
        self.present = plant.present()
        self.origin, self.first = self.present[0].copy(), self.present[1]
        coordinates = self.coordinates
        self.origin[coordinates.history_indices] = 0.0
        self.batch = room.probing(self.origin, self.first, commands, self.dt)
        self.reference = self.batch.reference
        self.nominal()
        if period:  # the probes follow, from the pose after
            if coordinates.pose >= 0:
                self.reference[:] = self.batch.ends[0, coordinates.pose : coordinates.pose + 7]
            room.pool.advance(self.batch, [np.arange(1, len(self.batch.status))])

    def nominal(self) -> None:
        """Advance the undisturbed run, and except for a period those of the probes.

        It raises DivergedError as the plant's step does.
        """
        self.room.pool.advance(self.batch, [np.arange(1 if self.period else len(self.batch.status))])
        if self.batch.status[0]:
            with self.put_back():
                for command in self.commands:
                    self.plant.step(command)  # type: ignore[attr-defined]
            raise ModelError(
                "linearise: a step fails on a copy of the plant, but not on the plant itself; linearise at another "
                "state, or report this as a fault of rtmms"
            )

    @contextmanager
    def put_back(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.plant.put(*self.present)

    def by_structure(self, threads: int | None) -> tuple[Array | Bordered, Array] | None:
        """Return A and B by the plant's structure; None where it has none, or a step fails."""
        steps, pose = len(self.commands), self.coordinates.pose
        if not self.period:
            known = self.room.structure(self.plant, 1)
            start = self.first * self.dt
            if not known or not known[0].take(self.origin, self.commands[0], self.reference, start):
                return None
            return known[0].a.copy(), known[0].b
        known = self.room.structure(self.plant, min(core_count() if threads is None else threads, steps))
        if not known:
            return None
        state_rows = np.empty((min(steps, TOGETHER) + 1, len(self.origin)))
        state_rows[0] = self.origin

        def states(begin: int, end: int) -> Array:
            count = end - begin
            if begin:
                state_rows[0] = state_rows[len(state_rows) - 1]
            trace = batch_of(
                state_rows[:1],
                self.first + begin,
                self.commands[None, begin:end],
                self.dt,
                states=state_rows[None, 1 : count + 1],
            )
            if self.room.pool.advance(trace) >= 0:
                raise ModelError("linearise: a step fails on a copy of the plant; linearise at another state")
            return state_rows[: count + 1]

        pool = self.room.pool.executor(len(known)) if len(known) > 1 else None
        with _progress(steps * STRUCTURED_STEPS) as show:
            return chain_steps(known, pool, states, self.commands, pose, self.first, self.dt, show)

    def slope(self, threads: int | None) -> tuple[Array, Array]:
        """Return A and B by differences."""
        k, displaced, steps = len(self.coordinates.names), self.room.displaced, len(self.commands)
        order = displaced.order(range(k), range(k + len(self.actuators), len(displaced.size)))
        if threads is None:
            threads = core_count() if len(order) * steps >= MIN_PARALLEL_STEPS else 1
        batch, pool = self.room.displacing(self.batch), self.room.pool
        with _progress(len(order) * steps) as show:
            failed = pool.advance(batch, pool.parts(order, steps, threads), threads=threads, show=show)
        if failed >= 0:
            which = failed // 2 if failed < 2 * k else failed // 2 - len(self.actuators)
            name, unit = (
                (self.coordinates.names[which], self.coordinates.units[which]) if which < k
                else (self.actuators[which - k].name, self.actuators[which - k].unit)
            )  # fmt: skip
            by = self.room.by[which]
            raise ModelError(
                f"linearise: a step fails after a change of {name} by {by:.3g} {unit}: the state is too close to a "
                "limit of the plant; linearise at another state"
            )
        slopes = displaced.slopes(batch.errors)
        return slopes[:k].T, slopes[k + len(self.actuators) :].T

    def wrong(self, a: Array | Bordered, b: Array) -> float:
        """Return the error of the slopes, against differences along a few directions, half as long, in the sizes.

        It is about as large as the largest of a row's errors, or larger.
        """
        coordinates, k = self.coordinates, len(self.coordinates.names)
        if not k:
            return 0.0
        if self.batch.status.any():
            return float("nan")
        by, off = self.room.probes, self.room.probed.slopes(self.batch.errors[1:])
        x = by[:, :k].T
        off -= ((a.times(x) if isinstance(a, Bordered) else a @ x) + b @ by[:, k:].T).T
        off /= 0.5 * STEP * coordinates.size
        return float(np.sqrt(np.max(np.mean(off * off, axis=0))))

    def by_parameters(self, names: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
        """Return the slope by parameters (k, numbers), and the name of each number."""
        about = describe_plant(self.plant)
        parameters = about.parameters()
        if about.set is None or about.settable is None or (about.settable and parameters is None):
            raise ModelError(
                "linearise: with_respect_to: expected none, as this plant has no parameters that can change while it "
                "runs"
            )
        columns, named = [], []
        for name in names:
            if name not in about.settable:
                raise UnknownNameError("parameter that can change while the plant runs", str(name), about.settable)
            present = self._present(name)
            values = np.atleast_1d(np.asarray(present))
            if values.dtype.kind != "f" or values.ndim != 1:
                raise ArgumentError(
                    f"linearise: with_respect_to: {name}: expected a parameter that is a real number, got "
                    f"{present!r:.60}"
                )
            for i, value in enumerate(values.tolist()):
                step = PARAMETER_STEP * (abs(value) or 1.0)
                columns.append(self._between(name, present, i, step))
                named.append(name if np.ndim(present) == 0 else f"{name}[{i}]")
        return np.array(columns).T, tuple(named)

    def _present(self, name: str) -> Any:
        """Return the present value of a parameter, which robots that share it have in common."""
        values = list(present_values(describe_plant(self.plant), [name]).values())
        if any(not np.array_equal(value, values[0]) for value in values[1:]):
            raise ArgumentError(
                f"linearise: with_respect_to: {name}: expected the same value in all robots, got {values!r:.60}; name "
                "the parameter of one robot (ROBOT.PARAMETER)"
            )
        return values[0]

    def _between(self, name: str, present: Any, i: int, step: float) -> Array:
        """Return the slope (k,) by one number of a parameter; one-sided where the other side is not allowed."""
        ends: list[tuple[float, Array]] = []
        refused: ModelError | None = None
        for by in (step, -step):
            try:
                ends.append((by, self._after(name, _moved(present, i, by))))
            except ModelError as error:
                refused = error
        if not ends:
            raise refused or ModelError(f"linearise: with_respect_to: {name} cannot be changed")
        if len(ends) == 2:
            return np.asarray((ends[0][1] - ends[1][1]) / (2.0 * step))
        by, item = ends[0]
        two = self._after(name, _moved(present, i, 2.0 * by))
        none = self._after(name, present)
        return np.asarray((4.0 * item - two - 3.0 * none) / (2.0 * by))  # the parabola's slope

    def _after(self, name: str, value: Any) -> Array:
        """Return the coordinates (k,) at the end with another value."""
        plant: Any = self.plant
        present = present_values(describe_plant(plant), [name])
        plant.set(**{name: value})
        try:
            fork = plant.fork()
        finally:
            plant.set(**present)
        if PackedFork(plant, fork).advance(self.batch, np.zeros(1, dtype=np.int64)) >= 0:
            raise ModelError(
                f"linearise: with_respect_to: {name}: a step fails with the value {value!r:.60}; linearise at another "
                "value or state"
            )
        return _coordinates(self.coordinates, self.reference, self.batch.ends[0])


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[float], None]]:
    """Return a function of the share that is done, for a bar on a terminal."""
    if steps < LONG_STEPS or not sys.stderr.isatty() or os.environ.get("RTMMS_QUIET"):
        yield lambda share: None
        return
    from rich.progress import Progress

    with Progress(console=console(err=True), transient=True) as bar:
        task = bar.add_task("linearise", total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _coordinates(coordinates: Coordinates, reference: Array, state: Array) -> Array:
    result: Array = state[coordinates.state_indices]
    if coordinates.pose >= 0:
        result[:6] = displacement(reference, state[coordinates.pose : coordinates.pose + 7])
    return result


def _moved(present: Any, i: int, by: float) -> Any:
    if np.ndim(present) == 0:
        return float(present) + by
    moved = [float(value) for value in present]
    moved[i] += by
    return tuple(moved)


def _output_slopes(plant: Plant, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
    """Return names of the rows, their units, and (rows, k) slopes of outputs by the coordinates."""
    known = {channel.name: channel for channel in plant.outputs}
    rows: list[str] = []
    units: list[str] = []
    for name in names:
        channel = known[name]
        indices = list(np.ndindex(*channel.shape))
        rows += [name + (f"[{','.join(map(str, index))}]" if index else "") for index in indices]
        units += [channel.unit] * len(indices)
    before = plant.snapshot()
    try:
        chart = chart_of(plant)
        k = len(chart.names)
        columns = []
        for m in range(k):
            ends = []
            for sign in (1.0, -1.0):
                x = np.zeros(k)
                x[m] = sign * STEP * chart.size[m]
                chart.write(x)
                outputs = plant.observe()
                ends.append(np.concatenate([np.ravel(outputs[name]) for name in names]))
            columns.append((ends[0] - ends[1]) / (2.0 * STEP * chart.size[m]))
            chart.write(np.zeros(k))
    finally:
        plant.restore(before)
    return tuple(rows), tuple(units), np.array(columns).T.reshape(len(rows), k)
