"""Loop of a bridge: one thread waits for the plant's link, the peer's files and a timer at once."""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Callable, Mapping
from math import inf, isfinite
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rtmms.base.errors import Renamed
from rtmms.base.override import override
from rtmms.bridging.bridge import Bridge, Io
from rtmms.bridging.counters import Counters
from rtmms.bridging.peer_watch import PeerWatch, Watchdog
from rtmms.bridging.rates import Decimator
from rtmms.bridging.sending import Backoff
from rtmms.wire.addresses import EXCHANGE
from rtmms.wire.peer.client import DescriptorWait, Link, connect
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.received_state import PlantInfo, State

CHECK_S = 0.1
MAX_STATES = 4
"""States in a row before the peer's turn, so that a plant without pauses does not delay the peer."""
UNPACED_S = 0.1
MIN_REPORT_INTERVAL_S = 0.2
"""Interval of reports of the peer's silences and losses to the plant, s."""

_Calls = tuple[Callable[[], None] | None, Callable[[], None] | None]


class Runner(Io):
    """Run of one bridge; it implements rtmms.bridging.bridge.Io.

    Parameters
    ----------
    bridge : Bridge
        The bridge.
    exchange : str | None
        The plant's exchange endpoint; None for the default.
    name : str
        Name of the peer.
    token : str | None
        The session's token; None reads it from the user's file.
    log : Callable[[str], Any] | None
        Receives lines for a person; None for none.
    keys : Path | None, optional
        Folder of keys; None for none.

    Attributes
    ----------
    counts : Counters
        Counters of the bridge.
    """

    def __init__(
        self, bridge: Bridge, exchange: str | None, name: str, token: str | None, log: Callable[[str], Any] | None,
        keys: Path | None = None,
    ) -> None:  # fmt: skip
        self._keys = keys
        self._bridge, self._exchange, self._name, self._token = bridge, exchange or EXCHANGE, name, token
        self._printer = None if log is None else LinePrinter(log)
        self._selector = selectors.DefaultSelector()
        self._link: Link | None = None
        self._values: dict[str, float] = {}
        self._pending: int | None = None
        self._next_tick = self._next_look = self._next_report = 0.0
        self._state_period_s = UNPACED_S
        self._seen_step = -1
        self._watchdog = Watchdog(0.0)
        self._decimator = Decimator(bridge.rate_hz, bridge.filter)
        self._opened = self._paused = False
        self._nuisance, self._awaiting = RefusalLimit(), DescriptorWait()
        self.counts = Counters()
        bridge.io, bridge.counts, bridge.name = self, self.counts, name
        bridge.peer_watch = watch_of(bridge)

    def run(self, timeout_s: float, stay_s: float) -> str:
        """Run until the plant ends, and no other one is there within stay_s of that; see `run_bridge`.

        Parameters
        ----------
        timeout_s : float
            Longest search for the plant at the start, s.
        stay_s : float
            Longest search for another one after its end, s.

        Returns
        -------
        str
            Reason of the end.

        Raises
        ------
        NotConnectedError
            If no plant admits the bridge.
        """
        bridge, reason, failed = self._bridge, "", False
        try:
            self._meet(timeout_s)
            while True:
                reason = self._attend()
                if stay_s <= 0:
                    return reason
                bridge.plant_gone(reason)
                self.log(f"{reason}; waiting for another plant" + ("" if stay_s == inf else f" for {stay_s:g} s"))
                try:
                    self._meet(stay_s)
                except NotConnectedError:
                    return reason
        except BaseException as fault:
            failed = not isinstance(fault, KeyboardInterrupt)
            reason = "a fault in the bridge" if failed else "interrupted"
            raise
        finally:
            try:
                self._part(reason, failed)  # first: the plant may be waiting for us, and the peer may take its time
            finally:
                if self._opened:
                    bridge.close(reason)
                self._selector.close()
                if self._printer is not None:
                    self._printer.end()

    @property
    def unmet(self) -> str:
        """Reason why the bridge has done nothing, see `Bridge.unmet`."""
        return self._bridge.unmet if self._opened else ""

    # -- Io ------------------------------------------------------------------------------------------------------------

    @override
    def watch(
        self, file: Any, readable: Callable[[], None] | None = None, writable: Callable[[], None] | None = None
    ) -> None:
        events = (selectors.EVENT_READ if readable else 0) | (selectors.EVENT_WRITE if writable else 0)
        if not events:
            self.unwatch(file)
            return
        try:
            self._selector.modify(file, events, (readable, writable))
        except KeyError:
            self._selector.register(file, events, (readable, writable))

    @override
    def unwatch(self, file: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(file)

    @override
    def command(self, values: Mapping[str, float]) -> None:
        """Store actuator values, and answer a waiting state."""
        reason, text = self._fault(values)
        if reason:
            # it would be refused again with every state, and all that is right with it
            self.counts.refuse(reason)
            if self.counts.reasons()[reason] == 1:
                self.log(
                    f"the bridge does not send a command that the plant would refuse: {text}; the last "
                    "valid values are used (printed once for each reason)"
                )
        else:
            self._values.update(values)
        if self._pending is not None and self._link is not None and not self._link.ended:
            step, self._pending = self._pending, None
            self._answer(self._link, step)
            self._watchdog.fed()  # it waited for us: its silence begins now

    def _fault(self, values: Mapping[str, float]) -> tuple[str, str]:
        """Return why the plant would refuse values, as code and text; ('', '') if it would not."""
        granted = self._bridge.plant.granted
        for name, value in values.items():
            if name not in granted:
                return "not_claimed", f"'{name[:40]}' is not among the actuators that are claimed here"
            if type(value) not in (int, float) or not isfinite(value):
                return "not_finite", f"'{name}': expected a finite number"
        return "", ""

    @override
    def post(self, op: str, **args: Any) -> None:
        self._paused = op == "pause" or (self._paused and op != "resume")
        if self._link is not None and not self._link.ended:
            self._link.post(op, args)

    @override
    def ask(self, op: str, done: Callable[[bool, Any], None], **args: Any) -> None:
        if self._link is not None and not self._link.ended:
            self._link.post(op, args, done)

    tell = Renamed("log")

    @override
    def log(self, text: str) -> None:
        if self._printer is not None:
            self._printer(text, monotonic())

    # -- inside --------------------------------------------------------------------------------------------------------

    def _part(self, reason: str, failed: bool) -> None:
        """Leave the plant; a failed bridge keeps its claim, so that the miss policy acts."""
        if self._link is None:
            return
        if self._paused and not self._link.ended:
            self._link.post("resume", {})  # a plant that waits for us must not wait for ever
        self._link.close(reason, bye=not failed)

    def _meet(self, patience_s: float) -> None:
        """Find a plant while handling the peer; NotConnectedError if there is none within patience_s."""
        until, pause = monotonic() + patience_s, Backoff(0.05, 1.0)
        while True:
            left = until - monotonic()
            try:
                self._connect(max(0.05, left))
                break
            except NotConnectedError as fault:
                # who comes back may find its own claim: the plant needs a moment to see that it was gone
                if monotonic() >= until or (fault.code and not (self._opened and fault.code == "claim_held")):
                    raise
            again = monotonic() + pause.failed()
            while monotonic() < again:
                self._attend_peer(0.02)
        bridge, link = self._bridge, self._link
        assert link is not None
        self._pending, self._seen_step, self._paused = None, -1, False
        self._values.clear()  # the last plant's: nothing drives this one until the peer speaks
        self._state_period_s = _period_s(link.plant, bridge.every)
        self._watchdog.limit_s = bridge.watchdog_periods * self._state_period_s
        bridge.peer_watch.begin()
        if self._opened:
            bridge.plant_again(link.plant)
            bridge.plant = link.plant
            self.counts.add("plants")
            self.log("the plant is connected again")
        else:
            bridge.plant = link.plant
            self._opened = True
            if bridge.rate_hz > link.plant.telemetry_hz and not link.plant.granted:
                come = f"without a claim the plant sends about {link.plant.telemetry_hz:g} states a second"
                self.log(f"rate_hz={bridge.rate_hz:g}: {come}; start it with a higher --telemetry-hz")
            bridge.open(link.plant)

    def _connect(self, timeout_s: float) -> None:
        bridge = self._bridge
        self._link = connect(
            self._exchange, name=self._name, claim=bridge.claims(), outputs=bridge.outputs, timeout_s=timeout_s,
            token=self._token, every=bridge.every, delay=0, meanwhile=lambda: self._attend_peer(0.0), keys=self._keys,
            errors="collect",
        )  # fmt: skip

    def _attend(self) -> str:
        """Handle everything until the link ends, and return the reason."""
        link = self._link
        assert link is not None
        states, door = link.filenos()
        self._selector.register(states, selectors.EVENT_READ, None)
        self._selector.register(door, selectors.EVENT_READ, (link.look_around, None))
        try:
            while True:
                used = 0
                while used < MAX_STATES and (state := link.poll()) is not None:
                    self._take(link, state)
                    used += 1
                if link.ended:
                    break
                states = self._watch_states(link, states)
                self._attend_peer(0.0 if used == MAX_STATES else CHECK_S)
                now = monotonic()
                if now >= self._next_look:
                    self._next_look = now + CHECK_S
                    link.look_around()
                    states = self._watch_states(link, states)
                while link.errors:
                    self.counts.add("refused_by_plant")
                    self.log(f"refused: {link.errors.popleft()[1]}")
        finally:
            self._selector.unregister(states)
            self._selector.unregister(door)
        if self._awaited() and self._bridge.plant.granted and self._bridge.peer_watch.falls_silent(monotonic()):
            self.counts.add("peer_silences")  # the plant waited for the peer until it ended
        self._report(link)
        link.close("the plant ended")
        return link.ended

    def _watch_states(self, link: Link, watched: int) -> int:
        """Return the descriptor of the states, which changes after each break of the connection."""
        states = link.filenos()[0]
        if states != watched:
            self._selector.unregister(watched)
            self._selector.register(states, selectors.EVENT_READ, None)
        return states

    def _attend_peer(self, wait_s: float) -> None:
        """Handle the peer's files, the timer and the watchdog, for wait_s at most."""
        bridge = self._bridge
        now = monotonic()
        watch, awaited = bridge.peer_watch, self._awaited()
        ends = [wait_s, watch.left_s(now)]
        ends += [] if awaited else [self._watchdog.left_s(now)]
        ends += [watch.until_silent_s(now)] if self._judges() else []
        if self._opened:
            ends.append(max(0.0, self._next_tick - now))
        for key, events in self._selected(min(end for end in ends if end is not None), now):
            calls: _Calls | None = key.data
            if calls is None:
                continue
            readable, writable = calls
            if events & selectors.EVENT_READ and readable is not None and self._watched(key):
                readable()
            if events & selectors.EVENT_WRITE and writable is not None and self._watched(key):
                writable()
        now = monotonic()
        for text in self.counts.new_texts():
            self.log(f"refused a message of the peer: {text} (printed once for each reason)")
        if self._nuisance.record_refusals(self.counts["refused"], now):
            self.counts.add("pauses")
        if not self._awaited() and self._watchdog.trips(now):
            bridge.silent = True
            self.counts.add("silences")
            bridge.on_silence()
        if self._linked() and bridge.peer_watch.trips(now):
            bridge.on_peer_lost(f"the peer has been silent for more than {bridge.peer_watch.limit_s:g} s")
        if self._judges() and watch.falls_silent(now):
            self.counts.add("peer_silences")
            self.log(f"the peer has been silent since t = {watch.silences[-1][0]:.6g} s")
        if watch.changed and now >= self._next_report and self._link is not None and not self._link.ended:
            self._next_report = now + MIN_REPORT_INTERVAL_S
            self._report(self._link)
        if self._opened and now >= self._next_tick:
            self._next_tick = now + bridge.tick_s
            bridge.tick(now)

    def _selected(self, wait_s: float, now: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Return files that can be read or written by then; only the plant's while peers send too many refusals."""
        if now >= self._nuisance.until:
            return self._selector.select(wait_s)
        wait_s = min(wait_s, self._nuisance.until - now)
        link = self._link
        if link is None or link.ended:
            sleep(wait_s)
        elif link.filenos()[1] in self._awaiting.readable(link.filenos(), wait_s):
            link.look_around()
        return []

    def _judges(self) -> bool:
        """Return whether the silence of the peer counts.

        It does if its actuators are claimed, and the plant does not wait for it.
        """
        return self._linked() and bool(self._bridge.plant.granted) and not self._awaited()

    def _report(self, link: Link) -> None:
        """Send the plant the times of the peer's first message, silences and losses."""
        self._bridge.peer_watch.changed = False
        if link.plant.granted:
            link.report_watch(self._bridge.peer_watch.report())

    def _answer(self, link: Link, step: int | None = None) -> None:
        """Send the newest values, with their age if the period of the peer is known.

        In lockstep, values of a peer that paces the plant have no age: the plant waits for each of its answers.
        """
        watch = self._bridge.peer_watch
        fresh_s = watch.fresh_s
        if fresh_s and not (self._bridge.waits and link.plant.mode == "lockstep"):
            link.command(self._values, step, age_s=watch.age_s(monotonic()), fresh_s=fresh_s)
        else:
            link.command(self._values, step)

    def _linked(self) -> bool:
        """Return whether there is a plant that the peer's actuators belong to."""
        return self._opened and self._link is not None and not self._link.ended

    def _awaited(self) -> bool:
        """Return whether the plant is silent because it waits for us."""
        return self._pending is not None and self._bridge.plant.mode == "lockstep"

    def _watched(self, key: selectors.SelectorKey) -> bool:
        """Return whether a file is still watched.

        A call for another file of the same batch may have closed it, and a new file may have its number.
        """
        return self._selector.get_map().get(key.fd) == key

    def _take(self, link: Link, state: State) -> None:
        bridge, now = self._bridge, monotonic()
        self._watchdog.fed(now)
        bridge.peer_watch.saw(state.step, state.time, now, self._state_period_s)
        bridge.silent = False
        self.counts.add("states")
        if link.plant.granted:
            apart = state.step - self._seen_step
            if self._seen_step >= 0 and apart > bridge.every:
                self.counts.add("states_missed", apart // bridge.every - 1)
            self._seen_step = state.step
            if bridge.waits:
                self._pending = state.step
            else:
                self._answer(link)
        due = self._decimator.feed(state)
        if due is not None:
            bridge.on_state(due)
        elif self._pending is not None and bridge.waits:
            self.command({})  # a state that the peer does not get cannot be answered by it


def watch_of(bridge: Bridge) -> PeerWatch:
    """Return the watch of the peer of a bridge, by its parameters.

    Parameters
    ----------
    bridge : Bridge
        The bridge.

    Returns
    -------
    PeerWatch
        The watch.
    """
    return PeerWatch(
        bridge.peer_timeout_s, bridge.peer_period_s, bridge.silent_after_s, steady=not bridge.sends_on_events
    )


def _period_s(plant: PlantInfo, every: int) -> float:
    """Return the wall time from one state to the next, s."""
    if plant.period_s is None:
        return UNPACED_S
    return plant.period_s * every if plant.granted else max(plant.period_s, 1.0 / plant.telemetry_hz)


def run_bridge(
    bridge: Bridge, exchange: str | None = None, *, name: str = "", timeout_s: float = 5.0, stay_s: float = 0.0,
    token: str | None = None, keys: Path | None = None, log: Callable[[str], Any] | None = None,
) -> str:  # fmt: skip
    """Connect a bridge, and translate until the plant ends.

    Parameters
    ----------
    bridge : Bridge
        The bridge.
    exchange : str | None, optional
        The plant's exchange endpoint; None for the default.
    name : str, default ''
        Name of the peer; empty for the class's name.
    timeout_s : float, default 5.0
        Longest search for the plant at the start, s.
    stay_s : float, default 0.0
        Longest search for another one after its end, s; inf: for ever.
    token : str | None, optional
        The session's token; None reads it from the user's file.
    keys : Path | None, optional
        Folder of keys, for a plant that requires them.
    log : Callable[[str], Any] | None, optional
        Receives texts for a person, line by line.

    Returns
    -------
    str
        Reason of the end.

    Raises
    ------
    NotConnectedError
        If no plant admits the bridge. The bridge's own exceptions pass through, after its `close`.
    """
    runner = Runner(bridge, exchange, name or type(bridge).__name__.lower(), token, log, keys)
    return runner.run(timeout_s, stay_s)


# --- How much of what must be refused a bridge looks at: a flood of it must not cost the states their answers.

MAX_REFUSED_1_S = 1000.0
MAX_BURST = 100.0
PAUSE_S = 0.02


class RefusalLimit:
    """Limit of refused messages, so that a flood of them does not delay the states' answers.

    Refusals pass at MAX_REFUSED_1_S, MAX_BURST of them at once. Beyond that the peers' files are not read for PAUSE_S.
    Messages then wait in the kernel, which drops those without room.

    Attributes
    ----------
    until : float
        End of the pause, monotonic time, s.
    """

    def __init__(self) -> None:
        self._left, self._at, self._refused_count = MAX_BURST, 0.0, 0
        self.until = 0.0

    def record_refusals(self, refused: int, now: float) -> bool:
        """Record the refusals, and return whether a pause begins.

        Parameters
        ----------
        refused : int
            Number of refusals up to now.
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            True if one begins.
        """
        new = refused - self._refused_count
        if not new:
            return False
        self._refused_count = refused
        self._left = min(MAX_BURST, self._left + (now - self._at) * MAX_REFUSED_1_S) - new
        self._at = now
        if self._left >= 0.0:
            return False
        self.until = now + PAUSE_S
        return True


# --- Lines for a person, of which a peer can cause any number.

FIRST_LINES = 20
LINE_INTERVAL_S = 2.0
MAX_LINE_LENGTH = 1000


class LinePrinter:
    """Limit of lines for a person, because a peer can cause any number.

    The first FIRST_LINES lines pass at once, then one in LINE_INTERVAL_S. The others are counted, and the count is
    logged. A line may contain a peer's text: control characters become their codes.

    Parameters
    ----------
    log : Callable[[str], Any]
        Receives the lines.

    Attributes
    ----------
    unprinted : int
        Lines since the last printed one.
    """

    def __init__(self, log: Callable[[str], Any]) -> None:
        self._log = log
        self._left = float(FIRST_LINES)
        self._at = 0.0
        self.unprinted = 0

    def __call__(self, text: str, now: float) -> None:
        """Print a line if the limit allows it."""
        self._left = min(float(FIRST_LINES), self._left + (now - self._at) / LINE_INTERVAL_S)
        self._at = now
        if self._left < 1.0:
            self.unprinted += 1
            return
        self._left -= 1.0
        self.end()
        self._log(printable(text))

    def end(self) -> None:
        """Print how many lines were not printed, if any."""
        if self.unprinted:
            self._log(f"({self.unprinted} more lines were not printed)")
            self.unprinted = 0


def printable(text: str) -> str:
    """Return a text in one line.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    str
        At most MAX_LINE_LENGTH characters; others than printable ones are codes.
    """
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:MAX_LINE_LENGTH])
