"""The quadrotor's controller, by the truth and by what sensors read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.description import describe_plant
from rtmms.sensing import read_profile, seen_through
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.welcome import environment_fields, plain_parameters
from rtmms_controllers.hover import Hover


def flown(profile: str, seconds: float, seed: int = 1, **arguments: Any) -> np.ndarray:
    """(k, 3) m: the true positions, ten a second."""
    bare: Any = rtmms.load("quadrotor")
    plant = seen_through(bare, read_profile(profile, bare))
    plant.reset(seed)
    info = PlantInfo("quadrotor", plant.dt, "lockstep", None, None, plant.actuators, plant.outputs,
                     parameters=plain_parameters(plant), environment=environment_fields(plant))  # fmt: skip
    hover, names = Hover(**arguments), [channel.name for channel in plant.actuators]
    hover.prepare()
    hover.start(info)
    path = []
    for k in range(round(seconds / plant.dt)):
        outputs = {name: value.tolist() for name, value in plant.observe().items()}
        asked = hover.update(State({"step": k, "timestamp": k * plant.dt, "outputs": outputs}, info))
        plant.step(np.array([asked[name] for name in names]))
        if k % round(0.1 / plant.dt) == 0:
            path.append(bare.observe()["position"])
    return np.array(path)


def test_it_flies_to_its_place_by_the_truth() -> None:
    assert flown("ideal", 8.0, x_m=1.0, z_m=2.0)[-1] == pytest.approx([1.0, 0.0, 2.0], abs=0.02)


def test_it_stays_about_its_place_by_typical_sensors() -> None:
    """As near as its receiver knows, whose error wanders by 1.5 m."""
    path = flown("typical", 12.0, x_m=1.0, z_m=2.0)
    assert np.abs(path[-40:] - [1.0, 0.0, 2.0]).max() < 4.0
    assert np.abs(np.diff(path[-40:], axis=0)).max() < 0.1


def test_it_weighs_by_the_plants_own_gravity() -> None:
    bare: Any = rtmms.load("quadrotor", gravity_m_s2=3.7)
    assert describe_plant(bare).environment().gravity == (0.0, 0.0, -3.7)
    result = environment_fields(bare)
    assert result == {"gravity_m_s2": [0.0, 0.0, -3.7], "water_kg_m3": 0.0, "surface_m": 0.0}
    info = PlantInfo("quadrotor", bare.dt, "lockstep", None, None, bare.actuators, bare.outputs, environment=result,
                     parameters=plain_parameters(bare))  # fmt: skip
    hover = Hover(z_m=0.0)
    hover.start(info)
    level = {"position": [0.0] * 3, "quaternion": [1.0, 0.0, 0.0, 0.0], "velocity": [0.0] * 3,
             "angular_velocity": [0.0] * 3}  # fmt: skip
    asked = hover.update(State({"step": 0, "timestamp": 0.0, "outputs": level}, info))
    thrust = sum(bare.parameters.thrust_n_s2 * speed**2 for speed in asked.values())
    assert thrust == pytest.approx(bare.parameters.mass_kg * 3.7)


@pytest.mark.parametrize("name", ["x_m", "y_m", "z_m", "yaw_deg"])
def test_a_place_beyond_every_sense_is_refused(name: str) -> None:
    with pytest.raises(rtmms.ModelError, match=rf"{name}: expected a number from -1e\+06 to 1e\+06, got 1e\+308"):
        Hover(**{name: 1e308})
