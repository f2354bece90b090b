"""The policies of a run as data: chosen by name, with their limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rtmms.errors import ModelError, UnknownNameError
from rtmms.loop.limits import NO_LIMITS, WORDS, Limits
from rtmms.loop.miss import MISS_POLICIES, OLDEST_S
from rtmms.loop.overrun import OVERRUN_POLICIES


@dataclass(frozen=True, slots=True)
class Policies:
    """What a run does about a missing command and about a step that took too long.

    miss      name in MISS_POLICIES
    overrun   name in OVERRUN_POLICIES
    oldest_s  age of a held value after which `home` stands in, whatever `miss` says (abort excepted)
    catchup   most steps that `catchup` may owe
    limits    most misses and overruns, in all and in a row
    grace_s   time from the start in which neither limits nor `abort` act: `hold` and `skip` stand in for it
    Raises UnknownNameError with the near misses, or ModelError.
    """

    miss: str = "hold"
    overrun: str = "skip"
    oldest_s: float = OLDEST_S
    catchup: int = 5
    limits: Limits = NO_LIMITS
    grace_s: float = 0.0

    def __post_init__(self) -> None:
        if self.miss not in MISS_POLICIES:
            raise UnknownNameError("miss policy", self.miss, MISS_POLICIES)
        if self.overrun not in OVERRUN_POLICIES:
            raise UnknownNameError("overrun policy", self.overrun, OVERRUN_POLICIES)
        if not self.oldest_s > 0:
            raise ModelError(f"policies: oldest_s must be > 0 s, got {self.oldest_s:g}")
        if self.catchup < 1:
            raise ModelError(f"policies: catchup must be at least 1 step, got {self.catchup}")
        if not 0 <= self.grace_s < math.inf:
            raise ModelError(f"policies: grace_s must be >= 0 s, got {self.grace_s:g}")
        for name in WORDS:
            most = getattr(self.limits, name)
            if most is not None and most < 0:
                raise ModelError(f"policies: limits.{name} must be >= 0, got {most}")
