"""What a robot is: a description (data), and the compiled model (flat arrays)."""

from rtmms.model.compiled import Model, State
from rtmms.model.compiler import compile
from rtmms.model.contacts import Axle, Plane, Wheel
from rtmms.model.description import Body, Joint, Mechanism, Modal, Section, khalil_kleinfinger
from rtmms.model.elements import Blade, Strip, Tether, Wake, elliptic_strip, rod_resistance
from rtmms.model.rods import Rod, RodSection, elliptic_section
from rtmms.model.solids import Box, Cylinder, Ellipsoid, EllipticCylinder, HalfEllipsoid, Placement, at
from rtmms.model.urdf import from_urdf

__all__ = [
    "Axle", "Blade", "Body", "Box", "Cylinder", "Ellipsoid", "EllipticCylinder", "HalfEllipsoid", "Joint",
    "Mechanism", "Modal", "Model", "Placement", "Plane", "Rod", "RodSection", "Section", "State", "Strip", "Tether",
    "Wake", "Wheel", "at", "compile", "elliptic_section", "elliptic_strip", "from_urdf", "khalil_kleinfinger",
    "rod_resistance",
]  # fmt: skip
