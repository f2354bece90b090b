"""The step of several plants in one compiled call."""

from __future__ import annotations

from numba import carray

from rtmms.addresses import ARGUMENTS, call, numbers_at
from rtmms.jit import kernel
from rtmms.memory import INTEGER, Layout, given, scratch, state

STEP, COMMAND, FIRST, COUNT, ACCOUNT, WIDTH = range(6)
"""Of a robot: address of its step, of where it looks for its command; the first of its actuators and how many; address
of what writes its outputs."""
ROBOT, STATUS = range(2)
"""Of a step that failed: which robot's, and how."""

WORLD = Layout(
    "World",
    state("steps", 1, dtype=INTEGER), given("given", "actuators"), given("robots", "robots", WIDTH, dtype=INTEGER),
    given("further", 2, "robots", ARGUMENTS, dtype=INTEGER), scratch("failed", 2, dtype=INTEGER),
)  # fmt: skip
"""steps: since the reset; given: the command; further: words of each robot's step, then of its outputs."""
_world_at = WORLD.type().at()


@kernel
def enter_step(address: int) -> int:
    """A step of each robot, in their order, up to one that fails; its status."""
    w = _world_at(address)
    robots = w.robots
    for r in range(len(robots)):
        count, first = robots[r, COUNT], robots[r, FIRST]
        if count > 0:
            command = carray(numbers_at(robots[r, COMMAND]), (count,))
            for k in range(count):
                command[k] = w.given[first + k]
        status = call(robots[r, STEP], w.further[0, r].ctypes.data)
        if status:
            w.failed[ROBOT], w.failed[STATUS] = r, status
            return int(status)
    w.steps[0] += 1
    return 0


@kernel
def enter_account(address: int) -> int:
    """The outputs of each."""
    w = _world_at(address)
    for r in range(len(w.robots)):
        call(w.robots[r, ACCOUNT], w.further[1, r].ctypes.data)
    return 0
