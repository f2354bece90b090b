"""The scene in the browser: nodes that are made once, and moved as states come."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout, suppress
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.errors import ModelError, RtmmsError
from rtmms.shapes.shape import HOME, KINDS, Skin, Solid
from rtmms.view.goals import goal, planned
from rtmms.view.guard import guarding
from rtmms.view.picture import Drawn, Picture

if TYPE_CHECKING:
    from rtmms.view.picture import Array

SURFACE, EDGE, SOLID, PATH, FORCE, FLOW, GHOST, PLAN = (
    (41, 120, 181), (13, 38, 64), (140, 148, 158), (228, 87, 46), (214, 69, 65), (23, 163, 152), (123, 75, 148),
    (33, 145, 80),
)  # fmt: skip
PORT = 8080
LONGEST_PATH = 2000
"""Points of the path; beyond that every other is dropped, and so on."""
GRAIN_M = 1.0 / 8192.0
"""Points are rounded to this: it cannot be seen, and a recording is half as long."""
SCALE_N = 0.25
"""Of the robot's size: how long the largest force so far is drawn."""


def serve(host: str, port: int, label: str) -> Any:
    """A viser server that listens at host and port (0: PORT, or any that is free).

    ModelError where the library is missing, RtmmsError where the port is not to be had.
    """
    try:
        import viser
    except ImportError:
        raise ModelError("the view needs the library viser: pip install 'rtmms[view]'") from None
    # the library would print a traceback for each frame that is none: others could fill a disk with them
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    if port:
        _refuse_busy(host, port)
    with redirect_stdout(StringIO()), ExitStack() as unguarded:  # it announces itself, where a report is expected
        with guarding(host):
            server = viser.ViserServer(host=host, port=port or _free(host), label=label, verbose=False)
            unguarded.callback(server.stop)
        unguarded.pop_all()
    server.gui.configure_theme(control_width="large", show_logo=False)
    return server


def end(server: Any) -> None:
    """Stop it, without a word from the library."""
    with redirect_stdout(StringIO()):
        server.stop()


def _refuse_busy(host: str, port: int) -> None:
    """The library would take the next port that is free, without a word."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise RtmmsError(f"view: {host}:{port}: {error.strerror}") from None


def _free(host: str) -> int:
    import socket

    for port in (PORT, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    raise RtmmsError(f"view: no port of {host} is free")


class Stage:
    """A robot in a scene.

    picture   what is drawn;  follow  the camera's target moves with the robot
    """

    def __init__(self, server: Any, picture: Picture, first: Drawn) -> None:
        self.server, self.picture = server, picture
        picture.measure(first)
        self._size = size = picture.size
        self._largest = 0.0
        self._path = np.zeros((LONGEST_PATH + 2, 3))
        self._points = self._skipped = 0
        self._every = 1
        scene = server.scene
        scene.set_up_direction("+z")
        self._grid = scene.add_grid(
            "/grid", width=40.0 * size, height=40.0 * size, cell_size=size, section_size=5.0 * size,
            cell_color=(214, 222, 230), section_color=(176, 188, 200), position=(0.0, 0.0, 0.0),
        )  # fmt: skip
        self.robot = scene.add_frame("/robot", show_axes=picture.shape is None, axes_length=0.3 * size,
                                     axes_radius=0.01 * size)  # fmt: skip
        self._frames: dict[str, Any] = {}
        self._skins: list[tuple[Any, Any]] = []
        if picture.shape is not None:
            for name in dict.fromkeys(solid.frame for solid in picture.shape.solids):
                if name:
                    self._frames[name] = scene.add_frame(f"/robot/{name}", show_axes=False)
            for solid in picture.shape.solids:
                _solid(scene, solid)
            for skin, points in zip(picture.shape.skins, first.skins, strict=True):
                self._skins.append(_skin(scene, skin, points))
        self.forces = scene.add_arrows("/robot/forces", np.zeros((1, 2, 3), np.float32), FORCE, visible=False,
                                       shaft_radius=0.008 * size, head_radius=0.02 * size,
                                       head_length=0.05 * size)  # fmt: skip
        self.path = scene.add_line_segments(
            "/path", np.zeros((1, 2, 3), np.float32), PATH, thickness=2.0, thickness_units="screen"
        )
        self.plan = scene.add_line_segments(
            "/plan", np.zeros((1, 2, 3), np.float32), PLAN, thickness=1.0, thickness_units="screen"
        )
        self.goal = scene.add_icosphere("/goal", radius=0.03 * size, color=PLAN, visible=False)
        self._aims = True
        self._planned: Array | None = None
        self.flow = _flow(scene, picture.current, size)
        self.ghost = None
        if first.ghost is not None:
            self.ghost = scene.add_frame("/estimate", axes_length=0.5 * size, axes_radius=0.012 * size,
                                         origin_color=GHOST)  # fmt: skip
        (x, y, z), _ = first.pose
        server.initial_camera.position = (x - 0.9 * size, y - 0.9 * size, z + 0.6 * size)
        server.initial_camera.look_at = (x, y, z)
        server.initial_camera.up = (0.0, 0.0, 1.0)
        self.show(first)

    def show(self, drawn: Drawn) -> None:
        """Move everything to where this state has it."""
        with self.server.atomic():
            (x, y, z), attitude = drawn.pose
            self.robot.position, self.robot.wxyz = (x, y, z), attitude
            for name, frame in self._frames.items():
                frame.position, frame.wxyz = drawn.frames.get(name, HOME)
            for (mesh, lines), points, skin in zip(self._skins, drawn.skins, self._drawn_skins, strict=True):
                fine = _rounded(points)
                if mesh is not None:
                    mesh.vertices = fine
                if lines is not None:
                    lines.points = fine[_pairs(skin)]
            if self.forces.visible and len(drawn.forces):
                self.forces.points = self._arrows(drawn.forces)
            if self.ghost is not None and drawn.ghost is not None:
                self.ghost.position, self.ghost.wxyz = drawn.ghost

    @property
    def aims(self) -> bool:
        """Whether set-points and the planned path are to be seen."""
        return self._aims

    @aims.setter
    def aims(self, seen: bool) -> None:
        self._aims = self.plan.visible = seen
        if not seen:
            self.goal.visible = False

    def aim(self, points: Mapping[str, Any], drawn: Drawn) -> None:
        """The set-points of now, by name: the planned path, and where the robot is to be."""
        course = planned(points)
        if course is not self._planned and not np.array_equal(course, self._planned):  # type: ignore[arg-type]
            self._planned = course
            self.plan.points = _segments(course if course is not None else np.zeros((2, 3)))
        place = goal(points, drawn.pose, self._size) if self._aims else None
        if self.goal.visible != (place is not None):
            self.goal.visible = place is not None
        if place is not None:
            self.goal.position = place

    @property
    def _drawn_skins(self) -> tuple[Skin, ...]:
        return self.picture.shape.skins if self._skins and self.picture.shape is not None else ()

    def _arrows(self, forces: Array) -> Any:
        self._largest = max(self._largest, float(np.linalg.norm(forces[:, 1], axis=1).max()), 1e-9)
        start = forces[:, 0]
        end = start + forces[:, 1] * (SCALE_N * self._size * 2.0 / self._largest)
        return _rounded(np.stack([start, end], axis=1))

    def travel(self, drawn: Drawn) -> None:
        """The robot came by here: one more point of its path."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self._path[self._points] = drawn.pose[0]
        self._points += 1
        if self._points > LONGEST_PATH:
            kept = self._path[: self._points : 2]
            self._points, self._every = len(kept), 2 * self._every
            self._path[: self._points] = kept
        if self._points > 1:
            self.trace(self._path[: self._points])

    def trace(self, path: Array) -> None:
        """The path, (n, 3)."""
        self.path.points = _segments(path)

    def forget(self) -> None:
        """A new run: the path begins again."""
        self._points = self._skipped = 0
        self._every = 1
        self.path.points = np.zeros((1, 2, 3), np.float32)


def _segments(path: Array) -> Any:
    return np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)


def _rounded(points: Array) -> Any:
    return (np.round(points / GRAIN_M) * GRAIN_M).astype(np.float32)


def _pairs(skin: Skin) -> Any:
    return np.array([pair for strip in skin.lines for pair in pairwise(strip)], dtype=int)


def _skin(scene: Any, skin: Skin, points: Array) -> tuple[Any, Any]:
    mesh = lines = None
    if skin.triangles:
        faces = np.array(skin.triangles, dtype=np.uint32).reshape(-1, 3)
        mesh = scene.add_mesh_simple(f"/robot/{skin.name}", _rounded(points), faces, color=SURFACE, opacity=0.9,
                                     side="double")  # fmt: skip
    if skin.lines:
        lines = scene.add_line_segments(f"/robot/{skin.name}_lines", _rounded(points)[_pairs(skin)], EDGE,
                                        thickness=1.0, thickness_units="screen")  # fmt: skip
    return mesh, lines


def _solid(scene: Any, solid: Solid) -> None:
    name = f"/robot/{solid.frame}/{solid.name}" if solid.frame else f"/robot/{solid.name}"
    where = {"position": solid.centre, "wxyz": solid.quaternion, "color": SOLID}
    match solid.kind:
        case "box":
            scene.add_box(name, dimensions=solid.size, **where)
        case "cylinder":
            scene.add_cylinder(name, radius=0.5, height=1.0, scale=solid.size, **where)
        case _:
            assert solid.kind in KINDS
            scene.add_icosphere(name, radius=0.5, scale=solid.size, **where)


def _flow(scene: Any, current: tuple[float, ...], size: float) -> Any:
    """Arrows of a uniform current around the origin; hidden where there is none."""
    speed = float(np.linalg.norm(current))
    at = np.array([(x, y, 0.0) for x in range(-4, 5, 2) for y in range(-4, 5, 2)], dtype=float) * 1.5 * size
    along = np.array(current) / speed * size if speed > 0.0 else np.zeros(3)
    return scene.add_arrows("/flow", np.stack([at, at + along], axis=1).astype(np.float32), FLOW,
                            visible=speed > 0.0, shaft_radius=0.006 * size, head_radius=0.018 * size,
                            head_length=0.05 * size)  # fmt: skip
