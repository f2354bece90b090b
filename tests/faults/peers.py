"""Peers of a plant, good ones and one for each way to be a nuisance, each in a process of its own.

`python -m tests.faults.peers KIND EXCHANGE [--claim PATTERN] [--through ENDPOINT]` prints a line when
it is at work and goes on until it is ended. `--through` is the proxy's endpoint, where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import zmq

import rtmms
from rtmms.wire.protocol.port import SENT
from rtmms.wire.session_files import read_token

from . import strangers as harm

_pack: Any = msgpack.packb
ENOUGH_S = 600.0
HUGE = 1 << 20
OVER_LIMIT = 48 * 1024


def wave(state: rtmms.State, link: rtmms.Link) -> dict[str, float]:
    """A slow wave on everything it drives."""
    return {name: 0.3 * math.sin(2.0 * math.pi * state.time) for name in link.plant.granted}


# --- controllers ------------------------------------------------------------------------------------------------------


def steady(link: rtmms.Link) -> None:
    """Answers each state, at once."""
    for state in link:
        link.command(wave(state, link))


def late(link: rtmms.Link) -> None:
    """Answers each state a period and a half after it came."""
    pause_s = 1.5 * (link.plant.period_s or link.plant.dt)
    for state in link:
        time.sleep(pause_s)
        link.command(wave(state, link))


def flooding(link: rtmms.Link) -> None:
    """Answers, and sends as many more commands as it can."""
    state = next(link)
    while not link.ended:
        state = link.poll() or state
        for _ in range(20):
            link.command(wave(state, link), state.step)


def mute(link: rtmms.Link) -> None:
    """Takes its claim and a first state, and never sends anything again."""
    for state in link:
        link.command(wave(state, link))
        break
    time.sleep(ENOUGH_S)


def closing(link: rtmms.Link) -> None:
    """Answers for a third of a second, then closes its sockets without a bye, and stays."""
    end = time.monotonic() + 0.3
    for state in link:
        link.command(wave(state, link))
        if time.monotonic() > end:
            break
    for item in (link._at.data, link._at.exchange):
        if item is not None:
            item.close()
    time.sleep(ENOUGH_S)


def _bad(link: rtmms.Link, frames: Callable[[rtmms.State, Iterator[int]], bytes]) -> None:
    """Every other state is answered as it should be, the others with a bad frame."""
    data, seqs = link._at.data, itertools.count(1 << 20, 2)
    assert data is not None
    for state in link:
        if state.step % 2:
            link._seq = next(seqs)
            link.command(wave(state, link))
        else:
            link.dropped += data.send(b"", frames(state, seqs)) != SENT


def _command(seq: int, step: int, values: Any, **more: Any) -> bytes:
    return bytes(_pack({"type": "command", "seq": seq, "step": step, "values": values, **more}))


def _values(link: rtmms.Link, value: Any) -> dict[str, Any]:
    return dict.fromkeys(link.plant.granted, value)


def wrong_steps(link: rtmms.Link) -> None:
    far = itertools.cycle((1_000_000, -1_000_000, 1 << 40))
    _bad(link, lambda state, seqs: _command(next(seqs), state.step + next(far), _values(link, 0.1)))


def not_finite(link: rtmms.Link) -> None:
    worst = itertools.cycle((math.nan, math.inf, -math.inf))
    _bad(link, lambda state, seqs: _command(next(seqs), state.step, _values(link, next(worst))))


def wrong_types(link: rtmms.Link) -> None:
    kinds = itertools.cycle(("0.1", None, True, [0.1], {"a": 1}, b"\x00"))
    _bad(link, lambda state, seqs: _command(next(seqs), state.step, _values(link, next(kinds))))


def unknown_names(link: rtmms.Link) -> None:
    _bad(link, lambda state, seqs: _command(next(seqs), state.step, {"rihgt.front": 0.1}))


def oversize(link: rtmms.Link) -> None:
    """Frames over the limit, which are refused, but not so large that the connection is closed."""
    filling = "x" * OVER_LIMIT
    _bad(link, lambda state, seqs: _command(next(seqs), state.step, {}, filling=filling))


def huge(link: rtmms.Link) -> None:
    """Frames for which the plant closes the connection: it is made anew, again and again."""
    filling = "x" * HUGE
    _bad(link, lambda state, seqs: _command(next(seqs), state.step, {}, filling=filling))


def empty_frames(link: rtmms.Link) -> None:
    """64 KiB of frames that end no message, each quarter of a second: the connection is closed and made anew."""
    next_ns = 0
    for state in link:
        link.command(wave(state, link))
        if time.monotonic_ns() > next_ns:
            next_ns = time.monotonic_ns() + int(harm.EVERY_S * 1e9)
            connection: Any = getattr(link._at.data, "_connection", None)
            with contextlib.suppress(OSError):
                connection.socket.send(harm.HOLLOW[0] * 32768)


def truncated(link: rtmms.Link) -> None:
    def half(state: rtmms.State, seqs: Iterator[int]) -> bytes:
        frame = _command(next(seqs), state.step, _values(link, 0.1))
        return frame[: len(frame) // 2]

    _bad(link, half)


def lying_seq(link: rtmms.Link) -> None:
    lies = itertools.cycle((0, -5, 1 << 19, 1 << 63, 1))
    _bad(link, lambda state, seqs: _command(next(lies), state.step, _values(link, 0.1)))


# --- bystanders -------------------------------------------------------------------------------------------------------


def watching(link: rtmms.Link) -> None:
    """An observer that reads its telemetry."""
    for _ in link:
        pass


def strangers(exchange: str, ready: Callable[[], None]) -> None:
    """Hellos without a token, garbage, and messages of many frames, at the door, as fast as they go."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    doors = [context.socket(zmq.DEALER) for _ in range(8)]
    for door in doors:
        door.linger = 0
        door.sndhwm = 64
        door.connect(exchange)
    hello = {"type": "hello", "protocol": 1, "name": "stranger", "claim": ["*"], "outputs": [], "token": "wrong"}
    output = [[_pack(hello)], [os.urandom(200)], [b"", b"x", b"y"], [_pack({"type": "tick"})]]
    ready()
    for turn in itertools.count():
        for door in doors:
            try:
                door.send_multipart(output[turn % len(output)], zmq.NOBLOCK)
            except zmq.Again:
                time.sleep(0.0001)


def noise(exchange: str, ready: Callable[[], None]) -> None:
    """Connections that speak no ZeroMQ at all: bytes at random, and silence."""
    host, _, port = exchange.removeprefix("tcp://").rpartition(":")
    open_ones: list[socket.socket] = []
    ready()
    while True:
        try:
            connection = socket.create_connection((host, int(port)), 1.0)
            connection.sendall(os.urandom(512))
            open_ones.append(connection)
        except OSError:
            time.sleep(0.001)
        if len(open_ones) > 64:
            open_ones.pop(0).close()


def busy(exchange: str, ready: Callable[[], None]) -> None:
    """Computes, and talks to nobody: what a flood costs the machine without a word to the plant."""
    ready()
    while True:
        sum(range(1000))


CONTROLLERS = {
    f.__name__: f
    for f in (
        steady, late, flooding, mute, closing, wrong_steps, not_finite, wrong_types, unknown_names, oversize, huge,
        empty_frames, truncated, lying_seq, watching,
    )
}  # fmt: skip
STRANGERS = harm.ALL | {"strangers": strangers, "noise": noise, "busy": busy}


def _ready() -> None:
    print("at work", flush=True)


def main() -> None:
    """The process."""
    reader = argparse.ArgumentParser()
    reader.add_argument("kind", choices=[*CONTROLLERS, *STRANGERS])
    reader.add_argument("exchange")
    reader.add_argument("--claim", default="")
    reader.add_argument("--through", default="")
    reader.add_argument("--seconds", type=float, default=0.0)
    parts = reader.parse_args()
    if parts.kind in STRANGERS:
        STRANGERS[parts.kind](parts.exchange, _ready)
        return
    claim = [parts.claim] if parts.claim else []
    with rtmms.connect(
        parts.through or parts.exchange, name=f"{parts.kind}", claim=claim, token=read_token(parts.exchange),
        timeout_s=60.0,
    ) as link:  # fmt: skip
        if claim:
            link.command({}, next(link).step)  # the claim stands, and a first state has come
        _ready()
        if parts.seconds:
            end = time.monotonic() + parts.seconds
            while time.monotonic() < end and not link.ended:
                link.poll()
                link.look_around()
                time.sleep(0.005)
            return
        CONTROLLERS[parts.kind](link)


if __name__ == "__main__":
    main()
