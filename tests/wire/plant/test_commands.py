"""Commands on the step socket: what is taken, what waits, what is late, and every reason to refuse one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest

from rtmms.wire.protocol.limits import MAX_COMMAND_BYTES
from tests.growth import growth
from tests.wire.bench import Host, Raw

ALL = {"left.front": 0.1, "left.back": 0.2, "right.front": 0.3, "right.back": 0.4}


@pytest.fixture
def peer(raw: Raw) -> Raw:
    raw.join(["left.*", "right.*"])
    raw.host.publish()
    assert raw.read_message()["step"] == 0
    return raw


def deliver(peer: Raw) -> None:
    """What was sent last lies in the server's socket."""
    peer.host.arrived()
    time.sleep(0.02)


def exchange(peer: Raw, wait_s: float = 10.0) -> bool:
    """One whole step with whatever was sent before."""
    done = peer.host.collect(wait_s)
    peer.host.advance()
    return done


def test_a_command_is_applied_to_its_step(peer: Raw) -> None:
    peer.command(ALL)
    assert exchange(peer)
    assert peer.host.command.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert peer.host.server.fresh.all()
    peer.host.publish()
    output = peer.read_message()
    assert (output["step"], output["applied"]["seq"], output["applied"]["step"]) == (1, peer.seq, 0)
    assert output["outputs"]["position"] == [0.1, 0.2, 0.3]
    assert output["outputs"]["thrust"] == [1.0, 2.0, 3.0, 4.0]
    assert "joint_angle" not in output["outputs"]


def test_silence_about_an_actuator_means_hold(peer: Raw) -> None:
    peer.command(ALL)
    assert exchange(peer)
    peer.host.publish()
    peer.command({"left.back": -0.5})
    assert exchange(peer)
    assert peer.host.command.tolist() == [0.1, -0.5, 0.3, 0.4]
    assert peer.host.server.fresh.all()


def test_whole_numbers_are_numbers(peer: Raw) -> None:
    peer.command({"left.front": 1})
    assert exchange(peer)
    assert peer.host.command[0] == 1.0


def test_out_of_range_is_clamped_and_flagged(peer: Raw) -> None:
    peer.command({"left.front": 5.0, "left.back": -1e300})
    assert exchange(peer)
    assert peer.host.command[:2].tolist() == [1.2, -1.2]
    assert peer.host.server.applied.clamped
    peer.host.publish()
    peer.command(ALL)
    assert exchange(peer)
    assert not peer.host.server.applied.clamped


def test_nothing_in_time_is_a_miss_and_the_last_good_values_stay(peer: Raw) -> None:
    peer.command(ALL)
    exchange(peer)
    peer.host.publish()
    assert not exchange(peer, 0.0)
    assert peer.host.server.waiting_for() == ("raw",)
    assert not peer.host.server.fresh.any()
    assert peer.host.command.tolist() == [0.1, 0.2, 0.3, 0.4]


def test_a_late_command_becomes_the_held_value_and_is_counted(peer: Raw) -> None:
    host = peer.host
    host.step = 1
    host.publish(deadline_ns=time.monotonic_ns() - 1)
    assert not exchange(peer, 0.0)
    peer.command(ALL, step=1)
    deliver(peer)
    host.publish()
    assert not exchange(peer, 0.0)
    assert host.command.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert host.server.report()["late"] == 1
    assert host.server.applied.step == 1
    assert host.server.applied.lateness_ns > 0


def test_a_late_command_read_in_the_slack_is_held_too(peer: Raw) -> None:
    host = peer.host
    host.step = 1
    host.publish(deadline_ns=time.monotonic_ns() - 1)
    assert not exchange(peer, 0.0)
    host.step = 1  # serve while step 1 is the present one, after its deadline
    peer.command(ALL, step=1)
    deliver(peer)
    host.serve()
    assert host.server.report()["late"] == 1
    host.step = 2
    host.publish()
    peer.command({"left.front": 0.9}, step=2)
    assert exchange(peer)
    assert host.command.tolist() == [0.9, 0.2, 0.3, 0.4]


def test_lockstep_takes_a_command_that_was_read_while_serving(make_host: Callable[..., Host], make_raw: Any) -> None:
    peer = make_raw(make_host(mode="lockstep")).join(["*"])
    host = peer.host
    host.publish()
    assert not host.collect(0.0)
    peer.command(ALL)
    deliver(peer)
    host.serve()
    assert host.collect(0.0)
    assert host.command.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert host.server.report()["late"] == 0


def test_a_command_ahead_waits_its_turn(peer: Raw) -> None:
    peer.command({"left.front": 0.1}, step=0)
    peer.command({"left.front": 0.7}, step=2)
    deliver(peer)
    assert exchange(peer)
    peer.host.publish()
    assert not exchange(peer, 0.0)
    assert peer.host.command[0] == 0.1
    peer.host.publish()
    assert exchange(peer, 0.0)
    assert peer.host.command[0] == 0.7


def test_going_back_discards_what_waits(peer: Raw) -> None:
    peer.command({}, step=0)
    peer.command({"left.front": 0.7}, step=2)
    deliver(peer)
    exchange(peer)
    peer.host.publish()
    exchange(peer, 0.0)
    peer.host.step = 0  # a reset
    for _ in range(3):
        peer.host.publish()
        assert not exchange(peer, 0.0)
    assert peer.host.command[0] == 0.0


def test_the_state_after_a_reset_is_packed_anew(peer: Raw) -> None:
    peer.command({"left.front": 0.5})
    exchange(peer)
    peer.host.step = 0  # the same step again, with another state
    peer.host.publish()
    assert peer.read_message()["outputs"]["position"] == [0.5, 0.0, 0.0]


def test_a_second_command_for_a_step_already_taken_is_late(peer: Raw) -> None:
    peer.command({"left.front": 0.1})
    peer.command({"left.front": 0.2})
    deliver(peer)
    assert exchange(peer)
    assert peer.host.command[0] == 0.1
    peer.host.publish()
    assert not exchange(peer, 0.0)
    assert peer.host.command[0] == 0.2
    assert peer.host.server.report()["late"] == 1


def test_free_mode_takes_the_newest_whatever_step_it_was_for(make_host: Callable[..., Host], make_raw: Any) -> None:
    peer = make_raw(make_host(mode="free")).join(["*"])
    host = peer.host
    host.step = 5000
    host.publish()
    peer.command({"left.front": 0.1}, step=3)
    peer.command({"left.front": 0.2}, step=4)
    deliver(peer)
    assert host.server.collect(host.step, host.command, 0)
    assert host.command[0] == 0.2
    host.advance()
    host.publish()
    assert not host.server.collect(host.step, host.command, 0)
    assert host.server.report()["late"] == 0


def bad(values: Any = None, **fields: Any) -> bytes:
    whole = {"type": "command", "seq": 1 << 40, "step": 0, "values": {} if values is None else values} | fields
    return bytes(msgpack.packb(whole))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (bad({"left.front": float("nan")}), "not_finite"),
        (bad({"left.front": 0.5, "left.back": float("inf")}), "not_finite"),
        (bad({"left.front": "0.5"}), "wrong_type"),
        (bad({"left.front": None}), "wrong_type"),
        (bad({"left.front": True}), "wrong_type"),
        (bad({"left.front": [0.5]}), "wrong_type"),
        (bad({"left.middle": 0.5}), "unknown_actuator"),
        (bad({b"left.front": 0.5}), "unknown_actuator"),
        (bad([0.1, 0.2]), "wrong_type"),
        (bad(seq="7"), "wrong_type"),
        (bad(seq=1.5), "wrong_type"),
        (bad(seq=True), "wrong_type"),
        (bad(seq=(1 << 63) + 5), "seq"),
        (bad(seq=1), "seq"),
        (bad(seq=-5), "seq"),
        (bad(step=None), "wrong_type"),
        (bad(step=66), "too_early"),
        (bad(step=1 << 62), "too_early"),
        (b"\xc1", "malformed"),
        (msgpack.packb({"type": "comand"}), "unknown_type"),
        (msgpack.packb({"type": "hello"}), "unknown_type"),
        (msgpack.packb({"seq": 3}), "unknown_type"),
        (b"\x00" * (MAX_COMMAND_BYTES + 1), "oversize"),
    ],
)
def test_a_bad_command_is_refused_by_name_and_changes_nothing(peer: Raw, frame: bytes, reason: str) -> None:
    peer.command(ALL)
    exchange(peer)
    peer.host.publish()
    peer.read_message()
    peer.send(frame)
    deliver(peer)
    assert not peer.host.collect(0.0)
    assert peer.host.rejected == {reason: 1}
    assert peer.host.command.tolist() == [0.1, 0.2, 0.3, 0.4]
    error = peer.receive_error()
    assert error["code"] == reason
    assert error["text"]
    peer.command({"left.front": -0.1})
    assert exchange(peer)
    assert peer.host.command[0] == -0.1


def test_a_command_of_several_frames_is_malformed(peer: Raw) -> None:
    peer.send(bad({"left.front": 0.5}), b"more", b"and more")
    peer.command(ALL)
    assert exchange(peer)
    assert peer.host.rejected == {"malformed": 1}
    assert peer.host.command[0] == 0.1


def test_a_repeated_seq_is_refused(peer: Raw) -> None:
    peer.command(ALL)
    exchange(peer)
    peer.host.publish()
    peer.command({"left.front": 0.9}, seq=peer.seq)
    deliver(peer)
    assert not exchange(peer, 0.0)
    assert peer.host.rejected == {"seq": 1}


def test_a_command_for_long_ago_is_refused(peer: Raw) -> None:
    peer.host.step = 501
    peer.host.publish()
    peer.command(ALL, step=0)
    deliver(peer)
    assert not exchange(peer, 0.0)
    assert peer.host.rejected == {"too_late": 1}
    assert peer.host.command[0] == 0.0


def test_someone_elses_actuator_is_refused(make_raw: Callable[[Host], Raw], host: Host) -> None:
    left, right = make_raw(host).join(["left.*"], "left"), make_raw(host).join(["right.*"], "right")
    host.publish()
    left.command({"right.front": 0.5})
    right.command({"right.front": 0.25})
    deliver(left)
    assert not host.collect(0.05)
    assert host.rejected == {"not_claimed": 1}
    assert host.server.waiting_for() == ("left",)
    assert host.server.fresh.tolist() == [False, False, True, True]
    left.command({"left.front": 0.5})
    assert host.collect()
    assert host.command.tolist() == [0.5, 0.0, 0.25, 0.0]


def test_errors_to_a_peer_are_rate_limited(peer: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmms.wire.plant.keepalive._ERROR_GAP_NS", 1 << 60)
    peer.host.server._peers.claimants[0].error_ns = -(1 << 60)  # the last one was long ago
    for _ in range(20):
        peer.send_message(type="command", seq="x")
        deliver(peer)
        peer.host.collect(0.0)
        peer.host.serve()
    assert peer.host.rejected == {"wrong_type": 20}
    received = 0
    while peer.data is not None and peer.data.poll(20):
        received += msgpack.unpackb(peer.data.recv())["type"] == "error"
    assert received == 1


def test_a_sleeper_does_not_wake_to_a_backlog(peer: Raw) -> None:
    for _ in range(40):
        exchange(peer, 0.0)
        peer.host.publish()
    steps = []
    while peer.data is not None and peer.data.poll(100):
        steps.append(msgpack.unpackb(peer.data.recv())["step"])
    assert steps == [1, 2, 3, 4]
    peer.command(ALL, step=4)
    deliver(peer)
    exchange(peer, 0.0)
    peer.host.publish()
    assert peer.read_message()["step"] == 41


def test_bad_commands_leave_nothing_behind(peer: Raw) -> None:
    frames = [bad({"left.front": float("nan")}), b"\xc1", bad(step=1 << 40), bad([1]), b"\x91" * 400]

    def flood(rounds: int) -> None:
        for _ in range(rounds):
            for frame in frames:
                peer.send(frame)
                peer.host.arrived()
                peer.host.server.collect(0, peer.host.command, 1)
            while peer.data is not None and peer.data.poll(0):
                peer.data.recv()

    flood(40)
    assert growth(lambda: flood(200)) < 20


def test_steps_leave_nothing_behind(peer: Raw) -> None:
    host, outputs = peer.host, peer.host.plant.observe()

    def run(steps: int) -> None:
        for _ in range(steps):
            server = host.server
            server.publish(host.step, 0.0, 0, 0, outputs, server.applied)
            peer.command(ALL)
            assert host.collect()
            host.serve()
            host.step += 1
            while peer.data is not None and peer.data.poll(0):
                peer.data.recv()

    peer.command(ALL)
    exchange(peer)
    run(200)
    assert growth(lambda: run(1000)) < 20
    assert np.array_equal(host.command, [0.1, 0.2, 0.3, 0.4])
