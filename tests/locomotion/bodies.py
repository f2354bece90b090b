"""Mechanisms for the tests of rtmms.locomotion: the robots' own, chains of rods, and one seen from other bodies."""

from __future__ import annotations

import numpy as np

from rtmms.base.spatial import rotation_x
from rtmms.model import Body, Joint, Mechanism, Placement, at, rod_resistance
from rtmms.robots import cat, fluid_swimmer, purcell, satellite

KINDS = {"purcell": "stokes", "fluid_swimmer": "hydrodynamic", "cat": "mechanical", "satellite": "mechanical"}


def robot(name: str) -> Mechanism:
    """Its description, with default parameters."""
    built = {
        "purcell": lambda: purcell.describe(purcell.Purcell()),
        "fluid_swimmer": lambda: fluid_swimmer.describe(fluid_swimmer.FluidSwimmer()),
        "cat": lambda: cat.describe(cat.Cat()), "satellite": lambda: satellite.describe(satellite.Satellite()),
    }  # fmt: skip
    return built[name]()


def rods(links: int, length: float = 0.1) -> Mechanism:
    """A chain of equal rods in a creeping fluid, seen from its head."""
    bodies = [Body("rod0", viscous=rod_resistance(length, 1.0, 2.0))]
    joints = []
    for k in range(1, links):
        place = at(0.5 * length if k == 1 else length)
        bodies.append(Body(f"rod{k}", viscous=rod_resistance(length, 1.0, 2.0, at(0.5 * length))))
        joints.append(Joint(f"bend{k}", f"rod{k - 1}", f"rod{k}", placement=place))
    return Mechanism("rods", bodies, joints)


def purcell_from_the_left() -> Mechanism:
    """The same swimmer, seen from its left rod: joints in the order left, right, of the same sense and zero."""
    rod = rod_resistance(1.0, 1.0, 2.0)
    left = Body("left", viscous=rod_resistance(1.0, 1.0, 2.0, at(-0.5)))
    middle = Body("middle", viscous=rod_resistance(1.0, 1.0, 2.0, at(0.5)))
    right = Body("right", viscous=rod_resistance(1.0, 1.0, 2.0, at(0.5)))
    assert rod.shape == (6, 6)
    # seen from the left rod its joint turns the other way: about -z
    joints = [
        Joint("left", "left", "middle", axis=(0.0, 0.0, -1.0)), Joint("right", "middle", "right", placement=at(1.0)),
    ]  # fmt: skip
    return Mechanism("purcell", [left, middle, right], joints)


def tilted(mechanism: Mechanism) -> Mechanism:
    """The same, its base's frame turned about x: no longer planar to look at."""
    turned = Placement(rotation_x(0.7).T)
    first = Joint("tilt", "frame", mechanism.bodies[0].name, type="fixed", placement=turned)
    return Mechanism(mechanism.name, [Body("frame"), *mechanism.bodies], [first, *mechanism.joints])


def loop(seed: int, size: int = 2, waves: int = 3) -> np.ndarray:
    """(size, 2 waves + 1) coefficients of a closed gait (Path.fourier)."""
    table = np.random.default_rng(seed).normal(size=(size, 2 * waves + 1))
    table[:, 1:] /= np.repeat(np.arange(1, waves + 1), 2) ** 2
    out: np.ndarray = 0.6 * table
    return out
