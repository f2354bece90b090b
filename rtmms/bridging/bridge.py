"""What a bridge is: a client of the wire in a process of its own that speaks another protocol on its other side."""

from __future__ import annotations

import importlib.util
import typing
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from math import inf
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.install import install_command
from rtmms.base.local_addresses import address_parameters, first_beyond
from rtmms.base.parameters import Parameter, check_parameters
from rtmms.base.trust import file_parameters
from rtmms.bridging.rates import Counters, Filter, PeerWatch
from rtmms.bridging.untrusted import Refusal
from rtmms.wire.protocol.state import PlantInfo, State


class Requirements(NamedTuple):
    """What a bridge requires of a run; `rtmms run` provides it where the command line does not choose otherwise.

    Attributes
    ----------
    max_dt_s : float
        Longest step of the plant with which the peer works, s.
    every_state : bool
        The bridge needs each state of the plant, also where it claims no actuator.
    parameters : tuple
        Names of parameters of the robot and their values; a robot without such a parameter does without. An autopilot
        that takes off needs a floor.
    """

    max_dt_s: float = inf
    every_state: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()


class Io(Protocol):
    """What the loop of a bridge offers it, as `self.io`."""

    def watch(
        self, file: Any, readable: Callable[[], None] | None = None, writable: Callable[[], None] | None = None
    ) -> None:
        """Call back when the file (a socket, a descriptor) can be read, or written. Again: what is watched changes."""

    def unwatch(self, file: Any) -> None:
        """No more, before it is closed. Of a file that is not watched: nothing."""

    def command(self, values: Mapping[str, float]) -> None:
        """Actuator values, see Bridge.command."""

    def post(self, op: str, **args: Any) -> None:
        """Ask the plant for something between steps (reset, pause, resume, step, set, stop), without waiting."""

    def ask(self, op: str, done: Callable[[bool, Any], None], **args: Any) -> None:
        """The same; done(True, result) or done(False, text) when it has answered."""

    def log(self, text: str) -> None:
        """Print a line for a person on standard error."""


@dataclass(kw_only=True)
class Bridge:
    """Derive, make it a dataclass, and write the hooks. Its fields are its parameters: key=value on the command line,
    or in a file (config=FILE.toml), read and checked by their types. docs/bridges.md explains it.

    A period of the watchdog is the plant's wall time times `every`, 0.1 s where nobody paces it, telemetry's for an
    observer. `command` and `self.peer_watch.fed()` report that the peer is alive. Commands state the age
    of what was received last: the plant counts steps with values older than one period of the peer as stale.
    """

    claim: Annotated[tuple[str, ...], Parameter(
        "Actuators that the peer drives, as names or patterns; none: an observer, which gets telemetry.",
    )] = ()  # fmt: skip
    outputs: Annotated[tuple[str, ...], Parameter(
        "Outputs to receive, as names or patterns; none: all but fields, such as the joints of every chain.",
    )] = ()  # fmt: skip
    every: Annotated[int, Parameter(
        "Of a claimant: each every-th step of the plant only; its last command holds between.", ge=1, le=10_000,
    )] = 1  # fmt: skip
    rate_hz: Annotated[float, Parameter(
        "States that `on_state` gets per second of simulated time; 0: all that come.", "Hz", ge=0,
    )] = 0.0  # fmt: skip
    filter: Annotated[Filter, Parameter(
        "Against aliasing where rate_hz is below the plant's rate: mean of the states since the last one, or "
        "lowpass (one pole at 0.2 of the rate).",
    )] = "none"  # fmt: skip
    watchdog_periods: Annotated[int, Parameter(
        "Periods without a state after which `on_silence` is called; 0: never.", ge=0,
    )] = 0  # fmt: skip
    peer_timeout_s: Annotated[float, Parameter(
        "Silence after its first message by which a peer counts as lost (wall time); 0: never.", "s", ge=0,
    )] = 0.0  # fmt: skip
    peer_lost: Annotated[Literal["hold", "neutral"], Parameter(
        "What actuators of a lost peer do: keep their values, or return to neutral.",
    )] = "neutral"  # fmt: skip
    peer_period_s: Annotated[float, Parameter(
        "Time from one message of the peer to the next (wall time): its value is stale after it, and the peer silent "
        "after three of them; 0: learned.", "s", ge=0,
    )] = 0.0  # fmt: skip
    silent_after_s: Annotated[float, Parameter(
        "Silence of the peer that is reported (wall time); nothing else follows from it; 0: three of its periods.", "s",
        ge=0,
    )] = 0.0  # fmt: skip

    sends_on_events: ClassVar[bool] = False
    """The peer sends when something happens, not all the time: unless its period is given, it is never silent."""

    extra: ClassVar[str] = ""
    """The extra of its own package that brings the libraries it needs: pip install 'PACKAGE[EXTRA]'; '' for none."""

    requires: ClassVar[Mapping[str, str]] = {}
    """Modules it imports in `open`, and the packages they come with: {"paho.mqtt": "paho-mqtt"}."""

    waits: bool = field(init=False, default=False, repr=False)
    """False: each state is answered at once with the newest values (`command`), before `on_state`. True: it is answered
    by the next call of `command` after it, so that the peer sets the pace of a plant in lockstep. Set it in `open`."""

    tick_s: float = field(init=False, default=0.1, repr=False)
    """Wall time between calls of `tick`; set it in `open`."""

    # set by the loop before `open`
    io: Io = field(init=False, repr=False, compare=False)
    plant: PlantInfo = field(init=False, repr=False, compare=False)
    counts: Counters = field(init=False, repr=False, compare=False)
    name: str = field(init=False, default="bridge", repr=False, compare=False)
    """By which the plant lists it."""
    silent: bool = field(init=False, default=False, repr=False)
    """The plant is silent for longer than the watchdog allows."""
    peer_watch: PeerWatch = field(init=False, repr=False, compare=False)
    """Of the peer's silence: `fed` when it sent something."""

    unmet: str = field(init=False, default="", repr=False, compare=False)
    """Why nothing came of it, while its partner has never been there: a run that ends so has failed (exit status 1).
    '' where it has been there, or the bridge needs none. Set it in `open`, and clear it when the partner speaks."""

    closing: ExitStack = field(init=False, default_factory=ExitStack, repr=False, compare=False)
    """What `close` ends, the last one first: `attend` puts files there, other things put themselves."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.init:
                _refuse_unprintable(one.name, getattr(self, one.name, None))
        check_parameters("", self)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def claims(self) -> tuple[str, ...]:
        """What it claims: `claim`, unless that follows from other parameters (a channel map)."""
        return self.claim

    def requirements(self) -> Requirements:
        """Return what the bridge requires of the run. `rtmms run` asks before it loads the plant."""
        return Requirements()

    def beyond(self) -> dict[str, str]:
        """Return what of this bridge reaches beyond this machine, each parameter with its value; a scenario may not.

        These are the addresses that are declared (`rtmms.base.local_addresses.NamesAddress`) and not of loopback, and
        devices. Override it where other parameters open a way to others."""
        hints = typing.get_type_hints(type(self), include_extras=True)
        found = {name: first_beyond(getattr(self, name), use) for name, use in address_parameters(hints).items()}
        named = {name: text for name, text in found.items() if text is not None}
        for name, kind in file_parameters(hints).items():
            if kind == "device" and getattr(self, name) and "://" not in getattr(self, name):
                named[name] = getattr(self, name)
        return named

    def open(self, plant: PlantInfo) -> None:
        """Once, when the plant is known and before its first state: check what is configured against its channels
        (ModelError), bind or connect to the peer, `self.io.watch` what is to be read. Must not wait for the peer."""

    def on_state(self, state: State) -> None:
        """A state, at the configured rate. Must not wait."""
        raise NotImplementedError(f"{type(self).__name__}.on_state(state) is to be written")

    def on_silence(self) -> None:
        """The watchdog: no state has come for too long. Send the peer what is safe. Called once for each silence."""

    def tick(self, now: float) -> None:
        """About every tick_s of wall time, with a plant or without: time-outs, reconnecting. now: monotonic s."""

    def on_peer_lost(self, why: str) -> None:
        """The peer was silent for peer_timeout_s; call it yourself where the protocol reports a lost peer. Its
        actuators go to neutral, or hold (`peer_lost`); the next `command` drives them again."""
        self.peer_watch.tripped = True
        self.peer_watch.lost()
        self.counts.add("peer_lost")
        if self.plant.granted:
            self.io.log(f"{why}: {self.peer_lost}")
            self.let_go(self.neutral() if self.peer_lost == "neutral" else {})

    def let_go(self, values: Mapping[str, float]) -> None:
        """Drive the actuators of a peer that is lost to these values; none: they stay as they are."""
        self.io.command(values)

    def plant_gone(self, reason: str) -> None:
        """The plant has ended, and another one is looked for; `tick` goes on meanwhile."""

    def plant_again(self, plant: PlantInfo) -> None:
        """The plant was gone and there is one again. RtmmsError unless it has the same channels."""
        if (plant.actuators, plant.outputs) != (self.plant.actuators, self.plant.outputs):
            raise RtmmsError(
                f"the plant that is there now ({plant.robot}) has other channels than the one before "
                f"({self.plant.robot}): start the bridge anew"
            )

    def close(self, reason: str) -> None:
        """Once, at the end, also after a fault (one in `open` too): a last message, and close what was opened.

        The plant has received the farewell before. As it stands here it ends what is in `closing`."""
        self.closing.close()

    # -- for use in the hooks -----------------------------------------------------------------------------------------

    def attend(self, file: Any, readable: Callable[[], None]) -> None:
        """`io.watch` a file of our own, which `close` closes."""
        self.closing.callback(file.close)
        self.closing.callback(self.io.unwatch, file)
        self.io.watch(file, readable)

    def command(self, values: Mapping[str, float]) -> None:
        """Actuator values from the peer. They stand until others come; actuators that are not named keep theirs."""
        if values:
            self.peer_watch.fed()
        self.io.command(values)

    def claimed(self, values: dict[str, float]) -> dict[str, float]:
        """The values themselves; Refusal where one of them is not an actuator that is claimed here."""
        if not set(values) <= set(self.plant.granted):
            raise Refusal("unknown_actuator", "an actuator that was not claimed")
        return values

    def neutral(self) -> dict[str, float]:
        """The neutral value of each actuator that is claimed here."""
        return {channel.name: channel.neutral for channel in self.plant.actuators if channel.name in self.plant.granted}


def _refuse_unprintable(place: str, value: Any) -> None:
    """Raise ModelError for a text with control characters: bridges pass names on to files and terminals of others."""
    if isinstance(value, str) and not value.isprintable():
        raise ModelError(f"{place}: expected printable text, got {value!r:.80}")
    if isinstance(value, (tuple, list)):
        for one in value:
            _refuse_unprintable(place, one)
    if isinstance(value, Mapping):
        for key, one in value.items():
            _refuse_unprintable(place, key)
            _refuse_unprintable(f"{place}.{key}", one)


@runtime_checkable
class Laid(Protocol):
    """A bridge whose messages a DBC file lays out, and that can write the file for a robot that has none."""

    def dbc_of(self, plant: PlantInfo) -> str:
        """The text of the file."""


def refuse_without(bridge: type[Bridge], name: str, package: str = "rtmms") -> None:
    """ModelError that names what to install, if a library that the bridge needs is not there. package: whose extra
    has it."""
    missing = [package for module, package in bridge.requires.items() if not _found(module)]
    if missing:
        how = install_command(bridge.extra, package) if bridge.extra else f"pip install {' '.join(missing)}"
        raise ModelError(f"bridge '{name}' needs {', '.join(missing)}: {how}")


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
