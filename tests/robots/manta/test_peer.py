"""The compiled manta against plain Python that shares nothing with it but the parameters: plain_manta.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import rtmms
from rtmms.robots.manta import Manta
from rtmms.robots.manta.coupling import move_supports
from rtmms.robots.manta.fin_layout import FIELDS, LANES, QDD
from rtmms.robots.manta.layout import POSITION, QUATERNION, RODS, SUPPORTS, TWIST
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.manta.rods import ROD_SIZE
from tests.robots.manta.plain_manta import PlainManta
from tests.robots.manta.plain_step import PlainRun

Array = npt.NDArray[np.float64]


def random_state(plant: Manta, seed: int) -> tuple[Array, Array, Array, Array, Array]:
    """Attitude, body twist, rods (3, 4), joint angles and rates (2, m, n): everything moves."""
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    joints = (2, plant.parameters.links, plant.parameters.chains)
    rods = rng.uniform(-1.0, 1.0, (3, 4)) * np.array([[0.6], [4.0], [60.0]])
    return quaternion, rng.normal(size=6), rods, rng.uniform(-0.7, 0.7, joints), rng.normal(size=joints) * 3.0


def put(plant: Manta, quaternion: Array, twist: Array, rods: Array, joints: Array, rates: Array) -> None:
    """Set the compiled plant's state; lanes without a chain of their own repeat the last one."""
    state = plant._state
    state[POSITION : POSITION + 3] = 1.0, -2.0, 3.0
    state[QUATERNION : QUATERNION + 4] = quaternion
    state[TWIST : TWIST + 6] = twist
    state[RODS : RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)[:, :3] = rods.T
    assert move_supports(plant.model.finned, state, RODS, ROD_SIZE, state, SUPPORTS)
    n, m = plant.parameters.chains, plant.parameters.links
    lanes = np.minimum(np.arange(plant._blocks * LANES), n - 1)
    both = np.stack([joints, rates])[..., lanes].reshape(2, 2, m, plant._blocks, LANES)
    plant.system.joints.reshape(2, plant._blocks, m, 2, LANES)[:] = both.transpose(1, 3, 2, 0, 4)


def joint_accelerations(plant: Manta) -> Array:
    """(2, m, n) as the last evaluation left them in the chains' scratch."""
    p = plant.parameters
    lanes = plant.system.fins.reshape(2, plant._blocks, p.links, FIELDS, LANES)[:, :, :, QDD].transpose(0, 2, 1, 3)
    return lanes.reshape(2, p.links, plant._blocks * LANES)[..., : p.chains]


def apart(ours: Array, theirs: Array) -> float:
    """Largest difference, relative to the largest value."""
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


CASES: list[dict[str, Any]] = [
    {"chains": 17, "links": 3},
    {"chains": 16, "links": 1, "added_mass": True},
    {"chains": 5, "links": 5},
    {"chains": 5, "links": 3, "added_mass": True},
    {"chains": 4, "links": 3, "support_roll": "zero"},
    {"chains": 4, "links": 3, "body": "fixed", "added_mass": True},
]


@pytest.mark.parametrize("arguments", CASES, ids=lambda c: ",".join(f"{k}={v}" for k, v in c.items()))
def test_a_random_state_has_the_same_accelerations_and_wrenches(arguments: dict[str, Any]) -> None:
    plant = rtmms.load("manta", current_m_s=(0.3, -0.4, 0.2), coupling="monolithic", **arguments)
    assert isinstance(plant, Manta)
    plain = PlainManta(plant.parameters)
    for seed in range(3):
        state = random_state(plant, seed)
        if arguments.get("body") == "fixed":
            state[1][:] = 0.0
        put(plant, *state)
        observed, theirs = plant.observe(), plain.evaluate(*state)
        assert apart(joint_accelerations(plant), theirs.joint_acceleration) < 1e-9
        assert apart(observed["thrust"], theirs.thrust) < 1e-9
        assert apart(observed["rod_torque"], theirs.rod_torque) < 1e-9
        if arguments.get("body") != "fixed":
            ours = np.concatenate([observed["acceleration"], observed["angular_acceleration"]])
            assert apart(ours, theirs.acceleration) < 1e-9


@pytest.mark.parametrize(
    "arguments",
    [
        {"chains": 5, "links": 3},
        {"chains": 17, "links": 2, "current_m_s": (0.3, -0.4, 0.2)},
        {"chains": 3, "added_mass": True, "damping_per": "joint"},  # as the fin's, too stiff for this coupling at 10 ms
        {"chains": 3, "body": "fixed"},
    ],
    ids=["free", "current", "added mass", "fixed"],
)
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize("steps", [8, pytest.param(50, marks=pytest.mark.full)])
def test_steps_end_in_the_same_state(arguments: dict[str, Any], dt: float, steps: int) -> None:
    plant = rtmms.load("manta", dt=dt, start_depth_m=0.0, **arguments)
    assert isinstance(plant, Manta)
    plain = PlainRun(plant.parameters, dt)
    command = np.zeros(4)
    for k in range(steps):
        t = 3.0 * np.pi * dt * k
        command[:] = 0.6 * np.sin(t + 0.7), 0.7 * np.sin(t), 0.3, 1.5 * np.sin(t)  # the last beyond its limit
        plant.step(command)
        plain.step(command)
    outputs = plant.observe()
    assert apart(outputs["joint_position"], plain.joints) < 1e-9
    assert apart(outputs["joint_velocity"], plain.rates) < 1e-9
    assert apart(outputs["rod_angle"], plain.rods[0]) < 1e-12
    assert apart(outputs["quaternion"], plain.quaternion) < 1e-12
    if arguments.get("body") != "fixed":
        assert apart(outputs["position"], plain.position) < 1e-9
        assert apart(np.concatenate([outputs["velocity"], outputs["angular_velocity"]]), plain.twist) < 1e-9


def test_what_plain_python_lacks_it_refuses() -> None:
    with pytest.raises(rtmms.ModelError, match="fin_normal must be 'link', got 'neighbour'"):
        PlainManta(MantaParameters(fin_normal="neighbour"))
    with pytest.raises(rtmms.ModelError, match="integrator must be 'implicit', got 'rk4'"):
        PlainRun(MantaParameters(integrator="rk4"), 1e-3)
