"""`connect` to a plant: what a peer asks for, checked, and the link to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms.wire.peer.client import Link
from rtmms.wire.peer.joining import Terms
from rtmms.wire.peer.refusals import ERRORS, Refusals
from rtmms.wire.peer.settable import Settable
from rtmms.wire.places.endpoints import EXCHANGE, checked
from rtmms.wire.places.keys import read_client
from rtmms.wire.protocol.messages import AHEAD_STEPS, BETWEEN, MOST_EVERY


def connect(
    exchange: str = EXCHANGE, *, name: str = "python", claim: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (), timeout_s: float = 5.0, token: str | None = None, every: int = 1,
    meanwhile: Callable[[], None] | None = None, keys: str | os.PathLike[str] | None = None, ticks: bool = False,
    reconnect: bool = False, delay: int | None = None, between: str = "hold",
    settable: Mapping[str, Any] | Settable | None = None, errors: str = "print",
    tracks: Mapping[str, Any] | None = None,
) -> Link:  # fmt: skip
    """Say hello to a plant and return the link.

    exchange   its exchange endpoint: tcp, ipc, or that of rtmms.embed
    claim      actuators to drive, as names or patterns ('left.*'); none: an observer, which gets telemetry
    outputs    outputs to receive, likewise; none: all but fields such as the joints of every chain
    timeout_s  how long to wait for an answer
    token      the session's; None reads it from where the plant left it for this user
    every      of a claimant: get each every-th state only, for what takes longer than a step
    delay      the command for state k is that of step k + delay, due by that step's deadline; None: `every` steps
               where that is more than one, else 0. `state.budget_s` is what is left of all that
    between    what stands between two commands: 'hold' (the last one's values) or 'linear' (a straight line to the
               new ones, reached after `every` steps)
    meanwhile  called about every 20 ms while waiting, by those who have other things to look after
    keys       folder with the plant's public key and a pair of this peer's (rtmms keys), for a plant that asks for them
    ticks      ask to be the one whose `link.tick()` starts each step, in the mode external
    reconnect  when the plant ends or is gone, say hello again until there is one: iteration goes on with its states
    settable   parameters of this peer that `rtmms set NAME.PARAMETER=VALUE` may change while it runs, with their values
               at first: `link.settable` has the present ones
    tracks     set-points of this peer by the name of what they are of, as Controller.tracks: the plant's report tells
               how far the truth was off them. One that is settable has its present value
    errors     what is done about a refusal of the plant: 'print' the first of each kind to standard error, 'raise' a
               RefusedError at the next state, or 'collect' them in `link.errors` alone, as the others do, too
    NotConnectedError if nobody answers in time, or if the plant refuses: its `code` says why (claim_held, token, ...).
    """
    if errors not in ERRORS:
        raise UnknownNameError("errors", str(errors), ERRORS)
    every, delay = _turns(every, delay, between)
    terms = Terms(
        checked(exchange, "exchange", inproc=True), name, _patterns("claim", claim), _patterns("outputs", outputs),
        token, every, ticks, None if keys is None else read_client(Path(keys)), meanwhile, delay=delay, between=between,
        settable=settable if isinstance(settable, Settable) else Settable(settable or {}), tracks=tracks,
    )  # fmt: skip
    return Link(terms, timeout_s, reconnect, Refusals(errors))


def _turns(every: int, delay: int | None, between: str) -> tuple[int, int]:
    """`every` and `delay`, checked; ModelError."""
    if type(every) is not int or not 1 <= every <= MOST_EVERY:
        raise ModelError(f"every: expected a whole number from 1 to {MOST_EVERY}, got {every!r}")
    if delay is None:
        delay = every if every > 1 else 0
    most = min(MOST_EVERY, AHEAD_STEPS * every)
    if type(delay) is not int or not 0 <= delay <= most:
        raise ModelError(f"delay: expected a whole number from 0 to {most} with every={every}, got {delay!r}")
    if between not in BETWEEN:
        raise UnknownNameError("between", str(between), BETWEEN)
    return every, delay


def _patterns(word: str, given: str | Sequence[str]) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else None
    if found is None or not all(isinstance(pattern, str) for pattern in found):
        raise ModelError(f"connect: {word}: expected names or patterns, got {given!r}")
    return found
