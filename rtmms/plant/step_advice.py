"""Which step keeps 1 % and 0.1 % of the path: what earlier runs of the same plant under the same controllers measured,
kept beside its kernels.

A run's errors of path and work at one step give the steps for other errors by the method's order; the work may be off
by five times the path's error, as where a run is doubted. A method with a bound is not trusted beyond a step that was
measured: there it may be unstable. Where nothing was measured, the plant itself may know (`PlantDescription.accurate`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.base.files import MIB, beside, read_input_text
from rtmms.plant.monitor import BOUNDS, Verdict
from rtmms.plant.protocol import Plant, Twin, describe_plant

ERRORS = (0.01, 0.001)
"""Of the path, for which a step is named; five times that of the work."""
MOST = 16
MAX_BYTES = MIB
"""Of the file in which errors are kept."""
FURTHEST = 4.0
"""How many times the step measured is as far as an estimate reaches."""
_STEPS = ("dt", "step_s", "substeps")

Measured = Mapping[str, Mapping[str, float]]
"""step, s, as text -> path_error, work_error, count"""
_KEYS = ("path_error", "work_error", "count")


class Calibration:
    """Of one plant.

    folder      where what was measured is kept
    driven_by   the words of its controllers: a livelier gait needs a shorter step
    """

    def __init__(self, plant: Plant, twin: Twin, folder: Path, driven_by: Sequence[str] = ()) -> None:
        self.twin = twin
        self.file = folder / f"accuracy-{_key(plant, twin, driven_by)}.json"
        self._own = dict(describe_plant(plant).accurate)

    def read(self) -> Measured:
        """What was measured; nothing where there is no file, or one that is not ours."""
        try:
            found = json.loads(read_input_text(self.file, max_bytes=MAX_BYTES))
            return {str(float(key)): {name: float(value[name]) for name in _KEYS} for key, value in found.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def keep(self, verdict: Verdict) -> None:
        """Add a run's verdict; where it cannot be written, it is forgotten."""
        if verdict.verdict not in ("fine", "doubtful") or not math.isfinite(verdict.path + verdict.work):
            return
        found = dict(self.read())
        key = str(float(f"{self.twin.finer[1]:.6g}"))
        if found.get(key, {"count": 0})["count"] > verdict.measured:
            return
        found[key] = {"path_error": verdict.path, "work_error": verdict.work, "count": float(verdict.measured)}
        while len(found) > MOST:
            found.pop(min(found, key=lambda one: found[one]["count"]))
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with beside(self.file) as part:
                part.write_text(json.dumps(found))
        except OSError:
            return

    def steps(self) -> dict[float, float]:
        """Error of the path, a fraction -> the longest step, s, that is thought to keep it; empty where unknown."""
        found, out = self.read(), {}
        for error in ERRORS:
            reached = [self._reach(float(key), value, error) for key, value in found.items()]
            if reached:
                # the estimate from nearest by
                out[error] = min(reached, key=lambda pair: abs(math.log(pair[1] / pair[0])))[1]
        return out or self._own

    def _beyond(self, value: float) -> bool:
        """By what was measured nearest to it, a step of that length is too long: not only longer than any that was."""
        found = {float(key): one for key, one in self.read().items()}
        if not found:
            return True  # the robot's own bound
        step = min(found, key=lambda one: abs(math.log(value / one)))
        return value > 1.0001 * step * self._ratio(found[step], ERRORS[0])

    def _reach(self, step: float, measured: Mapping[str, float], error: float) -> tuple[float, float]:
        """(step measured, step for the error)."""
        most = 1.0 if self.twin.bounded else FURTHEST
        return step, step * min(most, self._ratio(measured, error))

    def _ratio(self, measured: Mapping[str, float], error: float) -> float:
        """Of the step for the error to the step measured, by the method's order."""
        ratios = [error / ERRORS[0] * bound / measured[f"{name}_error"] for name, bound in BOUNDS.items()
                  if measured[f"{name}_error"] > 0.0]  # fmt: skip
        return float(min(ratios, default=math.inf) ** (1.0 / self.twin.order))

    def sentences(self) -> tuple[str, str]:
        """(what is known, a warning where the present step is beyond it), '' for none."""
        steps, (name, value) = self.steps(), self.twin.finer
        if not steps:
            return "", ""
        parts = [f"{name} <= {step:.2g} s keeps {100.0 * error:g} %" for error, step in steps.items()]
        source = "earlier runs" if self.read() else "the default gait"
        known = f"accuracy: {', '.join(parts)} of the path (known from {source})"
        longest = steps[ERRORS[0]]
        if value <= 1.0001 * longest or not self._beyond(value):
            return known, ""
        return (
            known,
            f"accuracy: {name} = {value:.3g} s is known to be inaccurate: use {name} <= {longest:.2g} s for 1 %",
        )


def _key(plant: Plant, twin: Twin, driven_by: Sequence[str]) -> str:
    """What the same plant, driven alike, has in common with itself at another step."""
    about = describe_plant(plant)
    given = about.parameters()
    named: dict[str, Any] = {}
    if is_dataclass(given) and not isinstance(given, type):
        named = {name: value for name, value in asdict(given).items() if name not in _STEPS}
    what = (type(plant).__name__, about.coupling or "", twin.order, twin.bounded, sorted(named.items()),
            sorted(driven_by))  # fmt: skip
    digest = hashlib.sha256(repr(what).encode())
    model = getattr(plant, "model", None)
    # of a tree that has no parameters
    for array in (getattr(model, "topology", None), getattr(model, "constant", None)):
        if isinstance(array, np.ndarray):
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]
