"""Provide the protocol of simulated robots, their construction by name, and their description.

The loop, the wire, the bridges and users' scripts use these names. The modules of this package check arguments, measure
step errors, and have the base classes of compiled plants.
"""

from __future__ import annotations

import warnings
from typing import Any

from rtmms.base.errors import RenamedWarning
from rtmms.plant.description import PlantDescription, Wrapper, describe_plant, unwrapped
from rtmms.plant.loading import build_plant, builder, load, robots
from rtmms.plant.optional_protocols import (
    CompiledOutputs,
    CompiledStep,
    Coordinates,
    Fork,
    HasCompiledOutputs,
    HasCompiledStep,
    HasCoordinates,
    HasFork,
    HasLevels,
    HasRobots,
    HasStepErrorEstimator,
    HasVariants,
    SavedState,
    StepErrorEstimator,
)
from rtmms.plant.protocol import (
    Channel,
    CommandedGait,
    CoupledLimit,
    Environment,
    Plant,
    TunableGait,
    refuse_fixed,
    water_density,
)

__all__ = [
    "Channel",
    "CommandedGait",
    "CompiledOutputs",
    "CompiledStep",
    "Coordinates",
    "CoupledLimit",
    "Environment",
    "Fork",
    "HasCompiledOutputs",
    "HasCompiledStep",
    "HasCoordinates",
    "HasFork",
    "HasLevels",
    "HasRobots",
    "HasStepErrorEstimator",
    "HasVariants",
    "Plant",
    "PlantDescription",
    "SavedState",
    "StepErrorEstimator",
    "TunableGait",
    "Wrapper",
    "build_plant",
    "builder",
    "describe_plant",
    "load",
    "refuse_fixed",
    "robots",
    "unwrapped",
    "water_density",
]

RENAMED = {
    "Account": "CompiledOutputs", "Accounted": "HasCompiledOutputs", "Entered": "HasCompiledStep",
    "Entry": "CompiledStep", "Kept": "SavedState", "Twin": "StepErrorEstimator", "Twinned": "HasStepErrorEstimator",
    "Forking": "HasFork", "Coordinated": "HasCoordinates", "Surroundings": "Environment", "Composed": "HasRobots",
    "Degradable": "HasVariants", "Levelled": "HasLevels", "bare": "unwrapped",
}  # fmt: skip
"""Old name to the name that replaced it in 0.3; the next version removes the old names."""


def __getattr__(name: str) -> Any:
    """Return the object that replaced an old name, with a warning."""
    if name in RENAMED:
        warnings.warn(f"rtmms.plant.{name} is rtmms.plant.{RENAMED[name]} now; the next version removes the old name",
                      RenamedWarning, stacklevel=2)  # fmt: skip
        return globals()[RENAMED[name]]
    raise AttributeError(f"module 'rtmms.plant' has no attribute '{name}'")
