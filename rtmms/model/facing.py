"""Another frame on the base of a mechanism: for papers whose body frame is not x forward, y left, z up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Placement


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
