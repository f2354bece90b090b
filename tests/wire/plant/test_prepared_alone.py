"""A state that compiled code observes and writes: byte for byte what Python would have sent."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms.contract import STOOD_IN, Applied
from rtmms.plant import Accounted
from rtmms.wire.kernels import desk as d
from rtmms.wire.kernels.system import AVAILABLE, SCRATCH_WORDS
from rtmms.wire.plant.selection import Selection
from rtmms.wire.plant.stretch import Stretch

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no compiled exchange here")


def test_it_says_what_python_says_of_the_manta() -> None:
    plant = rtmms.load("manta")
    plant.reset(0)
    assert isinstance(plant, Accounted)
    account = plant.account()
    assert account is not None
    mine, general = Selection(plant.outputs[:6]), Selection(plant.outputs[:6])
    outputs = plant.observe()
    for step in range(8):  # templates of each policy
        mine.packed(step, step * plant.dt, 1, 1, outputs, Applied())
    desk, rows = np.zeros(d.DESK, dtype=np.int64), np.zeros((1, d.ROW), dtype=np.int64)
    scratch = np.zeros(SCRATCH_WORDS, dtype=np.int64)
    desk[d.PEERS], desk[d.ROWS], desk[d.SCRATCH] = 1, rows.ctypes.data, scratch.ctypes.data
    stretch, command, written = Stretch(plant.dt, account, desk, rows), np.full(len(plant.actuators), 0.2), 0
    for step in range(300):
        applied = Applied(step + 9, step - 1, -400_000 - step, STOOD_IN[step % len(STOOD_IN)], step % 3 == 0)
        deadline = 10**14 + step
        template = mine.templates.of(applied.policy)
        assert template is not None
        assert stretch.fit(0, template)
        said = general.packed(step, step * plant.dt, deadline, 400_000, plant.observe(), applied)
        if stretch.write(step, deadline, 400_000, applied):
            written += 1
            assert template.payload.tobytes() == said
        else:  # another width: laid out anew by Python, and known from then on
            assert mine.packed(step, step * plant.dt, deadline, 400_000, plant.observe(), applied) == said
        plant.step(command)
    assert written > 250
