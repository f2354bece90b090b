"""MuJoCo model as a plant: `rtmms run robot.xml`, and `rtmms run robot.urdf --set engine=mujoco`."""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.jit import kernel
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, parameters_of, read_value
from rtmms.base.snapshot import pack_state, unpack_state
from rtmms.base.spatial import Array
from rtmms.mujoco_models.channels import FreeBody, Outputs, Source, actuators_of, keyframe_number, object_name
from rtmms.mujoco_models.drawing import LIQUID_DENSITY, drawn_shape
from rtmms.mujoco_models.fields import Change, field_names, read_field, read_parameters
from rtmms.mujoco_models.library import load_model, model_bytes, one_line, recent_warnings
from rtmms.plant.optional_protocols import RolledOut
from rtmms.plant.protocol import Environment, Plant
from rtmms.plant.validation import read_command, read_seed, refuse_substeps

if TYPE_CHECKING:
    from rtmms.analysis.linearise import Linear
    from rtmms.mujoco_models.coordinates import MujocoChart

MAX_STATE = 1e10
"""Largest coordinate, velocity or acceleration (mjMAXVAL); MuJoCo counts larger ones as unstable."""
_STEP_TOLERANCE = 1e-9
"""Relative error within which dt is a multiple of the model's step."""
_VELOCITIES_DONE = 2
"""mjSTAGE_VEL: stages up to it are skipped."""
_NUMBER = np.dtype(np.float64)
_REPEATED = 16
"""Most steps that a failing step repeats to reach the state before it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Parameters of a MuJoCo plant that are not fields of single objects; their defaults are the model's.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    engine: Annotated[str, Parameter(
        "Simulator of the file; rtmms has parameters of its own.", choices=("mujoco", "rtmms"),
    )] = "mujoco"
    substeps: Annotated[int, Parameter("Steps of MuJoCo in a step of the plant.")] = 1
    gravity_m_s2: Annotated[tuple[float, float, float], Parameter(
        "Gravity, world frame; one number: along -z.", "m/s2", signed=True, live=True,
    )] = (0.0, 0.0, -9.81)
    wind_m_s: Annotated[tuple[float, float, float], Parameter(
        "Velocity of the fluid, world frame.", "m/s", signed=True, live=True,
    )] = (0.0, 0.0, 0.0)
    fluid_density_kg_m3: Annotated[float, Parameter(
        "Density of the fluid, which acts by drag and lift alone.", "kg/m3", ge=0, live=True,
    )] = 0.0
    fluid_viscosity_pa_s: Annotated[float, Parameter("Viscosity of the fluid.", "Pa s", ge=0, live=True)] = 0.0
    # fmt: on


class _Parameters(dict[str, Any]):
    """Options and the fields that were set; another numeric field is read from the model at its use."""

    def __init__(self, read: Callable[[str], Any], values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._read = read

    def __missing__(self, name: str) -> Any:
        if name.count("/") < 2:
            raise KeyError(name)
        return self._read(name)


_LIVE = tuple(name for name, parameter in parameters_of(Options).items() if parameter.live)


def load(path: str, /, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> Plant:
    """Build the plant of an MJCF file (for `rtmms.load('robot.xml')`).

    Parameters
    ----------
    path : str
        The file. Files that it names must be in its folder or below.
    dt : float | None, optional
        Step, s: a multiple of the model's step. Default: the model's.
    preset : str | None, optional
        A keyframe by its name, or by its number.
    **parameters : Any
        Fields of `Options`, and numeric fields by KIND/NAME/FIELD (rtmms.mujoco_models.fields). With engine=rtmms those
        of `rtmms.mujoco_models.own_engine.OwnOptions`.

    Returns
    -------
    Plant
        The plant.

    Raises
    ------
    ModelError
        MuJoCo is missing, or the file, a file that it names, or a parameter is wrong.
    """
    if parameters.get("engine") == "rtmms":
        from rtmms.mujoco_models.own_engine import load_own

        return load_own(path, dt=dt, preset=preset, **parameters)
    mujoco, model = load_model(path)
    return MujocoPlant(mujoco, model, path, dt, preset, parameters)


@kernel(fused=False)
def accept_command(command: Array, applied: Array, recent_commands: Array, row: int) -> bool:
    """Write a command into `applied` and into a row of `recent_commands`.

    Parameters
    ----------
    command : Array
        (n_actuators,) command.
    applied : Array
        (n_actuators,) MuJoCo's `ctrl`.
    recent_commands : Array
        (steps, n_actuators) commands since the state that the plant has saved.
    row : int
        Row of `recent_commands`.

    Returns
    -------
    bool
        False, with nothing written, for a command that is not finite.
    """
    for k in range(command.shape[0]):
        if not math.isfinite(command[k]):
            return False
    for k in range(command.shape[0]):
        applied[k] = command[k]
        recent_commands[row, k] = command[k]
    return True


class MujocoPlant(Plant):
    """Model that MuJoCo simulates.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    path : str
        The file, for errors.
    dt : float | None
        Step, s; None: the model's.
    preset : str | None
        A keyframe by its name, or by its number.
    parameters : Mapping[str, Any]
        Fields of `Options`, and numeric fields by KIND/NAME/FIELD.
    kind : type[Options], default Options
        Class of the options.

    Attributes
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
        MuJoCo's own objects. Change them through `set`, `step` and `restore` alone.

    Raises
    ------
    ModelError
        A parameter is wrong, or the model has nothing to run.
    """

    trace_outputs: tuple[str, ...] = ()
    step_time_varies = "contacts and the iterations of MuJoCo's solver"
    _known: Array
    """Last command whose shape and type were checked: a loop passes the same array in each step."""
    _recent_commands: Array
    """Commands of the steps since the saved state; `_row` of them."""
    _row: int

    def __init__(
        self, mujoco: Any, model: Any, path: str, dt: float | None, preset: str | None,
        parameters: Mapping[str, Any], kind: type[Options] = Options,
    ) -> None:  # fmt: skip
        self.path, self.model, self._mujoco = path, model, mujoco
        self._declared = parameters_of(kind)
        self._refuse_sleep()
        self.robot = path
        self._fields: dict[str, Any] = {}
        self._unchanged: dict[str, Any] = {}
        self._scratch: Any = None
        self._base_key = hashlib.sha256(mujoco.__version__.encode() + model_bytes(mujoco, model)).digest()
        self.keywords = self._model_options(kind)
        self._substeps(dt, parameters)
        self._keyframe = keyframe_number(mujoco, model, path, preset)
        self._configure()
        options, changes = self._read(parameters)
        self._apply(options, changes, parameters)
        self.data = self._new_data()
        neutral = np.zeros(model.nu) if self._keyframe is None else np.array(model.key_ctrl[self._keyframe])
        self.actuators = actuators_of(mujoco, model, neutral)
        self._neutral = np.array([actuator.neutral for actuator in self.actuators])
        self._outputs = Outputs(mujoco, model, self.data)
        self.outputs = self._outputs.channels
        output_names = ("position", "quaternion", "velocity")
        self.trace_outputs = output_names if self._outputs.free else ()
        if not self.actuators and not self.outputs:
            raise ModelError(f"{path}: expected actuators, joints or sensors, got none: nothing to run")
        self._signature = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        self._state = np.zeros(mujoco.mj_stateSize(model, self._signature))
        self._views()
        self._steps = 0
        self.reset()

    # --- what a plant has -----------------------------------------------------------------------------------------

    @override
    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0: the model's initial state, or the keyframe of the preset; `seed` is not used.

        Raises
        ------
        ModelError
            MuJoCo cannot evaluate the initial state.
        """
        read_seed(self.path, seed)
        mujoco, model, data = self._mujoco, self.model, self.data
        try:
            if self._keyframe is None:
                mujoco.mj_resetData(model, data)
            else:
                mujoco.mj_resetDataKeyframe(model, data, self._keyframe)
            data.time = 0.0
            self._ctrl[:] = self._neutral
            mujoco.mj_getState(model, data, self._state, self._signature)
            mujoco.mj_forward(model, data)  # sensors of forces and accelerations
            self._take_up()
        except mujoco.FatalError as fault:
            raise ModelError(f"{self.path}: MuJoCo cannot evaluate the initial state: {one_line(fault)}") from None
        self._steps = 0
        self._refuse_unsound_start()

    @override
    def step(self, command: Array) -> None:
        """Advance by dt with the command held; MuJoCo clamps it to `ctrlrange`.

        Raises
        ------
        ArgumentError
            The command has another shape, or is not finite.
        DivergedError
            The state is no longer finite, or MuJoCo ran out of memory for contacts. The plant is at its last state.
        """
        if command is not self._known:
            if type(command) is not np.ndarray or command.dtype is not _NUMBER or command.shape != self._shape or (
                not command.flags.c_contiguous
            ):  # fmt: skip
                command = read_command(self.path, self.actuators, command)
            self._known = command
        row = self._row
        if row == _REPEATED:
            self._save()
            row = 0
        if not accept_command(command, self._ctrl, self._recent_commands, row):
            read_command(self.path, self.actuators, command)
        try:
            self._advance()
        except self._mujoco.FatalError as fault:
            self._diverge("MuJoCo", f"stopped: {one_line(fault)}")
        if self._warnings.raw != self._no_warnings:
            self._diverge_by_warning()
        self._row = row + 1
        self._steps += 1

    def _advance(self) -> None:
        """Take a step with the command in place."""
        model, data = self.model, self.data
        self._first(model, data)
        if self._more:
            self._mujoco.mj_step(model, data, self._more)
        self._step1(model, data)  # poses, velocities and their sensors at the new state

    @override
    def observe(self) -> dict[str, Array]:
        return self._outputs.read()

    @override
    def snapshot(self) -> bytes:
        """Return MuJoCo's whole state (mjSTATE_INTEGRATION) and the readings of the sensors."""
        self._save()
        return pack_state(self._key(), self.dt, self._steps, self._state, self._sensors)

    @override
    def restore(self, blob: bytes) -> None:
        """Go back to a snapshot of the same model with the same parameters."""
        arrays = {"state": self._state, "sensors": self._sensors}
        steps, result = unpack_state(blob, self.path, self._key(), self.dt, arrays)
        self._put(result["state"], result["sensors"])
        self._steps = steps

    # --- analysis -------------------------------------------------------------------------------------------------

    @property
    def mujoco(self) -> Any:
        """The module `mujoco`."""
        return self._mujoco

    @property
    def free_bodies(self) -> tuple[FreeBody, ...]:
        """Bodies with a free joint, in the order of the model."""
        return self._outputs.free

    @property
    def scalar_joints(self) -> tuple[int, ...]:
        """Hinges and slides, in the order of `joint_position`."""
        return self._outputs.scalar_joints

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
        return [self._outputs.sources[name] for name in names]

    def present(self) -> tuple[Array, int]:
        """Return the present state for rollouts.

        Returns
        -------
        tuple[Array, int]
            Copy of the state with the readings of the sensors, and the steps since the reset.
        """
        self._save()
        return np.concatenate([self._state, self._sensors]), self._steps

    def put(self, state: Array, steps: int) -> None:
        """Go to a state from `present`.

        Parameters
        ----------
        state : Array
            State with the readings of the sensors.
        steps : int
            Steps since the reset.
        """
        width = len(self._state)
        self._put(state[:width], state[width:])
        self._steps = steps

    def take_up_present(self) -> None:
        """Compute the quantities that follow from the positions and velocities in `data`; readings of forces stay."""
        self._save()
        self._take_up()

    def place(self, **values: Any) -> None:
        """Change the present state by the names of outputs; others stay.

        Parameters
        ----------
        **values : Any
            position, quaternion, velocity, angular_velocity of the first free body, joint_position, joint_velocity: in
            the units and frames of these outputs.

        Raises
        ------
        UnknownNameError, ArgumentError
            The model has no such output, or a value does not fit; nothing has changed then.
        """
        from rtmms.mujoco_models.coordinates import place

        place(self, values)

    def chart(self) -> MujocoChart:
        """Return coordinates around the present state (rtmms.analysis.chart.Chart).

        Returns
        -------
        MujocoChart
            The chart.
        """
        from rtmms.mujoco_models.coordinates import MujocoChart

        return MujocoChart(self)

    def step_derivatives(self, command: Array) -> Linear | None:
        """Return A and B of a step by mjd_transitionFD.

        Parameters
        ----------
        command : Array
            (n_actuators,) command of the step.

        Returns
        -------
        Linear | None
            None with RK4.
        """
        from rtmms.mujoco_models.coordinates import step_derivatives

        return step_derivatives(self, command)

    def can_roll_out(self) -> bool:
        """Return whether the installed MuJoCo has `mujoco.batch`.

        Returns
        -------
        bool
            True where it has.
        """
        from rtmms.mujoco_models.batches import batch_class

        return batch_class() is not None

    def roll_out(
        self, starts: Array, commands: Array, steps: int, every: int, names: Sequence[str], threads: int
    ) -> RolledOut:
        """Advance many runs by `mujoco.batch` (rtmms.plant.optional_protocols.SupportsRollouts).

        Parameters
        ----------
        starts : Array
            (runs, width) states from `present`.
        commands : Array
            (runs or 1, steps or 1, n_actuators) commands.
        steps, every : int
            Steps of a run, and from sample to sample.
        names : Sequence[str]
            Outputs to sample.
        threads : int
            Number of threads.

        Returns
        -------
        RolledOut
            Samples, states at the end, and which runs are sound.
        """
        from rtmms.mujoco_models.batches import batch_class, roll_out

        return roll_out(self, batch_class(), starts, commands, steps, every, names, threads)

    # --- what a plant may have ------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """Options, and the numeric fields that were set."""
        return _Parameters(self._read_field, {**asdict(self.keywords), **self._fields})

    def _read_field(self, name: str) -> Any:
        numbers = read_field(self._mujoco, self.model, self.path, name).tolist()
        return numbers[0] if len(numbers) == 1 else numbers

    @property
    def settable(self) -> tuple[str, ...]:
        """Names of parameters that may change while the plant runs."""
        return (*_LIVE, *field_names(self._mujoco, self.model))

    def set(self, **values: Any) -> None:
        """Change parameters from the next step on; they stay over a reset. Either all change or none.

        Parameters
        ----------
        **values : Any
            Values by name.

        Raises
        ------
        ModelError
            A parameter is unknown, fixed, or cannot have this value.
        """
        if not values:
            raise ModelError(f"set: expected parameter = value, got nothing; what can change: {', '.join(_LIVE)}, ...")
        fixed = next((name for name in values if name in self._declared and name not in _LIVE), None)
        if fixed is not None:
            raise ModelError(
                f"set: {self.path}: {fixed} cannot change while the plant runs; restart with --set {fixed}=..."
            )
        options, changes = self._read(values)
        self._save()
        self._apply(options, changes, values)
        self._take_up()

    def summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """Return the mean speed of the first free body, from its start to its end.

        Parameters
        ----------
        time : Array
            (k,) times, s.
        trace : Mapping[str, Array]
            Outputs by name, each (k, ...).

        Returns
        -------
        dict[str, float | None]
            m/s, by name; empty without a free body.
        """
        if "position" not in trace or len(time) < 2:
            return {}
        distance = float(np.linalg.norm(trace["position"][-1] - trace["position"][0]))
        return {"mean_speed_m_s": distance / float(time[-1] - time[0])}

    @property
    def shape(self) -> Mapping[str, Any]:
        """Geometry for viewers."""
        return drawn_shape(self._mujoco, self.model, self._outputs)

    def environment(self) -> Environment:
        """Return the present gravity and fluid.

        Returns
        -------
        Environment
            Gravity in m/s2, density in kg/m3.
        """
        x, y, z = (float(item) for item in self.model.opt.gravity)
        density = float(self.model.opt.density)
        return Environment((x, y, z), density if density >= LIQUID_DENSITY else 0.0)

    # --- building -------------------------------------------------------------------------------------------------

    def _refuse_sleep(self) -> None:
        bit = getattr(self._mujoco.mjtEnableBit, "mjENBL_SLEEP", None)
        if bit is not None and self.model.opt.enableflags & int(bit):
            raise ModelError(
                f'{self.path}: <flag sleep="enable"/>: MuJoCo cannot restore sleeping bodies from a snapshot; remove '
                "the flag"
            )

    def _configure(self) -> None:
        """Stop MuJoCo from resetting an unstable state by itself: the plant reports it."""
        mujoco, option = self._mujoco, self.model.opt
        option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        several_stages = option.integrator == int(mujoco.mjtIntegrator.mjINT_RK4)
        bits = (getattr(mujoco.mjtEnableBit, f"mjENBL_{name}", 0) for name in ("SPECULATIVE", "FWDINV"))
        whole = any(option.enableflags & int(bit) for bit in bits)
        self._first = mujoco.mj_step if whole else self._runge_kutta if several_stages else mujoco.mj_step2
        """MuJoCo's first step in a step of the plant. mj_step1 has computed positions and velocities before it."""

    def _runge_kutta(self, model: Any, data: Any) -> None:
        """Take a step by RK4 after mj_step1; mj_step2 would take one by Euler."""
        mujoco = self._mujoco
        mujoco.mj_forwardSkip(model, data, _VELOCITIES_DONE, 0)
        mujoco.mj_checkAcc(model, data)
        mujoco.mj_RungeKutta(model, data, 4)

    def _new_data(self) -> Any:
        try:
            return self._mujoco.MjData(self.model)
        except (self._mujoco.FatalError, MemoryError) as fault:
            raise ModelError(
                f"{self.path}: MuJoCo cannot allocate the memory of this model: {one_line(fault)}"
            ) from None

    def _views(self) -> None:
        """Store views of MuJoCo's arrays, once: an attribute of MjData costs a look-up."""
        data, mujoco = self.data, self._mujoco
        self._ctrl, self._sensors = data.ctrl, data.sensordata
        self._saved_sensors = np.zeros_like(self._sensors)
        counts = data.warning.number  # in one block with what MuJoCo stores of a warning; all 0 without one
        size = (len(counts) - 1) * counts.strides[0] + counts.itemsize
        self._warnings = (ctypes.c_char * size).from_address(counts.ctypes.data)
        self._no_warnings = bytes(size)
        self._shape = self._neutral.shape
        self._known = self._neutral
        self._recent_commands = np.zeros((_REPEATED, len(self._neutral)))
        self._row = 0
        accept_command(self._neutral, self._ctrl, self._recent_commands, 0)  # compiles
        self._more = self.keywords.substeps - 1
        self._step1 = mujoco.mj_step1

    def _model_options(self, kind: type[Options]) -> Options:
        option = self.model.opt
        x, y, z = (float(item) for item in option.gravity)
        u, v, w = (float(item) for item in option.wind)
        return kind(
            gravity_m_s2=(x, y, z), wind_m_s=(u, v, w), fluid_density_kg_m3=float(option.density),
            fluid_viscosity_pa_s=float(option.viscosity),
        )  # fmt: skip

    def _substeps(self, dt: float | None, values: Mapping[str, Any]) -> None:
        """Choose MuJoCo's step and the number of its steps in a step of the plant."""
        model_step = float(self.model.opt.timestep)
        count = 1
        if "substeps" in values:
            count = read_value(f"{self.path}: substeps{{}}", 1, parameters_of(Options)["substeps"], values["substeps"])
        elif dt is not None and math.isfinite(dt) and dt > 0.0:
            count = round(dt / model_step)
            if count < 1 or abs(dt - count * model_step) > _STEP_TOLERANCE * dt:
                near = sorted({max(count - 1, 1) * model_step, max(count, 1) * model_step, (count + 1) * model_step})
                raise ModelError(
                    f"{self.path}: dt must be a multiple of the model's step of {model_step:g} s, got {dt:g} "
                    "s; expected "
                    f"{' or '.join(f'{item:g}' for item in near)} s, or give the number of its steps (--set substeps=N)"
                )
        refuse_substeps(self.path, count)
        step = count * model_step if dt is None else float(dt)
        if not (math.isfinite(step) and step > 0.0):
            raise ModelError(f"{self.path}: dt must be > 0 s, got {step:g}")
        if dt is not None and "substeps" in values:
            self.model.opt.timestep = step / count
        self.dt = step
        self.keywords = replace(self.keywords, substeps=count)

    # --- parameters -----------------------------------------------------------------------------------------------

    def _read(self, values: Mapping[str, Any]) -> tuple[Options, list[Change]]:
        """Return options and changes of fields for given values; nothing is changed yet."""
        options, changes = read_parameters(self._mujoco, self.model, self.path, self.keywords, values)
        return options, changes

    def _apply(self, options: Options, changes: list[Change], values: Mapping[str, Any]) -> None:
        option, mujoco, model = self.model.opt, self._mujoco, self.model
        self.keywords = options
        option.gravity[:] = options.gravity_m_s2
        option.wind[:] = options.wind_m_s
        option.density, option.viscosity = options.fluid_density_kg_m3, options.fluid_viscosity_pa_s
        fields = [name for name in values if name not in self._declared]
        for name in fields:
            self._unchanged.setdefault(name, self._read_field(name))
        for change in changes:
            change.apply()
        if any(change.derived for change in changes):
            if self._scratch is None:
                self._scratch = self._new_data()
            mujoco.mj_setConst(model, self._scratch)
        for name in fields:
            self._fields[name] = self._read_field(name)
            if self._fields[name] == self._unchanged[name]:  # the model of the file again, as its snapshots have it
                del self._fields[name]

    def _key(self) -> bytes:
        """Return bytes of all that determines the dynamics: the model, MuJoCo's version, and the set values."""
        now = repr((float(self.model.opt.timestep), sorted(self.parameters.items())))
        return hashlib.sha256(self._base_key + now.encode()).digest()

    # --- state ----------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Save the present state, to which a step that fails goes back."""
        self._mujoco.mj_getState(self.model, self.data, self._state, self._signature)
        self._saved_sensors[:] = self._sensors
        self._row = 0

    def _take_up(self) -> None:
        """Compute the quantities that follow from `_state` under the present parameters; sensors of forces stay."""
        mujoco, model, data = self._mujoco, self.model, self.data
        mujoco.mj_setState(model, data, self._state, self._signature)
        mujoco.mj_step1(model, data)
        self._saved_sensors[:] = self._sensors
        self._row = 0

    def _put(self, state: Array, sensors: Array) -> None:
        """Go to a state, with the readings of the sensors that were taken there."""
        mujoco, model, data = self._mujoco, self.model, self.data
        mujoco.mj_resetData(model, data)  # no count of warnings stays
        np.copyto(self._state, state)
        np.copyto(self._sensors, sensors)
        self._take_up()
        np.copyto(self._sensors, sensors)
        self._saved_sensors[:] = sensors

    def _refuse_unsound_start(self) -> None:
        if self.data.warning.number.any():
            raise ModelError(
                f"{self.path}: MuJoCo warns about the initial state: {self._warning_text()}; correct the model"
            )

    def _warning_text(self) -> str:
        return one_line(recent_warnings[-1]) if recent_warnings else "MuJoCo counts a warning"

    def _diverge_by_warning(self) -> None:
        mujoco = self._mujoco
        number = self.data.warning.number

        def counted(name: str) -> bool:
            return bool(number[int(getattr(mujoco.mjtWarning, name))])

        for name, quantity, values in (
            ("mjWARN_BADQPOS", "joint position", self.data.qpos), ("mjWARN_BADQVEL", "joint velocity", self.data.qvel),
            ("mjWARN_BADQACC", "joint acceleration", self.data.qacc),
        ):  # fmt: skip
            if counted(name):
                self._diverge(self._coordinate(quantity, values), f"is not finite, or larger than {MAX_STATE:g}")
        if counted("mjWARN_CONTACTFULL") or counted("mjWARN_CNSTRFULL"):
            self._diverge("contacts", 'need more memory than MuJoCo has: raise <size memory="..."/> of the model')
        self._diverge("MuJoCo", f"warns: {self._warning_text()}")

    def _coordinate(self, quantity: str, values: Array) -> str:
        """Return the name of the joint whose coordinate is wrong first."""
        bad = np.flatnonzero(~(np.abs(values) <= MAX_STATE))
        if not len(bad):
            return quantity
        first, model = int(bad[0]), self.model
        places = model.jnt_qposadr if quantity == "joint position" else model.jnt_dofadr
        joint = max(k for k in range(model.njnt) if places[k] <= first)
        name = object_name(self._mujoco, model, "JOINT", joint)
        return f"{quantity} of '{name}'" if name else f"{quantity} [{first}]"

    def _diverge(self, quantity: str, reason: str) -> None:
        """Go back to the state before the step, and raise DivergedError.

        Saving a state costs more than a command, so a step stores its command alone. The steps since the saved state
        are repeated here, with the same bits.
        """
        recent_warnings.clear()
        recent_commands = self._recent_commands[: self._row].copy()
        self._put(self._state.copy(), self._saved_sensors.copy())
        for command in recent_commands:
            accept_command(command, self._ctrl, self._recent_commands, self._row)
            self._advance()
            self._row += 1
        last = {name: value.copy() for name, value in self.observe().items()}
        raise DivergedError((self._steps + 1) * self.dt, quantity, last, reason)
