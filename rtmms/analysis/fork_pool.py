"""Forks of a plant and their threads, which advance runs without Python.

A `ForkPool` makes forks of a plant, packs their addresses for compiled code, and advances a batch
(rtmms.analysis.run_batch) on its threads. Rollouts, differences, stages of plans and environments use it. Plants that
Python steps have no forks; the callers step them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from threading import current_thread, main_thread
from typing import Any, TypeVar

import numpy as np

from rtmms.analysis.run_batch import (
    ACCOUNT,
    COMMAND_AT,
    FUNCTION,
    NUMBERS_AT,
    SETTLE,
    START_AT,
    STATE_AT,
    Batch,
    Integers,
    advance,
)
from rtmms.base.pointers import ARGUMENTS
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep, Fork, HasFork

Result = TypeVar("Result")


PARTS = 4
"""Parts of a batch for each thread, so that no thread waits for a slower one."""
MAX_PART_STEPS = 20_000
"""Largest number of steps of a part with more than one run: Ctrl-C takes effect between two parts."""
CHECK_S = 0.2
"""Seconds between two checks for Ctrl-C, which some systems do not deliver during an unlimited wait."""


class PackedFork:
    """A fork, and its addresses for `advance`.

    Parameters
    ----------
    plant : Any
        Plant that made the fork.
    fork : Fork
        The fork.
    """

    def __init__(self, plant: Any, fork: Fork) -> None:
        self.fork, self._plant = fork, plant
        self._arguments: list[Integers] = []
        self._packed = np.zeros(NUMBERS_AT, dtype=np.int64)
        self._packed[COMMAND_AT], self._packed[START_AT] = fork.entry.command, fork.start.ctypes.data
        self._packed[STATE_AT] = fork.state.ctypes.data
        self._put(FUNCTION, fork.entry)
        if fork.account is not None:
            self._put(ACCOUNT, fork.account)
        self._rows: dict[tuple[str, ...], Integers] = {}

    def _put(self, place: int, entry: CompiledStep | CompiledOutputs) -> None:
        """Write the address of a function, and that of its arguments."""
        arguments = np.zeros(ARGUMENTS, dtype=np.int64)
        arguments[: len(entry.arguments)] = entry.arguments
        self._arguments.append(arguments)
        self._packed[place : place + 2] = entry.function, arguments.ctypes.data

    def row(self, outputs: tuple[str, ...] = (), *, settles: bool = False) -> Integers:
        """Return the words of the packed fork, with those of some outputs of the account.

        Parameters
        ----------
        outputs : tuple[str, ...], default ()
            Outputs of the account.
        settles : bool, default False
            Whether the words have the function that updates a displaced state.

        Returns
        -------
        Integers
            (words,).
        """
        if settles and not self._packed[SETTLE]:  # its kernel is compiled only for callers that displace states
            self._put(SETTLE, self._plant.settling(self.fork))
            self._rows.clear()
        if outputs not in self._rows:
            numbers = self.fork.account.numbers if self.fork.account is not None else {}
            places = [word for name in outputs for word in numbers[name]]
            self._rows[outputs] = np.concatenate([self._packed, np.array(places, dtype=np.int64)])
        return self._rows[outputs]

    def advance(
        self, batch: Batch, order: Integers, outputs: tuple[str, ...] = (),
        run_forks: Mapping[int, PackedFork] | None = None,
    ) -> int:  # fmt: skip
        """Advance runs of a batch, and clear the fork after each that fails.

        Parameters
        ----------
        batch : Batch
            The runs.
        order : Integers
            (j,) indices of runs.
        outputs : tuple[str, ...], default ()
            Outputs of the account in a sample.
        run_forks : Mapping[int, PackedFork] | None, optional
            Forks of single runs, by run.

        Returns
        -------
        int
            Least run that failed, -1 where none did.
        """
        row, begin, failed = self.row(outputs, settles=len(batch.settles) > 0), 0, list[int]()
        while begin < len(order):
            at = int(advance(row, batch, order, begin, len(order)))
            if at < 0:
                break
            failed.append(int(order[at]))
            used = (run_forks or {}).get(failed[-1], self).fork
            if len(batch.recovered):
                batch.recovered[failed[-1]] = used.recovery_state
            used.clear()
            begin = at + 1
        return min(failed, default=-1)


class ForkPool:
    """Forks of a plant, one for each thread, and the threads.

    Parameters
    ----------
    plant : HasFork
        Plant that makes the forks. The pool neither steps nor changes it.
    threads : int
        Threads that advance runs where a call names no other number; the caller's counts as one of them.
    name : str
        Prefix of the threads' names.
    """

    def __init__(self, plant: Any, threads: int, name: str) -> None:
        self.plant, self.threads, self.name = plant, threads, name
        self.forks: list[PackedFork] = []
        self._executor: ThreadPoolExecutor | None = None
        self._workers = 0

    def close(self) -> None:
        """End the threads; the next call starts new ones."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def executor(self, count: int) -> ThreadPoolExecutor:
        """Return the threads, at least `count` of them.

        Parameters
        ----------
        count : int
            Number of threads.

        Returns
        -------
        ThreadPoolExecutor
            The executor.
        """
        if self._executor is None or self._workers < count:
            self.close()
            self._executor, self._workers = ThreadPoolExecutor(count, thread_name_prefix=self.name), count
        return self._executor

    def has_forks(self) -> bool:
        """Return whether the plant makes forks now; the first one then has its present model and parameters.

        Returns
        -------
        bool
            False for a plant that Python steps.
        """
        if not isinstance(self.plant, HasFork):
            return False
        if self.forks and self.forks[0].fork.sync_model():
            return True
        fork = self.plant.fork()
        if fork is not None:
            self.forks[:1] = [PackedFork(self.plant, fork)]
        return fork is not None

    def fork(self, k: int) -> PackedFork:
        """Return the k-th fork.

        Parameters
        ----------
        k : int
            Index of the fork.

        Returns
        -------
        PackedFork
            The fork, made if necessary.
        """
        while len(self.forks) <= k:
            self.forks.append(PackedFork(self.plant, self.plant.fork()))
        return self.forks[k]

    def follow(self, count: int | None = None) -> None:
        """Update the first forks to the present model and parameters.

        Parameters
        ----------
        count : int | None, optional
            Number of forks; None: all that exist.
        """
        for k in range(len(self.forks) if count is None else count):
            self.current_fork(k)

    def current_fork(self, k: int) -> PackedFork:
        """Return the k-th fork, with the present model and parameters.

        Parameters
        ----------
        k : int
            Index of the fork.

        Returns
        -------
        PackedFork
            The fork, made anew if necessary.
        """
        if k < len(self.forks) and not self.forks[k].fork.sync_model():
            self.forks[k] = PackedFork(self.plant, self.plant.fork())
        return self.fork(k)

    def parts(self, order: Integers, steps: int, threads: int | None = None) -> list[Integers]:
        """Return the runs in parts, which threads take up one after the other.

        Parameters
        ----------
        order : Integers
            (j,) indices of runs.
        steps : int
            Steps of a run.
        threads : int | None, optional
            Number of threads; None: those of the pool.

        Returns
        -------
        list[Integers]
            Parts of the order.
        """
        threads = self.threads if threads is None else threads
        size = len(order) if threads == 1 else len(order) // (PARTS * threads)
        size = max(1, min(size, MAX_PART_STEPS // max(1, steps)))
        return [order[begin : begin + size] for begin in range(0, len(order), size)]

    def advance(
        self, batch: Batch, parts: Sequence[Integers] | None = None, outputs: tuple[str, ...] = (), *,
        run_forks: Mapping[int, PackedFork] | None = None, threads: int | None = None,
        show: Callable[[float], None] | None = None,
    ) -> int:  # fmt: skip
        """Advance the runs of a batch.

        Ctrl-C ends them after their present step.

        Parameters
        ----------
        batch : Batch
            The runs.
        parts : Sequence[Integers] | None, optional
            (j,) runs that one thread advances one after the other; None: all runs, in parts.
        outputs : tuple[str, ...], default ()
            Outputs of the account that a sample has after the words of the state.
        run_forks : Mapping[int, PackedFork] | None, optional
            Forks of single runs by run, as in `batch.run_forks`.
        threads : int | None, optional
            Number of threads; None: those of the pool.
        show : Callable[[float], None] | None, optional
            Receives the share of the parts that is done.

        Returns
        -------
        int
            Least run that failed, -1 where none did.
        """
        threads = self.threads if threads is None else threads
        parts = self.parts(np.arange(len(batch.status)), batch.steps, threads) if parts is None else parts
        if len(parts) == 1 and batch.steps <= MAX_PART_STEPS:
            return self.fork(0).advance(batch, parts[0], outputs, run_forks)
        waiting, failed = deque(parts), list[int]()

        def work(packed: PackedFork, thread: int) -> None:
            while waiting and not batch.stop[0]:
                try:
                    part = waiting.popleft()
                except IndexError:
                    return
                failed.append(packed.advance(batch, part, outputs, run_forks))
                if show is not None and thread == 0:
                    show(len(failed) / len(parts))

        try:
            self.each(work, min(threads, len(parts)), batch.steps <= MAX_PART_STEPS, batch.stop)
        finally:
            waiting.clear()
        return min((run for run in failed if run >= 0), default=-1)

    def each(
        self, work: Callable[[PackedFork, int], Result], count: int, takes_part: bool = True,
        stop: Integers | None = None,
    ) -> list[Result]:  # fmt: skip
        """Return work(fork, k) for the first `count` forks, each on a thread.

        The caller's thread runs the first one where `takes_part`, or where it could not receive Ctrl-C. An exception in
        one of them, and Ctrl-C, set `stop` until all have ended.

        Parameters
        ----------
        work : Callable[[PackedFork, int], Result]
            Function of a fork and its index.
        count : int
            Number of forks.
        takes_part : bool, default True
            Whether the caller's thread works too.
        stop : Integers | None, optional
            (1,) flag of the batch, see `Batch.stop`.

        Returns
        -------
        list[Result]
            Results in the order of the forks.
        """
        forks = [self.fork(k) for k in range(count)]
        here = takes_part or (count == 1 and current_thread() is not main_thread())
        jobs: list[Future[Result]] = []
        if count > 1 or not here:
            executor = self.executor(count)
            jobs = [executor.submit(work, fork, k) for k, fork in enumerate(forks) if k or not here]
        results, left = list[Result](), set() if here else set(jobs)
        try:
            if here and forks:
                results.append(work(forks[0], 0))
            while left and not any(job.done() and job.exception() for job in jobs):
                _, left = wait(left, CHECK_S, FIRST_EXCEPTION)
            return results + [job.result() for job in jobs]
        finally:
            running = [job for job in jobs if not job.done()]
            if running:
                if stop is not None:
                    stop[0] = 1
                wait(running)
            if stop is not None:
                stop[0] = 0
