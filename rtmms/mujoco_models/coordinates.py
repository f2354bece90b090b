"""Coordinates of the state of a MuJoCo plant, and A and B of a step by MuJoCo's own derivatives (mjd_transitionFD)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rtmms.analysis.linearise import Linear, OperatingPoint
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.base.spatial import Array
from rtmms.mujoco_models.channels import MujocoModelState, object_name

EPSILON = 1e-6
"""Displacement of a state or a command to either side, as MuJoCo's documentation recommends."""
_DISPLACEMENT = 1e-5
"""Displacement of coordinates around one pose, for their slopes around another; m, rad."""
_PLACES = ("x", "y", "z")
_TURNS = ("roll", "pitch", "yaw")


def state_names(plant: MujocoModelState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and units of the states (dq, v, act), in MuJoCo's order.

    A free body has its displacement in world axes and its rotation in its own axes. A ball joint has its rotation.

    Parameters
    ----------
    plant : MujocoModelState
        The plant.

    Returns
    -------
    tuple[tuple[str, ...], tuple[str, ...]]
        Names and units.
    """
    mujoco, model = plant.mujoco, plant.model
    free, ball, slide = (int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("FREE", "BALL", "SLIDE"))
    names: list[str] = []
    units: list[str] = []
    rates: list[str] = []
    bodies = iter(plant.free_bodies)
    for k in range(model.njnt):
        name, kind = object_name(mujoco, model, "JOINT", k) or f"joint{k}", int(model.jnt_type[k])
        if kind == free:
            prefix = next(bodies).prefix
            names += [f"{prefix}{item}" for item in (*_PLACES, *_TURNS)]
            rates += [f"{prefix}{item}" for item in ("vx", "vy", "vz", "wx", "wy", "wz")]
            units += ["m"] * 3 + ["rad"] * 3
        elif kind == ball:
            names += [f"{name}.{turn}" for turn in _TURNS]
            rates += [f"{name}.{item}" for item in ("wx", "wy", "wz")]
            units += ["rad"] * 3
        else:
            names.append(name)
            rates.append(f"{name}.rate")
            units.append("m" if kind == slide else "rad")
    activations = [f"activation[{k}]" for k in range(model.na)]
    return (*names, *rates, *activations), (*units, *(f"{unit}/s" for unit in units), *[""] * model.na)


class MujocoChart:
    """Coordinates of a plant's state around the present one (rtmms.analysis.chart.Chart).

    Parameters
    ----------
    plant : MujocoModelState
        The plant.

    Attributes
    ----------
    names, units : tuple of str
        See `state_names`.
    size : ndarray
        (2 nv + na,) all 1, in SI units.

    Raises
    ------
    ModelError
        The model has delays or states of plugins, which are no coordinates.
    """

    def __init__(self, plant: MujocoModelState) -> None:
        model, data = plant.model, plant.data
        for count, what in ((getattr(model, "nhistory", 0), "delays"), (model.npluginstate, "states of plugins")):
            if count:
                raise ModelError(
                    f"{plant.path}: linearise: {what} of the model are not supported; remove them from the file"
                )
        self._plant = plant
        self.names, self.units = state_names(plant)
        self.size = np.ones(len(self.names))
        self._position, self._reference_rates = data.qpos.copy(), np.concatenate([data.qvel, data.act])

    def read(self) -> Array:
        """Return the coordinates of the plant's present state.

        Returns
        -------
        Array
            (2 nv + na,).
        """
        plant = self._plant
        moved = np.zeros(plant.model.nv)
        plant.mujoco.mj_differentiatePos(plant.model, moved, 1.0, self._position, plant.data.qpos)
        return np.concatenate([moved, np.concatenate([plant.data.qvel, plant.data.act]) - self._reference_rates])

    def from_present(self, slopes: Array) -> Array:
        """Convert slopes of coordinates around the present pose to slopes of these coordinates.

        Parameters
        ----------
        slopes : Array
            (2 nv + na, k) slopes.

        Returns
        -------
        Array
            (2 nv + na, k).
        """
        plant, nv = self._plant, int(self._plant.model.nv)
        mujoco, model, here = plant.mujoco, plant.model, plant.data.qpos.copy()
        turned = np.zeros((nv, nv))
        for m in range(nv):
            ends = []
            for by in (_DISPLACEMENT, -_DISPLACEMENT):
                moved, displaced, along = np.zeros(nv), here.copy(), np.zeros(nv)
                along[m] = by
                mujoco.mj_integratePos(model, displaced, along, 1.0)
                mujoco.mj_differentiatePos(model, moved, 1.0, self._position, displaced)
                ends.append(moved)
            turned[:, m] = (ends[0] - ends[1]) / (2.0 * _DISPLACEMENT)
        out = slopes.copy()
        out[:nv] = turned @ slopes[:nv]
        return out

    def write(self, coordinates: Array) -> None:
        """Put the plant into the state of these coordinates; readings of forces and accelerations stay.

        Parameters
        ----------
        coordinates : Array
            (2 nv + na,) coordinates.
        """
        plant, nv = self._plant, int(self._plant.model.nv)
        data = plant.data
        data.qpos[:] = self._position
        plant.mujoco.mj_integratePos(plant.model, data.qpos, np.array(coordinates[:nv], dtype=float), 1.0)
        rates = self._reference_rates + coordinates[nv:]
        data.qvel[:], data.act[:] = rates[:nv], rates[nv:]
        plant.take_up_present()


def step_derivatives(plant: MujocoModelState, command: Array) -> Linear | None:
    """Return A and B of a step at the present state by mjd_transitionFD.

    Parameters
    ----------
    plant : MujocoModelState
        The plant.
    command : Array
        (n_actuators,) command of the step.

    Returns
    -------
    Linear | None
        None with RK4, which mjd_transitionFD does not support.

    Raises
    ------
    ModelError
        MuJoCo stopped, or a step fails close to this state.

    Notes
    -----
    MuJoCo displaces each state and command to either side. The result is extrapolated from two displacements, whose
    difference estimates the error. A step of several steps of MuJoCo has the product of their matrices. MuJoCo's
    coordinates after a step are around the pose after it; the result is around the pose before it, as `rtmms.linearise`
    defines it.
    """
    mujoco, model, data = plant.mujoco, plant.model, plant.data
    if model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4):
        return None
    chart = MujocoChart(plant)
    k, u = len(chart.names), int(model.nu)
    before = plant.snapshot()
    a, b, error = np.eye(k), np.zeros((k, u)), 0.0
    try:
        data.ctrl[:] = command
        for _ in range(plant.keywords.substeps):
            (one_a, one_b), wrong = _transition(mujoco.mjd_transitionFD, model, data, k, u)
            a, b, error = one_a @ a, one_a @ b + one_b, max(error, wrong)
            mujoco.mj_step(model, data)
        a, b = chart.from_present(a), chart.from_present(b)
    except mujoco.FatalError as fault:
        raise ModelError(f"{plant.path}: linearise: MuJoCo stopped: {fault}; linearise at another state") from None
    finally:
        plant.restore(before)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ModelError(f"{plant.path}: linearise: a step fails close to this state; linearise at another state")
    return Linear(
        a, b, chart.names, tuple(actuator.name for actuator in plant.actuators), plant.dt, error, chart.units,
        tuple(actuator.unit for actuator in plant.actuators), around=OperatingPoint(None, np.zeros(0), before),
        method="mjd_transitionFD",
    )  # fmt: skip


def _transition(
    transition: Callable[..., None], model: Any, data: Any, k: int, u: int
) -> tuple[tuple[Array, Array], float]:
    """Return (A, B) of a step of MuJoCo, and an estimate of their error."""
    result = []
    for epsilon in (EPSILON, 0.5 * EPSILON):
        a, b = np.zeros((k, k)), np.zeros((k, u))
        transition(model, data, epsilon, 1, a, b, None, None)
        result.append((a, b))
    (coarse_a, coarse_b), (fine_a, fine_b) = result
    off = (fine_a - coarse_a) / 3.0, (fine_b - coarse_b) / 3.0  # Richardson: the error in epsilon^2 drops out
    error = max(float(np.max(np.abs(item), initial=0.0)) for item in off)
    return (fine_a + off[0], fine_b + off[1]), error


def place(plant: MujocoModelState, values: Mapping[str, Any]) -> None:
    """Change the present state by the names of outputs; see `MujocoPlant.place`.

    Parameters
    ----------
    plant : MujocoModelState
        The plant.
    values : Mapping[str, Any]
        Values by output.

    Raises
    ------
    UnknownNameError, ArgumentError
        The model has no such output, or a value does not fit.
    """
    mujoco, model, data = plant.mujoco, plant.model, plant.data
    targets: dict[str, tuple[Array, Any]] = {}
    if plant.free_bodies:
        first = plant.free_bodies[0]
        at, dof = int(model.jnt_qposadr[model.body_jntadr[first.body]]), first.velocity
        targets |= {
            "position": (data.qpos, slice(at, at + 3)), "quaternion": (data.qpos, slice(at + 3, at + 7)),
            "velocity": (data.qvel, slice(dof, dof + 3)), "angular_velocity": (data.qvel, slice(dof + 3, dof + 6)),
        }  # fmt: skip
    scalar = list(plant.scalar_joints)
    if scalar:
        targets["joint_position"] = (data.qpos, model.jnt_qposadr[scalar])
        targets["joint_velocity"] = (data.qvel, model.jnt_dofadr[scalar])
    checked = {}
    for name, value in values.items():
        if name not in targets:
            raise UnknownNameError(f"output of {plant.path} to place it by", name, targets)
        array, where = targets[name]
        try:
            numbers = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if numbers.shape != array[where].shape or not np.isfinite(numbers).all() or (
            name == "quaternion" and not numbers.any()
        ):  # fmt: skip
            raise ArgumentError(
                f"{plant.path}: place: {name}: expected {array[where].size} finite numbers"
                f"{', not all 0' * (name == 'quaternion')}, got {value!r:.60}"
            )
        checked[name] = numbers
    for name, numbers in checked.items():
        array, where = targets[name]
        array[where] = numbers / np.linalg.norm(numbers) if name == "quaternion" else numbers
    if "velocity" in checked:  # from the axes of the body to the world's
        attitude = data.qpos[targets["quaternion"][1]].copy()
        mujoco.mju_rotVecQuat(data.qvel[targets["velocity"][1]], checked["velocity"], attitude)
    plant.take_up_present()
