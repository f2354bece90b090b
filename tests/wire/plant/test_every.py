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
    observed = []
    for k in range(7):
        host.publish()
        if k % 3 == 0:
            observed.append(raw.read_message()["step"])
            assert not host.server.collect(k, host.command, 1), "it must be waited for"
            raw.command({"left.front": 0.1 * k}, k)
            assert host.collect()
        else:
            assert host.collect(0.0), "its last command stands"
            assert host.server.fresh[:2].all()
        assert host.command[0] == pytest.approx(0.1 * (k - k % 3))
        host.advance()
    assert observed == [0, 3, 6]
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
        assert quick.read_message()["step"] == k
        quick.command({"right.back": 0.2}, k)
        if k % 4 == 0:
            assert slow.read_message()["step"] == k
            slow.command({}, k)
        assert host.collect()
        host.advance()


def test_free_mode_takes_no_notice(make_host: Callable[..., Host], make_raw: Any) -> None:
    host = make_host(mode="free")
    peer = make_raw(host).join(["left.*"], every=100)
    host.step = 7
    host.publish()
    assert peer.read_message()["step"] == 7


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


# --- a command for a later step ---------------------------------------------------------------------------------------


def test_with_a_delay_the_command_is_owed_at_a_later_step_alone(host: Host, raw: Raw) -> None:
    raw.join(["left.*"], every=3, delay=3)
    assert raw.welcome["delay"] == 3
    applied, missed = [], []
    for k in range(10):
        host.publish()
        if k % 3 == 0:
            state = raw.read_message()
            assert state["step"] == k
            if k != 3:  # that one comes to nothing
                raw.command({"left.front": 0.1 + 0.01 * k}, k + 3)
                host.arrived()
        if not host.collect(0.0):
            missed.append(k)
        applied.append(round(float(host.command[0]), 9))
        host.advance()
    assert missed == [6], "the command for step 6 was asked for with state 3"
    assert applied == [0.0] * 3 + [0.1] * 6 + [0.16]


def test_it_owes_nothing_before_it_was_asked(host: Host, raw: Raw) -> None:
    host.step = 4
    raw.join(["left.*"], every=5, delay=5)
    for k in range(4, 10):
        host.step = k
        host.publish()
        assert host.collect(0.0), k
    host.step = 10
    host.publish()
    assert not host.collect(0.0), "asked with state 5"


def test_a_delay_longer_than_the_gap_lets_several_commands_be_under_way(host: Host, raw: Raw) -> None:
    raw.join(["left.*"], every=1, delay=3)
    for k in range(8):
        host.publish()
        assert raw.read_message()["step"] == k
        raw.command({"left.front": 0.1 * k}, k + 3)
        host.arrived()
        assert host.collect(0.0)
        assert host.command[0] == pytest.approx(0.1 * max(0, k - 3))
        host.advance()


def test_after_a_reset_it_owes_nothing_of_the_time_before(host: Host, raw: Raw) -> None:
    raw.join(["left.*"], every=2, delay=4)
    host.publish()
    host.step = 3
    host.publish()
    host.step = 0
    for k in range(4):
        host.step = k
        host.publish()
        assert host.collect(0.0)
    host.step = 4
    host.publish()
    assert not host.collect(0.0)


def test_a_command_many_steps_ahead_waits_for_its_step(host: Host, raw: Raw) -> None:
    raw.join(["left.*"], every=100, delay=200)
    host.publish()
    raw.read_message()
    raw.command({"left.front": 0.5}, 200)
    host.arrived()
    assert host.collect(0.0)
    for k in (64, 136, 199):  # the same place in a queue of 64
        host.step = k
        host.publish()
        assert host.collect(0.0)
        assert host.command[0] == 0.0
    host.step = 200
    host.publish()
    assert host.collect(), "what arrived above may have been another message of the peer's"
    assert host.command[0] == 0.5


def test_more_than_wait_their_turn_are_refused(host: Host, raw: Raw) -> None:
    raw.join(["left.*"])
    host.publish()
    raw.read_message()
    for ahead in [*range(1, 65), 3]:
        raw.command({"left.front": 0.01}, ahead)
    raw.command({}, 0)
    assert host.collect()
    assert host.rejected == {}
    raw.command({}, 65)
    raw.receive_error()
    assert host.rejected == {"too_early": 1}


def test_between_two_commands_a_straight_line_is_followed(host: Host, raw: Raw) -> None:
    raw.join(["left.*"], every=4, delay=4, interpolation="linear")
    values = []
    for k in range(13):
        host.publish()
        if k % 4 == 0:
            raw.read_message()
            raw.command({"left.front": (0.4, 0.8, -0.4, 0.0)[k // 4]}, k + 4)
            host.arrived()
        assert host.collect(0.0)
        assert host.collect(0.0), "a second look at the same step changes nothing"
        values.append(float(host.command[0]))
        host.advance()
    assert values == pytest.approx([0.0] * 4 + [0.1, 0.2, 0.3, 0.4] + [0.5, 0.6, 0.7, 0.8] + [0.5])


def test_the_time_to_answer_is_that_of_the_later_step(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    quick, slow = make_raw(host).join(["right.*"], "quick"), make_raw(host).join(["left.*"], "slow", every=2, delay=6)
    for prepared in (False, True):
        deadline_ns = 10**15
        if prepared:
            applied = host.server.applied
            host.server.prepare(host.step, host.step * 1e-3, deadline_ns, host.plant.observe(), applied)
        host.publish(deadline_ns)
        near, far = quick.read_message(), slow.read_message()
        assert near["deadline_ns"] == deadline_ns
        assert near["budget_ns"] == 500_000
        assert far["deadline_ns"] == deadline_ns + 6_000_000
        assert far["budget_ns"] == 6_500_000
        host.step += 2


@pytest.mark.parametrize(("every", "delay"), [(1, 65), (20, -1), (20, 1281), (1, 1.5), (1, True)])
def test_a_delay_that_makes_no_sense_is_refused(host: Host, raw: Raw, every: int, delay: Any) -> None:
    answer = raw.hello(["left.*"], every=every, delay=delay)
    assert (answer["type"], answer["code"]) == ("error", "wrong_type")
    assert "delay must be a whole number" in answer["text"]
    assert raw.hello(["left.*"], interpolation="cubic")["code"] == "wrong_type"


def test_a_link_answers_for_the_later_step(make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token=None)) as running:
        with rtmms.connect(running.host.exchange, claim="left.*", every=5, interpolation="linear") as link:
            assert (link.plant.every, link.plant.delay) == (5, 5)
            for state in link:
                assert state.step % 5 == 0
                link.command({"left.front": 0.25}, state.step)
                if state["position"][0] == 0.25:
                    break
        assert running.host.rejected == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"every": 0}, "every: expected a whole number"), ({"every": 2, "delay": 200}, "delay: expected a whole number"),
     ({"interpolation": "liner"}, "did you mean linear")],
)  # fmt: skip
def test_nonsense_is_reported_before_anyone_is_asked(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(rtmms.ModelError, match=message):
        rtmms.connect("tcp://127.0.0.1:1", claim="*", **wrong)
