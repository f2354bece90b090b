"""Estimator as its own process: it reads a plant's sensors and publishes the robot's state as JSON over UDP."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, inf, radians, sin
from typing import TYPE_CHECKING, Annotated, Any

import rtmms
from rtmms.base.attitude import rotate_back
from rtmms.base.contract import ESTIMATE
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.toml_file import read_toml
from rtmms.base.trust import NamesFile

from .lines.addresses import host_port, resolve_receiver
from .lines.datagrams import send

if TYPE_CHECKING:
    from rtmms.sensing.data_sheets import Sensor
    from rtmms.sensing.estimator import Estimate

_PORT = 9910
_ANEW_S = 3.0


@dataclass(kw_only=True)
class Estimator(rtmms.Bridge):
    """Publishes position, attitude and velocity as the plant's sensors have them: JSON, a datagram an estimate.

    The declaration of each field has its meaning, unit and range.
    """

    to: Annotated[tuple[Annotated[str, NamesAddress("connect")], ...], Parameter(
        "Targets of the estimates, HOST:PORT each.",
    )] = (f"127.0.0.1:{_PORT}",)  # fmt: skip
    sensors: Annotated[str, NamesFile("input"), Parameter(
        "Data sheets of the sensors: typical, or the FILE.toml of --sensors.",
    )] = "typical"  # fmt: skip
    position: Annotated[tuple[float, ...], Parameter(
        "Place of the robot at the start and after a reset, known to 0.1 m; none: the origin.", "m", signed=True,
    )] = ()  # fmt: skip
    heading_deg: Annotated[float, Parameter(
        "Heading at the start and after a reset, from world x to the left, known to 3 deg.", "deg", signed=True,
    )] = 0.0  # fmt: skip
    publish_hz: Annotated[float, Parameter(
        "Estimates per second of simulated time; 0: one a sample of the imu.", "Hz", ge=0,
    )] = 0.0  # fmt: skip

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if self.claim:
            raise rtmms.ModelError("claim: expected none, as this bridge sends no commands")
        if self.rate_hz:
            raise rtmms.ModelError(
                "rate_hz: expected none, as the estimator receives every state; publish_hz is the rate of its output"
            )
        if not self.to:
            raise rtmms.ModelError("to: expected at least one HOST:PORT")
        for text in self.to:
            host_port(text, "to", _PORT)
        if len(self.position) not in (0, 3):
            raise rtmms.ModelError(f"position: expected 3 numbers, got {len(self.position)}")
        self._time, self._slot, self._lost_since = -inf, -1, inf
        self._profile, self._over = "typical", dict[str, Any]()
        if self.sensors.endswith(".toml"):
            self._over = read_toml(self.sensors)
            self._profile = str(self._over.pop("profile", "ideal"))
        elif self.sensors != "typical":
            raise rtmms.UnknownNameError("sensors", self.sensors, ("typical",), "or a FILE.toml")

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Create the filter and the sockets."""
        from rtmms.sensing.estimator import compile_ahead, sensors_of

        compile_ahead()
        names = [channel.name for channel in plant.outputs]
        self._sensors: Mapping[str, Sensor] = sensors_of(names, self._profile, self._over)
        self._gravity, self._surface = plant.gravity, float(plant.environment.get("surface_m", 0.0))
        self._begin()
        imu = self._sensors[self._estimator.imu]
        if plant.telemetry_hz < imu.rate_hz:
            self.io.log(
                f"the plant sends about {plant.telemetry_hz:g} states a second, and {self._estimator.imu} has "
                f"{imu.rate_hz:g} samples a second; run the plant with --telemetry-hz {2.0 * imu.rate_hz:g}"
            )
        self._places = [resolve_receiver(text, "to", _PORT) for text in self.to]
        self._sockets: dict[int, socket.socket] = {}
        for family, _ in self._places:
            if family not in self._sockets:
                self._sockets[family] = built = socket.socket(family, socket.SOCK_DGRAM)
                built.setblocking(False)
                self.closing.callback(built.close)
        self.io.log("estimates to " + ", ".join(self.to))

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Update the estimate, and publish it if it is due."""
        if state.time < self._time:
            self._begin()  # the plant was reset
        self._time = state.time
        if not self._estimator.update(state.outputs):
            return
        slot = int(state.time * self.publish_hz + 1e-6)
        if self.publish_hz and slot <= self._slot:
            return
        self._slot = slot
        now = self._estimator.estimate()
        self._see_to(now)
        try:
            message = json.dumps(as_data(now), allow_nan=False, separators=(",", ":")).encode()
        except ValueError:
            self.counts.add("not_finite")
            return
        for family, place in self._places:
            send(self._sockets[family], message, place, self.counts)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        """Begin anew with the next plant."""
        super().plant_again(plant)
        self._begin()

    def _begin(self) -> None:
        from rtmms.sensing.estimator import Estimator as Filter

        half = 0.5 * radians(self.heading_deg)
        self._estimator = Filter(
            self._sensors, position=self.position or None, quaternion=(cos(half), 0.0, 0.0, sin(half)),
            gravity=self._gravity, surface=self._surface,
        )  # fmt: skip
        self._time, self._slot, self._lost_since = -inf, -1, inf

    def _see_to(self, now: Estimate) -> None:
        """Restart an estimate that several sensors contradict for a while, with a line in the log."""
        if len(now.doubted) < 2:
            self._lost_since = inf
            return
        if self._lost_since == inf:
            self._lost_since = now.time
            self.io.log(f"t = {now.time:.2f} s: {', '.join(now.doubted)} contradict the estimate")
        elif now.time - self._lost_since > _ANEW_S:
            self._estimator.start_anew()
            self._lost_since = inf
            self.counts.add("begun_anew")


def as_data(now: Estimate) -> dict[str, Any]:
    """Return an estimate for publication.

    Parameters
    ----------
    now : Estimate
        The estimate.

    Returns
    -------
    dict[str, Any]
        Plain numbers, lists and texts by name.
    """
    w, x, y, z = now.quaternion.tolist()
    a, b, c = now.velocity.tolist()
    result: dict[str, Any] = {
        "position": now.position.tolist(), "quaternion": [w, x, y, z], "velocity": rotate_back((w, x, y, z), (a, b, c)),
        "gyro_bias": now.gyro_bias.tolist(), "accel_bias": now.accel_bias.tolist(),
        "deviation": [max(0.0, float(now.covariance[k, k])) ** 0.5 for k in range(9)],
        "behind_s": now.behind, "lost": now.lost, "doubted": list(now.doubted),
    }  # fmt: skip
    return {"time": now.time} | {ESTIMATE + name: value for name, value in result.items()}
