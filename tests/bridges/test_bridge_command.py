"""`rtmms bridge`, and bridges started by `rtmms run` and `serve`, as a user meets them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bridges.harness import wait
from tests.cli.shell import Finished, finish, rtmms, start
from tests.ports import reserve_ports

pytestmark = pytest.mark.full

QUICK = ("--dt", "0.01", "--quiet", "--json", "--priority", "off")


def run(tmp_path: Path, *text: str, duration: str = "1"):  # type: ignore[no-untyped-def]
    return rtmms(tmp_path, "run", "pendulum", "--duration", duration, *QUICK, *text)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("tmplate", "unknown bridge 'tmplate'; did you mean template"),
        ("template:prt=1", "unknown parameter of bridge 'template' 'prt'; did you mean port"),
        ("template:port=x", "bridge 'template': port: expected a whole number, got 'x'"),
        ("template:config=no.toml", "no.toml: there is no such file"),
        ("template:port", "expected NAME:key=value"),
        ("tap", "bridge 'tap': needs file"),
        ("nobridge", "to be a dataclass derived from rtmms.Bridge"),
        ("template:every=0", "every: expected a whole number from 1 to 10000"),
    ],
)
def test_wrong_words_end_with_2_and_no_traceback(tmp_path: Path, spec: str, text: str) -> None:
    result = rtmms(tmp_path, "bridge", spec)
    assert (result.status, result.out) == (2, "")
    assert text in result.err
    assert "Traceback" not in result.err


def test_nobody_there_ends_with_1(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "bridge", "template", "--exchange", "tcp://127.0.0.1:9", "--timeout", "0.1")
    assert result.status == 1
    assert "no plant answered at 'tcp://127.0.0.1:9'" in result.err
    assert "Traceback" not in result.err


def test_a_run_starts_it_waits_for_it_and_reports_it(tmp_path: Path) -> None:
    result = run(tmp_path, "--mode", "lockstep", "--bridge", "tap:file=seen.txt,claim=torque")
    assert (result.status, result.report["ended"], result.report["steps"]) == (0, "duration", 100)
    assert result.report["exchange"]["commands_applied"] == 100
    lines = (tmp_path / "seen.txt").read_text().splitlines()
    assert lines[0] == "0.000000", "step 0 waits for it"
    assert lines[-1].startswith("closed: the plant ")
    assert result.report["bridges"]["tap"]["states"] == result.report["bridges"]["tap"]["sent"] == len(lines) - 1 == 100


def test_states_at_each_nth_step_in_lockstep(tmp_path: Path) -> None:
    output = run(tmp_path, "--mode", "lockstep", "--bridge", "tap:file=seen.txt,claim=torque,every=4")
    assert output.report["exchange"]["commands_applied"] == 100
    lines = (tmp_path / "seen.txt").read_text().splitlines()[:-1]
    assert [round(float(line) / 0.04) for line in lines] == list(range(25))


def test_a_run_without_bridges_reports_none(tmp_path: Path) -> None:
    assert "bridges" not in run(tmp_path, "--mode", "free").report


class Begun:
    """A run that goes on until the test stops it: a slow machine takes as long as it needs."""

    def __init__(self, tmp_path: Path, *text: str) -> None:
        self.folder, self.exchange = tmp_path, f"tcp://127.0.0.1:{reserve_ports()}"
        ends = [word for end in ("step", "telemetry") for word in (f"--{end}", "tcp://127.0.0.1:*")]
        self.process = start(tmp_path, "run", "pendulum", "--duration", "3600", "--dt", "0.01", "--json", "--priority",
                             "off", "--exchange", self.exchange, *ends, *text)  # fmt: skip
        self.lines: list[str] = []

    def until_it_prints(self, text: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return
        pytest.fail(f"it ended without '{text}': {self.lines}")

    def step(self) -> int:
        return int(rtmms(self.folder, "status", "--json", "--exchange", self.exchange).report["step"])

    def end(self) -> Finished:
        assert rtmms(self.folder, "stop", "--exchange", self.exchange).status == 0
        result = finish(self.process)
        return Finished(result.status, result.out, "".join(self.lines) + result.err)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Begun]]:
    built: list[Begun] = []

    def begin(*text: str) -> Begun:
        built.append(Begun(tmp_path, *text))
        return built[-1]

    yield begin
    for item in built:
        item.process.kill()
        item.process.communicate()


@pytest.mark.parametrize("fate", ["die", "fail"])
def test_one_that_only_watches_may_die(begin: Callable[..., Begun], fate: str) -> None:
    """In lockstep, which would end for one that holds an actuator."""
    spec = f"tap:file=seen.txt,fate={fate},at_s=0"
    going = begin("--controller", "slow:answer_s=0.005", "--mode", "lockstep", "--bridge", spec)
    going.until_it_prints("it held no actuator and the run goes on")
    step = going.step()
    wait(lambda: going.step() > step + 10)
    result = going.end()
    assert (result.status, result.report["ended"]) == (1, "stop")
    results = "was ended by SIGKILL" if fate == "die" else "ended with exit status 1"
    assert f"bridge tap {results}" in result.err


def test_one_that_hangs_and_only_watches_costs_nothing(tmp_path: Path) -> None:
    spec = "tap:file=seen.txt,fate=hang,at_s=0"
    result = run(tmp_path, "--controller", "swing", "--mode", "lockstep", "--bridge", spec)
    assert (result.status, result.report["steps"], result.report["exchange"]["misses"]) == (0, 100, 0)


def test_one_that_is_stopped_is_reported_when_it_does_not_end(tmp_path: Path, begin: Callable[..., Begun]) -> None:
    going, observed = begin("--bridge", "tap:file=seen.txt,fate=stop,at_s=0"), tmp_path / "seen.txt"
    wait(lambda: observed.exists() and "\n" in observed.read_text())  # it stops itself after its first line
    result = going.end()
    assert (result.status, result.report["ended"]) == (0, "stop")
    assert "bridge tap did not end when it was asked to, and was killed" in result.err
    assert result.report["bridges"] == {"tap": None}


@pytest.mark.parametrize(("fate", "message"), [("die", "was ended by SIGKILL"), ("fail", "ended with exit status 1")])
def test_lockstep_ends_naming_one_that_dies_with_a_claim(tmp_path: Path, fate: str, message: str) -> None:
    result = run(tmp_path, "--mode", "lockstep", "--bridge", f"tap:file=seen.txt,fate={fate},claim=torque")
    assert (result.status, result.report["ended"]) == (1, "peer")
    assert f"bridge tap {message}" in result.err


def test_realtime_goes_on_without_one_that_dies_with_a_claim(begin: Callable[..., Begun]) -> None:
    going = begin("--bridge", "tap:file=seen.txt,fate=die,claim=torque")
    going.until_it_prints("the run goes on by the miss policy hold")
    step = going.step()
    wait(lambda: going.step() > step + 10)
    result = going.end()
    assert (result.status, result.report["ended"]) == (1, "stop")
    assert result.report["exchange"]["misses"] > 0


def test_one_that_cannot_begin_ends_the_run_with_2(tmp_path: Path) -> None:
    result = run(tmp_path, "--bridge", "tap:file=seen.txt,fate=refuse,claim=torque")
    assert (result.status, result.out) == (2, "")
    assert "fate: the plant 'pendulum' is not to our liking" in result.err
    assert "Traceback" not in result.err


def test_one_that_only_watches_and_cannot_begin_ends_the_run_with_2_too(tmp_path: Path) -> None:
    result = run(tmp_path, "--bridge", "tap:file=seen.txt,fate=refuse", duration="20")
    assert (result.status, result.out) == (2, "")
    assert "fate: the plant 'pendulum' is not to our liking" in result.err
    assert "Traceback" not in result.err


def test_a_plant_that_is_served_starts_it_too(tmp_path: Path) -> None:
    result = rtmms(
        tmp_path,
        "serve",
        "pendulum",
        "--exchange",
        "tcp://127.0.0.1:*",
        "--duration",
        "1",
        *QUICK,
        "--bridge",
        "tap:file=seen.txt",
    )
    assert (result.status, result.report["ended"]) == (0, "duration")
    assert result.report["bridges"]["tap"]["states"] > 0


def test_a_plant_that_asks_for_keys(tmp_path: Path) -> None:
    assert rtmms(tmp_path, "keys", "keys").status == 0
    result = run(tmp_path, "--mode", "lockstep", "--keys", "keys", "--bridge", "tap:file=seen.txt,claim=torque")
    assert (result.status, result.report["exchange"]["commands_applied"]) == (0, 100), result.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_by_hand_it_outlives_a_plant_and_ends_well_when_asked(tmp_path: Path) -> None:
    exchange = f"tcp://127.0.0.1:{reserve_ports()}"
    ends = [word for end in ("step", "telemetry") for word in (f"--{end}", "tcp://127.0.0.1:*")]
    serve = ("serve", "pendulum", "--dt", "0.01", "--exchange", exchange, *ends, "--quiet", "--priority", "off")
    observed = tmp_path / "seen.txt"
    first = start(tmp_path, *serve)
    bridge = start(tmp_path, "bridge", "tap:file=seen.txt,claim=torque", "--exchange", exchange, "--stay",
                   "--timeout", "30")  # fmt: skip
    try:
        wait(lambda: observed.exists() and observed.read_text().count("\n") > 5)
        first.send_signal(signal.SIGINT)
        assert finish(first).status == 0
        second = start(tmp_path, *serve)
        wait(lambda: observed.read_text().partition("again\n")[2].count("\n") > 5)
        bridge.send_signal(signal.SIGTERM)
        result = finish(bridge)
        second.send_signal(signal.SIGINT)
        assert finish(second).status == 0
    finally:
        for process in (first, bridge):
            process.kill()
    assert result.status == 0
    assert "the plant is connected again" in result.err
    assert '"plants": 1' in result.err.splitlines()[-1]
    assert observed.read_text().splitlines()[-1] == "closed: interrupted"


def test_list_reports_parameters(tmp_path: Path) -> None:
    output = rtmms(tmp_path, "list", "bridges", "--json")
    result = {entry["name"]: entry for entry in output.report["bridges"]}
    assert result["template"]["distribution"] == "rtmms"
    assert result["tap"]["distribution"] == "rtmms-test-plugins"
    ports = [item for item in result["template"]["parameters"] if item["name"] == "port"]
    assert ports == [{"name": "port", "kind": "int", "default": 9900, "required": False}]
    assert result["template"]["missing"] is None
    assert "pip install no-such-package" in result["bare"]["missing"]
    assert "error" in result["broken"]
    message = rtmms(tmp_path, "list", "bridges").out
    assert "tap " in message
    assert "bridge 'bare' needs no-such-package" in message


def test_a_missing_library_is_reported_before_anything_starts(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "bridge", "bare")
    assert (result.status, result.err) == (
        2,
        "rtmms bridge: bridge 'bare' needs no-such-package: pip install no-such-package\n",
    )


def test_the_manta_beside_a_bridge(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "manta", "--duration", "1", "--mode", "lockstep", "--quiet", "--json",
                 "--bridge", "tap:file=seen.txt,rate_hz=50")  # fmt: skip
    assert (result.status, result.report["ended"]) == (0, "duration")
    assert (tmp_path / "seen.txt").read_text().count("\n") >= 2


@pytest.mark.full
def test_an_aircraft_waits_for_its_autopilot_on_a_floor(tmp_path: Path) -> None:
    arguments = ("run", "quadrotor", "--controller", "none", "--mode", "realtime", "--duration", "0.3", "--rate", "0.5",
                 "--json", "--bridge", "ardupilot:port=0")  # fmt: skip
    result = rtmms(tmp_path, *arguments, "--log", "run.mcap")
    assert "floor=true: bridge 'ardupilot' needs it (--set floor=... sets it)" in result.err
    assert result.report["final"]["position"][2] == pytest.approx(0.05, abs=2e-3)
    assert rtmms(tmp_path, "replay", "run.mcap").status == 0, "the log has the parameter"
    fallen = rtmms(tmp_path, *arguments, "--set", "floor=false")
    assert "bridge 'ardupilot' needs it" not in fallen.err
    assert fallen.report["final"]["position"][2] < -0.1


@pytest.mark.parametrize(("name", "partner"), [("ardupilot", "ArduPilot"), ("px4", "PX4")])
def test_a_run_whose_autopilot_never_came_has_failed(tmp_path: Path, name: str, partner: str) -> None:
    if name == "px4":
        pytest.importorskip("pymavlink")
    arguments = ("run", "quadrotor", "--controller", "hover", "--duration", "0.3", "--rate", "0.5", "--json")
    bridge = ("--bridge", f"{name}:port=0,parameter_channels=1=hover.x_m")
    result = rtmms(tmp_path, *arguments, *bridge)
    assert (result.status, result.report["ended"]) == (1, "duration")
    assert f"bridge {name} ended with exit status 1: " in result.err
    assert f"{partner} sent nothing to " in result.err
    # ArduPilot arms with steps of 1.39 ms or less; where --dt sets another, the run has those
    assert result.report["dt"] == (1e-3 if name == "ardupilot" else 2e-3)
    shortened = "steps of 1 ms in place of 2 ms: bridge 'ardupilot' needs 1.39 ms or less" in result.err
    assert shortened == (name == "ardupilot")
    if name == "ardupilot":
        assert rtmms(tmp_path, *arguments, *bridge, "--dt", "0.002").report["dt"] == 2e-3
    assert rtmms(tmp_path, *arguments, *bridge, "--peer-failure", "continue").status == 0
