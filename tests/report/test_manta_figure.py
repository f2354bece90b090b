"""The page drawn after a run: every kind of run gives one, without a warning, and it shows what the plant did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rtmms.base.errors import RtmmsError
from rtmms.loop.statistics import Statistics
from rtmms.view import manta_figure
from rtmms.view.manta_figure import LEFT, RIGHT, fin_points
from tests.cli.shell import rtmms
from tests.report.runs import run


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were written, to be asked what they show."""
    stored: list[Figure] = []
    write = manta_figure.save

    def save(page: Figure, path: Path, dpi: int = 60) -> None:
        stored.append(page)
        write(page, path, dpi=60)

    monkeypatch.setattr(manta_figure, "save", save)
    return stored


def _texts_of(page: Figure) -> str:
    texts = [text.get_text() for text in page.texts]
    for panel in page.axes:
        texts += [text.get_text() for text in panel.texts] + [panel.get_title(loc="left"), panel.get_xlabel()]
    return "\n".join(texts)


def _panel(page: Figure, title: str) -> Axes:
    return next(panel for panel in page.axes if panel.get_title(loc="left").startswith(title))


@pytest.fixture(scope="module")
def swim() -> tuple[Any, ...]:
    return run(3.0)


def test_a_run_fills_every_panel(tmp_path: Path, swim: tuple[Any, ...], pages: list[Figure]) -> None:
    path = tmp_path / "run.png"
    manta_figure.draw(path, *swim)
    assert path.read_bytes().startswith(b"\x89PNG")
    parts = _texts_of(pages[0])
    for title in ("Path", "Speed", "Rear edge", "Wave along the span", "Wave along the chord", "Wake", "Slack"):
        assert title in parts
    assert "m/s" in parts
    assert "0 misses" in parts
    assert "robot drawn 0" in parts  # smaller, so that its path is seen
    assert "The robot over the last period of 1 s, seen from behind and above" in parts
    assert "t = 5/6 T" in parts
    assert "deadline 900" in parts
    assert "no steps" not in parts
    assert "less than" not in parts


def test_the_curves_are_the_plant_s(tmp_path: Path, swim: tuple[Any, ...], pages: list[Figure]) -> None:
    plant, trace, recent, *_ = swim
    manta_figure.draw(tmp_path / "run.png", *swim)
    time, stored = trace.read()
    speed = _panel(pages[0], "Speed").lines[0].get_xydata()
    np.testing.assert_array_equal(speed, np.stack([time, stored["velocity"][:, 0]], axis=1))
    late, last = recent.read()
    waves = _panel(pages[0], "Wave along the span")
    for j in range(3):
        np.testing.assert_allclose(waves.lines[j].get_ydata(), np.degrees(last["joint_position"][:, 0, j, 0]))
    assert waves.lines[0].get_xdata()[-1] == late[-1]
    assert plant.parameters.links == 3


def test_the_fins_end_where_the_plant_states(swim: tuple[Any, ...]) -> None:
    outputs = swim[0].observe()
    for fin in (LEFT, RIGHT):
        points = fin_points(swim[0], fin, outputs["rod_angle"], outputs["joint_position"])
        np.testing.assert_allclose(points[-1, 0], outputs["tip"][fin], rtol=0, atol=1e-12)
        lengths = np.linalg.norm(np.diff(points, axis=0), axis=-1)
        np.testing.assert_allclose(lengths, swim[0].model.links[0], rtol=1e-12)


def test_the_robot_bends_as_its_fins_do(tmp_path: Path, swim: tuple[Any, ...], pages: list[Figure]) -> None:
    manta_figure.draw(tmp_path / "run.png", *swim)
    shown = [
        collection.get_paths()
        for collection in _panel(pages[0], "The robot").collections
        if len(collection.get_paths()) > 100
    ]
    assert len(shown) == 6
    highs = [max(path.vertices[:, 1].max() for path in paths) for paths in shown]
    assert max(highs) - min(highs) > 0.1  # m, the tips go up and down


def test_a_run_without_a_step(tmp_path: Path, pages: list[Figure]) -> None:
    manta_figure.draw(tmp_path / "run.png", *run(0.0))
    assert _texts_of(pages[0]).count("no steps") == 7


def test_a_run_shorter_than_a_period(tmp_path: Path, pages: list[Figure]) -> None:
    manta_figure.draw(tmp_path / "run.png", *run(0.05))
    assert "less than one flapping period" in _texts_of(pages[0])


def test_a_held_body_and_a_mode_without_a_schedule(tmp_path: Path, pages: list[Figure]) -> None:
    manta_figure.draw(tmp_path / "run.pdf", *run(2.2, timed=False, body="fixed"))
    arguments = _texts_of(pages[0])
    assert "the body is held" in arguments
    assert "N of thrust" in arguments
    titles = [axes.get_title(loc="left") for axes in pages[0].axes]
    assert not any(title.startswith(("Wake", "Slack")) for title in titles)
    assert any(title.startswith("Plant") for title in titles)
    assert "deadline" not in arguments


def test_one_chain_of_one_link_and_no_statistics(tmp_path: Path, pages: list[Figure]) -> None:
    plant, trace, recent, _, outlined = run(2.2, chains=1, links=1)
    manta_figure.draw(tmp_path / "run.svg", plant, trace, recent, Statistics(), outlined)
    assert _texts_of(pages[0]).count("no steps") == 1


@pytest.mark.parametrize(("name", "text"), [("run.xyz", "xyz"), ("nowhere/run.png", "nowhere")])
def test_a_file_that_cannot_be_written(tmp_path: Path, swim: tuple[Any, ...], name: str, text: str) -> None:
    with pytest.raises(RtmmsError, match=text):
        manta_figure.draw(tmp_path / name, *swim)


def test_the_command_draws_it(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "manta", "--mode", "free", "--controller", "none", "--duration", "0.3",
                 "--figure", "run.png", "--quiet")  # fmt: skip
    assert result.status == 0, result.err
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "status"), [("run.xyz", 2), ("nowhere/run.png", 2)])
def test_the_command_reports_why_it_cannot(tmp_path: Path, name: str, status: int) -> None:
    result = rtmms(tmp_path, "run", "manta", "--mode", "free", "--controller", "none", "--duration", "0.1",
                 "--figure", name, "--quiet")  # fmt: skip
    assert result.status == status
    assert name in result.err
    assert "Traceback" not in result.err
