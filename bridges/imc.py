"""IMC, the messages of the LSTS toolchain (Neptus, DUNE): a vehicle that announces itself, is shown and is steered."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field, replace
from math import atan2, degrees, hypot, isfinite, radians
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal

import rtmms
from rtmms.base.attitude import euler, rotate_back
from rtmms.base.contract import ESTIMATE
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.channels import ChannelMap, ChannelMapping
from rtmms.bridging.untrusted import Admission, Refusal

from .autopilot.parameter_channels import ParameterBridge, ParameterChannels
from .lines.addresses import resolve_receiver
from .lines.datagrams import datagrams, send
from .motion.frames import Home, flu_frd
from .motion.pose import Motion, PoseNames, PoseReader, truth_names
from .sea.imc_messages import (
    CHANNELS,
    EVERYONE,
    MAX_MESSAGE_BYTES,
    Place,
    channels_known,
    name_of,
    parse,
    places,
    set_points,
)
from .sea.imc_nodes import GROUP, PORTS, Node, Nodes, announce_socket, let_announce, message_socket

_MAX_READS = 8
_ANNOUNCE_S = 10.0
_BEAT_S = 1.0
_MAX_PLANS = 32
_MAX_PLAN_BURST = 20.0
_MAX_PLANS_1_S = 5.0
_MIN_UNDERWATER_M = 0.3
Kind = Literal["UUV", "USV", "UAV", "UGV"]


@dataclass(kw_only=True)
class Imc(ParameterBridge):
    """IMC over UDP with discovery: Neptus shows the robot and steers it, DUNE's tasks drive its actuators.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    peer_timeout_s : float, default 10.0
        Silence after a peer's first message from which it counts as lost (wall time); 0: never. Unit: s.
    """

    system: Annotated[str, Parameter("Name in the bridge's announcements; '': the robot's.")] = ""
    number: Annotated[int, Parameter("IMC number of the system.", ge=1, le=EVERYONE - 1)] = 0x0801
    kind: Annotated[Kind, Parameter("Type of the vehicle.")] = "UUV"
    network: Annotated[str, NamesAddress("listen"), Parameter(
        "Address of the network; 127.0.0.1: this machine only.",
    )] = "127.0.0.1"  # fmt: skip
    port: Annotated[int, Parameter("Port at which messages arrive; 0: a free one.", ge=0, le=65535)] = 6002
    peer: Annotated[tuple[str, ...], Parameter(
        "Accepted senders: HOST, HOST:PORT or NETWORK/BITS; none: all of the network.",
    )] = ()  # fmt: skip
    nodes: Annotated[tuple[Annotated[str, NamesAddress("connect")], ...], Parameter(
        "Addresses HOST:PORT of nodes that receive everything without announcing themselves.",
    )] = ()  # fmt: skip
    home: Annotated[Home, Parameter(
        "Place of the world's origin (lat_deg, lon_deg, alt_m) and compass bearing of its x axis "
        "(x_bearing_deg).",
    )] = field(default_factory=lambda: Home(lat_deg=41.184, lon_deg=-8.705))  # fmt: skip
    state_hz: Annotated[float, Parameter("EstimatedState per second of simulated time.", "Hz", le=1e6)] = 5.0
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim); channels servo.N and "
        "thruster.N.",
    )] = ()  # fmt: skip
    parameter_channels: Annotated[dict[str, str], Parameter(
        "Parameters of a controller that heading_deg, depth_m, speed_m_s and pitch_deg set; plans need heading_deg.",
    )] = field(default_factory=dict)  # fmt: skip
    reached_m: Annotated[float, Parameter(
        "Distance within which a plan's waypoint counts as reached.", "m", le=1e6,
    )] = 2.0  # fmt: skip
    peer_timeout_s: float = 10.0
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip

    sends_on_events: ClassVar[bool] = True
    extra: ClassVar[str] = "imc"
    requires: ClassVar[dict[str, str]] = {"imcpy": "imcpy"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        try:
            usable = not ipaddress.IPv4Address(self.network).is_unspecified  # others send there
        except ValueError:
            usable = False
        if not usable:
            raise rtmms.ModelError(f"network: expected an IPv4 address of this machine, got '{self.network}'")
        self._fixed = [_host_port(text) for text in self.nodes]
        self._map = ChannelMap(self.channels)
        for entry in self._map.entries:
            if not channels_known(entry.channel):
                raise rtmms.ModelError(f"channels: expected servo.N or thruster.N, got '{entry.channel}'")
        self._parameter_channels = ParameterChannels(self.parameter_channels, CHANNELS)

    @override
    def claims(self) -> tuple[str, ...]:
        """Return `claim`, or else the actuators of the channels."""
        return self.claim or self._map.actuators

    # -- hooks -------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Bind the sockets, and find the outputs and channels."""
        import imcpy

        self._of: Any = imcpy
        self._map.check(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._read = PoseReader(_names(self.pose, plant), plant, needs=("position", "quaternion"))
        self._surface = float(plant.environment.get("surface_m", 0.0))
        self._name = self.system or plant.robot
        self._admission = Admission(self.peer)
        self._nodes = Nodes()
        self._motion: Motion | None = None
        self._slot, self._time, self._beat_at, self._announce_at = -1, -1.0, 0.0, 0.0
        self._plans: dict[str, list[Place]] = {}
        self._plans_left, self._plans_at = _MAX_PLAN_BURST, 0.0
        self._course: list[Place] = []
        self._plan, self._leg_at, self._outcome = "", 0.0, imcpy.PlanControlState.LastPlanOutcomeEnum.NONE
        self.tick_s = 0.1
        far = not ipaddress.IPv4Address(self.network).is_loopback
        self._socket = message_socket(self.network, self.port)
        self.attend(self._socket, self._on_message)
        self._port = int(self._socket.getsockname()[1])
        let_announce(self._socket, self.network, far)
        try:
            announces, port = announce_socket(self.network)
        except rtmms.RtmmsError as fault:
            self.io.log(f"{fault}; the bridge finds only the nodes in `nodes`, and nodes that send to it")
        else:
            self.attend(announces, lambda: self._receive(announces))
            self.io.log(f"'{self._name}' ({self.number:#06x}) at UDP {self.network}:{self._port}, announces at {port}")
        if self._map or self._parameter_channels:
            self.io.log(self._admission.sentence(f"UDP {self.network}:{self._port}"))

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send the estimated state if it is due, and follow a plan."""
        if state.time < self._time:
            self._slot = -1  # the plant began anew
        self._time = state.time
        slot = int(state.time * self.state_hz + 1e-6)
        if slot <= self._slot:
            return
        self._slot = slot
        motion = self._read(state)
        if not all(map(isfinite, (*motion.position, *motion.attitude, *motion.velocity, *motion.rate))):
            self.counts.add("not_finite")
            return
        self._motion = motion
        if self._course:
            self._follow(motion)
        self._send_to_all(self._estimated(motion))

    @override
    def tick(self, now: float) -> None:
        """Send announces and periodic messages, and remove silent nodes."""
        for node in self._nodes.forget(now):
            self.io.log(f"node '{node.name}' is lost")
        if now >= self._announce_at:
            self._announce_at = now + (_ANNOUNCE_S if len(self._nodes) else _BEAT_S)
            self._announce()
        if now >= self._beat_at:
            self._beat_at = now + _BEAT_S
            for message in (self._of.Heartbeat(), self._vehicle_state(), self._plan_state(), self._medium()):
                self._send_to_all(message)

    @override
    def on_peer_lost(self, why: str) -> None:
        """Handle a lost peer; set-points remain, as at an autopilot, and a plan continues by itself."""
        rtmms.Bridge.on_peer_lost(self, why)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        self._end_plan(False)

    # -- out ---------------------------------------------------------------------------------------------------------

    def _pack(self, message: Any, to: int) -> bytes:
        message.src, message.dst, message.src_ent = self.number, to, 1
        message.set_timestamp_now()
        return bytes(self._of.Packet.serialize(message))

    def _send(self, data: bytes, place: tuple[str, int]) -> None:
        send(self._socket, data, place, self.counts)

    def _send_to_all(self, message: Any) -> None:
        """Send a message to all nodes."""
        for node in self._nodes:
            self._send(self._pack(message, node.number), node.place)
        for place in self._fixed:
            self._send(self._pack(message, EVERYONE), place)

    def _announce(self) -> None:
        message = self._of.Announce()
        message.sys_name, message.sys_type = self._name, getattr(self._of.SystemType, self.kind)
        message.owner = EVERYONE
        lat, lon, height = self.home.geodetic(self._motion.position if self._motion is not None else (0.0, 0.0, 0.0))
        message.lat, message.lon, message.height = radians(lat), radians(lon), height
        message.services = f"imc+udp://{self.network}:{self._port}/"
        data = self._pack(message, EVERYONE)
        for port in PORTS:
            self._send(data, (GROUP, port))
            if ipaddress.IPv4Address(self.network).is_loopback:
                self._send(data, (self.network, port))  # where loopback carries no multicast
        for place in self._fixed:
            self._send(data, place)

    def _estimated(self, motion: Motion) -> Any:
        message, bearing = self._of.EstimatedState(), self.home.x_bearing
        (x, y, z), q, (vx, vy, vz) = motion.ned(bearing)
        message.lat, message.lon, message.height = (
            radians(self.home.lat_deg),
            radians(self.home.lon_deg),
            self.home.alt_m,
        )
        message.x, message.y, message.z = x, y, z
        message.phi, message.theta, message.psi = euler(q)
        message.u, message.v, message.w = flu_frd(rotate_back(motion.attitude, motion.velocity))
        message.vx, message.vy, message.vz = vx, vy, vz
        message.p, message.q, message.r = motion.rate_frd
        message.depth, message.alt = self._depth(motion), -1.0
        return message

    def _depth(self, motion: Motion) -> float:
        return self._surface - motion.position[2]

    def _vehicle_state(self) -> Any:
        message, mode = self._of.VehicleState(), self._of.VehicleState.OperationModeEnum
        if self._motion is None or self.silent:
            message.op_mode = mode.BOOT if self._motion is None else mode.ERROR
        else:
            message.op_mode = mode.MANEUVER if self._course else mode.SERVICE
        message.maneuver_type = self._of.Goto().msg_id if self._course else EVERYONE
        return message

    def _plan_state(self) -> Any:
        message, states = self._of.PlanControlState(), self._of.PlanControlState.StateEnum
        able = self._motion is not None and not self.silent and self._parameter_channels.knows(("heading_deg",))
        message.state = states.EXECUTING if self._course else states.READY if able else states.BLOCKED
        message.plan_id = self._plan
        message.plan_eta, message.man_eta, message.plan_progress = -1, -1, -1.0
        message.last_outcome = self._outcome
        if self._course:
            known = self._plans.get(self._plan, self._course)
            message.man_id, message.man_type = self._course[0].name, self._of.Goto().msg_id
            message.plan_progress = 100.0 * (len(known) - len(self._course)) / max(1, len(known))
        return message

    def _medium(self) -> Any:
        message, kinds = self._of.VehicleMedium(), self._of.VehicleMedium.MediumEnum
        if self._motion is None or not self.plant.environment.get("water_kg_m3"):
            message.medium = kinds.UNKNOWN
        else:
            message.medium = kinds.UNDERWATER if self._depth(self._motion) > _MIN_UNDERWATER_M else kinds.WATER
        return message

    # -- in ----------------------------------------------------------------------------------------------------------

    def _on_message(self) -> None:
        self._receive(self._socket)

    def _receive(self, where: Any) -> None:
        for data, sender in datagrams(where, MAX_MESSAGE_BYTES + 1, _MAX_READS):
            try:
                self._take(data, sender)
            except Refusal as refusal:
                self.counts.refuse(refusal.reason, str(refusal))

    def _take(self, data: bytes, sender: tuple[str, int]) -> None:
        if not self._admission.admits(sender):
            raise Refusal("stranger", f"expected a message of a peer that peer= admits, got one from {sender[0]}")
        name = name_of(data)
        if not name:
            self.counts.add("passed_over")
            return
        if name.startswith("Plan"):
            self._allow_plan(monotonic())
        message = parse(data)
        if message.src == self.number or message.dst not in (self.number, EVERYONE):
            return
        now, of = monotonic(), self._of
        self.counts.add("received")
        if isinstance(message, of.Announce):
            self._meet(message, sender, now)
            return
        if not self._nodes.receive(message.src, now) and isinstance(message, of.Heartbeat):
            self._nodes.spoke(message.src, sender[:2], now)
            self.counts.add("nodes")
        if isinstance(message, of.EntityList):
            self._on_entities(message)
        elif isinstance(message, of.PlanControl):
            self._on_plan_control(message)
        elif isinstance(message, of.PlanDB):
            self._on_plan_db(message)
        elif isinstance(message, of.Abort):
            self._abort()
        else:
            self._on_set_points(set_points(message, self.home))

    def _allow_plan(self, now: float) -> None:
        """Limit messages about plans, because imcpy loses up to 0.5 kB for each that is broken inside."""
        self._plans_left = min(_MAX_PLAN_BURST, self._plans_left + (now - self._plans_at) * _MAX_PLANS_1_S)
        self._plans_at = now
        if self._plans_left < 1.0:
            raise Refusal("too_many", f"expected at most {_MAX_PLANS_1_S:g} messages about plans a second, got more")
        self._plans_left -= 1.0

    def _meet(self, message: Any, sender: tuple[str, int], now: float) -> None:
        node = self._nodes.announced(message.src, message.sys_name, message.services, sender[0], now)
        if node is not None:
            self.counts.add("nodes")
            self.io.log(f"node '{node.name[:40]}' ({node.number:#06x}) connected, at {node.place[0]}:{node.place[1]}")
            self._announce_at = 0.0  # it shall know of us at once

    def _on_set_points(self, values: dict[str, float]) -> None:
        if not values:
            return
        self.peer_watch.fed()
        actuators = self._map.to_actuators(values)
        if self._parameter_channels.take(values) and self._course and "heading_deg" in values:
            self.io.log(f"plan '{self._plan[:40]}' ended: a peer commanded a heading")
            self._end_plan(False)
        if actuators and self.plant.granted:
            self.command(actuators)

    def _on_entities(self, message: Any) -> None:
        if message.op != self._of.EntityList.OperationEnum.QUERY:
            return
        answer = self._of.EntityList()
        answer.op, answer.list = self._of.EntityList.OperationEnum.REPORT, "Daemon=0;Navigation=1"
        self._answer(message, answer)

    def _answer(self, to: Any, message: Any) -> None:
        node: Node | None = self._nodes.find(to.src)
        if node is not None:
            self._send(self._pack(message, node.number), node.place)

    # -- plans -------------------------------------------------------------------------------------------------------

    def _on_plan_db(self, message: Any) -> None:
        of, kinds = self._of.PlanDB.OperationEnum, self._of.PlanDB.TypeEnum
        if message.type != kinds.REQUEST:
            return
        answer = self._of.PlanDB()
        answer.op, answer.request_id, answer.plan_id, answer.type = message.op, message.request_id, message.plan_id, (
            kinds.SUCCESS
        )  # fmt: skip
        try:
            if message.op == of.SET:
                self._keep(message.plan_id, places(message.arg, self.home))
            elif message.op == of.DEL:
                self._plans.pop(message.plan_id, None)
            elif message.op == of.CLEAR:
                self._plans.clear()
            else:
                raise Refusal("plan", f"PlanDB: operation: expected set, delete or clear, got {message.op}")
        except Refusal as refusal:
            self.counts.refuse(refusal.reason, str(refusal))
            answer.type, answer.info = kinds.FAILURE, str(refusal)
        self._answer(message, answer)

    def _keep(self, name: str, course: list[Place]) -> None:
        if name not in self._plans and len(self._plans) >= _MAX_PLANS:
            raise Refusal("plan", f"the bridge stores at most {_MAX_PLANS} plans; delete one")
        self._plans[name[:256]] = course

    def _on_plan_control(self, message: Any) -> None:
        of, kinds = self._of.PlanControl.OperationEnum, self._of.PlanControl.TypeEnum
        if message.type != kinds.REQUEST:
            return
        answer = self._of.PlanControl()
        answer.op, answer.request_id, answer.plan_id, answer.type = message.op, message.request_id, message.plan_id, (
            kinds.SUCCESS
        )  # fmt: skip
        try:
            if message.op in (of.START, of.LOAD):
                self._begin_plan(message, message.op == of.START)
            elif message.op == of.STOP:
                self._end_plan(False)
            else:
                raise Refusal("plan", f"PlanControl: operation: expected load, start or stop, got {message.op}")
        except Refusal as refusal:
            self.counts.refuse(refusal.reason, str(refusal))
            answer.type, answer.info = kinds.FAILURE, str(refusal)
        self._answer(message, answer)
        self._beat_at = 0.0  # the state is sent at once

    def _begin_plan(self, message: Any, start: bool) -> None:
        if message.arg is not None:
            self._keep(message.plan_id, places(message.arg, self.home))
        course = self._plans.get(message.plan_id)
        if course is None:
            raise Refusal("plan", f"the bridge has no plan '{message.plan_id[:40]}'")
        if not start:
            return
        if not self._parameter_channels.knows(("heading_deg",)):
            raise Refusal(
                "plan",
                "expected a controller to steer by, got none; give parameter_channels=heading_deg=CONTROLLER.PARAMETER",
            )
        self._course, self._plan, self._leg_at = list(course), message.plan_id[:256], self._time
        self.peer_watch.fed()
        self.io.log(f"plan '{self._plan[:40]}' started: {len(course)} waypoints")

    def _follow(self, motion: Motion) -> None:
        """Head for the waypoint, and take the next one if it is reached, or has taken too long."""
        here, there = motion.position, self._course[0]
        away = hypot(there.x - here[0], there.y - here[1])
        late = 0.0 < there.timeout_s < self._time - self._leg_at
        if away <= self.reached_m or late:
            self._course.pop(0)
            self._leg_at = self._time
            if not self._course:
                self._end_plan(not late)
                return
            there = self._course[0]
        values = {"heading_deg": degrees(atan2(there.y - here[1], there.x - here[0]))}
        if there.depth_m is not None:
            values["depth_m"] = there.depth_m
        if there.speed_m_s is not None:
            values["speed_m_s"] = there.speed_m_s
        self._parameter_channels.take(values)

    def _end_plan(self, success: bool) -> None:
        if not self._plan:
            return
        outcomes = self._of.PlanControlState.LastPlanOutcomeEnum
        self._outcome = outcomes.SUCCESS if success else outcomes.FAILURE
        self.io.log(f"plan '{self._plan[:40]}' {'is done' if success else 'is ended'}")
        self._course, self._plan = [], ""
        self._parameter_channels.zero_parameters(("speed_m_s",))
        self._beat_at = 0.0

    def _abort(self) -> None:
        """Stop all that is driven from here."""
        self.io.log("a peer sent an abort: the plan ends, and the actuators go to neutral")
        self._end_plan(False)
        self._parameter_channels.zero_parameters(("speed_m_s",))
        if self.plant.granted:
            self.io.command(self.neutral())


def _names(names: PoseNames, plant: rtmms.PlantInfo) -> PoseNames:
    """Return the estimate's names if the plant has one.

    Otherwise they are its own outputs, or the truth if that was selected.
    """
    known = set(plant.selected)
    if names == PoseNames() and {ESTIMATE + "position", ESTIMATE + "quaternion"} <= known:
        return replace(
            names, position=ESTIMATE + "position", quaternion=ESTIMATE + "quaternion", velocity=ESTIMATE + "velocity",
            angular_velocity="imu.gyro" if "imu.gyro" in known else "angular_velocity",
        )  # fmt: skip
    return truth_names(names, plant)


def _host_port(text: str) -> tuple[str, int]:
    place = resolve_receiver(text, "nodes", family=socket.AF_INET)[1]
    return str(place[0]), int(place[1])
