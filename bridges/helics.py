"""Robot as a federate of HELICS: outputs as publications, actuators as inputs or by an endpoint.

A request for time blocks in HELICS, so the federate has its own thread (federation/federate.py). The bridge's loop
passes it a frame, the state at each period of the federation, and receives the grant. In real time the plant continues
meanwhile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isfinite, prod
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal

import rtmms
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.trust import NamesFile
from rtmms.bridging.untrusted import Fuzzed, fuzz, read_json, values_in

from .federation.federate import Event, Federate, FederateConfig, Port, behind
from .federation.frames import Frames, steps_of
from .federation.grants import Grants
from .lines.inbox import Inbox
from .messages.topics import robot_part

CORES = ("zmq", "zmq_ss", "tcp", "tcp_ss", "udp", "ipc", "inproc")
LOCAL_CORES = ("ipc", "inproc")
"""Cores that reach no other machine; `broker` is a broker's name there."""
TYPED_KEYS = (
    "broker, broker_key, local_interface, local_port, timeout_s, network_timeout_s, heartbeat_s, slow_responding, "
    "encryption_config"
)
"""Parameters that replace free arguments of the core."""
_END_S = 1.0
_MAX_EVENTS = 256
_NAME = re.compile(r"[A-Za-z0-9_][\w.:/@+\[\]-]*")
_MAX_NAME_LENGTH = 120
_NO_CONFIG = "--config=/dev/null"
"""Argument against a default configuration.

HELICS reads `helics_config.toml` of the working directory if no other file is named, and writes its `logfile`.
"""


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
    return fuzz(parse), [b'{"values": {"left.front": 0.25}}', b'{"values": {}}']


@dataclass(kw_only=True)
class Helics(rtmms.Bridge):
    """The robot as a federate of a HELICS federation.

    The declaration of each field has its meaning, unit and range.
    """

    federate: Annotated[str, Parameter(
        "Name in the federation; {robot} is the plant's name, {name} the bridge's.",
    )] = "{robot}"  # fmt: skip
    core: Annotated[str, Parameter("Type of the core.", choices=CORES)] = "zmq"
    broker: Annotated[str, NamesAddress("connect"), Parameter(
        "Broker: HOST or HOST:PORT; a name for ipc and inproc; '': HELICS' own default.",
    )] = ""  # fmt: skip
    broker_key: Annotated[str, Parameter("Key that broker and core share; '': none.")] = ""
    local_interface: Annotated[str, NamesAddress("connect"), Parameter(
        "Address at which the core itself listens; '': HELICS' own default, which is loopback.",
    )] = ""  # fmt: skip
    local_port: Annotated[int, Parameter(
        "Port at which the core itself listens; 0: HELICS' own default.", ge=0, le=65535,
    )] = 0  # fmt: skip
    timeout_s: Annotated[float, Parameter(
        "Time that the core waits for a connection (`timeout`); 0: HELICS' own default.", "s", ge=0,
    )] = 0.0  # fmt: skip
    network_timeout_s: Annotated[float, Parameter(
        "Time that the core waits for the broker (`networktimeout`); 0: HELICS' own default.", "s", ge=0,
    )] = 0.0  # fmt: skip
    heartbeat_s: Annotated[float, Parameter(
        "Time between the core's heartbeats (`tick`); 0: HELICS' own default.", "s", ge=0,
    )] = 0.0  # fmt: skip
    slow_responding: Annotated[bool, Parameter("Whether the broker keeps a core that answers heartbeats late.")] = False
    encryption_config: Annotated[str, NamesFile("input"), Parameter(
        "JSON file of HELICS' encryption, for a HELICS that was built with it; '': not encrypted.",
    )] = ""  # fmt: skip
    core_words: Annotated[
        str,
        Parameter(
            "Free arguments of the core, which are refused, because they could name files that HELICS writes.",
        ),
    ] = ""
    period_s: Annotated[float, Parameter(
        "Period of the federation: a multiple of the plant's step.", "s", ge=1e-9,
    )] = 0.01  # fmt: skip
    layout: Annotated[Literal["arrays", "numbers"], Parameter(
        "Publications of an array: one, or one for each number, FEDERATE/OUTPUT[0], because HELICS converts "
        "units of scalars only.",
    )] = "arrays"  # fmt: skip
    commands: Annotated[Literal["inputs", "endpoint"], Parameter(
        "Commands: an input FEDERATE/ACTUATOR for each claimed actuator, or JSON messages to the endpoint "
        "FEDERATE/command.",
    )] = "inputs"  # fmt: skip
    subscribe: Annotated[dict[str, str], Parameter(
        "Publications of other federates by actuator, as {\"pilot/thrust\" = \"left.front\"}.",
    )] = field(default_factory=dict)  # fmt: skip
    realtime: Annotated[
        bool,
        Parameter(
            "Whether to be a real-time federate, to which HELICS grants time by the wall clock.",
        ),
    ] = False
    rt_lag_s: Annotated[float, Parameter(
        "Maximum lag of a grant behind the wall clock, of a real-time federate.", "s", ge=0,
    )] = 0.05  # fmt: skip
    rt_lead_s: Annotated[float, Parameter(
        "Maximum lead of a grant before the wall clock, of a real-time federate.", "s", ge=0,
    )] = 0.05  # fmt: skip
    stall_s: Annotated[float, Parameter(
        "Time after which the log names a partner that holds a grant back or does not answer.", "s", ge=0,
    )] = 0.5  # fmt: skip
    on_stall: Annotated[Literal["wait", "leave"], Parameter(
        "Reaction to a lost federation: the plant continues (lockstep: waits) until the federation does, or leaves it.",
    )] = "wait"  # fmt: skip
    partners: Annotated[tuple[str, ...], Parameter("Federates whose silence counts as a loss; none: all.")] = ()
    patience_s: Annotated[float, Parameter(
        "Time to look for a broker, and for the others at the start.", "s", ge=0,
    )] = 20.0  # fmt: skip

    sends_on_events: ClassVar[bool] = True
    extra: ClassVar[str] = "helics"
    requires: ClassVar[dict[str, str]] = {"helics": "helics"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        try:
            self.federate.format(robot="robot", name="name")
        except (KeyError, IndexError, ValueError):
            raise rtmms.ModelError(
                f"federate: expected text with no placeholders other than {{robot}} and {{name}}, got '{self.federate}'"
            ) from None
        if self.core_words:
            raise rtmms.ModelError(
                f"core_words: this parameter was removed; expected {TYPED_KEYS} in place of '{self.core_words:.60}'"
            )
        _check_name("federate", self.federate.format(robot="robot", name="name"))
        for key in ("broker", "broker_key", "local_interface", "encryption_config"):
            if getattr(self, key):
                _check_word(key, getattr(self, key))
        for source in self.subscribe:
            _check_name("subscribe", source)
        if self.encryption_config and not Path(self.encryption_config).expanduser().is_file():
            raise rtmms.ModelError(f"encryption_config: there is no file '{self.encryption_config}'")
        if self.rate_hz:
            raise rtmms.ModelError("rate_hz: expected none, as period_s sets the rate")
        self._host, self._port = self._place()

    @override
    def beyond(self) -> dict[str, str]:
        """Return the parameters that reach beyond this machine; the broker of a local core is only a name."""
        result = super().beyond()
        return {} if self.core in LOCAL_CORES else result

    @override
    def claims(self) -> tuple[str, ...]:
        """Return `claim` and the actuators with a subscription."""
        return (*self.claim, *(name for name in self.subscribe.values() if name not in self.claim))

    # --- hooks --------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Start the federate."""
        steps = steps_of(self.period_s, plant, "period_s")
        self._name = self.federate.format(robot=robot_part(plant.robot), name=self.name)
        outputs = [item for item in plant.outputs if item.name in plant.selected]
        _check_name("federate", self._name)
        for output in (*outputs, *plant.actuators):
            _check_name("helics: name of an output or actuator", output.name)
        self._outputs = tuple(item.name for item in outputs)
        ports: list[Port] = []
        for output in outputs:
            key = f"{self._name}/{output.name}"
            apart = range(prod(output.shape)) if output.shape and self.layout == "numbers" else ()
            ports += [Port(f"{key}[{i}]", output.unit) for i in apart] or [Port(key, output.unit, len(output.shape))]
        known, result = {actuator.name: actuator for actuator in plant.actuators}, {}
        for name in plant.granted if self.commands != "endpoint" else ():
            result[name] = Port(f"{self._name}/{name}", known[name].unit, 0, known[name].neutral)
        for source, name in self.subscribe.items():
            if name not in known:
                raise rtmms.UnknownNameError("actuator of subscribe", name, known)
            result[name] = Port(f"{self._name}/{name}", known[name].unit, 0, known[name].neutral, source)
        self._driven = tuple(result)
        self._inbox: Inbox[Event] = Inbox(_MAX_EVENTS)
        self.attend(self._inbox, self._on_event)
        self.waits = plant.mode == "lockstep" and bool(plant.granted)
        self._frames = Frames(self, self.waits, steps, "the federation")
        self._grants = Grants(self, "helics", self._driven)
        self.tick_s = 0.05
        self._begun, self._period_ns = monotonic(), round(self.period_s * 1e9)
        self._asked_at, self._step = 0.0, 0
        self._stalled = self._over = self._behind = False
        self._silent: set[str] = set()
        if self.waits:
            self.io.post("pause")  # the first step waits for the others, however long they take
            self._paused = True
        config = FederateConfig(
            self._name, self.core, self._core_words(), tuple(ports), tuple(result.values()),
            f"{self._name}/command" if self.commands != "inputs" and plant.granted else "",
            self.realtime, self.rt_lag_s, self.rt_lead_s,
        )  # fmt: skip
        self._federate = Federate(config, self._inbox.put)
        self._federate.start()

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Publish the state if a frame begins with it."""
        if not self._over:
            self._send(self._frames.on_state(state))

    @override
    def tick(self, now: float) -> None:
        """Handle time-outs and silent partners.

        Raises
        ------
        RtmmsError
            If there is no broker.
        """
        self._frames.tick(now)
        self._grants.tick(now)
        if self._over:
            return
        if not self._federate.joined and now - self._begun > self.patience_s:
            where = f"at {self._host or 'the usual address'}" + (f":{self._port}" if self._port else "")
            raise rtmms.RtmmsError(
                f"helics: no federation began within {self.patience_s:g} s with a core of type {self.core}; "
                f"start a HELICS 3 broker {where} and all of its federates (helics_broker -f COUNT; "
                "broker=HOST:PORT)"
            )
        self._look_at_partners(now)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self.waits = plant.mode == "lockstep" and bool(plant.granted) and not self._over
        self._frames.again(self.waits)

    @override
    def let_go(self, values: dict[str, float]) -> None:  # type: ignore[override]
        """Set the values of a lost peer; in lockstep no step begins with them."""
        if self.waits:
            self._frames.idle(values)
        else:
            super().let_go(values)

    @override
    def close(self, reason: str) -> None:
        """Leave the federation."""
        if hasattr(self, "_federate"):
            self._federate.end(_END_S)
        super().close(reason)

    # --- the federation -----------------------------------------------------------------------------------------------

    def _send(self, state: rtmms.State | None) -> None:
        """Publish the state of a frame."""
        if state is None:
            return
        values: list[Any] = []
        for name in self._outputs:
            value: Any = state.outputs.get(name)
            numbers: list[Any] = value if isinstance(value, list) else [value]
            if value is None or not all(isfinite(number) for number in numbers):
                self.counts.add("not_finite")
                values += [None] * (len(numbers) if self.layout == "numbers" else 1)
            elif self.layout == "numbers":
                values += map(float, numbers)
            else:
                values.append([float(number) for number in numbers] if isinstance(value, list) else float(value))
        self._step, self._asked_at = state.step, monotonic()
        self._federate.frame(self._frames.index * self._period_ns / 1e9, values)
        self.counts.add("sent")

    def _on_event(self) -> None:
        for event in self._inbox.take_all()[0]:
            if self._over:
                return
            match event.kind:
                case "joined":
                    others = ", ".join(self._federate.partners) or "nobody else"
                    self.io.log(f"federate '{self._name}' joined a federation with {others}")
                    if self.waits:
                        self.io.post("resume")
                    self._send(self._frames.start())
                case "granted":
                    self._granted(event)
                case "failed":
                    raise rtmms.RtmmsError(f"helics: {event.text}")
                case "over":
                    self._leave(f"helics: {event.text}")

    def _granted(self, event: Event) -> None:
        if self._stalled:
            self.io.log(f"the federation continues after a wait of {monotonic() - self._asked_at:.2g} s")
        self._asked_at, self._stalled = 0.0, False
        if event.granted_s + 5e-10 < event.time_s:
            self.counts.add("early")
        values = dict(zip(self._driven, event.inputs, strict=True))
        for message in event.messages:
            with self.counts.message():
                values |= self.claimed(parse(message))
        values = {name: value for name, value in values.items() if isfinite(value)}
        self._grants.add([self._step, event.time_s, event.granted_s, event.late_s, *event.inputs])
        self._send(self._frames.go(None if self._silent else values))

    def _look_at_partners(self, now: float) -> None:
        """Log partners that delay a grant, or that are dead."""
        watched = list(self._federate.partners.values())
        silent = {item.name for item in watched if item.unanswered_s(now) > self.stall_s}
        for name in sorted(silent - self._silent):
            self.counts.add("partners_lost")
            self._lost(f"federate '{name}' did not answer for {self._federate.partners[name].unanswered_s(now):.2g} s",
                       not self.partners or name in self.partners)  # fmt: skip
        for name in sorted(self._silent - silent):
            self.io.log(f"federate '{name}' answers again" if not self._federate.partners[name].over
                         else f"federate '{name}' has left the federation")  # fmt: skip
        self._silent = {name for name in silent if not self.partners or name in self.partners}
        late = now - self._asked_at if self._asked_at else 0.0
        if late > self.stall_s and not self._stalled and not self._over:
            self._stalled = True
            self.counts.add("stalls")
            time_s = self._frames.index * self.period_s
            who = "; ".join(behind(watched, time_s, now, self.stall_s)) or "the broker does not answer"
            self._lost(f"the federation is {late:.2g} s late with the grant of t = {time_s:.6g} s: {who}", True)

    def _lost(self, why: str, matters: bool) -> None:
        if matters and self.on_stall == "leave":
            self._leave(why)
        elif matters and not self.waits:
            self.on_peer_lost(why)
        else:
            self.io.log(why)

    def _leave(self, why: str) -> None:
        """Let the plant continue without the federation."""
        self._over = True
        self.io.log(f"{why}; the plant continues without the federation")
        self._frames.leave()
        self.on_peer_lost(why)
        self._federate.end(0.0)

    # --- words --------------------------------------------------------------------------------------------------------

    def _place(self) -> tuple[str, str]:
        host, colon, port = self.broker.rpartition(":")
        if not colon:
            return self.broker, ""
        if not (host and port.isdecimal() and 0 < int(port) < 65536):
            raise rtmms.ModelError(f"broker: expected HOST, HOST:PORT or a broker's name, got '{self.broker}'")
        return host, port

    def _core_words(self) -> str:
        arguments = ["--federates=1", "--loglevel=no_print", _NO_CONFIG]
        if self.core in LOCAL_CORES:
            arguments += [f"--broker={self._host}"] if self._host else []
        elif self._host:
            arguments += [f"--broker_address={self._host}"] + ([f"--brokerport={self._port}"] if self._port else [])
        values = {
            "brokerkey": self.broker_key, "local_interface": self.local_interface, "localport": self.local_port or "",
            "timeout": _milliseconds(self.timeout_s), "networktimeout": _milliseconds(self.network_timeout_s),
            "tick": _milliseconds(self.heartbeat_s),
        }  # fmt: skip
        arguments += [f"--{name}={value}" for name, value in values.items() if value]
        arguments += ["--slowresponding"] if self.slow_responding else []
        if self.encryption_config:
            arguments += ["--encrypted", f"--encryption_config={Path(self.encryption_config).expanduser().resolve()}"]
        return " ".join(arguments)


def _milliseconds(time_s: float) -> str:
    return f"{round(1e3 * time_s)}ms" if time_s else ""


def _check_name(place: str, name: str) -> None:
    """Raise ModelError for a name that HELICS could read as an option or a file, or that is not printable."""
    if len(name) > _MAX_NAME_LENGTH or not _NAME.fullmatch(name) or "--" in name or name.endswith((".json", ".toml")):
        raise rtmms.ModelError(
            f"{place}: expected a name of at most {_MAX_NAME_LENGTH} letters, digits and _ . : / @ + - [ ], without "
            f"'--' and not the name of a file, got {name!r:.80}"
        )


def _check_word(place: str, text: str) -> None:
    """Raise ModelError for a text that the core's command line could read as more than one argument."""
    if not text.isprintable() or any(item.isspace() or item in "\"'`{}()[]$\\;=," for item in text) or "--" in text:
        raise rtmms.ModelError(
            f"{place}: expected one printable word without spaces, quotes, '=' and '--', got {text!r:.80}"
        )
