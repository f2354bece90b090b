"""A robot of your own from bodies, joints and water: three links that a wave runs along.

python examples/13_own_robot.py
"""

from __future__ import annotations

from math import pi, sin

import numpy as np

import rtmms
from rtmms import model as m

WATER = 1000.0


def link(name: str, length: float) -> m.Body:
    """Return a flat cylinder behind its joint, as heavy as the water it displaces, with drag and added mass."""
    along = m.at(x=-0.5 * length, roll=0.5 * pi, yaw=0.5 * pi)  # its axis along x
    solid = m.EllipticCylinder(0.02, 0.04, length, WATER, along)
    strip = m.elliptic_strip(0.02, 0.04, length, WATER, m.at(x=-0.5 * length), drag=(0.02, 1.2, 1.2))
    return m.Body(name, solids=[solid], elements=[strip], fluid_density=WATER)


def robot(dt: float = 2e-3) -> rtmms.TreePlant:
    """Also `rtmms run examples/13_own_robot.py:robot`."""
    names = ("head", "middle", "tail")
    joints = [m.Joint(f"j{k}", names[k], names[k + 1], placement=m.at(x=-0.2), axis=(0, 0, 1)) for k in range(2)]
    tree = rtmms.Mechanism("swimmer", [link(name, 0.2) for name in names], joints)
    bends = [rtmms.model.JointMotion(f"j{k}", lower=-1, upper=1, bandwidth=30.0) for k in range(2)]
    return rtmms.TreePlant(tree, dt=dt, actuators=bends)


def main(seconds: float = 6.0) -> dict[str, float]:
    """Bend it; returns how far it swam."""
    plant = robot()
    for k in range(round(seconds / plant.dt)):
        phase = 2.0 * pi * k * plant.dt
        plant.step(np.array([0.6 * sin(phase), 0.6 * sin(phase - 1.2)]))  # from head to tail
    outputs = plant.observe()
    route, energy = float(np.linalg.norm(outputs["position"])), float(outputs["work"])
    print(f"{route:.3f} m in {seconds:g} s, {energy:.2f} J from its motors")
    return {"way": route, "work": energy}


if __name__ == "__main__":
    main()
