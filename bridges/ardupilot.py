"""ArduPilot's SITL with the JSON backend (--model JSON): pulse widths in, the robot's motion out, in lockstep.

The autopilot sends a packet for each of its frames and waits for the answer. Without one it repeats the packet after
about a second. So a frame is answered once it is simulated, and a repeated one receives the same answer again. A
falling count means that the autopilot has restarted.

The packet's `frame_rate` is no request. ArduPilot computes it from the time stamps that it received before. A bridge
that obeys it makes each long frame last for ever.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import rtmms
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.bridge import Requirements
from rtmms.bridging.channels import ChannelMap, ChannelMapping
from rtmms.bridging.untrusted import Admission, Fuzzed, Refusal, fuzz

from .autopilot.airframes import FLOOR, pulses_of
from .autopilot.parameter_channels import ParameterBridge, ParameterChannels
from .autopilot.peer_gone import PEER_GONE_S, PeerGone
from .autopilot.pulses import map_channels
from .autopilot.sitl_keys import KeyReader, check
from .lines.addresses import bind_udp, family_of
from .lines.datagrams import datagrams, send
from .lines.pacing import MAX_FRAME_S, Pacer, at_rest, substeps
from .motion.frames import Home
from .motion.imu import Imu, gravity_of
from .motion.pose import Motion, PoseNames, PoseReader

_FORMS = {18458: struct.Struct("<HHI16H"), 29569: struct.Struct("<HHI32H")}
_CHANNELS = 32
_MIDDLE_US = 1500.0
"""Middle of a pulse for a parameter, us; 1000 to 2000 us are -1 to 1."""
_HALF_US = 500.0
"""Half width of the range of pulses, us."""
_ALONE_S = 1.5
"""Time after its last packet in which no other autopilot is read, s."""
_FIRST_FRAMES = 100
MIN_GYRO_HZ = 720.0
"""Rate of the gyroscope below which Copter and Sub do not arm: 1.8 times SCHED_LOOP_RATE (400 Hz)."""
_LATE_S = 1.0
"""Simulated time from which a first autopilot is late, s, for a plant that does not wait for it."""


class Servo(NamedTuple):
    """Packet of ArduPilot.

    Attributes
    ----------
    frame_rate : int
        ArduPilot's own measure of its frame rate, Hz.
    frame_count : int
        Number of the frame.
    pulses : tuple[int, ...]
        Pulse widths, us; 0 for no pulse.
    """

    frame_rate: int
    frame_count: int
    pulses: tuple[int, ...]


def parse(datagram: bytes) -> Servo:
    """Return a servo packet.

    Parameters
    ----------
    datagram : bytes
        The received bytes.

    Returns
    -------
    Servo
        The packet.

    Raises
    ------
    Refusal
        With reason length, magic or range.
    """
    if len(datagram) not in {form.size for form in _FORMS.values()}:
        raise Refusal("length", f"expected a servo packet of ArduPilot, 40 or 72 bytes, got {len(datagram)} bytes")
    (magic,) = struct.unpack_from("<H", datagram)
    form = _FORMS.get(magic)
    if form is None or form.size != len(datagram):
        raise Refusal(
            "magic", f"expected a servo packet of ArduPilot, got magic number {magic} in {len(datagram)} bytes"
        )
    _, rate, count, *pulses = form.unpack(datagram)
    if not rate:
        raise Refusal("range", "frame rate: expected > 0, got 0")
    return Servo(rate, count, tuple(pulses))


def fuzzed() -> Fuzzed:
    """Return the parser of a peer's bytes, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    packets = ((18458, 16), (29569, 32))
    return fuzz(parse), [struct.pack(f"<HHI{n}H", magic, 400, 7, *range(1000, 1000 + n)) for magic, n in packets]


def _word(pulse: int) -> float:
    return max(-1.0, min(1.0, (pulse - _MIDDLE_US) / _HALF_US)) if pulse else 0.0


def write(time: float, motion: Motion, imu: Imu, x_bearing: float, more: Mapping[str, Any]) -> bytes:
    """Return the line of JSON that ArduPilot reads: keys in its order, no spaces, a newline at both ends.

    Parameters
    ----------
    time : float
        Simulated time, s.
    motion : Motion
        Motion of the robot.
    imu : Imu
        Accelerometer.
    x_bearing : float
        Compass bearing of the world's x axis, rad.
    more : Mapping[str, Any]
        Further keys of ArduPilot's JSON (rng_1 to rng_6, airspeed, windvane_direction, windvane_speed; of some versions
        velocity_wind, rc_1 to rc_12, battery_voltage, battery_current), each an output or `output[index]`.

    Returns
    -------
    bytes
        The line.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    force, gyro = imu.frd(motion)
    position, attitude, velocity = motion.ned(x_bearing)
    fields = {
        "timestamp": time, "imu": {"gyro": gyro, "accel_body": force}, "position": position, "quaternion": attitude,
        "velocity": velocity, **more,
    }  # fmt: skip
    return f"\n{json.dumps(fields, separators=(',', ':'), allow_nan=False)}\n".encode()


@dataclass(kw_only=True)
class ArduPilot(ParameterBridge):
    """Drives the plant from ArduPilot's software in the loop (--model JSON), and sends it the robot's motion.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    peer_timeout_s : float, default 1.0
        Silence after a peer's first message from which it counts as lost (wall time); 0: never. Unit: s.
    """

    host: Annotated[str, NamesAddress("listen"), Parameter("Address at which the bridge listens.")] = "127.0.0.1"
    port: Annotated[int, Parameter(
        "Port at which the bridge listens; further instances of ArduPilot use 9012, 9022, ...; 0: a free one.",
        ge=0, le=65535,
    )] = 9002  # fmt: skip
    peer: Annotated[tuple[str, ...], Parameter(
        "Accepted senders: HOST, HOST:PORT or NETWORK/BITS; none: all that reach the port.",
    )] = ()  # fmt: skip
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim), value in us. none: those of "
        "the airframe, or channel i is actuator i. Its limits are at 1000 and 2000 us, an ROV's at 1100 and 1900 us.",
    )] = ()  # fmt: skip
    parameter_channels: Annotated[dict[str, str], Parameter(
        "Channels that set parameters of a controller, as `3=mixer.thrust`. 1000 to 2000 us are -1 to 1; '-' before "
        "the name changes the sign.",
    )] = field(default_factory=dict)  # fmt: skip
    frame_rate: Annotated[float, Parameter(
        "Frames of whole plant steps per second of simulated time; 0: each step of the plant is a frame.", "Hz", ge=0,
    )] = 0.0  # fmt: skip
    home: Annotated[Home, Parameter(
        "Compass bearing of the world's x axis (x_bearing_deg); the place is the autopilot's own (--custom-location).",
    )] = field(default_factory=Home)  # fmt: skip
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip
    more: Annotated[dict[str, str], Parameter(
        "Further keys of ArduPilot's JSON, each an output or `output[index]`. Keys are rng_1 to rng_6, airspeed, "
        "windvane_direction and windvane_speed. Some versions have velocity_wind, rc_1 to rc_12, battery_voltage and "
        "battery_current.",
    )] = field(default_factory=dict)  # fmt: skip
    time_sync: Annotated[bool | None, Parameter(
        "Whether ArduPilot paces itself by wall time; false: the bridge sends `no_time_sync`; none: true in "
        "lockstep, else false.",
    )] = None  # fmt: skip
    peer_timeout_s: float = 1.0
    peer_gone_s: Annotated[float, Parameter(
        "Silence of an autopilot after its first packet that ends a run with a duration (wall time); 0: never.", "s",
        ge=0,
    )] = PEER_GONE_S  # fmt: skip
    reset: Annotated[bool, Parameter("Whether a restarted autopilot resets the plant, at most once in 2 s.")] = True
    plant_silent: Annotated[Literal["wait", "still"], Parameter(
        "Messages to the autopilot while the plant is silent (watchdog_periods). wait: none, so that its clock waits; "
        "still: the last place, at rest.",
    )] = "wait"  # fmt: skip

    extra: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if self.rate_hz:
            raise rtmms.ModelError("rate_hz: expected none, as each frame of ArduPilot gets a state; set frame_rate")
        check(self.more)
        self._parameter_channels = ParameterChannels(
            self.parameter_channels, tuple(str(i) for i in range(1, _CHANNELS + 1))
        )
        if self.plant_silent == "still" and not self.watchdog_periods:
            raise rtmms.ModelError(
                "plant_silent=still: expected watchdog_periods > 0, the time after which the bridge sends a state at "
                "rest, got 0"
            )

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
        """Return steps with which ArduPilot arms, unless `frame_rate` sets the frames.

        A driving one needs ground; an observer needs each state.
        """
        dt = inf if self.frame_rate else 1.0 / MIN_GYRO_HZ / self.every
        return Requirements(dt, not self.claims(), FLOOR if self.claims() else ())

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Bind the socket, and find the outputs and channels."""
        if plant.dt * self.every >= MAX_FRAME_S:
            raise rtmms.ModelError(
                f"every: a frame of {plant.dt * self.every} s is too long: ArduPilot accepts frames below 0.1 "
                "s; give a smaller every or --dt"
            )
        alone = self._parameter_channels and not self.channels
        self._map = ChannelMap(()) if alone else self._channel_map(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._neutral = {name: plant.actuator(name).neutral for name in self._map.actuators}
        self._read = PoseReader(self.pose, plant)
        self._more = KeyReader(self.more, plant, self.home.x_bearing)
        self._imu = Imu(gravity_of(plant))
        self._admission = Admission(self.peer)
        self._wait_or_not(plant)
        self.tick_s = 0.05
        self._pacer = Pacer(self, self.waits, "the autopilot")
        self._autopilot: tuple[Any, ...] | None = None
        self._frame = -1
        self._gone = PeerGone(self, "ArduPilot", self.peer_gone_s)
        self._check_rate(plant)
        self._answered = b""  # the line of the frame `_frame`, b'' while it is under way
        self._received_at = self._asked = 0.0
        self._ahead = 0.0  # time that passed for the autopilot while the plant was silent
        place = f"UDP {self.host}:{self.port}"
        self._socket = bind_udp(family_of(self.host), (self.host, self.port), place, "cannot listen on")
        self.attend(self._socket, self._on_readable)
        place = f"UDP {self.host}:{self._socket.getsockname()[1]}"
        self.unmet = f"ArduPilot sent nothing to {place}"
        self.io.log(f"waiting for ArduPilot on {place}; {self._admission.sentence(place)}")

    def _channel_map(self, plant: rtmms.PlantInfo) -> ChannelMap:
        return map_channels(self.channels, plant, "ardupilot", *pulses_of(plant.airframe), _CHANNELS)

    def _check_rate(self, plant: rtmms.PlantInfo) -> None:
        """Log why ArduPilot would not arm, or why frames are longer than intended."""
        if self._step_s > 1.0 / MIN_GYRO_HZ:
            self.io.log(
                f"frames of {self._step_s * 1000.0:.3g} ms are too long: Copter and Sub arm only at {MIN_GYRO_HZ:g} Hz "
                "or more (1.8 SCHED_LOOP_RATE); start the plant with --dt 0.001"
            )
        if not plant.granted and plant.period_s and plant.telemetry_hz < 1.0 / plant.period_s:
            self.io.log(
                f"without a claim the plant sends {plant.telemetry_hz:g} of its {1.0 / plant.period_s:g} states a "
                f"second; start it with --telemetry-hz {4.0 / plant.period_s:g}"
            )

    # -- the plant ---------------------------------------------------------------------------------------------------

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Answer the autopilot's frame if it ends with this state."""
        due = self._pacer.on_state(state)
        if due is not None:
            self._answer(due, self._read(due))

    def on_silence(self) -> None:
        """Log that the autopilot receives the robot at rest, if `plant_silent` is "still"."""
        if self.plant_silent == "still":
            self.io.log("the plant is silent: the bridge sends a state at rest to the autopilot")

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._wait_or_not(plant)
        self._pacer.plant_again(self.waits)

    def _wait_or_not(self, plant: rtmms.PlantInfo) -> None:
        step_s = plant.dt * self.every
        self._steps = substeps(self.frame_rate, step_s) if self.frame_rate else 1
        self._step_s = self._steps * step_s
        self.waits = plant.mode == "lockstep" and bool(plant.granted)
        self.peer_watch.limit_s = 0.0 if self.waits else self.peer_timeout_s  # in lockstep the plant waits for it

    # -- the autopilot -----------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        for datagram, sender in datagrams(self._socket, 2048):
            with self.counts.message():
                servo = parse(datagram)
                self._admit(sender)
                self._take(servo)

    def _admit(self, sender: tuple[Any, ...]) -> None:
        if not self._admission.admits(sender):
            raise Refusal(
                "stranger", f"expected a packet of a peer that peer= admits, got one from {sender[0]}:{sender[1]}"
            )
        now = monotonic()
        if self._autopilot is not None and sender != self._autopilot and now - self._received_at < _ALONE_S:
            raise Refusal(
                "second",
                f"expected packets of the first autopilot, {self._autopilot[0]}:{self._autopilot[1]}, "
                f"got one from {sender[0]}:{sender[1]}; stop one of the two",
            )
        if sender != self._autopilot:
            self.counts.add("autopilots")
            self.io.log(f"ArduPilot connected from {sender[0]}:{sender[1]}")
        self._autopilot, self._received_at, self.unmet = sender, now, ""
        self._gone.silent(now)

    def _take(self, servo: Servo) -> None:
        if servo.frame_count == self._frame:
            self.counts.add("repeated")
            if self._answered:
                self._send(self._answered)
            return
        if servo.frame_count < self._frame:
            if servo.frame_count > _FIRST_FRAMES:
                self.counts.refuse("old")  # one that begins anew begins at its beginning
                return
            self.io.log(f"ArduPilot restarted (frame {self._frame}, then {servo.frame_count})")
            self._ahead = 0.0
            if self.reset:
                self._pacer.reset()
        elif self._frame >= 0 and servo.frame_count > self._frame + 1:
            self.counts.add("frames_missed", servo.frame_count - self._frame - 1)
        elif self._frame < 0:
            self._begin_with(servo)
        steps = self._steps
        self._frame, self._answered, self._asked = servo.frame_count, b"", monotonic()
        self._pacer.drive(self._values(servo.pulses))
        self._parameter_channels.take({str(i): _word(pulse) for i, pulse in enumerate(servo.pulses, 1)})
        due = self._pacer.go(steps if self._pacer.locked else steps * self.every)
        if due is not None:
            self._answer(due, self._read(due))

    def _begin_with(self, servo: Servo) -> None:
        """Reset a plant that has run on without the first autopilot."""
        newest = self._pacer.newest
        late = newest is not None and newest.time > _LATE_S
        if newest is not None and late and self.reset and not self.waits and servo.frame_count <= _FIRST_FRAMES:
            self.io.log(f"ArduPilot connected at t = {newest.time:.4g} s: the bridge resets the plant")
            self._pacer.reset()

    def _values(self, pulses: tuple[int, ...]) -> dict[str, float]:
        """Return actuator values; the plant clamps those beyond its limits, and flags them."""
        values = {}
        for entry in self._map.entries:
            at = int(entry.channel) - 1
            pulse = pulses[at] if at < len(pulses) else 0
            values[entry.actuator] = entry.to_actuator(float(pulse)) if pulse else self._neutral[entry.actuator]
        return values

    def _answer(self, state: rtmms.State, motion: Motion) -> None:
        more = self._more(state, motion)
        if not (self.waits if self.time_sync is None else self.time_sync):
            more["no_time_sync"] = 1
        # ArduPilot's frame rate follows the stamps: steps that no frame asked for, as in a pause, are not in them
        time = state.time - self._pacer.excess * self.plant.dt + self._ahead
        try:
            self._answered = write(time, motion, self._imu, self.home.x_bearing, more)
        except ValueError:
            self.counts.add("not_finite")  # a NaN would be read as whatever stands next to it
            return
        self._send(self._answered)

    def _send(self, line: bytes) -> None:
        send(self._socket, line, self._autopilot or ("", 0), self.counts)

    # -- time --------------------------------------------------------------------------------------------------------

    @override
    def tick(self, now: float) -> None:
        """Handle time-outs, and answer with the robot at rest while the plant is silent."""
        self._pacer.tick(now)
        newest = self._pacer.newest
        self._gone.check(now, newest.time if newest is not None else 0.0)
        if self.plant_silent != "still" or not self.silent or self._answered or newest is None:
            return
        if now - self._asked >= self.tick_s:  # else the plant may only have waited for this frame
            self._ahead += self._step_s
            self.counts.add("still")
            self._answer(newest, at_rest(self._read(newest)))
