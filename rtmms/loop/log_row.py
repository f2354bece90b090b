"""A step as a row of a log: its whole numbers, declared once.

The ring, the compiled code that writes rows (rtmms.loop.kernels.row), the messages of a log, their schemas and the
columns of a table follow from `Head`. A number is added here and where it is found out: in the recorder, and in
rtmms.wire.kernels.step where compiled code finds it out as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, get_type_hints

from rtmms.base.contract import MISS_WORDS, OUTCOME_WORDS


@dataclass(frozen=True)
class LogColumn:
    """How a number stands in a message of a log, under its own name.

    topic   of the message;  kind  int, bool or str
    words   the number is an index into these
    unit    of an int;  means  for a person who reads the schema
    """

    topic: str
    kind: type = int
    words: tuple[str, ...] = ()
    unit: str = ""
    means: str = ""

    def text(self, value: int) -> Any:
        """The number as it stands there."""
        if self.words:
            return self.words[value] if 0 <= value < len(self.words) else "other"
        return self.kind(value)


_OUTCOME = "/outcome"


class Head(NamedTuple):
    """The whole numbers of a row, in order.

    kind             STEP or START;  step, wall_ns  which; CLOCK_MONOTONIC at which it was kept
    seed, altered    of the last reset; how often the state was changed by request so far
    wake, exchange, plant, slack  ns, of the step before, UNDEFINED where there is none; timed: its number, or -1
    attributed, miss, overrun   a bad step that was judged meanwhile, or -1; indices into CAUSES of its faults, or -1
    """

    kind: int
    step: int
    wall_ns: int
    seed: int
    altered: int
    outcome: Annotated[int, LogColumn(_OUTCOME, str, OUTCOME_WORDS)]
    policy: Annotated[int, LogColumn(_OUTCOME, str, MISS_WORDS, means="that stood in; '' where no command was missing")]
    seq: Annotated[int, LogColumn(_OUTCOME, means="newest of the commands used")]
    target_step: Annotated[int, LogColumn(_OUTCOME, means="that the command was for; -1 before the first")]
    lateness_ns: Annotated[int, LogColumn(_OUTCOME, unit="ns", means="after the deadline; <= 0 in time")]
    clamped: Annotated[int, LogColumn(_OUTCOME, bool, means="a value was moved to its limit")]
    overruns: Annotated[int, LogColumn(_OUTCOME, means="so far")]
    skipped: Annotated[int, LogColumn(_OUTCOME, means="periods so far")]
    dropped: int
    timed: int
    wake: int
    exchange: int
    plant: int
    slack: int
    attributed: int = -1
    miss: int = -1
    overrun: int = -1


STEP, START = 0, 1
"""Kinds of row: a finished step; a state to start from (the first, and after a reset)."""


def fields_of(topic: str) -> dict[str, LogColumn]:
    """The numbers that stand in the messages of a topic, by name, in their order."""
    hints = get_type_hints(Head, include_extras=True)
    found = {name: getattr(hint, "__metadata__", (None,))[0] for name, hint in hints.items()}
    return {name: one for name, one in found.items() if one is not None and one.topic == topic}


OUTCOME_COLUMNS = fields_of(_OUTCOME)
"""What a log has of a step beside its command and its outputs."""
