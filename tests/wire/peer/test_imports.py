"""A controller starts without what only a plant needs."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.full
def test_connect_and_controller_import_neither_numba_nor_scipy_nor_numpy() -> None:
    program = (
        "import sys, rtmms, controllers.gait, controllers.heading, controllers.template\n"
        "rtmms.connect, rtmms.Controller, rtmms.Link, rtmms.State, rtmms.PlantInfo\n"
        "print([name for name in ('numba', 'scipy', 'numpy', 'rtmms.loop') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
