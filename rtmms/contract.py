"""What the loop and the wire both speak of: the record of what was applied, and what a peer may ask of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OPERATIONS = ("reset", "pause", "resume", "step", "set", "snapshot", "restore", "stop", "status")
"""What a request may ask for; see docs/protocol.md."""


TRUTH = "truth."
"""Under such names stands what a plant knows and its sensors do not tell."""
ESTIMATE = "estimate."
"""Under such names stands what an estimator makes of the sensors."""


STOOD_IN = ("", "hold", "extrapolate", "home")
"""What `policy` of Applied may be."""


@dataclass(slots=True)
class Applied:
    """What was used for the step that led to a state: as attributes or by name. The plant rewrites one each step.

    seq          newest sequence number among the commands used; -1 before the first
    step         step that this command was meant for; -1 before the first
    lateness_ns  how long after the deadline it came; <= 0 in time
    policy       '' when every claimed actuator had its command, else the policy that stood in
    clamped      a value was out of range and was moved to its limit
    """

    seq: int = -1
    step: int = -1
    lateness_ns: int = 0
    policy: str = ""
    clamped: bool = False

    def __getitem__(self, name: str) -> Any:
        if name not in self.__slots__:
            raise KeyError(name)
        return getattr(self, name)
