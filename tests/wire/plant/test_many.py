"""Much of everything: outputs by the thousand, and as many peers as there is room for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.protocol import Channel
from rtmms.wire.plant.peers import MAX_PEERS, Peers
from rtmms.wire.plant.state_message import Selection
from rtmms.wire.protocol.hello import Hello
from rtmms.wire.protocol.messages import Refusal
from tests.wire.bench import PATIENCE_S, Host, Raw, Toy

OUTPUTS = 6000


class Wide(Toy):
    """A plant of so many outputs that a state of them has more entries than a command may have."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs = tuple(Channel(f"sensor{k}") for k in range(OUTPUTS))

    def observe(self) -> dict[str, Any]:
        return {f"sensor{k}": np.array(float(k)) for k in range(OUTPUTS)}


def test_a_plant_of_thousands_of_outputs_drives_and_is_driven() -> None:
    with rtmms.embed(Wide(), robot="wide", steps=3) as plant, rtmms.connect(plant.exchange, claim="*") as link:
        assert len(link.plant.outputs) == OUTPUTS
        for state in link:
            assert float(state[f"sensor{OUTPUTS - 1}"]) == OUTPUTS - 1
            link.command({"left.front": 0.5})
        assert plant.wait(PATIENCE_S).steps == 3
        assert not link.errors


def test_a_full_house_has_a_place_for_one_that_only_asks() -> None:
    actuators = tuple(Channel(f"a{k}") for k in range(MAX_PEERS + 1))
    peers, selection = Peers(actuators), Selection(())
    for k in range(MAX_PEERS):
        peers.welcome(Hello(f"driver{k}", (f"a{k}",)), b"%d" % k, selection, 0)
    with pytest.raises(Refusal, match=f"{MAX_PEERS} peers already, its maximum"):
        peers.welcome(Hello("one more", (f"a{MAX_PEERS}",)), b"more", selection, 0)
    first = peers.welcome(Hello("status"), b"status", selection, 0)
    second = peers.welcome(Hello("stop"), b"stop", selection, 0)  # the first gives way
    assert second in peers.all
    assert first not in peers.all
    assert len(peers.all) == MAX_PEERS + 1
    with pytest.raises(Refusal, match=f"{MAX_PEERS} peers already, its maximum"):  # an observer's place is no driver's
        peers.welcome(Hello("one more", (f"a{MAX_PEERS}",)), b"more", selection, 0)
    assert second in peers.all


def test_it_gets_its_answer(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw], monkeypatch: Any) -> None:
    monkeypatch.setattr("rtmms.wire.plant.peers.MAX_PEERS", 2)
    host = make_host()
    make_raw(host).join(["left.*"], "one")
    make_raw(host).join(["right.front"], "two")
    assert make_raw(host).hello(["right.back"], "three")["code"] == "busy"
    raw = make_raw(host)
    assert raw.hello([], "asks")["type"] == "welcome"
    raw.exchange.send(b"\x84\xa4type\xa7request\xa2id\x01\xa2op\xa6status\xa4args\x80")
    host.until(lambda: [host.server.reply(request, result={"fine": True}) for request in host.server.requests()])
    host.until(lambda: raw.exchange.poll(0))
    assert b"fine" in raw.exchange.recv()
