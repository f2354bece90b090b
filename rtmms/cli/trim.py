"""rtmms trim: the periodic gait of a robot, found by shooting on the period map, with its Floquet multipliers."""

from __future__ import annotations

import json
import math
from typing import Any

import click

import rtmms
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.words import Installed, Near, Number, as_in_run, refuse_preset, settings
from rtmms.plant.protocol import CommandedGait, Plant, describe_plant, robots

UNKNOWNS = ("amplitude", "stiffness", "none")
"""What besides the state may be sought (rtmms.analysis.trim)."""


@click.command()
@click.argument("robot", type=Installed("rtmms.plants"))
@click.option("--unknown", type=Near("quantity", UNKNOWNS), help="What is found with the state; default the robot's.")
@click.option("--dt", type=Number("s"), help="Step; default the nearest below the robot's own that divides the period.")
@as_in_run("set_")
@click.option(
    "--gait",
    "gait_",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of the gait, where the robot moves by commands.",
)
@click.option("--preset", metavar="NAME|FILE.toml", help="A named set of parameters of the robot, or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trim(
    robot: str, unknown: str | None, dt: float | None, set_: tuple[str, ...], gait_: tuple[str, ...],
    preset: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Find the periodic gait of ROBOT: the state that comes back after a period, its travel, its stability."""
    known = robots()
    if robot not in known:
        raise UnknownNameError("robot", robot, known)
    parameters = settings(set_)
    for key in ("dt", "preset"):
        if key in parameters:
            raise ModelError(f"--set {key}={parameters[key]}: use --{key}")
    refuse_preset(preset)
    given = {"dt": dt, "preset": preset, **parameters}
    plant = rtmms.plant.protocol.build_plant(robot, **given)
    commanded = describe_plant(plant).gait
    if commanded is not None:
        found = _by_commands(commanded, robot, given, settings(gait_), unknown)
    elif gait_:
        raise ModelError(f"--gait {gait_[0]}: robot '{robot}' has a gait of its own: use --set")
    else:
        found = _own_gait(plant, robot, given, unknown)
    if as_json:
        print_json(json.dumps(found))
    else:
        print_text(as_table(found))
    return 0


def _own_gait(plant: Plant, robot: str, given: dict[str, Any], unknown: str | None) -> dict[str, Any]:
    """A robot that moves by itself, as eel and moth do."""
    from rtmms.analysis.trim import as_words, fitting_dt, trimmed
    from rtmms.mechanism.plant import TreePlant

    if not isinstance(plant, TreePlant):
        raise ModelError(
            f"robot '{robot}': trim needs a robot with a gait; for one that moves by commands see rtmms.analysis.trim"
        )
    if given["dt"] is None and plant.dt != (fits := fitting_dt(plant)):
        plant = rtmms.plant.protocol.build_plant(robot, **{**given, "dt": fits})
        assert isinstance(plant, TreePlant)
    _say(f"looking for the periodic gait of '{robot}' (seconds)")
    return as_words(plant, trimmed(plant, unknown))


def _by_commands(
    plant: CommandedGait, robot: str, given: dict[str, Any], gait: dict[str, Any], unknown: str | None
) -> dict[str, Any]:
    """A robot under its usual gait of commands, all else as it is."""
    from rtmms.analysis.trim import command_coordinates_as_words as as_words
    from rtmms.analysis.trim import trim_commands

    for name, value in gait.items():
        if name not in plant.gait:
            raise UnknownNameError("gait parameter", name, plant.gait)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ModelError(f"--gait {name}={value}: expected a finite number")
    if unknown not in (None, "none"):
        raise ModelError(f"--unknown {unknown}: of '{robot}' only the state can be found; its gait is its controller's")
    period = plant.gait_period(**gait)
    steps = max(1, round(period / plant.dt))
    commands = plant.gait_commands(steps, **gait)
    fitting = rtmms.plant.protocol.build_plant(robot, **{**given, "dt": period / steps})
    return as_words(robot, trim_commands(fitting, commands, say=_say))


def _say(words: str) -> None:
    print_text(f"rtmms: {words}", err=True)


def as_table(found: dict[str, Any]) -> str:
    """The same for a person: the state itself only in JSON."""
    travel = "  ".join(f"{metres:.6g}" for metres in found["travel_m"])
    rows = [
        ("robot", found["robot"]),
        ("period", f"{found['period_s']:.6g} s"),
        ("amplitude", f"{found['amplitude_factor']:.9g} of the one given"),
        ("stiffness", f"{found['stiffness_factor']:.9g} of the one given"),
        ("closes to", f"{found['residual']:.2g} after {found['iterations']} iterations"),
        ("travel a period", f"{travel} m ({found['mean_speed_m_s']:.6g} m/s)"),
        ("multipliers", "  ".join(f"{size:.6g}" for size in found["multipliers"])),
        ("stable", f"{'yes' if found['stable'] else 'no'} (largest multiplier below 1 + {found['stable_within']:g})"),
    ]
    return "\n".join(f"{name:<16}  {text}" for name, text in rows)
