"""A peer's states: what may become of each, and that nobody writes them but the one class."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

import rtmms
from rtmms.wire.plant.peers import ADMITTED, DEAD, GONE, LEFT, LIVE, LOST, READY, RECEIVED, WARM, WARMING, PeerState

WAYS = {WARMING: (), READY: (WARM,), LIVE: (WARM, ADMITTED), DEAD: (WARM, ADMITTED, LOST), GONE: (LEFT,)}
LEGAL = {(WARMING, WARM): READY, (READY, ADMITTED): LIVE, (LIVE, LOST): DEAD, (DEAD, RECEIVED): LIVE,
         **{(state, LEFT): GONE for state in (WARMING, READY, LIVE, DEAD)}}  # fmt: skip


@pytest.mark.parametrize(("state", "event"), list(product(WAYS, (WARM, ADMITTED, LOST, RECEIVED, LEFT))))
def test_every_event_in_every_state(state: str, event: str) -> None:
    peer = PeerState(observer=False)
    for earlier in WAYS[state]:
        peer.on(earlier)
    assert peer.state == state
    if (state, event) in LEGAL:
        peer.on(event)
        assert peer.state == LEGAL[state, event]
    else:
        with pytest.raises(RuntimeError, match=f"a peer in state {state}"):
            peer.on(event)
        assert peer.state == state


def test_an_observer_is_live_at_once() -> None:
    assert PeerState(observer=True).state == LIVE


def test_nobody_else_writes_a_state() -> None:
    wire = Path(rtmms.__file__).parent / "wire"
    writers = [file.name for file in wire.rglob("*.py") if re.search(r"\.state\s*=[^=]", file.read_text())]
    assert writers == ["peers.py"]
