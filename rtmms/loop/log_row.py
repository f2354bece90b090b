"""Step as a row of a log: its whole numbers, declared once.

The ring, the compiled writer (rtmms.loop.row_kernels), a log's messages, their schemas and a table's columns follow
from `RowHead`. A new number is added here and where it is determined: in the recorder, and for compiled code in
rtmms.wire.kernels.step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, get_type_hints

from rtmms.base.contract import MISS_WORDS, OUTCOME_WORDS


@dataclass(frozen=True)
class LogColumn:
    """Form of a number in a message of a log, under its own name.

    Parameters
    ----------
    topic : str
        Topic of the message.
    kind : type, default int
        int, bool or str.
    texts : tuple[str, ...], optional
        Texts into which the number is an index.
    unit : str, default ''
        Unit of an int.
    means : str, default ''
        Meaning, for a person who reads the schema.
    """

    topic: str
    kind: type = int
    texts: tuple[str, ...] = ()
    unit: str = ""
    means: str = ""

    def text(self, value: int) -> Any:
        """Return a number in its form in the message.

        Parameters
        ----------
        value : int
            The number.

        Returns
        -------
        Any
            An int, a bool or a text.
        """
        if self.texts:
            return self.texts[value] if 0 <= value < len(self.texts) else "other"
        return self.kind(value)


_OUTCOME = "/outcome"


class RowHead(NamedTuple):
    """Whole numbers of a row, in order.

    Attributes
    ----------
    kind : int
        STEP or START.
    step, wall_ns : int
        Index of the step, and instant of CLOCK_MONOTONIC at which it was stored, ns.
    seed, altered : int
        Seed of the last reset, and number of changes of the state by request so far.
    outcome : int
        StepOutcome.
    policy : int
        Miss policy that replaced missing commands.
    seq, target_step : int
        Newest of the used commands, and the step for which it was.
    lateness_ns : int
        Its lateness after the deadline, ns.
    clamped : int
        Whether a value was clamped.
    overruns, skipped : int
        Counts so far.
    dropped : int
        Rows dropped so far.
    timed : int
        Step of the following durations, or -1.
    wake, exchange, plant, slack : int
        Durations of the step before, ns; UNDEFINED for none.
    attributed : int, default -1
        A bad step that was judged meanwhile, or -1.
    miss, overrun : int, default -1
        Its causes as indices into CAUSES, or -1.
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


STEP = 0
"""Kind of row: a finished step."""
START = 1
"""Kind of row: a state to start from, the first one and after a reset."""


def fields_of(topic: str) -> dict[str, LogColumn]:
    """Return the numbers in the messages of a topic.

    Parameters
    ----------
    topic : str
        The topic.

    Returns
    -------
    dict[str, LogColumn]
        Columns by name, in their order.
    """
    hints = get_type_hints(RowHead, include_extras=True)
    result = {name: getattr(hint, "__metadata__", (None,))[0] for name, hint in hints.items()}
    return {name: item for name, item in result.items() if item is not None and item.topic == topic}


OUTCOME_COLUMNS = fields_of(_OUTCOME)
"""A log's numbers of a step in addition to its command and its outputs."""
