"""Player of a gait of shapes: one of the robot's own, a circle, square or rectangle, a file of shapes.

    rtmms run snakeboard --controller shape:gait=park,steer=0.1
    rtmms run purcell --controller shape:gait=circle,a=1,period_s=4
    rtmms gaits purcell -o found && rtmms run purcell --controller shape:file=found/purcell-gait.csv

Sines (of the robots on wheels) start softly from the present shape. On a closed path the robot first goes smoothly to
its beginning. The commands of a path are angles, in the order of the robot's actuators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters
from rtmms.base.trust import NamesFile
from rtmms.locomotion.paths import FORMS, Gait, Sines, gait_path
from rtmms.robots.shape_gaits import GAITS

from .shape_players import ClosedPathPlayer, Swing


@dataclass
class Shape(rtmms.Controller):
    """Plays a gait of shapes, as `rtmms gaits` computes it.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    gait: Annotated[str, NamesFile("input"), Parameter(
        "Gait of the robot, circle (a, c1, c2), square (a) or rectangle (a, b). Default: the first that the robot can "
        "do.",
    )] = ""
    a: Annotated[float | None, Parameter(
        "Radius of a circle, half a side of a square, or the first side of a rectangle; default the gait's own.",
        "rad", signed=True,
    )] = None
    b: Annotated[float | None, Parameter(
        "Second side of a rectangle; default the gait's own.", "rad", signed=True,
    )] = None
    c1: Annotated[float | None, Parameter(
        "First coordinate of a circle's centre; default the gait's own.", "rad", signed=True,
    )] = None
    c2: Annotated[float | None, Parameter(
        "Second coordinate of a circle's centre; default the gait's own.", "rad", signed=True,
    )] = None
    file: Annotated[str, NamesFile("input"), Parameter("File of shapes in place of a gait.")] = ""
    period_s: Annotated[float | None, Parameter(
        "Period of a cycle; default: the gait's own, or 4 s for a path.", "s", ge=1e-3, live=True,
    )] = None
    frequency_hz: Annotated[float | None, Parameter(
        "Frequency of the cycle, in place of period_s.", "Hz", ge=0, le=50, live=True,
    )] = None
    amplitude: Annotated[float, Parameter("Factor on the gait's own amplitude.", signed=True, live=True)] = 1.0
    steer: Annotated[float, Parameter(
        "Addition to the steering input: > 0 to the left; for gaits of sines.", "rad, rad/s", signed=True, live=True,
    )] = 0.0
    cycles: Annotated[int, Parameter(
        "Number of cycles, after which the robot stays; sines are then played as a closed path; 0: without end.", ge=0,
    )] = 0
    ramp_s: Annotated[float, Parameter(
        "Duration of the soft start, or of the motion to the begin of the path.", "s", ge=0,
    )] = 1.0
    # fmt: on

    claim = ("*",)
    outputs = ("none",)
    robots = (
        "cat", "satellite", "purcell", "fluid_swimmer", "snake", "unicycle", "snakeboard", "roller_racer", "trikke",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises
        ------
        ModelError
            Parameters contradict each other.
        """
        check_parameters("controller 'shape': ", self)
        if self.period_s is not None and self.frequency_hz is not None:
            raise rtmms.ModelError(
                "controller 'shape': period_s, frequency_hz: expected one of them, got both; set the other to 'none'"
            )
        if self.file and not self.file.lower().endswith(".csv"):
            raise rtmms.ModelError(f"controller 'shape': file: expected FILE.csv, got '{self.file}'")
        if self.file and (self._form_numbers or self.gait):
            raise rtmms.ModelError("controller 'shape': gait, file: expected one of them, got both")
        self._player: ClosedPathPlayer | Swing | None = None

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Make the player for the plant's actuators.

        Raises
        ------
        ModelError
            The actuators do not fit, or the gait leaves their limits.
        """
        player = self._build_player(plant)
        player.check(self.amplitude, self.steer)
        player.tune(self._period, self.amplitude, self.steer)
        self._player = player

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use another pace, amplitude or steering; the pace changes without a jump."""
        trial = replace(self, **values)
        if self._player is not None:
            self._player.check(trial.amplitude, trial.steer)
        super().on_parameters_changed(values)
        if self._player is not None:
            self._player.tune(self._period, self.amplitude, self.steer)

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the values of the actuators at state.time."""
        assert self._player is not None
        return self._player(state.time)

    @property
    def _period(self) -> float | None:
        """Period of a cycle, s; None: the gait's own."""
        if self.frequency_hz is None:
            return self.period_s
        return 1.0 / self.frequency_hz if self.frequency_hz else inf

    @property
    def _form_numbers(self) -> list[str]:
        """Numbers of a circle, square or rectangle, as text of a word."""
        values = {key: getattr(self, key) for key in ("a", "b", "c1", "c2")}
        return [f"{key}={value!r}" for key, value in values.items() if value is not None]

    def _build_player(self, plant: rtmms.PlantInfo) -> ClosedPathPlayer | Swing:
        gaits = GAITS.get(plant.robot, {})
        names = [channel.name for channel in plant.actuators]
        word = self.file or self.gait or _first(gaits, names)
        gait = gaits.get(word)
        if isinstance(gait, Sines) and not self._form_numbers:
            if not set(gait.channels) <= set(names):
                wanted = ", ".join(gait.channels)
                raise rtmms.ModelError(f"controller 'shape': expected actuators {wanted}, got {', '.join(names)}")
            if not self.cycles:
                return Swing(gait, plant.actuators, self.ramp_s)
        if word not in gaits and word not in FORMS and not word.lower().endswith(".csv"):
            raise rtmms.UnknownNameError("gait", word, [*gaits, *FORMS], "or a file of shapes, file=FILE.csv")
        if not names or not all(name.endswith(".angle") for name in names):
            raise rtmms.ModelError(
                f"controller 'shape': gait '{word}': expected actuators that are angles, got "
                f"{', '.join(names) or 'none'}; run the robot with drive=motion"
            )
        joints = [name.removesuffix(".angle") for name in names]
        path = gait_path(
            word + (f":{','.join(self._form_numbers)}" if self._form_numbers else ""), len(names), gaits, joints
        )
        return ClosedPathPlayer(path, plant.actuators, self.ramp_s, self.cycles)


def _first(gaits: Mapping[str, Gait], names: list[str]) -> str:
    """Return the first gait that the actuators can do; where there is none, the first, whose check fails later."""
    for word, gait in gaits.items():
        if set(gait.channels) <= set(names) if isinstance(gait, Sines) else all(n.endswith(".angle") for n in names):
            return word
    return next(iter(gaits), "circle")
