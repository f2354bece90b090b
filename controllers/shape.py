"""Leads a robot's joints around a closed path of shapes: circle, square, rectangle, file of shapes, its own gaits.

    rtmms run purcell --controller shape:gait=circle,a=1,period_s=4
    rtmms gaits purcell -o found && rtmms run purcell --controller shape:file=found/purcell-gait.csv

The robot's commands are angles, in the order of its actuators; it first goes smoothly to where the path begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import rtmms
from rtmms.locomotion import gait_path
from rtmms.robots.shape_gaits import GAITS
from rtmms_controllers.rods import SoftStart, checked

_POINTS = 8400
"""Of a cycle, straight between them: 1e-7 rad off a circle of 1 rad, and on most polygons' corners."""


@dataclass
class Shape(rtmms.Controller):
    """Plays a gait of shapes, as `rtmms gaits` computes it.

    gait        circle (a, c1, c2), square (a), rectangle (a, b), or one of the robot's own; without one, its first
    a, b, c1, c2  rad, of a circle, square or rectangle; its own defaults where they are not given
    file        a file of shapes in place of a gait
    period_s    of a cycle
    cycles      how many, then it stays; 0: without end
    ramp_s      time in which it goes to where the path begins
    """

    gait: str = ""
    a: float | None = None
    b: float | None = None
    c1: float | None = None
    c2: float | None = None
    file: str = ""
    period_s: float = 4.0
    cycles: int = 0
    ramp_s: float = 1.0

    claim = ("*",)
    outputs = ("position",)
    robots = ("cat", "satellite", "purcell", "fluid_swimmer", "snakeboard", "roller_racer", "trikke")
    settable = ("period_s",)

    def __post_init__(self) -> None:
        checked("shape", "period_s", self.period_s, 1e-3, inf)
        checked("shape", "cycles", self.cycles, 0, inf)
        self._strength = SoftStart(checked("shape", "ramp_s", self.ramp_s, 0.0, inf))
        self._table: list[list[float]] = []
        self._names: list[str] = []
        self._time, self._turns = inf, 0.0

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Make the path for the plant's angles; ModelError where it has others, or the path leaves their limits."""
        self._names = [channel.name for channel in plant.actuators]
        if not self._names or not all(name.endswith(".angle") for name in self._names):
            raise rtmms.ModelError(
                f"controller 'shape': expected actuators that are angles, got {', '.join(self._names) or 'none'}; run "
                "the robot with drive=motion"
            )
        own = GAITS.get(plant.robot, {})
        word = self.file or self.gait or next(iter(own), "circle")
        given = {key: getattr(self, key) for key in ("a", "b", "c1", "c2")}
        numbers = [f"{key}={value!r}" for key, value in given.items() if value is not None]
        if self.file and not self.file.lower().endswith(".csv"):
            raise rtmms.ModelError(f"controller 'shape': file: expected FILE.csv, got '{self.file}'")
        if self.file and (numbers or self.gait):
            raise rtmms.ModelError("controller 'shape': give a gait or a file, not both")
        path = gait_path(word + (f":{','.join(numbers)}" if numbers else ""), len(self._names), own)
        shapes = path.sampled(720)
        for k, channel in enumerate(plant.actuators):
            low, high = float(shapes[:, k].min()), float(shapes[:, k].max())
            least = -inf if channel.lower is None else channel.lower
            most = inf if channel.upper is None else channel.upper
            if low < least - 1e-9 or high > most + 1e-9:
                raise rtmms.ModelError(
                    f"controller 'shape': {channel.name} would move from {low:.4g} to {high:.4g} rad, beyond its "
                    f"limits {least:.4g} to {most:.4g}"
                )
        self._table = path.sampled(_POINTS).tolist()
        self._time, self._turns = inf, 0.0

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Angles in rad at state.time."""
        if state.time < self._time:  # the first state, or the first after a reset
            self._begin, self._turns = state.time + self.ramp_s, 0.0
        else:
            self._turns += max(0.0, state.time - max(self._time, self._begin)) / self.period_s
        self._time = state.time
        strength = self._strength(state.time)
        turns = min(self._turns, float(self.cycles)) if self.cycles else self._turns
        share = turns % 1.0 if turns < self.cycles or not self.cycles else 1.0
        place = share * _POINTS
        k = min(int(place), _POINTS - 1)
        rest = place - k
        return {
            name: strength * ((1.0 - rest) * before + rest * after)
            for name, before, after in zip(self._names, self._table[k], self._table[k + 1], strict=True)
        }
