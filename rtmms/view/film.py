"""A run as a film or a still, without a display: rendered, written over, encoded by FFmpeg or as a GIF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import radians, tan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError
from rtmms.shapes.visual.surface import GROUND
from rtmms.spatial import quaternion_matrix
from rtmms.view.encoder import encoder
from rtmms.view.goals import ahead, goal, planned, tried
from rtmms.view.picture import Picture
from rtmms.view.recording import Recording
from rtmms.view.scenery import FROM, SCENERIES, VIEW_DEG, cell, floor_height, frame, smoothed
from rtmms.whole_file import beside

Array = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]

FILMS, STILLS = (".mp4", ".gif"), (".png",)
FRAMES_HZ = {".mp4": 30.0, ".gif": 12.5}
SIZES = {".mp4": (1280, 720), ".gif": (640, 360), ".png": (1280, 720)}
SAMPLES = 24
"""States from which the camera takes how far it must be."""
SEEN_HZ = 1.5
"""Beats a second of a film in slow motion, at most."""
SLOW = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
MOST_HZ = 4.0
"""Faster beats than this are shown in slow motion."""
GRAIN = 1.0 / 150.0
"""Of the robot's size: from one point of the way that it came to the next."""
COLOURS = 255
"""Of a GIF."""


@dataclass(frozen=True, kw_only=True)
class Take:
    """How a run is filmed.

    speed       of the film against simulated time; None: 1, or slow motion where limbs beat faster than MOST_HZ
    follow      the camera goes along with the robot; False: it stands still, and sees the whole path
    size        pixels, wide and high; None for the usual of the file's kind
    path        whether the way that it came is shown
    forces, model, deadlines, axes   whether forces, the model's own links, the strip of deadlines, the body's axes
                are shown
    title       whether the robot's name and the time are written
    """

    speed: float | None = None
    follow: bool = True
    size: tuple[int, int] | None = None
    path: bool = True
    forces: bool = False
    model: bool = False
    deadlines: bool | None = None
    axes: bool = False
    title: bool = True
    start_s: float = 0.0
    end_s: float | None = None


def refuse_ending(path: Path) -> None:
    """ModelError for a file that is no film and no still."""
    if path.suffix.lower() not in (*FILMS, *STILLS):
        known = f"{', '.join(FILMS)} or {STILLS[0]}"
        raise ModelError(f"-o {path}: expected a file that ends in {known}, got '{path.suffix}'")


def write_film(recording: Recording, path: Path, progress: Callable[[int, int], None], take: Take | None = None) -> int:
    """Write the recording as a film; the number of its pictures. Nothing is left of a film that did not get done.

    progress   called with the pictures that are rendered and all of them
    ModelError for another ending, or where a library is missing; RtmmsError where the file cannot be written.
    """
    refuse_ending(path)
    take = take or Take()
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        raise ModelError("films need the library imageio-ffmpeg: pip install 'rtmms[film]'") from None
    kind = path.suffix.lower()
    rate = FRAMES_HZ[kind]
    speed = take.speed if take.speed is not None else slow_motion(recording)
    last = float(recording.time[-1]) if take.end_s is None else take.end_s
    times = recording.pictures(speed / rate)
    times = times[(times >= take.start_s - 1e-9) & (times <= last + 1e-9)]
    if not len(times):
        raise ModelError(
            f"the run takes {recording.time[-1]:g} s: expected a part of it, got {take.start_s:g} to {last:g} s"
        )
    rows = np.minimum(np.searchsorted(recording.time, times - 1e-9), len(recording.time) - 1)
    with Filming(recording, take, take.size or SIZES[kind], speed) as filming, beside(path, "-o") as part:
        if kind == ".gif":
            _write_gif(part, (filming.picture(int(k)) for k in rows), rate, progress, len(rows))
        else:
            with encoder(part, path, filming.size, rate) as film:
                for number, k in enumerate(rows):
                    film.add(filming.picture(int(k)))
                    progress(number + 1, len(rows))
    return len(rows)


def write_still(recording: Recording, path: Path, at_s: float | None = None, take: Take | None = None) -> None:
    """Write one picture of the recording, at an instant, s; None: the last. Errors as of write_film."""
    from PIL import Image as Images

    refuse_ending(path)
    take = take or Take()
    time = float(recording.time[-1]) if at_s is None else at_s
    if not 0.0 <= time <= float(recording.time[-1]) + 1e-9:
        raise ModelError(f"--to: the run takes {recording.time[-1]:g} s, got {time:g}")
    k = int(np.searchsorted(recording.time, time - 1e-9))
    with Filming(recording, take, take.size or SIZES[STILLS[0]], 1.0, [k] if take.follow else None) as filming:
        picture = filming.picture(k)
    with beside(path, "-o") as part:
        Images.fromarray(picture).save(part, format="png", optimize=True)


def _write_gif(path: Path, pictures: Any, rate: float, progress: Callable[[int, int], None], count: int) -> None:
    """One palette for all of them, without dithering: a quarter of the bytes."""
    from PIL import Image as Images

    frames = []
    for number, picture in enumerate(pictures):
        frames.append(Images.fromarray(picture))
        progress(number + 1, count)
    # of all the film: what comes up later has its colours, too
    some = frames[:: max(1, len(frames) // 8)]
    montage = Images.fromarray(np.concatenate([np.asarray(one) for one in some]))
    palette = montage.quantize(COLOURS, Images.Quantize.MAXCOVERAGE, dither=Images.Dither.NONE)
    drawn = [one.quantize(palette=palette, dither=Images.Dither.NONE) for one in frames]
    # a hundredth of a second is a GIF's unit
    drawn[0].save(path, format="gif", save_all=True, append_images=drawn[1:], duration=round(1000.0 / rate), loop=0)


def slow_motion(recording: Recording) -> float:
    """The speed at which the fastest beat of the joints is seen, SEEN_HZ or less; 1 of a robot that beats slowly.

    The beat is the frequency at which the joints' motion has most of its power.
    """
    name = next((n for n in ("truth.joint_position", "joint_position") if n in recording.slices), "")
    if not name or len(recording.time) < 16:
        return 1.0
    last = recording.time[-1]
    time = np.linspace(0.0, last, min(len(recording.time), 4096))
    rows = np.minimum(np.searchsorted(recording.time, time), len(recording.time) - 1)
    angles = recording.series(name)[rows]
    angles = (angles - angles.mean(axis=0)) * np.hanning(len(angles))[:, None]
    power = (np.abs(np.fft.rfft(angles, axis=0)) ** 2).sum(axis=1)
    beat = float(np.argmax(power[1:]) + 1) / max(float(last), 1e-9) if power[1:].any() else 0.0
    if beat <= MOST_HZ:
        return 1.0
    return next((slow for slow in SLOW if slow * beat <= SEEN_HZ), SLOW[-1])


@dataclass
class Filming:
    """A renderer with its camera on one recording.

    rows   states that the camera must see; None: all
    """

    recording: Recording
    take: Take
    size: tuple[int, int]
    speed: float
    rows: Sequence[int] | None = None
    _closing: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> Filming:
        from rtmms.view.overlay import Overlay, has_deadlines
        from rtmms.view.render import Renderer, Shown

        run, (wide, high) = self.recording, self.size
        self._picture = picture = Picture(run.info)
        first = picture.draw(run.outputs(0))
        picture.measure(first)
        self._paths = picture.paths(run)
        self._kept = [_apart(path, picture.size * GRAIN) for path in self._paths]
        self._clouds, lowest = self._sampled()
        visual = picture.visual
        self._scene = GROUND if visual is None else visual.scene
        floor = floor_height(
            self._scene, None if visual is None else visual.ground, first.pose[0][2], lowest, picture.size
        )
        self._aim_camera(wide / high)
        self._renderer = Renderer(
            picture,
            first,
            floor,
            Shown(path=self.take.path, forces=self.take.forces, model=self.take.model, axes=self.take.axes),
            wide,
            high,
            ghost=first.ghost is not None,
        )
        self._closing.append(self._renderer.close)
        deadlines = has_deadlines(run) if self.take.deadlines is None else self.take.deadlines
        scenery = SCENERIES[self._scene]
        names = (", ".join(run.info.robots) or run.info.robot) if self.take.title else ""
        self._overlay = Overlay(
            wide,
            high,
            names,
            scenery.text,
            grid_m=cell(picture.size) if scenery.has_floor else None,
            m_a_pixel=2.0 * self._distance * tan(radians(0.5 * VIEW_DEG)) / high,
            deadlines=run if deadlines else None,
        )
        if self.take.forces:  # their scale is that of the largest of the run
            for k in np.linspace(0, len(run.time) - 1, 200).astype(int):
                arrows = picture.draw(run.outputs(int(k))).forces
                if len(arrows):
                    self._renderer.largest = max(
                        self._renderer.largest, float(np.linalg.norm(arrows[:, 1], axis=1).max())
                    )
        return self

    def __exit__(self, *_: object) -> None:
        for close in self._closing:
            close()

    def _sampled(self) -> tuple[list[Array], float]:
        """(n, 3) m of some states, from the body's origin along the world's axes; z of the lowest point of the run."""
        run, clouds, lowest = self.recording, [], np.inf
        for k in self._looked_at():
            drawn = self._picture.draw(run.outputs(int(k)))
            points = self._picture.points(drawn)
            if not len(points):
                points = 0.3 * np.vstack([np.zeros(3), np.eye(3), -np.eye(3)])
            clouds.append(points @ quaternion_matrix(np.array(drawn.pose[1])).T)
            lowest = min(lowest, float(clouds[-1][:, 2].min() + drawn.pose[0][2]))
        below = min(float(cloud[:, 2].min()) for cloud in clouds)
        return clouds, min(lowest, float(self._paths[0][:, 2].min()) + below)

    def _looked_at(self) -> Sequence[int]:
        last = len(self.recording.time) - 1
        return self.rows or [int(k) for k in np.unique(np.linspace(0, last, SAMPLES).astype(int))]

    def _aim_camera(self, aspect: float) -> None:
        run, path = self.recording, self._paths[0]
        if not self.take.follow:
            world = [cloud + path[k] for cloud, k in zip(self._clouds, self._looked_at(), strict=True)]
            middle, self._distance = frame(world, aspect)
            self._targets = np.broadcast_to(middle, path.shape)
            return
        middle, self._distance = frame(self._clouds, aspect)
        self._targets = smoothed(path, run.time, self._picture.size) + middle

    def picture(self, k: int) -> Image:
        """(high, wide, 3), of the k-th state."""
        run, renderer = self.recording, self._renderer
        drawn, time = self._picture.draw(run.outputs(k)), float(run.time[k])
        renderer.show(drawn)
        renderer.trace([
            np.vstack([path[kept[: np.searchsorted(kept, k)]], path[k]])
            for path, kept in zip(self._paths, self._kept, strict=True)
        ])  # fmt: skip
        points = run.tracked(time)
        renderer.aim(planned(points), goal(points, drawn.pose, self._picture.size), drawn.pose[0])
        renderer.ahead(ahead(points), tried(points))
        target = self._targets[k]
        renderer.stream(self._picture.current, target)
        renderer.look(target + self._distance * FROM, target)
        note = "" if self.speed == 1.0 else f"{self.speed:g} of real speed"
        return self._overlay.write(renderer.shoot(), time, note)


def _apart(path: Array, least: float) -> Any:
    """Rows of a path that are so far apart along it, m: shorter pieces than a pixel leave gaps."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    return np.unique(np.searchsorted(along, np.arange(0.0, along[-1] + least, least)).clip(0, len(path) - 1))


def pictures(recording: Recording, at: Sequence[int], take: Take, size: tuple[int, int]) -> list[Image]:
    """Some states of a run, (high, wide, 3) each."""
    with Filming(recording, take, size, 1.0, list(at)) as filming:
        return [filming.picture(k) for k in at]
