"""What acts on a body, as data: strips (slender bodies), blades (wings), wakes, tethers, added mass."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, adjoint
from rtmms.model.polars import Polar
from rtmms.model.solids import Placement


def checked_numbers(value: Any, shape: tuple[int, ...], place: str) -> Array:
    """As an array of finite numbers; ModelError where it is none of that shape."""
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
    """ModelError where it is no Polar that covers all angles."""
    if not isinstance(value, Polar):
        raise ModelError(f"{place}: expected a Polar, got {value!r}")
    value.check(place)


class Element:
    """What acts on a body; what `compile` asks of it, with the answers of most. Its arrays and kernels: rtmms.fluids.

    vectors, signed   fields of three numbers, and those that may be < 0
    words             of a field its choices
    """

    placement: Placement
    vectors: ClassVar[tuple[str, ...]] = ()
    signed: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[dict[str, tuple[str, ...]]] = {}

    def added_inertia(self) -> Array:
        """(6, 6) about the body's origin, body frame, that goes into the body's inertia."""
        return np.zeros((6, 6))

    @property
    def displaced_mass(self) -> float:
        """kg of fluid that it displaces: what an accelerating fluid pushes."""
        return 0.0

    @property
    def centre(self) -> Array:
        """(3,) m, body frame: where it meets the flow."""
        return self.placement.position

    @property
    def kirchhoff(self) -> bool:
        """Whether its added inertia obeys Kirchhoff's law in a fluid that moves."""
        return True

    def check(self, place: str) -> None:
        """ModelError naming the field that cannot be, behind `place`."""
        kind = type(self).__name__.lower()
        for name, value in vars(self).items():
            where = f"{place}: {kind}.{name}"
            if name in self.words:
                if value not in self.words[name]:
                    raise ModelError(f"{where} must be {' or '.join(self.words[name])}, got '{value}'")
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
    """A straight slender element of constant section, seen by Morison's equation (Khalil 2007, eqs 44-62).

    length      m
    drag        (3,) kg/m2   force a metre = -(d1 |V1| V1, d2 |Vn| V2, d3 |Vn| V3)
    roll_drag   kg m         moment a metre = -roll_drag |W1| W1
    added       (3,)         (kg m2/m about e1, kg/m along e2, kg/m along e3)
    law         'kirchhoff' (M_a eta' - ad_eta^T M_a eta: conserves momentum and energy without drag) or 'khalil2007'
                (the paper's: sections' classical acceleration only; without drag it does not conserve momentum)
    displaced   kg/m         of fluid: what an accelerating fluid pushes (buoyancy in gravity: Body.fluid_density)
    placement   frame e1 (along the element), e2, e3 with its origin at the element's middle, in the body's frame
    couple      kg, of either sign: a moment -couple dV_r2/dt a metre about e3 (Boyer 2017, eq 48). It is no gradient of
                an energy: with it energy does not close; the motion is found by iteration
    polar       coefficients over the angle of attack, in place of d2 and d3: the leading edge along e2, the upper side
                along e3, the force at the strip's line; None for none. chord m, density kg/m3 of the fluid: of it
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
    words: ClassVar[dict[str, tuple[str, ...]]] = {"law": ("kirchhoff", "khalil2007")}

    def check(self, place: str) -> None:
        super().check(place)
        if self.polar is not None and (self.chord <= 0.0 or self.density <= 0.0 or any(self.drag[1:])):
            raise ModelError(
                f"{place}: strip.polar: expected chord > 0 m, density > 0 kg/m3 and no drag across, got chord "
                f"{self.chord:g}, density {self.density:g} and drag {tuple(self.drag)}"
            )

    @property
    def displaced_mass(self) -> float:
        return self.displaced * self.length

    @property
    def kirchhoff(self) -> bool:
        return self.law != "khalil2007"

    def added_inertia(self) -> Array:
        """(6, 6) about the body's origin, body frame."""
        j1, m2, m3 = (value * self.length for value in self.added)
        sq = self.length**2 / 12.0
        x = adjoint(self.placement.rotation, self.placement.position)
        own = np.diag([0.0, m2, m3, j1, m3 * sq, m2 * sq])
        return x.T @ own @ x


def elliptic_strip(
    a: float, b: float, length: float, density: float, placement: Placement, *,
    drag: tuple[float, float, float] = (0.01, 1.0, 1.0), roll: float = 1.0,
    added: tuple[float, float, float] = (1.0, 1.0, 1.0), law: str = "kirchhoff",
) -> Strip:  # fmt: skip
    """A strip of elliptic section (Khalil 2007, section VII): half-axes a along e2, b along e3 (m), fluid kg/m3.

    drag (C1, C2, C3), roll C4, added (C7, C5, C6) are the paper's coefficients without dimension.
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

    length     m along x;  chord m, along -z;  density kg/m3 of the fluid
    pressure   where the quasi-steady force acts, in chords behind the leading edge
    added      added mass a metre of span in units of density pi chord^2, along y at the pressure point: 0, 1/4 or 1
    placement  frame with x along the leading edge outwards, z from the trailing to the leading edge, y normal; its
               origin at the inner end of the leading edge, in the body's frame
    polar      coefficients over the angle of attack in place of the law above, the upper side along y; None for none
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
        middle = np.array([self.length / 2.0, 0.0, -self.pressure * self.chord])
        place: Array = self.placement.position + self.placement.rotation @ middle
        return place

    def added_inertia(self) -> Array:
        """(6, 6) about the body's origin, body frame: int of m_a y y^T at (xi, 0, -pressure chord)."""
        m = self.added * self.density * math.pi * self.chord**2
        z, l = -self.pressure * self.chord, self.length
        # V_y = V.y - W_x z + W_z xi: its square integrated over xi in (0, l)
        lin = np.array([0.0, 1.0, 0.0, -z, 0.0, 0.0])
        rot = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        own = m * (
            l * np.outer(lin, lin)
            + l**2 / 2.0 * (np.outer(lin, rot) + np.outer(rot, lin))
            + l**3 / 3.0 * np.outer(rot, rot)
        )
        x = adjoint(self.placement.rotation, self.placement.position)
        return x.T @ own @ x


@dataclass(frozen=True, eq=False)
class Wake(Element):
    """The end of an elongated body, where it sheds its wake (Boyer 2017, eq 44, its first sign corrected).

    The wrench is p (e1 . V_r) - 1/2 (p . eta_r) e1 with p = M_f eta_r, eta_r = (V_r, W) against the fluid, while the
    fluid passes from head to tail, V_r1 < 0; none otherwise, since it would feed energy in.
    added      (3,)  (kg m about e1, kg/m along e2, kg/m along e3) of the last section
    placement  frame e1 (towards the tail), e2, e3 with its origin at the last section's centre, in the body's frame
    """

    added: tuple[float, float, float]
    placement: Placement = field(default_factory=Placement)
    vectors: ClassVar[tuple[str, ...]] = ("added",)


@dataclass(frozen=True, eq=False)
class Tether(Element):
    """A spring and a damper between a point of the body and a point of the world.

    stiffness  (3,) N/m, damping (3,) N s/m along the world's axes
    point      (3,) m, in the body's frame;  anchor  (3,) m, in the world
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
    matrix
        (6, 6) kg, kg m, kg m2: added mass about the origin of `placement`, symmetric. Kirchhoff's law holds for it.
    displaced
        kg of displaced fluid. An accelerating fluid pushes it; `Body.displaced` is its buoyancy.
    middle
        (3,) m, frame of `placement`: where the element meets the flow and where the displaced fluid is.
    placement
        frame of `matrix` and `middle` in the body's frame
    """

    matrix: Any = field(default_factory=lambda: np.zeros((6, 6)))
    displaced: float = 0.0
    middle: Any = (0.0, 0.0, 0.0)
    placement: Placement = field(default_factory=Placement)

    def check(self, place: str) -> None:
        matrix = checked_numbers(self.matrix, (6, 6), f"{place}: addedmass.matrix")
        if np.max(np.abs(matrix - matrix.T)) > 1e-9 * np.max(np.abs(matrix), initial=0.0):
            raise ModelError(f"{place}: addedmass.matrix must be symmetric, got {matrix.tolist()}")
        checked_numbers(self.middle, (3,), f"{place}: addedmass.middle")
        if float(checked_numbers(self.displaced, (), f"{place}: addedmass.displaced")) < 0.0:
            raise ModelError(f"{place}: addedmass.displaced must be >= 0 kg, got {self.displaced}")

    @property
    def displaced_mass(self) -> float:
        return self.displaced

    @property
    def centre(self) -> Array:
        place: Array = self.placement.position + self.placement.rotation @ np.asarray(self.middle, dtype=float)
        return place

    def added_inertia(self) -> Array:
        """(6, 6) about the body's origin, body frame."""
        x = adjoint(self.placement.rotation, self.placement.position)
        out: Array = x.T @ np.asarray(self.matrix, dtype=float) @ x
        return out


def rod_resistance(length: float, along: float, across: float, placement: Placement | None = None) -> Array:
    """(6, 6) resistance D of a straight slender rod in a creeping fluid, about the body's origin: `Body.viscous`.

    along, across  N s/m2, c_t and c_n: force a metre = -(c_t V1, c_n V2, c_n V3); it does not resist rolling
    placement      frame e1 along the rod, its origin at the rod's middle; None for the body's own frame
    """
    place = Placement() if placement is None else placement
    turn = across * length**3 / 12.0
    own = np.diag([along * length, across * length, across * length, 0.0, turn, turn])
    x = adjoint(place.rotation, place.position)
    return x.T @ own @ x
