"""Kernels of trees on the ground run as plain Python, to the same numbers."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import numpy as np, rtmms
from rtmms import model as m
plant = rtmms.load("trikke", fork="passive")
for k in range(12):
    plant.step(np.array([0.4]))
print(*(float(x).hex() for row in plant.observe().values() for x in np.ravel(row)))
hull = m.Body("hull", 2.0, inertia=np.diag([0.1, 0.1, 0.2]))
sledge = m.Mechanism("sledge", [hull], contacts=[m.Plane("hull"), m.Axle("hull", m.at(0.2), one_sided=True)])
plant = rtmms.TreePlant(sledge, actuators=[rtmms.model.BodyWrench("hull", ("fy", "mz"))])
for force in ((1.0, 0.0), (-2.0, 0.3)):
    for k in range(10):
        plant.step(np.array(force))
print(*(float(x).hex() for row in plant.observe().values() for x in np.ravel(row)))
"""


@pytest.mark.full
def test_plain_python_steps_the_same() -> None:
    output = []
    for off in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "NUMBA_DISABLE_JIT": off}, capture_output=True,
            text=True, timeout=280, check=True,
        )  # fmt: skip
        output.append(np.array([float.fromhex(word) for word in ran.stdout.split()]))
    assert len(output[0]) > 40
    np.testing.assert_allclose(output[0], output[1], rtol=1e-9, atol=1e-10)
