"""Real peers that are stopped, killed, started again, slow, or whose line goes: the report has the times, and no step
with an old value counts as applied."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from tests.bridges.harness import ROOT
from tests.cli.shell import finish, start
from tests.ports import reserve_ports

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.name != "posix", reason="signals stop and continue the peers"),
]

PERIOD_S = 0.25
LAG_S = 0.05
"""s: what the test knows of the plant's time comes by telemetry, a hundred times a second."""
READY_S = 150.0
KINDS = ("udp", "serial", "can", "mqtt", "zenoh", "nmea", "mavlink")
CAN_GROUP = "239.74.163.11"
DBC = """VERSION ""
BU_: Robot Peer
BO_ 256 State: 8 Robot
 SG_ x : 0|64@1- (1,0) [0|0] "m" Peer
BO_ 257 Answer: 8 Peer
 SG_ a : 0|64@1- (1,0) [0|0] "rad" Robot
SIG_VALTYPE_ 256 x : 2;
SIG_VALTYPE_ 257 a : 2;
"""


class Setting:
    """The option of a bridge, and the place that its peer gets.

    take_away  what pulls the cable: closes the device or ends the broker; None where there is nothing to pull
    """

    def __init__(self, option: str, place: str, take_away: Callable[[], None] | None = None, fds: Any = ()) -> None:
        self.option, self.place, self.take_away, self.fds = option, place, take_away, tuple(fds)


def udp(folder: Path) -> Iterator[Setting]:
    port = reserve_ports(2)
    yield Setting(f"udp:claim=left.front,port={port},bind_port={port + 1},rate_hz=20", str(port + 1))


def nmea(folder: Path) -> Iterator[Setting]:
    _needs("pynmea2")
    port = reserve_ports(2)
    yield Setting(
        f"nmea:to=udp://127.0.0.1:{port},listen=udp://127.0.0.1:{port + 1},sentences=GGA,"
        "set_points=PRTMS=thrust,channels=PRTMS.thrust:left.front", str(port + 1),
    )  # fmt: skip


def mavlink(folder: Path) -> Iterator[Setting]:
    _needs("pymavlink")
    port = reserve_ports()
    yield Setting(
        f"mavlink:stations=127.0.0.1:{port},channels=1:left.front:1,armed=true,peer_period_s={PERIOD_S}", str(port)
    )


def serial(folder: Path) -> Iterator[Setting]:
    _needs("serial")
    master, slave = os.openpty()
    tty.setraw(master)
    device = folder / "line"
    device.symlink_to(os.ttyname(slave))
    open_ends = [master, slave]

    def pull() -> None:
        while open_ends:
            os.close(open_ends.pop())

    try:
        yield Setting(
            f"serial:device={device},claim=left.front,command_fields=left.front:f64,state_fields=position[0]:f64,"
            "rate_hz=20", str(master), pull, [master],
        )  # fmt: skip
    finally:
        pull()


def can(folder: Path) -> Iterator[Setting]:
    _needs("can", "cantools")
    import can as library

    port = reserve_ports()
    try:
        with library.Bus(interface="udp_multicast", channel=CAN_GROUP, port=port, hop_limit=0):
            pass
    except (OSError, library.CanError, ImportError) as fault:
        pytest.skip(f"no multicast here: {fault}")
    (folder / "bench.dbc").write_text(DBC)
    yield Setting(
        f"can:interface=udp_multicast,channel={CAN_GROUP},options=port={port},dbc={folder / 'bench.dbc'},"
        "cycle_ms=50,signals=State.x=position[0],channels=Answer.a:left.front", f"{CAN_GROUP}:{port}",
    )  # fmt: skip


def mqtt(folder: Path) -> Iterator[Setting]:
    _needs("paho.mqtt")
    from tests.bridges.broker import MOSQUITTO, Broker

    if MOSQUITTO is None:
        pytest.skip("no mosquitto here")
    with Broker(folder) as broker:
        yield Setting(
            f"mqtt:claim=left.front,port={broker.port},topic=bench,rate_hz=10,peer_period_s={PERIOD_S}",
            str(broker.port), broker.stop,
        )  # fmt: skip


def zenoh(folder: Path) -> Iterator[Setting]:
    _needs("zenoh")
    port = reserve_ports()
    yield Setting(
        f"zenoh:claim=left.front,prefix=bench,listen=tcp/127.0.0.1:{port},outputs=position,layout=state,rate_hz=10",
        str(port),
    )


def _needs(*modules: str) -> None:
    for module in modules:
        if find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"no {module} here")


class Course:
    """A run with a bridge and its peer, and the plant's time as the test sees it."""

    def __init__(self, folder: Path, kind: str, setting: Setting, duration_s: float, *more: str) -> None:
        self.folder, self._kind, self._setting = folder, kind, setting
        port = reserve_ports(3)
        places = [f"tcp://127.0.0.1:{port + k}" for k in range(3)]
        self._peer: subprocess.Popen[bytes] | None = None
        self._spares = [self._loaded() for _ in range(2)]
        self._run = start(
            folder, "run", "manta", "--controller", "none", "--bridge", setting.option, "--duration", f"{duration_s:g}",
            "--dt", "0.004", "--json", "--quiet", "--log", "run.mcap", "--exchange", places[0], "--step", places[1],
            "--telemetry", places[2], *more,
        )  # fmt: skip
        try:
            self._link = rtmms.connect(places[0], token="", outputs="none", timeout_s=READY_S)
        except rtmms.RtmmsError as fault:
            self._run.kill()
            self.end_spares()
            raise AssertionError(f"{fault}: {finish(self._run).err}") from None
        self.time_s = -1.0

    def __enter__(self) -> Course:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()
        self.kill()
        self.end_spares()
        self._run.kill()
        self._run.wait()

    def until(self, time_s: float) -> float:
        """Wait for a simulated time; the newest one that is known."""
        end = time.monotonic() + READY_S
        while self.time_s < time_s:
            assert self._run.poll() is None, finish(self._run).err
            assert time.monotonic() < end, f"t = {self.time_s} s"
            state = self._link.poll()
            if state is None:
                self._link.look_around()
                time.sleep(2e-3)
            else:
                self.time_s = state.time
        return self.time_s

    def _loaded(self) -> subprocess.Popen[bytes]:
        """A peer that has not begun."""
        script = str(ROOT / "tests" / "bridges" / "steady_peer.py")
        command = [sys.executable, script, self._kind, self._setting.place, f"{PERIOD_S}"]
        return subprocess.Popen(command, pass_fds=self._setting.fds, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end_spares(self) -> None:
        """No other peer comes: one that is loaded holds its end of a device open."""
        while self._spares:
            _end(self._spares.pop())

    def start_peer(self) -> None:
        self._peer = self._spares.pop()
        assert self._peer.stdin is not None
        assert self._peer.stdout is not None
        self._peer.stdout.readline()  # it has loaded its libraries
        self._peer.stdin.write(b"\n")
        self._peer.stdin.flush()

    def signal(self, number: int) -> float:
        """Send the peer a signal; the plant's time at it."""
        assert self._peer is not None
        now = self.until(self.time_s + 1e-6)
        self._peer.send_signal(number)
        return now

    def kill(self) -> float:
        if self._peer is None:
            return self.time_s
        now = self.signal(signal.SIGKILL) if self._run.poll() is None else self.time_s
        _end(self._peer)
        self._peer = None
        return now

    def end(self) -> tuple[int, dict[str, Any], Any]:
        """Exit status, the bridge in the report, and the outcomes by time."""
        result = finish(self._run)
        report = json.loads(result.out)
        (peer,) = (item for item in report["exchange"]["peers"] if item["name"] == self._kind)
        log = rtmms.read_log(self.folder / "run.mcap")
        outcomes, times = np.asarray(log.outcomes), np.asarray(log.time)  # of a busy machine not of all steps
        counts = report["exchange"]
        assert sum(peer["steps"].values()) == report["steps"]
        assert peer["steps"] == {
            "applied": counts["commands_applied"], "stale": counts["stale"], "missed": counts["misses"]
        }  # fmt: skip

        def between(begin: float, end: float) -> Any:
            """The outcomes of the logged steps between two simulated times."""
            return outcomes[(begin < times) & (times < end)]

        return result.status, peer, between


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


@contextmanager
def course(kind: str, folder: Path, duration_s: float, *more: str) -> Iterator[tuple[Course, Setting]]:
    settings = globals()[kind](folder)
    setting = next(settings)
    try:
        with Course(folder, kind, setting, duration_s, *more) as run:
            yield run, setting
    finally:
        settings.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_peer_that_is_stopped_killed_and_started_again(kind: str, tmp_path: Path) -> None:
    with course(kind, tmp_path, 16.0) as (run, _):
        run.start_peer()
        run.until(5.0)  # a slow machine has started the peer by then
        stopped = run.signal(signal.SIGSTOP)
        run.until(stopped + 2.0)
        continued = run.signal(signal.SIGCONT)
        run.until(continued + 2.5)
        killed = run.kill()
        started = run.until(killed + 2.0)
        run.start_peer()
        run.until(15.5)
        _, peer, outcomes = run.end()
    period = peer["watch"]["period_s"] + LAG_S
    assert PERIOD_S <= period <= 1.5 * PERIOD_S + LAG_S
    assert 0.0 <= peer["first_command_s"] < stopped
    # a machine that stalls may make it silent more often, and earlier
    begun = [
        [entry for entry in peer["silences"] if entry["begin_s"] <= at + period < entry["begin_s"] + entry["length_s"]]
        for at in (stopped, killed)
    ]
    assert [len(of) for of in begun] == [1, 1], peer["silences"]
    first, second = (of[0] for of in begun)
    assert first["begin_s"] + first["length_s"] == pytest.approx(continued, abs=period)
    for item in (first, second):
        (event,) = [each for each in peer["timeline"] if each["event"] == "silent" and each["t_s"] == item["begin_s"]]
        assert event["length_s"] == item["length_s"]
    assert (
        second["begin_s"] + second["length_s"] > started - LAG_S
    )  # its process has waited for the start: it sends at once
    assert peer["restarts"] >= 2
    for begin, end in ((stopped, continued), (killed, started)):
        result = outcomes(begin + period, end - LAG_S)
        assert len(result) > 50
        assert "applied" not in result
        assert "stale" in result
    assert "applied" in outcomes(continued + period, killed)


@pytest.mark.parametrize("kind", ["serial", "mqtt"])
def test_a_line_that_goes_is_a_loss(kind: str, tmp_path: Path) -> None:
    with course(kind, tmp_path, 9.0) as (run, setting):
        run.start_peer()
        run.until(5.0)
        run.end_spares()
        gone = run.kill()
        assert setting.take_away is not None
        setting.take_away()
        _, peer, outcomes = run.end()
    period = peer["watch"]["period_s"] + LAG_S
    assert peer["losses"][0] == pytest.approx(gone, abs=period)
    assert peer["disconnected_s"] == pytest.approx(gone, abs=period)
    assert "applied" not in outcomes(gone + period, 9.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_peer_that_becomes_slow_is_silent_between_its_messages_and_the_limit_of_stale_steps_ends_the_run(
    kind: str, tmp_path: Path
) -> None:
    with course(kind, tmp_path, 30.0, "--max-stale", "750", "--grace", "4") as (run, _):
        run.start_peer()
        run.until(5.0)
        slow = run.signal(signal.SIGUSR1)
        status, peer, _ = run.end()
    assert status == 1
    period = peer["watch"]["period_s"] + LAG_S
    begun = [item for item in peer["silences"] if item["begin_s"] > slow - period]
    assert begun[0]["begin_s"] == pytest.approx(slow, abs=period)
    assert peer["steps"]["stale"] >= 750


def test_udp_peers_that_never_speak(tmp_path: Path) -> None:
    with course("udp", tmp_path, 5.0, "--max-stale", "50%") as (run, _):
        status, peer, outcomes = run.end()
    assert status == 1
    assert (peer["first_command_s"], peer["disconnected_s"]) == (None, 0.0)
    assert peer["silences"] == [{"begin_s": 0.0, "begin_step": 0, "length_s": 5.0}]
    assert "applied" not in outcomes(1.1, 5.0)
