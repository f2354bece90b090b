"""Robot inside an FMU.

The binary of pythonfmu3 (FMI 3) or pythonfmu (FMI 2) calls it, in the process of the tool that runs the FMU.
"""

from __future__ import annotations

import base64
import ctypes
import functools
import hashlib
import json
import math
import sys
import weakref
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import rtmms.plant.loading
from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.files import MIB, read_input, read_input_text
from rtmms.fmi.archive import import_library
from rtmms.fmi.read_description import base_units

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree.ElementTree import Element

    from rtmms.plant.protocol import Channel, Plant


# What of a caller's errors pythonfmu3's binary must not see: it answers every Python exception with fmi3Fatal.
#
# It has no other answer to give but in doStep, where a status is returned. And on its way there it drops its references
# to the slave, to drop them once more when the instance is freed: a host that goes on, or only cleans up, then uses
# freed memory.


MAX_REASON_CHARS = 300
_HEAD = b"rtmms fmu state 1 "
_alive: weakref.WeakSet[Any] = weakref.WeakSet()
_Method = TypeVar("_Method", bound=Callable[..., Any])


def as_model_error(method: _Method) -> _Method:
    """Turn any exception of a slave's method into one ModelError with one sentence, which the slave outlives.

    Parameters
    ----------
    method : _Method
        The method.

    Returns
    -------
    _Method
        The guarded method.
    """

    @functools.wraps(method)
    def within(self: Any, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except Exception as fault:
            _keep(self)
            raise ModelError(sentence(fault)) from None

    return within  # type: ignore[return-value]


def sentence(fault: Exception) -> str:
    """Return a fault on one line, not too long.

    Parameters
    ----------
    fault : Exception
        The exception.

    Returns
    -------
    str
        At most MAX_REASON_CHARS.
    """
    text = str(fault) if isinstance(fault, ModelError) else f"{type(fault).__name__}: {fault}"
    return " ".join(text.split())[:MAX_REASON_CHARS]


def _keep(slave: Any) -> None:
    """Store the references that the binary is about to drop: of the instance, its class, and its list of messages."""
    count = getattr(ctypes.pythonapi, "Py_IncRef", None)  # none where a host hides the interpreter's symbols
    if count is not None:
        for item in (slave, type(slave), slave.log_queue):
            count(ctypes.py_object(item))


# --- variables --------------------------------------------------------------------------------------------------------


class Variables:
    """Reading and writing of variables, all of a call or none; before pythonfmu3's Fmi3Slave among the bases.

    get_float64(vrs), set_float64(vrs, values) and so on for each kind of variable are added below.

    Parameters
    ----------
    **kwargs : Any
        Arguments of pythonfmu3.
    """

    vars: dict[int, Any]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        _alive.add(self)

    def _read(self, kind: str, vrs: Iterable[int]) -> Any:
        self._known(kind, vrs)
        return getattr(super(), f"get_{kind.lower()}")(vrs)

    def _write(self, kind: str, vrs: list[int], values: list[Any]) -> None:
        self._known(kind, vrs)
        for vr in vrs:
            if self.vars[vr].setter is None:
                name, causality = self.vars[vr].name, self.vars[vr].causality.name
                raise ModelError(f"{name}: expected an input or a parameter to set, got {causality} {name}")
        if len(values) != len(vrs):  # what can be set has one value each
            raise ModelError(f"set: expected {len(vrs)} values, got {len(values)}")
        getattr(super(), f"set_{kind.lower()}")(vrs, values)

    def _known(self, kind: str, vrs: Iterable[int]) -> None:
        for vr in vrs:
            variable = self.vars.get(vr)
            if variable is None:
                raise ModelError(f"value reference {vr}: expected one from 0 to {len(self.vars) - 1}")
            if type(variable).__name__ != kind:
                raise ModelError(f"{variable.name}: expected a call for {type(variable).__name__}, got one for {kind}")


def _reader(kind: str) -> Callable[..., Any]:
    return as_model_error(lambda self, vrs: self._read(kind, vrs))


def _writer(kind: str) -> Callable[..., Any]:
    return as_model_error(lambda self, vrs, values: self._write(kind, vrs, values))


for _kind in ("Float64", "Int64", "Int32", "UInt64", "Boolean", "String", "Real", "Integer"):
    setattr(Variables, f"get_{_kind.lower()}", _reader(_kind))
    setattr(Variables, f"set_{_kind.lower()}", _writer(_kind))


# --- states -----------------------------------------------------------------------------------------------------------


def state_to_bytes(state: dict[str, Any]) -> bytes:
    """Return a state as JSON, behind its checksum.

    Parameters
    ----------
    state : dict[str, Any]
        The state.

    Returns
    -------
    bytes
        Bytes for `state_from_bytes`.
    """
    text = json.dumps(state).encode()
    return _HEAD + f"{zlib.crc32(text):08x}\n".encode() + text


def state_from_bytes(blob: bytes) -> dict[str, Any]:
    """Return the state of some bytes.

    The binary does not show which slave makes this call and drops its references, so that references of every slave are
    stored. Those of the other slaves are then never freed.

    Parameters
    ----------
    blob : bytes
        Bytes from `state_to_bytes`.

    Returns
    -------
    dict[str, Any]
        The state.

    Raises
    ------
    ModelError
        A bit has changed.
    """
    try:
        head = len(_HEAD)
        if blob[:head] != _HEAD:
            raise ModelError(f"serialised state: expected one of an FMU of rtmms, got {len(blob)} other bytes")
        text = blob[head + 9 :]
        if blob[head : head + 9] != f"{zlib.crc32(text):08x}\n".encode():
            raise ModelError("serialised state: expected an undamaged state, got one with a wrong checksum")
        content: dict[str, Any] = json.loads(text)
        return content
    except Exception as fault:
        for slave in _alive:
            _keep(slave)
        raise ModelError(sentence(fault)) from None


SPECIFICATION = "robot.json"
MAX_FILE_BYTES = 64 * MIB
"""Of a robot's file, or a preset."""
RELEASE = "finalizePythonInterpreter"
STEP_TOLERANCE = 1e-6
"""Tolerance of a communication step against whole steps of the plant, as a share of one: tools add up their times."""
MAX_STEPS = 10**9
"""Largest number of steps within a communication step: beyond it, its length cannot be distinguished from a multiple.
"""


def digest(file: Path) -> str:
    """Return the SHA-256 of a file.

    Parameters
    ----------
    file : Path
        File of a robot.

    Returns
    -------
    str
        Hexadecimal digits.

    Raises
    ------
    ModelError
        The file cannot be read.
    """
    content = read_input(file, max_bytes=MAX_FILE_BYTES, place="FMU:", expected="the file from which it was exported")
    return hashlib.sha256(content).hexdigest()


class Slave(Variables):
    """Common part of FMI 2 and FMI 3, mixed with the class of a slave that comes with each FMU.

    `robot.json` among the resources describes the plant (the arguments of rtmms.load, and the seed). Inputs are the
    actuators, held over a communication step and clamped to their limits, as on the wire. Outputs are the plant's,
    arrays in row-major order; `seed` is a parameter. The communication step is a multiple of dt.

    Parameters
    ----------
    **kwargs : Any
        Arguments of pythonfmu3 or pythonfmu.
    """

    resources: str
    modelName: str

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        content = json.loads(read_input_text(Path(self.resources) / SPECIFICATION, max_bytes=MIB))
        for file, expected in content["files"].items():
            if digest(Path(file)) != expected:
                raise ModelError(
                    f"'{file}': expected the file from which this FMU was exported, got another one; export the FMU "
                    "again"
                )
        self.plant = rtmms.plant.loading.load(
            content["robot"], dt=content["dt"], preset=content["preset"], **content["parameters"]
        )
        self.modelName = content["identifier"]
        self.description = f"{content['robot']}, simulated by rtmms {content['version']}"
        self.version = content["version"]
        self.seed = int(content["seed"])
        self.command = np.array([channel.neutral for channel in self.plant.actuators], dtype=np.float64)
        self.lower = np.array([_or(channel.lower, -math.inf) for channel in self.plant.actuators])
        self.upper = np.array([_or(channel.upper, math.inf) for channel in self.plant.actuators])
        self.now, self._begun = 0.0, False
        self.plant.reset(self.seed)
        self._observed: dict[str, Any] | None = None
        self._declare()

    # --- FMI ----------------------------------------------------------------------------------------------------------

    @as_model_error
    def enter_initialization_mode(self) -> None:
        """Reset the plant with the seed."""
        self.plant.reset(self.seed)
        self._observed, self.now, self._begun = None, 0.0, False

    def _refusal(self, current_time: float, step_size: float) -> str:
        """Take whole steps of the plant under the present inputs.

        Return a sentence, with nothing done, for any other length.

        It raises nothing, as the binary would answer that with a fatal error.
        """
        try:
            self._advance(current_time, step_size)
        except DivergedError as fault:
            return str(fault)
        except Exception as fault:
            return sentence(fault)
        return ""

    def _declare(self) -> None:
        """Register the variables."""
        raise NotImplementedError

    def _advance(self, current_time: float, step_size: float) -> None:
        dt = self.plant.dt
        if not math.isfinite(current_time):
            raise ModelError(f"communication point: expected a finite time, got {current_time:g} s")
        if self._begun and abs(current_time - self.now) > STEP_TOLERANCE * dt:  # the first one is the tool's start time
            raise ModelError(
                f"communication point: expected {self.now:.17g} s, the end of the last step, got {current_time:.17g} "
                "s; to go back in time, restore a state of the FMU"
            )
        count = round(step_size / dt) if 0.0 < step_size <= MAX_STEPS * dt else 0
        if count < 1 or abs(step_size - count * dt) > STEP_TOLERANCE * dt:
            raise ModelError(f"communication step: expected a multiple of {dt:g} s, got {step_size:.17g} s")
        if not np.isfinite(self.command).all():
            bad = int(np.argmin(np.isfinite(self.command)))
            raise ModelError(
                f"input {self.plant.actuators[bad].name}: expected a finite number, got {self.command[bad]:g}"
            )
        command = np.clip(self.command, self.lower, self.upper)
        self._observed = None
        for _ in range(count):
            self.plant.step(command)
        self.now, self._begun = current_time + step_size, True

    @as_model_error
    def terminate(self) -> None:
        """Release the interpreter that the FMU's binary holds, where a Python hosts us.

        pythonfmu3 0.3.4 releases it twice when the process exits, and so corrupts memory about every fourth time; after
        a release here, both times find nothing. A host that is no Python has an empty sys.orig_argv.
        """
        binaries = Path(self.resources).parent / "binaries"
        for path in binaries.glob(f"*linux*/{self.modelName}.so") if sys.orig_argv else ():
            release = getattr(ctypes.CDLL(str(path)), RELEASE, None)
            if release is not None:
                release()

    # --- state --------------------------------------------------------------------------------------------------------

    @as_model_error
    def _get_fmu_state(self) -> dict[str, Any]:
        blob = base64.b64encode(self.plant.snapshot()).decode()
        return {
            "plant": blob,
            "command": self.command.tolist(),
            "time": self.now,
            "begun": self._begun,
            "seed": self.seed,
        }

    @as_model_error
    def _set_fmu_state(self, state: dict[str, Any]) -> None:
        """Restore a state, all of it or nothing."""
        command = np.array(state["command"], dtype=np.float64)
        if command.shape != self.command.shape:
            raise ModelError(f"state: expected {self.command.size} inputs, got {command.size}")
        now, begun, seed = float(state["time"]), bool(state["begun"]), int(state["seed"])
        self.plant.restore(base64.b64decode(state["plant"], validate=True))
        self.command[:], self.now, self.seed, self._observed = command, now, seed, None
        self._begun = begun

    _fmu_state_to_bytes = staticmethod(state_to_bytes)
    _fmu_state_from_bytes = staticmethod(state_from_bytes)

    # --- variables ----------------------------------------------------------------------------------------------------

    def _add(self, variable: Any) -> None:
        self.register_variable(variable, nested=False)  # type: ignore[attr-defined]

    def _observe(self, channel: Channel) -> Any:
        if self._observed is None:
            self._observed = self.plant.observe()
        return self._observed[channel.name]

    def _set_seed(self, value: int) -> None:
        if value < 0:
            raise ModelError(f"seed: expected a whole number >= 0, got {value}")
        self.seed = int(value)

    def _log(self, text: str, status: Any) -> None:
        self.log(text, status)  # type: ignore[attr-defined]

    def _known_units(self) -> dict[str, dict[str, int]]:
        """Return the units of all channels, by name, that base units can express."""
        named = {channel.unit for channel in (*self.plant.actuators, *self.plant.outputs)}
        result = {unit: base_units(unit) for unit in sorted(named)}
        return {unit: exponents for unit, exponents in result.items() if exponents is not None}


def limits_to_xml(root: Element, plant: Plant, of: Callable[[Element], Element]) -> None:
    """Add the limits of inputs, which neither library supports.

    Parameters
    ----------
    root : Element
        The model description.
    plant : Plant
        The plant.
    of : Callable[[Element], Element]
        Returns a variable's element that has them.
    """
    channels = {channel.name: channel for channel in plant.actuators}
    for variable in [item for item in root.iter() if item.get("causality") == "input"]:
        channel = channels[variable.get("name", "")]
        for key, value in (("min", channel.lower), ("max", channel.upper)):
            if value is not None:
                of(variable).set(key, f"{value:.17g}")


class RobotSlave(Slave):
    """Slave of FMI 3, mixed with pythonfmu3's Fmi3Slave."""

    def do_step(self, current_time: float, step_size: float) -> Any:
        """Advance the plant by a communication step, see `_refusal`.

        Parameters
        ----------
        current_time, step_size : float
            Time and step, s.

        Returns
        -------
        : Fmi3StepResult
            An error for a refused step.
        """
        result = import_library("pythonfmu3.fmi3slave", "an FMU").Fmi3StepResult
        refusal = self._refusal(current_time, step_size)
        if not refusal:
            return result()
        status = import_library("pythonfmu3.enums", "an FMU").Fmi3Status
        self._log(refusal, status.error)
        return result(status=status.error)

    def to_xml(self, model_options: Any = None) -> Element:
        """Return the model description, with parts that pythonfmu3 lacks: the fixed step, and limits of inputs.

        Parameters
        ----------
        model_options : Any, optional
            Options of pythonfmu3.

        Returns
        -------
        Element
            The element.
        """
        root: Element = super().to_xml(model_options or {})  # type: ignore[misc]
        root.set("generationTool", f"rtmms {self.version}, {root.get('generationTool')}")
        simulation = root.find("CoSimulation")
        assert simulation is not None  # what Fmi3Slave is
        simulation.set("fixedInternalStepSize", repr(self.plant.dt))
        limits_to_xml(root, self.plant, lambda variable: variable)
        return root

    def _declare(self) -> None:
        of = import_library("pythonfmu3", "an FMU")
        causality, variability, initial = of.Fmi3Causality, of.Fmi3Variability, of.Fmi3Initial
        self._units(of)
        self._add(of.Float64(
            "time", causality=causality.independent, variability=variability.continuous, getter=lambda: self.now,
        ))  # fmt: skip
        self._add(of.Int64(
            "seed", causality=causality.parameter, variability=variability.fixed, initial=initial.exact,
            description="of what is random", getter=lambda: self.seed, setter=self._set_seed,
        ))  # fmt: skip
        for place, channel in enumerate(self.plant.actuators):
            self._add(of.Float64(
                channel.name, causality=causality.input, variability=variability.continuous, initial=initial.exact,
                unit=unit_of(channel), description=about(channel),
                getter=lambda place=place: self.command[place],
                setter=lambda value, place=place: self.command.__setitem__(place, value),
            ))  # fmt: skip
        for channel in self.plant.outputs:
            size = [of.Dimension(start=str(n)) for n in channel.shape]
            self._add(of.Float64(
                channel.name, causality=causality.output, variability=variability.continuous,
                initial=initial.calculated, unit=unit_of(channel), description=about(channel), dimensions=size,
                getter=lambda channel=channel: self._output(channel),
            ))  # fmt: skip

    def _units(self, of: Any) -> None:
        unit = import_library("pythonfmu3.unit", "an FMU").Unit
        self.register_units([unit(name, **exponents) for name, exponents in self._known_units().items()])  # type: ignore[attr-defined]
        self.default_experiment = of.DefaultExperiment(start_time=0.0, step_size=self.plant.dt)

    def _output(self, channel: Channel) -> Any:
        value = self._observe(channel)
        return value.ravel().tolist() if channel.shape else float(value)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def unit_of(channel: Channel) -> str | None:
    """Return the unit of a channel in FMI.

    Parameters
    ----------
    channel : Channel
        The channel.

    Returns
    -------
    str | None
        None where FMI cannot express it.
    """
    return channel.unit if base_units(channel.unit) is not None else None


def about(channel: Channel) -> str | None:
    """Return the description of a variable: the frame, and a unit that FMI cannot express.

    Parameters
    ----------
    channel : Channel
        The channel.

    Returns
    -------
    str | None
        None for nothing to describe.
    """
    parts = [f"in the {channel.frame} frame"] if channel.frame else []
    if channel.unit and base_units(channel.unit) is None:
        parts.append(f"unit {channel.unit}")
    return ", ".join(parts) or None
