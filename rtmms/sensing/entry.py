"""How Python enters a step of all sensors: by the address of one record, so that a call makes no objects.

Where the plant's own step and its outputs can be had from compiled code (rtmms.plant.protocol.Accounted), a step of
plant and sensors is one such call; elsewhere Python puts the plant's motion into place, and the sensors alone are one.
"""

from __future__ import annotations

from typing import Any

from numba import carray

from rtmms.base.jit import kernel
from rtmms.base.memory import ARGUMENTS, INTEGER, Layout, call, given, model, number, numbers_at, scratch, state
from rtmms.sensing.instruments import look, remember, start
from rtmms.sensing.layout import B_WIDTH, M_TIME, T_WIDTH

FRESH, SEED, STEPS = range(3)
"""Whether the plant's outputs are those of its state; the seed of errors; steps taken."""
(FROM, COUNT, TO, ROW) = range(4)
"""A part of the motion: address of the plant's numbers, how many, where in the motion."""
SENSORS = Layout(
    "Sensors",
    state("counts", 3, dtype=INTEGER), state("motion", "motion"), state("told", "told"),
    model("timing", "sensors", T_WIDTH), model("block", "blocks", B_WIDTH),
    model("gathered", "gathered", ROW, dtype=INTEGER), number("dt", unit="s"),
    number("step", INTEGER), number("account", INTEGER), given("arguments", 2, ARGUMENTS, dtype=INTEGER),
    scratch("scratch", "widest"),
)  # fmt: skip
"""Columns: rtmms.sensing.layout. told: what the sensors tell and remember; gathered: parts of the motion; step,
account: addresses of the plant's step and of what writes its outputs (0: Python has put the motion into place), with
their words in `arguments`."""
_sensors_at = SENSORS.type().at()


@kernel
def enter_start(address: int) -> int:
    """Power on."""
    sensors = _sensors_at(address)
    start(sensors.timing, sensors.block, sensors.counts[SEED], sensors.told)
    return 0


@kernel
def write_account(sensors: Any) -> None:
    """The plant's outputs, where they are not those of its state already."""
    if not sensors.counts[FRESH]:
        call(sensors.account, sensors.arguments[1].ctypes.data)
        sensors.counts[FRESH] = 1


@kernel
def enter_account(address: int) -> int:
    """`write_account` of the record at an address."""
    write_account(_sensors_at(address))
    return 0


@kernel
def look_at_all(sensors: Any) -> None:
    """All sensors at the plant's present state."""
    motion, counts = sensors.motion, sensors.counts
    motion[M_TIME] = float(counts[STEPS]) * sensors.dt
    if sensors.account:
        write_account(sensors)
        rows = sensors.gathered
        for r in range(len(rows)):
            part, to = carray(numbers_at(rows[r, FROM]), (rows[r, COUNT],)), rows[r, TO]
            for k in range(len(part)):
                motion[to + k] = part[k]
    look(sensors.timing, sensors.block, counts[SEED], motion, sensors.scratch, sensors.told)


@kernel
def enter_look(address: int) -> int:
    """`look_at_all` of the record at an address."""
    look_at_all(_sensors_at(address))
    return 0


@kernel
def enter_step(address: int) -> int:
    """The plant's step, its command in place, and all sensors after it; the plant's status, 0 when all is well."""
    sensors = _sensors_at(address)
    counts = sensors.counts
    counts[FRESH] = 0
    status = call(sensors.step, sensors.arguments[0].ctypes.data)
    if status:
        return int(status)
    counts[STEPS] += 1
    remember(sensors.motion)
    look_at_all(sensors)
    return 0
