"""Convert `Mechanism.rods` to bodies and joints, the first step of `rtmms.compile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.rods import AXES, Rod
from rtmms.model.solids import Placement, at


def with_links(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with its rods as links.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.

    Returns
    -------
    Mechanism
        The same object where it has no rods.

    Raises
    ------
    ModelError
        A rod is wrong; the message names the rod and the place.
    """
    if not mechanism.rods:
        return mechanism
    where = f"mechanism '{mechanism.name}'"
    bodies, joints, known = list(mechanism.bodies), list(mechanism.joints), {b.name for b in mechanism.bodies}
    for k, rod in enumerate(mechanism.rods):
        if not isinstance(rod, Rod):
            raise ModelError(f"{where}: rods[{k}]: expected a Rod, got {rod!r}")
        rod.check()
        if rod.body not in known:
            raise ModelError(
                f"{where}: rod '{rod.name}': body '{rod.body}' is not a body; known: {', '.join(sorted(known))}"
            )
        more, hinges = links_of(rod)
        bodies += more
        joints += hinges
        known |= {body.name for body in more}
    return replace(mechanism, bodies=bodies, joints=joints, rods=())


def links_of(rod: Rod) -> tuple[list[Body], list[Joint]]:
    """Return the bodies and joints of a rod, from root to tip.

    Parameters
    ----------
    rod : Rod
        The rod.

    Returns
    -------
    (list of Body, list of Joint)
        NAME.root on the parent, then joints NAME.j.FREEDOM and link NAME.j of each element.
    """
    pieces = rod.pieces()
    bodies = [_link(rod, f"{rod.name}.root", pieces[0])]
    joints = [Joint(f"{rod.name}.clamp", rod.body, f"{rod.name}.root", "fixed", rod.placement)]
    parent, arm = f"{rod.name}.root", 0.5 * rod.element_m
    for j in range(1, rod.elements + 1):
        springs, order, slow = rod.springs(j), rod.order(j), rod.damping((j - 0.5) * rod.element_m)
        place = at(arm) @ Placement(rod.rest_rotation(j))
        for i, freedom in enumerate(order):
            last = i == len(order) - 1
            child = f"{rod.name}.{j}" if last else f"{rod.name}.{j}.{freedom}"
            k = springs[freedom]
            joints.append(Joint(
                f"{rod.name}.{j}.{freedom}", parent, child, placement=place, axis=AXES[freedom],
                stiffness=k, damping=slow * k,
            ))  # fmt: skip
            bodies.append(_link(rod, child, pieces[j]) if last else Body(child))
            parent, place = child, Placement()
        arm = rod.element_m
    return bodies, joints


def _link(rod: Rod, name: str, piece: tuple[float, float, float]) -> Body:
    start, end, origin = piece
    mass, moment, inertia = rod.inertia(start, end, origin)
    middle, length = 0.5 * (start + end), end - start
    skins: Sequence[Any] = () if rod.skin is None else (rod.skin(middle, length, at(middle - origin)),)
    return Body(name, mass, moment, inertia, elements=skins)
