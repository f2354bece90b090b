"""Gaits of the robots that their shape moves, by name: for their plants and for controllers.

A word as `rtmms gaits --gait` takes it, or a Path; a robot's first is its own. No kernel is loaded for them.
"""

from __future__ import annotations

import math

from rtmms.locomotion.paths import Path


def snakeboard(rotor: int, axles: int) -> Path:
    """psi = 0.7 sin(rotor t), phi_f = -phi_b = 0.3 sin(axles t) (Ostrowski 1995), in 2 pi s."""
    table = [[0.0] * 7 for _ in range(3)]
    table[0][2 * rotor], table[1][2 * axles], table[2][2 * axles] = 0.7, 0.3, -0.3
    return Path.fourier(table)


def parking(ahead: float, turn: float, wheel: float = 0.05, half_track: float = 0.15) -> Path:
    """Angles of both wheels of a unicycle: so many metres ahead, a turn to the left in rad, and both back."""
    a, b = ahead / wheel, turn * half_track / wheel
    return Path.polygon([[0.0, 0.0], [a, a], [a - b, a + b], [-b, b], [0.0, 0.0]])


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
    "snakeboard": {"drive": snakeboard(1, 1), "rotate": snakeboard(2, 1), "park": snakeboard(3, 2)},
    "unicycle": {"park": parking(0.5, 0.5 * math.pi)},
    "roller_racer": {"swing": Path.fourier([[0.0, -0.6, 0.0]]).lasting(math.pi)},
    "trikke": {"ride": Path.fourier([[0.0, 0.0, 0.6], [0.0, 0.0, 0.35]]).lasting(2.0)},
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
