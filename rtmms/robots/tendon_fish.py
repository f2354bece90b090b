"""The tendon-driven fish of the Soft Robotics Lab, ETH Zurich: a motor, two cables, five plates, a fin.

Geometry, masses and cables are those of the authors' MuJoCo model (arXiv 2602.23283, repository srl-ethz/fishsim). The
coefficients of the water are fitted (docs/tendon_fish.md). `rtmms reproduce fishsim` compares it with the recordings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from rtmms.base.parameters import Parameter, build
from rtmms.mechanism.actuators import JointSpeed, imposing
from rtmms.mechanism.plant import TreePlant
from rtmms.mechanism.tendon_paths import Tendon
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.contacts import Marker, Plane
from rtmms.model.description import Body, Joint, Mechanism, facing
from rtmms.model.elements import Strip, Wake
from rtmms.model.resistances import DragArea, LinearDrag, SkinFriction, plate_strip, plate_strips
from rtmms.model.solids import Box, at
from rtmms.robots.parameters import START_DEPTH_M, Integrator, StartDepth, Substeps, step_of

FORWARD = np.diag([-1.0, -1.0, 1.0])
"""Forward, left and up in the frame of the geometry, whose x points from head to tail and y to the right."""


class Segment(NamedTuple):
    """One of the five plates; x runs from its hinge towards the tail.

    Attributes
    ----------
    hinge : float
        Its hinge in the frame of the segment before, m.
    plate : float
        Middle of the plate, m.
    half_height : float
        Half height of the plate, m.
    arm, arm_half, arm_y : float
        Arm that guides the cable: x, half its width, its middle from the plane of symmetry, m.
    lever : float
        Lever of the cable's hole, m.
    crosses : bool
        Whether the cable is on the other side.
    """

    hinge: float
    plate: float
    half_height: float
    arm: float
    arm_half: float
    arm_y: float
    lever: float
    crosses: bool


SEGMENTS = (
    Segment(0.2850, 0.0145, 0.0500, 0.0190, 0.02425, 0.02575, 0.045, False),
    Segment(0.0295, 0.0150, 0.0475, 0.0195, 0.01925, 0.02075, 0.035, False),
    Segment(0.0310, 0.0160, 0.0450, 0.0205, 0.01425, 0.01575, 0.025, False),
    Segment(0.0305, 0.0145, 0.0425, 0.0190, 0.00925, 0.01075, 0.015, True),
    Segment(0.0250, 0.0105, 0.0400, 0.0150, 0.00425, 0.00575, 0.005, True),
)
FIN_TABLE = ((0.0215, 0.006), (0.036, 0.056), (0.051, 0.085), (0.0636, 0.0995), (0.0814, 0.02))
"""x behind the last hinge and half height of the fin, m; behind its fork half of the remaining height."""
FIN_HINGE_M = 0.0215
"""x of the fin's root behind the last hinge, m."""
FIN_MASS_KG = 0.01
FIN_CENTRE_M = 0.05424
FIN_INERTIA_KG_M2 = (2.840e-5, 3.033e-5, 1.937e-6)
"""Inertia of the fin about its centre, FIN_CENTRE_M behind the last hinge, kg m2; from the authors' mesh."""
HEAD_ENDS_M = (-0.077, 0.285)
"""x of the head's nose and of the first hinge in the head's frame, m."""
HEAD_HALF_HEIGHT_M = 0.05
MOTOR_M = 0.1655
"""x of the motor's shaft in the head's frame, m."""
ACRYLIC_KG_M3 = 1180.0
"""Density of acrylic glass, kg/m3."""
PRINTED_KG_M3 = 1250.0
"""Density of printed parts, kg/m3."""
MARKER_X = {"m0": -0.077, "m1": 0.065, "m2": 0.28}
"""x of the markers on the head, m."""
MARKER_HEIGHT_M = 0.113
"""Height of the markers on the head above its axis, m: the top of the box."""


@dataclass(frozen=True)
class TendonFish:
    """Parameters of the fish; the declaration of each field has its meaning, unit and range.

    The defaults are the fit with the head in the plane (docs/tendon_fish.md).
    """

    # fmt: off
    head: Annotated[str, Parameter(
        "Motion of the head: in the plane (planar), or with a roll on a spring as well (rolling).",
        choices=("planar", "rolling"),
    )] = "planar"
    tail_drag: Annotated[float, Parameter("Coefficient of the drag across plates and fin.", ge=0)] = 5.018
    head_drag: Annotated[float, Parameter("Coefficient of the drag across the head.", ge=0)] = 34.96
    plate_added: Annotated[float, Parameter("Factor of the added mass rho pi b^2 of the plates.", ge=0)] = 1.0
    fin_added: Annotated[float, Parameter("Factor of the added mass rho pi b^2 of the fin.", ge=0)] = 0.0
    head_added: Annotated[float, Parameter("Factor of the added mass rho pi b^2 of the head.", ge=0)] = 1.922
    wake: Annotated[float, Parameter(
        "Factor of the wake's added mass rho pi b^2, with the fin's largest half height b.", ge=0,
    )] = 0.0
    drag_area_m2: Annotated[float, Parameter("Drag area of the head along its axis.", "m2", ge=0)] = 0.04593
    linear_drag_n_s_m: Annotated[float, Parameter("Linear drag of the head along its axis.", "N s/m", ge=0)] = 0.0
    skin_area_m2: Annotated[float, Parameter(
        "Wetted area of the head for the friction of a boundary layer along its axis.", "m2", ge=0,
    )] = 0.0
    slack_m: Annotated[float, Parameter("Slack of each cable; < 0: a stretched cable.", "m", signed=True)] = -1.158e-3
    sheet_n_m: Annotated[float, Parameter("Stiffness of each plate's hinge.", "N m/rad", ge=0)] = 0.65
    sheet_n_m_s: Annotated[float, Parameter("Damping of each plate's hinge.", "N m s/rad", ge=0)] = 0.0
    fin_n_m: Annotated[float, Parameter(
        "Stiffness of a hinge at the fin's root, which needs shorter steps; 0: a rigid fin.", "N m/rad", ge=0,
    )] = 0.0
    cable_n_m: Annotated[float, Parameter("Stiffness of a cable.", "N/m")] = 20e3
    cable_n_s_m: Annotated[float, Parameter("Damping of a cable.", "N s/m", ge=0)] = 10.0
    cable_m: Annotated[float, Parameter("Length of a cable without slack.", "m")] = 0.280897
    roll_n_m: Annotated[float, Parameter("Stiffness of the head's roll, head=rolling.", "N m/rad", ge=0)] = 10.0
    roll_n_m_s: Annotated[float, Parameter("Damping of the head's roll, head=rolling.", "N m s/rad", ge=0)] = 1.0
    water_density_kg_m3: Annotated[float, Parameter("Density of the water.", "kg/m3")] = 1000.0
    motor_rad_s: Annotated[float, Parameter(
        "Speed of the motor without a command; the default is 0.747 beats of the tail a second.", "rad/s", signed=True,
    )] = 4.694
    motor_limit_rad_s: Annotated[float, Parameter("Limit of the motor's speed.", "rad/s")] = 16.0
    motor_bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the motor follows commanded speeds (first order).", "rad/s",
    )] = 20.0
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    start_depth_m: StartDepth = START_DEPTH_M
    # fmt: on


PRESETS: dict[str, dict[str, Any]] = {"planar": {}, "rolling": {"head": "rolling"}}


def _box(
    x: float, y: float, z: float, half: tuple[float, float, float], density: float = 0.0, mass: float = 0.0
) -> Box:
    """Return a box by its middle and half sizes, m, with a density or a mass."""
    a, b, c = (2.0 * item for item in half)
    return Box(a, b, c, density or mass / (a * b * c), at(x, y, z))


def _head(p: TendonFish) -> Body:
    """Return frame, electronics, attachment and body; the top fin is represented by its mass and centre."""
    rho, (nose, end) = p.water_density_kg_m3, HEAD_ENDS_M
    solids = [
        _box(0, 0, 0, (0.077, 0.0025, 0.05), ACRYLIC_KG_M3), _box(0.01, 0, 0.0515, (0.08, 0.02, 0.0015), ACRYLIC_KG_M3),
        _box(0.005, 0, 0.083, (0.06, 0.04, 0.03), mass=0.53), _box(0.1, 0, 0, (0.023, 0.015, 0.05), mass=0.08),
        _box(0.2005, 0, 0, (0.0775, 0.01, 0.0525), mass=0.6),
        _box(0.244, 0, 0.0793, (0.03, 0.0015, 0.03), mass=0.01616),
    ]  # fmt: skip
    across = plate_strip(
        HEAD_HALF_HEIGHT_M, end - nose, rho, at(0.5 * (nose + end)), drag=p.head_drag, added=p.head_added
    )
    return Body("head", solids=solids, elements=[across])


def _motor() -> Body:
    arm = (0.0075, 0.005, 0.01975)
    solids = [
        _box(0, 0, 0, (0.0075, 0.06, 0.0075), mass=0.05),
        _box(0, -0.055, -0.01975, arm, PRINTED_KG_M3), _box(0, 0.055, 0.01975, arm, PRINTED_KG_M3),
    ]  # fmt: skip
    return Body("motor", solids=solids)


def _segment(p: TendonFish, k: int) -> Body:
    segment = SEGMENTS[k]
    length = SEGMENTS[k + 1].hinge if k + 1 < len(SEGMENTS) else FIN_HINGE_M
    arm = (0.003, segment.arm_half, 0.007)
    solids = [
        _box(segment.plate, 0, 0, (0.0075, 0.0015, segment.half_height), PRINTED_KG_M3),
        _box(segment.arm, -segment.arm_y, 0, arm, PRINTED_KG_M3),
        _box(segment.arm, segment.arm_y, 0, arm, PRINTED_KG_M3),
        _box(0.5 * length, 0, 0, (0.5 * length, 0.0005, 0.0375), mass=0.002),
    ]
    elements: list[Strip | Wake] = [
        plate_strip(
            segment.half_height, length, p.water_density_kg_m3, at(0.5 * length), drag=p.tail_drag, added=p.plate_added
        )
    ]
    if k == len(SEGMENTS) - 1 and not p.fin_n_m:
        fin = _fin(p, 0.0)
        return Body(f"plate{k}", fin.mass, fin.first_moment, fin.inertia, solids, elements=[*elements, *fin.elements])
    return Body(f"plate{k}", solids=solids, elements=elements)


def _fin(p: TendonFish, root: float) -> Body:
    """Return the fin in a frame whose origin is `root` (m) behind the last hinge."""
    table = [(x - root, b) for x, b in FIN_TABLE]
    rho, centre = p.water_density_kg_m3, (FIN_CENTRE_M - root, 0.0, 0.0)
    elements: list[Strip | Wake] = [*plate_strips(table, rho, drag=p.tail_drag, added=p.fin_added)]
    if p.wake:
        b = max(half for _, half in FIN_TABLE)
        added = (p.wake * rho * math.pi * b**4 / 8.0, p.wake * rho * math.pi * b**2, 0.0)
        elements.append(Wake(added, at(FIN_TABLE[-1][0] - root)))
    return Body.about_centre("fin", FIN_MASS_KG, centre, np.diag(FIN_INERTIA_KG_M2), elements=elements)


def describe(p: TendonFish) -> Mechanism:
    """Return the mechanism in the frame of the geometry: origin at the head's plate, x towards the tail, z up.

    Parameters
    ----------
    p : TendonFish
        Parameters of the fish.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    rho, rolls = p.water_density_kg_m3, p.head == "rolling"
    bodies = [_head(p), _motor()]
    joints = [Joint("motor", "head", "motor", placement=at(MOTOR_M), axis=(0, 1, 0))]
    before = "head"
    for k, segment in enumerate(SEGMENTS):
        bodies.append(_segment(p, k))
        joints.append(Joint(f"bend{k}", before, f"plate{k}", placement=at(segment.hinge), stiffness=p.sheet_n_m,
                            damping=p.sheet_n_m_s))  # fmt: skip
        before = f"plate{k}"
    if p.fin_n_m:
        bodies.append(_fin(p, FIN_HINGE_M))
        joints.append(Joint("fin", before, "fin", placement=at(FIN_HINGE_M), stiffness=p.fin_n_m))
    markers = [Marker(name, "head", (x, 0.0, MARKER_HEIGHT_M)) for name, x in MARKER_X.items()]
    markers += [
        Marker(f"m{4 + k}", f"plate{k}", (sheet_segment.plate, 0.0, 0.05)) for k, sheet_segment in enumerate(SEGMENTS)
    ]
    tip = ("fin", 0.073 - FIN_HINGE_M) if p.fin_n_m else (before, 0.073)
    markers.append(Marker("m9", tip[0], (tip[1], 0.0, 0.1)))
    elements: list[Any] = []
    if p.drag_area_m2:
        elements.append(DragArea("head", (p.drag_area_m2, 0.0, 0.0), rho))
    if p.linear_drag_n_s_m:
        elements.append(LinearDrag("head", np.diag([p.linear_drag_n_s_m, 0.0, 0.0])))
    if p.skin_area_m2:
        elements.append(SkinFriction("head", p.skin_area_m2, HEAD_ENDS_M[1] - HEAD_ENDS_M[0], rho))
    if rolls:
        bodies.insert(0, Body("float"))
        joints.insert(0, Joint("roll", "float", "head", axis=(1, 0, 0), stiffness=p.roll_n_m, damping=p.roll_n_m_s))
    contacts = [Plane("float" if rolls else "head")]
    return Mechanism("tendon_fish", bodies, joints, gravity=(0.0, 0.0, 0.0), contacts=contacts, elements=elements,
                     markers=markers)  # fmt: skip


def _actuators(p: TendonFish) -> list[Any]:
    maximum = p.motor_limit_rad_s
    motor = JointSpeed("motor", -maximum, maximum, p.motor_bandwidth_rad_s, p.motor_rad_s)
    cables = []
    for side, name in ((-1.0, "left"), (1.0, "right")):
        path = [("motor", (0.0, side * 0.055, side * 0.0345))]
        for k, segment in enumerate(SEGMENTS):
            path.append((f"plate{k}", (segment.arm, (-side if segment.crosses else side) * segment.lever, 0.0)))
        cables.append(Tendon(name, path, "none", stiffness=p.cable_n_m, damping=p.cable_n_s_m,
                             neutral=p.cable_m + p.slack_m))  # fmt: skip
    return [motor, *cables]


def model_of(p: TendonFish, elements: Sequence[Any] = ()) -> Model:
    """Return the compiled model, with x of its base forward.

    Parameters
    ----------
    p : TendonFish
        Parameters of the fish.
    elements : Sequence[Any], default ()
        Further elements, in the frame of the geometry.

    Returns
    -------
    Model
        The model.
    """
    mechanism = describe(p)
    mechanism = replace(mechanism, elements=[*mechanism.elements, *elements])
    return compile_model(imposing(facing(mechanism, FORWARD), _actuators(p)))


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the tendon-driven fish plant (entry point 'tendon_fish').

    Actuator: motor.speed, rad/s; a turn of the motor is a beat of the tail. Outputs besides those of a tree: the
    markers m0, m1, m2, m4, ..., m9 (m, world), at the places of the recordings.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'planar' (the default) or 'rolling'.
    **values : Any
        Fields of `TendonFish`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    return plant_of(build(TendonFish, values, preset=preset, presets=PRESETS), dt)


def plant_of(p: TendonFish, dt: float | None = None, elements: Sequence[Any] = ()) -> TreePlant:
    """Return the plant of these parameters with further elements, see `model_of`.

    Parameters
    ----------
    p : TendonFish
        Parameters of the fish.
    dt : float, optional
        Step, s; None for the robot's default.
    elements : Sequence[Any], default ()
        Further elements, in the frame of the geometry.

    Returns
    -------
    TreePlant
        The plant at t = 0.
    """
    step = step_of("tendon_fish", dt, FLEXIBLE_STEP_S if p.fin_n_m else STEP_S)
    return TreePlant(
        model_of(p, elements), step, actuators=_actuators(p),
        parameters=p, method=p.integrator, substeps=p.substeps, nodes={"strip_nodes": NODES}, medium="water",
        half_span_m=HEIGHT_M, density=p.water_density_kg_m3, recent_outputs=("joint_position", "velocity"),
    )  # fmt: skip


STEP_S = 1.0 / 360.0
"""Default step, s: six steps for each frame of the recordings."""
FLEXIBLE_STEP_S = 1.0 / 1920.0
"""Default step with a hinge at the fin's root, whose drag is stiff, s."""
NODES = 3
"""Gauss points of each strip."""
HEIGHT_M = 0.135
"""Height of the top fin above the head's axis, m."""
