"""CAN: a robot's outputs and actuators as messages in the layout of a DBC file, and its actuators as CiA 402 drives."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.trust import NamesFile
from rtmms.bridging.channels import ChannelMap, ChannelMapping, Field
from rtmms.bridging.channels import field as find_field
from rtmms.bridging.untrusted import DRIVES, Refusal
from rtmms.wire.protocol.received_state import PlantInfo

from .bus.can_bus import CanBus, check_interface
from .bus.canopen_node import DriveNode
from .bus.drives import Drive, DriveAt
from .bus.robot_dbc import RobotDbc
from .bus.signals import Checksum, DrivingMessage, Layout, Sent, by_message, load
from .motion.joints import Joints

OWN_DBC = "own"
NONE = "none"
_MAX_UNLIMITED = 1e6


@dataclass(kw_only=True)
class Can(rtmms.Bridge):
    """CAN: outputs and sensors as cyclic messages by a DBC file, actuators from messages; and as CiA 402 drives.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    peer_timeout_s : float, default 1.0
        Silence after a peer's first message from which it counts as lost (wall time); 0: never. Unit: s.
    """

    interface: Annotated[str, Parameter(
        "Interface of python-can: socketcan, udp_multicast, pcan, slcan, ...",
    )] = "socketcan"  # fmt: skip
    channel: Annotated[str, Parameter("Channel of the interface: can0, 239.74.163.2, ...")] = "can0"
    options: Annotated[dict[str, str], Parameter(
        "Further options of the interface, as bitrate=500000; those that name a file or a library are "
        "refused.",
    )] = field(default_factory=dict)  # fmt: skip
    fd: Annotated[bool, Parameter("Whether to use CAN FD.")] = False
    far: Annotated[bool, Parameter("Whether other machines may join the group of udp_multicast.")] = False
    dbc: Annotated[str, NamesFile("input"), Parameter(
        "FILE.dbc; own: the robot's own, as --write-dbc writes it; none: the drives' messages only; '': own, "
        "or none with drives.",
    )] = ""  # fmt: skip
    first_id: Annotated[int, Parameter("First identifier of messages, dbc=own.", ge=1, le=0x600)] = 0x100
    cycle_ms: Annotated[int, Parameter(
        "Cycle of messages without a cycle in the file, in simulated time.", "ms", ge=1, le=65535,
    )] = 10  # fmt: skip
    signals: Annotated[dict[str, str], Parameter(
        "Outputs by signal, with a file: [MESSAGE.]SIGNAL to OUTPUT[INDEX] or OUTPUT[INDEX]*SCALE.",
    )] = field(default_factory=dict)  # fmt: skip
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, with a file: [MESSAGE.]SIGNAL, each with its actuator: actuator = scale (value - trim).",
    )] = ()  # fmt: skip
    counter: Annotated[str, Parameter("Name of the signals that are counters; '': none.")] = "Counter"
    checksum: Annotated[str, Parameter("Name of the signals that are checksums; '': none.")] = "Checksum"
    checksum_kind: Annotated[Checksum, Parameter("Checksum: crc8 (SAE J1850), xor or sum.")] = "crc8"
    time_out_cycles: Annotated[float, Parameter(
        "Cycles after which a command is late (peer_timeout_s where the file has no cycle); 0: never.", ge=0,
    )] = 5.0  # fmt: skip
    time_out: Annotated[Literal["peer_lost", "loop"], Parameter(
        "Reaction to a late command: its actuators follow `peer_lost`, or the plant gets no command and its miss "
        "policy acts.",
    )] = "peer_lost"  # fmt: skip
    drives: Annotated[tuple[DriveAt, ...], Parameter(
        "Actuators as CiA 402 drives, NODE:ACTUATOR[:COUNTS[:POSITION[:VELOCITY]]].",
    )] = ()  # fmt: skip
    drive_ms: Annotated[int, Parameter(
        "Time between TPDOs that answer no SYNC (wall time).", "ms", ge=1, le=65535,
    )] = 10  # fmt: skip
    heartbeat_ms: Annotated[int, Parameter("Period of the drives' heartbeats.", "ms", ge=0, le=65535)] = 500
    peer_timeout_s: float = 1.0

    extra: ClassVar[str] = "can"
    requires: ClassVar[dict[str, str]] = {"can": "python-can", "cantools": "cantools", "canopen": "canopen"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_interface(self.interface, self.channel, self.options)
        self._dbc = self.dbc or (NONE if self.drives else OWN_DBC)
        if self._dbc in (OWN_DBC, NONE) and (self.signals or self.channels):
            raise rtmms.ModelError(f"signals and channels: expected dbc=FILE.dbc with them, got dbc={self._dbc}")
        if self._dbc == NONE and not self.drives:
            raise rtmms.ModelError("dbc=none: expected drives=..., got none: the bridge has nothing to do")
        self._map = ChannelMap(self.channels)
        for what in ("node", "actuator"):
            listed = [getattr(drive, what) for drive in self.drives]
            twice = next((item for item in listed if listed.count(item) > 1), None)
            if twice is not None:
                raise rtmms.ModelError(f"drives: {what} {twice} is listed twice")
        self._driven = tuple(drive.actuator for drive in self.drives)
        both = set(self._driven) & {*self._map.actuators, *self.claim}
        if both:
            raise rtmms.ModelError(
                f"drives: expected each actuator in drives, or in channels or claim, got '{min(both)}' in both"
            )

    @override
    def beyond(self) -> dict[str, str]:
        """Return the parameters that reach beyond this machine; a real bus does."""
        here = self.interface == "virtual" or (self.interface == "udp_multicast" and not self.far)
        result = super().beyond() | ({} if here else {"interface": f"{self.interface} {self.channel}".strip()})
        return result | ({"options.hop_limit": self.options["hop_limit"]} if "hop_limit" in self.options else {})

    @override
    def claims(self) -> tuple[str, ...]:
        """Return the actuators of the messages and the drives."""
        return (self.claim or self._map.actuators) + self._driven

    def dbc_of(self, plant: PlantInfo) -> str:
        """Return the robot's own DBC file, for --write-dbc.

        Parameters
        ----------
        plant : PlantInfo
            The plant.

        Returns
        -------
        str
            The text of the file.
        """
        return RobotDbc(plant, self.first_id, self.cycle_ms).text

    # -- hooks -------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Read the DBC file, create the drives, and open the bus."""
        self._sent: list[Sent] = []
        self._driving_messages: dict[tuple[int, bool], DrivingMessage] = {}
        if self._dbc != NONE:
            self._lay_out(plant)
        self._open_drives(plant)
        self._late: set[str] = set()
        self._time = -1.0
        self._received_at = 0.0
        self.tick_s = min(0.01, self.drive_ms * 1e-3) if self.drives else 0.02
        listens = [] if self.drives else [*self._driving_messages] or [(0x7FF, True)]  # with nothing to take: of no one
        self._bus = CanBus(
            self.io, self.counts, self.interface, self.channel, self.options, fd=self.fd, far=self.far,
            accepted=listens, received=self._on_frame, came=self._came, gone=self._lost_bus,
        )  # fmt: skip
        self.closing.callback(self._bus.close)
        if self._sent:
            rate = sum(1.0 / item.period_s for item in self._sent)
            self.io.log(
                f"sends {len(self._sent)} kinds of messages, {rate:.0f} messages a second; receives "
                f"{len(self._driving_messages)} kinds"
            )
        if plant.granted:
            self.io.log(f"every node on {self._bus.place} can {DRIVES}: {', '.join(plant.granted)}")
        self._bus.connect(monotonic())

    def _lay_out(self, plant: PlantInfo) -> None:
        import cantools

        if self._dbc == OWN_DBC:
            robot_dbc = RobotDbc(plant, self.first_id, self.cycle_ms)
            database = cantools.database.load_string(robot_dbc.text, "dbc")
            signals = {word: (find_field(name, plant, "dbc"), 1.0) for word, name in robot_dbc.signals.items()}
            granted = set(plant.granted) - set(self._driven)
            channels = {word: name for word, name in robot_dbc.channels.items() if name in granted}
            self._map = ChannelMap(ChannelMapping(channel=word, actuator=name) for word, name in channels.items())
        else:
            database = load(self.dbc)
            self._map.check(plant)
            signals = {word: _scaled(text, plant, f"signals.{word}") for word, text in self.signals.items()}
        for message, fields in by_message(database, signals, "signals").values():
            layout = self._layout(message, fields, "signals")
            self._sent.append(Sent(layout, fields, (message.cycle_time or self.cycle_ms) * 1e-3))
        for k, item in enumerate(self._sent):
            item.phase = k / len(self._sent)
        channel_names = {entry.channel: entry.channel for entry in self._map.entries}
        for name, (message, fields) in by_message(database, channel_names, "channels").items():
            if any(entry.layout.message.name == name for entry in self._sent):
                raise rtmms.ModelError(
                    f"channels: message '{name}': the robot sends this message itself; choose another for commands"
                )
            layout = self._layout(message, fields, "channels")
            driving_message = DrivingMessage(layout, fields, (message.cycle_time or 0) * 1e-3)
            self._driving_messages[layout.identifier, layout.extended] = driving_message
        if self.claim and not self._driving_messages and self._dbc != OWN_DBC:
            raise rtmms.ModelError("claim: expected channels=..., which map signals to the actuators, got none")

    def _layout(self, message: Any, fields: dict[str, Any], place: str) -> Layout:
        layout = Layout(message, self.counter, self.checksum, self.checksum_kind)
        if layout.fd and not self.fd:
            raise rtmms.ModelError(f"dbc: message '{message.name}': expected fd=true, as this is a message of CAN FD")
        reserved_names = layout.reserved_signals & set(fields)
        if reserved_names:
            raise rtmms.ModelError(
                f"{place}: '{message.name}.{min(reserved_names)}' is a counter or a checksum, which the "
                "bridge computes; "
                "remove the signal"
            )
        return layout

    def _open_drives(self, plant: PlantInfo) -> None:
        known = [channel.name for channel in plant.actuators]
        self._nodes: dict[int, DriveNode] = {}
        self._measured: dict[int, tuple[Field | None, Field | None]] = {}
        joints = Joints(plant)
        for at in self.drives:
            if at.actuator not in known:
                raise rtmms.ModelError(f"drives: {rtmms.UnknownNameError('actuator', at.actuator, known)}")
            channel = plant.actuator(at.actuator)
            drive = Drive(at.of(channel), at.counts, *_ends(channel), neutral=channel.neutral)
            self._nodes[at.node] = DriveNode(at.node, drive, self._send_node, self.heartbeat_ms)
            result = [
                find_field(name, plant, f"drives: node {at.node}") if name else None
                for name in (
                    at.position or joints.output_of(at.actuator, "position"),
                    at.velocity or joints.output_of(at.actuator, "velocity"),
                )
            ]
            if result[0] is None and result[1] is None:
                self.io.log(
                    f"drive {at.node} ({at.actuator}): the plant has no output of this joint, so the drive "
                    "reports its set-point as the position"
                )
            self._measured[at.node] = result[0], result[1]
        used = {number for node in self._nodes.values() for number in node.identifiers()}
        for layout in [item.layout for item in self._sent] + [
            driving_message.layout for driving_message in self._driving_messages.values()
        ]:
            if layout.identifier in used and not layout.extended:
                raise rtmms.ModelError(
                    f"drives: identifier {layout.identifier:#x} of message '{layout.message.name}' is also "
                    "one of a drive; choose another node, or first_id"
                )

    # -- out ---------------------------------------------------------------------------------------------------------

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send the messages that are due, and drive the actuators of the drives."""
        lapse = state.time - self._time if self._time >= 0.0 else 0.0
        if lapse < 0.0:  # the plant began anew
            lapse = 0.0
        self._time = state.time
        for item in self._sent:
            if item.due(state.time):
                try:
                    data = item.bytes(state)
                except ValueError:
                    self.counts.add("not_finite")
                    continue
                layout = item.layout
                self._bus.send(layout.identifier, data, extended=layout.extended, fd=layout.fd)
        if self._nodes:
            self._drive(state, lapse)

    def _drive(self, state: rtmms.State, lapse: float) -> None:
        now, values = monotonic(), {}
        for at in self.drives:
            node = self._nodes[at.node]
            position, velocity = (item(state) if item is not None else None for item in self._measured[at.node])
            if all(item is None or isfinite(item) for item in (position, velocity)):
                node.drive.measured(position, velocity)
            values[at.actuator] = node.drive.drive(lapse)
            node.send_cyclic(now, self.drive_ms * 1e-3)
        if self.plant.granted and not self.waits:
            self.io.command(values)

    def _send_node(self, identifier: int, data: bytes) -> None:
        self._bus.send(identifier, data)

    # -- in ----------------------------------------------------------------------------------------------------------

    def _on_frame(self, frame: Any) -> None:
        driving_message = self._driving_messages.get((frame.arbitration_id, frame.is_extended_id))
        if driving_message is not None:
            with self.counts.message():
                self._take(driving_message, bytes(frame.data))
        elif not frame.is_extended_id:
            try:
                now, data = monotonic(), bytes(frame.data)
                received = [node.receive(frame.arbitration_id, data, now) for node in self._nodes.values()]
            except Refusal as refusal:
                self.counts.refuse(refusal.reason, str(refusal))
                return
            if any(received) or (self._nodes and frame.arbitration_id == 0x80):
                self.counts.add("received")
                self.peer_watch.fed()

    def _take(self, driving_message: DrivingMessage, data: bytes) -> None:
        try:
            values = self._map.to_actuators(driving_message.read(data))
        except ValueError as fault:
            raise fault if isinstance(fault, Refusal) else Refusal("not_finite", str(fault)) from None
        if driving_message.missed:
            self.counts.add("commands_missed", driving_message.missed)
            driving_message.missed = 0
        driving_message.received_at = monotonic()
        self._late.discard(driving_message.layout.message.name)
        if not self._late:
            self.waits = False
        self.peer_watch.received(driving_message.received_at)
        self.io.command(values)

    # -- time --------------------------------------------------------------------------------------------------------

    @override
    def tick(self, now: float) -> None:
        """Handle time-outs, periodic messages and the bus."""
        self._bus.tick(now)
        for node in self._nodes.values():
            node.network.tick(now)
        for driving_message in self._driving_messages.values():
            limit = self.time_out_cycles * driving_message.period_s if driving_message.period_s else self.peer_timeout_s
            late = 0.0 < limit < now - driving_message.received_at and driving_message.received_at > 0.0
            if self.time_out_cycles and late and driving_message.layout.message.name not in self._late:
                self._be_late(driving_message, limit)

    def _be_late(self, driving_message: DrivingMessage, limit: float) -> None:
        name = driving_message.layout.message.name
        self._late.add(name)
        self.counts.add("time_outs")
        if self.time_out == "loop":
            self.io.log(
                f"no message {name} for {limit:g} s: the bridge sends no command, so the plant acts by "
                "its policy for missing commands (--on-miss)"
            )
            self.waits = True
            return
        self.io.log(
            f"no message {name} for {limit:g} s: the actuators of this message "
            f"{'go to neutral' if self.peer_lost == 'neutral' else 'keep their last values'} "
            f"(peer_lost={self.peer_lost})"
        )
        if self.peer_lost == "neutral" and self.plant.granted:
            names = {
                entry.actuator for entry in self._map.entries if entry.channel in driving_message.channels.values()
            }
            self.io.command({name: value for name, value in self.neutral().items() if name in names})

    @override
    def on_peer_lost(self, why: str) -> None:
        """Put the enabled drives into fault, because their controller is gone."""
        self.counts.add("peer_lost")
        for node in self._nodes.values():
            if node.operational and node.drive.power.name == "OPERATION_ENABLED":
                self.io.log(f"drive {node.number}: {why}: the drive goes to the state fault")
                node.fail()

    def _came(self) -> None:
        for driving_message in self._driving_messages.values():
            driving_message.begin()
        for node in self._nodes.values():
            node.boot()

    def _lost_bus(self, why: str) -> None:
        for driving_message in self._driving_messages.values():
            if driving_message.received_at:
                self._be_late(driving_message, 0.0)
        self.on_peer_lost(why)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._time, self.waits = -1.0, False
        self._late.clear()
        for driving_message in self._driving_messages.values():
            driving_message.received_at = 0.0
        for node in self._nodes.values():
            node.drive.reset()


def _scaled(text: str, plant: PlantInfo, place: str) -> tuple[Field, float]:
    """Return field and scale of OUTPUT[INDEX], or OUTPUT[INDEX]*SCALE."""
    name, star, scale = text.partition("*")
    try:
        number = float(scale) if star else 1.0
    except ValueError:
        number = 0.0
    if not number or not isfinite(number):
        raise rtmms.ModelError(f"{place}: expected OUTPUT[INDEX] or OUTPUT[INDEX]*SCALE, got '{text}'")
    return find_field(name, plant, place), number


def _ends(channel: Any) -> tuple[float, float]:
    """Return the limits of an actuator, far away if it has none."""
    low = channel.lower if channel.lower is not None and isfinite(channel.lower) else -_MAX_UNLIMITED
    high = channel.upper if channel.upper is not None and isfinite(channel.upper) else _MAX_UNLIMITED
    return low, high
