"""A run kept, played back as a page for the browser and as a film, all from Python.

python examples/16_film.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rtmms.record.log import open_log
from rtmms.view.film import Take, write_film
from rtmms.view.page import write_page
from rtmms.view.recording import read_recording


def main(seconds: float = 6.0) -> dict[str, int]:
    """Record a run, write page.html and film.gif; returns their sizes in bytes."""
    log = Path("run.mcap")
    arguments = ("run", "manta", "--mode", "lockstep", "--duration", str(seconds), "--quiet", "--log", str(log))
    subprocess.run([sys.executable, "-m", "rtmms", *arguments], check=True, stdout=subprocess.DEVNULL)
    recording = read_recording(open_log(log))
    print(f"{len(recording.steps)} steps, {len(recording.marks)} late")
    write_page(recording, Path("page.html"), lambda done, total: None)
    write_film(recording, Path("film.gif"), lambda done, total: None, Take(speed=3.0))
    sizes = {name: Path(name).stat().st_size for name in ("page.html", "film.gif")}
    print(", ".join(f"{name}: {size / 1e6:.1f} MB" for name, size in sizes.items()))
    return sizes


if __name__ == "__main__":
    main()
