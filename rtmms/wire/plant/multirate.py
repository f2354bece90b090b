"""Steps of a peer's states and commands where it has every n-th state, and the values between two commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtmms.wire.protocol.hello import LINEAR

if TYPE_CHECKING:
    from rtmms.loop.ports import Array


class Multirate:
    """Rates of a claimant that does not answer each state within its step.

    Parameters
    ----------
    every : int
        Steps from state to state.
    delay : int
        Steps from a state to the step for which its command counts.
    interpolation : str
        'hold' or 'linear'.

    Attributes
    ----------
    plain : bool
        Whether the claimant answers each state within its step, so that no look-up is needed.
    outstanding : int
        States that are sent before the answer to the first of them is due.
    linear : bool
        Whether new values are reached in equal parts over `every` steps.
    """

    __slots__ = ("_first", "_ways", "delay", "every", "linear", "outstanding", "plain")

    def __init__(self, every: int, delay: int, interpolation: str) -> None:
        self.every, self.delay, self.linear = every, delay, interpolation == LINEAR
        self.plain = every == 1 and delay == 0
        self.outstanding = -(-delay // every)
        self._first = -1
        self._ways: dict[int, tuple[int, float | None, float]] = {}  # by actuator: first step, start value, end value

    def forget(self) -> None:
        """Discard all expected commands, because the loop went back in time."""
        self._first = -1
        self._ways.clear()

    def asks(self, step: int) -> bool:
        """Return whether the peer receives the state of a step.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        bool
            True if it does.
        """
        return step % self.every == 0

    def asked(self, step: int) -> None:
        """Record that the state of a step is sent.

        Parameters
        ----------
        step : int
            Index of the step.
        """
        if self._first < 0:
            self._first = step

    def owes(self, step: int) -> bool:
        """Return whether the peer owes a command for a step.

        Without a delay the peer is asked with the step itself.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        bool
            True if a state that was sent asks for it.
        """
        since = step - self.delay
        return since % self.every == 0 and (self.delay == 0 or 0 <= self._first <= since)

    # -- between two commands ----------------------------------------------------------------------------------------

    def aim(self, actuator: int, step: int, goal: float) -> None:
        """Set the next value of an actuator.

        Parameters
        ----------
        actuator : int
            Index of the actuator.
        step : int
            First step of the move from the present value.
        goal : float
            Value of the command.
        """
        self._ways[actuator] = (step, None, goal)

    def move(self, step: int, command: Array) -> None:
        """Write the values of a step; a second call for the same step writes the same.

        Parameters
        ----------
        step : int
            Index of the step.
        command : Array
            The step's command, changed in place.
        """
        for actuator, (begun, start, goal) in list(self._ways.items()):
            parts = step - begun + 1
            if start is None:
                start = float(command[actuator])
                self._ways[actuator] = (begun, start, goal)
            if parts < self.every:
                command[actuator] = start + (goal - start) * (parts / self.every)
            else:
                command[actuator] = goal
                if parts > self.every:
                    del self._ways[actuator]

    def drop(self, actuator: int) -> None:
        """Stop moving an actuator, because another peer has claimed it.

        Parameters
        ----------
        actuator : int
            Index of the actuator.
        """
        self._ways.pop(actuator, None)
