"""Contacts of a mechanism: axles, rolling wheels and planes (Boyer 2015, section 5), and floors; markers on its bodies.

An axle, a wheel or a plane is one or more rows e . eta_b + gain qd_w = 0: a velocity of a body that vanishes, e
constant in the body's frame. A floor pushes by forces instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True, eq=False)
class Floor:
    """A level floor that points of a body touch, with friction: it pushes only upwards.

    Parameters
    ----------
    body
        Name of the body.
    points
        (k, 3) m, body frame: the points that may touch, such as feet or corners.
    height
        m, world z of the floor.
    friction
        Coefficient of Coulomb friction.
    stiffness
        N/m of each point; None: the whole tree on all points of its floors has 100 rad/s.
    damping
        N s/m of each point, along and across; None: 0.7 of the critical one.

    Notes
    -----
    The forces are a spring and a damper that never pull, and friction by a spring to an anchor that follows where the
    point slides (rtmms.mechanism.floor). A resting body does not creep, and no energy is made. A method with steps dt
    needs sqrt(stiffness / mass) dt < 1.

    Examples
    --------
    >>> from rtmms import model as m
    >>> feet = m.Floor("hull", [(0.1, 0, -0.05), (-0.1, 0.1, -0.05), (-0.1, -0.1, -0.05)])
    """

    body: str
    points: Any
    height: float = 0.0
    friction: float = 0.6
    stiffness: float | None = None
    damping: float | None = None


@dataclass(frozen=True, eq=False)
class Marker:
    """A point of a body whose position is an output.

    Parameters
    ----------
    name
        Name of the output, without a dot.
    body
        Name of the body.
    point
        (3,) m, body frame.
    relative_to
        Name of the body in whose frame the output is; None: the world's.

    Notes
    -----
    The output `name` is the position (3,) in m. `Mechanism.markers` lists the markers. A `camera` observes those in
    the world's frame (docs/sensors.md).

    Examples
    --------
    >>> from rtmms import model as m
    >>> nose, tip = m.Marker("nose", "hull", (0.4, 0, 0)), m.Marker("tip", "fin", (-0.1, 0, 0), relative_to="hull")
    """

    name: str
    body: str
    point: Any
    relative_to: str | None = None


Contact = Axle | Wheel | Plane | Floor
"""An element of `Mechanism.contacts`."""
