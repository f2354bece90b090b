"""Provide contacts of a mechanism (axles, rolling wheels, planes, floors) and markers on its bodies.

An axle, a wheel or a plane is one or more rows e . eta_b + gain qd_w = 0 (Boyer 2015, section 5). Each row makes a
velocity of a body vanish; e is constant in the body's frame. A floor acts by forces instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rtmms.model.solids import Placement


@dataclass(frozen=True, eq=False)
class Axle:
    """A passive axle, whose wheels roll along x of its frame and do not slip along y.

    Parameters
    ----------
    body : str
        Name of the body that carries the axle.
    placement : Placement, optional
        Frame in the body's frame; its origin is between the wheels.
    one_sided : bool, default False
        Whether the wheels resist only slip towards -y, as a runner that grips in one direction.
    name : str, optional
        Name of the contact; None: 'BODY.axle'.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Axle("rear", m.at(x=-0.1)).placement.position
    array([-0.1,  0. ,  0. ])
    """

    body: str
    placement: Placement = field(default_factory=Placement)
    one_sided: bool = False
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Wheel:
    """A wheel that rolls on the ground without slip.

    It turns about a revolute joint, whose parent carries it.

    Parameters
    ----------
    joint : str
        The wheel's own joint; its axis is parallel to the ground.
    radius : float
        m.
    normal : tuple[float, float, float], default (0.0, 0.0, 1.0)
        Direction away from the ground, in the frame of the joint's parent.
    lateral : bool, default True
        Whether the wheel resists slip along its axle as well.
    name : str, optional
        Name of the contact; None: the joint's.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Wheel("left_wheel", 0.05).lateral
    True
    """

    joint: str
    radius: float
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    lateral: bool = True
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Plane:
    """A body that stays in a plane: no velocity along z of its frame, and no rate about its x and y.

    Parameters
    ----------
    body : str
        Name of the body.
    placement : Placement, optional
        Frame of the plane in the body's frame.
    name : str, optional
        Name of the contact; None: 'BODY.plane'.

    Examples
    --------
    >>> from rtmms import model as m
    >>> m.Plane("board").name is None
    True
    """

    body: str
    placement: Placement = field(default_factory=Placement)
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Floor:
    """A horizontal floor that points of a body touch, with friction; it pushes only upwards.

    Parameters
    ----------
    body : str
        Name of the body.
    points : (k, 3) array_like
        Points that may touch, such as feet or corners, m, body frame.
    height : float, default 0.0
        z of the floor, m, world.
    friction : float, default 0.6
        Coefficient of Coulomb friction.
    stiffness : float, optional
        N/m of each point; None: the whole tree on all points of its floors has 100 rad/s.
    damping : float, optional
        N s/m of each point, along and across; None: 0.7 of the critical damping.

    Notes
    -----
    The normal force is a spring and a damper that never pull. Friction is a spring to an anchor that follows where the
    point slides (rtmms.mechanism.floor). A resting body does not creep, and no energy is added. A method with steps dt
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
    name : str
        Name of the output, without a dot.
    body : str
        Name of the body.
    point : (3,) array_like
        m, body frame.
    relative_to : str, optional
        Name of the body in whose frame the output is; None: the world.

    Notes
    -----
    The output `name` is the position (3,) in m. `Mechanism.markers` lists the markers. A `camera` observes those in the
    world's frame (docs/sensors.md).

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
