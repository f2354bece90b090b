"""Gaits of the robots that connections move, and the numbers for the claims."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from rtmms import dynamics
from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.locomotion.connections import Connection
from rtmms.locomotion.group import compose_poses, inverted, logarithm
from rtmms.locomotion.optimise import Best, best_gait, score
from rtmms.locomotion.paths import Path, gait_path
from rtmms.locomotion.reconstruction import holonomy, net_pose, reconstruct
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.elements import rod_resistance
from rtmms.model.solids import at
from rtmms.robots import cat, fluid_swimmer, purcell, satellite
from rtmms.robots.shape_gaits import GAITS
from rtmms.studies.boyer2015_claims import DEGREES

SHAPE = np.array([0.4, 0.7])
"""Shape around which small loops are laid, rad."""
STEP_S = 1e-3
"""Step of differences in time, s."""
SIZES = (0.02, 0.01)


def connections() -> dict[str, Connection]:
    """Return the connections of the four robots.

    Returns
    -------
    dict[str, Connection]
        By name.
    """
    return {
        "cat": Connection(cat.describe(cat.Cat())), "satellite": Connection(satellite.describe(satellite.Satellite())),
        "purcell": Connection(purcell.describe(purcell.Purcell()), "stokes"),
        "fluid_swimmer": Connection(fluid_swimmer.describe(fluid_swimmer.FluidSwimmer()), "hydrodynamic"),
    }  # fmt: skip


def best_stroke(connection: Connection) -> Best:
    """Return the best stroke of Purcell's swimmer within its joints' limits.

    Parameters
    ----------
    connection : Connection
        Its connection.

    Returns
    -------
    Best
        The stroke.
    """
    limit = purcell.Purcell().limit_rad
    return best_gait(connection, "distance", least=[-limit] * 2, greatest=[limit] * 2)


def numbers(by_robot: dict[str, Connection], best: Best) -> dict[str, float]:
    """Return the numbers by the keys of CLAIMS.

    Parameters
    ----------
    by_robot : dict[str, Connection]
        Connections by robot.
    best : Best
        Best stroke of Purcell's swimmer.

    Returns
    -------
    dict[str, float]
        Numbers by key.
    """
    out = {
        **_cat(by_robot["cat"]),
        **_rules(by_robot),
        **_swimmers(by_robot),
        **_strokes(by_robot["purcell"], best),
        **_times(),
    }
    out["dynamics"] = max(_accelerations(by_robot[name]) for name in ("cat", "satellite", "fluid_swimmer"))
    rectangle = gait_path("rectangle", 2, GAITS["satellite"])
    out["satellite"] = float(holonomy(by_robot["satellite"], rectangle)[2])
    return out


def _cat(connection: Connection) -> dict[str, float]:
    """Return the numbers of one cycle of the cat's gait, with full dynamics beside it."""
    path = gait_path("righting", 2, GAITS["cat"])
    pose = net_pose(connection, path)
    first, last = path.ends
    motion = reconstruct(connection, path)
    centres = []
    for shape, where in zip(motion.shape[::16], motion.pose[::16], strict=True):
        state = connection.model.state()
        state.q, state.position, state.orientation = shape, where[:3], where[3:]
        centres.append(dynamics.centre_of_mass(connection.model, state))
    turned = math.acos(max(-1.0, min(1.0, quaternion_matrix(pose[3:])[0, 0]))) * DEGREES
    return {
        "cat_turned": turned, "cat_shape": float(np.max(np.abs(last - first))), "momentum": _momentum(path),
        "centre": float(np.max(np.ptp(np.array(centres), axis=0))),
    }  # fmt: skip


def _momentum(path: Path, steps: int = 2000) -> float:
    """Return the largest momentum along the gait, N m s, of a free base with the equations of motion, by RK4."""
    model, h = compile_model(cat.describe(cat.Cat())), path.duration / steps
    item = Connection(model)

    def rate(t: float, twist: Array) -> Array:
        state = model.state()
        state.q, state.qd, rdd = shape_at(path, t)
        state.twist = twist
        return dynamics.inverse_dynamics(model, state, rdd).base_acceleration

    twist, worst = item.twist(*shape_at(path, 0.0)[:2]), 0.0
    for k in range(steps):
        t = k * h
        a = rate(t, twist)
        b = rate(t + 0.5 * h, twist + 0.5 * h * a)
        c = rate(t + 0.5 * h, twist + 0.5 * h * b)
        d = rate(t + h, twist + h * c)
        twist = np.asarray(twist + h / 6.0 * (a + 2.0 * b + 2.0 * c + d))
        state = model.state()
        state.q, state.qd, _ = shape_at(path, t + h)
        state.twist = twist
        worst = max(worst, float(np.max(np.abs(dynamics.momentum(model, state, about="centre")[3:]))))
    return worst


def shape_at(path: Path, t: float) -> tuple[Array, Array, Array]:
    """Return shape, rate and acceleration at a time; the last by differences of sixth order.

    Parameters
    ----------
    path : Path
        The path.
    t : float
        Time, s.

    Returns
    -------
    tuple[Array, Array, Array]
        (p,) each, rad, rad/s, rad/s2.
    """
    r, rd = path.motion(np.asarray(t + STEP_S * np.arange(-3, 4)))
    return r[3], rd[3], sixth(rd)


def sixth(near: Array) -> Array:
    """Return the rate at the middle of seven values that are STEP_S apart.

    Parameters
    ----------
    near : Array
        (7, ...) values.

    Returns
    -------
    Array
        In units/s.
    """
    out: Array = (45.0 * (near[4] - near[2]) - 9.0 * (near[5] - near[1]) + (near[6] - near[0])) / (60.0 * STEP_S)
    return out


def _accelerations(connection: Connection) -> float:
    """Return the error of eta' = -A rdd - (dA rd) rd against the equations of motion, of the largest, at ten states."""
    rng, off, size = np.random.default_rng(1), 0.0, 0.0
    for _ in range(10):
        r, rd, rdd = rng.normal(size=(3, 2))
        state = connection.model.state()
        state.q, state.qd, state.twist = r, rd, connection.twist(r, rd)
        slope, form = connection.slopes(r), connection.form(r)
        wanted = -form @ rdd - np.einsum("kaj,k,j->a", slope, rd, rd)
        got = dynamics.inverse_dynamics(_free(connection), state, rdd).base_acceleration
        off, size = max(off, float(np.max(np.abs(got - wanted)))), max(size, float(np.max(np.abs(wanted))))
    return off / size


def _free(connection: Connection) -> Any:
    """Return the same model with a free base: a connection's may be prescribed."""
    from dataclasses import replace

    return replace(connection.model, base_mode=0)


def _rules(by_robot: dict[str, Connection]) -> dict[str, float]:
    """Return the errors of area rule, paces, ways back, scallops: the largest of all robots."""
    waves = 0.5 * np.random.default_rng(2).normal(size=(2, 5))
    path = Path.fourier(waves)
    other = path.retimed(lambda t: t + 0.9 * np.sin(t), lambda t: 1.0 + 0.9 * np.cos(t), path.breaks)
    there_and_back = Path.polygon([SHAPE, -SHAPE, SHAPE])
    pace = backwards = scallop = area = 0.0
    order, plain = math.inf, 0.0
    for name, item in by_robot.items():
        pose = net_pose(item, path)
        pace = max(pace, _apart(pose, net_pose(item, other)))
        backwards = max(
            backwards, float(np.max(np.abs(logarithm(compose_poses(pose, net_pose(item, path.reversed()))))))
        )
        scallop = max(scallop, float(np.max(np.abs(logarithm(net_pose(item, there_and_back))))))
        off = [_area(item, a, True) for a in SIZES]
        area, order = max(area, off[1]), min(order, math.log2(off[0] / off[1]) + 2.0)
        if name == "fluid_swimmer":
            plain = _area(item, SIZES[1], False)
    return {"pace": pace, "backwards": backwards, "scallop": scallop, "area": area, "area_order": order,
            "area_plain": plain}  # fmt: skip


def _apart(a: Array, b: Array) -> float:
    return float(np.max(np.abs(logarithm(compose_poses(inverted(a), b)))))


def _area(connection: Connection, a: float, bracketed: bool) -> float:
    """Return the error of the area rule for a circle of size a, from its middle.

    It is the net motion less pi a^2 (-F), as a share of the latter.
    """
    out, around = (
        net_pose(connection, Path.polygon([SHAPE, SHAPE + np.array([a, 0.0])])),
        net_pose(connection, Path.circle(a, SHAPE)),
    )
    net = logarithm(compose_poses(out, compose_poses(around, inverted(out))))
    share = np.zeros(6)
    share[connection.rows] = -math.pi * a * a * connection.curvature(SHAPE, bracketed=bracketed)[:, 0, 1]
    return float(np.max(np.abs(net - share)) / np.max(np.abs(share)))


def _swimmers(by_robot: dict[str, Connection]) -> dict[str, float]:
    fluid, rods = by_robot["fluid_swimmer"], by_robot["purcell"]
    circle = Path.circle(0.5)
    straight, aside = holonomy(fluid, circle), holonomy(fluid, Path.circle(0.5, (0.5, 0.0)))
    stroke = reconstruct(rods, Path.circle(1.0))
    drag = [rods.drag(r, rd) for r, rd in zip(stroke.shape, stroke.rate, strict=True)]
    by_joints = np.array([torque @ rd for (torque, _), rd in zip(drag, stroke.rate, strict=True)])
    power = float(np.max(np.abs(by_joints - stroke.effort)) / stroke.effort.max())
    return {
        "fluid_way": float(np.hypot(*straight[:2])), "fluid_known": float(straight[0]),
        "fluid_turn": abs(float(aside[2])),
        "purcell_known": float(stroke.displacement[0]),
        "stokes": float(max(np.max(np.abs(left)) for _, left in drag)),
        "power": max(power, _energy_rate(fluid, circle)),
    }  # fmt: skip


def _energy_rate(connection: Connection, path: Path) -> float:
    """Return the error of (26): tau . rd less the rate of the energy along a gait, of the largest power."""
    t = np.linspace(0.1, 6.0, 20)
    model = _free(connection)
    worst = largest = 0.0
    for now in t:
        grows = float(sixth(0.5 * connection.along(*path.motion(now + STEP_S * np.arange(-3.0, 4.0)))[1]))
        r, rd, rdd = shape_at(path, now)
        state = model.state()
        state.q, state.qd, state.twist = r, rd, connection.twist(r, rd)
        power = float(dynamics.inverse_dynamics(model, state, rdd).torque @ rd)
        worst, largest = max(worst, abs(power - grows)), max(largest, abs(power))
    return worst / largest


def _strokes(connection: Connection, best: Best) -> dict[str, float]:
    """Return efficiencies in %: 3 L c_t d^2 / cost^2 of a swimmer with L = c_t = 1."""
    known = {
        name: score(connection, gait_path(name, 2, GAITS["purcell"]), "distance", "cost") for name in GAITS["purcell"]
    }
    return {
        "stroke_efficiency": 300.0 * known["stroke"] ** 2, "centred_efficiency": 300.0 * known["centred"] ** 2,
        "best_efficiency": 300.0 * best.score**2, "best_ratio": (best.score / known["centred"]) ** 2,
    }  # fmt: skip


def _times() -> dict[str, float]:
    """Return the time of a connection of 20 links, us, and the power of its growth to 160."""
    took = {}
    for links in (20, 160):
        item, r = Connection(chain(links), "stokes"), np.linspace(-0.5, 0.5, links - 1)
        item.at(r)
        best = math.inf
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(200):
                item.at(r)
            best = min(best, (time.perf_counter() - start) / 200.0)
        took[links] = 1e6 * best
    return {"time": took[20], "growth": math.log(took[160] / took[20]) / math.log(8.0)}


def chain(links: int) -> Mechanism:
    """Return a mechanism of equal rods of 0.1 m in a creeping fluid, with the first as base.

    Parameters
    ----------
    links : int
        Number of rods.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    bodies, joints = [Body("rod0", viscous=rod_resistance(0.1, 1.0, 2.0))], []
    for k in range(1, links):
        bodies.append(Body(f"rod{k}", viscous=rod_resistance(0.1, 1.0, 2.0, at(0.05))))
        joints.append(Joint(f"bend{k}", f"rod{k - 1}", f"rod{k}", placement=at(0.05 if k == 1 else 0.1)))
    return Mechanism("rods", bodies, joints)
