"""The modal moth as a plant: energy, modes and steps that converge, its rigid limit, hover's numbers, its shape."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.analysis.linearise import linearise
from rtmms.mechanism.flow import fluid_wrench
from rtmms.model.description import Joint
from rtmms.robots import modal_moth
from rtmms.robots.modal_moth import ModalMoth
from rtmms.view.drawings import shape_of
from rtmms.wire.protocol.received_state import PlantInfo

PERIOD = 1.0 / 26.0
pytestmark = pytest.mark.full


def run(plant, steps):
    for _ in range(steps):
        plant.step(plant.neutral)
    return plant.observe()


def test_in_a_vacuum_energy_is_the_work_of_the_joints_and_momentum_stays():
    off = []
    for step in (2e-4, 1e-4):
        plant = modal_moth.load(step, air_density_kg_m3=0.0, gravity_m_s2=0.0, damping_ratio=0.0, step_s=1.0)
        start = plant.observe()["energy"]
        before = dynamics.momentum(plant.model, plant.state)
        end = run(plant, round(0.1 / step))
        off.append(abs(end["energy"] - start - end["work"]))
        np.testing.assert_allclose(dynamics.momentum(plant.model, plant.state)[:3], before[:3], atol=1e-9)
    assert np.log2(off[0] / off[1]) > 3.5


def test_wings_held_straight_are_the_rigid_vehicle():
    p = ModalMoth()
    whole = modal_moth.describe(p)
    bodies, joints = [], list(whole.joints)
    for body in whole.bodies:
        bodies.append(replace(body, modal=None))
        for section in body.modal.sections if body.modal else ():
            bodies.append(section.body)
            joints.append(Joint(f"fix {section.body.name}", body.name, section.body.name, type="fixed",
                                placement=section.placement))  # fmt: skip
    rigid = rtmms.compile(replace(whole, bodies=bodies, joints=joints))
    model = rtmms.compile(whole)
    state, other = model.state(), rigid.state()
    names = ("right.flap", "right.feather", "left.flap", "left.feather")
    rng = np.random.default_rng(1)
    for name in names:
        q, qd = rng.normal(size=2)
        state.q[model.joint(name)], state.qd[model.joint(name)] = 0.3 * q, 50.0 * qd
        other.q[rigid.joint(name)], other.qd[rigid.joint(name)] = 0.3 * q, 50.0 * qd
    held, accelerations = np.ones(model.n, dtype=bool), np.zeros(model.n)
    ours = dynamics.hybrid_dynamics(model, state, accelerations, imposed=held,
                                    wrench=fluid_wrench(model, state, blade_nodes=1))  # fmt: skip
    theirs = dynamics.inverse_dynamics(rigid, other, np.zeros(4),
                                       wrench=fluid_wrench(rigid, other, blade_nodes=1))  # fmt: skip
    np.testing.assert_allclose(
        ours.base_acceleration, theirs.base_acceleration, atol=1e-9 * np.abs(theirs.base_acceleration).max()
    )
    for name in names:
        assert ours.torque[model.joint(name)] == pytest.approx(theirs.torque[rigid.joint(name)], rel=1e-9, abs=1e-15)
    assert model.mass == pytest.approx(rigid.mass)


def test_it_all_but_hovers_and_its_wings_twist_as_more_modes_predict():
    result = []
    for modes in (1, 3):
        plant = modal_moth.load(PERIOD / 80, "fixed", modes=modes)
        run(plant, 80 * 8)
        lift, twist = [], []
        for _ in range(80):
            observed = run(plant, 1)
            lift.append(plant.model.mass * 9.81 - observed["base_wrench"][2])
            twist.append(abs(observed["tip_twist"]).max())
        result.append((np.mean(lift) / (plant.model.mass * 9.81), max(twist)))
    assert result[0][0] == pytest.approx(1.12, abs=0.01)
    assert np.degrees(result[0][1]) == pytest.approx(25.0, abs=1.0)
    np.testing.assert_allclose(result[0], result[1], rtol=0.01)


def test_it_is_linearised_monitored_seen_and_put_back():
    plant = modal_moth.load()
    run(plant, 7)
    result = linearise(plant)
    n, base, ends = plant.model.n, plant.vector.copy(), []
    k = plant.model.joint("right.wing.twist1")
    for sign in (1.0, -1.0):
        plant.vector[:] = base
        plant.vector[7 + k] += sign * 1e-6
        ends.append(plant.evaluate()[6 + n : 12 + n])
    plant.vector[:] = base
    slope = (ends[0] - ends[1]) / 2e-6
    column = result.a[6:12, result.states.index("right.wing.twist1")]
    np.testing.assert_allclose(column, slope, atol=1e-6 * np.abs(slope).max())
    blob = plant.snapshot()
    first = run(plant, 3)
    plant.restore(blob)
    again = run(plant, 3)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert 0.0 < plant.step_error().largest < 1e-2
    info = PlantInfo(
        robot="modal_moth", dt=plant.dt, mode="lockstep", period_s=None, deadline_s=None, actuators=plant.actuators,
        outputs=plant.outputs, parameters=asdict(plant.parameters),
    )  # fmt: skip
    shape = shape_of(info)
    rotations, positions = dynamics.body_poses(plant.model, plant.state)
    at = plant.model.body("right.wing.section8")
    section = plant.state.rotation.T @ (positions[at] - plant.state.position)
    right = np.array(shape.points(again)[0])
    lead = np.array([np.interp(section_x(plant), np.linspace(0, 1, 11), right[0::2, axis]) for axis in range(3)])
    np.testing.assert_allclose(lead, section, atol=1e-6)
    assert rotations.shape[1:] == (3, 3)


def section_x(plant):
    nodes, _ = np.polynomial.legendre.leggauss(plant.parameters.sections)
    return 0.5 * (1.0 + nodes[-1])
