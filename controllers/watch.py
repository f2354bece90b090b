"""Reports of a controller's fallback, and of its recovery."""

from __future__ import annotations

from collections.abc import Callable

from .pilot import FALLBACK
from .senses import Motion


class Watch:
    """Reporter of each motion's doubts.

    Parameters
    ----------
    name : str
        Name of the controller.
    report : Callable[[str], None]
        Receives a sentence.
    """

    def __init__(self, name: str, report: Callable[[str], None]) -> None:
        self._name, self._report = name, report
        self._since: dict[str, float] = {}

    def __call__(self, now: Motion) -> None:
        """Report new doubts, and those that have ended."""
        for doubt in sorted(now.doubts - self._since.keys()):
            held = ", ".join(FALLBACK.get(doubt, ())) or "nothing"
            what = (
                "the estimate contradicts its measurements"
                if doubt == "estimate"
                else f"{doubt} is silent, or contradicts the others"
            )
            self._report(f"{self._name}: t = {now.time:.2f} s: {what}; without feedback: {held}")
            self._since[doubt] = now.time
        for doubt in sorted(self._since.keys() - now.doubts):
            lasted = now.time - self._since.pop(doubt)
            self._report(f"{self._name}: t = {now.time:.2f} s: {doubt} is back after {lasted:.2f} s")
