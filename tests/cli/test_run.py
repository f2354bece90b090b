"""rtmms run and serve with the pendulum: reports, exit statuses, faults, signals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtmms.cli.running.children import Children
from rtmms.wire.addresses import first_port
from tests.cli.shell import Finished, environment, finish, process, rtmms, start
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S

KEYS = {
    "robot", "mode", "dt", "rate", "steps", "simulated_s", "wall_s", "real_time_factor", "coupling", "seed", "version",
    "ended", "exchange", "schedule", "stall_detector", "witness", "timing_us", "realtime", "final", "summary",
    "accuracy", "warnings", "tracking", "estimate", "units", "surface", "deprecated",
}  # fmt: skip


@pytest.mark.full
def test_a_realtime_run_ends_with_one_object_on_standard_output(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--duration", "1", "--json", "--quiet")
    assert result.status == 0
    assert result.err == "" or "the default port is busy" in result.err  # reported even so
    report = result.report
    assert set(report) == KEYS
    assert (report["robot"], report["mode"], report["dt"], report["steps"]) == ("pendulum", "realtime", 0.01, 100)
    assert report["ended"] == "duration"
    exchange = report["exchange"]
    assert set(exchange) == {
        "commands_applied", "stale", "misses", "unclaimed", "reused", "max_consecutive_misses", "late", "rejected",
        "peers", "links",
    }  # fmt: skip
    assert exchange["commands_applied"] + exchange["misses"] + exchange["unclaimed"] == 100
    assert exchange["commands_applied"] > 0
    assert exchange["rejected"] == {}
    assert [peer["name"] for peer in exchange["peers"]] == ["swing"]
    (swing,) = exchange["peers"]
    assert (swing["connected_s"], swing["first_command_s"], swing["disconnected_s"]) == (0.0, 0.0, None)
    assert (swing["silences"], swing["losses"], swing["restarts"], swing["watch"]) == ([], [], 0, None)
    assert swing["steps"] == {"applied": exchange["commands_applied"], "stale": 0, "missed": exchange["misses"]}
    schedule = {"period_us", "deadline_us", "trial_us", "overruns", "skipped", "policy", "causes", "blame"}
    assert set(report["schedule"]) == schedule
    assert 0.0 < report["schedule"]["trial_us"]["p99"] <= report["schedule"]["trial_us"]["p999"]
    assert sum(report["schedule"]["causes"].values()) == exchange["misses"] + report["schedule"]["overruns"]
    assert report["schedule"]["period_us"] == pytest.approx(10_000)
    assert report["schedule"]["policy"] == {"miss": "hold", "overrun": "skip"}
    assert set(report["timing_us"]) == {"wake", "exchange", "plant", "slack"}
    assert all(set(row) == {"p50", "p99", "p999", "max"} for row in report["timing_us"].values())
    assert {"scheduler", "priority", "memory_locked", "affinity", "failed"} <= set(report["realtime"])
    assert set(report["final"]) == {"angle", "rate", "velocity", "shape"}
    assert report["summary"] == {"mean_angle_rad": pytest.approx(0.05, abs=0.1), "undefined": None, "samples": 101.0}


@pytest.mark.full
def test_lockstep_never_misses_and_two_runs_give_the_same_bits(tmp_path: Path) -> None:
    arguments = ("run", "pendulum", "--controller", "swing:amplitude=1.5", "--duration", "2", "--json", "--quiet")
    item = rtmms(tmp_path, *arguments, "--mode", "lockstep", "--seed", "3").report
    two = rtmms(tmp_path, *arguments, "--mode", "lockstep", "--seed", "3").report
    assert item["exchange"]["commands_applied"] == 200
    assert item["exchange"]["misses"] == 0
    assert item["final"] == two["final"]
    assert item["schedule"]["deadline_us"] is None


@pytest.mark.full
def test_the_commands_of_a_realtime_run_replayed_give_the_same_bits(tmp_path: Path) -> None:
    run = ("run", "pendulum", "--controller", "swing", "--duration", "1", "--trace", "run.npz", "--json", "--quiet")
    report = rtmms(tmp_path, *run, "--set", "damping=0.3").report
    result = rtmms(tmp_path, "replay", "run.npz", "--check", "--json")
    assert result.status == 0
    assert result.report["same"] is True
    assert result.report["final"] == report["final"]


@pytest.mark.full
def test_replay_names_the_first_step_and_quantity_that_differ(tmp_path: Path) -> None:
    import numpy as np

    rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--duration", "1", "--trace", "run.npz", "--mode",
          "lockstep", "--quiet")  # fmt: skip
    with np.load(tmp_path / "run.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["command"][41, 0] += 1e-12
    np.savez(tmp_path / "other.npz", **arrays)
    result = rtmms(tmp_path, "replay", "other.npz", "--check")
    assert result.status == 1
    assert "the replay differs: step 41: angle: recorded" in result.err
    assert rtmms(tmp_path, "replay", "other.npz").status == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("--mode", "lockstep", "--rate", "2"),
            "--rate 2: the mode lockstep has no schedule; expected --mode",
        ),
        (("--mode", "free", "--deadline", "1e-3"), "--deadline 0.001: the mode free has no schedule"),
        (("--tracking-start", "1"), "--tracking-start 1: expected less than the duration, 1 s"),
        (("--log", "run.csv"), "--log run.csv: expected a name that ends in .mcap, got .csv; rtmms log csv makes"),
        (("--trace", "run.mcap"), "--trace run.mcap: expected a name that ends in .npz, got .mcap"),
        (("--controller", "swing", "--controller", "swing"), "--controller swing: expected it once, got it twice"),
        (("--controller", "swing", "--controller", "swing:amplitude=0.5"), "controller 'swing' is given twice"),
    ],
)
def test_options_that_would_do_nothing_or_fail_later_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    result = rtmms(tmp_path, "run", "pendulum", *arguments, "--duration", "1")
    assert (result.status, result.out, list(tmp_path.iterdir())) == (2, "", [])
    assert text in result.err
    assert "loading" not in result.err


@pytest.mark.full
@pytest.mark.parametrize("mode", ["lockstep", "free"])
def test_options_of_a_schedule_are_named_where_there_is_none(tmp_path: Path, mode: str) -> None:
    values = ("--on-overrun", "slip", "--catchup", "3", "--max-overruns", "0", "--max-consecutive-overruns", "1")
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "none", "--mode", mode, "--duration", "0.1", *values)
    assert result.status == 0
    names = "--on-overrun, --catchup, --max-overruns, --max-consecutive-overruns"
    assert f"rtmms: {names}: no effect, because the mode {mode} has no schedule" in result.err


@pytest.mark.parametrize(("content", "text"), [(None, "there is no such file"), (b"junk", "expected a log")])
def test_replay_of_something_else_is_refused(tmp_path: Path, content: bytes | None, text: str) -> None:
    if content is not None:
        (tmp_path / "x.npz").write_bytes(content)
    result = rtmms(tmp_path, "replay", "x.npz")
    assert result.status == 2
    assert text in result.err
    assert "Traceback" not in result.err


@pytest.mark.full
def test_free_runs_far_faster_than_time_and_without_a_claim(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "none", "--mode", "free", "--duration", "50", "--json")
    assert result.report["exchange"]["unclaimed"] == result.report["steps"] == 5000
    assert result.report["timing_us"]["wake"]["p50"] is None
    assert "exchange tcp://127.0.0.1:" in result.err  # where others may still come in


@pytest.mark.full
def test_the_table_has_the_same_and_progress_goes_to_standard_error(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--duration", "0.5")
    assert result.status == 0
    for arguments in ("0.5 s simulated in", "50 steps of 10 ms", "state out, commands in", "mean angle",
                  "late commands: hold, late steps: skip"):  # fmt: skip
        assert arguments in result.out
    assert "waiting for swing" in result.err or "misses" in result.err


# --- words that are wrong ---------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("run", "pendulm"), "unknown robot 'pendulm'; did you mean pendulum?"),
        (("rum", "pendulum"), "unknown command 'rum'; did you mean run"),
        (("run", "pendulum", "--controller", "swig"), "unknown controller 'swig'; did you mean swing?"),
        (("run", "pendulum", "--controller", "swing:amplitud=1"), "did you mean amplitude?"),
        (("run", "pendulum", "--controller", "swing:amplitude=x"), "amplitude: expected a number, got 'x'"),
        (("run", "pendulum", "--controller", "none", "--controller", "swing"), "--controller none: expected no other"),
        (("run", "pendulum", "--set", "dampin=1"), "unknown parameter of pendulum 'dampin'; did you mean damping?"),
        (("run", "pendulum", "--set", "damping=-1"), "damping must be >= 0 1/s, got -1"),
        (("run", "pendulum", "--set", "damping"), "--set damping: expected key=value"),
        (("run", "pendulum", "--set", "damping=1", "--set", "damping=2"), "'damping' is set twice"),
        (("run", "pendulum", "--set", "dt=1"), "--set dt=1: use --dt"),
        (("run", "pendulum", "--preset", "papr"), "unknown preset"),
        (("run", "pendulum", "--mode", "realtim"), "unknown mode 'realtim'; did you mean realtime?"),
        (("run", "pendulum", "--on-miss", "hodl"), "unknown miss policy 'hodl'; did you mean hold"),
        (("run", "pendulum", "--on-overrun", "skp"), "did you mean skip"),
        (("run", "manta", "--coupling", "monolitic"), "did you mean monolithic?"),
        (("run", "pendulum", "--coupling", "monolithic"), "as robot 'pendulum' has no variants of coupling"),
        (("run", "pendulum", "--dt", "0"), "expected a number > 0 s, got '0'"),
        (("run", "pendulum", "--dt", "nan"), "expected a number > 0 s, got 'nan'"),
        (("run", "pendulum", "--duration", "-1"), "expected a number > 0 s, got '-1'"),
        (("run", "pendulum", "--rate", "inf"), "expected a number > 0, got 'inf'"),
        (("run", "pendulum", "--duration", "1e308"), "expected a number from 1e-09 to 1e+09 s, got '1e308'"),
        (("run", "pendulum", "--grace", "1e300"), "expected a number from 1e-09 to 1e+09 s, got '1e300'"),
        (("run", "pendulum", "--telemetry-hz", "1e-300"), "expected a number from 1e-09 to 1e+09 Hz"),
        (
            ("run", "pendulum", "--dt", "1e-8", "--duration", "1e9"),
            "expected at most 9.0072e+07 s, 2^53 steps of 1e-08",
        ),
        (("run", "pendulum", "--rate", "1e9", "--mode", "realtime"), "s for a step of 0.01 s, got 1e-11 s"),
        (("run", "pendulum", "--deadline", "0.02"), "at most the period of 0.01 s"),
        (("run", "pendulum", "--priority", "high"), "priority: expected auto, off or a whole number"),
        (("run", "pendulum", "--trace", "no/run.npz"), "there is no folder 'no'"),
        (("run", "pendulum", "--duration", "0"), "expected a number > 0 s, got '0'"),
        (("run", "pendulum", "--controller", "swing:amplitud=1"), "unknown parameter of controller 'swing' 'amplitud'"),
        (("run", "pendulum", "--bridge", "udp:prt=1"), "unknown parameter of bridge 'udp' 'prt'; did you mean port"),
        (("list", "robot"), "did you mean robots?"),
        (("bench", "nothing"), "unknown benchmark 'nothing'"),
        (("reproduce", "qu2042"), "did you mean qu2024?"),
    ],
)
def test_wrong_words_end_with_2_a_near_miss_and_no_traceback(
    tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    result = rtmms(tmp_path, *arguments)
    assert result.status == 2
    assert text in result.err
    assert result.out == ""
    assert "Traceback" not in result.err


@pytest.mark.full
@pytest.mark.parametrize(("name", "value"), [("NUMBA_OPT", "x"), ("NUMBA_NUM_THREADS", "0"), ("MPLBACKEND", "x")])
def test_an_environment_that_a_library_cannot_read_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    result = process(tmp_path, "list", "robots")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("rtmms: ")
    assert name in result.err
    assert len(result.err.splitlines()) == 1


# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("mode", ["realtime", "lockstep"])
def test_a_controller_that_crashes_at_the_start_is_named_with_its_last_words(tmp_path: Path, mode: str) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "crash", "--mode", mode, "--json", "--quiet")
    assert result.status == 1
    assert "controller crash ended with exit status 1" in result.err
    assert "the cable is not plugged in" in result.err.splitlines()[-1]
    assert (result.report["ended"], result.report["steps"]) == ("peer", 0)


@pytest.mark.full
def test_two_controllers_that_want_the_same_actuator_cannot_start(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--controller", "die:at_s=9", "--quiet")
    assert result.status == 1
    assert "actuator 'torque' is claimed by peer '" in result.err


@pytest.mark.full
def test_a_bug_in_a_plant_shows_where_and_still_ends_with_a_report(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--set", "fault_at=0.1", "--json", "--quiet")
    assert result.status == 1
    assert "ZeroDivisionError: a bug in the plant" in result.err
    assert result.report["ended"] is None


@pytest.mark.processes
def test_a_controller_that_dies_in_realtime_is_reported_and_the_policy_takes_over(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "die:at_s=0.2", "--duration", "1.2", "--json")
    report = result.report
    assert (result.status, report["ended"], report["steps"]) == (1, "duration", 120)
    assert report["exchange"]["misses"] >= 90
    assert "controller die was ended by SIGKILL; the run goes on by the miss policy hold" in result.err
    assert result.err.splitlines()[-1] == "rtmms: controller die was ended by SIGKILL"


@pytest.mark.full
def test_a_crash_costs_the_exit_status_unless_it_was_to_be_expected(tmp_path: Path) -> None:
    arguments = ("run", "pendulum", "--controller", "fail:at_s=0.1", "--duration", "0.6", "--quiet")
    result = rtmms(tmp_path, *arguments, "--json")
    assert (result.status, result.report["ended"]) == (1, "duration")
    last = result.err.splitlines()[-1]
    assert last.startswith("rtmms: controller fail ended with exit status 1: ")
    assert last.endswith(": ValueError: a fault in the law")
    assert "swing.py, line" in last
    assert rtmms(tmp_path, *arguments, "--peer-failure", "continue").status == 0


@pytest.mark.full
def test_a_controller_whose_commands_are_all_refused_fails_the_run(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "misnamed", "--duration", "3", "--json", "--quiet")
    report = result.report
    assert (result.status, report["exchange"]["commands_applied"]) == (1, 0)
    (peer,) = [item for item in report["exchange"]["peers"] if item["name"] == "misnamed"]
    assert result.err.splitlines()[-1] == (
        f"rtmms: all {peer['rejected']} commands of controller misnamed were refused: {peer['refusal']}"
    )
    assert "'torqeu'" in peer["refusal"]
    assert report["schedule"]["causes"]["peer_refused"] > 0


@pytest.mark.parametrize(("commands", "sentences"), [(0, 1), (1, 0)])
def test_only_a_controller_whose_commands_are_all_refused_fails(commands: int, sentences: int) -> None:
    """In any mode: the rule sees the report's counts alone."""
    children = Children()
    children.all.append(SimpleNamespace(peer="mine", name="controller mine", crash=""))  # type: ignore[arg-type]
    peer = {"name": "mine", "claim": ["torque"], "rejected": 7, "commands": commands, "refusal": "no such actuator"}
    output = children.failures([peer])
    assert output == ["all 7 commands of controller mine were refused: no such actuator"][:sentences]


@pytest.mark.full
def test_a_controller_that_fails_in_realtime_does_not_let_go(tmp_path: Path) -> None:
    """An exception is a death and not a farewell: its steps are missed, not unclaimed."""
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "fail:at_s=0.2", "--duration", "1.2", "--json")
    exchange = json.loads(result.out)["exchange"]
    assert exchange["misses"] >= 80
    assert exchange["unclaimed"] == 0
    assert "a fault in the law" in result.err
    assert "the run goes on by the miss policy hold" in result.err


@pytest.mark.full
def test_a_controller_that_fails_in_lockstep_ends_the_run_and_is_named(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "fail", "--mode", "lockstep", "--json", "--quiet")
    assert result.status == 1
    report = json.loads(result.out)
    assert report["ended"] == "peer"
    assert report["exchange"]["unclaimed"] == 0
    assert "fail" in result.err


@pytest.mark.processes
def test_a_controller_that_dies_in_lockstep_ends_the_run_and_is_named(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "die", "--mode", "lockstep", "--json", "--quiet")
    assert result.status == 1
    assert (result.report["ended"], result.report["steps"]) == ("peer", 20)
    assert (
        "controller die was ended by SIGKILL; mode lockstep needs its commands, so the run ends (step 20)" in result.err
    )


@pytest.mark.full
def test_miss_policy_abort_ends_with_1_and_reports_who(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "slow", "--on-miss", "abort", "--json", "--quiet")
    assert (result.status, result.report["ended"]) == (1, "policy")
    assert "slow sent no command for step 1 in time (miss policy abort)" in result.err


@pytest.mark.full
def test_late_commands_are_counted_and_home_takes_over_from_old_ones(tmp_path: Path) -> None:
    output = rtmms(tmp_path, "run", "pendulum", "--controller", "slow", "--duration", "0.5", "--json", "--quiet")
    assert output.report["exchange"]["late"] > 0
    assert output.report["exchange"]["misses"] > 0


@pytest.mark.full
def test_divergence_ends_with_1_and_the_last_good_state_in_plain_json(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--set", "diverge_at=0.3", "--json", "--quiet")
    assert result.status == 1
    assert (result.report["ended"], result.report["steps"]) == ("diverged", 30)
    assert "diverged at t = 0.31 s: rate is not finite" in result.err
    assert result.report["final"]["angle"] is not None


@pytest.mark.full
def test_a_busy_default_port_gives_way_to_a_free_one_that_is_reported(tmp_path: Path) -> None:
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for _ in range(300):  # some other run may hold it now, and not for long
            try:
                squatter.bind(("127.0.0.1", first_port()))
                break
            except OSError:
                time.sleep(0.1)
        squatter.listen()
        result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--duration", "0.2", "--json")
    assert result.status == 0
    assert "exchange tcp://127.0.0.1:" in result.err


@pytest.mark.full
def test_a_second_serve_reports_who_is_there_already(tmp_path: Path) -> None:
    """As on a busy default port, which `serve` does not leave."""
    endpoint = f"tcp://127.0.0.1:{reserve_ports()}"
    first = start(tmp_path, "serve", "pendulum", "--exchange", endpoint, "--json")
    _wait_until_running(first)
    result = rtmms(tmp_path, "serve", "pendulum", "--exchange", endpoint, "--json")
    assert result.status == 1
    assert re.search(r"in use by another process: pendulum runs there, for \d+ s, no peer drives it", result.err)
    assert rtmms(tmp_path, "status", "--exchange", endpoint).out.startswith("pendulum: running, realtime, dt 0.01 s")
    assert rtmms(tmp_path, "stop", "--exchange", endpoint).status == 0
    assert finish(first).report["ended"] == "stop"


@pytest.mark.full
def test_a_plant_of_ones_own_gets_its_outputs_drawn(tmp_path: Path) -> None:
    arguments = ("--controller", "none", "--mode", "free", "--duration", "0.5", "--quiet")
    result = rtmms(tmp_path, "run", "pendulum", *arguments, "--figure", "run.png", "--log", "run.mcap")
    assert (result.status, "rtmms:" in result.err) == (0, False)
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    result = rtmms(tmp_path, "plot", "run.mcap", "-o", "drawn.svg")
    assert (result.status, result.err) == (0, "")
    assert "<svg" in (tmp_path / "drawn.svg").read_text()
    (tmp_path / "run.png").unlink()
    result = rtmms(tmp_path, "plot", "run.mcap")
    assert (result.status, result.err) == (0, "run.png\n")
    assert (tmp_path / "run.png").exists()


def test_a_busy_port_that_was_asked_for_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        endpoint = f"tcp://127.0.0.1:{squatter.getsockname()[1]}"
        result = rtmms(tmp_path, "serve", "pendulum", "--exchange", endpoint, "--duration", "1", "--json")
    assert result.status == 1
    assert f"'{endpoint}' is in use" in result.err
    assert result.report["ended"] is None


# --- signals and processes --------------------------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def _wait_until_running(process: subprocess.Popen[str]) -> None:
    """The display's plain line begins with the time once steps are taken."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("time "):
            return
    pytest.fail("the run did not begin")


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="process groups and /proc")
def test_ctrl_c_ends_the_run_with_its_report_and_130_and_leaves_nobody_behind(tmp_path: Path) -> None:
    arguments = ("run", "pendulum", "--controller", "swing", "--duration", "3600", "--json")
    process = start(tmp_path, *arguments, new_session=True)
    _wait_until_running(process)
    children = _children(process.pid)
    assert len(children) in (2, 3)  # controller, display, and the stall detector where that is permitted
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    result = finish(process)
    assert (result.status, result.report["ended"]) == (130, "interrupt")
    assert result.report["steps"] > 0
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="process groups and /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_the_plant_loads_ends_with_130_and_a_report(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, "run", "pendulum", "--controller", "swing", "--set", "load_s=30", "--json")
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith("loading the plant"))
    children = _children(process.pid)
    process.send_signal(number)
    result = finish(process)
    assert (result.status, result.report["ended"], result.report["steps"]) == (130, "interrupt", 0)
    assert not any(_alive(child) for child in children)


@pytest.mark.full
@pytest.mark.parametrize("fails", ["true", "false"])
def test_ctrl_c_that_a_compiler_swallows_ends_the_run_all_the_same(tmp_path: Path, fails: str) -> None:
    result = rtmms(tmp_path, "run", "smothered", "--controller", "none", "--set", f"fails={fails}", "--json")
    assert (result.status, result.report["ended"], result.report["steps"]) == (130, "interrupt", 0)
    assert "Traceback" not in result.err


@pytest.mark.parametrize("fails", ["true", "false"])
def test_ctrl_c_that_a_compiler_swallows_ends_other_commands(tmp_path: Path, fails: str) -> None:
    result = rtmms(tmp_path, "trim", "smothered", "--set", f"fails={fails}")
    assert result.status == 130
    assert [line for line in result.err.splitlines() if "searching for a steady motion" not in line] == []


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_a_trace_that_the_disk_does_not_take_is_named(tmp_path: Path) -> None:
    import resource

    process = start(tmp_path, "run", "pendulum", "--controller", "none", "--duration", "3600", "--trace", "run.npz",
                    "--exchange", "tcp://127.0.0.1:*", "--json")  # fmt: skip
    assert process.stderr is not None
    endpoint = next(line for line in process.stderr if line.startswith("exchange ")).split()[1].rstrip(";")
    _wait_until_running(process)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    assert rtmms(tmp_path, "stop", "--exchange", endpoint).status == 0
    result = finish(process)
    assert (result.status, result.report["ended"]) == (1, "stop")
    assert "rtmms: --trace run.npz: could not be written: File too large" in result.err
    assert "Traceback" not in result.err
    assert not list(tmp_path.glob("*.npz"))


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_serve_ends_with_a_report_when_it_is_asked_twice_at_once(tmp_path: Path) -> None:
    process = start(tmp_path, "serve", "pendulum", "--exchange", "tcp://127.0.0.1:*", "--json")
    _wait_until_running(process)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    result = finish(process)
    assert (result.status, result.report["ended"]) == (0, "interrupt")
    assert result.report["steps"] > 0


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG")
def test_children_die_with_a_run_that_is_killed(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "pendulum", "--controller", "swing", "--duration", "3600")
    _wait_until_running(process)
    children = _children(process.pid)
    process.kill()
    process.communicate()
    until = time.monotonic() + PATIENCE_S
    while any(_alive(child) for child in children):
        assert time.monotonic() < until, [child for child in children if _alive(child)]
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="signals")
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_after_the_end_costs_neither_the_report_nor_the_log(tmp_path: Path, presses: int) -> None:
    process = start(tmp_path, "serve", "pendulum", "--exchange", "tcp://127.0.0.1:*", "--json", "--log", "run.mcap")
    assert process.stderr is not None
    endpoint = next(line for line in process.stderr if line.startswith("exchange ")).split()[1].rstrip(";")
    stop = "import rtmms, sys; rtmms.connect(sys.argv[1], timeout_s=30).request('stop')"
    subprocess.run([sys.executable, "-c", stop, endpoint], env=environment(tmp_path), timeout=60, check=True)
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    result = finish(process)
    assert (result.status, result.report["ended"]) == (0, "stop")
    assert result.report["log"]["whole"] is True


@pytest.mark.processes
def test_serve_takes_controllers_from_elsewhere_and_stops_on_request(tmp_path: Path) -> None:
    process = start(tmp_path, "serve", "pendulum", "--mode", "lockstep", "--exchange", "tcp://127.0.0.1:*", "--json")
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("exchange "))
    endpoint = line.split()[1].rstrip(";")
    script = (
        "import rtmms, sys\n"
        "with rtmms.connect(sys.argv[1], name='mine', claim=['torque'], timeout_s=100) as link:\n"
        "    for state in link:\n"
        "        link.command({'torque': 0.1})\n"
        "        if state.step == 50: link.request('stop'); break\n"
    )
    peer = subprocess.run([sys.executable, "-c", script, endpoint], env=environment(tmp_path), timeout=120, check=True,
                          capture_output=True)  # fmt: skip
    assert peer.returncode == 0
    result = finish(process)
    assert (result.status, result.report["ended"]) == (0, "stop")
    assert result.report["steps"] >= 50


@pytest.mark.full
def test_a_plant_that_waits_for_a_claim_answers_requests(tmp_path: Path) -> None:
    """A value that is set meanwhile counts from the first step on, also in the replay of the log."""
    served = start(tmp_path, "serve", "quadrotor", "--mode", "lockstep", "--exchange", "tcp://127.0.0.1:*", "--json",
                   "--log", "run.mcap")  # fmt: skip
    assert served.stderr is not None
    endpoint = next(line for line in served.stderr if line.startswith("exchange ")).split()[1].rstrip(";")
    next(line for line in served.stderr if line.startswith("waiting for a controller"))

    def asked(*arguments: str) -> Finished:
        return rtmms(tmp_path, *arguments, "--exchange", endpoint)

    status = asked("status", "--json")
    assert (status.report["begun"], status.report["step"], status.report["wall_s"]) == (False, 0, 0.0)
    assert "waiting for its peers" in asked("status").out
    assert asked("set", "wind_x_m_s=2.5").status == 0
    refused = asked("reset")
    assert refused.status == 2
    assert refused.err == "rtmms: request 'reset': the run has not begun; it waits for its peers\n"
    assert asked("pause").status == 0
    script = (
        "import rtmms, sys\n"
        "with rtmms.connect(sys.argv[1], name='mine', claim='*', timeout_s=100) as link:\n"
        "    link.request('resume')\n"
        "    for state in link:\n"
        "        link.command(dict.fromkeys(link.plant.granted, 460.0))\n"
        "        if state.step == 50: link.request('stop'); break\n"
    )
    subprocess.run([sys.executable, "-c", script, endpoint], env=environment(tmp_path), timeout=240, check=True)
    result = finish(served)
    assert (result.status, result.report["ended"]) == (0, "stop")
    assert result.report["final"]["velocity"][0] > 0.0
    assert rtmms(tmp_path, "replay", "run.mcap", "--check").status == 0


@pytest.mark.full
def test_a_plant_that_waits_for_a_claim_is_stopped(tmp_path: Path) -> None:
    served = start(tmp_path, "serve", "pendulum", "--mode", "lockstep", "--exchange", "tcp://127.0.0.1:*", "--json")
    assert served.stderr is not None
    endpoint = next(line for line in served.stderr if line.startswith("exchange ")).split()[1].rstrip(";")
    next(line for line in served.stderr if line.startswith("waiting for a controller"))
    assert rtmms(tmp_path, "stop", "--exchange", endpoint).status == 0
    result = finish(served)
    assert (result.status, result.report["ended"], result.report["steps"]) == (0, "stop", 0)


@pytest.mark.full
def test_after_a_reset_the_report_is_of_the_last_run_alone(tmp_path: Path) -> None:
    """Its seed, and the steps of each peer, which have the sum of the whole report."""
    running = start(tmp_path, "run", "pendulum", "--controller", "swing", "--duration", "12", "--json", "--exchange",
                    "tcp://127.0.0.1:*")  # fmt: skip
    assert running.stderr is not None
    endpoint = next(line for line in running.stderr if line.startswith("exchange ")).split()[1].rstrip(";")
    until = time.monotonic() + PATIENCE_S
    while (result := rtmms(tmp_path, "reset", "--seed", "7", "--exchange", endpoint)).status:
        assert time.monotonic() < until, result.err
        time.sleep(0.1)
    time.sleep(1.0)
    assert rtmms(tmp_path, "reset", "--seed", "8", "--exchange", endpoint).status == 0
    report = finish(running, 60).report
    assert report["seed"] == 8
    exchange = report["exchange"]
    (current,) = (item for item in exchange["peers"] if item["name"] == "swing")
    assert (current["applied"], current["missed"]) == (exchange["commands_applied"], exchange["misses"])
    assert current["applied"] + current["missed"] == report["steps"] == 1200
