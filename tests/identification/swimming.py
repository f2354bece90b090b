"""Runs of a manta with few chains and long steps, made in the test itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import rtmms
from rtmms.sensing import Sensed, read_profile
from rtmms.studies.recordings import Recording, of_plant

BASE: dict[str, Any] = {"chains": 4, "dt": 0.01}


def build(**parameters: Any) -> Any:
    return rtmms.load("manta", **{**BASE, **parameters})


def gait(plant: Any, seconds: float) -> np.ndarray:
    """The usual one, the fins not alike, so that the manta turns."""
    steps = round(seconds / plant.dt)
    period = plant.gait_commands(round(plant.gait_period() / plant.dt))
    commands = np.tile(period, (steps // len(period) + 1, 1))[:steps]
    return commands * np.array([1.0, 1.0, 0.7, 0.7])


def recorded(
    truth: dict[str, Any], *, seconds: float = 6.0, sensors: str = "", seed: int = 0, **more: Any
) -> Recording:
    """A run of a manta with these parameters; the model to fit has BASE's."""
    plant = build(**truth)
    observed = Sensed(plant, read_profile(sensors, plant)) if sensors else plant
    return of_plant(observed, gait(plant, seconds), build, robot="manta", seed=seed, **more)


def noisy(recording: Recording, share: float, seed: int) -> Recording:
    """White noise of this share of each channel's spread, unknown to the fit."""
    chance = np.random.default_rng(seed)
    series = []
    for item in recording.series:
        size = share * float(np.sqrt(np.mean(np.var(item.values, axis=0))))
        series.append(replace(item, values=item.values + size * chance.standard_normal(item.values.shape)))
    return replace(recording, series=tuple(series))
