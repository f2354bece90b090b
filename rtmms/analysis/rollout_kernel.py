"""A run of a fork's steps without Python: commands in, samples of its state out (rtmms.analysis.rollouts)."""

from __future__ import annotations

from typing import Any

from numba import carray

from rtmms.addresses import call, numbers_at
from rtmms.jit import kernel


@kernel
def roll(
    function: int, arguments_at: int, command_at: int, commands: Any, steps: int, state: Any, start_at: int, dt: float,
    first: int, every: int, places: Any, told: Any, teller: int, teller_at: int, out: Any, kept: Any, stop: Any,
    done: Any,
) -> int:  # fmt: skip
    """Up to `steps` steps; the status of the last, 0 when all is well.

    function, arguments_at, command_at   of the fork's entry (rtmms.plant.Entry)
    commands  (steps, n) or (1, n), the same at each step
    state     (w,) the fork's;  start_at  address of the time at which a step begins, written before each
    first     steps before this run;  every   steps from sample to sample
    places    (k, 2) begin and length in `state` of what each row of out (samples, width) holds, one after the other
    told      (k, 2) address and length of outputs that `teller` writes, a function of the words at teller_at; they
              follow those of `places` in a row
    kept      (samples, w) whole states at the same times, or (0, w)
    stop      (1,) int64: other than 0 it ends the run;  done  (1,) int64: steps that were taken; written
    """
    rows, n = commands.shape
    command, start = carray(numbers_at(command_at), (n,)), carray(numbers_at(start_at), (1,))
    done[0] = 0
    for k in range(steps):
        row = k if rows > 1 else 0
        for i in range(n):
            command[i] = commands[row, i]
        start[0] = (first + k) * dt
        status = call(function, arguments_at)
        if status != 0:
            return int(status)
        done[0] = k + 1
        if (k + 1) % every == 0:
            sample, at = (k + 1) // every - 1, 0
            for p in range(len(places)):
                begin = places[p, 0]
                for i in range(begin, begin + places[p, 1]):
                    out[sample, at] = state[i]
                    at += 1
            if len(told):
                call(teller, teller_at)
                for p in range(len(told)):
                    numbers = carray(numbers_at(told[p, 0]), (told[p, 1],))
                    for i in range(told[p, 1]):
                        out[sample, at] = numbers[i]
                        at += 1
            if len(kept):
                for i in range(len(state)):
                    kept[sample, i] = state[i]
        if stop[0] != 0:
            return 0
    return 0
