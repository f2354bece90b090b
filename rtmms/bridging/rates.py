"""Fewer states than the plant has: at a chosen rate of simulated time, with or without a filter against aliasing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, floor, pi, sqrt
from typing import Any, Literal

from rtmms.wire.protocol.state import State

Filter = Literal["none", "mean", "lowpass"]
CORNER = 0.2
"""Corner of the low-pass over the rate that is sent: what would fold onto 0 Hz is passed at 0.2 of its height."""

_EPS = 1e-9


class Decimator:
    """Of the states that come in, those that are due; their outputs averaged or smoothed where asked.

    rate_hz   states to let through per second of simulated time, on a grid from t = 0; 0: every one
    filter    'none': the newest as it is. 'mean': of all since the last one that went out; takes frequencies at
              whole multiples of the rate out entirely. 'lowpass': one pole at CORNER times the rate.

    Filters delay what they smooth: the mean by half an interval, the low-pass by 1 / (2 pi CORNER rate). Outputs whose
    name ends with 'quaternion' stay of length one. Lists of more than `longest` numbers are let through as they are.
    """

    def __init__(self, rate_hz: float, filter: Filter = "none", longest: int = 64) -> None:
        self.rate_hz, self.filter, self.longest = rate_hz, filter, longest
        self._slot, self._time = -1, -1.0
        self._kept: dict[str, Any] = {}
        self._count = 0

    def feed(self, state: State) -> State | None:
        """The state to pass on, or None while none is due."""
        if self.rate_hz <= 0:
            return state
        if state.time < self._time:  # the plant was reset
            self._slot, self._kept, self._count = -1, {}, 0
        lapse, self._time = state.time - self._time, state.time
        if self.filter == "mean":
            self._count += 1
            self._blend(state.outputs, lambda kept, new: kept + new)
        elif self.filter == "lowpass":
            share = 1.0 if not self._kept else 1.0 - exp(-2.0 * pi * CORNER * self.rate_hz * lapse)
            self._blend(state.outputs, lambda kept, new: kept + share * (new - kept))
        slot = floor(state.time * self.rate_hz + _EPS)
        if slot <= self._slot:
            return None
        self._slot = slot
        if self.filter == "none":
            return state
        return state.with_outputs(self._smooth(state.outputs))

    def _blend(self, outputs: Mapping[str, Any], join: Callable[[float, float], float]) -> None:
        kept = self._kept
        for name, value in outputs.items():
            if isinstance(value, list):
                if len(value) > self.longest:
                    continue
                before = kept.get(name)
                new = _near(before, value) if before is not None and _is_attitude(name, value) else value
                kept[name] = list(new) if before is None else [join(a, b) for a, b in zip(before, new, strict=True)]
            else:
                kept[name] = join(kept[name], value) if name in kept else value

    def _smooth(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        over = float(self._count) if self.filter == "mean" else 1.0
        smooth: dict[str, Any] = dict(outputs)
        for name, kept in self._kept.items():
            if not isinstance(kept, list):
                smooth[name] = kept / over
            elif _is_attitude(name, kept):
                length = sqrt(sum(x * x for x in kept))
                smooth[name] = [x / length for x in kept] if length > 1e-6 else list(outputs[name])
            else:
                smooth[name] = [x / over for x in kept]
        if self.filter == "mean":
            self._kept, self._count = {}, 0
        return smooth


def _is_attitude(name: str, value: list[float]) -> bool:
    return len(value) == 4 and name.endswith("quaternion")


def _near(before: list[float], q: list[float]) -> list[float]:
    """q or -q, which are the same attitude: the one nearer to what was there before."""
    return q if sum(a * b for a, b in zip(before, q, strict=True)) >= 0 else [-x for x in q]
