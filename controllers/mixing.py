"""Thrust, yaw, pitch and roll in [-1, 1] as strokes of the manta's two fins.

The inputs have these effects:

    side's share     t = thrust +- yaw (right +, left -: yaw > 0 turns left), m = min(1, |thrust| + |yaw|), rho = t / m
    amplitude        A = A_most sqrt(m): the mean thrust goes with A^2 lead
    by phase         lead = lead_most rho
    by amplitude     A sqrt|rho|, lead_most sign rho
    by both          A |rho|^(1/4), lead_most sign rho |rho|^(1/2)
    incidence        pitch (both) -+ roll (right -, left +: roll > 0 puts the right side down)
    bias             of both rods of both fins: > 0 puts the nose down
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, sqrt

from .strokes import Stroke

TURNS = ("phase", "amplitude", "both")
"""Ways in which the inner fin loses thrust in a turn."""


@dataclass(frozen=True, slots=True)
class StrokeLimits:
    """Strokes for inputs of 1.

    Attributes
    ----------
    amplitude, lead, incidence, bias : float
        Angles at a word of 1, rad.
    turn : str, default 'phase'
        One of TURNS.
    """

    amplitude: float
    lead: float
    incidence: float
    bias: float
    turn: str = "phase"

    def stroke(self) -> Stroke:
        """Return the largest stroke of a fin.

        Returns
        -------
        Stroke
            Without bias.
        """
        return Stroke(self.amplitude, self.lead, 0.0, self.incidence)


def mix(
    stroke_limits: StrokeLimits, thrust: float, yaw: float, pitch: float, roll: float, bias: float = 0.0
) -> tuple[Stroke, Stroke]:  # fmt: skip
    """Return the strokes of inputs in [-1, 1]; values beyond are clamped.

    Parameters
    ----------
    stroke_limits : StrokeLimits
        Strokes for inputs of 1.
    thrust, yaw, pitch, roll, bias : float
        Inputs of the mixer.

    Returns
    -------
    tuple[Stroke, Stroke]
        Left and right.
    """
    thrust, yaw, pitch, roll, bias = (max(-1.0, min(1.0, item)) for item in (thrust, yaw, pitch, roll, bias))
    m = min(1.0, abs(thrust) + abs(yaw))
    sides = []
    for sign in (-1.0, 1.0):  # left, right
        share = max(-1.0, min(1.0, (thrust + sign * yaw) / m)) if m > 1e-6 else 0.0
        amplitude, lead = stroke_limits.amplitude * sqrt(m), stroke_limits.lead * share
        if stroke_limits.turn == "amplitude":
            amplitude, lead = amplitude * sqrt(abs(share)), copysign(stroke_limits.lead, share) if share else 0.0
        elif stroke_limits.turn == "both":
            root = sqrt(abs(share))
            amplitude, lead = amplitude * sqrt(root), copysign(stroke_limits.lead * root, share)
        incidence = max(-1.0, min(1.0, pitch - sign * roll)) * stroke_limits.incidence
        sides.append(Stroke(amplitude, lead, bias * stroke_limits.bias, incidence))
    return sides[0], sides[1]
