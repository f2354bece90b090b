"""Paths in the shape space, in smooth pieces: what a gait is. r(t) and its rate, t from 0 to `duration` seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError

Array = npt.NDArray[np.float64]
Motion = Callable[[Array], tuple[Array, Array]]
"""t (m,) s -> shapes (m, p) and rates (m, p)."""
CYCLE_S = 2.0 * math.pi


@dataclass(frozen=True, eq=False)
class Path:
    """A way through shapes: `motion` is smooth between one of `breaks` (k + 1,) s and the next."""

    motion: Motion
    breaks: tuple[float, ...] = (0.0, CYCLE_S)

    @property
    def duration(self) -> float:
        """s."""
        return self.breaks[-1] - self.breaks[0]

    @property
    def size(self) -> int:
        """Number of shape variables."""
        return int(self.motion(np.array([self.breaks[0]]))[0].shape[1])

    @property
    def ends(self) -> tuple[Array, Array]:
        """(p,) its first and last shape."""
        return self.motion(np.array([self.breaks[0]]))[0][0], self.motion(np.array([self.breaks[-1]]))[0][0]

    def sampled(self, count: int) -> Array:
        """(count + 1, p) shapes, evenly spaced in time, the corners among them as near as that allows."""
        return self.motion(np.linspace(self.breaks[0], self.breaks[-1], count + 1))[0]

    def reversed(self) -> Path:
        """The same way back."""
        start, end = self.breaks[0], self.breaks[-1]

        def back(t: Array) -> tuple[Array, Array]:
            r, rd = self.motion(start + end - t)
            return r, -rd

        return Path(back, tuple(start + end - one for one in reversed(self.breaks)))

    def retimed(self, clock: Callable[[Array], Array], rate: Callable[[Array], Array], breaks: Sequence[float]) -> Path:
        """The same way at another pace: at time t it stands where it stood at clock(t); rate is the clock's."""

        def moved(t: Array) -> tuple[Array, Array]:
            r, rd = self.motion(clock(t))
            return r, rd * rate(t)[:, None]

        return Path(moved, tuple(breaks))

    def lasting(self, seconds: float) -> Path:
        """The same way in so many seconds, at a pace in proportion."""
        start, share = self.breaks[0], self.duration / seconds
        breaks = [(one - start) / share for one in self.breaks]
        return self.retimed(lambda t: start + share * t, lambda t: np.full_like(t, share), breaks)

    @classmethod
    def circle(cls, a: float, c: Any = (0.0, 0.0)) -> Path:
        """r = c + a (cos t, sin t), t from 0 to 2 pi."""
        centre = np.asarray(c, dtype=float)

        def motion(t: Array) -> tuple[Array, Array]:
            wave = np.column_stack([np.cos(t), np.sin(t)])
            return centre + a * wave, a * np.column_stack([-wave[:, 1], wave[:, 0]])

        return cls(motion)

    @classmethod
    def square(cls, a: float) -> Path:
        """Corners (+-a, +-a) from (+, +), counter-clockwise."""
        return cls.polygon([[a, a], [-a, a], [-a, -a], [a, -a], [a, a]])

    @classmethod
    def polygon(cls, corners: Any, duration: float = CYCLE_S) -> Path:
        """Straight from each of the corners (k, p) to the next, each side in the same time; open or closed."""
        points = _shapes(corners, 2)
        breaks = np.linspace(0.0, duration, len(points))

        def motion(t: Array) -> tuple[Array, Array]:
            side = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(points) - 2)
            rate = (points[side + 1] - points[side]) / (breaks[side + 1] - breaks[side])[:, None]
            return points[side] + (t - breaks[side])[:, None] * rate, rate

        return cls(motion, tuple(breaks))

    @classmethod
    def fourier(cls, coefficients: Any) -> Path:
        """r_k = c_k0 + sum_m (c_k,2m-1 cos m t + c_k,2m sin m t), t from 0 to 2 pi; coefficients (p, 2 m + 1)."""
        table = np.asarray(coefficients, dtype=float)
        order = np.arange(1, table.shape[1] // 2 + 1)

        def motion(t: Array) -> tuple[Array, Array]:
            c, s = np.cos(np.outer(t, order)), np.sin(np.outer(t, order))
            r = table[:, 0] + c @ table[:, 1::2].T + s @ table[:, 2::2].T
            rd = -(order * s) @ table[:, 1::2].T + (order * c) @ table[:, 2::2].T
            return r, rd

        return cls(motion)

    @classmethod
    def of(cls, path: Any, duration: float = CYCLE_S, breaks: Sequence[float] | None = None) -> Path:
        """Whatever stands for a path: a Path, shapes (k, p) joined by straight lines, or a function.

        A function takes t (s, from 0 to `duration`) and returns r (p,), or r and its rate; smooth between `breaks`.
        Where it returns r alone, its rate is taken by a complex step, or by differences where it takes no complex t.
        """
        if isinstance(path, Path):
            return path
        if not callable(path):
            return cls.polygon(path, duration)
        found: Callable[[Any], Any] = path
        return cls(lambda t: _evaluated(found, t), (0.0, duration) if breaks is None else tuple(breaks))


def _evaluated(function: Callable[[Any], Any], t: Array) -> tuple[Array, Array]:
    shapes, rates = [], []
    for one in t:
        value = function(float(one))
        if isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 1:
            r, rd = value
        else:
            r, rd = value, _rate(function, float(one))
        shapes.append(np.asarray(r, dtype=float))
        rates.append(np.asarray(rd, dtype=float))
    return np.array(shapes), np.array(rates)


def _rate(function: Callable[[Any], Any], t: float, h: float = 1e-3) -> Array:
    try:
        step = np.asarray(function(complex(t, 1e-30)))
        if np.iscomplexobj(step):
            rate: Array = step.imag / 1e-30
            return rate
    except TypeError:  # a function of math, not of numpy
        pass
    total: Any = 0.0
    for weight, m in ((672.0, 1), (-168.0, 2), (32.0, 3), (-3.0, 4)):
        total = total + weight * (np.asarray(function(t + m * h)) - np.asarray(function(t - m * h)))
    return np.asarray(total / (840.0 * h))


def _shapes(value: Any, least: int) -> Array:
    try:
        points = np.array(value, dtype=float)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or len(points) < least or points.shape[1] < 1 or not np.isfinite(points).all():
        raise ModelError(f"path: expected at least {least} shapes (k, p) of finite numbers, got {value!r:.80}")
    return points
