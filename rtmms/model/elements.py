"""Provide elements that act on a body, as data: strips (slender bodies), blades (wings), wakes, tethers, added mass."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rtmms.base.errors import ModelError, rename_class_attribute
from rtmms.base.override import override
from rtmms.base.spatial import Array, adjoint
from rtmms.model.polars import Polar
from rtmms.model.solids import Placement


def checked_numbers(value: Any, shape: tuple[int, ...], place: str) -> Array:
    """Return an array of finite numbers.

    Parameters
    ----------
    value : array_like
        Value to check.
    shape : tuple[int, ...]
        Required shape.
    place : str
        Name of the value, for the message.

    Returns
    -------
    array
        Copy of the numbers.

    Raises
    ------
    ModelError
        The value has no such shape, or is not finite.
    """
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{place} must be numbers of shape {shape}, got {value!r}") from None
    if array.shape != shape:
        raise ModelError(f"{place} must have shape {shape}, got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{place} must be finite, got {array.tolist()}")
    return array


def check_polar(value: Any, place: str) -> None:
    """Check that a value is a Polar that covers all angles.

    Parameters
    ----------
    value : object
        Value to check.
    place : str
        Name of the value, for the message.

    Raises
    ------
    ModelError
        The value is no Polar, or its table is wrong.
    """
    if not isinstance(value, Polar):
        raise ModelError(f"{place}: expected a Polar, got {value!r}")
    value.check(place)


class Element:
    """Base of everything that acts on a body, with defaults; its arrays and kernels are in rtmms.fluids.

    Attributes
    ----------
    placement : Placement
        Frame of the element in the body's frame.
    vectors : tuple of str, default ()
        Fields of three numbers.
    signed : tuple of str, default ()
        Fields that may be negative.
    choices : dict of str to tuple of str, default {}
        Permitted values of text fields.
    """

    placement: Placement
    vectors: ClassVar[tuple[str, ...]] = ()
    signed: ClassVar[tuple[str, ...]] = ()
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __init_subclass__(cls) -> None:
        """Accept the old name of `choices`, with a warning."""
        super().__init_subclass__()
        rename_class_attribute(cls, "words", "choices")

    def added_inertia(self) -> Array:
        """Return the added mass for the body's inertia.

        Returns
        -------
        (6, 6) array
            About the body's origin, body frame.
        """
        return np.zeros((6, 6))

    @property
    def displaced_mass(self) -> float:
        """Mass of the displaced fluid, which an accelerating fluid pushes, kg."""
        return 0.0

    @property
    def centre(self) -> Array:
        """(3,) point where the element is in the flow, m, body frame."""
        return self.placement.position

    @property
    def kirchhoff(self) -> bool:
        """Whether the added inertia obeys Kirchhoff's law in a moving fluid."""
        return True

    def check(self, place: str) -> None:
        """Check the fields.

        Parameters
        ----------
        place : str
            Name of the body, for the message.

        Raises
        ------
        ModelError
            A field is wrong; the message names it.
        """
        kind = type(self).__name__.lower()
        for name, value in vars(self).items():
            where = f"{place}: {kind}.{name}"
            if name in self.choices:
                if value not in self.choices[name]:
                    raise ModelError(f"{where} must be {' or '.join(self.choices[name])}, got '{value}'")
            elif name == "polar":
                if value is not None:
                    check_polar(value, f"{where}")
            elif name != "placement":
                checked_numbers(value, (3,) if name in self.vectors else (), where)
                if name not in self.signed and np.any(np.asarray(value) < 0.0):
                    raise ModelError(f"{where} must be finite and >= 0, got {value}")
        length = getattr(self, "length", None)
        if length is not None and length <= 0.0:
            raise ModelError(f"{place}: {kind}.length must be > 0 m, got {length}")


@dataclass(frozen=True, eq=False)
class Strip(Element):
    """A straight slender element of constant section with the forces of Morison's equation (Khalil 2007, eqs 44-62).

    Parameters
    ----------
    length : float
        m.
    drag : tuple[float, float, float], default (0.0, 0.0, 0.0)
        (d1, d2, d3), kg/m2: the force per metre is -(d1 |V1| V1, d2 |Vn| V2, d3 |Vn| V3).
    roll_drag : float, default 0.0
        kg m: the moment per metre is -roll_drag |W1| W1.
    added : tuple[float, float, float], default (0.0, 0.0, 0.0)
        kg m2/m about e1, kg/m along e2, kg/m along e3.
    law : str, default 'kirchhoff'
        'kirchhoff' or 'khalil2007', see Notes.
    displaced : float, default 0.0
        Mass of displaced fluid, kg/m, which an accelerating fluid pushes (buoyancy in gravity: Body.fluid_density).
    placement : Placement, optional
        Frame e1 (along the element), e2, e3 at the element's middle, in the body's frame.
    couple : float, default 0.0
        kg, of either sign: a moment -couple dV_r2/dt per metre about e3 (Boyer 2017, eq 48). See Notes.
    polar : Polar, optional
        Coefficients over the angle of attack, in place of d2 and d3; None for none. The leading edge is along e2, the
        upper side along e3, and the force acts at the strip's line.
    chord : float, default 0.0
        Chord of the polar, m.
    density : float, default 0.0
        Density of the polar's fluid, kg/m3.

    Notes
    -----
    The law 'kirchhoff' is M_a eta' - ad_eta^T M_a eta: it conserves momentum, and energy without drag. The law
    'khalil2007' is the paper's, with the sections' classical acceleration only; without drag it does not conserve
    momentum.

    The couple is no gradient of an energy: with it the energy balance does not close. An iteration finds the motion.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Strip(0.2, drag=(0.1, 20.0, 20.0), added=(0.0, 3.0, 3.0)).added_inertia()[1, 1]
    np.float64(0.6000000000000001)
    """

    length: float
    drag: tuple[float, float, float] = (0.0, 0.0, 0.0)
    roll_drag: float = 0.0
    added: tuple[float, float, float] = (0.0, 0.0, 0.0)
    law: str = "kirchhoff"
    displaced: float = 0.0
    placement: Placement = field(default_factory=Placement)
    couple: float = 0.0
    polar: Polar | None = None
    chord: float = 0.0
    density: float = 0.0

    vectors: ClassVar[tuple[str, ...]] = ("drag", "added")
    signed: ClassVar[tuple[str, ...]] = ("couple",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"law": ("kirchhoff", "khalil2007")}

    def check(self, place: str) -> None:
        """Check the fields, and that a polar has its chord and density.

        Parameters
        ----------
        place : str
            Name of the body, for the message.

        Raises
        ------
        ModelError
            A field is wrong; the message names it.
        """
        super().check(place)
        if self.polar is not None and (self.chord <= 0.0 or self.density <= 0.0 or any(self.drag[1:])):
            raise ModelError(
                f"{place}: strip.polar: expected chord > 0 m, density > 0 kg/m3 and no drag across, got chord "
                f"{self.chord:g}, density {self.density:g} and drag {tuple(self.drag)}"
            )

    @property
    def displaced_mass(self) -> float:
        """Mass of the displaced fluid, kg."""
        return self.displaced * self.length

    @property
    def kirchhoff(self) -> bool:
        """Whether the law is Kirchhoff's."""
        return self.law != "khalil2007"

    @override
    def added_inertia(self) -> Array:
        j1, m2, m3 = (value * self.length for value in self.added)
        sq = self.length**2 / 12.0
        x = adjoint(self.placement.rotation, self.placement.position)
        local_inertia = np.diag([0.0, m2, m3, j1, m3 * sq, m2 * sq])
        return x.T @ local_inertia @ x


def elliptic_strip(
    a: float, b: float, length: float, density: float, placement: Placement, *,
    drag: tuple[float, float, float] = (0.01, 1.0, 1.0), roll: float = 1.0,
    added: tuple[float, float, float] = (1.0, 1.0, 1.0), law: str = "kirchhoff",
) -> Strip:  # fmt: skip
    """Return a strip of elliptic section (Khalil 2007, section VII).

    Parameters
    ----------
    a, b : float
        Half-axes along e2 and e3, m.
    length : float
        m.
    density : float
        Density of the fluid, kg/m3.
    placement : Placement
        Frame e1, e2, e3 at the element's middle, in the body's frame.
    drag : tuple[float, float, float], default (0.01, 1.0, 1.0)
        The paper's coefficients (C1, C2, C3), without dimension.
    roll : float, default 1.0
        The paper's coefficient C4.
    added : tuple[float, float, float], default (1.0, 1.0, 1.0)
        The paper's coefficients (C7, C5, C6).
    law : str, default 'kirchhoff'
        Law of the added mass, see `Strip`.

    Returns
    -------
    Strip
        Element for `Body.elements`.
    """
    ring = (b * b - a * a) ** 2
    return Strip(
        length=length,
        drag=(
            0.5 * density * drag[0] * math.pi * (a + b) / 2.0,
            0.5 * density * drag[1] * 2.0 * b,
            0.5 * density * drag[2] * 2.0 * a,
        ),
        roll_drag=0.5 * density * roll * ring,
        added=(
            density * math.pi * added[0] * ring / 8.0,
            density * math.pi * b * b * added[1],
            density * math.pi * a * a * added[2],
        ),
        law=law,
        displaced=density * math.pi * a * b,
        placement=placement,
    )


@dataclass(frozen=True, eq=False)
class Blade(Element):
    """A flat rectangular blade in quasi-steady air (Porez 2014, section IV-B, as corrected in docs/moth.md).

    Parameters
    ----------
    length : float
        m along x.
    chord : float
        m along -z.
    density : float
        Density of the fluid, kg/m3.
    pressure : float, default 0.4
        Point of application of the quasi-steady force, in chords behind the leading edge.
    added : float, default 0.25
        Added mass per metre of span in units of density pi chord^2, along y at the pressure point: 0, 1/4 or 1.
    placement : Placement, optional
        Frame with x along the leading edge outwards, z from the trailing to the leading edge, y normal. Its origin is
        the inner end of the leading edge, in the body's frame.
    polar : Polar, optional
        Coefficients over the angle of attack in place of the law above, the upper side along y; None for none.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Blade(length=0.05, chord=0.02, density=1.2).centre
    array([ 0.025,  0.   , -0.008])
    """

    length: float
    chord: float
    density: float
    pressure: float = 0.4
    added: float = 0.25
    placement: Placement = field(default_factory=Placement)
    polar: Polar | None = None

    @property
    def centre(self) -> Array:
        """(3,) pressure point at half span, m, body frame."""
        middle = np.array([self.length / 2.0, 0.0, -self.pressure * self.chord])
        place: Array = self.placement.position + self.placement.rotation @ middle
        return place

    def added_inertia(self) -> Array:
        """Return the added mass for the body's inertia: the integral of m_a y y^T at (xi, 0, -pressure chord).

        Returns
        -------
        (6, 6) array
            About the body's origin, body frame.
        """
        m = self.added * self.density * math.pi * self.chord**2
        z, l = -self.pressure * self.chord, self.length
        # V_y = V.y - W_x z + W_z xi: its square integrated over xi in (0, l)
        lin = np.array([0.0, 1.0, 0.0, -z, 0.0, 0.0])
        rot = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        local_inertia = m * (
            l * np.outer(lin, lin)
            + l**2 / 2.0 * (np.outer(lin, rot) + np.outer(rot, lin))
            + l**3 / 3.0 * np.outer(rot, rot)
        )
        x = adjoint(self.placement.rotation, self.placement.position)
        return x.T @ local_inertia @ x


@dataclass(frozen=True, eq=False)
class Wake(Element):
    """The end of an elongated body, where it sheds its wake (Boyer 2017, eq 44, with its first sign corrected).

    Parameters
    ----------
    added : tuple[float, float, float]
        kg m about e1, kg/m along e2, kg/m along e3, of the last section.
    placement : Placement, optional
        Frame e1 (towards the tail), e2, e3 at the last section's centre, in the body's frame.

    Notes
    -----
    The wrench is p (e1 . V_r) - 1/2 (p . eta_r) e1 with p = M_f eta_r and eta_r = (V_r, W) against the fluid. It acts
    while the fluid flows from head to tail, V_r1 < 0. Otherwise it is 0, because it would add energy.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Wake((0.0, 3.0, 1.0), m.at(x=0.5)).added
    (0.0, 3.0, 1.0)
    """

    added: tuple[float, float, float]
    placement: Placement = field(default_factory=Placement)
    vectors: ClassVar[tuple[str, ...]] = ("added",)


@dataclass(frozen=True, eq=False)
class Tether(Element):
    """A spring and a damper between a point of the body and a point of the world.

    Parameters
    ----------
    stiffness : tuple[float, float, float]
        N/m along the world's axes.
    damping : tuple[float, float, float], default (0.0, 0.0, 0.0)
        N s/m along the world's axes.
    point : tuple[float, float, float], default (0.0, 0.0, 0.0)
        m, in the frame of `placement`.
    anchor : tuple[float, float, float], default (0.0, 0.0, 0.0)
        m, world.
    placement : Placement, optional
        Frame of `point` in the body's frame.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Tether((50.0, 50.0, 50.0), anchor=(0.0, 0.0, 1.0)).damping
    (0.0, 0.0, 0.0)
    """

    stiffness: tuple[float, float, float]
    damping: tuple[float, float, float] = (0.0, 0.0, 0.0)
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    anchor: tuple[float, float, float] = (0.0, 0.0, 0.0)
    placement: Placement = field(default_factory=Placement)
    vectors: ClassVar[tuple[str, ...]] = ("stiffness", "damping", "point", "anchor")
    signed: ClassVar[tuple[str, ...]] = ("point", "anchor")


@dataclass(frozen=True, eq=False)
class AddedMass(Element):
    """Added mass and displaced fluid of a whole body, without drag.

    `compile` makes one of `Body.added` and of the fluid that the body displaces beyond its other elements.

    Parameters
    ----------
    matrix : (6, 6) array_like, optional
        Added mass about the origin of `placement`, kg, kg m, kg m2, symmetric; Kirchhoff's law holds for it.
    displaced : float, default 0.0
        Mass of displaced fluid, kg. An accelerating fluid pushes it; `Body.displaced` is its buoyancy.
    middle : (3,) array_like, default (0.0, 0.0, 0.0)
        Point in the flow and centre of the displaced fluid, m, frame of `placement`.
    placement : Placement, optional
        Frame of `matrix` and `middle` in the body's frame.
    """

    matrix: Any = field(default_factory=lambda: np.zeros((6, 6)))
    displaced: float = 0.0
    middle: Any = (0.0, 0.0, 0.0)
    placement: Placement = field(default_factory=Placement)

    @override
    def check(self, place: str) -> None:
        matrix = checked_numbers(self.matrix, (6, 6), f"{place}: addedmass.matrix")
        if np.max(np.abs(matrix - matrix.T)) > 1e-9 * np.max(np.abs(matrix), initial=0.0):
            raise ModelError(f"{place}: addedmass.matrix must be symmetric, got {matrix.tolist()}")
        checked_numbers(self.middle, (3,), f"{place}: addedmass.middle")
        if float(checked_numbers(self.displaced, (), f"{place}: addedmass.displaced")) < 0.0:
            raise ModelError(f"{place}: addedmass.displaced must be >= 0 kg, got {self.displaced}")

    @property
    def displaced_mass(self) -> float:
        """Mass of the displaced fluid, kg."""
        return self.displaced

    @property
    def centre(self) -> Array:
        """(3,) centre of the displaced fluid, m, body frame."""
        place: Array = self.placement.position + self.placement.rotation @ np.asarray(self.middle, dtype=float)
        return place

    @override
    def added_inertia(self) -> Array:
        x = adjoint(self.placement.rotation, self.placement.position)
        out: Array = x.T @ np.asarray(self.matrix, dtype=float) @ x
        return out


def rod_resistance(length: float, along: float, across: float, placement: Placement | None = None) -> Array:
    """Return the resistance D of a straight slender rod in a creeping fluid, for `Body.viscous`.

    Parameters
    ----------
    length : float
        m.
    along, across : float
        c_t and c_n, N s/m2: the force per metre is -(c_t V1, c_n V2, c_n V3). The rod does not resist rolling.
    placement : Placement, optional
        Frame e1 along the rod with its origin at the rod's middle; None for the body's own frame.

    Returns
    -------
    (6, 6) array
        About the body's origin.
    """
    place = Placement() if placement is None else placement
    turn = across * length**3 / 12.0
    local_resistance = np.diag([along * length, across * length, across * length, 0.0, turn, turn])
    x = adjoint(place.rotation, place.position)
    return x.T @ local_resistance @ x
