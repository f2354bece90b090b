"""Plants: what a plant is, how one is built and described, checks of its arguments, the error of its steps."""

from __future__ import annotations

import warnings
from typing import Any

from rtmms.base.errors import RenamedWarning
from rtmms.plant.protocol import (
    Channel,
    CommandedGait,
    CompiledOutputs,
    CompiledStep,
    Composed,
    Coordinates,
    CoupledLimit,
    Degradable,
    Fork,
    HasCommandedGaits,
    HasCompiledOutputs,
    HasCompiledStep,
    HasCoordinates,
    HasFork,
    HasPower,
    HasPrescribedJoints,
    HasStepErrorEstimator,
    Levelled,
    Plant,
    PlantDescription,
    SavedState,
    StepErrorEstimator,
    Surroundings,
    TunableGait,
    Wrapper,
    bare,
    build_plant,
    builder,
    describe_plant,
    load,
    refuse_fixed,
    robots,
    water_density,
)

__all__ = [
    "Channel",
    "CommandedGait",
    "CompiledOutputs",
    "CompiledStep",
    "Composed",
    "Coordinates",
    "CoupledLimit",
    "Degradable",
    "Fork",
    "HasCommandedGaits",
    "HasCompiledOutputs",
    "HasCompiledStep",
    "HasCoordinates",
    "HasFork",
    "HasPower",
    "HasPrescribedJoints",
    "HasStepErrorEstimator",
    "Levelled",
    "Plant",
    "PlantDescription",
    "SavedState",
    "StepErrorEstimator",
    "Surroundings",
    "TunableGait",
    "Wrapper",
    "bare",
    "build_plant",
    "builder",
    "describe_plant",
    "load",
    "refuse_fixed",
    "robots",
    "water_density",
]

RENAMED = {
    "Account": "CompiledOutputs", "Accounted": "HasCompiledOutputs", "Entered": "HasCompiledStep",
    "Entry": "CompiledStep", "Kept": "SavedState", "Twin": "StepErrorEstimator", "Twinned": "HasStepErrorEstimator",
    "Forking": "HasFork", "Coordinated": "HasCoordinates",
}  # fmt: skip
"""Old name, and the name that replaced it in 0.3; the old ones go with the next version."""


def __getattr__(name: str) -> Any:
    if name in RENAMED:
        warnings.warn(f"rtmms.plant.{name} is rtmms.plant.{RENAMED[name]} now; the old name goes with the next version",
                      RenamedWarning, stacklevel=2)  # fmt: skip
        return globals()[RENAMED[name]]
    raise AttributeError(f"module 'rtmms.plant' has no attribute '{name}'")
