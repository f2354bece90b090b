"""Gaits of the robots that their shape moves by a connection, by name: for their plants and for controllers.

A word as `rtmms gaits --gait` takes it, or a Path; a robot's first is its own. No kernel is loaded for them.
"""

from __future__ import annotations

from rtmms.locomotion.paths import Path

CENTRED = Path.fourier(
    [
        [0.0, 1.368740, -0.040000, 0.0, 0.0, 0.045402, -0.102051, 0.0, 0.0, -0.009204, 0.002204],
        [0.0, -0.040000, 1.368740, 0.0, 0.0, 0.102051, -0.045402, 0.0, 0.0, 0.002204, -0.009204],
    ]
)
GAITS: dict[str, dict[str, str | Path]] = {
    "purcell": {"stroke": "square:a=0.5235987755982988", "centred": CENTRED},
    "fluid_swimmer": {"stroke": "circle:a=0.5"},
    "cat": {"righting": "circle:a=1.2597625382736581"},
    "satellite": {"rectangle": "rectangle:a=10,b=10"},
}
NOTES: dict[str, dict[str, str]] = {
    "purcell": {
        "stroke": "Purcell's own: one joint after the other, 30 degrees to either side",
        "centred": "the most efficient about the straight shape for equal rods and c_n = 2 c_t, of the family of Tam "
                   "and Hosoi (2007)",
    },
    "cat": {"righting": "half a turn: the hind half's x points the other way"},
    "satellite": {"rectangle": "r1 by 10 rad, r2 by 10 rad, and both back in the same order"},
}  # fmt: skip
