"""How wrong the steps of a run are, from the side of the command line: what is told while it goes and in its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmms.plant import Twinned

if TYPE_CHECKING:
    from rtmms.monitor.calibration import Calibration
    from rtmms.monitor.monitor import Monitor
    from rtmms.plant import Plant


class Accuracy:
    """monitor   of the run's plant; None for a plant that offers no twin"""

    def __init__(self, plant: Plant) -> None:
        self.monitor: Monitor | None = None
        self._calibration: Calibration | None = None
        self._known, self._warning, self._told = "", "", False
        if isinstance(plant, Twinned):
            from rtmms.jit import cache_folder
            from rtmms.monitor.calibration import Calibration
            from rtmms.monitor.monitor import Monitor

            self.monitor = Monitor(plant.twin())
            self._calibration = Calibration(plant, self.monitor.twin, cache_folder())
            self._known, self._warning = self._calibration.sentences()

    def at_start(self, *, quiet: bool) -> list[str]:
        """What is known of the step before it is taken: always a warning, and else which steps would do."""
        return [line for line in ("" if quiet else self._known, self._warning) if line]

    def news(self) -> list[str]:
        """A sentence, once, when enough was measured to doubt the run."""
        if self._told or self.monitor is None or not self.monitor.settled:
            return []
        sentence = self.monitor.verdict.sentence
        self._told = bool(sentence)
        return [sentence] if sentence else []

    def add(self, report: dict[str, Any]) -> None:
        """The verdict at the end of the run, and a warning where there is doubt."""
        if self.monitor is None:
            return
        verdict = self.monitor.verdict
        report["accuracy"] = {
            "verdict": verdict.verdict, "step_error": verdict.step, "path_error": verdict.path,
            "work_error": verdict.work, "measured": verdict.measured,
            "use": None if verdict.finer is None else {verdict.finer[0]: verdict.finer[1]},
        }  # fmt: skip
        said = verdict.sentence or self._warning  # what was measured of this run, rather than what others foretold
        report["warnings"] += [said] if said else []
        if self._calibration is not None and self.monitor.settled:
            self._calibration.keep(verdict)
