"""Commands for the manta in tests: the paper's gait, softly started; and states that nothing is zero in."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rtmms.base.spatial import Array
from rtmms.robots.manta import Manta
from rtmms.robots.manta.coupling import move_supports
from rtmms.robots.manta.layout import ACCELERATION, POSITION, QUATERNION, RODS, SUPPORTS, TWIST
from rtmms.robots.manta.rods import ROD_SIZE

FRONT = 0.215
BACK = 0.185


def gait(
    amplitude: float = 40.0,
    frequency: float = 0.6,
    phase: float = 40.0,
    ramp: float = 1.0,
    right: tuple[float, float] | None = None,
) -> Callable[[float], Array]:
    """(4,) rad of time in s; degrees in; `right` (amplitude, phase) where it differs from the left."""
    sides = [(amplitude, phase), right or (amplitude, phase)]
    w = 2.0 * math.pi * frequency

    def command(t: float) -> Array:
        s = min(max(t, 0.0) / ramp, 1.0) if ramp > 0.0 else 1.0
        r = s**4 * (35.0 - 84.0 * s + 70.0 * s**2 - 20.0 * s**3)
        out = []
        for degrees, phi in sides:
            back = math.radians(degrees)
            front = math.asin(BACK * math.sin(back) / FRONT)
            out += [r * front * math.sin(w * t + math.radians(phi)), r * back * math.sin(w * t)]
        return np.array(out)

    return command


def run(
    plant: Manta, command: Callable[[float], Array], seconds: float, every: int = 4
) -> tuple[Array, dict[str, Array]]:
    """Time and trace, for Manta.summarise."""
    time, rows = [], []
    for k in range(round(seconds / plant.dt)):
        plant.step(command(k * plant.dt))
        if k % every == every - 1:
            time.append((k + 1) * plant.dt)
            rows.append(plant.observe())
    return np.array(time), {name: np.array([row[name] for row in rows]) for name in plant.trace_outputs}


def randomise(plant: Manta, seed: int, *, body: bool = True, rods: bool = True, shape: float = 0.3) -> None:
    """A state with everything moving, reproducible."""
    rng = np.random.default_rng(seed)
    s = plant._state
    if body:
        s[POSITION : POSITION + 3] = rng.normal(size=3)
        quaternion = rng.normal(size=4)
        s[QUATERNION : QUATERNION + 4] = quaternion / np.linalg.norm(quaternion)
        s[TWIST : TWIST + 6] = 0.5 * rng.normal(size=6)
        s[ACCELERATION : ACCELERATION + 6] = 0.5 * rng.normal(size=6)
    if rods:
        table = s[RODS : RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)
        table[:, 0] = rng.uniform(-0.4, 0.4, 4)
        table[:, 1] = rng.uniform(-2.0, 2.0, 4)
        table[:, 2] = rng.uniform(-20.0, 20.0, 4)
        table[:, 3:] = table[:, :1]
    assert move_supports(plant.model.finned, s, RODS, ROD_SIZE, s, SUPPORTS)
    p = plant.parameters
    set_joints(plant, shape * rng.normal(size=(2, p.links, p.chains)), rng.normal(size=(2, p.links, p.chains)))


def set_joints(plant: Manta, q: Array, qd: Array) -> None:
    """Joint angles and rates (2, m, n); the surplus lanes repeat the last chain."""
    p = plant.parameters
    lanes = plant.system.joints.reshape(2, plant._blocks, p.links, 2, -1)
    n = plant._blocks * lanes.shape[-1]
    take = np.minimum(np.arange(n), p.chains - 1)
    for field, values in ((0, q), (1, qd)):
        lanes[:, :, :, field] = values[:, :, take].reshape(2, p.links, plant._blocks, -1).swapaxes(1, 2)
