"""Bodies, joints, actuators, tendons and fluid elements of a compiled MuJoCo model as a mechanism of rtmms.

`own_engine` uses it. MuJoCo has resolved defaults, meshes and inertias; `unsupported` has refused the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rtmms.base.spatial import Array, adjoint, quaternion_matrix, rotation_about
from rtmms.mechanism.actuators import DirectedWrench, JointAffine, JointLimit
from rtmms.mechanism.tendon_paths import Tendon
from rtmms.model.compiled import State
from rtmms.model.contacts import Marker
from rtmms.model.description import Body, Drawing, Joint, Mechanism
from rtmms.model.elements import Strip
from rtmms.model.polars import Polar
from rtmms.model.resistances import LinearDrag
from rtmms.model.solids import Placement
from rtmms.mujoco_models.channels import actuators_of, object_name
from rtmms.mujoco_models.drawing import geom_drawings, mesh_triangles
from rtmms.mujoco_models.unsupported import (
    acts,
    actuator_fault,
    kept_bodies,
    kept_root,
    moving_roots,
    tendon_fault,
    tendon_law,
)
from rtmms.plant.protocol import Channel

WORLD = "world"
"""Body that is the base of a tree without a free body."""
BODY_MARKER = "body_"
"""Prefix of the output with the position of a moving body on a fixed base."""
EVERY_DEG = 3.0
"""Angle between the points of a polar, deg; closer ones near the edge of a thin ellipsoid."""


@dataclass(frozen=True, eq=False)
class JointPlace:
    """MuJoCo joint and its coordinates in the mechanism.

    Attributes
    ----------
    number : int
        Index of the joint in the model.
    names : tuple[str, ...]
        Names of the coordinates: one of a hinge or slide, three angles (z, y, x) of a ball.
    """

    number: int
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class OwnTree:
    """Compiled MuJoCo model as parts of a `TreePlant`.

    Attributes
    ----------
    mechanism : Mechanism
        Bodies, joints, elements and markers.
    actuators : tuple[Any, ...]
        Actuators of the model, in its order, and limits of joints and tendons without commands.
    joints : tuple[JointPlace, ...]
        Joints of the model that are coordinates of the mechanism, in its order.
    base : int
        Index of the free body; 0 where the base is the world.
    """

    mechanism: Mechanism
    actuators: tuple[Any, ...]
    joints: tuple[JointPlace, ...]
    base: int


class _Names:
    """Unique names for the bodies and joints of a model."""

    def __init__(self, mujoco: Any, model: Any) -> None:
        self._mujoco, self._model = mujoco, model
        self._used_names: set[str] = {WORLD}
        self.bodies = [WORLD] + [self._unique("BODY", k) for k in range(1, model.nbody)]
        self._used_names = set()
        self.joints = [self._unique("JOINT", k) for k in range(model.njnt)]

    def _unique(self, kind: str, number: int) -> str:
        name = object_name(self._mujoco, self._model, kind, number) or f"{kind.lower()}{number}"
        while name in self._used_names:
            name += "_"
        self._used_names.add(name)
        return name


def read_tree(mujoco: Any, model: Any, name: str, neutral: Array, *, sites: bool = True) -> OwnTree:
    """Return the mechanism and the actuators of a compiled model.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model, after `leave_out` and `refuse_unsupported`.
    name : str
        Name of the mechanism.
    neutral : Array
        (nu,) commands at rest.
    sites : bool, default True
        Whether named sites are outputs.

    Returns
    -------
    OwnTree
        The parts.
    """
    names, base = _Names(mujoco, model), kept_root(mujoco, model)
    tree_bodies = kept_bodies(mujoco, model)
    drawings = _drawings(mujoco, model, tree_bodies if base else [0, *tree_bodies])
    bodies = [] if base else [Body(WORLD, drawings=drawings[0])]
    joints: list[Joint] = []
    places: list[JointPlace] = []
    for body in tree_bodies:
        bodies.append(_body(mujoco, model, body, names.bodies[body], drawings[body]))
        if body == base:
            continue
        links, chain, coordinates = _joints(mujoco, model, body, names)
        bodies += links
        joints += chain
        places += coordinates
    elements = [
        drag for body in tree_bodies if (drag := _viscous_drag(mujoco, model, body, names.bodies[body])) is not None
    ]
    mechanism = Mechanism(
        name,
        bodies,
        joints,
        base="free" if base else "fixed",
        gravity=tuple(float(item) for item in model.opt.gravity),
        elements=elements,
        markers=_markers(mujoco, model, names, tree_bodies, base) if sites else (),
    )
    actuators = (*_actuators(mujoco, model, names, neutral), *_limits(model, names, places), *_springs(
        mujoco, model, names
    ))  # fmt: skip
    return OwnTree(mechanism, actuators, tuple(places), base)


# --- bodies and joints ---------------------------------------------------------------------------------------------


def _drawings(mujoco: Any, model: Any, tree_bodies: list[int]) -> dict[int, list[Drawing]]:
    result: dict[int, list[Drawing]] = {body: [] for body in range(model.nbody)}
    for k, _, item in geom_drawings(mujoco, model, [body in tree_bodies for body in range(model.nbody)]):
        result[int(model.geom_bodyid[k])].append(item)
    return result


def _placement(quaternion: Array, position: Array) -> Placement:
    return Placement(quaternion_matrix(quaternion), position)


def _body(mujoco: Any, model: Any, k: int, name: str, drawings: list[Drawing]) -> Body:
    if int(model.body_weldid[k]) == 0:
        return Body(name, drawings=drawings)
    turn = quaternion_matrix(model.body_iquat[k])
    inertia = turn @ np.diag(model.body_inertia[k]) @ turn.T
    added, displaced, moment, strips = _immersed(mujoco, model, k)
    return Body.about_centre(
        name, float(model.body_mass[k]), model.body_ipos[k], 0.5 * (inertia + inertia.T), drawings=drawings,
        added=added if np.any(added) else None, displaced=displaced, displaced_moment=tuple(moment), elements=strips,
    )  # fmt: skip


def _joints(mujoco: Any, model: Any, body: int, names: _Names) -> tuple[list[Body], list[Joint], list[JointPlace]]:
    """Return massless links between the joints of a body, the joints from its parent to it, and their coordinates.

    In the model the joints of a body act one after the other, each about its anchor in the body's own frame.
    """
    links: list[Body] = []
    result: list[Joint] = []
    places: list[JointPlace] = []
    parent, name = names.bodies[int(model.body_parentid[body])], names.bodies[body]
    here = _placement(model.body_quat[body], model.body_pos[body])  # of the body's frame in the present parent
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    kinds = mujoco.mjtJoint
    for k in range(first, first + count):
        anchor = Placement(position=model.jnt_pos[k])
        last = k == first + count - 1 and not np.any(model.jnt_pos[k])
        child = name if last else f"{name}.{names.joints[k]}"
        if not last:
            links.append(Body(child))
        place = here @ anchor
        if int(model.jnt_type[k]) == int(kinds.mjJNT_BALL):
            result.append(Joint(names.joints[k], parent, child, "spherical", place))
            places.append(JointPlace(k, tuple(f"{names.joints[k]}.{axis}" for axis in (1, 2, 3))))
        else:
            result.append(_axis_joint(mujoco, model, k, names.joints[k], parent, child, place))
            places.append(JointPlace(k, (names.joints[k],)))
        parent, here = child, Placement(position=-np.asarray(model.jnt_pos[k], dtype=float))
    if not result or parent != name:
        result.append(Joint(f"{name}.fixed", parent, name, "fixed", here))
    return links, result, places


def _axis_joint(
    mujoco: Any, model: Any, k: int, name: str, parent: str, child: str, place: Placement
) -> Joint:  # fmt: skip
    """Return a hinge or a slide: its coordinate is the model's, which is `qpos0` at the body's place in the file."""
    axis, start = np.array(model.jnt_axis[k], dtype=float), float(model.qpos0[int(model.jnt_qposadr[k])])
    dof, slides = int(model.jnt_dofadr[k]), int(model.jnt_type[k]) == int(mujoco.mjtJoint.mjJNT_SLIDE)
    back = Placement(position=-start * axis) if slides else Placement(rotation_about(axis, -start))
    return Joint(
        name, parent, child, "prismatic" if slides else "revolute", place @ back, axis,
        stiffness=float(model.jnt_stiffness[k]), rest_position=float(model.qpos_spring[int(model.jnt_qposadr[k])]),
        damping=float(model.dof_damping[dof]), coulomb=float(model.dof_frictionloss[dof]),
        rotor=float(model.dof_armature[dof]),
    )  # fmt: skip


def _markers(mujoco: Any, model: Any, names: _Names, tree_bodies: list[int], base: int) -> list[Marker]:
    """Return named sites, and the origins of the moving bodies next to a fixed base."""
    result: dict[str, Marker] = {}

    def add(name: str, body: int, point: Any) -> None:
        name = name.replace(".", "_")
        result.setdefault(name, Marker(name, names.bodies[body], tuple(float(item) for item in point)))

    for k in () if base else moving_roots(model):
        add(BODY_MARKER + names.bodies[k], k, np.zeros(3))
    for k in range(model.nsite):
        name, body = object_name(mujoco, model, "SITE", k), int(model.site_bodyid[k])
        if name and body in tree_bodies and int(model.body_weldid[body]) != 0:
            add(f"site_{name}", body, model.site_pos[k])
    return list(result.values())


# --- actuators, limits, tendons ------------------------------------------------------------------------------------


def kept_actuators(mujoco: Any, model: Any) -> list[int]:
    """Return the actuators that the own engine simulates.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.

    Returns
    -------
    list[int]
        Their indices.
    """
    return [k for k in range(model.nu) if not actuator_fault(mujoco, model, k)[0] and _is_kept(mujoco, model, k)]


def _is_kept(mujoco: Any, model: Any, k: int) -> bool:
    """Return whether the target of actuator k is in the tree."""
    tree_bodies, kind, target = (
        set(kept_bodies(mujoco, model)),
        int(model.actuator_trntype[k]),
        int(model.actuator_trnid[k, 0]),
    )
    if kind == int(mujoco.mjtTrn.mjTRN_TENDON):
        return True
    body = model.site_bodyid[target] if kind == int(mujoco.mjtTrn.mjTRN_SITE) else model.jnt_bodyid[target]
    return int(body) in tree_bodies


def _actuators(mujoco: Any, model: Any, names: _Names, neutral: Array) -> list[Any]:
    channels = actuators_of(mujoco, model, neutral)
    return [_actuator(mujoco, model, names, k, channels[k]) for k in kept_actuators(mujoco, model)]


def _actuator(mujoco: Any, model: Any, names: _Names, k: int, channel: Channel) -> Any:
    gain, gear = float(model.actuator_gainprm[k, 0]), np.array(model.actuator_gear[k], dtype=float)
    affine = int(model.actuator_biastype[k]) != 0
    _, position, velocity = (float(item) if affine else 0.0 for item in model.actuator_biasprm[k, :3])
    lower, upper, limit = channel.lower, channel.upper, math.inf
    if model.actuator_forcelimited[k]:
        low, high = (float(item) for item in model.actuator_forcerange[k])
        if position or velocity:
            limit = abs(gear[0]) * high
        else:  # the force is the gain times the command, so its limits are limits of the command
            low, high = sorted((low / gain, high / gain))
            lower, upper = _narrower(lower, low, max), _narrower(upper, high, min)
    kind, target = int(model.actuator_trntype[k]), int(model.actuator_trnid[k, 0])
    bounds: dict[str, Any] = {"lower": lower, "upper": upper, "neutral": channel.neutral}
    if kind == int(mujoco.mjtTrn.mjTRN_TENDON):
        return Tendon(
            object_name(mujoco, model, "TENDON", target) or f"tendon{target}", _path(model, names, target), "tension",
            pushes=True, gain=-float(gear[0]) * gain, channel=channel.name, **bounds,
        )  # fmt: skip
    if kind == int(mujoco.mjtTrn.mjTRN_SITE):
        place = _placement(model.site_quat[target], model.site_pos[target])
        return DirectedWrench(
            names.bodies[int(model.site_bodyid[target])], tuple(gain * gear), place, name=channel.name, **bounds,
        )  # fmt: skip
    if model.jnt_actfrclimited[target] and -model.jnt_actfrcrange[target][0] == model.jnt_actfrcrange[target][1]:
        limit = min(limit, float(model.jnt_actfrcrange[target][1]))
    return JointAffine(
        names.joints[target], float(gear[0]) * gain, -float(gear[0]) ** 2 * position, -float(gear[0]) ** 2 * velocity,
        None if math.isinf(limit) else limit, name=channel.name, unit=channel.unit, **bounds,
    )  # fmt: skip


def _narrower(bound: float | None, other: float, choose: Any) -> float:
    return other if bound is None else float(choose(bound, other))


def _limits(model: Any, names: _Names, places: list[JointPlace]) -> list[JointLimit]:
    return [
        JointLimit(names.joints[place.number], *(float(end) for end in model.jnt_range[place.number]))
        for place in places if model.jnt_limited[place.number] and len(place.names) == 1
    ]  # fmt: skip


def _springs(mujoco: Any, model: Any, names: _Names) -> list[Tendon]:
    """Return tendons with stiffness: their own, and that of the position laws at them."""
    result = []
    for k in range(model.ntendon):
        if not acts(mujoco, model, k) or tendon_fault(mujoco, model, k):
            continue
        stiffness, damping, rest_length, pushes = tendon_law(mujoco, model, k)
        if stiffness > 0.0:
            name = object_name(mujoco, model, "TENDON", k) or f"tendon{k}"
            result.append(
                Tendon(
                    name,
                    _path(model, names, k),
                    "none",
                    stiffness=stiffness,
                    damping=damping,
                    neutral=rest_length,
                    pushes=pushes,
                )
            )
    return result


def _path(model: Any, names: _Names, tendon: int) -> list[tuple[str, tuple[float, ...]]]:
    first = int(model.tendon_adr[tendon])
    sites = [int(model.wrap_objid[k]) for k in range(first, first + int(model.tendon_num[tendon]))]
    return [
        (names.bodies[int(model.site_bodyid[site])], tuple(float(x) for x in model.site_pos[site])) for site in sites
    ]  # fmt: skip


# --- the fluid -----------------------------------------------------------------------------------------------------


def _ellipsoids(model: Any, body: int) -> list[int]:
    """Return the geoms of a body on which the fluid acts."""
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    return [k for k in range(first, first + count) if count and model.geom_fluid[k, 0] > 0.0]


def semi_axes(mujoco: Any, model: Any, k: int) -> Array:
    """Return the semi-axes of the ellipsoid by which MuJoCo's fluid acts on a geom.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    k : int
        Index of the geom.

    Returns
    -------
    Array
        (3,) m.
    """
    size, kind, kinds = np.array(model.geom_size[k], dtype=float), int(model.geom_type[k]), mujoco.mjtGeom
    if kind == int(kinds.mjGEOM_SPHERE):
        return np.full(3, size[0])
    if kind == int(kinds.mjGEOM_CAPSULE):
        return np.array([size[0], size[0], size[0] + size[1]])
    if kind == int(kinds.mjGEOM_CYLINDER):
        return np.array([size[0], size[0], size[1]])
    return size


def geom_volume(mujoco: Any, model: Any, k: int) -> float:
    """Return the volume of a geom: of its own shape, of a mesh by its triangles.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    k : int
        Index of the geom.

    Returns
    -------
    float
        m3.
    """
    a, b, c = (float(item) for item in model.geom_size[k])
    kind, kinds = int(model.geom_type[k]), mujoco.mjtGeom
    if kind == int(kinds.mjGEOM_SPHERE):
        return 4.0 / 3.0 * math.pi * a**3
    if kind == int(kinds.mjGEOM_CAPSULE):
        return math.pi * a * a * (2.0 * b + 4.0 / 3.0 * a)
    if kind == int(kinds.mjGEOM_CYLINDER):
        return 2.0 * math.pi * a * a * b
    if kind == int(kinds.mjGEOM_BOX):
        return 8.0 * a * b * c
    if kind == int(kinds.mjGEOM_MESH):
        vertices, triangles = mesh_triangles(model, k)
        x, y, z = (vertices[triangles[:, i]] for i in range(3))
        return abs(float(np.einsum("ij,ij->", x, np.cross(y, z)))) / 6.0
    return 4.0 / 3.0 * math.pi * a * b * c


def _immersed(mujoco: Any, model: Any, body: int) -> tuple[Array, float, Array, list[Strip]]:
    """Return the effects of the fluid on a body's ellipsoids.

    They are added mass (6, 6) about the body's origin, kg of displaced fluid, its first moment, and drag. MuJoCo's
    virtual masses are those of the ellipsoid in a fluid of density 1.
    """
    added, displaced, moment, strips = np.zeros((6, 6)), 0.0, np.zeros(3), []
    density = float(model.opt.density)
    if density > 0.0:
        for k in _ellipsoids(model, body):
            place = _placement(model.geom_quat[k], model.geom_pos[k])
            x = adjoint(place.rotation, place.position)
            virtual = density * np.array(model.geom_fluid[k, 6:12], dtype=float)
            added_inertia = x.T @ np.diag(virtual) @ x
            mass = density * geom_volume(mujoco, model, k)
            added, displaced = added + 0.5 * (added_inertia + added_inertia.T), displaced + mass
            moment = moment + mass * place.position
            strips.append(_strip(semi_axes(mujoco, model, k), np.array(model.geom_fluid[k, 1:5]), density, place))
    return added, displaced, moment, strips


def _strip(axes: Array, coefficients: Array, density: float, place: Placement) -> Strip:
    """Return drag and lift of an ellipsoid by MuJoCo's coefficients, on a strip along its longest axis.

    Force across the strip is MuJoCo's at each angle of attack; the force along the strip and the moment about it are
    MuJoCo's for a motion along and about its axis. Rotation across the strip follows from its length.
    """
    blunt, slender, angular, lift = (float(coefficient) for coefficient in coefficients)
    e = int(np.argmax(axes))
    order = [e, (e + 1) % 3, (e + 2) % 3]
    if axes[order[2]] > axes[order[1]]:  # the chord is along the longer one; e3 points the other way round
        order = [order[0], order[2], order[1]]
    turn = np.eye(3)[:, order]
    turn[:, 2] *= np.linalg.det(turn)
    first, second, third = (float(axes[i]) for i in order)
    area, largest = math.pi * second * third, math.pi * first * second
    along = density * (blunt * area + slender * (largest - area)) / (2.0 * first)
    roll = 8.0 / 15.0 * math.pi * first * second**4
    maximum = 8.0 / 15.0 * math.pi * second * first**4
    about = density * (angular * roll + slender * max(maximum - roll, 0.0)) / (2.0 * first)
    polar = _polar(first / second, third / second, blunt, slender, lift)
    return Strip(
        2.0 * first, drag=(along, 0.0, 0.0), roll_drag=about, placement=place @ Placement(turn), polar=polar,
        chord=2.0 * second, density=density,
    )  # fmt: skip


@lru_cache(maxsize=1000)
def _polar(span: float, thickness: float, blunt: float, slender: float, lift: float) -> Polar:
    """Return the coefficients of an ellipsoid with semi-axes (span, 1, thickness), thickness <= 1.

    They are over the angle of attack. The force on a unit velocity is -(blunt A + slender (A_max - A)) v + lift A
    cos(a) (n x v) x v. A is the area that the ellipsoid shows to the flow, n its unscaled normal there, a the angle
    between n and v (MuJoCo, ellipsoid-based fluid model).
    """
    near = np.degrees(thickness) * np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0])
    edge = near[near < EVERY_DEG]
    quarter = np.unique(np.concatenate([[0.0], edge, np.arange(EVERY_DEG, 90.0 + EVERY_DEG, EVERY_DEG)]))
    half = np.concatenate([quarter[:-1], 180.0 - quarter[::-1]])
    degrees = np.concatenate([-half[::-1], half[1:]])
    alpha = np.radians(degrees)
    velocity = np.column_stack([0.0 * alpha, np.cos(alpha), -np.sin(alpha)])
    areas = np.array([thickness, span * thickness, span])  # over pi
    fourth, square = (areas**4 * velocity**2).sum(axis=1), (areas**2 * velocity**2).sum(axis=1)
    shown = math.pi * np.sqrt(fourth / square)
    normal = areas**2 * velocity
    full_area = math.pi * max(span, thickness * span)
    drag = blunt * shown + slender * (full_area - shown)
    circulation = np.cross(normal, velocity) * (lift * square / fourth * shown)[:, None]
    force = -drag[:, None] * velocity + np.cross(circulation, velocity)
    across = np.column_stack([velocity[:, 1], -velocity[:, 2]])  # of lift, along e3 and e2
    scale = 0.5 * 2.0 * 2.0 * span  # 1/2 chord length, the density being 1
    c_lift = (force[:, 2] * across[:, 0] + force[:, 1] * across[:, 1]) / scale
    c_drag = -(force * velocity).sum(axis=1) / scale
    c_lift[-1], c_drag[-1] = c_lift[0], c_drag[0]
    return Polar(tuple(degrees), tuple(c_lift), tuple(np.maximum(c_drag, 0.0)))


def _viscous_drag(mujoco: Any, model: Any, body: int, name: str) -> LinearDrag | None:
    """Return Stokes's drag of the spheres that MuJoCo puts in place of the ellipsoids; None without viscosity."""
    viscosity, total = float(model.opt.viscosity), np.zeros((6, 6))
    if viscosity <= 0.0 or int(model.body_weldid[body]) == 0:
        return None
    for k in _ellipsoids(model, body):
        place = _placement(model.geom_quat[k], model.geom_pos[k])
        diameter = 2.0 / 3.0 * float(semi_axes(mujoco, model, k).sum())
        geom_drag = viscosity * math.pi * np.diag([3.0 * diameter] * 3 + [diameter**3] * 3)
        x = adjoint(place.rotation, place.position)
        total += x.T @ geom_drag @ x
    return LinearDrag(name, total) if np.any(total) else None


# --- states --------------------------------------------------------------------------------------------------------


def read_state(mujoco: Any, model: Any, tree: OwnTree, qpos: Array, qvel: Array) -> State:
    """Return the state of the mechanism at MuJoCo's coordinates and velocities.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    tree : OwnTree
        The mechanism.
    qpos : Array
        (nq,) positions of MuJoCo.
    qvel : Array
        (nv,) velocities of MuJoCo.

    Returns
    -------
    State
        The state.
    """
    position, orientation, twist = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(6)
    if tree.base:
        joint = int(model.body_jntadr[tree.base])
        q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        position, orientation = np.array(qpos[q : q + 3]), np.array(qpos[q + 3 : q + 7])
        orientation /= np.linalg.norm(orientation)
        twist = np.concatenate([quaternion_matrix(orientation).T @ qvel[v : v + 3], qvel[v + 3 : v + 6]])
    angles: list[float] = []
    rates: list[float] = []
    for item in tree.joints:
        q, v = int(model.jnt_qposadr[item.number]), int(model.jnt_dofadr[item.number])
        if len(item.names) == 1:
            angles.append(float(qpos[q]))
            rates.append(float(qvel[v]))
        else:
            ball_angles, speed = _ball_angles(np.asarray(qpos[q : q + 4]), np.asarray(qvel[v : v + 3]))
            angles += ball_angles
            rates += speed
    return State(position, orientation, np.array(angles), twist, np.array(rates))


def _ball_angles(quaternion: Array, velocity: Array) -> tuple[list[float], list[float]]:
    """Return angles about z, y', x'' of a ball joint and their rates; velocity (3,) rad/s in the child's frame."""
    r = quaternion_matrix(quaternion / np.linalg.norm(quaternion))
    yaw, pitch, roll = (
        math.atan2(r[1, 0], r[0, 0]),
        -math.asin(min(max(r[2, 0], -1.0), 1.0)),
        math.atan2(r[2, 1], r[2, 2]),
    )
    sine, cosine = math.sin(roll), math.cos(roll)
    wx, wy, wz = (float(item) for item in velocity)
    turn = (sine * wy + cosine * wz) / max(math.cos(pitch), 1e-9)
    return [yaw, pitch, roll], [turn, cosine * wy - sine * wz, wx + math.sin(pitch) * turn]
