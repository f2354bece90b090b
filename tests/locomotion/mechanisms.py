"""Mechanisms on the ground that several tests use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rtmms import model as m
from rtmms.model.random_tree import random_tree


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


def state_of(model: m.Model, seed: int = 0) -> m.State:
    random = np.random.default_rng(seed)
    q = random.normal(size=4)
    return m.State(
        random.normal(size=3), q / np.linalg.norm(q), 0.6 * random.normal(size=model.n), random.normal(size=6),
        random.normal(size=model.n),
    )  # fmt: skip
