"""The robotic manta in plain Python: small numpy arrays, one chain after another, as a reader of the paper writes it.

The yardstick of `rtmms bench plant` and an independent check of the compiled plant: it shares the parameters and
nothing else with it. Each link has a frame of its own (x along the joint, y along the link, z its normal) and a full
6 x 6 inertia about its joint; the joints' accelerations come from the m x m mass matrix, as in the paper, not from an
articulated recursion. Equation numbers are those of Qu et al. 2024 with the corrections of docs/manta.md.
Twists and wrenches are [linear; angular]; a dash marks the derivative of components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError
from rtmms.robots.manta.parameters import MantaParameters

from .plain_support import (
    AXIS,
    Support,
    ad_operator,
    adjoint,
    rotation_of,
    sine_cosine,
    skew,
    support_base,
    support_motion,
)

Array = npt.NDArray[np.float64]


MIRROR = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # the right fin is the left one behind this mirror


@dataclass
class Link:
    """One link of one chain: length, width and thickness along its y, x and z axes."""

    length: float
    inertia: Array  # (6, 6) about the joint
    added: Array  # (6, 6) about the joint, zero where there is no added mass
    drag: float  # 1/2 rho C_D dS
    stiffness: float  # 2 EI / dl


@dataclass
class Ahead:
    """How a linearly implicit stage takes the joints' and the drag's forces ahead; the default: not at all.

    g s; against `recall` times the accelerations of the stage before; elasticity on rate_q qd + rate_a qdd
    """

    g: float = 0.0
    recall: float = 0.0
    rate_q: float = 0.0
    rate_a: float = 0.0


NOW = Ahead()


@dataclass
class ChainDynamics:
    """A chain as (25)-(32) leave it: everything but the joint accelerations and the support's."""

    mass: Array  # (m, m) M of (30), implicit terms included
    force: Array  # (m,) Q of (29) at eta0' = 0
    reach: Array  # (6, m) columns Ad^T M_i* A_i at the root: (32), and A_j^T M_j* Ad of (28)
    inertia: Array  # (6, 6) M_0*
    bias: Array  # (6,) beta_0*
    ads: list[Array]
    zetas: list[Array]
    normals: list[Array]  # (6,) wrench of a unit force along the link's normal at its middle
    normal_bias: list[float]  # m/s2, what the classical normal acceleration of the middle is beyond normal . eta'


@dataclass
class Forces:
    """What the whole robot does at a state."""

    acceleration: Array  # (6,) of the body
    thrust: Array  # (2, 6) wrench of each fin on the body about its mass centre, body axes
    joint_acceleration: Array  # (2, m, n)
    rod_torque: Array  # (4,) what the motors must give


def box_inertia(mass: float, width: float, length: float, thickness: float) -> Array:
    """(6, 6) of a box about the middle of its edge, where y = 0: the first moment's blocks are kept."""
    centre = skew(np.array([0.0, length / 2, 0.0]))
    about_centre = np.diag([length**2 + thickness**2, width**2 + thickness**2, width**2 + length**2]) * mass / 12
    inertia = np.zeros((6, 6))
    inertia[:3, :3] = mass * np.eye(3)
    inertia[:3, 3:] = -mass * centre
    inertia[3:, :3] = mass * centre
    inertia[3:, 3:] = about_centre - mass * centre @ centre
    return inertia


def build_links(p: MantaParameters) -> tuple[list[float], list[list[Link]]]:
    """Where the chains stand on the support, from the back rod, and the links of each from its root."""
    width = p.support_length_m / p.chains
    stations = [(i + 0.5) * width for i in range(p.chains)]
    chains = []
    for x in stations:
        share = x / p.support_length_m
        length = (p.chain_length_back_m * (1 - share) + p.chain_length_front_m * share) / p.links
        links = []
        for j in range(p.links):
            h = float(np.interp((j + 0.5) / p.links, [1 / 6, 1 / 2, 5 / 6], p.link_thickness_m))
            area = width * length
            # Kirchhoff: m_a n n^T at mid-link, carried to the joint
            normal = np.array([0.0, 0.0, 1.0, length / 2, 0.0, 0.0])
            added = p.water_density_kg_m3 * p.added_mass_coefficient * p.support_length_m * area * p.added_mass
            links.append(
                Link(
                    length,
                    box_inertia(p.fin_density_kg_m3 * area * h, width, length, h),
                    added * np.outer(normal, normal),
                    0.5 * p.water_density_kg_m3 * p.drag_coefficient * area,
                    2 * p.young_modulus_pa * width * h**3 / 12 / length,
                )
            )
        chains.append(links)
    return stations, chains


def chain_dynamics(
    p: MantaParameters,
    links: list[Link],
    q: Array,
    qd: Array,
    eta0: Array,
    water: Array,
    ahead: Ahead = NOW,
    qdd: Array | None = None,
    normal_acceleration: Array | None = None,
) -> ChainDynamics:
    """Mass matrix, forces and reactions of one chain on its moving root: (16)-(32), corrected.

    q, qd  (m,) rad, rad/s        eta0  (6,) twist of the root, support axes        water  (3,) current, support axes
    ahead; qdd, normal_acceleration (m,) of the stage before, where there is one
    """
    m = len(links)
    recalled_q = np.zeros(m) if qdd is None else qdd
    recalled_n = np.zeros(m) if normal_acceleration is None else normal_acceleration
    ads, zetas, forces, normals, normal_bias, inertias, biases = [], [], [], [], [], [], []
    eta, length = eta0, 0.0
    for j, link in enumerate(links):
        s, c = sine_cosine(q[j])
        turn = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        ad = adjoint(turn, np.array([0.0, length, 0.0]))
        eta = ad @ eta + AXIS * qd[j]  # (16)
        water = turn.T @ water
        through = np.concatenate([eta[:3] - water, eta[3:]])  # through the water
        zeta = ad_operator(eta) @ AXIS * qd[j]  # (17)
        normal = np.array([0.0, 0.0, 1.0, link.length / 2, 0.0, 0.0])
        speed = normal @ through
        force = -link.drag * abs(speed) * speed * normal  # (12), with the sign of the speed
        # Kirchhoff in a uniform current: the water's own frame is inertial, and u' = -Omega x u in the link's axes
        carried = np.concatenate([np.cross(eta[3:], water), np.zeros(3)])
        beta = (
            -ad_operator(eta).T @ link.inertia @ eta
            - ad_operator(through).T @ link.added @ through
            + link.added @ carried
        )
        # the drag taken ahead: less g times its slope times the normal acceleration of the middle
        beyond = eta[3] * eta[1] - eta[4] * eta0[0]
        slope = 2 * link.drag * abs(speed) * ahead.g
        force = force - slope * (beyond - ahead.recall * recalled_n[j]) * normal
        ads.append(ad)
        zetas.append(zeta)
        normals.append(normal)
        normal_bias.append(beyond)
        forces.append(force)
        inertias.append(link.inertia + link.added + slope * np.outer(normal, normal))
        biases.append(beta)
        length = link.length

    # (26): generalised inertia and wrench, from the tip
    stars, bias_stars = [inertias[m - 1]], [biases[m - 1] - forces[m - 1]]
    for j in range(m - 2, -1, -1):
        inward = ads[j + 1].T
        bias_stars.insert(0, biases[j] - forces[j] + inward @ (bias_stars[0] + stars[0] @ zetas[j + 1]))
        stars.insert(0, inertias[j] + inward @ stars[0] @ ads[j + 1])

    mass, reach = np.zeros((m, m)), np.zeros((6, m))
    for i in range(m):
        column = stars[i] @ AXIS
        mass[i, i] = AXIS @ column
        for j in range(i - 1, -1, -1):
            column = ads[j + 1].T @ column
            mass[j, i] = mass[i, j] = AXIS @ column  # (30)
        reach[:, i] = ads[0].T @ column

    force, drift = np.zeros(m), np.zeros(6)
    for j, link in enumerate(links):
        drift = ads[j] @ drift + zetas[j]
        tan, cos = math.tan(q[j] / 2), math.cos(q[j] / 2)
        # (14), (15) and, for the implicit stages, their slopes
        tau = -link.stiffness * tan / cos**2 - p.damping_of_a_joint * qd[j]
        softening = ahead.g * link.stiffness * (0.5 / cos**4 + tan**2 / cos**2)
        joint_inertia = ahead.g * (p.damping_of_a_joint + softening)
        tau += joint_inertia * ahead.recall * recalled_q[j]
        tau -= softening * (ahead.rate_q * qd[j] + ahead.rate_a * recalled_q[j])
        mass[j, j] += joint_inertia
        force[j] = tau - AXIS @ (stars[j] @ drift) - AXIS @ bias_stars[j]  # (28)

    return ChainDynamics(
        mass,
        force,
        reach,
        ads[0].T @ stars[0] @ ads[0],
        ads[0].T @ (bias_stars[0] + stars[0] @ zetas[0]),
        ads,
        zetas,
        normals,
        normal_bias,
    )


def body_forces(p: MantaParameters, quaternion: Array, eta: Array) -> Array:
    """(6,) drag, buoyancy moment and gyroscopic terms: (34)-(36), corrected; default readings only."""
    rotation = rotation_of(quaternion)
    v, w = eta[:3], eta[3:]
    rel = v - rotation.T @ np.array(p.current_m_s)
    rho, mass = p.water_density_kg_m3, p.body_mass_kg
    drag = -0.5 * rho * np.linalg.norm(rel) * np.array(p.body_drag_area_m2) * np.array(p.body_drag_coefficient) * rel
    drag_moment = -0.5 * rho * np.array(p.body_moment_coefficient) * np.abs(w) * w
    lift = rotation.T @ np.array([0.0, 0.0, mass * p.gravity_m_s2])
    righting = np.cross(np.array(p.buoyancy_centre_m), lift)  # (35)
    momentum = np.array(p.body_inertia_kg_m2) * w
    return np.concatenate([drag - mass * np.cross(w, v), drag_moment + righting - np.cross(w, momentum)])


READINGS = {
    "fin_normal": "link",
    "body_drag": "norm",
    "body_moment": "componentwise",
    "current_gradient_1_s": (0.0,) * 9,
}
"""What is implemented here; the support's roll, added mass and a fixed body come from the parameters."""


def body_mass(p: MantaParameters) -> Array:
    return np.diag([p.body_mass_kg] * 3 + list(p.body_inertia_kg_m2))


@dataclass
class Fin:
    """A fin on a body that accelerates by a: f_0 = inertia a + bias, joint accelerations = free - reach a."""

    support: Support
    base: Array  # (6, 6) body twist, mirrored, to the twist at end A
    inertia: Array  # (6, 6) on the mirrored body's acceleration
    bias: Array  # (6,) of support on fin, at end A, support axes
    free: Array  # (m, n)
    reach: Array  # (m, n, 6)


def fin_dynamics(
    p: MantaParameters,
    stations: list[float],
    chains: list[list[Link]],
    support: Support,
    eta_b: Array,
    water: Array,
    q: Array,
    qd: Array,
) -> Fin:
    """All chains of a left fin; the joint accelerations are eliminated, the body's is not.

    eta_b (6,) and water (3,) in body axes, mirrored for the right fin; q, qd (m, n)
    """
    eta0, eta0_rate, base = support_base(p, support, eta_b)
    seen_water = support.rotation.T @ water
    inertia, bias = np.zeros((6, 6)), np.zeros(6)
    free, reach = np.zeros_like(q), np.zeros((*q.shape, 6))
    for i, links in enumerate(chains):
        ad = adjoint(np.eye(3), np.array([stations[i], 0.0, 0.0]))
        dyn = chain_dynamics(p, links, q[:, i], qd[:, i], ad @ eta0, seen_water)
        known = dyn.force - dyn.reach.T @ (ad @ eta0_rate)
        on_base = dyn.reach.T @ ad @ base
        answer = np.linalg.solve(dyn.mass, np.column_stack([known, on_base]))  # (29)
        free[:, i], reach[:, i] = answer[:, 0], answer[:, 1:]
        # (32), carried to end A and summed over the span
        inertia += ad.T @ (dyn.inertia @ ad @ base - dyn.reach @ answer[:, 1:])
        bias += ad.T @ (dyn.inertia @ ad @ eta0_rate + dyn.bias + dyn.reach @ answer[:, 0])
    return Fin(support, base, inertia, bias, free, reach)


class PlainManta:
    """The manta's equations for given parameters: default readings, uniform current, body free or fixed."""

    def __init__(self, parameters: MantaParameters) -> None:
        for name, only in READINGS.items():
            if getattr(parameters, name) != only:
                raise ModelError(f"plain manta: {name} must be {only!r}, got {getattr(parameters, name)!r}")
        self.parameters = parameters
        self.stations, self.chains = build_links(parameters)
        self.mass = body_mass(parameters)

    def fins(self, quaternion: Array, eta: Array, rods: Array, joints: Array, rates: Array) -> list[Fin]:
        """Both fins; rods (3, 4) angles, rates, accelerations; joints, rates (2, m, n)."""
        p = self.parameters
        water = rotation_of(quaternion).T @ np.array(p.current_m_s)
        out = []
        for f in range(2):
            observed = eta if f == 0 else MIRROR * eta
            here = water if f == 0 else MIRROR[:3] * water
            support = support_motion(p, *rods[:, 2 * f : 2 * f + 2])
            out.append(fin_dynamics(p, self.stations, self.chains, support, observed, here, joints[f], rates[f]))
        return out

    def evaluate(self, quaternion: Array, eta: Array, rods: Array, joints: Array, rates: Array) -> Forces:
        """Body and fins solved together.

        quaternion (4,) body to world; eta (6,) twist of the body; rods (3, 4) angle, rate and acceleration of
        left front, left back, right front, right back; joints, rates (2, m, n) from the root, from the back rod
        """
        p = self.parameters
        fins = self.fins(quaternion, eta, rods, joints, rates)
        mass, force = self.mass.copy(), body_forces(p, quaternion, eta)
        for f, fin in enumerate(fins):
            side = MIRROR if f else np.ones(6)
            mass += side[:, None] * (fin.base.T @ fin.inertia) * side  # (33), (36): the fins' share of the inertia
            force -= side * (fin.base.T @ fin.bias)
        acceleration = np.zeros(6)
        if p.body == "free":
            acceleration[:] = np.linalg.solve(mass, force)
        thrust, torque, qdd = np.zeros((2, 6)), np.zeros(4), np.zeros_like(joints)
        for f, fin in enumerate(fins):
            observed = MIRROR * acceleration if f else acceleration
            on_fin = fin.inertia @ observed + fin.bias
            on_body = -fin.base.T @ on_fin
            thrust[f] = MIRROR * on_body if f else on_body
            torque[2 * f : 2 * f + 2] = fin.support.rates_of_rods.T @ on_fin  # virtual power of the rods
            qdd[f] = fin.free - fin.reach @ observed
        return Forces(acceleration, thrust, qdd, torque)
