"""Kernels allocate nothing, mean the same with the JIT off, and are found in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import rtmms
from rtmms.dynamics.recursion import configure, outward, solve
from tests.random_tree import random_state, random_tree

PROGRAM = """
import numpy as np, rtmms
from rtmms import dynamics
from tests.random_tree import random_state, random_tree
model = rtmms.compile(random_tree(5, 3, friction=True))
state = random_state(model, 3)
out = dynamics.forward_dynamics(model, state, np.ones(5))
print(repr([*out.qdd, *out.base_acceleration, *dynamics.mass_matrix(model, state)[3]]))
"""


@pytest.mark.full
def test_the_jit_changes_nothing():
    def run(disable):
        environment = os.environ | {"NUMBA_DISABLE_JIT": disable}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return np.array(eval(done.stdout, {"np": np}))

    np.testing.assert_allclose(run("1"), run("0"), rtol=1e-11, atol=1e-11)


def test_an_evaluation_allocates_nothing():
    from numba.core.runtime import _nrt_python as runtime
    from numba.core.runtime import rtsys

    model = rtmms.compile(random_tree(12, 3))
    state, s, work = random_state(model, 3), model.scratch(), np.zeros((6, 6))
    drive, imposed, qdd, torque = np.zeros(12), model.imposed, np.zeros(12), np.zeros(12)

    arguments = (
        model.topology, model.constant, state.orientation, model.gravity, state.q, state.twist, state.qd,
        imposed, drive, s, work, qdd, torque,
    )  # fmt: skip

    @njit
    def evaluate(times, topology, constant, orientation, gravity, q, twist, qd, imposed, drive, s, work, qdd, torque):
        for _ in range(times):
            configure(topology, constant, orientation, gravity, q, s)
            outward(topology, twist, qd, s)
            solve(topology, constant, 0, imposed, drive, q, qd, 0.0, s, work, qdd, torque)

    def count(times):
        runtime.memsys_enable_stats()
        try:
            before = rtsys.get_allocation_stats().alloc
            evaluate(times, *arguments)
            return rtsys.get_allocation_stats().alloc - before
        finally:
            runtime.memsys_disable_stats()

    count(1)
    assert count(100) == count(1)
    assert np.all(np.isfinite(qdd))


def cache_of(**environment: str) -> Path:
    """Where another process with these settings keeps its kernels."""
    code = "from rtmms.base.kernel_cache import cache_folder; print(cache_folder())"
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return Path(result.stdout.strip())


@pytest.mark.full
def test_kernels_made_with_other_flags_are_never_taken_from_the_cache(tmp_path: Path) -> None:
    here = {"NUMBA_CACHE_DIR": str(tmp_path)}
    plain = cache_of(**here)
    assert plain.parent == tmp_path
    assert cache_of(**here) == plain
    others = {cache_of(**here, **{name: value}) for name, value in (
        ("NUMBA_OPT", "1"), ("NUMBA_LOOP_VECTORIZE", "0"), ("NUMBA_CPU_NAME", "generic"), ("NUMBA_BOUNDSCHECK", "1"),
    )}  # fmt: skip
    assert len(others | {plain}) == 5
