"""A, B and C of one step of any plant, or of the map of a period, for control: by differences of compiled steps.

    linear = rtmms.linearise(plant, command)
    x = linear.deviation(plant)             # later: how far from there, (k,)
    x_next = linear.a @ x + linear.b @ u    # u: the command less the one that was given

A plant whose equations have a structure that is known (`rtmms.analysis.derivatives`) has A and B of a step by it.
One that forks and tells the coordinates of its state (`rtmms.plant.protocol.Coordinated`) is stepped on its forks; any
other plant with a chart through snapshot, restore and step (`linearise_step`).
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from math import pi
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import carray

from rtmms.analysis.block_matrices import Bordered
from rtmms.analysis.chained_steps import TOGETHER, chained
from rtmms.analysis.chart import Structure, Structured, chart_of
from rtmms.analysis.linearise import DIFFERENCE_STEP as STEP
from rtmms.analysis.linearise import Around, Linear, linearise_step, reach_of
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.base.jit import COMPILED, kernel
from rtmms.base.memory import ARGUMENTS, call, numbers_at
from rtmms.base.snapshot import model_of
from rtmms.base.spatial import Array
from rtmms.base.terminal import console
from rtmms.mechanism.plant import TreePlant
from rtmms.mechanism.running import Running
from rtmms.plant.coordinates import displacement
from rtmms.plant.protocol import Coordinated, Coordinates, Entry, Fork, Plant, describe_plant
from rtmms.plant.validation import read_command

# Slopes of steps of a fork by central differences, without Python (rtmms.analysis.derivatives).


FUNCTION, ARGUMENTS_AT, COMMAND_AT, SETTLE, SETTLE_AT, START_AT = range(6)
"""Words of what `slopes` and `ends` enter: a step and what puts a state in order, as functions with their arguments,
and where command and start of a step are written."""


@kernel
def turn(state: Any, at: int, axis: int, angle: float) -> None:
    """The quaternion at state[at] times the rotation by an angle about one of its own axes, 0 to 2."""
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
    """Its matrix by rows, out (9,)."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    out[0], out[1], out[2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    out[3], out[4], out[5] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    out[6], out[7], out[8] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


@kernel
def move(state: Any, words: Any, pose: int, frame: Any, m: int, by: float) -> None:
    """A state moved by so much along coordinate m; frame (9,) the rotation of its pose as it was."""
    if pose < 0 or m >= 6:
        state[words[m]] += by
    elif m < 3:  # p = p_ref + R_ref e
        for k in range(3):
            state[pose + k] += frame[3 * k + m] * by
    else:  # R = R_ref exp theta^
        turn(state, pose + 3, m - 3, by)


@kernel
def coordinates_of(state: Any, words: Any, pose: int, reference: Any, frame: Any, out: Any) -> None:
    """Words of a state as they are, and its pose (6,) from a reference (7,) whose rotation is `frame` (9,)."""
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
    for i in range(first, words.shape[0]):
        out[i] = state[words[i]]


@kernel
def difference(over: float, one: Any, other: Any, out: Any) -> None:
    """out = over (one - other), one by one: vector instructions."""
    for i in range(out.shape[0]):
        out[i] = over * (one[i] - other[i])


@kernel
def copy(source: Any, out: Any) -> None:
    """out = source, as well."""
    for i in range(out.shape[0]):
        out[i] = source[i]


@kernel
def run(entered: Any, state: Any, commands: Any, more: Any, sign: float, first: int, dt: float) -> int:
    """Steps with each row of commands (steps, n), `sign` times more (n,) added; the status of the last."""
    n = commands.shape[1]
    command, start = carray(numbers_at(entered[COMMAND_AT]), (n,)), carray(numbers_at(entered[START_AT]), (1,))
    for k in range(commands.shape[0]):
        for i in range(n):
            command[i] = commands[k, i] + sign * more[i]
        start[0] = (first + k) * dt
        status = call(entered[FUNCTION], entered[ARGUMENTS_AT])
        if status != 0:
            return int(status)
    return 0


@kernel
def settled(entered: Any, first: int, dt: float) -> int:
    """What follows from the coordinates, in order."""
    carray(numbers_at(entered[START_AT]), (1,))[0] = first * dt
    return int(call(entered[SETTLE], entered[SETTLE_AT]))


@kernel
def slopes(
    entered: Any, state: Any, origin: Any, commands: Any, reference: Any, words: Any, pose: int, woven: Any, by: Any,
    begin: int, end: int, first: int, dt: float, out: Any,
) -> int:  # fmt: skip
    """Slopes of the coordinates after the steps by those before and by the commands, begin to end of them, to out.

    entered    see FUNCTION and the like;  state (w,) of the fork
    origin     (w,) the state around which, as the fork's;  reference (7,) the pose from which the pose after is told
    commands   (steps, n): a slope by commands is one by what is added to all of them
    words, pose, woven   see rtmms.plant.protocol.Coordinates
    by         (k + n,) how far to either side
    first      steps before;  dt s
    out        (k + n, k) written: row m, the slope by the m-th
    Returns -1, or the first of them from which a step failed.
    """
    k, n = words.shape[0], commands.shape[1]
    x, y, more = np.empty(k), np.empty(k), np.zeros(n)
    frame, after = np.empty(9), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
        rotation(reference[3:7], after)
    for m in range(begin, end):
        for side in range(2):
            sign = 1.0 - 2.0 * side
            copy(origin, state)
            if m < k:
                move(state, words, pose, frame, m, sign * by[m])
                if woven[m] and settled(entered, first, dt) != 0:
                    return m
            else:
                more[m - k] = by[m]
            if run(entered, state, commands, more, sign, first, dt) != 0:
                return m
            if m >= k:
                more[m - k] = 0.0
            coordinates_of(state, words, pose, reference, after, x if side == 0 else y)
        difference(0.5 / by[m], x, y, out[m])
    return -1


@kernel
def ends(
    entered: Any, state: Any, origin: Any, commands: Any, reference: Any, words: Any, pose: int, by: Any, first: int,
    dt: float, out: Any,
) -> int:  # fmt: skip
    """What everything displaced at once becomes along a few directions.

    by     (d, k + n) a direction each
    out    (d, k) written: half the difference of both ends
    The status of the step that failed, 0 when none did.
    """
    directions, k, n = by.shape[0], words.shape[0], commands.shape[1]
    x, more = np.empty((2, k)), np.empty(n)
    frame, after = np.empty(9), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
        rotation(reference[3:7], after)
    for d in range(directions):
        for i in range(n):
            more[i] = by[d, k + i]
        for side in range(2):
            sign = 1.0 - 2.0 * side
            copy(origin, state)
            for m in range(k):
                move(state, words, pose, frame, m, sign * by[d, m])
            status = settled(entered, first, dt)
            if status == 0:
                status = run(entered, state, commands, more, sign, first, dt)
            if status != 0:
                return int(status)
            coordinates_of(state, words, pose, reference, after, x[side])
        difference(0.5, x[0], x[1], out[d])
    return 0


@kernel
def trace(entered: Any, state: Any, commands: Any, first: int, dt: float, out: Any) -> int:
    """Steps with each row of commands (steps, n) from a state, which is moved on; out (steps + 1, w) it before each and
    after the last. The status of the step that failed, 0 when none did."""
    nothing = np.zeros(commands.shape[1])
    copy(state, out[0])
    for k in range(commands.shape[0]):
        status = run(entered, state, commands[k : k + 1], nothing, 0.0, first + k, dt)
        if status != 0:
            return int(status)
        copy(state, out[k + 1])
    return 0


# A and B of a step by the structure of the equations, for the plants whose structure is known.


def structure_of(plant: Any, by: Array) -> Structure | None:
    """The plant's own (rtmms.analysis.chart.Structured), or that of a tree; None where differences have to serve.

    by  (k + n,) how far coordinates and commands are displaced to either side, where they are
    """
    if isinstance(plant, Structured):
        return plant.structure(by)
    if COMPILED and isinstance(plant, Running):
        from rtmms.analysis.tree_jacobian import TreeJacobian, covered  # its kernels are for who asks

        if covered(plant):
            return TreeJacobian(plant, by)
    return None


METHODS = ("structure", "differences")
PROBES = 2
"""Directions in which everything is displaced at once, to see how wrong the slopes are."""
PARAMETER_STEP = 1e-4
"""Of a parameter, relative; of one that is 0, in its own unit."""
CHUNK_STEPS = 20000
"""Steps at most between two looks at what else happens (Ctrl-C)."""
LONG_STEPS = 200_000
"""Steps from which on a bar on standard error tells how far it is."""
STRUCTURED_STEPS = 100
"""What A and B of a step by structure, and their products, are worth in steps, for that bar."""
MANY_STEPS = 500
"""From so many steps on more than one thread pays."""


def linearise(
    plant: Plant, command: Any = None, outputs: Sequence[str] = (), with_respect_to: Sequence[str] = (),
    period: bool = False, *, threads: int | None = None, method: str | None = None,
) -> Linear:  # fmt: skip
    """x[k + 1] = A x[k] + B u[k], y[k] = C x[k] around the plant's present state, of one step or of a period.

    command   (n_actuators,) held over the step. Default: what is held now by a plant of a mechanism, else the neutral
              one. Of a period: (steps, n_actuators), default those of the plant's own gait; u is what is added to all
              of them
    outputs   names of outputs, whose slopes are the rows of C, flattened
    with_respect_to   names of `plant.settable`: P has a column for each number, x[k + 1] = A x + B u + P (p - p0)
    period    the map of a period: x[k + 1] is the error a period on, around the state that the plant has then
    threads   None: one for a step of a small plant, else as many as there are cores
    method    'structure' or 'differences' of all coordinates, one by one; None: the first where the plant has it
    x are errors in the plant's coordinates, zero at the present state, in SI units, see `Linear`. Of one step A maps
    into the chart around the old pose. By central differences of 1e-6 of each coordinate's size; where the model has a
    kink (|w| w at w = 0) that is the mean of both sides. The plant is left as it was. Raises ArgumentError,
    UnknownNameError, ModelError, and DivergedError where the step itself fails.
    """
    if not isinstance(plant, Plant):
        raise ArgumentError(f"linearise: expected a plant, as rtmms.load gives, got {plant!r:.60}")
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
    for name in outputs:
        if name not in known:
            raise UnknownNameError("output", str(name), known)
    commands = _commands(plant, command, period)
    room = _room(plant) if isinstance(plant, Coordinated) else None
    if room is not None:
        with room.lock, np.errstate(all="ignore"):
            found = _compiled(plant, room, commands, period, threads, with_respect_to, method)  # type: ignore[arg-type]
    else:
        if method is not None:
            raise ModelError(f"linearise: method: a {type(plant).__name__} is stepped by Python alone, got '{method}'")
        if period or with_respect_to:
            what = "period" if period else "with_respect_to"
            raise ModelError(
                f"linearise: {what}: expected a plant with compiled steps, and a {type(plant).__name__} is stepped by "
                "Python alone"
            )
        found = linearise_step(plant, commands)
    if outputs:
        rows, units, c = _output_slopes(plant, outputs)
        found = replace(found, c=c, outputs=rows, output_units=units)
    return found


def _commands(plant: Plant, given: Any, period: bool) -> Array:
    """(steps, n_actuators), finite."""
    n = len(plant.actuators)
    if not period:
        if given is None:
            held = getattr(plant, "commanded", None)
            given = [c.neutral for c in plant.actuators] if held is None else held
        return read_command("linearise", plant.actuators, given)[None, :].copy()
    if given is None:
        return _gait(plant)
    try:
        commands = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"linearise: command: expected numbers (steps, {n}), got {given!r:.60}") from None
    if commands.ndim != 2 or commands.shape[1] != n or not len(commands):
        raise ArgumentError(
            f"linearise: command: of a period expected an array (steps, {n}), got shape {commands.shape}"
        )
    if not np.isfinite(commands).all():
        step, which = (int(k) for k in np.argwhere(~np.isfinite(commands))[0])
        raise ArgumentError(f"linearise: command: must be finite, got {commands[step, which]} in step {step}")
    return commands


def _gait(plant: Plant) -> Array:
    """The commands of a period of the plant's own gait."""
    commanded = describe_plant(plant).gait
    if commanded is not None:
        steps = max(1, round(commanded.gait_period() / plant.dt))
        return np.ascontiguousarray(commanded.gait_commands(steps))
    if not isinstance(plant, TreePlant) or not np.any(plant.law.motion[:, 1:]):
        raise ModelError(
            f"linearise: period: a {type(plant).__name__} has no gait of its own; give the commands of a period"
        )
    length = 2.0 * pi / plant.law.omega
    steps = round(length / plant.dt)
    if abs(steps * plant.dt - length) > 1e-6 * length:
        raise ModelError(
            f"linearise: period: expected a whole number of steps in a period of {length:.6g} s, got dt = "
            f"{plant.dt:.6g} s; dt = {length / max(1, steps):.12g} would do"
        )
    return np.tile(plant.neutral, (steps, 1))


class _Room:
    """Forks of a plant that are kept, and what kernels get of them.

    key   what the plant was when they were made
    """

    def __init__(self, plant: Coordinated, key: bytes) -> None:
        self.key, self.told, self.lock = key, plant.coordinates(), Lock()
        count = len(self.told.names) + len(plant.actuators)  # type: ignore[attr-defined]
        self.signs = np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, count))
        self.forks: list[tuple[Fork, Any, Any]] = []
        self.structures: list[Structure] = []
        self.by = STEP * np.concatenate([self.told.size, reach_of(plant.actuators)])  # type: ignore[attr-defined]
        self.pool: ThreadPoolExecutor | None = None
        self.workers = 0

    def structure(self, plant: Any, count: int) -> list[Structure]:
        """So many of what tells A and B by the plant's structure; none where it has none."""
        while len(self.structures) < count:
            one = structure_of(plant, self.by)
            if one is None:
                break
            self.structures.append(one)
        return self.structures[:count]

    def add(self, plant: Coordinated, fork: Fork | None = None) -> None:
        own = plant.fork() if fork is None else fork
        assert own is not None
        self.forks.append((own, *entered(plant, own)))

    def threads(self, count: int) -> ThreadPoolExecutor:
        if self.pool is None or self.workers < count:
            self.pool, self.workers = ThreadPoolExecutor(count, thread_name_prefix="linearise"), count
        return self.pool


def entered(plant: Coordinated, fork: Fork) -> tuple[Any, Any]:
    """What kernels of derivatives get of a fork (rtmms.analysis.derivatives), and what must live as long."""
    settle = plant.settling(fork)
    steps, settling = _words(fork.entry), _words(settle)
    found = np.array(
        [fork.entry.function, steps.ctypes.data, fork.entry.command, settle.function, settling.ctypes.data,
         fork.start.ctypes.data], dtype=np.int64,
    )  # fmt: skip
    return found, (steps, settling)


_rooms: WeakKeyDictionary[Any, _Room] = WeakKeyDictionary()


def _words(entry: Entry) -> Any:
    words = np.zeros(ARGUMENTS, dtype=np.int64)
    words[: len(entry.arguments)] = entry.arguments
    return words


def _room(plant: Coordinated) -> _Room | None:
    """None for a plant that is stepped by Python alone."""
    key = model_of(plant.snapshot())  # type: ignore[attr-defined]
    room = _rooms.get(plant)
    if room is None or room.key != key:
        fork = plant.fork()
        if fork is None:
            return None
        room = _rooms[plant] = _Room(plant, key)
        room.add(plant, fork)
    return room


def _compiled(
    plant: Coordinated, room: _Room, commands: Array, period: bool, threads: int | None, parameters: Sequence[str],
    method: str | None,
) -> Linear:  # fmt: skip
    work = _Differences(plant, room, commands, period)
    found = work.by_structure(threads) if method != "differences" else None
    if found is None and method == "structure":
        raise ModelError(
            f"linearise: method: this {type(plant).__name__} has no structure that is known, or a step fails; use "
            "method='differences'"
        )
    packed, b = work.slope(threads) if found is None else found
    error = work.wrong(packed, b)
    p, named = work.by_parameters(parameters) if parameters else (None, ())
    told, actuators = work.told, work.actuators
    return Linear(
        packed, b, told.names, tuple(one.name for one in actuators),
        len(commands) * work.dt if period else work.dt, error, told.units, tuple(one.unit for one in actuators),
        p=p, parameters=named, around=Around(told, work.origin, b""),
        method="differences" if found is None else "structure",
    )  # fmt: skip


class _Differences:
    """Of one call.

    origin      (w,) the plant's state, less what it forgets;  first  steps since its reset
    reference   (7,) the pose from which the pose after is told
    by          (k + n,) displacements;  out (k + n, k) slopes by differences, a row each
    """

    def __init__(self, plant: Coordinated, room: _Room, commands: Array, period: bool) -> None:
        known: Any = plant
        self.actuators, self.dt = known.actuators, float(known.dt)
        self.plant, self.room, self.told, self.commands, self.period = plant, room, room.told, commands, period
        self.present = plant.present()
        self.origin, self.first = self.present[0].copy(), self.present[1]
        told = self.told
        self.origin[told.forgets] = 0.0
        self.by = room.by
        self.reference = self.origin[told.pose : told.pose + 7].copy() if told.pose >= 0 else np.zeros(7)
        end = self.nominal(room.forks[0])
        if period and told.pose >= 0:
            self.reference = end[told.pose : told.pose + 7].copy()

    def nominal(self, fork: tuple[Fork, Any, Any]) -> Array:
        """(w,) the state at the end, undisturbed; DivergedError as of the plant's own step."""
        own, entered, _ = fork
        own.state[:] = self.origin
        nothing = np.zeros(self.commands.shape[1])
        if run(entered, own.state, self.commands, nothing, 0.0, self.first, self.dt):
            own.clear()
            with self.put_back():
                for command in self.commands:
                    self.plant.step(command)  # type: ignore[attr-defined]
            raise ModelError("linearise: the step fails on a fork of the plant")
        return own.state

    @contextmanager
    def put_back(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.plant.put(*self.present)

    def by_structure(self, threads: int | None) -> tuple[Array | Bordered, Array] | None:
        """A and B by the plant's structure; None where it has none, or a step fails."""
        steps, pose = len(self.commands), self.told.pose
        if not self.period:
            known = self.room.structure(self.plant, 1)
            start = self.first * self.dt
            if not known or not known[0].take(self.origin, self.commands[0], self.reference, start):
                return None
            return known[0].a.copy(), known[0].b
        known = self.room.structure(self.plant, min(_cores() if threads is None else threads, steps))
        if not known:
            return None
        own, entered, _ = self.room.forks[0]
        own.state[:] = self.origin
        way = np.empty((min(steps, TOGETHER) + 1, len(own.state)))

        def states(begin: int, end: int) -> Array:
            if trace(entered, own.state, self.commands[begin:end], self.first + begin, self.dt, way[: end - begin + 1]):
                raise ModelError("linearise: the step fails on a fork of the plant")
            return way[: end - begin + 1]

        pool = self.room.threads(len(known)) if len(known) > 1 else None
        with _progress(steps * STRUCTURED_STEPS) as show:
            return chained(known, pool, states, self.commands, pose, self.first, self.dt, show)

    def slope(self, threads: int | None) -> tuple[Array, Array]:
        """A and B by differences."""
        count, steps = len(self.by), len(self.commands)
        self.out = np.zeros((count, len(self.told.names)))
        if threads is None:
            threads = _cores() if 2 * count * steps >= MANY_STEPS else 1
        threads = min(threads, count)
        width = max(1, min(-(-count // threads), CHUNK_STEPS // (2 * steps)))
        chunks = [(begin, min(begin + width, count)) for begin in range(0, count, width)]
        while len(self.room.forks) < threads:
            self.room.add(self.plant)
        with _progress(2 * count * steps) as show:
            failed = self._all(chunks, threads, show)
        if failed >= 0:
            k = len(self.told.names)
            name, unit = (
                (self.told.names[failed], self.told.units[failed]) if failed < k
                else (self.actuators[failed - k].name, self.actuators[failed - k].unit)
            )  # fmt: skip
            raise ModelError(
                f"linearise: a step fails where {name} differs by {self.by[failed]:.3g} {unit}: the plant stands at "
                "the edge of what it can do, take another state"
            )
        k = len(self.told.names)
        return self.out[:k].T, self.out[k:].T

    def _all(self, chunks: list[tuple[int, int]], threads: int, show: Callable[[float], None]) -> int:
        """The first of which a step failed, -1 when none did."""
        if threads == 1:
            failed: list[int] = []
            for chunk in chunks:
                failed.append(self._some(chunk, self.room.forks[0]))
                show(len(failed) / len(chunks))
                if failed[-1] >= 0:
                    break
        else:
            left, failed = iter(chunks), []

            def work(fork: tuple[Fork, Any, Any]) -> None:
                for chunk in left:  # next() of a list's iterator is one step for the interpreter
                    failed.append(self._some(chunk, fork))

            pool = self.room.threads(threads)
            going = [pool.submit(work, fork) for fork in self.room.forks[:threads]]
            try:
                waiting = set(going)
                while waiting:
                    _, waiting = wait(waiting, 0.2, FIRST_EXCEPTION)  # one without end would not hear Ctrl-C everywhere
                    show(len(failed) / len(chunks))
            finally:
                for _ in left:  # after Ctrl-C: no more of them
                    pass
                wait(going)
            for one in going:
                one.result()
        bad = [one for one in failed if one >= 0]
        if bad:
            for fork, *_ in self.room.forks:
                fork.clear()
        return min(bad, default=-1)

    def _some(self, chunk: tuple[int, int], fork: tuple[Fork, Any, Any]) -> int:
        own, entered, _ = fork
        told = self.told
        return int(
            slopes(
                entered, own.state, self.origin, self.commands, self.reference, told.words, told.pose, told.woven,
                self.by, chunk[0], chunk[1], self.first, self.dt, self.out,
            )
        )  # fmt: skip

    def wrong(self, a: Array | Bordered, b: Array) -> float:
        """How far the slopes are from differences along a few directions, half as long, in the sizes: about as large as
        the largest of a row's errors, or larger."""
        own, entered, _ = self.room.forks[0]
        told = self.told
        k = len(told.names)
        if not k:
            return 0.0
        by = 0.5 * self.by * self.room.signs
        off = np.empty((PROBES, k))
        if ends(
            entered, own.state, self.origin, self.commands, self.reference, told.words, told.pose, by, self.first,
            self.dt, off,
        ):  # fmt: skip
            own.clear()
            return float("nan")
        x = by[:, :k].T
        off -= ((a.times(x) if isinstance(a, Bordered) else a @ x) + b @ by[:, k:].T).T
        off /= 0.5 * STEP * told.size
        return float(np.sqrt(np.max(np.mean(off * off, axis=0))))

    def by_parameters(self, names: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
        """(k, numbers) the slope by parameters, and what each number is called."""
        about = describe_plant(self.plant)
        parameters = about.parameters()
        if about.set is None or about.settable is None or (about.settable and parameters is None):
            raise ModelError("linearise: with_respect_to: this plant has no parameters that can change while it runs")
        columns, named = [], []
        for name in names:
            if name not in about.settable:
                raise UnknownNameError("parameter that can change while the plant runs", str(name), about.settable)
            usual = getattr(parameters, name)
            values = np.atleast_1d(np.asarray(usual))
            if values.dtype.kind != "f" or values.ndim != 1:
                raise ArgumentError(f"linearise: with_respect_to: {name} is no real number, got {usual!r:.60}")
            for i, value in enumerate(values.tolist()):
                step = PARAMETER_STEP * (abs(value) or 1.0)
                columns.append(self._between(name, usual, i, step))
                named.append(name if np.ndim(usual) == 0 else f"{name}[{i}]")
        return np.array(columns).T, tuple(named)

    def _between(self, name: str, usual: Any, i: int, step: float) -> Array:
        """(k,) of one number of a parameter; one-sided where it must not go to the other side."""
        ends: list[tuple[float, Array]] = []
        refused: ModelError | None = None
        for by in (step, -step):
            try:
                ends.append((by, self._after(name, _moved(usual, i, by))))
            except ModelError as error:
                refused = error
        if not ends:
            raise refused or ModelError(f"linearise: with_respect_to: {name} cannot be changed")
        if len(ends) == 2:
            return np.asarray((ends[0][1] - ends[1][1]) / (2.0 * step))
        by, one = ends[0]
        two = self._after(name, _moved(usual, i, 2.0 * by))
        none = self._after(name, usual)
        return np.asarray((4.0 * one - two - 3.0 * none) / (2.0 * by))  # the parabola's slope

    def _after(self, name: str, value: Any) -> Array:
        """(k,) coordinates at the end with another value."""
        plant: Any = self.plant
        usual = getattr(plant.parameters, name)
        plant.set(**{name: value})
        try:
            fork = plant.fork()
        finally:
            plant.set(**{name: usual})
        room = _Room(plant, b"")
        room.add(plant, fork)
        own, entered, _ = room.forks[0]
        own.state[:] = self.origin
        if run(
            entered, own.state, self.commands, np.zeros(self.commands.shape[1]), 0.0, self.first, self.dt
        ):  # fmt: skip
            raise ModelError(f"linearise: with_respect_to: a step fails with {name} = {value!r:.60}")
        return _coordinates(self.told, self.reference, own.state)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[float], None]]:
    """What takes the share that is done, for a bar on a terminal."""
    if steps < LONG_STEPS or not sys.stderr.isatty() or os.environ.get("RTMMS_QUIET"):
        yield lambda share: None
        return
    from rich.progress import Progress

    with Progress(console=console(err=True), transient=True) as bar:
        task = bar.add_task("linearise", total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _coordinates(told: Coordinates, reference: Array, state: Array) -> Array:
    found: Array = state[told.words]
    if told.pose >= 0:
        found[:6] = displacement(reference, state[told.pose : told.pose + 7])
    return found


def _moved(usual: Any, i: int, by: float) -> Any:
    if np.ndim(usual) == 0:
        return float(usual) + by
    moved = [float(value) for value in usual]
    moved[i] += by
    return tuple(moved)


def _output_slopes(plant: Plant, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
    """What the rows are called, their units, and (rows, k) slopes of outputs by the coordinates."""
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
                told = plant.observe()
                ends.append(np.concatenate([np.ravel(told[name]) for name in names]))
            columns.append((ends[0] - ends[1]) / (2.0 * STEP * chart.size[m]))
            chart.write(np.zeros(k))
    finally:
        plant.restore(before)
    return tuple(rows), tuple(units), np.array(columns).T.reshape(len(rows), k)
