"""Link of a peer to a plant: states in, commands out, and the wait between them."""

from __future__ import annotations

import os
import select
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from time import monotonic, monotonic_ns, sleep
from types import TracebackType
from typing import Any

from rtmms.base.errors import ModelError, RenamedWarning, UnknownNameError
from rtmms.base.value_conversion import without_numpy
from rtmms.wire.addresses import EXCHANGE, check_endpoint
from rtmms.wire.keys import read_client
from rtmms.wire.peer.attachment import PeerRequests, TunableParameters
from rtmms.wire.peer.decode import read_message
from rtmms.wire.peer.late_answers import LateAnswers
from rtmms.wire.peer.session import COLLECT, ERRORS, Refusals, Session, check_command
from rtmms.wire.peer.step_messages import (
    Head,
    ReceivedState,
    Write,
    as_floats,
    command_writer,
    rehearse,
    state_heads,
)
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.hello import INTERPOLATIONS, Hello
from rtmms.wire.protocol.limits import MAX_AHEAD_STEPS, MAX_EVERY_STEPS
from rtmms.wire.protocol.messages import Refusal
from rtmms.wire.protocol.port import SENT
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.stream.dealer import Dealer
from rtmms.wire.stream.listener import NOW, Alarm

# Waits on any number of descriptors, for about a second at most.


class DescriptorWait:
    """Wait on a few descriptors for up to a second or so.

    It uses poll(2) if available, because select(2) refuses descriptors from 1024 on and takes longer.
    """

    def __init__(self) -> None:
        self._watched: tuple[int, ...] = ()
        self._poll: select.poll | None = None
        self._alarm: Alarm | None = None
        self._watched_now = -1
        if hasattr(select, "poll"):
            with suppress(OSError):
                self._alarm = Alarm()
        self._alarmed = self._soon = False

    def ring(self, instant_ns: int) -> bool:
        """End the wait by `ready` at an instant, even if nothing has come.

        Parameters
        ----------
        instant_ns : int
            Instant of CLOCK_MONOTONIC, ns.

        Returns
        -------
        bool
            False if the last wait was not by `ready`.
        """
        if self._alarm is None or not self._alarmed:
            return False
        self._alarm.set(instant_ns)
        self._soon = True
        return True

    def ready(self, descriptors: tuple[int, ...], every_s: float) -> Callable[[], list[tuple[int, int]]] | None:
        """Return the wait itself as a function.

        The wait lasts until a descriptor is readable, or until an alarm expires that is set now and then. So no wait
        needs its own timer.

        Parameters
        ----------
        descriptors : tuple[int, ...]
            Descriptors to wait on.
        every_s : float
            Longest time between two alarms, s.

        Returns
        -------
        Callable[[], list[tuple[int, int]]] | None
            None if there is no alarm.
        """
        alarm = self._alarm
        if alarm is None:
            return None
        if descriptors != self._watched or self._poll is None or not self._alarmed:
            self._watch(descriptors).register(alarm.descriptor, select.POLLIN)
            self._alarmed, self._soon, alarm.at_ns = True, False, 0
        now_ns = monotonic_ns()
        if not self._soon and alarm.at_ns - now_ns < 0.5e9 * every_s:
            alarm.set(now_ns + int(1e9 * every_s))
        return self._poll.poll  # type: ignore[union-attr]

    def all_readable(self, result: list[tuple[int, int]]) -> list[int]:
        """Return the descriptors that a wait found.

        Parameters
        ----------
        result : list[tuple[int, int]]
            Result of the wait.

        Returns
        -------
        list[int]
            The descriptors; [] if only the alarm expired.
        """
        alarm = self._alarm
        others = [descriptor for descriptor, _ in result if alarm is None or descriptor != alarm.descriptor]
        self._soon = self._soon and len(others) == len(result)
        return others

    def close(self) -> None:
        """Close the alarm; a second call does nothing."""
        if self._alarm is not None:
            self._alarm.close()
            self._alarm, self._poll, self._alarmed = None, None, False

    def readable(self, descriptors: tuple[int, ...], timeout_s: float) -> list[int]:
        """Wait, and return the descriptors that are readable or whose other end is closed.

        Parameters
        ----------
        descriptors : tuple[int, ...]
            Descriptors to wait on.
        timeout_s : float
            Longest wait, s.

        Returns
        -------
        list[int]
            The descriptors; [] after the time-out.
        """
        if descriptors != self._watched or self._poll is None or self._alarmed:
            if not hasattr(select, "poll"):
                return list(select.select(descriptors, (), (), timeout_s)[0])
            self._watch(descriptors)
        return [descriptor for descriptor, _ in self._poll.poll(ceil(1e3 * timeout_s))]  # type: ignore[union-attr]

    def readable_now(self, descriptor: int) -> bool:
        """Return whether a descriptor is readable, without waiting.

        Parameters
        ----------
        descriptor : int
            The descriptor.

        Returns
        -------
        bool
            True if it is.
        """
        if self._watched_now != descriptor:
            self._poll_now, self._watched_now = select.poll(), descriptor
            self._poll_now.register(descriptor, select.POLLIN)
        return bool(self._poll_now.poll(0))

    def _watch(self, descriptors: tuple[int, ...]) -> select.poll:
        self._watched, self._poll, self._alarmed = descriptors, select.poll(), False
        for descriptor in descriptors:
            self._poll.register(descriptor, select.POLLIN)
        return self._poll


# A peer's side of the wire: iterate over the states of a plant, answer with commands. `connect` makes the link.


def connect(
    exchange: str = EXCHANGE, *, name: str = "python", claim: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (), timeout_s: float | None = None, token: str | None = None, every: int = 1,
    meanwhile: Callable[[], None] | None = None, keys: str | os.PathLike[str] | None = None, ticks: bool = False,
    reconnect: bool = False, delay: int | None = None, interpolation: str = "hold",
    tunable_parameters: Mapping[str, Any] | TunableParameters | None = None, errors: str = "print",
    setpoints: Mapping[str, Any] | None = None, robot: str = "", settable: Any = None, tracks: Any = None,
) -> Link:  # fmt: skip
    """Send a hello to a plant and return the link.

    Parameters
    ----------
    exchange : str, default EXCHANGE
        The plant's exchange endpoint: tcp, ipc, or that of rtmms.embed.
    name : str, default 'python'
        Name of this peer.
    claim : str | Sequence[str], optional
        Actuators to drive, as names or patterns ('left.*'). Without any the peer is an observer, which receives
        telemetry.
    outputs : str | Sequence[str], optional
        Outputs to receive, as names or patterns. Without any: all but fields such as the joints of every chain.
    timeout_s : float | None, optional
        Longest wait for an answer, s. None: 5, or, while a plant of this user starts there, until it is ready, at most
        300. A plant that compiles answers nobody.
    token : str | None, optional
        The session's token. None reads it from the file that the plant left for this user.
    every : int, default 1
        A claimant receives each every-th state only, for work that takes longer than a step.
    meanwhile : Callable[[], None] | None, optional
        Called about every 20 ms while waiting, for other work of the caller.
    keys : str | os.PathLike[str] | None, optional
        Folder with the plant's public key and a pair of this peer's (rtmms keys), for a plant that requires keys.
    ticks : bool, default False
        Whether this peer's `link.tick()` starts each step, in the mode external.
    reconnect : bool, default False
        Whether the link sends a hello again after the plant's end until there is one. The iteration continues with its
        states.
    delay : int | None, optional
        The command for state k counts for step k + delay, and is due by that step's deadline. None: `every` if that is
        more than one, else 0. `state.budget_s` is the rest of that time.
    interpolation : str, default 'hold'
        Values between two commands: 'hold' (the last ones) or 'linear' (a straight line to the new ones, reached after
        `every` steps).
    tunable_parameters : Mapping[str, Any] | TunableParameters | None, optional
        Parameters of this peer that `rtmms set NAME.PARAMETER=VALUE` may change while it runs, with their first values.
        `link.tunable_parameters` has the present ones.
    errors : str, default 'print'
        Reaction to a refusal of the plant. 'print' prints the first of each kind to standard error, 'raise' raises
        RefusedError at the next state, 'collect' does neither. `link.errors` always has them.
    setpoints : Mapping[str, Any] | None, optional
        Set-points of this peer by the names of their quantities, as Controller.setpoints. The plant's report compares
        them with the truth. A tunable one has its present value.
    robot : str, default ''
        Name of one of several robots on one clock. Its channels then have the names that it has alone ('left.front').
        Empty: all robots ('one.left.front').
    settable, tracks : Any, optional
        Old names of `tunable_parameters` and `setpoints`.

    Returns
    -------
    Link
        The link.

    Raises
    ------
    NotConnectedError
        If nobody answers in time, or if the plant refuses; its `code` is the reason (claim_held, token, ...).
    ModelError
        If an argument is invalid.
    """
    if errors not in ERRORS:
        raise UnknownNameError("errors", str(errors), ERRORS)
    tunable = _renamed("tunable_parameters", tunable_parameters, "settable", settable)
    setpoints = _renamed("setpoints", setpoints, "tracks", tracks)
    every, delay = _multirate(every, delay, interpolation)
    hello = Hello(
        name, _patterns("claim", claim), _patterns("outputs", outputs), every=every, ticks=ticks, delay=delay,
        interpolation=interpolation, tracks=dict(setpoints or {}), robot=robot,
    )  # fmt: skip
    terms = PeerRequests(
        check_endpoint(exchange, "exchange", inproc=True), hello, token,
        None if keys is None else read_client(Path(keys)),
        meanwhile, settable=tunable if isinstance(tunable, TunableParameters) else TunableParameters(tunable or {}),
    )  # fmt: skip
    return Link(terms, timeout_s, reconnect, Refusals(errors))


def _renamed(new: str, value: Any, old: str, old_value: Any) -> Any:
    """Return the value of a renamed keyword of `connect`, and warn if the old name was used."""
    if old_value is None:
        return value
    if value is not None:
        raise ModelError(f"connect: expected {new}, got {new} and {old}, its old name")
    warnings.warn(f"connect: {old} is {new} now; the next version removes the old name", RenamedWarning, stacklevel=3)
    return old_value


def _multirate(every: int, delay: int | None, interpolation: str) -> tuple[int, int]:
    """Return `every` and `delay` after a check; ModelError if one is invalid."""
    every, delay = without_numpy(every), without_numpy(delay)
    if type(every) is not int or not 1 <= every <= MAX_EVERY_STEPS:
        raise ModelError(f"every: expected a whole number from 1 to {MAX_EVERY_STEPS}, got {every!r}")
    if delay is None:
        delay = every if every > 1 else 0
    maximum = min(MAX_EVERY_STEPS, MAX_AHEAD_STEPS * every)
    if type(delay) is not int or not 0 <= delay <= maximum:
        raise ModelError(f"delay: expected a whole number from 0 to {maximum} with every={every}, got {delay!r}")
    if interpolation not in INTERPOLATIONS:
        raise UnknownNameError("interpolation", str(interpolation), INTERPOLATIONS)
    return every, delay


def _patterns(word: str, patterns: str | Sequence[str]) -> tuple[str, ...]:
    result = (patterns,) if isinstance(patterns, str) else tuple(patterns) if isinstance(patterns, Iterable) else None
    if result is None or not all(isinstance(pattern, str) for pattern in result):
        raise ModelError(f"connect: {word}: expected names or patterns, got {patterns!r}")
    return result


_CHECK_S = 0.1
MAX_AGE_S = 1e9
_MIN_EXTRA_BYTES = 64
"""Bytes by which a state with another message behind it is longer than any known one."""
_EXCHANGE_NS = 10_000_000
"""Time between two looks at the exchange endpoint while the states come in time, ns."""
StepCodec = tuple[Callable[[int], bytes], int, Mapping[int, Head], PlantInfo, bool]
"""Receive and its bytes, heads by length, the plant, and whether states can be answered at any time."""
new = ReceivedState.__new__


def _nothing(raw: bytes, flags: int) -> int:
    """Send nothing, because a command cannot leave at once."""
    return 0


def _no_layout(*_: Any) -> bytes | None:
    """Return None, because no command is written by a layout."""
    return None


def _age_ns(age_s: float, fresh_s: float) -> tuple[int, int]:
    """Return both ages in whole ns; ModelError if one is invalid."""
    if not (0.0 <= age_s < MAX_AGE_S and 0.0 <= fresh_s < MAX_AGE_S):
        raise ModelError(
            f"command: age_s and fresh_s: expected seconds from 0 to {MAX_AGE_S:g}, got {age_s!r} and {fresh_s!r}"
        )
    return int(1e9 * age_s), int(1e9 * fresh_s)


class Link(Session):
    """Connection to a plant: a context manager, and an iterator over its states that ends with the plant.

    Parameters
    ----------
    terms : PeerRequests
        Requests of the peer, and its way to the plant.
    timeout_s : float | None, default 5.0
        Longest wait for an answer, s; see `connect`.
    reconnect : bool, default False
        Whether the link joins the next plant after the plant's end.
    refusals : Refusals | None, optional
        Reaction to refusals of the plant.

    Attributes
    ----------
    plant : PlantInfo
        The plant.
    ended : str
        Reason why no more states will come; empty while they may.
    lost : str
        With `reconnect`, reason why there is no plant at present; empty while there is one. `plant` is another object
        afterwards.
    errors : deque of (str, str)
        Last refusals of the plant, as code and text.
    tunable_parameters : mapping
        This peer's tunable parameters with their present values.
    dropped : int
        Number of commands that could not leave at once.

    Raises
    ------
    NotConnectedError
        If no plant admits the peer.
    """

    # lookups become slower beyond thirty entries
    __slots__ = (
        "_awaiting",
        "_delay",
        "_due_ns",
        "_encode",
        "_heads",
        "_late",
        "_lockstep",
        "_look_ns",
        "_look_soon",
        "_post",
        "_read_ns",
        "_seq",
        "_step",
        "_step_codec",
        "_strict",
        "_tick_seq",
        "_waiting",
        "_warm",
        "_write",
        "_write_aged",
        "dropped",
    )

    def __init__(
        self, terms: PeerRequests, timeout_s: float | None = 5.0, reconnect: bool = False,
        refusals: Refusals | None = None,
    ) -> None:  # fmt: skip
        self.dropped = 0
        self._seq = self._tick_seq = 0
        self._waiting: State | None = None
        self._step_codec: StepCodec | None = None
        self._post: Callable[[bytes, int], int] = _nothing
        self._write: Write = _no_layout
        self._write_aged: Write | None = None
        self._look_ns, self._look_soon = 0, False
        self._warm = self._lockstep = False
        self._step, self._due_ns, self._read_ns = -1, 0, 0
        self._awaiting, self._late = DescriptorWait(), LateAnswers()
        super().__init__(terms, timeout_s, reconnect, refusals)
        self._strict = self._refusals.how != COLLECT

    # -- states and commands -----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[State]:
        """Return the link itself."""
        return self

    def __next__(self) -> State:
        """Wait for the newest state, and return it.

        The iteration ends when the plant sent bye or is gone; `ended` has the reason. A usual state is like those
        before it, and no newer one can exist. It is read here without further calls, because their code is in no cache
        and would slow down the exchange.
        """
        while True:
            step_codec = self._step_codec
            if step_codec is not None:
                receive, longest, known, info, any_time = step_codec
                try:
                    raw = receive(longest)
                except OSError as fault:  # a time-out, or a broken connection
                    if fault.errno is None:  # no error of the system: a signal handler raised it, as TimeoutError
                        raise
                    raw = b""
                head = known.get(len(raw))
                if head is not None:
                    unpack, a, b, c, d, reader = head
                    a_too, step, b_too, time, c_too, deadline_ns, d_too, _ = unpack(raw)
                    now_ns = monotonic_ns()
                    if (
                        a == a_too and b == b_too and c == c_too and d == d_too
                        and (deadline_ns > now_ns or any_time) and step >= 0
                    ):  # fmt: skip
                        if now_ns > self._look_ns:
                            self._step_codec = None
                        self._step, self._due_ns, self._read_ns = step, deadline_ns, now_ns
                        state = new(ReceivedState)
                        state.step, state.time, state._raw, state._reader, state._info = step, time, raw, reader, info
                        return state
                self._step_codec = None
                if raw:  # otherwise the next read raises the error
                    self._at.data.put_back(raw)  # type: ignore[union-attr]
            came = self._await()
            if came is not None:
                return came

    def _await(self) -> State | None:
        """Wait for the next state by the general path; None if the usual path is to read it."""
        while not self._closed and not self.ended:
            self._refusals.due()
            if self._reconnect and monotonic() - self._looked_at > _CHECK_S:
                self.look_around()
            state = self._take()
            if state is not None:
                return state
            self._refusals.due()  # a refusal may come alone, without a state before it
            if self._over():
                break
            if self.lost:
                sleep(min(_CHECK_S, max(0.0, self._again_at - monotonic())))
                self._rejoin()
                continue
            watch = self.filenos()
            if self._waits(watch):
                return None
            wait = self._awaiting.ready(watch, 2.0 * _CHECK_S)
            if wait is None:
                readable = self._awaiting.readable(watch, _CHECK_S)
            else:
                result = wait()
                if result == [(watch[0], 1)] and self._at_hand():
                    self._look_ns = 0  # look again after the next wait
                    return None
                readable = self._awaiting.all_readable(result)
            if self._at.data is not None and watch[0] in readable:
                self._at.data.woken()
            if not readable or watch[1] in readable:
                self.look_around()  # at once: when the connection closes, ZeroMQ discards unread messages
        self.ended = self.ended or "the link is closed"
        raise StopIteration

    def _at_hand(self) -> bool:
        """Return whether the next state can be read by the usual path, and prepare it."""
        dealer = self._at.data
        if not isinstance(dealer, Dealer) or self._waiting is not None or not (self._lockstep or self._at.near):
            return False
        line, known = dealer.at_hand(), self._heads
        if line is None or not known:
            return False
        self._step_codec, self._post = (
            (line.recv, max(known) + _MIN_EXTRA_BYTES, known, self.plant, self._lockstep),
            line.send,
        )
        return True

    def _waits(self, watch: tuple[int, int]) -> bool:
        """Return whether the next states are awaited by their receive alone, for some ms.

        In lockstep both sockets are watched, because messages at the exchange endpoint come before the next state.
        """
        if self._look_soon or self._lockstep or self._requests.posted:
            self._look_soon = False
            return False
        if monotonic() - self._looked_at > _CHECK_S:
            self.look_around()
            self._refusals.due()
        if self.ended or self.lost:
            return True  # the awaited descriptor may have changed
        if not self._at_hand():
            return False
        if not self._at.data.waits(_CHECK_S) or self._awaiting.readable_now(watch[1]):  # type: ignore[union-attr]
            self._step_codec = None
            return False
        self._look_ns = monotonic_ns() + _EXCHANGE_NS
        return True

    def filenos(self) -> tuple[int, int]:
        """Return two descriptors to wait on beside others: of states, and of messages at the exchange endpoint.

        They may signal a message only once. So call `poll` until it returns None before each wait, also after a
        command. Call `look_around` when the second one is readable, and every 0.1 s. They change when a connection
        breaks, so call this before each wait.

        Returns
        -------
        tuple[int, int]
            The descriptors.

        Raises
        ------
        ModelError
            If the link is closed.
        """
        if self._at.data is None or self._closed:
            raise ModelError("this link is closed; make another with rtmms.connect")
        self._step_codec = None
        return self._at.watch()

    def unusual(self) -> None:
        """Make the next state and command use the general path.

        Call it after work on the connection that the usual path does not see.
        """
        self._step_codec, self._post = None, _nothing

    def poll(self) -> State | None:
        """Return the newest state without waiting.

        `ended` has the reason when there will be no more.

        Returns
        -------
        State | None
            None if there is no new state.
        """
        if self._closed:
            self.ended = self.ended or "the link is closed"
            return None
        self._step_codec = None
        self._refusals.due()
        return self._take()

    def command(
        self, values: Mapping[str, float], step: int | None = None, *, age_s: float | None = None, fresh_s: float = 0.0
    ) -> None:  # fmt: skip
        """Send actuator values in answer to a state, for the step `plant.delay` later, without blocking.

        Your actuators without a value hold. `errors` of `connect` decides how other refusals are reported.

        Parameters
        ----------
        values : Mapping[str, float]
            Values by name of the actuator.
        step : int | None, optional
            Step of the state; None for the last one.
        age_s : float | None, optional
            Age of repeated values, s of wall time. None if they were computed for this step.
        fresh_s : float, default 0.0
            Age up to which values are fresh, s. The plant counts steps with older ones as stale. 0: any age is fresh.

        Raises
        ------
        ModelError
            If the link has no claim, or an age is invalid. Also for a foreign name or a value that is not finite,
            except with errors="collect": then the plant refuses it.
        """
        step = (self._step if step is None else step) + self._delay
        age = None if age_s is None else _age_ns(age_s, fresh_s)
        raw = self._write(self._seq + 1, step, values) if age is None else self._aged(self._seq + 1, step, *age, values)
        if raw is None:
            if self._closed or not self.plant.granted:
                raise ModelError("command: this link has no claim, or is closed; connect with claim=")
            if self._strict and isinstance(values, Mapping):
                check_command(values, self.plant.granted)
            self._command(values, step, age)
        else:
            self._seq += 1
            try:
                sent = self._post(raw, NOW)
            except OSError as fault:
                if fault.errno is None:  # no error of the system, see above
                    raise
                sent = 0
            if sent != len(raw):
                self._unsent(raw, sent)
        if monotonic() - self._looked_at > _CHECK_S and not self.lost:
            self._look_later()

    def _look_later(self) -> None:
        """Look around after the last state's deadline, because others on this core may still answer it."""
        self._report_late()
        later = self._at.near and self._due_ns > monotonic_ns() and self._awaiting.ready(self.filenos(), 2.0 * _CHECK_S)
        if later and self._awaiting.ring(self._due_ns):
            self._looked_at, self._look_soon = monotonic(), True
        else:
            self.look_around()

    def tick(self, timeout_s: float = 5.0) -> None:
        """Start the plant's next step (mode external).

        The first call waits until the plant has admitted this link. The newest state that comes meanwhile is stored for
        the iteration.

        Parameters
        ----------
        timeout_s : float, default 5.0
            Longest wait for the admission, s.

        Raises
        ------
        ModelError
            If the link has neither `ticks` nor a claim, or is closed.
        NotConnectedError
            If the plant is gone, or does not admit the link.
        """
        self._step_codec = None
        if self._closed or not (self.plant.ticks or self.plant.granted):
            raise ModelError("tick: this link has neither ticks nor a claim, or is closed; connect with ticks=True")
        end = monotonic() + timeout_s
        self._waiting = self._take() or self._waiting
        while not self._warm and not self.ended and monotonic() < end:
            if self.lost:
                sleep(0.01)
            else:
                self._awaiting.readable(self.filenos(), _CHECK_S)
            self.look_around()
            self._waiting = self._take() or self._waiting
        if self.ended or not self._warm:
            raise NotConnectedError(
                f"tick: {self.ended or self.lost or f'the plant did not admit this peer within {timeout_s:g} s'}"
            )
        self._tick_seq += 1
        self._send(self._pack({"type": "tick", "seq": self._tick_seq}))

    def _take(self) -> State | None:
        """Return the newest state that is there, or the one that a tick stored."""
        began_ns = monotonic_ns()
        message, waiting, self._waiting = self._newest(), self._waiting, None
        if message is None:
            return waiting
        self._step, self._due_ns, self._read_ns = message["step"], message.get("deadline_ns", 0), monotonic_ns()
        self._late.read(self._read_ns - began_ns)
        return State(message, self.plant)

    def _unsent(self, raw: bytes, sent: int) -> None:
        """Send the rest of a command, or all of it, later."""
        dealer: Any = self._at.data
        self.unusual()
        if sent:
            dealer.left(raw[sent:])
        elif self.lost or dealer.post(raw) != SENT:
            self.dropped += 1
        self._report_late()

    def _report_late(self) -> None:
        """Send the plant the durations of late answers, now and then."""
        figures = self._late.answered(self._read_ns, self._due_ns) if self._at.near else None
        if figures is not None:
            self._send_metrics(figures)

    def _aged(self, seq: int, step: int, age_ns: int, fresh_ns: int, values: Mapping[str, float]) -> bytes | None:
        """Return the frame of a command with its age, or None if the layout cannot express it."""
        if self._write is _no_layout:
            return None
        if self._write_aged is None:
            self._write_aged = command_writer(self.plant.granted, aged=True) or _no_layout
        return self._write_aged(seq, step, age_ns, fresh_ns, values)

    def _command(self, values: Mapping[str, float], step: int, age: tuple[int, int] | None = None) -> None:
        """Send a command of any form."""
        self._seq += 1
        try:
            if type(values) is not dict:
                values = dict(values)
            floats = as_floats(values)
            raw = None if floats is None or age is not None else self._encode(self._seq, step, floats)
            if raw is not None:
                frame = raw[2 if raw[0] == 0 else 9 :]
            else:
                ages = {} if age is None else {"age_ns": age[0], "fresh_ns": age[1]}
                frame = self._pack({"type": "command", "seq": self._seq, "step": step, **ages, "values": values})
        except (TypeError, ValueError, OverflowError) as fault:
            raise ModelError(f"command: expected actuator names and numbers, got {values!r}: {fault}") from None
        self._send(frame)
        self._report_late()

    def _send(self, frame: bytes) -> None:
        data = self._at.data
        self.unusual()
        if data is None or self.lost or data.send(b"", frame) != SENT:
            self.dropped += 1

    def close(self, reason: str = "done", *, bye: bool = True) -> None:
        """Send bye, which frees the claim, and close; a second call does nothing.

        Parameters
        ----------
        reason : str, default 'done'
            Reason in the bye.
        bye : bool, default True
            False closes without a bye, as a process that dies would. The claim remains, and the plant's miss policy
            acts.
        """
        if self._closed:
            return
        self._closed, self._step_codec, self._write = True, None, _no_layout
        self.ended = self.ended or "the link is closed"
        self._awaiting.close()
        self._at.close(self._pack({"type": "bye", "reason": reason}) if bye else None)

    def __enter__(self) -> Link:
        """Return the link itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        """Close the link, without a bye if an error ended the block."""
        # A controller that fails has not released its actuators: the plant must count it as dead.
        stopped = fault is None or isinstance(fault, KeyboardInterrupt | GeneratorExit)
        stopped = stopped or (isinstance(fault, SystemExit) and not fault.code)
        self.close("done" if kind is None else kind.__name__, bye=stopped)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _took_up(self) -> None:
        """Prepare for the plant, which may be another one."""
        super()._took_up()
        self._step_codec, self._post = None, _nothing
        by_stream = isinstance(self._at.data, Dealer)
        self._heads = state_heads(self.plant) if by_stream else {}
        self._encode, self._write_aged = command_writer(self.plant.granted) or _no_layout, None
        self._write = self._encode if by_stream else _no_layout
        self._lockstep, self._delay = self.plant.mode == "lockstep", self.plant.delay

    def _let_go(self) -> None:
        self._step_codec, self._write = None, _no_layout
        if self._reconnect:
            self._waiting, self._warm = None, False

    def _newest(self) -> dict[str, Any] | None:
        """Read all waiting messages, and return the newest state.

        A peer that slept must not answer a backlog. If the plant continues and later waits for every answer, each state
        is answered in turn.
        """
        data, newest = self._at.data, None
        if data is None or self.lost:
            return None
        while (received := data.next()) is not None:
            try:
                message = read_message(received[2])
                kind = message["type"]
                if kind in ("state", "telemetry"):
                    if message["step"] >= 0:
                        newest = self._mine(message) if kind == "telemetry" else message
                        in_time = self._at.near and message.get("deadline_ns", 0) > monotonic_ns()
                        if in_time:
                            data.stands()
                            return newest  # there is still time to answer it, so the plant has not sent a newer one
                        if self._lockstep and self._delay and kind == "state":
                            data.stands()
                            return newest  # the plant continues for `delay` steps, and then waits for each answer
                    elif kind == "state":
                        self._command({}, message["step"])  # the user does not see warm-up states
                        rehearse(self._heads, self._write, self.plant.granted)
                        # a probe of the plant has step -1, too, but no outputs
                        last = message["step"] == -1 and bool(message["outputs"] or message.get("applied"))
                        self._warm = self._warm or last
                else:
                    self._note(message)
            except Refusal as fault:
                self.errors.append(("malformed", f"a message of the plant cannot be read: {fault}"))
            data.stands()
        return newest

    def _note(self, message: Mapping[str, Any]) -> None:
        self._step_codec = None  # refusals are raised before the next state
        super()._note(message)

    def _over(self) -> bool:
        return bool(self.ended)

    def _mine(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return telemetry with the outputs that the observer asked for only."""
        member = self._terms.hello.robot
        if member:
            begin = member + "."
            outputs = {n.removeprefix(begin): value for n, value in message["outputs"].items() if n.startswith(begin)}
            message["outputs"] = outputs
        if self._terms.hello.outputs:
            mine = self.plant.selected
            message["outputs"] = {name: value for name, value in message["outputs"].items() if name in mine}
        return message
