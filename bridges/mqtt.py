"""MQTT: states as topics at a chosen rate, commands from topics, through a broker."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import rtmms
from rtmms.base.files import MIB, read_input_text
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.trust import NamesFile
from rtmms.bridging.channels import ChannelMap, ChannelMapping
from rtmms.bridging.sending import Outbox
from rtmms.bridging.untrusted import Fuzzed, Refusal, finite, fuzz, read_json, values_in

from .lines.inbox import Inbox
from .lines.unreached import why_unreached
from .messages.topics import part, parts, robot_part

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_MAX_MESSAGE_BYTES = 8192
_MAX_PACKET_BYTES = 2 * _MAX_MESSAGE_BYTES + 65536
"""Bytes of a packet that are stored: a topic may have 65535 in addition to the message."""
_MAX_IN_FLIGHT = 16
_EXTRA_QUEUED = 8
"""Room for status and info in addition to the states, with a broker that acknowledges nothing."""
_MAX_WAITING = 256
_FAREWELL_S = 0.5
PASSWORD = "RTMMS_MQTT_PASSWORD"


def parse(name: str, payload: bytes) -> dict[str, float]:
    """Return the values of a command.

    Parameters
    ----------
    name : str
        Empty for a message to TOPIC/command, an object {"values": {channel: number}}; else the channel of a number.
    payload : bytes
        The message.

    Returns
    -------
    dict[str, float]
        Values by channel.

    Raises
    ------
    Refusal
        If the message is something else.
    """
    message = read_json(payload, _MAX_MESSAGE_BYTES)
    if name:
        return {name: finite(message, "the payload")}
    return values_in(message)


def fuzzed() -> Fuzzed:
    """Return the parser of both kinds of commands, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """

    def read(payload: bytes) -> None:
        """Parse a message as both kinds.

        Parameters
        ----------
        payload : bytes
            The message.
        """
        with contextlib.suppress(Refusal):
            parse("left.front", payload)
        parse("", payload)

    return fuzz(read), [b'{"values": {"left.front": 0.25}}', b"-0.125"]


@dataclass(kw_only=True)
class Mqtt(rtmms.Bridge):
    """States as MQTT topics at a chosen rate, commands in, last will, reconnecting, TLS.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    rate_hz : float, default 10.0
        States that `on_state` receives per second of simulated time; 0: all. Unit: Hz.
    """

    host: Annotated[str, NamesAddress("connect"), Parameter("Address of the broker.")] = "127.0.0.1"
    port: Annotated[int, Parameter("Port of the broker; 0: 1883, or 8883 with TLS.", ge=0, le=65535)] = 0
    topic: Annotated[str, Parameter(
        "Prefix of all topics; {robot} is the plant's name, {name} the bridge's.",
    )] = "rtmms/{robot}"  # fmt: skip
    client_id: Annotated[str, Parameter("Name of this client at the broker; '': the broker chooses.")] = ""
    layout: Annotated[Literal["json", "topics", "both"], Parameter(
        "Messages of a state: all of it in TOPIC/state, each output in TOPIC/state/NAME, or both.",
    )] = "json"  # fmt: skip
    rate_hz: float = 10.0
    qos: Annotated[Literal[0, 1], Parameter("Quality of service of states and commands; status and info have 1.")] = 0
    user: Annotated[str, Parameter("User at the broker; '': none.")] = ""
    password_file: Annotated[str, NamesFile("input"), Parameter(
        "File whose first line is the password; '': the environment variable RTMMS_MQTT_PASSWORD, if it "
        "exists.",
    )] = ""  # fmt: skip
    tls: Annotated[bool, Parameter("Whether to encrypt, and to check the broker's certificate.")] = False
    ca_file: Annotated[str, NamesFile("input"), Parameter(
        "Certificates of authorities for the broker's certificate; '': the system's.",
    )] = ""  # fmt: skip
    cert_file: Annotated[str, NamesFile("input"), Parameter(
        "Certificate of this client, if the broker asks for one.",
    )] = ""  # fmt: skip
    key_file: Annotated[str, NamesFile("input"), Parameter("Key of this client's certificate.")] = ""
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim); none: the actuators' "
        "names.",
    )] = ()  # fmt: skip
    waiting: Annotated[
        int,
        Parameter(
            "States that are stored for a slow broker; the oldest are dropped first.",
            ge=1,
        ),
    ] = 100

    sends_on_events: ClassVar[bool] = True
    extra: ClassVar[str] = "mqtt"
    requires: ClassVar[dict[str, str]] = {"paho.mqtt": "paho-mqtt"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        try:
            self._prefix = self.topic.format(robot="robot", name="name")
        except (KeyError, IndexError, ValueError):
            raise rtmms.ModelError(
                f"topic: expected text with no placeholders other than {{robot}} and {{name}}, got '{self.topic}'"
            ) from None
        if not self._prefix or set("+#\0") & set(self._prefix):
            raise rtmms.ModelError(f"topic: expected a topic without wildcards, got '{self.topic}'")
        if not self.tls and (self.ca_file or self.cert_file or self.key_file):
            raise rtmms.ModelError("tls: expected tls=true with ca_file, cert_file or key_file")
        if bool(self.cert_file) != bool(self.key_file):
            raise rtmms.ModelError("cert_file and key_file: expected both or neither")
        for key in ("password_file", "ca_file", "cert_file", "key_file"):
            path = getattr(self, key)
            if path and not Path(path).expanduser().is_file():
                raise rtmms.ModelError(f"{key}: there is no file '{path}'")
        if self.password_file and not self.user:
            raise rtmms.ModelError("password_file: expected user=NAME with it, got none")
        if self.password_file and not self._password():
            raise rtmms.ModelError(f"password_file: the first line of '{self.password_file}' is empty")
        self._map = ChannelMap(self.channels)
        self._port = self.port or (8883 if self.tls else 1883)
        self._client: Client | None = None
        self._under_way: set[int] = set()  # numbers of states that the client has and the broker not yet, and of those
        self._done: deque[int] = deque()  # that it has by now, as paho's thread reports
        self._connected, self._greeted, self._status, self._gone = False, False, "", False

    @override
    def claims(self) -> tuple[str, ...]:
        """Return `claim`, or else the actuators of the channels."""
        return self.claim or self._map.actuators

    # -- hooks -------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Start the client, and name the topics."""
        self._map.check(plant)
        known = [entry.channel for entry in self._map.entries] or [channel.name for channel in plant.actuators]
        self._channels = {topic: name for name, topic in parts(known, "channels").items()}
        self._topics = parts(plant.selected, "outputs") if self.layout != "json" else {}
        self._prefix = self.topic.format(robot=robot_part(plant.robot), name=part(self.name))
        self._outbox: Outbox[tuple[str, bytes]] = Outbox(self.waiting, self.counts)
        client = self._build_client()
        try:
            client.connect_async(self.host, self._port, keepalive=10)
        except ValueError as fault:
            raise rtmms.ModelError(f"host: {fault}") from None
        self._events: Inbox[tuple[str, str]] = Inbox(_MAX_WAITING)  # from paho's thread to ours: of the connection,
        self._messages: Inbox[tuple[str, bytes, bool]] = Inbox(_MAX_WAITING)  # and messages
        for inbox in (self._events, self._messages):
            self.attend(inbox, self._on_event)
        self._client = client
        self._client.loop_start()  # paho connects, and connects again, in a thread of its own: that may wait

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Publish the state."""
        if not self._connected:
            self.counts.add("unsent")
            return
        self._publish_status()
        if self.layout != "topics":
            self._put("state", {"time": state.time, "step": state.step, **state.outputs})
        if self.layout != "json":
            for name, value in state.outputs.items():
                self._put(f"state/{self._topics[name]}", value)
        self._flush()

    def on_silence(self) -> None:
        """Publish the status."""
        self._publish_status()

    @override
    def plant_gone(self, reason: str) -> None:
        """Publish that the plant is gone."""
        self._gone = True
        self._publish_status()

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._gone = False
        if self._connected:
            self._publish_info(plant)
            self._publish_status()

    @override
    def tick(self, now: float) -> None:
        """Send waiting messages."""
        self._flush()

    @override
    def close(self, reason: str) -> None:
        """Publish the last status, and disconnect."""
        client = self._client
        if client is None:
            return
        if self._connected:
            client.publish(f"{self._prefix}/counts", json.dumps(self.counts.as_dict()), 0, False)
            last = client.publish(f"{self._prefix}/status", "offline", 1, True)
            until = monotonic() + _FAREWELL_S
            while not last.rc and not last.is_published() and monotonic() < until:
                sleep(0.005)
        client.disconnect()
        stopper = threading.Thread(target=client.loop_stop, daemon=True)  # it waits for paho's thread, which may be
        stopper.start()  # waiting for a connection
        stopper.join(_FAREWELL_S)
        super().close(reason)

    # -- out ---------------------------------------------------------------------------------------------------------

    def _put(self, name: str, value: Any) -> None:
        try:
            payload = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
        except ValueError:
            self.counts.add("dropped")
            return
        self._outbox.put((f"{self._prefix}/{name}", payload))

    def _flush(self) -> None:
        """Pass messages to the client up to its limit under way, because it stores any number."""
        assert self._client is not None
        while self._done:
            self._under_way.discard(self._done.popleft())
        while self._connected and len(self._outbox) and len(self._under_way) < _MAX_IN_FLIGHT:
            message = self._outbox.take()
            assert message is not None
            under_way = self._client.publish(message[0], message[1], self.qos)
            if under_way.rc:
                self.counts.add("dropped")
            else:
                self._under_way.add(under_way.mid)
                self.counts.add("sent")

    def _publish_status(self) -> None:
        status = "no plant" if self._gone else "plant silent" if self.silent else "online"
        if self._client is None or not self._connected or status == self._status:
            return
        if not self._client.publish(f"{self._prefix}/status", status, 1, True).rc:
            self._status = status

    def _publish_info(self, plant: rtmms.PlantInfo) -> None:
        assert self._client is not None
        info = {
            "robot": plant.robot, "dt": plant.dt, "mode": plant.mode,
            "actuators": [vars_of(channel) for channel in plant.actuators if channel.name in plant.granted],
            "outputs": [vars_of(channel) for channel in plant.outputs if channel.name in plant.selected],
        }  # fmt: skip
        self._client.publish(f"{self._prefix}/info", json.dumps(info), 1, True)

    # -- in: what paho's thread has put down, in ours ----------------------------------------------------------------

    def _on_event(self) -> None:
        for kind, what in self._events.take_all()[0]:
            if kind == "connected":
                self._on_connected()
            elif kind == "lost":
                if self._connected:
                    self.io.log(f"the broker is lost ({what}); trying again")
                    self.on_peer_lost("no broker")
                else:
                    self._unreached("the broker closed it" + ("" if self.tls else "; does it require tls=true?"))
                self._connected, self._status = False, ""
                self._outbox.clear()
            elif kind == "unreached":
                self._unreached(what)
            elif kind == "refused":
                self.counts.add("broker_refused")
                if self.counts["broker_refused"] == 1:
                    self.io.log(f"the broker refused the connection: {what}; trying again")
        self._take_commands()
        self._flush()

    def _unreached(self, why: str) -> None:
        self.counts.add("unreached")
        if self.counts["unreached"] == 1:
            self.io.log(f"no connection to a broker at {self.host}:{self._port} ({why}); trying again")

    def _take_commands(self) -> None:
        """Read all commands; of each actuator the newest counts."""
        values: dict[str, float] = {}
        messages, dropped = self._messages.take_all()
        for message in messages:
            with self.counts.message():
                values |= self._read(*message)
                self.peer_watch.fed()
        if dropped:
            self.counts.add("commands_dropped", dropped)
        if values and self.plant.granted:
            self.command(values)

    def _on_connected(self) -> None:
        assert self._client is not None
        self._connected = True
        if self._greeted:
            self.counts.add("reconnects")
            self.io.log("the broker is connected again")
        self._greeted = True
        if self.qos == 0:
            self._under_way.clear()  # those are lost; with qos 1 the client sends them again
        self._publish_info(self.plant)
        self._publish_status()
        if self.plant.granted:
            for topic in ("command", "command/+"):
                self._client.subscribe(f"{self._prefix}/{topic}", self.qos)

    def _read(self, topic: str, payload: bytes, retained: bool) -> dict[str, float]:
        if retained:
            raise Refusal("retained", "expected a new command, got one that the broker retained")
        name = topic[len(self._prefix) + len("/command") :].lstrip("/")
        known = set(self._channels.values())
        values = parse(self._channels.get(name, name), payload)
        for channel in values:
            if channel not in known:
                raise Refusal("unknown_channel", f"there is no channel {channel[:40]!r}")
        return self._map.to_actuators(values) if self._map else values

    # -- paho --------------------------------------------------------------------------------------------------------

    def _build_client(self) -> Client:
        from .lines.bounded_mqtt import BoundedClient

        client = BoundedClient(self.client_id, _MAX_PACKET_BYTES)
        client.reconnect_delay_set(1, 5)
        client.connect_timeout = 3.0
        client.max_queued_messages_set(_MAX_IN_FLIGHT + _EXTRA_QUEUED)
        client.will_set(f"{self._prefix}/status", "offline", 1, True)
        if self.user:
            client.username_pw_set(self.user, self._password())
        if self.tls:
            try:
                client.tls_set(self.ca_file or None, self.cert_file or None, self.key_file or None)
            except (ssl.SSLError, OSError, ValueError) as fault:
                raise rtmms.ModelError(f"tls: the certificates cannot be used: {fault}") from None

        def on_connect(client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
            self._events.put(("refused" if reason.is_failure else "connected", str(reason)))

        def on_disconnect(client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
            self._events.put(("lost", str(reason)))

        def on_connect_fail(client: Client, data: Any) -> None:
            self._events.put(("unreached", why_unreached(sys.exception())))

        def on_message(client: Client, data: Any, message: Any) -> None:
            try:
                topic = message.topic
            except UnicodeDecodeError:
                return  # not one of ours
            self._messages.put(
                (topic, message.payload[: _MAX_MESSAGE_BYTES + 1], message.retain)
            )  # more would only be kept

        def on_publish(client: Client, data: Any, mid: int, reason: Any, properties: Any) -> None:
            self._done.append(mid)

        client.on_connect, client.on_disconnect, client.on_message = on_connect, on_disconnect, on_message
        client.on_connect_fail, client.on_publish = on_connect_fail, on_publish
        return client

    def _password(self) -> str | None:
        if not self.password_file:
            return os.environ.get(PASSWORD)
        path = Path(self.password_file).expanduser()
        lines = read_input_text(path, place="password_file:", max_bytes=MIB).splitlines()
        return lines[0] if lines else ""


def vars_of(channel: rtmms.Channel) -> dict[str, Any]:
    """Return a channel for TOPIC/info.

    Parameters
    ----------
    channel : rtmms.Channel
        The channel.

    Returns
    -------
    dict[str, Any]
        Its fields by name.
    """
    return {
        "name": channel.name, "unit": channel.unit, "shape": list(channel.shape), "frame": channel.frame,
        "lower": channel.lower, "upper": channel.upper, "neutral": channel.neutral,
    }  # fmt: skip
