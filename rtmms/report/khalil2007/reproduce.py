"""The eel of Khalil, Gallot and Boyer (2007): figures 5 to 11 again, and what the paper says in numbers."""

from __future__ import annotations

from pathlib import Path

from rtmms.report.beside import tell
from rtmms.report.khalil2007.claims import CLAIMS
from rtmms.report.khalil2007.figures import draw
from rtmms.report.khalil2007.runs import final_speed, numbers, remarks, swim


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Run both examples, draw their figures into `out` if given, print the numbers; 1 if what must hold does not."""
    planar, loop = swim(30.0), swim(120.0, gait="loop")
    found, more = numbers(planar, loop, final_speed()), remarks(planar, loop)
    rows = [claim.row(found[claim.key], remark=more.get(claim.key, "")) for claim in CLAIMS]
    return tell("khalil2007", rows, draw(planar, loop, out) if out is not None else [], as_json, out)
