"""Provide gaits as paths in the shape space: smooth pieces, sines, and gaits by name.

A path has shapes r(t) and their rates, t from 0 to `duration` seconds, in smooth pieces. Sines of a robot's actuators
have one base frequency; where all are angles, they make a closed path of shapes too. A word is 'circle:a=1,c1=0,c2=0',
'square:a=1', a robot's own name of a gait, or a file of shapes.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, radians, sin
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import MIB, read_input_text

Array = npt.NDArray[np.float64]


Motion = Callable[[Array], tuple[Array, Array]]
"""A function of times t (m,), s, that returns shapes (m, p) and rates (m, p)."""
CYCLE_S = 2.0 * math.pi


@dataclass(frozen=True, eq=False)
class Path:
    """A way through shapes.

    `circle`, `square`, `polygon` and `fourier` make one; `reversed`, `retimed` and `lasting` return another one of it.

    Parameters
    ----------
    motion : callable
        Function of t (m,), s, that returns shapes (m, p) and rates (m, p).
    breaks : tuple[float, ...], default (0.0, CYCLE_S)
        Times (k + 1,), s, between which `motion` is smooth.

    Examples
    --------
    >>> from rtmms.locomotion import Path
    >>> Path.circle(0.5).sampled(4).round(2)[:2].tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    >>> Path.circle(1.0).lasting(4.0).duration
    4.0
    """

    motion: Motion
    breaks: tuple[float, ...] = (0.0, CYCLE_S)

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.breaks[-1] - self.breaks[0]

    @property
    def size(self) -> int:
        """Number of shape variables."""
        return int(self.motion(np.array([self.breaks[0]]))[0].shape[1])

    @property
    def ends(self) -> tuple[Array, Array]:
        """The first and the last shape, (p,) each."""
        return self.motion(np.array([self.breaks[0]]))[0][0], self.motion(np.array([self.breaks[-1]]))[0][0]

    def sampled(self, count: int) -> Array:
        """Return shapes evenly spaced in time, the corners among them as near as that allows.

        Parameters
        ----------
        count : int
            Number of intervals.

        Returns
        -------
        (count + 1, p) array
            Shapes, rad or m.
        """
        return self.motion(np.linspace(self.breaks[0], self.breaks[-1], count + 1))[0]

    def reversed(self) -> Path:
        """Return the same way back.

        Returns
        -------
        Path
            Path from the last shape to the first.
        """
        start, end = self.breaks[0], self.breaks[-1]

        def back(t: Array) -> tuple[Array, Array]:
            """Return shapes and rates of the way back.

            Parameters
            ----------
            t : (m,) array
                s.

            Returns
            -------
            (array, array)
                Shapes and rates, (m, p) each.
            """
            r, rd = self.motion(start + end - t)
            return r, -rd

        return Path(back, tuple(start + end - item for item in reversed(self.breaks)))

    def retimed(self, clock: Callable[[Array], Array], rate: Callable[[Array], Array], breaks: Sequence[float]) -> Path:
        """Return the same way at another pace: at time t it is where this path is at clock(t).

        Parameters
        ----------
        clock : callable
            Function of t (m,), s, that returns times of this path, s.
        rate : callable
            Rate of the clock.
        breaks : Sequence[float]
            Breaks of the new path, s.

        Returns
        -------
        Path
            The path at the other pace.
        """

        def moved(t: Array) -> tuple[Array, Array]:
            """Return shapes and rates at the other pace.

            Parameters
            ----------
            t : (m,) array
                s.

            Returns
            -------
            (array, array)
                Shapes and rates, (m, p) each.
            """
            r, rd = self.motion(clock(t))
            return r, rd * rate(t)[:, None]

        return Path(moved, tuple(breaks))

    def lasting(self, seconds: float) -> Path:
        """Return the same way with another duration, at a proportional pace.

        Parameters
        ----------
        seconds : float
            Duration, s.

        Returns
        -------
        Path
            The path, from t = 0.
        """
        start, share = self.breaks[0], self.duration / seconds
        breaks = [(item - start) / share for item in self.breaks]
        return self.retimed(lambda t: start + share * t, lambda t: np.full_like(t, share), breaks)

    @classmethod
    def circle(cls, a: float, c: Any = (0.0, 0.0)) -> Path:
        """Return the circle r = c + a (cos t, sin t), t from 0 to 2 pi.

        Parameters
        ----------
        a : float
            Radius, rad or m.
        c : (2,) array_like, default (0.0, 0.0)
            Centre, rad or m.

        Returns
        -------
        Path
            Closed path of two shape variables.
        """
        centre = np.asarray(c, dtype=float)

        def motion(t: Array) -> tuple[Array, Array]:
            """Return shapes and rates of the circle.

            Parameters
            ----------
            t : (m,) array
                s.

            Returns
            -------
            (array, array)
                Shapes and rates, (m, 2) each.
            """
            wave = np.column_stack([np.cos(t), np.sin(t)])
            return centre + a * wave, a * np.column_stack([-wave[:, 1], wave[:, 0]])

        return cls(motion)

    @classmethod
    def square(cls, a: float) -> Path:
        """Return the square with corners (+-a, +-a), counter-clockwise from (+, +).

        Parameters
        ----------
        a : float
            Half of a side, rad or m.

        Returns
        -------
        Path
            Closed path of two shape variables.
        """
        return cls.polygon([[a, a], [-a, a], [-a, -a], [a, -a], [a, a]])

    @classmethod
    def polygon(cls, corners: Any, duration: float = CYCLE_S) -> Path:
        """Return straight lines from each corner to the next, each in the same time.

        Parameters
        ----------
        corners : (k, p) array_like
            Corners, rad or m; open or closed.
        duration : float, default CYCLE_S
            s.

        Returns
        -------
        Path
            The path.

        Raises
        ------
        ModelError
            There are fewer than two corners, or a number is not finite.
        """
        points = _shapes(corners, 2)
        breaks = np.linspace(0.0, duration, len(points))

        def motion(t: Array) -> tuple[Array, Array]:
            """Return shapes and rates of the polygon.

            Parameters
            ----------
            t : (m,) array
                s.

            Returns
            -------
            (array, array)
                Shapes and rates, (m, p) each.
            """
            side = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(points) - 2)
            rate = (points[side + 1] - points[side]) / (breaks[side + 1] - breaks[side])[:, None]
            return points[side] + (t - breaks[side])[:, None] * rate, rate

        return cls(motion, tuple(breaks))

    @classmethod
    def fourier(cls, coefficients: Any) -> Path:
        """Return the series r_k = c_k0 + sum_m (c_k,2m-1 cos m t + c_k,2m sin m t), t from 0 to 2 pi.

        Parameters
        ----------
        coefficients : (p, 2 m + 1) array_like
            c, rad or m.

        Returns
        -------
        Path
            Closed path.
        """
        table = np.asarray(coefficients, dtype=float)
        order = np.arange(1, table.shape[1] // 2 + 1)

        def motion(t: Array) -> tuple[Array, Array]:
            """Return shapes and rates of the series.

            Parameters
            ----------
            t : (m,) array
                s.

            Returns
            -------
            (array, array)
                Shapes and rates, (m, p) each.
            """
            c, s = np.cos(np.outer(t, order)), np.sin(np.outer(t, order))
            r = table[:, 0] + c @ table[:, 1::2].T + s @ table[:, 2::2].T
            rd = -(order * s) @ table[:, 1::2].T + (order * c) @ table[:, 2::2].T
            return r, rd

        return cls(motion)

    @classmethod
    def of(cls, path: Any, duration: float = CYCLE_S, breaks: Sequence[float] | None = None) -> Path:
        """Return the path that a value describes: a Path, shapes (k, p) joined by straight lines, or a function.

        A function takes t (s, from 0 to `duration`) and returns r (p,), or r and its rate. Where it returns r alone, a
        complex step gives its rate, or differences where it takes no complex t.

        Parameters
        ----------
        path : Path, array_like or callable
            The value.
        duration : float, default CYCLE_S
            Of shapes or a function, s.
        breaks : Sequence[float], optional
            Times between which the function is smooth, s; None: 0 and `duration`.

        Returns
        -------
        Path
            The path.

        Raises
        ------
        ModelError
            The shapes are wrong.
        """
        if isinstance(path, Path):
            return path
        if not callable(path):
            return cls.polygon(path, duration)
        result: Callable[[Any], Any] = path
        return cls(lambda t: _evaluated(result, t), (0.0, duration) if breaks is None else tuple(breaks))


def _evaluated(function: Callable[[Any], Any], t: Array) -> tuple[Array, Array]:
    """Return shapes and rates of a user's function at times t."""
    shapes, rates = [], []
    for item in t:
        value = function(float(item))
        if isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 1:
            r, rd = value
        else:
            r, rd = value, _rate(function, float(item))
        shapes.append(np.asarray(r, dtype=float))
        rates.append(np.asarray(rd, dtype=float))
    return np.array(shapes), np.array(rates)


def _rate(function: Callable[[Any], Any], t: float, h: float = 1e-3) -> Array:
    """Return the rate of a user's function by a complex step, or by differences of eighth order."""
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
    """Return shapes as an array (k, p), or raise ModelError where they are wrong."""
    try:
        points = np.array(value, dtype=float)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or len(points) < least or points.shape[1] < 1 or not np.isfinite(points).all():
        raise ModelError(f"path: expected at least {least} shapes (k, p) of finite numbers, got {value!r:.80}")
    return points


class Wave(NamedTuple):
    """One actuator: offset + amplitude sin(harmonic w t + phase) + steer times the user's steering.

    Attributes
    ----------
    channel : str
        Name of the actuator.
    amplitude : float, default 0.0
        In the unit of the channel.
    offset : float, default 0.0
        In the unit of the channel.
    harmonic : int, default 1
        Multiple of the base frequency.
    phase_deg : float, default 0.0
        Degrees.
    steer : float, default 0.0
        Change for a steering of 1, in the unit of the channel.

    Examples
    --------
    >>> from rtmms.locomotion.paths import Wave
    >>> Wave("hip.angle", 0.3, phase_deg=90.0).harmonic
    1
    """

    channel: str
    amplitude: float = 0.0
    offset: float = 0.0
    harmonic: int = 1
    phase_deg: float = 0.0
    steer: float = 0.0


class Sines(NamedTuple):
    """Sines of actuators, with one base frequency.

    Attributes
    ----------
    frequency_hz : float
        Base frequency, Hz.
    waves : tuple[Wave, ...]
        Waves of its actuators, in the order of the robot's joints.
    path_s : float, optional
        Duration of a cycle as a path of shapes, s; None: the period of the base frequency.

    Examples
    --------
    >>> from rtmms.locomotion.paths import Sines, Wave
    >>> gait = Sines(0.5, (Wave("hip.angle", 0.3), Wave("knee.angle", 0.2, phase_deg=90.0)))
    >>> gait.channels
    ('hip.angle', 'knee.angle')
    >>> gait.path("walk", 2).duration
    2.0
    """

    frequency_hz: float
    waves: tuple[Wave, ...]
    path_s: float | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the actuators that it moves."""
        return tuple(wave.channel for wave in self.waves)

    def path(self, name: str, size: int) -> Path:
        """Return the closed path of shapes, without steering.

        Parameters
        ----------
        name : str
            Name of the gait, for messages.
        size : int
            Number of angles.

        Returns
        -------
        Path
            The path.

        Raises
        ------
        ModelError
            The waves are not those of all joints' angles.
        """
        if len(self.waves) != size or not all(channel.endswith(".angle") for channel in self.channels):
            raise ModelError(
                f"gait '{name}': expected a closed path of {size} joint angles, got motions of "
                f"{', '.join(self.channels)}"
            )
        last = max(wave.harmonic for wave in self.waves)
        table = [[0.0] * (2 * last + 1) for _ in self.waves]
        for row, wave in zip(table, self.waves, strict=True):
            row[0] = wave.offset
            # sin(h t + phase) = sin(phase) cos(h t) + cos(phase) sin(h t); rounded, so that a quarter turn is one
            row[2 * wave.harmonic - 1] = wave.amplitude * round(sin(radians(wave.phase_deg)), 15)
            row[2 * wave.harmonic] = wave.amplitude * round(cos(radians(wave.phase_deg)), 15)
        return Path.fourier(table).lasting(1.0 / self.frequency_hz if self.path_s is None else self.path_s)


Gait = str | Path | Sines
"""A robot's own gait: a word as `rtmms gaits --gait` takes it, a path, or sines."""


MAX_PATH_FILE_BYTES = 16 * MIB
"""Limit for a file of shapes, bytes."""


def _rectangle(a: float, b: float) -> Path:
    """Return the path from (0, 0) by a of the first variable, by b of the second, and back in the same order."""
    return Path.polygon([[0.0, 0.0], [a, 0.0], [a, b], [0.0, b], [0.0, 0.0]])


FORMS: dict[str, tuple[Callable[..., Path], dict[str, float]]] = {
    "circle": (lambda a, c1, c2: Path.circle(a, (c1, c2)), {"a": 1.0, "c1": 0.0, "c2": 0.0}),
    "square": (lambda a: Path.square(a), {"a": 1.0}),
    "rectangle": (_rectangle, {"a": 1.0, "b": 1.0}),
}
"""Paths of two shape variables: the function that makes each, and its parameters with their defaults."""


def gait_path(
    word: str, size: int, robot_gaits: Mapping[str, Gait] | None = None, names: Sequence[str] | None = None
) -> Path:  # fmt: skip
    """Return the path of a word.

    Parameters
    ----------
    word : str
        A form such as 'circle:a=1', the name of a gait of the robot, or a file that ends in .csv.
    size : int
        Number of shape variables of the mechanism.
    robot_gaits : Mapping[str, Gait], optional
        Gaits of the robot, by name.
    names : Sequence[str], optional
        Names of the shape variables, for the heading of a file.

    Returns
    -------
    Path
        The path. A straight line closes a file's gait whose last shape differs from its first.

    Raises
    ------
    ModelError
        The word or the file is wrong; the message has the word, the error and what is expected.
    UnknownNameError
        There is no such gait, or no such parameter of it.

    Examples
    --------
    >>> from rtmms.locomotion import gait_path
    >>> gait_path("circle:a=0.5", 2).ends[0].tolist()
    [0.5, 0.0]
    """
    if word.lower().endswith(".csv"):
        return read_shapes(word, size, names)
    name, _, remaining = word.partition(":")
    robot_gaits = robot_gaits or {}
    if name in robot_gaits and not (remaining and name in FORMS):
        if remaining:
            raise ModelError(f"gait '{word}': expected no parameters, as '{name}' has none; remove them")
        result = robot_gaits[name]
        if isinstance(result, Sines):
            return result.path(name, size)
        return result if isinstance(result, Path) else gait_path(result, size)
    if name not in FORMS:
        raise UnknownNameError("gait", name, [*robot_gaits, *FORMS], "or a file of shapes, FILE.csv")
    make, defaults = FORMS[name]
    if size != 2:
        raise ModelError(f"gait '{word}': a {name} has 2 shape variables, but the robot has {size}; give a FILE.csv")
    return make(**{**defaults, **_numbers(word, name, remaining, defaults)})


def _numbers(word: str, name: str, remaining: str, known: Mapping[str, float]) -> dict[str, float]:
    """Return the parameters of a word, key=value,..."""
    result: dict[str, float] = {}
    for part in remaining.split(",") if remaining else ():
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise ModelError(f"gait '{word}': expected {name}:key=value,..., got '{part}'")
        if key not in known:
            raise UnknownNameError(f"parameter of gait '{name}'", key, known)
        if key in result:
            raise ModelError(f"gait '{word}': {key} is given twice")
        try:
            result[key] = float(text)
        except ValueError:
            result[key] = math.nan
        if not math.isfinite(result[key]):
            raise ModelError(f"gait '{word}': {key} must be a finite number, got '{text}'")
        if key not in ("c1", "c2") and result[key] == 0.0:
            raise ModelError(f"gait '{word}': {key} must not be 0")
    return result


MAX_SHAPES = 100_000
"""Limit for a file of shapes, lines."""


def read_shapes(name: str, size: int, names: Sequence[str] | None = None) -> Path:
    """Read a file of shapes and join them by straight lines in equal times.

    Parameters
    ----------
    name : str
        File; each line has one shape of `size` numbers. The first line may have the names, in any order.
    size : int
        Number of shape variables.
    names : Sequence[str], optional
        Their names. Without them a heading is ignored.

    Returns
    -------
    Path
        Closed path.

    Raises
    ------
    ModelError
        The file is wrong; the message has the file and the line.
    """
    text = read_input_text(name, place="gait", max_bytes=MAX_PATH_FILE_BYTES, expected="a table of shapes in UTF-8")
    rows: list[Array] = []
    order = list(range(size))
    for number, cells in enumerate(csv.reader(text.splitlines()), 1):
        if not "".join(cells).strip() and len(cells) < 2:
            continue
        try:
            row = np.array([float(cell) for cell in cells])
        except ValueError:
            if not rows and number == 1:
                heading = [cell.strip() for cell in cells]
                if names is not None and sorted(heading) != sorted(names):
                    raise ModelError(
                        f"gait '{name}' line 1: expected the heading {','.join(names)}, in any order, got "
                        f"'{','.join(heading)}'"
                    ) from None
                order = [heading.index(name) for name in names or ()] or order
                continue
            raise ModelError(f"gait '{name}' line {number}: expected {size} numbers, got '{','.join(cells)}'") from None
        if len(row) != size or not np.isfinite(row).all():
            raise ModelError(f"gait '{name}' line {number}: expected {size} finite numbers, got '{','.join(cells)}'")
        if len(rows) >= MAX_SHAPES:
            raise ModelError(f"gait '{name}': expected at most {MAX_SHAPES} shapes, got more")
        rows.append(row[order])
    if len(rows) < 2:
        raise ModelError(f"gait '{name}': expected at least 2 shapes, got {len(rows)}")
    if np.max(np.abs(rows[-1] - rows[0])) > 1e-9:
        rows.append(rows[0])
    return Path.polygon(rows)


def keep_limits(path: Path, least: Array, greatest: Array, names: tuple[str, ...], word: str) -> None:
    """Raise ModelError where a gait leaves the limits of a joint.

    Parameters
    ----------
    path : Path
        The gait.
    least, greatest : (p,) array
        Limits, rad or m.
    names : tuple[str, ...]
        Names of the joints.
    word : str
        The gait's word, for the message.

    Raises
    ------
    ModelError
        A joint leaves its limits; the message has the joint and the shape.
    """
    shapes = path.sampled(720)
    for k, name in enumerate(names):
        low, high = float(shapes[:, k].min()), float(shapes[:, k].max())
        if low < least[k] - 1e-9 or high > greatest[k] + 1e-9:
            got = high if high > greatest[k] + 1e-9 else low
            raise ModelError(
                f"gait '{word}': joint '{name}' would move to {got:.6g}, beyond its limits {least[k]:.6g} to "
                f"{greatest[k]:.6g}"
            )
