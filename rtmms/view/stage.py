"""Scene in the browser, and curves beside it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rtmms.base.attitude import HOME
from rtmms.base.contract import PARTS, TRUTH
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.install import install_command
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import Skin
from rtmms.view.camera import FROM, VIEW_DEG, frame
from rtmms.view.colours import AHEAD, FLOW, FORCE, GHOST, PATH, PLAN, SCENERIES, SUN, TRIED
from rtmms.view.cycles import attitude_angles
from rtmms.view.goals import (
    ATTITUDE,
    BELONGS,
    candidate_motions,
    goal,
    planned_course,
    planned_motions,
    set_points_of_output,
)
from rtmms.view.guard import guarding
from rtmms.view.scene import DrawnState, Picture, cell, floor_height
from rtmms.view.surface import Surface
from rtmms.view.visual_bodies import solid_mesh
from rtmms.wire.protocol.received_state import PlantInfo

Array = npt.NDArray[np.float64]


# The scene in the browser: nodes that are made once, and moved as states come.
#
# Where the camera follows, it is the scene that moves: a page without a server has no other camera that can.


MODEL_SKIN = (41, 120, 181)
MODEL_SOLID = (140, 148, 158)
EDGE = (13, 38, 64)
PORT = 8080
MAX_PATH_POINTS = 2000
"""Points of the path; beyond that every other is dropped, and so on."""
GRAIN = 1.0 / 2048.0
"""Rounding of points, of the robot's size: it is invisible, and a page is a third as long."""
SCALE_N = 0.25
"""Length of the largest force so far, of the robot's size."""
THIN = 0.3
"""Opacity of the skin, where the links within are shown."""
LAG = 0.2
"""Share of the distance to the robot that the camera moves from one picture to the next."""
GRID_WIDTH = 40.0
"""Width of the floor's grid, of the robot's size."""
SHOWN = ("path", "forces", "flow", "estimate", "model's links")
"""Parts that a panel switches on and off, beside set-points."""


def serve(host: str, port: int, label: str) -> Any:
    """Start a viser server.

    Parameters
    ----------
    host : str
        Address.
    port : int
        Port; 0: PORT, or any free one.
    label : str
        Title of the page.

    Returns
    -------
    : viser.ViserServer
        The server.

    Raises
    ------
    ModelError
        The library is missing.
    RtmmsError
        The port is busy.
    """
    try:
        import viser
    except ImportError:
        raise ModelError(f"the view needs the library viser: {install_command('view')}") from None
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
    """Stop a server, without output of the library.

    Parameters
    ----------
    server : Any
        The server.
    """
    with redirect_stdout(StringIO()):
        server.stop()


def _refuse_busy(host: str, port: int) -> None:
    """Refuse a busy port; the library would silently take the next free one."""
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
    """Robot in its scene.

    Parameters
    ----------
    server : Any
        Server of the view.
    picture : Picture
        Picture of the robot.
    first : DrawnState
        Its first state.
    model : bool, default True
        Whether the model's own links can be switched on.
    lowest : float | None, optional
        z of the robot's lowest point in the whole run, m, world, where it is known.

    Attributes
    ----------
    nodes : dict
        Parts that can be switched on and off, by the names of SHOWN.
    follow : bool
        The scene moves so that the robot stays before the camera.
    """

    def __init__(
        self, server: Any, picture: Picture, first: DrawnState, *, model: bool = True, lowest: float | None = None
    ) -> None:
        self.server, self.picture, self.follow = server, picture, True
        picture.measure(first)
        self._size = size = picture.size
        self._grain = 2.0 ** np.round(np.log2(GRAIN * size))
        self._largest = 0.0
        self._path = np.zeros((MAX_PATH_POINTS + 2, 3))
        self._points = self._skipped = 0
        self._every = 1
        self._target = np.array(first.pose[0])
        visual, scene = picture.visual, server.scene
        scene.set_up_direction("+z")
        kind = "ground" if visual is None else visual.scene
        self._scene, self._ground = kind, None if visual is None else visual.ground
        self._start = first.pose[0][2]
        self._furnish(scene, kind)
        self.world = scene.add_frame("/scene", show_axes=False)
        self.robot = scene.add_frame("/scene/robot", show_axes=visual is None, axes_length=0.3 * size,
                                     axes_radius=0.01 * size)  # fmt: skip
        self._body = self._dress("/scene/robot", first, None)
        self._copy = self._dress("/scene/estimate", first, GHOST) if first.ghost is not None else None
        self._thin = False
        self._model = self._links(first) if model and picture.shape is not None else None
        self._floor_z = self._floor_under(first, lowest)
        self._grid = self._lay_grid(scene)
        self._add_marks(scene)
        self.nodes = {
            name: node
            for name, node in zip(SHOWN, (self.path, self.forces, self.flow, self.ghost, self._model_node), strict=True)
            if node is not None
        }
        self._aims = True
        self._planned: Array | None = None
        self._plans_sent: list[Array] = []
        self._tries_sent: list[Array] = []
        self._place_camera(first)
        self.show(first)

    # -- making ----------------------------------------------------------------------------------------------------

    def _furnish(self, scene: Any, kind: str) -> None:
        """Add background and light."""
        scenery = SCENERIES[kind]
        share = np.clip(np.linspace(1.6, 0.0, 64), 0.0, 1.0)[:, None, None]
        ramp = share * np.array(scenery.above) + (1.0 - share) * np.array(scenery.far)
        scene.set_background_image(np.broadcast_to(ramp, (64, 2, 3)).astype(np.uint8), format="png")
        scene.configure_default_lights(enabled=False)
        scene.configure_environment_map(None)
        scene.add_light_hemisphere("/sky", sky_color=(255, 255, 255), ground_color=scenery.floor, intensity=1.5)
        # a light shines along its own -z
        axis = np.cross([0.0, 0.0, 1.0], SUN)
        turned = np.array([1.0 + SUN[2], *axis])
        place = tuple(6.0 * self._size * SUN)
        scene.add_light_directional("/sun", color=(255, 250, 240), intensity=2.2, cast_shadow=True, position=place,
                                    wxyz=tuple(turned / np.linalg.norm(turned)))  # fmt: skip

    def _dress(self, root: str, first: DrawnState, colour: tuple[int, int, int] | None) -> _SurfaceNodes:
        """Add the robot's surfaces below a node; of one colour and transparent for an estimate."""
        scene, visual = self.server.scene, self.picture.visual
        frames: dict[str, Any] = {}
        meshes, bending = [], []
        root_node = self.robot if colour is None else scene.add_frame(
            root, show_axes=visual is None, axes_length=0.5 * self._size, axes_radius=0.012 * self._size,
            origin_color=GHOST,
        )  # fmt: skip
        bent = iter(first.bent)
        for surface in () if visual is None else visual.surfaces:
            look: dict[str, Any] = {
                "color": colour or surface.colour, "side": "front",
                "opacity": 0.3 if colour else (None if surface.opacity >= 1.0 else surface.opacity),
                "cast_shadow": colour is None and surface.opacity >= 1.0, "receive_shadow": False,
            }  # fmt: skip
            place = root
            if surface.vertices is not None and surface.frame:
                place = f"{root}/{surface.frame}"
                if surface.frame not in frames:
                    frames[surface.frame] = scene.add_frame(place, show_axes=False)
            vertices = next(bent) if surface.vertices is None else surface.vertices
            used, faces = _used(surface)
            node = scene.add_mesh_simple(f"{place}/{surface.name}", self._rounded(vertices[used]), faces, **look)
            meshes.append((node, look["opacity"]))
            if surface.vertices is None:
                bending.append((node, used))
        return _SurfaceNodes(root_node, frames, bending, meshes)

    def _links(self, first: DrawnState) -> _Links:
        """Add the model's own sheets, lines and solids, hidden at first."""
        scene, shape = self.server.scene, self.picture.shape
        assert shape is not None
        root = "/scene/robot/model"
        node = scene.add_frame(root, show_axes=False, visible=False)
        frames = {name: scene.add_frame(f"{root}/{name}", show_axes=False)
                  for name in dict.fromkeys(solid.frame for solid in shape.solids) if name}  # fmt: skip
        for k, solid in enumerate(shape.solids):
            vertices, faces = solid_mesh(solid)
            place = f"{root}/{solid.frame}" if solid.frame else root
            scene.add_mesh_simple(f"{place}/{k}.{solid.name}", vertices.astype(np.float32), faces.astype(np.uint32),
                                  color=MODEL_SOLID, opacity=0.7)  # fmt: skip
        skins = []
        for skin, points in zip(shape.skins, first.skins, strict=True):
            mesh = lines = None
            if skin.triangles:
                corners = np.array(skin.triangles, dtype=np.uint32).reshape(-1, 3)
                mesh = scene.add_mesh_simple(f"{root}/{skin.name}", self._rounded(points), corners, color=MODEL_SKIN,
                                             opacity=0.8, side="double")  # fmt: skip
            if skin.lines:
                lines = scene.add_line_segments(f"{root}/{skin.name}_lines", self._rounded(points)[_pairs(skin)], EDGE,
                                                thickness=1.0, thickness_units="screen")  # fmt: skip
            skins.append((mesh, lines))
        return _Links(node, frames, skins)

    def _lay_grid(self, scene: Any) -> Any:
        scenery, size = SCENERIES[self._scene], self._size
        if not scenery.has_floor:
            return None
        apart = cell(size)
        while GRID_WIDTH * size / apart > 120.0:
            apart *= 5.0
        self._section = 5.0 * apart
        return scene.add_grid(
            "/scene/grid", width=GRID_WIDTH * size, height=GRID_WIDTH * size, cell_size=apart,
            section_size=self._section, cell_color=scenery.line, section_color=scenery.line, cell_thickness=0.7,
            section_thickness=1.3, plane_color=scenery.floor, plane_opacity=1.0, shadow_opacity=0.3,
            fade_distance=14.0 * size, fade_strength=1.5, position=(0.0, 0.0, self._floor_z),
        )  # fmt: skip

    def _add_marks(self, scene: Any) -> None:
        """Add path, forces, set-points and flow."""
        size = self._size
        nothing = np.zeros((1, 2, 3), np.float32)
        self.forces = scene.add_arrows("/scene/robot/forces", nothing, FORCE, visible=False, shaft_radius=0.008 * size,
                                       head_radius=0.02 * size, head_length=0.05 * size)  # fmt: skip
        self.path = scene.add_line_segments("/scene/path", nothing, PATH, thickness=2.5, thickness_units="screen")
        self.plan = scene.add_line_segments("/scene/plan", nothing, PLAN, thickness=1.5, thickness_units="screen")
        self.ahead = scene.add_line_segments("/scene/ahead", nothing, AHEAD, thickness=4.0, thickness_units="screen")
        self.tried = scene.add_line_segments("/scene/tried", nothing, TRIED, thickness=1.5, thickness_units="screen")
        self.goal = scene.add_icosphere("/scene/goal", radius=0.03 * size, color=PLAN, visible=False)
        self.flow = _flow(scene, self.picture.current, size)
        self.ghost = None if self._copy is None else self._copy.root
        self._model_node = None if self._model is None else self._model.root

    def _place_camera(self, first: DrawnState) -> None:
        points = self.picture.points(first)
        if not len(points):
            points = 0.3 * np.vstack([np.eye(3), -np.eye(3)])
        middle, distance = frame(points @ quaternion_matrix(np.array(first.pose[1])).T, 16.0 / 9.0)
        if self._model is not None:  # a panel takes the right third of the window
            right = np.cross([0.0, 0.0, 1.0], FROM)
            middle, distance = middle + 0.13 * distance * right / np.linalg.norm(right), 1.2 * distance
        camera = self.server.initial_camera
        camera.position, camera.look_at = tuple(middle + 1.15 * distance * FROM), tuple(middle)
        camera.up, camera.fov = (0.0, 0.0, 1.0), np.radians(VIEW_DEG)
        camera.near = 0.02 * distance

    # -- showing ---------------------------------------------------------------------------------------------------

    def show(self, drawn: DrawnState, target: Array | None = None) -> None:
        """Move all parts to a state.

        Parameters
        ----------
        drawn : DrawnState
            The state.
        target : Array | None, optional
            Point that the camera follows, m, world; None: the robot, with a lag.
        """
        here = np.array(drawn.pose[0])
        off = here - self._target
        lagging = self._target + LAG * off if np.linalg.norm(off) < 2.0 * self._size else here
        self._target = lagging if target is None else target
        with self.server.atomic():
            if self.follow:
                x, y, z = (-self._fine(self._target)).tolist()
                self.world.position = (x, y, z)
            self._put(self._body, drawn, drawn.pose)
            if self._copy is not None and drawn.ghost is not None:
                self._put(self._copy, drawn, drawn.ghost)
            if self._model is not None:
                self._see_through(self._model.root.visible)
                if self._model.root.visible:
                    self._put_links(self._model, drawn)
            if self.forces.visible and len(drawn.forces):
                self.forces.points = self._arrows(drawn.forces)
            self._move_grid(drawn)

    def _put(self, dress: _SurfaceNodes, drawn: DrawnState, pose: Any) -> None:
        (x, y, z), attitude = pose
        dress.root.position, dress.root.wxyz = tuple(self._fine(np.array((x, y, z))).tolist()), attitude
        for name, node in dress.frames.items():
            node.position, node.wxyz = drawn.frames.get(name, HOME)
        for (node, used), vertices in zip(dress.bending, drawn.bent, strict=True):
            node.vertices = self._rounded(vertices[used])

    def _see_through(self, visible: bool) -> None:
        """Make the skin transparent, where the model's own links are visible within it."""
        if visible != self._thin:
            self._thin = visible
            for mesh, opacity in self._body.meshes:
                mesh.opacity = THIN * (opacity or 1.0) if visible else opacity

    def _put_links(self, links: _Links, drawn: DrawnState) -> None:
        assert self.picture.shape is not None
        for name, node in links.frames.items():
            node.position, node.wxyz = drawn.frames.get(name, HOME)
        for (mesh, lines), points, skin in zip(links.skins, drawn.skins, self.picture.shape.skins, strict=True):
            fine = self._rounded(points)
            if mesh is not None:
                mesh.vertices = fine
            if lines is not None:
                lines.points = fine[_pairs(skin)]

    def _floor_under(self, drawn: DrawnState, lowest: float | None) -> float:
        points = self.picture.points(drawn)
        low = drawn.pose[0][2]
        if len(points):
            low += float((points @ quaternion_matrix(np.array(drawn.pose[1])).T)[:, 2].min())
        return floor_height(self._scene, self._ground, self._start, low if lowest is None else lowest, self._size)

    def _move_grid(self, drawn: DrawnState) -> None:
        """Move the grid with the robot, by whole sections, so that its lines stay.

        And down before the robot crosses it.
        """
        if self._grid is None:
            return
        x, y, z = drawn.pose[0]
        if self._ground is None and z < self._floor_z + 0.6 * self._size:
            self._floor_z = z - 1.2 * self._size
        place = (float(np.round(x / self._section) * self._section), float(np.round(y / self._section) * self._section),
                 self._floor_z)  # fmt: skip
        if not np.allclose(place, self._grid.position):
            self._grid.position = place

    @property
    def aims(self) -> bool:
        """Whether set-points and the planned path are visible."""
        return self._aims

    @aims.setter
    def aims(self, visible: bool) -> None:
        self._aims = self.plan.visible = self.ahead.visible = self.tried.visible = visible
        if not visible:
            self.goal.visible = False

    def aim(self, points: Mapping[str, Any], drawn: DrawnState) -> None:
        """Show the present set-points: the planned path, and the robot's wanted place.

        Parameters
        ----------
        points : Mapping[str, Any]
            Set-points by name.
        drawn : DrawnState
            The state.
        """
        course = planned_course(points)
        if course is not self._planned and not np.array_equal(course, self._planned):  # type: ignore[arg-type]
            self._planned = course
            self.plan.points = _segments(course if course is not None else np.zeros((2, 3)))
        plans, others = planned_motions(points), candidate_motions(points)
        if [id(plan) for plan in plans] != [id(item) for item in self._plans_sent]:  # kept by their words
            self._plans_sent = plans
            self.ahead.points = np.concatenate([_segments(plan) for plan in plans or [np.zeros((2, 3))]])
        if [id(other) for other in others] != [id(item) for item in self._tries_sent]:
            self._tries_sent = others
            self.tried.points = np.concatenate([_segments(other) for other in others or [np.zeros((2, 3))]])
        place = goal(points, drawn.pose, self._size) if self._aims else None
        if self.goal.visible != (place is not None):
            self.goal.visible = place is not None
        if place is not None:
            self.goal.position = place

    def _arrows(self, forces: Array) -> Any:
        self._largest = max(self._largest, float(np.linalg.norm(forces[:, 1], axis=1).max()), 1e-9)
        start = forces[:, 0]
        end = start + forces[:, 1] * (SCALE_N * self._size * 2.0 / self._largest)
        return self._rounded(np.stack([start, end], axis=1))

    def travel(self, drawn: DrawnState) -> None:
        """Add a point to the robot's path.

        Parameters
        ----------
        drawn : DrawnState
            The state.
        """
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self._path[self._points] = drawn.pose[0]
        self._points += 1
        if self._points > MAX_PATH_POINTS:
            thinned_path = self._path[: self._points : 2]
            self._points, self._every = len(thinned_path), 2 * self._every
            self._path[: self._points] = thinned_path
        if self._points > 1:
            self.trace([self._path[: self._points]])

    def trace(self, paths: Sequence[Array]) -> None:
        """Show the paths of all robots.

        Parameters
        ----------
        paths : Sequence[Array]
            (n, 3) m, world, each.
        """
        self.path.points = np.concatenate([_segments(path) for path in paths if len(path) > 1])

    def forget(self) -> None:
        """Start the path anew, for a new run."""
        self._points = self._skipped = 0
        self._every = 1
        self.path.points = np.zeros((1, 2, 3), np.float32)

    def _fine(self, points: Array) -> Array:
        return np.round(points / self._grain) * self._grain

    def _rounded(self, points: Array) -> Any:
        return self._fine(points).astype(np.float32)


class _SurfaceNodes(NamedTuple):
    """Nodes of a robot's surfaces.

    They are the body's, its parts', those that bend with their vertices, and all with their opacity.
    """

    root: Any
    frames: dict[str, Any]
    bending: list[tuple[Any, Any]]
    meshes: list[tuple[Any, float | None]]


class _Links(NamedTuple):
    """Nodes of the model's own links: meshes and lines of each skin."""

    root: Any
    frames: dict[str, Any]
    skins: list[tuple[Any, Any]]


def _used(surface: Surface) -> tuple[Any, Any]:
    """Return the vertices that a surface's faces use, and the faces by their new indices."""
    used, faces = np.unique(surface.faces, return_inverse=True)
    return used, faces.reshape(-1, 3).astype(np.uint32)


def _segments(path: Array) -> Any:
    return np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)


def _pairs(skin: Skin) -> Any:
    return np.array([pair for strip in skin.lines for pair in pairwise(strip)], dtype=int)


def _flow(scene: Any, current: tuple[float, ...], size: float) -> Any:
    """Add arrows of a uniform current around the origin; hidden where there is none."""
    speed = float(np.linalg.norm(current))
    at = np.array([(x, y, 0.0) for x in range(-4, 5, 2) for y in range(-4, 5, 2)], dtype=float) * 1.5 * size
    along = np.array(current) / speed * size if speed > 0.0 else np.zeros(3)
    return scene.add_arrows("/scene/flow", np.stack([at, at + along], axis=1).astype(np.float32), FLOW,
                            visible=speed > 0.0, shaft_radius=0.006 * size, head_radius=0.018 * size,
                            head_length=0.05 * size)  # fmt: skip


# Curves beside the scene: any output, and the strip of what each step took.


COLOURS = ("#1f6fb2", "#e4572e", "#17a398", "#e9b44c", "#7b4b94", "#8d6a4f")
MAX_CURVES = 6
POINTS = 1200
NONE = "none"


def plottable(plant: PlantInfo) -> list[str]:
    """Return the outputs that fit a plot.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    list[str]
        Names, with NONE first and ATTITUDE where the plant has a quaternion.
    """
    fitting = [c.name for c in plant.outputs if int(np.prod(c.shape, dtype=int)) <= MAX_CURVES]
    return [NONE, *([ATTITUDE] if _quaternion(fitting) else []), *fitting]


def source(name: str, plant: PlantInfo) -> str:
    """Return the output that a plot is drawn from.

    Parameters
    ----------
    name : str
        Name of the plot.
    plant : PlantInfo
        The plant.

    Returns
    -------
    str
        Name of the output.
    """
    return _quaternion([c.name for c in plant.outputs]) if name == ATTITUDE else name


def _quaternion(names: Sequence[str]) -> str:
    return next((name for name in (TRUTH + "quaternion", "quaternion") if name in names), "")


@dataclass(frozen=True)
class Curves:
    """Content of a plot.

    Attributes
    ----------
    time : Array
        (n,) times, s.
    values : Array
        (n, k) values.
    names : tuple[str, ...]
        k names.
    dashed : int
        Number of set-points, the last of the curves.
    colours : tuple[int, ...]
        Index of each curve into COLOURS: a set-point has that of its quantity.
    """

    time: Array
    values: Array
    names: tuple[str, ...]
    dashed: int
    colours: tuple[int, ...]


def output_curves(
    name: str, time: Array, values: Array, set_points: Sequence[tuple[float, Mapping[str, Any]]]
) -> Curves:  # fmt: skip
    """Return the curves of an output, with its set-points.

    Parameters
    ----------
    name : str
        Name of the plot.
    time : Array
        (n,) times, s.
    values : Array
        (n, k) of the output.
    set_points : Sequence[tuple[float, Mapping[str, Any]]]
        (s, {name: value}) from each change on.

    Returns
    -------
    Curves
        The curves.
    """
    names: tuple[str, ...] = tuple(f"{name}[{k}]" for k in range(values.shape[1])) if values.shape[1] > 1 else (name,)
    if name == ATTITUDE:
        values, names = np.degrees(attitude_angles(values)), ("roll", "pitch", "heading")
    count, colours = values.shape[1], list(range(values.shape[1]))
    points = set_points_of_output(name.removeprefix(TRUTH), set_points, time)
    for point, curve in points.items():
        at = BELONGS[point][1]
        if name == ATTITUDE:  # an angle that goes on beyond a turn is held to the nearest of the same direction
            curve = curve + 360.0 * np.round((values[:, at] - curve) / 360.0)
        values = np.column_stack([values, curve])
        colours.append(at)
    return Curves(time, values, (*names, *(f"{point} set" for point in points)), values.shape[1] - count,
                  tuple(colours))  # fmt: skip


def output_plot(gui: Any, shown: Curves, title: str) -> Any:
    """Add a plot of an output with its set-points.

    Parameters
    ----------
    gui : Any
        Panel of the server.
    shown : Curves
        The curves.
    title : str
        Title of the plot.

    Returns
    -------
    Any
        Handle of the plot.
    """
    solid = len(shown.names) - shown.dashed
    return _plot(gui, shown.time, shown.values, [
        _series_of(name, shown.colours[k], {} if k < solid else {"dash": [6, 4]}) for k, name in enumerate(shown.names)
    ], title)  # fmt: skip


def curves(gui: Any, time: Array, values: Array, names: Sequence[str], title: str) -> Any:
    """Add a plot of curves.

    Parameters
    ----------
    gui : Any
        Panel of the server.
    time : Array
        (n,) times, s.
    values : Array
        (n, k) values.
    names : Sequence[str]
        k names.
    title : str
        Title of the plot.

    Returns
    -------
    Any
        Handle of the plot.
    """
    return _plot(gui, time, values, [_series_of(name, k, {}) for k, name in enumerate(names)], title)


def _plot(gui: Any, time: Array, values: Array, series: Sequence[dict[str, Any]], title: str) -> Any:
    data, series = _data(time, values), ({"label": "t, s"}, *series)
    return gui.add_uplot(data, series=series, title=title, aspect=1.7, scales={"x": {"time": False}},
                         cursor={"show": True}, legend={"show": True})  # fmt: skip


def _series_of(name: str, colour: int, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": name, "stroke": COLOURS[colour % len(COLOURS)], "width": 1.5, "spanGaps": False, **more}


def _data(time: Array, values: Array) -> tuple[Array, ...]:
    stride = max(1, len(time) // POINTS)
    # what is not known is drawn at 0: the library's axes do not survive a nan
    shown = np.nan_to_num(values[::stride])
    return np.ascontiguousarray(time[::stride]), *(np.ascontiguousarray(column) for column in shown.T)


def update(plot: Any, time: Array, values: Array) -> None:
    """Replace the data of a plot.

    Parameters
    ----------
    plot : Any
        Handle of the plot.
    time : Array
        (n,) times, s.
    values : Array
        (n, k) values.
    """
    plot.data = _data(time, values)


def strip(gui: Any, time: Array, times_us: Array, around: float, window_s: float = 0.25) -> Any:
    """Add the deadline strip: wake, exchange, plant and slack of the steps around an instant, us.

    Parameters
    ----------
    gui : Any
        Panel of the server.
    time : Array
        (m,) times, s.
    times_us : Array
        (m, 4) wake, exchange, plant and slack of each step, us.
    around : float
        The instant, s.
    window_s : float, default 0.25
        Width of the window, s.

    Returns
    -------
    Any
        Handle of the plot.
    """
    return curves(gui, *rows_near(time, times_us, around, window_s), PARTS, "steps, us")


def rows_near(time: Array, values: Array, around: float, window_s: float) -> tuple[Array, Array]:
    """Return the rows within half a window of an instant; at least two.

    Parameters
    ----------
    time : Array
        (n,) times, s.
    values : Array
        (n, k) values.
    around : float
        The instant, s.
    window_s : float
        Width of the window, s.

    Returns
    -------
    tuple[Array, Array]
        Parts of time and values.
    """
    first, last = np.searchsorted(time, [around - 0.5 * window_s, around + 0.5 * window_s])
    first = int(max(0, min(first, len(time) - 2)))
    return time[first : max(last, first + 2)], values[first : max(last, first + 2)]
