"""Telemetry for ground stations over MAVLink 2 (UDP), with parameters and set-points back."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from hashlib import sha256
from math import hypot, isfinite
from time import monotonic, monotonic_ns, time
from typing import Annotated, Any, ClassVar

import rtmms
from rtmms.base.attitude import euler
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter as Declared
from rtmms.base.trust import NamesFile
from rtmms.bridging.channels import ChannelMap, ChannelMapping, Field
from rtmms.bridging.channels import field as find_field
from rtmms.bridging.untrusted import Refusal

from .autopilot.mavframes import Reader, Signing, Writer, read_key
from .autopilot.parameter_channels import ParameterBridge, ParameterChannels
from .autopilot.parameters import Parameter, Parameters
from .autopilot.setpoints import ACTUATORS, AXES, SET_ACTUATOR, actuators, axes
from .lines.addresses import bind_udp, family_of, host_port, resolve_receiver
from .lines.datagrams import datagrams, send
from .motion.frames import Home, bearing_deg, to_integer
from .motion.pose import Motion, PoseNames, PoseReader

_ARM = 400
_REQUEST_MESSAGE = 512
_AUTOPILOT_VERSION = 148
_EXTENDED_SYS_STATE = 245
_ACCEPTED = 0
_REJECTED = 1
_DENIED = 2
_UNSUPPORTED = 3
_ARMED = 128
_MANUAL = 64
_BOOT = 1
_ACTIVE = 4
_CRITICAL = 5
_REAL32 = 9
_PORT = 14550
_MAVLINK2 = 8192
_PARAM_FLOAT = 2
_MAX_BURST = 20
_PX4 = 12
_CUSTOM = 1
_PX4_MODES = {"manual": 1 << 16, "hold": 4 << 16 | 3 << 24}
"""PX4's custom modes: main mode in bits 16 to 23, sub mode in bits 24 to 31."""
_ON_GROUND = 1
_IN_AIR = 2
_MAX_GROUND_HEIGHT_M = 0.2
"""Height over the ground up to which a robot is on the ground, m."""
_MAX_GROUND_SPEED_M_S = 0.1
"""Speed up to which a robot is on the ground, m/s."""
_RATES = {"ATTITUDE": "attitude_hz", "POSITION": "position_hz", "VALUES": "values_hz"}


@dataclass(kw_only=True)
class Mavlink(ParameterBridge):
    """Telemetry for ground stations (QGroundControl, Mission Planner, ...), parameters, and set-points from them.

    Parameters
    ----------
    stations : tuple[Annotated[str, NamesAddress(connect)], ...], optional
        Addresses HOST:PORT of the ground stations; all is sent there, and nothing is accepted from others.
    host : str, default '127.0.0.1'
        Address from which the bridge sends, and at which answers arrive.
    port : int, default 0
        Port from which the bridge sends; 0: a free one.
    channels : tuple[ChannelMapping, ...], optional
        Channels of the peer, each with its actuator: actuator = scale (value - trim), value -1 to 1. x, y, z, r are of
        MANUAL_CONTROL, 1 to 12 of MAV_CMD_DO_SET_ACTUATOR. none: the peer drives nothing.
    parameter_channels : dict[str, str], optional
        Channels that set parameters of a controller, as `3=mixer.thrust`; '-' before the name changes the sign.
    armed : bool, default False
        Whether set-points count from the start; false: after a station has armed the robot.
    peer_timeout_s : float, default 5.0
        Silence after its first message by which a peer counts as lost, s of wall time; 0: never.
    home_after_s : float, default 1.0
        Time without MANUAL_CONTROL after which actuators of axes go to neutral, s of wall time; 0: never.
    key : str, default ''
        File with the signing key; with it all is signed, and unsigned messages are refused.
    system, component : int, default 1
        Numbers of its system and its component.
    vehicle_type : int, default 0
        MAV_TYPE of the heartbeat: 12 submarine, 19 fixed wing, ...
    autopilot : int, default 0
        MAV_AUTOPILOT of the heartbeat: 0 generic; 12 PX4, whose flight modes MAVSDK supports, too.
    ground_m : float, default 0.0
        Height of the ground, m, world frame; a robot in air that is near it and at rest has landed.
    attitude_hz, position_hz, values_hz : float, default 20.0
        Messages of attitude, position and values per second of simulated time, Hz.
    values : dict[str, str], optional
        Names of NAMED_VALUE_FLOAT, of at most 10 letters, each with an output or `output[index]`.
    home : Home | None, optional
        Place of the world's origin (lat_deg, lon_deg, alt_m) and compass bearing of its x axis (x_bearing_deg); None:
        no GLOBAL_POSITION_INT.
    x_bearing_deg : float, default 90.0
        Compass bearing of the world's x axis without `home`, deg.
    pose : PoseNames, optional
        Outputs of the plant that have its motion.
    """

    stations: Annotated[tuple[Annotated[str, NamesAddress("connect")], ...], Declared(
        "Addresses HOST:PORT of the ground stations; all is sent there, and nothing is accepted from others.",
    )] = ("127.0.0.1:14550",)  # fmt: skip
    host: Annotated[str, NamesAddress("listen"), Declared(
        "Address from which the bridge sends, and at which answers arrive.",
    )] = "127.0.0.1"  # fmt: skip
    port: Annotated[int, Declared("Port from which the bridge sends; 0: a free one.", ge=0, le=65535)] = 0
    channels: Annotated[tuple[ChannelMapping, ...], Declared(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim), value -1 to 1. x, y, z, r are "
        "of MANUAL_CONTROL, 1 to 12 of MAV_CMD_DO_SET_ACTUATOR. none: the peer drives nothing.",
    )] = ()  # fmt: skip
    parameter_channels: Annotated[dict[str, str], Declared(
        "Channels that set parameters of a controller, as `3=mixer.thrust`; '-' before the name changes the "
        "sign.",
    )] = field(default_factory=dict)  # fmt: skip
    armed: Annotated[bool, Declared(
        "Whether set-points count from the start; false: after a station has armed the robot.",
    )] = False  # fmt: skip
    peer_timeout_s: float = 5.0
    home_after_s: Annotated[float, Declared(
        "Time without MANUAL_CONTROL after which actuators of axes go to neutral (wall time); 0: never.", "s", ge=0,
    )] = 1.0  # fmt: skip
    key: Annotated[str, NamesFile("input"), Declared(
        "File with the signing key; with it all is signed, and unsigned messages are refused.",
    )] = ""  # fmt: skip
    system: Annotated[int, Declared("MAVLink number of the system.", ge=1, le=255)] = 1
    component: Annotated[int, Declared("MAVLink number of the component.", ge=1, le=255)] = 1
    vehicle_type: Annotated[int, Declared(
        "MAV_TYPE of the heartbeat: 12 submarine, 19 fixed wing, ...", ge=0, le=255,
    )] = 0  # fmt: skip
    autopilot: Annotated[int, Declared(
        "MAV_AUTOPILOT of the heartbeat: 0 generic; 12 PX4, whose flight modes MAVSDK supports, too.", ge=0, le=255,
    )] = 0  # fmt: skip
    ground_m: Annotated[float, Declared(
        "Height of the ground, world frame; a robot in air that is near it and at rest has landed.", "m", signed=True,
    )] = 0.0  # fmt: skip
    attitude_hz: Annotated[float, Declared("Messages of attitude per second of simulated time.", "Hz", ge=0)] = 20.0
    position_hz: Annotated[float, Declared("Messages of position per second of simulated time.", "Hz", ge=0)] = 10.0
    values_hz: Annotated[float, Declared("Messages of values per second of simulated time.", "Hz", ge=0)] = 5.0
    values: Annotated[dict[str, str], Declared(
        "Names of NAMED_VALUE_FLOAT, of at most 10 letters, each with an output or `output[index]`.",
    )] = field(default_factory=dict)  # fmt: skip
    home: Annotated[Home | None, Declared(
        "Place of the world's origin (lat_deg, lon_deg, alt_m) and compass bearing of its x axis "
        "(x_bearing_deg); none: no GLOBAL_POSITION_INT.",
    )] = None  # fmt: skip
    x_bearing_deg: Annotated[float, Declared(
        "Compass bearing of the world's x axis without `home`.", "deg", signed=True,
    )] = 90.0  # fmt: skip
    pose: Annotated[PoseNames, Declared(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip

    sends_on_events: ClassVar[bool] = True
    extra: ClassVar[str] = "mavlink"
    requires: ClassVar[dict[str, str]] = {"pymavlink": "pymavlink"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if not self.stations:
            raise rtmms.ModelError("stations: expected at least one HOST:PORT")
        for text in self.stations:
            host_port(text, "stations", _PORT)
        for name in self.values:
            if not (name.isascii() and 1 <= len(name) <= 10):
                raise rtmms.ModelError(f"values: expected names of 1 to 10 letters, got '{name}'")
        self._map = ChannelMap(self.channels)
        for entry in self._map.entries:
            if entry.channel not in AXES + ACTUATORS:
                unknown = rtmms.UnknownNameError("channel", entry.channel, AXES + ACTUATORS)
                raise rtmms.ModelError(f"channels: {unknown}")
        self._parameter_channels = ParameterChannels(self.parameter_channels, AXES + ACTUATORS)
        self._signing = Signing(_key(self.key)) if self.key else None

    @override
    def claims(self) -> tuple[str, ...]:
        """Return the actuators of the channels, or else `claim`."""
        return self._map.actuators or self.claim

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Bind the socket, and find the outputs, channels and parameters."""
        from pymavlink.dialects.v20 import common

        self._of = common
        self._map.check(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._home = self.home or Home(x_bearing_deg=self.x_bearing_deg)
        self._read = PoseReader(self.pose, plant, needs=("quaternion",))
        self._values: dict[str, Field] = {
            name: find_field(output, plant, f"values.{name}") for name, output in self.values.items()
        }
        self.tick_s = 0.05
        self._armed = self.armed
        self._slots = dict.fromkeys(_RATES, -1)
        self._landed = 0
        has_position = self.pose.position in {channel.name for channel in plant.outputs}
        self._flies = has_position and plant.environment.get("water_kg_m3") == 0.0
        self._boot_ms, self._beat_at, self._axes_at, self._seen_at = 0, 0.0, 0.0, 0.0
        self._list: deque[Parameter] = deque()
        self._senders = {
            "ATTITUDE": self._send_attitude, "POSITION": self._send_position, "VALUES": self._send_values,
        }  # fmt: skip
        self._takers = {
            "MANUAL_CONTROL": self._on_manual_control, "COMMAND_LONG": self._on_command_long,
            "PARAM_REQUEST_LIST": self._on_param_request_list, "PARAM_REQUEST_READ": self._on_param_request_read,
            "PARAM_SET": self._on_param_set, "COMMAND_INT": self._on_command_int, "PING": self._on_ping,
            "TIMESYNC": self._on_timesync, "MISSION_REQUEST_LIST": self._on_mission_request_list,
        }  # fmt: skip
        self._describe(plant)
        self._reader = Reader(self.counts.refuse, self._signing)
        self._writer = Writer(self.system, self.component, self._signing)
        family = family_of(self.host)
        self._stations = tuple(resolve_receiver(text, "stations", _PORT, family)[1][:2] for text in self.stations)
        self._socket = bind_udp(family, (self.host, self.port), f"UDP {self.host}:{self.port}")
        self.attend(self._socket, self._on_readable)
        self.io.log("telemetry to " + ", ".join(self.stations))

    def _describe(self, plant: rtmms.PlantInfo) -> None:
        self._parameters = Parameters()
        for name, attribute in _RATES.items():
            item = Parameter(f"RATE_{name}", getattr(self, attribute))
            item.change = lambda value, entry=item, attribute=attribute: self._set_rate(entry, attribute, value)
            self._parameters.add(item)
        self._parameters.add_plant(plant.parameters, self._set_plant)

    # -- the plant ---------------------------------------------------------------------------------------------------

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send the messages that are due."""
        self._boot_ms = round(state.time * 1e3) & 0xFFFFFFFF
        self._seen_at = monotonic()
        due = [name for name in _RATES if self._due(name, state.time)]
        if not due:
            return
        try:
            motion = self._read(state)
            self._judge_landed(motion)
            for name in due:
                self._senders[name](state, motion)
        except (ValueError, OverflowError):
            self.counts.add("not_finite")

    def _due(self, name: str, now: float) -> bool:
        slot = int(now * getattr(self, _RATES[name]) + 1e-6)
        was, self._slots[name] = self._slots[name], slot
        return slot > was or slot < was  # lower: the plant began anew

    def _judge_landed(self, motion: Motion) -> None:
        """Decide whether the robot has landed; of a robot in water this remains undefined."""
        if not self._flies:
            return
        low = motion.position[2] - self.ground_m <= _MAX_GROUND_HEIGHT_M
        slow = hypot(*motion.velocity) < _MAX_GROUND_SPEED_M_S
        was, self._landed = self._landed, _ON_GROUND if low and slow else _IN_AIR
        if was != self._landed:
            self._send_system_state()

    def _send_system_state(self) -> None:
        self._send(self._of.MAVLink_extended_sys_state_message(0, self._landed))

    def _send_attitude(self, state: rtmms.State, motion: Motion) -> None:
        _, q, _ = motion.ned(self._home.x_bearing)
        rates = motion.rate_frd
        self._send(self._of.MAVLink_attitude_message(self._boot_ms, *euler(q), *rates))
        self._send(self._of.MAVLink_attitude_quaternion_message(self._boot_ms, *q, *rates))

    def _send_position(self, state: rtmms.State, motion: Motion) -> None:
        position, q, velocity = motion.ned(self._home.x_bearing)
        self._send(self._of.MAVLink_local_position_ned_message(self._boot_ms, *position, *velocity))
        if self.home is None:
            return
        lat, lon, alt = self.home.geodetic(motion.position)
        heading = to_integer(bearing_deg(euler(q)[2]), 100, 16, False) % 36000
        self._send(self._of.MAVLink_global_position_int_message(
            self._boot_ms, to_integer(lat, 1e7), to_integer(lon, 1e7), to_integer(alt, 1e3),
            to_integer(motion.position[2], 1e3), *(to_integer(v, 100, 16) for v in velocity), heading,
        ))  # fmt: skip

    def _send_values(self, state: rtmms.State, motion: Motion) -> None:
        for name, value in self._values.items():
            self._send(self._of.MAVLink_named_value_float_message(self._boot_ms, name.encode(), value(state)))

    def _send(self, message: Any) -> None:
        packed = self._writer.pack(message)
        for address in self._stations:
            send(self._socket, packed, address, self.counts)

    # -- the stations ------------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        for datagram, sender in datagrams(self._socket, 4096):
            if sender[:2] not in self._stations:
                self.counts.refuse("stranger")
                continue
            for message in self._reader.datagram(datagram):
                try:
                    self._take(message)
                except Refusal as refusal:
                    self.counts.refuse(refusal.reason)

    def _take(self, message: Any) -> None:
        self.counts.add("received")
        self.peer_watch.fed()
        to = (getattr(message, "target_system", 0), getattr(message, "target_component", 0))
        if to[0] not in (0, self.system) or to[1] not in (0, self.component):
            return
        take = self._takers.get(message.get_type())
        if take is not None:
            take(message)

    def _on_manual_control(self, message: Any) -> None:
        if message.target not in (0, self.system):
            return
        axes_given = axes(message)
        values = self._map.to_actuators(axes_given)
        if not self._armed:
            return
        if self._parameter_channels.take(axes_given) or values:
            self._axes_at = monotonic()
        if values:
            self.command(values)

    def _on_command_long(self, message: Any) -> None:
        if message.command == SET_ACTUATOR:
            self._answer(message, self._set_actuators(message))
        elif message.command == _ARM:
            self._answer(message, self._arm(message))
        elif message.command == _REQUEST_MESSAGE and message.param1 == _AUTOPILOT_VERSION:
            self._answer(message, _ACCEPTED)
            self._send_version()
        elif message.command == _REQUEST_MESSAGE and message.param1 == _EXTENDED_SYS_STATE:
            self._answer(message, _ACCEPTED)
            self._send_system_state()
        else:
            self._answer(message, _UNSUPPORTED)

    def _send_version(self) -> None:
        """Send this package's version, and a number by which a station distinguishes this plant from others."""
        text = self.plant.session or self.plant.robot
        identity = sha256(text.encode()).digest()
        version = packed_version(rtmms.__version__)
        self._send(self._of.MAVLink_autopilot_version_message(
            _MAVLINK2 | _PARAM_FLOAT, version, 0, 0, 0, [0] * 8, [0] * 8, [0] * 8, 0, 0,
            int.from_bytes(identity[:8], "little"), list(identity[:18]),
        ))  # fmt: skip

    def _mode(self) -> tuple[int, int]:
        """Return base mode and custom mode for a station's display.

        The mode is manual if stations drive the robot, else hold.
        """
        mode = (_ARMED if self._armed and self._drives else 0) | (_MANUAL if self._drives else 0)
        if self.autopilot != _PX4:
            return mode, 0
        return mode | _CUSTOM, _PX4_MODES["manual" if self._drives else "hold"]

    def _on_command_int(self, message: Any) -> None:
        self._answer(message, _UNSUPPORTED)

    def _on_ping(self, message: Any) -> None:
        if message.target_system == 0:  # a request; its answer names who asked
            self._send(self._of.MAVLink_ping_message(
                message.time_usec, message.seq, message.get_srcSystem(), message.get_srcComponent()
            ))  # fmt: skip

    def _on_timesync(self, message: Any) -> None:
        if message.tc1 == 0:
            self._send(self._of.MAVLink_timesync_message(monotonic_ns(), message.ts1))

    def _on_mission_request_list(self, message: Any) -> None:
        """Answer that there are none; without an answer a station repeats the request."""
        self._send(self._of.MAVLink_mission_count_message(
            message.get_srcSystem(), message.get_srcComponent(), 0, getattr(message, "mission_type", 0)
        ))  # fmt: skip

    def _answer(self, message: Any, result: int) -> None:
        self._send(self._of.MAVLink_command_ack_message(
            message.command, result, 0, 0, message.get_srcSystem(), message.get_srcComponent()
        ))  # fmt: skip

    def _set_actuators(self, message: Any) -> int:
        try:
            controls = actuators(message)
            values = self._map.to_actuators(controls)
        except (Refusal, ValueError):
            self.counts.refuse("range")
            return _DENIED
        if not (values or self._parameter_channels.knows(controls)):
            return _DENIED
        if not self._armed:
            return _REJECTED
        self._parameter_channels.take(controls)
        if values:
            self.command(values)
        return _ACCEPTED

    def _arm(self, message: Any) -> int:
        if message.param1 not in (0.0, 1.0) or not self._drives:
            return _DENIED
        was, self._armed = self._armed, bool(message.param1)
        if self._armed != was:
            self.io.log("armed" if self._armed else "disarmed")
        if not self._armed:
            self._axes_at = 0.0
            self._to_neutral(self._map.actuators)
            self._parameter_channels.zero_parameters()
        self._beat_at = 0.0
        return _ACCEPTED

    @property
    def _drives(self) -> bool:
        return bool(self._map) or bool(self._parameter_channels)

    def _to_neutral(self, names: tuple[str, ...]) -> None:
        self.io.command({name: self.plant.actuator(name).neutral for name in names})

    # -- parameters --------------------------------------------------------------------------------------------------

    def _on_param_request_list(self, message: Any) -> None:
        self._list = deque(self._parameters.all)

    def _on_param_request_read(self, message: Any) -> None:
        item = self._parameters.find(message.param_id, message.param_index)
        if item is not None:
            self._send_parameter(item)

    def _on_param_set(self, message: Any) -> None:
        item, value = self._parameters.find(message.param_id, -1), message.param_value
        if item is None:
            raise Refusal(
                "parameter",
                f"PARAM_SET: the bridge has no parameter {str(message.param_id)[:16]!r}; ask it for "
                "its list (PARAM_REQUEST_LIST)",
            )
        if not isfinite(value):
            self._send_parameter(item)
            raise Refusal("not_finite", f"PARAM_SET: {item.name}: expected a finite value, got {value}")
        try:
            assert item.change is not None
            item.change(value)
        except ValueError as fault:
            self.io.log(f"parameter {item.name}: {fault}")
            self._send_parameter(item)  # the old value shows that the new one was not taken
            raise Refusal("range", str(fault)) from None

    def _set_rate(self, parameter: Parameter, attribute: str, value: float) -> None:
        if not 0 <= value <= 1000:
            raise ValueError(f"expected 0 to 1000 Hz, got {value:g}")
        setattr(self, attribute, value)
        parameter.value = value
        self._send_parameter(parameter)

    def _set_plant(self, parameter: Parameter, value: float) -> None:
        """Ask the plant, and send the station its answer: the new value, or the old one."""
        now = self.plant.parameters.get(parameter.plant)
        asked = bool(value) if isinstance(now, bool) else round(value) if isinstance(now, int) else value

        def done(ok: bool, reason: str) -> None:
            if ok:
                parameter.value = float(asked)
            else:
                self.counts.refuse("parameter")
                self.io.log(f"parameter {parameter.plant}: {reason}")
            self._send_parameter(parameter)

        self.io.ask("set", done, **{parameter.plant: asked})

    def _send_parameter(self, parameter: Parameter) -> None:
        self._send(
            self._of.MAVLink_param_value_message(
                parameter.name.encode(),
                parameter.value,
                _REAL32,
                len(self._parameters.all),
                self._parameters.index(parameter),
            )
        )

    # -- time --------------------------------------------------------------------------------------------------------

    @override
    def tick(self, now: float) -> None:
        """Send the heartbeat and parameters, and handle time-outs."""
        if now - self._beat_at >= 1.0:
            self._beat_at = now
            mode, custom = self._mode()
            missed = self.silent or now - self._seen_at > 1.0
            status = _BOOT if not self._seen_at else _CRITICAL if missed else _ACTIVE
            self._send(self._of.MAVLink_heartbeat_message(self.vehicle_type, self.autopilot, mode, custom, status, 3))
            self._send_system_state()
            self._send(self._of.MAVLink_system_time_message(round(time() * 1e6), self._boot_ms))
        for _ in range(min(_MAX_BURST, len(self._list))):
            self._send_parameter(self._list.popleft())
        if self._axes_at and self.home_after_s and now - self._axes_at > self.home_after_s:
            self._axes_at = 0.0
            self.io.log(f"no MANUAL_CONTROL for {self.home_after_s:g} s: its actuators go to neutral")
            self._to_neutral(tuple(entry.actuator for entry in self._map.entries if entry.channel in AXES))
            self._parameter_channels.zero_parameters(AXES)

    def on_silence(self) -> None:
        """Send the heartbeat at once, which shows the silence."""
        self._beat_at = 0.0  # the heartbeat shows it at once

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._list.clear()  # of the last plant's parameters
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._describe(plant)


def packed_version(text: str) -> int:
    """Return a version for AUTOPILOT_VERSION: major, minor, patch, and 255 for a release, 0 for another one.

    Parameters
    ----------
    text : str
        The version.

    Returns
    -------
    int
        One byte for each part.

    Examples
    --------
    >>> hex(packed_version("1.2.3"))
    '0x10203ff'
    """
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?(.*)", text)
    if match is None:
        return 0
    major, minor, patch = (min(255, int(part or 0)) for part in match.groups()[:3])
    return major << 24 | minor << 16 | patch << 8 | (0 if match[4] else 255)


def _key(path: str) -> bytes:
    try:
        return read_key(path)
    except rtmms.ModelError as fault:
        raise rtmms.ModelError(f"key: {fault}") from None
