"""How many steps a dead controller and its return take, over real sockets; steps are counted, not timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import rtmms
from tests.wire.bench import PATIENCE_S, Host, Raw

SLACK_NS = 200_000_000


class Broken:
    """Waits until the plant's step socket has seen a connection close."""

    def __init__(self, host: Host) -> None:
        self.steps: Any = host.server._sockets.step
        self.before = len(self.steps.connections)

    def wait(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while len(self.steps.connections) >= self.before:
            assert time.monotonic() < until, "the connection stands"
            self.steps.wait(time.monotonic_ns() + 10_000_000)
            self.steps.next()


def step(host: Host, wait_s: float = 0.0) -> bool:
    """One whole step with much slack; whether all commands were there."""
    host.publish()
    complete = host.collect(wait_s)
    host.advance()
    host.server.serve(time.monotonic_ns() + SLACK_NS)
    return complete


def test_a_dead_controller_is_known_with_the_first_state_that_does_not_reach_it(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    broken = Broken(host)
    assert host.server.dead() == ()
    raw.vanish()
    broken.wait()
    host.publish()
    assert host.server.dead() == ("raw",)


def test_where_there_is_a_deadline_nobody_waits_for_the_dead(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    broken = Broken(host)
    raw.vanish()
    broken.wait()
    waits: list[int] = []
    socket: Any = host.server._port._socket
    wait = socket.wait
    socket.wait = lambda until_ns: waits.append(until_ns) or wait(until_ns)
    for _ in range(5):
        far = time.monotonic_ns() + int(PATIENCE_S * 1e9)
        host.publish(deadline_ns=far)
        assert host.server.dead() == ("raw",)
        assert host.server.collect(host.step, host.command, far) is False  # a miss, as long as it keeps its claim
        assert host.server.waiting_for() == ("raw",)
        host.advance()
    assert waits == []


def test_one_that_lives_is_still_waited_for_beside_a_dead_one(host: Host, raw: Raw) -> None:
    raw.join(["left.*"])
    alive = Raw(host).join(["right.*"], "alive")
    try:
        broken = Broken(host)
        raw.vanish()
        broken.wait()
        far = time.monotonic_ns() + int(PATIENCE_S * 1e9)
        host.publish(deadline_ns=far)
        assert host.server.dead() == ("raw",)
        late = threading.Timer(0.05, lambda: alive.command({"right.front": 0.4}))
        late.start()
        assert host.server.collect(host.step, host.command, far) is False
        late.join()
        assert host.command[2] == 0.4
        assert time.monotonic_ns() < far
    finally:
        alive.vanish()


def test_one_that_dies_before_it_is_warm_is_not_waited_for(host: Host, raw: Raw) -> None:
    welcome = raw.hello(["*"])
    raw.data = raw._dealer(welcome["identity"])
    raw.data.connect(welcome["step_endpoint"])
    host.until(lambda: raw.data is not None and raw.data.poll(0))
    raw.vanish()
    begun = time.monotonic_ns()
    for _ in range(20):
        host.server.serve(time.monotonic_ns() + SLACK_NS)
    assert time.monotonic_ns() - begun < 20 * SLACK_NS  # it was for a moment, not for every slack
    assert not host.server.claimed.any()


def _drive(exchange: str, stop: threading.Event) -> None:
    with rtmms.connect(exchange, name="again", claim="*", token="secret", timeout_s=PATIENCE_S) as link:
        for _ in link:
            link.command({"left.front": 0.5})
            if stop.is_set():
                break


@pytest.fixture
def restarted(host: Host) -> Any:
    stop = threading.Event()
    thread = threading.Thread(target=_drive, args=(host.exchange, stop))
    yield thread
    stop.set()
    end = time.monotonic() + PATIENCE_S
    while thread.is_alive() and time.monotonic() < end:
        step(host, 0.02)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_one_started_in_its_place_drives_within_5_steps_of_its_hello(host: Host, raw: Raw, restarted: Any) -> None:
    raw.join(["*"])
    raw.vanish()
    host.until(lambda: step(host) or host.server.dead())
    restarted.start()
    host.until(lambda: step(host) or "again" in {peer.name for peer in host.server._peers.all})
    returned = host.step
    while host.command[0] != 0.5:
        assert host.step - returned < 5, "not back within 5 steps"
        step(host, 1.0)  # time for its thread, which a busy machine lets wait


def test_one_whose_connection_broke_drives_within_5_steps_of_its_return(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    assert raw.data is not None
    raw.data.close(0)
    host.until(lambda: step(host) or host.server.dead())
    raw.data = raw._dealer(raw.welcome["identity"])
    raw.data.connect(raw.welcome["step_endpoint"])
    host.until(lambda: raw.data.poll(0))  # it is asked whether it is there
    returned = host.step
    raw.command({}, raw.read_message()["step"])
    host.until(lambda: not host.server.dead())
    while host.command[0] != 0.5:
        assert host.step - returned < 5, "not back within 5 steps"
        host.publish()
        raw.read_message()
        raw.command({"left.front": 0.5})
        host.arrived()
        host.collect()
        host.advance()
        host.serve()


def test_the_other_one_is_served_all_the_while(host: Host, make_raw: Callable[[Host], Raw], restarted: Any) -> None:
    left, right = make_raw(host).join(["left.*"], "left"), make_raw(host).join(["right.*"], "right")
    host.publish()
    left.command({"left.front": 0.1})
    right.command({"right.front": 0.2})
    assert host.collect()
    host.advance()
    right.vanish()

    def goes_on() -> bool:
        host.publish()
        left.command({"left.front": host.step * 1e-3})
        host.arrived()
        host.collect(0.0)
        assert host.command[0] == pytest.approx(host.step * 1e-3)
        assert host.command[2] == 0.2  # what the dead one sent last
        assert host.server.fresh.tolist()[:2] == [True, True]
        host.advance()
        return bool(host.server.dead())

    host.until(goes_on)
    assert host.server.claimed.all()
    heir = make_raw(host).join(["right.front"], "heir")
    host.publish()
    left.command({})
    heir.command({"right.front": -0.3})
    host.collect(0.2)
    assert (host.command[2], host.command[3]) == (-0.3, 0.0)
    assert host.server.waiting_for() == ("right",)  # of right.back, which nobody took
    left.send_message(type="bye")
    heir.send_message(type="bye")
    host.until(lambda: host.server.claimed.tolist() == [False, False, False, True])
    restarted.start()
    host.until(lambda: step(host, 0.02) or "again" in host.server.admitted())


def _asleep(host: Host, raw: Raw) -> None:
    """It has every state that it gets unanswered, and has long sent nothing."""
    for _ in range(8):
        host.publish()
        host.advance()
    host.until(host.server.dead)  # after 1.5 s, time for 15 probes


def _heap(raw: Raw) -> list[int]:
    """Steps of what waits for it."""
    assert raw.data is not None
    heap: list[int] = []
    while raw.data.poll(200):
        heap.append(raw.read_message()["step"])
    return heap


def test_one_that_slept_wakes_to_a_few_states_and_2_probes(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    _asleep(host, raw)
    heap = _heap(raw)
    assert heap == [0, 1, 2, 3, 4, -1, -1]
    raw.command({}, -1)
    host.until(lambda: not host.server.dead())


def test_one_that_slept_and_comes_on_another_connection_is_asked_there(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    _asleep(host, raw)
    assert raw.data is not None
    raw.data.close(0)
    raw.data = raw._dealer(raw.welcome["identity"])
    raw.data.connect(raw.welcome["step_endpoint"])
    host.until(lambda: raw.data.poll(0))
    assert raw.read_message()["step"] == -1
    raw.command({}, -1)
    host.until(lambda: not host.server.dead())


def test_a_newcomer_that_compiles_keeps_its_place_without_a_heap(host: Host, raw: Raw, monkeypatch: Any) -> None:
    monkeypatch.setattr("rtmms.wire.plant.keepalive._WARM_LIMIT_NS", 500_000_000)
    raw.welcome = raw.hello(["*"])
    raw.data = raw._dealer(raw.welcome["identity"])
    raw.data.connect(raw.welcome["step_endpoint"])
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        host.serve()
        time.sleep(0.01)
    assert _heap(raw) == [-10, -1, -1]
    assert [peer["state"] for peer in host.summaries] == ["warming"]


def test_where_only_sending_reports_more_probes_follow_slowly(host: Host, raw: Raw, monkeypatch: Any) -> None:
    monkeypatch.setattr(host.server._port, "connected", lambda peer: None)  # as with keys
    monkeypatch.setattr("rtmms.wire.plant.keepalive._PROBE_SLOW_GAP_NS", 10**15)
    raw.join(["*"])
    _asleep(host, raw)
    assert _heap(raw) == [0, 1, 2, 3, 4, -1, -1]
    monkeypatch.setattr("rtmms.wire.plant.keepalive._PROBE_SLOW_GAP_NS", 0)
    host.until(lambda: raw.data is not None and raw.data.poll(0))  # it is not forgotten
    raw.command({}, raw.read_message()["step"])
    host.until(lambda: not host.server.dead())
