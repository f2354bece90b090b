"""A controller on an impaired link: what it gets when, what is applied when, and the same in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rtmms.base.contract import Applied
from rtmms.loop.impairment import Impairment, impaired_links
from rtmms.plant.protocol import Channel
from rtmms.wire.peer.controller import Controller
from rtmms.wire.plant.state_message import Selection
from tests.wire.bench import Host, Raw, Toy

ROUGH = {"delay_ms": 3.0, "jitter_ms": 2.0, "loss": 0.1, "duplicate": 0.2, "reorder": 0.1}
NOW_NS = 10**15
"""A deadline that is far from over."""


def impaired(**terms: Any) -> dict[str, Any]:
    return {"links": impaired_links([Impairment("raw", **terms)], 1e-3, 5)}


def value(step: int) -> float:
    return round(0.001 * (step + 1), 9)


def driven(host: Host, raw: Raw, steps: int, delay: int = 0, deadline_ns: int = 0) -> tuple[list[float], list[int]]:
    """What was applied at each step, and the states that the peer saw; it answers each."""
    applied, observed = [], []
    assert raw.data is not None
    for _ in range(steps):
        peer = host.server._peers.claimants[0]
        before = peer.owed
        host.publish(deadline_ns)
        if peer.owed > before:
            observed.append(raw.read_message()["step"])
            raw.command({"left.front": value(observed[-1])}, observed[-1] + delay)
            host.arrived()
            if delay:
                host.server._port.read_in_slack(NOW_NS)
        assert host.collect(0.0) or host.server._port.free
        applied.append(round(float(host.command[0]), 9))
        host.advance()
    return applied, observed


def test_a_delay_is_of_each_direction(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]) -> None:
    host = make_host(mode="lockstep", **impaired(delay_ms=3.0))
    applied, observed = driven(host, make_raw(host).join(["left.*"]), 20)
    assert observed == list(range(17))
    assert applied == [0.0] * 6 + [value(k) for k in range(14)]
    assert (host.server.applied.step, host.server.applied.policy) == (13, "")
    raw = host.server.report()["links"]["raw"]
    assert raw["mean_delay_ms"] == pytest.approx(3.0)
    assert (raw["sent"], raw["lost"], raw["delayed"]) == (37, 0, 37)


@pytest.mark.parametrize("every", [1, 3])
def test_the_same_in_every_mode_and_in_the_plants_own_process(
    make_host: Callable[..., Host], make_raw: Callable[[Host], Raw], every: int
) -> None:
    from rtmms.studies.sweep_in_process import InProcessExchange

    delay, steps = (every if every > 1 else 0), 150
    result = []
    for mode in ("lockstep", "realtime", "external"):
        host = make_host(mode=mode, **impaired(**ROUGH))
        raw = make_raw(host).join(["left.*"], every=every, delay=delay)
        far = 0 if mode == "lockstep" else NOW_NS
        result.append((*driven(host, raw, steps, delay, far), host.server.report()["links"]["raw"]))
    assert result[0] == result[1] == result[2]
    assert result[0][2]["lost"] > 0
    assert result[0][2]["overtaken"] > 0

    class Observed(Controller):
        claim = ("left.*",)
        outputs = ("speed",)

        def update(self, state: Any) -> dict[str, float]:
            self.received_steps.append(state.step)
            return {"left.front": value(state.step)}

    controller = Observed()
    controller.received_steps = []  # type: ignore[attr-defined]
    controller.every = every
    plant, applied, command = Toy(), [], np.zeros(4)
    links = impaired(**ROUGH)["links"]
    exchange = InProcessExchange(plant, "toy", 0, {"raw": controller}, links)  # type: ignore[arg-type]
    for step in range(steps):
        exchange.publish(step, step * 1e-3, 0, 0, plant.observe(), exchange.applied)
        exchange.collect(step, command, 0)
        applied.append(round(float(command[0]), 9))
        plant.step(command)
    assert (applied, controller.received_steps, links["raw"].report()) == result[0]  # type: ignore[attr-defined]


def test_in_free_what_a_prompt_peer_sends_is_the_same(
    make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]
) -> None:
    result = []
    for mode in ("lockstep", "free"):
        host = make_host(mode=mode, **impaired(**ROUGH))
        result.append(driven(host, make_raw(host).join(["left.*"]), 100))
    assert result[0] == result[1]


def test_in_free_the_link_goes_on_where_no_state_is_published(
    make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]
) -> None:
    host = make_host(mode="free", **impaired(delay_ms=4.0))
    raw = make_raw(host).join(["left.*"])
    host.publish()
    for _ in range(5):
        host.collect(0.0)
        host.advance()
    assert raw.read_message()["step"] == 0
    assert not host.server.fresh[:2].any(), "it thinks"


def test_what_a_link_loses_is_no_miss(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]) -> None:
    host = make_host(mode="realtime", **impaired(loss=1.0, from_s=0.003))
    applied, observed = driven(host, make_raw(host).join(["left.*"]), 10)
    assert observed == [0, 1, 2]
    assert applied == [value(0), value(1)] + [value(2)] * 8
    assert host.server.report()["late"] == 0


def test_one_that_does_not_answer_in_time_is_missed_and_its_command_sets_out_late(
    make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]
) -> None:
    host = make_host(mode="realtime", **impaired(delay_ms=1.0))
    raw = make_raw(host).join(["left.*"])
    assert driven(host, raw, 3)[0] == [0.0, 0.0, value(0)]
    host.publish()
    assert raw.read_message()["step"] == 2
    assert not host.collect(0.0)
    assert host.server.waiting_for() == ("raw",)
    host.advance()
    raw.command({"left.front": 0.5}, 2)
    host.arrived()
    host.publish()
    assert raw.read_message()["step"] == 3
    raw.command({"left.front": value(3)}, 3)
    host.collect()
    assert host.command[0] == pytest.approx(value(1)), "what was late is under way"
    assert host.server.report()["late"] == 1


def test_one_that_died_is_missed_at_every_step(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]) -> None:
    host = make_host(mode="realtime", **impaired(delay_ms=2.0))
    raw = make_raw(host).join(["left.*"])
    driven(host, raw, 4)
    raw.vanish()

    def dead() -> tuple[str, ...]:
        host.publish()
        host.collect(0.0)
        host.advance()
        return host.server.dead()

    host.until(dead)
    host.publish()
    assert not host.collect(0.0)


def test_another_peer_has_its_own_link(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]) -> None:
    host = make_host(mode="lockstep", **impaired(delay_ms=2.0))
    slow, sound = make_raw(host).join(["left.*"]), make_raw(host).join(["right.*"], "sound")
    for k in range(5):
        host.publish()
        assert sound.read_message()["step"] == k
        sound.command({"right.back": value(k)}, k)
        if k >= 2:
            assert slow.read_message()["step"] == k - 2
            slow.command({"left.front": value(k - 2)}, k - 2)
        assert host.collect()
        assert host.command[3] == pytest.approx(value(k))
        host.advance()
    assert host.command[0] == pytest.approx(value(0))


def test_going_back_in_time_empties_the_link(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]) -> None:
    host = make_host(mode="lockstep", **impaired(delay_ms=3.0))
    raw = make_raw(host).join(["left.*"])
    first = driven(host, raw, 12)
    host.step, host.command[:] = 0, 0.0
    assert driven(host, raw, 12) == first


def test_a_state_that_is_sent_later_has_the_deadline_of_then() -> None:
    selection = Selection([Channel("x", shape=(1,))])
    for budget in (0, 200, 70_000, 5_000_000_000):
        remaining = {"x": np.array([1.0])}, Applied(policy="hold")
        before = selection.packed(3, 0.5, NOW_NS, budget, *remaining)
        then = selection.packed(3, 0.5, NOW_NS + 7, 333, *remaining)
        assert selection.message.dated(before, NOW_NS + 7, 333) == then
