"""Floors: landing, rest without creep, sliding, tipping, energy; nothing in the air; snapshots; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.base.errors import ModelError

G = 9.81
HALF = (0.1, 0.06, 0.05)
CORNERS = [(x, y, z) for x in (-HALF[0], HALF[0]) for y in (-HALF[1], HALF[1]) for z in (-HALF[2], HALF[2])]


def brick(floor: bool = True, dt: float = 2e-3, actuators: Any = (), **more: Any) -> rtmms.TreePlant:
    """A box of 1 kg with a floor at its corners."""
    sizes = [2.0 * item for item in HALF]
    body = m.Body("brick", solids=[m.Box(*sizes, 1.0 / float(np.prod(sizes)))])
    contacts = [m.Floor("brick", CORNERS, **more)] if floor else []
    return rtmms.TreePlant(rtmms.Mechanism("brick", [body], contacts=contacts), dt, actuators=actuators)


def run(plant: rtmms.TreePlant, seconds: float, command: Any = ()) -> list[dict[str, np.ndarray]]:
    observed = []
    for _ in range(round(seconds / plant.dt)):
        plant.step(np.array(command, dtype=float))
        observed.append(plant.observe())
    return observed


def test_a_body_lands_and_rests_without_creep() -> None:
    """It rests 2 g / rate^2 = 2 mm deep on four corners of eight, each with a quarter of its weight."""
    plant = brick()
    plant.place(position=(0.0, 0.0, 0.3), velocity=(0.4, 0.1, 0.0), angular_velocity=(0.5, 1.0, 0.3))
    run(plant, 4.0)
    before = plant.observe()
    after = run(plant, 10.0)[-1]
    assert np.abs(after["position"] - before["position"]).max() < 1e-12  # m in 10 s
    assert np.abs(after["velocity"]).max() < 1e-12
    pressed = after["floor_force"][after["floor_force"] > 0.0]
    assert len(pressed) == 4
    np.testing.assert_allclose(pressed, G / 4.0, rtol=1e-9)
    assert after["position"][2] == pytest.approx(min(HALF) - 2.0 * G / 100.0**2, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_energy_is_made(seed: int) -> None:
    """The sum of kinetic energy, weight and springs never grows, however it lands."""
    plant, rng = brick(), np.random.default_rng(seed)
    turn = rng.normal(size=4)
    plant.place(
        position=(0.0, 0.0, 0.3), quaternion=turn / np.linalg.norm(turn), velocity=rng.normal(size=3),
        angular_velocity=3.0 * rng.normal(size=3),
    )  # fmt: skip
    energy = np.array([float(item["energy"]) for item in run(plant, 3.0)])
    assert np.diff(energy).max() < 1e-3 * np.ptp(energy)
    assert energy[-1] < energy[0] - 0.5


def test_a_sliding_body_slows_down_by_mu_g() -> None:
    plant = brick(friction=0.3)
    plant.place(position=(0.0, 0.0, HALF[2] - 1e-3))
    run(plant, 0.5)
    plant.place(velocity=(1.0, 0.0, 0.0))
    speed = [float(item["velocity"][0]) for item in run(plant, 0.3)]
    # its corners press more in front than behind, their sum is the weight; settled after 20 ms
    slope = np.polyfit(plant.dt * np.arange(10, len(speed)), speed[10:], 1)[0]
    assert slope == pytest.approx(-0.3 * G, rel=0.02)
    assert abs(float(run(plant, 0.5)[-1]["velocity"][0])) < 1e-6


@pytest.mark.parametrize(("force", "slides"), [(0.6, False), (1.1, True)])
def test_a_force_moves_it_beyond_the_friction_alone(force: float, slides: bool) -> None:
    """At the height of the floor's friction, in parts of mu m g."""
    push = m.BodyWrench("brick", components=("fx",), placement=m.at(z=-HALF[2]))
    plant = brick(friction=0.5, actuators=[push])
    plant.place(position=(0.0, 0.0, HALF[2] - 1e-3))
    run(plant, 0.5, [0.0])
    start = float(plant.observe()["position"][0])
    observed = run(plant, 1.0, [force * 0.5 * G])
    speed = np.array([item["velocity"][0] for item in observed[200:]])
    if slides:
        slope = np.polyfit(plant.dt * np.arange(len(speed)), speed, 1)[0]
        assert slope == pytest.approx(0.1 * 0.5 * G, rel=0.02)  # a = (1.1 - 1) mu g
    else:
        assert np.abs(speed[200:]).max() < 1e-9
        assert observed[-1]["position"][0] - start == pytest.approx(0.0, abs=1e-3)  # the springs yield, and no more


@pytest.mark.parametrize(("angle", "falls"), [(0.55, False), (0.72, True)])
def test_it_tips_over_beyond_its_balance(angle: float, falls: bool) -> None:
    """On an edge along y, the box is in balance at atan(half length / half height) = 1.107 rad from upright; lying at
    `angle` below that from the long side it falls back, beyond it over its edge."""
    balance = np.arctan2(HALF[0], HALF[2])
    pitch = balance + (0.1 if falls else -0.1) * angle
    plant = brick(friction=1.0)
    far = np.hypot(HALF[0], HALF[2])
    lean = np.array([np.cos(0.5 * pitch), 0.0, np.sin(0.5 * pitch), 0.0])
    plant.place(position=(0.0, 0.0, far * np.cos(balance - pitch) - 5e-4), quaternion=lean)
    height = float(run(plant, 3.0)[-1]["position"][2])
    assert height == pytest.approx(HALF[0] if falls else HALF[2], abs=2e-3)


def test_in_the_air_nothing_changes() -> None:
    """The bits of the same tree without a floor."""
    drag = m.DragArea("brick", 0.01, 1.2)  # so that both have the kernels of trees with further parts
    plants = []
    for floor in (True, False):
        plant = brick(floor)
        body = m.Body("brick", solids=[m.Box(0.2, 0.12, 0.1, 400.0)])
        contacts = [m.Floor("brick", CORNERS)] if floor else []
        plant = rtmms.TreePlant(rtmms.Mechanism("brick", [body], contacts=contacts, elements=[drag]), 2e-3)
        plant.place(position=(0.0, 0.0, 9.0), velocity=(1.0, 0.2, 0.0), angular_velocity=(1.0, 2.0, 3.0))
        run(plant, 0.5)
        plants.append(plant)
    assert plants[0].vector.tobytes() == plants[1].vector.tobytes()
    assert not np.any(plants[0].observe()["floor_force"])


def test_a_restored_run_has_the_same_bits_while_it_sticks() -> None:
    plant = brick()
    plant.place(position=(0.0, 0.0, 0.06), velocity=(0.3, 0.0, 0.0))
    run(plant, 0.2)
    memory = plant.present()
    ahead = run(plant, 0.2)[-1]["position"]
    plant.put(*memory)
    assert run(plant, 0.2)[-1]["position"].tobytes() == ahead.tobytes()


def test_feet_of_a_leg_reach_below_the_base() -> None:
    """A foot on a sliding joint touches however far it slides."""
    hull, foot = m.Body("hull", 1.0, inertia=0.01 * np.eye(3)), m.Body("foot", 0.1, inertia=1e-4 * np.eye(3))
    leg = m.Joint("leg", "hull", "foot", "prismatic", axis=(0, 0, -1), damping=1.0)
    feet = m.Floor("foot", [(0.1, 0.1, 0), (-0.1, 0.1, 0), (0.1, -0.1, 0), (-0.1, -0.1, 0)], height=-0.5)
    mechanism = rtmms.Mechanism("lander", [hull, foot], [leg], contacts=[feet])
    plant = rtmms.TreePlant(mechanism, 1e-3, actuators=[m.JointServo("leg", 2000.0, 40.0)])
    plant.place(position=(0.0, 0.0, 0.3), joint_position=[0.5])
    observed = run(plant, 3.0, [0.5])[-1]
    assert observed["floor_force"].sum() == pytest.approx(1.1 * G, rel=1e-6)
    assert observed["position"][2] == pytest.approx(-0.5 + 0.5 - G / 2000.0 - 1e-3, abs=3e-4)


def test_the_quadrotor_takes_off_and_lands() -> None:
    """It stands on its feet, rises with more than its weight, and stands again without creep."""
    plant: Any = rtmms.load("quadrotor", floor=True)
    hover = plant.parameters.hover_rad_s
    assert plant.observe()["position"][2] == 0.05
    assert run(plant, 1.0, [0.0] * 4)[-1]["floor_force"] == pytest.approx([0.5 * G / 4.0] * 4, rel=1e-6)
    assert run(plant, 0.6, [1.2 * hover] * 4)[-1]["position"][2] > 0.2
    assert not np.any(plant.observe()["floor_force"])
    remaining = run(plant, 4.0, [0.0] * 4)[-1]
    assert remaining["position"][2] == pytest.approx(0.05 - G / 100.0**2, abs=1e-9)
    assert np.abs(run(plant, 2.0, [0.0] * 4)[-1]["position"] - remaining["position"]).max() < 1e-12


@pytest.mark.parametrize(
    ("floor", "text"),
    [
        (m.Floor("wall", [(0, 0, 0)]), "body: unknown body 'wall'"),
        (m.Floor("brick", []), "points: expected one or more points"),
        (m.Floor("brick", [(0, 0)]), r"points\[0\]: point must have shape \(3,\)"),
        (m.Floor("brick", CORNERS, friction=-0.1), "friction: expected a number >= 0"),
        (m.Floor("brick", CORNERS, stiffness=0.0), "stiffness: expected a number > 0"),
        (m.Floor("brick", CORNERS, height=float("nan")), "height must be finite"),
    ],
)
def test_refusals_name_place_and_expectation(floor: m.Floor, text: str) -> None:
    body = m.Body("brick", 1.0, inertia=np.eye(3))
    with pytest.raises(ModelError, match=text) as refused:
        rtmms.compile(rtmms.Mechanism("brick", [body], contacts=[floor]))
    assert "mechanism 'brick': contacts[0] (Floor)" in str(refused.value)
