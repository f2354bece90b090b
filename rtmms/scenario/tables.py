"""Keys of a scenario's tables [[robot]], [[event]] and [sweep], each declared once.

A field determines the check of the key in a file, its refusals, and its row in docs/scenarios.md. The keys of other
tables are declared at their use: [[link]] is `rtmms.loop.impairment.Impairment`, [sensors.*] are the classes of
`rtmms.sensing.data_sheets`. [parameters], [[controller]] and [[bridge]] are the parameters of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from rtmms.base.parameters import Parameter

Point = tuple[float, float, float]

METHODS = ("grid", "sobol", "lhs")
MAX_RUNS = 10_000_000
"""Largest number of runs of a study."""


@dataclass(frozen=True)
class RobotTable:
    """Table [[robot]]: one of several robots on one clock.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    robot: Annotated[str, Parameter("Robot: a name, FILE.urdf, FILE.xml, FILE.fmu, or FILE.py:NAME.")]
    name: Annotated[str, Parameter(
        "Name of this robot in the run; '': its kind, with a number if there are several: manta_1, manta_2.",
    )] = ""
    position: Annotated[Point | None, Parameter(
        "Place at the start and after a reset, world frame; none: the robot's own.", "m", signed=True,
    )] = None
    heading_deg: Annotated[float | None, Parameter(
        "Heading at the start and after a reset, about z; none: the robot's own.", "deg", signed=True,
    )] = None
    preset: Annotated[str | None, Parameter("Named set of the robot's parameters, or FILE.toml.")] = None
    parameters: Annotated[dict, Parameter("Parameters of the robot, over [parameters].")] = field(default_factory=dict)
    sensors: Annotated[str, Parameter(
        "Sensors of the robot: ideal, typical, FILE.toml; otherwise those of the run.",
    )] = "ideal"
    estimate: Annotated[bool, Parameter("Whether the estimator runs; the outputs then have its estimate.")] = False
    sees: Annotated[list | dict, Parameter(
        "Robots that the robot senses: names, or a table of tables with keys of `sight`.",
    )] = field(default_factory=list)
    # fmt: on


@dataclass(frozen=True)
class EventTable:
    """Table [[event]]: changes at one time, by `set`, or by a fault.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    at_s: Annotated[float, Parameter("Simulated time of the event.", "s", ge=0)]
    set: Annotated[dict | None, Parameter(
        "New values: PARAMETER of the plant, or CONTROLLER.PARAMETER.",
    )] = None
    fault: Annotated[str | None, Parameter("Fault that begins.")] = None
    target: Annotated[str | None, Parameter("Sensor, actuator or fin that has the fault.")] = None
    value: Annotated[float | None, Parameter("Size of the fault.", signed=True)] = None
    until_s: Annotated[float | None, Parameter("Time at which the fault ends; none: never.", "s", ge=0)] = None
    # fmt: on


@dataclass(frozen=True)
class SweepTable:
    """Table [sweep]: a study of many runs.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    method: Annotated[str | None, Parameter(
        "Method of the study: combinations of all values, or samples; none: grid, and sobol where `samples` is given.",
        choices=METHODS,
    )] = None
    samples: Annotated[int, Parameter("Number of runs of the methods sobol and lhs.", ge=0, le=MAX_RUNS)] = 0
    seed: Annotated[int, Parameter("Seed of the samples.", ge=0)] = 0
    columns: Annotated[tuple[str, ...], Parameter(
        "Columns of the table; none: all numbers of the summary and of outputs with at most four."
    )] = ()
    over: Annotated[dict, Parameter("Variables, each with from:to:count, from:to, or values.")] = field(
        default_factory=dict
    )
    # fmt: on
