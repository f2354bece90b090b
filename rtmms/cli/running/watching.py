"""The witness of a run and the blame it makes possible, from the side of the command line."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rtmms.errors import RtmmsError

if TYPE_CHECKING:
    from rtmms.loop.blame import Blame
    from rtmms.loop.machine.realtime import Readiness
    from rtmms.loop.statistics import Statistics


def await_witness(blame: Blame | None, ready: Readiness) -> None:
    """Until it looks; a run whose witness does not begin goes on without it, and says so."""
    from rtmms.loop.machine.stalls import Stalls

    if blame is not None and isinstance(blame.saw, Stalls):
        if blame.saw.await_first():
            blame.saw.take()  # what was before the run is nobody's fault
            ready.done.append(f"witness of cores {list(blame.saw.cores)}")
        else:
            blame.saw = None
            ready.failed.append("witness: it did not begin in time; stalls of the machine are blamed on nobody")


def begin_blame(ready: Readiness, statistics: Statistics, stack: ExitStack, *, alone: bool) -> Blame | None:
    """Blame for a run on a schedule, with a witness where real time was asked for and is permitted; None for others.

    The witness starts while the peers do, and ends with the stack. It looks after the cores that a step depends on.

    alone   all controllers are the run's own; others may be on any core
    """
    from rtmms.loop.blame import Blame
    from rtmms.loop.machine.witness import Witness

    if statistics.deadline_us is None:
        return None
    period_ns, deadline_ns = (statistics.period_us or 0.0) * 1e3, round(statistics.deadline_us * 1e3)
    blame = Blame(period_ns, deadline_ns)
    if ready.asked is not None:
        try:
            pinned = alone and ready.cores.loop is not None
            cores = {ready.cores.loop or 0, *ready.cores.controllers} if pinned else ready.allowed
            witness = Witness(ready.asked, deadline_ns, sorted(cores), round(period_ns))
        except RtmmsError as error:
            ready.failed.append(str(error))
        else:
            stack.callback(witness.close)
            blame.saw, blame.look_after_ns = witness.stalls, witness.from_step_ns
    return blame
