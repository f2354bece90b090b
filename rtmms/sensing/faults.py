"""Faults of sensors and actuators that begin and end while a run continues."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
from numba import carray

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.jit import COMPILED, kernel
from rtmms.base.memory import INTEGER, Layout, model, number, part, state, step_input
from rtmms.base.override import override
from rtmms.base.pointers import numbers_at
from rtmms.base.spatial import Array
from rtmms.plant.description import describe_plant, unwrapped
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep, Fork
from rtmms.plant.protocol import Plant
from rtmms.plant.stage import COMMAND, INNER, Stage, step_inner, write_inner_outputs
from rtmms.plant.validation import read_command, read_seed
from rtmms.sensing.layout import BIAS, SILENT, SOUND, SPIKES, STUCK

# What actuators that fail make of their commands, within a compiled step. See rtmms.sensing.faults for their words.


A_STUCK, A_SLOW, A_BACKLASH, A_DEAD_BAND, A_DELAY, A_FREE = range(1, 7)
MAX_DELAY_STEPS = 512
"""Largest delay of a command, steps."""
BEFORE, CODES, NUMBERS, RING = range(4)
"""Rows of the memory (3 + MAX_DELAY_STEPS, n): the plant's last command, code and number of each fault, a ring of the
last commands.
"""

FAILING = Layout(
    "Failing",
    state("steps", 1, dtype=INTEGER),
    state("fault_memory", 3 + MAX_DELAY_STEPS, "actuators"),
    step_input("command", "actuators"),
    model("limits", 2, "actuators"),
    step_input("torque", "actuators", unit="N m"),
    number("dt", unit="s"),
    number("torques", INTEGER),
    part("inner", INNER),
)
"""Record of a plant with faults.

- fault_memory: the memory, see BEFORE
- limits: lower, upper
- torque: of the rods
- torques: address of the plant's rod torques among its outputs, 0 where compiled code does not find them
"""
_failing_at = FAILING.type().at()


@kernel(fused=False)
def bend(memory: Array, at: int, values: Array, limits: Array, torque: Array, dt: float) -> None:
    """Change the given command as the faults do, and write the plant's command into memory[BEFORE].

    No multiplication is fused with an addition here, so that the result has the bits of Python's.

    Parameters
    ----------
    memory : Array
        (3 + MAX_DELAY_STEPS, n), see BEFORE.
    at : int
        Index of the step.
    values : Array
        (n,) the given command.
    limits : Array
        (2, n) lower and upper limits.
    torque : Array
        (n,) torques of the rods, N m, for free actuators.
    dt : float
        Step, s.
    """
    for i in range(values.shape[0]):
        memory[RING + at % MAX_DELAY_STEPS, i] = values[i]
    for i in range(values.shape[0]):
        before, code, number, wanted = memory[BEFORE, i], int(memory[CODES, i]), memory[NUMBERS, i], values[i]
        if code == A_STUCK:
            wanted = number
        elif code == A_SLOW:
            maximum = number * dt
            wanted = min(max(wanted, before - maximum), before + maximum)
        elif code == A_BACKLASH:
            half = 0.5 * number
            wanted = min(max(before, wanted - half), wanted + half)
        elif code == A_DEAD_BAND and abs(wanted - before) <= number:
            wanted = before
        elif code == A_DELAY:
            wanted = memory[RING + (at - int(np.rint(number / dt))) % MAX_DELAY_STEPS, i]
        elif code == A_FREE:
            wanted = before - dt * torque[i] / number
            wanted = min(max(wanted, limits[0, i]), limits[1, i])
        memory[BEFORE, i] = wanted


@kernel
def enter_bend(address: int) -> int:
    """Change the command in place as the faults do; torques must be in place where an actuator is free.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        0.
    """
    w = _failing_at(address)
    bend(w.fault_memory, w.steps[0], w.command, w.limits, w.torque, w.dt)
    w.steps[0] += 1
    return 0


@kernel
def enter_step(address: int) -> int:
    """Change the command in place as the faults do, and step the plant.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        The plant's status, 0 for success.
    """
    w = _failing_at(address)
    memory, torque = w.fault_memory, w.torque
    n = torque.shape[0]
    for i in range(n):
        if memory[CODES, i] == A_FREE:
            write_inner_outputs(w.inner)
            result = carray(numbers_at(w.torques), (n,))
            for k in range(n):
                torque[k] = result[k]
            break
    enter_bend(address)
    command = carray(numbers_at(w.inner.rows[0, COMMAND]), (n,))
    for i in range(n):
        command[i] = memory[BEFORE, i]
    return int(step_inner(w.inner, 0))


# Faults of sensors and actuators as parameters 'fault.TARGET' of the plant; they begin and end while a run continues.
#
# The value is a word, or a word with a number, 'bias=0.5'; '' ends the fault.
#
# - sensors (TARGET is the sensor's name): silent; stuck (at its last reading); bias=; spikes= (in both directions, of
#   one sample in twenty)
# - actuators (TARGET is the actuator's name): stuck (where it is) or stuck= (a value); slow= (the rate at which it
#   follows, unit/s); backlash= (the play between motor and rod, unit); dead_band= (it moves only for a command that
#   differs by more, unit); delay= (s); free (no motor: its load moves it, against 2 N m s/rad) or free= (another
#   resistance > 0; of plants with the rods' torques)
# - fins (TARGET is left or right, of plants with parameters TARGET_chains_lost): lost_chains= (how many, from the back
#   rod on)


FAULT = "fault."
SENSOR_FAULTS: Mapping[str, tuple[int, bool, bool]] = {
    "silent": (SILENT, False, False), "stuck": (STUCK, False, False), "bias": (BIAS, True, True),
    "spikes": (SPIKES, True, True),
}  # fmt: skip
"""By word: code, whether it accepts a number, whether it requires one."""

ACTUATOR_FAULTS: Mapping[str, tuple[int, bool, bool]] = {
    "stuck": (A_STUCK, True, False), "slow": (A_SLOW, True, True), "backlash": (A_BACKLASH, True, True),
    "dead_band": (A_DEAD_BAND, True, True), "delay": (A_DELAY, True, True), "free": (A_FREE, True, False),
}  # fmt: skip
FIN_FAULTS: Mapping[str, tuple[int, bool, bool]] = {"lost_chains": (1, True, True)}
_LOST = "_chains_lost"
FREE_N_M_S = 2.0
_TORQUES = "rod_torque"


def read_fault(target: str, value: Any, known: Mapping[str, tuple[int, bool, bool]]) -> tuple[float, float]:
    """Return code and number of a fault, as 'bias=0.5'.

    Parameters
    ----------
    target : str
        Sensor, actuator or fin, for messages.
    value : Any
        The text: a word, a word with a number, or '' for no fault.
    known : Mapping[str, tuple[int, bool, bool]]
        Faults of this kind of target, as SENSOR_FAULTS.

    Returns
    -------
    tuple[float, float]
        Code and number; the number is nan where the text has none.

    Raises
    ------
    ModelError
        The value is no text, or its number is missing, not a number or out of range.
    UnknownNameError
        The word is unknown.
    """
    if not isinstance(value, str):
        raise ModelError(f"{FAULT}{target}: expected a word such as '{next(iter(known))}', got {value!r}")
    word, equals, text = value.partition("=")
    if not value:
        return float(SOUND), 0.0
    if word not in known:
        raise UnknownNameError(f"fault of {target}", word, known)
    code, takes, needs = known[word]
    if not equals:
        if needs:
            raise ModelError(f"{FAULT}{target}: {word}: expected {word}=NUMBER, got no number")
        return float(code), math.nan
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not takes or not math.isfinite(number):
        expected = f"{word}=NUMBER" if takes else word
        raise ModelError(f"{FAULT}{target}: expected {expected}, got '{value}'")
    if word in ("slow", "backlash", "dead_band", "delay") and number < 0.0:
        what = {"slow": "a rate", "delay": "a time"}.get(word, "a width")
        raise ModelError(f"{FAULT}{target}: {word}: expected {what} >= 0, got {number:g}")
    if word == "free" and equals and not number > 0.0:
        raise ModelError(f"{FAULT}{target}: free: expected a resistance > 0, got {number:g}")
    return float(code), number


def fins(plant: Plant) -> tuple[str, ...]:
    """Return the fins that can lose chains.

    Parameters
    ----------
    plant : Plant
        Any plant.

    Returns
    -------
    tuple[str, ...]
        Names, from parameters NAME_chains_lost.
    """
    settable = describe_plant(plant).settable or ()
    return tuple(name.removesuffix(_LOST) for name in settable if name.endswith(_LOST))


def check_fault(target: str, value: Any, plant: Plant) -> None:
    """Check that a part of a plant can have a fault.

    Parameters
    ----------
    target : str
        Name of a sensor, an actuator or a fin.
    value : Any
        The fault, see `read_fault`.
    plant : Plant
        Plant with that part.

    Raises
    ------
    ModelError
        The value is no fault of that target, or its delay is too long.
    UnknownNameError
        The target or the word is unknown; the message has near misses.
    """
    inner_plant, broken = unwrapped(plant), fins(unwrapped(plant))
    actuators = [channel.name for channel in plant.actuators]
    sensors = list(describe_plant(plant).sensors)
    if target not in (*actuators, *broken, *sensors):
        raise UnknownNameError("target of a fault", target, [*actuators, *broken, *sensors])
    if target in sensors:
        read_fault(target, value, SENSOR_FAULTS)
        return
    code, number = read_fault(target, value, ACTUATOR_FAULTS if target in actuators else FIN_FAULTS)
    if target in broken and code:
        parameters = describe_plant(inner_plant).parameters()
        if is_dataclass(parameters) and not isinstance(parameters, type):
            replace(parameters, **{target + _LOST: number})
    elif code == A_DELAY and number >= MAX_DELAY_STEPS * plant.dt:
        raise ModelError(f"{FAULT}{target}: delay: expected < {MAX_DELAY_STEPS * plant.dt:g} s, got {number:g}")


class Faulty(Stage):
    """Plant whose actuators may fail, between the given command and the plant's command.

    Everything else is the plant's own.

    Parameters
    ----------
    plant : Plant
        The plant without faults.
    """

    _name = "a plant whose actuators may fail"
    _step_kernel = enter_step

    def __init__(self, plant: Plant) -> None:
        self.inner = (plant,)
        self.sound, self.dt, self.actuators, self.outputs = plant, plant.dt, plant.actuators, plant.outputs
        n = len(plant.actuators)
        self._names = [channel.name for channel in plant.actuators]
        self._limits = np.array([
            [-math.inf if c.lower is None else c.lower for c in plant.actuators],
            [math.inf if c.upper is None else c.upper for c in plant.actuators],
        ])  # fmt: skip
        self._neutral = np.array([channel.neutral for channel in plant.actuators], dtype=float)
        values = {"limits": self._limits, "dt": self.dt, "inner": {"dt": self.dt}}
        self.system = system = FAILING.make(values, {"actuators": n, "inner": 1})
        self._memory, self._command, self._torque, self._count = (
            system.fault_memory,
            system.command,
            system.torque,
            system.steps,
        )
        self._memory[BEFORE] = self._memory[RING:] = self._neutral
        self._address = system.address
        self._key = hashlib.sha256("\0".join(self._names).encode()).digest()
        self._compose()
        inner = describe_plant(plant)  # its estimator would step without the faults
        self._whole = {name: getattr(inner.parameters(), name + _LOST, 0) for name in fins(plant)}
        faults = (FAULT + name for name in (*self._names, *self._whole))
        self.description = replace(
            inner, set=self.set, settable=(*faults, *(inner.settable or ())), step_error_estimator=None
        )

    def reset(self, seed: int = 0) -> None:
        """Reset the plant, and end all faults.

        Parameters
        ----------
        seed : int, default 0
            Seed of the plant's reset.
        """
        seed = read_seed("faults", seed)
        whole = {name + _LOST: count for name, count in self._whole.items()}
        if any(getattr(self.parameters, name) != count for name, count in whole.items()):
            self._pass_on(whole)
        self.sound.reset(seed)
        self._memory[:], self._torque[:] = 0.0, 0.0
        self._memory[BEFORE] = self._memory[RING:] = self._neutral
        self._steps = 0

    def step(self, command: Array) -> None:
        """Change the command as the faults do, and step the plant.

        Parameters
        ----------
        command : Array
            (n,) given command.
        """
        self._command[:] = read_command("faults", self.actuators, command)
        if A_FREE in self._memory[CODES]:
            self._torque[:] = self.sound.observe()[_TORQUES]
        if COMPILED:
            enter_bend(self._address)
        else:
            bend(self._memory, self._steps, self._command, self._limits, self._torque, self.dt)
            self._steps += 1
        self.sound.step(self._memory[BEFORE])

    @override
    def compiled_step(self) -> CompiledStep | None:
        """Return the compiled step; None also where an actuator is free and compiled code finds no rod torques."""
        return None if not self.system.torques and A_FREE in self._memory[CODES] else super().compiled_step()

    @override
    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return a fork; None also where an actuator is free and compiled code does not find the rods' torques."""
        return None if not self.system.torques and A_FREE in self._memory[CODES] else super().fork(memory)

    def observe(self) -> dict[str, Array]:
        """Return the plant's outputs.

        Returns
        -------
        dict[str, Array]
            Arrays by name.
        """
        return self.sound.observe()

    def _state_arrays(self) -> Mapping[str, Array]:
        return {"memory of faults": self._memory}

    def _after_restore(self) -> None:
        self._torque[:] = 0.0

    def _bind(self, system: Any, forks: Sequence[Fork] | None, accounts: Sequence[CompiledOutputs | None]) -> bool:
        """Write the address at which compiled code finds the rods' torques, if it does."""
        numbers = {} if accounts[0] is None else accounts[0].numbers
        address, count = numbers.get(_TORQUES, (0, 0))
        system.put(torques=address if count == len(self._names) else 0)
        return True

    def set(self, **parameters: Any) -> None:
        """Change parameters while the plant runs: faults of actuators and fins here, all others in the plant.

        Parameters
        ----------
        **parameters : Any
            Values by name; 'fault.TARGET' sets a fault.

        Raises
        ------
        UnknownNameError
            The target of a fault is unknown.
        """
        faults: dict[int, tuple[float, float]] = {}
        remaining: dict[str, Any] = {}
        for name, value in parameters.items():
            target = name.removeprefix(FAULT)
            if not name.startswith(FAULT):
                remaining[name] = value
            elif target in self._whole:
                code, number = read_fault(target, value, FIN_FAULTS)
                remaining[target + _LOST] = number if code else self._whole[target]
            elif target in self._names:
                faults[self._names.index(target)] = self._checked(target, *read_fault(target, value, ACTUATOR_FAULTS))
            else:
                raise UnknownNameError("actuator or sensor", target, [*self._names, *self._whole])
        if remaining or not faults:
            self._pass_on(remaining)
        for i, (code, number) in faults.items():
            self._memory[CODES, i] = code
            unsaid = FREE_N_M_S if code == A_FREE else self._memory[BEFORE, i]
            self._memory[NUMBERS, i] = unsaid if math.isnan(number) else number

    def _pass_on(self, parameters: Mapping[str, Any]) -> None:
        """Set the plant's own parameters."""
        change = describe_plant(self.sound).set
        if change is None:
            name = next(iter(parameters), "")
            raise ModelError(f"set: this plant has no parameter '{name}' that can change while it runs")
        change(**parameters)

    def _checked(self, target: str, code: float, number: float) -> tuple[float, float]:
        """Raise ModelError for a fault that this plant, at this step, cannot have."""
        if code == A_DELAY and number >= MAX_DELAY_STEPS * self.dt:
            raise ModelError(f"{FAULT}{target}: delay: expected < {MAX_DELAY_STEPS * self.dt:g} s, got {number:g}")
        if code == A_FREE:
            shape = {channel.name: channel.shape for channel in self.outputs}.get(_TORQUES)
            if shape != (len(self._names),):
                raise ModelError(f"{FAULT}{target}: free: expected a plant with the output {_TORQUES}, got one without")
        return code, number
