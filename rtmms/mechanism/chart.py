"""Provide the coordinates of a tree's state: base, joints, and the filters of its commands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import Record
from rtmms.mechanism.body_actuators import CHANNEL, LAG
from rtmms.mechanism.joint_laws import GAIN, OFFSET, follow
from rtmms.mechanism.tendons import CHANNEL as TENDON_CHANNEL
from rtmms.mechanism.tendons import FIXED, KIND, SPEED, START, TENSION
from rtmms.model.layout import BASE_FREE, PRISMATIC, REVOLUTE, T_KIND
from rtmms.plant.optional_protocols import Coordinates

RATE_RAD_S = 2.0 * math.pi
"""Typical rate, as a multiple of the typical size of its quantity, 1/s."""


def coordinates(plant: Any) -> Coordinates:
    """Return the coordinates of a tree's state.

    They are, in order: pose error e and theta in base axes, and the twist, of a free base; q and qd of the joints that
    are not imposed; value and rate of the filter of each commanded offset and gain, with its target where that moves at
    a limited rate; the lagged command of each actuator on a body with a lag; the filtered command of each tendon.
    Typical sizes are the tree's own length (its mass as a cube of water), 1 rad, and their change in a second at 1 Hz.

    The rates of earlier steps of a multistep method are no coordinates: the method restarts.

    Parameters
    ----------
    plant : Running
        The plant.

    Returns
    -------
    Coordinates
        Coordinates, with the multistep counter as history.
    """
    model, n, system = plant.model, plant.model.n, plant.system
    base, imposed = _find_first_index(system, system.motion.vector), model.imposed
    length = float(np.cbrt(model.mass / 1000.0)) if model.base_mode == BASE_FREE and model.mass > 0.0 else 1.0
    rows: list[tuple[str, str, float, int, bool]] = []  # name, unit, size, word, has_dependents
    if model.base_mode == BASE_FREE:
        rows += [(f"{axis}_error", "m", length, base, False) for axis in "xyz"]
        rows += [(f"{axis}_error", "rad", 1.0, base, False) for axis in ("roll", "pitch", "yaw")]
        rows += [(f"v{axis}", "m/s", RATE_RAD_S * length, base + 7 + n + k, False) for k, axis in enumerate("xyz")]
        rows += [(f"w{axis}", "rad/s", RATE_RAD_S, base + 10 + n + k, False) for k, axis in enumerate("xyz")]
    kinds = [int(model.topology[1 + j, T_KIND]) for j in range(n)]
    unit = [{PRISMATIC: "m", REVOLUTE: "rad"}.get(kind, "") for kind in kinds]
    size = [length if kind == PRISMATIC else 1.0 for kind in kinds]
    free = np.flatnonzero(~imposed).tolist()
    rows += [(model.joint_names[j], unit[j], size[j], base + 7 + j, False) for j in free]
    rate = [(f"{model.joint_names[j]}.rate", f"{unit[j] or 1}/s", RATE_RAD_S * size[j]) for j in range(n)]
    rows += [(*rate[j], base + 13 + n + j, False) for j in free]
    hold, visited = system.hold, set()
    servo, target = _find_first_index(system, hold.servo), _find_first_index(system, hold.target)
    for drive in plant.drives:
        for j in range(n) if drive.joint < 0 else [drive.joint]:
            if drive.kind not in (OFFSET, GAIN) or (drive.kind, j) in visited:
                continue
            visited.add((drive.kind, j))
            where = f"[{model.joint_names[j]}]" if drive.joint < 0 else ""
            name, at = f"{drive.channel.name}.filter", servo + 4 * j + 2 * (drive.kind - 1)
            dependents = bool(imposed[j])
            item = ("", 1.0) if drive.kind == GAIN else (unit[j], size[j])
            rows.append((name + where, item[0], item[1], at, dependents))
            rows.append((f"{name}_rate{where}", f"{item[0] or '1'}/s", RATE_RAD_S * item[1], at + 1, dependents))
            if drive.kind == OFFSET and np.isfinite(hold.slew[j]):
                rows.append((f"{drive.channel.name}.target{where}", item[0], item[1], target + 2 * j, False))
    motor = _find_first_index(system, system.pushes.motor)
    for i, push in enumerate(plant.attached.pushes):
        channel = plant.actuators[int(push[CHANNEL])]
        if push[LAG] > 0.0:
            span = 0.0 if channel.lower is None or channel.upper is None else (channel.upper - channel.lower) / 2.0
            rows.append((f"{channel.name}.lag", channel.unit, span or 1.0, motor + i, False))
    for i, tendon in enumerate(plant.attached.tendons):
        if tendon[KIND] == FIXED:
            continue
        channel, at = (
            plant.actuators[int(tendon[TENDON_CHANNEL])],
            _find_first_index(system, system.tendons.servo) + 2 * i,
        )
        span = 0.0 if channel.lower is None or channel.upper is None else (channel.upper - channel.lower) / 2.0
        if tendon[KIND] != TENSION:
            long = float(tendon[START]) or length
            rows.append((f"{channel.name}.filter", "m", long, at, False))
            rows.append((f"{channel.name}.filter_rate", "m/s", RATE_RAD_S * long, at + 1, False))
        elif tendon[SPEED] > 0.0:
            rows.append((f"{channel.name}.lag", channel.unit, span or 1.0, at, False))
    names, units, sizes, state_indices, has_dependents = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return Coordinates(
        names, units, np.array(sizes, dtype=float), np.array(state_indices, dtype=np.int64),
        base if model.base_mode == BASE_FREE else -1, np.array(has_dependents, dtype=bool),
        np.array([_find_first_index(system, system.motion.counts)], dtype=np.int64),
    )  # fmt: skip


def _find_first_index(system: Record, part: Any) -> int:
    """Return the first index of an array in the state's memory."""
    return int(part.ctypes.data - system.memory.ctypes.data) // 8


@kernel
def settle(system: Any) -> int:
    """Write imposed joints from their law at the step's start.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.

    Returns
    -------
    int
        0.
    """
    follow(system, system.motion.vector, system.hold.start)
    return 0
