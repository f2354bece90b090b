"""What a peer makes of endpoints that a welcome should not have: an error with the reason, and nothing left behind."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

from rtmms.wire.peer.attachment import Attachment, PeerRequests
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.hello import Hello

CHANNEL = {"name": "torque", "unit": "N m", "shape": [], "frame": "", "lower": None, "upper": None, "neutral": 0.0}
WELCOME = {
    "type": "welcome", "protocol": 1, "session": "s", "identity": b"\x01" * 16, "robot": "toy", "dt": 1e-3,
    "mode": "free", "period_s": None, "deadline_s": None, "actuators": [CHANNEL], "outputs": [CHANNEL],
    "granted": ["torque"], "selected": ["torque"], "step_endpoint": "tcp://127.0.0.1:9",
    "telemetry_endpoint": "tcp://127.0.0.1:9", "local_step_endpoint": "",
}  # fmt: skip
OBSERVER = {"granted": [], "identity": b""}


def joined(output: dict[str, Any]) -> BaseException | None:
    """What `join` raised when the plant sent this; None when it raised nothing. It must not wait for ever."""
    connection = Attachment(PeerRequests("tcp://127.0.0.1:9", Hello("one")), print)
    connection._greet = lambda timeout_s: WELCOME | output  # type: ignore[method-assign]
    raised: list[BaseException | None] = []

    def join() -> None:
        try:
            connection.join(1.0)
            raised.append(None)
        except BaseException as fault:
            raised.append(fault)
        finally:
            connection.close()

    thread = threading.Thread(target=join, daemon=True)
    thread.start()
    thread.join(20.0)
    assert not thread.is_alive(), "it hangs"
    return raised[0]


@pytest.mark.parametrize(
    "output",
    [
        {"step_endpoint": "tcp://127.0.0.1"},
        {"step_endpoint": "tcp://127.0.0.1:99999"},
        {"step_endpoint": "tcp://a..b:9"},
        {"step_endpoint": "inproc://x"},
        {"step_endpoint": "ipc://" + "a" * 200},
        {"step_endpoint": ""},
        OBSERVER | {"telemetry_endpoint": "bogus"},
        OBSERVER | {"telemetry_endpoint": ""},
    ],
    ids=str,
)
def test_endpoints_that_are_none_are_reported(output: dict[str, Any]) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    fault = joined(output)
    assert isinstance(fault, NotConnectedError)
    assert str(fault).startswith(("cannot connect to '", "the program at '"))
    end = time.monotonic() + 10.0
    while before and len(os.listdir("/proc/self/fd")) > before:
        assert time.monotonic() < end, "a descriptor stays open"
        time.sleep(0.01)


@pytest.mark.parametrize("output", [{}, OBSERVER, {"local_step_endpoint": "ipc:///a\0b/step-9"},
                                  {"local_step_endpoint": "ipc:///nowhere/step-9"}], ids=str)  # fmt: skip
def test_others_are_joined_though_nobody_is_there_yet(output: dict[str, Any]) -> None:
    assert joined(output) is None
