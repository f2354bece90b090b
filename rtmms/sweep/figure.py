"""What a study shows, as a figure: lines over one thing that differs, a map over two, parallel axes over more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.report.style import save
from rtmms.sweep.study import Study
from rtmms.sweep.table import numbers

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 6
"""Columns that are drawn."""
FEW = 8
"""Values along an axis that all have a tick."""


def draw(path: Path, study: Study, table: pa.Table, columns: tuple[str, ...]) -> None:
    """Write it to `path`; of more columns than MOST the first ones."""
    from matplotlib.figure import Figure

    names = [one for one in columns if np.isfinite(numbers(table, [one])).any()][:MOST] or list(columns[:1])
    several = len(study.axes) > 2
    rows = 1 if several else -(-len(names) // 2)
    page = Figure(figsize=(8.0, 4.0 if several else 2.8 * rows), layout="constrained")
    keys = [axis.key for axis in study.axes]
    if several:
        _parallel(page.add_subplot(), table, [*keys, names[0]])
    else:
        for k, name in enumerate(names):
            axes = page.add_subplot(rows, min(2, len(names)), k + 1)
            (_lines if len(keys) == 1 else _map)(page, axes, table, keys, name)
    save(page, path)


def _places(table: pa.Table, key: str) -> tuple[Any, list[str] | None]:
    """Numbers to draw at; of words their order, and the words."""
    values = table.column(key).to_pylist()
    if any(isinstance(one, (str, bool)) for one in values):
        words = sorted({str(one) for one in values})
        return np.array([words.index(str(one)) for one in values], dtype=float), words
    return np.array(values, dtype=float), None


def _titled(table: pa.Table, name: str) -> str:
    unit = (table.schema.field(name).metadata or {}).get(b"unit", b"").decode()
    return f"{name}, {unit}" if unit else name


def _lines(page: Any, axes: Any, table: pa.Table, keys: list[str], name: str) -> None:
    x, words = _places(table, keys[0])
    order = np.argsort(x, kind="stable")
    axes.plot(x[order], numbers(table, [name])[order, 0], "o-", markersize=3)
    axes.set(xlabel=_titled(table, keys[0]), ylabel=_titled(table, name))
    if words is not None:
        axes.set_xticks(range(len(words)), words)


def _map(page: Any, axes: Any, table: pa.Table, keys: list[str], name: str) -> None:
    (x, across), (y, up) = (_places(table, key) for key in keys)
    z = numbers(table, [name])[:, 0]
    xs, ys = np.unique(x), np.unique(y)
    if xs.size * ys.size == z.size:
        grid = np.full((ys.size, xs.size), np.nan)
        grid[np.searchsorted(ys, y), np.searchsorted(xs, x)] = z
        drawn = axes.pcolormesh(xs, ys, grid, shading="nearest")
    else:
        drawn = axes.scatter(x, y, c=z, s=12)
    page.colorbar(drawn, ax=axes, label=_titled(table, name))
    axes.set(xlabel=_titled(table, keys[0]), ylabel=_titled(table, keys[1]))
    for words, at, set_ticks in ((across, xs, axes.set_xticks), (up, ys, axes.set_yticks)):
        if words is not None:
            set_ticks(range(len(words)), words)
        elif at.size <= FEW:
            set_ticks(at)


def _parallel(axes: Any, table: pa.Table, names: list[str]) -> None:
    """A line a run, coloured by the last column, each axis from its least to its greatest value."""
    from matplotlib import colormaps

    columns = [(_places(table, name)[0] if name != names[-1] else numbers(table, [name])[:, 0]) for name in names]
    good = np.isfinite(columns[-1])
    scaled, ticks = [], []
    for name, column in zip(names, columns, strict=True):
        low, high = (float(np.min(column[good])), float(np.max(column[good]))) if good.any() else (0.0, 1.0)
        scaled.append((column[good] - low) / (high - low or 1.0))
        ticks.append(f"{_titled(table, name)}\n{low:.3g} to {high:.3g}")
    lines = np.stack(scaled, axis=1)
    shade = colormaps["viridis"](lines[:, -1])
    for line, colour in zip(lines, shade, strict=True):
        axes.plot(range(len(names)), line, color=colour, alpha=0.4, linewidth=0.8)
    axes.set_xticks(range(len(names)), ticks, fontsize=7)
    axes.set_yticks([])
