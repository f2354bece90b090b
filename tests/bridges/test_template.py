"""The template over a socket of its own, and what it refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest

from rtmms.bridging.untrusted import Refusal
from rtmms_bridges.template import Template, parse
from tests.bridges.harness import Companion, wait
from tests.wire.bench import PATIENCE_S, Host


@pytest.fixture
def peer():  # type: ignore[no-untyped-def]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(PATIENCE_S)
        yield peer


def test_states_out_and_commands_in(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    template = Template(port=peer.getsockname()[1], claim=("left.*",), outputs=("position", "speed"))
    with Companion(template, make_host) as extra:
        datagram, bridge = peer.recvfrom(65536)
        first = json.loads(datagram)
        assert list(first) == ["time", "step", "position", "speed"]
        assert first["time"] == pytest.approx(first["step"] * 1e-3)
        peer.sendto(b'{"values": {"left.front": 0.75}}', bridge)
        wait(lambda: extra.command[0] == 0.75)
        for wrong in (b"{", b'{"values": {"left.front": NaN}}', b'{"values": 1}', b'{"values": {"left.front": "1"}}'):
            peer.sendto(wrong, bridge)
        wait(lambda: extra.bridged.counts["refused"] == 4)
        assert extra.bridged.counts.reasons() == {"malformed": 1, "not_finite": 1, "wrong_type": 2}
        assert extra.command[0] == 0.75
        assert extra.running.host.rejected == {}


def test_what_is_not_ours_is_refused_and_reported(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    template = Template(port=peer.getsockname()[1], claim=("left.*",))
    with Companion(template, make_host) as extra:
        _, bridge = peer.recvfrom(65536)
        peer.sendto(b'{"values": {"right.front": 0.75}}', bridge)
        text = "'right.front' is not among the actuators"
        wait(lambda: any(text in line for line in extra.bridged.messages))
        assert extra.bridged.counts.reasons() == {"not_claimed": 1}


def test_nobody_listens(make_host: Callable[..., Host]) -> None:
    with Companion(Template(port=1), make_host) as extra:
        wait(lambda: extra.bridged.counts["states"] > 3)
    assert extra.bridged.fault is None


def test_what_it_reads() -> None:
    assert parse(b'{"values": {"a": 1}, "more": []}') == {"a": 1.0}
    for wrong in (b"[]", b"{}", b'{"values": []}', b'{"values": {"a": true}}', b'{"values": {"a": 1e999}}'):
        with pytest.raises(Refusal):
            parse(wrong)
