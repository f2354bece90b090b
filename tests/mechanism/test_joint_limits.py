"""Limits that are never passed: position, rate and torque of a URDF's joints in every drive, and the energy of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms

LINK = """<link name="{0}"><inertial><origin xyz="0.1 0 0"/><mass value="{1}"/>
<inertia ixx="0.001" iyy="0.002" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0.2 0 0"/>
<axis xyz="0 1 0"/>{3}</joint>"""
LIMIT = '<limit lower="{}" upper="{}" effort="2" velocity="3"/>'


def arm(folder: Path, first: str = LIMIT.format(-1.2, 1.2)) -> str:
    """Two links; the zero of the second joint is out of its range."""
    pytest.importorskip("yourdfpy")
    links = "".join(LINK.format(*item) for item in (("base", 1.0), ("upper", 0.5), ("lower", 0.3)))
    second = LIMIT.format(0.3, 1.2)
    joints = JOINT.format("shoulder", "base", "upper", first) + JOINT.format("elbow", "upper", "lower", second)
    path = folder / "arm.urdf"
    path.write_text(f'<robot name="arm">{links}{joints}</robot>')
    return str(path)


@pytest.mark.full
@pytest.mark.parametrize("drive", ["torque", "servo", "motion"])
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_limits_of_a_file_hold_in_every_drive(tmp_path: Path, drive: str, base: str) -> None:
    plant: Any = rtmms.load(arm(tmp_path), base=base, drive=drive)
    lower, upper = np.array([-1.2, 0.3]), np.array([1.2, 1.2])
    for seed in range(6):
        plant.reset()
        rng, start, turned, far, fast, maximum = np.random.default_rng(seed), plant.observe(), 0.0, -np.inf, 0.0, 0.0
        used = np.zeros(2)
        for k in range(800):
            if k % 100 == 0:
                command = rng.uniform(-50.0, 50.0, 2)
            plant.step(command)
            outputs = plant.observe()
            q, rate, stop = outputs["joint_position"], outputs["joint_velocity"], outputs["stop_torque"]
            far = max(far, *(q - upper), *(lower - q))
            fast, maximum = max(fast, np.abs(rate).max()), max(maximum, np.abs(outputs["joint_torque"]).max())
            turned += 1e-3 * float(np.abs((outputs["joint_torque"] + stop) * rate).sum())
            used -= 1e-3 * stop * rate
        assert far < 1e-6
        assert fast < 3.0 + 1e-5
        assert maximum <= 2.0 + 1e-12
        assert np.all(used >= -1e-9)
        lacking = float(outputs["energy"] - start["energy"] - outputs["work"])
        assert abs(lacking) < 0.03 * turned  # where a firmly held joint meets its effort, the torque has a kink


@pytest.mark.full
def test_joints_at_rest_on_their_stops(tmp_path: Path) -> None:
    """A stop carries what drive and gravity push into it, and stands where its limit is."""
    plant: Any = rtmms.load(arm(tmp_path), base="fixed")
    for _ in range(1500):
        plant.step([2.0, 2.0])
    outputs = plant.observe()
    np.testing.assert_allclose(outputs["joint_position"], 1.2, atol=1e-8)
    np.testing.assert_allclose(outputs["joint_velocity"], 0.0, atol=1e-6)
    assert outputs["stop_torque"][1] == pytest.approx(-2.0 - 9.81 * 0.3 * 0.1 * np.cos(2.4), rel=1e-4)
    np.testing.assert_array_equal(outputs["joint_torque"], 2.0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("", r"joint 'shoulder': type 'revolute' needs <limit"),
        (LIMIT.format(1.0, -1.0), r"joint 'shoulder': limit: expected lower <= upper, got 1 and -1"),
        ('<limit lower="-1" upper="1" effort="-2" velocity="3"/>', "limit effort must be a number >= 0, got -2"),
        ('<limit lower="nan" upper="1" effort="2" velocity="3"/>', "limit lower must be a number"),
    ],
)
def test_limits_that_cannot_be_are_refused(tmp_path: Path, limit: str, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        rtmms.load(arm(tmp_path, limit))


@pytest.mark.full
def test_joint_limits_are_reported(tmp_path: Path) -> None:
    plant: Any = rtmms.load(arm(tmp_path), drive="servo")
    assert plant.joint_limits == {
        "shoulder": {"lower": -1.2, "upper": 1.2, "velocity": 3.0, "effort": 2.0},
        "elbow": {"lower": 0.3, "upper": 1.2, "velocity": 3.0, "effort": 2.0},
    }


@pytest.mark.full
def test_a_root_link_without_mass_holds_the_base(tmp_path: Path) -> None:
    """An arm on the world's frame stands still; on a footprint that carries mass it falls; what is asked for wins."""
    text = Path(arm(tmp_path)).read_text()
    fixed = '<joint name="mount" type="{}"><parent link="world"/><child link="base"/><axis xyz="0 1 0"/>{}</joint>'
    hung = '<limit lower="-1" upper="1" effort="2" velocity="3"/>'
    for kind, limit, values, falls in (
        ("fixed", "", {}, True), ("revolute", hung, {}, False), ("fixed", "", {"base": "fixed"}, False),
    ):  # fmt: skip
        path = tmp_path / "hung.urdf"
        path.write_text(text.replace("</robot>", f'<link name="world"/>{fixed.format(kind, limit)}</robot>'))
        plant: Any = rtmms.load(str(path), **values)
        for _ in range(100):
            plant.step(np.zeros(len(plant.actuators)))
        assert (plant.observe()["position"][2] < -0.04) == falls
    path.write_text(text.replace("</robot>", f'<link name="world"/>{fixed.format("revolute", hung)}</robot>'))
    with pytest.raises(rtmms.ModelError, match="free base can move in a direction without inertia"):
        rtmms.load(str(path), base="free")
