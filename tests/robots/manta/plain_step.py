"""The compiled manta's default step in plain Python: the same method, evaluation by evaluation.

Servos, then two linearly implicit stages of the fins with the body's acceleration lagged, the body under what they
gave, and its motion on SE(3). The method is described in rtmms.robots.manta.step, the servos in kernels.rods;
here its stages go through the equations of benchmarks.plain_manta with dense m x m matrices.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import solve_ivp  # type: ignore[attr-defined]
from scipy.linalg import expm

from rtmms.base.errors import ModelError
from rtmms.robots.manta.parameters import MantaParameters

from .plain_manta import MIRROR, NOW, Ahead, Array, Link, PlainManta, body_forces, chain_dynamics
from .plain_support import AXIS, Support, adjoint, rotation_of, skew, support_base, support_motion

GAMMA = 1.0 - math.sqrt(0.5)
METHOD = {"actuation": "servo", "integrator": "implicit", "body_method": "matched", "bending": "carried"}


def servo_acceleration(p: MantaParameters, angle: float, rate: float, reference: float) -> float:
    omega, zeta = 2 * math.pi * p.servo_frequency_hz, p.servo_damping
    limit = p.rod_rate_limit_rad_s
    wanted = min(max(omega / (2 * zeta) * (reference - angle), -limit), limit)
    limit = p.rod_acceleration_limit_rad_s2
    return min(max(2 * zeta * omega * (wanted - rate), -limit), limit)


def servo_step(p: MantaParameters, angle: float, rate: float, last: float, command: float, dt: float) -> Array:
    """(3,) angle, rate and acceleration after dt, the reference running from the last command to this one: by the
    matrix exponential, or by an adaptive method where a limit is touched."""
    omega, zeta = 2 * math.pi * p.servo_frequency_hz, p.servo_damping
    speed = (command - last) / dt

    def slope(t: float, y: Array) -> list[float]:
        return [y[1], servo_acceleration(p, y[0], y[1], last + speed * t)]

    def linear(y: Array, reference: float) -> bool:
        wanted = omega / (2 * zeta) * (reference - y[0])
        push = 2 * zeta * omega * (wanted - y[1])
        return bool(abs(wanted) < p.rod_rate_limit_rad_s and abs(push) < p.rod_acceleration_limit_rad_s2)

    start = np.array([angle, rate])
    flow = np.array([[0, 1, 0, 0], [-(omega**2), -2 * zeta * omega, omega**2, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    end = (expm(flow * dt) @ np.array([angle, rate, last, speed]))[:2]  # type: ignore[no-untyped-call]
    if not (linear(start, last) and linear(end, command)):
        end = solve_ivp(slope, (0.0, dt), start, "DOP853", rtol=3e-14, atol=1e-15, max_step=dt / 20).y[:, -1]
    return np.array([end[0], end[1], servo_acceleration(p, end[0], end[1], command)])


def held_commands(p: MantaParameters, command: Array) -> Array:
    """(4,) what the rods obey: clipped one by one, and the difference of a fin's two saturated by a tanh from 85 % of
    its limit on, their mean kept."""
    cosine = (p.front_rod_m**2 + p.back_rod_m**2 - (1.0 - 1e-4) * p.support_length_m**2) / (
        2.0 * p.front_rod_m * p.back_rod_m
    )
    maximum = min(p.rod_difference_limit_rad, 0.9 * math.acos(cosine))
    knee = 0.85 * maximum
    result = np.clip(command, -p.rod_limit_rad, p.rod_limit_rad)
    for front, back in ((0, 1), (2, 3)):
        apart, mean = result[front] - result[back], (result[front] + result[back]) / 2
        if abs(apart) > knee:
            held = math.copysign(knee + (maximum - knee) * math.tanh((abs(apart) - knee) / (maximum - knee)), apart)
            result[front], result[back] = mean + held / 2, mean - held / 2
    return result


def driven_fin(
    p: MantaParameters,
    stations: list[float],
    chains: list[list[Link]],
    support: Support,
    eta_b: Array,
    eta_b_rate: Array,
    water: Array,
    q: Array,
    qd: Array,
    ahead: Ahead = NOW,
    before: tuple[Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    """A left fin on a body whose motion is known: joint accelerations, normal accelerations (m, n), wrench on the body.

    before  (qdd, normal accelerations) of the stage before, which `ahead` may recall
    """
    eta0, eta0_rate, base = support_base(p, support, eta_b)
    eta0_rate = eta0_rate + base @ eta_b_rate
    seen_water = support.rotation.T @ water
    qdd, normal_acceleration, on_fin = np.zeros_like(q), np.zeros_like(q), np.zeros(6)
    for i, links in enumerate(chains):
        ad = adjoint(np.eye(3), np.array([stations[i], 0.0, 0.0]))
        recalled = (None, None) if before is None else (before[0][:, i], before[1][:, i])
        dyn = chain_dynamics(p, links, q[:, i], qd[:, i], ad @ eta0, seen_water, ahead, *recalled)
        root_rate = ad @ eta0_rate
        qdd[:, i] = np.linalg.solve(dyn.mass, dyn.force - dyn.reach.T @ root_rate)  # (29)
        on_fin += ad.T @ (dyn.inertia @ root_rate + dyn.bias + dyn.reach @ qdd[:, i])  # (31), (32)
        rate = root_rate
        for j in range(len(links)):
            rate = dyn.ads[j] @ rate + dyn.zetas[j] + AXIS * qdd[j, i]  # (17)
            normal_acceleration[j, i] = dyn.normals[j] @ rate + dyn.normal_bias[j]
    return qdd, normal_acceleration, -base.T @ on_fin  # (33)


def turned(quaternion: Array, angle: Array) -> Array:
    """The attitude after a rotation by the body-frame vector `angle`."""
    size = float(np.linalg.norm(angle))
    half = 0.5 * np.sinc(size / (2 * math.pi)) * angle  # sin(size / 2) along the axis
    w, u = quaternion[0], quaternion[1:]
    c = math.cos(size / 2)
    out = np.concatenate([[w * c - u @ half], w * half + c * u + np.cross(u, half)])
    return out / float(np.linalg.norm(out))


def moved(position: Array, quaternion: Array, twist: Array, dt: float) -> tuple[Array, Array]:
    """The pose after dt under a constant body twist: g exp(dt eta)."""
    v, w = dt * twist[:3], dt * twist[3:]
    n = float(np.linalg.norm(w))
    a, b = ((1 - math.cos(n)) / n**2, (n - math.sin(n)) / n**3) if n > 1e-3 else (0.5 - n**2 / 24, 1 / 6 - n**2 / 120)
    left = np.eye(3) + a * skew(w) + b * skew(w) @ skew(w)
    return position + rotation_of(quaternion) @ left @ v, turned(quaternion, w)


class PlainRun:
    """A plain manta in motion: default servos, integrator and sequential coupling."""

    def __init__(self, parameters: MantaParameters, dt: float) -> None:
        for name, only in METHOD.items():
            if getattr(parameters, name) != only:
                raise ModelError(f"plain step: {name} must be {only!r}, got {getattr(parameters, name)!r}")
        self.plain, self.dt = PlainManta(parameters), dt
        joints = (2, parameters.links, parameters.chains)
        self.position, self.quaternion = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        self.twist, self.lagged = np.zeros(6), np.zeros(6)
        self.rods, self.command = np.zeros((3, 4)), np.zeros(4)
        self.joints, self.rates = np.zeros(joints), np.zeros(joints)

    def _stage(
        self,
        rods: Array,
        quaternion: Array,
        twist: Array,
        twist_of_fins: Array,
        joints: Array,
        rates: Array,
        ahead: Ahead,
        before: list[tuple[Array, Array]] | None,
    ) -> tuple[Array, list[tuple[Array, Array]]]:
        """Body acceleration, and per fin the joints' and the links' normal accelerations."""
        plain = self.plain
        p = plain.parameters
        water = rotation_of(quaternion).T @ np.array(p.current_m_s)
        force = body_forces(p, quaternion, twist)
        accelerations = []
        for f, side in enumerate((np.ones(6), MIRROR)):
            qdd, an, on_body = driven_fin(
                p,
                plain.stations,
                plain.chains,
                support_motion(p, *rods[:, 2 * f : 2 * f + 2]),
                side * twist_of_fins,
                side * self.lagged,
                side[:3] * water,
                joints[f],
                rates[f],
                ahead,
                None if before is None else before[f],
            )
            force = force + side * on_body
            accelerations.append((qdd, an))
        acceleration = np.zeros(6)
        if p.body == "free":
            acceleration[:] = np.linalg.solve(plain.mass, force)
        return acceleration, accelerations

    def step(self, command: Array) -> None:
        """Advance by dt with the rods' commands (4,) rad held."""
        p, dt, g = self.plain.parameters, self.dt, GAMMA * self.dt
        q, v = self.joints, self.rates
        limited = held_commands(p, command)
        angle, rate, _ = self.rods
        rods = np.column_stack([servo_step(p, angle[k], rate[k], self.command[k], limited[k], dt) for k in range(4)])
        acc1, first = self._stage(
            self.rods, self.quaternion, self.twist, self.twist, q, v, Ahead(g, 0.0, 1.0, 0.0), None
        )
        k1 = np.stack([qdd for qdd, _ in first])
        v2, q2 = v + dt * k1, q + dt * (v + g * k1)
        twist2 = self.twist + dt * acc1
        _, quaternion2 = moved(self.position, self.quaternion, self.twist, dt)
        acc2, second = self._stage(
            rods, quaternion2, twist2, self.twist + dt * self.lagged, q2, v2, Ahead(g, 2.0, -1.0, 2 * (dt - g)), first
        )
        a2 = np.stack([qdd for qdd, _ in second])
        self.joints, self.rates = q + dt / 2 * (v + v2 + g * (a2 - k1)), v + dt / 2 * (k1 + a2)
        if p.body == "free":
            mean = (self.twist + twist2) / 2
            self.position, self.quaternion = moved(self.position, self.quaternion, mean, dt)
        self.twist = self.twist + dt / 2 * (acc1 + acc2)
        self.lagged, self.rods, self.command = acc2, rods, limited
