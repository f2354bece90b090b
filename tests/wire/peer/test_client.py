"""connect, Link and State against a plant that steps on: over tcp and ipc, until it sends bye, dies, or refuses."""

from __future__ import annotations

import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import rtmms
from rtmms.wire.peer.client import Link
from rtmms.wire.protocol.errors import EndpointError, NotConnectedError, RequestError
from rtmms.wire.protocol.messages import Refusal
from rtmms.wire.protocol.peer_values import read_watch
from rtmms.wire.session_files import token_path
from tests.wire.bench import PATIENCE_S, Host, Raw
from tests.wire.looping import Looping, plant_process


@pytest.fixture(params=["tcp", "ipc"])
def running(request: pytest.FixtureRequest, make_host: Callable[..., Host], tmp_path: Path) -> Iterator[Looping]:
    ends = {role: f"ipc://{tmp_path}/{role}" for role in ("exchange", "step", "telemetry")}
    options: dict[str, Any] = ends if request.param == "ipc" else {}
    with Looping(make_host(**options, token=None)) as running:
        yield running


@pytest.fixture
def tcp(make_host: Callable[..., Host]) -> Iterator[Looping]:
    with Looping(make_host(token=None)) as running:
        yield running


def test_a_controller_drives_the_plant(running: Looping) -> None:
    with rtmms.connect(running.host.exchange, name="mine", claim=["left.*", "right.*"]) as link:
        assert link.plant.granted == ("left.front", "left.back", "right.front", "right.back")
        steps = []
        for state in link:
            steps.append(state.step)
            link.command({"left.front": 0.25, "right.back": np.float32(0.5)})
            if state.applied.seq > 0 and state["position"][0] == 0.25:
                break
        assert steps == sorted(set(steps))
        assert min(steps) >= 0
    running.wait(lambda: not running.host.server.claimed.any())  # bye frees the claim
    assert running.host.command.tolist() == [0.25, 0.0, 0.0, 0.5]
    assert set(running.host.rejected) <= {"too_late"}, "a busy machine may let an answer come late, no more"


def test_a_state_reads_as_the_contract_states(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*", outputs=["*"]) as link:
        state = next(link)
        link.command({"left.front": 9.0})
        later = next(s for s in link if s.applied.seq > 0)
    assert isinstance(state["speed"], float)
    assert isinstance(state["position"], np.ndarray)
    assert state["joint_angle"].shape == (1, 3, 5)
    assert state["joint_angle"][0, 1, 0] == 5.0
    assert state["thrust"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert state.time == pytest.approx(state.step * 1e-3)
    assert state.budget_s == 5e-4
    assert set(state) == {"position", "quaternion", "speed", "thrust", "joint_angle"}
    assert "speed" in state
    assert later.applied.clamped
    assert later.applied["clamped"]
    with pytest.raises(rtmms.UnknownNameError, match="did you mean speed"):
        state["sped"]
    with pytest.raises(KeyError):
        later.applied["nothing"]


def test_a_link_looks_around_once_the_deadline_of_its_last_state_is_past(running: Looping, monkeypatch: Any) -> None:
    looks: list[int] = []
    with rtmms.connect(running.host.exchange, name="mine", claim="left.*") as link:
        look, due = Link.look_around, 0

        def looked(link: Link) -> None:
            looks.append(time.monotonic_ns() - due)
            look(link)

        monkeypatch.setattr(Link, "look_around", looked)
        until = time.monotonic() + PATIENCE_S
        for state in link:
            due = state.deadline_ns
            link.command({"left.front": 0.1})
            if len(looks) >= 3 or time.monotonic() > until:
                break
    assert len(looks) >= 3
    assert min(looks) >= 0


def test_the_plant_is_described(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
        plant = link.plant
    assert (plant.robot, plant.dt, plant.mode, plant.period_s) == ("toy", 1e-3, "realtime", 1e-3)
    assert plant.budget_s == plant.deadline_s == 5e-4
    assert plant.actuator("left.back") == tcp.host.plant.actuators[1]
    assert plant.outputs == tcp.host.plant.outputs
    assert plant.parameters["r1"] == 0.215
    with pytest.raises(rtmms.UnknownNameError, match="did you mean"):
        plant.actuator("left.bakc")


def test_an_observer_sees_telemetry_and_cannot_drive(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, outputs=["speed"]) as link:
        states = [next(link) for _ in range(3)]
        with pytest.raises(rtmms.ModelError, match="has no claim"):
            link.command({"left.front": 0.1})
    assert [list(state) for state in states] == [["speed"]] * 3
    assert states[0].step < states[2].step


def test_one_that_is_behind_gets_the_newest_state(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="*") as link:
        first = next(link)
        link.command({})
        tcp.wait(lambda: tcp.host.step > first.step + 10)
        link.command({})
        observed = [next(link).step for _ in range(2)]
        assert observed[0] > first.step + 1  # the states between were drained, not queued up


def test_the_plants_bye_ends_the_iteration_with_its_reason(tcp: Looping) -> None:
    ending = threading.Thread(target=tcp.end, args=("duration reached",))
    with rtmms.connect(tcp.host.exchange, claim="*") as link:
        for state in link:
            link.command({})
            if state.step > 5 and ending.ident is None:
                ending.start()
        assert link.ended == "the plant sent bye: duration reached"
        assert list(link) == []
    ending.join(PATIENCE_S)


def test_one_who_polls_receives_what_is_sent_at_the_entry(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange) as link:
        server = tcp.host.server
        bye = {"type": "bye", "reason": "enough"}
        end = time.monotonic() + PATIENCE_S
        tcp.errands.append(lambda: server._handshakes.send(server._peers.all[0].exchange_id, bye))
        while not link.ended:
            while link.poll() is not None:
                pass
            readable, _, _ = select.select(link.filenos(), (), (), PATIENCE_S)
            assert readable, "telemetry comes all the time"
            assert time.monotonic() < end, "the bye did not arrive"
            if link.filenos()[1] in readable:
                link.look_around()
        assert link.ended == "the plant sent bye: enough"


@pytest.mark.full
@pytest.mark.parametrize("claim", ["*", ()])
def test_a_killed_plant_ends_the_iteration(claim: Any) -> None:
    process, exchange = plant_process()
    with process:
        link = rtmms.connect(exchange, claim=claim, timeout_s=PATIENCE_S)
        next(link)
        process.kill()
        process.wait()
        for _ in link:
            pass
        assert "gone" in link.ended
        link.close()


@pytest.mark.full
def test_a_stopped_controller_recovers() -> None:
    process, exchange = plant_process()
    program = (
        "import rtmms, sys\n"
        "with rtmms.connect(sys.argv[1], claim='*') as link:\n"
        "    for state in link:\n"
        "        link.command({'left.front': min(1.0, state.step * 1e-6)})\n"
    )
    with process, rtmms.connect(exchange, outputs=["speed"], timeout_s=PATIENCE_S) as observer:
        peer = subprocess.Popen([sys.executable, "-c", program, exchange])
        try:

            def answered(after: int) -> int:
                return next(state.step for state in observer if state.applied.step > after)

            step = answered(0)
            peer.send_signal(19)  # SIGSTOP, for longer than silence is forgiven
            stopped = next(state.step for state in observer if state.step > step and state.applied.policy == "")
            time.sleep(2.5)
            peer.send_signal(18)
            assert answered(stopped + 1000) > stopped
        finally:
            peer.kill()
            peer.wait()
            process.kill()


def test_requests_get_their_result_or_an_error(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange) as link:
        assert link.request("pause", {"why": "tea"}) == {"op": "pause", "why": "tea"}
        with pytest.raises(RequestError, match="not this one"):
            link.request("set", {"x": 1})
        with pytest.raises(RequestError, match="op must be one of"):
            link.request("explode")
        assert link.request("snapshot") == {"op": "snapshot"}


def test_requests_that_nobody_waits_for_report_when_they_are_done(tcp: Looping) -> None:
    results: list[tuple[bool, Any]] = []
    with rtmms.connect(tcp.host.exchange) as link:
        link.post("pause", {"why": "tea"}, lambda ok, result: results.append((ok, result)))
        link.post("snapshot")
        link.post("set", {"x": 1}, lambda ok, text: results.append((ok, text)))
        tcp.wait(lambda: link.look_around() or len(results) == 2)
        assert results == [(True, {"op": "pause", "why": "tea"}), (False, "not this one")]
        for _ in range(200):  # a plant that never answers is not waited for without end
            link.post("explode", None, lambda ok, text: None)
        assert len(link._requests.posted) <= 64


def test_what_the_plant_refuses_is_collected_and_nothing_is_raised(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*", errors="collect") as link:
        next(link)
        link.command({"left.front": float("nan")})
        for _ in link:
            if link.errors:
                break
            link.command({})
        assert link.errors[0][0] == "not_finite"
        with pytest.raises(rtmms.ModelError, match="expected actuator names and numbers"):
            link.command({"left.front": object()})  # type: ignore[dict-item]


def test_what_the_link_knows_to_be_wrong_is_raised_at_once(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*") as link:
        next(link)
        link.command({"left.front": 0.25})
        for wrong, message in (
            ({"left.front": float("nan")}, "left.front: expected a finite number, got nan"),
            ({"left.front": float("inf"), "left.back": 0.0}, "left.front: expected a finite number, got inf"),
            ({"left.frnt": 0.1}, "did you mean left.front"),
            ({"left.front": 0.1, "right.front": 0.1}, "unknown claimed actuator 'right.front'"),
            ({"left.front": "0.1"}, "left.front: expected a finite number, got '0.1'"),
        ):
            with pytest.raises(rtmms.ModelError, match=message):
                link.command(wrong)  # type: ignore[arg-type]
        assert tcp.host.rejected == {}


@pytest.mark.parametrize("how", ["print", "raise"])
def test_the_first_refusal_of_each_kind_is_reported(tcp: Looping, capsys: pytest.CaptureFixture[str], how: str) -> None:
    with rtmms.connect(tcp.host.exchange, claim="left.*", errors=how) as link:
        refused = None
        while len(link.errors) < 2 and refused is None:
            try:
                link.command({"left.front": 0.25}, next(link).step + 1000)
            except rtmms.RefusedError as fault:
                refused = fault
    output = capsys.readouterr().err
    if how == "print":
        assert output.count("command: step") == 1, output
        assert "more than 64 steps ahead" in output
    else:
        assert output == ""
        assert refused is not None
        assert refused.code == "too_early"


def test_another_way_to_estimate_errors_is_refused() -> None:
    with pytest.raises(rtmms.UnknownNameError, match="did you mean print"):
        rtmms.connect("tcp://127.0.0.1:9", errors="prnt")


def test_nobody_there_is_reported_after_the_time_given() -> None:
    with pytest.raises(NotConnectedError, match=r"no plant answered at 'tcp://127.0.0.1:9' within 0.05 s"):
        rtmms.connect("tcp://127.0.0.1:9", timeout_s=0.05)
    assert issubclass(NotConnectedError, (rtmms.RtmmsError, ConnectionError))


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9870", "tcp://127.0.0.1", "udp://127.0.0.1:3", "ipc://", ""])
def test_a_malformed_endpoint_is_named(endpoint: str) -> None:
    with pytest.raises(EndpointError, match="expected tcp://HOST:PORT"):
        rtmms.connect(endpoint)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ({"claim": "middle.*"}, "unknown_actuator", "middle"),
        ({"claim": "*", "token": "wrong"}, "token", "only the user who started"),
        ({"claim": "*", "outputs": "spede"}, "unknown_output", "did you mean speed"),
    ],
)
def test_a_refusal_reports_why(tcp: Looping, arguments: dict[str, Any], code: str, text: str) -> None:
    with pytest.raises(NotConnectedError, match=text) as refused:
        rtmms.connect(tcp.host.exchange, **arguments)
    assert refused.value.code == code


@pytest.mark.parametrize("wrong", [{"claim": 5}, {"claim": [5]}, {"outputs": {"x": 1}.values()}])
def test_a_claim_that_is_no_name_is_reported(wrong: dict[str, Any]) -> None:
    with pytest.raises(rtmms.ModelError, match=r"connect: (claim|outputs): expected names or patterns, got"):
        rtmms.connect("tcp://127.0.0.1:9", **wrong)


def test_errors_that_a_user_meets_are_named_by_the_package() -> None:
    assert (rtmms.NotConnectedError, rtmms.RequestError) == (NotConnectedError, RequestError)


def test_a_held_claim_is_refused_and_an_observer_is_still_welcome(tcp: Looping) -> None:
    with rtmms.connect(tcp.host.exchange, name="first", claim="*") as link:
        next(link)
        with pytest.raises(NotConnectedError, match="claimed by peer 'first'"):
            rtmms.connect(tcp.host.exchange, claim="left.*")
        rtmms.connect(tcp.host.exchange).close()


def test_without_the_token_file_a_claim_is_refused(tcp: Looping) -> None:
    token_path(tcp.host.exchange).unlink()
    with pytest.raises(NotConnectedError) as refused:
        rtmms.connect(tcp.host.exchange, claim="*")
    assert refused.value.code == "token"


def test_a_controller_that_starts_before_its_plant_finds_it(make_host: Callable[..., Host]) -> None:
    first = make_host()
    exchange = first.exchange
    first.server.close()  # and leaves a stale token, as a killed one would
    token_path(exchange).write_text("stale")
    result: list[Link] = []
    waiting = threading.Thread(target=lambda: result.append(rtmms.connect(exchange, claim="*", timeout_s=PATIENCE_S)))
    waiting.start()
    time.sleep(0.1)
    with Looping(make_host(exchange=exchange, token=None)):
        waiting.join(PATIENCE_S)
        with result[0] as link:
            assert next(link).step >= 0


def test_garbage_from_a_plant_is_noted_and_passed_over(make_host: Callable[..., Host]) -> None:
    host = make_host(token=None)
    with Looping(host) as running, rtmms.connect(host.exchange, claim="*") as link:
        next(link)
        peer = next(iter(host.server._peers.claimants))
        for frame in (b"\xc1", msgpack.packb({"type": "state"}), msgpack.packb({"type": "novelty", "x": 1})):
            running.errands.append(lambda frame=frame: host.server._port.transmit(peer, frame))
        link.command({})
        for _ in link:
            link.command({})
            if len(link.errors) == 2:
                break


def test_a_closed_link_reports_it(tcp: Looping) -> None:
    link = rtmms.connect(tcp.host.exchange, claim="*")
    link.close()
    link.close()
    assert list(link) == []
    assert link.ended == "the link is closed"
    with pytest.raises(rtmms.ModelError, match="closed"):
        link.command({})


class Recorder(rtmms.Controller):
    claim = ("left.*",)
    outputs = ("speed",)

    def __init__(self) -> None:
        self.log: list[Any] = []

    def start(self, plant: rtmms.PlantInfo) -> None:
        self.log.append(plant.granted)

    def update(self, state: rtmms.State) -> dict[str, float] | None:
        self.log.append(state.step)
        return {"left.back": 0.5} if len(self.log) % 2 else None

    def stop(self, reason: str) -> None:
        self.log.append(reason)


def test_a_controller_is_started_updated_and_stopped(tcp: Looping) -> None:
    from rtmms.wire.peer.running import run_controller

    controller = Recorder()
    ended: list[str] = []
    result: list[str] = []
    thread = threading.Thread(
        target=lambda: ended.append(run_controller(controller, tcp.host.exchange, log=result.append))
    )
    thread.start()
    tcp.wait(lambda: len(controller.log) > 20)
    assert tcp.host.server.admitted() == {"recorder"}
    tcp.end("enough")
    thread.join(PATIENCE_S)
    assert ended == ["the plant sent bye: enough"]
    assert controller.log[0] == ("left.front", "left.back")
    assert controller.log[-1] == ended[0]
    assert tcp.host.command[1] == 0.5
    assert result == ["update returned None, so its actuators have their last values (printed once)"]


class Reporting(rtmms.Controller):
    """Reports how many states it saw."""

    claim, metrics = ("left.*",), ("received",)
    received = 0

    def update(self, state: rtmms.State) -> dict[str, float]:
        self.received += 1
        return {}


def test_what_a_controller_reports_itself_is_in_the_report(tcp: Looping, monkeypatch: pytest.MonkeyPatch) -> None:
    from rtmms.wire.peer import running

    monkeypatch.setattr(running.Figures, "EACH_S", 0.02)
    thread = threading.Thread(target=lambda: running.run_controller(Reporting(), tcp.host.exchange))
    thread.start()
    tcp.wait(lambda: any(summary["figures"].get("received", 0) > 20 for summary in tcp.host.summaries))
    tcp.end("enough")
    thread.join(PATIENCE_S)


def test_the_last_figures_are_those_of_the_end(tcp: Looping, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent once at the beginning, and again when the plant sends bye."""
    from rtmms.wire.peer import running

    monkeypatch.setattr(running.Figures, "EACH_S", PATIENCE_S)
    controller = Reporting()
    thread = threading.Thread(target=lambda: running.run_controller(controller, tcp.host.exchange))
    thread.start()
    tcp.wait(lambda: controller.received > 20 and any(summary["figures"] for summary in tcp.host.summaries))
    assert tcp.host.summaries[0]["figures"]["received"] < 20
    tcp.end("enough")
    thread.join(PATIENCE_S)
    assert [final_report["figures"]["received"] for final_report in tcp.host.server.final_reports()] == [
        controller.received
    ]


WATCH = {
    "watched": True, "learned": True, "period_s": 0.02, "first_s": 0.004, "silences": [[0.001, 1, 0.25]],
    "losses": [0.5], "silences_count": 3, "losses_count": 1, "restarts_count": 2,
}  # fmt: skip


def test_the_report_has_the_silences_of_a_bridges_own_peer(tcp: Looping) -> None:
    """A silence that lasts ends with the run; others have their length, and figures do not replace them."""
    with rtmms.connect(tcp.host.exchange, name="board", claim="*") as link:
        next(iter(link))
        link.report_watch(WATCH | {"silences": [[0.001, 1, 0.25], [0.3, 300, None]]})
        link.report_metrics({"plans": 3})
        tcp.wait(lambda: any(summary["figures"] for summary in tcp.host.summaries))
        (peer,) = (item for item in tcp.host.server._peers.all if item.name == "board")
        result = tcp.host.server._peers.summary(peer)
        end_s = 1e-3 * (tcp.host.server._port.step + 1)
    assert (result["first_command_s"], result["losses"], result["restarts"]) == (0.004, [0.5], 2)
    assert result["silences"][0] == {"begin_s": 0.001, "begin_step": 1, "length_s": 0.25}
    assert result["silences"][1]["length_s"] <= max(0.0, end_s - 0.3)
    assert result["disconnected_s"] == 0.3
    assert result["watch"] == {
        "watched": True, "learned": True, "period_s": 0.02, "silences_count": 3, "losses_count": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"watched": 1}, {"learned": None}, {"period_s": "x"}, {"first_s": float("inf")}, {"silences": None},
        {"silences": [[0.0, 1]]}, {"silences": [[0.0, 1.5, None]]}, {"silences": [[0.0, 1, None]] * 65},
        {"losses": [float("nan")]}, {"losses": [0.0] * 65}, {"restarts_count": -1}, {"losses_count": 1.0},
    ],
)  # fmt: skip
def test_a_watch_that_is_none_is_refused_on_both_sides(wrong: dict[str, Any], host: Host, raw: Raw) -> None:
    raw.join(["*"])
    message = {"type": "metrics", "values": {"plans": 3}, "watch": WATCH | wrong}
    raw.exchange.send(msgpack.packb(message))
    host.until(lambda: raw.exchange.poll(0))
    answer = msgpack.unpackb(raw.exchange.recv())
    assert (answer["type"], answer["code"]) == ("error", "wrong_type")
    (peer,) = host.server._peers.all
    assert (peer.figures, peer.watch) == ({}, None), "a message is taken whole or not at all"
    with pytest.raises(Refusal, match="watch"):
        read_watch(message)


def test_the_end_does_not_wait_for_peers_that_report_no_figures_or_are_gone(
    host: Host, make_raw: Callable[..., Raw]
) -> None:
    _, silent, gone = (make_raw(host).join([claim], claim[:5]) for claim in ("left.front", "left.back", "right.*"))
    for peer, message in ((silent, {"plans": 3}), (gone, {"plans": 4})):
        peer.exchange.send(msgpack.packb({"type": "metrics", "values": message}))
    host.until(lambda: sum(bool(summary["figures"]) for summary in host.summaries) == 2)
    silent.exchange.send(msgpack.packb({"type": "metrics", "values": {"plans": [5]}}))  # none: the ones before count
    silent.exchange.send(msgpack.packb({"type": "request", "id": 1, "op": "stop", "args": {}}))
    gone.exchange.close(0)
    host.server.close()
    assert [final_report["figures"] for final_report in host.server.final_reports()] == [{}, {"plans": 3}, {"plans": 4}]
    assert host.server.requests() == []


@pytest.mark.parametrize("claim", [[], ["left.*"]])
def test_a_process_of_the_run_has_time_to_read_the_bye(
    tcp: Looping, monkeypatch: pytest.MonkeyPatch, claim: list[str]
) -> None:
    """It reads nothing for a while: longer than the plant's farewell to peers that it did not start."""
    from rtmms.wire.plant import server

    monkeypatch.setattr(server, "_BYE_NS", int(PATIENCE_S * 1e9))
    with rtmms.connect(tcp.host.exchange, name="slow", claim=claim) as link:
        next(link)
        closing = threading.Thread(target=tcp.end, args=("the run ended", {"slow"}))
        closing.start()
        time.sleep(10 * server._FAREWELL_S)
        assert closing.is_alive()
        for _ in link:
            pass
        assert link.ended == "the plant sent bye: the run ended"
    closing.join(PATIENCE_S)
    assert not closing.is_alive()


@pytest.mark.full
def test_a_controller_whose_plant_dies_ends_all_the_same() -> None:
    from rtmms.wire.peer import running

    controller, ended = Reporting(), list[str]()
    process, place = plant_process()
    thread = threading.Thread(target=lambda: ended.append(running.run_controller(controller, place)))
    thread.start()
    end = time.monotonic() + PATIENCE_S
    while controller.received < 5 and time.monotonic() < end:
        time.sleep(1e-3)
    process.kill()
    process.communicate()
    thread.join(PATIENCE_S)
    assert ended
    assert "gone" in ended[0]


def test_figures_of_another_kind_are_the_controllers_mistake(tcp: Looping) -> None:
    with (
        rtmms.connect(tcp.host.exchange, name="mine") as link,
        pytest.raises(rtmms.ModelError, match=r"metrics: .*, got 'x'"),
    ):
        link.report_metrics({"x": [1.0]})


def test_a_raw_peer_and_a_link_share_a_plant(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    peer = make_raw(host).join(["right.*"])
    with Looping(host), rtmms.connect(host.exchange, claim="left.*", token="secret") as link:
        for state in link:
            link.command({"left.front": 0.1})
            peer.command({"right.front": 0.2}, state.step + 1)
            if state["position"][2] == 0.2:
                break
    assert host.rejected == {}


def test_telemetry_at_a_chosen_rate(make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that each step moves by 1 ms."""
    apart = {}
    for hertz in (20.0, 1e6):
        with (
            monkeypatch.context() as within,
            Looping(make_host(token=None, telemetry_hz=hertz)) as running,
            rtmms.connect(running.host.exchange) as link,
        ):
            assert link.plant.telemetry_hz == hertz
            host = running.host
            within.setattr("rtmms.wire.plant.telemetry.monotonic_ns", lambda host=host: host.step * 1_000_000)
            running.errands.append(lambda host=host: setattr(host.server._telemetry, "_due_ns", 0))
            before = host.step
            steps = [next(state.step for state in link if state.step > before + 100) for _ in range(10)]
        apart[hertz] = min(later - earlier for earlier, later in pairwise(steps))
    assert apart[20.0] >= 50
    assert apart[1e6] < 50


def test_in_lockstep_each_state_is_answered_in_its_turn_where_the_answer_is_for_a_later_step(
    make_host: Callable[..., Host],
) -> None:
    """The plant goes on for `delay` steps: two states lie there for one that is slow, and it waits for both answers."""
    with (
        Looping(make_host(token=None, mode="lockstep"), pause_s=0.0) as running,
        rtmms.connect(running.host.exchange, claim="*", every=2, delay=4) as link,
    ):
        steps: list[int] = []
        for state in link:
            if len(steps) < 2:
                time.sleep(0.05)
            steps.append(state.step)
            link.command({"left.front": 0.25})
            if len(steps) == 20:
                break
    assert steps == list(range(steps[0], steps[0] + 40, 2))


def test_a_controller_without_an_actuator_returns_no_commands(tcp: Looping) -> None:
    class Idle(rtmms.Controller):
        claim = ()
        looks = 0

        def update(self, state: rtmms.State) -> dict[str, float]:
            self.looks += 1
            return {} if self.looks < 5 else {"left.front": 0.1}

    from rtmms.wire.peer.running import run_controller

    with pytest.raises(rtmms.ModelError, match=r"controller Idle: update returned commands.*claim some"):
        run_controller(Idle(), tcp.host.exchange)
