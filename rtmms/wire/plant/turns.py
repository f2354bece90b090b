"""When a claimant is asked for a command, for which step it owes it, and what stands between two of them. No socket
here.

A controller that takes longer than a step asks for each n-th state (`every`), and for more time (`delay`): state k
comes with k a multiple of n, and the command for it is that of step k + delay, due by that step's deadline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtmms.wire.protocol.messages import LINEAR

if TYPE_CHECKING:
    from rtmms.loop.ports import Array


class Turns:
    """A claimant's.

    every    steps from state to state;  delay  steps from a state to the one that its command is for
    plain    a state a step, answered within it: there is nothing to look up
    linear   values are reached in equal parts over the `every` steps from theirs on; else at once
    """

    __slots__ = ("_first", "_ways", "delay", "every", "linear", "plain")

    def __init__(self, every: int, delay: int, between: str) -> None:
        self.every, self.delay, self.linear = every, delay, between == LINEAR
        self.plain = every == 1 and delay == 0
        self._first = -1
        self._ways: dict[int, tuple[int, float | None, float]] = {}  # of an actuator: first step, from where, to where

    def forget(self) -> None:
        """It was asked for nothing yet, and nothing is on its way: the loop went back."""
        self._first = -1
        self._ways.clear()

    def asks(self, step: int) -> bool:
        """The state of this step is one of its own."""
        return step % self.every == 0

    def asked(self, step: int) -> None:
        """That state goes out."""
        if self._first < 0:
            self._first = step

    def owes(self, step: int) -> bool:
        """Its command for this step was asked for. Without a delay that is asked with the step itself."""
        since = step - self.delay
        return since % self.every == 0 and (self.delay == 0 or 0 <= self._first <= since)

    # -- between two commands ----------------------------------------------------------------------------------------

    def aim(self, actuator: int, step: int, goal: float) -> None:
        """From `step` on, the actuator goes from where it is then to a value of a command."""
        self._ways[actuator] = (step, None, goal)

    def move(self, step: int, command: Array) -> None:
        """Write the values of this step; again for the same step: the same."""
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
        """It is another one's now."""
        self._ways.pop(actuator, None)
