"""Provide the coordinates of the manta's state: body, memory of the coupling, rods, and every joint of both fins."""

from __future__ import annotations

import math

import numpy as np

from rtmms.plant.optional_protocols import Coordinates
from rtmms.robots.manta import layout as lay
from rtmms.robots.manta.fin_layout import LANES
from rtmms.robots.manta.model import MantaModel
from rtmms.robots.manta.parameters import RODS_NAMES, MantaParameters
from rtmms.robots.manta.rods import ROD_SIZE, SERVO

FLAP_RAD_S = 2.0 * math.pi
"""Typical rate, as a multiple of the typical size of its quantity, 1/s."""

_ROD = {
    True: (("angle", "rad", 1.0, 0), ("rate", "rad/s", FLAP_RAD_S, 1), ("last", "rad", 1.0, 3)),
    False: (("angle", "rad", 1.0, 0), ("last", "rad", 1.0, 3), ("before", "rad", 1.0, 4)),
}
"""Coordinates of a rod with a servo, and with an ideal motor: name, unit, size, index among its numbers."""


def coordinates(parameters: MantaParameters, model: MantaModel) -> Coordinates:
    """Return the coordinates of a manta's state; `settle` of step.py computes the dependent elements.

    The order is: a free body with position error e and attitude error theta in body axes, and twist; with the
    sequential coupling also the acceleration that the fins use a step late. Then each rod: angle, rate and last command
    of a servo, or angle and the last two commands of an ideal motor. Then all joint angles (fin, link, chain), and
    their rates.

    Parameters
    ----------
    parameters : MantaParameters
        Parameters of the manta.
    model : MantaModel
        Compiled manta.

    Returns
    -------
    Coordinates
        Names, units and places.
    """
    p, finned = parameters, model.finned
    rows: list[tuple[str, str, float, int, bool]] = []  # name, unit, size, word, has_dependents
    free = p.body != "fixed"
    if free:
        rows += [(f"{axis}_error", "m", 0.1, lay.POSITION, False) for axis in "xyz"]
        rows += [(f"{axis}_error", "rad", 1.0, lay.POSITION, False) for axis in ("roll", "pitch", "yaw")]
        rows += _six(("vx", "vy", "vz", "wx", "wy", "wz"), "s", FLAP_RAD_S, lay.TWIST)
        if int(finned.coupling) == lay.SEQUENTIAL:
            rates = ("last_ax", "last_ay", "last_az", "last_wdx", "last_wdy", "last_wdz")
            rows += _six(rates, "s2", FLAP_RAD_S**2, lay.ACCELERATION)
    for r, rod in enumerate(RODS_NAMES):
        for word, unit, size, k in _ROD[int(finned.actuation) == SERVO]:
            rows.append((f"{rod}.{word}", unit, size, lay.RODS + r * ROD_SIZE + k, True))
    blocks, last = int(finned.blocks), p.chains - 1
    surplus = blocks * LANES > p.chains
    for rate, (ending, unit, size) in enumerate((("", "rad", 1.0), (".rate", "rad/s", FLAP_RAD_S))):
        for f, side in enumerate(("left", "right")):
            for j in range(p.links):
                for i in range(p.chains):
                    row = (f * blocks + i // LANES) * p.links + j
                    at = lay.FINS + (2 * row + rate) * LANES + i % LANES
                    rows.append((f"{side}[{j},{i}]{ending}", unit, size, at, surplus and i == last))
    names, units, sizes, state_indices, has_dependents = zip(*rows, strict=True)
    return Coordinates(
        names, units, np.array(sizes), np.array(state_indices, dtype=np.int64), lay.POSITION if free else -1,
        np.array(has_dependents), np.zeros(0, dtype=np.int64),
    )  # fmt: skip


def _six(names: tuple[str, ...], per: str, size: float, at: int) -> list[tuple[str, str, float, int, bool]]:
    """Return rows of a twist or its rate; `per` is the unit of time."""
    kinds = [("m", 0.1)] * 3 + [("rad", 1.0)] * 3
    return [
        (name, f"{unit}/{per}", item * size, at + k, False)
        for k, (name, (unit, item)) in enumerate(zip(names, kinds, strict=True))
    ]
