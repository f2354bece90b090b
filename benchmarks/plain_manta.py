"""The robotic manta in plain Python: small numpy arrays, one chain after the other, equations as they are printed.

This is the yardstick of `rtmms bench plant` and an independent check of the compiled plant: it shares the parameters
and nothing else with it. Each link has a frame of its own (x along the joint, y along the link, z its normal) and a full
6 x 6 inertia about its joint; the joints' accelerations come from the m x m mass matrix, as in the paper, not from an
articulated recursion. Equation numbers are those of Qu et al. 2024 with the corrections of docs/manta.md.
Twists and wrenches are [linear; angular]; a dash marks the derivative of components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.robots.manta_parameters import MantaParameters

Array = npt.NDArray[np.float64]

AXIS = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])  # A_j: every joint turns about its frame's x
MIRROR = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # the right fin is the left one behind this mirror


def skew(v: Array) -> Array:
    """The matrix of v x."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def adjoint(rotation: Array, point: Array) -> Array:
    """(6, 6) twist at the parent's origin in parent axes to the twist at `point` in the child's axes, eq. (2)."""
    ad = np.zeros((6, 6))
    ad[:3, :3] = rotation.T
    ad[:3, 3:] = -rotation.T @ skew(point)
    ad[3:, 3:] = rotation.T
    return ad


def ad_operator(eta: Array) -> Array:
    """(6, 6) the operator ad of a twist, eq. (4)."""
    ad = np.zeros((6, 6))
    ad[:3, :3] = ad[3:, 3:] = skew(eta[3:])
    ad[:3, 3:] = skew(eta[:3])
    return ad


def rotation_of(quaternion: Array) -> Array:
    """(3, 3) body to world from (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@dataclass
class Link:
    """One link of one chain: length, width and thickness along its y, x and z axes."""

    length: float
    inertia: Array  # (6, 6) about the joint
    added: Array  # (6, 6) about the joint, zero where there is no added mass
    drag: float  # 1/2 rho C_D dS
    stiffness: float  # 2 EI / dl


@dataclass
class Support:
    """The support AB seen from the body: where it is, how it turns, and what each rod contributes."""

    rotation: Array  # (3, 3) support to body
    point: Array  # (3,) of end A in F_l
    point_rate: Array
    point_acceleration: Array
    omega: Array  # (3,) relative to the body, support axes
    omega_rate: Array
    rates_of_rods: Array  # (6, 2) [R^T dPd/d(rod rate); domega/d(rod rate)], front rod first


@dataclass
class ChainDynamics:
    """A chain as (25)-(32) leave it: everything but the joint accelerations and the support's."""

    mass: Array  # (m, m) M of (30)
    force: Array  # (m,) Q of (29) at eta0' = 0
    reach: Array  # (6, m) columns Ad^T M_i* A_i at the root: (32), and A_j^T M_j* Ad of (28)
    inertia: Array  # (6, 6) M_0*
    bias: Array  # (6,) beta_0*
    damping: Array  # (m, m) dQ/dqd, negated: joint damping and drag's slope
    slope: Array  # (m,) dQ/dq of elasticity, negated


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


def support_motion(p: MantaParameters, angle: Array, rate: Array, acceleration: Array) -> Support:
    """The left fin's support from its rods, front rod first: angle, rate and acceleration each (2,)."""
    a1, a2 = angle
    d1, d2 = rate
    e1, e2 = acceleration
    r1, r2, length = p.front_rod_m, p.back_rod_m, p.support_length_m
    s1, c1, s2, c2 = math.sin(a1), math.cos(a1), math.sin(a2), math.cos(a2)
    u, w = r1 * c1 - r2 * c2, r1 * s1 - r2 * s2
    ud, wd = -r1 * s1 * d1 + r2 * s2 * d2, r1 * c1 * d1 - r2 * c2 * d2
    udd = -r1 * (c1 * d1**2 + s1 * e1) + r2 * (c2 * d2**2 + s2 * e2)
    wdd = r1 * (-s1 * d1**2 + c1 * e1) - r2 * (-s2 * d2**2 + c2 * e2)
    x = math.sqrt(length**2 - u**2 - w**2)
    hh = length**2 - w**2
    h = math.sqrt(hh)
    theta, beta = math.atan2(u, x), -math.asin(w / length)
    xd = -(u * ud + w * wd) / x
    xdd = -(ud**2 + u * udd + wd**2 + w * wdd + xd**2) / x
    thetad, betad = (x * ud - u * xd) / hh, -wd / h
    thetadd = (x * udd - u * xdd + 2 * thetad * w * wd) / hh
    betadd = -(wdd + w * wd**2 / hh) / h
    mean = p.support_roll == "mean"
    gamma, gammad, gammadd = ((a1 + a2) / 2, (d1 + d2) / 2, (e1 + e2) / 2) if mean else (0.0, 0.0, 0.0)

    st, ct, sb, cb, sg, cg = *_sc(theta), *_sc(beta), *_sc(gamma)
    rz = np.array([[ct, -st, 0.0], [st, ct, 0.0], [0.0, 0.0, 1.0]])
    ry = np.array([[cb, 0.0, sb], [0.0, 1.0, 0.0], [-sb, 0.0, cb]])
    rx = np.array([[1.0, 0.0, 0.0], [0.0, cg, -sg], [0.0, sg, cg]])
    rotation = rz @ ry @ rx
    ex, ey, z_seen = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([-sb, 0.0, cb])
    turning = rx.T @ (thetad * z_seen + betad * ey)  # (10), with the roll after it
    turning_rate = rx.T @ (thetadd * z_seen + thetad * betad * np.array([-cb, 0.0, -sb]) + betadd * ey)

    def by_rod(ud_i: float, wd_i: float, back: float) -> Array:
        """[R^T Pd; omega] for one rod at unit rate, the other at rest."""
        xd_i = -(u * ud_i + w * wd_i) / x
        spin = rx.T @ ((x * ud_i - u * xd_i) / hh * z_seen - wd_i / h * ey) + (0.5 if mean else 0.0) * ex
        return np.concatenate([rotation.T @ np.array([0.0, -r2 * s2 * back, r2 * c2 * back]), spin])

    return Support(
        rotation,
        np.array([0.0, r2 * c2, r2 * s2]),
        np.array([0.0, -r2 * s2 * d2, r2 * c2 * d2]),
        np.array([0.0, -r2 * (c2 * d2**2 + s2 * e2), r2 * (-s2 * d2**2 + c2 * e2)]),
        turning + gammad * ex,
        turning_rate - gammad * np.cross(ex, turning) + gammadd * ex,
        np.column_stack([by_rod(-r1 * s1, r1 * c1, 0.0), by_rod(r2 * s2, -r2 * c2, 1.0)]),
    )


def _sc(angle: float) -> tuple[float, float]:
    return math.sin(angle), math.cos(angle)


def support_base(p: MantaParameters, s: Support, eta_b: Array) -> tuple[Array, Array, Array]:
    """Twist at end A, its rate without the body's acceleration, and what multiplies that: (10), corrected."""
    rt = s.rotation.T
    v, w = eta_b[:3], eta_b[3:]
    r = np.array(p.fin_root_m) + s.point
    w_seen = rt @ w
    v0 = rt @ (v + np.cross(w, r) + s.point_rate)
    v0_rate = rt @ (np.cross(w, s.point_rate) + s.point_acceleration) - np.cross(s.omega, v0)
    w0_rate = -np.cross(s.omega, w_seen) + s.omega_rate
    return np.concatenate([v0, w_seen + s.omega]), np.concatenate([v0_rate, w0_rate]), adjoint(s.rotation, r)


def chain_dynamics(p: MantaParameters, links: list[Link], q: Array, qd: Array, eta0: Array, water: Array) -> ChainDynamics:
    """Mass matrix, forces and reactions of one chain on its moving root: (16)-(32), corrected.

    q, qd  (m,) rad, rad/s        eta0  (6,) twist of the root, support axes        water  (3,) current, support axes
    """
    m = len(links)
    ads, zetas, forces, normals = [], [], [], []
    inertias, biases = [], []
    eta, place, length = eta0, np.zeros(3), 0.0
    u = water
    for j, link in enumerate(links):
        s, c = _sc(q[j])
        turn = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        place = np.array([0.0, length, 0.0])
        ad = adjoint(turn, place)
        eta = ad @ eta + AXIS * qd[j]  # (16)
        u = turn.T @ u
        through = np.concatenate([eta[:3] - u, eta[3:]])  # through the water
        zetas.append(ad_operator(eta) @ AXIS * qd[j])  # (17)
        normal = np.array([0.0, 0.0, 1.0, link.length / 2, 0.0, 0.0])  # wrench of a unit normal force at mid-link
        speed = normal @ through
        forces.append(-link.drag * abs(speed) * speed * normal)  # (12), with the sign of the speed
        normals.append((normal, 2 * link.drag * abs(speed)))
        # Kirchhoff in a uniform current: the water's own frame is inertial, and u' = -Omega x u in the link's axes
        carried = np.concatenate([np.cross(eta[3:], u), np.zeros(3)])
        inertias.append(link.inertia + link.added)
        biases.append(
            -ad_operator(eta).T @ link.inertia @ eta
            - ad_operator(through).T @ link.added @ through
            + link.added @ carried
        )
        ads.append(ad)
        length = link.length

    # (26): generalised inertia and wrench, from the tip; index 0 is the root itself
    star, bias = inertias[m - 1], biases[m - 1] - forces[m - 1]
    stars, bias_stars = [star], [bias]
    for j in range(m - 2, -1, -1):
        bias = biases[j] - forces[j] + ads[j + 1].T @ (bias + star @ zetas[j + 1])
        star = inertias[j] + ads[j + 1].T @ star @ ads[j + 1]
        stars.insert(0, star)
        bias_stars.insert(0, bias)

    mass, reach = np.zeros((m, m)), np.zeros((6, m))
    slopes = np.zeros((m, m))
    for i in range(m):
        column = stars[i] @ AXIS
        mass[i, i] = AXIS @ column
        for j in range(i - 1, -1, -1):
            column = ads[j + 1].T @ column
            mass[j, i] = mass[i, j] = AXIS @ column  # (30)
        reach[:, i] = ads[0].T @ column

    force = np.zeros(m)
    drift = np.zeros(6)
    slope = np.zeros(m)
    for j, link in enumerate(links):
        drift = ads[j] @ drift + zetas[j]
        half = q[j] / 2
        elastic = -link.stiffness * math.tan(half) / math.cos(half) ** 2  # (14)
        slope[j] = link.stiffness * (0.5 / math.cos(half) ** 4 + math.tan(half) ** 2 / math.cos(half) ** 2)
        tau = elastic - p.joint_damping_n_m_s * qd[j]  # (15)
        force[j] = tau - AXIS @ (stars[j] @ drift) - AXIS @ bias_stars[j]  # (28)
        # how a joint rate further in moves the normal speed here
        row, covector = np.zeros(m), normals[j][0]
        for i in range(j, -1, -1):
            row[i] = covector @ AXIS
            covector = ads[i].T @ covector
        slopes += normals[j][1] * np.outer(row, row)

    return ChainDynamics(
        mass,
        force,
        reach,
        ads[0].T @ stars[0] @ ads[0],
        ads[0].T @ (bias_stars[0] + stars[0] @ zetas[0]),
        p.joint_damping_n_m_s * np.eye(m) + slopes,
        slope,
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
    ahead: float = 0.0,
) -> Fin:
    """All chains of a left fin; the joint accelerations are eliminated, the body's is not.

    eta_b (6,) and water (3,) in body axes; q, qd (m, n); `ahead` s is how far the joint forces are taken ahead,
    linearised (0: as they are now)
    """
    eta0, eta0_rate, base = support_base(p, support, eta_b)
    seen_water = support.rotation.T @ water
    inertia, bias = np.zeros((6, 6)), np.zeros(6)
    free, reach = np.zeros_like(q), np.zeros((*q.shape, 6))
    for i, links in enumerate(chains):
        ad = adjoint(np.eye(3), np.array([stations[i], 0.0, 0.0]))
        dyn = chain_dynamics(p, links, q[:, i], qd[:, i], ad @ eta0, seen_water)
        matrix = dyn.mass + ahead * dyn.damping + ahead**2 * np.diag(dyn.slope)
        known = dyn.force - dyn.reach.T @ (ad @ eta0_rate) - ahead * dyn.slope * qd[:, i]
        on_base = dyn.reach.T @ ad @ base
        answer = np.linalg.solve(matrix, np.column_stack([known, on_base]))  # (29)
        free[:, i], reach[:, i] = answer[:, 0], answer[:, 1:]
        # (32), carried to end A and summed over the span
        inertia += ad.T @ (dyn.inertia @ ad @ base - dyn.reach @ answer[:, 1:])
        bias += ad.T @ (dyn.inertia @ ad @ eta0_rate + dyn.bias + dyn.reach @ answer[:, 0])
    return Fin(support, base, inertia, bias, free, reach)


class PlainManta:
    """The manta's equations for given parameters: default readings, uniform current, body free or fixed."""

    def __init__(self, parameters: MantaParameters) -> None:
        self.parameters = parameters
        self.stations, self.chains = build_links(parameters)
        self.mass = body_mass(parameters)

    def fins(
        self, quaternion: Array, eta: Array, rods: Array, joints: Array, rates: Array, ahead: float = 0.0
    ) -> list[Fin]:
        """Both fins; rods (3, 4) angles, rates, accelerations; joints, rates (2, m, n)."""
        p = self.parameters
        water = rotation_of(quaternion).T @ np.array(p.current_m_s)
        out = []
        for f in range(2):
            seen = eta if f == 0 else MIRROR * eta
            here = water if f == 0 else MIRROR[:3] * water
            support = support_motion(p, *rods[:, 2 * f : 2 * f + 2])
            out.append(fin_dynamics(p, self.stations, self.chains, support, seen, here, joints[f], rates[f], ahead))
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
        acceleration = np.linalg.solve(mass, force) if p.body == "free" else np.zeros(6)
        thrust, torque, qdd = np.zeros((2, 6)), np.zeros(4), np.zeros_like(joints)
        for f, fin in enumerate(fins):
            seen = MIRROR * acceleration if f else acceleration
            on_fin = fin.inertia @ seen + fin.bias
            on_body = -fin.base.T @ on_fin
            thrust[f] = MIRROR * on_body if f else on_body
            torque[2 * f : 2 * f + 2] = fin.support.rates_of_rods.T @ on_fin  # virtual power of the rods
            qdd[f] = fin.free - fin.reach @ seen
        return Forces(acceleration, thrust, qdd, torque)
