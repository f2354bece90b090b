"""Provide any URDF file as a plant: `rtmms run FILE.urdf`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter, build
from rtmms.fluids.ambient import Flow
from rtmms.fluids.shapes import immersed_body
from rtmms.mechanism.actuators import JointLimit, JointMotion, JointServo, JointStop, JointTorque, Rotor, Thruster
from rtmms.mechanism.joint_laws import BRAKING_S
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Mechanism
from rtmms.model.urdf import Limit, Urdf, read_urdf
from rtmms.plant.protocol import Plant
from rtmms.robots.parameters import Integrator, Substeps, step_of


@dataclass(frozen=True)
class Options:
    """Parameters of the plant of a URDF file, as `--set` changes them.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    engine: Annotated[str, Parameter(
        "Simulator of the file; mujoco needs MuJoCo and has parameters of its own.", choices=("rtmms", "mujoco"),
    )] = "rtmms"
    base: Annotated[str, Parameter(
        "Base of the root link; auto: fixed if the root link, with what is fixed to it, has no mass.",
        choices=("auto", "free", "fixed"),
    )] = "auto"
    drive: Annotated[str, Parameter(
        "Drive of the joints: by the file's transmissions, else torque; or one kind for every joint. motion: imposed, "
        "through a filter of second order.",
        choices=("transmissions", "torque", "servo", "motion", "none"),
    )] = "transmissions"
    servo_n_m: Annotated[float, Parameter("Stiffness of servos.", "N m/rad")] = 20.0
    servo_n_m_s: Annotated[float, Parameter("Damping of servos.", "N m s/rad", ge=0)] = 1.0
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which servos and motions follow their commands (second order, critically damped).", "rad/s",
    )] = 20.0
    stop_n_m: Annotated[float | None, Parameter(
        "Stiffness beyond the limits of free joints; none: hard stops (JointLimit); 0: no stops.",
        "N m/rad", ge=0,
    )] = None
    stop_n_m_s: Annotated[float, Parameter("Damping beyond the limits of free joints.", "N m s/rad", ge=0)] = 0.0
    braking_s: Annotated[float, Parameter(
        "Braking time of hard stops, of highest rates, and of motions with an effort limit.", "s",
    )] = BRAKING_S
    drag: Annotated[float, Parameter("Drag coefficient of the links' collision shapes; 0 for none.", ge=0)] = 0.0
    added_mass: Annotated[float, Parameter(
        "Factor on a slender body's added mass, of the same shapes; 0 for none.", ge=0,
    )] = 0.0
    buoyancy: Annotated[str, Parameter(
        "Buoyancy: none, that of the collision shapes (shapes, or true), or that of links that float (neutral).",
        choices=("none", "shapes", "neutral"),
    )] = "none"
    fluid_density_kg_m3: Annotated[float, Parameter("Density of the fluid.", "kg/m3")] = 1000.0
    current_x_m_s: Annotated[float, Parameter("Uniform current along x, world frame.", "m/s", signed=True)] = 0.0
    current_y_m_s: Annotated[float, Parameter("Uniform current along y, world frame.", "m/s", signed=True)] = 0.0
    current_z_m_s: Annotated[float, Parameter("Uniform current along z, world frame.", "m/s", signed=True)] = 0.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on


def load(path: str, /, *, dt: float | None = None, preset: str | None = None, **values: Any) -> Plant:
    """Build the plant of a URDF file, for `rtmms.load('FILE.urdf')`.

    A joint's limits hold, whatever is commanded. Lower and upper clamp the commands of servos and motions, and are
    stops. Effort limits the torque that drives the joint, velocity its rate. A joint whose zero is out of its range
    begins at the limit next to it. Damping and friction are those of the file. Commands are the joint's own, whatever a
    transmission's reduction. Rotors and thrusters are in an element <rtmms> of the file, see docs/urdf.md.

    Parameters
    ----------
    path : str
        URDF file.
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by URDF files: None.
    **values : Any
        Fields of `Options`.

    Returns
    -------
    Plant
        The plant at t = 0.

    Raises
    ------
    UnknownNameError, ModelError
        The file or a parameter is wrong; the message names the file and the place in it.
    """
    if preset is not None:
        raise ModelError(f"{path}: a URDF file has no presets, got '{preset}'")
    if values.get("engine") == "mujoco":
        from rtmms.mujoco_models.urdf import load_urdf

        return load_urdf(path, dt=dt, **values)
    if isinstance(values.get("buoyancy"), bool):
        values["buoyancy"] = "shapes" if values["buoyancy"] else "none"
    p: Options = build(Options, values, robot="urdf")
    step = step_of("urdf", dt, 1e-3)
    try:
        return _build_plant(path, step, p)
    except ModelError as fault:
        if str(path) in str(fault):
            raise
        raise ModelError(f"urdf '{path}': {fault}") from None  # of the mechanism that it describes


def _build_plant(path: str, step: float, p: Options) -> TreePlant:
    file = read_urdf(path, gravity=(0.0, 0.0, -p.gravity_m_s2))
    base = _base(file.mechanism) if p.base == "auto" else p.base
    wants = {"drag": p.drag > 0.0, "added_mass": p.added_mass > 0.0, "buoyancy": p.buoyancy == "shapes"}
    if any(wants.values()) and not any(file.shapes.values()):
        raise ModelError(
            f"urdf '{path}': {next(name for name, on in wants.items() if on)}: expected a link with <collision> or "
            "<visual>, on whose shape the fluid acts, got none; add shapes, or use buoyancy=neutral"
        )
    bodies = [
        immersed_body(
            body, file.shapes[body.name], p.fluid_density_kg_m3, p.drag, p.added_mass, p.buoyancy
        ) for body in file.mechanism.bodies
    ]  # fmt: skip
    actuators = [*_on_joints(file, p, path), *(_device(*device, path) for device in file.devices)]
    immersed = p.buoyancy != "none" or p.drag > 0.0 or p.added_mass > 0.0
    return TreePlant(
        replace(file.mechanism, bodies=bodies, base=base), step, actuators=actuators, parameters=p, method=p.integrator,
        substeps=p.substeps, flow=Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)),
        density=p.fluid_density_kg_m3 if immersed else 0.0,
    )  # fmt: skip


def _base(mechanism: Mechanism) -> str:
    """Return 'fixed' where the root link, with what is fixed to it, has no mass, as of an arm; else 'free'."""
    rigid = {body.name for body in mechanism.bodies} - {joint.child for joint in mechanism.joints}
    for _ in mechanism.joints:  # in whatever order they stand: each pass reaches one further
        rigid |= {joint.child for joint in mechanism.joints if joint.type == "fixed" and joint.parent in rigid}
    return "free" if any(body.mass > 0.0 for body in mechanism.bodies if body.name in rigid) else "fixed"


def _on_joints(file: Urdf, p: Options, path: str) -> list[Any]:
    """Return actuators and stops of the file's joints."""
    moving = [joint.name for joint in file.mechanism.joints if joint.type != "fixed"]
    kinds = {"effort": "torque", "position": "servo"}
    wanted = [(name, p.drive) for name in moving]
    if p.drive == "transmissions":
        wanted = [(name, kinds.get(kind, kind)) for name, kind in file.interfaces] or [
            (name, "torque") for name in moving
        ]
    result: list[Any] = []
    for name, kind in wanted:
        limit = file.limits.get(name, Limit())
        nearest = max(min(0.0, _number(limit.upper, math.inf)), _number(limit.lower, -math.inf))
        bounds: dict[str, Any] = {
            "lower": limit.lower, "upper": limit.upper, "bandwidth": p.bandwidth_rad_s, "neutral": nearest,
        }  # fmt: skip
        if kind == "velocity":
            raise ModelError(
                f"urdf '{path}': transmission of joint '{name}': expected an effort or position interface, got "
                "velocity; change it, or set drive"
            )
        if kind == "torque":
            result.append(JointTorque(name, limit.effort))
        elif kind == "servo":
            result.append(JointServo(name, p.servo_n_m, p.servo_n_m_s, limit.effort, **bounds))
        elif kind == "motion":
            result.append(JointMotion(name, **bounds, limit=limit.effort, braking_time=p.braking_s))
    for name in moving:
        limit = file.limits[name]
        imposed = p.drive == "motion" and limit.effort is None
        stopped = p.stop_n_m is None and not imposed
        if stopped or limit.velocity is not None:
            ends = (limit.lower, limit.upper) if stopped else (None, None)
            result.append(JointLimit(name, *ends, limit.velocity, p.braking_s))
        if p.stop_n_m and not imposed and limit.lower is not None and limit.upper is not None:
            result.append(JointStop(name, limit.lower, limit.upper, p.stop_n_m, p.stop_n_m_s))
    return result


def _number(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


DEVICES: dict[str, tuple[Callable[..., Any], dict[str, Callable[[str], Any]]]] = {
    "rotor": (Rotor, {
        "name": str, "thrust_coefficient": float, "drag_coefficient": float, "spin": int, "time_constant": float,
        "max_speed": float,
    }),
    "thruster": (Thruster, {
        "name": str, "coefficient": float, "curve": lambda text: _pairs(text), "moment": float, "time_constant": float,
        "lower": float, "upper": float, "unit": str,
    }),
}  # fmt: skip
"""Elements of <rtmms>: the actuator, and its attributes beside `link`."""


def _pairs(text: str) -> list[tuple[float, float]]:
    numbers = [float(word) for word in text.replace(",", " ").split()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


_EXPECTED = {float: "a number", int: "a whole number"}


def _device(tag: str, attributes: dict[str, str], path: str) -> Any:
    place = f"urdf '{path}': <rtmms> <{tag}>"
    if tag not in DEVICES:
        raise UnknownNameError(f"element of urdf '{path}': <rtmms>", tag, DEVICES)
    kind, known = DEVICES[tag]
    if "link" not in attributes:
        raise ModelError(f"{place}: expected the attribute 'link', got none")
    values: dict[str, Any] = {}
    for key, text in attributes.items():
        if key == "link":
            continue
        if key not in known:
            raise UnknownNameError(f"attribute of {place}", key, (*known, "link"))
        try:
            values[key] = known[key](text)
        except ValueError:
            expected = _EXPECTED.get(known[key], "pairs of numbers")  # type: ignore[call-overload]
            raise ModelError(f"{place}: {key}: expected {expected}, got '{text}'") from None
    return kind(attributes["link"], **values)
