"""Geometry of a compiled MuJoCo model for viewers (`shape` of rtmms.plant.PlantDescription).

There is a frame for each number of `joint_position`. With a free body, that body is the base frame; without one, the
base frame is the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.spatial import Array, matrix_quaternion, quaternion_matrix, rotation_to, rotation_z
from rtmms.model.description import MAX_DRAWN_POINTS, Drawing, Indices, mesh
from rtmms.model.solids import Placement
from rtmms.mujoco_models.channels import Outputs, object_name

LIQUID_DENSITY = 100.0
"""Density above which the scene of a model is water, kg/m3."""
MAX_VISIBLE_GROUP = 2
"""Highest visible group: MuJoCo's viewers hide geoms of higher groups, which are usually those for collisions."""


class _FixedFrame(NamedTuple):
    """Frame to which a body is fixed (0 the base, k the k-th joint's), the pose there, and whether viewers show it."""

    frame: int
    placement: Placement
    shown: bool


def drawn_shape(mujoco: Any, model: Any, outputs: Outputs) -> Mapping[str, Any]:
    """Return the geometry of a model for viewers.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    outputs : Outputs
        Outputs of the model: its free bodies, and its joints in the order of `joint_position`.

    Returns
    -------
    Mapping[str, Any]
        `joints`, `parts`, `cords` and `scene`; lengths in m, quaternions w, x, y, z.
    """
    joints, seats = _frames(mujoco, model, outputs)
    liquid = float(model.opt.density) >= LIQUID_DENSITY
    return {
        "joints": joints, "parts": _parts(mujoco, model, seats), "cords": _cords(mujoco, model, seats),
        "scene": "water" if liquid else "ground",
    }  # fmt: skip


def _frames(mujoco: Any, model: Any, outputs: Outputs) -> tuple[list[dict[str, Any]], list[_FixedFrame]]:
    """Return the frames of the joints, and the seat of each body."""
    base = outputs.free[0].body if outputs.free else 0
    number = {joint: k + 1 for k, joint in enumerate(outputs.scalar_joints)}
    slide = int(mujoco.mjtJoint.mjJNT_SLIDE)
    joints: list[dict[str, Any]] = [{} for _ in outputs.scalar_joints]
    seats: list[_FixedFrame] = []
    for body in range(model.nbody):
        parent = seats[int(model.body_parentid[body])] if body else _FixedFrame(0, Placement(), base == 0)
        body_place = Placement(quaternion_matrix(model.body_quat[body]), model.body_pos[body])
        seat = (
            _FixedFrame(0, Placement(), True)
            if body == base
            else parent._replace(placement=parent.placement @ body_place)
        )
        first = int(model.body_jntadr[body])
        for joint in range(first, first + int(model.body_jntnum[body])):
            if joint not in number:
                continue
            axis = Placement(rotation_to(model.jnt_axis[joint]), model.jnt_pos[joint])
            slides, at_zero = int(model.jnt_type[joint]) == slide, float(model.qpos0[model.jnt_qposadr[joint]])
            back = Placement(np.eye(3), np.array([0.0, 0.0, -at_zero])) if slides else Placement(rotation_z(-at_zero))
            place = seat.placement @ axis @ back
            joints[number[joint] - 1] = {
                "parent": seat.frame, "position": place.position.tolist(),
                "quaternion": matrix_quaternion(place.rotation).tolist(), "slides": slides,
            }  # fmt: skip
            seat = _FixedFrame(number[joint], _inverse(axis), seat.shown)
        seats.append(seat)
    return joints, seats


def _parts(mujoco: Any, model: Any, seats: list[_FixedFrame]) -> list[dict[str, Any]]:
    result = []
    for k, suffix, item in geom_drawings(mujoco, model, [seat.shown for seat in seats]):
        seat = seats[int(model.geom_bodyid[k])]
        here = seat.placement @ item.placement
        result.append({
            "name": (object_name(mujoco, model, "GEOM", k) or f"geom{k}") + suffix, "body": seat.frame,
            "kind": item.kind, "position": here.position.tolist(),
            "quaternion": matrix_quaternion(here.rotation).tolist(), "size": list(item.size), "colour": item.colour,
            **item.as_data(),
        })  # fmt: skip
    return result


def geom_drawings(mujoco: Any, model: Any, shown: Sequence[bool]) -> list[tuple[int, str, Drawing]]:
    """Return the parts that viewers draw of the geoms.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    shown : Sequence[bool]
        (nbody,) whether viewers show the body.

    Returns
    -------
    list[tuple[int, str, Drawing]]
        Index of the geom, suffix of the part's name, and the part in the frame of the geom's body.
    """
    visible = [k for k in range(model.ngeom) if shown[int(model.geom_bodyid[k])] and _alpha(model, k) > 0.0]
    default = [k for k in visible if model.geom_group[k] <= MAX_VISIBLE_GROUP]
    chosen = default or visible
    of_mesh = int(mujoco.mjtGeom.mjGEOM_MESH)
    points = MAX_DRAWN_POINTS // max(sum(int(model.geom_type[k]) == of_mesh for k in chosen), 1)
    return [(k, *part) for k in chosen for part in _geom(mujoco, model, k, points)]


def _geom(mujoco: Any, model: Any, k: int, points: int) -> list[tuple[str, Drawing]]:
    """Return the parts of a geom; none of a plane, a height field or a signed distance field."""
    kind = mujoco.mjtGeom(int(model.geom_type[k])).name.removeprefix("mjGEOM_").lower()
    place = Placement(quaternion_matrix(model.geom_quat[k]), model.geom_pos[k])
    colour = tuple(round(255.0 * float(min(max(c, 0.0), 1.0))) for c in _rgba(model, k)[:3])
    a, b, c = (2.0 * float(item) for item in model.geom_size[k])

    def part(shape: str, size: tuple[float, float, float], along: float = 0.0, end: str = "") -> tuple[str, Drawing]:
        here = place @ Placement(np.eye(3), np.array([0.0, 0.0, along]))
        return end, Drawing(shape, here, size, colour=colour)

    if kind == "sphere":
        return [part("ellipsoid", (a, a, a))]
    if kind == "ellipsoid":
        return [part("ellipsoid", (a, b, c))]
    if kind == "box":
        return [part("box", (a, b, c))]
    if kind == "cylinder":
        return [part("cylinder", (a, a, b))]
    if kind == "capsule":
        ends = [part("ellipsoid", (a, a, a), sign * 0.5 * b, end) for sign, end in ((1.0, ".top"), (-1.0, ".bottom"))]
        return [part("cylinder", (a, a, b)), *ends]
    if kind == "mesh":
        vertices, triangles = mesh_triangles(model, k)
        built = mesh(vertices, triangles, place, colour, points) if len(triangles) and len(vertices) else None
        return [] if built is None else [("", built)]
    return []


def mesh_triangles(model: Any, k: int) -> tuple[Array, Indices]:
    """Return the vertices and the triangles of a geom's mesh.

    Parameters
    ----------
    model : Any
        The compiled model.
    k : int
        Index of the geom.

    Returns
    -------
    tuple[Array, Indices]
        (n, 3) m, in the frame of the geom, and (t, 3).
    """
    number = int(model.geom_dataid[k])
    first, count = int(model.mesh_vertadr[number]), int(model.mesh_vertnum[number])
    face, faces = int(model.mesh_faceadr[number]), int(model.mesh_facenum[number])
    vertices = np.array(model.mesh_vert[first : first + count], dtype=float)
    return vertices, np.array(model.mesh_face[face : face + faces], dtype=np.int64)


def _cords(mujoco: Any, model: Any, seats: list[_FixedFrame]) -> list[dict[str, Any]]:
    """Return spatial tendons through their sites; one that wraps around a geom is drawn straight."""
    result = []
    site = int(mujoco.mjtWrap.mjWRAP_SITE)
    for k in range(model.ntendon):
        first = int(model.tendon_adr[k])
        wraps = range(first, first + int(model.tendon_num[k]))
        sites = [int(model.wrap_objid[wrap]) for wrap in wraps if int(model.wrap_type[wrap]) == site]
        points = [(seats[int(model.site_bodyid[site])], model.site_pos[site]) for site in sites]
        if len(points) > 1 and all(seat.shown for seat, _ in points):
            result.append({"points": [[seat.frame, *_at(seat.placement, place)] for seat, place in points]})
    return result


def _at(placement: Placement, point: Array) -> list[float]:
    place: Array = placement.position + placement.rotation @ np.asarray(point, dtype=float)
    return [float(item) for item in place]


def _rgba(model: Any, k: int) -> Array:
    material = int(model.geom_matid[k])
    grey = np.allclose(model.geom_rgba[k], (0.5, 0.5, 0.5, 1.0))  # MuJoCo's default gives way to the material
    rgba: Array = model.mat_rgba[material] if material >= 0 and grey else model.geom_rgba[k]
    return rgba


def _alpha(model: Any, k: int) -> float:
    return float(_rgba(model, k)[3])


def _inverse(placement: Placement) -> Placement:
    turned: Array = placement.rotation.T
    return Placement(turned, -turned @ placement.position)
