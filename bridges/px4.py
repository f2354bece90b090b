"""PX4's software in the loop over MAVLink (its interface for simulators): sensors out, actuators in, in lockstep.

The bridge is the TCP server, PX4 connects. Until PX4's first actuators the plant runs at the pace of wall time, because
PX4 starts up on the sensors' clock. From then on each frame of sensors waits for PX4's answer to the one before, if
PX4 runs in lockstep. If the plant does not, its latest states wait for PX4.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import rtmms
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.bridge import Requirements
from rtmms.bridging.channels import ChannelMap, ChannelMapping
from rtmms.bridging.untrusted import Admission, Fuzzed, Refusal

from .autopilot.airframes import FLOOR
from .autopilot.hil import ACCEL, BARO, GYRO, MAG, OwnSensors, Read, Sensors, earth_field
from .autopilot.mavframes import Reader, Writer, fuzz_stream
from .autopilot.parameter_channels import ParameterBridge, ParameterChannels
from .autopilot.peer_gone import PEER_GONE_S, PeerGone
from .autopilot.pulses import map_channels
from .lines.addresses import host_port, resolve_receiver
from .lines.pacing import MAX_CATCH_UP_STATES, Pacer, at_rest, substeps
from .lines.tcp_peer import TcpPeer
from .motion.frames import Home
from .motion.imu import gravity_of
from .motion.pose import Motion, PoseNames, PoseReader, truth_names

_ARMED = 128
_LOCKSTEP = 1
_SET_MESSAGE_INTERVAL = 511
_HIL_STATE_QUATERNION = 115
_CONTROLS = 16
_FIRST_US = 1_000_000
_MAX_STREAM_HZ = 1000.0
_PATIENCE_S = 0.05
_CATCH_UP_S = 0.1
"""Simulated time whose states a late PX4 still gets, one frame after the other: it loses no reading of its IMU.

Of frames that arrive at once PX4's queue has room for eight: it computes a wrong velocity if it loses some of them.
"""
_MAX_GARBAGE_BYTES = 65536
"""Bytes without a message of MAVLink after which the client is no PX4."""


class Actuators(NamedTuple):
    """HIL_ACTUATOR_CONTROLS.

    Attributes
    ----------
    controls : tuple[float, ...]
        16 values, as PX4 sends them.
    armed : bool
        Whether PX4 is armed.
    lockstep : bool
        Whether PX4 runs in lockstep.
    """

    controls: tuple[float, ...]
    armed: bool
    lockstep: bool


class Interval(NamedTuple):
    """Request of PX4 for the rate of a message.

    Attributes
    ----------
    message : int
        Number of the message.
    rate_hz : float | None
        Rate, Hz; None for the default, 0 for none.
    """

    message: int
    rate_hz: float | None


def parse(message: Any) -> Actuators | Interval | None:
    """Return the meaning of a message of PX4.

    Parameters
    ----------
    message : Any
        The message.

    Returns
    -------
    Actuators | Interval | None
        None if it has no meaning here.

    Raises
    ------
    Refusal
        If a number is not finite.
    """
    kind = message.get_type()
    if kind == "HIL_ACTUATOR_CONTROLS":
        return Actuators(tuple(message.controls), bool(message.mode & _ARMED), bool(message.flags & _LOCKSTEP))
    if kind == "COMMAND_LONG" and message.command == _SET_MESSAGE_INTERVAL:
        which, us = message.param1, message.param2
        if not (isfinite(which) and isfinite(us)):
            raise Refusal(
                "not_finite",
                f"SET_MESSAGE_INTERVAL: expected a finite message id and interval, got {which} and {us} us",
            )
        return Interval(round(which), None if us == 0 else 0.0 if us < 0 else min(_MAX_STREAM_HZ, 1e6 / us))
    return None


def fuzzed() -> Fuzzed:
    """Return the parser of a peer's bytes, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    from pymavlink.dialects.v20 import common as of

    writer = Writer(1, 1)
    return fuzz_stream(parse), [
        writer.pack(of.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3)),
        writer.pack(of.MAVLink_command_long_message(0, 0, 511, 0, 115, 5000, 0, 0, 0, 0, 0)),
        writer.pack(of.MAVLink_hil_actuator_controls_message(123456, [0.25] * 16, 129, 1)),
    ]


@dataclass(kw_only=True)
class Px4(ParameterBridge):
    """Lets PX4's software in the loop drive the plant (MAVLink HIL, TCP server), and sends it readings of sensors.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    peer_timeout_s : float, default 1.0
        Silence after a peer's first message from which it counts as lost (wall time); 0: never. Unit: s.
    """

    host: Annotated[str, NamesAddress("listen"), Parameter("Address at which the bridge listens.")] = "127.0.0.1"
    port: Annotated[int, Parameter(
        "Port at which the bridge listens; instance n of PX4 connects to 4560 + n; 0: a free one.", ge=0, le=65535,
    )] = 4560  # fmt: skip
    peer: Annotated[tuple[str, ...], Parameter(
        "Hosts that may connect: HOST or NETWORK/BITS; none: all that reach the port.",
    )] = ()  # fmt: skip
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim), value -1 to 1. none: those of "
        "the airframe, or channel i is actuator i, over its limits. The value is from 0 where the lower limit is 0, "
        "else from -1.",
    )] = ()  # fmt: skip
    parameter_channels: Annotated[dict[str, str], Parameter(
        "Controls that set parameters of a controller, as `3=mixer.thrust`; '-' before the name changes the "
        "sign; 0 while not armed.",
    )] = field(default_factory=dict)  # fmt: skip
    sensor_hz: Annotated[float, Parameter(
        "Frames of HIL_SENSOR, of whole plant steps, per second of simulated time.", "Hz",
    )] = 250.0  # fmt: skip
    mag_hz: Annotated[float, Parameter("Rate of the magnetic field within the frames.", "Hz", ge=0)] = 50.0
    baro_hz: Annotated[float, Parameter("Rate of the pressure within the frames.", "Hz", ge=0)] = 50.0
    gps_hz: Annotated[float, Parameter("Rate of HIL_GPS.", "Hz", ge=0)] = 10.0
    state_hz: Annotated[float, Parameter(
        "Rate of HIL_STATE_QUATERNION, until PX4 asks for another.", "Hz", ge=0,
    )] = 50.0  # fmt: skip
    home: Annotated[Home, Parameter(
        "Place of the world's origin (lat_deg, lon_deg, alt_m) and compass bearing of its x axis "
        "(x_bearing_deg).",
    )] = field(default_factory=lambda: Home(lat_deg=47.397742, lon_deg=8.545594, alt_m=488.0))  # fmt: skip
    field_ned_gauss: Annotated[tuple[float, ...], Parameter(
        "Magnetic field, north, east, down; none: the World Magnetic Model's at home.", "G", signed=True,
    )] = ()  # fmt: skip
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip
    noise: Annotated[float, Parameter(
        "Factor on the usual noise of sensors that the plant does not have; without noise PX4 considers sensors "
        "broken.", ge=0,
    )] = 1.0  # fmt: skip
    unanswered_s: Annotated[float, Parameter(
        "Time after which a frame without an answer is followed by the next (wall time); 0: never.", "s", ge=0,
    )] = 1.0  # fmt: skip
    peer_timeout_s: float = 1.0
    peer_gone_s: Annotated[float, Parameter(
        "Time after which a run with a duration ends when PX4 has gone (wall time); 0: never.", "s", ge=0,
    )] = PEER_GONE_S  # fmt: skip
    reset: Annotated[bool, Parameter("Whether a PX4 that connects again resets the plant, at most once in 2 s.")] = True
    ground: Annotated[str, NamesAddress("connect"), Parameter(
        "Address HOST:PORT of a ground station that gets a copy of all messages (UDP).",
    )] = ""  # fmt: skip
    plant_silent: Annotated[Literal["wait", "still"], Parameter(
        "Messages to PX4 while the plant is silent (watchdog_periods): none, so that its clock waits, or a robot "
        "at rest.",
    )] = "wait"  # fmt: skip

    extra: ClassVar[str] = "px4"
    requires: ClassVar[dict[str, str]] = {"pymavlink": "pymavlink", "pygeomag": "pygeomag"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if self.rate_hz:
            raise rtmms.ModelError("rate_hz: expected none, as sensor_hz sets the rate")
        if self.field_ned_gauss and (len(self.field_ned_gauss) != 3 or not any(self.field_ned_gauss)):
            raise rtmms.ModelError(f"field_ned_gauss: expected 3 numbers, not all 0, got {self.field_ned_gauss}")
        self._parameter_channels = ParameterChannels(
            self.parameter_channels, tuple(str(i) for i in range(1, _CONTROLS + 1))
        )
        if self.plant_silent == "still" and not self.watchdog_periods:
            raise rtmms.ModelError(
                "plant_silent=still: expected watchdog_periods > 0, the time after which the bridge sends a state at "
                "rest, got 0"
            )
        if self.ground:
            host_port(self.ground, "ground")

    @override
    def claims(self) -> tuple[str, ...]:
        """Return the actuators of the channels, or else `claim`, or else all without parameter channels."""
        return (
            tuple(entry.actuator for entry in self.channels)
            or self.claim
            or (() if self.parameter_channels else ("*",))
        )

    @override
    def requirements(self) -> Requirements:
        """Return the need of each state without a claim, because telemetry has fewer states than PX4 has frames."""
        return Requirements(every_state=not self.claims(), parameters=FLOOR if self.claims() else ())

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Start the server, and find the outputs and channels."""
        alone = self._parameter_channels and not self.channels
        self._map = ChannelMap(()) if alone else self._channel_map(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._read, self._plant_sensors = PoseReader(truth_names(self.pose, plant), plant), OwnSensors(plant)
        magnetic = self.field_ned_gauss or earth_field(self.home)
        self._sensors = Sensors(
            self.home, (magnetic[0], magnetic[1], magnetic[2]), self.noise, plant.seed, gravity_of(plant)
        )
        self._pace(plant)
        catch_up_states = max(MAX_CATCH_UP_STATES, round(_CATCH_UP_S / (plant.dt * self.every)))
        self._pacer = Pacer(self, self.waits, "PX4", catch_up_states)
        self._rates = {"mag": self.mag_hz, "baro": self.baro_hz, "gps": self.gps_hz, "state": self.state_hz}
        self._slots = dict.fromkeys(self._rates, -1)
        self._offset_us, self._stamp_us = _FIRST_US, 0
        self._in_lock, self._next, self._sent_at, self._asked_at, self._garbage = False, 0.0, 0.0, 0.0, 0
        self._here, self._before = False, False
        self._departure = PeerGone(self, "PX4", self.peer_gone_s)
        self._reader = Reader(self.counts.refuse)
        self._writer = Writer(1, 200)
        self._ground, self._listener = None, None
        if self.ground:
            family, self._ground = resolve_receiver(self.ground, "ground")
            self._listener = socket.socket(family, socket.SOCK_DGRAM)
            self._listener.setblocking(False)
            self.closing.callback(self._listener.close)
        admission = Admission(self.peer)
        self._peer = TcpPeer(
            self.io, self.counts, self.host, self.port, received=self._on_bytes, came=self._came, gone=self._gone,
            admission=admission,
        )  # fmt: skip
        self.closing.callback(self._peer.close)
        place = f"TCP {self.host}:{self._peer.address[1]}"
        if self._plant_sensors.names:
            self.io.log(f"HIL_SENSOR has the readings of the plant's sensors ({', '.join(self._plant_sensors.names)})")
        self.unmet = f"PX4 sent nothing to {place}"
        self.io.log(f"waiting for PX4 on {place}; {admission.sentence(place)}")

    def _channel_map(self, plant: rtmms.PlantInfo) -> ChannelMap:
        """Return the channel map.

        PX4 sends 0 to 1 for one-way actuators, such as a motor, and -1 to 1 for the others.
        """
        return map_channels(self.channels, plant, "px4", -1.0, 1.0, _CONTROLS, stop=0.0)

    # -- the plant ---------------------------------------------------------------------------------------------------

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send sensors if a frame ends with this state."""
        due = self._pacer.on_state(state)
        if due is not None:
            self._send_px4(due)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._pace(plant)
        self._pacer.plant_again(self.waits)

    def _pace(self, plant: rtmms.PlantInfo) -> None:
        """Set the length of a frame, and whether the plant waits for us."""
        self.waits = plant.mode == "lockstep" and bool(plant.granted)
        self.peer_watch.limit_s = 0.0 if self.waits else self.peer_timeout_s  # in lockstep the plant waits for it
        self._steps = substeps(self.sensor_hz, plant.dt * self.every, 0.0)
        self._frame_s = self._steps * plant.dt * self.every
        self.tick_s = min(0.05, self._frame_s)

    def _send_px4(self, state: rtmms.State) -> None:
        us, frame_us = round(state.time * 1e6) + self._offset_us, round(self._frame_s * 1e6)
        if us <= self._stamp_us:  # the plant began anew; PX4's clock must not go back
            self._offset_us += self._stamp_us + frame_us - us
            us = round(state.time * 1e6) + self._offset_us
            self._slots = dict.fromkeys(self._rates, -1)
        elif self._in_lock and us > self._stamp_us + frame_us + 1:
            # the bridge missed states: PX4's clock waits, because PX4 computes wrong velocities over a gap
            self._offset_us -= us - self._stamp_us - frame_us
            us = self._stamp_us + frame_us
        self._stamp_us = us
        self._send_sensors(self._read(state), us, self._plant_sensors(state))
        if not self.waits and self._here and not self._in_lock:
            self._ask()  # it runs on by itself: the next frame is due in due time

    def _send_sensors(self, motion: Motion, us: int, reading: Read | None = None) -> None:
        fields = ACCEL | GYRO | (MAG if self._due("mag", us) else 0) | (BARO if self._due("baro", us) else 0)
        sensors = self._sensors
        try:
            sensors.feel(motion, reading)
            messages = [sensors.imu(motion, us, fields)]
            if self._due("gps", us):
                messages.append(sensors.gps(motion, us))
            if self._due("state", us):
                messages.append(sensors.truth(motion, us))
        except (ValueError, OverflowError):
            self.counts.add("not_finite")
            return
        self._sent_at = monotonic()
        for message in messages:  # HIL_SENSOR first: it sets the clock that the others are stamped with
            packed = self._writer.pack(message)
            self._peer.send(packed)
            self._send_ground(packed)

    def _due(self, what: str, us: int) -> bool:
        slot = int(us * 1e-6 * self._rates[what] + 1e-6)
        if slot <= self._slots[what]:
            return False
        self._slots[what] = slot
        return True

    # -- PX4 ---------------------------------------------------------------------------------------------------------

    def _came(self) -> None:
        self._reader, self._garbage = Reader(self.counts.refuse), 0
        self._in_lock, self._here = False, False

    def _greeted(self) -> None:
        """Handle the first message, which shows that the client is PX4."""
        self._here, self._next, self.unmet = True, monotonic(), ""
        self._departure.present()
        if self._before and self.reset:
            self._pacer.reset()
        self._before = True
        if not self.waits:
            self._ask()

    def _gone(self) -> None:
        was, self._in_lock, self._here = self._here, False, False
        if was:
            self._departure.silent(monotonic())
            self.on_peer_lost("PX4 is gone; waiting for it")

    @override
    def let_go(self, values: Mapping[str, float]) -> None:
        """Set the values of a lost PX4, and take no more steps for it."""
        self._pacer.idle(values)

    def _on_bytes(self, data: bytes) -> None:
        result = self._reader.feed(data)
        self._garbage = 0 if result else self._garbage + len(data)
        if self._garbage > _MAX_GARBAGE_BYTES:
            self.counts.refuse("no_mavlink")
            self._peer.drop("what is connected does not speak MAVLink")
            return
        if result and not self._here:
            self._greeted()
        for message in result:
            with self.counts.message():
                meaning = parse(message)
                if isinstance(meaning, Actuators):
                    self._take(meaning)
                elif isinstance(meaning, Interval) and meaning.message == _HIL_STATE_QUATERNION:
                    self._rates["state"] = self.state_hz if meaning.rate_hz is None else meaning.rate_hz
                    self._slots["state"] = int(self._stamp_us * 1e-6 * self._rates["state"])
                self._send_ground(message.get_msgbuf())

    def _take(self, message: Actuators) -> None:
        values = self.neutral()
        if not message.armed:
            self._parameter_channels.zero_parameters()
        else:
            controls = {str(i): value for i, value in enumerate(message.controls, 1)}
            try:
                values = self._map.to_actuators(controls)
                self._speak(controls)
            except ValueError:
                # an answer to the frame all the same: PX4 does not send another one
                self.counts.refuse("not_finite")
                self.io.log("PX4 sent a control that is not finite; the last valid values are used")
                values = {}
        self._pacer.drive(values)
        if message.lockstep and not self._in_lock:
            self._in_lock = True
            if self.waits:
                self.io.log("PX4 and the plant run in lockstep")
        if self._in_lock:
            self._ask()

    def _speak(self, controls: Mapping[str, float]) -> None:
        """Set the parameters of channels; ValueError if a value is not finite."""
        spoken = {channel: value for channel, value in controls.items() if self._parameter_channels.knows((channel,))}
        if not all(map(isfinite, spoken.values())):
            raise ValueError
        self._parameter_channels.take(
            {channel: round(max(-1.0, min(1.0, value)), 3) for channel, value in spoken.items()}
        )

    def _ask(self) -> None:
        """Begin the next frame, unless one is under way."""
        if not self._pacer.asked:
            self._asked_at = monotonic()
            due = self._pacer.go(self._steps if self.waits else self._steps * self.every)
            if due is not None:
                self._send_px4(due)

    def _send_ground(self, packed: bytes) -> None:
        if self._listener is not None:
            try:
                self._listener.sendto(packed, self._ground or ())
            except OSError:
                self.counts.add("dropped")

    # -- time --------------------------------------------------------------------------------------------------------

    @override
    def tick(self, now: float) -> None:
        self._pacer.tick(now)
        newest = self._pacer.newest
        self._departure.check(now, newest.time if newest is not None else 0.0)
        if self._reader.behind:
            self._on_bytes(b"")
        if not self._here:
            return
        if self.waits and not self._in_lock and now >= self._next:
            self._next = max(self._next + self._frame_s, now - 0.1)
            self._ask()
        elif self._in_lock and self.unanswered_s and not self._pacer.asked and now - self._sent_at > self.unanswered_s:
            self.counts.add("unanswered")
            self._ask()
        if self.plant_silent == "still" and self.silent and self._pacer.asked and now - self._asked_at > _PATIENCE_S:
            self._stand_in(now)

    def _stand_in(self, now: float) -> None:
        """Send the next frame of a robot at rest, because the plant is silent."""
        newest = self._pacer.newest
        if newest is not None and now - self._sent_at >= self._frame_s:
            self._stamp_us += round(self._frame_s * 1e6)
            self.counts.add("still")
            self._send_sensors(at_rest(self._read(newest)), self._stamp_us)
