"""Pacing by an autopilot: a number of the plant's steps for each of its frames, and none while it is silent."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from math import floor, inf
from time import monotonic

import rtmms

from ..motion.pose import Motion

HOLD_S = 2.0
"""Silence of the peer after which a plant in lockstep is asked to pause, s.

Such a plant ends its run when nobody has answered it for 5 s.
"""
FETCH_S = 0.2
RESET_S = 5.0
MIN_RESET_INTERVAL_S = 2.0
MAX_FRAME_S = 0.1
"""Frame that autopilots accept, s."""
MAX_CATCH_UP_STATES = 8
"""Latest states that a late peer still gets, one a frame, if the plant does not wait for it.

A peer that is always slower than the plant sees the plant this many steps late.
"""

_ZERO = (0.0, 0.0, 0.0)


def substeps(rate_hz: float, step_s: float, longest_s: float = MAX_FRAME_S) -> int:
    """Return the steps in one frame of a peer: at least 1, and less than longest_s of time.

    Parameters
    ----------
    rate_hz : float
        Frames of the peer, Hz.
    step_s : float
        Simulated time of a step, s.
    longest_s : float, default MAX_FRAME_S
        Longest frame, s; 0 for any.

    Returns
    -------
    int
        Number of steps.

    Examples
    --------
    >>> substeps(250.0, 0.001)
    4
    """
    maximum = max(1, floor(longest_s / step_s - 1e-6)) if longest_s else 1 << 30
    return max(1, min(maximum, round(1.0 / (rate_hz * step_s))))


def at_rest(motion: Motion) -> Motion:
    """Return the same place and attitude, without any motion.

    Parameters
    ----------
    motion : Motion
        Motion of the robot.

    Returns
    -------
    Motion
        The motion at rest.
    """
    return replace(motion, velocity=_ZERO, velocity_body=_ZERO, rate=_ZERO, acceleration=_ZERO)


class Pacer:
    """Selection of the states at which the peer's frames end.

    In lockstep the plant waits for us and we for the peer: `go(n)` lets it take n steps. If the peer asks for none for
    HOLD_S, the plant is asked to pause, which takes one more step. At the peer's next frame it is asked to resume. In
    other modes the plant continues by itself. Then a frame ends with the first state that is n steps after the end of
    the last. The last `catch_up_states` states wait for a late peer, so that it loses no frame.

    Parameters
    ----------
    bridge : rtmms.Bridge
        The bridge.
    locked : bool
        Whether the plant waits for us.
    who : str
        Name of the peer, for messages.
    catch_up_states : int, default MAX_CATCH_UP_STATES
        Latest states that a late peer still gets, one a frame, if the plant does not wait for it.

    Attributes
    ----------
    newest : rtmms.State or None
        The newest state.
    excess : int
        In lockstep: steps of the plant that no frame asked for, such as the one of a pause, since the plant began.
    """

    def __init__(
        self, bridge: rtmms.Bridge, locked: bool, who: str, catch_up_states: int = MAX_CATCH_UP_STATES
    ) -> None:  # fmt: skip
        self._bridge, self.locked, self._who = bridge, locked, who
        self.newest: rtmms.State | None = None
        self.asked = False
        """Whether a frame is under way."""
        self.held = False
        """Whether the plant was asked to pause."""
        self.resetting = False
        self._reset_at = -inf
        self._values: dict[str, float] = {}
        self._owed = 0  # steps that the peer has asked for and the plant has not begun
        self._here = False  # in lockstep: the newest state is not answered yet
        self._since = 0.0
        self._pausing = False
        self._end = 0  # in other modes: the step at which the peer's frame ends
        self._passed: deque[rtmms.State] = deque(
            maxlen=catch_up_states
        )  # in other modes: those that no frame has ended with
        self._count = 0  # steps, or in lockstep states, of the frame under way
        self._ended_at = 0  # in lockstep: the step at which the last frame ended
        self.excess = 0

    def on_state(self, state: rtmms.State) -> rtmms.State | None:
        """Handle a state.

        Parameters
        ----------
        state : rtmms.State
            The state.

        Returns
        -------
        rtmms.State | None
            The state if the peer's frame ends with it.
        """
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
        """Handle the plant's first state that counts.

        A frame under way ends as many steps after it as were requested.
        """
        self.resetting, self.excess, self._ended_at = False, 0, step
        self._passed.clear()
        self._end = step + (self._count if self.asked else 0)

    def drive(self, values: Mapping[str, float]) -> None:
        """Set the peer's actuator values from now on; in lockstep they let no step begin.

        Parameters
        ----------
        values : Mapping[str, float]
            Values by name.
        """
        self._bridge.peer_watch.fed()
        self._set(values)

    def idle(self, values: Mapping[str, float]) -> None:
        """Set values for a lost peer, and take no more steps for it.

        Parameters
        ----------
        values : Mapping[str, float]
            Values by name.
        """
        self._set(values)
        self.asked, self._owed = False, 0

    def _set(self, values: Mapping[str, float]) -> None:
        if self.locked:
            self._values.update(values)
        elif self._bridge.plant.granted:
            self._bridge.io.command(values)

    def go(self, count: int) -> rtmms.State | None:
        """Begin the peer's next frame.

        Parameters
        ----------
        count : int
            Steps of the frame.

        Returns
        -------
        rtmms.State | None
            The state that ends it, if it is here already.
        """
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
        """Whether a plant in lockstep waits for the answer to the newest state."""
        return self._here

    def wake(self) -> None:
        """Let a paused plant continue."""
        if self.held:
            self.held = self._pausing = False
            self._bridge.io.post("resume")

    def reset(self) -> None:
        """Reset the plant, and ignore its states until then.

        At most one reset is sent in MIN_RESET_INTERVAL_S, because a peer that seems to restart more often has not
        restarted.
        """
        if monotonic() - self._reset_at < MIN_RESET_INTERVAL_S:
            self._bridge.counts.add("resets_refused")
            return
        self._reset_at = monotonic()
        self._bridge.io.post("reset")
        self._bridge.counts.add("resets")
        self.resetting, self._owed, self.asked, self._since = True, 0, False, monotonic()
        if self._here:
            self._answer()

    def tick(self, now: float) -> None:
        """Pause the plant if the peer is silent; the bridge's `tick` calls this.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        if self.resetting and now - self._reset_at > RESET_S:  # its states may come all the time
            self.resetting = False
            self._bridge.io.log("the plant did not carry out the requested reset")
        if not (self.locked and self._here):
            return
        if not self.held and now - self._since > HOLD_S:
            self.held = self._pausing = True
            self._since = now
            self._bridge.io.post("pause")
            self._bridge.io.log(f"{self._who} is silent: the bridge requests a pause of the plant")
        elif self._pausing and now - self._since > FETCH_S:
            self._pausing = False
            self._answer()  # requests are done between steps: this one lets it come to its end
        elif self.held and not self._pausing and now - self._since > HOLD_S:
            self.held = False  # it goes on all the same: somebody else let it

    def plant_again(self, locked: bool) -> None:
        """Continue with another run, with states from 0 and the peer's present request.

        Parameters
        ----------
        locked : bool
            Whether the plant waits for us.
        """
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
