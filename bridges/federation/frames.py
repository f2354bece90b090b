"""States at which the frames of a federation begin: on a grid of the plant's steps, without drift."""

from __future__ import annotations

from collections.abc import Mapping

import rtmms

from ..lines.pacing import Pacer

STEP_TOLERANCE = 1e-6
"""Share of a step by which a period may differ from whole steps of the plant."""


def steps_of(period_s: float, plant: rtmms.PlantInfo, place: str) -> int:
    """Return the plant's steps in a period of the federation.

    Parameters
    ----------
    period_s : float
        The period, s.
    plant : rtmms.PlantInfo
        The plant.
    place : str
        Source of the period, for the error.

    Returns
    -------
    int
        Number of steps.

    Raises
    ------
    ModelError
        If it is no whole number.
    """
    steps = round(period_s / plant.dt)
    if steps < 1 or abs(period_s - steps * plant.dt) > STEP_TOLERANCE * plant.dt:
        raise rtmms.ModelError(f"{place}: expected a multiple of the plant's step of {plant.dt:g} s, got {period_s:g}")
    return steps


class Frames:
    """Frames of a federation: frame i begins at step origin + i * steps.

    The origin is the step of the plant at which it joins. In lockstep the plant takes the steps of a frame when the
    federation has granted it (rtmms_bridges.lines.pacing). Otherwise it continues. Then a frame begins with the first
    state at or after its place on the grid. Frames that passed while the federation was late are left out.

    Parameters
    ----------
    bridge : rtmms.Bridge
        The bridge.
    locked : bool
        Whether the plant waits for us.
    steps : int
        Steps of a frame.
    who : str
        Name of the federation, for messages.

    Attributes
    ----------
    index : int
        Index of the last frame that began; -1 before the first.
    """

    def __init__(self, bridge: rtmms.Bridge, locked: bool, steps: int, who: str) -> None:
        self._bridge, self.locked, self.steps = bridge, locked, steps
        self._pacer = Pacer(bridge, locked, who)
        self.index, self.origin = -1, 0
        self._first: rtmms.State | None = None
        self._asked = False

    @property
    def newest(self) -> rtmms.State | None:
        """The newest state; None before the first."""
        return self._pacer.newest

    def start(self) -> rtmms.State | None:
        """Begin, because the federation is there.

        Returns
        -------
        rtmms.State | None
            State of frame 0; None while the plant has sent none.
        """
        self._asked = True
        return self._begin(self._first) if self._first is not None else None

    def on_state(self, state: rtmms.State) -> rtmms.State | None:
        """Handle a state.

        Parameters
        ----------
        state : rtmms.State
            The state.

        Returns
        -------
        rtmms.State | None
            The state if a frame begins with it.
        """
        if self._first is None:
            self._first = state
        due = self._pacer.on_state(state)
        if self.index < 0:
            return self._begin(state) if self._asked else None
        if self.locked:
            return self._begin(due) if due is not None else None
        return self._reached()

    def go(self, values: Mapping[str, float] | None) -> rtmms.State | None:
        """Handle a grant of the present frame.

        Parameters
        ----------
        values : Mapping[str, float] | None
            Actuator values that hold from now on; None: unchanged.

        Returns
        -------
        rtmms.State | None
            State of the next frame, if it is there already.
        """
        self._asked = True
        if values is not None:
            self._pacer.drive(values)
        newest = self._pacer.newest
        if not self.locked or newest is None:
            return self._reached()
        ahead = self._next() - newest.step - (0 if self._pacer.waiting else 1)
        due = self._pacer.go(max(1 if self._pacer.waiting else 0, ahead))
        return self._begin(due) if due is not None else None

    def idle(self, values: Mapping[str, float]) -> None:
        """Set values, and take no more steps for the federation.

        Parameters
        ----------
        values : Mapping[str, float]
            Actuator values.
        """
        self._pacer.idle(values)

    def leave(self) -> None:
        """Let the plant continue alone, because the federation has ended."""
        if self.locked:
            self._pacer.wake()
            self.locked = self._pacer.locked = self._bridge.waits = False
            if self._pacer.waiting:
                self._bridge.io.command({})
        self._asked = False

    def again(self, locked: bool) -> None:
        """Continue the frames with another plant, which begins at step 0.

        Parameters
        ----------
        locked : bool
            Whether it waits for us.
        """
        self.locked, self._first = locked, None
        self._pacer.plant_again(locked)
        self.origin = -(self.index + 1) * self.steps

    def tick(self, now: float) -> None:
        """Handle time-outs.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        self._pacer.tick(now)

    def _next(self) -> int:
        """Return the step at which the next frame begins."""
        return self.origin + (self.index + 1) * self.steps

    def _reached(self) -> rtmms.State | None:
        newest = self._pacer.newest
        if newest is None or not self._asked:
            return None
        if newest.step < self._next() - self.steps:  # the plant was reset
            self.origin = newest.step - self.index * self.steps
        return self._begin(newest) if newest.step >= self._next() else None

    def _begin(self, state: rtmms.State) -> rtmms.State:
        self._asked = False
        if self.index < 0:
            self.index, self.origin = 0, state.step
        elif self.locked:
            self.index += 1
            self.origin = state.step - self.index * self.steps  # the same as before, but after a reset
        else:
            self.index = (state.step - self.origin) // self.steps
        return state
