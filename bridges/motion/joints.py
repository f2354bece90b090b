"""Joints of a robot in the form of others: names, and for each state their angles, rates and torques."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan, prod
from typing import Any, Literal

from rtmms.wire.protocol.received_state import PlantInfo, State


@dataclass(frozen=True)
class Group:
    """Joints with adjacent numbers in some outputs.

    Parameters
    ----------
    names : tuple[str, ...]
        Names of the joints.
    position, velocity, effort : str
        Names of the outputs; empty for one that the plant does not have.
    """

    names: tuple[str, ...]
    position: str
    velocity: str
    effort: str


class Joints:
    """Reader of a plant's joints from its states, rad, rad/s and N m.

    Parameters
    ----------
    plant : PlantInfo
        The plant.
    fields : bool, default True
        Whether to include joints in fields of two or more dimensions, such as those of a fin's chains.

    Attributes
    ----------
    names : tuple of str
        Names in the order of `__call__`'s lists; empty if the plant has no known joints.
    needs : tuple of str
        Outputs from which they are read.
    """

    def __init__(self, plant: PlantInfo, fields: bool = True) -> None:
        shapes = {channel.name: channel.shape for channel in plant.outputs}
        self._groups = []
        for position, velocity, effort, named in _OUTPUTS:
            shape = shapes.get(position)
            if not shape or (len(shape) > 1 and not fields):
                continue
            names = named(plant, shape)
            if len(names) != prod(shape):
                names = _numbered(plant, shape)
            others = (output if shapes.get(output) == shape else "" for output in (velocity, effort))
            self._groups.append(Group(names, position, *others))
        self.names = tuple(name for group in self._groups for name in group.names)
        self.needs = tuple(
            output for group in self._groups for output in (group.position, group.velocity, group.effort) if output
        )

    def __call__(self, state: State) -> tuple[list[float], list[float], list[float]]:
        """Return angles, rates and torques: each as long as `names`, or empty if unknown; NaN for unknown ones."""
        return self._all(state, "position"), self._all(state, "velocity"), self._all(state, "effort")

    def output_of(self, name: str, part: Literal["position", "velocity", "effort"]) -> str:
        """Return the output, with its index, that has a part of a joint.

        Parameters
        ----------
        name : str
            Name of the joint.
        part : Literal['position', 'velocity', 'effort']
            The part.

        Returns
        -------
        str
            The output; empty for none.
        """
        for group in self._groups:
            if name in group.names and getattr(group, part):
                return f"{getattr(group, part)}[{group.names.index(name)}]"
        return ""

    def _all(self, state: State, part: str) -> list[float]:
        if not any(getattr(group, part) for group in self._groups):
            return []
        values: list[float] = []
        for group in self._groups:
            output = getattr(group, part)
            values += state.outputs[output] if output else [nan] * len(group.names)
        return values


def _actuated(plant: PlantInfo, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the manta's rods, which are its actuators."""
    return tuple(channel.name for channel in plant.actuators)


def _named(plant: PlantInfo, shape: tuple[int, ...]) -> tuple[str, ...]:
    naming = _NAMES.get(plant.robot, _numbered)
    return naming(plant, shape)


def _numbered(plant: PlantInfo, shape: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"joint{i + 1}" for i in range(prod(shape)))


def _manta(plant: PlantInfo, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return names with fin, link from the root, and chain from the back: left_fin_0_29."""
    if len(shape) != 3 or shape[0] != 2:
        return ()
    return tuple(f"{side}_fin_{j}_{i}" for side in ("left", "right") for j in range(shape[1]) for i in range(shape[2]))


def _eel(plant: PlantInfo, shape: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{axis}{i + 1}" for i in range(shape[0] // 3) for axis in ("yaw", "pitch", "roll"))


def _moth(plant: PlantInfo, shape: tuple[int, ...]) -> tuple[str, ...]:
    names: list[str] = []
    for side in ("right", "left"):
        for k in range(shape[0] // 4):
            names += (f"{side}.twist{k + 1}" if k else f"{side}.stroke", f"{side}.bend{k + 1}")
    return tuple(names)


_Naming = Callable[[PlantInfo, tuple[int, ...]], tuple[str, ...]]
_NAMES: dict[str, _Naming] = {"manta": _manta, "eel": _eel, "moth": _moth}
_OUTPUTS: tuple[tuple[str, str, str, Any], ...] = (
    ("rod_angle", "rod_rate", "rod_torque", _actuated),
    ("joint_position", "joint_velocity", "joint_torque", _named),
)
