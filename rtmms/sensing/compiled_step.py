"""Entry points by which Python calls a step of all sensors: each has the address of one record.

A call with an address makes no objects. Where compiled code can read the plant's outputs
(rtmms.plant.HasCompiledOutputs, or a fork), a step of plant and sensors is one such call. Elsewhere Python
writes the plant's motion, and the sensors alone are one call.
"""

from __future__ import annotations

from typing import Any

from numba import carray

from rtmms.base.jit import kernel
from rtmms.base.memory import INTEGER, Layout, model, number, part, scratch, state, step_input
from rtmms.base.pointers import numbers_at
from rtmms.plant.stage import INNER, step_inner, write_inner_outputs
from rtmms.sensing.instruments import look, remember, samples_due, start
from rtmms.sensing.layout import B_WIDTH, M_GRAVITY, M_TIME, T_COUNT, T_WIDTH

FRESH, SEED, STEPS = range(3)
"""Indices of the counts: whether the plant's outputs belong to its state; the seed of the errors; steps taken."""
NEVER, EACH_STEP, AT_SAMPLES = range(3)
"""Times at which a function must write the plant's outputs before they are gathered."""
(FROM, COUNT, TO, SAMPLED, ROW) = range(5)
"""Columns of a part of the motion: address of the plant's numbers (0: Python writes them), count, place in the motion,
and 1 where only samples need them.
"""
SENSORS = Layout(
    "Sensors",
    state("counts", 3, dtype=INTEGER), state("motion", "motion"), state("readings", "readings"),
    model("timing", "sensors", T_WIDTH), model("block", "blocks", B_WIDTH),
    step_input("gathered", "gathered", ROW, dtype=INTEGER), step_input("gravity", 3, unit="m/s2"),
    number("dt", unit="s"), number("written", INTEGER), step_input("reads", "sensors", dtype=INTEGER),
    scratch("scratch", "widest"),
    part("inner", INNER),
)  # fmt: skip
"""Record of all sensors; rtmms.sensing.layout has the columns.

- readings: measurements and memory of the sensors
- gathered: parts of the motion
- gravity: of the plant, world
- written: NEVER, EACH_STEP or AT_SAMPLES
- reads: 1 for each sensor that measures outputs other than the body's motion
"""
_sensors_at = SENSORS.type().at()


@kernel
def enter_start(address: int) -> int:
    """Switch the sensors on.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        0.
    """
    sensors = _sensors_at(address)
    start(sensors.timing, sensors.block, sensors.counts[SEED], sensors.readings)
    return 0


@kernel
def write_account(sensors: Any) -> None:
    """Write the plant's outputs, unless they belong to its state already.

    Parameters
    ----------
    sensors : Any
        The record.
    """
    if not sensors.counts[FRESH]:
        write_inner_outputs(sensors.inner)
        sensors.counts[FRESH] = 1


@kernel
def enter_account(address: int) -> int:
    """Call `write_account` with the record at an address.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        0.
    """
    write_account(_sensors_at(address))
    return 0


@kernel
def samples_outputs(sensors: Any, time: float) -> bool:
    """Return whether a sample is due that needs outputs other than the body's motion.

    Parameters
    ----------
    sensors : Any
        The record.
    time : float
        Simulated time, s.

    Returns
    -------
    bool
        True where such a sample is due.
    """
    timing, readings, reads = sensors.timing, sensors.readings, sensors.reads
    due = False
    for s in range(len(reads)):
        if reads[s]:
            due = due or samples_due(timing[s], time) > readings[int(timing[s, T_COUNT])]
    return due


@kernel
def look_at_all(sensors: Any) -> None:
    """Sample all sensors at the plant's present state.

    The function that writes the plant's outputs can cost as much as the plant's step. Where only samples need it, it
    runs only for steps with a sample. In the other steps the motion keeps the last sampled numbers, even if newer ones
    exist. So the state is the same with a function and without one.

    Parameters
    ----------
    sensors : Any
        The record.
    """
    motion, counts = sensors.motion, sensors.counts
    motion[M_TIME] = float(counts[STEPS]) * sensors.dt
    for k in range(3):
        motion[M_GRAVITY + k] = sensors.gravity[k]
    due = samples_outputs(sensors, motion[M_TIME])
    if sensors.written == EACH_STEP or (due and sensors.written == AT_SAMPLES):
        write_account(sensors)
    rows = sensors.gathered
    for r in range(len(rows)):
        if rows[r, FROM] and (due or not rows[r, SAMPLED]):
            values, to = carray(numbers_at(rows[r, FROM]), (rows[r, COUNT],)), rows[r, TO]
            for k in range(len(values)):
                motion[to + k] = values[k]
    look(sensors.timing, sensors.block, counts[SEED], motion, sensors.scratch, sensors.readings)


@kernel
def enter_look(address: int) -> int:
    """Call `look_at_all` with the record at an address.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        0.
    """
    look_at_all(_sensors_at(address))
    return 0


@kernel
def enter_step(address: int) -> int:
    """Step the plant with the command in place, then sample all sensors.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        The plant's status, 0 for success.
    """
    sensors = _sensors_at(address)
    counts = sensors.counts
    counts[FRESH] = 0
    status = step_inner(sensors.inner, 0)
    if status:
        return int(status)
    counts[STEPS] += 1
    remember(sensors.motion)
    look_at_all(sensors)
    return 0
