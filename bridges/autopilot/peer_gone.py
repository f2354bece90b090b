"""End of a run after the loss of its autopilot, for bridges with the parameter `peer_gone_s`."""

from __future__ import annotations

import rtmms

PEER_GONE_S = 30.0
"""Default of `peer_gone_s`, s of wall time: a person or a script has restarted an autopilot by then."""


class PeerGone:
    """End of a run with a duration when its autopilot has been silent for too long; other runs wait for it.

    Parameters
    ----------
    bridge : rtmms.Bridge
        Bridge of the autopilot.
    who : str
        Autopilot, as messages name it.
    limit_s : float
        Silence that ends the run, s of wall time; 0: no silence ends it.

    Notes
    -----
    An autopilot that never came is not gone: `Bridge.unmet` reports it at the end of the run.
    """

    def __init__(self, bridge: rtmms.Bridge, who: str, limit_s: float) -> None:
        self._bridge, self._who, self._limit_s = bridge, who, limit_s
        self._silent_since: float | None = None

    def present(self) -> None:
        """Record that the autopilot is there."""
        self._silent_since = None

    def silent(self, since: float) -> None:
        """Record the begin of a silence.

        Parameters
        ----------
        since : float
            Its begin, monotonic time, s.
        """
        self._silent_since = since

    def check(self, now: float, time_s: float) -> None:
        """Ask the plant to stop if the silence is too long.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        time_s : float
            Simulated time, s.
        """
        duration_s = self._bridge.plant.duration_s
        if self._silent_since is None or not self._limit_s or duration_s is None:
            return
        if now - self._silent_since <= self._limit_s:
            return
        self._silent_since = None
        self._bridge.unmet = (
            f"{self._who} has been silent for {self._limit_s:g} s (peer_gone_s): the run ended at t = {time_s:.6g} s "
            f"of {duration_s:g} s"
        )
        self._bridge.io.log(self._bridge.unmet)
        self._bridge.io.post("stop")
