"""Runs of a pendulum whose first state may be unknown, with noise that is white or wanders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.mechanism.actuators import JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Box, at
from rtmms.studies.recordings import Recording, Series

DT = 1e-2
STEPS = 300
ANGLE_RAD = 0.01
"""Standard deviation of the noise of an angle."""
RATE_RAD_S = 0.05
"""Standard deviation of the noise of a rate."""


@dataclass(frozen=True)
class Pendulum:
    """kg, N m s"""

    mass_kg: float = 1.0
    damping_n_m_s: float = 0.05


TRUTH = {"mass_kg": 1.0, "damping_n_m_s": 0.05}


def build(**values: Any) -> TreePlant:
    p = Pendulum(**{name: float(value) for name, value in values.items()})
    rod = Box(0.04, 0.04, 0.5, p.mass_kg / (0.04 * 0.04 * 0.5), at(z=-0.25))
    joint = Joint("shoulder", "base", "arm", axis=(0, 1, 0), damping=p.damping_n_m_s)
    mechanism = Mechanism("pendulum", [Body("base"), Body("arm", solids=[rod])], [joint], base="fixed")
    return TreePlant(mechanism, DT, actuators=[JointTorque("shoulder")], parameters=p)


def swung(at_rest: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Commands, angle and rate at each step; not at rest it begins at 0.3 rad."""
    plant, chance = build(), np.random.default_rng(999)
    commands = np.interp(np.arange(STEPS) * DT, np.arange(0.0, 3.3, 0.25), chance.normal(size=14))[:, None]
    plant.place(joint_position=[0.0 if at_rest else 0.3])
    rows = [plant.observe()]
    for command in commands:
        plant.step(command)
        rows.append(plant.observe())
    return commands, *(np.array([row[name] for row in rows]) for name in ("joint_position", "joint_velocity"))  # type: ignore[return-value]


def wandering(chance: np.random.Generator, count: int, stored: float) -> np.ndarray:
    """(count, 1) of an autoregressive process of first order, with a variance of 1."""
    result = chance.normal(size=(count, 1))
    for k in range(1, count):
        result[k] = stored * result[k - 1] + np.sqrt(1.0 - stored * stored) * result[k]
    return result


def recorded(run: Any, *, at_rest: bool, saved: float, seed: int) -> Recording:
    """With unknown noise."""
    commands, angle, rate = run
    chance, unknown = np.random.default_rng(seed), np.full(1, np.nan)
    angle = angle + ANGLE_RAD * wandering(chance, len(angle), saved)
    rate = rate + RATE_RAD_S * wandering(chance, len(rate), saved)
    time = DT * np.arange(1, len(angle))
    series = (
        Series("joint_position", time, angle[1:], "rad", unknown.copy()),
        Series("joint_velocity", time, rate[1:], "rad/s", unknown.copy()),
    )
    states = {"joint_position": angle, "joint_velocity": rate}
    return Recording("run", "pendulum", build, DT, commands, series, at_rest, states)
