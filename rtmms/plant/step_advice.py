"""Provide the step that keeps 1 % and 0.1 % of the path, as earlier runs of the same plant and controllers measured it.

The measurements are stored beside the plant's kernels. `known_step` reads them for all commands; for equal conditions
the known step only gets shorter.

A run's errors of path and work at one step give the steps for other errors by the method's order. The work may be off
by five times the path's error, the same ratio as where a run is doubtful. For a method with a bound, no step longer
than a measured one is recommended, because it may be unstable there. Where nothing was measured, the plant itself may
declare its steps (`PlantDescription.accurate`).
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

from rtmms.base.files import MIB, new_file_beside, read_input_text
from rtmms.plant.description import describe_plant
from rtmms.plant.monitor import BOUNDS, Verdict
from rtmms.plant.optional_protocols import StepErrorEstimator
from rtmms.plant.protocol import Plant

ERRORS = (0.01, 0.001)
"""Errors of the path, fractions, for which a step is named; the work may be off by five times as much."""
MAX_ENTRIES = 16
MAX_FILE_BYTES = MIB
"""Largest size of the file with the measurements, bytes."""
MAX_STEP_RATIO = 4.0
"""Longest estimated step, as a multiple of the measured step."""
_STEPS = ("dt", "step_s", "substeps")

Measured = Mapping[str, Mapping[str, float]]
"""Step, s, as text -> path_error, work_error, count."""
_KEYS = ("path_error", "work_error", "count")


class KnownStep(NamedTuple):
    """The known step of a plant under its conditions, before a run.

    Attributes
    ----------
    name : str
        Parameter that sets the step.
    value : float
        Present value of that parameter, s.
    steps : mapping of float to float
        Error of the path, a fraction, to the longest step, s, that is known to keep it; empty where none is known. The
        step keeps five times that error of the work too.
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
        """The known steps as a sentence; '' where none is known."""
        if not self.steps:
            return ""
        parts = [
            f"{self.name} <= {step:.2g} s keeps {100.0 * error:g} % of the path and "
            f"{100.0 * error * BOUNDS['work'] / BOUNDS['path']:g} % of the work"
            for error, step in self.steps.items()
        ]
        return f"accuracy: {', '.join(parts)} (known from {self.source})"


def known_step(plant: Plant, driven_by: Sequence[str] = (), folder: Path | None = None) -> KnownStep | None:
    """Return the known step of a plant, for run, serve, sweep, environments and identify.

    Parameters
    ----------
    plant : Plant
        The plant.
    driven_by : sequence of str, default ()
        Its controllers, as NAME:key=value,...: amplitude and frequency of their gait are conditions.
    folder : Path, optional
        Folder of the measurements; default that of the kernels.

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

    Parameters
    ----------
    plant : Plant
        The plant.
    estimator : StepErrorEstimator
        Its step-error estimator.
    folder : Path
        Folder of the measurements.
    driven_by : Sequence[str], default ()
        Its controllers, as NAME:key=value,...; a livelier gait needs a shorter step.

    Attributes
    ----------
    conditions : dict
        Conditions under which the measurements hold.
    file : Path
        File of the measurements.
    """

    def __init__(
        self, plant: Plant, estimator: StepErrorEstimator, folder: Path, driven_by: Sequence[str] = ()
    ) -> None:
        self.estimator = estimator
        self.conditions = _conditions(plant, estimator, driven_by)
        self.file = folder / f"accuracy-{_key(plant, self.conditions)}.json"
        self._declared_steps = {
            error: step for error, step in describe_plant(plant).accurate.items() if error in ERRORS
        }

    def read(self) -> Measured:
        """Return the stored measurements.

        Returns
        -------
        Measured
            Empty where there is no file, or a file in another format.
        """
        return self._read()[0]

    def _read(self) -> tuple[Measured, dict[float, float]]:
        """Return the measurements, and the known steps by error."""
        try:
            content = json.loads(read_input_text(self.file, max_bytes=MAX_FILE_BYTES))
            measured = {
                str(float(key)): {name: float(value[name]) for name in _KEYS}
                for key, value in content["measured"].items()
            }
            known = {float(error): float(step) for error, step in content["known"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}, {}
        return measured, {error: step for error, step in known.items() if error in ERRORS and step > 0.0}

    def keep(self, verdict: Verdict) -> None:
        """Add a run's verdict to the file; a file that cannot be written is skipped.

        Parameters
        ----------
        verdict : Verdict
            Verdict with errors of path and work; others are ignored.
        """
        if verdict.verdict not in ("fine", "doubtful") or not math.isfinite(verdict.path + verdict.work):
            return
        measured, known = self._read()
        result = dict(measured)
        key = str(float(f"{self.estimator.finer[1]:.6g}"))
        if result.get(key, {"count": 0})["count"] <= verdict.measured:
            result[key] = {"path_error": verdict.path, "work_error": verdict.work, "count": float(verdict.measured)}
        while len(result) > MAX_ENTRIES:
            result.pop(min(result, key=lambda item: result[item]["count"]))
        here = {"path_error": verdict.path, "work_error": verdict.work}
        known = self._tightened(self._known(known), here)
        stored = {"conditions": self.conditions, "known": known, "measured": result}
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with new_file_beside(self.file) as part:
                part.write_text(json.dumps(stored, default=str))
        except OSError:
            return

    def steps(self) -> dict[float, float]:
        """Return the known steps.

        Returns
        -------
        dict of float to float
            Error of the path, a fraction, to the longest step, s, that is known to keep it; empty where unknown.
        """
        return self._known(self._read()[1])

    def _known(self, stored: Mapping[float, float]) -> dict[float, float]:
        """Return the shorter of the robot's own and the stored step for each error."""
        both = {error: [item[error] for item in (self._declared_steps, stored) if error in item] for error in ERRORS}
        return {error: min(steps) for error, steps in both.items() if steps}

    def _tightened(self, known: Mapping[float, float], measured: Mapping[str, float]) -> dict[float, float]:
        """Return the known steps after one more run, none of them longer.

        A run with very small errors, whose estimate reaches farther than MAX_STEP_RATIO, bounds no step from above.
        It counts only where nothing is known.
        """
        step, maximum = self.estimator.finer[1], 1.0 if self.estimator.bounded else MAX_STEP_RATIO
        out = dict(known)
        for error in ERRORS:
            ratio = self._ratio(measured, error)
            if error not in out:
                out[error] = step * min(maximum, ratio)
            elif ratio < maximum:
                out[error] = min(out[error], step * ratio)
        return out

    def _beyond(self, value: float, measured: Measured) -> bool:
        """Return whether a step is too long by the nearest measurement, not only longer than each measured step."""
        result = {float(key): item for key, item in measured.items()}
        if not result:
            return True  # the robot's own bound
        step = min(result, key=lambda item: abs(math.log(value / item)))
        return value > 1.0001 * step * self._ratio(result[step], ERRORS[0])

    def _ratio(self, measured: Mapping[str, float], error: float) -> float:
        """Return the step for an error over the measured step, by the method's order."""
        ratios = [error / ERRORS[0] * bound / measured[f"{name}_error"] for name, bound in BOUNDS.items()
                  if measured[f"{name}_error"] > 0.0]  # fmt: skip
        return float(min(ratios, default=math.inf) ** (1.0 / self.estimator.order))

    def known(self) -> KnownStep:
        """Return the known step before a run.

        Returns
        -------
        KnownStep
            Known steps, their source, and a warning.
        """
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
        """Return the known steps and the warning as sentences.

        Returns
        -------
        (str, str)
            Known steps; warning where the present step is too long; '' for none.
        """
        result = self.known()
        return result.sentence, result.warning


def _conditions(plant: Plant, estimator: StepErrorEstimator, driven_by: Sequence[str]) -> dict[str, Any]:
    """Return what identifies the same plant under the same controllers at another step."""
    about = describe_plant(plant)
    parameters = about.parameters()
    named: dict[str, Any] = {}
    if is_dataclass(parameters) and not isinstance(parameters, type):
        named = {name: value for name, value in asdict(parameters).items() if name not in _STEPS}
    return {
        "plant": type(plant).__name__, "coupling": about.coupling or "", "order": estimator.order,
        "bounded": estimator.bounded, "parameters": dict(sorted(named.items())),
        "controllers": sorted(_plain(word) for word in driven_by),
    }  # fmt: skip


def _plain(word: str) -> str:
    """Return a controller's text with its parameters sorted and its numbers in one form."""
    name, colon, remaining = word.partition(":")
    pairs = []
    for pair in remaining.split(",") if colon else ():
        key, equals, value = pair.partition("=")
        with suppress(ValueError):
            value = f"{float(value):.9g}"
        pairs.append(f"{key.strip()}{equals}{value.strip()}")
    return f"{name}:{','.join(sorted(pairs))}" if pairs else name


def _key(plant: Plant, conditions: Mapping[str, Any]) -> str:
    """Return a short name of the conditions."""
    digest = hashlib.sha256(repr(sorted(conditions.items())).encode())
    model = getattr(plant, "model", None)
    # of a tree that has no parameters
    for array in (getattr(model, "topology", None), getattr(model, "constant", None)):
        if isinstance(array, np.ndarray):
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]
