"""Snapshots of every robot: damaged ones are refused, and nothing that diverged stays behind a restore or a reset."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import DivergedError, ModelError
from rtmms.sensing.faults import Faulty
from rtmms.sensing.sensed import Estimated, Sensed
from rtmms.sensing.suite import read_profile

SLOW = {"moth", "modal_moth", "fish", "continuous_eel", "manta"}
ROBOTS = [
    "eel", "quadrotor", "torpedo", "bluerov2", "cat", "satellite", "purcell", "fluid_swimmer", "snake", "unicycle",
    "snakeboard",
    "roller_racer", "trikke", *sorted(SLOW),
]  # fmt: skip


def state_of(plant: Any) -> Any:
    """The array of all that changes."""
    return plant._state if hasattr(plant, "_state") else plant.system.memory


def ran(plant: Any, steps: int) -> bytes:
    for k in range(steps):
        plant.step(plant_command(plant, k))
    return bytes(plant.snapshot())


def plant_command(plant: Any, k: int) -> Any:
    neutral = np.array([channel.neutral for channel in plant.actuators])
    return neutral + 0.01 * np.sin(0.3 * k + np.arange(len(neutral)))


def poison(plant: Any, rng: np.random.Generator) -> None:
    """Steps from a state that no motion leads to; what comes of it does not matter."""
    memory = state_of(plant)
    places = rng.integers(memory.size, size=rng.integers(1, 6))
    memory[places] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e200, 1e20], size=len(places))
    with np.errstate(all="ignore"):
        for k in range(2):
            with suppress(DivergedError, ModelError, ValueError):
                plant.step(plant_command(plant, k))
                plant.observe()


@pytest.mark.parametrize(
    "name", [pytest.param(robot, marks=pytest.mark.full if robot == "modal_moth" else ()) for robot in ROBOTS]
)
def test_what_diverged_is_healed(name: str) -> None:
    """50 ways (10 of robots whose steps are long), then a good snapshot and a reset go on with the same bits."""
    plant: Any = rtmms.load(name)
    plant.reset(0)
    fresh, stored = ran(plant, 4), None
    plant.reset(0)
    ran(plant, 7)
    stored = plant.snapshot()
    after = ran(plant, 4)
    rng = np.random.default_rng(sum(map(ord, name)))
    for _ in range(10 if name in SLOW else 50):
        poison(plant, rng)
        plant.restore(stored)
        assert ran(plant, 4) == after
        poison(plant, rng)
        plant.reset(0)
        assert ran(plant, 4) == fresh


@pytest.mark.parametrize("name", ["eel", "snake", "manta", "purcell", "continuous_eel"])
def test_damaged_snapshots_are_refused(name: str) -> None:
    """Every kind of damage, and then nothing has changed."""
    plant: Any = rtmms.load(name)
    ran(plant, 3)
    blob, rng = plant.snapshot(), np.random.default_rng(5)
    for _ in range(200):
        bad = bytearray(blob)
        bad[rng.integers(len(bad))] ^= 1 << int(rng.integers(8))
        with pytest.raises(ModelError, match="restore"):
            plant.restore(bytes(bad))
    for bad in (b"", blob[:-1], blob + b"\0", blob[8:], None, "words", 3):
        with pytest.raises(ModelError, match="restore"):
            plant.restore(bad)
    assert plant.snapshot() == blob


@pytest.mark.parametrize("name", ["eel", "snake", "manta", "purcell", "continuous_eel"])
def test_a_state_that_is_not_finite_is_refused(name: str) -> None:
    plant: Any = rtmms.load(name)
    ran(plant, 3)
    good, memory = plant.snapshot(), state_of(plant)
    for value in (np.nan, np.inf):
        memory[3] = value
        with pytest.raises(ModelError, match="not finite"):
            plant.restore(plant.snapshot())
        plant.restore(good)


def test_plants_around_plants_refuse_and_heal() -> None:
    """Sensors, an estimate and faults around a torpedo that diverges."""
    plant: Any = Faulty(sensed("typical", Estimated))
    plant.reset(3)
    ran(plant, 5)
    stored = plant.snapshot()
    after, inner = ran(plant, 5), plant.sound.truth
    rng = np.random.default_rng(2)
    for _ in range(20):
        poison_inner(inner, plant, rng)
        plant.restore(stored)
        assert ran(plant, 5) == after
    bad = bytearray(stored)
    bad[len(bad) // 2] ^= 4
    with pytest.raises(ModelError, match="restore"):
        plant.restore(bytes(bad))
    with pytest.raises(ModelError, match="restore"):
        sensed("ideal", Sensed).restore(stored)


def poison_inner(inner: Any, plant: Any, rng: np.random.Generator) -> None:
    memory = state_of(inner)
    memory[rng.integers(memory.size)] = rng.choice([np.nan, np.inf, 1e200])
    with np.errstate(all="ignore"), suppress(DivergedError, ModelError, ValueError, np.linalg.LinAlgError):
        plant.step(plant_command(plant, 0))


def sensed(profile: str, kind: Any) -> Any:
    torpedo = rtmms.load("torpedo")
    return kind(torpedo, read_profile(profile, torpedo))
