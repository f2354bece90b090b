"""What a pace is, and what it sees of the run: the loop itself is the same for all of them (see rtmms.loop.paces)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rtmms.contract import UNDEFINED
from rtmms.errors import RtmmsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtmms.loop.clock import Clock
    from rtmms.loop.fallback import Claims
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Exchange
    from rtmms.loop.statistics import Statistics


class Unpaced:
    """The part of a pace that is about instants, for one that has none."""

    def bind(self, run: Run) -> None:
        self.run, self.clock = run, run.clock
        self.served_ns = run.clock.now()

    def anchor(self, step: int) -> int:
        self.served_ns = self.clock.now()
        return self.served_ns

    def let_pass(self, step: int) -> None:
        """Nobody paces it: nothing to do."""

    def ready(self, step: int) -> bool:
        return True

    def window(self, step: int) -> tuple[int, int] | None:
        return None

    def batch(self) -> tuple[int, int, bool] | None:
        return self.served_ns + SERVE_EVERY_NS, 0, True

    def batched(self, published_ns: int, answered: bool) -> None:
        """Each state is sent."""

    def begin(self, step: int) -> int:
        return UNDEFINED


MARGIN_NS = 30_000
"""The loop stops serving this long before the next step is due, to be asleep when the timer fires."""
PREPARE_NS = 100_000
"""What is left of the slack for the state to come, of which the monitor takes nothing."""
SERVE_NS = 200_000
SERVE_GAP_NS = 800_000
"""The low-priority work is not done again so soon: of short periods, in one of several."""
SERVE_EVERY_NS = 5_000_000
STARVED_NS = 100_000_000
SLICE_NS = 50_000_000
LONG_NS = 200_000_000
"""A wait that is longer is cut into slices, between which requests and newcomers are served."""
SILENT_NS = 5_000_000_000
START_NS = 10_000_000_000
"""How long the commands for step 0 may take: a controller's first answer loads and compiles what the later ones use."""


class PeerError(RtmmsError):
    """A peer that the run cannot go on without is gone or silent; the text names it."""


class Run(Protocol):
    """What a pace sees of the run, and may do to it."""

    clock: Clock
    claims: Claims
    exchange: Exchange
    policies: Policies
    statistics: Statistics
    ended: str

    @property
    def dead(self) -> Sequence[str]:
        """A sentence for each process that has died."""

    def end(self, reason: str, message: str = "") -> None:
        """End the run after the present step; the first reason stands."""

    def start_at(self, instant_ns: int, *, answered: bool = False) -> None:
        """The run counts from there; answered: the commands of its first step are in hand already."""

    def in_grace(self) -> bool:
        """Neither limits nor `abort` act yet."""

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        """State `step` to the world."""

    def prepare(self, step: int, deadline_ns: int) -> None:
        """In the slack: observe and pack state `step`, so that at its instant it has only to be sent."""

    def collect(self, step: int, until_ns: int) -> bool:
        """Take commands for `step`; True when every claimed actuator has its own."""

    def serve(self, until_ns: int) -> None:
        """The low-priority work, until the instant at most."""

    def answer(self) -> None:
        """Do the requests that can be done while the commands of the step are waited for."""

    def check(self, until_ns: int = 0) -> None:
        """A piece of the monitor's work, if there is time for it until the instant; 0: whatever it takes."""

    def watch_now(self) -> None:
        """Look after the processes and the display."""


class Pace(Protocol):
    """One mode."""

    mode: str

    def bind(self, run: Run) -> None:
        """Called once, by the loop."""

    def anchor(self, step: int) -> int:
        """The schedule begins anew with `step`: at the start, after a pause, after a reset. Returns its instant."""

    def let_pass(self, step: int) -> None:
        """Something was done between steps that may have taken long: no step is late for it."""

    def ready(self, step: int) -> bool:
        """Whether the step may begin: False after a while of waiting for whoever starts it, to be asked again."""

    def begin(self, step: int) -> int:
        """Wait for the step's instant. Returns how late it starts in ns, UNDEFINED where it has no instant."""

    def gather(self, step: int) -> bool:
        """Publish the state and take commands. True when every claimed actuator has its own."""

    def window(self, step: int) -> tuple[int, int] | None:
        """The step's instant and its deadline, 0 for none, where it may be taken as a whole; None where it may not."""

    def batch(self) -> tuple[int, int, bool] | None:
        """Where many steps may be taken in a row: the instant after which none is to begin; then, where states are not
        sent at each step, when the last one was, and whether it was answered. None where they may not."""

    def batched(self, published_ns: int, answered: bool) -> None:
        """They were taken."""

    def rest(self, step: int) -> bool:
        """What is left of `gather` once the state is out."""

    def finish(self, step: int, now_ns: int) -> int:
        """After the step: overruns, and the low-priority work. Returns the slack in ns, UNDEFINED without a period."""
