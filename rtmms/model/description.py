"""The description of a mechanism: data that a person writes. `rtmms.compile` checks it."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, rotation_x, rotation_z, skew
from rtmms.model.contacts import Contact, Marker
from rtmms.model.elements import Element
from rtmms.model.rods import Rod
from rtmms.model.solids import Placement, Solid

# How viewers draw a body, where that is not its solids: solids and meshes that are no part of the dynamics.


Indices = npt.NDArray[np.int64]

KINDS = ("ellipsoid", "box", "cylinder", "mesh")
FINE = 32767
"""Steps from the middle of a mesh to its side, of its points as given."""
MAX_DRAWN_POINTS = 900
"""Of all meshes of a robot together: a welcome carries them."""
LEAST_POINTS = 24


@dataclass(frozen=True, eq=False)
class Drawing:
    """A part of a body's look.

    kind        'ellipsoid', 'box', 'cylinder' (along z) or 'mesh';  placement  of its middle in the body's frame
    size        (3,) m, full, along its own axes
    vertices    (n, 3) m, of a mesh, about its middle;  triangles  (k, 3) indices, counter-clockwise from outside
    colour      red, green, blue, 0 to 255; () for the viewer's choice
    """

    kind: str
    placement: Placement
    size: tuple[float, float, float]
    vertices: Array = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: Indices = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    colour: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ModelError(f"drawing: kind must be one of {', '.join(KINDS)}, got '{self.kind}'")
        if self.kind == "mesh" and (not len(self.triangles) or int(np.max(self.triangles)) >= len(self.vertices)):
            raise ModelError("drawing: a mesh needs triangles of its vertices")

    def as_data(self) -> dict[str, Any]:
        """What a shape (rtmms.plant.protocol.PlantDescription) has of a mesh beside place and size: points as whole
        numbers of 16 bits, in steps of half its size over FINE; triangles as such of its points. Both little-endian,
        base64."""
        if self.kind != "mesh":
            return {}
        half = 0.5 * np.maximum(np.array(self.size), 1e-9)
        steps = np.round(np.clip(self.vertices / half, -1.0, 1.0) * FINE).astype("<i2")
        return {
            "points": b64encode(steps.tobytes()).decode("ascii"),
            "triangles": b64encode(np.asarray(self.triangles).astype("<u2").tobytes()).decode("ascii"),
        }


def mesh(vertices: Array, triangles: Indices, placement: Placement, colour: tuple[int, ...] = (),
         most: int = MAX_DRAWN_POINTS) -> Drawing | None:  # fmt: skip
    """A mesh of a file, about the middle of its box, with so many points at most; None where nothing is left of it.

    vertices   (n, 3) m, in the frame that `placement` gives;  triangles  (k, 3)
    """
    points, faces = clustered(np.asarray(vertices, dtype=float), np.asarray(triangles, dtype=np.int64), most)
    if not len(faces):
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = 0.5 * (low + high), np.maximum(high - low, 1e-9)
    place = placement @ Placement(np.eye(3), middle)
    return Drawing("mesh", place, (float(size[0]), float(size[1]), float(size[2])), points - middle, faces, colour)


def clustered(vertices: Array, triangles: Indices, most: int) -> tuple[Array, Indices]:
    """At most so many points: those within a cell of a grid become their mean, triangles without a surface go."""
    most = max(most, LEAST_POINTS)
    low, span = vertices.min(axis=0), float(np.max(np.ptp(vertices, axis=0), initial=1e-9))
    cells, least, largest = 512.0, 1.0, 4096.0
    numbers = _cells(vertices, low, span / cells)
    for _ in range(24):
        numbers = _cells(vertices, low, span / cells)
        if numbers.max() + 1 > most:
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
    kept = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    faces = np.unique(faces[kept], axis=0)
    return points, faces


def _cells(vertices: Array, low: Array, apart: float) -> Indices:
    """(n,) the number of each point's cell, from 0."""
    key = np.floor((vertices - low) / apart).astype(np.int64)
    return np.asarray(np.unique(key, axis=0, return_inverse=True)[1]).ravel()


# The description of a mechanism: data that a person writes. `rtmms.compile` checks it.


JOINT_TYPES = {"revolute": 1, "prismatic": 1, "fixed": 0, "universal": 2, "spherical": 3}
BASES = ("free", "prescribed", "fixed")
DRIVES = ("torque", "motion")


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body.

    name          unique within the mechanism
    mass          kg; 0 for a massless body
    first_moment  (3,) kg m, mass times the centre of mass, body frame
    inertia       (3, 3) kg m2 about the body's origin, body frame
    solids        shapes whose inertias are added to the above
    added         (6, 6) further inertia that gravity does not pull (added mass of a fluid), about the body's origin
    fluid_density kg/m3 of the fluid that the solids displace: buoyancy; 0 for none
    displaced     kg of fluid that it displaces besides: buoyancy of what is no solid here
    displaced_moment  (3,) kg m, first moment of the same
    elements      what a fluid acts on: strips and blades; their added mass joins `added`
    viscous       (6, 6) resistance D of a creeping fluid, about the body's origin: its wrench is -D eta. It counts for
                  the Stokes connection (rtmms.locomotion), not in a plant's dynamics. See `rod_resistance`
    drawings      how viewers draw it, in place of its solids, blades or inertia
    modal         how it bends and twists about this frame, its floating frame; None for a rigid body. What is above
                  is then its rigid part
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
        """From the centre of mass (3,) m and the inertia (3, 3) kg m2 about it, in the body's axes."""
        c = np.asarray(centre, dtype=float)
        return cls(name, mass, mass * c, np.asarray(inertia, dtype=float) - mass * skew(c) @ skew(c), **more)


@dataclass(frozen=True, eq=False)
class Section:
    """A piece of a modal body that stays rigid: it moves with the body's shape. Joints may hang from it by its name.

    body       what it weighs and what acts on it, in the section's own frame; massless for a place alone
    placement  the section's frame in the floating frame, undeformed
    shape      (modes, 6) its translation (m) and the vector of its rotation (rad), floating frame's axes, for a unit of
               each modal coordinate
    """

    body: Body
    placement: Placement
    shape: Any


@dataclass(frozen=True, eq=False)
class Modal:
    """Small deformation about a floating frame, by modal coordinates (Boyer 2017). See rtmms.model.modal for makers.

    names      of the modes; coordinates are called BODY.NAME
    stiffness, damping   (modes,) of each modal coordinate: J and J s a unit squared (N m/rad of a twist, for example)
    sections   pieces that carry its mass; rotations are exact, translations linear in the coordinates
    A mode must move mass, and no mode may move it as the whole body moves.
    """

    names: Sequence[str]
    stiffness: Any
    sections: Sequence[Section]
    damping: Any = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between two bodies.

    type       'revolute', 'prismatic', 'fixed'; 'universal' and 'spherical' stand for 2 and 3 revolutes in series
    placement  where the child's frame stands in the parent's when the joint is at 0
    axis       (3,) in the child's frame, need not be of unit length; universal and spherical take 2 or 3 of them as
               rows, in the order from parent to child (default x y, and z y x)
    stiffness, rest, damping, coulomb, rotor
               N m/rad, rad, N m s/rad, N m, kg m2 (N/m, m, N s/m, N, kg for a prismatic joint); of each axis
    drive      'torque': the motion follows from the torque; 'motion': the motion is given and the torque follows
    """

    name: str
    parent: str
    child: str
    type: str = "revolute"
    placement: Placement = field(default_factory=Placement)
    axis: Any = None
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    coulomb: float = 0.0
    rotor: float = 0.0
    drive: str = "torque"

    def axes(self) -> Array:
        """(freedom, 3) axes, in the child's frame at 0, not yet normalised."""
        if self.axis is not None:
            return np.atleast_2d(np.asarray(self.axis, dtype=float))
        x, y, z = np.eye(3)
        default = {"universal": [x, y], "spherical": [z, y, x], "fixed": []}.get(self.type, [z])
        return np.array(default).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A tree of bodies.

    name     of the robot
    bodies   in any order; exactly one is no joint's child: the base
    joints   in the order in which their coordinates are wanted (parents still come before their children)
    base     'free' (its acceleration follows), 'prescribed' (its acceleration is given) or 'fixed'
    gravity  (3,) m/s2, world frame (z up)
    contacts what touches the ground: axles, wheels, planes, of a free base only; floors
    rods     soft rods on its bodies, whose links become bodies and joints after those above
    elements what acts on a body that the element names: DragArea, LinearDrag, SkinFriction
    markers  points of bodies whose positions are outputs
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
    """kg/m3 of the densest fluid that bodies of a mechanism displace or its elements meet; None: none is given."""
    bodies = mechanism.bodies if isinstance(mechanism, Mechanism) else ()
    densities = [float(body.fluid_density) for body in bodies]
    densities += [float(getattr(element, "density", 0.0)) for body in bodies for element in body.elements]
    named = mechanism.elements if isinstance(mechanism, Mechanism) else ()
    densities += [float(getattr(element, "density", 0.0)) for element in named]
    return max(densities, default=0.0) or None


def khalil_kleinfinger(alpha: float, d: float, theta: float, r: float) -> Placement:
    """Placement of frame j in frame j - 1 by Khalil and Kleinfinger's parameters (Khalil 2007, eq 2), joint at theta.

    alpha  rad  from z_{j-1} to z_j about x_{j-1}        d  m  from z_{j-1} to z_j along x_{j-1}
    theta  rad  from x_{j-1} to x_j about z_j            r  m  from x_{j-1} to x_j along z_j
    """
    position = np.array([d, -r * math.sin(alpha), r * math.cos(alpha)])
    return Placement(rotation_x(alpha) @ rotation_z(theta), position)


def facing(mechanism: Mechanism, axes: Any, name: str = "body") -> Mechanism:
    """The same mechanism, seen from a massless base `name` that carries the old base at its own origin.

    axes  (3, 3) its columns are forward, left and up in the old base's frame
    Joints, their names and their order stay. ModelError where axes is no rotation.
    """
    children = {joint.child for joint in mechanism.joints}
    base = next((body.name for body in mechanism.bodies if body.name not in children), "")
    turned = Placement(np.asarray(axes, dtype=float).T)
    carried = Joint(f"{name}.{base}", name, base, type="fixed", placement=turned)
    return replace(mechanism, bodies=[Body(name), *mechanism.bodies], joints=[carried, *mechanism.joints])
