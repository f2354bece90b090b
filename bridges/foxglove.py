"""Live server for Foxglove and Lichtblick: transforms, the robot's shape, joints, odometry, and every output to plot.

docs/bridges/foxglove.md has the topics. The library answers its clients in its own threads; an inbox passes their
messages to the bridge's loop.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import rtmms
from rtmms.base.errors import ModelError, safe_text
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.trust import NamesFile
from rtmms.bridging.untrusted import Fuzzed, fuzz, read_json, values_in
from rtmms.view.drawings import shape_of

from .lines.inbox import Inbox
from .lines.nodelay import send_at_once
from .lines.origin_relay import OriginRelay, hidden_host
from .messages.foxglove_scene import Scene, stamp
from .messages.selected import select_outputs
from .motion.frames import xyzw
from .motion.joints import Joints
from .motion.pose import Motion, PoseNames, PoseReader

MAX_PLOTTED_NUMBERS = 64
"""Numbers up to which an output is in /outputs; fields are not."""

COMMAND = "/command"
OPEN_TO_ALL = (
    "foxglove: with a claim every program that reaches this port, and the pages of {pages}, can drive the robot"
)
_MAX_CHANNELS = 8
STOP_S = 1.0


def parse(message: bytes) -> dict[str, float]:
    """Return the values of {"values": {actuator: number}}.

    Parameters
    ----------
    message : bytes
        The message.

    Returns
    -------
    dict[str, float]
        Values by name.

    Raises
    ------
    Refusal
        If the message is something else.
    """
    return values_in(read_json(message))


def fuzzed() -> Fuzzed:
    """Return the parser of a peer's bytes, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    return fuzz(parse), [b'{"values": {"left.front": 0.25, "left.back": -1}}', b'{"values": {}}']


class _Listener:
    """Callbacks of the server, in its own thread: commands, and the presence of clients.

    The inbox gets each command, and None when the client of the last one has left.
    """

    def __init__(self, inbox: Inbox[bytes | None]) -> None:
        self._inbox = inbox
        self.port = 0
        self._commanding: set[tuple[int, int]] = set()  # clients and their channels
        self._last: tuple[int, int] | None = None

    def on_subscribe(self, client: Any, channel: Any) -> None:
        """Send small messages at once, because each state has several, and the library delays them."""
        send_at_once(self.port)  # each state is several messages, and the library lets them wait for each other

    def on_unsubscribe(self, client: Any, channel: Any) -> None:
        """Do nothing."""

    def on_client_advertise(self, client: Any, channel: Any) -> None:
        """Record a client's channel for commands."""
        mine = sum(item == client.id for item, _ in self._commanding)
        if channel.topic == COMMAND and mine < _MAX_CHANNELS:
            self._commanding.add((client.id, channel.id))

    def on_client_unadvertise(self, client: Any, client_channel_id: int) -> None:
        """Remove a client's channel."""
        self._commanding.discard((client.id, client_channel_id))
        if self._last == (client.id, client_channel_id):
            self._last = None
            self._inbox.put(None)

    def on_message_data(self, client: Any, client_channel_id: int, data: bytes) -> None:
        """Pass a command to the inbox."""
        if (client.id, client_channel_id) in self._commanding:
            self._last = (client.id, client_channel_id)
            self._inbox.put(bytes(data))


ORIGINS = ("https://app.foxglove.dev",)
"""Sites with pages that may connect by default."""


@dataclass(kw_only=True)
class Foxglove(rtmms.Bridge):
    """A live server for Foxglove and Lichtblick: transforms, shape, joints, odometry, plots.

    With a `claim` clients may publish commands as JSON on /command; without one nothing is taken from them.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    outputs : tuple[str, ...], optional
        Outputs to receive, as names or patterns; none: all but fields, such as the joints of every chain.
    rate_hz : float, default 30.0
        States that `on_state` receives per second of simulated time; 0: all. Unit: Hz.
    """

    outputs: tuple[str, ...] = ("*",)
    rate_hz: float = 30.0
    host: Annotated[str, NamesAddress("listen"), Parameter("Address at which the bridge listens.")] = "127.0.0.1"
    port: Annotated[int, Parameter("Port at which the bridge listens; 0: a free one.", ge=0, le=65535)] = 8765
    backlog: Annotated[int, Parameter(
        "Messages that are stored for a slow client; beyond that the oldest are dropped.", ge=1,
    )] = 64  # fmt: skip
    tls_cert: Annotated[str, NamesFile("input"), Parameter(
        "PEM file of the certificate; with it the server speaks wss:// only.",
    )] = ""  # fmt: skip
    tls_key: Annotated[str, NamesFile("input"), Parameter("PEM file of the certificate's key.")] = ""
    world: Annotated[str, Parameter("Frame of the world.")] = "world"
    body: Annotated[str, Parameter("Frame of the body.")] = "body"
    fin_joints: Annotated[bool, Parameter("Whether /joint_states has the joints of each chain of a fin, too.")] = False
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip
    origins: Annotated[tuple[str, ...], Parameter(
        "Sites whose pages may connect; pages of other sites in a browser are refused.",
    )] = ORIGINS  # fmt: skip

    sends_on_events = True
    extra = "foxglove"
    requires = {"foxglove": "foxglove-sdk"}  # noqa: RUF012

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ModelError("tls_cert and tls_key: expected both or none")
        for origin in self.origins:
            if "://" not in origin or "*" in origin:
                raise ModelError(f"origins: expected sites such as https://robot.example, got '{origin}'")

    @override
    def beyond(self) -> dict[str, str]:
        """Return the parameters that reach beyond this machine; a page of another site is on another machine."""
        others = [origin for origin in self.origins if origin not in ORIGINS]
        return super().beyond() | ({"origins": others[0]} if others else {})

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Start the server, and create the topics."""
        import foxglove
        from foxglove.channels import FrameTransformsChannel, JointStatesChannel, OdometryChannel, SceneUpdateChannel

        _quiet()
        self.inbox: Inbox[bytes | None] = Inbox()
        self.attend(self.inbox, self.on_message)
        self._strangers: Inbox[str] = Inbox()
        self.attend(self._strangers, self._on_stranger)
        plant = select_outputs(plant)
        self._motion = PoseReader(self.pose, plant, "foxglove: pose", needs=("position", "quaternion"))
        self._joints = Joints(plant, self.fin_joints)
        self._scene = Scene(shape_of(plant), self.world, self.body)
        self._time = -1.0
        self._context = context = foxglove.Context()  # it must live: the server sees no channel of one that is gone
        self.server = self._listening(context)
        self._tf = FrameTransformsChannel("/tf", context=context)
        self._odometry = OdometryChannel("/odom", context=context)
        self._drawn = SceneUpdateChannel("/scene", context=context) if self._scene.shape else None
        self._joint_states = JointStatesChannel("/joint_states", context=context) if self._joints.names else None
        self._plotted = {
            channel.name: channel for channel in plant.outputs if _size(channel.shape) <= MAX_PLOTTED_NUMBERS
        }
        self._plots = foxglove.Channel("/outputs", schema=_schema(list(self._plotted.values())), context=context)
        self.io.log(f"foxglove: listening at {'wss' if self.tls_cert else 'ws'}://{self.host}:{self.relay.port}")
        if self.claim:
            self.io.log(OPEN_TO_ALL.format(pages=", ".join(self.origins) or "none"))

    def _listening(self, context: Any) -> Any:
        import foxglove
        from foxglove.websocket import Capability

        capabilities = [Capability.Time]
        if self.claim:
            capabilities.append(Capability.ClientPublish)
        listener = _Listener(self.inbox)
        hidden = hidden_host()
        try:
            server = foxglove.start_server(
                name=f"rtmms {self.plant.robot}", host=hidden, port=0, context=context,
                capabilities=capabilities, supported_encodings=["json"] if self.claim else None,
                server_listener=listener, message_backlog_size=self.backlog, session_id=self._session(),
            )  # fmt: skip
        except (OSError, RuntimeError, ValueError) as fault:
            raise ModelError(f"foxglove: cannot listen at {hidden}: {fault}") from None
        listener.port = server.port
        self.closing.callback(self._stop, server)
        inner = (hidden, server.port)
        try:
            self.relay = OriginRelay(self.host, self.port, inner, self.origins, self._strangers.put, self._tls())
        except OSError as fault:
            why = os.strerror(fault.errno) if fault.errno and fault.errno > 0 else str(fault)
            raise ModelError(f"foxglove: cannot listen at {self.host}:{self.port}: {why}") from None
        self.closing.callback(self.relay.close)
        return server

    def _tls(self) -> ssl.SSLContext | None:
        """Return the context of the certificate; ModelError if it cannot be read."""
        if not self.tls_cert:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        cert, key = (Path(name).expanduser() for name in (self.tls_cert, self.tls_key))
        for path in (cert, key):
            if not path.is_file():
                raise ModelError(f"foxglove: {path}: No such file")
        try:
            context.load_cert_chain(cert, key, lambda: "")
        except (OSError, ValueError) as fault:
            raise ModelError(f"foxglove: {cert}, {key}: {fault}") from None
        return context

    def _on_stranger(self) -> None:
        """Count and log connections that the relay refused."""
        for origin in self._strangers.take_all()[0]:
            self.counts.refuse("origin" if origin else "handshake")
            if origin:
                shown_origin = safe_text(origin[:80])
                self.io.log(f"foxglove: refused a page of {shown_origin}; origins={shown_origin} admits it")

    def _session(self) -> str:
        return f"{self.plant.session or 'rtmms'}-{self.counts['resets']}"

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Publish the state."""
        if state.time < self._time:  # the plant was reset: clients forget what they have
            self.counts.add("resets")
            self.server.clear_session(self._session())
        self._time = state.time
        at = round(state.time * 1e9)
        motion = self._motion(state)
        self.server.broadcast_time(at)
        if self._tf.has_sinks():
            self._tf.log(self._scene.transforms(state, motion), log_time=at)
        if self._odometry.has_sinks():
            self._odometry.log(self._odometry_of(motion), log_time=at)
        if self._joint_states is not None and self._joint_states.has_sinks():
            self._joint_states.log(self._joints_of(state), log_time=at)
        if self._drawn is not None and self._drawn.has_sinks():
            self._drawn.log(self._scene.update(state), log_time=at)
        if self._plots.has_sinks():
            try:
                self._plots.log(self._plot_of(state), log_time=at)
            except ValueError:  # JSON has no word for a number that is none
                self.counts.add("not_finite")
        self.counts.add("sent")

    def _odometry_of(self, motion: Motion) -> Any:
        from foxglove.messages import Odometry, Pose, Quaternion, Vector3

        x, y, z, w = xyzw(motion.attitude)
        return Odometry(
            timestamp=stamp(motion.time), frame_id=self.world, body_frame_id=self.body,
            pose=Pose(position=Vector3(**_xyz(motion.position)), orientation=Quaternion(x=x, y=y, z=z, w=w)),
            linear_velocity=Vector3(**_xyz(motion.velocity_body)), angular_velocity=Vector3(**_xyz(motion.rate)),
        )  # fmt: skip

    def _joints_of(self, state: rtmms.State) -> Any:
        from foxglove.messages import JointState, JointStates

        values = self._joints(state)
        known = [(word, part) for word, part in zip(("position", "velocity", "effort"), values, strict=True) if part]
        return JointStates(
            timestamp=stamp(state.time),
            joints=[
                JointState(name=name, **{word: part[i] for word, part in known if part[i] == part[i]})
                for i, name in enumerate(self._joints.names)
            ],
        )

    def _plot_of(self, state: rtmms.State) -> bytes:
        applied = state.applied
        message: dict[str, Any] = {"time": state.time, "step": state.step, "late_us": applied.lateness_ns * 1e-3}
        message["missed"] = applied.policy != ""
        for name, channel in self._plotted.items():
            value = state.outputs[name]
            message[_key(name)] = _xyz(value) if _is_vector(channel) else value
        return json.dumps(message, allow_nan=False).encode()

    def on_message(self) -> None:
        """Read commands of clients; the newest wins."""
        messages, dropped = self.inbox.take_all()
        if dropped:
            self.counts.add("dropped", dropped)
        for message in messages:
            if message is None:
                self.on_peer_lost("the client that gave commands has left")
                continue
            with self.counts.message():
                self.command(self.claimed(parse(message)))

    @staticmethod
    def _stop(server: Any) -> None:
        # it waits for clients to take what they have: for one that has stopped reading, for ever
        ending = threading.Thread(target=server.stop, daemon=True)
        ending.start()
        ending.join(STOP_S)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _is_vector(channel: rtmms.Channel) -> bool:
    return channel.shape == (3,) and channel.frame != ""


def _xyz(v: Any) -> dict[str, float]:
    return {"x": v[0], "y": v[1], "z": v[2]}


def _key(name: str) -> str:
    """Return a name without dots, which separate the fields of a path in Foxglove."""
    return name.replace(".", "_")


def _schema(channels: list[rtmms.Channel]) -> dict[str, Any]:
    """Return a JSON schema, from which viewers know the numbers to plot, and their units."""
    number = {"type": "number"}
    known: dict[str, Any] = {
        "time": {**number, "description": "simulated s"},
        "step": {"type": "integer"},
        "late_us": {**number, "description": "command after the deadline, us; <= 0 in time"},
        "missed": {"type": "boolean", "description": "a policy stood in for a command"},
    }
    for channel in channels:
        described = {"description": " ".join(filter(None, (channel.unit, channel.frame)))}
        if _is_vector(channel):
            known[_key(channel.name)] = {"type": "object", "properties": dict.fromkeys("xyz", number), **described}
        elif channel.shape:
            known[_key(channel.name)] = {"type": "array", "items": number, **described}
        else:
            known[_key(channel.name)] = {**number, **described}
    return {"type": "object", "title": "rtmms.Outputs", "properties": known}


def _quiet() -> None:
    """Silence the library's log of strangers' messages, because they could fill a disk with it."""
    import logging

    logging.getLogger("foxglove").setLevel(logging.CRITICAL)
