"""The eel-like robot of Khalil, Gallot and Boyer (2007): 13 bodies, 12 spherical joints, Morison's fluid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np

from rtmms.analysis.chart import rise, whole_periods
from rtmms.base.errors import ModelError
from rtmms.base.parameters import Parameter, build, in_model, settable
from rtmms.base.spatial import Array
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.joint_laws import OFFSET, TORQUE, Actuator, Law
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, facing, khalil_kleinfinger
from rtmms.model.elements import elliptic_strip
from rtmms.model.solids import EllipticCylinder, HalfEllipsoid, Placement, inertia_of
from rtmms.plant.protocol import Channel
from rtmms.robots.eel_drawing import joint_table
from rtmms.robots.parameters import START_DEPTH_M, Integrator, StartDepth, Substeps, step_of

AXES = ("yaw", "pitch", "roll")
FORWARD = np.diag([-1.0, -1.0, 1.0])
"""Forward, left and up in the paper's frame, whose x0 points from nose to tail."""


@dataclass(frozen=True)
class Eel:
    """Parameters of the eel, in SI units and radians; the declaration of each field has its meaning, unit and range.

    The defaults are the paper's (section VII), with table I repaired (docs/eel.md).
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Drive of the joints: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    command: Annotated[str, Parameter(
        "Commands: angles added to the gait, or torques (drive=torque only); auto: angles with drive=motion, else "
        "torques.",
        choices=("auto", "angle", "torque"),
    )] = "auto"
    gait: Annotated[str, Parameter(
        "Gait: one of the paper's two examples (planar, loop), or none.", choices=("planar", "loop", "none"),
    )] = "planar"
    added_mass: Annotated[str, Parameter(
        "Law of the added mass. kirchhoff conserves momentum and energy without drag; khalil2007, the paper's, does "
        "not.",
        choices=("kirchhoff", "khalil2007"),
    )] = "kirchhoff"
    joints: Annotated[int, Parameter("Number of spherical joints.", le=200)] = 12
    head_length_m: Annotated[float, Parameter("Length of the head.", "m", le=100)] = 0.4
    link_length_m: Annotated[float, Parameter("Length of a link.", "m", le=100)] = 0.14
    half_width_m: Annotated[float, Parameter("Half-axis a of the sections, along y.", "m", le=100)] = 0.065
    half_height_m: Annotated[float, Parameter("Half-axis b of the sections, along z.", "m", le=100)] = 0.09
    nose_length_m: Annotated[float, Parameter("Axial half-axis of the half-ellipsoid at the nose.", "m", le=100)] = 0.09
    tail_length_m: Annotated[float, Parameter("Axial half-axis of the half-ellipsoid at the tail.", "m", le=100)] = 0.09
    density_kg_m3: Annotated[float, Parameter("Density of the body.", "kg/m3", le=30000)] = 1000.0
    water_density_kg_m3: Annotated[float, Parameter("Density of the water.", "kg/m3", ge=0, le=20000)] = 1000.0
    c1: Annotated[float, Parameter("Coefficient of the axial drag.", ge=0, le=100, live=True)] = 0.01
    c2: Annotated[float, Parameter("Coefficient of the lateral drag.", ge=0, le=100, live=True)] = 1.0
    c3: Annotated[float, Parameter("Coefficient of the vertical drag.", ge=0, le=100, live=True)] = 1.0
    c4: Annotated[float, Parameter("Coefficient of the rolling drag.", ge=0, le=100, live=True)] = 1.0
    c5: Annotated[float, Parameter("Coefficient of the lateral added mass.", ge=0, le=100)] = 1.0
    c6: Annotated[float, Parameter("Coefficient of the vertical added mass.", ge=0, le=100)] = 1.0
    c7: Annotated[float, Parameter("Coefficient of the rolling added mass.", ge=0, le=100)] = 1.0
    amplitude_rad: Annotated[float, Parameter(
        "Amplitude A of the gait (Khalil 2007, eqs 63 to 65).", "rad", ge=0, le=math.pi,
    )] = 0.06
    growth_1_m: Annotated[float, Parameter(
        "Growth alpha of the gait's amplitude along the body (Khalil 2007, eqs 63 to 65).", "1/m", signed=True, le=100,
    )] = 1.2
    wavelength_m: Annotated[float, Parameter("Wavelength lambda of the gait.", "m", le=10000)] = 1.8
    period_s: Annotated[float, Parameter("Period T of the gait.", "s", le=10000)] = 2.0
    ramp_s: Annotated[float, Parameter("Duration t_f of the gait's soft start.", "s", ge=0, le=10000)] = 2.0
    yaw_offset_rad: Annotated[float, Parameter(
        "Offset O_ff1 of every yaw joint in the gait.", "rad", signed=True, le=math.pi,
    )] = 0.0
    pitch_offset_rad: Annotated[float, Parameter(
        "Offset O_ff2 of every pitch joint in the gait, gait=loop.", "rad", signed=True, le=math.pi,
    )] = math.pi / 40.0
    kp_n_m: Annotated[float, Parameter(
        "Stiffness of the servo about the gait, drive=torque.", "N m/rad", ge=0, le=1e6, live=True, in_model=False,
    )] = 20.0
    kd_n_m_s: Annotated[float, Parameter(
        "Damping of the servo about the gait, drive=torque.", "N m s/rad", ge=0, le=1e6, live=True, in_model=False,
    )] = 2.0
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).",
        "rad/s", le=100000, live=True, in_model=False,
    )] = 20.0
    current_x_m_s: Annotated[float, Parameter(
        "Uniform current along x, world frame.", "m/s", signed=True, le=100, live=True, in_model=False,
    )] = 0.0
    current_y_m_s: Annotated[float, Parameter(
        "Uniform current along y, world frame.", "m/s", signed=True, le=100, live=True, in_model=False,
    )] = 0.0
    current_z_m_s: Annotated[float, Parameter(
        "Uniform current along z, world frame.", "m/s", signed=True, le=100, live=True, in_model=False,
    )] = 0.0
    gravity_m_s2: Annotated[float, Parameter(
        "Gravity, along -z of the world.", "m/s2", ge=0, le=1000, live=True,
    )] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    start_depth_m: StartDepth = START_DEPTH_M
    nodes: Annotated[int, Parameter(
        "Gauss nodes of a link.", le=1000, ge=2, why="with which work is right to 0.1 %",
    )] = 10
    # fmt: on

    @property
    def length(self) -> float:
        """Length of the eel without its end, m."""
        return self.head_length_m + self.joints * self.link_length_m


PRESETS: dict[str, dict[str, Any]] = {"paper": {"added_mass": "khalil2007"}, "loop": {"gait": "loop"}}


def describe(p: Eel) -> Mechanism:
    """Return the mechanism in the paper's frame: x0 from nose to tail, z0 up; it swims towards -x0.

    Parameters
    ----------
    p : Eel
        Parameters of the eel.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    a, b = p.half_width_m, p.half_height_m
    along_x = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # own z -> x0, own x -> y0, own y -> z0
    backwards = np.array([[0.0, 0, -1], [1, 0, 0], [0, -1, 0]])  # own z -> -x0

    def strip(length: float, solids: list[Any], placement: Placement) -> Any:
        mass = sum(float(inertia_of(solid)[0, 0]) for solid in solids)
        built = elliptic_strip(
            a, b, length, p.water_density_kg_m3, placement,
            drag=(p.c1, p.c2, p.c3), roll=p.c4, added=(p.c7, p.c5, p.c6), law=p.added_mass,
        )  # fmt: skip
        # pushed by an accelerating fluid like the solids' own volume, so that a neutral eel goes with it
        return replace(built, displaced=mass * p.water_density_kg_m3 / p.density_kg_m3 / length)

    def column(length: float, placement: Placement) -> EllipticCylinder:
        return EllipticCylinder(a, b, length, p.density_kg_m3, placement)

    straight = p.head_length_m - p.nose_length_m
    shapes: list[Any] = [
        HalfEllipsoid(a, b, p.nose_length_m, p.density_kg_m3, Placement(backwards, np.array([p.nose_length_m, 0, 0]))),
        column(straight, Placement(along_x, np.array([p.nose_length_m + straight / 2, 0, 0]))),
    ]
    skin = strip(p.head_length_m, shapes, Placement(np.eye(3), np.array([p.head_length_m / 2, 0, 0])))
    head = Body("head", solids=shapes, fluid_density=p.water_density_kg_m3, elements=[skin])
    bodies, joints = [head], []
    to_strip = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])  # e1 = z, e2 = x, e3 = y of frame 3 j
    for i in range(1, p.joints + 1):
        last, l = i == p.joints, p.link_length_m
        # s runs over (-l, 0) in the frame of the link's distal end
        solids: list[Any] = [column(l, Placement(np.eye(3), np.array([0, 0, -l / 2])))]
        if last:
            c = l - p.tail_length_m
            solids = [
                column(c, Placement(np.eye(3), np.array([0, 0, -l + c / 2]))),
                HalfEllipsoid(
                    a, b, p.tail_length_m, p.density_kg_m3, Placement(np.eye(3), np.array([0, 0, -p.tail_length_m]))
                ),
            ]
        skin = strip(l, solids, Placement(to_strip, np.array([0, 0, -l / 2])))
        link = Body(f"link{i}", solids=solids, fluid_density=p.water_density_kg_m3, elements=[skin])
        bodies += [Body(f"yoke{i}"), Body(f"cross{i}"), link]
        table = joint_table(i, p.head_length_m, l)
        parent = "head" if i == 1 else f"link{i - 1}"
        for axis, parameters, child in zip(AXES, table, (f"yoke{i}", f"cross{i}", f"link{i}"), strict=True):
            joints.append(Joint(f"{axis}{i}", parent, child, placement=khalil_kleinfinger(*parameters), drive=p.drive))
            parent = child
    return Mechanism("eel", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2))


def gait(p: Eel) -> Law:
    """Return the paper's motion law as offset, cosine and sine of each joint.

    Parameters
    ----------
    p : Eel
        Parameters of the eel.

    Returns
    -------
    Law
        Motion of the joints, and the servo about it.

    Notes
    -----
    Equations (63) to (66): q_{3i-2} = f(t) (Q(l i, t) - Q(l (i - 1), t) + O_ff1), Q = A exp(alpha s) sin 2 pi (s /
    lambda - t / T).
    """
    motion, k = np.zeros((3 * p.joints, 3)), 2.0 * math.pi / p.wavelength_m
    if p.gait != "none":
        s = p.link_length_m * np.arange(p.joints + 1)
        envelope = p.amplitude_rad * np.exp(p.growth_1_m * s)
        motion[0::3, 0] = p.yaw_offset_rad
        motion[0::3, 1] = np.diff(envelope * np.sin(k * s))  # sin(k s - w t) = sin k s cos w t - cos k s sin w t
        motion[0::3, 2] = -np.diff(envelope * np.cos(k * s))
    if p.gait == "loop":
        motion[1::3, 0] = p.pitch_offset_rad
    return Law(motion, 2.0 * math.pi / p.period_s, p.ramp_s, p.kp_n_m, p.kd_n_m_s, p.bandwidth_rad_s)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the eel plant (entry point 'eel').

    Actuators, 3 for each spherical joint: `yaw1.angle` (rad, added to the gait, through a critically damped filter;
    with drive=torque it is the servo's target). With drive=torque `yaw1.torque` (N m, added to the servo). In the
    plant's body frame x is forward, y left, z up.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'paper' or 'loop'.
    **values : Any
        Fields of `Eel`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    return _plant(_checked(preset, values), dt, ahead=True)


def in_paper_frame(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the same plant in the paper's frame, for comparison with its figures: it swims towards -x.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'paper' or 'loop'.
    **values : Any
        Fields of `Eel`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    return _plant(_checked(preset, {"start_depth_m": 0.0, **values}), dt, ahead=False)


def model_of(p: Eel, ahead: bool = True) -> Model:
    """Return the compiled model of the eel.

    Parameters
    ----------
    p : Eel
        Parameters of the eel.
    ahead : bool, default True
        Whether x of the base points forward; otherwise it is the paper's x0.

    Returns
    -------
    Model
        The model.
    """
    mechanism = describe(p)
    return compile_model(facing(mechanism, FORWARD) if ahead else mechanism)


def _checked(preset: str | None, values: dict[str, Any]) -> Eel:
    p: Eel = build(Eel, values, preset=preset, presets=PRESETS)
    if p.command == "torque" and p.drive == "motion":
        raise ModelError("eel: command=torque: expected drive=torque, got drive=motion, which computes the torques")
    if p.nose_length_m >= p.head_length_m or p.tail_length_m >= p.link_length_m:
        raise ModelError(
            f"eel: expected nose_length_m below head_length_m = {p.head_length_m:g} m and "
            f"tail_length_m below link_length_m = {p.link_length_m:g} m, got {p.nose_length_m:g} m "
            f"and {p.tail_length_m:g} m"
        )
    return p


def _plant(p: Eel, dt: float | None, ahead: bool) -> TreePlant:
    step, model = step_of("eel", dt, 1e-3), model_of(p, ahead)
    return TreePlant(
        model, step, gait(p), _actuators(p, model), flow=Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)),
        method=p.integrator, substeps=p.substeps, nodes={"strip_nodes": p.nodes},
        trim_options={"close": ("vx", "vy", "wz", *(("vz", "wx", "wy") if p.gait == "loop" else ()))}, parameters=p,
        settable=settable(Eel), rebuild=_rebuild, summary=_summary if ahead else None,
        medium="water", half_span_m=max(p.half_width_m, p.half_height_m), density=p.water_density_kg_m3,
    )  # fmt: skip


def _rebuild(plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
    """Return the parts of a plant with some parameters changed; drag and gravity need a new compiled model (20 ms)."""
    p: Eel = build(Eel, {**asdict(plant.parameters), **values})
    ahead = plant.model.body_names[0] != "head"
    model = model_of(p, ahead) if in_model(Eel, values) else plant.model
    return RebuiltParts(p, model, gait(p), Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)))


def _actuators(p: Eel, model: Model) -> tuple[Actuator, ...]:
    built = []
    for j, name in enumerate(model.joint_names):
        if p.command == "angle" or p.drive == "motion":
            built.append(Actuator(Channel(f"{name}.angle", "rad", lower=-1.5, upper=1.5), OFFSET, j))
        else:
            built.append(Actuator(Channel(f"{name}.torque", "N m", lower=-20.0, upper=20.0), TORQUE, j))
    return tuple(built)


def _summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Return means over the whole gait periods that fit into the second half of the run."""
    if len(time) < 2:
        return {}
    start, end = whole_periods(plant, time)
    speed = float(np.mean(trace["velocity"][time > start, 0]))
    power = rise(time, trace["work"], start, end)
    weight = plant.model.mass * 9.81
    return {
        "mean_speed_m_s": speed,
        "mean_power_w": power,
        "cost_of_transport": power / (weight * speed) if speed > 1e-6 else None,
    }
