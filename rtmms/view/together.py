"""Several robots as one shape, in the frame of the first one's body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rtmms.base.attitude import HOME, Pose, after, at
from rtmms.plant.drawing import Skin, Solid
from rtmms.view.shape import Shape
from rtmms.wire.protocol.received_state import PlantInfo

BODY = "body"
POSE = ("position", "quaternion")


class TogetherShape:
    """Shape of several robots; parts are called ROBOT.part.

    Parameters
    ----------
    shapes : Mapping[str, Shape | None]
        Shape of each robot by its name, None where it is unknown.

    Attributes
    ----------
    counts : dict
        Number of skins of each robot that has a shape, in the order of `skins`.
    """

    def __init__(self, shapes: Mapping[str, Shape | None]) -> None:
        self._shapes = {name: shape for name, shape in shapes.items() if shape is not None}
        self.shapes = dict(shapes)
        self.counts = {name: len(shape.skins) for name, shape in self._shapes.items()}
        self._names = tuple(shapes)
        self.needs = tuple(
            f"{name}.{output}" for name in shapes
            for output in dict.fromkeys((*POSE, *(self._shapes[name].needs if name in self._shapes else ())))
        )  # fmt: skip
        self.skins: tuple[Skin, ...] = tuple(
            replace(skin, name=f"{name}.{skin.name}") for name, shape in self._shapes.items() for skin in shape.skins
        )
        self.solids: tuple[Solid, ...] = tuple(
            replace(solid, name=f"{name}.{solid.name}", frame=f"{name}.{solid.frame or BODY}")
            for name, shape in self._shapes.items() for solid in shape.solids
        )  # fmt: skip

    def points(self, outputs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the points of each skin.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs of all robots by name, flat.

        Returns
        -------
        tuple[Any, ...]
            m, frame of the first body.
        """
        return tuple(
            [at(pose, point) for point in points]
            for name, pose in self._bodies(outputs).items() if name in self._shapes
            for points in self._shapes[name].points(self._select_outputs(name, outputs))
        )  # fmt: skip

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        """Return the frames of the bodies and of the moving parts.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs of all robots by name, flat.

        Returns
        -------
        dict[str, Pose]
            Poses in the frame of the first body, by name.
        """
        result: dict[str, Pose] = {}
        for name, pose in self._bodies(outputs).items():
            result[f"{name}.{BODY}"] = pose
            if name in self._shapes:
                robot_frames = self._shapes[name].frames(self._select_outputs(name, outputs))
                result |= {f"{name}.{part}": after(pose, place) for part, place in robot_frames.items()}
        return result

    def _select_outputs(self, name: str, outputs: Mapping[str, Any]) -> dict[str, Any]:
        return {need: outputs[f"{name}.{need}"] for need in self._shapes[name].needs}

    def _bodies(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        """Return the pose of each body in the first one's frame."""
        poses = {name: _pose(outputs[f"{name}.position"], outputs[f"{name}.quaternion"]) for name in self._names}
        (x, y, z), q = next(iter(poses.values()))
        back = q[0], -q[1], -q[2], -q[3]
        away: Pose = ((0.0, 0.0, 0.0), back)
        return {
            name: after(away, ((p[0] - x, p[1] - y, p[2] - z), turned)) for name, (p, turned) in poses.items()
        }  # fmt: skip


def _pose(position: Any, quaternion: Any) -> Pose:
    x, y, z = (float(v) for v in position)
    w, a, b, c = (float(v) for v in quaternion)
    known = w * w + a * a + b * b + c * c > 1e-6
    return (x, y, z), (w, a, b, c) if known else HOME[1]


def outputs_of_robot(plant: PlantInfo, name: str) -> PlantInfo:
    """Return one of several robots with its own outputs, under the names that it has alone.

    Parameters
    ----------
    plant : PlantInfo
        The whole plant.
    name : str
        Name of the robot.

    Returns
    -------
    PlantInfo
        The robot.
    """
    begin = name + "."
    outputs = tuple(
        replace(channel, name=channel.name.removeprefix(begin))
        for channel in plant.outputs if channel.name.startswith(begin)
    )  # fmt: skip
    return replace(plant.robots[name], outputs=outputs)
