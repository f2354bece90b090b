"""Gaits of robots that their shape's motion drives, as data: each actuator's sine of one base frequency."""

from __future__ import annotations

from typing import NamedTuple


class Wave(NamedTuple):
    """channel = offset + amplitude sin(harmonic w t + phase + k lag) + steer times what the user steers by.

    A `*` in the channel stands for a number, 1 up; k is that number less one. lag_turns is a turn over all of them.
    """

    channel: str
    amplitude: float = 0.0
    offset: float = 0.0
    harmonic: float = 1.0
    phase_deg: float = 0.0
    lag_turns: float = 0.0
    steer: float = 0.0


class Gait(NamedTuple):
    """Base frequency (Hz) and the waves of its actuators."""

    frequency_hz: float
    waves: tuple[Wave, ...]


def _snakeboard(rotor: float, axles: float, frequency_hz: float = 0.5) -> Gait:
    """psi = 0.7 sin(rotor w t), phi_f = -phi_b = 0.3 sin(axles w t) (Ostrowski 1995)."""
    return Gait(
        frequency_hz,
        (
            Wave("rotor.angle", 0.7, harmonic=rotor), Wave("front.angle", 0.3, harmonic=axles, steer=1.0),
            Wave("back.angle", -0.3, harmonic=axles, steer=-1.0),
        ),
    )  # fmt: skip


GAITS: dict[str, dict[str, Gait]] = {
    "snake": {
        "lead": Gait(0.25, (Wave("wheel.speed", offset=4.0), Wave("j1.angle", 0.6, steer=1.0))),
    },
    "unicycle": {
        "weave": Gait(
            0.25, (Wave("left.speed", 3.0, 8.0, steer=-1.0), Wave("right.speed", -3.0, 8.0, steer=1.0))
        ),
    },
    "snakeboard": {"drive": _snakeboard(1, 1), "rotate": _snakeboard(2, 1), "park": _snakeboard(3, 2)},
    "roller_racer": {"swing": Gait(1.0 / 3.141592653589793, (Wave("bar.angle", -0.6, phase_deg=90.0, steer=1.0),))},
    "trikke": {
        "ride": Gait(
            0.5, (Wave("rider.angle", 0.6), Wave("fork.angle", 0.35, phase_deg=0.0, steer=1.0))
        ),
    },
}  # fmt: skip
"""Of each robot, its own first."""
