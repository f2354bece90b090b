"""Detection of rods of the manta that do not follow: their encoders against a model of their servos.

The servo is the plant's own by its parameters: angle'' = 2 zeta omega (r - angle') within the limit of acceleration, r
= omega / (2 zeta) (wanted - angle) within that of the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import degrees, exp, inf, pi

import rtmms

from .strokes import RODS

OFF_RAD = 0.12
"""Mean distance from which on a rod counts as stuck, rad."""
BACK_RAD = 0.05
"""Mean distance below which a stuck rod moves again, rad."""
MEAN_S = 0.3
MAX_SILENCE_S = 0.1
"""Age of the newest sample from which on an encoder counts as silent, s."""
_FAST = 5.0
"""Product of a servo's frequency and the update's time, rad, from which on the servo counts as at its target."""


@dataclass(slots=True)
class _Rod:
    angle: float = 0.0
    rate: float = 0.0
    off: float = 0.0
    since: float = inf


class RodMonitor:
    """Detector of one controller: call `look` at each state, then `sent` with the commands.

    Parameters
    ----------
    name : str
        Name of the controller.
    report : Callable[[str], None]
        Receives a sentence when a rod stops following, and when it follows again.
    """

    def __init__(self, name: str, report: Callable[[str], None]) -> None:
        self._name, self._report = name, report
        self._output, self._clock, self._servo = "", "", (0.0, 1.0, inf, inf)
        self._rods = [_Rod() for _ in RODS]
        self._time = -inf
        self._wanted: Mapping[str, float] | None = None
        self._next: Mapping[str, float] | None = None

    @property
    def stuck(self) -> tuple[str, ...]:
        """Rods that do not follow."""
        return tuple(name for name, rod in zip(RODS, self._rods, strict=True) if rod.since < inf)

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Find out whether the plant sends its rods' angles, and read its servos' parameters.

        The angles come from encoders or are the truth.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            The plant, with its channels and parameters.
        """
        shapes = {channel.name: channel.shape for channel in plant.outputs}
        result = next((name for name in ("encoder.angle", "rod_angle") if shapes.get(name) == (len(RODS),)), "")
        p = plant.parameters
        ideal, self._output = p.get("actuation") == "ideal", result if "servo_frequency_hz" in p else ""
        self._clock = "encoder.time" if result == "encoder.angle" else ""
        self._servo = (
            inf if ideal else 2.0 * pi * float(p.get("servo_frequency_hz", 1.0)), float(p.get("servo_damping", 1.0)),
            float(p.get("rod_rate_limit_rad_s", inf)), float(p.get("rod_acceleration_limit_rad_s2", inf)),
        )  # fmt: skip
        self._clear()

    def look(self, state: rtmms.State) -> None:
        """Compare the measured angles with the model.

        Parameters
        ----------
        state : rtmms.State
            The plant's state.
        """
        if not self._output or self._output not in state.outputs:
            return
        if state.time < self._time:
            self._clear()
        dt = state.time - self._time if self._time > -inf else 0.0
        self._time = state.time
        measured = state.outputs[self._output]
        if self._wanted is None or dt <= 0.0:
            for rod, angle in zip(self._rods, measured, strict=True):
                rod.angle, rod.rate = float(angle), 0.0
            return
        silent = self._clock and state.time - float(state.outputs.get(self._clock, -inf)) > MAX_SILENCE_S
        keep = exp(-dt / MEAN_S)
        for name, rod, angle in zip(RODS, self._rods, measured, strict=True):
            self._move(rod, self._wanted[name], dt)
            if not silent:
                rod.off = keep * rod.off + (1.0 - keep) * abs(float(angle) - rod.angle)
                self._judge(name, rod)

    def sent(self, angles: Mapping[str, float]) -> None:
        """Store the commanded angles, which act from one update later on.

        Parameters
        ----------
        angles : Mapping[str, float]
            Rod angles by actuator, rad.
        """
        self._wanted, self._next = self._next, angles

    def _move(self, rod: _Rod, wanted: float, dt: float) -> None:
        omega, zeta, fastest, hardest = self._servo
        if omega * dt > _FAST:
            rod.angle = wanted
            return
        steps = max(1, round(omega * dt / 0.05))
        h = dt / steps
        for _ in range(steps):  # semi-implicit: good enough at omega h = 0.05
            rate = max(-fastest, min(fastest, omega / (2.0 * zeta) * (wanted - rod.angle)))
            rod.rate += h * max(-hardest, min(hardest, 2.0 * zeta * omega * (rate - rod.rate)))
            rod.angle += h * rod.rate

    def _judge(self, name: str, rod: _Rod) -> None:
        if rod.since == inf and rod.off > OFF_RAD:
            rod.since = self._time
            self._report(
                f"{self._name}: t = {self._time:.2f} s: {name} does not follow its command, "
                f"{degrees(rod.off):.0f} deg off in the mean: stuck?"
            )
        elif rod.since < inf and rod.off < BACK_RAD:
            self._report(
                f"{self._name}: t = {self._time:.2f} s: {name} follows again after {self._time - rod.since:.2f} s"
            )
            rod.since = inf

    def _clear(self) -> None:
        self._rods = [_Rod() for _ in RODS]
        self._time, self._wanted, self._next = -inf, None, None
