"""A run in a real browser, from its log and live; as a page and as a film."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.record.log import open_log
from rtmms.view import render
from rtmms.view import stage as plots
from rtmms.view.film import Filming, Take, pictures, slow_motion, write_film, write_still
from rtmms.view.live import View
from rtmms.view.page import write_page
from rtmms.view.recording import Recording, info_of, read_recording
from rtmms.view.scene import DrawnState, Picture
from rtmms.view.stage import Stage, end, serve
from rtmms.wire.protocol.received_state import PlantInfo
from tests.cli.shell import finish, rtmms, start
from tests.view.browser import browsed, coloured, needs_chromium
from tests.view.silhouette import Mask, dark_blue, overlap, silhouette, stored, text

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
ALIKE = 0.8
"""Likeness in shape of two pictures, of which a browser drew one, on whatever draws there."""
SAME = 0.9
"""Likeness in shape of two pictures of a film."""

LATER = """
robot = "quadrotor"
duration = 0.4
[[controller]]
name = "hover"
x_m = 0.1
z_m = 0.1
[[event]]
at_s = 0.2
set = { "hover.z_m" = 0.2 }
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of the manta, the current running, seen through sensors."""
    folder = tmp_path_factory.mktemp("view")
    path = folder / "run.mcap"
    result = rtmms(folder, "run", "manta", "--mode", "lockstep", "--duration", "2", "--quiet", "--log", str(path),
                 "--sensors", "typical", "--set", "current_m_s=0.1,0,0")  # fmt: skip
    assert result.status == 0, result.err
    return path


@pytest.fixture(scope="module")
def recording(log: Path) -> Recording:
    return read_recording(open_log(log))


def test_a_recording_has_every_step(recording: Recording, log: Path) -> None:
    rows = [row for row in open_log(log).rows() if hasattr(row, "times")]
    assert len(recording.time) == len(rows) + 1 == 2001
    assert recording.time[-1] == pytest.approx(2.0)
    np.testing.assert_array_equal(recording.states[700], np.float32(rows[699].outputs))
    assert recording.steps[[0, -1]].tolist() == [0, 1999]
    assert np.isfinite(recording.times_us[5:-5, 2]).all()
    assert recording.marks == []


def test_it_is_drawn_as_the_truth_has_it(recording: Recording) -> None:
    picture = Picture(recording.info)
    drawn = picture.draw(recording.outputs(2000))
    assert picture.shape is not None
    assert drawn.pose[0] == pytest.approx(recording.series("truth.position")[-1])
    tip = recording.series("truth.tip")[-1].reshape(2, 3)
    # the tip is the free end of the front chain or of another: among the points of the fin
    assert min(np.linalg.norm(drawn.skins[0] - tip[0], axis=1)) < 0.05
    thrust = recording.series("truth.thrust")[-1].reshape(2, 6)
    np.testing.assert_allclose(drawn.forces[:, 1], thrust[:, :3], rtol=1e-6)
    assert drawn.forces[0, 0, 1] > 0.0 > drawn.forces[1, 0, 1]  # where the left and the right fin are
    assert picture.current == (0.1, 0.0, 0.0)
    picture.measure(drawn)
    assert 1.0 < picture.size < 3.0


def test_the_info_of_a_log_is_that_of_the_welcome(log: Path) -> None:
    info = info_of(open_log(log))
    assert (info.robot, info.dt, info.mode) == ("manta", 1e-3, "lockstep")
    assert info.parameters["chains"] == 30
    assert info.output("truth.joint_position").shape == (2, 3, 30)


def test_the_set_points_of_a_controller_are_in_the_log_and_in_the_picture(tmp_path: Path) -> None:
    (tmp_path / "later.toml").write_text(LATER)
    result = finish(start(tmp_path, "run", "later.toml", "--mode", "lockstep", "--quiet", "--log", "run.mcap"), 200)
    assert result.status == 0, result.err
    recording = read_recording(open_log(tmp_path / "run.mcap"))
    assert [(points["x_m"], points["z_m"]) for _, points in recording.set_points] == [(0.1, 0.1), (0.1, 0.2)]
    assert recording.set_points[1][0] == pytest.approx(0.2, abs=0.03)
    assert recording.tracked(0.35)["z_m"] == 0.2
    observed, unseen = (shown(run, 150) for run in (recording, replace(recording, set_points=())))
    differing = np.argwhere((observed != unseen).any(axis=2))
    assert 20 < len(differing) < 4000, "the goal is a marker"
    assert (
        len(plots.output_curves("position", recording.time, recording.series("position"), recording.set_points).names)
        == 6
    )


def test_a_planned_motion_and_what_was_tried_beside_it_are_in_the_picture(recording: Recording) -> None:
    x, y, z = recording.series("truth.position")[600].tolist()
    motion = {"planned_motion": f"{x:.2f},{y:.2f},{z + 0.3:.2f} {x + 2.0:.2f},{y:.2f},{z + 0.3:.2f}"}
    tried = {"planned_samples": "60,40,10 60,50,20 60,60,30;60,-40,10 60,-50,20 60,-60,30"}
    alone, extra = (replace(recording, set_points=((0.0, message),)) for message in (motion, motion | tried))
    differing = np.argwhere((shown(alone, 600) != shown(extra, 600)).any(axis=2))
    assert 50 < len(differing) < 8000, "lines of the samples"
    picture = Picture(recording.info)
    drawn = picture.draw(recording.outputs(600))
    server = serve("127.0.0.1", 0, "manta")
    try:
        stage = Stage(server, picture, drawn, model=False)
        stage.aim(motion | tried, drawn)
        assert stage.tried.points.shape == (6, 2, 3)
        np.testing.assert_allclose(stage.tried.points[[0, 3], 0], stage.ahead.points[[0, 0], 0], atol=1e-6)
        np.testing.assert_allclose(stage.tried.points[5, 1], [x + 1.8, y - 1.5, z + 0.9], atol=0.03)
        stage.aim({}, drawn)
        assert not np.asarray(stage.tried.points).any()
    finally:
        end(server)


@needs_chromium
def test_a_page_plays_alone(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    size = write_page(recording, path, lambda done, total: None)
    assert size == path.stat().st_size
    client = 900_000
    assert (size - client) * 30.0 < 5e6 - client, "a minute would be longer than 5 MB"
    with browsed(path.as_uri()) as page:
        page.moving(1280, 600)
        assert page.faults == []
        assert page.strangers == []


@needs_chromium
def test_the_pages_camera_follows(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    write_page(drifting(recording, 20.0), path, lambda done, total: None)
    with browsed(path.as_uri()) as page:
        page.moving(1280, 600)
        page.page.wait_for_timeout(1500)  # 30 m on
        assert 400 < np.argwhere(dark_blue(page.picture()[:600]))[:, 1].mean() < 880


@needs_chromium
def test_the_log_is_played_and_scrubbed_in_the_browser(log: Path, tmp_path: Path) -> None:
    viewer = start(tmp_path, "view", str(log), "--port", "0")
    try:
        address = _address(viewer)
        with browsed(address) as page:
            slider = page.page.get_by_role("slider").first
            slider.wait_for(timeout=20_000)
            page.page.wait_for_timeout(3000)
            at = float(slider.get_attribute("aria-valuenow"))
            assert at > 0.0, "it does not play"
            page.page.get_by_text("start", exact=True).click()
            page.until(lambda: float(slider.get_attribute("aria-valuenow")) == 0.0, "it does not go to the start")
            page.page.get_by_text("+1", exact=True).click()
            page.until(lambda: float(slider.get_attribute("aria-valuenow")) == pytest.approx(0.001), "no step")
            pictures = [silhouette(page.picture()[250:, :870])]

            def at_rest() -> bool:
                page.page.wait_for_timeout(700)
                pictures.append(silhouette(page.picture()[250:, :870]))
                return len(pictures) > 3 and bool((pictures[-1] == pictures[-2]).all())

            page.until(at_rest, "the picture does not come to rest")
            observed = pictures[-1]
            assert page.faults == []
            assert page.strangers == []
    finally:
        viewer.send_signal(signal.SIGINT)
        result = finish(viewer)
    assert (result.status, "Traceback" in result.err) == (0, False)
    assert overlap(observed, stored(HERE / "manta_browser.txt")) > ALIKE, text(observed)


def test_a_film_has_the_robots_shape_and_another_would_be_noticed(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, draw = stored(HERE / "manta_film.txt"), Picture.draw
    observed = _painted(recording)
    assert overlap(observed, reference) > SAME, text(observed)

    def as_if(fault: Callable[[np.ndarray], np.ndarray]) -> float:
        """What a fault in drawing the fins comes to."""

        def wrongly(self: Picture, outputs: Mapping[str, Any]) -> DrawnState:
            drawn = draw(self, outputs)
            return replace(drawn, skins=tuple(fault(points) for points in drawn.skins))

        monkeypatch.setattr(Picture, "draw", wrongly)
        return overlap(_painted(recording), reference)

    result = [as_if(lambda points: points * [-1.0, 1.0, 1.0]), as_if(lambda points: 1.3 * points)]
    assert max(result) < SAME, result


@pytest.mark.parametrize("name", ["manta_browser.txt", "manta_film.txt"])
def test_a_mirrored_or_wrongly_sized_robot_is_not_alike(name: str) -> None:
    mask = stored(HERE / name)
    larger = mask.repeat(5, axis=0).repeat(5, axis=1)[::4, ::4]  # by a quarter
    wider = np.pad(mask, ((7, 2), (1, 11)))
    assert overlap(mask, wider) == 1.0, "where it stands does not matter"
    for wrong in (mask[:, ::-1], mask[::-1], mask.T, larger):
        assert overlap(mask, wrong) < ALIKE, text(wrong)


def _painted(recording: Recording) -> Mask:
    return silhouette(shown(recording, 0)[40:])


def shown(recording: Recording, k: int) -> np.ndarray:
    """(540, 960, 3) of a state."""
    return pictures(recording, [k], Take(deadlines=False), (960, 540))[0]


@needs_chromium
def test_a_run_is_seen_live(tmp_path: Path) -> None:
    run = start(tmp_path, "run", "manta", "--duration", "3600", "--view")
    try:
        address = _address(run)
        with browsed(address) as page:
            page.page.get_by_text("pictures/s").wait_for(timeout=30_000)
            page.moving(850, 720)
            assert page.faults == []
    finally:
        run.send_signal(signal.SIGINT)
        result = finish(run)
    assert result.status == 130, result.err  # as any run that Ctrl-C ends


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    end = time.monotonic() + 120.0
    while time.monotonic() < end:
        line = process.stderr.readline()
        if match := re.search(r"open (http://\S+) in a browser", line):
            return match.group(1)
        assert line or process.poll() is None, "it ended"
    raise AssertionError("no address was printed")


@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_a_film_has_its_pictures(recording: Recording, tmp_path: Path, ending: str) -> None:
    import imageio_ffmpeg

    path = tmp_path / f"run.{ending}"
    observed: list[tuple[int, int]] = []
    count = write_film(recording, path, lambda done, total: observed.append((done, total)), Take(speed=5.0))
    assert observed == [(k + 1, count) for k in range(count)]
    assert count == {"gif": 6, "mp4": 13}[ending]
    arguments = (
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-v",
        "error",
        "-i",
        str(path),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    )
    raw = subprocess.run(arguments, capture_output=True, check=True).stdout
    wide, high = {"gif": (640, 360), "mp4": (1280, 720)}[ending]
    frames = np.frombuffer(raw, np.uint8).reshape(-1, high, wide, 3).astype(int)
    assert len(frames) == count
    assert coloured(frames[0]) > 500
    assert (np.abs(frames[0] - frames[-1]).max(axis=2) > 60).sum() > 500
    assert list(tmp_path.iterdir()) == [path]


def test_the_grounds_lines_lie_behind_the_robot(recording: Recording) -> None:
    with Filming(recording, Take(deadlines=False), (960, 540), 1.0) as filming:
        lines = (filming._renderer._thin, filming._renderer._thick)
        with_lines = filming.picture(20).astype(int)
        for line in lines:
            line.actor.GetProperty().SetOpacity(0.0)
        without = filming.picture(20).astype(int)
    robot = dark_blue(without)
    assert robot.sum() > 10_000
    differing = np.abs(with_lines - without).max(axis=2) > 10
    assert differing.sum() > 500
    assert np.mean(differing[robot]) < 0.005


def test_the_camera_follows_or_stands_still(recording: Recording) -> None:
    away = drifting(recording, 4.0)
    followed, still = (
        [silhouette(p) for p in pictures(away, [100, 1900], Take(deadlines=False, follow=follow), (960, 540))]
        for follow in (True, False)
    )
    assert abs(middle(followed[0]) - middle(followed[1])) < 14
    assert abs(middle(still[0]) - middle(still[1])) > 20


def drifting(recording: Recording, speed_m_s: float) -> Recording:
    """The same run, on a floe."""
    states = recording.states.copy()
    states[:, recording.slices["truth.position"]] += np.float32(speed_m_s) * recording.time[:, None].astype(np.float32)
    return replace(recording, states=states)


def middle(mask: Mask) -> float:
    return float(np.argwhere(mask)[:, 1].mean())


def test_the_bodys_axes_are_red_green_and_blue(recording: Recording) -> None:
    """Arrows that are there with axes and not without, of the three colours."""

    def count(axes: bool) -> list[int]:
        take = Take(axes=axes, path=False, deadlines=False, title=False)
        image = pictures(recording, [0], take, (640, 360))[0].astype(int)
        others = [np.delete(image, k, axis=2).max(axis=2) for k in range(3)]
        return [int((image[..., k] > 1.5 * others[k] + 20).sum()) for k in range(3)]

    with_axes, without = count(True), count(False)
    assert all(more > less + 60 for more, less in zip(with_axes, without, strict=True)), (with_axes, without)


def test_a_still_is_one_picture(recording: Recording, tmp_path: Path) -> None:
    from PIL import Image

    write_still(recording, tmp_path / "run.png", 1.0, Take(size=(640, 360), forces=True, model=True))
    with Image.open(tmp_path / "run.png") as picture:
        assert picture.size == (640, 360)
    with pytest.raises(ModelError, match=r"--to: expected a time within the run of 2 s, got 3"):
        write_still(recording, tmp_path / "late.png", 3.0)


def test_fast_beats_are_shown_in_slow_motion(recording: Recording) -> None:
    assert slow_motion(recording) == 1.0
    fast = replace(recording, time=recording.time / 25.0)  # as if it beat 25 times as often
    assert slow_motion(fast) in (0.05, 0.1)


def test_without_opengl_it_reports_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(render.ctypes.util, "find_library", lambda name: None)
    with pytest.raises(ModelError, match=r"apt install libegl1 libgl1-mesa-dri, or libosmesa6"):
        render.library()


@pytest.mark.parametrize(("message", "well"), [
    ("tcp://127.0.0.1:9902", True), ("tcp://0.0.0.0:9902", True), ("", True), ("tcp://127.0.0.1:9872", False),
])  # fmt: skip
def test_telemetry_of_another_plant_is_refused(message: str, well: bool) -> None:
    viewer = View(telemetry="tcp://127.0.0.1:9902")
    plant = PlantInfo("eel", 1e-3, "free", None, None, (), (), telemetry_endpoint=message)
    if well:
        return viewer._refuse_another(plant)
    with pytest.raises(ModelError, match=r":9902: .* is 'tcp://127.0.0.1:9872'; .*--exchange ENDPOINT"):
        viewer.open(plant)
    return None


def test_what_cannot_be_done_is_refused(log: Path, tmp_path: Path, recording: Recording) -> None:
    with pytest.raises(ModelError, match=r"expected a file that ends in .mp4, .gif or .png, got '.avi'"):
        write_film(recording, tmp_path / "run.avi", lambda done, total: None)
    for arguments, message in (
        (("movie", str(log), "-o", "nowhere/run.gif"), "there is no folder 'nowhere'"),
        (("movie", str(log), "-o", "run.gif", "--to", "99"), "--from, --to: expected times within the run of"),
        (("movie", str(log), "-o", "run.png", "--from", "0.1"), "--from 0.1: expected none for a picture"),
        (("movie", str(tmp_path / "none.mcap"), "-o", "run.gif"), "there is no such file"),
        (("view", "--html", "a.html"), "--html: expected a LOG"),
        (("view", "--telemetry", "ipc://x"), "expected tcp://HOST:PORT"),
        (("bridge", "view:port=70000"), "expected a whole number from 0 to 65535"),
    ):
        result = rtmms(tmp_path, *arguments)
        assert (result.status, "Traceback" in result.err) == (2, False), result.err
        assert message in result.err


def test_a_port_that_is_busy_is_refused_and_no_other_taken(log: Path, tmp_path: Path) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        result = rtmms(tmp_path, "view", str(log), "--port", str(port))
    assert result.status == 1
    assert f"127.0.0.1:{port}: Address already in use" in result.err


@pytest.mark.parametrize("sway", [0.0, 0.06])
def test_the_trail_ends_where_the_robot_begins(sway: float) -> None:
    """A fish of 0.6 m whose origin is at its head: the trail ends behind its tail, also where the head sways."""
    from rtmms.view.film import behind

    x = np.linspace(0.0, 3.0, 301)
    path = np.column_stack([x, sway * np.sin(20.0 * x), np.zeros_like(x)])
    body = np.column_stack([np.linspace(-0.6, 0.1, 20), np.zeros(20), np.zeros(20)])
    trail = behind(path, body)
    assert trail[-1, 0] == pytest.approx(2.4, abs=0.05)
    np.testing.assert_array_equal(trail, path[: len(trail)])
    assert len(behind(path[:20], body)) == 0  # it has not left its own place yet
