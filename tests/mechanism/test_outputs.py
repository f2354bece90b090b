"""Outputs of a plant's bodies, against differences over time of where they are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
from tests.random_tree import random_state, random_tree

STEP = 2e-4
G = 9.81
OF_A_BODY = ("position", "quaternion", "velocity", "angular_velocity", "specific_force")


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_bodies_report_how_they_move(seed: int) -> None:
    """Of a random tree in free motion, the last bodies of its branches and the base."""
    tree = random_tree(4, seed)
    model = rtmms.compile(tree)
    bodies = [model.body_names[0], *model.body_names[-2:]]
    names = [f"{body}.{what}" for body in bodies for what in OF_A_BODY]
    plant = rtmms.TreePlant(tree, initial=random_state(model, seed), outputs=names, dt=STEP)
    nothing = np.zeros(len(plant.actuators))
    observed = []
    for _ in range(3):
        observed.append({name: np.array(value) for name, value in plant.observe().items()})
        plant.step(nothing)
    before, now, after = observed
    gravity = np.asarray(model.gravity)
    for body in bodies:
        a, b, c = ({what: item[f"{body}.{what}"] for what in OF_A_BODY} for item in (before, now, after))
        turn = [Rotation.from_quat(item["quaternion"][[1, 2, 3, 0]]) for item in (a, b, c)]
        velocity = (c["position"] - a["position"]) / (2 * STEP)
        scale = max(1.0, np.abs(velocity).max())
        np.testing.assert_allclose(turn[1].apply(b["velocity"]), velocity, atol=1e-4 * scale)
        turning = (turn[0].inv() * turn[2]).as_rotvec() / (2 * STEP)
        np.testing.assert_allclose(b["angular_velocity"], turning, atol=1e-4 * max(1.0, np.abs(turning).max()))
        moved = (turn[2].apply(c["velocity"]) - turn[0].apply(a["velocity"])) / (2 * STEP)
        felt = turn[1].apply(b["specific_force"])
        np.testing.assert_allclose(felt, moved - gravity, atol=1e-3 * max(1.0, np.abs(moved).max()))
