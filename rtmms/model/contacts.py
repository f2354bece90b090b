"""What touches the ground: axles, rolling wheels and planes, as elements of a mechanism (Boyer 2015, section 5).

Each is one or more rows e . eta_b + gain qd_w = 0: a velocity of a body that vanishes, e constant in the body's frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rtmms.model.solids import Placement


@dataclass(frozen=True, eq=False)
class Axle:
    """A passive axle: its wheels roll along x of its frame and do not slip along y.

    body       that carries it;  placement  its frame in the body's: origin between the wheels
    one_sided  the wheels hold only against slip towards -y, and let go towards +y: a runner that grips one way
    """

    body: str
    placement: Placement = field(default_factory=Placement)
    one_sided: bool = False
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Wheel:
    """A wheel that rolls on the ground without slip. It turns about a revolute joint; the joint's parent carries it.

    joint    the wheel's own; its axis is level with the ground
    radius   m
    normal   (3,) away from the ground, in the frame of the joint's parent
    lateral  whether it holds along its axle as well
    """

    joint: str
    radius: float
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    lateral: bool = True
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Plane:
    """A body that stays in a plane: no velocity along z of its frame, none of turning about x and y."""

    body: str
    placement: Placement = field(default_factory=Placement)
    name: str | None = None


Contact = Axle | Wheel | Plane
"""An element of `Mechanism.contacts`."""
