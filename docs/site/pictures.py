"""Draws the pictures of robots in docs/images: `make pictures`. Needs the extra `view`; playwright and Chromium for
the one of the browser.

images/view.png           the manta in the browser, from a log
images/manta.gif          ten seconds of the manta, a film for the README
images/robots/NAME.png    each robot, after a while with its own controller

`pictures.py NAME...` draws those alone (`view` and `film` are names, too).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rtmms.base.spatial import quaternion_matrix
from rtmms.record.log import open_log
from rtmms.view.camera import FROM
from rtmms.view.film import Take, pictures, write_film
from rtmms.view.recording import Recording, read_recording
from rtmms.view.scene import Picture

IMAGES = Path(__file__).parents[1] / "images"
PROGRAM = [sys.executable, "-m", "rtmms"]
AT_S = 4.0
ROBOTS_S = {"quadrotor": 3.0, "torpedo": 6.0, "fish": 4.0, "snake": 8.0, "snakeboard": 8.0, "trikke": 8.0,
            "roller_racer": 8.0, "unicycle": 6.0, "purcell": 8.0, "fluid_swimmer": 8.0, "manta": 5.0, "eel": 8.0,
            "continuous_eel": 8.0, "cat": 2.6, "modal_moth": 0.3}  # fmt: skip
"""How long each is run, s of simulated time; others 1.5 s."""
COLOURS = 224
"""Of a picture: enough for shaded surfaces, and a fifth of the bytes."""
SIZE = (960, 540)
FILM = Take(forces=True, deadlines=False, start_s=2.0, end_s=8.0, size=(720, 404))
BEATING = ("moth", "modal_moth")
"""Shown in that one of the last states in which they are spread out most."""


def logged(robot: str, folder: Path, duration_s: float) -> Path:
    path = folder / f"{robot}.mcap"
    arguments = ["run", robot, "--mode", "lockstep", "--duration", str(duration_s), "--quiet", "--log", str(path)]
    subprocess.run([*PROGRAM, *arguments], check=True, stdout=subprocess.DEVNULL)
    return path


def painted(log: Path, to: Path) -> None:
    recording = read_recording(open_log(log))
    picture = Picture(recording.info)
    at = len(recording.time) - 1
    if recording.info.robot in BEATING:
        at = max(range(at - 200, at), key=lambda k: _spread(picture, recording, k))
    on_ground = picture.visual is not None and picture.visual.ground is not None
    written(pictures(recording, [at], Take(deadlines=False, title=False, path=on_ground), SIZE)[0], to)


def _spread(picture: Picture, recording: Recording, k: int) -> float:
    """How wide the robot is to the eye."""
    drawn = picture.draw(recording.outputs(k))
    world = picture.points(drawn) @ quaternion_matrix(np.array(drawn.pose[1])).T
    right = np.cross([0.0, 0.0, 1.0], FROM)
    return float(np.ptp(world @ right) * np.ptp(world @ np.cross(FROM, right)))


def written(picture: Any, to: Path) -> None:
    """As few bytes as can be."""
    Image.fromarray(picture).quantize(COLOURS, dither=Image.Dither.NONE).save(to, optimize=True)


def browsed(log: Path, to: Path) -> None:
    from playwright.sync_api import sync_playwright

    viewer = subprocess.Popen([*PROGRAM, "view", str(log)], stderr=subprocess.PIPE, text=True)
    assert viewer.stderr is not None
    address = ""
    while not address:
        match = re.search(r"(http://\S+)", viewer.stderr.readline())
        address = match.group(1) if match else ""
    arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page(viewport={"width": 1200, "height": 675})
        page.goto(address)
        slider = page.get_by_role("slider").first
        slider.wait_for()
        page.get_by_label("forces").check()
        page.wait_for_timeout(1000.0 * AT_S)
        page.get_by_text("play", exact=True).click()
        page.get_by_text("Software WebGL").locator("xpath=ancestor::*[3]").evaluate("node => node.remove()")
        page.wait_for_timeout(4000)
        page.screenshot(path=str(to))
        with Image.open(to) as shot:
            shot.load()
        written(np.asarray(shot.convert("RGB")), to)
        browser.close()
    viewer.terminate()


def main() -> None:
    (IMAGES / "robots").mkdir(exist_ok=True)
    listing = subprocess.run([*PROGRAM, "list", "robots", "--json"], check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = sys.argv[1:] or [*(robot["name"] for robot in json.loads(listing)["robots"]), "view", "film"]
        for name in names:
            print(name, flush=True)
            if name == "view":
                browsed(logged("manta", folder, 10.0), IMAGES / "view.png")
            elif name == "film":
                run = read_recording(open_log(logged("manta", folder, 10.0)))
                write_film(run, IMAGES / "manta.gif", lambda done, total: None, FILM)
            else:
                painted(logged(name, folder, ROBOTS_S.get(name, 1.5)), IMAGES / "robots" / f"{name}.png")


if __name__ == "__main__":
    main()
