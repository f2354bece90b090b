"""Mechanisms from URDF files, read by yourdfpy (pip install 'rtmms[urdf]')."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Placement
from rtmms.spatial import Array, skew

TYPES = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed"}


def from_urdf(
    path: str | Path, *, base: str = "free", drive: str = "torque", gravity: Any = (0, 0, -9.81)
) -> Mechanism:
    """The links, joints and inertias of a URDF file as a Mechanism.

    base     'free', 'prescribed' or 'fixed', of the root link
    drive    'torque' or 'motion', of every joint
    Joint damping and friction become viscous and Coulomb friction; limits, meshes and transmissions are not read.
    Raises ModelError: no such file, no such library, not a URDF, a joint that is floating, planar or mimics another.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"urdf '{path}': no such file")
    try:
        yourdfpy = import_module("yourdfpy")
    except ImportError:
        raise ModelError("reading URDF needs yourdfpy: pip install 'rtmms[urdf]'") from None
    scenes = {"build_scene_graph": False, "load_meshes": False, "build_collision_scene_graph": False}
    try:
        robot = yourdfpy.URDF.load(str(path), load_collision_meshes=False, **scenes).robot
    except Exception as fault:  # whatever the library makes of a broken file
        raise ModelError(f"urdf '{path}': cannot be read: {type(fault).__name__}: {fault}") from None
    bodies = [_body(link, path) for link in robot.links]
    joints = [_joint(joint, drive, path) for joint in robot.joints]
    return Mechanism(robot.name or path.stem, bodies, joints, base=base, gravity=gravity)


def _placement(origin: Array | None) -> Placement:
    if origin is None:
        return Placement()
    matrix = np.asarray(origin, dtype=float)
    # angles are written with few digits, but the rotation made of them is a rotation
    return Placement(matrix[:3, :3], matrix[:3, 3])


def _body(link: Any, path: Path) -> Body:
    inertial = link.inertial
    if inertial is None:
        return Body(link.name)
    place = _placement(inertial.origin)
    mass = 0.0 if inertial.mass is None else float(inertial.mass)
    about_centre = np.zeros((3, 3)) if inertial.inertia is None else np.asarray(inertial.inertia, dtype=float)
    if about_centre.shape != (3, 3):
        raise ModelError(f"urdf '{path}': link '{link.name}': inertia must be 3 x 3, got {about_centre.shape}")
    turned = place.rotation @ about_centre @ place.rotation.T
    c = place.position
    return Body(link.name, mass, mass * c, turned - mass * skew(c) @ skew(c))


def _joint(joint: Any, drive: str, path: Path) -> Joint:
    where = f"urdf '{path}': joint '{joint.name}'"
    if joint.type not in TYPES:
        raise ModelError(
            f"{where}: type '{joint.type}' is not supported; use {', '.join(TYPES)} (a floating base: base='free')"
        )
    if joint.mimic is not None:
        raise ModelError(f"{where}: mimics '{joint.mimic.joint}': coupled joints are not supported; remove <mimic>")
    axis = np.array([1.0, 0.0, 0.0]) if joint.axis is None else np.asarray(joint.axis, dtype=float)
    dynamics = joint.dynamics
    damping = 0.0 if dynamics is None or dynamics.damping is None else float(dynamics.damping)
    friction = 0.0 if dynamics is None or dynamics.friction is None else float(dynamics.friction)
    kind = TYPES[joint.type]
    return Joint(
        joint.name, joint.parent, joint.child, kind, _placement(joint.origin), None if kind == "fixed" else axis,
        damping=damping, coulomb=friction, drive=drive,
    )  # fmt: skip
