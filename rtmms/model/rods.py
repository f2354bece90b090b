"""Provide soft rods in a tree: rigid links with elastic joints between them, the links at both ends of half length.

A rod of n elements of length h = l / n has joints at (j - 1/2) h. Each turns about two lateral axes and the rod's own.
Springs EI / h, GJ / h have dampers beside them (Kelvin and Voigt). Half links at both ends make it of second order
(equal links: first). The order of a joint's axes reverses from joint to joint; otherwise serial turns would drift in
roll at first order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, Renamed
from rtmms.base.spatial import Array, inertia_matrix, rotation_about
from rtmms.model.elements import Element
from rtmms.model.solids import Placement, at

GAUSS = np.polynomial.legendre.leggauss(4)
BEND_Y = "bend_y"
BEND_Z = "bend_z"
TWIST = "twist"
AXES = {TWIST: (1.0, 0.0, 0.0), BEND_Y: (0.0, 1.0, 0.0), BEND_Z: (0.0, 0.0, 1.0)}
Skin = Callable[[float, float, Placement], Element]
"""Function of a link's middle X, m, its length, m, and its middle's placement in its body, that returns its element."""


@dataclass(frozen=True)
class RodSection:
    """A section of a rod: x along the rod, y and z its principal axes.

    Parameters
    ----------
    mass_kg_m : float
        kg/m.
    inertia_kg_m : tuple[float, float, float]
        Inertia of the section about x, y, z, kg m.
    bend_y_n_m2, bend_z_n_m2 : float
        EI about y and z, N m2.
    twist_n_m2 : float
        GJ, N m2.
    stretch_n, shear_y_n, shear_z_n : float, optional
        EA, and GA along y and z, N, for rods by strain modes only; None: rigid.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.RodSection(0.3, (2e-5, 1e-5, 1e-5), 0.05, 0.05, 0.04).stretch_n is None
    True
    """

    mass_kg_m: float
    inertia_kg_m: tuple[float, float, float]
    bend_y_n_m2: float
    bend_z_n_m2: float
    twist_n_m2: float
    stretch_n: float | None = None
    shear_y_n: float | None = None
    shear_z_n: float | None = None


def elliptic_section(a: float, b: float, density: float, young: float, poisson: float = 0.3) -> RodSection:
    """Return the section of a homogeneous elliptic rod.

    Parameters
    ----------
    a, b : float
        Half-axes along y and z, m.
    density : float
        kg/m3.
    young : float
        Young's modulus, Pa.
    poisson : float, default 0.3
        Poisson's ratio.

    Returns
    -------
    RodSection
        Section without stretch and shear.
    """
    area = math.pi * a * b
    about_y, about_z = area * b * b / 4.0, area * a * a / 4.0
    twist = 0.5 * young / (1.0 + poisson) * math.pi * a**3 * b**3 / (a * a + b * b) if a > 0.0 and b > 0.0 else 0.0
    inertia = (density * (about_y + about_z), density * about_y, density * about_z)
    return RodSection(density * area, inertia, young * about_y, young * about_z, twist)


@dataclass(frozen=True, eq=False)
class Rod:
    """A soft rod clamped to a body of the tree.

    Its links are bodies NAME.1 ... NAME.n beyond the first half link, which belongs to the parent.

    Parameters
    ----------
    name : str
        Unique within the mechanism.
    body : str
        Name of the body that carries its root.
    length_m : float
        m.
    section : RodSection or callable
        One section, or a function X (m from the root) -> RodSection.
    elements : int, default 10
        n, number of springs along it.
    placement : Placement, optional
        Root in the body's frame: x along the rod.
    curvature : (3,) array_like or callable, default (0.0, 0.0, 0.0)
        Curvature at rest about x, y, z, rad/m, or a function of X.
    damping_s : float or callable, default 0.0
        Kelvin and Voigt's time, s: dampers are springs times this; a number or a function of X.
    freedoms : Sequence[str], default (BEND_Y, BEND_Z, TWIST)
        Some of 'bend_y', 'bend_z' and 'twist' (turns about y, z, x).
    skin : callable, optional
        Element of each link in a fluid, see `Skin`; None for none.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Rod("tail", "hull", 0.4, m.elliptic_section(0.01, 0.02, 1100.0, 1e6), elements=4).element_m
    0.1
    """

    name: str
    body: str
    length_m: float
    section: RodSection | Callable[[float], RodSection]
    elements: int = 10
    placement: Placement = field(default_factory=Placement)
    curvature: Any = (0.0, 0.0, 0.0)
    damping_s: float | Callable[[float], float] = 0.0
    freedoms: Sequence[str] = (BEND_Y, BEND_Z, TWIST)
    skin: Skin | None = None

    def at(self, x: float) -> RodSection:
        """Return the section at a place.

        Parameters
        ----------
        x : float
            Distance from the root, m.

        Returns
        -------
        RodSection
            The section.

        Raises
        ------
        ModelError
            It has no mass or no stiffness; the message has the place.
        """
        section = self.section if isinstance(self.section, RodSection) else self.section(x)
        place = f"rod '{self.name}': section at X = {x:.6g} m"
        if not isinstance(section, RodSection):
            raise ModelError(f"{place}: expected a RodSection, got {section!r}")
        if not (math.isfinite(section.mass_kg_m) and section.mass_kg_m > 0.0):
            raise ModelError(f"{place}: mass_kg_m must be > 0: a section needs an area, got {section.mass_kg_m}")
        for name in self.freedoms:
            value = getattr(section, f"{name}_n_m2")
            if not (math.isfinite(value) and value > 0.0):
                raise ModelError(f"{place}: {name}_n_m2 must be > 0, got {value}")
        if len(section.inertia_kg_m) != 3 or not all(math.isfinite(v) and v >= 0.0 for v in section.inertia_kg_m):
            raise ModelError(f"{place}: inertia_kg_m must be 3 numbers >= 0, got {section.inertia_kg_m}")
        return section

    def damping(self, x: float) -> float:
        """Return Kelvin and Voigt's time at a place.

        Parameters
        ----------
        x : float
            Distance from the root, m.

        Returns
        -------
        float
            s.

        Raises
        ------
        ModelError
            It is not >= 0.
        """
        value = self.damping_s(x) if callable(self.damping_s) else self.damping_s
        if not (math.isfinite(value) and value >= 0.0):
            raise ModelError(f"rod '{self.name}': damping_s must be >= 0 s, got {value!r} at X = {x:.6g} m")
        return float(value)

    @property
    def element_m(self) -> float:
        """Length of an element, m."""
        return self.length_m / self.elements

    def check(self) -> None:
        """Check the fields.

        Raises
        ------
        ModelError
            A field is wrong; the message names it.
        """
        place = f"rod '{self.name}'"
        for name, value in (("length_m", self.length_m), ("elements", self.elements)):
            if isinstance(value, bool) or not (math.isfinite(value) and value > 0):
                raise ModelError(f"{place}: {name} must be > 0, got {value!r}")
        if self.elements != int(self.elements):
            raise ModelError(f"{place}: elements must be a whole number, got {self.elements!r}")
        self.damping(0.0)
        if not self.freedoms or len(set(self.freedoms)) < len(self.freedoms) or not set(self.freedoms) <= set(AXES):
            raise ModelError(
                f"{place}: freedoms must be some of {', '.join(AXES)}, each once, got {tuple(self.freedoms)}"
            )

    def springs(self, j: int) -> dict[str, float]:
        """Return the springs of a joint: 1 / k = int dX / EI over the element around it.

        Parameters
        ----------
        j : int
            Joint, 1 to n.

        Returns
        -------
        dict of str to float
            Freedom to its stiffness, N m/rad.
        """
        h = self.element_m
        x = (j - 0.5) * h + 0.5 * h * GAUSS[0]
        sections = [self.at(float(v)) for v in x]
        return {
            name: 1.0 / float(sum(
                0.5 * h * w / getattr(s, f"{name}_n_m2") for w, s in zip(GAUSS[1], sections, strict=True)
            ))
            for name in self.freedoms
        }  # fmt: skip

    def inertia(self, start: float, end: float, origin: float) -> tuple[float, Array, Array]:
        """Return the mass properties of a piece, about a point of the rod.

        Parameters
        ----------
        start, end : float
            Ends of the piece, m from the root.
        origin : float
            Reference point, m from the root.

        Returns
        -------
        (float, array, array)
            Mass, kg; first moment (3,), kg m; inertia (3, 3), kg m2.
        """
        total, half = np.zeros((6, 6)), 0.5 * (end - start)
        for g, w in zip(*GAUSS, strict=True):
            x = 0.5 * (start + end) + half * float(g)
            s, arm = self.at(x), x - origin
            turn = np.array(s.inertia_kg_m) + s.mass_kg_m * arm * arm * np.array([0.0, 1.0, 1.0])
            moment = np.array([s.mass_kg_m * arm, 0.0, 0.0])
            total += half * float(w) * inertia_matrix(s.mass_kg_m, moment, np.diag(turn))
        return float(total[0, 0]), np.array([total[5, 1], 0.0, 0.0]), total[3:, 3:]

    def pieces(self) -> list[tuple[float, float, float]]:
        """Return the n + 1 links.

        Returns
        -------
        list of (float, float, float)
            Start, end, and origin of the body's frame, m along the rod.
        """
        h, n = self.element_m, self.elements
        cuts = [0.0, *((j - 0.5) * h for j in range(1, n + 1)), self.length_m]
        return [(cuts[j], cuts[j + 1], cuts[j]) for j in range(n + 1)]

    rest = Renamed("rest_rotation")

    def rest_rotation(self, j: int) -> Array:
        """Return the rotation of a joint without stress.

        Parameters
        ----------
        j : int
            Joint, 1 to n.

        Returns
        -------
        (3, 3) array
            Child to parent.

        Raises
        ------
        ModelError
            The curvature is no vector of three finite numbers.
        """
        x = (j - 0.5) * self.element_m
        bend = np.asarray(self.curvature(x) if callable(self.curvature) else self.curvature, dtype=float)
        if bend.shape != (3,) or not np.all(np.isfinite(bend)):
            raise ModelError(f"rod '{self.name}': curvature at X = {x:.6g} m must be 3 finite numbers, got {bend}")
        size = float(np.linalg.norm(bend))
        return rotation_about(bend / size, size * self.element_m) if size > 0.0 else np.eye(3)

    def tip(self) -> tuple[str, Placement]:
        """Return the body at the rod's end.

        Returns
        -------
        (str, Placement)
            Its name, and the rod's end in its frame.
        """
        return f"{self.name}.{self.elements}", at(0.5 * self.element_m)

    def order(self, j: int) -> list[str]:
        """Return the freedoms of a joint from parent to child.

        Parameters
        ----------
        j : int
            Joint, 1 to n.

        Returns
        -------
        list[str]
            Reversed for even joints.
        """
        names = [name for name in (BEND_Y, BEND_Z, TWIST) if name in self.freedoms]
        return names if j % 2 else names[::-1]
