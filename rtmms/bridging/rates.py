"""Rate of states at a bridge: fewer than the plant has, at a chosen rate, with or without a filter against aliasing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from math import exp, floor, pi, sqrt
from typing import Any, Literal

from rtmms.base.errors import RenamedWarning
from rtmms.wire.protocol.received_state import State

Filter = Literal["none", "mean", "lowpass"]
CORNER = 0.2
"""Corner of the low-pass filter over the sent rate.

A frequency that would fold onto 0 Hz is passed at 0.2 of its height.
"""

_EPS = 1e-9


class Decimator:
    """Reduction of states to a chosen rate of simulated time, with an optional filter against aliasing.

    Filters delay their signals: the mean by half an interval, the low-pass by 1 / (2 pi CORNER rate). Outputs with a
    name that ends with 'quaternion' stay of length one.

    Parameters
    ----------
    rate_hz : float
        Most states per second of simulated time, on a grid from t = 0, Hz; 0: every one.
    filter : Filter, default 'none'
        'none': the newest state. 'mean': the mean since the last sent state, which removes frequencies at whole
        multiples of the rate. 'lowpass': one pole at CORNER times the rate.
    longest : int, default 64
        Longer lists pass unchanged.
    """

    def __init__(self, rate_hz: float, filter: Filter = "none", longest: int = 64) -> None:
        self.rate_hz, self.filter, self.longest = rate_hz, filter, longest
        self._slot, self._time = -1, -1.0
        self._accumulated: dict[str, Any] = {}
        self._count = 0

    def feed(self, state: State) -> State | None:
        """Process a state.

        Parameters
        ----------
        state : State
            The state.

        Returns
        -------
        State | None
            The state to pass on; None if none is due.
        """
        if self.rate_hz <= 0:
            return state
        if state.time < self._time:  # the plant was reset
            self._slot, self._accumulated, self._count = -1, {}, 0
        lapse, self._time = state.time - self._time, state.time
        if self.filter == "mean":
            self._count += 1
            self._blend(state.outputs, lambda stored, new: stored + new)
        elif self.filter == "lowpass":
            share = 1.0 if not self._accumulated else 1.0 - exp(-2.0 * pi * CORNER * self.rate_hz * lapse)
            self._blend(state.outputs, lambda stored, new: stored + share * (new - stored))
        slot = floor(state.time * self.rate_hz + _EPS)
        if slot <= self._slot:
            return None
        self._slot = slot
        if self.filter == "none":
            return state
        return state.with_outputs(self._smooth(state.outputs))

    def _blend(self, outputs: Mapping[str, Any], join: Callable[[float, float], float]) -> None:
        accumulated = self._accumulated
        for name, value in outputs.items():
            if isinstance(value, list):
                if len(value) > self.longest:
                    continue
                before = accumulated.get(name)
                new = _near(before, value) if before is not None and _is_attitude(name, value) else value
                accumulated[name] = (
                    list(new) if before is None else [join(a, b) for a, b in zip(before, new, strict=True)]
                )
            else:
                accumulated[name] = join(accumulated[name], value) if name in accumulated else value

    def _smooth(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        over = float(self._count) if self.filter == "mean" else 1.0
        smooth: dict[str, Any] = dict(outputs)
        for name, stored in self._accumulated.items():
            if not isinstance(stored, list):
                smooth[name] = stored / over
            elif _is_attitude(name, stored):
                length = sqrt(sum(x * x for x in stored))
                smooth[name] = [x / length for x in stored] if length > 1e-6 else list(outputs[name])
            else:
                smooth[name] = [x / over for x in stored]
        if self.filter == "mean":
            self._accumulated, self._count = {}, 0
        return smooth


def _is_attitude(name: str, value: list[float]) -> bool:
    return len(value) == 4 and name.endswith("quaternion")


def _near(before: list[float], q: list[float]) -> list[float]:
    """Return q or -q, which are the same attitude: the one nearer to the earlier quaternion."""
    return q if sum(a * b for a, b in zip(before, q, strict=True)) >= 0 else [-x for x in q]


RENAMED = {
    "Backoff": "rtmms.bridging.sending.Backoff", "Counters": "rtmms.bridging.counters.Counters",
    "Outbox": "rtmms.bridging.sending.Outbox", "PeerWatch": "rtmms.bridging.peer_watch.PeerWatch",
    "Turns": "rtmms.bridging.sending.Turns", "Watchdog": "rtmms.bridging.peer_watch.Watchdog",
}  # fmt: skip
"""Classes that this module had, and where they are; the next version removes the old names."""


def __getattr__(name: str) -> Any:
    """Return a class that this module had, with a warning."""
    if name not in RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = RENAMED[name]
    warnings.warn(
        f"{__name__}.{name} is {new} now; the next version removes the old name", RenamedWarning, stacklevel=2
    )
    return getattr(import_module(new.rpartition(".")[0]), name)
