"""The states at which the frames of a federation begin: on a grid of the plant's steps, without drift."""

from __future__ import annotations

from collections.abc import Mapping

import rtmms

from ..lines.pacing import Pacer

STEP_TOLERANCE = 1e-6
"""A period may differ from whole steps of the plant by this share of one."""


def steps_of(period_s: float, plant: rtmms.PlantInfo, place: str) -> int:
    """The plant's steps in a period of the federation; ModelError where they are not a whole number."""
    steps = round(period_s / plant.dt)
    if steps < 1 or abs(period_s - steps * plant.dt) > STEP_TOLERANCE * plant.dt:
        raise rtmms.ModelError(f"{place}: expected a multiple of the plant's step of {plant.dt:g} s, got {period_s:g}")
    return steps


class Frames:
    """Frame i begins at step origin + i * steps, where the origin is the step of the plant at which it is joined.

    In lockstep the plant takes the steps of a frame when the federation has granted it (rtmms_bridges.lines.pacing).
    Otherwise it runs on: a frame begins with the first state from its place on the grid on, and those that went by
    while the federation was late are left out.

    locked   the plant waits for us
    index    of the frame that began last; -1 before the first
    """

    def __init__(self, bridge: rtmms.Bridge, locked: bool, steps: int, who: str) -> None:
        self._bridge, self.locked, self.steps = bridge, locked, steps
        self._pacer = Pacer(bridge, locked, who)
        self.index, self.origin = -1, 0
        self._first: rtmms.State | None = None
        self._asked = False

    @property
    def newest(self) -> rtmms.State | None:
        return self._pacer.newest

    def start(self) -> rtmms.State | None:
        """The federation is there: the state of frame 0, None while the plant has sent none."""
        self._asked = True
        return self._begin(self._first) if self._first is not None else None

    def on_state(self, state: rtmms.State) -> rtmms.State | None:
        """The state if a frame begins with it."""
        if self._first is None:
            self._first = state
        due = self._pacer.on_state(state)
        if self.index < 0:
            return self._begin(state) if self._asked else None
        if self.locked:
            return self._begin(due) if due is not None else None
        return self._reached()

    def go(self, values: Mapping[str, float] | None) -> rtmms.State | None:
        """The federation has granted the present frame: these values hold from now on (None: as they are). The state of
        the next frame where it is here already."""
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
        """These values, and no more steps for the federation."""
        self._pacer.idle(values)

    def leave(self) -> None:
        """The federation is no more: the plant goes on by itself."""
        if self.locked:
            self._pacer.wake()
            self.locked = self._pacer.locked = self._bridge.waits = False
            if self._pacer.waiting:
                self._bridge.io.command({})
        self._asked = False

    def again(self, locked: bool) -> None:
        """Another plant, whose steps begin anew; the frames go on."""
        self.locked, self._first = locked, None
        self._pacer.plant_again(locked)
        self.origin = -(self.index + 1) * self.steps

    def tick(self, now: float) -> None:
        self._pacer.tick(now)

    def _next(self) -> int:
        """The step at which the next frame begins."""
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
