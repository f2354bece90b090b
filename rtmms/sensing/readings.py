"""What instruments without errors would read along a motion that is known at each step (rtmms.identification)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.plant import Plant, describe_plant
from rtmms.sensing.data_sheets import Sensor
from rtmms.sensing.instruments import perfect, remember
from rtmms.sensing.layout import (
    B_DRIFT,
    B_KIND,
    B_MATRIX,
    B_MORE,
    B_OFFSET,
    B_SIZE,
    B_STEP,
    B_TURN_ON,
    B_WHITE,
    DEPTH,
    M_BEFORE,
    M_EARLIER,
    M_GRAVITY,
    M_POSITION,
    M_TIME,
    M_VECTORS,
    RANGES,
    T_BLOCK,
    VECTOR,
)
from rtmms.sensing.suite import assemble

MOVING = ("position", "quaternion", "velocity", "angular_velocity")
"""Outputs of a plant that a motion is made of, in the order of a row of it: 13 numbers."""


class Instrument(NamedTuple):
    """One quantity that a sensor tells.

    channel  its name, 'imu.gyro';  clock, valid  the channels that tell when it was sampled, and whether ('': always)
    unit     SI;  size  numbers
    block    (B_WIDTH,) as the suite has it;  of  the plant's output that is read as it is, '' for the body's motion
    noise    standard deviation of a sample, with the quantum and what wanders
    offset, scale, skew   standard deviations of what lasts: (size,), and of each axis (3,) where size is 3, else (1,)
    """

    channel: str
    clock: str
    valid: str
    unit: str
    size: int
    block: Array
    of: str
    noise: float
    offset: Array
    scale: Array
    skew: Array


def instruments(sensors: Mapping[str, Sensor], plant: Plant) -> tuple[Instrument, ...]:
    """What the sensors tell of a plant, but for ranges, which depend on a ground. ModelError, see `assemble`."""
    suite = assemble(sensors, plant)
    whose = {place.start: name for name, place in suite.vectors.items()}
    found = []
    for row, name in zip(suite.timing, sensors, strict=True):
        own = [channel for channel in suite.channels if channel.name.startswith(f"{name}.")]
        own = [channel for channel in own if "." not in channel.name.removeprefix(f"{name}.")]
        names = {channel.name for channel in own}
        valid = f"{name}.valid" if f"{name}.valid" in names else ""
        told = [channel for channel in own if channel.name not in (valid, f"{name}.time")]
        for k, channel in enumerate(told):
            block = suite.block[int(row[T_BLOCK]) + k]
            if int(block[B_KIND]) == RANGES:
                continue
            size = int(block[B_SIZE])
            of = whose[int(block[B_MORE])] if int(block[B_KIND]) == VECTOR else ""
            matrix = block[B_MATRIX : B_MATRIX + 9].reshape(3, 3)
            offset = np.hypot(block[B_TURN_ON], block[B_DRIFT]) * np.ones(size)
            if size == 3:
                offset = np.hypot(offset, block[B_OFFSET : B_OFFSET + 3])
                scale = np.abs(np.diag(matrix) - 1.0)
                skew = np.abs([matrix[1, 2], matrix[2, 0], matrix[0, 1]])
            else:
                scale, skew = np.abs(matrix[:1, 0] - 1.0), np.zeros(0)
            noise = float(np.sqrt(block[B_WHITE] ** 2 + block[B_STEP] ** 2 / 12.0 + block[B_DRIFT] ** 2))
            clock = f"{name}.time"
            found.append(
                Instrument(channel.name, clock, valid, channel.unit, size, block, of, noise, offset, scale, skew)
            )
    return tuple(found)


def read_along(one: Instrument, motion: Array, outputs: Mapping[str, Array], plant: Plant, dt: float) -> Array:
    """(steps, size), without errors, at the end of each step.

    motion   (steps, 13): position, quaternion, velocity, angular velocity
    outputs  the plant's, (steps, ...), for instruments that read one as it is
    """
    if one.of:
        found: Array = one.block[B_MORE + 1] * outputs[one.of].reshape(len(motion), one.size)
        return found
    out = np.empty((len(motion), one.size))
    work = np.zeros(M_VECTORS)
    work[M_GRAVITY:M_VECTORS] = describe_plant(plant).surroundings().gravity
    block = one.block
    if int(block[B_KIND]) == DEPTH:
        block = block.copy()
        block[B_MORE] = describe_plant(plant).surroundings().surface
    along(block, motion, dt, work, out)
    return out


@kernel
def along(block: Array, motion: Array, dt: float, work: Array, out: Array) -> None:
    """Row by row; an acceleration takes the two rows before, as far as there are some."""
    work[M_BEFORE] = work[M_EARLIER] = -1.0
    for k in range(motion.shape[0]):
        work[M_TIME] = k * dt
        for i in range(13):
            work[M_POSITION + i] = motion[k, i]
        perfect(work, block, out[k])
        remember(work)
