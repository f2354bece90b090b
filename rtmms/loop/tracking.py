"""How far a run was off its controllers' set-points: the truth, sample by sample, against what they held then."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.analysis.courses import Course, read_course
from rtmms.contract import TRUTH
from rtmms.errors import ModelError

if TYPE_CHECKING:
    from rtmms.loop.ports import Applied, Array

APART_S = 0.02
HELD_S = 1.0
"""For so long within its band, and a set-point counts as reached."""
SHARE = 0.05
"""Of the step of a set-point, which its band is; not less than the quantity's own."""
_BANDS = {"_m": 0.03, "_deg": 3.0, "_m_s": 0.05}
_FIRST, _MOST = 1 << 12, 1 << 20
"""Samples that there is room for from the start, and at most."""
_TRUTH = ("position", "quaternion", "velocity")


def _angle(k: int) -> Callable[[Mapping[str, Array]], float]:
    def found(outputs: Mapping[str, Array]) -> float:
        w, x, y, z = (float(one) for one in outputs["quaternion"])
        if k == 0:
            return math.degrees(math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)))
        if k == 1:
            return math.degrees(math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x)))))
        return math.degrees(math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))

    return found


def _place(k: int, sign: float = 1.0) -> Callable[[Mapping[str, Array]], float]:
    return lambda outputs: sign * float(outputs["position"][k])


QUANTITIES: Mapping[str, Callable[[Mapping[str, Array]], float]] = {
    "depth_m": _place(2, -1.0), "altitude_m": _place(2), "x_m": _place(0), "y_m": _place(1), "z_m": _place(2),
    "roll_deg": _angle(0), "pitch_deg": _angle(1), "heading_deg": _angle(2), "yaw_deg": _angle(2),
    "speed_m_s": lambda outputs: float(outputs["velocity"][0]),
}  # fmt: skip
"""What may be tracked, from the truth: position, attitude, body-x velocity. Beside them cross_track_m, of a course."""
CROSS = "cross_track_m"


class _Samples:
    """Time, set-point and error of one quantity (samples, 3), in an array that is doubled when it is full."""

    __slots__ = ("_rows", "count")

    def __init__(self) -> None:
        self._rows, self.count = np.empty((_FIRST, 3)), 0

    def add(self, time: float, point: float, error: float) -> None:
        if self.count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        row = self._rows[self.count]
        row[0], row[1], row[2] = time, point, error
        self.count += 1

    def all(self) -> Array:
        return self._rows[: self.count]


class Tracking:
    """An observer of a run.

    set_points   the present ones by name;  from_s  what was before does not count
    tell         is told of them whenever they are others than before: the step at whose end they are seen, and they
    due          (read by the loop) the next step whose end is wanted
    """

    def __init__(
        self, dt: float, set_points: Callable[[], Mapping[str, Any]], from_s: float = 0.0,
        tell: Callable[[int, Mapping[str, Any]], None] | None = None,
    ) -> None:  # fmt: skip
        self._dt, self._ask, self._from_s, self._tell = dt, set_points, from_s, tell
        self._told: Mapping[str, Any] = {}
        self._stride = max(1, round(APART_S / dt))
        self._rows: dict[str, _Samples] = {}
        self._truth: dict[str, Array] = {}
        self._courses: dict[str, tuple[Course | None, float]] = {}
        self.due = 0

    def clear(self) -> None:
        """Forget what was seen."""
        self._rows.clear()
        self._truth.clear()
        self._courses.clear()
        self._told = {}
        self.due = 0

    def start(self, outputs: Mapping[str, Array]) -> None:
        """The state before the first step."""
        self.due = self._stride - 1

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Observer: `step` has ended, and outputs hold at its end."""
        self.due = step + self._stride
        points = self._ask()
        if points != self._told:
            self._told = points
            if self._tell is not None:
                self._tell(step, points)
        if not points:
            self.due = step + 50 * self._stride
            return
        truths: dict[str, Mapping[str, Array]] = {}
        for name, wanted in points.items():
            prefix = name[: name.rfind(".") + 1]
            truth = truths.get(prefix)
            if truth is None:
                truth = truths[prefix] = self._truth_of(outputs, prefix)
            rows = self._rows.get(name)
            if rows is None:
                rows = self._rows[name] = _Samples()
            if rows.count >= _MOST:
                continue
            try:
                error, point = self._error(name, name.removeprefix(prefix), wanted, truth)
            except KeyError:  # the plant does not tell its pose
                continue
            if math.isfinite(error):
                rows.add(time, point, error)

    def _truth_of(self, outputs: Mapping[str, Array], prefix: str = "") -> Mapping[str, Array]:
        """By their own names, what stands under the truth's; all outputs where nothing does.

        prefix  of one of several robots: what its outputs begin with"""
        if prefix:
            for begin in (prefix + TRUTH, prefix):
                found = {name: outputs[begin + name] for name in _TRUTH if begin + name in outputs}
                if found:
                    return found
            return {}
        for name in _TRUTH:
            if TRUTH + name in outputs:
                self._truth[name] = outputs[TRUTH + name]
        return self._truth or outputs

    def _error(self, told: str, name: str, wanted: Any, truth: Mapping[str, Array]) -> tuple[float, float]:
        """told  the name of the set-point, with its robot's before it where there are several"""
        if name == CROSS and isinstance(wanted, str):
            return self._off_course(told, wanted, np.asarray(truth["position"], dtype=float)), 0.0
        of = QUANTITIES.get(name)
        if of is None or isinstance(wanted, str):
            return math.nan, 0.0
        error = of(truth) - float(wanted)
        if name.endswith("_deg"):
            error = (error + 180.0) % 360.0 - 180.0
        return error, float(wanted)

    def _off_course(self, told: str, words: str, position: Array) -> float:
        key = told + " " + words
        if key not in self._courses:
            try:
                self._courses[key] = read_course(words), 0.0
            except ModelError:
                self._courses[key] = None, 0.0
        found, along = self._courses[key]
        if found is None:
            return math.nan
        along = found.nearest(position, along)
        self._courses[key] = found, along
        if along >= found.whole_m - 1e-6:
            return math.nan
        return float(np.linalg.norm(position - found.at(along)[0]))

    def report(self) -> dict[str, dict[str, float | None]]:
        """{quantity: {rms, max, mean, settled_s}}, of what is within its band or was once, since its last change;
        settled_s  from that change on, None where it never was: the second half counts then."""
        return {name: _judged(name, rows.all(), self._from_s) for name, rows in self._rows.items() if rows.count}


def _judged(name: str, rows: Array, from_s: float) -> dict[str, float | None]:
    time, point, error = rows.T
    counts = np.zeros(len(time), dtype=bool)
    unit = next((end for end in ("_m_s", "_deg", "_m") if name.endswith(end)), "_m")
    band = 5.0 * _BANDS[unit] if name.endswith(CROSS) else _BANDS[unit]
    edges = [0, *(np.flatnonzero(np.diff(point)) + 1), len(time)]
    settled: float | None = None
    for first, last in itertools.pairwise(edges):
        within = np.abs(error[first:last]) <= max(band, SHARE * abs(float(error[first])))
        at = _held(
            within, max(1, round(HELD_S / max(APART_S, float(np.median(np.diff(time))) if len(time) > 1 else 1.0)))
        )
        settled = None if at is None else float(time[first + at] - time[first])
        counts[first + (len(within) // 2 if at is None else at) : last] = True
    counts &= time >= from_s
    kept = error[counts]
    if not len(kept):
        return {"rms": None, "max": None, "mean": None, "settled_s": settled}
    return {
        "rms": float(np.sqrt(np.mean(kept**2))), "max": float(np.max(np.abs(kept))), "mean": float(np.mean(kept)),
        "settled_s": settled,
    }  # fmt: skip


def _held(within: Any, samples: int) -> int | None:
    """The first of so many in a row that are true."""
    run = 0
    for k, one in enumerate(within):
        run = run + 1 if one else 0
        if run >= samples:
            return k - samples + 1
    return None
