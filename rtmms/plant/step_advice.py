"""Which step keeps 1 % and 0.1 % of the path: what earlier runs of the same plant under the same controllers measured,
stored beside its kernels. `known_step` is the one statement of it; for equal conditions it only gets tighter.

A run's errors of path and work at one step give the steps for other errors by the method's order; the work may be off
by five times the path's error, as where a run is doubted. A method with a bound is not trusted beyond a step that was
measured: there it may be unstable. Where nothing was measured, the plant itself may know (`PlantDescription.accurate`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.files import MIB, beside, read_input_text
from rtmms.plant.monitor import BOUNDS, Verdict
from rtmms.plant.protocol import Plant, StepErrorEstimator, describe_plant

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


class KnownStep(NamedTuple):
    """What is known of the step of a plant under its conditions, before a run.

    Attributes
    ----------
    name, value : str, float
        The parameter that sets the step, and its present value, s.
    steps : mapping of float to float
        Error of the path, a fraction, to the longest step that is known to keep it, s; empty where none is known. Five
        times that error of the work is kept too.
    source : str
        'earlier runs' or 'the default gait'.
    conditions : mapping
        Robot, parameters, controllers and method for which this holds.
    warning : str
        A sentence where the present step is known to be too long, else ''.
    """

    name: str
    value: float
    steps: Mapping[float, float]
    source: str
    conditions: Mapping[str, Any]
    warning: str

    @property
    def sentence(self) -> str:
        """What is known, '' for nothing."""
        if not self.steps:
            return ""
        parts = [
            f"{self.name} <= {step:.2g} s keeps {100.0 * error:g} % of the path and "
            f"{100.0 * error * BOUNDS['work'] / BOUNDS['path']:g} % of the work"
            for error, step in self.steps.items()
        ]
        return f"accuracy: {', '.join(parts)} (known from {self.source})"


def known_step(plant: Plant, driven_by: Sequence[str] = (), folder: Path | None = None) -> KnownStep | None:
    """Return what is known of the step of a plant: the one statement of run, serve, sweep, environments, identify.

    Parameters
    ----------
    plant : Plant
        The plant.
    driven_by : sequence of str
        Its controllers, as NAME:key=value,...: amplitude and frequency of their gait are conditions.
    folder : Path, optional
        Where earlier runs stored what they measured; default that of the kernels.

    Returns
    -------
    KnownStep or None
        None for a plant whose steps cannot be checked.
    """
    estimator = describe_plant(plant).step_error_estimator
    if estimator is None:
        return None
    if folder is None:
        from rtmms.base.kernel_cache import cache_folder

        folder = cache_folder()
    return Calibration(plant, estimator(), folder, driven_by).known()


class Calibration:
    """Measured errors of one plant under equal conditions, in a file.

    The known steps in the file only get shorter: each run's estimate replaces a known step where it is below it.

    folder      where what was measured is kept
    driven_by   the words of its controllers: a livelier gait needs a shorter step
    """

    def __init__(
        self, plant: Plant, estimator: StepErrorEstimator, folder: Path, driven_by: Sequence[str] = ()
    ) -> None:
        self.estimator = estimator
        self.conditions = _conditions(plant, estimator, driven_by)
        self.file = folder / f"accuracy-{_key(plant, self.conditions)}.json"
        self._own = {error: step for error, step in describe_plant(plant).accurate.items() if error in ERRORS}

    def read(self) -> Measured:
        """What was measured; nothing where there is no file, or one that is not ours."""
        return self._read()[0]

    def _read(self) -> tuple[Measured, dict[float, float]]:
        """(measured, known steps by error)."""
        try:
            found = json.loads(read_input_text(self.file, max_bytes=MAX_BYTES))
            measured = {
                str(float(key)): {name: float(value[name]) for name in _KEYS}
                for key, value in found["measured"].items()
            }
            known = {float(error): float(step) for error, step in found["known"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}, {}
        return measured, {error: step for error, step in known.items() if error in ERRORS and step > 0.0}

    def keep(self, verdict: Verdict) -> None:
        """Add a run's verdict; where it cannot be written, it is forgotten."""
        if verdict.verdict not in ("fine", "doubtful") or not math.isfinite(verdict.path + verdict.work):
            return
        measured, known = self._read()
        found = dict(measured)
        key = str(float(f"{self.estimator.finer[1]:.6g}"))
        if found.get(key, {"count": 0})["count"] <= verdict.measured:
            found[key] = {"path_error": verdict.path, "work_error": verdict.work, "count": float(verdict.measured)}
        while len(found) > MOST:
            found.pop(min(found, key=lambda one: found[one]["count"]))
        here = {"path_error": verdict.path, "work_error": verdict.work}
        known = self._tightened(self._known(known), here)
        stored = {"conditions": self.conditions, "known": known, "measured": found}
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with beside(self.file) as part:
                part.write_text(json.dumps(stored, default=str))
        except OSError:
            return

    def steps(self) -> dict[float, float]:
        """Error of the path, a fraction -> the longest step, s, that is known to keep it; empty where unknown."""
        return self._known(self._read()[1])

    def _known(self, stored: Mapping[float, float]) -> dict[float, float]:
        """The lesser of the robot's own and the stored step for each error."""
        both = {error: [one[error] for one in (self._own, stored) if error in one] for error in ERRORS}
        return {error: min(steps) for error, steps in both.items() if steps}

    def _tightened(self, known: Mapping[float, float], measured: Mapping[str, float]) -> dict[float, float]:
        """Known steps after one more run, none of them longer.

        A run whose errors are so small that the estimate reaches farther than is trusted bounds no step from above: it
        counts only where nothing is known.
        """
        step, most = self.estimator.finer[1], 1.0 if self.estimator.bounded else FURTHEST
        out = dict(known)
        for error in ERRORS:
            ratio = self._ratio(measured, error)
            if error not in out:
                out[error] = step * min(most, ratio)
            elif ratio < most:
                out[error] = min(out[error], step * ratio)
        return out

    def _beyond(self, value: float, measured: Measured) -> bool:
        """By what was measured nearest to it, a step of that length is too long: not only longer than any that was."""
        found = {float(key): one for key, one in measured.items()}
        if not found:
            return True  # the robot's own bound
        step = min(found, key=lambda one: abs(math.log(value / one)))
        return value > 1.0001 * step * self._ratio(found[step], ERRORS[0])

    def _ratio(self, measured: Mapping[str, float], error: float) -> float:
        """Of the step for the error to the step measured, by the method's order."""
        ratios = [error / ERRORS[0] * bound / measured[f"{name}_error"] for name, bound in BOUNDS.items()
                  if measured[f"{name}_error"] > 0.0]  # fmt: skip
        return float(min(ratios, default=math.inf) ** (1.0 / self.estimator.order))

    def known(self) -> KnownStep:
        """What is known before a run."""
        measured, known = self._read()
        steps, (name, value) = self._known(known), self.estimator.finer
        warning = ""
        if steps and value > 1.0001 * steps[ERRORS[0]] and self._beyond(value, measured):
            warning = (
                f"accuracy: {name} = {value:.3g} s is known to be inaccurate: use {name} <= {steps[ERRORS[0]]:.2g} s "
                "for 1 % of the path and 5 % of the work"
            )
        source = "earlier runs" if measured else "the default gait"
        return KnownStep(name, value, steps, source, self.conditions, warning)

    def sentences(self) -> tuple[str, str]:
        """(what is known, a warning where the present step is beyond it), '' for none."""
        found = self.known()
        return found.sentence, found.warning


def _conditions(plant: Plant, estimator: StepErrorEstimator, driven_by: Sequence[str]) -> dict[str, Any]:
    """What the same plant, driven alike, has in common with itself at another step."""
    about = describe_plant(plant)
    given = about.parameters()
    named: dict[str, Any] = {}
    if is_dataclass(given) and not isinstance(given, type):
        named = {name: value for name, value in asdict(given).items() if name not in _STEPS}
    return {
        "plant": type(plant).__name__, "coupling": about.coupling or "", "order": estimator.order,
        "bounded": estimator.bounded, "parameters": dict(sorted(named.items())),
        "controllers": sorted(_plain(word) for word in driven_by),
    }  # fmt: skip


def _plain(word: str) -> str:
    """A controller's word with its parameters in order, and its numbers in one form."""
    name, colon, rest = word.partition(":")
    pairs = []
    for pair in rest.split(",") if colon else ():
        key, equals, value = pair.partition("=")
        with suppress(ValueError):
            value = f"{float(value):.9g}"
        pairs.append(f"{key.strip()}{equals}{value.strip()}")
    return f"{name}:{','.join(sorted(pairs))}" if pairs else name


def _key(plant: Plant, conditions: Mapping[str, Any]) -> str:
    """Name of the conditions, short."""
    digest = hashlib.sha256(repr(sorted(conditions.items())).encode())
    model = getattr(plant, "model", None)
    # of a tree that has no parameters
    for array in (getattr(model, "topology", None), getattr(model, "constant", None)):
        if isinstance(array, np.ndarray):
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]
