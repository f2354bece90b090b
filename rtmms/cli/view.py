"""rtmms view, rtmms movie: a robot in the browser, live or from its log; a run as a page or a film."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtmms.base.errors import ModelError
from rtmms.base.files import KINDS, refuse_output
from rtmms.base.terminal import console, print_text
from rtmms.cli.option_types import Range
from rtmms.wire.addresses import EXCHANGE

if TYPE_CHECKING:
    from rtmms.view.recording import Recording


@click.command("view")
@click.argument("file", metavar="[LOG]", required=False, type=click.Path(path_type=Path))
@click.option("--exchange", default=EXCHANGE, show_default=True, help="Exchange endpoint of a plant that runs.")
@click.option("--telemetry", default=None, metavar="ENDPOINT", help="Telemetry endpoint of a plant that runs.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the page is served.")
@click.option("--port", default=0, type=click.IntRange(0, 65535),
              help="Where the page is served; 8080, or one that is free, if not given.")  # fmt: skip
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the log's run as one page that plays without a server, and end.")  # fmt: skip
@click.option("--keys", type=click.Path(path_type=Path), metavar="DIR", help="Folder of keys, for a plant that asks.")
def view(
    file: Path | None, exchange: str, telemetry: str | None, host: str, port: int, html: Path | None, keys: Path | None
) -> int | None:
    """Show a robot in the browser: LOG (from run --log), or the plant that runs."""
    if file is None:
        if html is not None:
            raise click.UsageError("--html: expected a LOG with it; name one")
        _live(exchange, telemetry, host, port, keys)
        return 0
    if telemetry is not None:
        raise click.UsageError("--telemetry: expected no LOG with it; give one of the two")
    if html is not None:
        return _page(file, html)
    return _play(file, host, port)


@click.command("movie")
@click.argument("file", metavar="LOG", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False),
              metavar="FILE.mp4|gif|png", help="Where to write it; the ending sets the format.")  # fmt: skip
@click.option("--speed", default=None, type=Range(0.001, 100.0),
              help="Speed of the film against simulated time; default 1, or slow motion of fast limbs.")  # fmt: skip
@click.option("--camera", type=click.Choice(("follow", "fixed")), default="follow", show_default=True,
              help="Camera that goes along with the robot, or that stands still and sees the whole path.")  # fmt: skip
@click.option(
    "--from", "start", default=0.0, type=Range(min=0.0), metavar="S", help="Simulated time at which the film begins."
)
@click.option("--to", "end", default=None, type=Range(min=0.0), metavar="S",
              help="Simulated time at which the film ends; a .png shows this instant; default the last.")  # fmt: skip
@click.option("--size", default=None, metavar="WIDExHIGH", help="Pixels, such as 1280x720; 640x360 of a GIF.")
@click.option("--forces", is_flag=True, help="Show the forces on the robot.")
@click.option("--model", is_flag=True, help="Show the model's own links within the robot.")
@click.option("--axes", is_flag=True, help="Show the body's axes: x red, y green, z blue.")
@click.option("--deadlines/--no-deadlines", default=None,
              help="Show what each step took of its period; of runs in real time, if not given.")  # fmt: skip
def movie(file: Path, output: Path, speed: float | None, camera: str, start: float, end: float | None, size: str | None,
          forces: bool, model: bool, axes: bool, deadlines: bool | None) -> int:  # fmt: skip
    """Render the run that LOG holds as a film, or one picture of it; needs no display."""
    from rtmms.record.log import drawing
    from rtmms.view.film import STILLS, Take, refuse_ending, write_film, write_still

    refuse_ending(output)
    refuse_output(output, "-o", KINDS[output.suffix.lower()], (file,))
    take = Take(speed=speed, follow=camera == "follow", size=_pixels(size), forces=forces, model=model, axes=axes,
                deadlines=deadlines, start_s=start, end_s=end)  # fmt: skip
    recording = _recording(file)
    if output.suffix.lower() in STILLS:
        if start:
            raise ModelError(f"--from {start:g}: expected none for a picture, which shows the instant of --to")
        with drawing(file):
            write_still(recording, output, end, take)
        print_text(f"{output}: 1 picture", err=True)
        return 0
    with _bar(f"rendering {output.name}") as progress, drawing(file):
        count = write_film(recording, output, progress, take)
    print_text(f"{output}: {count} pictures", err=True)
    return 0


def _pixels(size_text: str | None) -> tuple[int, int] | None:
    """Return width and height; even numbers, which a film needs."""
    if size_text is None:
        return None
    wide, _, high = size_text.partition("x")
    if not (wide.isdigit() and high.isdigit() and 64 <= int(wide) <= 7680 and 64 <= int(high) <= 4320):
        raise ModelError(f"--size: expected WIDExHIGH from 64x64 to 7680x4320, got '{size_text}'")
    return int(wide) // 2 * 2, int(high) // 2 * 2


def _page(file: Path, html: Path) -> int:
    from rtmms.record.log import drawing
    from rtmms.view.page import write_page

    refuse_output(html, "--html", KINDS[".html"], (file,))
    recording = _recording(file)
    with _bar(f"writing {html.name}") as progress, drawing(file):
        size = write_page(recording, html, progress)
    print_text(f"{html}: {size / 1e6:.1f} MB", err=True)
    return 0


def _play(file: Path, host: str, port: int) -> int:
    from rtmms.record.log import drawing
    from rtmms.view.player import Player
    from rtmms.view.stage import end, serve

    recording = _recording(file)
    server = serve(host, port, f"rtmms {recording.info.robot}")
    stopped = threading.Event()
    try:
        with drawing(file):
            player = Player(server, recording)
        print_text(f"rtmms view: open http://{host}:{server.get_port()} in a browser; Ctrl-C ends it", err=True)
        player.run(stopped.is_set)
    except KeyboardInterrupt:
        pass
    finally:
        end(server)
    return 0


def _live(exchange: str, telemetry: str | None, host: str, port: int, keys: Path | None) -> None:
    from rtmms.cli.bridge import bridge

    if telemetry is not None:
        exchange = _derive_exchange(telemetry)
    meant = f",telemetry={telemetry}" if telemetry is not None else ""
    arguments = [f"view:host={host},port={port}{meant}", "--exchange", exchange, "--stay"]
    bridge.main([*arguments, *(["--keys", str(keys)] if keys else [])], standalone_mode=False)


def _derive_exchange(telemetry: str) -> str:
    """Return the exchange endpoint of a plant from its telemetry, which alone does not define its numbers."""
    head, _, port = telemetry.rpartition(":")
    if not head.startswith("tcp://") or not port.isdigit() or int(port) < 3:
        raise ModelError(
            f"--telemetry {telemetry}: expected tcp://HOST:PORT of a plant with its exchange at PORT - 2, got another "
            "address; name the exchange with --exchange ENDPOINT"
        )
    return f"{head}:{int(port) - 2}"


def _recording(file: Path) -> Recording:
    from rtmms.cli.log import report_damage
    from rtmms.record.log import open_log
    from rtmms.view.recording import read_recording

    log = open_log(file)
    steps, _ = log.count_steps()
    with _bar(f"reading {file.name}") as progress:
        recording = read_recording(log, lambda done: progress(done, max(steps, 1)))
    report_damage(log)
    return recording


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Return a progress bar on standard error."""
    from rich.progress import Progress

    with Progress(console=console(err=True), transient=True) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
