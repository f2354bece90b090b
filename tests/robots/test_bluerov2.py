"""The BlueROV2: its published numbers, identities, and the same motion by scipy from Fossen's equation."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.dynamics.inertia import mass_matrix
from rtmms.model.compiled import State
from rtmms.robots.bluerov2 import CURVE_POINTS, BlueRov2, thrust_curve, thruster_poses
from tests.robots.plain_rov import FLIP, PlainRov, rotation, to_frd

NAMES = list(thruster_poses(BlueRov2()))
RNG = np.random.default_rng(11)


def allocation(p: BlueRov2) -> np.ndarray:
    """(6, 8) wrench of a newton of each thruster."""
    columns = [np.concatenate([pose.rotation[:, 0], np.cross(pose.position, pose.rotation[:, 0])])
               for pose in thruster_poses(p).values()]  # fmt: skip
    return np.column_stack(columns)


def command_of(p: BlueRov2, wrench: np.ndarray) -> np.ndarray:
    """(8,) commands whose thrusts are the pseudo-inverse's."""
    command, thrust = np.array(thrust_curve(p)).T
    thrusts = np.linalg.pinv(allocation(p)) @ wrench
    assert np.abs(thrusts).max() < thrust[-1]
    return np.interp(thrusts, thrust, command)


def run(plant: Any, command: np.ndarray, seconds: float) -> dict[str, Any]:
    for _ in range(round(seconds / plant.dt)):
        plant.step(command)
    outputs: dict[str, Any] = plant.observe()
    return outputs


def placed(plant: Any, eta: np.ndarray, twist: np.ndarray) -> None:
    """eta (6,) NED and Euler's angles, twist (6,) FRD."""
    turn = np.diag(FLIP) @ rotation(*eta[3:]) @ np.diag(FLIP)
    w = 0.5 * math.sqrt(1.0 + np.trace(turn))
    v = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / (4.0 * w)
    plant.reset()
    plant.place(State(FLIP * eta[:3], np.array([w, *v]), np.zeros(0), to_frd(twist), np.zeros(0)))


def matrix_of(q: np.ndarray) -> np.ndarray:
    w, x, y, z = q
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


# -- the publication's numbers ----------------------------------------------------------------------------------------


def test_its_mass_matrix_is_the_publications() -> None:
    plant: Any = rtmms.load("bluerov2")
    published = [13.5 + 6.36, 13.5 + 7.12, 13.5 + 18.68, 0.26 + 0.189, 0.23 + 0.135, 0.37 + 0.222]
    np.testing.assert_allclose(mass_matrix(plant.model, plant.state), np.diag(published), atol=1e-12)


def test_the_thrust_curve_is_the_publications_and_has_an_inverse() -> None:
    curve = np.array(thrust_curve(BlueRov2()))
    v = curve[:, 0]
    published = -140.3 * v**9 + 389.9 * v**7 - 404.1 * v**5 + 176.0 * v**3 + 8.9 * v
    assert len(curve) == 2 * CURVE_POINTS + 1
    assert np.abs(curve[:, 1] - published).max() < 0.2
    assert np.all(np.diff(curve[:, 1]) >= 0.0)
    np.testing.assert_allclose(curve[:, 1], -curve[::-1, 1], atol=1e-12)


def test_a_dead_band_shifts_the_curve() -> None:
    wide = np.array(thrust_curve(BlueRov2(dead_band=0.0625)))
    bare = np.array(thrust_curve(BlueRov2()))
    assert np.all(np.diff(wide[:, 0]) > 0.0)
    np.testing.assert_allclose(np.interp([-0.06, 0.0, 0.06], *wide.T), 0.0, atol=1e-12)
    np.testing.assert_allclose(wide[-CURVE_POINTS:, 1], bare[-CURVE_POINTS:, 1])
    assert wide[-1, 0] == 1.0


def test_it_floats_level_where_it_is() -> None:
    """Neutral trim: nothing moves in ten minutes, and a quarter turn about its heading changes nothing."""
    plant: Any = rtmms.load("bluerov2", dt=0.05)
    observed = run(plant, np.zeros(8), 600.0)
    np.testing.assert_allclose(observed["position"], [0.0, 0.0, -2.0], atol=1e-12)
    np.testing.assert_allclose(observed["quaternion"], [1.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_with_the_published_volume_it_sinks_in_fresh_water() -> None:
    plant: Any = rtmms.load("bluerov2", preset="published")
    observed = run(plant, np.zeros(8), 60.0)
    heavy, linear, quadratic = 0.1 * 9.81, 33.0, 190.0
    speed = (-linear + math.sqrt(linear**2 + 4.0 * quadratic * heavy)) / (2.0 * quadratic)
    np.testing.assert_allclose(observed["velocity"], [0.0, 0.0, -speed], atol=1e-9)


TERMINAL = {"surge": 60.0, "sway": 60.0, "heave": 100.0, "roll": 10.0, "pitch": 6.0, "yaw": 15.0}
"""N and N m: the steady wrench of each axis."""


@pytest.mark.parametrize("axis", TERMINAL)
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_terminal_speeds_and_turning_rates(axis: str, sense: float) -> None:
    """The root of d v + D v^2 = tau, by a steady wrench on one axis.

    Without restoring moment, which would hold roll and pitch. For a few seconds and from a balanced wrench at once:
    straight motion is unstable, because the moment of the added mass turns the robot across its way.
    """
    plant: Any = rtmms.load("bluerov2", buoyancy_above_m=0.0, thruster_s=0.0)
    p, k = plant.parameters, list(TERMINAL).index(axis)
    plain = PlainRov(asdict(p))
    wrench = sense * TERMINAL[axis] * np.eye(6)[k]
    observed = run(plant, command_of(p, wrench), 5.0)
    linear, quadratic = plain.linear[k], plain.quadratic[k]
    speed = (-linear + math.sqrt(linear**2 + 4.0 * quadratic * TERMINAL[axis])) / (2.0 * quadratic)
    expected = np.zeros(6)
    expected[k] = sense * speed
    np.testing.assert_allclose(
        np.concatenate([observed["velocity"], observed["angular_velocity"]]), expected, atol=2e-6
    )


@pytest.mark.parametrize("angle", [-60.0, -20.0, 5.0, 45.0, 80.0])
@pytest.mark.parametrize("axis", ["roll", "pitch"])
def test_the_restoring_moment_is_of_weight_and_lever(axis: str, angle: float) -> None:
    """From rest at an angle: inertia times acceleration is -m g (height of buoyancy) sin of the angle."""
    plant: Any = rtmms.load("bluerov2", dt=1e-4)
    p, k = plant.parameters, ("roll", "pitch").index(axis)
    eta = np.zeros(6)
    eta[3 + k] = math.radians(angle)
    placed(plant, eta, np.zeros(6))
    rate = run(plant, np.zeros(8), 1e-4)["angular_velocity"] * FLIP / 1e-4
    inertia = np.array([p.ixx_kg_m2 + p.added_roll_kg_m2, p.iyy_kg_m2 + p.added_pitch_kg_m2])[k]
    moment = -p.mass_kg * 9.81 * p.buoyancy_above_m * math.sin(math.radians(angle))
    expected = np.zeros(3)
    expected[k] = moment / inertia
    np.testing.assert_allclose(rate, expected, rtol=1e-3, atol=1e-9)


# -- peers ------------------------------------------------------------------------------------------------------------


def compared(plant: Any, plain: PlainRov, eta: np.ndarray, nu: np.ndarray, wrench: np.ndarray, seconds: float) -> None:
    """wrench  (6,) FRD."""
    placed(plant, eta, nu)
    command = command_of(plant.parameters, to_frd(wrench))
    assert plant.parameters.thruster_s == 0.0
    observed = run(plant, command, seconds)
    end, speed = plain.run(eta, nu, lambda t: wrench, seconds)
    np.testing.assert_allclose(FLIP * observed["position"], end[:3], atol=1e-6)
    turn = np.diag(FLIP) @ matrix_of(observed["quaternion"]) @ np.diag(FLIP)
    np.testing.assert_allclose(turn, rotation(*end[3:]), atol=1e-6)
    np.testing.assert_allclose(
        to_frd(np.concatenate([observed["velocity"], observed["angular_velocity"]])), speed, atol=1e-6
    )


@pytest.mark.parametrize("axis", ["roll", "pitch"])
def test_free_decay_is_that_of_fossens_equation(axis: str) -> None:
    """From 20 deg at rest, for two periods and more of 3.6 s."""
    plant: Any = rtmms.load("bluerov2", dt=1e-3, thruster_s=0.0)
    eta = np.zeros(6)
    eta[3 + ("roll", "pitch").index(axis)] = math.radians(20.0)
    compared(plant, PlainRov(asdict(plant.parameters)), eta, np.zeros(6), np.zeros(6), 8.0)


@pytest.mark.parametrize("preset", ["neutral", "published"])
@pytest.mark.parametrize("trial", range(4))
def test_its_motion_is_that_of_fossens_equation(trial: int, preset: str) -> None:
    """From random poses and velocities, under random wrenches: with Coriolis and Munk's moments."""
    rng = np.random.default_rng(trial)
    plant: Any = rtmms.load("bluerov2", dt=5e-4, preset=preset, thruster_s=0.0)
    eta = np.concatenate([rng.uniform(-3.0, 3.0, 3), rng.uniform(-0.5, 0.5, 3)])
    nu = rng.uniform(-0.6, 0.6, 6)
    wrench = rng.uniform(-1.0, 1.0, 6) * (30.0, 30.0, 40.0, 1.0, 0.8, 3.0)
    compared(plant, PlainRov(asdict(plant.parameters)), eta, nu, wrench, 2.0)


# -- identities -------------------------------------------------------------------------------------------------------

UNDAMPED = {f"linear_{axis}": 0.0 for axis in ("surge_n_s_m", "heave_n_s_m", "pitch_n_m_s")} | {
    f"quadratic_{axis}": 0.0
    for axis in ("surge_kg_m", "sway_kg_m", "heave_kg_m", "roll_kg_m2", "pitch_kg_m2", "yaw_kg_m2")
}


def test_without_damping_it_keeps_its_energy() -> None:
    plant: Any = rtmms.load("bluerov2", dt=1e-3, **UNDAMPED)
    placed(plant, np.array([0.0, 0.0, 2.0, 0.3, -0.4, 0.2]), np.array([0.5, -0.3, 0.4, 0.2, 0.5, -0.6]))
    before = float(plant.observe()["energy"])
    moving = float(0.5 * plant.state.twist @ mass_matrix(plant.model, plant.state) @ plant.state.twist)
    assert abs(float(run(plant, np.zeros(8), 20.0)["energy"]) - before) < 1e-9 * moving
    assert moving > 3.0


def test_its_energy_falls_by_the_work_of_the_damping() -> None:
    """Energy lost = int (d + D |nu|) nu^2, Simpson's rule over the steps."""
    plant: Any = rtmms.load("bluerov2", dt=1e-3)
    plain = PlainRov(asdict(plant.parameters))
    placed(plant, np.array([0.0, 0.0, 2.0, 0.3, -0.4, 0.2]), np.array([0.5, -0.3, 0.4, 0.2, 0.5, -0.6]))
    before, powers = float(plant.observe()["energy"]), []
    for _ in range(2000):
        twist = plant.state.twist
        powers.append(float(twist @ plain.damping(twist)))
        plant.step(np.zeros(8))
    twist = plant.state.twist
    powers.append(float(twist @ plain.damping(twist)))
    weights = np.ones(2001)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    lost = float(weights @ np.array(powers)) * 1e-3 / 3.0
    assert before - float(plant.observe()["energy"]) == pytest.approx(lost, rel=1e-6)
    assert lost > 3.0


def test_a_mirrored_command_makes_a_mirrored_motion() -> None:
    """Left and right: y, roll and yaw change their sign, and nothing else."""
    plant: Any = rtmms.load("bluerov2")
    command = RNG.uniform(-0.5, 0.5, 8)
    swapped = [NAMES.index(name.replace("right", "x").replace("left", "right").replace("x", "left")) for name in NAMES]
    right = run(plant, command, 3.0)
    plant.reset()
    left = run(plant, command[swapped], 3.0)
    np.testing.assert_allclose(left["position"], right["position"] * (1, -1, 1), atol=1e-10)
    np.testing.assert_allclose(left["velocity"], right["velocity"] * (1, -1, 1), atol=1e-10)
    np.testing.assert_allclose(left["angular_velocity"], right["angular_velocity"] * (-1, 1, -1), atol=1e-10)


def test_its_steps_converge_with_order_4() -> None:
    """Away from rest, where the damping is smooth."""
    command, ends = np.full(8, 0.12), []
    for n in (1, 2, 4, 32):
        plant: Any = rtmms.load("bluerov2", dt=0.1, substeps=n, thruster_s=0.3)
        placed(plant, np.array([0.0, 0.0, 2.0, 0.1, 0.1, 0.2]), np.array([0.9, 0.8, 0.9, 0.6, 0.7, 0.8]))
        run(plant, command, 0.4)
        ends.append(np.concatenate([plant.state.position, plant.state.twist]))
    errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    assert errors[0] > 1e-9
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(orders > 3.7), (errors, orders)


def test_a_thruster_follows_its_command_with_its_lag() -> None:
    plant: Any = rtmms.load("bluerov2", dt=1e-3)
    command = np.linspace(-0.9, 0.9, 8)
    observed = run(plant, command, 0.029)
    np.testing.assert_allclose(observed["motor"], command * (1.0 - math.exp(-1.0)), atol=1e-12)


def test_its_geometry_lists_the_thrusters_with_places_and_curves() -> None:
    """`thrusters` of the geometry: what a controller needs to allocate, equal to the motion that follows."""
    plant: Any = rtmms.load("bluerov2", dt=1e-3, thruster_s=0.0, dead_band=0.05)
    table = plant.shape["thrusters"]
    assert [entry["actuator"] for entry in table] == [channel.name for channel in plant.actuators]
    mass = mass_matrix(plant.model, plant.state)
    for k, item in enumerate(table):
        plant.reset()
        command = 0.5 * np.eye(8)[k]
        plant.step(command)
        wrench = mass @ plant.state.twist / plant.dt
        thrust = np.interp(0.5, *np.array(item["curve"]).T)
        route, place = np.array(item["direction"]), np.array(item["position"])
        np.testing.assert_allclose(
            wrench, thrust * np.concatenate([route, np.cross(place, route)]), rtol=0.01, atol=0.02
        )


@pytest.mark.parametrize(("name", "value"), [
    ("mass_kg", 0.0), ("thrust_n", (1.0, 2.0)), ("dead_band", 0.6), ("horizontal_deg", 90.0), ("net_buoyancy_kg", 6.0),
    ("linear_surge_n_s_m", -1.0),
])  # fmt: skip
def test_wrong_parameters_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(rtmms.ModelError, match=name):
        rtmms.load("bluerov2", **{name: value})


def test_its_damping_changes_while_it_moves() -> None:
    plant: Any = rtmms.load("bluerov2")
    command = command_of(plant.parameters, np.array([0.0, 0.0, -60.0, 0, 0, 0]))
    run(plant, command, 20.0)
    plant.set(quadratic_heave_kg_m=400.0)
    observed = run(plant, command, 20.0)
    assert observed["velocity"][2] == pytest.approx((33.0 - math.sqrt(33.0**2 + 4 * 400.0 * 60.0)) / 800.0, rel=1e-6)


def test_a_current_carries_it_along() -> None:
    plant: Any = rtmms.load("bluerov2", current_x_m_s=0.3, current_y_m_s=-0.2)
    observed = run(plant, np.zeros(8), 120.0)
    np.testing.assert_allclose(matrix_of(observed["quaternion"]) @ observed["velocity"], [0.3, -0.2, 0.0], atol=5e-3)
