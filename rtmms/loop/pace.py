"""Interface of a pace, which decides when a step starts and how long it waits for commands; and its view of the run.

The loop is the same for all paces. `rtmms.loop.modes` has the pace of each mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rtmms.base.errors import RtmmsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtmms.loop.clock import Clock
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Exchange
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.step_outcome import Claims


class PeerError(RtmmsError):
    """Loss or silence of a peer without which the run cannot continue; the text names it."""


class Run(Protocol):
    """Run as a pace sees it."""

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
        """End the run after the present step; the first reason counts.

        Parameters
        ----------
        reason : str
            Reason of the end.
        message : str, default ''
            Its explanation.
        """

    def start_at(self, instant_ns: int, *, answered: bool = False) -> None:
        """Count the run from an instant.

        Parameters
        ----------
        instant_ns : int
            The instant, ns.
        answered : bool, default False
            Whether the commands of its first step have come already.
        """

    def in_grace(self) -> bool:
        """Return whether limits and `abort` do not act yet.

        Returns
        -------
        bool
            True within the grace.
        """

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        """Send a state.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Deadline, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        """

    def prepare(self, step: int, deadline_ns: int) -> None:
        """Observe and pack a state in the slack, so that at its instant it has only to be sent.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Deadline, CLOCK_MONOTONIC, ns; 0 for none.
        """

    def collect(self, step: int, until_ns: int) -> bool:
        """Read commands for a step.

        Parameters
        ----------
        step : int
            Index of the step.
        until_ns : int
            Instant at which the wait ends, ns.

        Returns
        -------
        bool
            Whether every claimed actuator has its command.
        """

    def serve(self, until_ns: int) -> None:
        """Do the low-priority work.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """

    def answer(self) -> None:
        """Perform requests that are possible while the step waits for its commands."""

    def check(self, until_ns: int = 0) -> None:
        """Do a piece of the monitor's work, if there is time for it.

        Parameters
        ----------
        until_ns : int, default 0
            Instant at which it must end, ns; 0 for any.
        """

    def watch_now(self) -> None:
        """Check the processes, and update the display."""


class Pace(Protocol):
    """Mode of a run."""

    mode: str

    def bind(self, run: Run) -> None:
        """Connect the pace to its run; the loop calls this once.

        Parameters
        ----------
        run : Run
            The run.
        """

    def anchor(self, step: int) -> int:
        """Begin the schedule anew with a step: at the start, after a pause, after a reset.

        Parameters
        ----------
        step : int
            The first step.

        Returns
        -------
        int
            Its instant, CLOCK_MONOTONIC, ns.
        """

    def let_pass(self, step: int) -> None:
        """Accept the duration of work between steps, so that no step is late because of it.

        Parameters
        ----------
        step : int
            Index of the step.
        """

    def ready(self, step: int) -> bool:
        """Return whether a step may begin.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        bool
            False after a while of waiting; then the loop asks again.
        """

    def begin(self, step: int) -> int:
        """Wait for the instant of a step.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        int
            Lateness of its begin, ns; UNDEFINED if it has no instant.
        """

    def gather(self, step: int) -> bool:
        """Publish the state, and read commands.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        bool
            Whether every claimed actuator has its command.
        """

    def window(self, step: int) -> tuple[int, int] | None:
        """Return the time of a step that may be taken as a whole.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        tuple[int, int] | None
            Instant and deadline of the step, CLOCK_MONOTONIC, ns, 0 for none. None if it may not be taken as a whole.
        """

    def batch(self) -> tuple[int, int, bool] | None:
        """Return the limits of many steps in a row.

        Returns
        -------
        tuple[int, int, bool] | None
            Instant after which no step begins, instant of the last state, and whether that was answered. None if a
            batch is not allowed.
        """

    def batched(self, published_ns: int, answered: bool) -> None:
        """Record that a batch was taken.

        Parameters
        ----------
        published_ns : int
            Instant at which the last state was sent, ns.
        answered : bool
            Whether it was answered.
        """

    def collect_commands(self, step: int) -> bool:
        """Do the rest of `gather` once the state is sent.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        bool
            Whether every claimed actuator has its command.
        """

    def finish(self, step: int, now_ns: int) -> int:
        """Handle overruns after a step, and do the low-priority work.

        Parameters
        ----------
        step : int
            Index of the step.
        now_ns : int
            Present instant, ns.

        Returns
        -------
        int
            Slack, ns; UNDEFINED without a period.
        """
