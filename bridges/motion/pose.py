"""Place and motion of the robot, from a plant's own outputs: found once at the start, converted in each state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rtmms.base.attitude import Vector, cross, rotate, rotate_back, upright
from rtmms.base.contract import TRUTH
from rtmms.base.errors import ModelError
from rtmms.wire.protocol.received_state import PlantInfo, State

from .frames import attitude_to_ned, flu_frd, world_to_ned

_SIZES = {"position": 3, "quaternion": 4, "velocity": 3, "angular_velocity": 3, "acceleration": 3}
_UNITS = {"position": "m", "quaternion": "w, x, y, z", "velocity": "m/s", "angular_velocity": "rad/s",
          "acceleration": "m/s2"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PoseNames:
    """Outputs of the plant for each part of the motion; their frames are the channels' own: world or body.

    Parameters
    ----------
    position, quaternion, velocity, angular_velocity : str, default 'position'
        Names of the outputs.
    acceleration : str, default 'acceleration'
        Name of the output; empty for none: then it is derived from differences of the velocity.
    acceleration_is : str, default 'components'
        'components': the rates of the velocity's components, as the manta's; 'inertial': the acceleration of the point
        itself, in that frame.

    Raises
    ------
    ModelError
        If `acceleration_is` is something else.
    """

    position: str = "position"
    quaternion: str = "quaternion"
    velocity: str = "velocity"
    angular_velocity: str = "angular_velocity"
    acceleration: str = "acceleration"
    acceleration_is: str = "components"

    def __post_init__(self) -> None:
        """Check the values."""
        if self.acceleration_is not in ("components", "inertial"):
            raise ModelError(f"acceleration_is: expected one of components, inertial; got '{self.acceleration_is}'")


@dataclass(slots=True)
class Motion:
    """The robot at one instant, in our frames: world z up, body FLU, SI; all at the plant's point of reference.

    Parameters
    ----------
    time : float
        Simulated time, s.
    position : Vector
        Position, m, world.
    attitude : tuple[float, float, float, float]
        (w, x, y, z), body to world.
    velocity : Vector
        Velocity of the point, m/s, world components.
    velocity_body : Vector
        The same in body components.
    rate : Vector
        Angular velocity, rad/s, body components.
    acceleration : Vector | None
        Acceleration of the point in an inertial frame without gravity, m/s2, body components; None if unknown.
    """

    time: float
    position: Vector
    attitude: tuple[float, float, float, float]
    velocity: Vector
    velocity_body: Vector
    rate: Vector
    acceleration: Vector | None

    def ned(self, x_bearing: float) -> tuple[Vector, tuple[float, float, float, float], Vector]:
        """Return position, attitude FRD to NED, and velocity, as north, east, down.

        Parameters
        ----------
        x_bearing : float
            Compass bearing of the world's x axis, rad.

        Returns
        -------
        tuple[Vector, tuple[float, float, float, float], Vector]
            Position, m, quaternion (w, x, y, z), and velocity, m/s.
        """
        return (
            world_to_ned(self.position, x_bearing),
            attitude_to_ned(self.attitude, x_bearing),
            world_to_ned(self.velocity, x_bearing),
        )

    @property
    def rate_frd(self) -> Vector:
        """Angular velocity, rad/s, body FRD."""
        return flu_frd(self.rate)


class PoseReader:
    """Conversion of each state to a Motion.

    Parameters
    ----------
    names : PoseNames
        Outputs of the plant.
    plant : PlantInfo
        The plant.
    place : str, default 'pose'
        Source of the names, for the error.
    needs : tuple[str, ...], optional
        Parts that the bridge requires; other missing ones are 0, or unknown.

    Attributes
    ----------
    outputs : tuple of str
        Outputs that the bridge must select.

    Raises
    ------
    ModelError
        If the plant lacks a required output; it names the output.
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
        result = {part: getattr(names, part) for part in _SIZES}
        lacking = []
        self._frames: dict[str, str] = {}
        for part, output in list(result.items()):
            channel = known.get(output)
            if channel is None or channel.shape != (_SIZES[part],):
                asked = output != _default(part) and output != ""
                if part in needs or asked:
                    got = f"has the shape {channel.shape}" if channel is not None else "is not there"
                    lacking.append(f"{part} ('{output}' {got}; expected ({_SIZES[part]},), {_UNITS[part]})")
                result[part] = ""
                continue
            self._frames[part] = channel.frame
        if lacking:
            raise ModelError(
                f"{place}: the plant '{plant.robot}' lacks {'; '.join(lacking)}. Name the output it has: "
                f"{place}.{'position'}=NAME, ...; its outputs: {', '.join(known) or 'none'}"
            )
        self._output_names = result
        self.outputs = tuple(output for output in result.values() if output)
        """Outputs that the bridge must select."""

    def __call__(self, state: State) -> Motion:
        """Return the motion in a state."""
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
        if not self._output_names["acceleration"]:
            return None
        a = _three(get[self._output_names["acceleration"]])
        if self._frames["acceleration"] == "world":
            return rotate_back(q, a)
        if self.names.acceleration_is == "inertial":
            return a
        # a = (dv/dt)_body + w x v
        turning = cross(rate, body)
        return a[0] + turning[0], a[1] + turning[1], a[2] + turning[2]

    def _of(self, get: Any, part: str, otherwise: tuple[float, ...]) -> Any:
        name = self._output_names[part]
        return get[name] if name else otherwise


def truth_names(names: PoseNames, plant: PlantInfo) -> PoseNames:
    """Return the names of the truth, for a plant that is seen through sensors.

    Parameters
    ----------
    names : PoseNames
        Outputs of the plant.
    plant : PlantInfo
        The plant.

    Returns
    -------
    PoseNames
        The names.

    Raises
    ------
    ModelError
        If the truth was not selected.
    """
    known = {channel.name for channel in plant.outputs}
    asked = {part: getattr(names, part) for part in _SIZES}
    result = {part: TRUTH + name for part, name in asked.items() if name not in known and TRUTH + name in known}
    hidden = [name for name in result.values() if name not in plant.selected]
    if hidden:
        raise ModelError(
            f"outputs: the plant '{plant.robot}' has sensors, and sends {hidden[0]} only on request; give "
            f"outputs=*+{'+'.join(result.values())}"
        )
    return replace(names, **result)


def _default(part: str) -> str:
    return str(PoseNames.__dataclass_fields__[part].default)


def _three(v: Any) -> Vector:
    return float(v[0]), float(v[1]), float(v[2])
