"""Pictures of a robot in its scene by VTK, without a display: the only module that uses the library."""

from __future__ import annotations

import ctypes.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.attitude import HOME, Pose
from rtmms.base.errors import ModelError
from rtmms.base.install import install_command
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import SPACE, Colour
from rtmms.view.camera import VIEW_DEG
from rtmms.view.colours import AHEAD, FLOW, FORCE, GHOST, PATH, PLAN, SCENERIES, SUN, TRIED
from rtmms.view.scene import DrawnState, Picture, cell
from rtmms.view.surface import Surface, along, move_mesh, revolved, sphere, tiles

Array = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]

REACH = 9.0
"""Visible radius of the floor, of the robot's size."""
RINGS = 24
SPOKES = 64
SKY = 40.0
"""Radius of the sphere with the background, of the robot's size."""
LIFT = 2e-3
"""Height of a shadow over the floor, and of lines over a shadow, of the robot's size."""
MODEL_SKIN = (41, 120, 181)
MODEL_SOLID = (140, 148, 158)
EDGE = (13, 38, 64)
MAX_ARROWS = 64
AXIS_COLOURS = ((214, 40, 40), (40, 160, 60), (40, 80, 200))
"""Colours of x, y, z."""
AXIS_LENGTH = 0.5
"""Length of an axis, of the robot's size."""

WINDOWS = {"vtkEGLRenderWindow": "EGL", "vtkOSOpenGLRenderWindow": "OSMesa"}
"""Windows that need no display, and the library that each needs."""


def library() -> Any:
    """Return pyvista, with a window that needs no display.

    Returns
    -------
    : module
        pyvista.

    Raises
    ------
    ModelError
        The library, or OpenGL, is missing.
    """
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        kinds = [kind for kind, name in WINDOWS.items() if ctypes.util.find_library(name)]
        if not kinds:  # VTK would end the process
            raise ModelError(
                "films and stills need OpenGL, and neither libEGL nor libOSMesa is here: apt install libegl1 "
                "libgl1-mesa-dri, or libosmesa6"
            )
        os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", kinds[0])
    try:
        import pyvista
    except ImportError as error:
        if error.name == "pyvista":
            raise ModelError(f"films and stills need the library pyvista: {install_command('film')}") from None
        raise ModelError(f"films and stills: {error}; apt install libgl1 libxrender1") from None
    return pyvista


@dataclass(frozen=True, kw_only=True)
class VisibleParts:
    """Visible parts of a picture beside the robot.

    Attributes
    ----------
    path, forces, flow : bool
        The robot's path, forces on it, the flow.
    aims, plan : bool, default True
        Set-points and the planned path; planned motions.
    estimate : bool, default True
        The robot at its estimated pose.
    model : bool, default False
        The model's own links, with the robot's surfaces transparent over them.
    axes : bool, default False
        The body's axes: x red, y green, z blue.
    """

    path: bool = True
    forces: bool = False
    flow: bool = True
    aims: bool = True
    plan: bool = True
    estimate: bool = True
    model: bool = False
    axes: bool = False


class Part:
    """Mesh of the scene whose points may move.

    Parameters
    ----------
    plotter : Any
        Plotter of the scene.
    faces : Any
        (k, 3) indices of the vertices of triangles.
    colour : Colour
        Red, green, blue.
    vertices : Array
        (n, 3) vertices, m.
    opacity : float, default 1.0
        0 to 1.
    gloss : float, default 0.25
        0 to 1.
    lit : bool, default True
        Whether the light changes its colour.
    smooth : bool, default True
        Whether its faces are shaded smoothly.
    """

    def __init__(
        self,
        plotter: Any,
        faces: Any,
        colour: Colour,
        vertices: Array,
        *,
        opacity: float = 1.0,
        gloss: float = 0.25,
        lit: bool = True,
        smooth: bool = True,
    ) -> None:
        from pyvista import PolyData
        from vtkmodules.vtkFiltersCore import vtkPolyDataNormals

        corners = np.column_stack([np.full(len(faces), 3), faces]).ravel()
        self.mesh = PolyData(np.ascontiguousarray(vertices, dtype=np.float32), corners)
        self._normals = vtkPolyDataNormals()
        self._normals.SetInputData(self.mesh)
        self._normals.SplittingOff()
        self._normals.ConsistencyOff()
        self._normals.SetFeatureAngle(180.0)
        source = self._normals if lit and smooth else None
        from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

        mapper = vtkPolyDataMapper()
        if source is None:
            mapper.SetInputData(self.mesh)
        else:
            mapper.SetInputConnection(source.GetOutputPort())
        mapper.SetScalarModeToUsePointData()
        mapper.SetColorModeToDirectScalars()
        mapper.ScalarVisibilityOff()
        self.mapper = mapper
        self.actor = vtkActor()
        self.actor.SetMapper(mapper)
        look = self.actor.GetProperty()
        look.SetColor(*(c / 255.0 for c in colour))
        look.SetOpacity(opacity)
        look.SetAmbient(0.28 if lit else 1.0)
        look.SetDiffuse(0.78 if lit else 0.0)
        look.SetSpecular(0.6 * gloss if lit else 0.0)
        look.SetSpecularPower(10.0 + 50.0 * gloss)
        look.SetInterpolationToPhong()
        plotter.renderer.AddActor(self.actor)

    def move(self, vertices: Array) -> None:
        """Move the vertices.

        Parameters
        ----------
        vertices : Array
            (n, 3) vertices, m.
        """
        self.mesh.points = np.ascontiguousarray(vertices, dtype=np.float32)
        self.mesh.Modified()

    def paint(self, colours: Array) -> None:
        """Colour each vertex.

        Parameters
        ----------
        colours : Array
            (n, 3), 0 to 255.
        """
        self.mesh.point_data.set_array(colours.astype(np.uint8), "colour")
        self.mesh.set_active_scalars("colour")
        self.mapper.ScalarVisibilityOn()

    def place(self, pose: Pose) -> None:
        """Set the pose of the mesh.

        Parameters
        ----------
        pose : Pose
            Position and quaternion, world.
        """
        self.actor.SetUserMatrix(_matrix(pose))

    def show(self, visible: bool) -> None:
        """Show or hide the mesh.

        Parameters
        ----------
        visible : bool
            Whether it is visible.
        """
        self.actor.SetVisibility(visible)


class Line:
    """Polylines, unlit.

    Parameters
    ----------
    plotter : Any
        Plotter of the scene.
    colour : Colour
        Red, green, blue.
    width : float
        Pixels.
    opacity : float, default 1.0
        0 to 1.
    """

    def __init__(self, plotter: Any, colour: Colour, width: float, opacity: float = 1.0) -> None:
        from pyvista import PolyData
        from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

        self.mesh = PolyData(np.zeros((2, 3), np.float32), lines=np.array([2, 0, 1]))
        self.mapper = vtkPolyDataMapper()
        self.mapper.SetInputData(self.mesh)
        self.mapper.ScalarVisibilityOff()
        self.mapper.SetColorModeToDirectScalars()
        self.actor = vtkActor()
        self.actor.SetMapper(self.mapper)
        look = self.actor.GetProperty()
        look.SetColor(*(c / 255.0 for c in colour))
        look.SetLineWidth(width)
        look.SetOpacity(opacity)
        look.LightingOff()
        self.actor.SetVisibility(False)
        plotter.renderer.AddActor(self.actor)

    def draw(self, strips: Sequence[Array], colours: Array | None = None) -> None:
        """Draw strips.

        Parameters
        ----------
        strips : Sequence[Array]
            (k, 3) each, m, world.
        colours : Array | None, optional
            (n, 3) of all their points.
        """
        strips = [strip for strip in strips if len(strip) > 1]
        self.actor.SetVisibility(bool(strips))
        if not strips:
            return
        points = np.concatenate(strips).astype(np.float32)
        lines, first = [], 0
        for strip in strips:
            lines.append(np.concatenate([[len(strip)], np.arange(first, first + len(strip))]))
            first += len(strip)
        self.mesh.points = points
        self.mesh.lines = np.concatenate(lines)
        if colours is not None:
            self.mesh.point_data.set_array(colours.astype(np.uint8), "colour")
            self.mesh.set_active_scalars("colour")
            self.mapper.ScalarVisibilityOn()
        self.mesh.Modified()

    def place(self, pose: Pose) -> None:
        """Set the pose of the lines.

        Parameters
        ----------
        pose : Pose
            Position and quaternion, world.
        """
        self.actor.SetUserMatrix(_matrix(pose))


class Renderer:
    """Renderer of one picture after the other of a robot.

    Parameters
    ----------
    picture : Picture
        Picture of the robot, measured.
    first : DrawnState
        Its first state.
    floor : float
        z of the floor, m, world.
    shown : VisibleParts
        Visible parts.
    wide, high : int
        Pixels.
    ghost : bool, default False
        Whether the robot has an estimate.
    """

    def __init__(
        self,
        picture: Picture,
        first: DrawnState,
        floor: float,
        shown: VisibleParts,
        wide: int = 1280,
        high: int = 720,
        *,
        ghost: bool = False,
    ) -> None:
        pyvista = library()
        self._picture, self._shown, self._floor = picture, shown, floor
        visual = picture.visual
        self._scene = visual.scene if visual is not None else "ground"
        self._scenery = scenery = SCENERIES[self._scene]
        self.size = picture.size
        self._cell = cell(self.size)
        self._plotter = plotter = pyvista.Plotter(off_screen=True, window_size=(wide, high), lighting="none")
        plotter.render_window.SetMultiSamples(4)
        plotter.set_background(_unit(scenery.far))
        self._lights()
        self._make_sky()
        if scenery.has_floor:
            self._make_floor()
        elif self._scene == SPACE:
            self._make_stars()
        over = 0.25 if shown.model else 1.0
        self._surfaces = self._make(first, lambda item: (item.colour, over * item.opacity))
        self._ghost = self._make(first, lambda item: (GHOST, 0.28)) if ghost and shown.estimate else []
        self._shadow = self._make_shadow(first) if scenery.has_floor else None
        self._model = self._make_model(first) if shown.model or visual is None else ([], [], [])
        self._axes = [Line(plotter, colour, 4.0) for colour in AXIS_COLOURS]
        self._path = Line(plotter, PATH, 3.0)
        self._course = Line(plotter, PLAN, 2.5)
        self._ahead = Line(plotter, AHEAD, 4.0)
        self._tried = Line(plotter, TRIED, 1.5)
        ball, faces = sphere(1.0)
        self._goal = Part(plotter, faces, PLAN, 0.03 * self.size * ball, opacity=0.85)
        self._goal_line = Line(plotter, PLAN, 1.5)
        self._goal.show(False)
        self._forces = self._arrows(FORCE)
        self._flow = self._arrows(FLOW)
        self._frame = [self._arrows(colour, 1)[0] for colour in AXIS_COLOURS] if shown.axes else []
        self.largest = 0.0
        self._begun = False

    # -- making ----------------------------------------------------------------------------------------------------

    def _lights(self) -> None:
        from pyvista import Light

        for direction, strength, colour in (
            (SUN, 0.95, (1.0, 0.98, 0.94)),
            (np.array([-0.7, 0.4, 0.35]), 0.32, (0.80, 0.90, 1.0)),
            (np.array([0.3, -0.9, -0.5]), 0.22, (0.85, 0.93, 1.0)),
        ):
            light = Light(
                position=tuple(10.0 * direction),
                focal_point=(0.0, 0.0, 0.0),
                light_type="scene light",
                intensity=strength,
                color=colour,
            )
            light.positional = False
            self._plotter.add_light(light)

    def _make(self, first: DrawnState, looks: Any) -> list[tuple[Surface, Part]]:
        visual = self._picture.visual
        if visual is None:
            return []
        bent = iter(first.bent)
        built = []
        for surface in visual.surfaces:
            colour, opacity = looks(surface)
            vertices = next(bent) if surface.vertices is None else surface.vertices
            built.append(
                (surface, Part(self._plotter, surface.faces, colour, vertices, opacity=opacity, gloss=surface.gloss))
            )
        return built

    def _make_shadow(self, first: DrawnState) -> Part | None:
        """Make the shadow: all solid surfaces as one mesh that is projected on the floor."""
        visual = self._picture.visual
        if visual is None:
            return None
        faces, count, bent = [], 0, iter(first.bent)
        for surface in visual.surfaces:
            vertices = next(bent) if surface.vertices is None else surface.vertices
            if surface.opacity > 0.5:
                faces.append(surface.faces + count)
                count += len(vertices)
        if not faces:
            return None
        dark = tuple(int(0.72 * c) for c in self._scenery.floor)
        return Part(self._plotter, np.concatenate(faces), dark, np.zeros((count, 3)), lit=False)  # type: ignore[arg-type]

    def _make_model(self, first: DrawnState) -> tuple[list[Any], list[Any], list[Any]]:
        """Make the model's own parts: sheets and lines of its skins, solids."""
        from rtmms.view.visual_bodies import solid_mesh

        shape = self._picture.shape
        if shape is None:
            return [], [], []
        sheets, lines, solids = [], [], []
        for k, skin in enumerate(shape.skins):
            if skin.triangles:
                faces = np.array(skin.triangles).reshape(-1, 3)
                sheets.append((k, Part(self._plotter, faces, MODEL_SKIN, first.skins[k], opacity=0.8)))
            if skin.lines:
                lines.append((k, Line(self._plotter, EDGE, 2.0)))
        for solid in shape.solids:
            vertices, faces = solid_mesh(solid)
            solids.append((solid, Part(self._plotter, faces, MODEL_SOLID, vertices, opacity=0.8)))
        return sheets, lines, solids

    def _make_floor(self) -> None:
        """Make the floor: a disc round the robot that fades into the distance; its lines are fixed in the world."""
        scenery, plotter = self._scenery, self._plotter
        radius = REACH * self.size * np.linspace(0.0, 1.0, RINGS) ** 1.5
        angle = np.linspace(0.0, 2.0 * np.pi, SPOKES, endpoint=False)
        self._disc = np.concatenate(
            [np.stack([r * np.cos(angle), r * np.sin(angle), np.zeros(SPOKES)], axis=1) for r in radius]
        )
        self._ground = Part(plotter, tiles(RINGS, SPOKES, around=True), scenery.floor, self._disc, lit=False)
        self._ground.paint(self._faded(np.linalg.norm(self._disc, axis=1), scenery.floor))
        self._thin, self._thick = Line(plotter, scenery.line, 1.0), Line(plotter, scenery.line, 2.0)

    def _make_sky(self) -> None:
        """Make the sky: a sphere with the colour of the distance below the horizon, lighter above."""
        self._sky = Part(self._plotter, *_sky(self.size), lit=False)
        height = self._sky.mesh.points[:, 2] / (SKY * self.size)
        share = np.clip((height - 0.02) / 0.5, 0.0, 1.0)[:, None] ** 0.7
        scenery = self._scenery
        colours = (1.0 - share) * np.array(scenery.far) + share * np.array(scenery.above)
        self._sky.paint(colours)

    def _faded(self, distance: Array, colour: Colour) -> Array:
        """Return (n, 3) of a colour seen through so much water or air."""
        share = np.clip(distance / (0.92 * REACH * self.size), 0.0, 1.0) ** 0.8
        share = share * share * (3.0 - 2.0 * share)
        return np.asarray((1.0 - share)[:, None] * np.array(colour) + share[:, None] * np.array(self._scenery.far))

    def _make_stars(self) -> None:
        draw = np.random.default_rng(5)
        ways = draw.normal(size=(700, 3))
        ways *= 0.9 * SKY * self.size / np.linalg.norm(ways, axis=1, keepdims=True)
        from pyvista import PolyData

        self._stars = PolyData(ways.astype(np.float32))
        self._star_actor = self._plotter.add_mesh(
            self._stars, color="white", point_size=2.0, lighting=False, opacity=0.8
        )
        self._ways = ways

    def _arrows(self, colour: Colour, count: int = MAX_ARROWS) -> list[Part]:
        shaft = revolved([(0.0, 0.0), (0.045, 0.0), (0.045, 0.78), (0.11, 0.78), (0.0, 1.0)], (1, 2, 3), 16)
        vertices, faces = along(0, move_mesh(shaft))
        built = []
        for _ in range(count):
            built.append(Part(self._plotter, faces, colour, vertices, gloss=0.1))
            built[-1].show(False)
        return built

    # -- drawing ---------------------------------------------------------------------------------------------------

    def show(self, drawn: DrawnState) -> None:
        """Move all parts of the robot to a state.

        Parameters
        ----------
        drawn : DrawnState
            The state.
        """
        for part, direction in zip(self._frame, np.eye(3), strict=False):
            part.show(True)
            arrow = _arrow(np.zeros(3), direction, AXIS_LENGTH * self.size, 0.5 * AXIS_LENGTH * self.size)
            part.actor.SetUserMatrix(_matrix_of(_affine(drawn.pose) @ arrow))
        _lay(self._surfaces, drawn, drawn.pose)
        if self._ghost:
            visible = drawn.ghost is not None
            for _, part in self._ghost:
                part.show(visible)
            if drawn.ghost is not None:
                _lay(self._ghost, drawn, drawn.ghost)
        sheets, lines, solids = self._model
        for k, sheet in sheets:
            sheet.move(drawn.skins[k])
            sheet.place(drawn.pose)
        for k, line in lines:
            skin = self._picture.shape.skins[k]  # type: ignore[union-attr]
            line.draw([drawn.skins[k][list(strip)] for strip in skin.lines])
            line.place(drawn.pose)
        for solid, part in solids:
            part.place(_after(drawn.pose, drawn.frames.get(solid.frame, HOME)))
        if self._picture.visual is None:
            turned, at = quaternion_matrix(np.array(drawn.pose[1])), np.array(drawn.pose[0])
            for axis, bar in enumerate(self._axes):
                bar.draw([np.array([at, at + 0.4 * self.size * turned[:, axis]])])
        if self._shadow is not None:
            self._shadow.move(self._flattened(drawn))
        if self._shown.forces:
            self._push(drawn)

    def _flattened(self, drawn: DrawnState) -> Array:
        """Project solid surfaces along the light on the floor, m, world."""
        points, bent = [], iter(drawn.bent)
        for item, _ in self._surfaces:
            vertices = next(bent) if item.vertices is None else item.vertices
            if item.opacity > 0.5:
                place, attitude = HOME if item.vertices is None else drawn.frames.get(item.frame, HOME)
                points.append(vertices @ quaternion_matrix(np.array(attitude)).T + np.array(place))
        world = np.concatenate(points) @ quaternion_matrix(np.array(drawn.pose[1])).T + np.array(drawn.pose[0])
        down = (world[:, 2] - self._floor) / SUN[2]
        world = world - down[:, None] * SUN
        world[:, 2] = self._floor + LIFT * self.size
        return np.asarray(world)

    def _push(self, drawn: DrawnState) -> None:
        for part in self._forces:
            part.show(False)
        if not len(drawn.forces):
            return
        self.largest = max(self.largest, float(np.linalg.norm(drawn.forces[:, 1], axis=1).max()), 1e-9)
        for part, (at, force) in zip(self._forces, drawn.forces, strict=False):
            long = float(np.linalg.norm(force)) / self.largest * 0.34 * self.size
            if long > 0.01 * self.size:
                part.show(True)
                part.actor.SetUserMatrix(_matrix_of(_affine(drawn.pose) @ _arrow(at, force, long, 0.34 * self.size)))

    def stream(self, current: Sequence[float], around: Array) -> None:
        """Draw arrows of a uniform flow in a layer round a place; they are fixed in the world.

        Parameters
        ----------
        current : Sequence[float]
            (3,) velocity of the current, m/s, world.
        around : Array
            (3,) centre of the layer, m, world.
        """
        speed = float(np.linalg.norm(current))
        for part in self._flow:
            part.show(False)
        if speed <= 0.0 or not self._shown.flow:
            return
        apart = 1.1 * self.size
        first = np.floor(around[:2] / apart)
        direction, long = np.array(current) / speed, 0.35 * self.size
        k = 0
        for i in range(-3, 4):
            for j in range(-3, 4):
                at = np.array([(first[0] + i) * apart, (first[1] + j) * apart, around[2] - 0.1 * self.size])
                if np.linalg.norm(at[:2] - around[:2]) > 0.9 * self.size and k < len(self._flow):
                    self._flow[k].show(True)
                    self._flow[k].actor.SetUserMatrix(_matrix_of(_arrow(at, direction, long, 0.8 * long)))
                    k += 1

    def trace(self, paths: Sequence[Array]) -> None:
        """Draw the path of each robot.

        Parameters
        ----------
        paths : Sequence[Array]
            (n, 3) points of each path, m, world.
        """
        self._path.draw(paths if self._shown.path else [])

    def aim(self, course: Array | None, goal: Sequence[float] | None, place: Sequence[float]) -> None:
        """Draw the planned path, and the robot's wanted place.

        Parameters
        ----------
        course : Array | None
            (n, 3) points of the path, m, world; None without one.
        goal : Sequence[float] | None
            Goal, m, world; None without one.
        place : Sequence[float]
            Position of the robot, m, world.
        """
        self._course.draw([course] if course is not None and self._shown.aims else [])
        visible = goal is not None and self._shown.aims
        self._goal.show(visible)
        self._goal_line.draw([np.array([place, goal], dtype=float)] if visible else [])
        if goal is not None:
            self._goal.place((tuple(goal), HOME[1]))  # type: ignore[arg-type]

    def ahead(self, plans: Sequence[Array], tried: Sequence[Array] = ()) -> None:
        """Draw the motions that controllers plan from now on, and others that they tried.

        Parameters
        ----------
        plans, tried : Sequence[Array]
            (n, 3) points of each motion, m, world.
        """
        self._ahead.draw(plans if self._shown.plan else [])
        self._tried.draw(tried if self._shown.plan else [])

    def look(self, eye: Array, target: Array) -> None:
        """Set the camera, and the visible floor.

        Parameters
        ----------
        eye : Array
            Position of the camera, m, world.
        target : Array
            Point that it looks at, m, world.
        """
        camera = self._plotter.camera
        camera.position, camera.focal_point, camera.up = tuple(eye), tuple(target), (0.0, 0.0, 1.0)
        camera.view_angle = VIEW_DEG
        distance = float(np.linalg.norm(eye - target))
        camera.clipping_range = (0.02 * distance, distance + 1.1 * SKY * self.size)
        self._sky.place((tuple(target), HOME[1]))
        if self._scenery.has_floor:
            self._lay_floor(target)
        elif self._scene == SPACE:
            self._stars.points = (self._ways + target).astype(np.float32)

    def _lay_floor(self, target: Array) -> None:
        middle = np.array([target[0], target[1], self._floor])
        self._ground.move(self._disc + middle)
        reach, apart = 0.92 * REACH * self.size, self._cell
        while reach / apart > 60.0:
            apart *= 5.0
        thin: list[Array] = []
        thick: list[Array] = []
        for axis in (0, 1):
            number = np.arange(np.ceil((middle[axis] - reach) / apart), np.floor((middle[axis] + reach) / apart) + 1)
            for n in number:
                off = n * apart - middle[axis]
                half = np.sqrt(max(reach**2 - off**2, 0.0))
                line = np.zeros((17, 3))
                line[:, axis], line[:, 1 - axis] = n * apart, middle[1 - axis] + np.linspace(-half, half, 17)
                line[:, 2] = self._floor + 2.0 * LIFT * self.size
                (thick if n % 5 == 0 else thin).append(line)
        for node, lines in ((self._thin, thin), (self._thick, thick)):
            away = np.linalg.norm(np.concatenate(lines)[:, :2] - middle[:2], axis=1) if lines else np.zeros(0)
            node.draw(lines, self._faded(away, self._scenery.line) if lines else None)

    def shoot(self) -> Image:
        """Render the picture.

        Returns
        -------
        Image
            (high, wide, 3).
        """
        if not self._begun:
            self._plotter.show(auto_close=False, interactive=False)
            self._begun = True
        self._plotter.render_window.Render()
        return np.asarray(self._plotter.image)[..., :3]

    def close(self) -> None:
        """End the plotter."""
        self._plotter.close()


def _lay(parts: Sequence[tuple[Surface, Part]], drawn: DrawnState, pose: Pose) -> None:
    bent = iter(drawn.bent)
    for surface, part in parts:
        if surface.vertices is None:
            part.move(next(bent))
            part.place(pose)
        else:
            part.place(_after(pose, drawn.frames.get(surface.frame, HOME)))


def _sky(size: float) -> tuple[Any, Colour, Array]:
    """Return faces, colour and vertices of the background."""
    ring = np.linspace(0.0, 1.5, 24)  # below the horizon all is the background's own colour
    angle = np.linspace(0.0, 2.0 * np.pi, 48, endpoint=False)
    points = [
        np.stack([np.cos(e) * np.cos(angle), np.cos(e) * np.sin(angle), np.full(48, np.sin(e))], axis=1) for e in ring
    ]
    return tiles(len(ring), 48, around=True), (0, 0, 0), SKY * size * np.concatenate(points)


def _after(parent: Pose, child: Pose) -> Pose:
    from rtmms.base.attitude import after

    return after(parent, child)


def _affine(pose: Pose) -> Array:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = quaternion_matrix(np.array(pose[1])), pose[0]
    return matrix


def _arrow(at: Array, direction: Array, long: float, thick: float) -> Array:
    """Return (4, 4): x of an arrow of length 1 along a direction."""
    x = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    y = np.cross(np.eye(3)[int(np.argmin(np.abs(x)))], x)
    y /= np.linalg.norm(y)
    matrix = np.eye(4)
    matrix[:3, :3] = np.column_stack([long * x, 0.45 * thick * y, 0.45 * thick * np.cross(x, y)])
    matrix[:3, 3] = at
    return matrix


def _matrix(pose: Pose) -> Any:
    return _matrix_of(_affine(pose))


def _matrix_of(matrix: Array) -> Any:
    from vtkmodules.vtkCommonMath import vtkMatrix4x4

    built = vtkMatrix4x4()
    built.DeepCopy(matrix.ravel().tolist())
    return built


def _unit(colour: Colour) -> tuple[float, float, float]:
    r, g, b = colour
    return r / 255.0, g / 255.0, b / 255.0
