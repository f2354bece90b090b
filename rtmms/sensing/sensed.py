"""A plant seen through its sensors, without and with an estimate among its outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rtmms.base.contract import ESTIMATE, TRUTH
from rtmms.base.errors import ModelError
from rtmms.base.jit import COMPILED, native
from rtmms.base.snapshot import pack_state, seal_parts, unpack_state, unseal_parts
from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.plant.protocol import Account, Accounted, Channel, Entry, Plant, PlantDescription, Wrapper, describe_plant
from rtmms.plant.validation import read_seed
from rtmms.sensing.data_sheets import Imu, Sensor
from rtmms.sensing.entry import FRESH, ROW, SEED, SENSORS, STEPS, enter_account, enter_look, enter_start, enter_step
from rtmms.sensing.estimator import Estimator
from rtmms.sensing.faults import FAULT, SENSOR_FAULTS, read_fault
from rtmms.sensing.instruments import look, start
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
    T_FAULT,
)
from rtmms.sensing.suite import assemble

# A plant seen through its sensors: what they tell, and the truth under names of its own.


_MOVING = (("position", M_POSITION, 3), ("quaternion", M_QUATERNION, 4), ("velocity", M_VELOCITY, 3),
           ("angular_velocity", M_RATE, 3))  # fmt: skip


def seen_through(plant: Plant, sensors: Mapping[str, Sensor]) -> Plant:
    """The plant with its sensors; without any, itself."""
    return Sensed(plant, sensors) if sensors else plant


class Sensed(Wrapper):
    """A plant around a plant: its actuators, and as outputs what the sensors tell, by 'SENSOR.quantity', with the truth
    under 'truth.NAME'. What the plant can do beside that it still can, under its own names where a person gives them.

    sensors   by name, see rtmms.sensing.data_sheets
    The plant stays in its present state; the sensors are switched on there, with the errors of seed 0. `place` moves
    the plant, and the sensors begin anew where it is then.
    Raises ModelError where a sensor cannot be on this plant.
    """

    def __init__(self, plant: Plant, sensors: Mapping[str, Sensor]) -> None:
        self.truth, self.dt, self.actuators = plant, plant.dt, plant.actuators
        self.sensors = dict(sensors)
        self.suite = assemble(sensors, plant)
        truth = tuple(replace(channel, name=TRUTH + channel.name) for channel in plant.outputs)
        self.outputs: tuple[Channel, ...] = (*self.suite.channels, *truth)
        self._told = [
            (channel.name, place, bool(channel.shape))
            for channel, place in zip(self.suite.channels, self.suite.places, strict=True)
        ]
        known = {channel.name for channel in plant.outputs}
        self._moving = [(name, slice(at, at + size)) for name, at, size in _MOVING if name in known]
        self._moving += list(self.suite.vectors.items())
        self._seen: dict[str, Array] | None = None
        self._accounted: Accounted | None = None
        self._inner: Entry | None = None
        self._bind()
        self.description = self._described()
        self.switch_on(0)

    def reset(self, seed: int = 0) -> None:
        """See Plant; the sensors are switched on anew, with errors that the seed decides."""
        seed = read_seed("sensors", seed)
        self.truth.reset(seed)
        self.switch_on(seed)

    def switch_on(self, seed: int) -> None:
        """Switch the sensors on at the plant's present state, with errors that the seed decides."""
        self._system.clear()
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
        """See Plant."""
        self.truth.step(command)
        self._counts[STEPS] += 1
        motion = self._motion
        motion[M_BEFORE:M_GRAVITY] = motion[M_TIME:M_EARLIER]
        self._changed()
        self._look()

    def enter(self) -> Entry | None:
        """See rtmms.plant.protocol.Entered."""
        if self._accounted is None:
            return None
        inner = self._accounted.enter()
        if inner is None:
            return None
        if inner is not self._inner:
            self._inner = inner
            self._system.put(step=inner.function)
            self._system.arguments[0, : len(inner.arguments)] = inner.arguments
            self._entry = Entry(native(enter_step, self._address), (self._address,), inner.command)
        return self._entry

    def entered(self, status: int) -> None:
        """See rtmms.plant.protocol.Entered."""
        self._seen = None
        assert self._accounted is not None
        self._accounted.entered(status)

    def account(self) -> Account | None:
        """See rtmms.plant.protocol.Accounted: what the sensors tell, and the truth."""
        if self._accounted is None:
            return None
        at = self._state.ctypes.data
        numbers = {name: (at + 8 * place.start, place.stop - place.start) for name, place, _ in self._told}
        numbers |= {TRUTH + name: part for name, part in self._true.items()}
        return Account(native(enter_account, self._address), (self._address,), numbers)

    def observe(self) -> dict[str, Array]:
        """See Plant."""
        state = self._state
        seen = {name: state[place].copy() if plain else state[place][0].copy() for name, place, plain in self._told}
        if self._seen is None:
            self._seen = self.truth.observe()
        for name, value in self._seen.items():
            seen[TRUTH + name] = value
        return seen

    def snapshot(self) -> bytes:
        """See Plant: of the plant, the sensors' state and what of the last motion they need."""
        own = pack_state(self._key, self.dt, int(self._counts[STEPS]), self._system.memory)
        return seal_parts(own, self.truth.snapshot())

    def restore(self, blob: bytes) -> None:
        """See Plant."""
        own, inner = unseal_parts(blob, "a plant with these sensors", 2)
        arrays = {"state": self._system.memory}
        _, found = unpack_state(own, "a plant with these sensors", self._key, self.dt, arrays, finite=False)
        self.truth.restore(inner)
        self._system.clear()
        self._system.memory[:] = found["state"]
        self._feel()
        self._changed()

    @property
    def _key(self) -> bytes:
        return hashlib.sha256("\0".join(channel.name for channel in self.suite.channels).encode()).digest()

    def _changed(self) -> None:
        """The plant's outputs are no longer those that were asked for."""
        self._seen, self._counts[FRESH] = None, 0

    def _feel(self) -> None:
        """The plant's gravity, as it is now."""
        self._motion[M_GRAVITY:M_VECTORS] = self.description.surroundings().gravity

    def _look(self) -> None:
        if self._accounted is None:
            seen = self._seen = self.truth.observe()
            for name, place in self._moving:
                self._motion[place] = seen[name]
        if COMPILED:
            enter_look(self._address)
        else:
            counts, suite = self._counts, self.suite
            self._motion[M_TIME] = counts[STEPS] * self.dt
            look(suite.timing, suite.block, int(counts[SEED]), self._motion, self._system.scratch, self._state)

    def _bind(self) -> None:
        """The sensors' record. Where compiled code can ask the plant for its step and its outputs, it shall."""
        plant, suite = self.truth, self.suite
        account = plant.account() if COMPILED and isinstance(plant, Accounted) else None
        if account is not None and not all(name in account.numbers for name, _ in self._moving):
            account = None
        rows = []
        if account is not None:
            assert isinstance(plant, Accounted)
            self._accounted, self._true = plant, account.numbers
            rows = [(*account.numbers[name], place.start, place.stop - place.start) for name, place in self._moving]
            assert all(count == room for _, count, _, room in rows)
        self._system = SENSORS.make(
            {
                "timing": suite.timing, "block": suite.block, "dt": self.dt,
                "gathered": np.array([row[:ROW] for row in rows], dtype=np.int64).reshape(-1, ROW),
                "account": 0 if account is None else account.function,
            },
            {"motion": suite.motion, "told": suite.size, "widest": suite.widest},
        )  # fmt: skip
        self._counts, self._motion, self._state = self._system.counts, self._system.motion, self._system.told
        self._address = self._system.address
        if account is not None:
            self._system.arguments[1, : len(account.arguments)] = account.arguments

    def _described(self) -> PlantDescription:
        """The plant's, of outputs under other names, with faults of the sensors among its parameters. Its figure is
        the truth's; what is known of the plant's accuracy is known of the plant alone."""
        inner = describe_plant(self.truth)
        return replace(
            inner, truth=self.truth, sensors=self.sensors, set=self.set,
            settable=(*(FAULT + name for name in self.sensors), *(inner.settable or ())),
            trace_outputs=tuple(TRUTH + name for name in inner.trace_outputs),
            summarise=None if inner.summarise is None else self._summarise,
            recent_outputs=tuple(TRUTH + name for name in inner.recent_outputs), figure=None, accurate={},
        )  # fmt: skip

    def place(self, *given: Any, **named: Any) -> None:
        """Put the plant into another state, as its own `place` does; the sensors are switched on anew there."""
        self.truth.place(*given, **named)  # type: ignore[attr-defined]
        self.switch_on(int(self._counts[SEED]))

    def set(self, **parameters: Any) -> None:
        """Faults of sensors are ours, see rtmms.sensing.faults; the rest is the plant's."""
        own = {}
        for name, value in parameters.items():
            target = name.removeprefix(FAULT)
            if name.startswith(FAULT) and target in self.sensors:
                own[target] = read_fault(target, value, SENSOR_FAULTS)
        rest = {name: value for name, value in parameters.items() if name.removeprefix(FAULT) not in own}
        if rest or not own:
            change = describe_plant(self.truth).set
            if change is None:
                name = next(iter(rest), "")
                raise ModelError(f"set: this plant has no parameter '{name}' that can change while it runs")
            change(**rest)
        for row, name in zip(self.suite.timing, self.sensors, strict=True):
            if name in own:
                self._state[int(row[T_FAULT]) : int(row[T_FAULT]) + 2] = own[name]
        self._feel()
        self._changed()

    def _summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        own = describe_plant(self.truth).summarise
        assert own is not None
        return own(time, {name.removeprefix(TRUTH): value for name, value in trace.items()})


# A plant seen through its sensors, with what the estimator makes of them among its outputs.


_CHANNELS = (
    Channel(ESTIMATE + "position", "m", (3,), "world"), Channel(ESTIMATE + "quaternion", "", (4,), "world"),
    Channel(ESTIMATE + "velocity", "m/s", (3,), "body"),
)  # fmt: skip

BEGINS = (1e-5, 1e-5, 1e-5)
"""Standard deviations of position, velocity and attitude at the start, where the estimate is the truth."""


class Estimated(Sensed):
    """A plant with sensors that tells estimate.position, estimate.quaternion and estimate.velocity besides, of the
    point that the truth is of, at the imu's newest sample. The estimate begins at the truth.

    estimator   as a controller would have it, on the same readings
    Raises ModelError where a sensor cannot be on this plant, and where there is no imu.
    """

    def __init__(self, plant: Plant, sensors: Mapping[str, Sensor]) -> None:
        if not any(isinstance(one, Imu) for one in sensors.values()):
            raise ModelError("--estimate: expected an imu among the sensors (--sensors typical)")
        self._told_of: dict[str, Array] | None = None
        super().__init__(plant, sensors)
        self._views = {
            name: self._state[place] if plain else self._state[place.start : place.stop].reshape(())
            for name, place, plain in self._told
        }
        self.outputs = (*self.outputs, *_CHANNELS)

    def switch_on(self, seed: int) -> None:
        """See Sensed; the estimate begins anew, at the truth."""
        super().switch_on(seed)
        self.estimator, self._told_of = self._begun(), None

    def step(self, command: Array) -> None:
        """See Plant."""
        super().step(command)
        self._hear()

    def entered(self, status: int) -> None:
        """See rtmms.plant.protocol.Entered."""
        super().entered(status)
        self._hear()

    def account(self) -> Account | None:
        """None: the estimate is made in Python, after each step."""
        return None

    def observe(self) -> dict[str, Array]:
        """See Plant."""
        if self._told_of is None:
            self._told_of = self._tell()
        return super().observe() | {name: value.copy() for name, value in self._told_of.items()}

    def snapshot(self) -> bytes:
        """See Plant: with all that the estimator knows."""
        return seal_parts(super().snapshot(), self.estimator.snapshot())

    def restore(self, blob: bytes) -> None:
        """See Plant."""
        inner, known = unseal_parts(blob, "a plant with an estimate", 2)
        estimator = self._begun()
        estimator.restore(known)
        super().restore(inner)
        self.estimator, self._told_of = estimator, None

    def _feel(self) -> None:
        super()._feel()
        if hasattr(self, "estimator"):
            self.estimator.change_gravity(self.description.surroundings().gravity, float(self._counts[STEPS]) * self.dt)

    def _described(self) -> PlantDescription:
        return replace(super()._described(), estimates=True)

    def _begun(self) -> Estimator:
        true = self.truth.observe()
        quaternion, around = np.asarray(true["quaternion"], dtype=float), self.description.surroundings()
        return Estimator(
            self.sensors, position=np.asarray(true["position"]), quaternion=quaternion,
            velocity=quaternion_matrix(quaternion) @ np.asarray(true["velocity"], dtype=float),
            deviations=BEGINS, gravity=around.gravity, surface=around.surface,
        )  # fmt: skip

    def _hear(self) -> None:
        """What the sensors tell now, as views: nothing is copied that is not new."""
        if self.estimator.hear(self._views):
            self._told_of = None

    def _tell(self) -> dict[str, Array]:
        now = self.estimator.estimate()
        found = now.position, now.quaternion, quaternion_matrix(now.quaternion).T @ now.velocity
        return {channel.name: value for channel, value in zip(_CHANNELS, found, strict=True)}


def truth_of(outputs: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """Position (3,), velocity (3,) and rotation (3, 3), all of the world, that a plant with sensors hides."""
    rotation = quaternion_matrix(np.asarray(outputs[TRUTH + "quaternion"], dtype=float))
    return np.array(outputs[TRUTH + "position"]), rotation @ np.asarray(outputs[TRUTH + "velocity"]), rotation
