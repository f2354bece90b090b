"""A plant seen through its sensors, with what the estimator makes of them among its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rtmms.contract import ESTIMATE, TRUTH
from rtmms.errors import ModelError
from rtmms.plant import Account, Channel, Plant, PlantDescription
from rtmms.sensing.data_sheets import Imu, Sensor
from rtmms.sensing.entry import STEPS
from rtmms.sensing.estimator import Estimator
from rtmms.sensing.sensed import Sensed
from rtmms.snapshot import seal_parts, unseal_parts
from rtmms.spatial import Array, quaternion_matrix

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
        """See rtmms.plant.Entered."""
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
