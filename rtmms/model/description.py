"""Provide the description of a mechanism, data that a user writes; `rtmms.compile` checks it."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError, renamed_fields
from rtmms.base.spatial import Array, rotation_x, rotation_z, skew
from rtmms.model.contacts import Contact, Marker
from rtmms.model.elements import Element
from rtmms.model.rods import Rod
from rtmms.model.solids import Placement, Solid

# How viewers draw a body, where that is not its solids: solids and meshes that are no part of the dynamics.


Indices = npt.NDArray[np.int64]

KINDS = ("ellipsoid", "box", "cylinder", "mesh")
FINE = 32767
"""Number of steps from the middle of a mesh to its side, for its quantised points."""
MAX_DRAWN_POINTS = 900
"""Largest number of points of all meshes of a robot together, because a welcome message contains them."""
MIN_DRAWN_POINTS = 24


@dataclass(frozen=True, eq=False)
class Drawing:
    """A part of a body's appearance.

    Parameters
    ----------
    kind : str
        'ellipsoid', 'box', 'cylinder' (along z) or 'mesh'.
    placement : Placement
        Its middle in the body's frame.
    size : tuple[float, float, float]
        Full size along its own axes, m.
    vertices : (n, 3) array, optional
        Points of a mesh about its middle, m.
    triangles : (k, 3) array of int64, optional
        Indices of `vertices`, counter-clockwise from outside.
    colour : tuple[int, ...], default ()
        Red, green, blue, 0 to 255; () for the viewer's choice.
    """

    kind: str
    placement: Placement
    size: tuple[float, float, float]
    vertices: Array = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: Indices = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    colour: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ModelError where the kind is unknown or a mesh has no triangles of its vertices."""
        if self.kind not in KINDS:
            raise ModelError(f"drawing: kind must be one of {', '.join(KINDS)}, got '{self.kind}'")
        if self.kind == "mesh" and (not len(self.triangles) or int(np.max(self.triangles)) >= len(self.vertices)):
            raise ModelError(
                f"drawing: mesh: expected triangles with indices below {len(self.vertices)}, the "
                f"number of its vertices, got {len(self.triangles)} triangles with indices up to "
                f"{int(np.max(self.triangles, initial=-1))}"
            )

    def as_data(self) -> dict[str, Any]:
        """Return the points and triangles of a mesh, as a shape (rtmms.plant.PlantDescription) has them.

        Returns
        -------
        dict of str to str
            Points as whole numbers of 16 bits, in steps of half the size over FINE, and triangles of 16-bit indices.
            Both are little-endian in base64. Empty for other kinds.
        """
        if self.kind != "mesh":
            return {}
        half = 0.5 * np.maximum(np.array(self.size), 1e-9)
        steps = np.round(np.clip(self.vertices / half, -1.0, 1.0) * FINE).astype("<i2")
        return {
            "points": b64encode(steps.tobytes()).decode("ascii"),
            "triangles": b64encode(np.asarray(self.triangles).astype("<u2").tobytes()).decode("ascii"),
        }


def mesh(vertices: Array, triangles: Indices, placement: Placement, colour: tuple[int, ...] = (),
         max_points: int = MAX_DRAWN_POINTS) -> Drawing | None:  # fmt: skip
    """Return the drawing of a file's mesh about the middle of its box, with a limited number of points.

    Parameters
    ----------
    vertices : (n, 3) array
        m, in the frame of `placement`.
    triangles : (k, 3) array of int64
        Indices of vertices.
    placement : Placement
        Frame of the mesh in the body's frame.
    colour : tuple[int, ...], default ()
        Red, green, blue, 0 to 255; () for the viewer's choice.
    max_points : int, default MAX_DRAWN_POINTS
        Largest number of points.

    Returns
    -------
    Drawing or None
        None where no triangle remains.
    """
    points, faces = simplify_mesh(np.asarray(vertices, dtype=float), np.asarray(triangles, dtype=np.int64), max_points)
    if not len(faces):
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = 0.5 * (low + high), np.maximum(high - low, 1e-9)
    place = placement @ Placement(np.eye(3), middle)
    return Drawing("mesh", place, (float(size[0]), float(size[1]), float(size[2])), points - middle, faces, colour)


def simplify_mesh(vertices: Array, triangles: Indices, maximum: int) -> tuple[Array, Indices]:
    """Return a mesh with a limited number of points.

    The points within a cell of a grid become their mean, and triangles without a surface are removed.

    Parameters
    ----------
    vertices : (n, 3) array
        m.
    triangles : (k, 3) array of int64
        Indices of vertices.
    maximum : int
        Largest number of points, at least MIN_DRAWN_POINTS.

    Returns
    -------
    (array, array)
        Points (p, 3), m, and triangles (f, 3).
    """
    maximum = max(maximum, MIN_DRAWN_POINTS)
    low, span = vertices.min(axis=0), float(np.max(np.ptp(vertices, axis=0), initial=1e-9))
    cells, least, largest = 512.0, 1.0, 4096.0
    numbers = _cells(vertices, low, span / cells)
    for _ in range(24):
        numbers = _cells(vertices, low, span / cells)
        if numbers.max() + 1 > maximum:
            largest = cells
        else:
            least = cells
        cells = (least * largest) ** 0.5
    numbers = _cells(vertices, low, span / least)
    count = int(numbers.max()) + 1
    points = np.zeros((count, 3))
    np.add.at(points, numbers, vertices)
    points /= np.bincount(numbers, minlength=count)[:, None]
    faces = numbers[triangles]
    valid_faces = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    faces = np.unique(faces[valid_faces], axis=0)
    return points, faces


def _cells(vertices: Array, low: Array, apart: float) -> Indices:
    """Return the index of each point's cell, (n,), from 0."""
    key = np.floor((vertices - low) / apart).astype(np.int64)
    return np.asarray(np.unique(key, axis=0, return_inverse=True)[1]).ravel()


# The description of a mechanism: data that a person writes. `rtmms.compile` checks it.


JOINT_TYPES = {"revolute": 1, "prismatic": 1, "fixed": 0, "universal": 2, "spherical": 3}
BASES = ("free", "prescribed", "fixed")
DRIVES = ("torque", "motion")


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body.

    Parameters
    ----------
    name : str
        Unique within the mechanism.
    mass : float, default 0.0
        kg; 0 for a massless body.
    first_moment : (3,) array_like, default (0.0, 0.0, 0.0)
        Mass times the centre of mass, kg m, body frame.
    inertia : (3, 3) array_like, optional
        About the body's origin, kg m2, body frame.
    solids : Sequence[Solid], default ()
        Shapes whose inertias are added to the above.
    added : (6, 6) array_like, optional
        Further inertia about the body's origin that gravity does not act on: added mass of a fluid.
    fluid_density : float, default 0.0
        Density of the fluid that the solids displace, kg/m3, for buoyancy; 0 for none.
    displaced : float, default 0.0
        Mass of fluid displaced beside the solids, for buoyancy, kg.
    displaced_moment : (3,) array_like, default (0.0, 0.0, 0.0)
        First moment of `displaced`, kg m.
    elements : Sequence[Element], default ()
        Elements that a fluid acts on, such as strips and blades; their added mass is added to `added`.
    viscous : (6, 6) array_like, optional
        Resistance D of a creeping fluid about the body's origin: its wrench is -D eta. It counts for the Stokes
        connection (rtmms.locomotion), not in a plant's dynamics. See `rod_resistance`.
    modal : Modal, optional
        Bending and twist about this frame, the floating frame; None for a rigid body. The fields above are then its
        rigid part.
    drawings : Sequence[Drawing], default ()
        Appearance in viewers, instead of its solids, blades or inertia.

    Examples
    --------
    >>> from rtmms import model as m
    >>> hull = m.Body("hull", solids=[m.Box(0.4, 0.1, 0.1, 900.0)], fluid_density=1000.0)
    """

    name: str
    mass: float = 0.0
    first_moment: Any = (0.0, 0.0, 0.0)
    inertia: Any = field(default_factory=lambda: np.zeros((3, 3)))
    solids: Sequence[Solid] = ()
    added: Any = None
    fluid_density: float = 0.0
    displaced: float = 0.0
    displaced_moment: Any = (0.0, 0.0, 0.0)
    elements: Sequence[Element] = ()
    viscous: Any = None
    modal: Modal | None = None
    drawings: Sequence[Drawing] = ()

    @classmethod
    def about_centre(cls, name: str, mass: float, centre: Any, inertia: Any, **more: Any) -> Body:
        """Return a body from its centre of mass and the inertia about it.

        Parameters
        ----------
        name : str
            Unique within the mechanism.
        mass : float
            kg.
        centre : (3,) array_like
            Centre of mass, m, body frame.
        inertia : (3, 3) array_like
            About the centre of mass, kg m2, in the body's axes.
        **more : Any
            Further fields of `Body`.

        Returns
        -------
        Body
            The body, with first moment and inertia about its origin.

        Examples
        --------
        >>> from rtmms import model as m
        >>> float(m.Body.about_centre("arm", 2.0, (0.5, 0, 0), [[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]).inertia[2, 2])
        0.6
        """
        c = np.asarray(centre, dtype=float)
        return cls(name, mass, mass * c, np.asarray(inertia, dtype=float) - mass * skew(c) @ skew(c), **more)


@dataclass(frozen=True, eq=False)
class Section:
    """A rigid piece of a modal body that moves with the body's shape; joints may hang from it by its name.

    Parameters
    ----------
    body : Body
        Mass of the section and elements on it, in the section's own frame; massless for a place alone.
    placement : Placement
        Frame of the undeformed section in the floating frame.
    shape : (modes, 6) array_like
        Translation (m) and rotation vector (rad) in the floating frame's axes, for a unit of each modal coordinate.

    Examples
    --------
    >>> from rtmms import model as m
    >>> tip = m.Section(m.Body("tip", 0.1), m.at(x=0.5), [[0, 0.01, 0, 0, 0, 0.04]])
    """

    body: Body
    placement: Placement
    shape: Any


@dataclass(frozen=True, eq=False)
class Modal:
    """Small deformation about a floating frame, by modal coordinates (Boyer 2017).

    The functions of `rtmms.model.modal` make such objects. A mode must move mass, and no mode may move it as a motion
    of the whole body does.

    Parameters
    ----------
    names : Sequence[str]
        Names of the modes; the coordinates are named BODY.NAME.
    stiffness : (modes,) array_like
        Of each modal coordinate, J per unit squared (for example N m/rad of a twist).
    sections : Sequence[Section]
        Pieces that carry the mass; rotations are exact, translations linear in the coordinates.
    damping : float or (modes,) array_like, default 0.0
        Of each modal coordinate, J s per unit squared.

    Examples
    --------
    >>> from rtmms import model as m
    >>> tip = m.Section(m.Body("tip", 0.1), m.at(x=0.5), [[0, 0.01, 0, 0, 0, 0.04]])
    >>> m.Modal(["bend"], [2.0], [tip]).damping
    0.0
    """

    names: Sequence[str]
    stiffness: Any
    sections: Sequence[Section]
    damping: Any = 0.0


@renamed_fields(rest="rest_position")
@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between two bodies.

    Parameters
    ----------
    name : str
        Unique within the mechanism.
    parent, child : str
        Names of the bodies.
    type : str, default 'revolute'
        'revolute', 'prismatic', 'fixed'; 'universal' and 'spherical' are 2 and 3 revolutes in series.
    placement : Placement, optional
        The child's frame in the parent's frame, with the joint at 0.
    axis : (3,) array_like, optional
        In the child's frame, of any length. Universal and spherical joints have 2 or 3 of them as rows, from parent to
        child (default x y, and z y x).
    stiffness : float, default 0.0
        Of each axis, N m/rad; N/m for a prismatic joint.
    rest_position : float, default 0.0
        Position without spring torque, rad or m.
    damping : float, default 0.0
        N m s/rad or N s/m.
    coulomb : float, default 0.0
        Coulomb friction, N m or N.
    rotor : float, default 0.0
        Inertia of the rotor, kg m2 or kg.
    drive : str, default 'torque'
        'torque': the motion follows from the torque. 'motion': the motion is prescribed and the torque follows.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Joint("neck", "hull", "head", "universal").axes().shape
    (2, 3)
    """

    name: str
    parent: str
    child: str
    type: str = "revolute"
    placement: Placement = field(default_factory=Placement)
    axis: Any = None
    stiffness: float = 0.0
    rest_position: float = 0.0
    damping: float = 0.0
    coulomb: float = 0.0
    rotor: float = 0.0
    drive: str = "torque"

    def axes(self) -> Array:
        """Return the axes in the child's frame at 0, not yet normalised.

        Returns
        -------
        (freedom, 3) array
            One row for each freedom, from parent to child.
        """
        if self.axis is not None:
            return np.atleast_2d(np.asarray(self.axis, dtype=float))
        x, y, z = np.eye(3)
        default = {"universal": [x, y], "spherical": [z, y, x], "fixed": []}.get(self.type, [z])
        return np.array(default).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A tree of bodies.

    Parameters
    ----------
    name : str
        Name of the robot.
    bodies : Sequence[Body]
        In any order; exactly one is no joint's child: the base.
    joints : Sequence[Joint], default ()
        In the order of their coordinates; the compiler still puts parents before their children.
    base : str, default 'free'
        'free' (its acceleration is computed), 'prescribed' (its acceleration is given) or 'fixed'.
    gravity : (3,) array_like, default (0.0, 0.0, -9.81)
        m/s2, world (z up).
    contacts : Sequence[Contact], default ()
        Axles, wheels and planes, of a free base only; floors.
    rods : Sequence[Rod], default ()
        Soft rods on its bodies, whose links become bodies and joints after those above.
    elements : Sequence[Any], default ()
        Elements that name their body: DragArea, LinearDrag, SkinFriction, DragCurve.
    markers : Sequence[Marker], default ()
        Points of bodies whose positions are outputs.

    Examples
    --------
    >>> from rtmms import model as m
    >>> ball = m.Mechanism("ball", [m.Body("ball", solids=[m.Ellipsoid(0.1, 0.1, 0.1, 500.0)])])
    """

    name: str
    bodies: Sequence[Body]
    joints: Sequence[Joint] = ()
    base: str = "free"
    gravity: Any = (0.0, 0.0, -9.81)
    contacts: Sequence[Contact] = ()
    rods: Sequence[Rod] = ()
    elements: Sequence[Any] = ()
    markers: Sequence[Marker] = ()


def displaced_density(mechanism: Any) -> float | None:
    """Return the density of the densest fluid that a mechanism's bodies displace or its elements are in.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism; other objects have no fluid.

    Returns
    -------
    float or None
        kg/m3; None where there is none.
    """
    bodies = mechanism.bodies if isinstance(mechanism, Mechanism) else ()
    densities = [float(body.fluid_density) for body in bodies]
    densities += [float(getattr(element, "density", 0.0)) for body in bodies for element in body.elements]
    named = mechanism.elements if isinstance(mechanism, Mechanism) else ()
    densities += [float(getattr(element, "density", 0.0)) for element in named]
    return max(densities, default=0.0) or None


def khalil_kleinfinger(alpha: float, d: float, theta: float, r: float) -> Placement:
    """Return the placement of frame j in frame j - 1 by Khalil and Kleinfinger's parameters, with the joint at theta.

    Parameters
    ----------
    alpha : float
        Angle from z_{j-1} to z_j about x_{j-1}, rad.
    d : float
        Distance from z_{j-1} to z_j along x_{j-1}, m.
    theta : float
        Angle from x_{j-1} to x_j about z_j, rad.
    r : float
        Distance from x_{j-1} to x_j along z_j, m.

    Returns
    -------
    Placement
        Frame j in frame j - 1.

    Notes
    -----
    Khalil 2007, eq 2.
    """
    position = np.array([d, -r * math.sin(alpha), r * math.cos(alpha)])
    return Placement(rotation_x(alpha) @ rotation_z(theta), position)


def facing(mechanism: Mechanism, axes: Any, name: str = "body") -> Mechanism:
    """Return the same mechanism on a new massless base that carries the old base at its own origin.

    Joints, their names and their order remain.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    axes : (3, 3) array_like
        Columns are forward, left and up in the old base's frame.
    name : str, default 'body'
        Name of the new base.

    Returns
    -------
    Mechanism
        A copy with one more body and one more fixed joint.

    Raises
    ------
    ModelError
        `axes` is no rotation.
    """
    children = {joint.child for joint in mechanism.joints}
    base = next((body.name for body in mechanism.bodies if body.name not in children), "")
    turned = Placement(np.asarray(axes, dtype=float).T)
    carried = Joint(f"{name}.{base}", name, base, type="fixed", placement=turned)
    return replace(mechanism, bodies=[Body(name), *mechanism.bodies], joints=[carried, *mechanism.joints])
