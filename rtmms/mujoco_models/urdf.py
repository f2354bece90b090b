"""URDF files on MuJoCo: `rtmms run robot.urdf --set engine=mujoco`.

MuJoCo reads links, joints, inertias, collisions and meshes. It reads no transmissions, so the loader adds an actuator
to each joint, with the name that its channel has on rtmms's own engine.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import numpy as np

from rtmms.base.errors import ModelError, RtmmsWarning
from rtmms.base.files import MIB, XmlLimits, check_xml, read_input
from rtmms.base.parameters import Parameter, parameters_of, read_value
from rtmms.model.urdf import mesh_file, read_mesh
from rtmms.mujoco_models.library import compile_model, load_mujoco, resolved
from rtmms.mujoco_models.plant import MujocoPlant, Options

MAX_URDF_BYTES = 16 * MIB
MAX_MESH_BYTES = 64 * MIB
MUJOCO_MESHES = (".stl", ".obj", ".msh")
"""Endings of the meshes that MuJoCo itself reads; others are converted."""


@dataclass(frozen=True, kw_only=True)
class UrdfOptions(Options):
    """Parameters of a URDF file on MuJoCo.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    base: Annotated[str, Parameter(
        "Base of the root link; auto: fixed if the root link has no mass.", choices=("auto", "free", "fixed"),
    )] = (
        "auto"
    )
    drive: Annotated[str, Parameter("Drive of every joint.", choices=("torque", "servo", "none"))] = "torque"
    servo_n_m: Annotated[float, Parameter("Stiffness of servos.", "N m/rad")] = 20.0
    servo_n_m_s: Annotated[float, Parameter("Damping of servos.", "N m s/rad", ge=0)] = 1.0
    # fmt: on


def load_urdf(path: str, /, *, dt: float | None = None, **parameters: Any) -> MujocoPlant:
    """Build the plant of a URDF file on MuJoCo.

    Parameters
    ----------
    path : str
        The file. Its meshes are found as on rtmms's own engine, also by package://.
    dt : float | None, optional
        Step, s: a multiple of 2 ms, MuJoCo's default, unless `substeps` is given.
    **parameters : Any
        Fields of `UrdfOptions`, and numeric fields by KIND/NAME/FIELD (rtmms.mujoco_models.fields).

    Returns
    -------
    MujocoPlant
        The plant.

    Raises
    ------
    ModelError
        MuJoCo is missing, or the file, a mesh, or a parameter is wrong.
    """
    mujoco = load_mujoco(path)
    file = resolved(path)
    root = _read(file)
    _prepare_compiler(root)
    assets = _collect_meshes(root, file)
    if root.find("rtmms") is not None:
        warnings.warn(f"urdf '{path}': the element <rtmms> is ignored, as MuJoCo has no rotors and thrusters",
                      RtmmsWarning, stacklevel=2)  # fmt: skip
    text = ElementTree.tostring(root, encoding="unicode")

    def make() -> Any:
        spec = mujoco.MjSpec.from_string(text, assets=assets)
        base = _choice(path, "base", parameters)
        first = spec.worldbody.first_body()
        if base == "free" or (base == "auto" and first is not None and _has_mass(root, first.name)):
            first.add_freejoint()
        _add_actuators(mujoco, spec, root, path, parameters)
        return spec.compile()

    model = compile_model(mujoco, path, make)
    return MujocoPlant(mujoco, model, path, dt, None, parameters, UrdfOptions)


def _choice(path: str, name: str, parameters: dict[str, Any]) -> Any:
    default = getattr(UrdfOptions(), name)
    return read_value(f"{path}: {name}{{}}", default, parameters_of(UrdfOptions)[name], parameters.get(name, default))


def _read(path: Path) -> ElementTree.Element:
    data = read_input(path, max_bytes=MAX_URDF_BYTES, expected="a URDF file")
    check_xml(data, f"urdf '{path}'", XmlLimits(MAX_URDF_BYTES))
    root = ElementTree.fromstring(data)
    if root.tag != "robot":
        raise ModelError(f"urdf '{path}': expected a URDF file, whose root is <robot>, got <{root.tag!s:.60}>")
    return root


def _prepare_compiler(root: ElementTree.Element) -> None:
    """Keep links and visual geometry apart, and names of meshes as they are."""
    extension = root.find("mujoco")
    if extension is None:
        extension = ElementTree.SubElement(root, "mujoco")
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(extension, "compiler")
    for name in ("meshdir", "texturedir", "assetdir"):
        compiler.attrib.pop(name, None)
    for name in ("fusestatic", "strippath", "discardvisual"):
        compiler.set(name, "false")


def _collect_meshes(root: ElementTree.Element, path: Path) -> dict[str, bytes]:
    """Return the meshes by our names, which replace those in the tree; a visual without its mesh is left out."""
    assets: dict[str, bytes] = {}
    names: dict[str, str] = {}
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for element in list(link.findall(tag)):
                mesh = element.find("geometry/mesh")
                if mesh is None:
                    continue
                filename = str(mesh.get("filename", ""))
                try:
                    if filename not in names:
                        name, content = _read_asset(filename, path, len(names))
                        names[filename], assets[name] = name, content
                    mesh.set("filename", names[filename])
                except Exception as fault:  # whatever a library makes of a broken file
                    where = f"urdf '{path}': link '{link.get('name')}': mesh '{filename}'"
                    if tag == "collision":
                        raise ModelError(f"{where}: {fault!s:.200}") from None
                    warnings.warn(f"{where}: {fault!s:.200}; it is not drawn", RtmmsWarning, stacklevel=4)
                    link.remove(element)
    return assets


def _read_asset(filename: str, path: Path, number: int) -> tuple[str, bytes]:
    file = mesh_file(filename, path)
    if file is None:
        raise ModelError("there is no such file; copy it to the folder of the URDF, or correct the name")
    ending = file.suffix.lower()
    if ending in MUJOCO_MESHES:
        return f"mesh{number}{ending}", read_input(file, max_bytes=MAX_MESH_BYTES, expected="a mesh")
    vertices, faces = read_mesh(file)
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(vertices, dtype=float).tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in np.asarray(faces).tolist()]
    return f"mesh{number}.obj", "\n".join(lines).encode()


def _has_mass(root: ElementTree.Element, link: str) -> bool:
    for item in root.iter("link"):
        if item.get("name") == link:
            mass = item.find("inertial/mass")
            return mass is not None and float(mass.get("value", "0")) > 0.0
    return False


def _add_actuators(
    mujoco: Any, spec: Any, root: ElementTree.Element, path: str, parameters: dict[str, Any]
) -> None:  # fmt: skip
    drive = _choice(path, "drive", parameters)
    stiffness, damping = _choice(path, "servo_n_m", parameters), _choice(path, "servo_n_m_s", parameters)
    for joint in root.findall("joint") if drive != "none" else ():
        if joint.get("type") not in ("revolute", "continuous", "prismatic") or joint.find("mimic") is not None:
            continue
        name, limit = str(joint.get("name")), joint.find("limit")
        effort = _number(limit, "effort")
        actuator = spec.add_actuator()
        actuator.target, actuator.trntype = name, mujoco.mjtTrn.mjTRN_JOINT
        if drive == "torque":
            actuator.name = f"{name}.torque"
            if effort:
                actuator.ctrllimited, actuator.ctrlrange = True, [-effort, effort]
            continue
        actuator.name = f"{name}.angle"
        actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        actuator.gainprm[0] = stiffness
        actuator.biasprm[:3] = [0.0, -stiffness, -damping]
        if joint.get("type") != "continuous" and limit is not None:
            lower, upper = _number(limit, "lower") or 0.0, _number(limit, "upper") or 0.0
            if lower < upper:
                actuator.ctrllimited, actuator.ctrlrange = True, [lower, upper]
        if effort:
            actuator.forcelimited, actuator.forcerange = True, [-effort, effort]


def _number(element: ElementTree.Element | None, name: str) -> float | None:
    """Return the number of an attribute; MuJoCo reports malformed ones."""
    try:
        return None if element is None or element.get(name) is None else float(str(element.get(name)))
    except ValueError:
        return None
