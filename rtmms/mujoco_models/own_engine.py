"""MJCF files on rtmms's own engine: `rtmms.from_mjcf` and `rtmms run robot.xml --set engine=rtmms`.

MuJoCo reads, checks and compiles the file; `tree` turns the compiled model into a mechanism. `unsupported` refuses
features that the engine does not simulate, or leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.parameters import Parameter, parameters_of, read_number
from rtmms.base.spatial import Array
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.model.compiler import compile_model
from rtmms.model.description import Mechanism
from rtmms.mujoco_models.channels import keyframe_number
from rtmms.mujoco_models.fields import read_field, read_parameters
from rtmms.mujoco_models.library import load_model
from rtmms.mujoco_models.tree import BODY_MARKER, OwnTree, kept_actuators, read_state, read_tree
from rtmms.mujoco_models.unsupported import (
    kept_bodies,
    leave_out,
    read_ignored,
    refuse_unsupported,
    tendon_fault,
    tendon_law,
)
from rtmms.plant.validation import MAX_SUBSTEPS, refuse_substeps

AUTO = "auto"
MAX_EXPLICIT_SUBSTEPS = 10
"""Steps of rk4 in a step of the plant; a model that needs more gets the linearly implicit method."""
EXPLICIT_RATE = 1.4
"""Largest |lambda| dt of springs, dampers and laws with rk4."""
TENDON_RATE = 0.7
"""Largest |lambda| dt of tendons, which are explicit, with implicit2."""


@dataclass(frozen=True, kw_only=True)
class OwnOptions:
    """Parameters of an MJCF file on rtmms's own engine; the defaults of the environment are the model's.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    engine: Annotated[str, Parameter(
        "Simulator of the file; mujoco has parameters of its own.", choices=("rtmms", "mujoco"),
    )] = "rtmms"
    ignore: Annotated[str, Parameter(
        "Features of the file to leave out, separated by commas; an error names those that the file has.",
    )] = ""
    integrator: Annotated[str, Parameter(
        "Integration method; auto: rk4, or implicit2 where springs or servos are stiff.", choices=(AUTO, *METHODS),
    )] = AUTO
    substeps: Annotated[int | None, Parameter(
        "Steps of the integration method in a step of the plant; none: as many as springs and servos need.",
        le=MAX_SUBSTEPS,
    )] = None
    sites: Annotated[bool, Parameter("Whether the positions of named sites are outputs.")] = True
    gravity_m_s2: Annotated[tuple[float, float, float], Parameter(
        "Gravity, world frame; one number: along -z.", "m/s2", signed=True, live=True,
    )] = (0.0, 0.0, -9.81)
    wind_m_s: Annotated[tuple[float, float, float], Parameter(
        "Velocity of the fluid, world frame.", "m/s", signed=True, live=True,
    )] = (0.0, 0.0, 0.0)
    fluid_density_kg_m3: Annotated[float, Parameter(
        "Density of the fluid, for added mass, buoyancy and drag of geoms with fluidshape=ellipsoid.", "kg/m3", ge=0,
    )] = 0.0
    fluid_viscosity_pa_s: Annotated[float, Parameter("Viscosity of the fluid.", "Pa s", ge=0)] = 0.0
    # fmt: on


class OwnRobot(NamedTuple):
    """MJCF file as a person would write it for rtmms's own engine.

    Attributes
    ----------
    mechanism : Mechanism
        Bodies, joints, elements of the fluid and markers.
    actuators : tuple[Any, ...]
        For `TreePlant`: those of the file in its order, then limits of joints and springs of tendons.
    """

    mechanism: Mechanism
    actuators: tuple[Any, ...]


def from_mjcf(path: str | Path, *, preset: str | None = None, **parameters: Any) -> OwnRobot:
    """Read an MJCF file as a mechanism and actuators of rtmms's own engine.

    Parameters
    ----------
    path : str | Path
        The file. Files that it names must be in its folder or below.
    preset : str | None, optional
        A keyframe, by its name or its number, whose commands are those at rest.
    **parameters : Any
        Fields of `OwnOptions`, and numeric fields by KIND/NAME/FIELD (rtmms.mujoco_models.fields).

    Returns
    -------
    OwnRobot
        `mechanism` and `actuators`. `rtmms.load(path, engine="rtmms")` is the plant with the file's state and step.

    Raises
    ------
    ModelError
        MuJoCo is missing, the file or a parameter is wrong, or the file has features that the engine does not simulate.

    Notes
    -----
    Use with a file:

        mechanism, actuators = rtmms.from_mjcf("robot.xml")
        plant = rtmms.TreePlant(mechanism, dt=1e-3, actuators=actuators)
    """
    file = _read(str(path), preset, {**parameters, "engine": "rtmms"})
    return OwnRobot(file.tree.mechanism, file.tree.actuators)


@dataclass(frozen=True, eq=False)
class _File:
    """File on the own engine: MuJoCo's objects, the options, the fields that were set, and the tree."""

    mujoco: Any
    model: Any
    path: str
    keyframe: int | None
    options: OwnOptions
    fields: dict[str, Any]
    tree: OwnTree


def _read(path: str, preset: str | None, provided: Mapping[str, Any]) -> _File:
    mujoco, model = load_model(path)
    keyframe = keyframe_number(mujoco, model, path, preset)
    values = dict(provided)
    ignored = read_ignored(path, values.pop("ignore", ""))
    option = model.opt
    x, y, z = (float(item) for item in option.gravity)
    u, v, w = (float(item) for item in option.wind)
    engine_options = OwnOptions(
        ignore=",".join(ignored), gravity_m_s2=(x, y, z), wind_m_s=(u, v, w),
        fluid_density_kg_m3=float(option.density), fluid_viscosity_pa_s=float(option.viscosity),
    )  # fmt: skip
    options, changes = read_parameters(mujoco, model, path, engine_options, values)
    for change in changes:
        change.apply()
    if any(change.derived for change in changes):
        mujoco.mj_setConst(model, mujoco.MjData(model))
    names = [name for name in values if name not in parameters_of(OwnOptions)]
    fields = {name: numbers[0] if len(numbers) == 1 else numbers for name in names
              if (numbers := read_field(mujoco, model, path, name).tolist())}  # fmt: skip
    tree = _tree(mujoco, model, path, keyframe, options, ignored)
    return _File(mujoco, model, path, keyframe, options, fields, tree)


def _tree(
    mujoco: Any, model: Any, path: str, keyframe: int | None, options: OwnOptions, ignored: tuple[str, ...]
) -> OwnTree:  # fmt: skip
    option = model.opt
    option.gravity[:] = options.gravity_m_s2
    option.density, option.viscosity = options.fluid_density_kg_m3, options.fluid_viscosity_pa_s
    leave_out(mujoco, model, ignored)
    refuse_unsupported(mujoco, model, path, ignored)
    if not kept_bodies(mujoco, model):
        raise ModelError(f"{path}: expected a body with mass, got none")
    neutral = np.zeros(model.nu) if keyframe is None else np.array(model.key_ctrl[keyframe], dtype=float)
    try:
        return read_tree(mujoco, model, Path(path).stem, neutral, sites=options.sites)
    except ModelError as fault:
        raise ModelError(f"{path}: {fault}") from None


def load_own(path: str, /, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> TreePlant:
    """Build the plant of an MJCF file on rtmms's own engine.

    Parameters
    ----------
    path : str
        The file. Files that it names must be in its folder or below.
    dt : float | None, optional
        Step, s. Default: the model's.
    preset : str | None, optional
        A keyframe by its name, or by its number.
    **parameters : Any
        Fields of `OwnOptions`, and numeric fields by KIND/NAME/FIELD (rtmms.mujoco_models.fields).

    Returns
    -------
    TreePlant
        The plant.

    Raises
    ------
    ModelError
        MuJoCo is missing, the file or a parameter is wrong, or the file has features that the engine does not simulate.
    """
    file = _read(path, preset, parameters)
    mujoco, model, options = file.mujoco, file.model, file.options
    step: float = read_number(f"{path}: dt", float(model.opt.timestep) if dt is None else dt, False)
    if step <= 0.0:
        raise ModelError(f"{path}: dt must be > 0 s, got {step:g}")
    options = _with_method(file, step)
    k = file.keyframe
    qpos = np.array(model.qpos0 if k is None else model.key_qpos[k], dtype=float)
    qvel = np.zeros(model.nv) if k is None else np.array(model.key_qvel[k], dtype=float)
    path_output = _path_output(file.tree)
    try:
        plant = TreePlant(
            file.tree.mechanism, step, actuators=file.tree.actuators, parameters=options, method=options.integrator,
            substeps=options.substeps or 1, flow=Flow(options.wind_m_s), density=options.fluid_density_kg_m3,
            initial=read_state(mujoco, model, file.tree, qpos, qvel), settable=_LIVE, rebuild=_Rebuild(file),
            summary=_Summary(path_output), trace_outputs=(path_output, *_TRACED),
        )  # fmt: skip
    except ModelError as fault:
        if path in str(fault):
            raise
        raise ModelError(f"{path}: {fault}") from None
    if file.fields:
        plant.keywords = file.fields  # type: ignore[attr-defined]
    return plant


_LIVE = tuple(name for name, parameter in parameters_of(OwnOptions).items() if parameter.live)


_TRACED = ("quaternion", "velocity", "power", "work")


def _path_output(tree: OwnTree) -> str:
    """Return the output whose path is the robot's: of the free body, or of the first body that moves."""
    if tree.base:
        return "position"
    return next((marker.name for marker in tree.mechanism.markers if marker.name.startswith(BODY_MARKER)), "position")


@dataclass(frozen=True)
class _Summary:
    """Mean speed for the report, from the start to the end of an output's path."""

    output: str

    def __call__(self, plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
        if self.output not in trace or len(time) < 2:
            return {}
        distance = float(np.linalg.norm(trace[self.output][-1] - trace[self.output][0]))
        return {"mean_speed_m_s": distance / float(time[-1] - time[0])}


@dataclass(frozen=True, eq=False)
class _Rebuild:
    """Builder of a plant's parts with other environment, for `TreePlant.set`."""

    file: _File

    def __call__(self, plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
        file = self.file
        options, _ = read_parameters(file.mujoco, file.model, file.path, plant.parameters, values)
        mechanism = replace(file.tree.mechanism, gravity=options.gravity_m_s2)
        model = compile_model(mechanism) if "gravity_m_s2" in values else plant.model
        return RebuiltParts(options, model, plant.law, Flow(options.wind_m_s))


# --- the method of a step ------------------------------------------------------------------------------------------


def _with_method(file: _File, step: float) -> OwnOptions:
    """Choose the method and its steps, by the fastest springs and dampers, where the person leaves them open."""
    options = file.options
    if options.substeps is not None:
        refuse_substeps(
            file.path, int(options.substeps) if options.substeps == int(options.substeps) else options.substeps
        )
        options = replace(options, substeps=int(options.substeps))
    if options.integrator != AUTO and options.substeps is not None:
        return options
    rate, tendon_rate = _rates(file)
    explicit = max(1, math.ceil(rate * step / EXPLICIT_RATE))
    method = options.integrator
    if method == AUTO:
        method = "rk4" if explicit <= MAX_EXPLICIT_SUBSTEPS else "implicit2"
    if options.substeps is None:
        implicit = max(1, math.ceil(tendon_rate * step / TENDON_RATE))
        count = implicit if METHODS[method].stability is None else explicit
        options = replace(options, substeps=min(count, MAX_SUBSTEPS))
    return replace(options, integrator=method)


def _rates(file: _File) -> tuple[float, float]:
    """Return the fastest rates, 1/s, at the initial state: of all springs, dampers and laws, and of tendons alone."""
    mujoco, model = file.mujoco, file.model
    data = mujoco.MjData(model)
    if file.keyframe is not None:
        mujoco.mj_resetDataKeyframe(model, data, file.keyframe)
    mujoco.mj_fwdPosition(model, data)
    n = model.nv
    if n == 0:
        return 0.0, 0.0
    mass = np.zeros((n, n))
    mujoco.mj_fullM(model, data, mass)
    stiffness, damping = np.zeros((n, n)), np.diag(np.array(model.dof_damping, dtype=float))
    for item in file.tree.joints:
        if len(item.names) == 1:
            dof = int(model.jnt_dofadr[item.number])
            stiffness[dof, dof] += float(model.jnt_stiffness[item.number])
    pull, drag = np.zeros((n, n)), np.zeros((n, n))
    for k in range(model.ntendon):
        if not tendon_fault(mujoco, model, k):
            row = _tendon_row(mujoco, model, data, k)
            spring, damper, _, _ = tendon_law(mujoco, model, k)
            pull += spring * np.outer(row, row)
            drag += damper * np.outer(row, row)
    for k in kept_actuators(mujoco, model):
        joint = int(model.actuator_trnid[k, 0])
        kinds = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
        if int(model.actuator_trntype[k]) in kinds and int(model.actuator_biastype[k]) != 0:
            dof, square = int(model.jnt_dofadr[joint]), float(model.actuator_gear[k, 0]) ** 2
            stiffness[dof, dof] -= square * float(model.actuator_biasprm[k, 1])
            damping[dof, dof] -= square * float(model.actuator_biasprm[k, 2])
    held = mass + (1e-3 * damping if np.any(damping) else 0.0)  # an implicit damper holds its joint
    return _fastest(mass, stiffness + pull, damping + drag), _fastest(held, pull, drag)


def _tendon_row(mujoco: Any, model: Any, data: Any, tendon: int) -> Array:
    """Return d length / d qvel of a tendon through sites, shape (nv,)."""
    row = np.zeros(model.nv)
    first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    sites = [int(model.wrap_objid[k]) for k in range(first, first + count)]
    if any(int(kind) != int(mujoco.mjtWrap.mjWRAP_SITE) for kind in model.wrap_type[first : first + count]):
        return row
    slopes = []
    for site in sites:
        slope = np.zeros((3, model.nv))
        mujoco.mj_jacSite(model, data, slope, None, site)
        slopes.append(slope)
    for k in range(count - 1):
        segment = np.array(data.site_xpos[sites[k + 1]] - data.site_xpos[sites[k]])
        size = float(np.linalg.norm(segment))
        if size > 0.0:
            row += (segment / size) @ (slopes[k + 1] - slopes[k])
    return row


def _fastest(mass: Array, stiffness: Array, damping: Array) -> float:
    """Return the largest |lambda|, 1/s, of M x'' + D x' + K x = 0."""
    n = len(mass)
    if not (np.any(stiffness) or np.any(damping)):
        return 0.0
    try:
        inverse = np.linalg.inv(mass)
    except np.linalg.LinAlgError:
        return 0.0
    system = np.block([[np.zeros((n, n)), np.eye(n)], [-inverse @ stiffness, -inverse @ damping]])
    return float(np.abs(np.linalg.eigvals(system)).max()) if np.all(np.isfinite(system)) else 0.0
