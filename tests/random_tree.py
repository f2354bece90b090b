"""Generate random mechanisms from a seed, for tests of identities, comparisons with other programs, and benchmarks."""

from __future__ import annotations

import numpy as np

from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.model.compiled import Model, State
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Placement


def random_tree(
    joints: int, seed: int, *, base: str = "free", branching: float = 0.5, prismatic: float = 0.2, added: bool = True,
    friction: bool = False,
) -> Mechanism:  # fmt: skip
    """Return a mechanism with joints of one axis each.

    Parameters
    ----------
    joints : int
        Number of joints.
    seed : int
        Seed of the random numbers.
    base : str, default 'free'
        'free', 'prescribed' or 'fixed'.
    branching : float, default 0.5
        0 for a chain; else the probability that a body hangs from any earlier body, not the last.
    prismatic : float, default 0.2
        Probability that a joint is prismatic.
    added : bool, default True
        Whether every body has a full symmetric added inertia (6, 6).
    friction : bool, default False
        Whether joints have springs, dampers and rotors.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    rng = np.random.default_rng(seed)
    bodies, links = [_body(rng, "body0", added)], []
    for k in range(1, joints + 1):
        parent = int(rng.integers(k)) if rng.random() < branching else k - 1
        bodies.append(_body(rng, f"body{k}", added))
        springs = dict(zip(("stiffness", "rest_position", "damping", "rotor"), rng.uniform(0.1, 2.0, 4), strict=True))
        links.append(
            Joint(
                f"joint{k}",
                f"body{parent}",
                f"body{k}",
                type="prismatic" if rng.random() < prismatic else "revolute",
                axis=rng.normal(size=3),
                placement=Placement(_rotation(rng), rng.normal(size=3) * 0.3),
                **(springs if friction else {}),
            )
        )
    return Mechanism(f"random tree {seed}", bodies, links, base=base)


def random_state(model: Model, seed: int, rate: float = 1.0) -> State:
    """Return a random state.

    Parameters
    ----------
    model : Model
        Model that the state belongs to.
    seed : int
        Seed of the random numbers.
    rate : float, default 1.0
        Order of magnitude of the velocities, m/s and rad/s.

    Returns
    -------
    State
        Any pose, with angles of order 1.
    """
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=4)
    return State(
        rng.normal(size=3),
        quaternion / np.sqrt(quaternion @ quaternion),
        rng.normal(size=model.n),
        rate * rng.normal(size=6),
        rate * rng.normal(size=model.n),
    )


def _rotation(rng: np.random.Generator) -> Array:
    return quaternion_matrix(rng.normal(size=4))


def _body(rng: np.random.Generator, name: str, added: bool) -> Body:
    mass = rng.uniform(0.5, 2.0)
    size = np.sort(rng.uniform(0.05, 0.3, 3))
    turn = _rotation(rng)
    second = turn @ np.diag(size**2) @ turn.T  # int r r^T dm / m, so that the inertia is a real body's
    inertia = mass * (np.trace(second) * np.eye(3) - second)
    root = rng.normal(size=(6, 6)) * 0.3
    return Body.about_centre(name, mass, rng.normal(size=3) * 0.2, inertia, added=root @ root.T if added else None)
