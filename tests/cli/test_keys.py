"""rtmms keys, and runs with keys: the words, the exit statuses, children that are handed theirs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import environment, finish, rtmms, start


def test_keys_are_made_once_and_the_next_step_is_reported(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "keys", "K")
    assert result.status == 0
    assert [line.split()[1] for line in result.out.splitlines() if line.startswith("wrote")] == [
        "K/server.key", "K/server.key_secret", "K/client.key", "K/client.key_secret", "K/clients/client.key",
    ]  # fmt: skip
    assert "copy K/server.key and K/client.key_secret" in result.out
    assert "--keys K" in result.out
    again = rtmms(tmp_path, "keys", "K")
    assert (again.status, again.out) == (2, "")
    assert "never overwritten" in again.err
    assert rtmms(tmp_path, "keys", "K", "--client", "arm").status == 0
    assert rtmms(tmp_path, "keys", "K", "--client", "../arm").status == 2


@pytest.mark.full
def test_a_run_hands_its_keys_to_its_children(tmp_path: Path) -> None:
    rtmms(tmp_path, "keys", "K")
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--keys", "K", "--mode", "lockstep",
                 "--duration", "1", "--json", "--quiet")  # fmt: skip
    assert result.status == 0, result.err
    assert result.report["exchange"]["commands_applied"] == 100


@pytest.mark.full
def test_a_run_in_real_time_with_keys(tmp_path: Path) -> None:
    rtmms(tmp_path, "keys", "K")
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "swing", "--keys", "K", "--duration", "1", "--json",
                 "--quiet")  # fmt: skip
    assert result.status == 0, result.err
    assert result.report["steps"] == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--exchange", "tcp://0.0.0.0:*"), "make them with `rtmms keys DIR` and give --keys DIR"),
        (("--step", "tcp://*:*"), "give --keys DIR"),
        (("--telemetry", "nonsense"), "expected tcp://HOST:PORT"),
        (("--keys", "nowhere"), "no file 'nowhere/server.key_secret'"),
    ],
)
def test_wrong_words_end_with_2_and_the_way_out(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = rtmms(
        tmp_path,
        "serve",
        "pendulum",
        "--exchange",
        "tcp://127.0.0.1:*",
        "--duration",
        "1",
        "--quiet",
        "--json",
        *arguments,
    )
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert "Traceback" not in result.err


@pytest.mark.full
def test_control_reaches_a_plant_on_all_addresses(tmp_path: Path) -> None:
    rtmms(tmp_path, "keys", "K")
    anywhere = [word for role in ("exchange", "step", "telemetry") for word in (f"--{role}", "tcp://*:*")]
    plant = subprocess.Popen(
        [sys.executable, "-m", "rtmms.cli.main", "serve", "pendulum", "--mode", "lockstep", "--duration", "1", "--json",
         "--quiet", "--keys", "K", *anywhere],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert plant.stderr is not None
    match = re.search(r"exchange tcp://0.0.0.0:(\d+)", plant.stderr.readline())
    assert match is not None
    exchange = f"tcp://127.0.0.1:{match[1]}"
    refused = rtmms(tmp_path, "control", "swing", "--exchange", exchange)
    assert (refused.status, "asks for keys and none were given" in refused.err) == (1, True)
    done = rtmms(tmp_path, "control", "swing", "--exchange", exchange, "--keys", "K", "--timeout", "60")
    assert done.status == 0, done.err
    result = finish(plant)
    assert result.status == 0
    assert result.report["exchange"]["commands_applied"] == 100


@pytest.mark.full
def test_a_run_needs_a_key_for_its_children(tmp_path: Path) -> None:
    rtmms(tmp_path, "keys", "K")
    (tmp_path / "K" / "client.key_secret").unlink()
    result = finish(start(tmp_path, "run", "pendulum", "--controller", "swing", "--keys", "K", "--quiet"))
    assert result.status == 2
    assert "no file 'K/client.key_secret'" in result.err
