"""Curves beside the scene: any output, and the strip of what each step took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.record.layout import TIMES
from rtmms.wire.protocol.state import PlantInfo

Array = npt.NDArray[np.float64]

COLOURS = ("#1f6fb2", "#e4572e", "#17a398", "#e9b44c", "#7b4b94", "#8d6a4f")
MOST_CURVES = 6
POINTS = 1200
NONE = "none"


def plottable(plant: PlantInfo) -> list[str]:
    """Names of outputs that fit a plot, and of each number of longer ones that is worth one."""
    return [NONE, *(c.name for c in plant.outputs if int(np.prod(c.shape, dtype=int)) <= MOST_CURVES)]


def components(name: str, size: int) -> list[str]:
    return [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]


def curves(gui: Any, time: Array, values: Array, names: Sequence[str], title: str) -> Any:
    """A plot of (n,) times and (n, k) values."""
    data, series = _data(time, values), _series(names)
    return gui.add_uplot(data, series=series, title=title, aspect=1.7, scales={"x": {"time": False}},
                         cursor={"show": True}, legend={"show": True})  # fmt: skip


def _series(names: Sequence[str]) -> tuple[Any, ...]:
    drawn = [
        {"label": name, "stroke": COLOURS[k % len(COLOURS)], "width": 1.5, "spanGaps": False}
        for k, name in enumerate(names)
    ]
    return ({"label": "t, s"}, *drawn)


def _data(time: Array, values: Array) -> tuple[Array, ...]:
    stride = max(1, len(time) // POINTS)
    # what is not known is drawn at 0: the library's axes do not survive a nan
    shown = np.nan_to_num(values[::stride])
    return np.ascontiguousarray(time[::stride]), *(np.ascontiguousarray(column) for column in shown.T)


def update(plot: Any, time: Array, values: Array) -> None:
    plot.data = _data(time, values)


def strip(gui: Any, time: Array, times_us: Array, around: float, window_s: float = 0.25) -> Any:
    """The deadline strip: wake, exchange, plant and slack of the steps around an instant, us."""
    return curves(gui, *near(time, times_us, around, window_s), TIMES, "steps, us")


def near(time: Array, values: Array, around: float, window_s: float) -> tuple[Array, Array]:
    """What lies within half a window of an instant; two points at least."""
    first, last = np.searchsorted(time, [around - 0.5 * window_s, around + 0.5 * window_s])
    first = int(max(0, min(first, len(time) - 2)))
    return time[first : max(last, first + 2)], values[first : max(last, first + 2)]
