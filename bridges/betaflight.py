"""Betaflight's software in the loop: the robot's motion out, motors in, and pulses of a remote control, over UDP.

Betaflight answers each packet of motion with one of motors. Its clock runs at the spacing of the packets' stamps over
the spacing of their arrivals. Packets that wait in its socket arrive at once. Then the clock leaps, Betaflight takes
the remote control for lost, and stops the motors. So this bridge never has two packets under way, and outside lockstep
it stamps them with the time at which they are sent.

While Betaflight starts, a packet of motion ends it, and it discards a remote control. So the bridge sends nothing
before its port has been open for START_S. The bridge passes on the pulses of another program, which need not wait.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Annotated, Any, ClassVar

import rtmms
from rtmms.base.attitude import Vector
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.bridge import Requirements
from rtmms.bridging.channels import ChannelMap, ChannelMapping, Field
from rtmms.bridging.channels import field as find_field
from rtmms.bridging.untrusted import Admission, Fuzzed, Refusal, finite, fuzz

from .autopilot.airframes import FLOOR
from .autopilot.hil import NOISE, WANDER, GaussMarkovError, pressure_hpa
from .autopilot.peer_gone import PEER_GONE_S, PeerGone
from .autopilot.pulses import map_channels
from .lines.addresses import bind_udp, family_of, resolve_receiver
from .lines.datagrams import datagrams, send
from .lines.open_port import OpenPort
from .lines.pacing import Pacer
from .motion.frames import Home, attitude_to_ned, world_to_enu
from .motion.imu import Imu, gravity_of
from .motion.pose import Motion, PoseNames, PoseReader

_MOTION = struct.Struct("<18d")
_MOTORS = struct.Struct("<4f")
_RC = struct.Struct("<d16H")
_STAMP = struct.Struct("<d")
_CHANNELS = 4
_RC_CHANNELS = 16
_MIDDLE_US = 1500.0
_HALF_US = 500.0
_MAX_US = 2500.0
_PA_PER_HPA = 100.0
_GONE_S = 1.0
"""Silence after which a Betaflight that answers is another one, s of wall time."""
FIRST_S = 0.01
"""Time without its first motors after which Betaflight gets the motion again, with a later stamp, s of wall time.

Its clock stops with the first packet after a silence, because it divides by the time since its start. It continues with
the second one. It takes a rate only from two stamps that differ by less than 20 ms.
"""
RESEND_S = 0.1
"""Time without motors in flight after which it gets the motion again, s of wall time.

It is so much longer than a period that its clock does not leap if both packets waited in its socket.
"""
START_S = 2.0
"""Time for which Betaflight's port has to be open before the first motion, s of wall time.

A motion that arrives while Betaflight starts makes it end, or send no motors for good.
"""
PROBE_S = 0.6
"""Time between two packets of motion to a Betaflight that has not answered, s of wall time."""
PROBES = 3
"""Answers after which Betaflight gets each motion; without sensors it answers a packet after 0.5 s of silence."""
_IGNORED = b"?"
"""Packet that Betaflight ignores, because its length is not that of a motion."""


def parse(datagram: bytes) -> tuple[float, ...]:
    """Return the four motors.

    Parameters
    ----------
    datagram : bytes
        The received bytes.

    Returns
    -------
    tuple[float, ...]
        Values from 0 to 1.

    Raises
    ------
    Refusal
        With reason length or not_finite.
    """
    if len(datagram) != _MOTORS.size:
        raise Refusal("length", f"motors: expected {_MOTORS.size} bytes, got {len(datagram)}")
    return tuple(finite(value, "motor") for value in _MOTORS.unpack(datagram))


def parse_pulses(datagram: bytes) -> tuple[int, ...]:
    """Return the 16 pulses of a remote control.

    Parameters
    ----------
    datagram : bytes
        The received bytes.

    Returns
    -------
    tuple[int, ...]
        Pulses, us.

    Raises
    ------
    Refusal
        With reason length or out_of_range.
    """
    if len(datagram) != _RC.size:
        raise Refusal("length", f"remote control: expected {_RC.size} bytes, got {len(datagram)}")
    _, *pulses = _RC.unpack(datagram)
    if max(pulses) > _MAX_US:
        raise Refusal("out_of_range", f"expected pulses of at most {_MAX_US} us, got {max(pulses)} us")
    return tuple(pulses)


def fuzzed() -> Fuzzed:
    """Return the parser of a peer's bytes, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    examples = [_MOTORS.pack(0.25, 0.5, 0.75, 1.0), _RC.pack(1.5, *[1500] * _RC_CHANNELS)]
    return fuzz(lambda data: parse_pulses(data) if len(data) > _MOTORS.size else parse(data)), examples


def write(
    stamp: float, motion: Motion, imu: Imu, home: Home, errors: tuple[Vector, Vector] = ((0.0,) * 3, (0.0,) * 3)
) -> bytes:
    """Return the packet of motion.

    Parameters
    ----------
    stamp : float
        Time of the packet, s.
    motion : Motion
        Motion of the robot.
    imu : Imu
        Accelerometer.
    home : Home
        Place of the world's origin.
    errors : tuple[Vector, Vector], optional
        Errors of the receiver: position, m, world, and velocity, m/s, world.

    Returns
    -------
    bytes
        Angular velocity (rad/s, FRD), specific force (m/s2, FLU, negated), attitude (w, x, y, z, FRD to NED), velocity
        (m/s, ENU), longitude and latitude (deg), altitude (m), pressure (Pa).

    Notes
    -----
    Betaflight's simulator changes the sign of two elements of the attitude's matrix (imuComputeRotationMatrix of 4.6).
    Its pitch is positive with the nose down, as its rate of pitch is, and its heading clockwise, for FRD to NED alone.
    """
    x, y, z = imu.specific_force(motion)
    position = [value + error for value, error in zip(motion.position, errors[0], strict=True)]
    velocity = world_to_enu([v + e for v, e in zip(motion.velocity, errors[1], strict=True)], home.x_bearing)
    lat, lon, alt = home.geodetic(position)
    attitude = attitude_to_ned(motion.attitude, home.x_bearing)
    pressure = _PA_PER_HPA * pressure_hpa(home.alt_m + motion.position[2])
    return _MOTION.pack(stamp, *motion.rate_frd, -x, -y, -z, *attitude, *velocity, lon, lat, alt, pressure)


@dataclass(kw_only=True)
class Betaflight(rtmms.Bridge):
    """Lets Betaflight's software in the loop drive the plant's motors, and sends it the robot's motion.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    peer_timeout_s : float, default 1.0
        Silence after a peer's first message from which it counts as lost (wall time); 0: never. Unit: s.
    """

    host: Annotated[str, NamesAddress("listen"), Parameter("Address at which motors arrive.")] = "127.0.0.1"
    port: Annotated[int, Parameter(
        "Port at which motors arrive, 9002 of Betaflight; 0: a free one.", ge=0, le=65535,
    )] = 9002  # fmt: skip
    peer: Annotated[
        str,
        NamesAddress("connect"),
        Parameter(
            "Host of Betaflight; the bridge refuses others.",
        ),
    ] = "127.0.0.1"
    state_port: Annotated[int, Parameter("Betaflight's port for the motion.", ge=1, le=65535)] = 9003
    rc_port: Annotated[int, Parameter("Betaflight's port for the remote control.", ge=1, le=65535)] = 9004
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Motors 1 to 4, each with its actuator: actuator = scale (value - trim), value 0 to 1. none: those of the "
        "airframe, or motor i is actuator i, over its limits.",
    )] = ()  # fmt: skip
    rc: Annotated[dict[str, str], Parameter(
        "Channels 1 to 16 of the remote control, each a pulse in us, or an output of the plant. Outputs from -1 to 1 "
        "are 1000 to 2000 us; other channels are 1500 us. none: another program sends them to Betaflight, or to "
        "rc_listen.",
    )] = field(default_factory=dict)  # fmt: skip
    rc_listen: Annotated[int, Parameter(
        "Port at which another program's remote control arrives, for Betaflight once that has started. `rc` replaces "
        "channels of it; 0: none.",
        ge=0, le=65535,
    )] = 0  # fmt: skip
    home: Annotated[Home, Parameter(
        "Place of the world's origin (lat_deg, lon_deg, alt_m) and compass bearing of its x axis (x_bearing_deg).",
    )] = field(default_factory=lambda: Home(lat_deg=47.397742, lon_deg=8.545594, alt_m=488.0))  # fmt: skip
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip
    noise: Annotated[float, Parameter("Factor on the usual errors of the receiver; 0: none.", ge=0)] = 1.0
    peer_timeout_s: float = 1.0
    peer_gone_s: Annotated[float, Parameter(
        "Silence of Betaflight after its first packet that ends a run with a duration (wall time); 0: never.", "s",
        ge=0,
    )] = PEER_GONE_S  # fmt: skip
    reset: Annotated[bool, Parameter("Whether a restarted Betaflight resets the plant, at most once in 2 s.")] = True

    extra: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if self.rate_hz:
            raise rtmms.ModelError(
                "rate_hz: expected none, as the bridge sends each state as soon as Betaflight answers"
            )
        for channel in self.rc:
            if not (channel.isdecimal() and 1 <= int(channel) <= _RC_CHANNELS):
                raise rtmms.ModelError(f"rc: expected a channel from 1 to {_RC_CHANNELS}, got '{channel}'")

    @override
    def claims(self) -> tuple[str, ...]:
        """Return the actuators of the channels, or else `claim`, or else all."""
        return tuple(entry.actuator for entry in self.channels) or self.claim or ("*",)

    @override
    def requirements(self) -> Requirements:
        """Return steps of at most 1 ms: Betaflight computes with the gyroscope's last value until the next one."""
        return Requirements(max_dt_s=1e-3 / self.every, parameters=FLOOR)

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Bind the sockets, and find the outputs and channels."""
        self._map = self._channel_map(plant)
        self._read, self._imu = PoseReader(self.pose, plant), Imu(gravity_of(plant))
        self._rc = {int(channel): _pulse(word, plant, f"rc.{channel}") for channel, word in self.rc.items()}
        self._random = Random(f"betaflight {plant.seed}")
        self._wander = {name: GaussMarkovError(size * self.noise, self._random) for name, size in WANDER.items()}
        self._admission = Admission((self.peer,))
        self._gone = PeerGone(self, "Betaflight", self.peer_gone_s)
        self._wait_or_not(plant)
        self._pacer = Pacer(self, self.waits, "Betaflight")
        self.tick_s = 0.01
        self._under_way = False
        self._sender: Any = None
        self._sent_at = self._received_at = 0.0
        self._answers = 0
        self._flies, self._flew = False, False
        self._last: rtmms.State | None = None
        self._newest: rtmms.State | None = None
        self._packet = b""
        self._stamp, self._offset_s, self._begun = 0.0, 0.0, monotonic()
        family = family_of(self.host)
        self._state_address = resolve_receiver(f"{self.peer}:{self.state_port}", "state_port", 0, family)[1]
        self._rc_address = resolve_receiver(f"{self.peer}:{self.rc_port}", "rc_port", 0, family)[1]
        place = f"UDP {self.host}:{self.port}"
        self._socket = bind_udp(family, (self.host, self.port), place, "cannot listen on")
        self.attend(self._socket, self._on_readable)
        self._pulses: tuple[int, ...] = ()
        if self.rc_listen:
            place = f"UDP {self.host}:{self.rc_listen}"
            self._pilot = bind_udp(family, (self.host, self.rc_listen), place, "cannot listen on")
            self.attend(self._pilot, self._on_pulses)
        self._open_port = OpenPort(family, self._state_address, _IGNORED)
        self.closing.callback(self._open_port.close)
        place = f"UDP {self.host}:{self._socket.getsockname()[1]}"
        self.unmet = f"Betaflight sent nothing to {place}"
        self.io.log(f"waiting for Betaflight on {place}; {self._admission.sentence(place)}")

    def _channel_map(self, plant: rtmms.PlantInfo) -> ChannelMap:
        return map_channels(self.channels, plant, "betaflight", 0.0, 1.0, _CHANNELS)

    def _wait_or_not(self, plant: rtmms.PlantInfo) -> None:
        self.waits = plant.mode == "lockstep" and bool(plant.granted)
        self.peer_watch.limit_s = 0.0 if self.waits else self.peer_timeout_s  # in lockstep the plant waits for it

    # -- the plant ---------------------------------------------------------------------------------------------------

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send the motion, if Betaflight is ready for it."""
        due = self._pacer.on_state(state)
        self._newest = state
        if due is not None if self.waits else self._awake and not self._under_way:
            self._send(state)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._wait_or_not(plant)
        self._pacer.plant_again(self.waits)
        self._last, self._newest, self._under_way = None, None, False

    def _send(self, state: rtmms.State, *, again: bool = False) -> None:
        """Send the remote control and the motion of a state.

        `again`: the motion before had no answer. Then the remote control is not sent: a Betaflight that has just taken
        the place of another one would discard it for good.
        """
        self._stamp = max(self._stamp, self._time_of(state))
        if state is not self._last:
            try:
                self._packet = write(self._stamp, self._read(state), self._imu, self.home, self._errors())
            except (ValueError, OverflowError):
                self.counts.add("not_finite")
                return
        self._last, self._sent_at, self._under_way = state, monotonic(), True
        if self._awake and not again and (self._rc or self._pulses):
            pulses = list(self._pulses or [round(_MIDDLE_US)] * _RC_CHANNELS)
            for channel, pulse in self._rc.items():
                pulses[channel - 1] = pulse(state)
            send(self._socket, _RC.pack(self._stamp, *pulses), self._rc_address, self.counts)
        send(self._socket, _STAMP.pack(self._stamp) + self._packet[_STAMP.size :], self._state_address, self.counts)

    def _time_of(self, state: rtmms.State) -> float:
        """Return the stamp, s: of the plant in lockstep, without steps that no frame asked for; else the wall's.

        It never falls, because Betaflight drops packets that are older than the one before.
        """
        if not self.waits:
            return monotonic() - self._begun
        if state is self._last and not self._flies:
            self._offset_s += self.plant.dt * self.every
        time = state.time - self._pacer.excess * self.plant.dt
        if time + self._offset_s < self._stamp:  # the plant began anew
            self._offset_s = self._stamp + self.plant.dt * self.every - time
        return time + self._offset_s

    def _errors(self) -> tuple[Vector, Vector]:
        """Return slow and white errors of the receiver: position and velocity."""
        us = round(self._stamp * 1e6)
        result = []
        for name in ("gps", "gps_velocity"):
            x, y, z = self._wander[name](us)
            a, b, c = (self._random.gauss(0.0, NOISE[name] * self.noise) for _ in range(3))
            result.append((x + a, y + b, z + c))
        return result[0], result[1]

    # -- Betaflight --------------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        for datagram, sender in datagrams(self._socket, 2048):
            with self.counts.message():
                motors = parse(datagram)
                if not self._admission.admits(sender):
                    raise Refusal(
                        "stranger",
                        f"expected a packet of a peer that peer= admits, got one from {sender[0]}:{sender[1]}",
                    )
                if self._awake and sender != self._sender:  # each Betaflight that starts sends from another port
                    self._lost()
                self._sender = sender
                self._take(motors)

    def _on_pulses(self) -> None:
        for datagram, sender in datagrams(self._pilot, 2048):
            with self.counts.message():
                pulses = parse_pulses(datagram)
                if not self._admission.admits(sender):
                    raise Refusal(
                        "stranger",
                        f"expected a packet of a peer that peer= admits, got one from {sender[0]}:{sender[1]}",
                    )
                self._pulses = pulses

    def _take(self, motors: tuple[float, ...]) -> None:
        self._received_at = monotonic()
        if not self._awake:
            self._answers += 1
            if self._answers >= PROBES and self._newest is not None:
                self._send(self._newest)
            return
        if not self._flies:
            self._begin()
        self._under_way, self.unmet = False, ""
        self._gone.silent(self._received_at)
        limited = {str(i): min(1.0, max(0.0, value)) for i, value in enumerate(motors, 1)}
        self._pacer.drive(self._map.to_actuators(limited))
        if self.waits:
            if not self._pacer.asked:  # an answer to a packet that was sent twice asks for nothing
                self._pacer.go(1)
        elif self._newest is not None and self._newest is not self._last:
            self._send(self._newest)

    @property
    def _awake(self) -> bool:
        """Whether it has started, and gets each motion."""
        return self._answers >= PROBES

    def _begin(self) -> None:
        """Handle the first motors of a Betaflight that has started."""
        self.io.log("Betaflight is connected again" if self._flew else "Betaflight is connected")
        if self._flew and self.reset:
            self._pacer.reset()
        self._flies = self._flew = True

    def _lost(self) -> None:
        """Wait for another Betaflight. It may be starting, so the bridge sends nothing for START_S."""
        self._answers, self._flies = 0, False
        self._open_port.since = None

    def _has_started(self, now: float) -> bool:
        """Return whether its port has been open for START_S."""
        self._open_port.ask(now)
        return self._open_port.since is not None and now - self._open_port.since >= START_S

    # -- time --------------------------------------------------------------------------------------------------------

    @override
    def tick(self, now: float) -> None:
        """Handle time-outs, and send the motion again if necessary."""
        self._pacer.tick(now)
        self._gone.check(now, self._last.time if self._last is not None else 0.0)
        state = self._newest
        if state is None or now - self._sent_at < FIRST_S:
            return
        if not self._awake:
            if self._has_started(now) and now - self._sent_at >= PROBE_S:
                self._send(state)
        elif self._under_way:
            self._repeat(state, now)

    def _repeat(self, state: rtmms.State, now: float) -> None:
        """Send the motion once more to a Betaflight that does not answer, or find that it has gone."""
        if not self._open_port.ask(now):
            self._lost()
        elif now - self._received_at > _GONE_S:
            if not self._flies:
                self.io.log("Betaflight answers, but sends no motors; restart Betaflight")
            self._lost()
        elif not self._flies or now - self._sent_at >= RESEND_S:
            self.counts.add("unanswered")
            self._send(self._last if self.waits and self._last is not None else state, again=True)


def _pulse(word: str, plant: rtmms.PlantInfo, place: str) -> Any:
    """Return a function from a state to a channel of the remote control, us."""
    try:
        constant = float(word)
    except ValueError:
        output: Field = find_field(word, plant, place)
        return lambda state: round(_MIDDLE_US + _HALF_US * max(-1.0, min(1.0, output(state))))
    if not 0.0 <= constant <= _MAX_US:
        raise rtmms.ModelError(f"{place}: expected a pulse from 0 to 2500 us, got {word}")
    return lambda state: round(constant)
