"""Mechanisms on the ground that several tests use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rtmms import model as m
from rtmms.base.spatial import quaternion_matrix
from tests.random_tree import random_tree


def chain(
    links: int = 8, drives: Sequence[str] | str = "torque", plane: bool = True, spring: float = 0.3
) -> m.Mechanism:
    """Links of 0.2 m with an axle each, behind the head, whose frame is at its front."""
    h, mass = 0.1, 0.5
    inertia = mass * (2 * h) ** 2 / 12
    bodies = [
        m.Body.about_centre(f"l{k}", mass, (-h, 0.0, 0.0), np.diag([1e-4, inertia, inertia])) for k in range(links)
    ]
    joints = [
        m.Joint(
            f"j{k}", f"l{k - 1}", f"l{k}", placement=m.at(-2 * h), rotor=1e-4, damping=0.01, stiffness=spring,
            drive=drives if isinstance(drives, str) else drives[k - 1],
        )
        for k in range(1, links)
    ]  # fmt: skip
    axles = [m.Axle(f"l{k}", m.at(-h)) for k in range(links)]
    return m.Mechanism(
        "chain", bodies, joints, gravity=(0, 0, 0), contacts=[*([m.Plane("l0")] if plane else []), *axles]
    )


def wheeled_tree(n: int, seed: int) -> m.Mechanism:
    """A random spatial tree with axles on some bodies, a plane on one and wheels on two of its joints."""
    random = np.random.default_rng(seed)
    tree = random_tree(n, seed)
    bodies, joints, contacts = list(tree.bodies), list(tree.joints), []
    names = [body.name for body in bodies]
    for k in random.permutation(len(names))[:2]:
        contacts.append(m.Axle(names[k], m.at(*random.normal(size=3))))
    for k, carrier in enumerate(random.choice(names, 2)):
        bodies.append(m.Body(f"rim{k}", 0.2, inertia=np.diag([2e-3, 2e-3, 3e-3])))
        joints.append(
            m.Joint(f"w{k}", carrier, f"rim{k}", placement=m.at(*random.normal(size=3)), axis=(0, 1, 0),
                    drive=random.choice(["torque", "motion"]))
        )  # fmt: skip
        contacts.append(m.Wheel(f"w{k}", 0.1, lateral=bool(k)))
    return m.Mechanism("wheeled", bodies, joints, gravity=tree.gravity, contacts=contacts)


def held_far_out(n: int, seed: int) -> m.Mechanism:
    """A random spatial chain whose last body stays in a plane and has an axle, both turned any way, and a wheel: its
    rows go up through all joints, more of them than joints at first; some joints slide."""
    random = np.random.default_rng(seed)
    tree = random_tree(n, seed, branching=0.0, prismatic=0.4)
    last = tree.bodies[-1].name
    rim = m.Body("rim", 0.2, inertia=np.diag([2e-3, 2e-3, 3e-3]))
    joint = m.Joint("w", last, "rim", placement=m.at(*random.normal(size=3)), axis=(0, 1, 0))
    contacts = [m.Plane(last, _anywhere(random)), m.Axle("rim", _anywhere(random)), m.Wheel("w", 0.1)]
    return m.Mechanism(
        "held", [*tree.bodies, rim], [*tree.joints, joint], gravity=tree.gravity, contacts=contacts[: 2 + seed % 2]
    )


def _anywhere(random: np.random.Generator) -> m.Placement:
    return m.Placement(quaternion_matrix(random.normal(size=4)), random.normal(size=3))


def state_of(model: m.Model, seed: int = 0) -> m.State:
    random = np.random.default_rng(seed)
    q = random.normal(size=4)
    return m.State(
        random.normal(size=3), q / np.linalg.norm(q), 0.6 * random.normal(size=model.n), random.normal(size=6),
        random.normal(size=model.n),
    )  # fmt: skip
