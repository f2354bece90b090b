"""rtmms control --reconnect: one controller, one plant after the other."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

import rtmms
from tests.cli.shell import finish, start
from tests.ports import reserve_ports


@pytest.mark.full
def test_a_controller_goes_on_with_the_next_plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    exchange = f"tcp://127.0.0.1:{reserve_ports()}"
    any_port = ("--step", "tcp://127.0.0.1:*", "--telemetry", "tcp://127.0.0.1:*")
    arguments = ("serve", "pendulum", "--mode", "lockstep", "--exchange", exchange, *any_port, "--json")
    control = start(tmp_path, "control", "swing", "--exchange", exchange, "--reconnect", "--timeout", "60")
    try:
        for _ in range(2):
            plant = start(tmp_path, *arguments)
            with rtmms.connect(exchange, timeout_s=60) as link:
                until = time.monotonic() + 60
                for state in link:
                    assert time.monotonic() < until
                    if state.step > 20:
                        break
                link.request("stop", timeout_s=60)
            result = finish(plant)
            assert (result.status, result.report["ended"]) == (0, "stop")
            names = [peer["name"] for peer in result.report["exchange"]["peers"] if peer["commands"]]
            assert names == ["swing"]
            assert control.poll() is None
        control.send_signal(signal.SIGINT)
        assert finish(control).status == 0
    finally:
        control.kill()
        control.wait()
