"""Provide resistances of whole bodies in a fluid, in body axes: drag areas, linear drag, skin friction, drag curves.

`Mechanism.elements` lists them by the name of their body. Their kernel is rtmms.fluids.resistance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.override import override
from rtmms.base.spatial import Array
from rtmms.model.elements import Element, Strip, checked_numbers
from rtmms.model.solids import Placement

WATER_KG_M3 = 1000.0
"""Density of fresh water, kg/m3."""
WATER_VISCOSITY_M2_S = 1.0e-6
"""Kinematic viscosity of fresh water at 20 deg C, m2/s."""
TRANSITION_RE = 5e5
"""Reynolds number at which the boundary layer of a smooth flat plate becomes turbulent."""
PLATE_DRAG = 1.98
"""Drag coefficient of a long flat plate across the flow (Hoerner 1965, section 3-15)."""


def _refuse_below(value: float, least: float, place: str, unit: str, *, above: bool = False) -> float:
    """Return a finite number within its bound, else raise ModelError."""
    number = float(checked_numbers(value, (), place))
    if number < least or (above and number <= least):
        raise ModelError(f"{place}: expected a number {'>' if above else '>='} {least:g} {unit}, got {value!r}")
    return number


class Resistance(Element):
    """Base of the elements whose wrench is a function of their velocity against the fluid at one point.

    Attributes
    ----------
    body : str
        Name of the body.
    placement : Placement
        Frame of the element in the body's frame.
    """

    body: str
    placement: Placement

    def _check_body(self, place: str) -> None:
        if not isinstance(self.body, str) or not self.body:
            raise ModelError(f"{place}: body: expected the name of a body, got {self.body!r}")


@dataclass(frozen=True, eq=False)
class DragArea(Resistance):
    """Quadratic drag of a body, by drag coefficient times area.

    Parameters
    ----------
    body : str
        Name of the body.
    area : float or (3,) array_like
        Drag coefficient times area, m2. One number: the force is -1/2 rho area |V| V, equal from all sides. Three
        numbers: the force along axis i of `placement` is -1/2 rho area_i |V_i| V_i (Fossen 2021, section 6.4).
    density : float, default WATER_KG_M3
        Density of the fluid, kg/m3.
    placement : Placement, optional
        Frame of the axes in the body's frame. The force is at its origin.

    Notes
    -----
    V is the velocity of the origin of `placement` against the fluid, m/s.

    Examples
    --------
    >>> from rtmms import model as m
    >>> drag = m.DragArea("hull", (0.02, 0.1, 0.1))
    """

    body: str
    area: Any
    density: float = WATER_KG_M3
    placement: Placement = field(default_factory=Placement)

    @override
    def check(self, place: str) -> None:
        self._check_body(place)
        shape = () if np.ndim(self.area) == 0 else (3,)
        area = checked_numbers(self.area, shape, f"{place}: dragarea.area")
        if np.any(area < 0.0):
            raise ModelError(f"{place}: dragarea.area: expected numbers >= 0 m2, got {area.tolist()}")
        _refuse_below(self.density, 0.0, f"{place}: dragarea.density", "kg/m3", above=True)


@dataclass(frozen=True, eq=False)
class LinearDrag(Resistance):
    """Linear drag of a body, in body axes.

    Parameters
    ----------
    body : str
        Name of the body.
    matrix : (3, 3) or (6, 6) array_like
        (3, 3), N s/m: the force is -matrix V. (6, 6), N s/m, N s, N m s: the wrench (force, moment about the origin of
        `placement`) is -matrix (V, W).
    placement : Placement, optional
        Frame of the matrix in the body's frame.

    Notes
    -----
    V and W are the velocity (m/s) of the origin of `placement` against the fluid and the angular velocity (rad/s). The
    matrix may have an antisymmetric part. Its symmetric part has no negative eigenvalue, so it only dissipates energy.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms import model as m
    >>> drag = m.LinearDrag("hull", np.diag([1.5, 4.0, 4.0]))
    """

    body: str
    matrix: Any
    placement: Placement = field(default_factory=Placement)

    def full(self) -> Array:
        """Return the matrix as (6, 6).

        Returns
        -------
        (6, 6) array
            N s/m, N s, N m s.
        """
        out, matrix = np.zeros((6, 6)), np.asarray(self.matrix, dtype=float)
        out[: len(matrix), : len(matrix)] = matrix
        return out

    @override
    def check(self, place: str) -> None:
        self._check_body(place)
        where = f"{place}: lineardrag.matrix"
        shape = np.shape(self.matrix)
        if shape not in ((3, 3), (6, 6)):
            raise ModelError(f"{where}: expected shape (3, 3) or (6, 6), got {shape}")
        matrix = checked_numbers(self.matrix, (len(self.matrix),) * 2, where)
        least = float(np.linalg.eigvalsh(matrix + matrix.T)[0]) / 2.0
        if least < -1e-9 * float(np.max(np.abs(matrix), initial=0.0)):
            raise ModelError(
                f"{where}: expected no negative eigenvalue of its symmetric part, which would feed energy in, got "
                f"{least:g}; check the signs"
            )


@dataclass(frozen=True, eq=False)
class SkinFriction(Resistance):
    """Friction of a boundary layer on a wetted area, along one axis: laminar, turbulent, and the transition.

    Parameters
    ----------
    body : str
        Name of the body.
    wetted_area : float
        Surface, both sides of a plate, m2.
    length : float
        Length of the surface along the flow, m, for the Reynolds number Re = |V_1| length / viscosity.
    density : float, default WATER_KG_M3
        Density of the fluid, kg/m3.
    viscosity : float, default WATER_VISCOSITY_M2_S
        Kinematic viscosity, m2/s.
    transition : float, default TRANSITION_RE
        Reynolds number up to which the boundary layer is laminar; 0: turbulent from the leading edge.
    placement : Placement, optional
        Frame whose x axis is the flow's direction, in the body's frame. The force is at its origin.

    Notes
    -----
    The force along x is -1/2 rho wetted_area C_f(Re) |V_1| V_1. Laminar, after Blasius (1908), C_f = 1.328 Re^-1/2: the
    force is proportional to the speed to the power 1.5. Beyond the transition Re_t, after Prandtl and Schlichting
    (Schlichting 1979, equation 21.16), C_f = 0.455 (log10 Re)^-2.58 - A / Re, with A such that C_f has no jump at Re_t.

    Examples
    --------
    >>> from rtmms import model as m
    >>> skin = m.SkinFriction("hull", wetted_area=0.3, length=0.6)
    """

    body: str
    wetted_area: float
    length: float
    density: float = WATER_KG_M3
    viscosity: float = WATER_VISCOSITY_M2_S
    transition: float = TRANSITION_RE
    placement: Placement = field(default_factory=Placement)

    @override
    def check(self, place: str) -> None:
        self._check_body(place)
        where = f"{place}: skinfriction"
        _refuse_below(self.wetted_area, 0.0, f"{where}.wetted_area", "m2")
        _refuse_below(self.length, 0.0, f"{where}.length", "m", above=True)
        _refuse_below(self.density, 0.0, f"{where}.density", "kg/m3", above=True)
        _refuse_below(self.viscosity, 0.0, f"{where}.viscosity", "m2/s", above=True)
        transition = _refuse_below(self.transition, 0.0, f"{where}.transition", "")
        if 0.0 < transition < MIN_TURBULENT_RE:
            raise ModelError(
                f"{where}.transition: expected 0 (turbulent) or a Reynolds number >= {MIN_TURBULENT_RE:g}, got "
                f"{self.transition!r}"
            )

    def coefficient(self, reynolds: float) -> float:
        """Return the friction coefficient C_f.

        Parameters
        ----------
        reynolds : float
            Reynolds number > 0.

        Returns
        -------
        float
            C_f.
        """
        if reynolds <= max(self.transition, MIN_TURBULENT_RE):
            return blasius(reynolds)
        return prandtl_schlichting(reynolds) - self.deficit() / reynolds

    def deficit(self) -> float:
        """Return A of the law with transition.

        Returns
        -------
        float
            0 where the layer is turbulent from the leading edge.
        """
        at = max(self.transition, MIN_TURBULENT_RE)
        return at * (prandtl_schlichting(at) - blasius(at)) if self.transition > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class DragCurve(Resistance):
    """Drag along one axis, by a table of the drag area over the speed, as a towing tank measures it.

    The table represents any law of the speed: wave drag, a drag crisis, separated flow with a coefficient that depends
    on the speed, or a power of the speed.

    Parameters
    ----------
    body : str
        Name of the body.
    table : (n, 2) array_like
        2 to 16 rows of a speed, m/s, ascending from 0 or above, and the drag area there, m2. The drag area is the drag
        coefficient times area, 2 F / (rho speed^2) of a measured force F. It is linear between rows, and constant
        outside.
    density : float, default WATER_KG_M3
        Density of the fluid, kg/m3.
    placement : Placement, optional
        Frame whose x axis is the direction of the drag, in the body's frame. The force is at its origin.

    Notes
    -----
    The force along x is -1/2 rho A(|V_1|) |V_1| V_1. V_1 is the velocity of the origin of `placement` against the fluid
    along x, m/s.

    Examples
    --------
    >>> from rtmms import model as m
    >>> drag = m.DragCurve("hull", [(0.2, 0.03), (0.5, 0.05), (0.8, 0.04)])
    """

    body: str
    table: Any
    density: float = WATER_KG_M3
    placement: Placement = field(default_factory=Placement)

    def rows(self) -> Array:
        """Return the table.

        Returns
        -------
        (n, 2) array
            Speed, m/s, and drag area, m2.
        """
        return np.asarray(self.table, dtype=float)

    @override
    def check(self, place: str) -> None:
        self._check_body(place)
        where = f"{place}: dragcurve.table"
        rows = checked_numbers(self.table, np.shape(self.table), where)
        if rows.ndim != 2 or rows.shape[1:] != (2,) or not 2 <= len(rows) <= MAX_CURVE_ROWS:
            raise ModelError(
                f"{where}: expected 2 to {MAX_CURVE_ROWS} rows (speed, drag area) in m/s and m2, got shape {rows.shape}"
            )
        for k, (speed, area) in enumerate(rows):
            if speed < 0.0 or (k and speed <= rows[k - 1, 0]):
                raise ModelError(f"{where}[{k}]: expected speeds >= 0 m/s that rise, got {speed:g}")
            if area < 0.0:
                raise ModelError(f"{where}[{k}]: expected a drag area >= 0 m2, got {area:g}")
        _refuse_below(self.density, 0.0, f"{place}: dragcurve.density", "kg/m3", above=True)


MAX_CURVE_ROWS = 16
"""Largest number of rows of a DragCurve's table."""
MIN_TURBULENT_RE = 1e4
"""Reynolds number below which the turbulent law has no meaning and is not used."""


def blasius(reynolds: float) -> float:
    """Return C_f of a laminar boundary layer on a flat plate (Blasius 1908).

    Parameters
    ----------
    reynolds : float
        Reynolds number > 0.

    Returns
    -------
    float
        C_f.
    """
    return 1.328 / math.sqrt(reynolds)


def prandtl_schlichting(reynolds: float) -> float:
    """Return C_f of a boundary layer that is turbulent from the leading edge (Schlichting 1979, equation 21.16).

    Parameters
    ----------
    reynolds : float
        Reynolds number > 1.

    Returns
    -------
    float
        C_f.
    """
    return float(0.455 / math.log10(reynolds) ** 2.58)


def plate_strip(
    half_height: float, length: float, density: float, placement: Placement | None = None, *,
    drag: float = PLATE_DRAG, skin: float = 0.0, added: float = 1.0, law: str = "kirchhoff",
) -> Strip:  # fmt: skip
    """Return a strip that is a thin flat plate: added mass, drag across, and skin friction.

    Parameters
    ----------
    half_height : float
        b, half the plate's height along e3 of `placement`, m.
    length : float
        Along e1, m.
    density : float
        Density of the fluid, kg/m3.
    placement : Placement, optional
        Frame e1 (along), e2 (normal of the plate), e3 (its height), at the plate's middle; None: the body's frame.
    drag : float, default PLATE_DRAG
        Coefficient of the drag across, for the height 2 b.
    skin : float, default 0.0
        Skin friction coefficient C_f, of both sides; for the law of a boundary layer use `SkinFriction`.
    added : float, default 1.0
        Factor of the added mass.
    law : str, default 'kirchhoff'
        Law of the added mass, see `Strip`.

    Returns
    -------
    Strip
        An element for `Body.elements`.

    Raises
    ------
    ModelError
        A size is not > 0, or a coefficient is < 0.

    Notes
    -----
    A metre of a thin plate has the added mass rho pi b^2 along its normal, and rho pi b^4 / 8 about its long axis
    (Newman 1977, table 4.3). The drag across is 1/2 rho drag 2 b |V_n| V_2 a metre, V_n = (V_2, V_3). A plate that
    rolls about e1 has the moment rho drag b^4 / 4 |W_1| W_1 a metre, by the same coefficient over its height. Skin
    friction along e1 is 1/2 rho skin 4 b |V_1| V_1 a metre.

    Examples
    --------
    >>> from rtmms import model as m
    >>> fin = m.plate_strip(0.05, 0.1, 1000.0, m.at(x=-0.05), skin=0.01)
    """
    place = "plate_strip"
    b = _refuse_below(half_height, 0.0, f"{place}: half_height", "m", above=True)
    rho = _refuse_below(density, 0.0, f"{place}: density", "kg/m3", above=True)
    _refuse_below(length, 0.0, f"{place}: length", "m", above=True)
    across = _refuse_below(drag, 0.0, f"{place}: drag", "")
    along = _refuse_below(skin, 0.0, f"{place}: skin", "")
    factor = _refuse_below(added, 0.0, f"{place}: added", "")
    return _plate(b, b**2, b**4, length, rho, Placement() if placement is None else placement,
                  (across, along, factor), law)  # fmt: skip


def _plate(
    b: float, square: float, fourth: float, length: float, rho: float, placement: Placement,
    coefficients: tuple[float, float, float], law: str,
) -> Strip:  # fmt: skip
    """Return a strip from the means of b, b^2 and b^4 over its length."""
    across, along, factor = coefficients
    return Strip(
        length,
        drag=(2.0 * rho * along * b, rho * across * b, 0.0),
        roll_drag=0.25 * rho * across * fourth,
        added=(factor * rho * math.pi * fourth / 8.0, factor * rho * math.pi * square, 0.0),
        law=law,
        placement=placement,
    )


def plate_strips(
    table: Any, density: float, placement: Placement | None = None, *, drag: float = PLATE_DRAG, skin: float = 0.0,
    added: float = 1.0, law: str = "kirchhoff",
) -> tuple[Strip, ...]:  # fmt: skip
    """Return strips of a thin flat plate whose height varies, one for each interval of a table.

    Parameters
    ----------
    table : (n, 2) array_like
        x along e1 of `placement`, ascending, and the half height b there, >= 0, m. b is linear between rows.
    density : float
        Density of the fluid, kg/m3.
    placement : Placement, optional
        Frame e1, e2 (normal), e3 (height) whose origin is x = 0 of the table; None: the body's frame.
    drag, skin, added : float, default PLATE_DRAG
        Coefficients of `plate_strip`.
    law : str, default 'kirchhoff'
        Law of the added mass, see `Strip`.

    Returns
    -------
    tuple[Strip, ...]
        n - 1 elements for `Body.elements`, with the exact means of b, b^2 and b^4 of their intervals.

    Raises
    ------
    ModelError
        The table is wrong; the message names the row.
    """
    place = "plate_strips: table"
    rows = checked_numbers(table, np.shape(table), place)
    if rows.ndim != 2 or rows.shape[1:] != (2,) or len(rows) < 2:
        raise ModelError(f"{place}: expected two or more rows (x, half height) in m, got shape {rows.shape}")
    for k, (x, b) in enumerate(rows):
        if b < 0.0 or (k and x <= rows[k - 1, 0]):
            raise ModelError(f"{place}[{k}]: expected x that rises and a half height >= 0 m, got ({x:g}, {b:g})")
    frame = Placement() if placement is None else placement
    rho = _refuse_below(density, 0.0, "plate_strips: density", "kg/m3", above=True)
    coefficients = (
        _refuse_below(drag, 0.0, "plate_strips: drag", ""), _refuse_below(skin, 0.0, "plate_strips: skin", ""),
        _refuse_below(added, 0.0, "plate_strips: added", ""),
    )  # fmt: skip
    built = []
    for (x, b), (y, c) in pairwise(rows):
        if b == c == 0.0:
            continue
        mean = [sum(b**i * c ** (k - i) for i in range(k + 1)) / (k + 1) for k in (1, 2, 4)]
        middle = frame @ Placement(np.eye(3), np.array([0.5 * (x + y), 0.0, 0.0]))
        built.append(_plate(mean[0], mean[1], mean[2], float(y - x), rho, middle, coefficients, law))
    return tuple(built)
