"""Common names of loop, wire, log and command line: modes, policies, outcomes, requests, and applied commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

OPERATIONS = ("reset", "pause", "resume", "step", "set", "snapshot", "restore", "stop", "status", "note")
"""Operations of requests; see docs/protocol.md."""


TRUTH = "truth."
"""First part of the names of outputs that the sensors do not measure."""
ESTIMATE = "estimate."
"""First part of the names of an estimator's results."""
PLANNED_MOTION = "planned_motion"
"""Metric of planning controllers: the planned path of the robot, 'x,y,z x,y,z ...', m, world."""
PLANNED_SAMPLES = "planned_samples"
"""Metric of planning controllers: evaluated alternatives, 'x,y,z x,y,z;...', steps in cm from the path's begin."""


MODES = ("realtime", "lockstep", "free", "external")
TIMED = ("realtime", "external")
"""Modes in which a step has a deadline."""

MAX_STEP = 1 << 53
"""Index of a step: beyond it a float64 is not exact, and times are floats."""
MAX_COUNT = 10**9
"""Number of anything that a person counts; larger ones do not fit into the counters."""
MIN_DT_S = 1e-9
"""Step, s: a nanosecond of the clock."""

PARTS = ("wake", "exchange", "plant", "slack")
"""Timed parts of a step.

wake: lateness of its begin. exchange: from the published state to commands complete or given up. plant: plant.step
alone. slack: rest of the period after the step, 0 at an overrun.
"""
QUANTILES = {"p50": (50.0, "median"), "p99": (99.0, "99 %"), "p999": (99.9, "99.9 %"), "max": (100.0, "longest")}
"""Quantiles of durations in a report: the share in %, and words for a person."""
UNDEFINED = -1
"""Time of a part that a mode does not have."""


class MissPolicy(IntEnum):
    """Replacement of a missing command; rtmms.loop.miss_policies implements it."""

    NONE = 0
    HOLD = 1
    EXTRAPOLATE = 2
    HOME = 3
    ABORT = 4


class OverrunPolicy(IntEnum):
    """Reaction of the schedule to a step that ended after its period; rtmms.loop.policies implements it."""

    SKIP = 0
    SLIP = 1
    CATCHUP = 2
    ABORT = 3


class StepOutcome(IntEnum):
    """Outcome of a step.

    UNCLAIMED: no actuator was claimed. APPLIED: every claimed one had its command. MISSED: one had none at the
    deadline. REUSED: in free mode, one had nothing new. STALE: every one had its command, but a value was older than
    its fresh age. Logs have the names, traces of commands the codes. A new outcome gets the next code.
    """

    UNCLAIMED = 0
    APPLIED = 1
    MISSED = 2
    REUSED = 3
    STALE = 4


def words_of(kind: type[IntEnum]) -> tuple[str, ...]:
    """Return the members' names as on the wire, in logs and on a command line.

    Parameters
    ----------
    kind : type[IntEnum]
        The enumeration.

    Returns
    -------
    tuple[str, ...]
        Names by code; empty for NONE.

    Examples
    --------
    >>> words_of(OverrunPolicy)
    ('skip', 'slip', 'catchup', 'abort')
    """
    return tuple("" if member.name == "NONE" else member.name.lower() for member in kind)


MISS_WORDS = words_of(MissPolicy)
OVERRUN_WORDS = words_of(OverrunPolicy)
OUTCOME_WORDS = words_of(StepOutcome)
APPLIED_POLICIES = tuple(word for word in MISS_WORDS if word != MISS_WORDS[MissPolicy.ABORT])
"""Possible `policy` of Applied in a state; `abort` ends the run before there is one."""


@dataclass(slots=True)
class Applied:
    """Commands of the step before a state, as attributes or by name; the plant rewrites one object each step.

    Parameters
    ----------
    seq : int, default -1
        Newest sequence number among the used commands; -1 before the first.
    step : int, default -1
        Step for which this command was sent; -1 before the first.
    lateness_ns : int, default 0
        Its lateness after the deadline, ns; <= 0 in time.
    policy : str, default ''
        Empty if every claimed actuator had its command, else the policy that replaced one.
    clamped : bool, default False
        Whether a value was clamped.
    stale : bool, default False
        Whether a value is older than its fresh age; not on the wire.

    Examples
    --------
    >>> Applied(seq=3)["seq"]
    3
    """

    seq: int = -1
    step: int = -1
    lateness_ns: int = 0
    policy: str = ""
    clamped: bool = False
    stale: bool = False

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.__slots__:
            raise KeyError(name)
        return getattr(self, name)
