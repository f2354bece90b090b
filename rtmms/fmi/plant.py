"""FMU of another tool as a plant: its inputs are the actuators, its outputs the outputs, a step is one fmi3DoStep."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import DivergedError, ModelError, UnknownNameError
from rtmms.base.files import MIB, open_input
from rtmms.base.override import override
from rtmms.fmi.archive import UnpackedFmu, import_library
from rtmms.fmi.library import FAULTS, Library, Values
from rtmms.fmi.read_description import actuator, elements, limits, parse_description, shape
from rtmms.plant.protocol import Channel, Plant
from rtmms.plant.validation import limits_of, read_command, read_seed

Array = npt.NDArray[np.float64]


# Values given for an FMU's parameters, checked against the FMU's description.


_REAL = ("Float64", "Float32", "Real")


def parameter_value(path: str, name: str, variable: Any, value: Any) -> float:
    """Return a value of a parameter as a number.

    Parameters
    ----------
    path : str
        The file, for errors.
    name : str
        Name of the parameter.
    variable : Any
        The variable.
    value : Any
        Flags accept true, false, 1 and 0; enumerations the name of an item or its number; whole numbers no fractions.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ModelError
        It cannot; the message has file, parameter, the value, and its type and limits.
    """
    number = _number(variable, value)
    if number is None or not _fits(variable, number):
        raise ModelError(f"{path}: {name}: expected {_expected(variable)}, got {value!r}")
    return number


def _number(variable: Any, value: Any) -> float | None:
    if variable.type == "Enumeration" and isinstance(value, str):
        return next((float(item.value) for item in _items(variable) if item.name == value), None)
    if not isinstance(value, bool | int | float | np.number | np.bool_):
        return None
    if isinstance(value, bool | np.bool_) and variable.type != "Boolean":
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _fits(variable: Any, number: float) -> bool:
    kind = variable.type
    if kind == "Boolean":
        return number in (0.0, 1.0)
    if kind not in _REAL and number != math.floor(number):
        return False
    if kind == "Enumeration" and _items(variable):
        return number in {float(item.value) for item in _items(variable)}
    lower, upper = _range(variable)
    return (lower is None or number >= lower) and (upper is None or number <= upper)


def _range(variable: Any) -> tuple[float | None, float | None]:
    """Return the limits of a variable, at the most those of its type."""
    lower, upper = limits(variable)
    kind = {"Integer": "int32", "Enumeration": "int32"}.get(variable.type, variable.type.lower())
    if kind.startswith(("int", "uint")):
        # float64 holds 2^53 and what is below of 64 bits; the last one of them is 2^63 - 1024
        bounds = np.iinfo(kind)
        lower = float(bounds.min) if lower is None else max(lower, float(bounds.min))
        maximum = math.nextafter(2.0**bounds.bits, 0.0) if bounds.min == 0 else math.nextafter(-float(bounds.min), 0.0)
        maximum = float(bounds.max) if bounds.bits <= 32 else maximum
        upper = maximum if upper is None else min(upper, maximum)
    return lower, upper


def _items(variable: Any) -> list[Any]:
    return list(getattr(variable.declaredType, "items", None) or [])


def _expected(variable: Any) -> str:
    kind = variable.type
    if kind == "Boolean":
        return "true or false"
    if kind == "Enumeration" and _items(variable):
        return "one of " + ", ".join(f"{item.name} ({item.value})" for item in _items(variable))
    lower, upper = limits(variable) if kind in _REAL else _range(variable)
    noun = "a number" if kind in _REAL else "a whole number"
    if lower is not None and upper is not None:
        return f"{noun} from {lower:.17g} to {upper:.17g}"
    if lower is not None or upper is not None:
        return f"{noun} >= {lower:.17g}" if lower is not None else f"{noun} <= {upper:.17g}"
    return "a finite number"


NUMBERS = {
    "Float64", "Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Boolean",
    "Real", "Integer", "Enumeration",
}  # fmt: skip
_MAGIC = b"rtmms fmu 1\n"


def load(path: str, /, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> FmuPlant:
    """Return the plant of an FMU file: FMI 2 or 3, co-simulation, with a binary for this machine.

    Parameters
    ----------
    path : str
        The file.
    dt : float | None, optional
        Step, s; None: the FMU's fixed internal step, or the step of its default experiment.
    preset : str | None, optional
        Must be None: an FMU has no presets.
    **parameters : Any
        Parameters of the FMU, by name; arrays by their elements, 'name[2]'.

    Returns
    -------
    FmuPlant
        The plant.

    Raises
    ------
    ModelError
        The file or a parameter is wrong; the message names it.
    """
    if preset is not None:
        raise ModelError(f"{path}: an FMU has no presets, got '{preset}'")
    return FmuPlant(path, dt, parameters)


class FmuPlant(Plant):
    """Plant of an FMU, as rtmms.Plant describes it. A run executes the code in the file: use FMUs that you trust.

    Numbers of every type are float64; inputs of whole numbers and enumerations are rounded, flags are set from 0.5 on.
    Parameters are not rounded but refused. Text, binary data and clocks are left out. A parameter called `seed` gets
    the run's seed.

    Parameters
    ----------
    path : str
        The file.
    dt : float | None
        Step, s; None: the FMU's own.
    parameters : dict[str, Any]
        Parameters of the FMU, by name.

    Raises
    ------
    ModelError
        The file or a parameter is wrong; the message names it.
    """

    def __init__(self, path: str, dt: float | None, parameters: dict[str, Any]) -> None:
        self.path = path
        import_library("fmpy", f"{path}: an FMU")
        unpacked = UnpackedFmu(path)
        try:
            self._prepare(unpacked, dt, parameters)
        except BaseException:
            unpacked.remove()
            raise
        self.reset()

    def _prepare(self, unpacked: UnpackedFmu, dt: float | None, parameters: dict[str, Any]) -> None:
        path = self.path
        self.model_description = parse_description(path, unpacked.folder)
        self.robot = str(self.model_description.modelName)
        self.dt = self._step_size(dt)
        self.parameters = dict(parameters)
        variables = [v for v in self.model_description.modelVariables if v.type in NUMBERS]
        inputs = [v for v in variables if v.causality == "input"]
        outputs = [v for v in variables if v.causality == "output"]
        self._settable = {
            name: (v, place)
            for v in variables if v.causality == "parameter" or v.causality == "structuralParameter"
            for place, name in enumerate(elements(v))
        }  # fmt: skip
        unknown = next((name for name in parameters if name not in self._settable), None)
        if unknown is not None:
            raise UnknownNameError(f"parameter of {path}", unknown, self._settable)
        for name, value in parameters.items():
            parameter_value(path, name, self._settable[name][0], value)
        self.actuators = tuple(actuator(v, name, place) for v in inputs for place, name in enumerate(elements(v)))
        self.outputs = tuple(Channel(v.name, v.unit or "", shape(v)) for v in outputs)
        if not self.actuators and not self.outputs:
            raise ModelError(f"{path}: expected inputs or outputs that are numbers, got none: nothing to run")
        with self._naming():
            self.library = Library(path, unpacked, self.model_description)
        self._limits = limits_of(self.actuators)
        self._inputs = Values(self.library, inputs, np.array([a.neutral for a in self.actuators], dtype=np.float64))
        self._outputs = Values(self.library, outputs, np.zeros(sum(math.prod(c.shape) for c in self.outputs)))
        starts = np.cumsum([0, *(math.prod(c.shape) for c in self.outputs)])
        self._parts = tuple(
            (c.name, c.shape, slice(int(a), int(b)))
            for c, a, b in zip(self.outputs, starts[:-1], starts[1:], strict=True)
        )
        self._neutral = self._inputs.values.copy()
        settings = repr((self.dt, sorted(parameters.items()))).encode()
        digest = hashlib.sha256()
        with open_input(path, expected="an FMU") as file:
            while piece := file.read(MIB):
                digest.update(piece)
        digest.update(settings)
        self._key = digest.digest()[:16]
        self._steps = 0
        self._sound: dict[str, Array] = {}

    # --- the plant's face ---------------------------------------------------------------------------------------------

    @override
    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0 with the given parameters; `seed` is the value of the parameter `seed`, if the FMU has one.

        Raises
        ------
        ModelError
            The FMU refuses a parameter.
        """
        read_seed(self.path, seed)
        library = self.library
        with self._naming():
            library.restart()
            self._inputs.values[:] = self._neutral
            for name, value in self.parameters.items():
                self._set(name, value)
            if "seed" in self._settable and "seed" not in self.parameters:
                self._set("seed", seed)
            self._inputs.write()
            library.initialise()
        self._steps = 0
        self._sound = self.observe()

    @override
    def step(self, command: Array) -> None:
        """Advance by dt.

        After a failure the FMU cannot return to its last good state.

        Raises
        ------
        ArgumentError
            The command has a wrong size, or is not finite.
        DivergedError
            The FMU fails or requests the end.
        """
        values = read_command(self.path, self.actuators, command)
        np.clip(values, self._limits[:, 0], self._limits[:, 1], out=self._inputs.values)
        try:
            self._inputs.write()
            going_on = self.library.do_step(self._steps * self.dt, self.dt)
            self._outputs.read()
        except FAULTS as fault:
            raise DivergedError(self._time(1), self._with_messages(fault), self._last(), "") from None
        if not going_on:
            raise DivergedError(self._time(1), "the FMU", self._last(), "requested the end of the simulation")
        if not np.isfinite(self._outputs.values).all():
            bad = next(name for name, _, part in self._parts if not np.isfinite(self._outputs.values[part]).all())
            raise DivergedError(self._time(1), bad, self._last())
        self._steps += 1

    @override
    def observe(self) -> dict[str, Array]:
        with self._naming():
            self._outputs.read()
        out = self._outputs.values.copy()
        self._sound = {name: out[part].reshape(shape) for name, shape, part in self._parts}
        return dict(self._sound)

    @override
    def snapshot(self) -> bytes:
        """Return the FMU's own serialised state and the step.

        Raises
        ------
        ModelError
            The FMU cannot serialise its state.
        """
        if not self.library.keeps_state:
            raise ModelError(
                f"{self.path}: this FMU cannot return its state (canSerializeFMUState is not set), so it has "
                "no snapshots"
            )
        with self._naming():
            return _MAGIC + self._key + struct.pack("<q", self._steps) + self.library.state()

    @override
    def restore(self, blob: bytes) -> None:
        """Go back to a snapshot of the same file with the same step and parameters."""
        head = len(_MAGIC)
        blob = bytes(blob)
        if blob[:head] != _MAGIC or len(blob) < head + 24:
            raise ModelError("snapshot: expected a snapshot of an FMU by this version of rtmms, got other bytes")
        if blob[head : head + 16] != self._key:
            raise ModelError("snapshot: expected one of the same FMU, step (dt) and parameters, got another")
        with self._naming():
            self.library.set_state(blob[head + 24 :])
            self._steps = struct.unpack_from("<q", blob, head + 16)[0]
        self._sound = self.observe()

    def set(self, **values: Any) -> None:
        """Change tunable parameters between steps.

        Parameters
        ----------
        **values : Any
            Values by name.

        Raises
        ------
        ModelError
            A parameter is not tunable, or cannot have this value.
        UnknownNameError
            There is no such parameter.
        """
        for name in values:
            if name not in self._settable:
                raise UnknownNameError(f"parameter of {self.path}", name, self._settable)
            if self._settable[name][0].variability != "tunable":
                raise ModelError(f"{self.path}: {name} cannot be changed while it runs (it is not tunable)")
            parameter_value(self.path, name, self._settable[name][0], values[name])
        with self._naming():
            for name, value in values.items():
                self._set(name, value)
                self.parameters[name] = value

    def close(self) -> None:
        """End the FMU and remove its folder."""
        self.library.close()

    # --- within -------------------------------------------------------------------------------------------------------

    def _step_size(self, dt: float | None) -> float:
        simulation, experiment = self.model_description.coSimulation, self.model_description.defaultExperiment
        fixed = simulation.fixedInternalStepSize
        stated = fixed or (experiment.stepSize if experiment is not None else None)
        asked = stated if dt is None else dt
        if asked is None:
            raise ModelError(f"{self.path}: the FMU declares no step; give one with --dt S")
        step = float(asked)
        if not (math.isfinite(step) and step > 0):
            raise ModelError(f"{self.path}: dt must be > 0 s, got {step:g}")
        if fixed is not None and not simulation.canHandleVariableCommunicationStepSize:
            count = round(step / float(fixed))
            if count < 1 or abs(step - count * float(fixed)) > 1e-9 * step:
                raise ModelError(
                    f"{self.path}: dt must be a multiple of the FMU's step of {float(fixed):g} s, got {step:g}"
                )
        return step

    def _set(self, name: str, value: Any) -> None:
        variable, place = self._settable[name]
        self.library.set_parameter(variable, place, parameter_value(self.path, name, variable, value))

    def _time(self, ahead: int) -> float:
        return (self._steps + ahead) * self.dt

    def _last(self) -> dict[str, Array]:
        return self._sound

    def _with_messages(self, fault: Exception) -> str:
        messages = "; ".join(self.library.messages)
        return f"{self.path}: {fault}" + (f": {messages}" if messages else "")

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Raise faults of the FMU within the block as ModelError with the file's name and its message."""
        try:
            yield
        except FAULTS as fault:
            messages = "; ".join(self.library.messages) if hasattr(self, "library") else ""
            raise ModelError(f"{self.path}: {fault}" + (f": {messages}" if messages else "")) from None
