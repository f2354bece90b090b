"""The BlueROV2 in its heavy configuration: one body in water, eight thrusters (docs/bluerov2.md).

Mass, added mass, damping, thrust curve and places of the thrusters are those of von Benzon, Sørensen, Uth, Jouffroy,
Liniger and Pedersen (2022): An Open-Source Benchmark Simulator: Control of a BlueROV2 Underwater Robot, J. Mar. Sci.
Eng. 10(12), 1898. Order and senses of the thrusters are those of ArduSub's frame vectored-6dof (AP_Motors6DOF).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from rtmms.base.parameters import Parameter, build, in_model, settable
from rtmms.base.spatial import Array
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.actuators import Thruster
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Mechanism
from rtmms.model.elements import Strip
from rtmms.model.resistances import DragArea, LinearDrag
from rtmms.model.solids import Placement
from rtmms.robots.parameters import START_DEPTH_M, Integrator, StartDepth, Substeps, step_of

CONTROLLER = "depth_hold"


@dataclass(frozen=True)
class BlueRov2:
    """Parameters of the ROV; the declaration of each field has its meaning, unit and range.

    The defaults are those of von Benzon and others (2022), with ballast to a neutral trim.
    """

    # fmt: off
    mass_kg: Annotated[float, Parameter("Mass of the robot.", "kg")] = 13.5
    net_buoyancy_kg: Annotated[float, Parameter(
        "Mass of the displaced water minus that of the robot; 0: a neutral trim.", "kg", signed=True, le=5,
    )] = 0.0
    buoyancy_above_m: Annotated[float, Parameter(
        "Height of the centre of buoyancy above the centre of mass, which rights the robot.", "m", ge=0,
    )] = 0.01
    ixx_kg_m2: Annotated[float, Parameter("Inertia about x through the centre of mass.", "kg m2")] = 0.26
    iyy_kg_m2: Annotated[float, Parameter("Inertia about y through the centre of mass.", "kg m2")] = 0.23
    izz_kg_m2: Annotated[float, Parameter("Inertia about z through the centre of mass.", "kg m2")] = 0.37
    added_surge_kg: Annotated[float, Parameter("Added mass along x.", "kg", ge=0)] = 6.36
    added_sway_kg: Annotated[float, Parameter("Added mass along y.", "kg", ge=0)] = 7.12
    added_heave_kg: Annotated[float, Parameter("Added mass along z.", "kg", ge=0)] = 18.68
    added_roll_kg_m2: Annotated[float, Parameter("Added inertia about x.", "kg m2", ge=0)] = 0.189
    added_pitch_kg_m2: Annotated[float, Parameter("Added inertia about y.", "kg m2", ge=0)] = 0.135
    added_yaw_kg_m2: Annotated[float, Parameter("Added inertia about z.", "kg m2", ge=0)] = 0.222
    linear_surge_n_s_m: Annotated[float, Parameter("Linear damping along x.", "N s/m", ge=0, live=True)] = 13.7
    linear_sway_n_s_m: Annotated[float, Parameter("Linear damping along y.", "N s/m", ge=0, live=True)] = 0.0
    linear_heave_n_s_m: Annotated[float, Parameter("Linear damping along z.", "N s/m", ge=0, live=True)] = 33.0
    linear_roll_n_m_s: Annotated[float, Parameter("Linear damping about x.", "N m s", ge=0, live=True)] = 0.0
    linear_pitch_n_m_s: Annotated[float, Parameter("Linear damping about y.", "N m s", ge=0, live=True)] = 0.8
    linear_yaw_n_m_s: Annotated[float, Parameter("Linear damping about z.", "N m s", ge=0, live=True)] = 0.0
    quadratic_surge_kg_m: Annotated[float, Parameter(
        "Quadratic damping X along x: a force X u times the size of u, against u.", "kg/m", ge=0, live=True,
    )] = 141.0
    quadratic_sway_kg_m: Annotated[float, Parameter(
        "Quadratic damping Y along y: a force Y v times the size of v, against v.", "kg/m", ge=0, live=True,
    )] = 217.0
    quadratic_heave_kg_m: Annotated[float, Parameter(
        "Quadratic damping Z along z: a force Z w times the size of w, against w.", "kg/m", ge=0, live=True,
    )] = 190.0
    quadratic_roll_kg_m2: Annotated[float, Parameter(
        "Quadratic damping K about x: a moment K p times the size of p, against p.", "kg m2", ge=0, live=True,
    )] = 1.19
    quadratic_pitch_kg_m2: Annotated[float, Parameter(
        "Quadratic damping M about y: a moment M q times the size of q, against q.", "kg m2", ge=0, live=True,
    )] = 0.47
    quadratic_yaw_kg_m2: Annotated[float, Parameter(
        "Quadratic damping N about z: a moment N r times the size of r, against r.", "kg m2", ge=0, live=True,
    )] = 1.5
    horizontal_x_m: Annotated[float, Parameter(
        "Distance of the horizontal thrusters before and behind the centre of mass.", "m",
    )] = 0.156
    horizontal_y_m: Annotated[float, Parameter(
        "Distance of the horizontal thrusters to the left and right of the centre of mass.", "m",
    )] = 0.111
    horizontal_below_m: Annotated[float, Parameter(
        "Distance of the horizontal thrusters below the centre of mass; their thrust pitches the robot.",
        "m", signed=True,
    )] = 0.085
    horizontal_deg: Annotated[float, Parameter(
        "Angle of the horizontal thrusters against x.", "deg", ge=5, le=85,
    )] = 45.0
    vertical_x_m: Annotated[float, Parameter(
        "Distance of the vertical thrusters before and behind the centre of mass.", "m",
    )] = 0.12
    vertical_y_m: Annotated[float, Parameter(
        "Distance of the vertical thrusters to the left and right of the centre of mass.", "m",
    )] = 0.218
    thrust_n: Annotated[tuple[float, float, float, float, float], Parameter(
        "Coefficients c1, c3, c5, c7, c9 of the thrust c1 V + c3 V^3 + ... (V: command from 0 to 1), which is odd in "
        "V.",
        "N", signed=True,
    )] = (8.9, 176.0, -404.1, 389.9, -140.3)
    dead_band: Annotated[float, Parameter(
        "Share of the command without thrust, such as 0.0625 of an ESC with 25 us about 1500 us.", ge=0, le=0.5,
    )] = 0.0
    thruster_s: Annotated[float, Parameter("Time constant of a thruster's lag.", "s", ge=0)] = 0.029
    water_density_kg_m3: Annotated[float, Parameter("Density of the water.", "kg/m3")] = 1000.0
    current_x_m_s: Annotated[float, Parameter(
        "Uniform current along x, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    current_y_m_s: Annotated[float, Parameter(
        "Uniform current along y, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    current_z_m_s: Annotated[float, Parameter(
        "Uniform current along z, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0, live=True)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    start_depth_m: StartDepth = START_DEPTH_M
    # fmt: on


PRESETS: dict[str, dict[str, Any]] = {"neutral": {}, "published": {"net_buoyancy_kg": -0.1}}
"""Preset published: 13.4 kg of displaced fresh water, of the publication's volume of 0.0134 m3."""
AIRFRAME = "vectored_6dof"
"""Four thrusters across the corners, four vertical ones (rtmms.plant.PlantDescription)."""
CORNERS = {"front_right": (1, -1), "front_left": (1, 1), "rear_right": (-1, -1), "rear_left": (-1, 1)}
"""Signs of x and y (to the left) of the thrusters, in ArduSub's order of motors 1 to 4, and 5 to 8."""
HALF_HEIGHT_M = 0.127
"""Half of the height of the frame, 254 mm (Blue Robotics, BlueROV2 Heavy Retrofit Kit, specification table)."""
CURVE_POINTS = 20
"""Intervals of the polygon of the thrust curve, from a command of 0 to 1."""
_LENGTH_M = 1.0


def thrust_curve(p: BlueRov2) -> list[tuple[float, float]]:
    """Return the points of a thruster's curve.

    Parameters
    ----------
    p : BlueRov2
        Parameters of the ROV.

    Returns
    -------
    list of (float, float)
        Command and thrust, N.

    Notes
    -----
    The publication's polynomial has its largest value, 30.5 N, at a command of 0.93 and falls by 0.1 N to 1. The curve
    does not fall, so that it has an inverse: beyond the largest value it is constant.
    """
    share = np.linspace(0.0, 1.0, CURVE_POINTS + 1)
    thrust = np.maximum.accumulate(sum(c * share ** (2 * k + 1) for k, c in enumerate(p.thrust_n)))
    ahead = [(p.dead_band + (1.0 - p.dead_band) * x, f) for x, f in zip(share.tolist(), thrust.tolist(), strict=True)]
    back = [(-x, -f) for x, f in reversed(ahead)]
    return back + (ahead if p.dead_band else ahead[1:])


def thruster_poses(p: BlueRov2) -> dict[str, Placement]:
    """Return the poses of the thrusters, x along their positive thrust, in ArduSub's order of motors 1 to 8.

    A positive thrust of a horizontal thruster pushes the robot towards the thruster's own side. At the front it also
    pushes backwards, at the rear forwards. A positive thrust of a vertical thruster pushes the robot down.

    Parameters
    ----------
    p : BlueRov2
        Parameters of the ROV.

    Returns
    -------
    dict[str, Placement]
        Pose in the body's frame by the thruster's name.
    """
    c, s = math.cos(math.radians(p.horizontal_deg)), math.sin(math.radians(p.horizontal_deg))
    poses = {}
    for name, (ahead, left) in CORNERS.items():
        place = np.array([ahead * p.horizontal_x_m, left * p.horizontal_y_m, -p.horizontal_below_m])
        poses[f"horizontal.{name}"] = Placement(_axes(np.array([-ahead * c, left * s, 0.0])), place)
    for name, (ahead, left) in CORNERS.items():
        place = np.array([ahead * p.vertical_x_m, left * p.vertical_y_m, 0.0])
        poses[f"vertical.{name}"] = Placement(_axes(np.array([0.0, 0.0, -1.0])), place)
    return poses


def _axes(x: Array) -> Array:
    """Return the axes (3, 3) of a frame whose first axis is x, of size 1: horizontal or vertical."""
    y = np.array([-x[1], x[0], 0.0]) if abs(x[2]) < 0.5 else np.array([0.0, 1.0, 0.0])
    out: Array = np.column_stack([x, y, np.cross(x, y)])
    return out


def describe(p: BlueRov2) -> Mechanism:
    """Return one body at its centre of mass: x forward, y left, z up, with Fossen's matrices by elements.

    Parameters
    ----------
    p : BlueRov2
        Parameters of the ROV.

    Returns
    -------
    Mechanism
        The mechanism (docs/bluerov2.md).
    """
    displaced = p.mass_kg + p.net_buoyancy_kg
    inertia = np.diag([p.ixx_kg_m2, p.iyy_kg_m2, p.izz_kg_m2])
    added = np.diag([p.added_surge_kg, p.added_sway_kg, p.added_heave_kg,
                     p.added_roll_kg_m2, p.added_pitch_kg_m2, p.added_yaw_kg_m2])  # fmt: skip
    quadratic = (p.quadratic_roll_kg_m2, p.quadratic_pitch_kg_m2, p.quadratic_yaw_kg_m2)
    # a strip without drag across resists its own roll, here about each of the body's axes
    rolling = [
        Strip(_LENGTH_M, roll_drag=k / _LENGTH_M, placement=Placement(np.roll(np.eye(3), i, axis=1).T, np.zeros(3)))
        for i, k in enumerate(quadratic)
    ]
    hull = Body(
        "hull", p.mass_kg, inertia=inertia, added=added, displaced=displaced,
        displaced_moment=(0.0, 0.0, displaced * p.buoyancy_above_m), elements=rolling,
    )  # fmt: skip
    linear = np.diag([p.linear_surge_n_s_m, p.linear_sway_n_s_m, p.linear_heave_n_s_m,
                      p.linear_roll_n_m_s, p.linear_pitch_n_m_s, p.linear_yaw_n_m_s])  # fmt: skip
    across = np.array([p.quadratic_surge_kg_m, p.quadratic_sway_kg_m, p.quadratic_heave_kg_m])
    rho = p.water_density_kg_m3
    drag = [DragArea("hull", tuple(2.0 * across / rho), rho), LinearDrag("hull", linear)]
    return Mechanism("bluerov2", [hull], gravity=(0.0, 0.0, -p.gravity_m_s2), elements=drag)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the BlueROV2 plant (entry point 'bluerov2').

    Actuators, each from -1 to 1: horizontal.front_right.command, horizontal.front_left.command,
    horizontal.rear_right.command, horizontal.rear_left.command, and the same of vertical.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'neutral' (the default) or 'published'.
    **values : Any
        Fields of `BlueRov2`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: BlueRov2 = build(BlueRov2, values, preset=preset, presets=PRESETS)
    curve = thrust_curve(p)
    thrusters = [
        Thruster("hull", pose, curve=curve, time_constant=p.thruster_s, lower=-1.0, upper=1.0, name=name)
        for name, pose in thruster_poses(p).items()
    ]
    return TreePlant(
        describe(p), step_of("bluerov2", dt, 5e-3), actuators=thrusters, parameters=p, method=p.integrator,
        substeps=p.substeps, flow=Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)), nodes={"strip_nodes": 1},
        recent_outputs=("motor", "angular_velocity"), medium="water", airframe=AIRFRAME, half_span_m=HALF_HEIGHT_M,
        density=p.water_density_kg_m3, settable=settable(BlueRov2), rebuild=_rebuild,
    )  # fmt: skip


def _rebuild(plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
    """Return the parts of a plant with some parameters changed."""
    p: BlueRov2 = build(BlueRov2, {**asdict(plant.parameters), **values})
    model = compile_model(describe(p)) if in_model(BlueRov2, values) else plant.model
    return RebuiltParts(p, model, plant.law, Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)))
