"""Advice where a controller or a bridge takes longer for its answers than a step has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtmms.wire.peer.late_answers import ANSWER, READING, SLOWEST

MAX_LATE_SHARE = 0.01
"""Share of a peer's commands that may be late before it gets advice."""
_ROOM = 1.1
_MAX_DEADLINE_SHARE = 0.9
"""Latest deadline of a run, as a share of the period (rtmms.loop.clock.deadline_s)."""
_SATURATED = 1.2
"""Ratio of a peer's interval of commands to the requested one, from which on it answers without a pause."""
_MOSTLY_LATE = 0.5
"""Share of late commands from which on the time of late answers is that of all."""
_SHARE_OF_WINDOW = 0.5
"""Share of its time below which a peer is not the cause."""


@dataclass(frozen=True)
class PeerPace:
    """Pace of a run for its peers.

    Attributes
    ----------
    period_s, deadline_s : float
        s of wall time.
    rate : float, default 1.0
        Simulated over wall time.
    """

    period_s: float
    deadline_s: float
    rate: float = 1.0


def advice(peer: Mapping[str, Any], kind: str, steps: int, pace: PeerPace, delay_s: float = 0.0) -> str:
    """Return the consequence for the commands of a peer, and the remedy.

    Parameters
    ----------
    peer : Mapping[str, Any]
        Its entry in the report: name, commands, late, every, metrics.
    kind : str
        Its name for a person, as 'controller mine'.
    steps : int
        Steps since it was admitted.
    pace : PeerPace
        Period, deadline and rate of the run.
    delay_s : float, default 0.0
        Delay of a command by an impaired link (--link), s of wall time.

    Returns
    -------
    str
        '' without advice.
    """
    asked = steps / peer["every"]
    if asked < 1 or peer["late"] <= MAX_LATE_SHARE * asked:
        return ""
    period, figures = pace.period_s, peer.get("metrics", {})
    typical_s, slowest, reading = (1e-6 * figures.get(name, 0.0) for name in (ANSWER, SLOWEST, READING))
    commands = peer["commands"]
    if ANSWER not in figures and 2 * peer["late"] > commands and asked > _SATURATED * commands:
        typical_s = slowest = steps * period / commands  # it answers without a pause, and reports nothing of itself
    window = pace.deadline_s + peer["delay"] * period
    if typical_s + reading + delay_s < _SHARE_OF_WINDOW * window:
        return ""  # the computer was late, not the peer
    due = f"a command is due after {_time(window)} (the period is {_time(period)})"
    total = typical_s + reading + delay_s
    longest = max(_ROOM * total, slowest + reading + delay_s)
    ways = _ways(peer, kind, total, longest, pace)
    if not ways:
        return ""
    if delay_s >= max(typical_s, reading):
        return f"--link delays each command of {kind} by {_time(delay_s)}, and {due}: {ways}"
    if reading > typical_s:
        return f"{kind} takes {_time(reading)} to read a state, and {due}: ask for fewer outputs, {ways}"
    if ANSWER in figures and peer["late"] < _MOSTLY_LATE * asked:  # a link times late answers only
        answers = f"its late answers ({peer['late']} of {asked:.0f})"
    else:
        answers = "an answer"
    return f"{kind} takes {_time(typical_s)} for {answers}, and {due}: {ways}"


def _ways(peer: Mapping[str, Any], kind: str, usual_s: float, longest_s: float, pace: PeerPace) -> str:
    """Return the ways to give a peer more time: fewer states, a later deadline, a slower plant.

    With every=n a controller has n periods for each command; a bridge owes its command at the step of its state.
    """
    ways, period = [], pace.period_s
    if not kind.startswith("bridge "):
        ways.append(f"run it with every={max(_every(usual_s, longest_s, pace), peer['every'] + 1)}")
    elif pace.deadline_s < longest_s < _MAX_DEADLINE_SHARE * period:
        ways.append(f"run the plant with --deadline {_up(longest_s):g}")
    slower = max(longest_s / (_MAX_DEADLINE_SHARE + peer["delay"]), _ROOM * usual_s / peer["every"])
    if slower > period:
        ways.append(f"run the plant with --rate {_down(pace.rate * period / slower):g}")
    return ", or ".join(ways)


def _every(usual_s: float, longest_s: float, pace: PeerPace) -> int:
    """Return the steps between two states that leave room for the usual answer and for the longest.

    A controller with every=n has n periods from state to state, and n periods and the deadline for each command.
    """
    return max(2, math.ceil(_ROOM * usual_s / pace.period_s), math.ceil((longest_s - pace.deadline_s) / pace.period_s))


def _down(value: float) -> float:
    """Return the number rounded down to two digits."""
    size = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / size) * size


def _up(value: float) -> float:
    """Return the number rounded up to two digits."""
    size = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / size) * size


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"


class SlowPeers:
    """Search for slow peers during a run, and at its end; each finding is reported once.

    Parameters
    ----------
    pace : PeerPace | None
        Pace of the run; None without a schedule.
    kinds : Mapping[str, str]
        A person's name for a peer, by its name.
    delays : Mapping[str, float]
        Delay by --link by the name of the peer, s of wall time.
    """

    AFTER_S = 1.0

    def __init__(self, pace: PeerPace | None, kinds: Mapping[str, str], delays: Mapping[str, float]) -> None:
        self._pace, self._kinds, self._delays = pace, kinds, delays
        self._advised: dict[str, str] = {}

    def news(self, peers: Sequence[Mapping[str, Any]], steps: int) -> list[str]:
        """Return advice for peers that got none yet; none in the first second.

        Parameters
        ----------
        peers : Sequence[Mapping[str, Any]]
            Entries of the report.
        steps : int
            Steps so far.

        Returns
        -------
        list[str]
            Sentences.
        """
        if self._pace is None or steps * self._pace.period_s < self.AFTER_S:
            return []
        result = {}
        for peer in peers:
            name = peer["name"]
            if name not in self._advised and (text := self._advice(peer, steps)):
                result[name] = text
        self._advised |= result
        return list(result.values())

    def at_end(self, peers: Sequence[Mapping[str, Any]], steps: int) -> list[str]:
        """Return the same sentences again, and advice for peers that became slow afterwards.

        Parameters
        ----------
        peers : Sequence[Mapping[str, Any]]
            Entries of the report.
        steps : int
            Steps of the run.

        Returns
        -------
        list[str]
            Sentences.
        """
        if self._pace is None:
            return []
        late = {peer["name"]: self._advice(peer, steps) for peer in peers if peer.get("claim")}
        return [self._advised.get(name) or text for name, text in late.items() if text or name in self._advised]

    def _advice(self, peer: Mapping[str, Any], steps: int) -> str:
        assert self._pace is not None
        name = peer["name"]
        kind = self._kinds.get(name, f"peer '{name}'")
        return advice(peer, kind, steps, self._pace, self._delays.get(name, 0.0))
