"""`set` over the wire: a parameter of a plant that runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rtmms.cli.running.report_table import change_rows
from tests.cli.shell import environment, finish, start

SCRIPT = """
import rtmms, sys
with rtmms.connect(sys.argv[1], claim='*', timeout_s=60) as link:
    for state in link:
        link.command({})
        if state.step == 20: link.post('set', {'drag_coefficient': 2.0})
        if state.step == 40: link.post('set', {'drag': 2.0})
        if state.step == 50: link.request('set', {'drag_coefficient': 1.5}, timeout_s=60)
        if state.step == 60: link.post('stop')
"""


@pytest.mark.full
def test_a_parameter_changes_while_it_runs_and_in_the_replay(tmp_path: Path) -> None:
    arguments = ("--set", "chains=16", "--set", "links=2", "--mode", "lockstep", "--json", "--log", "run.mcap")
    process = start(tmp_path, "serve", "manta", *arguments, "--exchange", "tcp://127.0.0.1:*")
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("exchange "))
    endpoint = line.split()[1].rstrip(";")
    peer = subprocess.run([sys.executable, "-c", SCRIPT, endpoint], env=environment(tmp_path), timeout=120,
                          capture_output=True, text=True)  # fmt: skip
    if peer.returncode:
        process.kill()  # nobody else would stop it
    assert peer.returncode == 0, peer.stderr
    result = finish(process)
    assert (result.status, result.report["ended"]) == (0, "stop")
    changes = result.report["changes"]
    assert changes[-1]["args"] == {"drag_coefficient": 1.5}
    info = finish(start(tmp_path, "log", "info", "run.mcap", "--json"))
    assert info.report["changes"] == changes
    assert change_rows(changes, 1e-3)[-1][1] == "drag_coefficient = 1.5"
    replayed = finish(start(tmp_path, "replay", "run.mcap", "--check", "--json"))
    assert (replayed.status, replayed.report["unchecked"]) == (0, None)
    assert replayed.report["same"]
    assert replayed.report["steps"] == result.report["steps"]
