"""An envelope as a figure: the map over delay and loss with this machine in it, and lines over jitter and rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.report.style import CORAL, INK, ORDERED, figure, save, styled

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.sweep.study import Study


def draw(
    path: Path, title: str, made: Mapping[str, Study], found: Mapping[str, npt.NDArray[np.float64]],
    machine: Mapping[str, Any] | None,
) -> None:  # fmt: skip
    """Write it to `path`.  machine: as rtmms.sweep.envelope.measured says, None where it was not measured"""
    with styled():
        page = figure(9.0, 4.2)
        grid = page.add_gridspec(2, 2, width_ratios=(1.7, 1.0), wspace=0.35, hspace=0.55, bottom=0.13, top=0.9)
        place = page.add_subplot(grid[:, 0])
        delay, loss = (np.asarray(axis.values, dtype=np.float64) for axis in made["map"].axes[:2])
        drawn = place.pcolormesh(delay, loss, found["map"].T, shading="nearest", cmap=ORDERED, vmin=0.0, vmax=1.0)
        page.colorbar(drawn, ax=place, label="share of seeds within the tolerance")
        place.set(xlabel="delay, each way, ms", ylabel="loss, each way", title=title)
        place.grid(visible=False)
        if machine is not None and machine["delay_ms"] is not None:
            x, y = machine["delay_ms"], machine["loss"] or 0.0
            place.plot([x, machine["worst_delay_ms"]], [y, y], color=CORAL)
            place.plot(
                [x], [y], "o", color=CORAL, markeredgecolor=INK, clip_on=False, label="this machine, median to worst"
            )
            place.legend(loc="upper right", labelcolor="white")
        for k, (name, label) in enumerate((("jitter", "jitter, each way, +- ms"), ("rate", "rate, Hz"))):
            line = page.add_subplot(grid[k, 1])
            line.plot(made[name].axes[0].values, found[name], "o-", markersize=3)
            line.set(xlabel=label, ylabel="share within", ylim=(-0.05, 1.05))
            if name == "rate":
                line.set_xscale("log")
                line.xaxis.set_major_formatter("{x:g}")  # powers would be written as their markup
        save(page, path)
