"""Provide the base of plants made of plants: sensors, faults, fidelity levels and worlds.

A stage has plants, which step in its compiled call by their addresses, and its own record. From these two follow its
snapshot, its state as forks have it, its compiled step, and its forks. A stage declares the outputs that it adds or
renames, and forwards the others without code for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numba import carray

from rtmms.base.errors import ModelError
from rtmms.base.jit import COMPILED, kernel, native
from rtmms.base.memory import INTEGER, Layout, aligned, number, scratch, state, step_input
from rtmms.base.pointers import ARGUMENTS, call, numbers_at
from rtmms.base.snapshot import StatefulPlant, pack_state, seal_parts, unpack_state, unseal_parts
from rtmms.base.spatial import Array
from rtmms.plant.description import Wrapper
from rtmms.plant.optional_protocols import (
    CompiledOutputs,
    CompiledStep,
    Fork,
    HasCompiledOutputs,
    HasCompiledStep,
    HasFork,
)
from rtmms.plant.protocol import Plant

STEP, COMMAND, FIRST, COUNT, ACCOUNT, START, STATE, SOUND, STATE_SIZE, WIDTH = range(10)
"""Columns of an inner plant's row.

STEP, COMMAND: addresses of its step and of its command. FIRST, COUNT: its first actuator and the number of commands
that the stage copies there. ACCOUNT: address of the function that writes its outputs. For a fork, START, STATE, SOUND:
addresses of its start time, its state, and the sound state after a failure; STATE_SIZE: numbers of a state.
These are 0 for a plant itself.
"""

INNER = Layout(
    "Inner",
    step_input("rows", "inner", WIDTH, dtype=INTEGER), step_input("arguments", 2, "inner", ARGUMENTS, dtype=INTEGER),
    number("dt", unit="s"), scratch("failed", 1, dtype=INTEGER), state("steps_taken", "inner", dtype=INTEGER),
)  # fmt: skip
"""Part of a stage's record.

`rows` has the columns above. `arguments` has those of each plant's step, then those of its outputs. `failed` is the
index of the plant whose step failed. `steps_taken` is the steps of each fork since the plant's reset.
"""
_inner_at = INNER.type().at()

LINE = 8
"""Words of a cache line; the state of each inner fork begins on one."""


@kernel
def step_inner(inner: Any, k: int) -> int:
    """Take the step of the k-th plant, whose command is in place.

    Parameters
    ----------
    inner : Record
        Part `INNER` of the stage's record.
    k : int
        Index of the plant.

    Returns
    -------
    int
        Status; 0 on success.
    """
    rows = inner.rows
    if rows[k, START]:
        carray(numbers_at(rows[k, START]), (1,))[0] = float(inner.steps_taken[k]) * inner.dt
    status = call(rows[k, STEP], inner.arguments[0, k].ctypes.data)
    if status:
        inner.failed[0] = k
        if rows[k, SOUND] != rows[k, STATE]:
            count = rows[k, STATE_SIZE]
            failed = carray(numbers_at(rows[k, STATE]), (count,))
            sound = carray(numbers_at(rows[k, SOUND]), (count,))
            for i in range(count):
                failed[i] = sound[i]
        return int(status)
    inner.steps_taken[k] += 1
    return 0


@kernel
def write_inner_outputs(inner: Any) -> None:
    """Write the outputs of each plant.

    Parameters
    ----------
    inner : Record
        Part `INNER` of the stage's record.
    """
    for k in range(len(inner.rows)):
        call(inner.rows[k, ACCOUNT], inner.arguments[1, k].ctypes.data)


@kernel
def enter_account(address: int) -> int:
    """Call `write_inner_outputs` for the record at an address.

    Parameters
    ----------
    address : int
        Address of the part `INNER`.

    Returns
    -------
    int
        0.
    """
    write_inner_outputs(_inner_at(address))
    return 0


class Stage(StatefulPlant, Wrapper):
    """Base of a plant that is made of plants.

    A subclass sets the attributes when it is built, calls `_compose`, and overrides the hooks that differ.

    Attributes
    ----------
    inner : tuple of Plant
        Plants in the order in which they step.
    system : Record
        Record whose layout ends with ``part("inner", INNER)``. Its state is the stage's own.
    """

    inner: tuple[Plant, ...]
    _count: npt.NDArray[np.int64]
    """(1,) steps since the reset; part of the state of `system`."""
    _step_kernel: ClassVar[Any] = None
    """Compiled step: (address of `system`) -> status, 0 when all is well."""
    _finite: ClassVar[bool] = True
    """Whether numbers of a snapshot must be finite."""

    # --- hooks ----------------------------------------------------------------------------------------------------

    def _inner_name(self, k: int, output: str) -> str:
        """Return the stage's name of an output of the k-th plant."""
        return output

    def _own_places(self) -> Mapping[str, tuple[int, int]]:
        """Return outputs that are elements of the stage's own state: first word, and number of words."""
        return {}

    def _command_address(self, system: Any, entries: Sequence[CompiledStep]) -> int:
        """Return the address from which the stage's compiled step reads its command."""
        return int(system.command.ctypes.data)

    def _bind(self, system: Any, forks: Sequence[Fork] | None, accounts: Sequence[CompiledOutputs | None]) -> bool:
        """Write addresses that the stage's own kernels need into a record; False where its step cannot be compiled.

        `forks` are the inner plants of a forked record, or None for the stage's own record.
        """
        return True

    def _parts_at(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Sequence[Any]:
        """Return objects with `snapshot` and `restore` that belong to the stage's own state."""
        return self.inner

    def _after_restore(self) -> None:
        """Compute everything that depends on the state again."""

    def _after_step(self) -> None:
        """Do the Python part after a step that compiled code took."""

    @contextmanager
    def _naming(self, k: int) -> Iterator[None]:
        """Name the k-th plant in errors."""
        yield

    # --- composition ----------------------------------------------------------------------------------------------

    def _compose(self) -> None:
        """Bind the compiled step and outputs, where all inner plants have them."""
        entered = tuple(item for item in self.inner if isinstance(item, HasCompiledStep))
        self._entered: tuple[HasCompiledStep, ...] = entered if COMPILED and len(entered) == len(self.inner) else ()
        self._accounts = self._inner_accounts()
        self._bound: list[CompiledStep] = []
        self._entry: CompiledStep | None = None
        self._compiled = bool(self._entered) and self._bind(self.system, None, self._accounts)
        _bind_accounts(self.system.inner, self._accounts)

    def _inner_accounts(self) -> list[CompiledOutputs | None]:
        """Return the compiled outputs of each inner plant, None for a plant without them."""
        return [
            item.compiled_outputs() if COMPILED and isinstance(item, HasCompiledOutputs) else None
            for item in self.inner
        ]

    def compiled_step(self) -> CompiledStep | None:
        """Return the next step for callers in compiled code (rtmms.plant.HasCompiledStep).

        Returns
        -------
        CompiledStep or None
            None where an inner plant has no compiled step.
        """
        if not self._compiled:
            return None
        entries = []
        for item in self._entered:
            entry = item.compiled_step()
            if entry is None:
                return None
            entries.append(entry)
        if not self._bound or any(a is not b for a, b in zip(entries, self._bound, strict=True)):
            self._bound = entries
            _bind_steps(self.system.inner, entries)
            self._entry = self._entry_of(self.system, entries)
        return self._entry

    def _entry_of(self, system: Any, entries: Sequence[CompiledStep]) -> CompiledStep:
        """Return the stage's step of a record as compiled code calls it."""
        address = system.address
        return CompiledStep(native(self._step_kernel, address), (address,), self._command_address(system, entries))

    def finish_compiled_step(self, status: int) -> None:
        """Do the Python part after a compiled step (rtmms.plant.HasCompiledStep).

        Parameters
        ----------
        status : int
            Status that the compiled step returned; 0 on success.

        Raises
        ------
        DivergedError
            The step of an inner plant failed.
        """
        failed = int(self.system.inner.failed[0]) if status else len(self._entered)
        for k, item in enumerate(self._entered):
            if k <= failed:
                with self._naming(k):
                    item.finish_compiled_step(status if k == failed else 0)
        self._after_step()

    def compiled_outputs(self) -> CompiledOutputs | None:
        """Return the outputs as compiled code computes them (rtmms.plant.HasCompiledOutputs).

        Returns
        -------
        CompiledOutputs or None
            None where an inner plant has no compiled outputs.
        """
        return self._account_of(self.system, self._accounts) if self._compiled else None

    def _account_of(self, system: Any, accounts: Sequence[CompiledOutputs | None]) -> CompiledOutputs | None:
        """Return the compiled outputs of a record, None where an inner plant has none."""
        if not accounts or any(account is None for account in accounts):
            return None
        numbers = {
            self._inner_name(k, name): place
            for k, account in enumerate(accounts) if account is not None for name, place in account.numbers.items()
        }  # fmt: skip
        first = system.memory.ctypes.data
        numbers |= {name: (first + 8 * at, count) for name, (at, count) in self._own_places().items()}
        function, address = self._account_entry(system)
        return CompiledOutputs(native(function, address), (address,), numbers)

    def _account_entry(self, system: Any) -> tuple[Any, int]:
        """Return the compiled function that writes all outputs, and its argument."""
        return enter_account, system.inner.address

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def _steps(self) -> int:
        """Steps since the reset."""
        return int(self._count[0])

    @_steps.setter
    def _steps(self, steps: int) -> None:
        self._count[0] = steps

    def snapshot(self) -> bytes:
        """Return the state of the stage and of its plants, bit for bit.

        Returns
        -------
        bytes
            Sealed parts: the stage's own, then one for each plant.
        """
        arrays = self._packed_arrays()
        stage_blob = pack_state(self._key, self.dt, self._steps, *arrays.values())
        return seal_parts(stage_blob, *(part.snapshot() for part in self._parts_at(arrays)))

    def restore(self, blob: bytes) -> None:
        """Go back to a snapshot of the same model; all plants change, or none.

        Parameters
        ----------
        blob : bytes
            Bytes that `snapshot` returned.

        Raises
        ------
        ModelError
            The snapshot is another model's or damaged.
        """
        arrays = self._state_arrays()
        stage_blob, *parts = unseal_parts(blob, self._name, None)
        steps, result = unpack_state(stage_blob, self._name, self._key, self.dt, arrays, finite=self._finite)
        inner = self._parts_at(result)
        if len(inner) != len(parts):
            raise ModelError(
                f"{self._name}: restore: expected a snapshot of this kind of plant, got one of another kind"
            )
        before = [entry.snapshot() for entry in inner] if len(inner) > 1 else []
        try:
            for item, part in zip(inner, parts, strict=True):
                item.restore(part)
        except ModelError:
            for item, part in zip(inner, before, strict=False):
                item.restore(part)
            raise
        self._clear()
        for name, array in arrays.items():
            array[...] = result[name]
        self._steps = steps
        self._after_restore()

    def _state_arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the stage's own state without the steps that forks count."""
        return {"state": self.system.memory[: -len(self.inner)]}

    def _packed_arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return `_state_arrays` for a snapshot: the same bytes for the same state."""
        return self._state_arrays()

    def present(self) -> tuple[Array, int]:
        """Return the present state.

        Returns
        -------
        (array, int)
            Copy of the state as a fork stores it, and the steps since the reset.
        """
        result = [item.present() for item in self.inner]  # type: ignore[attr-defined]
        places, size = _places_in_block(self.system.memory.size, [state.size for state, _ in result])
        block = aligned(size)
        self.system.inner.steps_taken[:] = [steps for _, steps in result]
        block[: self.system.memory.size] = self.system.memory
        for place, (inner_state, _) in zip(places, result, strict=True):
            block[place] = inner_state
        return block, self._steps

    def put(self, state: Array, steps: int) -> None:
        """Put the stage and its plants into a state, as `restore` does.

        Parameters
        ----------
        state : (w,) array
            State as `present` returns it.
        steps : int
            Steps since the reset.
        """
        sizes = [entry.present()[0].size for entry in self.inner]  # type: ignore[attr-defined]
        places, _ = _places_in_block(self.system.memory.size, sizes)
        self._clear()
        self.system.memory[:] = state[: self.system.memory.size]
        for item, place, step_count in zip(self.inner, places, self.system.inner.steps_taken.tolist(), strict=True):
            item.put(state[place], step_count)  # type: ignore[attr-defined]
        self._after_restore()

    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return a run beside the stage's, with forks of its plants.

        Parameters
        ----------
        memory : (w,) array, optional
            Memory of the fork's state, of the size of `present()[0]`; None for new memory.

        Returns
        -------
        Fork or None
            None where an inner plant has no fork.
        """
        if not self._entered or not all(isinstance(entry, HasFork) for entry in self.inner):
            return None
        sizes = [entry.present()[0].size for entry in self.inner]  # type: ignore[attr-defined]
        places, size = _places_in_block(self.system.memory.size, sizes)
        block = aligned(size) if memory is None else memory
        forks: list[Fork] = []
        for item, place in zip(self.inner, places, strict=True):
            fork = item.fork(block[place])  # type: ignore[attr-defined]
            if fork is None:
                return None
            forks.append(fork)
        other = self.system.fork(block[: self.system.memory.size])
        if not self._bind_fork(other, forks):
            return None
        result = {
            self._inner_name(k, name): (place.start + at, count)
            for k, (fork, place) in enumerate(zip(forks, places, strict=True))
            for name, (at, count) in fork.places.items()
        }  # fmt: skip
        result |= self._own_places()
        entry = self._entry_of(other, [fork.entry for fork in forks])

        def clear() -> None:
            other.clear()
            for fork in forks:
                fork.clear()

        def follow() -> bool:
            if not all(fork.sync_model() for fork in forks):
                return False
            return other.adopt_from(self.system) and self._bind_fork(other, forks)

        return Fork(
            entry, block, block, np.zeros(1), result, clear, follow, (other, block, *forks),
            self._account_of(other, [fork.account for fork in forks]),
        )  # fmt: skip

    def _bind_fork(self, other: Any, forks: Sequence[Fork]) -> bool:
        """Write the addresses of forks into a forked record."""
        accounts = [fork.account for fork in forks]
        inner = other.inner
        _bind_steps(inner, [fork.entry for fork in forks])
        _bind_accounts(inner, accounts)
        for k, fork in enumerate(forks):
            inner.rows[k, [START, STATE, SOUND, STATE_SIZE]] = (
                fork.start.ctypes.data, fork.state.ctypes.data, fork.recovery_state.ctypes.data, fork.state.size,
            )  # fmt: skip
        return self._bind(other, forks, accounts)


def address_of_output(name: str, fork: Fork | None, account: CompiledOutputs | None) -> tuple[int, int, bool]:
    """Return the address at which compiled code finds an output.

    Parameters
    ----------
    name : str
        Output.
    fork : Fork or None
        Fork whose state may contain it.
    account : CompiledOutputs or None
        Compiled outputs that may contain it.

    Returns
    -------
    (int, int, bool)
        Address, count, and whether the account's function must write it first; address 0 where neither has it.
    """
    if fork is not None and name in fork.places:
        at, count = fork.places[name]
        return fork.state.ctypes.data + 8 * at, count, False
    if account is not None and name in account.numbers:
        return (*account.numbers[name], True)
    return 0, 0, False


def _places_in_block(stage_size: int, sizes: Sequence[int]) -> tuple[list[slice], int]:
    """Return the slices of the inner states in one block behind the stage's own, and the length of the block."""
    at, places = _next_line(stage_size), []
    for size in sizes:
        places.append(slice(at, at + size))
        at = _next_line(at + size)
    return places, at


def _next_line(count: int) -> int:
    """Return a number of words rounded up to whole cache lines."""
    return -(-count // LINE) * LINE


def _bind_steps(inner: Any, entries: Sequence[CompiledStep]) -> None:
    """Write the inner plants' steps into a record."""
    for k, entry in enumerate(entries):
        inner.rows[k, [STEP, COMMAND]] = entry.function, entry.command
        inner.arguments[0, k, : len(entry.arguments)] = entry.arguments


def _bind_accounts(inner: Any, accounts: Sequence[CompiledOutputs | None]) -> None:
    """Write the inner plants' compiled outputs into a record."""
    for k, account in enumerate(accounts):
        if account is not None:
            inner.rows[k, ACCOUNT] = account.function
            inner.arguments[1, k, : len(account.arguments)] = account.arguments
