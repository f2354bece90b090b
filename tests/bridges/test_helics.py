"""Robots as federates of HELICS: real brokers, and partners written against HELICS alone."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("helics", reason="needs helics: pip install 'rtmms[helics]'")
pytest.importorskip("helics_apps", reason="needs helics-apps")

import rtmms
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms_bridges.federation.federate import Federate
from rtmms_bridges.helics import Helics, parse
from tests.bridges.by_hand import opened
from tests.bridges.harness import plant_info, wait
from tests.bridges.helics_peers import Broker, Pilot, partner
from tests.bridges.swimmer import Sailing
from tests.ports import reserve_ports

pytestmark = pytest.mark.full

OUTPUTS = ("position", "velocity")


@contextmanager
def sailing(bridge: Helics, mode: str = "lockstep", name: str = "robot") -> Iterator[Sailing]:
    """A swimmer and its federate. The test ends the federation before."""
    run = Sailing(bridge, mode)
    run.bridged.runner._name = name
    with ExitStack() as stack:
        run._thread.start()
        run.bridged.start()
        stack.callback(_end, run)
        yield run


def _end(run: Sailing) -> None:
    run._over.set()
    run.loop.end("stop")
    run._thread.join(60.0)
    run.bridged.join()


def helics(broker: Broker, federate: str, **arguments: Any) -> Helics:
    arguments = {"claim": ("*",), "outputs": OUTPUTS, "period_s": 0.05, "stall_s": 20.0} | arguments
    return Helics(federate=federate, broker=broker.address, **arguments)


def test_two_robots_on_two_brokers_and_a_pilot_of_helics_alone() -> None:
    """What the pilot publishes at t holds for frames that begin after t, what it reads was published before t."""
    with Broker(3) as root, Broker(1, root) as left, Broker(1, root) as right:
        item, two = helics(left, "one", layout="numbers"), helics(right, "two", commands="endpoint")
        count = 12
        with sailing(item) as first, sailing(two) as second:
            pilot = Pilot(root, 0.1, count, {"pilot/one": ("one/thrust", "cm/s")},
                          {"one/position[0]": "cm", "two/velocity": "m/s"}, lambda k: 10.0 * (k + 1))  # fmt: skip
            pilot.messages = {
                3: ("two/command", b'{"values": {"thrust": 0.5}}'),
                4: ("two/command", b'{"values": {"x": 1}}'),
            }
            pilot.join()
            assert pilot.fault is None
            wait(lambda: len(first.plant.commands) > 50 * 2 * count and len(second.plant.commands) > 50 * 2 * count)
        thrust = [value for value, _ in first.plant.commands[: 50 * 2 * count]]
        for frame in range(2 * count):
            published = (frame - 1) // 2  # the pilot's last time that is before frame * 0.05 s
            expected = 0.1 * (published + 1) if frame else 0.0
            assert thrust[50 * frame : 50 * (frame + 1)] == pytest.approx([expected] * 50), frame
        result = [value for value, _ in second.plant.commands]
        assert result[349:352] == [0.0, 0.5, 0.5]  # sent at 0.3 s: from the frame at 0.35 s on
    assert [round(time / 0.1) for time in pilot.times] == list(range(count))
    for k in range(1, count):
        x = sum(thrust[: 50 * (2 * k - 1)]) * 1e-3 * 100.0  # cm, at the last frame before the pilot's time
        assert pilot.received[k]["one/position[0]"][0] == pytest.approx(x, abs=1e-9)
    assert pilot.received[4]["two/velocity"] == [0.0] * 3
    assert pilot.received[5]["two/velocity"][0] == 0.5
    assert second.bridged.counts.reasons() == {"unknown_actuator": 1}
    assert any("joined a federation with" in line for line in first.bridged.messages)


def test_ten_thousand_frames_without_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _noted(monkeypatch)
    with Broker(2) as broker, sailing(helics(broker, "one", period_s=0.01)):
        pilot = Pilot(broker, 0.01, 10_001, {"pilot/one": ("one/thrust", "m/s")}, {}, lambda k: 1e-6 * k)
        for k in range(1, 11):
            wait(lambda k=k: len(rows) >= 1000 * k)
        pilot.join()
        assert pilot.fault is None
    for k, (step, time_s, granted_s, _, thrust, _) in enumerate(rows[:10_000]):
        assert step == 10 * k
        assert time_s == k / 100
        assert round(granted_s * 1e9) == 10_000_000 * k
        assert thrust == (1e-6 * (k - 1) if k else 0.0)


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Rows of all notes that the loop takes."""
    from rtmms.loop.loop import Loop

    rows: list[list[float]] = []

    def note(self: Loop, values: Any) -> None:
        width, flat = len(values["helics.columns"]), values["helics.grants"]
        rows.extend(flat[k : k + width] for k in range(0, len(flat), width))

    monkeypatch.setattr(Loop, "note", note)
    return rows


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_partner_that_is_killed_or_stopped_is_named_and_the_plant_goes_on(how: signal.Signals) -> None:
    with Broker(2) as broker:
        wind = partner(broker, "one/thrust", "m/s")
        try:
            with sailing(helics(broker, "one", period_s=0.01, stall_s=0.4), "realtime") as run:
                wait(lambda: run.drove(1.5))
                wind.send_signal(how)
                silence = wait(lambda: re.findall(r"'wind' did not answer for (\S+) s", str(run.bridged.messages)))
                assert all(float(item) >= 0.4 for item in silence)
                wait(lambda: run.command == (0.0, 0.0))  # neutral
                steps = len(run.plant.commands)
                wait(lambda: len(run.plant.commands) > steps + 200)
                if how == signal.SIGSTOP:  # after a kill, HELICS may find the lost connection first, and grant
                    wait(lambda: any("late with the grant of t = " in line for line in run.bridged.messages))
                    assert run.bridged.counts["stalls"] >= 1
                    wind.send_signal(signal.SIGCONT)
                    wait(lambda: run.command[0] == 1.5)
                    wait(lambda: any("the federation continues" in line for line in run.bridged.messages))
        finally:
            wind.kill()
            wind.wait(10)


def test_a_late_federation_costs_frames_not_steps() -> None:
    """The pilot stands still for a while: the plant's next frame is the one that is due then."""
    with Broker(2) as broker, sailing(helics(broker, "one", period_s=0.01, stall_s=0.2), "realtime") as run:
        pilot = Pilot(broker, 0.01, 100_000, {"pilot/one": ("one/thrust", "m/s")}, {}, lambda k: 1.0)
        wait(lambda: run.drove(1.0))
        pilot.hold.clear()
        wait(lambda: any("'pilot' is at t = " in line for line in run.bridged.messages))
        assert run.bridged.counts["stalls"] >= 1
        steps = len(run.plant.commands)
        wait(lambda: len(run.plant.commands) > steps + 500)
        sent, index = run.bridged.counts["sent"], run.bridged.bridge._frames.index  # type: ignore[attr-defined]
        pilot.hold.set()
        wait(lambda: run.bridged.counts["sent"] > sent + 5)
        assert run.bridged.bridge._frames.index > index + 20  # type: ignore[attr-defined]
        pilot.count = 0


@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
def test_who_leaves_a_federation_that_stands_goes_on_alone(mode: str) -> None:
    with Broker(2) as broker:
        wind = partner(broker, "one/thrust", "m/s")
        try:
            bridge = helics(broker, "one", on_stall="leave")
            with sailing(bridge, mode) as run:
                wait(lambda: run.drove(1.5))
                bridge.stall_s = 0.4  # from here on: a busy machine stalls as long at the start
                wind.kill()
                wait(lambda: any("the plant continues without" in line for line in run.bridged.messages))
                wait(lambda: run.command == (0.0, 0.0))
                steps = len(run.plant.commands)
                wait(lambda: len(run.plant.commands) > steps + 200)
                assert run.command == (0.0, 0.0)
        finally:
            wind.kill()
            wind.wait(10)


def test_a_broker_that_goes_does_not_stop_the_plant() -> None:
    with Broker(2) as broker, sailing(bridge := helics(broker, "one", on_stall="leave"), "realtime") as run:
        pilot = Pilot(broker, 0.05, 100_000, {"pilot/one": ("one/thrust", "m/s")}, {}, lambda k: 1.0)
        wait(lambda: run.drove(1.0))
        bridge.stall_s = 0.4
        broker.kill()
        steps = len(run.plant.commands)
        wait(lambda: len(run.plant.commands) > steps + 500)
        pilot.count = 0


def test_a_real_time_federate_is_granted_by_the_clock() -> None:
    """The pilot never asks for more time; HELICS grants all the same."""
    bridge_words = {"realtime": True, "rt_lag_s": 0.02, "rt_lead_s": 0.02, "period_s": 0.05}
    with Broker(2) as broker, sailing(helics(broker, "one", **bridge_words), "realtime") as run:
        pilot = Pilot(broker, 0.05, 3, {"pilot/one": ("one/thrust", "m/s")}, {}, lambda k: 1.0)
        pilot.hold.clear()
        wait(lambda: run.bridged.counts["grants"] > 10)
        pilot.join()


# --- what is wrong is reported ----------------------------------------------------------------------------------------


def fault_of(bridge: Helics) -> str:
    with sailing(bridge) as run:
        wait(lambda: run.bridged.fault is not None)
    return str(run.bridged.fault)


def test_no_broker_and_something_else_at_its_port() -> None:
    port = reserve_ports()
    message = fault_of(Helics(claim=("*",), broker=f"127.0.0.1:{port}", patience_s=0.5))
    assert (
        f"no federation began within 0.5 s with a core of type zmq; start a HELICS 3 broker at 127.0.0.1:{port}"
        in message
    )
    with socket.create_server(("127.0.0.1", port)):
        message = fault_of(Helics(claim=("*",), broker=f"127.0.0.1:{port}", core="tcp", patience_s=0.5))
    assert "no federation began within 0.5 s with a core of type tcp" in message


def test_a_broker_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Federate, "_asked", lambda self, target, what: "2.8.1 (2022-06-09)")
    with Broker(1) as broker:
        result = fault_of(helics(broker, "one"))
    assert result.startswith("helics: the broker has HELICS 2.8.1, expected 3.x as here (3.")


def test_units_that_do_not_convert() -> None:
    with Broker(2) as broker, sailing(helics(broker, "one")) as run:
        Pilot(broker, 0.1, 3, {"pilot/one": ("one/thrust", "kg")}, {}, lambda k: 1.0)
        wait(lambda: run.bridged.fault is not None)
    assert "kg is not convertible to m/s" in str(run.bridged.fault)


def test_two_federates_of_one_name() -> None:
    with Broker(2) as broker:
        pilot = Pilot(broker, 0.1, 3, {}, {}, lambda k: 1.0)
        message = fault_of(helics(broker, "pilot"))
        assert message.startswith("helics: "), message
        assert "pilot" in message or "name" in message, message
        assert pilot.times == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate_hz": 10.0}, "period_s"),
        ({"federate": "{who}"}, "federate: expected text with no placeholders other than {robot} and {name}"),
        ({"broker": "host:99999"}, "broker: expected HOST, HOST:PORT or a broker's name, got 'host:99999'"),
    ],
)
def test_words_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(rtmms.ModelError) as fault:
        Helics(**arguments)
    assert message in str(fault.value)


def test_what_does_not_fit_the_plant() -> None:
    info = plant_info(Channel("speed", "m/s"), actuators=(Channel("thrust", "N"),))
    with pytest.raises(
        rtmms.ModelError, match=r"period_s: expected a multiple of the plant's step of 0\.001 s, got 0\.0"
    ):
        opened(Helics(period_s=0.0015), info)
    with pytest.raises(rtmms.ModelError, match="did you mean thrust"):
        opened(Helics(subscribe={"pilot/x": "thrusst"}), info)


def test_what_the_endpoint_takes() -> None:
    assert parse(b'{"values": {"a": 1}}') == {"a": 1.0}
    for wrong in (b"", b"[]", b'{"values": {"a": NaN}}', b"\xff"):
        with pytest.raises(Refusal):
            parse(wrong)


# --- as users start it ------------------------------------------------------------------------------------------------


def test_helics_run_starts_a_robot_and_the_pilot_and_the_log_replays_without_a_broker(tmp_path: Path) -> None:
    import subprocess

    from tests.bridges.harness import ROOT

    python, port = sys.executable, reserve_ports(40)  # the broker takes some of the ports that follow
    tool = Path(python).with_name("rtmms")
    bridge = f"helics:claim=*,period_s=0.01,outputs=position,broker=127.0.0.1:{port}"
    arguments = "--mode lockstep --duration 1 --set chains=6 --controller none --log fed.mcap"
    run = f"{tool} run manta {arguments} --bridge {bridge}"
    (tmp_path / "pilot.py").write_text(
        f"import runpy\nrunpy.run_path({str(ROOT / 'examples' / 'helics' / 'pilot.py')!r})['main']("
        f"'manta', 1.0, '--broker_address=127.0.0.1 --brokerport={port}')\n"
    )
    pilot = f"{python} pilot.py"
    runner = {
        "name": "pool",
        "broker": False,
        "federates": [
            {"name": name, "exec": command, "host": "localhost", "directory": str(tmp_path)}
            for name, command in (
                ("broker", f"{Path(python).with_name('helics_broker')} -f2 --local_port={port}"),
                ("manta", run), ("pilot", pilot),
            )
        ],
    }  # fmt: skip
    (tmp_path / "runner.json").write_text(json.dumps(runner))
    helics_cli = Path(python).with_name("helics")
    arguments = [str(helics_cli), "run", f"--path={tmp_path / 'runner.json'}"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    check = subprocess.run([str(tool), "replay", "fed.mcap", "--check"], cwd=tmp_path, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
    from rtmms.record.log import open_log

    notes = [note for row in open_log(tmp_path / "fed.mcap").rows() for note in getattr(row, "notes", ())]
    flat = [number for note in notes for number in note["helics.grants"]]
    width = len(notes[0]["helics.columns"])
    assert flat[::width] == [10.0 * k for k in range(len(flat) // width)]
    assert any(flat[width * k + 4] for k in range(20))
