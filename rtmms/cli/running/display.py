"""Status of a run on a shared page (the board), and the live display, which is another process.

The display reads the board and the output of the children, and writes to standard error: on a terminal it redraws two
lines, elsewhere it prints a plain line every five seconds. The plant's process never waits for it.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import safe_text
from rtmms.base.processes import end_with_parent
from rtmms.base.terminal import console, print_text

if TYPE_CHECKING:
    from rich.live import Live


REFRESH_S = 0.1
PLAIN_REFRESH_S = 5.0
MAX_LINE_LENGTH = 400
COLUMNS = 80


def speed(outputs: Mapping[str, Any]) -> float | None:
    """Return the speed along body x.

    Parameters
    ----------
    outputs : Mapping[str, Any]
        Outputs by name.

    Returns
    -------
    float | None
        m/s; None for a plant without a velocity.
    """
    velocity = outputs.get("velocity")
    return float(velocity[0]) if isinstance(velocity, list) and len(velocity) == 3 else None


def height(outputs: Mapping[str, Any]) -> float | None:
    """Return the height above the origin of the world frame (z up).

    Parameters
    ----------
    outputs : Mapping[str, Any]
        Outputs by name.

    Returns
    -------
    float | None
        m; None for a plant without a position.
    """
    position = outputs.get("position")
    return float(position[2]) if isinstance(position, list) and len(position) == 3 else None


def level(outputs: Mapping[str, Any], medium: str) -> tuple[str, float | None]:
    """Return the name of the height in a medium, and its value.

    It is `depth`, positive down, in water; `altitude`, up, in air; `z` where the plant reports no medium.

    Parameters
    ----------
    outputs : Mapping[str, Any]
        Outputs by name.
    medium : str
        'water', 'air' or ''.

    Returns
    -------
    tuple[str, float | None]
        Name, and m.
    """
    result = height(outputs)
    if medium == "water":
        return "depth", None if result is None else 0.0 - result
    return "altitude" if medium == "air" else "z", result


def heading(outputs: Mapping[str, Any]) -> float | None:
    """Return the yaw from the quaternion w, x, y, z.

    Parameters
    ----------
    outputs : Mapping[str, Any]
        Outputs by name.

    Returns
    -------
    float | None
        deg; None for a plant without a quaternion.
    """
    quaternion = outputs.get("quaternion")
    if not isinstance(quaternion, list) or len(quaternion) != 4:
        return None
    w, x, y, z = quaternion
    return math.degrees(math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


Facts = list[tuple[str, str]]


def facts(content: Mapping[str, Any]) -> tuple[Facts, Facts]:
    """Return (label, value) pairs of the robot, and of the loop, as far as they are known.

    Parameters
    ----------
    content : Mapping[str, Any]
        Content of the board.

    Returns
    -------
    tuple[Facts, Facts]
        Robot and loop.
    """
    outputs = content.get("outputs", {})
    duration = content.get("duration_s")
    time_s = f"{content.get('time_s', 0.0):.1f}" + (f" / {duration:g} s" if duration is not None else " s")
    robot: Facts = [("time", time_s)]
    upright, metres = level(outputs, content.get("medium", ""))
    for label, result, form in (
        ("speed", speed(outputs), "{:.3f} m/s"), (upright, metres, "{:z.2f} m"),
        ("heading", heading(outputs), "{:.0f} deg"),
    ):  # fmt: skip
        if result is not None:
            robot.append((label, form.format(result)))
    loop: Facts = [("misses", str(content.get("misses", 0))), ("overruns", str(content.get("overruns", 0)))]
    if content.get("stale"):
        loop.insert(0, ("stale", str(content["stale"])))
    if content.get("exchange_p99_us") is not None:
        loop.append(("exchange p99", f"{content['exchange_p99_us']:.0f} us"))
    if content.get("real_time_factor") is not None:
        loop.append(("real time x", f"{content['real_time_factor']:.3g}"))
    return robot, loop


class ChildOutput:
    """Output of the children, line by line.

    Parameters
    ----------
    files : Mapping[str, int]
        File descriptors by name.
    """

    def __init__(self, files: Mapping[str, int]) -> None:
        self.files, self.read = dict(files), dict.fromkeys(files, 0)

    def new_lines(self) -> list[str]:
        """Return the whole lines since the last call, each with its author's name.

        Returns
        -------
        list[str]
            Lines.
        """
        lines: list[str] = []
        for name, descriptor in self.files.items():
            text = os.pread(descriptor, 1 << 16, self.read[name])
            whole = text[: text.rfind(b"\n") + 1] if len(text) < 1 << 16 else text
            self.read[name] += len(whole)
            lines += [
                f"{name}: {line[:MAX_LINE_LENGTH]}" for line in whole.decode(errors="replace").splitlines() if line
            ]
        return lines


class LineDisplay:
    """Display as lines for a log file."""

    def __init__(self) -> None:
        self.shown_s, self.phase = -PLAIN_REFRESH_S, ""

    def write_line(self, line: str) -> None:
        """Print a line.

        Parameters
        ----------
        line : str
            The line.
        """
        print_text(line, err=True)

    def show(self, content: Mapping[str, Any] | None, now_s: float) -> None:
        """Print a line about the run, if it is due.

        Parameters
        ----------
        content : Mapping[str, Any] | None
            Content of the board; None: nothing yet.
        now_s : float
            Monotonic time, s.
        """
        phase = (content or {}).get("phase", "starting")
        new_phase = phase != self.phase and phase not in ("starting", "done")
        if phase == "done" or (not new_phase and now_s - self.shown_s < PLAIN_REFRESH_S):
            return
        self.shown_s, self.phase = now_s, phase
        if content is not None and phase == "running":
            robot, loop = facts(content)
            line = ""
            for label, text in (robot[0], *loop[:2], *robot[1:], *loop[2:]):  # what matters most first
                longer = f"{line}  {label} {text}".lstrip()
                line = longer if len(longer) < COLUMNS else line
            self.write_line(line)
        elif new_phase:
            self.write_line(f"{phase} ...")

    def close(self) -> None:
        """Do nothing."""
        ...


class Terminal:
    """Display on a terminal: a line for each phase of the start, when the plant may print too.

    Then two lines, redrawn.
    """

    def __init__(self) -> None:
        self.console, self.phase = console(err=True), ""
        self.live: Live | None = None

    def write_line(self, line: str) -> None:
        """Print a line above the redrawn ones.

        Parameters
        ----------
        line : str
            The line.
        """
        from rich.text import Text

        self.console.print(Text(safe_text(line)))

    def show(self, content: Mapping[str, Any] | None, now_s: float) -> None:
        """Redraw the lines, or print a new phase.

        Parameters
        ----------
        content : Mapping[str, Any] | None
            Content of the board; None: nothing yet.
        now_s : float
            Monotonic time, s.
        """
        phase = (content or {}).get("phase", "")
        if content is not None and phase == "running":
            self._redraw(content)
        elif phase not in ("", "done", "starting", self.phase):
            self.close()
            self.write_line(f"{phase} ...")
        self.phase = phase

    def _redraw(self, content: Mapping[str, Any]) -> None:
        from rich.live import Live
        from rich.text import Text

        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False, transient=True)
            self.live.start()
        line = Text(no_wrap=True, overflow="ellipsis")
        for number, pairs in enumerate(facts(content)):
            line.append("\n" * number)
            for label, text in pairs:
                line.append(f"{label} ", style="dim").append(f"{safe_text(text)}   ", style="bold")
        self.live.update(line, refresh=True)

    def close(self) -> None:
        """End the redrawn lines."""
        if self.live is not None:
            self.live.stop()
            self.live = None


def show_until_done(board: Board, child_output: ChildOutput, screen: LineDisplay | Terminal) -> None:
    """Show the content of the board until the run is done or gone.

    Parameters
    ----------
    board : Board
        The board.
    child_output : ChildOutput
        Output of the children.
    screen : LineDisplay | Terminal
        The display.
    """
    begun, parent, shown = time.monotonic(), os.getppid(), 0
    while os.getppid() == parent:
        content = board.read()
        for line in child_output.new_lines():
            screen.write_line(line)
        messages = (content or {}).get("messages", [])
        for line in messages[shown:]:
            screen.write_line(line)
        shown = max(shown, len(messages))
        screen.show(content, time.monotonic() - begun)
        if content is not None and content.get("phase") == "done":
            break
        time.sleep(REFRESH_S)
    for line in child_output.new_lines():
        screen.write_line(line)
    screen.close()


def main(arguments: list[str]) -> None:
    """Run the display: `python -m rtmms.cli.running.display BOARD_FD [NAME=FD ...]`.

    Parameters
    ----------
    arguments : list[str]
        File descriptors of the board and of the children's output.
    """
    end_with_parent()
    files = {name: int(descriptor) for name, _, descriptor in (word.rpartition("=") for word in arguments[1:])}
    screen = Terminal() if sys.stderr.isatty() else LineDisplay()
    show_until_done(Board(int(arguments[0])), ChildOutput(files), screen)


# --- The board: one page of memory on which a run shows its display how it goes. Writing never waits for a reader.

PAGE_BYTES = 1 << 14
_HEAD = struct.Struct("<QQ")


class Board:
    """Page shared by file descriptor: a counter, odd while it is written, a length, and a JSON object.

    Parameters
    ----------
    descriptor : int | None, optional
        The page; None: a new one (in the run).
    """

    def __init__(self, descriptor: int | None = None) -> None:
        """Make a new page, or open that of a descriptor."""
        if descriptor is None:
            with tempfile.TemporaryFile() as file:
                os.ftruncate(file.fileno(), PAGE_BYTES)
                descriptor = os.dup(file.fileno())
        self.descriptor = descriptor
        self._page = mmap.mmap(descriptor, PAGE_BYTES)
        self._count = 0

    def write(self, content: dict[str, Any]) -> None:
        """Replace the content; one that does not fit is left out as a whole.

        Parameters
        ----------
        content : dict[str, Any]
            The JSON object.
        """
        text = json.dumps(content).encode()
        if len(text) > PAGE_BYTES - _HEAD.size:
            return
        _HEAD.pack_into(self._page, 0, self._count + 1, len(text))
        self._page[_HEAD.size : _HEAD.size + len(text)] = text
        self._count += 2
        _HEAD.pack_into(self._page, 0, self._count, len(text))

    def read(self) -> dict[str, Any] | None:
        """Return the content.

        Returns
        -------
        dict[str, Any] | None
            None when there is nothing yet or it is being written.
        """
        count, length = _HEAD.unpack_from(self._page, 0)
        if count == 0 or count % 2:
            return None
        text = self._page[_HEAD.size : _HEAD.size + length]
        if _HEAD.unpack_from(self._page, 0)[0] != count:
            return None
        content: dict[str, Any] = json.loads(text)
        return content

    def close(self) -> None:
        """Close the page."""
        self._page.close()
        os.close(self.descriptor)


# --- What a run reports while it goes: its phase and messages, to the display or, without one, to standard error.

MAX_MESSAGES = 50


class RunProgress:
    """Phase and messages of a run.

    Parameters
    ----------
    silent : bool
        There is no display.

    Attributes
    ----------
    phase : str
        Present phase of the run.
    messages : list of str
        Messages for the display.
    """

    def __init__(self, *, silent: bool) -> None:
        self.board, self.silent, self.phase = Board(), silent, "starting"
        self.messages: list[str] = []

    def report(self, phase: str, message: str = "") -> None:
        """Set the phase, and add a message.

        Parameters
        ----------
        phase : str
            The phase, '' for the same.
        message : str, default ''
            The message, '' for none.
        """
        self.phase = phase or self.phase
        self.note([message] if message else [])
        self.board.write({"phase": self.phase, "messages": self.messages})

    def note(self, messages: list[str]) -> None:
        """Add messages for the display, up to a limit, as a repeated fault must not fill the memory.

        Without a display they are printed here, except within the run.

        Parameters
        ----------
        messages : list[str]
            The messages.
        """
        self.messages.extend(messages[: MAX_MESSAGES - len(self.messages)])
        if self.silent and self.phase != "running":
            self.write_messages()

    def write_messages(self) -> None:
        """Print all messages to standard error."""
        for message in self.messages:
            print_text(message, err=True)
        self.messages.clear()


if __name__ == "__main__":
    main(sys.argv[1:])
