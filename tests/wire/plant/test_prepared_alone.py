"""A state that compiled code observes and writes: byte for byte what Python would have sent."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms.base.contract import APPLIED_POLICIES, Applied
from rtmms.base.pointers import address
from rtmms.base.structs import view
from rtmms.plant.optional_protocols import HasCompiledOutputs
from rtmms.wire.kernels.step import PEER, STEP
from rtmms.wire.kernels.system import AVAILABLE, SCRATCH_WORDS
from rtmms.wire.plant.fast_path import BatchedSteps
from rtmms.wire.plant.state_message import Selection

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no compiled exchange here")


def test_it_computes_what_python_computes_of_the_manta() -> None:
    plant = rtmms.load("manta")
    plant.reset(0)
    assert isinstance(plant, HasCompiledOutputs)
    account = plant.compiled_outputs()
    assert account is not None
    mine, general = Selection(plant.outputs[:6]), Selection(plant.outputs[:6])
    memory, rows = np.zeros(1, dtype=STEP), np.zeros(1, dtype=PEER)
    scratch = np.zeros(SCRATCH_WORDS, dtype=np.int64)
    m = view(memory)
    m.peers, m.peers_at, m.scratch_at = 1, address(rows), address(scratch)
    batch, command = BatchedSteps(plant.dt, account, memory, 1), np.full(len(plant.actuators), 0.2)
    policies = APPLIED_POLICIES
    for step in range(300):
        applied = Applied(step + 9, step - 1, -400_000 - step, policies[step % len(policies)], step % 3 == 0)
        deadline = 10**14 + step
        assert batch.fit(0, mine.message, applied.policy)
        batch.write(step, deadline, 400_000, applied)
        output = general.packed(step, step * plant.dt, deadline, 400_000, plant.observe(), applied)
        assert mine.message.payload.tobytes() == output
        mine.prepared(step, deadline)
        assert mine.due(step, 0.0, deadline, 300_000, {}, applied) == general.packed(
            step, step * plant.dt, deadline, 300_000, plant.observe(), applied
        )
        plant.step(command)
