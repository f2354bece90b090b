"""Hello until welcome: how a peer and a plant that may still be starting find together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic, sleep
from typing import Any

import zmq

from rtmms.wire.errors import NotConnectedError
from rtmms.wire.handshake import Handshake
from rtmms.wire.tokens import read_token

_NOW = zmq.NOBLOCK
_LOOK_S = 0.1
_MEANWHILE_S = 0.02
_HELLO_AGAIN_S = 2.0


def greet(
    door: zmq.Socket[bytes],
    exchange: str,
    hello: Mapping[str, Any],
    *,
    pack: Callable[[Any], bytes],
    hear: Callable[[], dict[str, Any] | None],
    handshake: Handshake,
    timeout_s: float,
    token: str | None,
    meanwhile: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """The welcome; NotConnectedError, with the plant's code where it has one, if there is none in time.

    hello      without its token, which may be older than the plant, or not there yet
    pack, hear to a frame; the next message at the door, None where that is none
    meanwhile  called about every 20 ms
    """
    end = monotonic() + timeout_s
    again, gap = 0.0, _HELLO_AGAIN_S
    sent = ""
    pause_s = _LOOK_S if meanwhile is None else _MEANWHILE_S
    while monotonic() < end:
        if handshake.look():
            raise NotConnectedError(f"the plant at '{exchange}' refused: {handshake.refused}", "key")
        if meanwhile is not None:
            meanwhile()
        if monotonic() >= again:
            sent = read_token(exchange) if token is None else token
            try:
                door.send(pack({**hello, "token": sent}), _NOW)
            except zmq.Again:
                sleep(0.01)
                continue
            # A plant that compiles reads nothing for half a minute: hellos must not fill its queue.
            again, gap = monotonic() + gap, 2.0 * gap
        wait_ms = int(1e3 * min(pause_s, min(end, again) - monotonic()))
        if not door.poll(max(1, wait_ms)):
            continue
        message = hear()
        if message is None:
            continue
        if message["type"] == "welcome":
            return message
        if message["type"] == "error":
            code, text = str(message.get("code", "")), str(message.get("text", ""))
            if code == "token" and token is None and read_token(exchange) != sent:
                again = 0.0
                continue
            raise NotConnectedError(f"the plant at '{exchange}' refused: {text}", code)
    hint = handshake.hint()
    if hint:
        raise NotConnectedError(f"no plant let us in at '{exchange}' within {timeout_s:g} s: {hint}", "key")
    raise NotConnectedError(
        f"no plant answered at '{exchange}' within {timeout_s:g} s; is one running (rtmms serve ROBOT)?"
    )
