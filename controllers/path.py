"""Follows a course in space: waypoints, a helix, a figure of eight, in a current that nobody tells it of.

rtmms run manta --sensors typical --controller path:course=helix,radius_m=4,rise_m=-1
rtmms run manta --controller "path:course=waypoints,waypoints=0 0 -1; 10 0 -1; 10 10 -2"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import rtmms

from .course_progress import CourseProgress
from .guiding import COMPENSATIONS, Guide
from .helm import Helm, checked_gains, checked_most, tell
from .pilot import Aim
from .rods import checked


@dataclass
class Path(rtmms.Controller):
    """Line of sight along a course, over the autopilot's cascades; at its end it swims straight on.

    course        waypoints, helix or eight
    waypoints     'x y z; x y z; ...' in m, world; of course=waypoints
    radius_m      of the helix, and of the narrowest turn of the eight;  rise_m  a turn of the helix;  turns  of either
    depth_m, course_heading_deg   where helix and eight begin, above or below the origin, and in which direction
    speed_m_s     over the ground;  lookahead_m  of the line of sight
    compensate    what a current is found by: estimate, integrator or none
    turn, frequency_hz, amplitude_deg   as the autopilot's
    """

    course: str = "helix"
    waypoints: str = ""
    radius_m: float = 4.0
    rise_m: float = -1.0
    turns: float = 2.0
    depth_m: float = 0.5
    course_heading_deg: float = 0.0
    speed_m_s: float = 0.4
    lookahead_m: float = 0.7
    compensate: str = "estimate"
    turn: str = "phase"
    frequency_hz: float = 0.8
    amplitude_deg: float = 30.0

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    every = 5
    interpolation = "linear"
    tracks = ("cross_track_m",)
    settable = ("speed_m_s", "lookahead_m")

    def __post_init__(self) -> None:
        from rtmms.analysis.courses import course, spelled  # numpy's, with the first of them

        if self.waypoints and self.course != "waypoints":
            told = f"waypoints: they go with course=waypoints, got course={self.course}"
            raise rtmms.ModelError(f"controller 'path': {told}")
        numbers = {
            "radius_m": self.radius_m, "rise_m": self.rise_m, "turns": self.turns, "depth_m": self.depth_m,
            "heading_deg": self.course_heading_deg,
        }  # fmt: skip
        self.cross_track_m = spelled(self.course, self.waypoints, **numbers)
        try:
            way = course(self.course, waypoints=self.waypoints, **numbers)
        except rtmms.RtmmsError as fault:
            raise rtmms.ModelError(f"controller 'path': {fault}") from None
        checked("path", "speed_m_s", self.speed_m_s, 0.05, 1.0)
        checked("path", "lookahead_m", self.lookahead_m, 0.1, inf)
        checked("path", "frequency_hz", self.frequency_hz, 0.1, 3.0)
        if self.compensate not in COMPENSATIONS:
            unknown = rtmms.UnknownNameError("way", self.compensate, COMPENSATIONS)
            raise rtmms.ModelError(f"controller 'path': compensate: {unknown}")
        strokes = checked_most("path", self.amplitude_deg, self.turn)
        self._helm = Helm("path", checked_gains("path", object()), strokes, self.frequency_hz)
        self._guide, self._aim = Guide(way, self.lookahead_m, self.compensate), Aim()
        self._progress = CourseProgress("path", way.whole_m, tell)

    def prepare(self) -> None:
        """See rtmms.Controller."""
        self._helm.senses.prepare()

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Look how the plant can be sensed, and that its rods can do the stroke."""
        self._helm.start(plant)
        self._guide.reset()
        self._progress.reset()

    def change(self, values: Mapping[str, Any]) -> None:
        """Another speed or lookahead from now on."""
        super().change(values)
        self._guide.lookahead_m = self.lookahead_m

    @property
    def stuck(self) -> tuple[str, ...]:
        """Rods that do not follow their commands."""
        return self._helm.following.stuck

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Rod angles in rad."""
        now = self._helm.hear(state)
        if not self._guide.finished:
            self._guide(now, self.speed_m_s, self._aim)
            self._progress(now.time, self._guide.along, self.speed_m_s)
        return self._helm.steer(self._aim, now)
