"""The ROV's controller: allocation within limits, and what it holds, by the truth and by sensors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.attitude import euler
from rtmms.plant.description import describe_plant
from rtmms.sensing import read_profile, seen_through
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.welcome import environment_fields, plain_parameters
from rtmms_controllers.allocation import AXES, Allocation
from rtmms_controllers.depth_hold import DepthHold


def info_of(plant: Any, robot: str = "bluerov2") -> PlantInfo:
    return PlantInfo(
        robot, plant.dt, "lockstep", None, None, plant.actuators, plant.outputs, parameters=plain_parameters(plant),
        shape=describe_plant(plant).shape() or {}, environment=environment_fields(plant),
    )  # fmt: skip


class Dive:
    """A controller in the loop, without a wire."""

    def __init__(self, profile: str = "ideal", values: dict[str, Any] | None = None, **options: Any) -> None:
        self.bare: Any = rtmms.load("bluerov2", **(values or {}))
        self.plant = seen_through(self.bare, read_profile(profile, self.bare)) if profile != "none" else self.bare
        self.plant.reset(1)
        self.controller, self.step = DepthHold(**options), 0
        self.info = info_of(self.plant)
        self.controller.prepare()
        self.controller.start(self.info)

    def run(self, seconds: float) -> np.ndarray:
        """(k, 5) depth (m), heading, roll, pitch (deg), speed ahead (m/s) of the truth, ten a second."""
        names, observed = [channel.name for channel in self.plant.actuators], []
        for _ in range(round(seconds / self.plant.dt)):
            outputs = {name: value.tolist() for name, value in self.plant.observe().items()}
            message = {"step": self.step, "timestamp": self.step * self.plant.dt, "outputs": outputs}
            asked = self.controller.update(State(message, self.info))
            self.plant.step(np.array([asked[name] for name in names]))
            self.step += 1
            if self.step % round(0.1 / self.plant.dt) == 0:
                now = self.bare.observe()
                roll, pitch, yaw = (math.degrees(item) for item in euler(now["quaternion"].tolist()))
                observed.append([-now["position"][2], yaw, roll, pitch, now["velocity"][0]])
        return np.array(observed)


# -- allocation -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def allocation() -> Allocation:
    return Allocation(info_of(rtmms.load("bluerov2")), ("heave", "yaw"), "test")


def test_within_limits_the_wrench_is_that_asked_for_with_the_least_thrust(allocation: Allocation) -> None:
    rng = np.random.default_rng(4)
    _, _, vh = np.linalg.svd(allocation.matrix)
    for _ in range(50):
        hold, push = (rng.uniform(-0.1, 0.1, 6) * allocation.authority for _ in range(2))
        thrusts = allocation.thrusts(hold, push)
        np.testing.assert_allclose(allocation.matrix @ thrusts, hold + push, atol=1e-9)
        np.testing.assert_allclose(vh[6:] @ thrusts, 0.0, atol=1e-9)


def test_beyond_the_limits_the_direction_stays_and_the_limits_hold(allocation: Allocation) -> None:
    rng, top = np.random.default_rng(5), 30.53
    for _ in range(200):
        hold, push = (rng.uniform(-3.0, 3.0, 6) * allocation.authority for _ in range(2))
        thrusts = allocation.thrusts(hold, 0.0 * push)
        assert np.abs(thrusts).max() <= top
        got = allocation.matrix @ thrusts
        np.testing.assert_allclose(got * np.linalg.norm(hold), hold * np.linalg.norm(got), atol=1e-6)
        assert np.abs(allocation.thrusts(hold, push)).max() <= top


def test_what_holds_comes_before_what_drives(allocation: Allocation) -> None:
    """However much is asked for ahead, depth and heading get all of theirs."""
    hold = np.array([0.0, 0.0, 40.0, 0.5, -0.5, 6.0])
    got = allocation.matrix @ allocation.thrusts(hold, np.array([1e3, 0, 0, 0, 0, 0]))
    np.testing.assert_allclose(got[1:], hold[1:], atol=1e-9)
    assert 20.0 < got[0] < allocation.authority[0]


def test_its_commands_are_the_inverse_of_the_curve(allocation: Allocation) -> None:
    plant: Any = rtmms.load("bluerov2", dt=1e-3, thruster_s=0.0)
    hold = np.array([0.0, 0.0, 30.0, 1.0, -1.0, 4.0])
    commands = allocation.commands(hold, np.array([10.0, -8.0, 0, 0, 0, 0]))
    plant.step(np.array([commands[channel.name] for channel in plant.actuators]))
    p = plant.parameters
    mass = np.array([p.mass_kg] * 3 + [p.ixx_kg_m2, p.iyy_kg_m2, p.izz_kg_m2])
    added = [getattr(p, f"added_{axis}_{unit}") for axis, unit in zip(AXES, ["kg"] * 3 + ["kg_m2"] * 3, strict=True)]
    wrench = (mass + added) * plant.state.twist / plant.dt
    np.testing.assert_allclose(wrench, hold + np.array([10.0, -8.0, 0, 0, 0, 0]), rtol=2e-2, atol=0.1)
    assert set(allocation.commands(np.zeros(6), np.zeros(6)).values()) == {0.0}


def test_authority_is_the_largest_wrench_along_each_axis(allocation: Allocation) -> None:
    for k, maximum in enumerate(allocation.authority):
        thrusts = allocation.inverse @ (maximum * np.eye(6)[k])
        assert np.abs(thrusts).max() == pytest.approx(allocation._upper[0], rel=1e-9)


@pytest.mark.parametrize(("robot", "text"), [
    ("quadrotor", "expected a plant with thrusters on its base, got quadrotor without"),
    ("torpedo", "forces and moments, got propeller.command of torpedo"),
])  # fmt: skip
def test_robots_that_it_cannot_hold_are_refused(robot: str, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        DepthHold().start(info_of(rtmms.load(robot), robot))


def test_a_thruster_that_another_peer_has_is_not_allocated() -> None:
    info = info_of(rtmms.load("bluerov2"))
    granted = tuple(channel.name for channel in info.actuators if channel.name != "vertical.rear_left.command")
    left = Allocation(replace(info, granted=granted), ("heave", "yaw"), "test")
    assert left.names == granted
    hold = np.array([0.0, 0.0, 20.0, 0.0, 0.0, 2.0])
    np.testing.assert_allclose(left.matrix @ left.thrusts(hold, np.zeros(6)), hold, atol=1e-9)


# -- the loops --------------------------------------------------------------------------------------------------------


def test_it_holds_depth_and_heading_and_drives_ahead() -> None:
    dive = Dive("none", depth_m=3.0, heading_deg=90.0)
    dive.run(15.0)
    dive.controller.on_parameters_changed({"speed_m_s": 0.5})
    ahead = dive.run(10.0)
    np.testing.assert_allclose(ahead[:, 0], 3.0, atol=0.03)
    np.testing.assert_allclose(ahead[:, 1], 90.0, atol=1.0)
    np.testing.assert_allclose(ahead[:, 2:4], 0.0, atol=1.5)
    np.testing.assert_allclose(ahead[30:, 4], 0.5, atol=0.01)


@pytest.mark.parametrize("arguments", [
    {"net_buoyancy_kg": 0.5}, {"net_buoyancy_kg": -0.5}, {"dead_band": 0.0625, "net_buoyancy_kg": -0.1},
    {"mass_kg": 18.0, "added_heave_kg": 25.0},
])  # fmt: skip
def test_it_learns_what_it_has_to_carry(arguments: dict[str, float]) -> None:
    dive = Dive("none", arguments, depth_m=3.0)
    dive.run(20.0)
    np.testing.assert_allclose(dive.run(5.0)[:, 0], 3.0, atol=0.02)


def test_it_leans_where_it_is_asked_to() -> None:
    """Depth and level keep to the world when the body does not."""
    dive = Dive("none", depth_m=2.5, pitch_deg=-30.0, roll_deg=10.0, heading_deg=20.0)
    dive.run(15.0)
    dive.controller.on_parameters_changed({"speed_m_s": 0.2})
    observed = dive.run(8.0)
    np.testing.assert_allclose(observed[:, 0], 2.5, atol=0.05)
    np.testing.assert_allclose(observed[20:, 1:4], np.tile([20.0, 10.0, -30.0], (len(observed) - 20, 1)), atol=2.0)


def test_it_keeps_its_place_in_a_current() -> None:
    dive = Dive("none", {"current_x_m_s": 0.2, "current_y_m_s": -0.2}, depth_m=2.0)
    dive.run(20.0)
    before = dive.bare.observe()["position"]
    dive.run(5.0)
    np.testing.assert_allclose(dive.bare.observe()["position"], before, atol=0.05)


def test_it_holds_by_imu_depth_sensor_and_doppler_log() -> None:
    dive = Dive("typical", depth_m=3.0, heading_deg=45.0)
    dive.run(20.0)
    dive.controller.on_parameters_changed({"speed_m_s": 0.4})
    observed = dive.run(10.0)
    np.testing.assert_allclose(observed[:, 0], 3.0, atol=0.1)
    np.testing.assert_allclose(observed[:, 1], 45.0, atol=3.0)
    np.testing.assert_allclose(observed[40:, 4], 0.4, atol=0.05)


def test_it_begins_anew_after_a_reset() -> None:
    dive = Dive("none", {"net_buoyancy_kg": 1.0}, depth_m=2.0)
    first = dive.run(3.0)
    dive.plant.reset(1)
    dive.step = 0
    np.testing.assert_array_equal(dive.run(3.0), first)


@pytest.mark.parametrize(("options", "text"), [
    ({"depth_m": -1.0}, "depth_m"), ({"pitch_deg": 80.0}, "pitch_deg"), ({"depth_rad_s": 0.0}, "depth_rad_s"),
])  # fmt: skip
def test_wrong_parameters_are_refused(options: dict[str, float], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        DepthHold(**options)
