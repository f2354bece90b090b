"""docs/own_robot.md and the references that it leads to: every block of code there runs.

own_robot.md, actuators.md, tendons.md, polars.md, contacts.md, elements.md, urdf.md, and the figure of trees.md
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from math import pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from tests.cli.shell import environment

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("own_robot", "actuators", "tendons", "polars", "contacts", "elements", "urdf")
BLOCKS = {
    page: re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    for page in (*PAGES, "trees")
}


def code_of(page: str, kind: str = "python") -> list[str]:
    """Return the blocks of one language."""
    return [code for language, code in BLOCKS[page] if language == kind]


TUTORIAL = code_of("own_robot")
COMMANDS = [line for page in ("urdf", "trees") for code in code_of(page, "sh") for line in code.splitlines()]


def run_block(
    code: str, page: str, capsys: pytest.CaptureFixture[str], shown_at: int = 0
) -> tuple[dict[str, Any], str]:
    """Run a block; return its names and its output, which is the page's text block of that number."""
    names: dict[str, Any] = {}
    exec(compile(code, f"{page}.md", "exec"), names)
    printed = capsys.readouterr().out
    shown = code_of(page, "text")[shown_at]
    numbers = [[float(number) for number in re.findall(r"-?\d+\.?\d*(?:e[+-]\d+)?", text)] for text in (printed, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=1e-6), "the page shows another output"
    return names, printed


def test_no_block_is_left_out() -> None:
    assert {kind for page in PAGES for kind, _ in BLOCKS[page]} == {"python", "sh", "xml", "text"}
    assert [len(code_of(page)) for page in PAGES] == [3, 1, 1, 1, 2, 1, 0]
    assert len(COMMANDS) == 3


def test_the_ten_lines(capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = run_block(TUTORIAL[0], "own_robot", capsys)
    assert isinstance(names["plant"], rtmms.Plant)
    remaining = ("import", "from", "for", " ", "print")
    assert len([line for line in TUTORIAL[0].splitlines() if line and not line.startswith(remaining)]) <= 10


def test_the_servo_stops_at_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """The servo pulls with 20 (1 - 0.5) N m, the stop pushes back."""
    names, _ = run_block(*code_of("actuators"), "actuators", capsys)
    assert names["plant"].observe()["joint_position"] == pytest.approx([0.5], abs=1e-6)
    assert names["plant"].observe()["stop_torque"][0] < -10.0


def test_the_wing_lifts_by_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    _, printed = run_block(*code_of("polars"), "polars", capsys)
    lift, drag = (float(number) for number in re.findall(r"[\d.]+(?= N)", printed))
    pressure_times_area = 0.5 * 1.2 * 10.0**2 * 0.15 * 1.2
    assert lift == pytest.approx(pressure_times_area * 0.085 * 5.0, abs=0.005)
    assert drag == pytest.approx(pressure_times_area * (0.015 + 0.09 * (0.085 * 5.0) ** 2), abs=0.005)


def test_the_tractor_and_its_trailer(capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = run_block(code_of("contacts")[0], "contacts", capsys)
    outputs = names["plant"].observe()
    assert outputs["velocity"][0] == pytest.approx(0.05 * 9.0, rel=1e-6)
    assert outputs["angular_velocity"][2] == pytest.approx(0.05 * 2.0 / 0.4, rel=1e-6)
    # it settles where the trailer's axle, 0.4 m behind the hitch, turns about the same point as the deck
    radius = outputs["velocity"][0] / outputs["angular_velocity"][2]
    hitch = -np.arctan2(0.2, radius) - np.arcsin(0.4 / np.hypot(0.2, radius))
    assert outputs["joint_position"][2] == pytest.approx(hitch, rel=2e-2)


def test_the_box_rests_on_the_floor(capsys: pytest.CaptureFixture[str]) -> None:
    """Its weight is on the four lower corners, and it does not creep."""
    names, printed = run_block(code_of("contacts")[1], "contacts", capsys, 1)
    assert "True" in printed
    assert names["rest"]["floor_force"].sum() == pytest.approx(420.0 * 0.2 * 0.12 * 0.1 * 9.81, rel=1e-9)


def test_the_boat_of_elements_slows_down(capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = run_block(*code_of("elements"), "elements", capsys)
    assert 0.0 < names["plant"].observe()["velocity"][0] < 0.5


def test_the_swimmer_swims_ahead() -> None:
    names: dict[str, Any] = {}
    exec(compile(TUTORIAL[1], "swimmer.py", "exec"), names)
    plant = names["robot"]()
    for k in range(4000):
        phase = 2.0 * pi * k * plant.dt
        plant.step(np.array([0.6 * sin(phase), 0.6 * sin(phase - 1.2)]))
    assert plant.observe()["position"][0] > 0.5


def test_the_tendon_bends_the_finger(capsys: pytest.CaptureFixture[str]) -> None:
    """At rest the springs bear what 3 N less friction do at either joint."""
    names, _ = run_block(*code_of("tendons"), "tendons", capsys)
    outputs = names["plant"].observe()
    assert np.all(outputs["joint_position"] > 0.1)
    assert outputs["tendon_tension"] == pytest.approx([3.0])


@pytest.mark.full
def test_the_xml_is_read(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    (xml,) = code_of("urdf", "xml")
    text = (ROOT / "examples" / "quadrotor" / "quadrotor.urdf").read_text()
    path = tmp_path / "own.urdf"
    path.write_text(re.sub(r"<rtmms>.*</rtmms>", lambda _: xml, text, flags=re.DOTALL))
    assert [c.name for c in rtmms.load(str(path)).actuators] == ["front.speed", "jet.command"]


def typed(line: str, folder: Path) -> str:
    """Run a command line as a reader does; return its output."""
    ran = subprocess.run(
        [sys.executable, "-m", *shlex.split(line)], cwd=folder, env=environment(folder), capture_output=True,
        text=True, timeout=200, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.full
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page(line: str, tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    shutil.copytree(ROOT / "examples" / "quadrotor", tmp_path / "examples" / "quadrotor")
    assert typed(line, tmp_path).strip()


@pytest.mark.full
def test_the_file_of_the_tutorial_runs(tmp_path: Path) -> None:
    for code in TUTORIAL[1:]:
        (tmp_path / code.splitlines()[0].removeprefix("# ")).write_text(code)
    (commands,) = code_of("own_robot", "sh")
    run, movie = commands.splitlines()
    report = typed(run, tmp_path)
    assert float(re.search(r"position +(\S+)", report).group(1)) == pytest.approx(0.5359, rel=1e-3)  # type: ignore[union-attr]
    typed(movie, tmp_path)
    assert all((tmp_path / name).stat().st_size > 100 for name in ("swim.mcap", "swim.gif"))


@pytest.mark.full
def test_a_parameter_of_the_file_is_identified(tmp_path: Path) -> None:
    """From a log of the page's run: the length that the run had, from the length that the file has."""
    for code in TUTORIAL[1:]:
        (tmp_path / code.splitlines()[0].removeprefix("# ")).write_text(code)
    (commands,) = code_of("own_robot", "sh")
    typed(commands.splitlines()[0], tmp_path)
    link_m = json.loads(typed(
        "rtmms identify swim.mcap --trust-log --fit link_m --set link_m=0.2 --json --quiet", tmp_path
    ))["parameters"]["link_m"]  # fmt: skip
    assert link_m["start"] == 0.2
    assert link_m["value"] == pytest.approx(0.25, rel=1e-4)
