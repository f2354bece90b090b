"""rtmms trim: the periodic gait of a robot, found by shooting on the period map, with its Floquet multipliers."""

from __future__ import annotations

import json
from typing import Any

import click

import rtmms
from rtmms.cli.words import Near, Number, settings
from rtmms.errors import ModelError, UnknownNameError
from rtmms.plant import robots

UNKNOWNS = ("amplitude", "stiffness", "none")
"""What besides the state may be sought (rtmms.robots.trim)."""


@click.command()
@click.argument("robot")
@click.option("--unknown", type=Near("quantity", UNKNOWNS), help="What is found with the state; default the robot's.")
@click.option("--dt", type=Number("s"), help="Step; default the nearest to the robot's own that divides the period.")
@click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="A parameter; may be repeated.")
@click.option("--preset", metavar="NAME", help="A named set of parameters of the robot.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trim(
    robot: str, unknown: str | None, dt: float | None, set_: tuple[str, ...], preset: str | None, as_json: bool
) -> int:  # fmt: skip
    """Find the periodic gait of ROBOT: the state that comes back after a period, its travel, its stability."""
    known = robots()
    if robot not in known:
        raise UnknownNameError("robot", robot, known)
    parameters = settings(set_)
    for key in ("dt", "preset"):
        if key in parameters:
            raise ModelError(f"--set {key}={parameters[key]}: use --{key}")
    from rtmms.robots.tree_plant import TreePlant
    from rtmms.robots.trim import as_words, fitting_dt, trimmed

    plant = rtmms.load(robot, dt=dt, preset=preset, **parameters)
    if not isinstance(plant, TreePlant):
        raise ModelError(
            f"robot '{robot}': trim needs a robot with a gait of its own, as eel and moth have; this one moves by its "
            "controller"
        )
    if dt is None and plant.dt != (fits := fitting_dt(plant)):
        plant = rtmms.load(robot, dt=fits, preset=preset, **parameters)
        assert isinstance(plant, TreePlant)
    click.echo(f"rtmms: looking for the periodic gait of '{robot}' (seconds)", err=True)
    found = as_words(plant, trimmed(plant, unknown))
    click.echo(json.dumps(found) if as_json else as_table(found))
    return 0


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
        ("stable", "yes" if found["stable"] else "no"),
    ]
    return "\n".join(f"{name:<16}  {text}" for name, text in rows)
