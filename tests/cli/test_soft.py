"""Fish and modal moth over the wire: the same bits again, logs, figures; a flow that ends before the run is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rtmms import load
from tests.cli.shell import rtmms

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """Kernels are compiled here, where nothing waits for them."""
    for robot in ("fish", "modal_moth"):
        load(robot)


@pytest.mark.parametrize(("robot", "key"), [("fish", "drift_m_s"), ("modal_moth", "peak_twist_rad")])
def test_a_run_twice_logged_and_drawn(robot: str, key: str, tmp_path: Path) -> None:
    arguments = ("run", robot, "--duration", "1.0", "--mode", "free", "--json", "--quiet", "--figure", "run.png")
    item, two = (rtmms(tmp_path, *arguments, "--log", "run.mcap").report for _ in range(2))
    assert item["final"] == two["final"]
    assert np.isfinite(item["summary"][key])
    assert (tmp_path / "run.png").stat().st_size > 1000
    assert rtmms(tmp_path, "replay", "run.mcap", "--check").status == 0


def test_muscles_from_a_controller(tmp_path: Path) -> None:
    arguments = (
        "--set",
        "flow=still",
        "--set",
        "tether=none",
        "--mode",
        "lockstep",
        "--duration",
        "1.0",
        "--json",
        "--quiet",
    )
    result = rtmms(tmp_path, "run", "fish", "--controller", "fish_wave", *arguments).report
    assert result["exchange"]["commands_applied"] == 1000
    assert result["final"]["work"] > 0.0


def test_a_flow_that_ends_before_the_run_is_refused(tmp_path: Path) -> None:
    u = np.full((3, 1, 1, 1, 3), 0.1)
    np.savez(tmp_path / "wake.npz", t=[0.0, 1.0, 2.0], u=u)
    message = rtmms(tmp_path, "run", "fish", "--set", "flow=file", "--set", "flow_file=wake.npz", "--duration", "5")
    assert message.status == 2
    assert "--duration 5: expected at most 2 s, where the flow of robot 'fish' ends" in message.err
    message = rtmms(tmp_path, "run", "fish", "--set", "flow=file", "--set", "flow_file=none.npz", "--duration", "5")
    assert message.status == 2
    assert "flow: none.npz: there is no such file" in message.err
