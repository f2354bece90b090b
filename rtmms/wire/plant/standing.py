"""Where a peer stands with the plant: all states, and all that may become of them, in one table."""

from __future__ import annotations

WARMING, READY, LIVE, DEAD, GONE = "warming", "ready", "live", "dead", "gone"
"""Answering the warm-up; done with it, to be admitted between two steps; at work, or an observer; its connection broke
or it has long said nothing, but its claim is kept; it said bye, or lost its place to another one."""

WARM, ADMITTED, LOST, HEARD, LEFT = "warm", "admitted", "lost", "heard", "left"
"""What happens: the last warm-up state is answered; a step may begin; it died; a message of it came; it leaves."""

_BECOMES = {
    (WARMING, WARM): READY,
    (READY, ADMITTED): LIVE,
    (LIVE, LOST): DEAD,
    (DEAD, HEARD): LIVE,
    (WARMING, LEFT): GONE,
    (READY, LEFT): GONE,
    (LIVE, LEFT): GONE,
    (DEAD, LEFT): GONE,
}


class Standing:
    """One peer's. Nobody else writes `state`; RuntimeError for what is not in the table, which none of a peer's words
    can bring about."""

    __slots__ = ("state",)

    def __init__(self, observer: bool) -> None:
        self.state = LIVE if observer else WARMING

    def on(self, event: str) -> None:
        """This has happened."""
        state = _BECOMES.get((self.state, event))
        if state is None:
            raise RuntimeError(f"a peer that is {self.state} cannot become what follows '{event}'")
        self.state = state
