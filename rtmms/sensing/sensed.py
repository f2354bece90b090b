"""Plant with sensors, without and with an estimate among its outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rtmms.base.contract import ESTIMATE, TRUTH
from rtmms.base.errors import ModelError
from rtmms.base.jit import COMPILED
from rtmms.base.override import override
from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.plant.description import PlantDescription, describe_plant
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep, Fork
from rtmms.plant.protocol import Channel, Plant
from rtmms.plant.stage import Stage, address_of_output
from rtmms.plant.validation import read_seed
from rtmms.sensing.compiled_step import (
    AT_SAMPLES,
    EACH_STEP,
    FRESH,
    FROM,
    NEVER,
    ROW,
    SEED,
    SENSORS,
    STEPS,
    enter_account,
    enter_look,
    enter_start,
    enter_step,
)
from rtmms.sensing.data_sheets import Imu, Sensor
from rtmms.sensing.estimator import Estimator
from rtmms.sensing.faults import FAULT, SENSOR_FAULTS, read_fault
from rtmms.sensing.instruments import look, samples_due, start
from rtmms.sensing.layout import (
    M_BEFORE,
    M_EARLIER,
    M_GRAVITY,
    M_POSITION,
    M_QUATERNION,
    M_RATE,
    M_TIME,
    M_VECTORS,
    M_VELOCITY,
    T_COUNT,
    T_FAULT,
)
from rtmms.sensing.suite import assemble

# A plant seen through its sensors: what they measure, and the truth under names of its own.


_due: Any = getattr(samples_due, "py_func", samples_due)
_MOVING = (("position", M_POSITION, 3), ("quaternion", M_QUATERNION, 4), ("velocity", M_VELOCITY, 3),
           ("angular_velocity", M_RATE, 3))  # fmt: skip


def seen_through(plant: Plant, sensors: Mapping[str, Sensor]) -> Plant:
    """Return the plant with its sensors.

    Parameters
    ----------
    plant : Plant
        Plant with pose and velocity.
    sensors : Mapping[str, Sensor]
        Sensors by name, see rtmms.sensing.data_sheets.

    Returns
    -------
    Plant
        The plant itself where there are no sensors.
    """
    return Sensed(plant, sensors) if sensors else plant


class Sensed(Stage):
    """Plant whose outputs are the sensors' readings, 'SENSOR.quantity', and the truth, 'truth.NAME'.

    It has the actuators of the plant in it. The plant's other functions remain, under its own names where a person
    gives them. The plant stays in its present state, and the sensors are switched on there, with the errors of seed 0.
    `place` moves the plant, and the sensors start anew there.

    Parameters
    ----------
    plant : Plant
        Plant with pose and velocity.
    sensors : Mapping[str, Sensor]
        Sensors by name, see rtmms.sensing.data_sheets.

    Raises
    ------
    ModelError
        A sensor cannot be on this plant.
    """

    _name = "a plant with these sensors"
    _finite = False
    _step_kernel = enter_step

    def __init__(self, plant: Plant, sensors: Mapping[str, Sensor]) -> None:
        self.truth, self.inner, self.dt, self.actuators = plant, (plant,), plant.dt, plant.actuators
        self.sensors = dict(sensors)
        self.suite = assemble(sensors, plant)
        truth = tuple(replace(channel, name=TRUTH + channel.name) for channel in plant.outputs)
        self.outputs: tuple[Channel, ...] = (*self.suite.channels, *truth)
        self._measured = [
            (channel.name, place, bool(channel.shape))
            for channel, place in zip(self.suite.channels, self.suite.places, strict=True)
        ]
        known = {channel.name for channel in plant.outputs}
        self._moving = [(name, slice(at, at + size)) for name, at, size in _MOVING if name in known]
        self._output_count = len(self._moving)
        self._sampling = [k for k in range(len(self.sensors)) if self.suite.measured_by(k)]
        self._moving += list(self.suite.vectors.items())
        self._truth_outputs: dict[str, Array] | None = None
        suite = self.suite
        self.system = SENSORS.make(
            {"timing": suite.timing, "block": suite.block, "dt": self.dt, "inner": {"dt": self.dt}},
            {
                "motion": suite.motion, "readings": suite.size, "widest": suite.widest, "gathered": len(self._moving),
                "inner": 1,
            },
        )  # fmt: skip
        self._counts, self._motion, self._state = self.system.counts, self.system.motion, self.system.readings
        self._address, self._count = self.system.address, self._counts[STEPS:]
        self._key = hashlib.sha256("\0".join(channel.name for channel in suite.channels).encode()).digest()
        self._compose()
        self.description = self._described()
        self.switch_on(0)

    def reset(self, seed: int = 0) -> None:
        """Reset the plant, and switch the sensors on anew.

        Parameters
        ----------
        seed : int, default 0
            Seed of the plant's reset and of the sensors' errors.
        """
        seed = read_seed("sensors", seed)
        self.truth.reset(seed)
        self.switch_on(seed)

    def switch_on(self, seed: int) -> None:
        """Switch the sensors on at the plant's present state.

        Parameters
        ----------
        seed : int
            Seed of the sensors' errors.
        """
        self.system.clear()
        self._counts[SEED], self._counts[STEPS] = seed, 0
        self._motion[:] = 0.0
        self._motion[[M_BEFORE, M_EARLIER]] = -1.0
        self._feel()
        if COMPILED:
            enter_start(self._address)
        else:
            start(self.suite.timing, self.suite.block, seed, self._state)
        self._changed()
        self._look()

    def step(self, command: Array) -> None:
        """Step the plant, and sample the sensors.

        Parameters
        ----------
        command : Array
            (n,) command of the plant.
        """
        self.truth.step(command)
        self._counts[STEPS] += 1
        motion = self._motion
        motion[M_BEFORE:M_GRAVITY] = motion[M_TIME:M_EARLIER]
        self._changed()
        self._look()

    def observe(self) -> dict[str, Array]:
        """Return readings and truth.

        Returns
        -------
        dict[str, Array]
            Arrays by name.
        """
        state = self._state
        observed = {
            name: state[place].copy() if plain else state[place][0].copy() for name, place, plain in self._measured
        }
        if self._truth_outputs is None:
            self._truth_outputs = self.truth.observe()
        for name, value in self._truth_outputs.items():
            observed[TRUTH + name] = value
        return observed

    def _packed_arrays(self) -> Mapping[str, Any]:
        packed = self._state_arrays()["state"].copy()
        packed.view(np.int64)[FRESH] = 0  # whatever was asked of the outputs in between
        return {"state": packed}

    @override
    def present(self) -> tuple[Array, int]:
        self._counts[FRESH] = 0  # the outputs of a fork are not of its state yet
        return super().present()

    def _changed(self) -> None:
        """Mark the cached outputs of the plant as out of date."""
        self._truth_outputs, self._counts[FRESH] = None, 0

    def _feel(self) -> None:
        """Read the plant's present gravity."""
        self.system.gravity[:] = self._motion[M_GRAVITY:M_VECTORS] = self.description.environment().gravity

    def _look(self) -> None:
        if not self._compiled:
            outputs = self._truth_outputs = self.truth.observe()
            for name, place in self._moving if self._samples_outputs() else self._moving[: self._output_count]:
                self._motion[place] = outputs[name]
        if COMPILED:
            enter_look(self._address)
        else:
            counts, suite = self._counts, self.suite
            self._motion[M_TIME] = counts[STEPS] * self.dt
            look(suite.timing, suite.block, int(counts[SEED]), self._motion, self.system.scratch, self._state)

    def _samples_outputs(self) -> bool:
        """Return whether a sample is due that needs outputs other than the body's motion."""
        if not self._sampling:
            return False
        time, timing = float(self._counts[STEPS]) * self.dt, self.suite.timing
        return any(_due(timing[k], time) > self._state[int(timing[k, T_COUNT])] for k in self._sampling)

    def _bind(self, system: Any, forks: Sequence[Fork] | None, accounts: Sequence[CompiledOutputs | None]) -> bool:
        """Write the addresses of the parts of the motion for compiled code; return False where one is missing."""
        fork = forks[0] if forks else None
        result = [address_of_output(name, fork, accounts[0]) for name, _ in self._moving]
        whole = all(address for address, _, _ in result)
        by_function = [written for _, _, written in result]
        # of the body's own motion the last steps matter, too: an accelerometer differentiates it
        when = EACH_STEP if any(by_function[: self._output_count]) else AT_SAMPLES if any(by_function) else NEVER
        system.put(written=when if whole else NEVER)
        system.reads[:] = [k in self._sampling for k in range(len(self.sensors))]
        system.gathered[:, FROM] = 0
        if whole:
            rows = [
                (address, count, place.start, int(k >= self._output_count))
                for k, ((address, count, _), (_, place)) in enumerate(zip(result, self._moving, strict=True))
            ]
            system.gathered[:] = np.array(rows, dtype=np.int64).reshape(-1, ROW)
        return whole

    def _inner_name(self, k: int, output: str) -> str:
        return TRUTH + output

    def _own_places(self) -> Mapping[str, tuple[int, int]]:
        first = (self._state.ctypes.data - self.system.memory.ctypes.data) // 8
        return {name: (first + place.start, place.stop - place.start) for name, place, _ in self._measured}

    def _command_address(self, system: Any, entries: Sequence[CompiledStep]) -> int:
        return entries[0].command

    def _account_entry(self, system: Any) -> tuple[Any, int]:
        return enter_account, system.address

    def _after_step(self) -> None:
        self._truth_outputs = None

    def _after_restore(self) -> None:
        self._feel()
        self._changed()

    def _described(self) -> PlantDescription:
        """Return the plant's description with renamed outputs and the sensors' faults among its parameters.

        The figure is that of the plant; its accuracy applies to the plant alone.
        """
        inner = describe_plant(self.truth)
        return replace(
            inner, truth=self.truth, sensors=self.sensors, set=self.set,
            settable=(*(FAULT + name for name in self.sensors), *(inner.settable or ())),
            trace_outputs=tuple(TRUTH + name for name in inner.trace_outputs),
            summarise=None if inner.summarise is None else self._summarise,
            recent_outputs=tuple(TRUTH + name for name in inner.recent_outputs), figure=None, accurate={},
        )  # fmt: skip

    def place(self, *values: Any, **named: Any) -> None:
        """Put the plant into another state, as its own `place` does, and switch the sensors on anew there.

        Parameters
        ----------
        *values, **named : Any
            Arguments of the plant's `place`.
        """
        self.truth.place(*values, **named)  # type: ignore[attr-defined]
        self.switch_on(int(self._counts[SEED]))

    def set(self, **parameters: Any) -> None:
        """Change parameters while the plant runs: faults of sensors here, all others in the plant.

        Parameters
        ----------
        **parameters : Any
            Values by name; 'fault.SENSOR' sets a fault, see rtmms.sensing.faults.

        Raises
        ------
        ModelError
            The plant has no parameter that can change.
        """
        faults = {}
        for name, value in parameters.items():
            target = name.removeprefix(FAULT)
            if name.startswith(FAULT) and target in self.sensors:
                faults[target] = read_fault(target, value, SENSOR_FAULTS)
        remaining = {name: value for name, value in parameters.items() if name.removeprefix(FAULT) not in faults}
        if remaining or not faults:
            change = describe_plant(self.truth).set
            if change is None:
                name = next(iter(remaining), "")
                raise ModelError(f"set: this plant has no parameter '{name}' that can change while it runs")
            change(**remaining)
        for row, name in zip(self.suite.timing, self.sensors, strict=True):
            if name in faults:
                self._state[int(row[T_FAULT]) : int(row[T_FAULT]) + 2] = faults[name]
        self._feel()
        self._changed()

    def _summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        summarise = describe_plant(self.truth).summarise
        assert summarise is not None
        return summarise(time, {name.removeprefix(TRUTH): value for name, value in trace.items()})


# A plant seen through its sensors, with what the estimator makes of them among its outputs.


_CHANNELS = (
    Channel(ESTIMATE + "position", "m", (3,), "world"), Channel(ESTIMATE + "quaternion", "", (4,), "world"),
    Channel(ESTIMATE + "velocity", "m/s", (3,), "body"),
)  # fmt: skip

BEGINS = (1e-5, 1e-5, 1e-5)
"""Standard deviations of position, velocity and attitude at the start, where the estimate is the truth."""


class Estimated(Sensed):
    """Plant with sensors and the outputs estimate.position, estimate.quaternion and estimate.velocity.

    The estimate has the truth's reference point and the time of the imu's newest sample. It starts at the truth.

    Parameters
    ----------
    plant : Plant
        Plant with pose and velocity.
    sensors : Mapping[str, Sensor]
        Sensors by name, with an imu.

    Attributes
    ----------
    estimator : Estimator
        As a controller would have it, on the same readings.

    Raises
    ------
    ModelError
        A sensor cannot be on this plant, or there is no imu.
    """

    def __init__(self, plant: Plant, sensors: Mapping[str, Sensor]) -> None:
        if not any(isinstance(sensor, Imu) for sensor in sensors.values()):
            raise ModelError("--estimate: expected an imu among the sensors (--sensors typical)")
        self._estimate_seen: dict[str, Array] | None = None
        super().__init__(plant, sensors)
        self._views = {
            name: self._state[place] if plain else self._state[place.start : place.stop].reshape(())
            for name, place, plain in self._measured
        }
        self.outputs = (*self.outputs, *_CHANNELS)

    @override
    def switch_on(self, seed: int) -> None:
        """Switch the sensors on, and start the estimate anew at the truth."""
        super().switch_on(seed)
        self.estimator, self._estimate_seen = self._begun(), None

    @override
    def step(self, command: Array) -> None:
        """Step the plant, sample the sensors, and update the estimate."""
        super().step(command)
        self._read_sensors()

    @override
    def compiled_outputs(self) -> CompiledOutputs | None:
        """Return None: Python makes the estimate after each step."""
        return None

    @override
    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return None: Python makes the estimate after each step."""
        return None

    def _after_step(self) -> None:
        super()._after_step()
        self._read_sensors()

    @override
    def observe(self) -> dict[str, Array]:
        """Return readings, truth and estimate."""
        if self._estimate_seen is None:
            self._estimate_seen = self._estimate()
        return super().observe() | {name: value.copy() for name, value in self._estimate_seen.items()}

    def _parts_at(self, arrays: Mapping[str, Any]) -> Sequence[Any]:
        return (*super()._parts_at(arrays), self.estimator)

    def _after_restore(self) -> None:
        super()._after_restore()
        self._estimate_seen = None

    def _feel(self) -> None:
        super()._feel()
        if hasattr(self, "estimator"):
            self.estimator.change_gravity(self.description.environment().gravity, float(self._counts[STEPS]) * self.dt)

    def _described(self) -> PlantDescription:
        return replace(super()._described(), estimates=True)

    def _begun(self) -> Estimator:
        true = self.truth.observe()
        quaternion, around = np.asarray(true["quaternion"], dtype=float), self.description.environment()
        return Estimator(
            self.sensors, position=np.asarray(true["position"]), quaternion=quaternion,
            velocity=quaternion_matrix(quaternion) @ np.asarray(true["velocity"], dtype=float),
            deviations=BEGINS, gravity=around.gravity, surface=around.surface,
        )  # fmt: skip

    def _read_sensors(self) -> None:
        """Update the estimator from views of the readings, without copies of old values."""
        if self.estimator.update(self._views):
            self._estimate_seen = None

    def _estimate(self) -> dict[str, Array]:
        now = self.estimator.estimate()
        result = now.position, now.quaternion, quaternion_matrix(now.quaternion).T @ now.velocity
        return {channel.name: value for channel, value in zip(_CHANNELS, result, strict=True)}


def truth_of(outputs: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """Return the true motion of a plant with sensors.

    Parameters
    ----------
    outputs : Mapping[str, Array]
        Outputs by name, with the truth among them.

    Returns
    -------
    tuple[Array, Array, Array]
        Position (3,) m, velocity (3,) m/s and rotation (3, 3) body to world, all in the world's frame.
    """
    rotation = quaternion_matrix(np.asarray(outputs[TRUTH + "quaternion"], dtype=float))
    return np.array(outputs[TRUTH + "position"]), rotation @ np.asarray(outputs[TRUTH + "velocity"]), rotation
