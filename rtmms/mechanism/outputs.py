"""Provide the outputs of a tree by name, of base, joints and bodies ('BODY.quantity'), and its shape for viewers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.jit import kernel
from rtmms.base.memory import Layout, model, scratch
from rtmms.base.renamed_outputs import present_output
from rtmms.base.spatial import Array, cross, matrix_quaternion, scalar, unpack_inertia
from rtmms.dynamics.inertia import energies
from rtmms.dynamics.recursion import place
from rtmms.mechanism.actuator_arrays import Attachment
from rtmms.mechanism.actuators import Rotor
from rtmms.mechanism.audit import A_ELASTIC, A_FLUID, A_KINETIC, AUDIT, WORKS, audit
from rtmms.mechanism.body_actuators import spin_energy
from rtmms.mechanism.equations import evaluate
from rtmms.mechanism.floor import floor_energy
from rtmms.mechanism.step import choose_contacts
from rtmms.mechanism.tendon_paths import Tendon
from rtmms.mechanism.tendons import PLACE, ROW, tendon_energy
from rtmms.model.compiled import Model
from rtmms.model.description import Mechanism, mesh
from rtmms.model.elements import Blade, Strip
from rtmms.model.floor_rows import MARKER_WIDTH
from rtmms.model.layout import (
    BASE_FREE,
    C_MASS,
    C_MOMENT,
    C_POS,
    C_RIGID,
    C_ROT,
    PRISMATIC,
    S_ACCELERATION,
    S_BIAS,
    S_GRAVITY,
    S_TWIST,
    S_WORLD_POS,
    S_WORLD_ROT,
    T_KIND,
    T_PARENT,
)
from rtmms.model.mesh_solid import MeshSolid
from rtmms.model.solids import Box, Cylinder, Ellipsoid, EllipticCylinder, HalfEllipsoid, Placement, Solid
from rtmms.plant.protocol import Channel

O_ENERGY = 0
O_WRENCH = 1
O_TORQUE = 7
P_POSITION = 0
P_QUATERNION = 3
P_VELOCITY = 7
P_ANGULAR = 10
P_FORCE = 13
POINT_OUT = 16
POINT_WIDTH = MARKER_WIDTH
"""Columns of a body or a marker.

Row of the model, rotation by rows (9) and position (3) of its frame in the row's frame. Then the same of the body in
whose frame its position is computed, row -1 for the world.
"""
OUTPUTS = Layout(
    "Outputs", scratch("rate", "12 + 2 * n"), model("points", "points", POINT_WIDTH), scratch("out", "out")
)
"""Outputs of a tree.

`points` has the requested bodies and markers. `out` has the energy (J), the wrench on a held base (6,), torques (n,),
and POINT_OUT numbers for each point. These are position (3,), quaternion (4,) to world, velocity and angular velocity
(3,) in its own frame, and specific force (3,), m/s2, in its own frame: the reading of an ideal accelerometer at its
origin. If `out` is long enough, AUDIT numbers of rtmms.mechanism.audit follow.
"""
OF_A_BODY = {
    "position": ("m", 3, "world", P_POSITION), "quaternion": ("", 4, "world", P_QUATERNION),
    "velocity": ("m/s", 3, "body", P_VELOCITY), "angular_velocity": ("rad/s", 3, "body", P_ANGULAR),
    "specific_force": ("m/s2", 3, "body", P_FORCE),
}  # fmt: skip
"""Outputs of any body: unit, size, frame, first index among its numbers."""


@dataclass(frozen=True, eq=False)
class ResolvedOutputs:
    """Resolved outputs of a tree.

    Parameters
    ----------
    channels : tuple[Channel, ...]
        In order.
    points : (m, POINT_WIDTH) array
        Bodies and markers of `write_outputs`.
    slices : dict[str, slice]
        Slices of `out` by output.
    chosen : frozenset[str] or None
        Names that the user chose; None for all.
    """

    channels: tuple[Channel, ...]
    points: Array
    slices: dict[str, slice]
    chosen: frozenset[str] | None


def resolve_outputs(
    model: Model, names: Sequence[str] | None, motors: int, audited: bool = False, limited: bool = False,
    tendons: int = 0,
) -> ResolvedOutputs:  # fmt: skip
    """Resolve the names of outputs.

    Parameters
    ----------
    model : Model
        Compiled tree.
    names : Sequence[str] or None
        Outputs; None for all of base and joints.
    motors : int
        Number of actuators on bodies.
    audited : bool, default False
        Whether the energy terms are outputs.
    limited : bool, default False
        Whether joints have limits that are never passed.
    tendons : int, default 0
        Number of tendons.

    Returns
    -------
    ResolvedOutputs
        Channels and their places.

    Raises
    ------
    ModelError, UnknownNameError
        An output does not exist or is named twice.
    """
    dissipates = tendons or len(model.ground.rows)
    listed = (
        *_of_the_tree(model, motors, limited), *tendon_channels(tendons), *((DISSIPATED,) if dissipates else ()),
        *_of_the_audit(audited),
    )  # fmt: skip
    known = {channel.name: channel for channel in listed}
    markers = {name: (frame, row) for name, frame, row in model.markers}
    for name in markers:
        if name in known:
            raise ModelError(f"{model.name}: marker '{name}': an output has this name; rename the marker")
    if names is None and not markers:
        return ResolvedOutputs(tuple(known.values()), np.zeros((0, POINT_WIDTH)), {}, None)
    if names is None:
        names = (*known, *markers)
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{model.name}: outputs: expected a list of names, got {names!r}")
    names = [present_output(name, known) for name in names]
    places: dict[str, int] = {}
    rows: list[Array] = []
    channels: list[Channel] = []
    slices: dict[str, slice] = {}
    for name in names:
        if name in slices or any(channel.name == name for channel in channels):
            raise ModelError(f"{model.name}: outputs: '{name}' is named twice")
        if name in known:
            channels.append(known[name])
            continue
        if name in markers:
            frame, row = markers[name]
            first = O_TORQUE + model.n + POINT_OUT * len(rows) + P_POSITION
            rows.append(row)
            channels.append(Channel(name, "m", (3,), frame))
            slices[name] = slice(first, first + 3)
            continue
        body, _, quantity = name.rpartition(".")
        if body not in model.body_names or quantity not in OF_A_BODY:
            whole = [*known, *markers, *(f"{body_name}.{what}" for body_name in model.body_names for what in OF_A_BODY)]
            raise UnknownNameError(f"output of {model.name}", name, whole)
        if body not in places:
            k, row = model.body(body), np.zeros(POINT_WIDTH)
            row[0], row[1:10], row[10:13] = model.carrier[k], model.offset_rotation[k].ravel(), model.offset_position[k]
            row[13], places[body] = -1.0, len(rows)
            rows.append(row)
        unit, size, frame, at = OF_A_BODY[quantity]
        first = O_TORQUE + model.n + POINT_OUT * places[body] + at
        channels.append(Channel(name, unit, (size,), frame))
        slices[name] = slice(first, first + size)
    points = np.array(rows).reshape(-1, POINT_WIDTH)
    return ResolvedOutputs(tuple(channels), points, slices, frozenset(names))


def _of_the_tree(model: Model, motors: int, limited: bool) -> tuple[Channel, ...]:
    n = model.n
    kinds = {int(kind) for kind in model.topology[1 : n + 1, T_KIND]}
    angle, torque = ("m", "N") if kinds == {PRISMATIC} else ("rad, m", "N m, N") if len(kinds) > 1 else ("rad", "N m")
    rate = ", ".join(f"{unit}/s" for unit in angle.split(", "))
    joints: tuple[Any, ...] = () if n == 0 else (
        Channel("joint_position", angle, (n,)), Channel("joint_velocity", rate, (n,)),
        Channel("joint_torque", torque, (n,)), *((Channel("stop_torque", torque, (n,)),) if limited else ()),
    )  # fmt: skip
    return (
        Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
        Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
        *joints, Channel("power", "W"), Channel("work", "J"), Channel("energy", "J"),
        *(() if model.base_mode == BASE_FREE else (Channel("base_wrench", "N, N m", (6,), "body"),)),
        *(() if motors == 0 else (Channel("motor", "", (motors,)),)),
        *((Channel("reaction", "N, N m", (len(model.ground.rows),)),) if len(model.ground.rows) else ()),
        *((Channel("floor_force", "N", (len(model.floor),)),) if len(model.floor) else ()),
    )  # fmt: skip


DISSIPATED = Channel("dissipated_energy", "J")
"""Energy that tendons and impacts have dissipated."""


def tendon_channels(tendons: int) -> tuple[Channel, ...]:
    """Return the outputs of tendons.

    Parameters
    ----------
    tendons : int
        Number of tendons.

    Returns
    -------
    tuple[Channel, ...]
        Channels; empty without tendons.
    """
    units = {"tendon_length": "m", "tendon_rate": "m/s", "tendon_tension": "N"}
    return tuple(Channel(name, unit, (tendons,)) for name, unit in units.items()) if tendons else ()


def _of_the_audit(audited: bool) -> tuple[Channel, ...]:
    stored = tuple(Channel(f"{name}_energy", "J") for name in ("kinetic", "elastic", "fluid"))
    works = ((Channel(f"{name}_power", "W"), Channel(f"{name}_work", "J")) for name in WORKS)
    return (*stored, *(channel for pair in works for channel in pair)) if audited else ()


@kernel(merged=True)
def write_outputs(system: Any) -> None:
    """Evaluate the equations of motion at the present state, and write system.outputs.out.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    """
    tree, work, outputs, state = system.tree, system.work, system.outputs, system.motion.vector
    topology, constant, gravity, start = tree.topology, tree.constant, tree.gravity, system.hold.start
    s, torque, q, qd = work.s, work.torque, work.q, work.qd
    rate, points, out = outputs.rate, outputs.points, outputs.out
    n = q.shape[0]
    choose_contacts(system, tree.ground, state, start, rate)
    evaluate(system, state, start, 0.0, rate)
    place(topology, state[0:3], state[3:7], s)
    energies(constant, gravity, q, qd, s, out[0:3])
    elastic, weight = out[2], out[1]
    out[O_ENERGY] = (out[0] + out[1]) + out[2]
    for k in range(6):  # from outside on a base that is held
        out[O_WRENCH + k] = s[0, S_BIAS + k]
    for j in range(n):
        out[O_TORQUE + j] = torque[j]
    for i in range(points.shape[0]):
        first = O_TORQUE + n + POINT_OUT * i
        of_body(s, points[i], out[first : first + POINT_OUT])
    first = O_TORQUE + n + POINT_OUT * points.shape[0]
    out[O_ENERGY] += tendon_energy(system.tendons)
    out[O_ENERGY] += floor_energy(system.floor)
    out[O_ENERGY] += spin_energy(system.pushes, system.pushes.momentum, s)
    if out.shape[0] > first:
        audit(system, elastic, out[first : first + AUDIT])
        out[O_ENERGY] = out[first + A_KINETIC] + out[first + A_ELASTIC] + out[first + A_FLUID] + weight


@scalar
def to_body_axes(point: Any, x: Any, y: Any, z: Any) -> Any:
    """Return a vector in the body's own frame.

    Parameters
    ----------
    point : (POINT_WIDTH,) array
        Row of the body.
    x, y, z : float
        Vector in the row's frame.

    Returns
    -------
    (float, float, float)
        Vector in the body's frame.
    """
    return (
        point[1] * x + point[4] * y + point[7] * z,
        point[2] * x + point[5] * y + point[8] * z,
        point[3] * x + point[6] * y + point[9] * z,
    )


@kernel(merged=True)
def of_body(s: Any, point: Any, out: Any) -> None:
    """Write the numbers of one described body.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    point : (POINT_WIDTH,) array
        Row of the body.
    out : (POINT_OUT,) array
        Result.
    """
    j = int(point[0])
    px, py, pz = point[10], point[11], point[12]
    for k in range(3):
        r = S_WORLD_ROT + 3 * k
        out[P_POSITION + k] = s[j, S_WORLD_POS + k] + s[j, r] * px + s[j, r + 1] * py + s[j, r + 2] * pz
    if point[13] >= 0.0:
        into_body(s, point, out)
    quaternion(s, j, point, out)
    wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
    cx, cy, cz = cross(wx, wy, wz, px, py, pz)
    vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
    out[P_VELOCITY], out[P_VELOCITY + 1], out[P_VELOCITY + 2] = to_body_axes(point, vx, vy, vz)
    out[P_ANGULAR], out[P_ANGULAR + 1], out[P_ANGULAR + 2] = to_body_axes(point, wx, wy, wz)
    # a - g = V' + W' x p + W x (V + W x p) - g
    ax, ay, az = cross(s[j, S_ACCELERATION + 3], s[j, S_ACCELERATION + 4], s[j, S_ACCELERATION + 5], px, py, pz)
    bx, by, bz = cross(wx, wy, wz, vx, vy, vz)
    fx = s[j, S_ACCELERATION] + ax + bx - s[j, S_GRAVITY]
    fy = s[j, S_ACCELERATION + 1] + ay + by - s[j, S_GRAVITY + 1]
    fz = s[j, S_ACCELERATION + 2] + az + bz - s[j, S_GRAVITY + 2]
    out[P_FORCE], out[P_FORCE + 1], out[P_FORCE + 2] = to_body_axes(point, fx, fy, fz)


@kernel
def into_body(s: Any, point: Any, out: Any) -> None:
    """Transform the position in `out` from the world to the frame of the body that the point refers to.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    point : (POINT_WIDTH,) array
        Row of the point.
    out : (POINT_OUT,) array
        Numbers of the point.
    """
    i, w = int(point[13]), S_WORLD_ROT
    x = out[P_POSITION] - s[i, S_WORLD_POS]
    y = out[P_POSITION + 1] - s[i, S_WORLD_POS + 1]
    z = out[P_POSITION + 2] - s[i, S_WORLD_POS + 2]
    a = s[i, w] * x + s[i, w + 3] * y + s[i, w + 6] * z - point[23]
    b = s[i, w + 1] * x + s[i, w + 4] * y + s[i, w + 7] * z - point[24]
    c = s[i, w + 2] * x + s[i, w + 5] * y + s[i, w + 8] * z - point[25]
    for k in range(3):
        out[P_POSITION + k] = point[14 + k] * a + point[17 + k] * b + point[20 + k] * c


@kernel
def quaternion(s: Any, j: int, point: Any, out: Any) -> None:
    """Write the quaternion (w x y z), w >= 0, of the body's attitude in the world (Shepperd).

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    point : (POINT_WIDTH,) array
        Row of the body.
    out : (POINT_OUT,) array
        Numbers of the body.

    Notes
    -----
    The largest of the four squares is computed first (Shepperd).
    """
    w = S_WORLD_ROT
    # columns of the body's axes in the world
    xx, xy, xz = to_body_axes(point, s[j, w], s[j, w + 1], s[j, w + 2])
    yx, yy, yz = to_body_axes(point, s[j, w + 3], s[j, w + 4], s[j, w + 5])
    zx, zy, zz = to_body_axes(point, s[j, w + 6], s[j, w + 7], s[j, w + 8])
    a, b, c, d = 1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz
    if a >= b and a >= c and a >= d:
        e, f, g, h = a, zy - yz, xz - zx, yx - xy
    elif b >= c and b >= d:
        e, f, g, h = zy - yz, b, yx + xy, xz + zx
    elif c >= d:
        e, f, g, h = xz - zx, yx + xy, c, zy + yz
    else:
        e, f, g, h = yx - xy, xz + zx, zy + yz, d
    size = 1.0 / np.sqrt(e * e + f * f + g * g + h * h)
    size = -size if e < 0.0 else size
    q = P_QUATERNION
    out[q], out[q + 1], out[q + 2], out[q + 3] = e * size, f * size, g * size, h * size


# The shape of a tree for viewers: its bodies as solids, in the frames that its joints move.


THIN = 0.02
"""Drawn thickness of a plate, as a fraction of its chord."""
THICK = 0.08
"""Drawn thickness of a wing, as a fraction of its chord."""


def shape_of_tree(model: Model, mechanism: Mechanism | None, pushing: Iterable[Any] = ()) -> dict[str, Any]:
    """Return the shape (rtmms.plant.PlantDescription) of a tree.

    A body is drawn by its drawings, else by its solids, its blades, the ellipsoid of its inertia, or its strips. Wings,
    which have a polar, and the pieces of soft rods are always drawn.

    Parameters
    ----------
    model : Model
        Compiled tree.
    mechanism : Mechanism or None
        Description with the solids; None where it is unknown.
    pushing : Iterable[Any], default ()
        Actuators; rotors among them are drawn with blades.

    Returns
    -------
    dict[str, Any]
        The shape; empty for bodies that bend, whose robots have their own drawings.
    """
    if np.any(model.topology[1:, T_KIND] > PRISMATIC):
        return {}  # bodies that bend: their robots have drawings of their own
    joints = [
        {
            "parent": int(model.topology[j, T_PARENT]),
            "slides": bool(model.topology[j, T_KIND] == PRISMATIC),
            **_placed(Placement(model.constant[j, C_ROT : C_ROT + 9].reshape(3, 3), model.constant[j, C_POS:][:3])),
        }
        for j in range(1, model.n + 1)
    ]
    cords = list(_cords(model, mechanism, pushing))
    drawing = {"joints": joints, "parts": [*_parts(model, mechanism), *_discs(model, pushing)]}
    return {**drawing, "cords": cords} if cords else drawing


def _cords(model: Model, mechanism: Mechanism | None, pushing: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for item in pushing:
        if isinstance(item, Tendon):
            points = item.points(Attachment(model, () if mechanism is None else mechanism.rods))
            numbers = [[int(p[ROW]), *(_short(x) for x in p[PLACE : PLACE + 3])] for p in points]
            yield {"name": item.name, "points": numbers}


def _discs(model: Model, pushing: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for k, rotor in enumerate(item for item in pushing if isinstance(item, Rotor)):
        body = model.body(rotor.body)
        place = Placement(model.offset_rotation[body], model.offset_position[body]) @ rotor.placement
        wide = 1.1 * float(np.linalg.norm(rotor.placement.position)) or 0.1
        yield _part(f"rotor{k + 1}", int(model.carrier[body]), "rotor", place, (wide, wide, 0.05 * wide))


def _parts(model: Model, mechanism: Mechanism | None) -> Iterator[dict[str, Any]]:
    bodies = {} if mechanism is None else {body.name: body for body in mechanism.bodies}
    visited: set[int] = set()
    for k, name in enumerate(model.body_names):
        row = int(model.carrier[k])
        offset = Placement(model.offset_rotation[k], model.offset_position[k])
        for drawing in bodies[name].drawings if name in bodies else ():
            colour = {"colour": list(drawing.colour)} if drawing.colour else {}
            yield {
                **_part(name, row, drawing.kind, offset @ drawing.placement, drawing.size),
                **drawing.as_data(),
                **colour,
            }
            visited.add(row)
        if name in bodies and bodies[name].drawings:
            continue
        for solid in bodies[name].solids if name in bodies else ():
            if isinstance(solid, MeshSolid):
                shown = mesh(solid.vertices, solid.triangles, solid.placement)
                if shown is not None:
                    yield {**_part(name, row, shown.kind, offset @ shown.placement, shown.size), **shown.as_data()}
                    visited.add(row)
                continue
            built = _solid(solid)
            if built is not None:
                kind, place, size = built
                yield _part(name, row, kind, offset @ place, size)
                visited.add(row)
    names = {int(row): name for row, name in zip(model.carrier[::-1], model.body_names[::-1], strict=True)}
    for part in _pieces(model, mechanism):
        yield part
        visited.add(part["body"])
    for row, element in model.elements:
        if isinstance(element, Strip | Blade) and element.polar is not None:
            yield _wing(names.get(row, f"body{row}"), row, element)
    modelled = frozenset(visited)
    for row, element in model.elements:
        place = element.placement
        if row in modelled or not isinstance(element, Strip | Blade) or element.polar is not None:
            continue
        if isinstance(element, Strip) and model.constant[row, C_MASS] > 0.0:
            continue
        visited.add(row)
        if isinstance(element, Strip):
            # as wide as its displaced fluid, a round section of water; a tenth of its length where it displaces none
            wide = 2.0 * float(np.sqrt(element.displaced / (1000.0 * np.pi))) or 0.1 * element.length
            yield _part(names.get(row, f"body{row}"), row, "ellipsoid", place, (element.length, wide, wide))
        else:
            middle = Placement(np.eye(3), np.array([0.5 * element.length, 0.0, -0.5 * element.chord]))
            size = (element.length, THIN * element.chord, element.chord)
            yield _part(names.get(row, f"body{row}"), row, "box", place @ middle, size)
    for row in range(model.n + 1):
        if row not in visited and model.constant[row, C_MASS] > 0.0:
            place, size = _ellipsoid(model.constant[row])
            yield _part(names.get(row, f"body{row}"), row, "ellipsoid", place, size)


def _wing(name: str, row: int, element: Strip | Blade) -> dict[str, Any]:
    """Return a plate of the wing's span and chord."""
    place, chord = element.placement, element.chord
    if isinstance(element, Blade):
        middle = Placement(np.eye(3), np.array([0.5 * element.length, 0.0, -0.5 * chord]))
        return _part(f"{name}.wing", row, "box", place @ middle, (element.length, THICK * chord, chord))
    return _part(f"{name}.wing", row, "box", place, (element.length, chord, THICK * chord))


def _pieces(model: Model, mechanism: Mechanism | None) -> Iterator[dict[str, Any]]:
    """Return the pieces of soft rods: cylinders with half-axes 2 sqrt(I / m) of their sections, and balls at joints."""
    along = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # own z -> x, x -> y, y -> z
    for rod in () if mechanism is None else mechanism.rods:
        for j, (start, end, origin) in enumerate(rod.pieces()):
            name = f"{rod.name}.{j}" if j else f"{rod.name}.root"
            section, k = rod.at(0.5 * (start + end)), model.body(name)
            _, about_y, about_z = (4.0 * np.sqrt(i / section.mass_kg_m) for i in section.inertia_kg_m)
            offset = Placement(model.offset_rotation[k], model.offset_position[k])
            place = offset @ Placement(along, np.array([0.5 * (start + end) - origin, 0.0, 0.0]))
            size = (float(about_z), float(about_y), end - start)
            yield _part(name, int(model.carrier[k]), "cylinder", place, size)
            if j:
                ball = (min(size[:2]), *size[:2])
                yield _part(f"{name}.joint", int(model.carrier[k]), "ellipsoid", offset, ball)


def _solid(solid: Solid) -> tuple[str, Placement, tuple[float, float, float]] | None:
    """Return kind, placement of the middle and full sizes; None for a user's own kind of solid."""
    place = solid.placement
    match solid:
        case Box():
            return "box", place, (solid.x, solid.y, solid.z)
        case EllipticCylinder():
            return "cylinder", place, (2.0 * solid.a, 2.0 * solid.b, solid.length)
        case Cylinder():
            return "cylinder", place, (2.0 * solid.radius, 2.0 * solid.radius, solid.length)
        case Ellipsoid():
            return "ellipsoid", place, (2.0 * solid.a, 2.0 * solid.b, 2.0 * solid.c)
        case HalfEllipsoid():  # as an ellipsoid of the half's height
            middle = Placement(np.eye(3), np.array([0.0, 0.0, 0.5 * solid.c]))
            return "ellipsoid", place @ middle, (2.0 * solid.a, 2.0 * solid.b, solid.c)
    return None


def _ellipsoid(constant: Array) -> tuple[Placement, tuple[float, float, float]]:
    """Return the uniform ellipsoid of the same mass, centre and principal moments: I1 = m (b^2 + c^2) / 5."""
    mass = float(constant[C_MASS])
    centre = constant[C_MOMENT : C_MOMENT + 3] / mass
    inertia = unpack_inertia(constant[C_RIGID : C_RIGID + 21])[3:, 3:]
    # Huygens: the inertia about the centre
    about = inertia - mass * (np.dot(centre, centre) * np.eye(3) - np.outer(centre, centre))
    moments, axes = np.linalg.eigh(about)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    squares = 2.5 * (moments.sum() - 2.0 * moments) / mass
    longest = float(np.sqrt(max(squares.max(), 1e-8)))
    sizes = 2.0 * np.sqrt(np.maximum(squares, (0.05 * longest) ** 2))
    return Placement(axes, centre), (float(sizes[0]), float(sizes[1]), float(sizes[2]))


def _part(name: str, row: int, kind: str, place: Placement, size: tuple[float, float, float]) -> dict[str, Any]:
    return {"name": name, "body": row, "kind": kind, "size": [_short(s) for s in size], **_placed(place)}


def _placed(place: Placement) -> dict[str, list[float]]:
    return {
        "position": [_short(x) for x in place.position],
        "quaternion": [_short(x) for x in matrix_quaternion(place.rotation)],
    }


def _short(value: float) -> float:
    """Return a number rounded to seven digits, enough for a drawing, to keep the welcome message short."""
    return float(f"{value:.7g}")
