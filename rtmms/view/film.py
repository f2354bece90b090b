"""Films and stills: rendered, written over, and encoded."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from math import floor, log10, radians, tan
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from PIL import Image as Images
from PIL import ImageDraw, ImageFont

from rtmms.base.contract import PARTS
from rtmms.base.errors import ModelError
from rtmms.base.files import new_file_beside, write_error
from rtmms.base.install import install_command
from rtmms.base.robot_title import robot_title
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import GROUND, Colour
from rtmms.view.camera import FROM, VIEW_DEG, frame, smooth_path
from rtmms.view.colours import SCENERIES
from rtmms.view.goals import candidate_motions, goal, planned_course, planned_motions
from rtmms.view.recording import Recording
from rtmms.view.scene import Picture, cell, floor_height

Array = npt.NDArray[np.float64]


# FFmpeg in a process of its own, which encodes pictures as an MP4 film and reports whether all of it was written.


CONSTANT_RATE_FACTOR = 15
"""Quality of x264, from 0 (lossless) to 51."""
MAX_LINES = 20
"""Lines of FFmpeg's own messages that are stored for the error."""


class Encoder:
    """Writes pictures to a film; `close` reports whether FFmpeg wrote all of it.

    Parameters
    ----------
    program : str
        FFmpeg's file.
    part : Path
        File to write.
    path : Path
        The name that the user gave, for errors.
    size : tuple[int, int]
        Width and height, pixels.
    rate_hz : float
        Pictures a second.
    """

    def __init__(self, program: str, part: Path, path: Path, size: tuple[int, int], rate_hz: float) -> None:
        self._path = path
        wide, high = size
        even = [] if wide % 2 == high % 2 == 0 else ["-vf", f"scale={wide + wide % 2}:{high + high % 2}"]
        self._process = subprocess.Popen(
            [
                program, "-y", "-f", "rawvideo", "-vcodec", "rawvideo", "-s", f"{wide}x{high}", "-pix_fmt", "rgb24",
                "-r", f"{rate_hz:g}", "-i", "-", "-an", "-vcodec", "libx264", "-pix_fmt", "yuv420p", "-crf",
                str(CONSTANT_RATE_FACTOR), *even, "-preset", "veryfast", "-v", "error", "-f", "mp4", f"file:{part}",
            ],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    def add(self, picture: npt.NDArray[Any]) -> None:
        """Encode one picture.

        Parameters
        ----------
        picture : npt.NDArray[Any]
            (high, wide, 3) bytes.

        Raises
        ------
        RtmmsError
            FFmpeg has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(picture.tobytes())
        except OSError:  # the pipe is broken: its status has the reason
            self.close()
            raise write_error(self._path, "-o", "FFmpeg ended before it had all pictures of the film") from None

    def close(self) -> None:
        """End the film.

        Raises
        ------
        RtmmsError
            FFmpeg did not write all of it.
        """
        assert self._process.stdin is not None
        with suppress(OSError):  # its status has the reason
            self._process.stdin.close()
        status = self._process.wait()
        self._reader.join()
        if status:
            raise write_error(self._path, "-o", f"FFmpeg {self._reason(status)}")

    def kill(self) -> None:
        """End FFmpeg, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._reader.join()

    def _read(self, stream: IO[bytes]) -> None:
        """Read FFmpeg's messages, so that it never waits for a reader."""
        with stream:
            self._lines.extend(line.decode(errors="replace").strip() for line in stream)

    def _reason(self, status: int) -> str:
        """Return how FFmpeg ended, with its first message."""
        line = next((line for line in self._lines if line), "")
        if status < 0:
            with suppress(ValueError):
                return f"was ended by the signal {signal.Signals(-status).name}" + f" ({line})" * bool(line)
        return f"failed: {line or f'exit status {status}'}"


@contextmanager
def encoder(part: Path, path: Path, size: tuple[int, int], rate_hz: float) -> Iterator[Encoder]:
    """Make an encoder, which is closed at the end of the block.

    Parameters
    ----------
    part, path, size, rate_hz : Path, tuple[int, int], float
        See `Encoder`.

    Yields
    ------
    Encoder
        The encoder.

    Raises
    ------
    ModelError
        FFmpeg is missing.
    RtmmsError
        FFmpeg did not write all of the film.
    """
    import imageio_ffmpeg

    try:
        program = imageio_ffmpeg.get_ffmpeg_exe()
        built = Encoder(program, part, path, size, rate_hz)
    except (RuntimeError, OSError) as fault:
        raise ModelError(f"films need FFmpeg: {fault}; {install_command('film')}, or set IMAGEIO_FFMPEG_EXE") from None
    try:
        yield built
        built.close()
    finally:
        built.kill()


# A run as a film or a still, without a display: rendered, written over, encoded by FFmpeg or as a GIF.


Image = npt.NDArray[np.uint8]

FILMS = (".mp4", ".gif")
STILLS = (".png",)
FRAMES_HZ = {".mp4": 30.0, ".gif": 12.5}
SIZES = {".mp4": (1280, 720), ".gif": (640, 360), ".png": (1280, 720)}
SAMPLES = 24
"""States from which the camera's distance is computed."""
MAX_SHOWN_HZ = 1.5
"""Largest frequency of beats in a film in slow motion, Hz."""
SLOW = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
MAX_BEAT_HZ = 4.0
"""Frequency above which beats are shown in slow motion, Hz."""
GRAIN = 1.0 / 150.0
"""Distance of the path's points, of the robot's size."""
COLOURS = 255
"""Colours of a GIF."""


@dataclass(frozen=True, kw_only=True)
class Take:
    """Settings of a film.

    Attributes
    ----------
    speed : float | None, optional
        Speed of the film against simulated time; None: 1, or slow motion where limbs beat faster than MAX_BEAT_HZ.
    follow : bool, default True
        The camera follows the robot; False: it is fixed, and shows the whole path.
    size : tuple[int, int] | None, optional
        Width and height, pixels; None for the default of the file's kind.
    path : bool, default True
        Whether the robot's path is shown.
    forces, model, axes : bool, default False
        Whether forces, the model's own links, the body's axes are shown.
    deadlines : bool | None, optional
        Whether the strip of deadlines is shown; None: where the run has deadlines.
    title : bool, default True
        Whether the robot's name and the time are written.
    start_s, end_s : float, float | None
        Part of the run, s; None: to its end.
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
    """Refuse a file that is no film and no still.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ModelError
        Its ending is another one.
    """
    if path.suffix.lower() not in (*FILMS, *STILLS):
        known = f"{', '.join(FILMS)} or {STILLS[0]}"
        raise ModelError(f"-o {path}: expected a file that ends in {known}, got '{path.suffix}'")


def write_film(recording: Recording, path: Path, progress: Callable[[int, int], None], take: Take | None = None) -> int:
    """Write a recording as a film; nothing is left of an unfinished film.

    Parameters
    ----------
    recording : Recording
        The recording.
    path : Path
        The file.
    progress : Callable[[int, int], None]
        Receives the number of rendered pictures and of all.
    take : Take | None, optional
        Settings of the film.

    Returns
    -------
    int
        Number of pictures.

    Raises
    ------
    ModelError
        The ending is wrong, the part of the run is empty, or a library is missing.
    RtmmsError
        The file cannot be written.
    """
    refuse_ending(path)
    take = take or Take()
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        raise ModelError(f"films need the library imageio-ffmpeg: {install_command('film')}") from None
    kind = path.suffix.lower()
    rate = FRAMES_HZ[kind]
    speed = take.speed if take.speed is not None else slow_motion(recording)
    last = float(recording.time[-1]) if take.end_s is None else take.end_s
    times = recording.pictures(speed / rate)
    times = times[(times >= take.start_s - 1e-9) & (times <= last + 1e-9)]
    if not len(times) or last > recording.time[-1] + 1e-9:
        raise ModelError(
            f"--from, --to: expected times within the run of {recording.time[-1]:g} s, got {take.start_s:g} "
            f"to {last:g} s"
        )
    rows = np.minimum(np.searchsorted(recording.time, times - 1e-9), len(recording.time) - 1)
    with Filming(recording, take, take.size or SIZES[kind], speed) as filming, new_file_beside(path, "-o") as part:
        if kind == ".gif":
            _write_gif(part, (filming.picture(int(k)) for k in rows), rate, progress, len(rows))
        else:
            with encoder(part, path, filming.size, rate) as film:
                for number, k in enumerate(rows):
                    film.add(filming.picture(int(k)))
                    progress(number + 1, len(rows))
    return len(rows)


def write_still(recording: Recording, path: Path, at_s: float | None = None, take: Take | None = None) -> None:
    """Write one picture of a recording.

    Parameters
    ----------
    recording : Recording
        The recording.
    path : Path
        The file.
    at_s : float | None, optional
        Simulated time, s; None: the last.
    take : Take | None, optional
        Settings of the picture.

    Raises
    ------
    ModelError
        The ending or the time is wrong, or a library is missing.
    RtmmsError
        The file cannot be written.
    """
    from PIL import Image as Images

    refuse_ending(path)
    take = take or Take()
    time = float(recording.time[-1]) if at_s is None else at_s
    if not 0.0 <= time <= float(recording.time[-1]) + 1e-9:
        raise ModelError(f"--to: expected a time within the run of {recording.time[-1]:g} s, got {time:g} s")
    k = int(np.searchsorted(recording.time, time - 1e-9))
    with Filming(recording, take, take.size or SIZES[STILLS[0]], 1.0, [k] if take.follow else None) as filming:
        picture = filming.picture(k)
    with new_file_beside(path, "-o") as part:
        Images.fromarray(picture).save(part, format="png", optimize=True)


def _write_gif(path: Path, pictures: Any, rate: float, progress: Callable[[int, int], None], count: int) -> None:
    """Write a GIF with one palette for all pictures, without dithering: a quarter of the bytes."""
    from PIL import Image as Images

    frames = []
    for number, picture in enumerate(pictures):
        frames.append(Images.fromarray(picture))
        progress(number + 1, count)
    # of all the film: what comes up later has its colours, too
    subset = frames[:: max(1, len(frames) // 8)]
    montage = Images.fromarray(np.concatenate([np.asarray(item) for item in subset]))
    palette = montage.quantize(COLOURS, Images.Quantize.MAXCOVERAGE, dither=Images.Dither.NONE)
    drawn = [item.quantize(palette=palette, dither=Images.Dither.NONE) for item in frames]
    # a hundredth of a second is a GIF's unit
    drawn[0].save(path, format="gif", save_all=True, append_images=drawn[1:], duration=round(1000.0 / rate), loop=0)


def slow_motion(recording: Recording) -> float:
    """Return the speed at which the fastest beat of the joints is visible, at MAX_SHOWN_HZ or less.

    The beat is the frequency at which the joints' motion has most of its power.

    Parameters
    ----------
    recording : Recording
        The recording.

    Returns
    -------
    float
        1 for a robot that beats slowly.
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
    if beat <= MAX_BEAT_HZ:
        return 1.0
    return next((slow for slow in SLOW if slow * beat <= MAX_SHOWN_HZ), SLOW[-1])


@dataclass
class Filming:
    """Renderer with its camera on one recording; a context manager.

    Attributes
    ----------
    recording : Recording
        The recording.
    take : Take
        Settings of the film.
    size : tuple[int, int]
        Width and height, pixels.
    speed : float
        Speed of the film against simulated time.
    rows : Sequence[int] | None, optional
        States that the camera must show; None: all.
    """

    recording: Recording
    take: Take
    size: tuple[int, int]
    speed: float
    rows: Sequence[int] | None = None
    _closing: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> Filming:
        """Make the renderer."""
        from rtmms.view.render import Renderer, VisibleParts

        run, (wide, high) = self.recording, self.size
        self._picture = picture = Picture(run.info)
        first = picture.draw(run.outputs(0))
        picture.measure(first)
        self._paths = picture.paths(run)
        self._thinned_paths = [_apart(path, picture.size * GRAIN) for path in self._paths]
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
            VisibleParts(path=self.take.path, forces=self.take.forces, model=self.take.model, axes=self.take.axes),
            wide,
            high,
            ghost=first.ghost is not None,
        )
        self._closing.append(self._renderer.close)
        deadlines = has_deadlines(run) if self.take.deadlines is None else self.take.deadlines
        scenery = SCENERIES[self._scene]
        names = (", ".join(run.info.robots) or robot_title(run.info.robot)[0]) if self.take.title else ""
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
        """End the renderer."""
        for close in self._closing:
            close()

    def _sampled(self) -> tuple[list[Array], float]:
        """Return (n, 3) m of some states, from the body's origin along the world's axes.

        Z of the lowest point of the run.
        """
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
        self._targets = smooth_path(path, run.time, self._picture.size) + middle

    def picture(self, k: int) -> Image:
        """Render a state.

        Parameters
        ----------
        k : int
            Index of the state.

        Returns
        -------
        Image
            (high, wide, 3).
        """
        run, renderer = self.recording, self._renderer
        drawn, time = self._picture.draw(run.outputs(k)), float(run.time[k])
        renderer.show(drawn)
        cloud = self._picture.points(drawn)
        body = cloud @ quaternion_matrix(np.array(drawn.pose[1])).T if len(cloud) else np.zeros((1, 3))
        renderer.trace([
            behind(np.vstack([path[shown_rows[: np.searchsorted(shown_rows, k)]], path[k]]), body)
            for path, shown_rows in zip(self._paths, self._thinned_paths, strict=True)
        ])  # fmt: skip
        points = run.tracked(time)
        renderer.aim(planned_course(points), goal(points, drawn.pose, self._picture.size), drawn.pose[0])
        renderer.ahead(planned_motions(points), candidate_motions(points))
        target = self._targets[k]
        renderer.stream(self._picture.current, target)
        renderer.look(target + self._distance * FROM, target)
        note = "" if self.speed == 1.0 else f"{self.speed:g} x real time"
        return self._overlay.write(renderer.shoot(), time, note)


def behind(path: Array, body: Array) -> Array:
    """Return the path up to where the robot begins: a line through its body would hide it.

    Parameters
    ----------
    path : Array
        (n, 3) m, path of the body's origin; the last point is its present place.
    body : Array
        (k, 3) m, points of the robot from the body's origin, along the world's axes.

    Returns
    -------
    Array
        Part of the path.
    """
    back = path - path[-1]
    away, reach = np.linalg.norm(back, axis=1), float(np.linalg.norm(body, axis=1).max())
    far = np.flatnonzero(away > reach)
    if not len(far):
        return path[:0]
    ahead = -back[far[-1]] / away[far[-1]]
    outside = (back @ ahead < (body @ ahead).min()) | (away > reach)
    return path[: int(np.flatnonzero(outside)[-1]) + 1]


def _apart(path: Array, least: float) -> Any:
    """Return the rows of a path that are so far apart along it, m: pieces shorter than a pixel leave gaps."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    return np.unique(np.searchsorted(along, np.arange(0.0, along[-1] + least, least)).clip(0, len(path) - 1))


def pictures(recording: Recording, at: Sequence[int], take: Take, size: tuple[int, int]) -> list[Image]:
    """Render some states of a run.

    Parameters
    ----------
    recording : Recording
        The recording.
    at : Sequence[int]
        Indices of the states.
    take : Take
        Settings of the pictures.
    size : tuple[int, int]
        Width and height, pixels.

    Returns
    -------
    list[Image]
        (high, wide, 3) each.
    """
    with Filming(recording, take, size, 1.0, list(at)) as filming:
        return [filming.picture(k) for k in at]


# What is written over a rendered picture: the robot's name and the time, a scale, the deadlines of all steps.


MISSED = (233, 180, 76)
OVERRUN = (214, 69, 65)
USED = (23, 163, 152)
SLACK = (226, 234, 238)


@lru_cache(maxsize=8)
def _font(size: int) -> Any:
    import matplotlib

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)


def nice(length: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not longer.

    Parameters
    ----------
    length : float
        Any length.

    Returns
    -------
    float
        In the same unit.

    Examples
    --------
    >>> from rtmms.view.film import nice
    >>> nice(3.7)
    2.0
    """
    power = 10.0 ** floor(log10(max(length, 1e-9)))
    return float(max((k * power for k in (1.0, 2.0, 5.0) if k * power <= length * (1.0 + 1e-9)), default=power))


def metres(length: float) -> str:
    """Return a length as text: 1 m, 10 cm, 5 mm.

    Parameters
    ----------
    length : float
        Length, m.

    Returns
    -------
    str
        With its unit.

    Examples
    --------
    >>> from rtmms.view.film import metres
    >>> metres(0.05)
    '5 cm'
    """
    for unit, size in (("m", 1.0), ("cm", 0.01), ("mm", 0.001)):
        if length >= 0.999 * size:
            return f"{length / size:g} {unit}"
    return f"{length:g} m"


class Overlay:
    """Text, scale and deadlines over the pictures of one run.

    Parameters
    ----------
    wide, high : int
        Pixels.
    words : str
        Text before the time, '' for neither.
    colour : Colour
        Colour of the text.
    grid_m : float | None
        Cell of the floor, m; None without a floor.
    m_a_pixel : float
        Metres of a pixel at the robot.
    deadlines : Recording | None, optional
        Recording with the deadlines, None to leave them out.
    """

    def __init__(
        self,
        wide: int,
        high: int,
        title: str,
        colour: Colour,
        *,
        grid_m: float | None,
        m_a_pixel: float,
        deadlines: Recording | None = None,
    ) -> None:
        self._wide, self._high, self._title, self._colour = wide, high, title, colour
        self._unit = max(high / 720.0, 0.5)
        self._bar_m = nice(0.16 * wide * m_a_pixel)
        self._bar = self._bar_m / m_a_pixel
        self._grid = grid_m
        self._strip = (
            None if deadlines is None else _strip(deadlines, wide - int(48 * self._unit), int(26 * self._unit))
        )
        self._last = 1.0 if deadlines is None else max(float(deadlines.time[-1]), 1e-9)
        self._counts = (
            ""
            if deadlines is None
            else (
                f"deadlines of {len(deadlines.steps)} steps: {int(deadlines.missed.sum())} missed (yellow), "
                f"{int(deadlines.overrun.sum())} overruns (red); height: share of the period in use"
            )
        )

    def write(self, picture: Image, time: float, note: str = "") -> Image:
        """Write the overlay on a picture.

        Parameters
        ----------
        picture : Image
            (high, wide, 3) picture.
        time : float
            Time, s.
        note : str, default ''
            A second line.

        Returns
        -------
        Image
            (high, wide, 3).
        """
        built = Images.fromarray(picture)
        pen, u = ImageDraw.Draw(built), self._unit
        font, small = _font(round(20 * u)), _font(round(14 * u))
        if self._title:
            pen.text((24 * u, 18 * u), f"{self._title}   {time:.2f} s", self._colour, font)
        if note:
            pen.text((24 * u, 46 * u), note, self._colour, small)
        foot = self._high - 24 * u
        if self._strip is not None:
            left, top = int(24 * u), int(self._high - 20 * u - self._strip.shape[0])
            built.paste(Images.fromarray(self._strip), (left, top))
            at = left + time / self._last * self._strip.shape[1]
            pen.line([(at, top - 4 * u), (at, top + self._strip.shape[0] + 4 * u)], self._colour, max(1, round(2 * u)))
            pen.text((left, top - 20 * u), self._counts, self._colour, small)
            foot = top - 34 * u
        right = self._wide - 24 * u
        pen.line([(right - self._bar, foot), (right, foot)], self._colour, max(1, round(3 * u)))
        for end in (right - self._bar, right):
            pen.line([(end, foot - 5 * u), (end, foot + 5 * u)], self._colour, max(1, round(2 * u)))
        caption = metres(self._bar_m) + (f"   grid {metres(self._grid)}" if self._grid else "")
        pen.text((right, foot - 10 * u), caption, self._colour, small, anchor="rs")
        return np.asarray(built)


def _strip(run: Recording, wide: int, high: int) -> Image:
    """Draw the share of its period that the slowest step of each instant took, with misses and overruns."""
    period = np.nansum(run.times_us, axis=1)
    used = np.nansum(run.times_us[:, : PARTS.index("slack")], axis=1) / np.maximum(period, 1e-9)
    at = np.minimum((np.arange(len(used)) * wide) // max(len(used), 1), wide - 1)
    column, missed, overrun = np.zeros(wide), np.zeros(wide, bool), np.zeros(wide, bool)
    np.maximum.at(column, at, np.clip(np.nan_to_num(used), 0.0, 1.0))
    np.logical_or.at(missed, at, run.missed)
    np.logical_or.at(overrun, at, run.overrun)
    built = np.empty((high, wide, 3), np.uint8)
    built[:] = SLACK
    level = np.arange(high)[::-1, None] / high
    built[level < column[None]] = USED
    built[:, missed], built[:, overrun] = MISSED, OVERRUN
    return built


def has_deadlines(run: Recording) -> bool:
    """Return whether the steps of a recording had deadlines, as in real time.

    Parameters
    ----------
    run : Recording
        The recording.

    Returns
    -------
    bool
        True where they had.
    """
    return run.info.mode in ("realtime", "external") and bool(np.isfinite(run.times_us).any())
