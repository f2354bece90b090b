"""A claimant that asked for each n-th state: what it gets, and what is applied between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rtmms
from tests.wire.bench import Host, Raw
from tests.wire.looping import Looping


def test_states_and_waits_come_at_each_nth_step_only(host: Host, raw: Raw) -> None:
    raw.join(["left.*"], every=3)
    assert raw.welcome["every"] == 3
    seen = []
    for k in range(7):
        host.publish()
        if k % 3 == 0:
            seen.append(raw.hear()["step"])
            assert not host.server.collect(k, host.command, 1), "it must be waited for"
            raw.command({"left.front": 0.1 * k}, k)
            assert host.collect()
        else:
            assert host.collect(0.0), "its last command stands"
            assert host.server.fresh[:2].all()
        assert host.command[0] == pytest.approx(0.1 * (k - k % 3))
        host.advance()
    assert seen == [0, 3, 6]
    assert raw.data is not None
    assert not raw.data.poll(50), "nothing else was sent"


def test_a_dead_one_is_missed_at_every_step(host: Host, raw: Raw) -> None:
    raw.join(["left.*"], every=5)
    host.publish()
    raw.vanish()
    host.step = 5

    def dead() -> tuple[str, ...]:
        host.publish()
        return host.server.dead()

    host.until(dead)
    host.step = 6
    host.publish()
    assert not host.collect(0.0)


def test_another_peer_gets_every_state(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    slow, quick = make_raw(host).join(["left.*"], "slow", every=4), make_raw(host).join(["right.*"], "quick")
    for k in range(5):
        host.publish()
        assert quick.hear()["step"] == k
        quick.command({"right.back": 0.2}, k)
        if k % 4 == 0:
            assert slow.hear()["step"] == k
            slow.command({}, k)
        assert host.collect()
        host.advance()


def test_free_mode_takes_no_notice(make_host: Callable[..., Host], make_raw: Any) -> None:
    host = make_host(mode="free")
    peer = make_raw(host).join(["left.*"], every=100)
    host.step = 7
    host.publish()
    assert peer.hear()["step"] == 7


@pytest.mark.parametrize("every", [0, -1, 10_001, 1.5, "2", True])
def test_nonsense_is_refused(host: Host, raw: Raw, every: Any) -> None:
    answer = raw.hello(["left.*"], every=every)
    assert (answer["type"], answer["code"]) == ("error", "wrong_type")
    assert "every must be a whole number" in answer["text"]


def test_a_link_is_polled_beside_other_things(make_host: Callable[..., Host]) -> None:
    import select

    calls: list[int] = []
    with Looping(make_host(token=None)) as running:
        with rtmms.connect(
            running.host.exchange, name="mine", claim="left.*", every=4, meanwhile=lambda: calls.append(1)
        ) as link:
            steps: list[int] = []
            while len(steps) < 5:
                state = link.poll()
                if state is None:
                    assert not link.ended
                    select.select(link.filenos(), [], [], 0.1)
                    link.look_around()
                    continue
                steps.append(state.step)
                link.command({"left.front": 0.3})
            link.post("reset")
            running.wait(lambda: running.host.command[0] == 0.3)
        assert all(step % 4 == 0 for step in steps)
        assert calls
        with pytest.raises(rtmms.ModelError, match="closed"):
            link.filenos()
        assert link.poll() is None
