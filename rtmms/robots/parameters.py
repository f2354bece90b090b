"""Provide parameters that several robots have in common: the method of a step, and the step itself."""

from __future__ import annotations

from typing import Annotated, Any

from rtmms.base.errors import ModelError
from rtmms.base.parameters import Parameter, read_number
from rtmms.mechanism.methods import METHODS
from rtmms.plant.validation import MAX_SUBSTEPS

Integrator = Annotated[str, Parameter("Integration method.", choices=tuple(METHODS))]
Substeps = Annotated[int, Parameter("Steps of the integration method in a step of the plant.", le=MAX_SUBSTEPS)]

StartDepth = Annotated[float, Parameter(
    "Depth at t = 0 below the surface of the water, z = 0.", "m", ge=0, le=1e4, in_model=False,
)]  # fmt: skip
START_DEPTH_M = 2.0
"""Default depth of swimming robots, m; none of their models contains the surface."""


def step_of(robot: str, dt: Any, default: float) -> float:
    """Return the plant's step.

    Parameters
    ----------
    robot : str
        Name of the robot, for the message.
    dt : float or None
        Step, s; None for the default.
    default : float
        Default step, s.

    Returns
    -------
    float
        s.

    Raises
    ------
    ModelError
        The step is not a finite number > 0.
    """
    step: float = read_number(f"{robot}: dt", default if dt is None else dt, False)
    if step <= 0.0:
        raise ModelError(f"{robot}: dt must be > 0 s, got {dt}")
    return step
