"""rtmms trim: a steady motion of any robot for targets, or the periodic gait of a robot and its Floquet multipliers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

import rtmms
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.option_types import Installed, KnownName, NumberType, as_in_run, refuse_preset, settings
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import CommandedGait, Plant

if TYPE_CHECKING:
    from rtmms.analysis.steady_motion import SteadyMotion

UNKNOWNS = ("amplitude", "stiffness", "none")
"""Possible unknowns besides the state (rtmms.analysis.trim)."""
KEYS = {"speed": "speed_m_s", "turn_rate": "turn_rate_deg_s", "climb": "climb_m_s", "depth": "depth_m"}
"""Keys of targets and of a motion, by their names in Python."""


@click.command()
@click.argument("robot", type=Installed("rtmms.plants"))
@click.option("--speed", type=NumberType("m/s", signed=True), metavar="M_S", help="Mean speed along the heading, m/s.")
@click.option(
    "--turn-rate",
    type=NumberType("deg/s", signed=True),
    metavar="DEG_S",
    help="Turning rate, deg/s, to the left; default 0.",
)
@click.option(
    "--climb",
    type=NumberType("m/s", signed=True),
    metavar="M_S",
    help="Mean vertical velocity, m/s, upwards; default 0.",
)
@click.option(
    "--depth", type=NumberType("m", zero=True), metavar="M", help="Depth below the surface, m, of a robot in water."
)
@click.option(
    "--unknown",
    type=KnownName("quantity", UNKNOWNS),
    help="Unknown that is found with the state; default the robot's own.",
)
@click.option(
    "--dt", type=NumberType("s"), help="Step; default the nearest below the robot's own that divides the period."
)
@as_in_run("set_")
@click.option(
    "--gait",
    "gait_",
    multiple=True,
    metavar="KEY=VALUE",
    help="Parameter of the gait, for a robot that moves by commands.",
)
@click.option("--preset", metavar="NAME|FILE.toml", help="A named set of parameters of the robot, or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trim(
    robot: str, speed: float | None, turn_rate: float | None, climb: float | None, depth: float | None,
    unknown: str | None, dt: float | None, set_: tuple[str, ...], gait_: tuple[str, ...], preset: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Find a steady motion of ROBOT: commands or a gait for a speed, a turning rate, a climb, a depth.

    Without targets: the periodic gait of ROBOT, the state that comes back after a period, its travel, its stability;
    of a robot without a gait of its own, the steady motion under its neutral commands, or its hover in air. The exit
    status is 1 where no motion reaches the targets; the nearest one is printed then.
    """
    parameters = settings(set_)
    for key in ("dt", "preset"):
        if key in parameters:
            raise ModelError(f"--set {key}={parameters[key]}: use --{key}")
    refuse_preset(preset)
    values = {"dt": dt, "preset": preset, **parameters}
    plant = rtmms.plant.loading.build_plant(robot, **values)
    targets = {"speed": speed, "turn_rate": turn_rate, "climb": climb, "depth": depth}
    commanded = describe_plant(plant).gait
    if any(value is not None for value in targets.values()) or not (commanded or getattr(plant, "trim_options", None)):
        return _steady(plant, robot, values, targets, {"--unknown": unknown, "--gait": gait_}, as_json=as_json)
    if commanded is not None:
        result = _by_commands(commanded, robot, values, settings(gait_), unknown)
    elif gait_:
        raise ModelError(f"--gait {gait_[0]}: robot '{robot}' has its own gait; change that with --set")
    else:
        result = _own_gait(plant, robot, values, unknown)
    if as_json:
        print_json(json.dumps(result))
    else:
        print_text(as_table(result))
    return 0


def _steady(
    plant: Plant, robot: str, values: dict[str, Any], targets: dict[str, float | None], others: dict[str, Any], *,
    as_json: bool,
) -> int:  # fmt: skip
    """Find and print a steady motion of any robot; return the exit status."""
    from rtmms.analysis.steady_motion import trim as steady_motion
    from rtmms.analysis.trim import fitting_dt
    from rtmms.mechanism.plant import TreePlant

    for option, value in others.items():
        if value:
            raise ModelError(
                f"{option}: expected none: with targets, or for a robot without a gait, trim finds the commands and "
                "gait parameters itself; remove the option"
            )
    beating = plant if isinstance(plant, TreePlant) and plant.law.motion[:, 1:].any() else None
    if beating is not None and values["dt"] is None and plant.dt != (fits := fitting_dt(beating)):
        plant = rtmms.plant.loading.build_plant(robot, **{**values, "dt": fits})
    if targets["turn_rate"] is not None:
        targets = {**targets, "turn_rate": math.radians(targets["turn_rate"])}
    _print_line(f"searching for a steady motion of '{robot}'; this takes seconds to minutes")
    motion = steady_motion(plant, **targets)
    numbers = motion_numbers(robot, motion)
    if as_json:
        print_json(json.dumps(numbers))
    else:
        print_text(steady_table(numbers))
    if not motion.is_reached:
        _print_line(motion.message)
    return 0 if motion.is_reached else 1


def motion_numbers(robot: str, motion: SteadyMotion) -> dict[str, Any]:
    """Return a steady motion as plain numbers, for JSON; angles in deg.

    Parameters
    ----------
    robot : str
        Name of the robot.
    motion : SteadyMotion
        The motion.

    Returns
    -------
    dict[str, Any]
        Values by name, with their units in the names.
    """

    def typed(values: Mapping[str, float]) -> dict[str, float | None]:
        turned = {name: math.degrees(value) if name == "turn_rate" else value for name, value in values.items()}
        return {KEYS[name]: value if math.isfinite(value) else None for name, value in turned.items()}

    return {
        "robot": robot, "reached": motion.is_reached, "steady": motion.is_steady, "drive": motion.drive,
        "variables": dict(motion.variables), "at_limit": list(motion.at_limit), "targets": typed(motion.targets),
        "motion": typed(motion.motion), "misses": typed(motion.misses), "residual": motion.residual,
        "period_s": motion.period_s, "message": motion.message, "snapshot": motion.snapshot.hex(),
    }  # fmt: skip


def steady_table(numbers: dict[str, Any]) -> str:
    """Return a steady motion as text for a person.

    Parameters
    ----------
    numbers : dict[str, Any]
        Result of `motion_numbers`.

    Returns
    -------
    str
        Lines.
    """
    rows = [("robot", numbers["robot"]), ("by", numbers["drive"])]
    for name, value in numbers["variables"].items():
        rows.append((name, f"{value:.6g}{' (at its limit)' if name in numbers['at_limit'] else ''}"))
    for key, value in numbers["motion"].items():
        target = numbers["targets"].get(key)
        missed = ", missed" if key in numbers["misses"] else ""
        aim = "" if target is None else f" (target {target:.6g}{missed})"
        rows.append((key, "unknown" if value is None else f"{value:.6g}{aim}"))
    rows.append(("closes to", f"{numbers['residual']:.2g} after {numbers['period_s']:.4g} s"))
    return "\n".join(f"{name:<18}  {text}" for name, text in rows)


def _own_gait(plant: Plant, robot: str, values: dict[str, Any], unknown: str | None) -> dict[str, Any]:
    """Find the periodic motion of a robot that moves by itself, as eel and moth do."""
    from rtmms.analysis.trim import as_words, fitting_dt, trimmed
    from rtmms.mechanism.plant import TreePlant

    if not isinstance(plant, TreePlant):
        raise ModelError(
            f"robot '{robot}': trim: expected a robot with a gait; for a robot that moves by commands use "
            "rtmms.analysis.trim"
        )
    if values["dt"] is None and plant.dt != (fits := fitting_dt(plant)):
        plant = rtmms.plant.loading.build_plant(robot, **{**values, "dt": fits})
        assert isinstance(plant, TreePlant)
    _print_line(f"looking for the periodic gait of '{robot}' (seconds)")
    return as_words(plant, trimmed(plant, unknown))


def _by_commands(
    plant: CommandedGait, robot: str, values: dict[str, Any], gait: dict[str, Any], unknown: str | None
) -> dict[str, Any]:
    """Find the periodic motion of a robot under its usual gait of commands, all else as it is."""
    from rtmms.analysis.trim import command_coordinates_as_words as as_words
    from rtmms.analysis.trim import trim_commands

    for name, value in gait.items():
        if name not in plant.gait:
            raise UnknownNameError("gait parameter", name, plant.gait)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ModelError(f"--gait {name}={value}: expected a finite number")
    if unknown not in (None, "none"):
        raise ModelError(
            f"--unknown {unknown}: expected none for '{robot}', as a controller drives its gait; trim finds "
            "only its state"
        )
    period = plant.gait_period(**gait)
    steps = max(1, round(period / plant.dt))
    commands = plant.gait_commands(steps, **gait)
    fitting = rtmms.plant.loading.build_plant(robot, **{**values, "dt": period / steps})
    return as_words(robot, trim_commands(fitting, commands, report=_print_line))


def _print_line(text: str) -> None:
    print_text(f"rtmms: {text}", err=True)


def as_table(result: dict[str, Any]) -> str:
    """Return a periodic motion as text for a person; the state itself is only in JSON.

    Parameters
    ----------
    result : dict[str, Any]
        The motion as printed with --json.

    Returns
    -------
    str
        Lines.
    """
    travel = "  ".join(f"{metres:.6g}" for metres in result["travel_m"])
    rows = [
        ("robot", result["robot"]),
        ("period", f"{result['period_s']:.6g} s"),
        ("amplitude", f"{result['amplitude_factor']:.9g} of the one given"),
        ("stiffness", f"{result['stiffness_factor']:.9g} of the one given"),
        ("closes to", f"{result['residual']:.2g} after {result['iterations']} iterations"),
        ("travel a period", f"{travel} m ({result['mean_speed_m_s']:.6g} m/s)"),
        ("multipliers", "  ".join(f"{size:.6g}" for size in result["multipliers"])),
        ("stable", f"{'yes' if result['stable'] else 'no'} (largest multiplier below 1 + {result['stable_within']:g})"),
    ]
    return "\n".join(f"{name:<16}  {text}" for name, text in rows)
