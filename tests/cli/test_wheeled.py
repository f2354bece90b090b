"""The robots on wheels over the wire: their own gaits, the same bits again, a run that ends against the ground."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmms import load
from tests.cli.shell import finish, rtmms, start

pytestmark = pytest.mark.full
ROBOTS = ("snake", "unicycle", "snakeboard", "roller_racer", "trikke")


@pytest.fixture(autouse=True, scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels are compiled here, where nothing waits for them: the plants', then those of a run."""
    for robot in ROBOTS:
        load(robot)
    arguments = ("run", "snake", "--duration", "0.01", "--mode", "lockstep", "--quiet")
    assert finish(start(tmp_path_factory.mktemp("first"), *arguments), 240).status == 0


@pytest.mark.parametrize("robot", ROBOTS)
def test_its_gait_over_the_wire_twice(robot: str, tmp_path: Path) -> None:
    arguments = ("run", robot, "--duration", "0.5", "--mode", "lockstep", "--json", "--quiet", "--figure", "run.png")
    item, two = (rtmms(tmp_path, *arguments).report for _ in range(2))
    assert item["exchange"]["commands_applied"] == 500
    assert [peer["name"] for peer in item["exchange"]["peers"]] == ["shape"]
    assert item["final"] == two["final"]
    assert abs(item["final"]["velocity"][0]) > 1e-5
    assert item["summary"]["net_speed_m_s"] > 0.0
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_a_log_of_it_is_drawn_and_replayed(tmp_path: Path) -> None:
    arguments = ("run", "snakeboard", "--duration", "0.3", "--mode", "lockstep", "--quiet", "--log", "run.mcap")
    assert rtmms(tmp_path, *arguments).status == 0
    assert rtmms(tmp_path, "plot", "run.mcap", "-o", "run.png").status == 0
    assert rtmms(tmp_path, "replay", "run.mcap", "--check").status == 0


CUSTOM = """
import rtmms
from rtmms.robots import snake


def rigid():
    mechanism = snake.describe(snake.Snake(drive="torque", links=5))
    joints = [rtmms.model.JointMotion(f"j{k}") for k in range(1, 5)]
    return rtmms.TreePlant(mechanism, actuators=joints)


class Bend(rtmms.Controller):
    def update(self, state):
        return {f"j{k}.angle": 0.1 * k for k in range(1, 5)}
"""


def test_joints_against_the_ground_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CUSTOM)
    result = rtmms(
        tmp_path,
        "run",
        "own.py:rigid",
        "--controller",
        "own.py:Bend",
        "--duration",
        "1",
        "--mode",
        "lockstep",
        "--json",
    )
    assert result.status == 1
    assert result.report["ended"] == "diverged"
    assert "joints 'j1', 'j2', 'j3', 'j4' move against the ground in step 1" in result.err
    assert "follow (drive='torque')" in result.err
    assert "Traceback" not in result.err
