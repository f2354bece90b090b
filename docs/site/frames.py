"""Draws docs/images/frames: each robot at rest with its body's axes, x red, y green, z blue: `make frames`. Needs the
extra `film`.

`frames.py NAME...` draws those alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pictures import PROGRAM, logged, written

from rtmms.record.log import open_log
from rtmms.view.film import Take, pictures
from rtmms.view.recording import read_recording

FOLDER = Path(__file__).parents[1] / "images" / "frames"
SIZE = (480, 320)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    listing = subprocess.run([*PROGRAM, "list", "robots", "--json"], check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as place:
        for name in sys.argv[1:] or [robot["name"] for robot in json.loads(listing)["robots"]]:
            print(name, flush=True)
            recording = read_recording(open_log(logged(name, Path(place), 0.1)))
            take = Take(path=False, axes=True, deadlines=False, title=False)
            written(pictures(recording, [0], take, SIZE)[0], FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
