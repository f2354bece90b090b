"""What a peer is shown of the plant: all of it, or one of its robots under the names that it has alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rtmms.errors import UnknownNameError
from rtmms.plant import Channel, Composed, Plant
from rtmms.wire.protocol.messages import (
    Reason,
    Refused,
    channel_map,
    plain_parameters,
    plain_shape,
    told_surroundings,
)


@dataclass(frozen=True)
class Scope:
    """
    robot   what it is;  plant  it, through its sensors;  prefix  what names of the whole plant begin with here
    beside  outputs that the whole plant has of it, and it has not alone: what it sees of other robots
    """

    robot: str
    plant: Plant
    prefix: str = ""
    beside: tuple[Channel, ...] = ()

    @property
    def actuators(self) -> tuple[Channel, ...]:
        return self.plant.actuators

    @property
    def outputs(self) -> tuple[Channel, ...]:
        return (*self.plant.outputs, *self.beside)

    def told(self) -> dict[str, Any]:
        """Of the plant in a welcome: as it is now."""
        return {
            "robot": self.robot, "parameters": plain_parameters(self.plant), "shape": plain_shape(self.plant),
            "surroundings": told_surroundings(self.plant),
            "actuators": [channel_map(channel) for channel in self.actuators],
            "outputs": [channel_map(channel) for channel in self.outputs],
        }  # fmt: skip


class Scopes:
    """Of one plant.  whole  all of it"""

    def __init__(self, robot: str, plant: Plant) -> None:
        self.whole = Scope(robot, plant)
        self._robots: Mapping[str, Scope] = {}
        if isinstance(plant, Composed):
            self._robots = {
                name: Scope(plant.kinds[name], one, f"{name}.", _beside(plant.outputs, one, f"{name}."))
                for name, one in plant.robots.items()
            }  # fmt: skip

    def of(self, robot: str) -> Scope:
        """By a robot's name, '' for all; Refused."""
        if not robot:
            return self.whole
        if robot not in self._robots:
            why = str(UnknownNameError("robot", robot, self._robots)) if self._robots else "this plant is one robot"
            raise Refused(Reason.UNKNOWN_ROBOT, f"hello: robot: {why}")
        return self._robots[robot]

    def robots(self) -> dict[str, Any]:
        """What a welcome tells of each robot; nothing where there is but one."""
        return {name: scope.told() for name, scope in self._robots.items()}


def _beside(outputs: tuple[Channel, ...], robot: Plant, prefix: str) -> tuple[Channel, ...]:
    own = {prefix + channel.name for channel in robot.outputs}
    return tuple(
        replace(channel, name=channel.name.removeprefix(prefix))
        for channel in outputs if channel.name.startswith(prefix) and channel.name not in own
    )  # fmt: skip
