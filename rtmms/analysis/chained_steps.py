"""Map of many steps from the A and B of each: all columns at once, by the blocks that are not zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from rtmms.analysis.block_matrices import COLUMNS, push
from rtmms.analysis.chart import Structure
from rtmms.base.memory import aligned
from rtmms.base.spatial import Array

TOGETHER = 32
"""Steps whose matrices are in memory at once."""
PANEL = 104
"""Largest number of columns multiplied at once: few enough for the cache, many enough that the gathering of matrices
into tiles (rtmms.analysis.block_matrices) costs little.
"""


def chain_steps(
    structures: Sequence[Structure], pool: ThreadPoolExecutor | None, states: Callable[[int, int], Array],
    commands: Array, pose: int, first: int, dt: float, show: Callable[[float], None],
) -> tuple[Array, Array] | None:  # fmt: skip
    """Return the map of all steps.

    Parameters
    ----------
    structures : Sequence[Structure]
        Evaluators of A and B, one a thread.
    pool : ThreadPoolExecutor | None
        As many threads, None for one.
    states : Callable[[int, int], Array]
        Function of a and b that returns the states (b - a + 1, w) of the steps from a to b: before each, and after the
        last.
    commands : Array
        (steps, n) commands.
    pose : int
        Index of the pose in a state.
    first : int
        Steps before the first one.
    dt : float
        Time step, s.
    show : Callable[[float], None]
        Receives the share that is done.

    Returns
    -------
    tuple[Array, Array] | None
        (k, k) and (k, n); None where a step fails.
    """
    item = structures[0]
    k, n, steps = item.a.size, commands.shape[1], len(commands)
    columns = k + n
    bound = 0 if item.a.spread is None else item.a.spread.shape[1]
    workers = len(structures)
    share = -(-columns // (workers * -(-columns // (workers * PANEL))))  # as many panels for each worker
    wide = -(-share // COLUMNS) * COLUMNS
    panels = [aligned(2, k + 1 + bound, wide) for _ in range(0, columns, wide)]
    for at, panel in zip(range(0, columns, wide), panels, strict=True):
        for c in range(min(wide, k - at)):
            panel[0, at + c, c] = 1.0
    turned = [0] * len(panels)
    together = min(TOGETHER, steps)
    h = len(item.a.head)
    parts: tuple[Any, ...] = (
        np.zeros((together, h, h)), np.zeros((together, *item.a.right.shape)), np.zeros((together, h, k - h)),
        np.zeros((together, *item.a.blocks.shape)), np.zeros((together, bound, k - h)), np.zeros((together, bound, k)),
    )  # fmt: skip
    by_inputs = np.zeros((together, k, n))

    def take(structure: Structure, state_rows: Array, begin: int, which: range) -> bool:
        for s in which:
            time = (first + begin + s) * dt
            if not structure.take(state_rows[s], commands[begin + s], state_rows[s + 1, pose : pose + 7], time):
                return False
            parts[0][s], parts[1][s], parts[2][s] = structure.a.head, structure.a.right, structure.a.below.T
            parts[3][s], by_inputs[s] = structure.a.blocks, structure.b
            if structure.a.spread is not None:
                parts[4][s], parts[5][s] = structure.a.spread.T, structure.a.projection
        return True

    def multiply(which: range, count: int) -> None:
        for p in which:
            panel = panels[p]
            turned[p] ^= push(
                *(part[:count] for part in parts), item.a.members, by_inputs[:count], k - p * wide,
                panel[turned[p]], panel[1 - turned[p]],
            )  # fmt: skip

    for begin in range(0, steps, together):
        count = min(together, steps - begin)
        state_rows = states(begin, begin + count)
        if pool is None:
            if not take(item, state_rows, begin, range(count)):
                return None
            multiply(range(len(panels)), count)
        else:
            jobs = [
                pool.submit(take, structure, state_rows, begin, range(i, count, workers))
                for i, structure in enumerate(structures)
            ]
            well = [job.result() for job in jobs]
            if not all(well):
                return None
            for job in [pool.submit(multiply, range(i, len(panels), workers), count) for i in range(workers)]:
                job.result()
        show((begin + count) / steps)
    whole = np.concatenate([panel[which][:k] for panel, which in zip(panels, turned, strict=True)], axis=1)
    return whole[:, :k], whole[:, k:columns].copy()
