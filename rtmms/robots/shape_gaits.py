"""Provide gaits of the robots that their shape moves, by name, for their plants and for the controller `shape`.

A gait is a text as `rtmms gaits --gait` accepts it, a Path, or Sines; a robot's first gait is its default. No kernel is
loaded for them.
"""

from __future__ import annotations

import math

from rtmms.locomotion.paths import CYCLE_S, Gait, Path, Sines, Wave


def snakeboard(rotor: int, axles: int) -> Sines:
    """Return psi = 0.7 sin(rotor w t), phi_f = -phi_b = 0.3 sin(axles w t) as a path in 2 pi s.

    Parameters
    ----------
    rotor, axles : int
        Multiples of the frequency.

    Returns
    -------
    Sines
        Gait of 0.5 cycles a second.

    Notes
    -----
    Ostrowski 1995.
    """
    waves = (
        Wave("rotor.angle", 0.7, harmonic=rotor), Wave("front.angle", 0.3, harmonic=axles, steer=1.0),
        Wave("back.angle", -0.3, harmonic=axles, steer=-1.0),
    )  # fmt: skip
    return Sines(0.5, waves, CYCLE_S)


def parking(ahead: float, turn: float, wheel: float = 0.05, half_track: float = 0.15) -> Path:
    """Return the wheel angles of a unicycle that parks: ahead, a turn to the left, and both back.

    Parameters
    ----------
    ahead : float
        Distance, m.
    turn : float
        Angle, rad.
    wheel : float, default 0.05
        Radius of a wheel, m.
    half_track : float, default 0.15
        Half the distance between the wheels, m.

    Returns
    -------
    Path
        Closed path of both angles, rad.
    """
    a, b = ahead / wheel, turn * half_track / wheel
    return Path.polygon([[0.0, 0.0], [a, a], [a - b, a + b], [-b, b], [0.0, 0.0]])


CENTRED = Path.fourier(
    [
        [0.0, 1.368740, -0.040000, 0.0, 0.0, 0.045402, -0.102051, 0.0, 0.0, -0.009204, 0.002204],
        [0.0, -0.040000, 1.368740, 0.0, 0.0, 0.102051, -0.045402, 0.0, 0.0, 0.002204, -0.009204],
    ]
)
GAITS: dict[str, dict[str, Gait]] = {
    "purcell": {"stroke": "square:a=0.5235987755982988", "centred": CENTRED},
    "fluid_swimmer": {"stroke": "circle:a=0.5"},
    "cat": {"righting": "circle:a=1.2597625382736581"},
    "satellite": {"rectangle": "rectangle:a=10,b=10"},
    "snake": {"lead": Sines(0.25, (Wave("wheel.speed", offset=4.0), Wave("j1.angle", 0.6, steer=1.0)))},
    "snakeboard": {"drive": snakeboard(1, 1), "rotate": snakeboard(2, 1), "park": snakeboard(3, 2)},
    "unicycle": {
        "weave": Sines(0.25, (Wave("left.speed", 3.0, 8.0, steer=-1.0), Wave("right.speed", -3.0, 8.0, steer=1.0))),
        "park": parking(0.5, 0.5 * math.pi),
    },
    "roller_racer": {"swing": Sines(1.0 / math.pi, (Wave("bar.angle", -0.6, phase_deg=90.0, steer=1.0),))},
    "trikke": {"ride": Sines(0.5, (Wave("rider.angle", 0.6), Wave("fork.angle", 0.35, steer=1.0)))},
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
