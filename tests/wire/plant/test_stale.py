"""Commands that state the age of their values: a step with an old one is stale, in every mode and on every path."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import rtmms
from rtmms.loop.miss_policies import RESOLVED
from rtmms.loop.modes import Free, Lockstep
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.plant.fast_path import WireFastPath
from rtmms.wire.plant.peers import events
from tests.wire.bench import Host, Raw
from tests.wire.looping import Looping
from tests.wire.plant.compiled_plant import Observed, Run
from tests.wire.plant.test_fast_path import program, realtime

SECOND = 1_000_000_000


def send(peer: Raw, step: int | None = None, **age: Any) -> None:
    peer.seq += 1
    peer.send_message(type="command", seq=peer.seq, step=peer.host.step if step is None else step, values={}, **age)


@pytest.mark.parametrize(
    ("age", "stale"),
    [
        ({}, False),
        ({"age_ns": 5 * SECOND}, False),
        ({"age_ns": 5 * SECOND, "fresh_ns": 0}, False),
        ({"age_ns": SECOND, "fresh_ns": 60 * SECOND}, False),
        ({"age_ns": 61 * SECOND, "fresh_ns": 60 * SECOND}, True),
        ({"fresh_ns": 60 * SECOND}, False),
        ({"fresh": True}, False),
        ({"fresh": False}, True),
        ({"fresh": False, "age_ns": SECOND, "fresh_ns": 60 * SECOND}, True),
    ],
)
def test_a_value_is_stale_beyond_the_age_that_its_sender_calls_fresh(
    host: Host, raw: Raw, age: dict[str, int], stale: bool
) -> None:
    raw.join(["*"])
    host.publish(time.monotonic_ns() + 60 * SECOND)
    send(raw, **age)
    assert host.collect()
    assert host.server.applied.stale is stale
    assert host.server.report()["peers"][0]["steps"] == {"applied": 1 - stale, "stale": int(stale), "missed": 0}


def test_one_old_value_makes_the_step_stale_and_the_next_command_ends_it(host: Host, make_raw: Any) -> None:
    left, right = make_raw(host).join(["left.*"], "left"), make_raw(host).join(["right.*"], "right")
    for age in ({"age_ns": 3, "fresh_ns": 2}, {}):
        host.publish(time.monotonic_ns() + 60 * SECOND)
        send(left, **age)
        send(right)
        assert host.collect()
        assert host.server.applied.stale is bool(age)
        host.advance()
    result = {item["name"]: item["steps"]["stale"] for item in host.server.report()["peers"]}
    assert result == {"left": 1, "right": 0}


def test_a_value_that_is_held_for_several_steps_becomes_stale_within_them(host: Host, raw: Raw) -> None:
    raw.join(["*"], every=4)
    outcomes = []
    for k in range(4):
        host.publish(time.monotonic_ns() + 60 * SECOND)
        if k == 0:
            send(raw, age_ns=0, fresh_ns=60 * SECOND)
        elif k == 3:
            (peer,) = host.server._peers.all
            peer.expiry_ns -= 61 * SECOND  # as if so much time had passed
        assert host.collect()
        outcomes.append(host.server.applied.stale)
        host.advance()
    assert outcomes == [False, False, False, True]


def test_a_command_ahead_has_its_age_when_it_is_used(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    host.publish(time.monotonic_ns() + 60 * SECOND)
    send(raw)
    send(raw, step=1, age_ns=0, fresh_ns=1)
    assert host.collect()
    host.serve()
    host.advance()
    host.publish(time.monotonic_ns() + 60 * SECOND)
    assert host.collect()
    assert host.server.applied.stale


@pytest.mark.parametrize(
    "age", [{"age_ns": -1}, {"age_ns": 1.0}, {"fresh_ns": "1"}, {"fresh_ns": True}, {"age_ns": 1 << 63}]
)
def test_an_age_that_is_none_is_refused(host: Host, raw: Raw, age: dict[str, Any]) -> None:
    raw.join(["*"])
    host.publish()
    send(raw, **age)
    error = raw.receive_error()
    assert (error["code"], "age_ns and fresh_ns" in error["text"]) == ("wrong_type", True)


@pytest.mark.parametrize("fresh", [0, 1, "true", None, [True]])
def test_a_freshness_that_is_no_flag_is_refused(host: Host, raw: Raw, fresh: Any) -> None:
    raw.join(["*"])
    host.publish()
    send(raw, fresh=fresh)
    error = raw.receive_error()
    assert (error["code"], "fresh: expected true or false" in error["text"]) == ("wrong_type", True)


def test_the_events_of_a_peer_go_by_their_time() -> None:
    times = {
        "connected_s": 0.0, "first_command_s": 0.5, "losses": [3.5],
        "silences": [{"begin_s": begin, "length_s": length} for begin, length in ((1.0, 0.5), (3.0, 2.0), (8.0, 1.0))],
    }  # fmt: skip
    result = [(event["t_s"], event["event"]) for event in events(times, True, 9.0)]
    assert result == [
        (0.0, "connected"), (0.5, "first_command"), (1.0, "silent"), (1.5, "resumed"), (3.0, "silent"), (3.5, "lost"),
        (5.0, "restarted"), (8.0, "silent"), (9.0, "left"),
    ]  # fmt: skip
    assert [event["length_s"] for event in events(times, True, None) if event["event"] == "silent"] == [0.5, 2.0, 1.0]
    nothing = {"connected_s": None, "first_command_s": None, "silences": [], "losses": []}
    assert events(nothing, False, None) == []


def test_a_link_states_an_age_in_seconds(make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token="secret")) as running:
        server, observed = running.host.server, []
        with rtmms.connect(running.host.exchange, name="old", claim="*", token="secret", errors="raise") as link:
            for state in link:
                whole = dict.fromkeys(link.plant.granted, 0.1)
                link.command(whole if state.step % 2 else {}, age_s=2.0, fresh_s=1.0)
                observed.append(state)
                if len(observed) == 20:
                    break
        running.wait(lambda: sum(peer["steps"]["stale"] for peer in server._peers.gone) >= 10)
        assert running.host.rejected == {}


@pytest.mark.parametrize("age", [{"age_s": -1.0}, {"age_s": float("nan")}, {"age_s": 1.0, "fresh_s": float("inf")}])
def test_a_link_refuses_an_age_that_is_none(make_host: Callable[..., Host], age: dict[str, float]) -> None:
    with (
        Looping(make_host(token="secret")) as running,
        rtmms.connect(running.host.exchange, claim="*", token="secret") as link,
    ):
        next(iter(link))
        with pytest.raises(rtmms.ModelError, match="age_s and fresh_s: expected seconds"):
            link.command({}, **age)


# --- in compiled steps ------------------------------------------------------------------------------------------------

STEADY = "link.command(dict.fromkeys(names, 0.1), age_s=0.3, fresh_s=0.2); continue"
OLD = "link.command(values, age_s=0.3, fresh_s=0.2 if k % 3 == 0 else 0.4); continue"


@pytest.mark.full
@pytest.mark.skipif(not AVAILABLE, reason="Linux, and numba's compiler")
@pytest.mark.parametrize("pace", [Lockstep, realtime])
def test_compiled_steps_count_as_the_others(pace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Run(pace, steps=300, plant=Observed(), program=program(OLD))
    assert compiled.codes.count(RESOLVED) > 50 if pace is realtime else compiled.batches > 200
    monkeypatch.setattr(WireFastPath, "bind", lambda *_: False)
    for run in (compiled, Run(pace, steps=300, plant=Observed(), program=program(OLD))):
        result, peer = run.statistics, run.server.report()["peers"][0]
        assert result.applied + result.stale + result.misses == 300
        assert 100 - result.misses <= result.stale <= 100
        assert peer["steps"] == {"applied": result.applied, "stale": result.stale, "missed": result.misses}


@pytest.mark.full
@pytest.mark.skipif(not AVAILABLE, reason="Linux, and numba's compiler")
def test_free_steps_with_a_new_old_value_are_stale_and_not_reused() -> None:
    run = Run(Free, steps=20_000, plant=Observed(), program=program(STEADY))
    result = run.statistics
    assert result.applied <= 1  # none has an age before the first
    assert result.stale > 50
    assert result.stale + result.applied + result.reused == 20_000
