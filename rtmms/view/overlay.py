"""What is written over a rendered picture: the robot's name and the time, a scale, the deadlines of all steps."""

from __future__ import annotations

from functools import lru_cache
from math import floor, log10
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image as Images
from PIL import ImageDraw, ImageFont

from rtmms.contract import PARTS
from rtmms.shapes.visual.surface import Colour
from rtmms.view.recording import Recording

Array = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]

MISSED, OVERRUN, USED, SLACK = (233, 180, 76), (214, 69, 65), (23, 163, 152), (226, 234, 238)


@lru_cache(maxsize=8)
def _font(size: int) -> Any:
    import matplotlib

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)


def nice(length: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not longer."""
    power = 10.0 ** floor(log10(max(length, 1e-9)))
    return float(max((k * power for k in (1.0, 2.0, 5.0) if k * power <= length * (1.0 + 1e-9)), default=power))


def metres(length: float) -> str:
    """1 m, 10 cm, 5 mm."""
    for unit, size in (("m", 1.0), ("cm", 0.01), ("mm", 0.001)):
        if length >= 0.999 * size:
            return f"{length / size:g} {unit}"
    return f"{length:g} m"


class Overlay:
    """Of one run.

    words       before the time, "" for neither;  colour  of the text
    grid_m      of the floor's cells, None without a floor
    m_a_pixel   at the robot;  deadlines  of the recording, None to leave them out
    """

    def __init__(
        self,
        wide: int,
        high: int,
        words: str,
        colour: Colour,
        *,
        grid_m: float | None,
        m_a_pixel: float,
        deadlines: Recording | None = None,
    ) -> None:
        self._wide, self._high, self._words, self._colour = wide, high, words, colour
        self._unit = max(high / 720.0, 0.5)
        self._bar_m = nice(0.16 * wide * m_a_pixel)
        self._bar = self._bar_m / m_a_pixel
        self._grid = grid_m
        self._strip = (
            None if deadlines is None else _strip(deadlines, wide - int(48 * self._unit), int(26 * self._unit))
        )
        self._last = 1.0 if deadlines is None else max(float(deadlines.time[-1]), 1e-9)
        self._counts = (
            ""
            if deadlines is None
            else (
                f"deadlines of {len(deadlines.steps)} steps: {int(deadlines.missed.sum())} missed (yellow), "
                f"{int(deadlines.overrun.sum())} overruns (red); height: share of the period in use"
            )
        )

    def write(self, picture: Image, time: float, note: str = "") -> Image:
        """The picture with all that over it; time s."""
        made = Images.fromarray(picture)
        pen, u = ImageDraw.Draw(made), self._unit
        font, small = _font(round(20 * u)), _font(round(14 * u))
        if self._words:
            pen.text((24 * u, 18 * u), f"{self._words}   {time:.2f} s", self._colour, font)
        if note:
            pen.text((24 * u, 46 * u), note, self._colour, small)
        foot = self._high - 24 * u
        if self._strip is not None:
            left, top = int(24 * u), int(self._high - 20 * u - self._strip.shape[0])
            made.paste(Images.fromarray(self._strip), (left, top))
            at = left + time / self._last * self._strip.shape[1]
            pen.line([(at, top - 4 * u), (at, top + self._strip.shape[0] + 4 * u)], self._colour, max(1, round(2 * u)))
            pen.text((left, top - 20 * u), self._counts, self._colour, small)
            foot = top - 34 * u
        right = self._wide - 24 * u
        pen.line([(right - self._bar, foot), (right, foot)], self._colour, max(1, round(3 * u)))
        for end in (right - self._bar, right):
            pen.line([(end, foot - 5 * u), (end, foot + 5 * u)], self._colour, max(1, round(2 * u)))
        told = metres(self._bar_m) + (f"   grid {metres(self._grid)}" if self._grid else "")
        pen.text((right, foot - 10 * u), told, self._colour, small, anchor="rs")
        return np.asarray(made)


def _strip(run: Recording, wide: int, high: int) -> Image:
    """What share of its period the slowest step of each instant took; where a command was missed or a step overran."""
    period = np.nansum(run.times_us, axis=1)
    used = np.nansum(run.times_us[:, : PARTS.index("slack")], axis=1) / np.maximum(period, 1e-9)
    at = np.minimum((np.arange(len(used)) * wide) // max(len(used), 1), wide - 1)
    column, missed, overrun = np.zeros(wide), np.zeros(wide, bool), np.zeros(wide, bool)
    np.maximum.at(column, at, np.clip(np.nan_to_num(used), 0.0, 1.0))
    np.logical_or.at(missed, at, run.missed)
    np.logical_or.at(overrun, at, run.overrun)
    made = np.empty((high, wide, 3), np.uint8)
    made[:] = SLACK
    level = np.arange(high)[::-1, None] / high
    made[level < column[None]] = USED
    made[:, missed], made[:, overrun] = MISSED, OVERRUN
    return made


def has_deadlines(run: Recording) -> bool:
    """Whether its steps had any: in real time they do."""
    return run.info.mode in ("realtime", "external") and bool(np.isfinite(run.times_us).any())
