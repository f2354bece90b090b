"""The names that loop, wire, log and command line share: modes, policies, outcomes, requests, and what was applied."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

OPERATIONS = ("reset", "pause", "resume", "step", "set", "snapshot", "restore", "stop", "status", "note")
"""What a request may ask for; see docs/protocol.md."""


TRUTH = "truth."
"""Prefix of outputs that a plant has and that its sensors do not measure."""
ESTIMATE = "estimate."
"""Under such names stands what an estimator makes of the sensors."""
PLANNED_MOTION = "planned_motion"
"""A figure of controllers that plan: where they will have the robot, 'x,y,z x,y,z ...' in m, world."""
PLANNED_SAMPLES = "planned_samples"
"""A figure beside it: a few others that were tried, 'x,y,z x,y,z;...', steps in cm from where that motion begins."""


MODES = ("realtime", "lockstep", "free", "external")
TIMED = ("realtime", "external")
"""Modes in which a step has a deadline."""

LAST_STEP = 1 << 53
"""The greatest number of a step that a run counts to: beyond it a float64 is not exact, and times are floats."""
MAX_COUNT = 10**9
"""Of whatever a person counts: larger numbers do not fit into what counts them."""
LEAST_DT = 1e-9
"""s: the clock's own nanosecond."""

PARTS = ("wake", "exchange", "plant", "slack")
"""Of a step, each timed. wake: its start after its instant; exchange: state published to commands in hand, or given up;
plant: plant.step alone; slack: left of the period when the step was done, 0 at an overrun."""
UNDEFINED = -1
"""The time of a part that a mode does not have."""


class MissPolicy(IntEnum):
    """What is applied in place of a command that is missing; rtmms.loop.kernels.miss_policies does it."""

    NONE = 0
    HOLD = 1
    EXTRAPOLATE = 2
    HOME = 3
    ABORT = 4


class OverrunPolicy(IntEnum):
    """What the schedule does when a step ended after its period; rtmms.loop.policies does it."""

    SKIP = 0
    SLIP = 1
    CATCHUP = 2
    ABORT = 3


class StepOutcome(IntEnum):
    """What became of a step: no actuator was claimed; every claimed one had its command; one had none at the deadline;
    free mode: one had nothing new; every one had its command, and one carried a value older than its fresh age.

    Logs contain the names, and traces of commands contain the codes. A new outcome gets the next code."""

    UNCLAIMED = 0
    APPLIED = 1
    MISSED = 2
    REUSED = 3
    STALE = 4


def words_of(kind: type[IntEnum]) -> tuple[str, ...]:
    """The members as they are written on the wire, in logs and on a command line, by their codes; '' for NONE."""
    return tuple("" if member.name == "NONE" else member.name.lower() for member in kind)


MISS_WORDS, OVERRUN_WORDS, OUTCOME_WORDS = words_of(MissPolicy), words_of(OverrunPolicy), words_of(StepOutcome)
APPLIED_POLICIES = tuple(word for word in MISS_WORDS if word != MISS_WORDS[MissPolicy.ABORT])
"""What `policy` of Applied may be in a state: `abort` ends the run before there is one."""


@dataclass(slots=True)
class Applied:
    """What was used for the step that led to a state: as attributes or by name. The plant rewrites one each step.

    seq          newest sequence number among the commands used; -1 before the first
    step         step that this command was meant for; -1 before the first
    lateness_ns  how long after the deadline it came; <= 0 in time
    policy       '' when every claimed actuator had its command, else the policy that stood in
    clamped      a value was out of range and was moved to its limit
    stale        a value is older than the age up to which its sender calls it fresh; not on the wire
    """

    seq: int = -1
    step: int = -1
    lateness_ns: int = 0
    policy: str = ""
    clamped: bool = False
    stale: bool = False

    def __getitem__(self, name: str) -> Any:
        if name not in self.__slots__:
            raise KeyError(name)
        return getattr(self, name)
