"""docs/hold_a_depth.md works as printed: its commands run, in lockstep so as not to wait for the clock."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path

import pytest

import rtmms
from tests.cli.shell import ROOT, Finished, finish, start

PAGE = (ROOT / "docs" / "hold_a_depth.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [shlex.split(line)[1:] for kind, code in BLOCKS if kind == "sh" for line in code.splitlines()]
QUICK = ("--mode", "lockstep", "--json", "--quiet", "--exchange", "tcp://127.0.0.1:*", "--step", "tcp://127.0.0.1:*",
         "--telemetry", "tcp://127.0.0.1:*")  # fmt: skip


def test_no_command_is_left_out() -> None:
    assert [parts[0] for parts in COMMANDS] == ["run", "run", "run", "set", "run", "compare", "run"]


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_page_works_as_printed(tmp_path: Path) -> None:
    (toml,) = (code for kind, code in BLOCKS if kind == "toml")
    (tmp_path / "hold.toml").write_text(toml)
    for arguments in COMMANDS:
        if arguments[0] == "set":
            continue
        more = QUICK if arguments[0] == "run" else ("--json",)
        result: Finished = finish(start(tmp_path, *arguments, *more), 200)
        assert result.status == 0, result.err
        if arguments[0] == "run" and "weak.mcap" not in arguments:
            assert result.report["tracking"]["depth_m"]["rms"] < 0.03
    assert (tmp_path / "both.png").exists()


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_set_points_and_gains_change_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    live = next(parts for parts in COMMANDS if parts[0] == "set")
    running = start(tmp_path, *COMMANDS[0][:-1], "7200", "--json", "--exchange", "tcp://127.0.0.1:*", "--rate", "4")
    try:
        assert running.stderr is not None
        endpoint = next(line for line in running.stderr if line.startswith("exchange ")).split()[1].rstrip(";")
        for _ in range(100):
            result = finish(start(tmp_path, *live, "--exchange", endpoint), 60)
            if result.status == 0:
                break
            time.sleep(0.2)
        assert result.status == 0, result.err
        wrong = finish(start(tmp_path, "set", "autopilot.depth_p=-1", "--exchange", endpoint), 60)
        assert wrong.status != 0
        assert "depth_p: expected a number from 0 to 110" in wrong.err
        since = 0.0  # simulated time, s, from which on it has been there
        with rtmms.connect(endpoint, outputs=("position",), timeout_s=60.0) as link:
            for state in link:
                if abs(state["position"][2] + 4.0) >= 0.1:
                    since = state.time
                elif state.time - since > 5.0:
                    break
            link.request("stop", timeout_s=60.0)
        done = finish(running, 120)
        assert done.status == 0, done.err
        (current,) = (item for item in done.report["exchange"]["peers"] if item["name"] == "autopilot")
        assert current["settable"]["depth_p"] == 2.0
        assert -done.report["final"]["position"][2] == pytest.approx(4.0, abs=0.1)
    finally:
        running.kill()  # it holds a core at real-time priority
