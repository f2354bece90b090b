"""Drawings of a robot within figures.

`RobotOutline` has the means to draw a robot, and the states in which figures show it. The code that knows the robots'
shapes makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import TRUTH
from rtmms.base.spatial import quaternion_matrix
from rtmms.loop.trace import Trace
from rtmms.plant.description import describe_plant, unwrapped
from rtmms.view.cycles import Period, at, last_period
from rtmms.view.style import CORAL, MUTED, ORDERED, write_note

if TYPE_CHECKING:
    from rtmms.plant.protocol import Plant


Array = npt.NDArray[np.float64]


# What a figure is handed to draw a robot with, by whoever knows the robots' shapes, and the states that it draws.


MAX_STATES = 256
"""Most states of a whole run to draw the robot from."""
POSE = ("position", "quaternion")


class ColouredSurface(NamedTuple):
    """Part of a robot's surface in one colour.

    Attributes
    ----------
    faces : Array
        Triangles with outward normals, shape (k, 3, 3), m, body frame.
    colour : tuple[float, float, float]
        Red, green and blue, 0 to 1.
    """

    faces: Array
    colour: tuple[float, float, float]


class Surfaces(NamedTuple):
    """Surface of a robot in one state.

    Attributes
    ----------
    looks : Sequence[ColouredSurface]
        Its parts, m, body frame.
    """

    looks: Sequence[ColouredSurface]

    def points(self) -> Array:
        """Return all corners of the surface.

        Returns
        -------
        Array
            Corners, shape (n, 3), m.
        """
        return np.concatenate([look.faces.reshape(-1, 3) for look in self.looks])

    def turned(self, rotation: Array) -> Surfaces:
        """Return the surface in another frame.

        Parameters
        ----------
        rotation : Array
            Matrix that turns components into that frame, shape (3, 3).

        Returns
        -------
        Surfaces
            The turned surface.
        """
        return Surfaces([ColouredSurface(look.faces @ rotation.T, look.colour) for look in self.looks])


class Samples(Protocol):
    """States of a run, for example of a trace."""

    def read(self) -> tuple[Array, dict[str, Array]]:
        """Return the samples.

        Returns
        -------
        tuple[Array, dict[str, Array]]
            Times in s, shape (k,), and samples by output, shape (k, ...) each.
        """


class OutlineFunction(Protocol):
    """Function that draws one robot."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Outputs that the outline reads."""

    def __call__(self, outputs: Mapping[str, Any]) -> Surfaces:
        """Return the surface of the robot for outputs by name, arrays of any shape."""


@dataclass(frozen=True)
class RobotOutline:
    """A robot's outline, and states of the whole run to draw it in.

    Parameters
    ----------
    outline : OutlineFunction
        The outline.
    along : Samples
        Samples of the outputs that the outline reads, and of the pose.
    """

    outline: OutlineFunction
    along: Samples


def reported_names(plant: Plant, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the full names of outputs of a robot, also where a plant reports them through sensors.

    Parameters
    ----------
    plant : Plant
        The plant.
    names : tuple[str, ...]
        Names of the robot's own outputs.

    Returns
    -------
    tuple[str, ...]
        Names under which the plant reports them, without those that it does not report.
    """
    prefix = "" if describe_plant(plant).truth is None else TRUTH
    known = {channel.name for channel in plant.outputs}
    return tuple(prefix + name for name in names if prefix + name in known)


def along(outline: OutlineFunction | None, plant: Plant, steps: int | None, first: int = 0) -> Trace | None:
    """Return an empty trace of a run for `RobotOutline`.

    Parameters
    ----------
    outline : OutlineFunction | None
        Outline of the robot, or None.
    plant : Plant
        Plant of the run.
    steps : int | None
        Number of steps; None where it is open.
    first : int, default 0
        Number of the first step.

    Returns
    -------
    Trace | None
        The trace, or None without an outline.
    """
    if outline is None:
        return None
    names = reported_names(plant, (*POSE, *outline.needs))
    return Trace(plant.outputs, names, plant.dt, steps, MAX_STATES, first=first)


def recent_names(outline: OutlineFunction | None, plant: Plant) -> tuple[str, ...]:
    """Return the outputs of a run's last seconds that its figure needs.

    Parameters
    ----------
    outline : OutlineFunction | None
        Outline of the robot, or None.
    plant : Plant
        Plant of the run.

    Returns
    -------
    tuple[str, ...]
        Names of outputs, each once.
    """
    recent_outputs = describe_plant(plant).recent_outputs
    return tuple(dict.fromkeys((*recent_outputs, *reported_names(plant, () if outline is None else outline.needs))))


# The robot itself in a figure: a strip of it over a period, and small ones along its path.


FRAMES = 8
LIGHT = np.array([-0.3, -0.5, 0.81])
MAX_OUTLINES = 6
"""Robots along a path."""
MIN_SIZE_SHARE = 0.1
"""Size of a robot along a path, as a share of the path's extent."""
MAX_SIZE_SHARE = 0.4
"""Size of a robot along a path, as a share of the path's extent."""
MAX_VECTOR_FACES = 500
FAINT = 0.72
"""How near to white the robots along a path are, 0 to 1."""
STILL = 1e-6
"""Distance in m; points that move less do not move."""
FLAT = 0.02
"""Share of a motion's size; a smaller part across a plane leaves the motion in that plane."""


@dataclass(frozen=True)
class View:
    """Direction from which a figure shows a robot.

    Parameters
    ----------
    name : str
        Name of the view in the panel's title.
    right : Array
        Unit vector to the right, shape (3,).
    up : Array
        Unit vector upwards, shape (3,).
    eye : Array
        Unit vector towards the eye, shape (3,).
    """

    name: str
    right: Array
    up: Array
    eye: Array

    def project(self, points: Array) -> Array:
        """Project points onto the plane of the view.

        Parameters
        ----------
        points : Array
            Points, shape (k, 3), m.

        Returns
        -------
        Array
            Coordinates to the right and upwards, shape (k, 2), m.
        """
        return points @ np.stack([self.right, self.up], axis=1)


def _oblique(name: str, elevation: float, azimuth: float) -> View:
    e, a = np.radians((elevation, azimuth))
    eye = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return View(name, right, np.cross(eye, right), eye)


X, Y, Z = np.eye(3)
ABOVE = View("from above", X, Y, Z)
SIDE = View("from the side", X, Z, -Y)
BEHIND = _oblique("from behind and above", 30.0, -148.0)


@dataclass(frozen=True)
class FinalStates:
    """States at the end of a run for the panel of the robot.

    Parameters
    ----------
    time : Array
        Times of the states, shape (k,), s.
    values : Mapping[str, Array]
        States by output, shape (k, ...) each.
    seconds : float | None
        Length of the period in s; None where nothing repeats.
    description : str
        Description of the states for the panel's title.
    """

    time: Array
    values: Mapping[str, Array]
    seconds: float | None
    description: str


def stretch(outline: OutlineFunction | None, ahead: tuple[Array, dict[str, Array]] | None, late: Array,
            recent: Mapping[str, Array]) -> FinalStates | None:  # fmt: skip
    """Return the states of the period that the figure shows.

    The period is `ahead`, or else the last one of the output that moves most in the last seconds. Where nothing
    repeats, the states are those of the last seconds.

    Parameters
    ----------
    outline : OutlineFunction | None
        Outline of the robot, or None.
    ahead : tuple[Array, dict[str, Array]] | None
        Times and states of one more period of the robot's own gait, or None.
    late : Array
        Times of the last seconds, shape (k,), s.
    recent : Mapping[str, Array]
        Samples of the last seconds by output.

    Returns
    -------
    FinalStates | None
        The states, or None where there is nothing to draw from.
    """
    if ahead is not None:
        time, values = ahead
        seconds = float(time[-1] - time[0])
        return FinalStates(time, values, seconds, f"over one more period of {seconds:.3g} s, the last command held")
    names = [name for name in (outline.needs if outline is not None else tuple(recent)) if name in recent]
    if len(late) < 2 or not names:
        return None
    flat = np.concatenate([recent[name].reshape(len(late), -1) for name in names], axis=1)
    period: Period | None = last_period(late, flat[:, int(np.argmax(np.ptp(flat, axis=0)))])
    if period is None:
        return FinalStates(late, recent, None, f"over the last {late[-1] - late[0]:.3g} s")
    return of_period(late, recent, period)


def of_period(late: Array, recent: Mapping[str, Array], period: Period) -> FinalStates:
    """Return the samples of a period, with one more at either end.

    Parameters
    ----------
    late : Array
        Times of the last seconds, shape (k,), s.
    recent : Mapping[str, Array]
        Samples of the last seconds by output.
    period : Period
        The period.

    Returns
    -------
    FinalStates
        The samples; all of them where the period has fewer than two.
    """
    inside = (late >= period.start - 1e-9) & (late <= period.end + 1e-9)
    if inside.sum() < 2:
        return FinalStates(late, recent, period.seconds, f"over a period of {period.seconds:.3g} s")
    edges = slice(max(0, int(np.argmax(inside)) - 1), len(late) - int(np.argmax(inside[::-1])) + 1)
    return FinalStates(
        late[edges], {name: value[edges] for name, value in recent.items()}, period.seconds,
        f"over the last period of {period.seconds:.3g} s",
    )  # fmt: skip


def strip(panel: Any, outline: OutlineFunction, shown: FinalStates | None, frames: int = FRAMES) -> None:
    """Draw the robot at evenly spaced instants of a period, in its body's frame.

    The view is one in which the motion is visible.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    outline : OutlineFunction
        Outline of the robot.
    shown : FinalStates | None
        States of the period; with None the panel has a note instead.
    frames : int, default FRAMES
        Number of instants.
    """
    panel.set_title("The robot")
    if not outline.needs:  # a robot without joints
        shown = FinalStates(np.zeros(1), {}, None, "")
    if shown is None or not all(name in shown.values for name in outline.needs):
        return write_note(panel, "no steps")
    share = np.arange(frames) / (frames if shown.seconds is not None else frames - 1)
    instants = shown.time[0] + share * (shown.time[-1] - shown.time[0])
    states = [outline({n: at(shown.time, shown.values[n], t) for n in outline.needs}) for t in instants]
    moving = _moving(states)
    view = _view(states)
    flat = [view.project(state.points()) for state in states]
    low, high = np.min([p.min(axis=0) for p in flat], axis=0), np.max([p.max(axis=0) for p in flat], axis=0)
    every = 1.12 * (high[0] - low[0])
    if not moving:
        states = states[:1]
    for k, state in enumerate(states):
        _paint(panel, view, state, np.array([k * every, 0.0]), 0.0)
        word = "t = 0" if k == 0 else f"t = {k}/{frames} T"
        word = word if shown.seconds is not None else f"{instants[k]:.3g} s"
        panel.annotate(word if moving else "", (k * every + 0.5 * (low[0] + high[0]), low[1]), (0, -6),
                       textcoords="offset points", ha="center", va="top", fontsize=8.5, color=MUTED)  # fmt: skip
    panel.set_title(f"The robot {shown.description if moving else 'does not change its shape'}, seen {view.name}")
    fill_panel(panel, low, high + np.array([(len(states) - 1) * every, 0.0]), 0.53)
    panel.set_axis_off()


def along_path(panel: Any, outlined: RobotOutline, a: int, b: int, *, timed: bool = False) -> str:
    """Draw small robots along a path, seen along the remaining axis.

    The panel's limits make room for them.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    outlined : RobotOutline
        The robot, and states along the run.
    a, b : int
        World axes of the panel, 0 to 2: to the right and upwards.
    timed : bool, default False
        Whether each robot has its time beside it.

    Returns
    -------
    str
        Note of the robots' size; "" where none was drawn.
    """
    import matplotlib

    time, stored = outlined.along.read()
    if len(time) < 2 or "position" not in stored:
        return ""
    right, up = np.eye(3)[a], np.eye(3)[b]
    view = View("", right, up, np.cross(right, up))
    place = stored["position"][:, (a, b)]
    reach = float(np.ptp(stored["position"], axis=0).max())
    size = float(np.ptp(_state(outlined.outline, stored, 0).points(), axis=0).max())
    if size <= 0.0:
        return ""
    # the same in all views: to scale, unless it would hide the path, or be lost in it
    scale = float(np.clip(1.0, MIN_SIZE_SHARE * reach / size, MAX_SIZE_SHARE * reach / size)) if reach > 1e-9 else 1.0
    low, high = place.min(axis=0), place.max(axis=0)
    chart = matplotlib.colormaps[ORDERED]
    for k in spread(place[:, 0], place[:, 1], MAX_OUTLINES, least=1.25 * scale * size):
        state = _state(outlined.outline, stored, int(k))
        shade = chart(0.9 * float((time[k] - time[0]) / (time[-1] - time[0])))
        _paint(panel, view, state, place[k], FAINT, scale, shade)
        corners = place[k] + scale * view.project(state.points())
        low, high = np.minimum(low, corners.min(axis=0)), np.maximum(high, corners.max(axis=0))
        if timed:
            below = 0.5 * (corners[:, 0].min() + corners[:, 0].max()), corners[:, 1].min()
            panel.annotate(f"{time[k]:.3g} s", below, (0, -4), textcoords="offset points", ha="center", va="top",
                           fontsize=7.5, color=MUTED)  # fmt: skip
    fill_panel(panel, low, high, 0.54)
    return "robot to scale" if abs(scale - 1.0) < 1e-9 else f"robot drawn {scale:.2g} x its size"


def mark_surface(panel: Any, plant: Plant, position: Array, a: int, b: int) -> None:
    """Mark where a robot in water was nearer to the surface than half its span.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    plant : Plant
        Plant of the run.
    position : Array
        Positions of the robot, shape (n, 3), m, world frame.
    a, b : int
        World axes of the panel, 0 to 2: to the right and upwards.
    """
    about = describe_plant(unwrapped(plant))
    if about.medium != "water" or about.half_span_m is None:
        return
    near = position[:, 2] > about.environment().surface - about.half_span_m
    if near.any():
        panel.plot(*np.where(near, position[:, (a, b)].T, np.nan), color=CORAL, lw=5.0, alpha=0.45, zorder=1.5,
                   solid_capstyle="butt", label="near the surface")  # fmt: skip


def fill_panel(panel: Any, low: Array, high: Array, share: float, least: float = 0.0) -> None:
    """Set equal scales on both axes, so that a box fills the panel from its middle.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    low, high : ndarray
        Opposite corners of the box, shape (2,), m.
    share : float
        Half the panel's side over the box's side, along the tighter axis; more than 0.5 leaves a margin.
    least : float, default 0.0
        Least width of the box, m.
    """
    box, page = panel.get_position(), panel.get_figure()
    width, height = box.width * page.get_figwidth(), box.height * page.get_figheight()
    unit = share * max((high[0] - low[0]) / width, (high[1] - low[1]) / height, least / width) or 1.0  # of one point
    middle = 0.5 * (low + high)
    panel.set_xlim(middle[0] - unit * width, middle[0] + unit * width)
    panel.set_ylim(middle[1] - unit * height, middle[1] + unit * height)
    panel.set_aspect("equal", adjustable="box")


def spread(x: Array, y: Array, count: int, least: float) -> Array:
    """Choose samples evenly spaced along a path.

    Parameters
    ----------
    x, y : ndarray
        Path in the panel, shape (n,), m.
    count : int
        Most samples.
    least : float
        Least distance between two samples, m.

    Returns
    -------
    Array
        Indices of the samples, the first and the last of the path among them; the last alone for a short path.
    """
    along = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    straight = max(float(np.ptp(x)), float(np.ptp(y)))
    if along[-1] < 0.3 * least:
        return np.array([len(x) - 1])
    many = int(np.clip(min(along[-1], 3.0 * straight) / least, 1, count - 1))
    chosen: Array = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], many + 1)).clip(0, len(x) - 1))
    return chosen


def _state(outline: OutlineFunction, stored: Mapping[str, Array], k: int) -> Surfaces:
    """Return the surface of sample k in its attitude, with its origin at 0."""
    result = outline({name: stored[name][k] for name in outline.needs})
    turn = quaternion_matrix(stored["quaternion"][k]) if "quaternion" in stored else np.eye(3)
    return result.turned(turn)


def _moving(states: list[Surfaces]) -> bool:
    return bool(np.ptp([state.points() for state in states], axis=0).max() > STILL)


def _view(states: list[Surfaces]) -> View:
    """Return the view from which the motion is visible.

    A motion in a plane is seen at a right angle to it, any other from behind and above.
    """
    extent = np.ptp([state.points() for state in states], axis=0).max(axis=0)
    if extent[2] <= FLAT * extent.max():
        return ABOVE if extent.max() > STILL else BEHIND
    return SIDE if extent[1] <= FLAT * extent.max() else BEHIND


def _paint(
    panel: Any, view: View, state: Surfaces, shift: Array, faint: float, scale: float = 1.0, shade: Any = None
) -> None:
    """Draw the faces from far to near.

    Parameters
    ----------
    panel : Axes
        Axes of matplotlib to draw into.
    view : View
        The view.
    state : Surfaces
        Surface of the robot.
    shift : Array
        Position of the robot's origin in the panel, shape (2,), m.
    faint : float
        How near to white the faces are, 0 to 1.
    scale : float, default 1.0
        Factor on the robot's size.
    shade : Any, optional
        Colour of all faces; None for the robot's own colours.
    """
    from matplotlib.collections import PolyCollection

    faces, base = _faces(view, state, shade)
    under = 0.9 if faint else 1.0
    if len(faces):
        normal = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
        lit = np.abs(normal @ LIGHT) / np.maximum(np.linalg.norm(normal, axis=1), 1e-15)
        colours = np.clip(faint + (1.0 - faint) * (0.7 + 0.3 * lit)[:, None] * base, 0.0, 1.0)
        order = np.argsort((faces @ view.eye).mean(axis=1), kind="stable")
        flat = shift + scale * view.project(faces[order])
        # thousands of faces are pixels in a figure of lines, too
        panel.add_collection(PolyCollection(
            list(flat), facecolors=colours[order], edgecolors=colours[order], linewidths=0.3, zorder=under,
            rasterized=len(flat) > MAX_VECTOR_FACES,
        ))  # fmt: skip


def _faces(view: View, state: Surfaces, shade: Any) -> tuple[Array, Array]:
    """Return corners (k, 3, 3) and colours (k, 3) of the faces that face the eye."""
    from matplotlib.colors import to_rgb

    result, colours = [np.zeros((0, 3, 3))], [np.zeros((0, 3))]
    for look in state.looks:
        a, b, c = (look.faces[:, k] for k in range(3))
        towards = look.faces[np.cross(b - a, c - a) @ view.eye > 0.0]
        result.append(towards)
        colours.append(np.tile(np.array(look.colour if shade is None else to_rgb(shade)), (len(towards), 1)))
    return np.concatenate(result), np.concatenate(colours)
