"""Actuators and outputs of a compiled MuJoCo model.

Outputs are functions of the state: poses and rates, tendon lengths and sensors. MuJoCo evaluates sensors of forces and
accelerations at the beginning of its step, all other sensors at the present state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rtmms.base.errors import UnknownNameError
from rtmms.base.spatial import Array
from rtmms.plant.protocol import Channel

_SENSOR_UNITS = {
    "ACCELEROMETER": "m/s2", "VELOCIMETER": "m/s", "GYRO": "rad/s", "FORCE": "N", "TORQUE": "N m", "TOUCH": "N",
    "MAGNETOMETER": "T", "RANGEFINDER": "m", "BALLANGVEL": "rad/s", "FRAMEPOS": "m", "FRAMELINVEL": "m/s",
    "FRAMEANGVEL": "rad/s", "FRAMELINACC": "m/s2", "FRAMEANGACC": "rad/s2", "SUBTREECOM": "m",
    "SUBTREELINVEL": "m/s", "SUBTREEANGMOM": "kg m2/s", "GEOMDIST": "m", "GEOMFROMTO": "m", "E_POTENTIAL": "J",
    "E_KINETIC": "J", "CLOCK": "s",
}  # fmt: skip
_OF_JOINTS = {
    "JOINTPOS": 0,
    "JOINTLIMITPOS": 0,
    "JOINTVEL": 1,
    "JOINTLIMITVEL": 1,
    "JOINTACTFRC": 2,
    "JOINTLIMITFRC": 2,
}
_OF_TENDONS = {"TENDONPOS": 0, "TENDONLIMITPOS": 0, "TENDONVEL": 1, "TENDONLIMITVEL": 1}
_TURNING = ("rad", "rad/s", "N m")
_SLIDING = ("m", "m/s", "N")
_IN_WORLD = ("FRAMEPOS", "FRAMELINVEL", "FRAMEANGVEL", "FRAMELINACC", "FRAMEANGACC", "SUBTREECOM", "SUBTREELINVEL",
             "SUBTREEANGMOM", "GEOMNORMAL", "GEOMFROMTO")  # fmt: skip


@dataclass(frozen=True)
class FreeBody:
    """Body with a free joint.

    Attributes
    ----------
    prefix : str
        Prefix of its outputs: '' for the first one, 'NAME.' for others.
    body : int
        Index of the body.
    velocity : int
        Index of its linear velocity in qvel.
    """

    prefix: str
    body: int
    velocity: int


def object_name(mujoco: Any, model: Any, kind: str, number: int) -> str:
    """Return the name of an object.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    kind : str
        'JOINT', 'BODY', ... of mjtObj.
    number : int
        Index of the object.

    Returns
    -------
    str
        '' for none.
    """
    return mujoco.mj_id2name(model, int(getattr(mujoco.mjtObj, f"mjOBJ_{kind}")), number) or ""


def keyframe_number(mujoco: Any, model: Any, path: str, preset: str | None) -> int | None:
    """Return the index of a keyframe by its name or its number.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    path : str
        The file, for errors.
    preset : str | None
        Name or number.

    Returns
    -------
    int | None
        None for None.

    Raises
    ------
    UnknownNameError
        There is no such keyframe.
    """
    if preset is None:
        return None
    names = [object_name(mujoco, model, "KEY", k) or str(k) for k in range(model.nkey)]
    if preset in names:
        return names.index(preset)
    if preset.isdecimal() and int(preset) < model.nkey:
        return int(preset)
    raise UnknownNameError(f"keyframe of {path}", preset, names)


def actuators_of(mujoco: Any, model: Any, neutral: Array) -> tuple[Channel, ...]:
    """Return the actuators of a model: named as in the file, else after the joint that they drive.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    neutral : Array
        (nu,) commands at rest: those of the keyframe, else 0.

    Returns
    -------
    tuple[Channel, ...]
        In the order of the model.
    """
    result: list[Channel] = []
    used = {object_name(mujoco, model, "ACTUATOR", k) for k in range(model.nu)}
    joint_driven = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    for k in range(model.nu):
        joint = int(model.actuator_trnid[k, 0]) if model.actuator_trntype[k] in joint_driven else -1
        name = object_name(mujoco, model, "ACTUATOR", k)
        if not name:
            driven = object_name(mujoco, model, "JOINT", joint) if joint >= 0 else ""
            name = driven if driven and driven not in used else f"actuator{k}"
            used.add(name)
        limited = bool(model.actuator_ctrllimited[k])
        lower, upper = (float(item) for item in model.actuator_ctrlrange[k])
        neutral_value = float(neutral[k])
        result.append(
            Channel(
                name, _actuator_unit(mujoco, model, k, joint), (), "",
                lower if limited else None, upper if limited else None,
                min(max(neutral_value, lower), upper) if limited else neutral_value,
            )
        )  # fmt: skip
    return tuple(result)


def _actuator_unit(mujoco: Any, model: Any, k: int, joint: int) -> str:
    """Return the unit of a command.

    It is that of a force, a position or a velocity at a joint without gear; '' where MJCF has none.
    """
    if joint < 0 or model.actuator_gear[k, 0] != 1.0 or not _is_scalar(mujoco, model, joint):
        return ""
    if model.actuator_gaintype[k] != int(mujoco.mjtGain.mjGAIN_FIXED):
        return ""
    units = _units_of_joint(mujoco, model, joint)
    gain = float(model.actuator_gainprm[k, 0])
    if model.actuator_biastype[k] == int(mujoco.mjtBias.mjBIAS_NONE):
        return units[2] if gain == 1.0 else ""
    if model.actuator_biastype[k] == int(mujoco.mjtBias.mjBIAS_AFFINE):
        _, position, velocity = (float(item) for item in model.actuator_biasprm[k, :3])
        if position == -gain:
            return units[0]
        if position == 0.0 and velocity == -gain:
            return units[1]
    return ""


def _is_scalar(mujoco: Any, model: Any, joint: int) -> bool:
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return int(model.jnt_type[joint]) in kinds


def _units_of_joint(mujoco: Any, model: Any, joint: int) -> tuple[str, str, str]:
    return _SLIDING if int(model.jnt_type[joint]) == int(mujoco.mjtJoint.mjJNT_SLIDE) else _TURNING


class Source(NamedTuple):
    """Place of an output in MuJoCo's arrays of many simulations.

    Attributes
    ----------
    name : str
        Name of the output.
    field : str
        Field of MjData.
    where : Any
        Indices of the numbers in the field, flattened.
    body : int
        Body whose attitude turns the numbers from the world into the body; -1: no turn.
    shape : tuple[int, ...]
        Shape of the output.
    """

    name: str
    field: str
    where: Any
    body: int
    shape: tuple[int, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of MjData that `sample` needs."""
        return (self.field,) if self.body < 0 else (self.field, "xmat")

    def sample(self, fields: Mapping[str, Array], out: Array) -> None:
        """Write the output of each simulation.

        Parameters
        ----------
        fields : Mapping[str, Array]
            Arrays of MuJoCo by field.
        out : Array
            (simulations, *shape) result.
        """
        numbers = fields[self.field].reshape(len(out), -1)[:, self.where]
        if self.body < 0:
            out[:] = numbers.reshape(len(out), *self.shape)
            return
        for k in range(len(out)):  # the product of a single run, for its bits
            numbers[k].dot(fields["xmat"][k, self.body].reshape(3, 3), out[k])


class Outputs:
    """Outputs of a model, and the arrays with their present values.

    Parameters
    ----------
    mujoco, model, data : Any
        The module, the compiled model and its state.

    Attributes
    ----------
    channels : tuple of Channel
        The outputs.
    values : dict of str to ndarray
        By name: read-only views of MuJoCo's arrays where these have the output, else arrays that `read` rewrites.
    free : tuple of FreeBody
        Bodies with a free joint, in the order of the model.
    scalar_joints : tuple of int
        Hinges and slides, in the order of `joint_position`.
    sources : dict of str to Source
        By name: places of an output in batches of simulations.
    """

    def __init__(self, mujoco: Any, model: Any, data: Any) -> None:
        self._mujoco, self._data = mujoco, data
        self.sources: dict[str, Source] = {}
        self.channels: tuple[Channel, ...] = ()
        self.values: dict[str, Array] = {}
        free, balls = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
        joints = range(model.njnt)
        self.scalar_joints = tuple(k for k in joints if _is_scalar(mujoco, model, k))
        self.free = self._free_bodies(model, [k for k in joints if model.jnt_type[k] == free])
        self._turned: list[tuple[Array, Array, Array]] = []
        self._gathered: list[tuple[Array, Array, Any]] = []
        for item in self.free:
            first, body, prefix = item.velocity, item.body, item.prefix
            linear, angular = slice(first, first + 3), slice(first + 3, first + 6)
            self._add(f"{prefix}position", "m", data.xpos[body], "world", ("xpos", slice(3 * body, 3 * body + 3)))
            self._add(f"{prefix}quaternion", "", data.xquat[body], "world", ("xquat", slice(4 * body, 4 * body + 4)))
            velocity, attitude = np.zeros(3), data.xmat[body].reshape(3, 3)
            self._turned.append((velocity, data.qvel[linear], attitude))
            self._add(f"{prefix}velocity", "m/s", velocity, "body", ("qvel", linear), body)
            self._add(f"{prefix}angular_velocity", "rad/s", data.qvel[angular], "body", ("qvel", angular))
        if self.scalar_joints:
            chosen = list(self.scalar_joints)
            units = {_units_of_joint(mujoco, model, k)[:2] for k in chosen}
            angle, rate = units.pop() if len(units) == 1 else ("", "")
            self._gather("joint_position", angle, "qpos", model.jnt_qposadr[chosen])
            self._gather("joint_velocity", rate, "qvel", model.jnt_dofadr[chosen])
        for k in (k for k in joints if model.jnt_type[k] == balls):
            name = object_name(mujoco, model, "JOINT", k) or f"ball{k}"
            place, dof = int(model.jnt_qposadr[k]), int(model.jnt_dofadr[k])
            self._gather(f"{name}.quaternion", "", "qpos", np.arange(place, place + 4))
            self._gather(f"{name}.angular_velocity", "rad/s", "qvel", np.arange(dof, dof + 3))
        if model.ntendon:
            spatial = not any(self._is_fixed_tendon(model, k) for k in range(model.ntendon))
            self._gather("tendon_length", "m" if spatial else "", "ten_length", np.arange(model.ntendon))
            self._gather("tendon_velocity", "m/s" if spatial else "", "ten_velocity", np.arange(model.ntendon))
        if model.na:
            self._gather("activation", "", "act", np.arange(model.na))
        for k in range(model.nsensor):
            self._add_sensor(model, k)

    def _free_bodies(self, model: Any, joints: Iterable[int]) -> tuple[FreeBody, ...]:
        result: list[FreeBody] = []
        for k in joints:
            body = int(model.jnt_bodyid[k])
            name = object_name(self._mujoco, model, "BODY", body) or f"body{body}"
            result.append(FreeBody(f"{name}." if result else "", body, int(model.jnt_dofadr[k])))
        return tuple(result)

    def _add(
        self, name: str, unit: str, value: Array, frame: str, source: tuple[str, Any], body: int = -1
    ) -> None:  # fmt: skip
        unique, number = name, 2
        while unique in self.values:
            unique, number = f"{name}_{number}", number + 1
        self.values[unique] = value.view()
        self.values[unique].flags.writeable = False
        self.channels += (Channel(unique, unit, value.shape, frame),)
        self.sources[unique] = Source(unique, *source, body, value.shape)

    def _gather(self, name: str, unit: str, field: str, indices: Any) -> None:
        """Add an output of numbers of a field of MjData: a view where they are in a row."""
        indices, source = np.asarray(indices, dtype=np.intp), getattr(self._data, field)
        first, count = int(indices[0]), len(indices)
        if bool((indices == np.arange(first, first + count)).all()):
            where = slice(first, first + count)
            self._add(name, unit, source[where], "", (field, where))
            return
        out = np.zeros(count)
        self._gathered.append((out, source, indices))
        self._add(name, unit, out, "", (field, indices))

    def _add_sensor(self, model: Any, k: int) -> None:
        mujoco = self._mujoco
        kind = mujoco.mjtSensor(int(model.sensor_type[k])).name.removeprefix("mjSENS_")
        name = object_name(mujoco, model, "SENSOR", k) or f"{kind.lower()}{k}"
        if name in self.values:
            name = f"sensor.{name}"
        first, size = int(model.sensor_adr[k]), int(model.sensor_dim[k])
        where = slice(first, first + size)
        numbers: Array = self._data.sensordata[where]
        of_world = kind in _IN_WORLD and int(model.sensor_refid[k]) < 0
        shape = () if size == 1 else (size,)
        unit, frame = self._sensor_unit(model, k, kind), "world" if of_world else ""
        self._add(name, unit, numbers.reshape(shape), frame, ("sensordata", where))

    def _sensor_unit(self, model: Any, k: int, kind: str) -> str:
        of = int(model.sensor_objid[k])
        if kind in _OF_JOINTS:
            return _units_of_joint(self._mujoco, model, of)[_OF_JOINTS[kind]]
        if kind in _OF_TENDONS:
            return "" if self._is_fixed_tendon(model, of) else _SLIDING[_OF_TENDONS[kind]]
        return _SENSOR_UNITS.get(kind, "")

    def _is_fixed_tendon(self, model: Any, tendon: int) -> bool:
        first = int(model.tendon_adr[tendon])
        return int(model.wrap_type[first]) == int(self._mujoco.mjtWrap.mjWRAP_JOINT)

    def read(self) -> dict[str, Array]:
        """Compute the outputs that are no views, and return copies of all.

        Returns
        -------
        dict[str, Array]
            By name; later steps do not change them.
        """
        for velocity, of_world, attitude in self._turned:
            of_world.dot(attitude, velocity)  # R^T v
        for out, source, where in self._gathered:
            source.take(where, out=out)
        return {name: value.copy() for name, value in self.values.items()}


class MujocoModelState(Protocol):
    """Part of `rtmms.mujoco_models.plant.MujocoPlant` that the analysis uses: a model with its state."""

    path: str
    dt: float
    actuators: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    model: Any
    data: Any
    keywords: Any

    @property
    def mujoco(self) -> Any:
        """The module `mujoco`."""
        ...

    @property
    def free_bodies(self) -> tuple[FreeBody, ...]:
        """Bodies with a free joint, in the order of the model."""
        ...

    @property
    def scalar_joints(self) -> tuple[int, ...]:
        """Hinges and slides, in the order of `joint_position`."""
        ...

    def output_sources(self, names: Sequence[str]) -> list[Source]:
        """Return the places of outputs in batches of simulations.

        Parameters
        ----------
        names : Sequence[str]
            Names of the outputs.

        Returns
        -------
        list[Source]
            One for each name.
        """
        ...

    def take_up_present(self) -> None:
        """Compute the quantities that follow from the positions and velocities in `data`."""
        ...

    def snapshot(self) -> bytes:
        """Return the state as bytes.

        Returns
        -------
        bytes
            For `restore`.
        """
        ...

    def restore(self, blob: bytes) -> None:
        """Restore a snapshot.

        Parameters
        ----------
        blob : bytes
            Bytes from `snapshot`.
        """
        ...
