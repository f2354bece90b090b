"""Path following in space: waypoints, a helix, a figure of eight, in an unknown current.

Run it on a helix, or on waypoints:

    rtmms run manta --sensors typical --controller path:course=helix,radius_m=4,rise_m=-1
    rtmms run manta --controller "path:course=waypoints,waypoints=0 0 -1; 10 0 -1; 10 10 -2"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .course_progress import CourseProgress
from .guiding import COMPENSATIONS, Guide
from .helm import Helm, checked_gains, most_of, print_line
from .mixing import TURNS
from .pilot import Aim


@dataclass
class Path(rtmms.Controller):
    """Line of sight along a course, over the autopilot's cascades; at its end it swims straight on.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    course: Annotated[str, Parameter("Course: waypoints, helix or eight.")] = "helix"
    waypoints: Annotated[str, Parameter("Points 'x y z; x y z; ...' in m, world; for course=waypoints.")] = ""
    radius_m: Annotated[float, Parameter(
        "Radius of the helix, and of the narrowest turn of the eight.", "m", signed=True,
    )] = 4.0
    rise_m: Annotated[float, Parameter("Rise of the helix in a turn.", "m", signed=True)] = -1.0
    turns: Annotated[float, Parameter("Turns of helix and eight.", signed=True)] = 2.0
    depth_m: Annotated[float, Parameter("Depth below the origin at which helix and eight begin.", "m", ge=0)] = 2.5
    course_heading_deg: Annotated[float, Parameter(
        "Direction in which helix and eight begin.", "deg", signed=True,
    )] = 0.0
    speed_m_s: Annotated[float, Parameter("Speed over the ground.", "m/s", ge=0.05, le=1, live=True)] = 0.4
    lookahead_m: Annotated[float, Parameter("Length of the line of sight.", "m", ge=0.1, live=True)] = 0.7
    compensate: Annotated[str, Parameter("Method to compensate a current.", choices=COMPENSATIONS)] = "estimate"
    turn: Annotated[str, Parameter(
        "Method by which the inner fin loses thrust, as the autopilot's.", choices=TURNS,
    )] = "phase"
    frequency_hz: Annotated[float, Parameter("Frequency of the stroke, as the autopilot's.", "Hz", ge=0.1, le=3)] = 0.8
    amplitude_deg: Annotated[float, Parameter(
        "Amplitude of the stroke at full thrust, as the autopilot's.", "deg", ge=1, le=45,
    )] = 30.0
    # fmt: on

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    every = 5
    interpolation = "linear"
    setpoints = ("cross_track_m",)

    def __post_init__(self) -> None:
        """Check the parameters, and make the course."""
        from rtmms.analysis.courses import WITHOUT_EFFECT, course, course_text  # numpy's, with the first of them

        check_parameters("controller 'path': ", self)
        if self.waypoints and self.course != "waypoints":
            problem = f"waypoints: expected course=waypoints with them, got course={self.course}"
            raise rtmms.ModelError(f"controller 'path': {problem}")
        for name in WITHOUT_EFFECT.get(self.course, ()):
            mine = {"heading_deg": "course_heading_deg"}.get(name, name)
            if getattr(self, mine) != type(self).__dataclass_fields__[mine].default:
                raise rtmms.ModelError(f"controller 'path': {mine}: course={self.course} does not use it; leave it out")
        numbers = {
            "radius_m": self.radius_m, "rise_m": self.rise_m, "turns": self.turns, "depth_m": self.depth_m,
            "heading_deg": self.course_heading_deg,
        }  # fmt: skip
        self.cross_track_m = course_text(self.course, self.waypoints, **numbers)
        try:
            route = course(self.course, waypoints=self.waypoints, **numbers)
        except rtmms.RtmmsError as fault:
            raise rtmms.ModelError(f"controller 'path': {fault}") from None
        strokes = most_of(self.amplitude_deg, self.turn)
        self._helm = Helm("path", checked_gains("path", object()), strokes, self.frequency_hz)
        self._guide, self._aim = Guide(route, self.lookahead_m, self.compensate), Aim()
        self._progress = CourseProgress("path", route.whole_m, print_line)

    def prepare(self) -> None:
        """Compile the estimator before the plant waits."""
        self._helm.senses.prepare()

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Find out which outputs give the motion, and check that the rods can do the stroke."""
        self._helm.start(plant)
        self._guide.reset()
        self._progress.reset()

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use another speed or lookahead."""
        super().on_parameters_changed(values)
        self._guide.lookahead_m = self.lookahead_m

    @property
    def stuck(self) -> tuple[str, ...]:
        """Rods that do not follow their commands."""
        return self._helm.following.stuck

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the rod angles, rad."""
        now = self._helm.read(state)
        if not self._guide.finished:
            self._guide(now, self.speed_m_s, self._aim)
            self._progress(now.time, self._guide.along, self.speed_m_s)
        return self._helm.steer(self._aim, now)
