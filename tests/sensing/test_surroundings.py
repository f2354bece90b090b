"""Instruments meet what the plant is in: its gravity, as it is now, and its water, or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Mechanism
from rtmms.model.solids import Box
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Environment
from rtmms.sensing import Sensed, read_profile
from rtmms.sensing.data_sheets import Depth, Dvl, Gps, Imu, Sensor
from rtmms.sensing.faults import Faulty
from rtmms.sensing.sensed import Estimated
from tests.pendulum import Pendulum
from tests.sensing.mover import Mover
from tests.sensing.test_sensed import screw

PERFECT = {"imu": Imu(rate_hz=1000.0)}


def stone(gravity: tuple[float, float, float], medium: str = "", fluid: float = 0.0) -> TreePlant:
    """One body."""
    body = Body("stone", solids=[Box(0.3, 0.2, 0.1, 2000.0)], fluid_density=fluid)
    return TreePlant(Mechanism("stone", [body], gravity=gravity), 1e-3, medium=medium)


def felt(plant: Any, steps: int = 5) -> np.ndarray:
    observed = Sensed(plant, PERFECT)
    for _ in range(steps):
        observed.step(np.zeros(len(plant.actuators)))
    return np.asarray(observed.observe()["imu.accel"])


class Lake(Mover):
    """In water whose surface is 2 m up."""

    def environment(self) -> Environment:
        return Environment((0.0, 0.0, -9.7), 998.0, 2.0)


class Flier(Mover):
    medium = "air"


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -1.62), (0.0, 0.0, 0.0), (0.5, -0.3, -9.0)])
def test_in_free_fall_nothing_is_felt(gravity: tuple[float, float, float]) -> None:
    np.testing.assert_allclose(felt(stone(gravity)), 0.0, atol=1e-10)


def test_before_the_first_step_a_body_is_as_if_it_were_held() -> None:
    np.testing.assert_allclose(felt(stone((0.5, -0.3, -9.0)), 0), [-0.5, 0.3, 9.0], atol=1e-14)


def test_a_satellite_is_weightless() -> None:
    np.testing.assert_allclose(felt(rtmms.load("satellite")), 0.0, atol=1e-9)


@pytest.mark.parametrize("wrapped", [False, True])
def test_gravity_that_changes_is_felt_and_the_estimator_knows(wrapped: bool) -> None:
    """A manta is as heavy as its water: it stays where it is."""
    manta: Any = rtmms.load("manta")
    plant = Estimated(Faulty(manta) if wrapped else manta, PERFECT)
    for gravity in (9.81, 3.0):
        plant.set(gravity_m_s2=gravity)
        for _ in range(4):
            plant.step(np.zeros(4))
        assert plant.observe()["imu.accel"] == pytest.approx([0.0, 0.0, gravity], abs=1e-3)
        assert plant.estimator.gravity == pytest.approx([0.0, 0.0, -gravity])
    blob = plant.snapshot()
    plant.set(gravity_m_s2=9.81)
    plant.set(gravity_m_s2=3.0)
    plant.restore(blob)
    plant.reset()
    assert plant.observe()["imu.accel"] == pytest.approx([0.0, 0.0, 3.0])
    assert plant.estimator.gravity == pytest.approx([0.0, 0.0, -3.0])


@pytest.mark.parametrize(
    ("robot", "gravity", "density"),
    [
        ("manta", -9.81, 1000.0), ("quadrotor", -9.81, 0.0), ("torpedo", -9.81, 1000.0),
        ("bluerov2", -9.81, 1000.0),
        ("purcell", 0.0, 1000.0), ("satellite", 0.0, 0.0),
    ],
)  # fmt: skip
def test_robots_report_what_they_are_in(robot: str, gravity: float, density: float) -> None:
    plant = rtmms.load(robot)
    observed = Sensed(plant, {"imu": Imu(rate_hz=50.0)})
    assert (
        describe_plant(plant).environment()
        == describe_plant(observed).environment()
        == ((0.0, 0.0, gravity), density, 0.0)
    )


def test_of_a_plant_that_reports_nothing() -> None:
    class Moon(Mover):
        parameters = {"gravity_m_s2": 1.62}  # noqa: RUF012

    assert describe_plant(Moon()).environment() == ((0.0, 0.0, -1.62), 1000.0, 0.0)
    assert describe_plant(Flier()).environment() == ((0.0, 0.0, -9.80665), 0.0, 0.0)
    assert describe_plant(Pendulum()).environment().gravity == (0.0, 0.0, -9.80665)


def test_a_tree_without_a_medium_is_in_what_its_bodies_displace() -> None:
    g = (0.0, 0.0, -9.81)
    result = [describe_plant(stone(g, medium, fluid)).environment().density for medium, fluid in (
        ("", 0.0), ("", 1.2), ("", 1025.0), ("water", 0.0), ("water", 1025.0), ("air", 1025.0), ("ground", 0.0),
    )]  # fmt: skip
    assert result == [0.0, 0.0, 1025.0, 1000.0, 1025.0, 0.0, 0.0]


@pytest.mark.full
def test_a_urdf_is_in_water_where_the_fluid_acts_on_it(tmp_path: Any) -> None:
    path = tmp_path / "box.urdf"
    path.write_text(
        '<robot name="box"><link name="box"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        'ixz="0" iyz="0"/></inertial><collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>'
    )
    assert describe_plant(rtmms.load(str(path))).environment().density == 0.0
    assert (
        describe_plant(rtmms.load(str(path), buoyancy="shapes", fluid_density_kg_m3=1020.0)).environment().density
        == 1020.0
    )


WET = "it measures in water, and this plant is not in water"


@pytest.mark.parametrize(
    ("sensor", "gravity", "medium", "text"),
    [
        (Depth(), (0.0, 0.0, -9.81), "air", WET), (Dvl(), (0.0, 0.0, -9.81), "ground", WET),
        (Depth(), (0.0, 0.0, 0.0), "water", "without gravity the water's pressure gives no depth"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_sentence(sensor: Sensor, gravity: Any, medium: str, text: str) -> None:
    with pytest.raises(ModelError) as fault:
        Sensed(stone(gravity, medium), {"one": sensor})
    assert str(fault.value) == f"sensor one: {text}"


@pytest.mark.parametrize(
    ("medium", "gravity", "left_out"),
    [
        ("water", -9.81, set()), ("air", -9.81, {"depth", "dvl"}), ("ground", -9.81, {"depth", "dvl"}),
        ("", -9.81, {"depth", "dvl"}), ("water", 0.0, {"depth"}),
    ],
)  # fmt: skip
def test_typical_leaves_it_out(medium: str, gravity: float, left_out: set[str]) -> None:
    profile = read_profile("typical", stone((0.0, 0.0, gravity), medium))
    assert {"imu", "mag", "depth", "dvl", "gps"} - set(profile) == left_out


def reading(plant: Mover, sensor: Sensor, quantity: str) -> float:
    return float(Sensed(plant, {"one": sensor}).observe()[f"one.{quantity}"])


def test_depth_and_gps_count_from_the_surface() -> None:
    """A body at z = -3 m."""
    assert reading(Lake(screw), Depth(rate_hz=1000.0), "value") == pytest.approx(5.0)
    assert reading(Mover(screw), Depth(rate_hz=1000.0), "value") == pytest.approx(3.0)
    assert reading(Mover(screw), Gps(), "valid") == 0.0
    assert reading(Flier(screw), Gps(), "valid") == 1.0
    assert reading(Flier(screw), Gps(surface_m=-2.0), "valid") == 0.0
    afloat = lambda time: (np.array([0.0, 0.0, 1.95]), *screw(time)[1:])
    assert reading(Lake(afloat), Gps(), "valid") == 1.0
    assert reading(Lake(lambda time: (np.zeros(3), *screw(time)[1:])), Gps(), "valid") == 0.0


def test_the_estimate_counts_depth_from_the_surface() -> None:
    plant = Estimated(Lake(dt=5e-3), {"imu": Imu(rate_hz=200.0), "depth": Depth(rate_hz=50.0)})
    for _ in range(400):
        plant.step(np.zeros(1))
    assert plant.observe()["estimate.position"][2] == pytest.approx(0.0, abs=1e-6)
