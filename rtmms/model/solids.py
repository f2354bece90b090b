"""Provide homogeneous solids: mass, centre and inertia from a shape and a density; and placements of frames."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from rtmms.base.errors import ModelError, Renamed
from rtmms.base.spatial import Array, inertia_matrix, rotation_x, rotation_y, rotation_z, skew


@dataclass(frozen=True, eq=False)
class Placement:
    """Pose of a frame in another frame.

    Parameters
    ----------
    rotation : (3, 3) array, optional
        Columns are the frame's axes.
    position : (3,) array, optional
        Origin, m.

    Examples
    --------
    >>> from rtmms import model as m
    >>> (m.at(x=1.0) @ m.at(y=2.0)).position
    array([1., 2., 0.])
    """

    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        """Copy both fields to float64 arrays; ModelError where they are no rotation and position."""
        rotation, position = np.array(self.rotation, dtype=float), np.array(self.position, dtype=float)
        if rotation.shape != (3, 3) or position.shape != (3,):
            got = f"{rotation.shape} and {position.shape}"
            raise ModelError(f"placement: expected rotation (3, 3) and position (3,), got {got}")
        if not np.all(np.isfinite(position)):
            raise ModelError(f"placement: position must be finite, got {position.tolist()}")
        if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-9) or np.linalg.det(rotation) < 0.0:
            raise ModelError(f"placement: rotation must be a right-handed orthonormal matrix, got {rotation.tolist()}")
        object.__setattr__(self, "rotation", rotation)
        object.__setattr__(self, "position", position)

    def __matmul__(self, other: Placement) -> Placement:
        """Return the placement of `other`, given in this frame, in the outer frame of this placement."""
        return Placement(self.rotation @ other.rotation, self.position + self.rotation @ other.position)


def at(
    x: float = 0.0, y: float = 0.0, z: float = 0.0, *, roll: float = 0.0, pitch: float = 0.0, yaw: float = 0.0
) -> Placement:  # fmt: skip
    """Return a placement by coordinates and angles about fixed axes, as `rpy` of a URDF.

    Parameters
    ----------
    x, y, z : float, default 0.0
        m.
    roll, pitch, yaw : float, default 0.0
        Turns about the fixed axes x, y and z, in this order, rad: rotation Rz(yaw) Ry(pitch) Rx(roll).

    Returns
    -------
    Placement
        The placement.

    Raises
    ------
    ModelError
        A number is not finite.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.at(x=0.1, z=-0.2).position
    array([ 0.1,  0. , -0.2])
    """
    position = np.array([x, y, z], dtype=float)
    if not (math.isfinite(roll) and math.isfinite(pitch) and math.isfinite(yaw)):
        raise ModelError(f"at: roll, pitch and yaw must be finite, got {roll}, {pitch}, {yaw}")
    if roll == pitch == yaw == 0.0:
        return Placement(np.eye(3), position)
    return Placement(rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll), position)


@runtime_checkable
class Solid(Protocol):
    """A homogeneous shape at a place of a body."""

    @property
    def density(self) -> float:
        """Density, kg/m3."""

    @property
    def placement(self) -> Placement:
        """The solid's axes in the body's frame."""

    def mass_properties(self) -> tuple[float, Array, Array]:
        """Return the mass properties in the solid's own axes.

        Returns
        -------
        (float, array, array)
            Mass, kg; centre of mass (3,), m; inertia (3, 3) about it, kg m2.
        """


def inertia_of(solid: Solid, place: str = "solid") -> Array:
    """Return the inertia of a placed solid in its body's frame.

    Parameters
    ----------
    solid : Solid
        The solid.
    place : str, default 'solid'
        Name of the solid, for the message.

    Returns
    -------
    (6, 6) array
        kg, kg m, kg m2, about the body's origin.

    Raises
    ------
    ModelError
        A size or the density is not > 0.
    """
    for name, value in vars(solid).items():
        if isinstance(value, (int, float)) and not (math.isfinite(value) and value > 0.0):
            raise ModelError(f"{place}: {type(solid).__name__}.{name} must be > 0, got {value}")
    mass, centre, about_centre = solid.mass_properties()
    r = solid.placement.rotation
    c = solid.placement.position + r @ centre
    # Huygens: I_O = R I_G R^T - m c^ c^
    return inertia_matrix(mass, mass * c, r @ about_centre @ r.T - mass * skew(c) @ skew(c))


@dataclass(frozen=True)
class Box:
    """A homogeneous box about the origin of its placement.

    Parameters
    ----------
    x, y, z : float
        Full lengths, m.
    density : float
        kg/m3.
    placement : Placement, optional
        The solid's axes in the body's frame.

    Examples
    --------
    >>> from rtmms import model as m
    >>> round(m.Box(0.1, 0.2, 0.3, 1000.0).mass_properties()[0], 9)
    6.0
    """

    x: float
    y: float
    z: float
    density: float
    placement: Placement = field(default_factory=Placement)

    own = Renamed("mass_properties")

    def mass_properties(self) -> tuple[float, Array, Array]:
        """Return the mass properties in the solid's own axes.

        Returns
        -------
        (float, array, array)
            Mass, kg; centre of mass (3,), m; inertia (3, 3) about it, kg m2.
        """
        m = self.density * self.x * self.y * self.z
        sq = np.array([self.x, self.y, self.z]) ** 2 / 12.0
        return m, np.zeros(3), m * np.diag([sq[1] + sq[2], sq[0] + sq[2], sq[0] + sq[1]])


@dataclass(frozen=True)
class EllipticCylinder:
    """A homogeneous elliptic cylinder about the origin of its placement.

    Parameters
    ----------
    a, b : float
        Half-axes along its own x and y, m.
    length : float
        Along its own z, m.
    density : float
        kg/m3.
    placement : Placement, optional
        The solid's axes in the body's frame.

    Examples
    --------
    >>> from rtmms import model as m
    >>> round(m.EllipticCylinder(0.1, 0.2, 0.3, 1000.0).mass_properties()[0], 3)
    18.85
    """

    a: float
    b: float
    length: float
    density: float
    placement: Placement = field(default_factory=Placement)

    own = Renamed("mass_properties")

    def mass_properties(self) -> tuple[float, Array, Array]:
        """Return the mass properties in the solid's own axes.

        Returns
        -------
        (float, array, array)
            Mass, kg; centre of mass (3,), m; inertia (3, 3) about it, kg m2.
        """
        m = self.density * math.pi * self.a * self.b * self.length
        a2, b2, l2 = self.a**2 / 4.0, self.b**2 / 4.0, self.length**2 / 12.0
        return m, np.zeros(3), m * np.diag([b2 + l2, a2 + l2, a2 + b2])


@dataclass(frozen=True)
class Cylinder:
    """A homogeneous cylinder about the origin of its placement.

    Parameters
    ----------
    radius : float
        m.
    length : float
        Along its own z, m.
    density : float
        kg/m3.
    placement : Placement, optional
        The solid's axes in the body's frame.

    Examples
    --------
    >>> from rtmms import model as m
    >>> round(m.Cylinder(0.1, 0.3, 1000.0).mass_properties()[0], 3)
    9.425
    """

    radius: float
    length: float
    density: float
    placement: Placement = field(default_factory=Placement)

    own = Renamed("mass_properties")

    def mass_properties(self) -> tuple[float, Array, Array]:
        """Return the mass properties in the solid's own axes.

        Returns
        -------
        (float, array, array)
            Mass, kg; centre of mass (3,), m; inertia (3, 3) about it, kg m2.
        """
        return EllipticCylinder(self.radius, self.radius, self.length, self.density).mass_properties()


@dataclass(frozen=True)
class Ellipsoid:
    """A homogeneous ellipsoid about the origin of its placement.

    Parameters
    ----------
    a, b, c : float
        Half-axes along its own x, y, z, m.
    density : float
        kg/m3.
    placement : Placement, optional
        The solid's axes in the body's frame.

    Examples
    --------
    >>> from rtmms import model as m
    >>> round(m.Ellipsoid(0.1, 0.1, 0.1, 1000.0).mass_properties()[0], 3)
    4.189
    """

    a: float
    b: float
    c: float
    density: float
    placement: Placement = field(default_factory=Placement)

    own = Renamed("mass_properties")

    def mass_properties(self) -> tuple[float, Array, Array]:
        """Return the mass properties in the solid's own axes.

        Returns
        -------
        (float, array, array)
            Mass, kg; centre of mass (3,), m; inertia (3, 3) about it, kg m2.
        """
        m = self.density * 4.0 / 3.0 * math.pi * self.a * self.b * self.c
        sq = np.array([self.a, self.b, self.c]) ** 2 / 5.0
        return m, np.zeros(3), m * np.diag([sq[1] + sq[2], sq[0] + sq[2], sq[0] + sq[1]])


@dataclass(frozen=True)
class HalfEllipsoid:
    """The half with own z > 0 of a homogeneous ellipsoid; the origin is the centre of its flat face.

    Parameters
    ----------
    a, b, c : float
        Half-axes of the ellipsoid along its own x, y, z, m.
    density : float
        kg/m3.
    placement : Placement, optional
        The solid's axes in the body's frame.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.HalfEllipsoid(0.1, 0.1, 0.1, 1000.0).mass_properties()[1]
    array([0.    , 0.    , 0.0375])
    """

    a: float
    b: float
    c: float
    density: float
    placement: Placement = field(default_factory=Placement)

    own = Renamed("mass_properties")

    def mass_properties(self) -> tuple[float, Array, Array]:
        """Return the mass properties in the solid's own axes.

        Returns
        -------
        (float, array, array)
            Mass, kg; centre of mass (3,), m; inertia (3, 3) about it, kg m2.
        """
        m, _, about_face = Ellipsoid(self.a, self.b, self.c, self.density / 2.0).mass_properties()
        z = 3.0 * self.c / 8.0
        return m, np.array([0.0, 0.0, z]), about_face - m * z * z * np.diag([1.0, 1.0, 0.0])
