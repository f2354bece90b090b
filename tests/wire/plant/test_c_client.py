"""The client in C, built and run against a plant: what docs/protocol.md states is enough to write one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rtmms
from tests.cli.shell import ROOT, Finished, environment, finish, start
from tests.wire.bench import PATIENCE_S, Host
from tests.wire.looping import Looping

pytestmark = pytest.mark.full

SOURCE = ROOT / "examples" / "c" / "client.c"
NEEDS = "needs gcc, libzmq3-dev and libmsgpack-dev"


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built without a warning; skipped where a compiler or a library is missing."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip(f"no gcc: {NEEDS}")
    folder = tmp_path_factory.mktemp("c")
    probe = "#include <zmq.h>\n#include <msgpack.h>\nint main(void) { return zmq_errno(); }\n"
    libraries = ["-lzmq", "-lmsgpackc", "-lm"]
    arguments = [compiler, "-x", "c", "-", "-o", str(folder / "probe"), *libraries]
    if subprocess.run(arguments, input=probe, text=True, capture_output=True, check=False).returncode:
        pytest.skip(f"no zmq.h or msgpack.h: {NEEDS}")
    arguments = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", str(SOURCE), "-o", str(folder / "client")]
    built = subprocess.run([*arguments, *libraries], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "client"


def run(client: Path, tmp_path: Path, *text: str) -> Finished:
    done = subprocess.run([str(client), *text], env=environment(tmp_path), capture_output=True, text=True, timeout=60,
                          check=False)  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr)


Serve = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`rtmms serve pendulum` with these words; the process and its exchange endpoint."""
    plants: list[subprocess.Popen[str]] = []

    def begin(*text: str) -> tuple[subprocess.Popen[str], str]:
        anywhere = [word for role in ("exchange", "step", "telemetry") for word in (f"--{role}", "tcp://127.0.0.1:*")]
        ends = () if "--exchange" in text else anywhere
        plants.append(start(tmp_path, "serve", "pendulum", "--json", "--quiet", *ends, *text))
        output = plants[-1].stderr
        assert output is not None
        line = output.readline()
        match = re.search(r"exchange (\S+?);", line)
        assert match is not None, line + output.read()
        return plants[-1], match[1]

    yield begin
    for plant in plants:
        if plant.poll() is None:
            plant.kill()
        plant.communicate()


def test_it_answers_every_step_of_a_lockstep_run(client: Path, serve: Serve, tmp_path: Path) -> None:
    plant, exchange = serve("--mode", "lockstep", "--duration", "20.01")
    result = run(client, tmp_path, exchange)
    report = finish(plant).report
    assert result.status == 0, result.err
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0] == "driving 2 actuators of pendulum, lockstep, dt 0.01 s"
    assert "step 1000, t = 10.000 s" in lines
    assert lines[-1] == "2001 states answered"
    exchange_report = report["exchange"]
    assert (report["steps"], exchange_report["commands_applied"]) == (2001, 2001)
    assert (exchange_report["misses"], exchange_report["late"], exchange_report["rejected"]) == (0, 0, {})
    assert [(peer["name"], peer["commands"]) for peer in exchange_report["peers"]] == [("client in C", 2001)]


def test_the_commands_it_sent_are_the_ones_that_count(client: Path, serve: Serve, tmp_path: Path) -> None:
    """The plant ends where the same sines, computed here, take it."""
    from math import pi, sin

    import numpy as np

    from tests.pendulum import Pendulum

    plant, exchange = serve("--mode", "lockstep", "--duration", "3")
    assert run(client, tmp_path, exchange).status == 0
    peer = Pendulum()
    for k in range(300):
        wave = sin(2.0 * pi * 0.5 * (k * 0.01))
        peer.step(np.array([0.5 * 2.0 * wave, 0.5 + 0.5 * 1.5 * wave]))
    assert finish(plant).report["final"]["angle"] == pytest.approx(float(peer.state[0]), rel=1e-12)


def test_it_sends_bye_after_its_steps_and_frees_its_actuators(client: Path, serve: Serve, tmp_path: Path) -> None:
    plant, exchange = serve("--mode", "realtime", "--duration", "600")
    for _ in range(2):  # the second could not come in if the first had not gone
        result = run(client, tmp_path, exchange, "50")
        assert (result.status, result.out.splitlines()[-1]) == (0, "50 states answered"), result.err
    plant.terminate()
    report = finish(plant).report
    assert report["ended"] == "interrupt"
    assert [peer["state"] for peer in report["exchange"]["peers"]] == ["gone", "gone"]


def test_it_comes_in_by_ipc(client: Path, serve: Serve, tmp_path: Path) -> None:
    ends = [word for role in ("exchange", "step", "telemetry") for word in (f"--{role}", f"ipc://pendulum-{role}")]
    plant, exchange = serve("--mode", "lockstep", "--duration", "1", *ends)
    assert exchange == f"ipc://{tmp_path}/rtmms/pendulum-exchange"
    assert run(client, tmp_path, exchange).status == 0
    assert finish(plant).report["exchange"]["commands_applied"] == 100


def test_it_reports_why_it_is_refused(
    client: Path, tmp_path: Path, make_host: Callable[..., Host], monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with (
        Looping(make_host(token=None)) as running,
        rtmms.connect(running.host.exchange, name="first", claim="*") as link,
    ):
        next(link)
        result = run(client, tmp_path, running.host.exchange)
        assert (
            result.status,
            "'left.front' is claimed by peer 'first' already" in result.err,
        ) == (1, True)
        link.close()
        (tmp_path / "rtmms").rename(tmp_path / "hidden")
        result = run(client, tmp_path, running.host.exchange)
        assert (result.status, "needs the token" in result.err) == (1, True)


def test_a_plant_that_is_killed_is_noticed(client: Path, serve: Serve, tmp_path: Path) -> None:
    plant, exchange = serve("--mode", "realtime", "--duration", "600")
    process = subprocess.Popen([str(client), exchange], env=environment(tmp_path), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None
    assert "driving" in process.stdout.readline()
    time.sleep(0.5)
    plant.kill()
    plant.communicate()
    _, err = process.communicate(timeout=3 * PATIENCE_S)
    assert (process.returncode, "the plant is gone" in err) == (1, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_stopped_sends_bye(client: Path, serve: Serve, tmp_path: Path, number: int) -> None:
    plant, exchange = serve("--mode", "realtime", "--duration", "600")
    process = subprocess.Popen([str(client), exchange], env=environment(tmp_path), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None
    assert "driving" in process.stdout.readline()
    assert "step" in process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=3 * PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1].endswith("states answered")
    result = run(client, tmp_path, exchange, "5")  # a bye frees the actuators at once; a death would keep them a while
    assert result.status == 0, result.err
    plant.terminate()
    assert [peer["state"] for peer in finish(plant).report["exchange"]["peers"]] == ["gone", "gone"]


def test_one_that_is_stopped_before_there_is_a_plant_ends(client: Path, tmp_path: Path) -> None:
    process = subprocess.Popen([str(client), "tcp://127.0.0.1:9"], env=environment(tmp_path), stderr=subprocess.PIPE,
                               text=True)  # fmt: skip
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=3 * PATIENCE_S)
    assert (process.returncode, "stopped before a plant answered" in err) == (1, True)


@pytest.mark.parametrize(
    "arguments", [("tcp://127.0.0.1:9", "0"), ("tcp://127.0.0.1:9", "x"), ("nonsense",), ("a", "1", "b")]
)
def test_wrong_words(client: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert run(client, tmp_path, *arguments).status == 2


def test_the_page_shows_how_to_build_it() -> None:
    page, source = (ROOT / "docs" / "protocol.md").read_text(), SOURCE.read_text()
    (line,) = re.findall(r"gcc .*", page)
    assert line.split()[:6] == re.findall(r"gcc .*", source)[0].split()[:6]
    assert os.path.isfile(SOURCE)
