"""FFmpeg in a process of its own, which encodes pictures as an MP4 film and reports whether all of it was written."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy.typing as npt

from rtmms.errors import ModelError
from rtmms.whole_file import unwritten

CONSTANT_RATE_FACTOR = 15
"""Quality of x264, from 0 (lossless) to 51."""
MAX_LINES = 20
"""Of FFmpeg's own messages, kept for the error."""


class Encoder:
    """Writes pictures to a film; `close` reports whether FFmpeg wrote all of it.

    Parameters
    ----------
    program : str
        FFmpeg's file.
    part : Path
        Where the film is written.
    path : Path
        The name that the user gave, for errors.
    size : tuple of int
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
        """Encode one picture, (high, wide, 3) bytes. RtmmsError where FFmpeg has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(picture.tobytes())
        except OSError:  # the pipe is broken: its status says why
            self.close()
            raise unwritten(self._path, "-o", "FFmpeg ended before the film did") from None

    def close(self) -> None:
        """End the film. RtmmsError where FFmpeg did not write all of it."""
        assert self._process.stdin is not None
        with suppress(OSError):  # its status says why
            self._process.stdin.close()
        status = self._process.wait()
        self._reader.join()
        if status:
            raise unwritten(self._path, "-o", f"FFmpeg {self._reason(status)}")

    def kill(self) -> None:
        """End FFmpeg, where it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._reader.join()

    def _read(self, stream: IO[bytes]) -> None:
        """Take FFmpeg's messages, so that it never waits for a reader."""
        with stream:
            self._lines.extend(line.decode(errors="replace").strip() for line in stream)

    def _reason(self, status: int) -> str:
        """Return how it ended, with its first message."""
        line = next((one for one in self._lines if one), "")
        if status < 0:
            with suppress(ValueError):
                return f"was ended by the signal {signal.Signals(-status).name}" + f" ({line})" * bool(line)
        return f"failed: {line or f'exit status {status}'}"


@contextmanager
def encoder(part: Path, path: Path, size: tuple[int, int], rate_hz: float) -> Iterator[Encoder]:
    """Within: an encoder, which is closed at the end. ModelError where FFmpeg is missing; RtmmsError of `close`."""
    import imageio_ffmpeg

    try:
        program = imageio_ffmpeg.get_ffmpeg_exe()
        made = Encoder(program, part, path, size, rate_hz)
    except (RuntimeError, OSError) as fault:
        raise ModelError(f"films need FFmpeg: {fault}; pip install 'rtmms[film]', or set IMAGEIO_FFMPEG_EXE") from None
    try:
        yield made
        made.close()
    finally:
        made.kill()
