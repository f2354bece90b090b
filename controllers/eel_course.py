"""Course control of the eel by offsets of its travelling wave: yaw joints bent to a side, pitch joints up.

    rtmms run eel --set gait=none --controller eel_course:heading_deg=30,depth_m=2.3

The wave is the chain of oscillators of `cpg`; offsets follow from means over a beat, for the head swings with it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import cos, inf, radians, sin
from typing import Annotated

import rtmms
from rtmms.base.attitude import wrap_angle
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .cpg import Cpg
from .senses import Motion, MotionSource

_MAX_PITCH_RAD = radians(20.0)


@dataclass
class EelCourse(rtmms.Controller):
    """A turn by the mean bend, a dive by the mean pitch, both limited.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    heading_deg: Annotated[float, Parameter(
        "Heading, counted to the left from world x.", "deg", signed=True, le=360, live=True,
    )] = 0.0
    depth_m: Annotated[float, Parameter("Depth, positive down.", "m", ge=0, le=1e4, live=True)] = 2.0
    amplitude_deg: Annotated[float, Parameter("Amplitude of the wave, as in `cpg`.", "deg", ge=0, le=90)] = 8.0
    frequency_hz: Annotated[float, Parameter("Frequency of the wave, as in `cpg`.", "Hz", ge=0.05, le=5)] = 0.8
    phase_deg: Annotated[float, Parameter("Phase of the wave, as in `cpg`.", "deg", signed=True, le=180)] = 28.0
    turn_deg: Annotated[float, Parameter("Maximum yaw of a joint.", "deg", ge=0, le=20)] = 5.0
    dive_deg: Annotated[float, Parameter("Maximum pitch of a joint.", "deg", ge=0, le=20)] = 3.0
    heading_p: Annotated[float, Parameter(
        "Yaw of a joint per error of the heading.", "deg/rad", ge=0, le=100, live=True,
    )] = 6.0
    heading_d: Annotated[float, Parameter(
        "Yaw of a joint per rate of the heading.", "deg s/rad", ge=0, le=100, live=True,
    )] = 10.0
    depth_p: Annotated[float, Parameter(
        "Pitch of the eel per error of the depth.", "rad/m", ge=0, le=100, live=True,
    )] = 0.6
    depth_d: Annotated[float, Parameter(
        "Pitch of a joint per error of the eel's pitch.", "deg/rad", ge=0, le=100, live=True,
    )] = 8.0
    # fmt: on

    robots = ("eel",)
    claim = ("yaw*.angle", "pitch*.angle")
    every = 5
    interpolation = "linear"
    setpoints = ("heading_deg", "depth_m")

    def __post_init__(self) -> None:
        """Check the parameters, and make the oscillators."""
        check_parameters("controller 'eel_course': ", self)
        self._cpg = Cpg(amplitude_deg=self.amplitude_deg, frequency_hz=self.frequency_hz, phase_deg=self.phase_deg)
        self._senses = MotionSource("eel_course")
        self._window: deque[tuple[float, float, float, float]] = deque()
        self._time, self._turned, self._before = inf, 0.0, 0.0

    def prepare(self) -> None:
        """Compile the estimator before the plant waits."""
        self._senses.prepare()

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Find out which outputs give the motion, and check that the plant accepts angles."""
        self._cpg.start(plant)
        self._senses.start(plant)

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the joint angles, rad."""
        now = self._senses.read(state)
        heading, depth, pitch, rate, _ = self._means(now)
        turn = self.heading_p * wrap_angle(radians(self.heading_deg) - heading) - self.heading_d * rate
        turn = max(-self.turn_deg, min(self.turn_deg, turn))
        down = max(-_MAX_PITCH_RAD, min(_MAX_PITCH_RAD, self.depth_p * (self.depth_m - depth)))
        dive = max(-self.dive_deg, min(self.dive_deg, self.depth_d * (down - pitch)))
        # nothing rights an eel: what is to the side and what is down, in the axes of its own roll
        c, s = cos(now.roll), sin(now.roll)
        if not now.doubts & {"imu", "depth", "estimate"}:
            self._cpg.bias_deg = -(turn * c - dive * s)
            self._cpg.incidence_deg = turn * s + dive * c
            self._cpg.take_up()
        return self._cpg.update(state)

    def _means(self, now: Motion) -> tuple[float, float, float, float, float]:
        """Return heading (rad), depth (m), pitch (rad), and the rates of the first two, over the last beat."""
        window, beat = self._window, 1.0 / self.frequency_hz
        if now.time < self._time:
            window.clear()
            self._turned = self._before = now.yaw
        self._time = now.time
        self._turned += wrap_angle(now.yaw - self._before)
        self._before = now.yaw
        window.append((now.time, self._turned, -now.position[2], now.pitch))
        while window[0][0] < now.time - beat:
            window.popleft()
        n, lapse = len(window), max(now.time - window[0][0], 1e-6)
        heading, depth, pitch = (sum(row[k] for row in window) / n for k in (1, 2, 3))
        if lapse < 0.5 * beat:
            return heading, depth, pitch, 0.0, 0.0
        rates = [(window[-1][k] - window[0][k]) / lapse for k in (1, 2)]
        return heading, depth, pitch, rates[0], rates[1]
