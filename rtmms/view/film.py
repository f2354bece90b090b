"""A run as a film, without a display: painted by matplotlib, encoded by FFmpeg or as a GIF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from rtmms.errors import ModelError, RtmmsError
from rtmms.report.style import BLUE, CORAL, GRID, INK, MUTED, TEAL, figure, styled
from rtmms.shapes.faces import solid_faces
from rtmms.shapes.shape import HOME
from rtmms.spatial import quaternion_matrix
from rtmms.view.goals import goal, planned
from rtmms.view.picture import Drawn, Picture
from rtmms.view.recording import Recording
from rtmms.whole_file import beside

Array = npt.NDArray[np.float64]

ENDINGS = (".mp4", ".gif")
INCHES, DPI = (8.0, 4.5), 120
FRAMES_HZ = {".mp4": 25.0, ".gif": 12.5}
FEW_LINES = 10
SOLID = "#b9c2cc"
LIGHT = np.array([-0.3, -0.5, 0.81])


def refuse_ending(path: Path) -> None:
    """ModelError for a file that is no film."""
    if path.suffix.lower() not in ENDINGS:
        raise ModelError(f"-o {path}: expected a file that ends in {' or '.join(ENDINGS)}, got '{path.suffix}'")


def write_film(recording: Recording, path: Path, progress: Callable[[int, int], None], speed: float = 1.0) -> int:
    """Write the recording as a film; the number of its pictures. Nothing is left of a film that did not get done.

    speed      of the film against simulated time
    progress   called with the pictures that are painted and all of them
    ModelError for another ending, or where the library is missing; RtmmsError where the file cannot be written.
    """
    refuse_ending(path)
    try:
        import imageio.v2 as imageio
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        raise ModelError("films need the library imageio-ffmpeg: pip install 'rtmms[view]'") from None
    kind = path.suffix.lower()
    rate = FRAMES_HZ[kind]
    times = recording.pictures(speed / rate)
    rows = np.minimum(np.searchsorted(recording.time, times), len(recording.time) - 1)
    options: dict[str, Any] = (
        {"fps": rate, "macro_block_size": 2, "ffmpeg_log_level": "error"} if kind == ".mp4"
        else {"duration": 1000.0 / rate, "loop": 0}
    )  # fmt: skip
    with styled():
        painter = Painter(recording)
        try:
            with beside(path) as part, imageio.get_writer(part, format=kind, **options) as opened:
                film: Any = opened
                for number, k in enumerate(rows):
                    film.append_data(painter.paint(int(k)))
                    progress(number + 1, len(rows))
        except OSError as error:
            raise RtmmsError(f"-o {path}: {error.strerror or error}") from None
    return len(rows)


def _painted(made: Any) -> Any:
    """The library's 3-D part has no types."""
    return made


class Painter:
    """One picture after the other, the camera beside the robot."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._picture = recording, Picture(recording.info)
        first = self._picture.draw(recording.outputs(0))
        self._picture.measure(first)
        size = self._picture.size
        self._page = figure(*INCHES)
        self._page.set_dpi(DPI)
        self._axes: Any = _painted(Axes3D)(self._page, auto_add_to_figure=False)
        self._page.add_axes(self._axes)
        axes = self._axes
        axes.set_position((-0.1, -0.15, 1.2, 1.3))
        axes.set_axis_off()
        axes.computed_zorder = False  # the ground lies behind all, the path behind the robot
        axes.view_init(elev=22.0, azim=-125.0)
        axes.set_box_aspect((1.0, 1.0, 0.62), zoom=1.9)
        stride = max(1, len(recording.time) // 1500)
        self._path = np.array(
            [self._picture.draw(recording.outputs(k)).pose[0] for k in range(0, len(recording.time), stride)]
        )
        self._path_time = recording.time[::stride]
        self._trail = axes.plot([], [], [], color=CORAL, linewidth=1.4, zorder=1)[0]
        nothing = [np.zeros((4, 3))]
        self._plan = axes.plot([], [], [], color=TEAL, linewidth=0.9, zorder=1)[0]
        self._goal = axes.plot([], [], [], color=TEAL, marker="o", markersize=7, markevery=[1],
                               linewidth=0.9, linestyle=":", zorder=1)[0]  # fmt: skip
        self._faces: Any = _painted(Poly3DCollection)(nothing, linewidths=0.3, alpha=0.95, zorder=2)
        axes.add_collection3d(self._faces)
        self._lines: Any = _painted(Line3DCollection)(nothing, colors=INK, linewidths=0.8, zorder=3)
        axes.add_collection3d(self._lines)
        self._ground: Any = _painted(Line3DCollection)(nothing, colors=GRID, linewidths=0.6, zorder=0)
        axes.add_collection3d(self._ground)
        self._text = self._page.text(0.02, 0.95, "", color=MUTED, fontsize=9)
        self._span = 0.85 * size
        self._middle: Array | None = None
        self._depth = float(self._path[:, 2].min()) - 0.5 * size

    def paint(self, k: int) -> npt.NDArray[np.uint8]:
        """(height, width, 3), of the k-th state."""
        drawn = self._picture.draw(self._recording.outputs(k))
        time = float(self._recording.time[k])
        faces, colours, lines = _world(self._picture, drawn)
        drawn_points = np.concatenate(faces) if faces else np.concatenate(lines)
        # in the middle of the robot as it stood at first, so that its bending does not move the picture
        if self._middle is None:
            low, high = drawn_points.min(axis=0), drawn_points.max(axis=0)
            self._middle = 0.5 * (low + high) - np.array(drawn.pose[0])
        centre = np.array(drawn.pose[0]) + self._middle
        self._faces.set_verts(faces)
        self._faces.set_facecolor(colours)
        self._faces.set_edgecolor(colours)
        self._lines.set_segments(lines if lines else [np.zeros((2, 3))])
        seen = self._path[self._path_time <= time]
        seen = seen[np.abs(seen - centre).max(axis=1) < 2.0 * self._span] if len(seen) else seen
        self._trail.set_data_3d(*seen.T if len(seen) else ([], [], []))
        self._ground.set_segments(self._grid(centre))
        self._aim(self._recording.tracked(time), drawn, centre)
        axes = self._axes
        for limits, middle, share in ((axes.set_xlim, centre[0], 1.0), (axes.set_ylim, centre[1], 1.0),
                                      (axes.set_zlim, centre[2], 0.62)):  # fmt: skip
            limits(middle - share * self._span, middle + share * self._span)
        x, y, z = drawn.pose[0]
        self._text.set_text(f"{self._recording.info.robot}  {time:6.2f} s  at {x:.2f}, {y:.2f}, {z:.2f} m")
        canvas: Any = self._page.canvas
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def _aim(self, points: Mapping[str, Any], drawn: Drawn, centre: Array) -> None:
        """The planned path, where it is near, and where the robot is to be, with a line there from where it is."""
        course, place = planned(points), goal(points, drawn.pose, self._picture.size)
        near = np.zeros((0, 3)) if course is None else course
        near = np.where((np.abs(near - centre).max(axis=1) < 2.0 * self._span)[:, None], near, np.nan)
        self._plan.set_data_3d(*near.T)
        self._goal.set_data_3d(*np.array([drawn.pose[0], place]).T if place is not None else ([], [], []))

    def _grid(self, centre: Array) -> list[Array]:
        """Lines of the ground that stay where they are in the world."""
        cell, reach = 0.5 * self._span, 1.6 * self._span
        ends = []
        z = max(self._depth, centre[2] - 0.6 * self._span)
        for axis in (0, 1):
            first = np.ceil((centre[axis] - reach) / cell)
            for n in range(int(2.0 * reach / cell) + 1):
                line = np.full((2, 3), z)
                line[:, axis] = (first + n) * cell
                line[:, 1 - axis] = centre[1 - axis] + np.array([-reach, reach])
                ends.append(line)
        return ends


def _world(picture: Picture, drawn: Drawn) -> tuple[list[Array], list[Any], list[Array]]:
    """Polygons, their colours, and polylines of the robot, m, world."""
    faces: list[Array] = []
    colours: list[Any] = []
    lines: list[Array] = []
    position, attitude = drawn.pose
    turn, shift = quaternion_matrix(np.array(attitude)), np.array(position)
    if picture.shape is None:
        size = 0.3 * picture.size
        return faces, colours, [np.array([shift, shift + size * turn[:, axis]]) for axis in range(3)]
    for skin, points in zip(picture.shape.skins, drawn.skins, strict=True):
        world = points @ turn.T + shift
        faces += [world[list(skin.triangles[k : k + 3])] for k in range(0, len(skin.triangles), 3)]
        colours += [_shaded(face, BLUE) for face in faces[len(colours) :]]
        lines += [world[list(strip)] for strip in skin.lines[:: max(1, len(skin.lines) // FEW_LINES)]]
    for solid in picture.shape.solids:
        frame = drawn.frames.get(solid.frame, HOME)
        faces += [face @ turn.T + shift for face in solid_faces(solid, frame)]
        colours += [_shaded(face, SOLID) for face in faces[len(colours) :]]
    return faces, colours, lines


def _shaded(face: Array, colour: str) -> Any:
    """The colour of a face in light from above."""
    normal = np.cross(face[1] - face[0], face[2] - face[0]) + np.cross(face[2] - face[0], face[-1] - face[0])
    lit = abs(float(normal @ LIGHT)) / max(float(np.linalg.norm(normal)), 1e-12)
    return tuple((0.55 + 0.45 * lit) * np.array(to_rgb(colour)))
