"""rtmms plot: the figure of a run, drawn from its log."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtmms.errors import ModelError
from rtmms.terminal import print_text

if TYPE_CHECKING:
    from rtmms.plant import Plant
    from rtmms.record.log import Log


@click.command()
@click.argument("file", metavar="LOG", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png",
              help="Where to draw; the ending says in which format. Default: beside the log, as LOG.png.")  # fmt: skip
def plot(file: Path, output: Path | None) -> int:
    """Draw the run that LOG (from run --log) holds."""
    from rtmms.cli.log import tell_damage
    from rtmms.cli.words import refuse_figure
    from rtmms.plant import describe_plant
    from rtmms.record.figure import gather, planned_steps
    from rtmms.record.log import drawing as drawn
    from rtmms.record.log import open_log
    from rtmms.record.logged import plant_of
    from rtmms.report.figures import drawing, small_outputs
    from rtmms.report.outline import Outlined, along, recent_names
    from rtmms.shapes.outline import figure_outline

    beside = output is None
    output = file.with_suffix(".png") if output is None else output
    refuse_figure("-o", output, (file,))
    log = open_log(file)
    origin = log.origin
    plant = plant_of(log)
    with drawn(file):
        outline = figure_outline(origin["robot"], plant)
        states = along(outline, plant, planned_steps(log))
        outlined = Outlined(outline, states) if outline is not None and states is not None else None
        draw = drawing(origin["robot"], plant, outlined)
        if draw is None:
            raise ModelError(f"{file}: robot '{origin['robot']}' has no figure to draw")
        keeps = bool(describe_plant(plant).trace_outputs)
        gathered = gather(log, plant, None if keeps else small_outputs(plant), recent_names(outline, plant), states)
        tell_damage(log)
        _to_the_end(log, plant)
        draw(output, gathered.trace, gathered.recent, gathered.statistics)
    if beside:
        print_text(f"{output}", err=True)
    return 0


def _to_the_end(log: Log, plant: Plant) -> None:
    """Where the log has the state at the run's end: a gait that goes on is drawn from there."""
    from rtmms.record.logged import LoggedPlant

    if log.end is not None and log.end.state is not None and not isinstance(plant, LoggedPlant):
        with suppress(ModelError):  # of another version
            plant.restore(log.end.state)
