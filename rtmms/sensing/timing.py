"""When sensors sample and when what they sampled is told: rate and phase, latency, jitter, loss. One kernel a step."""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.sensing.chance import uniform
from rtmms.sensing.errors import DRAWS, disturb, switch_on
from rtmms.sensing.instruments import perfect
from rtmms.sensing.layout import (
    B_AT,
    B_SIZE,
    BIAS,
    M_TIME,
    SILENT,
    SPIKES,
    STUCK,
    T_BLOCK,
    T_BLOCKS,
    T_COUNT,
    T_DROPOUT,
    T_FAULT,
    T_JITTER,
    T_LATENCY,
    T_PHASE,
    T_QUEUE,
    T_RATE,
    T_ROOM,
    T_TOLD,
    T_WIDTH_OF,
    TOLD_TIME,
    TOLD_VALID,
    TOLD_VALUES,
)

ROUNDING = 1e-9
"""A sample is due at an instant that a step reaches but for this share of the sample's period."""
SPIKED = 0.05
"""Share of the samples of a sensor with spikes that have one."""
_LOSS, _JITTER, _SPIKE = 1 << 20, 1 << 21, 1 << 22


@kernel
def start(timing: Array, block: Array, seed: int, state: Array) -> None:
    """Power on: nothing sampled, nothing told."""
    state[:] = 0.0
    for s in range(timing.shape[0]):
        state[int(timing[s, T_TOLD]) + TOLD_TIME] = -1.0
    for b in range(block.shape[0]):
        switch_on(block[b], b, seed, state)


@kernel
def look(timing: Array, block: Array, seed: int, motion: Array, scratch: Array, state: Array) -> None:
    """At the instant of `motion`: what is due is sampled, and what has arrived is told.

    state[count]     samples so far; then the head and the length of the queue, and when its last sample arrives
    state[queue ...] a ring of samples: arrives, sampled, valid, values
    """
    time = motion[M_TIME]
    for s in range(timing.shape[0]):
        width, queue, room = int(timing[s, T_WIDTH_OF]), int(timing[s, T_QUEUE]), int(timing[s, T_ROOM])
        count = int(timing[s, T_COUNT])
        due = np.floor((time - timing[s, T_PHASE]) * timing[s, T_RATE] + ROUNDING) + 1.0
        if due > state[count]:
            state[count] = due
            sample(timing[s], s, block, seed, motion, scratch, state)
        told = int(timing[s, T_TOLD])
        while state[count + 2] > 0.0:
            head = queue + int(state[count + 1]) * (3 + width)
            if state[head] > time + ROUNDING / timing[s, T_RATE]:
                break
            state[told + TOLD_TIME], valid = state[head + 1], state[head + 2]
            state[told + TOLD_VALID] = valid
            if valid > 0.0:  # what cannot be measured keeps its last value
                for k in range(width):
                    state[told + TOLD_VALUES + k] = state[head + 3 + k]
            state[count + 1] = (state[count + 1] + 1.0) % room
            state[count + 2] -= 1.0


@kernel
def sample(row: Array, s: int, block: Array, seed: int, motion: Array, scratch: Array, state: Array) -> None:
    """One sample of a sensor into its queue; lost by chance, or where the queue is full."""
    width, count, room = int(row[T_WIDTH_OF]), int(row[T_COUNT]), int(row[T_ROOM])
    number = int(state[count])
    first, valid = int(row[T_BLOCK]), True
    for b in range(first, first + int(row[T_BLOCKS])):
        at, size = int(block[b, B_AT]), int(block[b, B_SIZE])
        value = scratch[at : at + size]
        valid = perfect(motion, block[b], value) and valid
        disturb(block[b], b, seed, number, state, value)
    lost = row[T_DROPOUT] > 0.0 and uniform(seed, _LOSS + s * DRAWS, number) < row[T_DROPOUT]
    fault, by = int(state[int(row[T_FAULT])]), state[int(row[T_FAULT]) + 1]
    if lost or fault == SILENT or state[count + 2] >= room:
        return
    told = int(row[T_TOLD]) + TOLD_VALUES
    chance = uniform(seed, _SPIKE + s * DRAWS, number) if fault == SPIKES else 1.0
    for k in range(width):
        if fault == STUCK:
            scratch[k] = state[told + k]
        elif fault == BIAS:
            scratch[k] += by
        elif chance < SPIKED:
            scratch[k] += by if chance < 0.5 * SPIKED else -by
    arrives = motion[M_TIME] + row[T_LATENCY]
    if row[T_JITTER] > 0.0:
        arrives += row[T_JITTER] * uniform(seed, _JITTER + s * DRAWS, number)
    arrives = max(arrives, state[count + 3])  # a bus keeps the order
    state[count + 3] = arrives
    tail = (int(state[count + 1]) + int(state[count + 2])) % room
    head = int(row[T_QUEUE]) + tail * (3 + width)
    state[head], state[head + 1], state[head + 2] = arrives, motion[M_TIME], 1.0 if valid else 0.0
    for k in range(width):
        state[head + 3 + k] = scratch[k]
    state[count + 2] += 1.0
