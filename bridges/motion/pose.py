"""Where the robot is and how it moves, from whatever a plant calls it: read once at the start, converted each state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rtmms.base.attitude import Vector, cross, rotate, rotate_back, upright
from rtmms.base.contract import TRUTH
from rtmms.base.errors import ModelError
from rtmms.wire.protocol.state import PlantInfo, State

from .frames import attitude_to_ned, flu_frd, world_to_ned

_SIZES = {"position": 3, "quaternion": 4, "velocity": 3, "angular_velocity": 3, "acceleration": 3}
_UNITS = {"position": "m", "quaternion": "w, x, y, z", "velocity": "m/s", "angular_velocity": "rad/s",
          "acceleration": "m/s2"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PoseNames:
    """The plant's outputs for each part of the motion. Frames are the channels' own: world or body.

    acceleration   '' for none; then it is taken from differences of the velocity
    acceleration_is   'components': the rates of the velocity's components, as the manta's; 'inertial': the
                      acceleration of the point itself, in that frame
    """

    position: str = "position"
    quaternion: str = "quaternion"
    velocity: str = "velocity"
    angular_velocity: str = "angular_velocity"
    acceleration: str = "acceleration"
    acceleration_is: str = "components"

    def __post_init__(self) -> None:
        if self.acceleration_is not in ("components", "inertial"):
            raise ModelError(f"acceleration_is: expected one of components, inertial; got '{self.acceleration_is}'")


@dataclass(slots=True)
class Motion:
    """The robot at one instant, in our frames: world z up, body FLU, SI; all about the plant's point of reference.

    attitude      (w, x, y, z), body to world
    velocity      of the point, world components; `velocity_body` the same in the body's
    rate          angular velocity, body components
    acceleration  of the point in an inertial frame (no gravity in it), body components; None where it is not known
    """

    time: float
    position: Vector
    attitude: tuple[float, float, float, float]
    velocity: Vector
    velocity_body: Vector
    rate: Vector
    acceleration: Vector | None

    def ned(self, x_bearing: float) -> tuple[Vector, tuple[float, float, float, float], Vector]:
        """Position and velocity as north, east, down, and the attitude FRD to NED, in the order p, q, v."""
        return (
            world_to_ned(self.position, x_bearing),
            attitude_to_ned(self.attitude, x_bearing),
            world_to_ned(self.velocity, x_bearing),
        )

    @property
    def rate_frd(self) -> Vector:
        return flu_frd(self.rate)


class PoseReader:
    """Makes a Motion of each state. Built once a plant is known: ModelError names the output that it lacks.

    needs   the parts without which the bridge makes no sense; what else is missing is taken to be 0, or not known
    """

    def __init__(
        self,
        names: PoseNames,
        plant: PlantInfo,
        place: str = "pose",
        needs: tuple[str, ...] = ("position", "quaternion", "velocity", "angular_velocity"),
    ) -> None:
        self.names = names
        known = {channel.name: channel for channel in plant.outputs}
        found = {part: getattr(names, part) for part in _SIZES}
        lacking = []
        self._frames: dict[str, str] = {}
        for part, output in list(found.items()):
            channel = known.get(output)
            if channel is None or channel.shape != (_SIZES[part],):
                asked = output != _default(part) and output != ""
                if part in needs or asked:
                    got = f"has the shape {channel.shape}" if channel is not None else "is not there"
                    lacking.append(f"{part} ('{output}' {got}; expected ({_SIZES[part]},), {_UNITS[part]})")
                found[part] = ""
                continue
            self._frames[part] = channel.frame
        if lacking:
            raise ModelError(
                f"{place}: the plant '{plant.robot}' lacks {'; '.join(lacking)}. Name the output it has: "
                f"{place}.{'position'}=NAME, ...; its outputs: {', '.join(known) or 'none'}"
            )
        self._found = found
        self.outputs = tuple(output for output in found.values() if output)
        """What the bridge must ask the plant for."""

    def __call__(self, state: State) -> Motion:
        get, frames = state.outputs, self._frames
        q = upright(self._of(get, "quaternion", (1.0, 0.0, 0.0, 0.0)))
        position = _three(self._of(get, "position", (0.0, 0.0, 0.0)))
        velocity = _three(self._of(get, "velocity", (0.0, 0.0, 0.0)))
        rate = _three(self._of(get, "angular_velocity", (0.0, 0.0, 0.0)))
        if frames.get("velocity") == "world":
            world, body = velocity, rotate_back(q, velocity)
        else:
            world, body = rotate(q, velocity), velocity
        if frames.get("angular_velocity") == "world":
            rate = rotate_back(q, rate)
        return Motion(state.time, position, q, world, body, rate, self._acceleration(get, q, body, rate))

    def _acceleration(self, get: Any, q: tuple[float, ...], body: Vector, rate: Vector) -> Vector | None:
        if not self._found["acceleration"]:
            return None
        a = _three(get[self._found["acceleration"]])
        if self._frames["acceleration"] == "world":
            return rotate_back(q, a)
        if self.names.acceleration_is == "inertial":
            return a
        # a = (dv/dt)_body + w x v
        turning = cross(rate, body)
        return a[0] + turning[0], a[1] + turning[1], a[2] + turning[2]

    def _of(self, get: Any, part: str, otherwise: tuple[float, ...]) -> Any:
        name = self._found[part]
        return get[name] if name else otherwise


def unveiled(names: PoseNames, plant: PlantInfo) -> PoseNames:
    """The same, from the truth where a plant is seen through sensors; ModelError where it was not asked for."""
    known = {channel.name for channel in plant.outputs}
    asked = {part: getattr(names, part) for part in _SIZES}
    found = {part: TRUTH + name for part, name in asked.items() if name not in known and TRUTH + name in known}
    hidden = [name for name in found.values() if name not in plant.selected]
    if hidden:
        raise ModelError(
            f"outputs: the plant '{plant.robot}' is seen through sensors, and sends {hidden[0]} only to those who ask "
            f"for it: outputs=*+{'+'.join(found.values())}"
        )
    return replace(names, **found)


def _default(part: str) -> str:
    return str(PoseNames.__dataclass_fields__[part].default)


def _three(v: Any) -> Vector:
    return float(v[0]), float(v[1]), float(v[2])
