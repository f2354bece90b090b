"""The robots that their shape alone moves, over the wire: their own gaits, the same bits again, logs and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rtmms import load
from rtmms.locomotion import Connection
from tests.cli.shell import rtmms

pytestmark = pytest.mark.full
ROBOTS = ("cat", "satellite", "purcell", "fluid_swimmer")


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """Kernels are compiled here, where nothing waits for them."""
    for robot in ROBOTS:
        plant: Any = load(robot)
        Connection(plant.model, plant.locomotion.kind).curvature([0.1, 0.2])


@pytest.mark.parametrize("robot", ROBOTS)
def test_its_gait_over_the_wire_twice(robot: str, tmp_path: Path) -> None:
    arguments = ("run", robot, "--duration", "1.5", "--mode", "lockstep", "--json", "--quiet", "--figure", "run.png")
    item, two = (rtmms(tmp_path, *arguments).report for _ in range(2))
    assert item["exchange"]["commands_applied"] == 1500
    assert [peer["name"] for peer in item["exchange"]["peers"]] == ["shape"]
    assert item["final"] == two["final"]
    assert abs(item["final"]["joint_position"][0]) > 1e-2
    assert max(abs(x) for x in item["final"]["quaternion"][1:]) > 1e-4
    assert (tmp_path / "run.png").stat().st_size > 10_000


@pytest.mark.parametrize("robot", ["cat", "purcell"])
def test_a_log_of_it_is_drawn_and_replayed(robot: str, tmp_path: Path) -> None:
    arguments = ("run", robot, "--duration", "0.5", "--mode", "lockstep", "--quiet", "--log", "run.mcap")
    assert rtmms(tmp_path, *arguments).status == 0
    assert rtmms(tmp_path, "plot", "run.mcap", "-o", "run.png").status == 0
    assert rtmms(tmp_path, "replay", "run.mcap", "--check").status == 0


def test_a_gait_that_was_found_is_run(tmp_path: Path) -> None:
    assert rtmms(tmp_path, "gaits", "purcell", "-o", "found", "--set", "limit_rad=2").status == 0
    controller = "shape:file=found/purcell-gait.csv,period_s=1,ramp_s=0.2"
    done = rtmms(
        tmp_path, "run", "purcell", "--controller", controller, "--duration", "2.2", "--mode", "lockstep", "--json",
        "--quiet",
    )  # fmt: skip
    assert done.status == 0
    assert done.report["summary"]["net_speed_m_s"] > 0.1
    wrong = rtmms(tmp_path, "run", "purcell", "--controller", "shape:gait=circle,a=9", "--duration", "1")
    assert wrong.status == 2 or "beyond its limits" in wrong.err
    assert "Traceback" not in wrong.err
