"""The moth of Porez, Boyer and Belkhiri (2014): figures 5 to 8 again, and its numbers beside every reading's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtmms.monitor.measure import UNSTABLE
from rtmms.papers.porez2014.claims import CLAIMS, CLOCK
from rtmms.papers.porez2014.figures import Stroke, draw
from rtmms.papers.porez2014.runs import LOST_RAD, READINGS, STEP_S, by_own_integrator, numbers, period_seconds, stroke
from rtmms.report.beside import tell
from rtmms.report.verdict import Row

BEYOND = {"abam": LOST_RAD, "abam_error": UNSTABLE}
"""Where the orbit is lost the motion is chaos: how far it went is a number of that machine's roundings alone."""


def rows_of_reading(name: str, s: Stroke, given: dict[str, Any]) -> list[Row]:
    """All that the paper says beside one reading."""
    found = numbers(s)
    found["abam"], found["abam_power"], found["abam_error"] = by_own_integrator(s.vector, STEP_S, **given)
    found["abam_half"] = by_own_integrator(s.vector, STEP_S / 2.0, **given)[0]
    remarks = {
        key: "beyond 45 deg is nearer to the middle of the stroke than to the reversal"
        for key in ("bend_at", "bend_alone_at", "torque_at")
        if found[key] > 45.0
    }
    lost = {key: f"more than {bound:g}" for key, bound in BEYOND.items() if found[key] > bound}
    return [
        claim.row(found[claim.key], case=name, shown=lost.get(claim.key, ""), remark=remarks.get(claim.key, ""))
        for claim in CLAIMS
    ]


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Find the orbit of every reading, draw, print the numbers; 1 if what must hold does not."""
    strokes = {name: stroke(**given) for name, given in READINGS.items()}
    rows = [row for name, s in strokes.items() for row in rows_of_reading(name, s, READINGS[name])]
    rows.append(CLOCK.row(1e3 * period_seconds()))
    return tell("porez2014", rows, draw(strokes, out) if out is not None else [], as_json, out)
