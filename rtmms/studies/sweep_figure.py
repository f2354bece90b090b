"""Figures of studies and envelopes, and the sensitivity of columns."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.studies.envelope import DONE
from rtmms.studies.sweep_study import Study
from rtmms.studies.sweep_table import numbers
from rtmms.view.style import BLUE, CORAL, INK, ORDERED, figure, project_style, save

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.studies.sweep_rows import Table


# What a study shows, as a figure: lines over one thing that differs, a map over two, parallel axes over more.


AXES = ("x", "y", "z")
MAX_COLUMNS = 6
"""Largest number of drawn columns."""
ROUNDING = 1e-9
MAX_TICKS = 8
"""Largest number of values along an axis that all have a tick."""


def draw(path: Path, study: Study, table: Table, columns: tuple[str, ...], doubts: Sequence[str] = ()) -> None:
    """Draw a study; of more columns than MAX_COLUMNS the first ones that differ from run to run.

    Parameters
    ----------
    path : Path
        File of the figure.
    study : Study
        The study.
    table : Table
        A row for each run.
    columns : tuple[str, ...]
        Columns to choose from.
    doubts : Sequence[str], default ()
        Sentences about runs that cannot be trusted; they are below the panels.
    """
    from matplotlib.figure import Figure

    names = _informative(table, columns)[:MAX_COLUMNS] or list(columns[:1])
    several = len(study.axes) > 2
    rows = 1 if several else -(-len(names) // 2)
    keys = [axis.key for axis in study.axes]
    with project_style():
        page = Figure(figsize=(8.0, (4.0 if several else 2.8 * rows) + 0.5 + 0.2 * len(doubts)), layout="constrained")
        page.suptitle(_heading(study), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        if doubts:
            page.supxlabel("\n".join(doubts), x=0.01, ha="left", fontsize=7, color=CORAL)
        if several:
            _parallel(page.add_subplot(), table, [*keys, names[0]])
        else:
            for k, name in enumerate(names):
                axes = page.add_subplot(rows, min(2, len(names)), k + 1)
                (_lines if len(keys) == 1 else _map)(page, axes, table, keys, name)
        save(page, path)


def _heading(study: Study) -> str:
    """Return the heading: 'manta: 8 runs of 6 s'."""
    robot = ", ".join(study.base.members) or study.base.robot
    return f"{robot}: {study.runs:,} runs of {study.base.duration:g} s"


def _informative(table: Table, columns: tuple[str, ...]) -> list[str]:
    """Return the columns with numbers that differ by more than rounding, those of summaries before those of the end."""
    result = []
    for name in columns:
        values = numbers(table, [name])[:, 0]
        values = values[np.isfinite(values)]
        if values.size and (values.size == 1 or np.ptp(values) > ROUNDING * max(1.0, float(np.abs(values).max()))):
            result.append(name)
    return sorted(result, key=lambda name: name.startswith("final.") + name.startswith("final.quaternion"))


def _places(table: Table, key: str) -> tuple[Any, list[str] | None]:
    """Return the numbers to draw at; for words their order, and the words."""
    values = table.column(key)
    if any(isinstance(value, (str, bool)) for value in values):
        labels = sorted({str(value) for value in values})
        return np.array([labels.index(str(value)) for value in values], dtype=float), labels
    return np.array(values, dtype=float), None


def _axis(table: Table, key: str) -> str:
    """Return the label of an axis, as it was typed, with its unit where the name has none."""
    unit = _unit(table, key)
    return key if not unit or key.endswith(_ending(unit)) else f"{key}, {unit}"


def _titled(table: Table, name: str) -> str:
    """Return 'position x at the end, m' for final.position[0], 'mean speed, m/s' for mean_speed_m_s."""
    unit, at_end = _unit(table, name), name.startswith("final.")
    plain_name = name.removeprefix("final.")
    match = re.fullmatch(r"(.*)\[(\d+)\]", plain_name)
    if match:
        base, number = match[1], int(match[2])
        vector = f"final.{base}[{len(AXES)}]" not in table.column_names and number < len(AXES)
        plain_name = f"{base} {AXES[number] if vector else number}"
    plain_name = plain_name.removesuffix(_ending(unit)).replace("_", " ") if unit else plain_name.replace("_", " ")
    return plain_name + (" at the end" if at_end else "") + (f", {unit}" if unit else "")


def _unit(table: Table, name: str) -> str:
    return table.unit(name)


def _ending(unit: str) -> str:
    """Return the ending of names of quantities with this unit: '_m_s' for m/s."""
    return "_" + unit.replace("/", "_").replace(" ", "_").lower()


def _lines(page: Any, axes: Any, table: Table, keys: list[str], name: str) -> None:
    x, labels = _places(table, keys[0])
    order = np.argsort(x, kind="stable")
    axes.plot(x[order], numbers(table, [name])[order, 0], "o-", markersize=3, color=BLUE)
    axes.set(xlabel=_axis(table, keys[0]), title=_titled(table, name))
    if labels is not None:
        axes.set_xticks(range(len(labels)), labels)


def _map(page: Any, axes: Any, table: Table, keys: list[str], name: str) -> None:
    (x, across), (y, up) = (_places(table, key) for key in keys)
    z = numbers(table, [name])[:, 0]
    xs, ys = np.unique(x), np.unique(y)
    if xs.size * ys.size == z.size:
        grid = np.full((ys.size, xs.size), np.nan)
        grid[np.searchsorted(ys, y), np.searchsorted(xs, x)] = z
        drawn = axes.pcolormesh(xs, ys, grid, shading="nearest")
    else:
        drawn = axes.scatter(x, y, c=z, s=12)
    axes.set_title(_titled(table, name))
    page.colorbar(drawn, ax=axes)
    axes.set(xlabel=_axis(table, keys[0]), ylabel=_axis(table, keys[1]))
    for labels, at, set_ticks in ((across, xs, axes.set_xticks), (up, ys, axes.set_yticks)):
        if labels is not None:
            set_ticks(range(len(labels)), labels)
        elif at.size <= MAX_TICKS:
            set_ticks(at)


def _parallel(axes: Any, table: Table, names: list[str]) -> None:
    """Draw a line for each run, coloured by the last column, each axis from its least to its greatest value."""
    from matplotlib import colormaps

    columns = [(_places(table, name)[0] if name != names[-1] else numbers(table, [name])[:, 0]) for name in names]
    good = np.isfinite(columns[-1])
    scaled, ticks = [], []
    for name, column in zip(names, columns, strict=True):
        low, high = (float(np.min(column[good])), float(np.max(column[good]))) if good.any() else (0.0, 1.0)
        scaled.append((column[good] - low) / (high - low or 1.0))
        ticks.append(f"{(_titled if name == names[-1] else _axis)(table, name)}\n{low:.3g} to {high:.3g}")
    lines = np.stack(scaled, axis=1)
    shade = colormaps["viridis"](lines[:, -1])
    for line, colour in zip(lines, shade, strict=True):
        axes.plot(range(len(names)), line, color=colour, alpha=0.4, linewidth=0.8)
    axes.set_xticks(range(len(names)), ticks, fontsize=7)
    axes.set_yticks([])


# An envelope as a figure: the map over delay and loss with this machine in it, and lines over jitter and rate.


def draw_envelope(
    path: Path, title: str, built: Mapping[str, Study], seed_shares: Mapping[str, npt.NDArray[np.float64]],
    machine: Mapping[str, Any] | None,
) -> None:  # fmt: skip
    """Draw an envelope.

    Parameters
    ----------
    path : Path
        File of the figure.
    title : str
        Title of the map.
    built : Mapping[str, Study]
        Studies by name.
    seed_shares : Mapping[str, npt.NDArray[np.float64]]
        Shares of seeds by study.
    machine : Mapping[str, Any] | None
        Result of rtmms.studies.envelope.measure_link, None where it was not measured.
    """
    with project_style():
        page = figure(9.0, 4.2)
        grid = page.add_gridspec(2, 2, width_ratios=(1.7, 1.0), wspace=0.35, hspace=0.55, bottom=0.13, top=0.9)
        place = page.add_subplot(grid[:, 0])
        delay, loss = (np.asarray(axis.values, dtype=np.float64) for axis in built["map"].axes[:2])
        drawn = place.pcolormesh(delay, loss, seed_shares["map"].T, shading="nearest", cmap=ORDERED, vmin=0.0, vmax=1.0)
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
            line.plot(built[name].axes[0].values, seed_shares[name], "o-", markersize=3)
            line.set(xlabel=label, ylabel="share within", ylim=(-0.05, 1.05))
            if name == "rate":
                line.set_xscale("log")
                line.xaxis.set_major_formatter("{x:g}")  # powers would be written as their markup
        save(page, path)


# Which of the things that differ a column depends on: first-order indices of its variance.


MIN_SAMPLES = 64
"""Samples below which indices are noise."""


def first_order(study: Study, table: Table, columns: tuple[str, ...]) -> dict[str, dict[str, float]] | None:
    """Return the first-order sensitivity of columns to the axes.

    Parameters
    ----------
    study : Study
        The study.
    table : Table
        Its table.
    columns : tuple[str, ...]
        Columns.

    Returns
    -------
    dict[str, dict[str, float]] | None
        {column: {key: share of the variance that the mean over all others explains}}. None where there are too few
        samples, or SALib is missing. Only runs that ended as planned count.

    Notes
    -----
    For a grid it is var(mean over the others) / var, exact. For samples it is estimated by RBD-FAST (Tarantola 2006,
    SALib), whose bias is some 6 keys / samples.
    """
    keys = [axis.key for axis in study.axes]
    values = numbers(table, columns)
    values[[word != DONE for word in table.column("ended")]] = np.nan
    if study.method == "grid":
        cases = study.cases()
        return {name: _of_grid(keys, cases, values[:, k]) for k, name in enumerate(columns)}
    if any(axis.values and not all(isinstance(value, (int, float)) for value in axis.values) for axis in study.axes):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from SALib.analyze import rbd_fast
    except ImportError:
        return None
    provided = numbers(table, keys)
    result = {}
    for k, name in enumerate(columns):
        good = np.isfinite(values[:, k])
        if good.sum() < MIN_SAMPLES or np.ptp(values[good, k]) == 0.0:
            continue
        x = provided[good]
        problem = {"num_vars": len(keys), "names": keys, "bounds": [[*np.array([c.min(), c.max()])] for c in x.T]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            indices = rbd_fast.analyze(problem, x, values[good, k], num_resamples=2, seed=0)
        result[name] = {key: float(index) for key, index in zip(keys, indices["S1"], strict=True)}
    return result or None


def _of_grid(keys: list[str], cases: list[tuple[Any, ...]], values: Any) -> dict[str, float]:
    good = np.isfinite(values)
    whole = float(np.var(values[good])) if good.any() else 0.0
    result = {}
    for k, key in enumerate(keys):
        groups: dict[Any, list[float]] = {}
        for case, value in zip(cases, values, strict=True):
            if np.isfinite(value):
                groups.setdefault(case[k], []).append(value)
        means = np.array([np.mean(group) for group in groups.values()])
        weights = np.array([len(group) for group in groups.values()], dtype=float)
        if whole > 0.0 and weights.size:
            mean = np.average(means, weights=weights)
            result[key] = float(np.average((means - mean) ** 2, weights=weights) / whole)
        else:
            result[key] = 0.0
    return result
