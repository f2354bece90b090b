"""What a positive value of each actuator does, and which way things turn: the section Signs of each robot's page."""

from __future__ import annotations

import math
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
from rtmms import dynamics
from rtmms.robots import eel, moth
from rtmms.robots.manta import Manta
from rtmms.view.manta_figure import LEFT, RIGHT, fin_points
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.welcome import plain_parameters
from rtmms_controllers.gait import Gait

DOCS = Path(__file__).parents[2] / "docs"


def attitude(plant: Any) -> tuple[float, float, float]:
    """deg: how far it rolled to the right, raised its nose, turned to the left."""
    r = Rotation.from_quat(np.roll(plant.observe()["quaternion"], -1)).as_matrix()
    roll, rise, turn = math.atan2(r[2, 1], r[2, 2]), math.asin(r[2, 0]), math.atan2(r[1, 0], r[0, 0])
    return math.degrees(roll), math.degrees(rise), math.degrees(turn)


def hold(plant: Any, seconds: float, **values: float) -> None:
    """Step with some actuators held, named with _ for '.', or by the beginning of their names."""
    command = plant.neutral.copy()
    for k, channel in enumerate(plant.actuators):
        name = channel.name.replace(".", "_")
        command[k] = next((value for start, value in values.items() if name.startswith(start)), command[k])
    for _ in range(round(seconds / plant.dt)):
        plant.step(command)


@pytest.mark.parametrize("robot", ["manta", "eel", "moth"])
def test_the_page_has_the_drawing(robot: str) -> None:
    page = (DOCS / f"{robot}.md").read_text(encoding="utf-8")
    assert "## Signs" in page
    assert f"(images/{robot}_signs.svg)" in page
    assert Xml.parse(DOCS / "images" / f"{robot}_signs.svg").getroot().tag.endswith("svg")


# --- manta ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def manta() -> Manta:
    return rtmms.load("manta", chains=8, links=3, dt=4e-3)  # type: ignore[return-value]


def swum(plant: Manta, **gait: float) -> Any:
    """6 s of a gait; position."""
    plant.reset()
    info = PlantInfo(
        "manta", plant.dt, "lockstep", None, None, plant.actuators, plant.outputs, parameters=plain_parameters(plant)
    )
    controller = Gait(**gait)
    controller.start(info)
    for k in range(1500):
        values = controller.update(State({"step": k, "timestamp": k * plant.dt, "outputs": {}}, info))
        plant.step(np.array([values[channel.name] for channel in plant.actuators]))
    return plant.observe()["position"]


def test_a_positive_rod_is_up(manta: Manta) -> None:
    """Of either side: that end of that fin rises, the other fin and the other end stay."""
    straight = np.zeros((2, 3, 8))
    for k, (fin, chain) in enumerate([(LEFT, -1), (LEFT, 0), (RIGHT, -1), (RIGHT, 0)]):
        rods = np.zeros(4)
        rods[k] = 0.3
        raised = fin_points(manta, fin, rods, straight)[0][chain]
        assert raised[2] > 0.04
        assert fin_points(manta, fin, rods, straight)[0][-1 - chain][2] < 0.01
        assert np.allclose(fin_points(manta, 1 - fin, rods, straight)[..., 2], 0.0)
        assert (raised[1] > 0) == (fin == LEFT)


def test_a_leading_front_rod_drives_forward(manta: Manta) -> None:
    ahead, back = swum(manta), swum(manta, phase_deg=-40.0)
    assert ahead[0] > 1.0
    assert back[0] < -1.0
    assert max(abs(ahead[1]), abs(back[1])) < 1e-6


@pytest.mark.parametrize("weak", [{"amplitude_deg": 20.0}, {"phase_deg": 0.0}, {"frequency_hz": 0.3}])
def test_a_stronger_left_fin_turns_right(manta: Manta, weak: dict[str, float]) -> None:
    for side, sign in (("right", -1.0), ("left", 1.0)):
        position = swum(manta, **{f"{side}_{name}": value for name, value in weak.items()})
        assert sign * attitude(manta)[2] > 30.0
        assert sign * position[1] > 0.1


def test_rods_held_higher_sink_the_manta(manta: Manta) -> None:
    level = swum(manta)[2]
    assert swum(manta, bias_deg=10.0)[2] < level - 0.05
    assert swum(manta, bias_deg=-10.0)[2] > level + 0.05


# --- eel ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "tail", "back"),
    [("yaw1", (None, -0.33, 0.0), (0.0, 0.0, 1.0)), ("pitch1", (None, 0.0, -0.33), None),
     ("roll1", (-2.08, 0.0, 0.0), (0.0, 0.2, 0.98))],
)  # fmt: skip
def test_how_a_joint_of_the_eel_turns_what_is_behind_it(axis: str, tail: Any, back: Any) -> None:
    """yaw: to the right; pitch: down; roll: the back tips to the left."""
    model = eel.load().model
    state = model.state()
    state.q[model.joint(axis)] = 0.2
    rotation, position = dynamics.body_poses(model, state)
    k = model.body("link12")
    for got, expected in zip(position[k], tail, strict=True):
        assert expected is None or got == pytest.approx(expected, abs=0.01)
    if back is not None:  # y of a link's frame points down at rest
        np.testing.assert_allclose(-rotation[k][:, 1], back, atol=0.01)


def test_offsets_of_all_joints_steer_the_eel() -> None:
    plant = eel.load(dt=4e-3)
    hold(plant, 12.0)
    straight = plant.observe()["position"]
    _, _, level = attitude(plant)
    plant.reset()
    hold(plant, 12.0, yaw=0.02)
    assert attitude(plant)[2] < level - 5.0  # to the right
    assert plant.observe()["position"][1] < straight[1] - 0.1
    plant.reset()
    hold(plant, 12.0, pitch=0.02)
    assert attitude(plant)[1] < -5.0  # nose down
    assert plant.observe()["position"][2] < -0.1
    plant.reset()
    hold(plant, 6.0, roll=0.02)
    assert attitude(plant)[0] > 5.0  # right side down


@pytest.mark.parametrize(
    ("make", "actuator", "joint"),
    [
        (lambda: eel.load(drive="torque", gait="none", kp_n_m=0.0, kd_n_m_s=0.0), "yaw3_torque", "yaw3"),
        (lambda: moth.load(drive="torque", start="rest", kp_n_m=0.0, kd_n_m_s=0.0), "right_torque", "right.stroke"),
        (lambda: moth.load(drive="torque", start="rest", kp_n_m=0.0, kd_n_m_s=0.0), "left_torque", "left.stroke"),
    ],
)
def test_a_positive_torque_turns_its_joint_to_positive_angles(make: Any, actuator: str, joint: str) -> None:
    item, other, k = make(), make(), 0
    k = item.model.joint(joint)
    hold(item, 3e-3, **{actuator: 1e-3})
    hold(other, 3e-3)
    assert item.observe()["joint_position"][k] > other.observe()["joint_position"][k]


# --- moth -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hovering() -> Any:
    return moth.load()


def after(plant: Any, seconds: float = 0.2, **values: float) -> tuple[Any, tuple[float, float, float]]:
    """Position, and attitude less the hovering one, after whole strokes from the hovering orbit."""
    plant.reset()
    before = attitude(plant)
    hold(plant, seconds, **values)
    roll, rise, turn = (now - then for now, then in zip(attitude(plant), before, strict=True))
    return plant.observe()["position"], (roll, rise, turn)


def test_offsets_of_the_moth(hovering: Any) -> None:
    plant = hovering
    start = {}
    for side in ("right", "left"):
        for value in (0.0, 0.1):
            after(plant, 0.04 * 5, **{f"{side}_offset": value})
            _, position = dynamics.body_poses(plant.model, _level(plant))
            start[side, value] = position[plant.model.body(f"{side}.blade4")][0]
    assert start["right", 0.1] > start["right", 0.0] + 1e-3  # ahead
    assert start["left", 0.1] < start["left", 0.0] - 1e-3  # back
    _, (_, rise, turn) = after(plant, right_offset=0.1, left_offset=0.1)
    assert turn < -4.0  # the body turns right, by as much as the wings turn left
    assert abs(rise) < 0.5
    for sign in (1.0, -1.0):
        position, (_, rise, turn) = after(plant, right_offset=0.03 * sign, left_offset=-0.03 * sign)
        assert sign * rise > 10.0
        assert sign * position[0] < -0.005
        assert abs(turn) < 1e-6


def test_gains_of_the_moth(hovering: Any) -> None:
    _, (roll, _, turn) = after(hovering, 0.08, right_gain=0.1)
    assert roll < -0.5  # left side down
    assert turn < -1.0  # to the right
    _, (roll, _, turn) = after(hovering, 0.08, left_gain=0.1)
    assert roll > 0.5
    assert turn > 1.0
    assert after(hovering, right_gain=0.03, left_gain=0.03)[0][2] > 0.003
    assert after(hovering, right_gain=-0.03, left_gain=-0.03)[0][2] < -0.003


def _level(plant: Any) -> Any:
    """Its joints on a body at home."""
    state = plant.model.state()
    state.q[:] = plant.state.q
    return state
