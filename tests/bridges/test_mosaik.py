"""Robots as simulators of mosaik itself: in its process, in one of their own, and a plant that runs."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mosaik", reason="needs mosaik")

import rtmms
from rtmms.plant.protocol import Channel
from rtmms_bridges.mosaik import Mosaik
from tests.bridges.by_hand import opened
from tests.bridges.harness import ROOT, plant_info, wait
from tests.bridges.mosaik_peers import scenario
from tests.bridges.test_helics import sailing
from tests.ports import reserve_ports

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")]

IN_PROCESS = {"python": "rtmms_bridges.federation.simulator:Robots"}
REMOTE = {"cmd": "%(python)s -m rtmms_bridges.federation.simulator %(addr)s"}
SPEED = [0.2, -0.4, 0.6, 0.1]
PROPELLER = "propeller.command"
TURNS = [100.0 * item for item in SPEED]


def by_hand(held: list[tuple[int, float]], steps: int) -> dict[int, list[float]]:
    """Positions of a torpedo whose thruster has each value from a step on."""
    plant: Any = rtmms.load("torpedo", dt=1e-3)
    names = [channel.name for channel in plant.actuators]
    command = np.array([channel.neutral for channel in plant.actuators], dtype=np.float64)
    result, changes = {}, dict(held)
    for step in range(steps + 1):
        command[names.index(PROPELLER)] = changes.get(step, command[names.index(PROPELLER)])
        result[step] = plant.observe()["position"].tolist()
        plant.step(command)
    return result


@pytest.mark.parametrize("robots", [IN_PROCESS, REMOTE], ids=["in process", "remote"])
def test_values_come_at_mosaiks_times(robots: dict[str, str]) -> None:
    """An output at t is the state at t, an input given at t holds from t on."""
    parts = {"robot": "torpedo", "step_s": 0.02, "dt": 1e-3}
    observed = scenario(robots, 40, 0.01, (PROPELLER,), "position", arguments=parts, every=10, values=TURNS)
    truth = by_hand([(100 * k, value) for k, value in enumerate(TURNS)], 400)
    assert [time for time, _ in observed] == [0, 10, 20, 30]
    for time, value in observed[1:]:  # the link is shifted by one of the pilot's looks: the last output before
        assert value == truth[10 * (time - 2)]


def test_a_hybrid_robot_steps_when_it_receives_something_new() -> None:
    parts = {"robot": "torpedo", "step_s": 0.05, "dt": 1e-3, "kind": "hybrid"}
    at = [3, 17, 31]
    observed = scenario(IN_PROCESS, 50, 0.001, (PROPELLER,), "position", arguments=parts, at=at, values=TURNS)
    truth = by_hand(list(zip(at, TURNS, strict=False)), 60)
    result = dict(observed)
    assert result[17] == truth[3]
    assert result[31] == truth[17]


def test_its_commands_replay_without_mosaik(tmp_path: Path) -> None:
    from rtmms.record.commands import load, replay

    parts = {"robot": "torpedo", "step_s": 0.01, "dt": 1e-3, "trace": str(tmp_path), "duration_s": 1.0}
    scenario(IN_PROCESS, 40, 0.01, (PROPELLER,), "position", arguments=parts, every=10, values=TURNS)
    recorded = load(tmp_path / "torpedo_0.npz")
    _, difference = replay(recorded)
    assert difference is None
    assert len(recorded.command) == 390
    assert np.ptp(recorded.command) > 0.5


def test_ten_thousand_steps_without_drift(tmp_path: Path) -> None:
    from rtmms.record.commands import load

    parts = {"robot": "torpedo", "step_s": 0.01, "dt": 1e-3, "trace": str(tmp_path), "duration_s": 101.0}
    values = [k / 10_001 for k in range(10_001)]
    observed = scenario(IN_PROCESS, 10_001, 0.01, (PROPELLER,), "position", arguments=parts, every=1, values=values)
    assert [time for time, _ in observed] == list(range(10_001))
    command = load(tmp_path / "torpedo_0.npz").command
    assert len(command) == 100_000
    moved = command[:, np.ptp(command, axis=0).argmax()]
    assert np.array_equal(moved, np.repeat(values[:10_000], 10))


# --- a plant that runs ------------------------------------------------------------------------------------------------


def mosaik_bridge(**arguments: Any) -> Mosaik:
    port = reserve_ports()
    values: dict[str, Any] = {
        "claim": ("*",),
        "step_s": 0.01,
        "stall_s": 20.0,
        "outputs": ("depth", "position"),
    } | arguments
    return Mosaik(port=port, **values)


def listens(bridge: Mosaik) -> bool:
    """It is open, and takes a connection now."""
    return hasattr(bridge, "_listening") and bridge._listening.is_set()


def connect(bridge: Mosaik) -> dict[str, str]:
    return {"connect": f"127.0.0.1:{bridge.port}"}


@pytest.mark.parametrize("kind", ["time-based", "hybrid"])
def test_a_plant_in_lockstep_goes_as_mosaik_states(kind: str) -> None:
    bridge = mosaik_bridge(kind=kind)
    with sailing(bridge) as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        observed = scenario(connect(bridge), 40, 0.01, ("thrust",), "position", every=10, values=SPEED)
        run._thread.join(30.0)
        assert not run._thread.is_alive(), "the run ends with mosaik's"
    commands = [value for value, _ in run.plant.commands]
    assert commands[:390] == [value for value in SPEED for _ in range(100)][:390]
    for time, value in observed[1:]:
        steps = 10 * (time - 1)
        assert value[0] == pytest.approx(sum(commands[:steps]) * 1e-3, abs=1e-12)
    assert run.bridged.counts["grants"] == 40


def test_in_real_time_a_mosaik_that_stalls_or_dies_is_named_and_the_plant_goes_on() -> None:
    bridge = mosaik_bridge()
    with sailing(bridge, "realtime") as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        other = subprocess.Popen([sys.executable, "-m", "tests.bridges.mosaik_peers", f"127.0.0.1:{bridge.port}", "30"],
                                 cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "hangs\n"
            bridge.stall_s = 0.4  # from here on: a busy machine stalls as long before
            wait(lambda: run.drove(1.5))
            wait(lambda: any("late: its last step was at t = 0.3 s, the plant is at t = " in line or
                             "late: its last step was at t = 0.29 s" in line
                             for line in run.bridged.messages))  # fmt: skip
            wait(lambda: run.command == (0.0, 0.0))
            steps = len(run.plant.commands)
            other.kill()
            wait(lambda: any("mosaik has left at t = " in line for line in run.bridged.messages))
            wait(lambda: len(run.plant.commands) > steps + 200)
        finally:
            other.kill()
            other.communicate()
    assert run.bridged.counts["stalls"] == 1


def test_one_that_leaves_goes_on_alone() -> None:
    bridge = mosaik_bridge(stall_s=0.4, on_stall="leave")
    with sailing(bridge) as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        other = subprocess.Popen([sys.executable, "-m", "tests.bridges.mosaik_peers", f"127.0.0.1:{bridge.port}", "30"],
                                 cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            wait(lambda: any("the plant continues without" in line for line in run.bridged.messages))
            steps = len(run.plant.commands)
            wait(lambda: len(run.plant.commands) > steps + 500)
        finally:
            other.kill()
            other.wait(10)


def test_what_is_not_mosaik_is_refused() -> None:
    bridge = mosaik_bridge()
    with sailing(bridge, "realtime") as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        for k, junk in enumerate(
            (b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", 5) + b"hello", struct.pack(">I", 2) + b"[]"), 1
        ):
            wait(lambda junk=junk: _text(bridge.port, junk))
            wait(lambda k=k: run.bridged.counts["refused"] >= k)
        assert any("does not send the protocol of mosaik, version 3" in line for line in run.bridged.messages)


class Stranger:
    """Speaks mosaik's protocol by hand."""

    def __init__(self, port: int) -> None:
        def met() -> socket.socket | None:
            try:
                return socket.create_connection(("127.0.0.1", port), 60.0)
            except OSError:
                return None

        self.socket: socket.socket = wait(met)
        self.sent = 0

    def send(self, *call: Any) -> None:
        data = json.dumps([0, self.sent, list(call)]).encode()
        self.sent += 1
        self.socket.sendall(struct.pack(">I", len(data)) + data)

    def ask(self, *call: Any) -> tuple[int, Any]:
        """Whether it succeeded (1) or failed (2), and the answer."""
        self.send(*call)
        (size,) = struct.unpack(">I", self._read(4))
        kind, _, content = json.loads(self._read(size))
        return kind, content

    def begin(self) -> None:
        assert self.ask("init", ["r"], {"time_resolution": 0.01})[0] == 1
        assert self.ask("create", [1, "Robot"], {})[0] == 1

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            assert piece, "the connection to the plant is closed"
            data += piece
        return data


def test_a_step_ends_with_the_connection_and_others_may_come() -> None:
    """In lockstep a long step is interrupted when its peer leaves: the plant waits, and the next mosaik drives it."""
    bridge = mosaik_bridge(outputs=("position",))
    with sailing(bridge) as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        item = Stranger(bridge.port)
        item.begin()
        kind, message = item.ask("step", [10**12, {"swimmer": {"thrust": {"a": 1.0}}}, 10**13], {})
        assert (kind, message[0]) == (2, "ModelError")
        assert "expected at most 3600 s after the last step" in message[1]
        assert item.ask("step", [0, {}, 10**13], {})[0] == 1
        item.send("step", [300_000, {}, 10**13], {})  # 3,000 s: 3,000,000 steps
        wait(lambda: len(run.plant.commands) > 50)
        item.socket.close()
        wait(lambda: any("mosaik has left at t = " in line for line in run.bridged.messages))
        steps = len(run.plant.commands)
        other = Stranger(bridge.port)
        other.begin()
        for time in range(0, 50, 10):
            inputs = {"swimmer": {"thrust": {"a": 0.5}}}
            assert other.ask("step", [time, inputs, 10**13], {})[0] == 1
        assert len(run.plant.commands) <= steps + 500, "nothing is left of the first one's steps"
        assert (0.5, 0.0) in [value[:2] for value in run.plant.commands[steps:]]
        other.send("stop", [], {})
        run._thread.join(30.0)
        assert not run._thread.is_alive(), "a stop ends the run"


def test_in_real_time_a_step_ends_with_the_connection_too() -> None:
    bridge = mosaik_bridge(outputs=("position",))
    with sailing(bridge, "realtime") as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        for _ in range(3):
            item = Stranger(bridge.port)
            try:
                item.begin()
            except ConnectionError as fault:
                pytest.fail(f"{fault}: {run.bridged.messages}")
            item.send("step", [300_000, {}, 10**13], {})
            item.socket.close()
        other = Stranger(bridge.port)
        other.begin()
        assert other.ask("step", [1, {}, 10**13], {})[0] == 1
        other.socket.close()
        assert run.bridged.fault is None


def test_a_message_has_a_bounded_length_and_requests_a_bounded_number() -> None:
    bridge = mosaik_bridge()
    with sailing(bridge, "realtime") as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        before = memory_mib()
        item = Stranger(bridge.port)
        piece = struct.pack(">I", 0xFFFFFFFF) + b" " * (1 << 20)
        with contextlib.suppress(OSError):
            for _ in range(200):
                item.socket.sendall(piece)
        wait(lambda: run.bridged.counts["refused"] >= 1)
        two = Stranger(bridge.port)
        two.begin()
        two.send("step", [300_000, {}, 10**13], {})
        with contextlib.suppress(OSError):
            for _ in range(2000):
                two.send("step", [300_000, {"x": "y" * 50_000}, 10**13], {})
        wait(lambda: run.bridged.counts["refused"] >= 2)
        assert memory_mib() - before < 64.0


def test_a_connection_that_sends_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmms_bridges.mosaik._MAX_FIRST_S", 0.2)
    bridge = mosaik_bridge()
    with sailing(bridge, "realtime") as run:  # type: ignore[arg-type]
        wait(lambda: listens(bridge))
        silent = Stranger(bridge.port)
        assert silent.socket.recv(1) == b""
        wait(lambda: run.bridged.counts["refused"] >= 1)
        monkeypatch.undo()
        other = Stranger(bridge.port)
        other.begin()
        other.socket.close()


def memory_mib() -> float:
    """Resident memory of this process at most so far."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _text(port: int, junk: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0) as peer:
            peer.sendall(junk)
    except OSError:
        return False
    return True


# --- what is wrong is reported ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"robot": "torpedoo"}, "unknown robot 'torpedoo'; did you mean torpedo"),
        ({"kind": "hybridd"}, "unknown kind of a simulator 'hybridd'; did you mean hybrid"),
        ({"step_s": 0.0015}, "step_s: expected a multiple of the plant's step"),
        ({"step_s": 0.025}, "expected a multiple of mosaik's time resolution of 0.01 s, got 0.025 s"),
        ({"trace": "x"}, "trace: expected duration_s"),
        ({"masss_kg": 1.0}, "masss_kg"),
    ],
)
def test_words_of_a_simulator_that_make_no_sense(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(rtmms.ModelError) as fault:
        scenario(IN_PROCESS, 10, 0.01, (PROPELLER,), "position", arguments={"robot": "torpedo"} | parts, values=[0.0])
    assert message in str(fault.value)


def test_two_who_drive_one_and_numbers_that_are_none() -> None:
    parts = {"robot": "torpedo"}
    with pytest.raises(rtmms.ModelError, match=r"propeller\.command: expected one source, got Pilot-0"):
        scenario(IN_PROCESS, 10, 0.01, (PROPELLER,), "position", arguments=parts, pilots=2, values=[0.0])
    with pytest.raises(rtmms.ModelError, match=r"propeller\.command: expected a finite number, got nan from Pilot-0"):
        scenario(IN_PROCESS, 10, 0.01, (PROPELLER,), "position", arguments=parts, values=[math.nan])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate_hz": 5.0}, "step_s"),
    ],
)
def test_words_of_the_bridge_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(rtmms.ModelError, match=message):
        Mosaik(**arguments)


def test_what_does_not_fit_the_plant_or_the_machine() -> None:
    info = plant_info(Channel("speed", "m/s"))
    with pytest.raises(rtmms.ModelError, match="step_s: expected a multiple of the plant's step"):
        opened(Mosaik(step_s=0.0105), info)
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        with pytest.raises(rtmms.RtmmsError, match=f"cannot listen on TCP 127.0.0.1:{port}"):
            opened(Mosaik(port=port), info)


def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "mosaik"))
    import scenario as example

    observed = example.main(2.0, chains=6)
    assert len(observed) == 20
    assert observed[1.9] != [0.0, 0.0, 0.0]
