"""Provide tables of lift, drag and moment over the angle of attack, for blades and strips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, warn_renamed
from rtmms.base.spatial import Array

TURN = 360.0
FINE = 20
"""Number of points between two of the table at which drag is checked."""


@dataclass(frozen=True, eq=False)
class Polar:
    """Coefficients of a section over the angle of attack, all around.

    Parameters
    ----------
    angles_deg : (k,) array_like
        Degrees, ascending over 360, with the same values at both ends. 0: the air flows along the chord from the
        leading edge; positive: it comes from below.
    lift, drag : (k,) array_like
        Of 1/2 rho V^2 chord per metre of span; drag >= 0.
    moment : (k,) array_like, optional
        The same times chord, about the line of the force, positive with the nose up; None for none.

    Notes
    -----
    Between the points they are cubics with the slopes of the periodic cubic spline. They are once (at the points twice)
    continuously differentiable. Where drag would become negative, its slopes are limited to those of a monotone
    interpolation (Fritsch and Carlson 1980).

    Examples
    --------
    >>> from rtmms import model as m
    >>> polar = m.Polar.with_stall_extension([-10, 0, 10], [-1.0, 0.0, 1.0], [0.02, 0.01, 0.02])
    >>> float(polar.angles_deg[0]), float(polar.angles_deg[-1])
    (-180.0, 180.0)
    """

    angles_deg: Any
    lift: Any
    drag: Any
    moment: Any = None

    @classmethod
    def with_stall_extension(
        cls, angles_deg: Any, lift: Any, drag: Any, moment: Any = None, *, blend_deg: float = 10.0,
        every_deg: float = 5.0,
    ) -> Polar:  # fmt: skip
        """Return a polar from a table of attached flow, with a stalled flat plate from `blend_deg` beyond its ends.

        The plate has C_L = sin 2a and C_D = C_D0 + 2 sin^2 a, with the table's least drag C_D0, and moment 0.

        Parameters
        ----------
        angles_deg : (k,) array_like
            Degrees, ascending, within -180 to 180.
        lift, drag : (k,) array_like
            Coefficients in attached flow.
        moment : (k,) array_like, optional
            Coefficient in attached flow; None for none.
        blend_deg : float, default 10.0
            Width of the transition at each end, degrees.
        every_deg : float, default 5.0
            Spacing of the plate's points, degrees.

        Returns
        -------
        Polar
            The polar.

        Raises
        ------
        ModelError
            The table is wrong.
        """
        place = "Polar.with_stall_extension"
        table = _columns(place, angles_deg, lift, drag, moment)
        first, last = float(table[0, 0]) - blend_deg, float(table[-1, 0]) + blend_deg
        if not (first > -180.0 and last < 180.0 and blend_deg > 0.0 and every_deg > 0.0):
            raise ModelError(
                f"{place}: expected positive blend_deg and every_deg, and angles_deg at least "
                f"blend_deg away from +-180 degrees; got blend_deg {blend_deg}, every_deg {every_deg} "
                f"and angles_deg {angles_deg}"
            )
        outside = [*np.arange(-180.0, first, every_deg), *np.arange(180.0, last, -every_deg)]
        a = np.radians(outside)
        plate = np.column_stack([outside, np.sin(2.0 * a), table[:, 2].min() + 2.0 * np.sin(a) ** 2, 0.0 * a])
        rows = np.vstack([table, plate])
        rows = rows[np.argsort(rows[:, 0])]
        return cls(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3])

    @classmethod
    def beyond(cls, *args: Any, **values: Any) -> Polar:
        """Return `with_stall_extension`, under its old name, with a warning.

        Parameters
        ----------
        *args, **values : Any
            Arguments of `with_stall_extension`.

        Returns
        -------
        Polar
            The polar.
        """
        warn_renamed("Polar", "beyond", "with_stall_extension")
        return cls.with_stall_extension(*args, **values)

    def check(self, place: str) -> None:
        """Check the tables.

        Parameters
        ----------
        place : str
            Name of the polar, for the message.

        Raises
        ------
        ModelError
            A table is wrong; the message names it.
        """
        self.rows(place)

    def rows(self, place: str = "polar") -> Array:
        """Return the tables with their slopes.

        Parameters
        ----------
        place : str, default 'polar'
            Name of the polar, for messages.

        Returns
        -------
        (k, 7) array
            Angle (rad), lift, drag, moment, and the slopes of these three by the angle.

        Raises
        ------
        ModelError
            A table is wrong; the message names it.
        """
        table = _columns(place, self.angles_deg, self.lift, self.drag, self.moment)
        angle, values = table[:, 0], table[:, 1:]
        if abs(angle[-1] - angle[0] - TURN) > 1e-9:
            raise ModelError(
                f"{place}: angles_deg: expected a whole turn of 360 degrees, got {angle[0]:g} to "
                f"{angle[-1]:g}; for a table of attached flow use Polar.with_stall_extension"
            )
        if np.any(np.abs(values[-1] - values[0]) > 1e-9):
            raise ModelError(
                f"{place}: expected the same lift, drag and moment at {angle[0]:g} and {angle[-1]:g} "
                f"degrees, got {values[0].tolist()} and {values[-1].tolist()}"
            )
        x = np.radians(angle)
        slopes = spline_slopes(x, values)
        if least_value(x, values[:, 1], slopes[:, 1]) < 0.0:
            slopes[:, 1] = monotone_slopes(x, values[:, 1], slopes[:, 1])
        return np.column_stack([x, values, slopes])


def _columns(place: str, angles: Any, lift: Any, drag: Any, moment: Any) -> Array:
    """Return the tables as (k, 4), after checks: angles ascend, drag >= 0."""
    values = {"angles_deg": angles, "lift": lift, "drag": drag, "moment": moment}
    columns: list[Array] = []
    for name, value in values.items():
        if value is None and name == "moment":
            value = np.zeros(len(columns[0]))
        try:
            column = np.array(value, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"{place}: {name} must be numbers, got {value!r}") from None
        if column.ndim != 1 or len(column) < 3 or not np.all(np.isfinite(column)):
            raise ModelError(f"{place}: {name} must be three or more finite numbers, got {value!r}")
        if columns and len(column) != len(columns[0]):
            raise ModelError(f"{place}: {name} must have {len(columns[0])} numbers as angles_deg, got {len(column)}")
        columns.append(column)
    if np.any(np.diff(columns[0]) <= 0.0):
        raise ModelError(f"{place}: angles_deg must rise, got {columns[0].tolist()}")
    if np.any(columns[2] < 0.0):
        raise ModelError(f"{place}: drag must be >= 0, got {columns[2].min():g}")
    return np.column_stack(columns)


def spline_slopes(x: Array, y: Array) -> Array:
    """Return the slopes of the periodic cubic spline through points.

    Parameters
    ----------
    x : (k,) array
        Ascending.
    y : (k, c) array
        Values; the last row equals the first.

    Returns
    -------
    (k, c) array
        Slopes.
    """
    h, rise = np.diff(x), np.diff(y, axis=0)
    k = len(h)
    matrix, right = np.zeros((k, k)), np.zeros((k, y.shape[1]))
    for i in range(k):
        a, b = 1.0 / h[i - 1], 1.0 / h[i]
        matrix[i, i] += 2.0 * (a + b)
        matrix[i, i - 1] += a
        matrix[i, (i + 1) % k] += b
        right[i] = 3.0 * (rise[i - 1] * a * a + rise[i] * b * b)
    slopes = np.linalg.solve(matrix, right)
    return np.vstack([slopes, slopes[:1]])


def monotone_slopes(x: Array, y: Array, slopes: Array) -> Array:
    """Return slopes with which no cubic leaves the range between its ends.

    Parameters
    ----------
    x : (k,) array
        Ascending.
    y : (k,) array
        Values.
    slopes : (k,) array
        Slopes to limit.

    Returns
    -------
    (k,) array
        Limited slopes.
    """
    secant = np.diff(y) / np.diff(x)
    before, behind = np.append(secant[-1], secant), np.append(secant, secant[0])
    maximum = 3.0 * np.minimum(np.abs(before), np.abs(behind))
    same = before * behind > 0.0
    return np.asarray(
        np.where(same & (slopes * before > 0.0), np.sign(before) * np.minimum(np.abs(slopes), maximum), 0.0)
    )


def least_value(x: Array, y: Array, slopes: Array) -> float:
    """Return the least value between the points, sampled at FINE places of each interval.

    Parameters
    ----------
    x, y, slopes : (k,) array
        Points, values and slopes of the cubics.

    Returns
    -------
    float
        Least value.
    """
    t = np.linspace(0.0, 1.0, FINE)[:, None]
    h = np.diff(x)
    between = (
        (1.0 + 2.0 * t) * (1.0 - t) ** 2 * y[:-1] + t * (1.0 - t) ** 2 * h * slopes[:-1]
        + t * t * (3.0 - 2.0 * t) * y[1:] - t * t * (1.0 - t) * h * slopes[1:]
    )  # fmt: skip
    return float(between.min())


def stack_rows(polars: Sequence[Polar]) -> tuple[Array, list[int]]:
    """Return the rows of several polars, one below the other.

    Parameters
    ----------
    polars : Sequence[Polar]
        Polars.

    Returns
    -------
    (array, list of int)
        Rows (k, 7), and the index of each polar's first row.
    """
    tables = [polar.rows() for polar in polars]
    starts = [sum(len(table) for table in tables[:k]) for k in range(len(tables))]
    return (np.vstack(tables) if tables else np.zeros((0, 7))), starts
