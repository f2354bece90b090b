"""The manta described as a mechanism: the general recursion and the fins' lane kernel agree on random states."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.base.spatial import ad, adjoint
from rtmms.model import Body, Joint, Mechanism, Placement, State, at
from rtmms.robots import manta
from rtmms.robots.manta.fin_layout import FIELDS, LANES, QDD
from rtmms.robots.manta.layout import FINS, QUATERNION, RODS, TWIST

SIDES = (("left", 1.0), ("right", -1.0))


def describe(plant):
    """Body, two supports moved by six imposed joints each, and every chain of three hinges; added mass on the links."""
    p, fields, station = plant.parameters, plant.model.links, plant.model.station
    bodies = [Body("body", p.body_mass_kg, inertia=np.diag(p.body_inertia_kg_m2))]
    joints = []
    for side, sign in SIDES:
        parent = "body"
        x, y, z = p.fin_root_m
        placement = at(x, sign * y, z)
        for kind, axis in (
            ("prismatic", (1, 0, 0)), ("prismatic", (0, 1, 0)), ("prismatic", (0, 0, 1)),
            ("revolute", (0, 0, 1)), ("revolute", (0, 1, 0)), ("revolute", (1, 0, 0)),
        ):  # fmt: skip
            name = f"{side}.{kind}{axis}"
            bodies.append(Body(name))
            joints.append(Joint(name, parent, name, kind, placement, axis, drive="motion"))
            parent, placement = name, Placement()
        support = parent
        for i in range(p.chains):
            parent, placement = support, at(station[i])
            for j in range(p.links):
                length, mass, jx, jd, jn, _, _, added, _ = fields[:, j, i]
                name = f"{side}.{i}.{j}"
                middle = np.array([0.0, sign * length / 2.0, 0.0])
                to_middle = adjoint(np.eye(3), middle)
                inertia = to_middle.T @ np.diag([0, 0, added, 0, 0, 0]) @ to_middle
                bodies.append(Body.about_centre(name, mass, middle, np.diag([jx, jd, jn]), added=inertia))
                joints.append(Joint(name, parent, name, placement=placement, axis=(sign, 0, 0)))
                parent, placement = name, at(0.0, sign * length, 0.0)
    return Mechanism("manta", bodies, joints, gravity=(0, 0, 0))


def support(p, alpha, rate, accel, sign):
    """(6, 3) position, rate, acceleration of the support's six joints, from the rods' (front, back)."""
    angles = [np.polynomial.Polynomial([a, v, w / 2.0]) for a, v, w in zip(alpha, rate, accel, strict=True)]

    def pose(t):
        """Complex t: first derivative by its imaginary part."""
        front, back = (sum(c * t**k for k, c in enumerate(a.coef)) for a in angles)
        u = p.front_rod_m * np.cos(front) - p.back_rod_m * np.cos(back)
        w = p.front_rod_m * np.sin(front) - p.back_rod_m * np.sin(back)
        x = np.sqrt(p.support_length_m**2 - u * u - w * w)
        theta, beta = np.arctan(u / x), -np.arcsin(w / p.support_length_m)
        back_tip = (0.0 * t, sign * p.back_rod_m * np.cos(back), p.back_rod_m * np.sin(back))
        return np.array([*back_tip, sign * theta, beta, sign * (front + back) / 2.0])

    h, d = 1e-30, 2e-3
    rate_at = lambda t: pose(t + 1j * h).imag / h
    # second derivatives by differences of exact first ones, to order d^8
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    second = sum(c * (rate_at(k * d) - rate_at(-k * d)) for k, c in weights.items()) / d
    return np.stack([pose(0.0j).real, rate_at(0.0), second], axis=1)


def outside(plant, model, state, water):
    """(bodies, 6): drag and buoyancy moment of the body; drag of every link, and what the current changes in its added
    mass (Kirchhoff's law with the velocity relative to the water)."""
    p, fields = plant.parameters, plant.model.links
    twists = dynamics.body_twists(model, state)
    rotation, _ = dynamics.body_poses(model, state)
    out = np.zeros((len(model.body_names), 6))
    v, w = twists[0, :3] - rotation[0].T @ water, twists[0, 3:]
    area = np.multiply(p.body_drag_coefficient, p.body_drag_area_m2)
    half = 0.5 * p.water_density_kg_m3
    out[0, :3] = -half * np.linalg.norm(v) * area * v
    up = rotation[0].T @ [0.0, 0.0, p.body_mass_kg * p.gravity_m_s2]
    out[0, 3:] = np.cross(p.buoyancy_centre_m, up) - half * np.multiply(p.body_moment_coefficient, np.abs(w) * w)
    for side, sign in SIDES:
        for i in range(p.chains):
            for j in range(p.links):
                k = model.body(f"{side}.{i}.{j}")
                length, drag, added = fields[[0, 6, 7], j, i]
                to_middle = adjoint(np.eye(3), np.array([0.0, sign * length / 2.0, 0.0]))
                u = rotation[k].T @ water
                relative = twists[k] - np.concatenate([u, np.zeros(3)])
                normal = (to_middle @ relative)[2]
                force = np.array([0, 0, -drag * abs(normal) * normal, 0, 0, 0])
                m = to_middle.T @ np.diag([0, 0, added, 0, 0, 0]) @ to_middle
                turning = np.concatenate([np.cross(twists[k, 3:], u), np.zeros(3)])
                out[k] = to_middle.T @ force - m @ turning
                out[k] += ad(relative).T @ m @ relative - ad(twists[k]).T @ m @ twists[k]
    return out


@pytest.mark.parametrize("seed", [1, 2])
def test_the_recursion_and_the_lanes_agree(seed):
    rng = np.random.default_rng(seed)
    water = np.array([0.3, -0.2, 0.1])
    plant = manta.load(chains=10, added_mass=True, current_m_s=tuple(water), coupling="monolithic")
    for _ in range(60):
        plant.step(np.clip(0.6 * rng.normal(size=4), -0.8, 0.8))
    p, s = plant.parameters, plant._state
    s[TWIST : TWIST + 6] = rng.normal(size=6) * [0.5, 0.5, 0.5, 0.8, 0.8, 0.8]
    quaternion = rng.normal(size=4)
    s[QUATERNION : QUATERNION + 4] = quaternion / np.linalg.norm(quaternion)
    s[FINS:] = 0.4 * rng.normal(size=s[FINS:].size)
    outputs = plant.observe()

    mechanism = describe(plant)
    model = rtmms.compile(mechanism)
    q, qd, drive = np.zeros(model.n), np.zeros(model.n), np.zeros(model.n)
    fields = plant.model.links
    rods = s[RODS : RODS + 20].reshape(4, 5)
    for f, (side, sign) in enumerate(SIDES):
        pair = rods[2 * f : 2 * f + 2]
        first = model.joint(f"{side}.prismatic(1, 0, 0)")
        moved = support(p, pair[:, 0], pair[:, 1], pair[:, 2], sign)
        q[first : first + 6], qd[first : first + 6], drive[first : first + 6] = moved.T
        for i in range(p.chains):
            for j in range(p.links):
                k = model.joint(f"{side}.{i}.{j}")
                q[k], qd[k] = outputs["joint_position"][f, j, i], outputs["joint_velocity"][f, j, i]
                stiffness, damping = fields[5, j, i], fields[8, j, i]
                drive[k] = -stiffness * np.sin(q[k]) / (1.0 + np.cos(q[k])) ** 2 - damping * qd[k]
    state = State(s[4:7].copy(), s[QUATERNION : QUATERNION + 4].copy(), q, s[TWIST : TWIST + 6].copy(), qd)
    out = dynamics.hybrid_dynamics(model, state, drive, wrench=outside(plant, model, state, water))
    got = np.concatenate([outputs["acceleration"], outputs["angular_acceleration"]])
    np.testing.assert_allclose(got, out.base_acceleration, rtol=1e-10, atol=1e-10 * np.max(np.abs(got)))
    joints = plant.system.fins.reshape(2, -1, p.links, FIELDS, LANES)[:, :, :, QDD]  # left there by `observe`
    for f, (side, _) in enumerate(SIDES):
        lanes = joints[f].transpose(1, 0, 2).reshape(p.links, -1)[:, : p.chains]
        want = [[out.qdd[model.joint(f"{side}.{i}.{j}")] for i in range(p.chains)] for j in range(p.links)]
        np.testing.assert_allclose(lanes, want, atol=1e-10 * np.max(np.abs(want)))
    # the wrench of each fin on the body, carried through the support's joints
    for f, (side, _) in enumerate(SIDES):
        first = model.joint(f"{side}.prismatic(1, 0, 0)")
        force = -out.torque[first : first + 3]
        np.testing.assert_allclose(outputs["thrust"][f, :3], force, rtol=1e-9, atol=1e-9 * np.max(np.abs(force)))
