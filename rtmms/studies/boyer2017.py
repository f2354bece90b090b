"""Boyer et al. (2017): the dead fish and modal wings, the paper's statements beside our results."""

from __future__ import annotations

import math
from pathlib import Path

from rtmms.studies import boyer2017_fish as fish
from rtmms.studies import boyer2017_wings as wings
from rtmms.studies.boyer2017_claims import MISSING
from rtmms.view.tables import print_rows
from rtmms.view.verdict import PICTURE, Row


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Run both parts, draw their figures, and print the numbers.

    The status is 1 if a necessary result does not hold.

    Parameters
    ----------
    out : Path | None, optional
        Folder of figures; None: no figures.
    as_json : bool, default False
        Print JSON.

    Returns
    -------
    int
        Exit status.
    """
    rows, drawn = fish.part(out)
    more, stroke = wings.part(out)
    missing = Row(
        "figures 1 to 7 of the paper", math.nan, "not to be had", remarks=(MISSING,), shown="-", unjudged=PICTURE
    )
    return print_rows("boyer2017", [*rows, *more, missing], [*drawn, *stroke], as_json, out)
