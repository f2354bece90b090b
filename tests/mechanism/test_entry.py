"""The entry to a tree's step: it allocates nothing, and does what plain Python does."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Box, at

PROGRAM = """
import numpy as np, rtmms
from rtmms import model as m
body = m.Body("hull", solids=[m.Box(0.2, 0.1, 0.05, 2000.0)])
arm = m.Body("arm", solids=[m.Box(0.3, 0.03, 0.03, 1000.0, m.at(x=0.15))])
tree = rtmms.Mechanism("tree", [body, arm], [m.Joint("j", "hull", "arm", axis=(0, 1, 0))])
plant = rtmms.TreePlant(tree, actuators=[
    rtmms.model.Thruster("arm", coefficient=1.0, time_constant=0.1), rtmms.model.JointServo("j", 5.0, 0.1, limit=0.2),
    rtmms.model.JointStop("j", -0.01, 0.01, 20.0),
], outputs=["position", "arm.position", "arm.specific_force", "motor"])
for _ in range(5):
    plant.step(np.array([2.0, 0.5]))
print(" ".join(f"{value:.12e}" for row in plant.observe().values() for value in np.ravel(row)))
"""


def pendulum() -> TreePlant:
    """Two links on a fixed base."""
    link = Box(0.02, 0.02, 0.5, 1000.0, at(z=-0.25))
    bodies = [Body("base"), Body("upper", solids=[link]), Body("lower", solids=[link])]
    joints = [
        Joint("shoulder", "base", "upper", axis=(0, 1, 0)),
        Joint("elbow", "upper", "lower", axis=(0, 1, 0), placement=at(z=-0.5)),
    ]
    return TreePlant(Mechanism("pendulum", bodies, joints, base="fixed"), 1e-3)


def test_a_step_allocates_nothing() -> None:
    from numba.core.runtime import _nrt_python as runtime
    from numba.core.runtime import rtsys

    plant = pendulum()
    command = plant.neutral
    plant.step(command)
    runtime.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        for _ in range(100):
            plant.step(command)
        assert rtsys.get_allocation_stats().alloc == before
    finally:
        runtime.memsys_disable_stats()


@pytest.mark.full
def test_plain_python_steps_the_same() -> None:
    output = []
    for off in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "NUMBA_DISABLE_JIT": off}, capture_output=True,
            text=True, timeout=120, check=True,
        )  # fmt: skip
        output.append(np.array([float(word) for word in ran.stdout.split()]))
    np.testing.assert_allclose(output[0], output[1], rtol=1e-10, atol=1e-13)
