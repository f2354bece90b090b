"""Whatever a peer says, in bytes or in well-formed nonsense: no crash, and only sound values reach the plant."""

from __future__ import annotations

from collections.abc import Callable

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtmms.wire.protocol.codec import decode
from rtmms.wire.protocol.limits import AHEAD_STEPS, EXCHANGE_BYTES
from rtmms.wire.protocol.messages import Refused
from tests.wire.bench import Host, Raw

junk = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 64) - 1), st.floats(), st.text(max_size=6),
    st.binary(max_size=6), st.lists(st.floats(), max_size=3),
)  # fmt: skip
rods = st.sampled_from(["left.front", "left.back", "right.front", "right.back", "left.middle", ""])
sound = st.dictionaries(st.sampled_from(["left.front", "left.back"]), st.floats(-3.0, 3.0), max_size=2)
commands = st.fixed_dictionaries(
    {
        "type": st.one_of(st.just("command"), st.just("command"), st.sampled_from(["state", "tick", "hello"])),
        "seq": st.one_of(st.integers(0, 1 << 20), st.integers(0, 1 << 20), junk),
        "step": st.one_of(st.integers(-2, 80), st.integers(-2, 80), junk),
        "values": st.one_of(sound, st.dictionaries(rods, junk, max_size=3), junk),
    }
)
messages = st.one_of(commands, st.dictionaries(st.text(max_size=6), junk, max_size=4))


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A frame with some bytes changed, some lost, some put in."""
    frame = bytearray(msgpack.packb(draw(commands)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(frame) - 1)) if frame else 0
        what = draw(st.sampled_from(["change", "lose", "put"]))
        if what == "put" or not frame:
            frame.insert(at, draw(st.integers(0, 255)))
        elif what == "change":
            frame[at] = draw(st.integers(0, 255))
        else:
            del frame[at:]
    return bytes(frame)


frames = st.lists(st.one_of(messages.map(msgpack.packb), broken(), st.binary(max_size=40)), min_size=1, max_size=12)
shared = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def refused(read: Callable[[], None]) -> str:
    """The code of the refusal, '' for none; anything else that is raised is a failure."""
    try:
        read()
    except Refused as refusal:
        return refusal.code
    return ""


@pytest.fixture
def driven(host: Host, raw: Raw) -> Host:
    raw.join(["left.*"])
    return host


@shared
@given(stream=frames)
def test_the_step_socket_survives_anything_a_peer_says(driven: Host, stream: list[bytes]) -> None:
    port, peer = driven.server._port, driven.server._peers.claimants[0]
    driven.publish()
    for frame in stream:
        before = peer.seq
        port._command = driven.command
        if refused(lambda frame=frame: port._hear(peer, decode(frame, 4096))):
            assert peer.seq == before, "a refused message must not count"
        port._command = None
    driven.collect(0.0)
    assert np.isfinite(driven.command).all()
    assert (np.abs(driven.command) <= 1.2).all()
    assert (driven.command[2:] == 0.0).all(), "not its own"
    assert len(peer.queue) <= AHEAD_STEPS
    driven.step = (driven.step + 1) % 50
    peer.seq = -1


@shared
@given(stream=frames)
def test_the_door_survives_anything_anyone_says(host: Host, stream: list[bytes]) -> None:
    door = host.server._handshakes
    for frame in stream:
        refused(lambda frame=frame: door._hear(b"stranger", None, decode(frame, EXCHANGE_BYTES)))
    assert host.server.requests() == []
    assert not host.server.claimed.any()
