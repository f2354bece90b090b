"""rtmms plot: the figure of a run, drawn from its log."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", metavar="LOG", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png",
              help="Where to draw; the ending says in which format. Default: beside the log, as LOG.png.")  # fmt: skip
def plot(file: Path, output: Path | None) -> int:
    """Draw the run that LOG (from run --log) holds."""
    from rtmms.cli.log import tell_damage
    from rtmms.cli.words import refuse_figure
    from rtmms.errors import ModelError
    from rtmms.plant import Summarised
    from rtmms.record.figure import gather
    from rtmms.record.log import open_log
    from rtmms.record.origin import rebuilt
    from rtmms.report.figures import drawing, small_outputs

    beside = output is None
    output = file.with_suffix(".png") if output is None else output
    refuse_figure("-o", output)
    log = open_log(file)
    origin = log.origin
    plant = rebuilt(origin)
    draw = drawing(origin["robot"], plant)
    if draw is None:
        raise ModelError(f"{file}: robot '{origin['robot']}' has no figure to draw")
    keeps = isinstance(plant, Summarised) and bool(plant.trace_outputs)
    gathered = gather(log, plant, None if keeps else small_outputs(plant))
    tell_damage(log)
    draw(output, gathered.trace, gathered.recent, gathered.statistics)
    if beside:
        click.echo(f"{output}", err=True)
    return 0
