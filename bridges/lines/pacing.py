"""The steps that an autopilot asks for: so many of the plant's to each of its frames, and none while it is silent."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from math import floor, inf
from time import monotonic

import rtmms

from ..motion.pose import Motion

HOLD_S = 2.0
"""In lockstep a plant ends its run when nobody has answered it for 5 s. After this long it is asked to pause."""
FETCH_S = 0.2
RESET_S = 5.0
RESET_EVERY_S = 2.0
LONGEST_S = 0.1
"""Autopilots take no frame that is longer than this."""
CATCH_UP = 8
"""Latest states that a late peer still gets, one a frame, where the plant does not wait for it. A peer that is slower
than the plant all the time sees the plant by so many steps late."""

_ZERO = (0.0, 0.0, 0.0)


def substeps(rate_hz: float, step_s: float, longest_s: float = LONGEST_S) -> int:
    """Steps of step_s in one frame of a peer that has rate_hz of them: 1 at least, and less than longest_s of time."""
    most = max(1, floor(longest_s / step_s - 1e-6)) if longest_s else 1 << 30
    return max(1, min(most, round(1.0 / (rate_hz * step_s))))


def at_rest(motion: Motion) -> Motion:
    """The same place and attitude, without any motion."""
    return replace(motion, velocity=_ZERO, velocity_body=_ZERO, rate=_ZERO, acceleration=_ZERO)


class Pacer:
    """Takes a bridge's states, and gives back those at which the peer's frames end.

    In lockstep the plant waits for us and we for the peer: `go(n)` lets it take n steps. When the peer does not ask for
    HOLD_S the plant is asked to pause (which takes one more step), and to go on at the peer's next frame. In other
    modes the plant runs on by itself, and a frame ends with the first state that is n steps after the end of the last.
    The last CATCH_UP states wait for a peer that is late, so that it loses no frame.

    Attributes
    ----------
    excess : int
        In lockstep: steps of the plant that no frame asked for, such as the one of a pause, since the plant began.
    """

    def __init__(self, bridge: rtmms.Bridge, locked: bool, who: str) -> None:
        self._bridge, self.locked, self._who = bridge, locked, who
        self.newest: rtmms.State | None = None
        self.asked = False
        """A frame is under way."""
        self.held = False
        """The plant was asked to pause."""
        self.resetting = False
        self._reset_at = -inf
        self._values: dict[str, float] = {}
        self._owed = 0  # steps that the peer has asked for and the plant has not begun
        self._here = False  # in lockstep: the newest state is not answered yet
        self._since = 0.0
        self._pausing = False
        self._end = 0  # in other modes: the step at which the peer's frame ends
        self._passed: deque[rtmms.State] = deque(maxlen=CATCH_UP)  # in other modes: those that no frame has ended with
        self._count = 0  # steps, or in lockstep states, of the frame under way
        self._ended_at = 0  # in lockstep: the step at which the last frame ended
        self.excess = 0

    def on_state(self, state: rtmms.State) -> rtmms.State | None:
        """The state if the peer's frame ends with it."""
        before, self.newest = self.newest, state
        self._here, self._since = self.locked, monotonic()
        if self.resetting and before is not None and state.step > before.step:
            if self.locked:
                self._answer()
            return None
        if self.resetting or before is None or state.step < before.step:  # the plant begins
            self._begin(state.step)
        if self.locked:
            if self._owed:
                self._owed -= 1
                self._answer()
                return None
            due, self.asked = self.asked, False
            if due:
                self.excess += state.step - self._ended_at - self._count * self._bridge.every
                self._ended_at = state.step
            return state if due else None
        self._passed.append(state)
        return self._ended()

    def _begin(self, step: int) -> None:
        """The plant is at the first step that counts; a frame under way ends as many steps after it as were asked."""
        self.resetting, self.excess, self._ended_at = False, 0, step
        self._passed.clear()
        self._end = step + (self._count if self.asked else 0)

    def drive(self, values: Mapping[str, float]) -> None:
        """The peer's actuator values, from now on; in lockstep they let no step begin."""
        self._bridge.peer_watch.fed()
        self._set(values)

    def idle(self, values: Mapping[str, float]) -> None:
        """The peer is gone: these values, and no more steps for it."""
        self._set(values)
        self.asked, self._owed = False, 0

    def _set(self, values: Mapping[str, float]) -> None:
        if self.locked:
            self._values.update(values)
        elif self._bridge.plant.granted:
            self._bridge.io.command(values)

    def go(self, count: int) -> rtmms.State | None:
        """The peer's next frame, of so many steps. The state that ends it, where that is here already."""
        self.asked, self._count = True, count
        if not self.locked:
            self._end += count
            return None if self.resetting else self._ended()
        self._owed = count
        self.wake()
        if self._here and not self.resetting:
            self._owed -= 1
            self._answer()
        return None

    @property
    def waiting(self) -> bool:
        """In lockstep: the plant waits for the answer to the newest state."""
        return self._here

    def wake(self) -> None:
        """Let a plant that was asked to pause go on."""
        if self.held:
            self.held = self._pausing = False
            self._bridge.io.post("resume")

    def reset(self) -> None:
        """The plant is to begin anew: what it still sends of its old life is passed over. At most one in RESET_EVERY_S:
        a peer that begins anew more often than that is none that began anew."""
        if monotonic() - self._reset_at < RESET_EVERY_S:
            self._bridge.counts.add("resets_refused")
            return
        self._reset_at = monotonic()
        self._bridge.io.post("reset")
        self._bridge.counts.add("resets")
        self.resetting, self._owed, self.asked, self._since = True, 0, False, monotonic()
        if self._here:
            self._answer()

    def tick(self, now: float) -> None:
        """From the bridge's: the pause when the peer is silent."""
        if self.resetting and now - self._reset_at > RESET_S:  # its states may come all the time
            self.resetting = False
            self._bridge.io.log("the plant was asked for a reset and has not done it")
        if not (self.locked and self._here):
            return
        if not self.held and now - self._since > HOLD_S:
            self.held = self._pausing = True
            self._since = now
            self._bridge.io.post("pause")
            self._bridge.io.log(f"{self._who} is silent: the plant is asked to wait for it")
        elif self._pausing and now - self._since > FETCH_S:
            self._pausing = False
            self._answer()  # requests are done between steps: this one lets it come to its end
        elif self.held and not self._pausing and now - self._since > HOLD_S:
            self.held = False  # it goes on all the same: somebody else let it

    def plant_again(self, locked: bool) -> None:
        """Another run: its states begin at 0. What the peer asked for is asked of that one."""
        self.locked = locked
        self.newest, self._here, self.held, self._pausing, self.resetting = None, False, False, False, False
        self._end = self.excess = self._ended_at = 0
        self._values.clear()
        self._passed.clear()

    def _answer(self) -> None:
        self._here = False
        self._bridge.io.command(self._values)

    def _ended(self) -> rtmms.State | None:
        while self.asked and self._passed:
            state = self._passed.popleft()
            if state.step >= self._end:
                self.asked, self._end = False, state.step
                return state
        return None
