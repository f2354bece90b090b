"""States as Zenoh keys and commands from them: rtmms/ROBOT/state, rtmms/ROBOT/velocity, ..., rtmms/ROBOT/command.

Zenoh receives in its own threads; an inbox passes messages to the bridge's loop. Its puts never wait: they are dropped
if a link is full.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import rtmms
from rtmms.base.errors import ModelError
from rtmms.base.files import MIB, open_input
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.trust import NamesFile
from rtmms.bridging.untrusted import MAX_JSON_BYTES, Fuzzed, Refusal, finite, fuzz, read_json, values_in

from .lines.inbox import Inbox
from .messages.topics import parts, robot_part

_STOP_S = 1.0
_MAX_MESSAGE_BYTES = 1 << 20
"""Bytes of a message that Zenoh assembles from its pieces; longer ones are left out there, uncounted.

Zenoh 1.10 accepts 12 MB nevertheless, and 20 MB not (without it: 1 GiB).
"""


def read_msgpack(data: bytes) -> Any:
    """Return a msgpack document.

    Parameters
    ----------
    data : bytes
        The document.

    Returns
    -------
    Any
        The value.

    Raises
    ------
    Refusal
        With reason oversize or malformed.
    """
    from msgpack import unpackb  # type: ignore[attr-defined]

    unpack: Callable[..., Any] = unpackb
    if len(data) > MAX_JSON_BYTES:
        raise Refusal("oversize", f"expected a message of at most {MAX_JSON_BYTES} bytes, got {len(data)}")
    try:
        return unpack(data, raw=False, strict_map_key=True, max_array_len=1024, max_map_len=1024)
    except Exception:  # whatever the decoder makes of a stranger's bytes
        raise Refusal("malformed", "not msgpack") from None


def parse(data: bytes, actuator: str = "", read: Callable[[bytes], Any] = read_json) -> dict[str, float]:
    """Return the values of {"values": {actuator: number}}, or of a number for one actuator.

    Parameters
    ----------
    data : bytes
        The message.
    actuator : str, default ''
        The one actuator; empty for an object.
    read : Callable[[bytes], Any], default read_json
        Reader of the encoding.

    Returns
    -------
    dict[str, float]
        Values by name.

    Raises
    ------
    Refusal
        If the message is something else.
    """
    message = read(data)
    if actuator:
        return {actuator: finite(message, "command")}
    return values_in(message)


def fuzzed() -> Fuzzed:
    """Return the parser of JSON, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    return fuzz(parse), [b'{"values": {"left.front": 0.25}}', b'{"values": {}}']


def fuzzed_msgpack() -> Fuzzed:
    """Return the parser of msgpack, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    import msgpack

    pack: Callable[[Any], bytes] = msgpack.packb
    return fuzz(lambda data: parse(data, read=read_msgpack)), [
        pack({"values": {"left.front": 0.25, "left.back": 1}}), pack({"values": {}}),
    ]  # fmt: skip


SCHEMES = ("tcp", "udp", "tls", "quic", "ws")
"""Schemes of endpoints; files (unixsock-stream, unixpipe) are refused, because Zenoh deletes what is there."""


def _refuse_schemes(endpoints: Iterable[str], what: str) -> None:
    for endpoint in endpoints:
        if endpoint.partition("/")[0] not in SCHEMES:
            raise ModelError(f"{what}: expected SCHEME/ADDRESS with a scheme of {', '.join(SCHEMES)}, got '{endpoint}'")


@dataclass(kw_only=True)
class Zenoh(rtmms.Bridge):
    """States as Zenoh keys, and commands from them.

    Commands are taken only with a `claim`.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    rate_hz : float, default 50.0
        States that `on_state` receives per second of simulated time; 0: all. Unit: Hz.
    """

    prefix: Annotated[str, Parameter("Prefix of all keys; {robot} is the plant's name.")] = "rtmms/{robot}"
    layout: Annotated[Literal["both", "outputs", "state"], Parameter(
        "Keys of a state: one for each output, one with all of it, or both.",
    )] = "both"  # fmt: skip
    encoding: Annotated[Literal["json", "msgpack"], Parameter("Encoding of states and commands.")] = "json"
    rate_hz: float = 50.0
    listen: Annotated[tuple[Annotated[str, NamesAddress("listen")], ...], Parameter(
        "Endpoints at which the bridge listens.",
    )] = ("tcp/127.0.0.1:7447",)  # fmt: skip
    connect: Annotated[tuple[Annotated[str, NamesAddress("connect")], ...], Parameter(
        "Endpoints of others, as a router's; the bridge tries again until they answer.",
    )] = ()  # fmt: skip
    scouting: Annotated[bool, Parameter("Whether to find others, and be found, by multicast and gossip.")] = False
    zenoh_config: Annotated[str, NamesFile("input"), Parameter(
        "Configuration file of Zenoh (TLS, users, routers), in place of listen, connect and scouting.",
    )] = ""  # fmt: skip

    extra = "zenoh"
    requires = {"zenoh": "eclipse-zenoh"}  # noqa: RUF012

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        try:
            self.prefix.format(robot="robot")
        except (KeyError, IndexError, ValueError):
            raise ModelError(
                f"prefix: expected text with no placeholders other than {{robot}}, got '{self.prefix}'"
            ) from None
        for what, endpoints in (("listen", self.listen), ("connect", self.connect)):
            _refuse_schemes(endpoints, what)
            endpoint = next((endpoint for endpoint in endpoints if "#" in endpoint), None)
            if endpoint is not None:
                raise ModelError(f"{what}: expected SCHEME/ADDRESS without '#': options of an endpoint can name files; "
                                 f"TLS is set in zenoh_config; got '{endpoint}'")  # fmt: skip

    @override
    def beyond(self) -> dict[str, str]:
        """Return the parameters that reach beyond this machine; a file for Zenoh may open any endpoint."""
        opened = {"scouting": "true"} if self.scouting else {}
        return super().beyond() | opened | ({"zenoh_config": self.zenoh_config} if self.zenoh_config else {})

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Open the session, and declare the keys."""
        import zenoh

        self.inbox: Inbox[tuple[str, bytes]] = Inbox()
        self.attend(self.inbox, self.on_message)
        self.root = self.prefix.format(robot=robot_part(plant.robot))
        try:
            zenoh.KeyExpr(f"{self.root}/state")
        except zenoh.ZError as fault:
            raise ModelError(
                f"zenoh: prefix: expected a key expression of Zenoh, got '{self.root}': {_short(fault)}"
            ) from None
        if any(sign in self.root for sign in "*$"):
            raise ModelError(f"zenoh: prefix: expected a key without wildcards, got '{self.root}'")
        try:
            self.session: Any = zenoh.open(self._config())
        except zenoh.ZError as fault:
            raise ModelError(f"zenoh: {_short(fault)}") from None
        self._pack: Callable[[Any], bytes]
        self._unpack: Callable[[bytes], Any]
        if self.encoding == "json":
            self._pack, self._unpack, kind = _json, read_json, zenoh.Encoding.APPLICATION_JSON
        else:
            import msgpack

            self._pack, self._unpack, kind = msgpack.packb, read_msgpack, zenoh.Encoding("application/msgpack")
        keys = parts(self._names(plant), "outputs")
        self._publishers = {
            name: self.session.declare_publisher(
                f"{self.root}/{keys[name]}", encoding=kind, congestion_control=zenoh.CongestionControl.DROP
            )
            for name in self._names(plant)
        }
        self._actuators = {key: name for name, key in parts(plant.granted, "claim").items()}
        self._info = self._description(plant)
        self._queryable = self.session.declare_queryable(f"{self.root}/info", self._answer)
        self._alive = self.session.liveliness().declare_token(self.root)
        if self.claim:
            self._subscribers = [
                self.session.declare_subscriber(f"{self.root}/{key}", self._on_data) for key in ("command", "command/*")
            ]

    def _config(self) -> Any:
        import zenoh

        if self.zenoh_config:
            open_input(self.zenoh_config, place="zenoh:", expected="a configuration", max_bytes=MIB).close()
            try:
                read = zenoh.Config.from_file(self.zenoh_config)
                _refuse_plugins(read, self.zenoh_config)
                for part in ("listen", "connect"):
                    _refuse_schemes(re.findall(r'"([^"]*/[^"]*)"', read.get_json(f"{part}/endpoints")), part)
            except zenoh.ZError as fault:
                raise ModelError(f"zenoh: {self.zenoh_config}: {_short(fault)}") from None
            return read
        config = zenoh.Config()
        for key, value in (
            ("mode", "peer"),
            ("listen/endpoints", list(self.listen)),
            ("connect/endpoints", list(self.connect)),
            ("connect/timeout_ms", -1),  # found later, if it is not there now
            ("connect/exit_on_failure", False),
            ("transport/link/rx/max_message_size", _MAX_MESSAGE_BYTES),
            ("scouting/multicast/enabled", self.scouting),
            ("scouting/gossip/enabled", self.scouting),
        ):
            try:
                config.insert_json5(key, json.dumps(value))
            except zenoh.ZError as fault:
                raise ModelError(f"zenoh: {key.partition('/')[0]}: {_short(fault)}") from None
        return config

    def _names(self, plant: rtmms.PlantInfo) -> list[str]:
        names = list(plant.selected) if self.layout != "state" else []
        return names + (["state"] if self.layout != "outputs" else [])

    def _description(self, plant: rtmms.PlantInfo) -> bytes:
        return self._pack(
            {
                "robot": plant.robot,
                "dt": plant.dt,
                "mode": plant.mode,
                "actuators": [
                    {"name": actuator.name, "unit": actuator.unit, "lower": actuator.lower, "upper": actuator.upper}
                    for actuator in plant.actuators
                ],
                "outputs": [
                    {"name": output.name, "unit": output.unit, "shape": list(output.shape), "frame": output.frame}
                    for output in plant.outputs
                ],
            }
        )

    def _answer(self, query: Any) -> None:
        """Answer a query about the plant, in one of Zenoh's threads."""
        query.reply(f"{self.root}/info", self._info)

    def _on_data(self, sample: Any) -> None:
        """Pass a command to the inbox, in one of Zenoh's threads."""
        key = str(sample.key_expr)[len(self.root) + len("/command") :].lstrip("/")
        self.inbox.put(
            (self._actuators.get(key, key), sample.payload.to_bytes()[: MAX_JSON_BYTES + 1])
        )  # more is only kept

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Publish the state."""
        at = self._pack({"time": state.time, "step": state.step})
        for name, publisher in self._publishers.items():
            try:
                if name == "state":
                    outputs = {name: state.outputs[name] for name in self.plant.selected if name in state.outputs}
                    publisher.put(self._pack({"time": state.time, "step": state.step, **outputs}))
                elif name in state.outputs:
                    publisher.put(self._pack(state.outputs[name]), attachment=at)
                self.counts.add("sent")
            except ValueError:  # JSON has no word for a number that is none
                self.counts.add("not_finite")

    def on_message(self) -> None:
        """Read commands; the newest wins."""
        messages, dropped = self.inbox.take_all()
        if dropped:
            self.counts.add("commands_dropped", dropped)
        for actuator, data in messages:
            with self.counts.message():
                self.command(self.claimed(parse(data, actuator, self._unpack)))

    @override
    def close(self, reason: str) -> None:
        """Close the session."""
        if hasattr(self, "session"):
            # it waits for what it may be connecting to: several seconds where nobody answers
            ending = threading.Thread(target=self.session.close, daemon=True)
            ending.start()
            ending.join(_STOP_S)
        super().close(reason)


def _refuse_plugins(config: Any, file: str) -> None:
    """Raise ModelError if a file for Zenoh loads plugins, native code from its search folders."""
    if json.loads(config.get_json("plugins_loading/enabled")):
        raise ModelError(f"zenoh: {file}: plugins_loading: expected enabled = false: plugins are native code")


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def _short(fault: Exception) -> str:
    """Return a fault's text without its place in the library's own source."""
    return str(fault).split(" at /", 1)[0]
