"""Robot's shape and frames as Foxglove's messages."""

from __future__ import annotations

from itertools import pairwise
from math import floor
from typing import Any

from rtmms.plant.drawing import Skin
from rtmms.view.shape import Shape
from rtmms.wire.protocol.received_state import State

from ..motion.frames import xyzw
from ..motion.pose import Motion

SURFACE = (0.16, 0.47, 0.71, 0.75)
LINES = (0.05, 0.15, 0.25, 1.0)
SOLID = (0.55, 0.58, 0.62, 1.0)
LINE_PIXELS = 1.5


def stamp(time: float) -> Any:
    """Return simulated s as a Timestamp, never before 0.

    Parameters
    ----------
    time : float
        Simulated time, s.

    Returns
    -------
    Any
        The Timestamp.
    """
    from foxglove.messages import Timestamp

    whole = floor(max(0.0, time))
    nanoseconds = round((max(0.0, time) - whole) * 1e9)
    return Timestamp(whole + nanoseconds // 1_000_000_000, nanoseconds % 1_000_000_000)


class Scene:
    """Transforms of a robot, and its drawn entities.

    Parameters
    ----------
    shape : Shape | None
        Shape of the robot; None: the body's frame alone.
    world, body : str
        Names of the frames.
    """

    def __init__(self, shape: Shape | None, world: str, body: str) -> None:
        from foxglove.messages import Color

        self.shape, self.world, self.body = shape, world, body
        self._colours = tuple(Color(r=r, g=g, b=b, a=a) for r, g, b, a in (SURFACE, LINES, SOLID))
        self._lines = {skin.name: _pairs(skin) for skin in shape.skins} if shape else {}

    def transforms(self, state: State, motion: Motion) -> Any:
        """Return the transforms from world to body, and from body to each moving part.

        Parameters
        ----------
        state : State
            The state.
        motion : Motion
            Motion of the robot.

        Returns
        -------
        Any
            A FrameTransforms message.
        """
        from foxglove.messages import FrameTransform, FrameTransforms, Quaternion, Vector3

        at = stamp(state.time)
        result = [(self.world, self.body, motion.position, motion.attitude)]
        if self.shape is not None:
            parts = self.shape.frames(state.outputs)
            result += [(self.body, name, position, q) for name, (position, q) in parts.items()]
        built = []
        for parent, child, (x, y, z), q in result:
            a, b, c, w = xyzw(q)
            built.append(
                FrameTransform(
                    timestamp=at,
                    parent_frame_id=parent,
                    child_frame_id=child,
                    translation=Vector3(x=x, y=y, z=z),
                    rotation=Quaternion(x=a, y=b, z=c, w=w),
                )
            )
        return FrameTransforms(transforms=built)

    def update(self, state: State) -> Any:
        """Return the entities: one for each skin and solid, in the body's frame; each replaces the one before.

        Parameters
        ----------
        state : State
            The state.

        Returns
        -------
        Any
            A SceneUpdate message.
        """
        from foxglove.messages import (
            LinePrimitive,
            LinePrimitiveLineType,
            Point3,
            SceneEntity,
            SceneUpdate,
            TriangleListPrimitive,
        )

        assert self.shape is not None
        at = stamp(state.time)
        surface, line, _ = self._colours
        entities = []
        for skin, points in zip(self.shape.skins, self.shape.points(state.outputs), strict=True):
            built = [Point3(x=x, y=y, z=z) for x, y, z in points]
            lines = LinePrimitive(
                type=LinePrimitiveLineType.LineList,
                thickness=LINE_PIXELS,
                scale_invariant=True,
                points=built,
                color=line,
                indices=self._lines[skin.name],
            )
            tiles = TriangleListPrimitive(points=built, color=surface, indices=list(skin.triangles))
            entities.append(
                SceneEntity(
                    timestamp=at,
                    frame_id=self.body,
                    id=skin.name,
                    frame_locked=True,
                    lines=[lines],
                    triangles=[tiles] if skin.triangles else None,
                )
            )
        return SceneUpdate(entities=entities + self._solids(at))

    def _solids(self, at: Any) -> list[Any]:
        from foxglove.messages import (
            CubePrimitive,
            CylinderPrimitive,
            Point3,
            Pose,
            Quaternion,
            SceneEntity,
            SpherePrimitive,
            TriangleListPrimitive,
            Vector3,
        )

        assert self.shape is not None
        built = []
        for solid in self.shape.solids:
            (x, y, z), (a, b, c), (qx, qy, qz, qw) = solid.centre, solid.size, xyzw(solid.quaternion)
            pose = Pose(position=Vector3(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))
            of = {"pose": pose, "size": Vector3(x=a, y=b, z=c), "color": self._colours[2]}
            entity = {"timestamp": at, "frame_id": solid.frame or self.body, "id": solid.name, "frame_locked": True}
            match solid.kind:
                case "box":
                    built.append(SceneEntity(**entity, cubes=[CubePrimitive(**of)]))
                case "cylinder" | "rotor":
                    round_ = CylinderPrimitive(**of, bottom_scale=1.0, top_scale=1.0)
                    built.append(SceneEntity(**entity, cylinders=[round_]))
                case "mesh":
                    points = [Point3(x=u, y=v, z=w) for u, v, w in solid.vertices]
                    faces = [k for corners in solid.triangles for k in corners]
                    tiles = TriangleListPrimitive(pose=pose, points=points, color=self._colours[2], indices=faces)
                    built.append(SceneEntity(**entity, triangles=[tiles]))
                case _:
                    built.append(SceneEntity(**entity, spheres=[SpherePrimitive(**of)]))
        return built


def _pairs(skin: Skin) -> list[int]:
    """Return the strips of a skin as pairs of points."""
    return [index for strip in skin.lines for pair in pairwise(strip) for index in pair]
