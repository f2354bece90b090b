"""The recursion against Pinocchio and MuJoCo on the same random trees."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.analysis.derivatives import structure_of
from rtmms.mechanism.actuators import JointTorque
from rtmms.mechanism.plant import TreePlant
from tests.random_tree import random_state, random_tree

pytestmark = [pytest.mark.full, pytest.mark.peer]
SIZES = [(1, 30), (2, 31), (5, 32), (13, 33), (36, 34), (60, 35)]


def close(got, expected, tolerance=1e-10):
    np.testing.assert_allclose(got, expected, atol=tolerance * (np.max(np.abs(expected)) + 1e-12), rtol=0)


def depth_first(mechanism):
    """Joints so that each subtree's numbers are contiguous, as Pinocchio wants them."""
    order, waiting = [], [mechanism.bodies[0].name]
    while waiting:
        name = waiting.pop()
        order += [joint for joint in mechanism.joints if joint.child == name]
        waiting += [joint.child for joint in mechanism.joints if joint.parent == name]
    return order


def pinocchio_of(mechanism):
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    model.gravity.linear = np.array(mechanism.gravity)
    ids = {mechanism.bodies[0].name: 0}
    if mechanism.base == "free":
        ids[mechanism.bodies[0].name] = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    for joint in depth_first(mechanism):
        axis = joint.axis / np.sqrt(joint.axis @ joint.axis)
        kind = pin.JointModelPrismaticUnaligned if joint.type == "prismatic" else pin.JointModelRevoluteUnaligned
        place = pin.SE3(joint.placement.rotation, joint.placement.position)
        ids[joint.child] = model.addJoint(ids[joint.parent], kind(axis), place, joint.name)
    for body in mechanism.bodies:
        if ids[body.name]:
            centre = np.asarray(body.first_moment) / body.mass
            central = body.inertia - body.mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
            model.appendBodyToJoint(ids[body.name], pin.Inertia(body.mass, centre, central), pin.SE3.Identity())
    order = [model.joints[model.getJointId(j.name)].idx_v for j in mechanism.joints]
    return pin, model, model.createData(), np.array(order, dtype=int)


@pytest.mark.parametrize(("joints", "seed"), SIZES)
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_pinocchio(joints, seed, base):
    mechanism = random_tree(joints, seed, base=base, added=False)
    model = rtmms.compile(mechanism)
    pin, peer, data, order = pinocchio_of(mechanism)
    state, rng = random_state(model, seed), np.random.default_rng(seed)
    if base == "fixed":
        state.position, state.orientation, state.twist = np.zeros(3), np.array([1.0, 0, 0, 0]), np.zeros(6)
    torque, free = rng.normal(size=joints), 6 if base == "free" else 0
    w, x, y, z = state.orientation
    q, v, tau = np.zeros(peer.nq), np.zeros(peer.nv), np.zeros(peer.nv)
    if free:
        q[:7], v[:6] = [*state.position, x, y, z, w], state.twist
    q[order + (1 if free else 0)], v[order], tau[order] = state.q, state.qd, torque
    out = dynamics.forward_dynamics(model, state, torque)
    a = pin.aba(peer, data, q, v, tau)
    close(out.qdd, a[order])
    pick = np.concatenate([np.arange(free), order])
    matrix = np.reshape(pin.crba(peer, data, q), (peer.nv, peer.nv))
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    close(dynamics.mass_matrix(model, state), matrix[np.ix_(pick, pick)])
    close(dynamics.bias(model, state), pin.nonLinearEffects(peer, data, q, v)[pick])
    rng_qdd = rng.normal(size=joints)
    if free:
        close(out.base_acceleration, a[:6])
        a[:6] = rng.normal(size=6)
    a[order] = rng_qdd
    values = a[:6].copy() if free else None
    inverse = dynamics.inverse_dynamics(model, state, rng_qdd, base_acceleration=values)
    t = pin.rnea(peer, data, q, v, a)
    close(inverse.torque, t[order])
    if free:
        close(inverse.base_wrench, t[:6])
    energy = dynamics.energy(model, state)
    close(energy.kinetic, pin.computeKineticEnergy(peer, data, q, v))
    if free:
        close(energy.gravity, pin.computePotentialEnergy(peer, data, q))
        close(dynamics.centre_of_mass(model, state), pin.centerOfMass(peer, data, q, v))
        h = pin.computeCentroidalMomentum(peer, data, q, v)
        close(dynamics.momentum(model, state, about="centre"), h.vector)
    pin.computeJointJacobians(peer, data, q)
    pin.forwardKinematics(peer, data, q, v, a)
    rotation, position = dynamics.body_poses(model, state)
    twists = dynamics.body_twists(model, state)
    accelerations = dynamics.body_accelerations(model, state, rng_qdd, np.zeros(6) if values is None else values)
    for joint in mechanism.joints:  # intermediates of every body
        k, number = model.body(joint.child), peer.getJointId(joint.name)
        close(rotation[k], data.oMi[number].rotation)
        close(position[k], data.oMi[number].translation)
        close(twists[k], data.v[number].vector)
        close(accelerations[k], data.a[number].vector)
        jac = np.reshape(pin.getJointJacobian(peer, data, number, pin.ReferenceFrame.LOCAL), (6, peer.nv))
        close(dynamics.jacobian(model, state, joint.child), jac[:, pick])


@pytest.mark.parametrize(("joints", "seed"), [(5, 32), (36, 34)])
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_pinocchios_slopes(joints, seed, base):
    """Slopes of accelerations by pose, q, twist, qd and torque, of a tree without a fluid."""
    mechanism = random_tree(joints, seed, base=base, added=False)
    plant = TreePlant(mechanism, 1e-3, actuators=[JointTorque(joint.name) for joint in mechanism.joints])
    pin, peer, data, order = pinocchio_of(mechanism)
    state, torque = random_state(plant.model, seed), np.random.default_rng(seed).normal(size=joints)
    if base == "fixed":
        state.position, state.orientation, state.twist = np.zeros(3), np.array([1.0, 0, 0, 0]), np.zeros(6)
    plant.place(state)
    structure = structure_of(plant, np.full(len(plant.coordinates().names) + joints, 1e-6))
    result = structure.accelerations(plant.present()[0], torque, 0.0)
    free = 6 if base == "free" else 0
    w, x, y, z = state.orientation
    q, v, tau = np.zeros(peer.nq), np.zeros(peer.nv), np.zeros(peer.nv)
    if free:
        q[:7], v[:6] = [*state.position, x, y, z, w], state.twist
    q[order + (1 if free else 0)], v[order], tau[order] = state.q, state.qd, torque
    pin.computeABADerivatives(peer, data, q, v, tau)
    pick = np.concatenate([np.arange(free), order])
    inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    joint = 12 + np.arange(joints)
    base_pose, base_twist = np.arange(free), 6 + np.arange(free)
    close(result[:, np.concatenate([base_pose, joint])], data.ddq_dq[np.ix_(pick, pick)], 1e-9)
    close(result[:, np.concatenate([base_twist, joint + joints])], data.ddq_dv[np.ix_(pick, pick)], 1e-9)
    close(result[:, joint + 2 * joints], inverse[np.ix_(pick, order)], 1e-9)


def mujoco_of(mechanism):
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec()
    spec.option.gravity = mechanism.gravity
    spec.compiler.autolimits, spec.compiler.degree = False, False
    bodies = {body.name: body for body in mechanism.bodies}
    built = {}

    def fill(target, body):
        centre = np.asarray(body.first_moment) / body.mass
        central = body.inertia - body.mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        c = central
        target.mass, target.ipos = body.mass, centre
        target.fullinertia = [c[0, 0], c[1, 1], c[2, 2], c[0, 1], c[0, 2], c[1, 2]]
        target.explicitinertial = True

    root = mechanism.bodies[0]
    built[root.name] = spec.worldbody.add_body(name=root.name)
    fill(built[root.name], root)
    built[root.name].add_freejoint()
    for joint in mechanism.joints:
        target = built[joint.parent].add_body(name=joint.child, pos=joint.placement.position)
        from rtmms.base.spatial import matrix_quaternion

        target.quat = matrix_quaternion(joint.placement.rotation)
        fill(target, bodies[joint.child])
        kind = mujoco.mjtJoint.mjJNT_SLIDE if joint.type == "prismatic" else mujoco.mjtJoint.mjJNT_HINGE
        target.add_joint(
            name=joint.name, type=kind, axis=joint.axis, armature=joint.rotor, damping=[joint.damping, 0, 0],
            stiffness=[joint.stiffness, 0, 0], springref=joint.rest_position,
        )  # fmt: skip
        built[joint.child] = target
    model = spec.compile()
    return mujoco, model, mujoco.MjData(model)


@pytest.mark.parametrize(("joints", "seed"), SIZES)
def test_mujoco(joints, seed):
    """Forward dynamics with springs, dampers and rotors; MuJoCo's free joint moves in the world's axes."""
    mechanism = random_tree(joints, seed, added=False, friction=True)
    model = rtmms.compile(mechanism)
    mujoco, peer, data = mujoco_of(mechanism)
    state, torque = random_state(model, seed), np.random.default_rng(seed).normal(size=joints)
    at = [peer.joint(j.name).qposadr[0] for j in mechanism.joints]
    to = [peer.joint(j.name).dofadr[0] for j in mechanism.joints]
    rotation = state.rotation
    data.qpos[:3], data.qpos[3:7], data.qpos[at] = state.position, state.orientation, state.q
    data.qvel[:3], data.qvel[3:6], data.qvel[to] = rotation @ state.twist[:3], state.twist[3:], state.qd
    data.qfrc_applied[to] = torque
    mujoco.mj_forward(peer, data)
    out = dynamics.forward_dynamics(model, state, torque)
    close(out.qdd, data.qacc[to])
    close(out.base_acceleration[3:], data.qacc[3:6])
    world = rotation @ (out.base_acceleration[:3] + np.cross(state.twist[3:], state.twist[:3]))
    close(world, data.qacc[:3])
    # MuJoCo's velocities of the free joint are along the world's axes, ours along the body's
    turn = np.eye(6 + joints)
    turn[:3, :3] = rotation
    pick = np.concatenate([np.arange(6), to]).astype(int)
    matrix = np.zeros((peer.nv, peer.nv))
    for column, unit in zip(matrix, np.eye(peer.nv), strict=True):
        mujoco.mj_mulM(peer, data, column, unit)
    close(dynamics.mass_matrix(model, state), turn.T @ matrix[np.ix_(pick, pick)] @ turn)
    mujoco.mj_energyVel(peer, data)
    close(dynamics.energy(model, state).kinetic, data.energy[1])
    mujoco.mj_subtreeVel(peer, data)
    first = peer.body(mechanism.bodies[0].name).id
    mass = sum(body.mass for body in mechanism.bodies)
    close(dynamics.centre_of_mass(model, state), data.subtree_com[first])
    momentum = np.concatenate([mass * data.subtree_linvel[first], data.subtree_angmom[first]])
    close(dynamics.momentum(model, state, about="centre"), momentum)
    turned, position = dynamics.body_poses(model, state)
    for body in mechanism.bodies:
        k, number = model.body(body.name), peer.body(body.name).id
        close(turned[k], data.xmat[number].reshape(3, 3))
        close(position[k], data.xpos[number])
        linear, angular = np.zeros((3, peer.nv)), np.zeros((3, peer.nv))
        mujoco.mj_jacBody(peer, data, linear, angular, number)
        jacobian = np.concatenate([turned[k].T @ linear, turned[k].T @ angular])[:, pick] @ turn
        close(dynamics.jacobian(model, state, body.name), jacobian)
    mujoco.mj_inverse(peer, data)  # of the accelerations that forward dynamics gave: the torques again
    inverse = dynamics.inverse_dynamics(model, state, data.qacc[to], base_acceleration=out.base_acceleration)
    close(inverse.torque, data.qfrc_inverse[to])
