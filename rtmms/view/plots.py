"""Curves beside the scene: any output, and the strip of what each step took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.contract import PARTS, TRUTH
from rtmms.report.attitude import attitude_angles
from rtmms.view.goals import ATTITUDE, BELONGS, beside
from rtmms.wire.protocol.state import PlantInfo

Array = npt.NDArray[np.float64]

COLOURS = ("#1f6fb2", "#e4572e", "#17a398", "#e9b44c", "#7b4b94", "#8d6a4f")
MOST_CURVES = 6
POINTS = 1200
NONE = "none"


def plottable(plant: PlantInfo) -> list[str]:
    """Names of outputs that fit a plot, and of each number of longer ones that is worth one."""
    fitting = [c.name for c in plant.outputs if int(np.prod(c.shape, dtype=int)) <= MOST_CURVES]
    return [NONE, *([ATTITUDE] if _quaternion(fitting) else []), *fitting]


def source(name: str, plant: PlantInfo) -> str:
    """The output that a plot is drawn from."""
    return _quaternion([c.name for c in plant.outputs]) if name == ATTITUDE else name


def _quaternion(names: Sequence[str]) -> str:
    return next((name for name in (TRUTH + "quaternion", "quaternion") if name in names), "")


@dataclass(frozen=True)
class Curves:
    """What stands in a plot: (n,) times, (n, k) values, k names, and how many of them, the last, are set-points.

    colours   of each an index into COLOURS: a set-point has that of what it belongs to
    """

    time: Array
    values: Array
    names: tuple[str, ...]
    dashed: int
    colours: tuple[int, ...]


def of_output(
    name: str, time: Array, values: Array, told: Sequence[tuple[float, Mapping[str, Any]]]
) -> Curves:  # fmt: skip
    """The curves of an output, (n, k) as it comes, and beside them its set-points: (s, {name: value}) from each change
    on."""
    names: tuple[str, ...] = tuple(f"{name}[{k}]" for k in range(values.shape[1])) if values.shape[1] > 1 else (name,)
    if name == ATTITUDE:
        values, names = np.degrees(attitude_angles(values)), ("roll", "pitch", "heading")
    count, colours = values.shape[1], list(range(values.shape[1]))
    points = beside(name.removeprefix(TRUTH), told, time)
    for point, curve in points.items():
        at = BELONGS[point][1]
        if name == ATTITUDE:  # an angle that goes on beyond a turn is held to the nearest of the same direction
            curve = curve + 360.0 * np.round((values[:, at] - curve) / 360.0)
        values = np.column_stack([values, curve])
        colours.append(at)
    return Curves(time, values, (*names, *(f"{point} set" for point in points)), values.shape[1] - count,
                  tuple(colours))  # fmt: skip


def output_plot(gui: Any, shown: Curves, title: str) -> Any:
    """A plot of an output with its set-points."""
    solid = len(shown.names) - shown.dashed
    return _plot(gui, shown.time, shown.values, [
        _series_of(name, shown.colours[k], {} if k < solid else {"dash": [6, 4]}) for k, name in enumerate(shown.names)
    ], title)  # fmt: skip


def curves(gui: Any, time: Array, values: Array, names: Sequence[str], title: str) -> Any:
    """A plot of (n,) times and (n, k) values."""
    return _plot(gui, time, values, [_series_of(name, k, {}) for k, name in enumerate(names)], title)


def _plot(gui: Any, time: Array, values: Array, series: Sequence[dict[str, Any]], title: str) -> Any:
    data, series = _data(time, values), ({"label": "t, s"}, *series)
    return gui.add_uplot(data, series=series, title=title, aspect=1.7, scales={"x": {"time": False}},
                         cursor={"show": True}, legend={"show": True})  # fmt: skip


def _series_of(name: str, colour: int, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": name, "stroke": COLOURS[colour % len(COLOURS)], "width": 1.5, "spanGaps": False, **more}


def _data(time: Array, values: Array) -> tuple[Array, ...]:
    stride = max(1, len(time) // POINTS)
    # what is not known is drawn at 0: the library's axes do not survive a nan
    shown = np.nan_to_num(values[::stride])
    return np.ascontiguousarray(time[::stride]), *(np.ascontiguousarray(column) for column in shown.T)


def update(plot: Any, time: Array, values: Array) -> None:
    plot.data = _data(time, values)


def strip(gui: Any, time: Array, times_us: Array, around: float, window_s: float = 0.25) -> Any:
    """The deadline strip: wake, exchange, plant and slack of the steps around an instant, us."""
    return curves(gui, *near(time, times_us, around, window_s), PARTS, "steps, us")


def near(time: Array, values: Array, around: float, window_s: float) -> tuple[Array, Array]:
    """What lies within half a window of an instant; two points at least."""
    first, last = np.searchsorted(time, [around - 0.5 * window_s, around + 0.5 * window_s])
    first = int(max(0, min(first, len(time) - 2)))
    return time[first : max(last, first + 2)], values[first : max(last, first + 2)]
