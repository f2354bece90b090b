"""`rtmms bench water`: water of rtmms's elements and of MuJoCo against closed forms.

The cases are those of google-deepmind/mujoco#3452, and more. Each moves one free body, by a tree of rtmms with added
mass and buoyancy, and by MuJoCo's ellipsoid model. MuJoCo has no buoyancy: `gravcomp` is the displaced mass over the
mass of the trimmed body, as its users set it. MuJoCo's drag has no factor 1/2, so its coefficient is half of C_D here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad, solve_ivp  # type: ignore[attr-defined]

import rtmms
from rtmms import model as m
from rtmms.mechanism.actuators import BodyWrench

from .requirements import module, requires

Array = npt.NDArray[np.float64]
WATER = 1000.0
GRAVITY = 9.81
RIGHT = 0.01
"""Relative error up to which a value is right."""
_SHORT_S = 1e-4
"""Length of the step over which an initial acceleration is measured, s."""


@dataclass(frozen=True)
class Body:
    """Body in water, with its axes as the principal ones.

    Attributes
    ----------
    mass : float
        Mass, kg.
    inertia : tuple[float, float, float]
        (3,) kg m2 about its centre of mass.
    displaced : float
        kg of water.
    added : Array
        (6,) kg, kg m2: added mass and inertia along and about the axes.
    shape : tuple[str, tuple[float, ...]]
        Geom of MuJoCo, and its size.
    below : float, default 0.0
        Distance of the centre of mass below the centre of the shape, m.
    drag_area : float, default 0.0
        C_D A of a sphere, m2.
    coefficient : float, default 0.0
        C_D.
    ballast : float, default 0.0
        Mass at the centre of mass, added after the trim, kg.
    """

    mass: float
    inertia: tuple[float, float, float]
    displaced: float
    added: Array
    shape: tuple[str, tuple[float, ...]]
    below: float = 0.0
    drag_area: float = 0.0
    coefficient: float = 0.0
    ballast: float = 0.0


@dataclass
class Motion:
    """Motion of a body at the end of a run, in the frames of rtmms's outputs.

    Attributes
    ----------
    position : Array
        (3,) position, m, world.
    velocity : Array
        (3,) velocity, m/s, body.
    angular_velocity : Array
        (3,) angular velocity, rad/s, body.
    speeds : list[float]
        (steps,) m/s after each step.
    """

    position: Array
    velocity: Array
    angular_velocity: Array
    speeds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Start:
    """Initial motion.

    Attributes
    ----------
    velocity : tuple[float, float, float], default (0.0, 0.0, 0.0)
        Velocity, m/s, body.
    angular_velocity : tuple[float, float, float], default (0.0, 0.0, 0.0)
        Angular velocity, rad/s, body.
    pitch : float, default 0.0
        Rotation about y, rad.
    """

    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    angular_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    pitch: float = 0.0

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """Attitude, body to world."""
        return (math.cos(0.5 * self.pitch), 0.0, math.sin(0.5 * self.pitch), 0.0)


Force = Callable[[float], tuple[float, float, float]]
"""Force on the centre of mass at a time, N, of a body that does not turn."""


def by_rtmms(body: Body, start: Start, seconds: float, dt: float, force: Force | None = None) -> Motion:
    """Move a body by a tree with elements.

    Parameters
    ----------
    body : Body
        The body.
    start : Start
        Its initial motion.
    seconds : float
        Duration, s.
    dt : float
        Step, s.
    force : Force | None, optional
        Force on it.

    Returns
    -------
    Motion
        Its motion.
    """
    whole = body.mass + body.ballast
    elements = [m.DragArea("body", body.drag_area, density=WATER)] if body.drag_area else []
    item = m.Body.about_centre(
        "body", whole, (0.0, 0.0, -body.below), np.diag(body.inertia), added=np.diag(body.added),
        displaced=body.displaced,
    )  # fmt: skip
    tree = rtmms.Mechanism("body", [item], gravity=(0.0, 0.0, -GRAVITY), elements=elements)
    push = m.Placement(position=np.array([0.0, 0.0, -body.below]))
    wrench = BodyWrench("body", ("fx", "fy", "fz"), push)
    plant = rtmms.TreePlant(tree, actuators=[wrench], dt=dt)
    plant.place(
        velocity=start.velocity,
        angular_velocity=start.angular_velocity,
        quaternion=start.quaternion,
        position=(0, 0, 0),
    )
    out = Motion(np.zeros(3), np.zeros(3), np.zeros(3))
    for k in range(round(seconds / dt)):
        plant.step(np.zeros(3) if force is None else np.array(force((k + 0.5) * dt)))
        out.speeds.append(float(np.linalg.norm(plant.observe()["velocity"])))
    outputs = plant.observe()
    out.position, out.velocity, out.angular_velocity = (
        outputs["position"],
        outputs["velocity"],
        outputs["angular_velocity"],
    )
    return out


def mjcf_of(body: Body, dt: float) -> str:
    """Return the body as a model of MuJoCo.

    Parameters
    ----------
    body : Body
        The body.
    dt : float
        Step, s.

    Returns
    -------
    str
        MJCF.
    """
    kind, size = body.shape
    numbers = " ".join(f"{item:.17g}" for item in size)
    inertia = " ".join(f"{item:.17g}" for item in body.inertia)
    return f"""<mujoco><option timestep="{dt}" integrator="RK4" density="{WATER:g}" gravity="0 0 -{GRAVITY}"/>
<worldbody><body name="body" gravcomp="{body.displaced / body.mass:.17g}"><freejoint/>
<inertial pos="0 0 {-body.below:.17g}" mass="{body.mass + body.ballast:.17g}" diaginertia="{inertia}"/>
<geom type="{kind}" size="{numbers}" fluidshape="ellipsoid"
 fluidcoef="{0.5 * body.coefficient:.17g} 0 0 0 0"/></body></worldbody></mujoco>"""


def by_mujoco(body: Body, start: Start, seconds: float, dt: float, force: Force | None = None) -> Motion:
    """Move a body by MuJoCo.

    Parameters
    ----------
    body : Body
        The body.
    start : Start
        Its initial motion.
    seconds : float
        Duration, s.
    dt : float
        Step, s.
    force : Force | None, optional
        Force on it.

    Returns
    -------
    Motion
        Its motion.
    """
    from rtmms.mujoco_models.library import load_mujoco

    mujoco = load_mujoco("bench water")
    model = mujoco.MjModel.from_xml_string(mjcf_of(body, dt))
    data = mujoco.MjData(model)
    turn = np.zeros(9)
    data.qpos[3:7] = start.quaternion
    mujoco.mju_quat2Mat(turn, data.qpos[3:7])
    data.qvel[:3], data.qvel[3:] = turn.reshape(3, 3) @ np.array(start.velocity), start.angular_velocity
    out = Motion(np.zeros(3), np.zeros(3), np.zeros(3))
    for k in range(round(seconds / dt)):
        if force is not None:
            data.xfrc_applied[1, :3] = force((k + 0.5) * dt)
        mujoco.mj_step(model, data)
        out.speeds.append(float(np.linalg.norm(data.qvel[:3])))
    mujoco.mju_quat2Mat(turn, data.qpos[3:7])
    out.position, out.velocity = data.qpos[:3].copy(), turn.reshape(3, 3).T @ data.qvel[:3]
    out.angular_velocity = data.qvel[3:].copy()
    return out


def ellipsoid_added(half_axes: tuple[float, float, float]) -> Array:
    """Return added mass and inertia of an ellipsoid along and about its axes (Lamb 1932, art. 114, 115).

    Parameters
    ----------
    half_axes : tuple[float, float, float]
        Half axes, m.

    Returns
    -------
    Array
        (6,) kg, kg m2.
    """
    a, b, c = half_axes
    displaced = WATER * 4.0 / 3.0 * math.pi * a * b * c

    def coefficient(k: int) -> float:
        def slope(x: float) -> float:
            shifted = [half_axis * half_axis + x for half_axis in half_axes]
            return 1.0 / (shifted[k] * math.sqrt(shifted[0] * shifted[1] * shifted[2]))

        return float(a * b * c * quad(slope, 0.0, math.inf, epsabs=0.0, epsrel=1e-10, limit=500)[0])

    k = [coefficient(i) for i in range(3)]
    out = [displaced * item / (2.0 - item) for item in k]
    for i, j, n in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        del i
        less, more = half_axes[j] ** 2 - half_axes[n] ** 2, half_axes[j] ** 2 + half_axes[n] ** 2
        bottom = 2.0 * less + more * (k[j] - k[n])
        out.append(0.0 if less == 0.0 else displaced / 5.0 * less**2 * (k[n] - k[j]) / bottom)
    return np.array(out)


def ellipsoid(half_axes: tuple[float, float, float]) -> Body:
    """Return a neutral homogeneous ellipsoid.

    Parameters
    ----------
    half_axes : tuple[float, float, float]
        Half axes, m.

    Returns
    -------
    Body
        The body.
    """
    a, b, c = half_axes
    mass = WATER * 4.0 / 3.0 * math.pi * a * b * c
    inertia = (mass * (b * b + c * c) / 5.0, mass * (a * a + c * c) / 5.0, mass * (a * a + b * b) / 5.0)
    return Body(mass, inertia, mass, ellipsoid_added(half_axes), ("ellipsoid", half_axes))


def sphere(radius: float) -> Body:
    """Return a neutral sphere, whose added mass is half of the displaced one.

    Parameters
    ----------
    radius : float
        Radius, m.

    Returns
    -------
    Body
        The body.
    """
    body = ellipsoid((radius, radius, radius))
    return replace(body, added=np.array([0.5 * body.displaced] * 3 + [0.0] * 3), shape=("sphere", (radius,)))


def cylinder(radius: float, length: float) -> Body:
    """Return a neutral cylinder along z, with the added mass rho pi r^2 of a metre across.

    Parameters
    ----------
    radius, length : float
        Radius and length, m.

    Returns
    -------
    Body
        The body.
    """
    mass = WATER * math.pi * radius**2 * length
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    added = np.array([mass, mass, 0.0, mass * length**2 / 12.0, mass * length**2 / 12.0, 0.0])
    inertia = (across, across, 0.5 * mass * radius**2)
    return Body(mass, inertia, mass, added, ("cylinder", (radius, 0.5 * length)))


def plate(half_height: float, length: float, mass: float) -> Body:
    """Return a thin plate in the plane of x and z, with the added mass rho pi b^2 of a metre along its normal.

    Parameters
    ----------
    half_height, length : float
        Half height b and length, m.
    mass : float
        Mass, kg.

    Returns
    -------
    Body
        The body.
    """
    added = WATER * math.pi * half_height**2 * length
    inertia = (mass * half_height**2 / 3.0, mass * (half_height**2 / 3.0 + length**2 / 12.0), mass * length**2 / 12.0)
    return Body(
        mass, inertia, mass, np.array([0.0, added, 0.0, 0.0, 0.0, 0.0]),
        ("box", (0.5 * length, 1e-3, half_height)),
    )  # fmt: skip


def kirchhoff(body: Body, start: Start, seconds: float) -> tuple[Array, Array]:
    """Return the motion by Kirchhoff's equations, in body axes (Lamb 1932, art. 124).

    Parameters
    ----------
    body : Body
        The body.
    start : Start
        Its initial motion.
    seconds : float
        Duration, s.

    Returns
    -------
    tuple[Array, Array]
        Velocity (3,) m/s and angular velocity (3,) rad/s.
    """
    whole = np.concatenate([np.full(3, body.mass), body.inertia]) + body.added

    def rate(_: float, eta: Array) -> Array:
        v, w = eta[:3], eta[3:]
        p, h = whole[:3] * v, whole[3:] * w
        return np.concatenate([np.cross(p, w), np.cross(h, w) + np.cross(p, v)]) / whole

    first = np.concatenate([start.velocity, start.angular_velocity])
    end = solve_ivp(rate, (0.0, seconds), first, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    return end[:3], end[3:]


Mover = Callable[..., Motion]


@dataclass(frozen=True)
class Case:
    """Quantity by its closed form, and by a simulator.

    Attributes
    ----------
    name : str
        Name of the case.
    unit : str
        Unit of the quantity.
    closed_form : float
        Its value.
    measure : Callable[[Mover], float]
        Measures it by a simulator.
    scale : float, default 0.0
        Size that counts as one where the closed form is 0.
    """

    name: str
    unit: str
    closed_form: float
    measure: Callable[[Mover], float]
    scale: float = 0.0


def _push(name: str, body: Body, axis: int) -> Case:
    """Return the case of a force of 1 N along an axis, which gives F / (m + m_a)."""
    force = np.eye(3)[axis]

    def measure(move: Mover) -> float:
        end = move(body, Start(), _SHORT_S, _SHORT_S, lambda t: tuple(force.tolist()))
        return float(end.velocity[axis]) / _SHORT_S

    return Case(name, "m/s2", 1.0 / (body.mass + body.added[axis]), measure)


def _energy(body: Body, end: Motion, whole: bool) -> float:
    numbers = np.concatenate([np.full(3, body.mass), body.inertia]) + (body.added if whole else 0.0)
    return float(0.5 * numbers @ np.concatenate([end.velocity, end.angular_velocity]) ** 2)


def cases() -> list[Case]:
    """Return all cases.

    Returns
    -------
    list[Case]
        The cases.
    """
    ball, long_body = sphere(0.1), ellipsoid((0.3, 0.06, 0.06))
    uneven, rod, fin = ellipsoid((0.3, 0.1, 0.05)), cylinder(0.05, 0.5), plate(0.05, 0.4, 1.0)
    ballasted = replace(ball, ballast=0.5)
    result = [
        Case("a neutral sphere stays: speed after 2 s", "m/s", 0.0,
             lambda move: move(ball, Start(), 2.0, 1e-2).speeds[-1], scale=1.0),
        Case("0.5 kg of ballast after the trim: acceleration", "m/s2",
             -0.5 * GRAVITY / (ballasted.mass + 0.5 + ball.added[2]),
             lambda move: float(move(ballasted, Start(), _SHORT_S, _SHORT_S).velocity[2]) / _SHORT_S),
        _push("pushed sphere: acceleration by 1 N", ball, 0),
        _push("pushed ellipsoid 5:1, broadside", long_body, 1),
        _push("pushed ellipsoid 5:1, along", long_body, 0),
        _push("pushed cylinder, across", rod, 0),
    ]  # fmt: skip
    low = replace(ball, below=0.02)
    moment, about = low.mass * GRAVITY * 0.02, low.inertia[1] + low.mass * 0.02**2
    free = about - (low.mass * 0.02) ** 2 / (low.mass + low.added[0])  # the sphere is free to move sideways
    tilt = 1e-3
    result.append(
        Case("weight 2 cm below the centre rights a sphere: alpha / angle", "1/s2", -moment / free,
             lambda move: float(move(low, Start(pitch=tilt), _SHORT_S, _SHORT_S).angular_velocity[1]) / _SHORT_S / tilt)
    )  # fmt: skip
    area, drag = math.pi * 0.1**2, 0.47
    heavy = replace(ball, mass=1.2 * ball.mass, drag_area=drag * area, coefficient=drag)
    weight = 0.2 * ball.mass * GRAVITY
    result.append(
        Case("a sphere of 1.2 times its water sinks: terminal speed", "m/s",
             math.sqrt(2.0 * weight / (WATER * drag * area)), lambda move: move(heavy, Start(), 20.0, 1e-2).speeds[-1])
    )  # fmt: skip
    u, v = math.cos(math.radians(30.0)), math.sin(math.radians(30.0))

    def munk(move: Mover) -> float:
        whole = long_body.inertia[2] + (long_body.added[5] if move is by_rtmms else 0.0)
        end = move(long_body, Start(velocity=(u, v, 0.0)), _SHORT_S, _SHORT_S)
        return whole * float(end.angular_velocity[2]) / _SHORT_S

    result.append(Case("Munk's moment at 1 m/s and 30 deg", "N m",
                      -(long_body.added[1] - long_body.added[0]) * u * v, munk))  # fmt: skip
    tumbling = Start((0.5, 0.1, 0.05), (0.3, 0.5, 0.2))
    result.append(
        Case("Kirchhoff's equations, ellipsoid 6:2:1: w_y after 1 s", "rad/s",
             float(kirchhoff(uneven, tumbling, 1.0)[1][1]),
             lambda move: float(move(uneven, tumbling, 1.0, 1e-3).angular_velocity[1]))
    )  # fmt: skip
    omega = 2.0 * math.pi

    def heave(move: Mover) -> float:
        end = move(fin, Start(), 0.5, 1e-3, lambda t: (0.0, 2.0 * math.cos(omega * t), 0.0))
        return 500.0 * float(end.position[1])

    result.append(Case("plate heaving at 1 Hz by 2 N: amplitude", "mm",
                      1e3 * 2.0 / ((fin.mass + fin.added[1]) * omega**2), heave))  # fmt: skip

    def ideal(move: Mover) -> float:
        is_rtmms = move is by_rtmms
        begin = Motion(np.zeros(3), np.array(tumbling.velocity), np.array(tumbling.angular_velocity))
        return _energy(uneven, move(uneven, tumbling, 2.0, 1e-3), is_rtmms) / _energy(uneven, begin, is_rtmms)

    result.append(Case("power balance without drag: E(2 s) / E(0)", "", 1.0, ideal))
    draggy = replace(ball, drag_area=drag * area, coefficient=drag)

    def dissipated(move: Mover) -> float:
        whole = draggy.mass + (draggy.added[0] if move is by_rtmms else 0.0)
        speeds = np.array([1.0, *move(draggy, Start(velocity=(1.0, 0.0, 0.0)), 2.0, 1e-3).speeds])
        work = float(np.trapezoid(0.5 * WATER * drag * area * speeds**3, dx=1e-3))
        return 0.5 * whole * float(speeds[0] ** 2 - speeds[-1] ** 2) / work

    result.append(Case("power balance with drag: energy lost / work of drag", "", 1.0, dissipated))

    def slowed(move: Mover) -> float:
        return move(draggy, Start(velocity=(1.0, 0.0, 0.0)), 2.0, 1e-3).speeds[-1]

    whole = draggy.mass + draggy.added[0]
    result.append(Case("drag slows a sphere from 1 m/s: speed after 2 s", "m/s",
                      1.0 / (1.0 + 0.5 * WATER * drag * area * 2.0 / whole), slowed))  # fmt: skip
    return result


def is_right(case: Case, value: float) -> bool:
    """Return whether a value is within RIGHT of the closed form.

    Parameters
    ----------
    case : Case
        The case.
    value : float
        The value.

    Returns
    -------
    bool
        True where it is.
    """
    return bool(abs(value - case.closed_form) <= RIGHT * (case.scale or abs(case.closed_form)))


@requires(lambda **_: [module("mujoco", "mujoco")])
def main(as_json: bool = False) -> int:
    """Measure and print.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.

    Returns
    -------
    int
        0.
    """
    rows = []
    for case in cases():
        ours, theirs = (round(float(case.measure(move)), 12) + 0.0 for move in (by_rtmms, by_mujoco))
        rows.append({
            "name": case.name, "closed_form": case.closed_form, "rtmms": ours, "mujoco": theirs, "unit": case.unit,
            "mujoco_is_right": is_right(case, theirs), "rtmms_is_right": is_right(case, ours),
        })  # fmt: skip
    from rtmms.mujoco_models.library import load_mujoco

    versions = {"rtmms": version("rtmms"), "mujoco": load_mujoco("bench water").__version__, "numpy": np.__version__}
    result = {"cases": rows, "versions": versions}
    print(json.dumps(result) if as_json else text(result))
    return 0


def text(result: Mapping[str, Any]) -> str:
    """Return the rows as `rtmms bench water` prints them.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Lines.
    """
    lines = [
        "versions: " + ", ".join(f"{name} {number}" for name, number in result["versions"].items()),
        f"{'case':<60}{'closed form':>12}{'rtmms':>10}{'MuJoCo':>10}  {'unit':<6}MuJoCo is",
    ]
    lines += [
        f"{row['name']:<60}{row['closed_form']:>12.4g}{row['rtmms']:>10.4g}{row['mujoco']:>10.4g}  {row['unit']:<6}"
        f"{'right' if row['mujoco_is_right'] else 'wrong'}"
        for row in result["cases"]
    ]
    return "\n".join(lines)
