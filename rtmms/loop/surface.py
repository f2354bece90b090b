"""Detection of robots near the water's surface, which no model here describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import TRUTH
from rtmms.base.override import override
from rtmms.loop.ports import Observer
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import HasRobots
from rtmms.plant.protocol import Plant

if TYPE_CHECKING:
    from rtmms.loop.ports import Applied, Array

CHECK_S = 0.02
"""Time between two looks, simulated s."""


@dataclass
class SurfaceVisit:
    """Stay of one robot near the surface.

    Parameters
    ----------
    robot : str
        Its name.
    half_span_m : float
        The robot is near the surface if its position is less deep than this, m.
    surface_m : float, default 0.0
        z of the surface, m, world.
    first_s : float | None, optional
        Simulated time at which it first was there, s; None if it never was.
    seconds : float, default 0.0
        Simulated time that it was there in all, s.
    highest_m : float, default -float('inf')
        Its highest z, m, world.
    """

    robot: str
    half_span_m: float
    surface_m: float = 0.0
    first_s: float | None = None
    seconds: float = 0.0
    highest_m: float = field(default=-float("inf"))

    @property
    def sentence(self) -> str:
        """Sentence about the visit; empty if there was none."""
        if self.first_s is None:
            return ""
        above = self.highest_m - self.surface_m
        side = f"{above:.3g} m above" if above > 0.0 else f"{-above:.3g} m below"
        return (
            f"{self.robot} was near the water's surface from t = {self.first_s:.4g} s on, for {self.seconds:.3g} s; "
            f"its highest position was {side} it. A robot has no model of the surface: less deep than half its span "
            f"({self.half_span_m:.3g} m) its results are wrong. Start deeper (--set start_depth_m=...)"
        )


class SurfaceWatch(Observer):
    """Observer of robots that come within half a span of the surface.

    Parameters
    ----------
    plant : Plant
        The plant of the run, or several robots on one clock.
    name : str
        Name of a single robot, for messages.
    stop : Callable[[str], None] | None, optional
        Called with a sentence as soon as a robot is near the surface. None: the run continues.
    first : int, default 0
        The step with which the run begins.

    Attributes
    ----------
    visits : sequence of SurfaceVisit
        One for each robot that moves in water and declares a span.
    due : int
        The next step at whose end the loop calls `after_step`.
    """

    def __init__(self, plant: Plant, name: str, stop: Callable[[str], None] | None = None, first: int = 0) -> None:
        self._stride, self._dt, self._stop, self._first = max(1, round(CHECK_S / plant.dt)), plant.dt, stop, first
        robots: Mapping[str, Any] = plant.robots if isinstance(plant, HasRobots) else {"": plant}
        has = {channel.name for channel in plant.outputs}
        self._watched: list[tuple[SurfaceVisit, str]] = []
        for owner, robot in robots.items():
            about, begin = describe_plant(robot), f"{owner}." if owner else ""
            result = next((key for key in (f"{begin}{TRUTH}position", f"{begin}position") if key in has), None)
            if about.medium == "water" and about.half_span_m is not None and result is not None:
                self._watched.append(
                    (SurfaceVisit(owner or name, about.half_span_m, about.environment().surface), result)
                )
        self._news: list[str] = []
        self.due = self._stride - 1 if self._watched else 1 << 62

    @property
    def visits(self) -> Sequence[SurfaceVisit]:
        """One visit for each watched robot."""
        return [visit for visit, _ in self._watched]

    def clear(self) -> None:
        """Discard all visits."""
        for visit, _ in self._watched:
            visit.first_s, visit.seconds, visit.highest_m = None, 0.0, -float("inf")
        self._first, self.due = 0, self._stride - 1 if self._watched else 1 << 62

    @override
    def start(self, outputs: Mapping[str, Array]) -> None:
        """Look at the state before the first step."""
        self._look(self._first * self._dt, 0.0, outputs)

    @override
    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Look at the state at the end of a step."""
        self.due = step + self._stride
        self._look(time, self._stride * self._dt, outputs)

    def _look(self, time: float, seconds: float, outputs: Mapping[str, Array]) -> None:
        for visit, key in self._watched:
            z = float(outputs[key][2])
            if not z > visit.surface_m - visit.half_span_m:
                continue
            visit.seconds += seconds
            visit.highest_m = max(visit.highest_m, z)
            if visit.first_s is None:
                visit.first_s = time
                sentence = (
                    f"t = {time:.4g} s: {visit.robot} is at z = {z:.3g} m, less than half its span "
                    f"({visit.half_span_m:.3g} m) below the water's surface, of which it has no model"
                )
                self._news.append(sentence)
                if self._stop is not None:
                    self._stop(f"{sentence} (--on-surface stop)")

    def news(self) -> list[str]:
        """Return the sentences since the last call.

        Returns
        -------
        list[str]
            The sentences.
        """
        news, self._news = self._news, []
        return news

    def report(self) -> dict[str, Any]:
        """Return the visits of robots that were near the surface.

        Returns
        -------
        dict[str, Any]
            half_span_m, first_s, seconds and highest_m by robot.
        """
        return {
            visit.robot: {
                "half_span_m": visit.half_span_m, "first_s": visit.first_s, "seconds": visit.seconds,
                "highest_m": visit.highest_m,
            }
            for visit in self.visits if visit.first_s is not None
        }  # fmt: skip
