"""The robot inside an FMU: what the binary of pythonfmu3 (FMI 3) or pythonfmu (FMI 2) calls, in the process of whatever
tool runs it."""

from __future__ import annotations

import base64
import ctypes
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rtmms.plant
from rtmms.errors import DivergedError, ModelError
from rtmms.fmi.description import base_units
from rtmms.fmi.guard import Variables, guarded, sentence, state_from_bytes, state_to_bytes
from rtmms.fmi.needs import needed
from rtmms.input_file import MIB, read_input_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree.ElementTree import Element

    from rtmms.plant import Channel, Plant

SPECIFICATION = "robot.json"
RELEASE = "finalizePythonInterpreter"
STEP_TOLERANCE = 1e-6
"""A communication step may differ from whole steps of the plant by this share of one: tools add up their times."""
MOST_STEPS = 10**9
"""Within a communication step: with more of them, its length can no longer be told from a multiple."""


class Slave(Variables):
    """What FMI 2 and FMI 3 have in common: to be mixed with the class of a slave that comes with each FMU.

    `robot.json` among the resources says what the plant is (the arguments of rtmms.load, and the seed).

    Inputs are the actuators, held over a communication step and moved into their limits, as on the wire; outputs are
    the plant's, arrays in row-major order; `seed` is a parameter. The communication step is a multiple of dt.
    """

    resources: str
    modelName: str

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        said = json.loads(read_input_text(Path(self.resources) / SPECIFICATION, max_bytes=MIB))
        self.plant = rtmms.plant.load(said["robot"], dt=said["dt"], preset=said["preset"], **said["parameters"])
        self.modelName = said["identifier"]
        self.description = f"{said['robot']}, simulated by rtmms {said['version']}"
        self.version = said["version"]
        self.seed = int(said["seed"])
        self.command = np.array([channel.neutral for channel in self.plant.actuators], dtype=np.float64)
        self.lower = np.array([_or(channel.lower, -math.inf) for channel in self.plant.actuators])
        self.upper = np.array([_or(channel.upper, math.inf) for channel in self.plant.actuators])
        self.now = 0.0
        self.plant.reset(self.seed)
        self._observed: dict[str, Any] | None = None
        self._declare()

    # --- FMI ----------------------------------------------------------------------------------------------------------

    @guarded
    def enter_initialization_mode(self) -> None:
        self.plant.reset(self.seed)
        self._observed, self.now = None, 0.0

    def _refusal(self, current_time: float, step_size: float) -> str:
        """Whole steps of the plant under the present inputs; a sentence, with nothing done, for any other length.
        Raises nothing: that would be answered with a fatal error."""
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
        count = round(step_size / dt) if 0.0 < step_size <= MOST_STEPS * dt else 0
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
        self.now = current_time + step_size

    @guarded
    def terminate(self) -> None:
        """Where a Python hosts us: let go of the interpreter that the FMU's binary thinks it shares.

        pythonfmu3 0.3.4 lets go of it twice when the process exits, and so corrupts memory about every fourth time;
        done once before, both times find nothing. A host that is no Python has an empty sys.orig_argv.
        """
        binaries = Path(self.resources).parent / "binaries"
        for path in binaries.glob(f"*linux*/{self.modelName}.so") if sys.orig_argv else ():
            release = getattr(ctypes.CDLL(str(path)), RELEASE, None)
            if release is not None:
                release()

    # --- state --------------------------------------------------------------------------------------------------------

    @guarded
    def _get_fmu_state(self) -> dict[str, Any]:
        blob = base64.b64encode(self.plant.snapshot()).decode()
        return {"plant": blob, "command": self.command.tolist(), "time": self.now, "seed": self.seed}

    @guarded
    def _set_fmu_state(self, state: dict[str, Any]) -> None:
        """All of it or nothing."""
        command = np.array(state["command"], dtype=np.float64)
        if command.shape != self.command.shape:
            raise ModelError(f"state: expected {self.command.size} inputs, got {command.size}")
        now, seed = float(state["time"]), int(state["seed"])
        self.plant.restore(base64.b64decode(state["plant"], validate=True))
        self.command[:], self.now, self.seed, self._observed = command, now, seed, None

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

    def _say(self, text: str, status: Any) -> None:
        self.log(text, status)  # type: ignore[attr-defined]

    def _known_units(self) -> dict[str, dict[str, int]]:
        """Of all channels, by name, those that can be told by base units."""
        named = {channel.unit for channel in (*self.plant.actuators, *self.plant.outputs)}
        found = {unit: base_units(unit) for unit in sorted(named)}
        return {unit: exponents for unit, exponents in found.items() if exponents is not None}


def limits_to_xml(root: Element, plant: Plant, of: Callable[[Element], Element]) -> None:
    """The limits of inputs, which neither library has words for.  of: a variable's element that has them"""
    channels = {channel.name: channel for channel in plant.actuators}
    for variable in [one for one in root.iter() if one.get("causality") == "input"]:
        channel = channels[variable.get("name", "")]
        for key, value in (("min", channel.lower), ("max", channel.upper)):
            if value is not None:
                of(variable).set(key, f"{value:.17g}")


class RobotSlave(Slave):
    """To be mixed with pythonfmu3's Fmi3Slave."""

    def do_step(self, current_time: float, step_size: float) -> Any:
        """See `_refusal`; an error for what is refused."""
        result = needed("pythonfmu3.fmi3slave", "an FMU").Fmi3StepResult
        refusal = self._refusal(current_time, step_size)
        if not refusal:
            return result()
        status = needed("pythonfmu3.enums", "an FMU").Fmi3Status
        self._say(refusal, status.error)
        return result(status=status.error)

    def to_xml(self, model_options: Any = None) -> Element:
        """The model description with what pythonfmu3 has no words for: the fixed step, and limits of inputs."""
        root: Element = super().to_xml(model_options or {})  # type: ignore[misc]
        root.set("generationTool", f"rtmms {self.version}, {root.get('generationTool')}")
        simulation = root.find("CoSimulation")
        assert simulation is not None  # what Fmi3Slave is
        simulation.set("fixedInternalStepSize", repr(self.plant.dt))
        limits_to_xml(root, self.plant, lambda variable: variable)
        return root

    def _declare(self) -> None:
        of = needed("pythonfmu3", "an FMU")
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
        unit = needed("pythonfmu3.unit", "an FMU").Unit
        self.register_units([unit(name, **exponents) for name, exponents in self._known_units().items()])  # type: ignore[attr-defined]
        self.default_experiment = of.DefaultExperiment(start_time=0.0, step_size=self.plant.dt)

    def _output(self, channel: Channel) -> Any:
        value = self._observe(channel)
        return value.ravel().tolist() if channel.shape else float(value)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def unit_of(channel: Channel) -> str | None:
    """As FMI has it; None where it cannot be said."""
    return channel.unit if base_units(channel.unit) is not None else None


def about(channel: Channel) -> str | None:
    """What the variable's name and unit leave out: the frame, and a unit that FMI cannot say."""
    parts = [f"in the {channel.frame} frame"] if channel.frame else []
    if channel.unit and base_units(channel.unit) is None:
        parts.append(f"unit {channel.unit}")
    return ", ".join(parts) or None
