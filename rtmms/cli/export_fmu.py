"""rtmms export-fmu: a robot as a functional mock-up unit for other simulation tools."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rtmms.base.errors import ModelError
from rtmms.base.files import KINDS, refuse_output
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.option_types import Installed, as_in_run, check_choice, refuse_preset, settings
from rtmms.plant.loading import builder

NEEDS = "where it is imported, a Python with rtmms is needed (pip install 'rtmms[fmi]')"


@click.command("export-fmu")
@click.argument("robot", type=Installed("rtmms.plants"))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE.fmu")
@click.option("--fmi", type=click.Choice(("2", "3")), default="3", help="Version of FMI (default 3).")
@as_in_run("dt", "coupling", "set_", "preset", "seed")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export_fmu(
    robot: str, output: Path, fmi: str, dt: float | None, coupling: str | None, set_: tuple[str, ...],
    preset: str | None, seed: int, as_json: bool,
) -> int:  # fmt: skip
    """Write ROBOT as an FMU: FMI 3 or 2, co-simulation, fixed step."""
    builder(robot)
    if output.suffix == ".fmu":
        source = Path(robot)
        refuse_output(output, "-o", KINDS[".fmu"], (source,) if source.is_file() else ())
    check_choice(robot, "coupling", coupling)
    refuse_preset(preset)
    parameters = settings(set_)
    for key in ("dt", "preset", "coupling"):
        if key in parameters:
            raise ModelError(f"--set {key}={parameters[key]}: use --{key}")
    if coupling is not None:
        parameters["coupling"] = coupling
    from rtmms.fmi.export import export

    export(robot, output, dt=dt, preset=preset, seed=seed, parameters=parameters, fmi=int(fmi))
    size = output.stat().st_size
    if as_json:
        print_json(json.dumps({"file": str(output), "fmi": int(fmi), "bytes": size, "needs": NEEDS}))
    else:
        print_text(f"{output}: {size / 1e6:.1f} MB; {NEEDS}")
    return 0
