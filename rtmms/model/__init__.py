"""Provide the description of a robot (data that a user writes) and the compiled model (flat arrays).

A description contains actuators, so this package exports their names as well. Their effect on a tree is in
`rtmms.mechanism`, which is imported when one of these names is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmms.model.compiled import Model, State
from rtmms.model.compiler import compile_model
from rtmms.model.contacts import Axle, Floor, Marker, Plane, Wheel
from rtmms.model.description import Body, Joint, Mechanism, Modal, Section, khalil_kleinfinger
from rtmms.model.elements import Blade, Strip, Tether, Wake, elliptic_strip, rod_resistance
from rtmms.model.mesh_solid import MeshSolid, solid_from_mesh
from rtmms.model.polars import Polar
from rtmms.model.resistances import DragArea, DragCurve, LinearDrag, SkinFriction, plate_strip, plate_strips
from rtmms.model.rods import Rod, RodSection, elliptic_section
from rtmms.model.solids import Box, Cylinder, Ellipsoid, EllipticCylinder, HalfEllipsoid, Placement, at
from rtmms.model.urdf import from_urdf

if TYPE_CHECKING:
    from rtmms.mechanism.actuators import (
        BodyWrench,
        DirectedWrench,
        JointAffine,
        JointLimit,
        JointMotion,
        JointServo,
        JointSpeed,
        JointStop,
        JointTorque,
        ReactionWheel,
        Rotor,
        Thruster,
    )
    from rtmms.mechanism.tendon_paths import Tendon

__all__ = [
    "Axle", "Blade", "Body", "BodyWrench", "Box", "Cylinder", "DirectedWrench", "DragArea", "DragCurve", "Ellipsoid",
    "EllipticCylinder", "Floor",
    "HalfEllipsoid", "Joint", "JointAffine", "JointLimit", "JointMotion", "JointServo", "JointSpeed", "JointStop",
    "JointTorque", "LinearDrag", "Marker", "Mechanism", "MeshSolid", "Modal", "Model",
    "Placement", "Plane", "Polar", "ReactionWheel", "Rod", "RodSection", "Rotor", "Section", "SkinFriction", "State",
    "Strip", "Tendon", "Tether", "Thruster", "Wake", "Wheel", "at", "compile_model", "elliptic_section",
    "elliptic_strip", "from_urdf", "khalil_kleinfinger", "plate_strip", "plate_strips", "rod_resistance",
    "solid_from_mesh",
]  # fmt: skip

_ACTUATORS = frozenset({"BodyWrench", "DirectedWrench", "JointAffine", "JointLimit", "JointMotion", "JointServo",
                        "JointSpeed", "JointStop", "JointTorque", "ReactionWheel", "Rotor", "Thruster"})  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return an actuator or a tendon from `rtmms.mechanism`, imported at its first use."""
    if name in _ACTUATORS:
        from importlib import import_module

        return getattr(import_module("rtmms.mechanism.actuators"), name)
    if name == "Tendon":
        from importlib import import_module

        return import_module("rtmms.mechanism.tendon_paths").Tendon
    raise AttributeError(f"module 'rtmms.model' has no attribute '{name}'")
