"""Commands from a gait of shapes: around a closed path, or by sines of time. Both change while they play."""

from __future__ import annotations

from math import inf, pi, radians, sin

import rtmms
from rtmms.locomotion.paths import Path, Sines

from .rods import SoftStart

_POINTS = 8400
"""Points of a cycle, with straight lines between them: 1e-7 rad off a circle of 1 rad, and on most polygons' corners.
"""


class ClosedPathPlayer:
    """Player along a closed path of angles, after a soft move to its beginning.

    Parameters
    ----------
    path : Path
        The path.
    channels : tuple[rtmms.Channel, ...]
        The actuators.
    ramp_s : float
        Time of the soft move, s.
    cycles : int
        Number of cycles, after which it stays; 0: no end.
    """

    own_s = 4.0
    """Default period of a cycle, s."""

    def __init__(self, path: Path, channels: tuple[rtmms.Channel, ...], ramp_s: float, cycles: int) -> None:
        self._channels, self._ramp_s, self._cycles = channels, ramp_s, cycles
        self._table = path.sampled(_POINTS).tolist()
        shapes = path.sampled(720)
        self._spans = list(zip(shapes.min(axis=0).tolist(), shapes.max(axis=0).tolist(), strict=True))
        self._strength = SoftStart(ramp_s)
        self._time, self._begin, self._turns = inf, 0.0, 0.0

    def check(self, amplitude: float, steer: float) -> None:
        """Check that the path stays within the limits.

        Parameters
        ----------
        amplitude : float
            Factor on the angles.
        steer : float
            Must be 0, as a path has no steering.

        Raises
        ------
        ModelError
            It leaves a limit, or `steer` is not 0.
        """
        if steer:
            raise rtmms.ModelError(
                f"controller 'shape': steer: expected 0 for a closed path, which cannot steer, got {steer:g}"
            )
        for channel, ends in zip(self._channels, self._spans, strict=True):
            within(channel, min(amplitude * end for end in ends), max(amplitude * end for end in ends))

    def tune(self, period_s: float | None, amplitude: float, steer: float) -> None:
        """Set pace and amplitude, at the same point of the path.

        Parameters
        ----------
        period_s : float | None
            Period, s; None: its own.
        amplitude : float
            Factor on the gait's own.
        steer : float
            Added to the steering actuators.
        """
        self._period_s, self._amplitude = self.own_s if period_s is None else period_s, amplitude

    def __call__(self, time: float) -> dict[str, float]:
        """Return the angles by actuator, rad, at a time, s."""
        if time < self._time:  # the first state, or the first after a reset
            self._begin, self._turns = time + self._ramp_s, 0.0
        else:
            self._turns += max(0.0, time - max(self._time, self._begin)) / self._period_s
        self._time = time
        strength = self._strength(time) * self._amplitude
        turns = min(self._turns, float(self._cycles)) if self._cycles else self._turns
        share = turns % 1.0 if turns < self._cycles or not self._cycles else 1.0
        place = share * _POINTS
        k = min(int(place), _POINTS - 1)
        fraction = place - k
        return {
            channel.name: strength * ((1.0 - fraction) * before + fraction * after)
            for channel, before, after in zip(self._channels, self._table[k], self._table[k + 1], strict=True)
        }


class Swing:
    """Player of sines of time, from the first state on, with a soft start.

    Parameters
    ----------
    sines : Sines
        The sines.
    channels : tuple[rtmms.Channel, ...]
        The actuators.
    ramp_s : float
        Time of the soft start, s.
    """

    def __init__(self, sines: Sines, channels: tuple[rtmms.Channel, ...], ramp_s: float) -> None:
        known = {channel.name: channel for channel in channels}
        self._moves = [(known[wave.channel], wave, radians(wave.phase_deg)) for wave in sines.waves]
        self._own_hz = sines.frequency_hz
        self._strength = SoftStart(ramp_s)
        self._time, self._omega, self._behind = 0.0, 0.0, 0.0

    def check(self, amplitude: float, steer: float) -> None:
        """Check that no actuator leaves its limits.

        Parameters
        ----------
        amplitude : float
            Factor on the sines.
        steer : float
            Added to the steering actuators.

        Raises
        ------
        ModelError
            One would leave its limits.
        """
        for channel, wave, _ in self._moves:
            middle, swing = wave.offset + wave.steer * steer, abs(amplitude * wave.amplitude)
            within(channel, middle - swing, middle + swing)

    def tune(self, period_s: float | None, amplitude: float, steer: float) -> None:
        """Set pace, amplitude and steering, at the same point of the cycle.

        Parameters
        ----------
        period_s : float | None
            Period, s; None: its own.
        amplitude : float
            Factor on the gait's own.
        steer : float
            Added to the steering actuators.
        """
        omega = 2.0 * pi * (self._own_hz if period_s is None else 1.0 / period_s)
        self._behind += (self._omega - omega) * self._time
        self._omega, self._amplitude, self._steer = omega, amplitude, steer

    def __call__(self, time: float) -> dict[str, float]:
        """Return the values by actuator at a time, s."""
        if time < self._time:  # the first after a reset
            self._behind = 0.0
        self._time = time
        strength, cycle = self._strength(time), self._omega * time + self._behind
        return {
            channel.name: strength
            * (
                wave.offset
                + self._amplitude * wave.amplitude * sin(wave.harmonic * cycle + phase)
                + wave.steer * self._steer
            )
            for channel, wave, phase in self._moves
        }


def within(channel: rtmms.Channel, low: float, high: float) -> None:
    """Check that a range of values is within an actuator's limits.

    Parameters
    ----------
    channel : rtmms.Channel
        The actuator.
    low, high : float
        Ends of the range.

    Raises
    ------
    ModelError
        It is not.
    """
    least = -inf if channel.lower is None else channel.lower
    maximum = inf if channel.upper is None else channel.upper
    if low < least - 1e-9 or high > maximum + 1e-9:
        raise rtmms.ModelError(
            f"controller 'shape': {channel.name} would move from {low:.4g} to {high:.4g} {channel.unit}, beyond its "
            f"limits {least:.4g} to {maximum:.4g}"
        )
