"""Base of a bridge: a client of the wire in its own process that uses another protocol on its other side."""

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
from rtmms.bridging.counters import Counters
from rtmms.bridging.peer_watch import PeerWatch
from rtmms.bridging.rates import Filter
from rtmms.bridging.untrusted import Refusal
from rtmms.wire.protocol.received_state import PlantInfo, State


class Requirements(NamedTuple):
    """Requirements of a bridge on a run; `rtmms run` meets them unless the command line chooses otherwise.

    Attributes
    ----------
    max_dt_s : float, default inf
        Longest step of the plant with which the peer works, s.
    every_state : bool, default False
        Whether the bridge needs each state of the plant, even without a claim.
    parameters : tuple[tuple[str, Any], ...], optional
        Names and values of parameters of the robot; a robot without such a parameter does without. An autopilot that
        takes off needs a floor.
    """

    max_dt_s: float = inf
    every_state: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()


class Io(Protocol):
    """Services of a bridge's loop for the bridge, as `self.io`."""

    def watch(
        self, file: Any, readable: Callable[[], None] | None = None, writable: Callable[[], None] | None = None
    ) -> None:
        """Call back when a file can be read or written; a second call changes the callbacks.

        Parameters
        ----------
        file : Any
            A socket or a descriptor.
        readable, writable : Callable[[], None] | None, optional
            Callbacks; None for none.
        """

    def unwatch(self, file: Any) -> None:
        """Stop watching a file, before it is closed; it may be unwatched.

        Parameters
        ----------
        file : Any
            The file.
        """

    def command(self, values: Mapping[str, float]) -> None:
        """Send actuator values, see `Bridge.command`.

        Parameters
        ----------
        values : Mapping[str, float]
            Values by name of the actuator.
        """

    def post(self, op: str, **args: Any) -> None:
        """Send a request (reset, pause, resume, step, set, stop), without waiting.

        Parameters
        ----------
        op : str
            Name of the operation.
        **args : Any
            Its arguments.
        """

    def ask(self, op: str, done: Callable[[bool, Any], None], **args: Any) -> None:
        """Send a request, and call back when it is answered.

        Parameters
        ----------
        op : str
            Name of the operation.
        done : Callable[[bool, Any], None]
            Called with True and the result, or with False and a text.
        **args : Any
            Arguments of the operation.
        """

    def log(self, text: str) -> None:
        """Print a line for a person on standard error.

        Parameters
        ----------
        text : str
            The line.
        """


@dataclass(kw_only=True)
class Bridge:
    """Base class of bridges.

    Derive, make it a dataclass, and write the hooks. Its fields are its parameters: key=value on the command line, or
    in a file (config=FILE.toml). They are read and checked by their types. docs/bridges.md explains it.

    A period of the watchdog is the plant's wall time times `every`. It is 0.1 s if no clock paces the plant, and
    telemetry's for an observer. `command` and `self.peer_watch.fed()` report that the peer is alive. Commands state the
    age of the data received last: the plant counts steps with values older than one period of the peer as stale.

    Parameters
    ----------
    claim : tuple[str, ...], optional
        Actuators that the peer drives, as names or patterns; none: an observer, which gets telemetry.
    outputs : tuple[str, ...], optional
        Outputs to receive, as names or patterns; none: all but fields, such as the joints of every chain.
    every : int, default 1
        Interval of a claimant's states and commands, in steps of the plant; its last command holds between.
    rate_hz : float, default 0.0
        States that `on_state` receives per second of simulated time; 0: all. Unit: Hz.
    filter : Filter, default 'none'
        Filter against aliasing if rate_hz is below the plant's rate. mean: of the states since the last one; lowpass:
        one pole at 0.2 of the rate.
    watchdog_periods : int, default 0
        Periods without a state after which `on_silence` is called; 0: never.
    peer_timeout_s : float, default 0.0
        Silence after a peer's first message from which it counts as lost (wall time); 0: never. Unit: s.
    peer_lost : Literal['hold', 'neutral'], default 'neutral'
        Reaction of a lost peer's actuators: keep their values, or return to neutral.
    peer_period_s : float, default 0.0
        Time from one message of the peer to the next (wall time); 0: learned. Its value is stale after it, and the peer
        silent after three of them. Unit: s.
    silent_after_s : float, default 0.0
        Silence of the peer from which it is reported (wall time), without another effect; 0: three of its periods.
        Unit: s.

    Attributes
    ----------
    io : Io
        Services of the loop.
    plant : PlantInfo
        The plant.
    counts : Counters
        Counters of the bridge.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import rtmms
    >>> @dataclass(kw_only=True)
    ... class Printer(rtmms.Bridge):
    ...     def on_state(self, state):
    ...         self.io.log(f"t = {state.time:.2f} s")
    >>> Printer(rate_hz=1.0).rate_hz
    1.0
    """

    claim: Annotated[tuple[str, ...], Parameter(
        "Actuators that the peer drives, as names or patterns; none: an observer, which gets telemetry.",
    )] = ()  # fmt: skip
    outputs: Annotated[tuple[str, ...], Parameter(
        "Outputs to receive, as names or patterns; none: all but fields, such as the joints of every chain.",
    )] = ()  # fmt: skip
    every: Annotated[int, Parameter(
        "Interval of a claimant's states and commands, in steps of the plant; its last command holds between.",
        ge=1, le=10_000,
    )] = 1  # fmt: skip
    rate_hz: Annotated[float, Parameter(
        "States that `on_state` receives per second of simulated time; 0: all.", "Hz", ge=0,
    )] = 0.0  # fmt: skip
    filter: Annotated[Filter, Parameter(
        "Filter against aliasing if rate_hz is below the plant's rate. mean: of the states since the last one; "
        "lowpass: one pole at 0.2 of the rate.",
    )] = "none"  # fmt: skip
    watchdog_periods: Annotated[int, Parameter(
        "Periods without a state after which `on_silence` is called; 0: never.", ge=0,
    )] = 0  # fmt: skip
    peer_timeout_s: Annotated[float, Parameter(
        "Silence after a peer's first message from which it counts as lost (wall time); 0: never.", "s", ge=0,
    )] = 0.0  # fmt: skip
    peer_lost: Annotated[Literal["hold", "neutral"], Parameter(
        "Reaction of a lost peer's actuators: keep their values, or return to neutral.",
    )] = "neutral"  # fmt: skip
    peer_period_s: Annotated[float, Parameter(
        "Time from one message of the peer to the next (wall time); 0: learned. Its value is stale after it, and the "
        "peer silent after three of them.",
        "s", ge=0,
    )] = 0.0  # fmt: skip
    silent_after_s: Annotated[float, Parameter(
        "Silence of the peer from which it is reported (wall time), without another effect; 0: three of its "
        "periods.", "s",
        ge=0,
    )] = 0.0  # fmt: skip

    sends_on_events: ClassVar[bool] = False
    """Whether the peer sends on events only, not all the time.

    Unless its period is given, it is never silent then.
    """

    extra: ClassVar[str] = ""
    """Extra of its own package with the libraries it needs: pip install 'PACKAGE[EXTRA]'; empty for none."""

    requires: ClassVar[Mapping[str, str]] = {}
    """Modules that `open` imports, with the packages that have them: {"paho.mqtt": "paho-mqtt"}."""

    waits: bool = field(init=False, default=False, repr=False)
    """Whether the peer sets the pace of a plant in lockstep; `open` sets it.

    False: each state is answered at once with the newest values (`command`), before `on_state`. True: the next call of
    `command` after it is the answer.
    """

    tick_s: float = field(init=False, default=0.1, repr=False)
    """Wall time between calls of `tick`, s; `open` sets it."""

    # set by the loop before `open`
    io: Io = field(init=False, repr=False, compare=False)
    plant: PlantInfo = field(init=False, repr=False, compare=False)
    counts: Counters = field(init=False, repr=False, compare=False)
    name: str = field(init=False, default="bridge", repr=False, compare=False)
    """Name of the bridge in the plant's lists."""
    silent: bool = field(init=False, default=False, repr=False)
    """Whether the plant is silent for longer than the watchdog allows."""
    peer_watch: PeerWatch = field(init=False, repr=False, compare=False)
    """Watch of the peer's silence; `fed` records that the peer sent something."""

    unmet: str = field(init=False, default="", repr=False, compare=False)
    """Why the bridge has done nothing, while its partner has never been there.

    A run that ends so has failed (exit status 1). It is empty if the partner has been there, or if the bridge needs
    none. `open` sets it; clear it at the partner's first message.
    """

    closing: ExitStack = field(init=False, default_factory=ExitStack, repr=False, compare=False)
    """Objects that `close` ends, the last one first; `attend` adds files, other objects add themselves."""

    def __post_init__(self) -> None:
        """Check the parameters."""
        for item in fields(self):
            if item.init:
                _refuse_unprintable(item.name, getattr(self, item.name, None))
        check_parameters("", self)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def claims(self) -> tuple[str, ...]:
        """Return its claim: `claim`, unless that follows from other parameters (a channel map).

        Returns
        -------
        tuple[str, ...]
            Names or patterns of actuators.
        """
        return self.claim

    def requirements(self) -> Requirements:
        """Return the requirements of the bridge; `rtmms run` asks before it loads the plant.

        Returns
        -------
        Requirements
            The requirements.
        """
        return Requirements()

    def beyond(self) -> dict[str, str]:
        """Return the parameters that reach beyond this machine; a scenario may not have them.

        These are the declared addresses (`rtmms.base.local_addresses.NamesAddress`) that are not of loopback, and
        devices. Override it if other parameters reach others.

        Returns
        -------
        dict[str, str]
            Values by name.
        """
        hints = typing.get_type_hints(type(self), include_extras=True)
        result = {name: first_beyond(getattr(self, name), use) for name, use in address_parameters(hints).items()}
        named = {name: text for name, text in result.items() if text is not None}
        for name, kind in file_parameters(hints).items():
            if kind == "device" and getattr(self, name) and "://" not in getattr(self, name):
                named[name] = getattr(self, name)
        return named

    def open(self, plant: PlantInfo) -> None:
        """Prepare for a plant, once, before its first state.

        Check the parameters against its channels, bind or connect to the peer, and `self.io.watch` its files. Do not
        wait for the peer.

        Parameters
        ----------
        plant : PlantInfo
            The plant.

        Raises
        ------
        ModelError
            If a parameter does not fit the plant.
        """

    def on_state(self, state: State) -> None:
        """Handle a state, at the configured rate, without waiting.

        Parameters
        ----------
        state : State
            The state.

        Raises
        ------
        NotImplementedError
            If the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__}: on_state(state) is missing; write this method")

    def on_silence(self) -> None:
        """Send the peer safe values, because no state has come for too long.

        The watchdog calls it once for each silence.
        """

    def tick(self, now: float) -> None:
        """Handle time-outs and reconnections; called about every tick_s of wall time, with a plant or without.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """

    def on_peer_lost(self, why: str) -> None:
        """Handle a lost peer, after peer_timeout_s of silence.

        Call it yourself if the protocol reports a lost peer. Its actuators go to neutral, or hold (`peer_lost`). The
        next `command` drives them again.

        Parameters
        ----------
        why : str
            Reason, for a person.
        """
        self.peer_watch.tripped = True
        self.peer_watch.lost()
        self.counts.add("peer_lost")
        if self.plant.granted:
            self.io.log(
                f"{why}: the actuators of this bridge "
                f"{'go to neutral' if self.peer_lost == 'neutral' else 'keep their last values'} "
                f"(peer_lost={self.peer_lost})"
            )
            self.let_go(self.neutral() if self.peer_lost == "neutral" else {})

    def let_go(self, values: Mapping[str, float]) -> None:
        """Drive the actuators of a lost peer.

        Parameters
        ----------
        values : Mapping[str, float]
            Values by name; none: they remain.
        """
        self.io.command(values)

    def plant_gone(self, reason: str) -> None:
        """Handle the end of the plant; the loop searches for another one, and `tick` continues meanwhile.

        Parameters
        ----------
        reason : str
            Reason of the end.
        """

    def plant_again(self, plant: PlantInfo) -> None:
        """Handle the next plant.

        Parameters
        ----------
        plant : PlantInfo
            The plant.

        Raises
        ------
        RtmmsError
            Unless it has the same channels.
        """
        if (plant.actuators, plant.outputs) != (self.plant.actuators, self.plant.outputs):
            raise RtmmsError(
                f"the new plant ({plant.robot}) has other actuators or outputs than the one before "
                f"({self.plant.robot}); restart the bridge"
            )

    def close(self, reason: str) -> None:
        """Close the bridge once at the end, also after a fault (one in `open` too).

        Send a last message, and close all that was opened. The plant has received the farewell before. The base class
        ends the objects in `closing`.

        Parameters
        ----------
        reason : str
            Reason of the end.
        """
        self.closing.close()

    # -- for use in the hooks -----------------------------------------------------------------------------------------

    def attend(self, file: Any, readable: Callable[[], None]) -> None:
        """Watch a file of our own, which `close` closes.

        Parameters
        ----------
        file : Any
            The file.
        readable : Callable[[], None]
            Called when it can be read.
        """
        self.closing.callback(file.close)
        self.closing.callback(self.io.unwatch, file)
        self.io.watch(file, readable)

    def command(self, values: Mapping[str, float]) -> None:
        """Send actuator values of the peer.

        They hold until others come; actuators without a value keep theirs.

        Parameters
        ----------
        values : Mapping[str, float]
            Values by name of the actuator.
        """
        if values:
            self.peer_watch.fed()
        self.io.command(values)

    def claimed(self, values: dict[str, float]) -> dict[str, float]:
        """Return values after a check of their names.

        Parameters
        ----------
        values : dict[str, float]
            Values by name of the actuator.

        Returns
        -------
        dict[str, float]
            The same values.

        Raises
        ------
        Refusal
            If an actuator is not claimed here.
        """
        if not set(values) <= set(self.plant.granted):
            raise Refusal(
                "unknown_actuator",
                "expected actuators that this bridge claims, got "
                f"{min(set(values) - set(self.plant.granted))[:40]!r}; add it to claim=",
            )
        return values

    def neutral(self) -> dict[str, float]:
        """Return the neutral values of the claimed actuators.

        Returns
        -------
        dict[str, float]
            Values by name.
        """
        return {channel.name: channel.neutral for channel in self.plant.actuators if channel.name in self.plant.granted}


def _refuse_unprintable(place: str, value: Any) -> None:
    """Raise ModelError for a text with control characters: bridges pass names on to files and terminals of others."""
    if isinstance(value, str) and not value.isprintable():
        raise ModelError(f"{place}: expected printable text, got {value!r:.80}")
    if isinstance(value, (tuple, list)):
        for item in value:
            _refuse_unprintable(place, item)
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_unprintable(place, key)
            _refuse_unprintable(f"{place}.{key}", item)


@runtime_checkable
class WritesDbc(Protocol):
    """Bridge with messages in the layout of a DBC file, which can write the file for a robot without one."""

    def dbc_of(self, plant: PlantInfo) -> str:
        """Return the text of the DBC file.

        Parameters
        ----------
        plant : PlantInfo
            The plant.

        Returns
        -------
        str
            The text.
        """


def refuse_without(bridge: type[Bridge], name: str, package: str = "rtmms") -> None:
    """Raise ModelError if a library that the bridge needs is missing.

    Parameters
    ----------
    bridge : type[Bridge]
        The class.
    name : str
        Its name, for the error.
    package : str, default 'rtmms'
        Package with the bridge's extra.

    Raises
    ------
    ModelError
        If one is missing; it names the command that installs it.
    """
    missing = [package for module, package in bridge.requires.items() if not _is_importable(module)]
    if missing:
        how = install_command(bridge.extra, package) if bridge.extra else f"pip install {' '.join(missing)}"
        raise ModelError(f"bridge '{name}' needs {', '.join(missing)}: {how}")


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
