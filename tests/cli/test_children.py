"""What processes of a run are given: a bridge's secrets are its own."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.base.processes import end_with_parent
from rtmms.cli.running import children


def test_a_secret_goes_to_the_bridge_that_it_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_removed_secrets", {})
    monkeypatch.setenv("RTMMS_MQTT_PASSWORD", "hush")
    monkeypatch.setenv("RTMMS_CHILD", "0")
    assert "RTMMS_MQTT_PASSWORD" not in children.environment_for()
    assert "RTMMS_MQTT_PASSWORD" not in children.environment_for("udp")
    assert children.environment_for("mqtt")["RTMMS_MQTT_PASSWORD"] == "hush"
    assert children.environment_for()["RTMMS_CHILD"] == "0"
    assert "RTMMS_MQTT_PASSWORD" not in os.environ  # the plant's process, where a user's file may run


class Late:
    """A server whose peer sends a hello after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks, self.claimed = looks, np.zeros(1, dtype=bool)

    def serve(self, until_ns: int) -> None:
        self.looks -= 1

    def admitted(self) -> set[str]:
        return set() if self.looks > 0 else {"gait"}


def waited(monkeypatch: pytest.MonkeyPatch, looks: int, starved: float) -> list[str]:
    """What is reported while a controller is waited for that had no core for so long; patience for its hello is 0 s."""
    process = SimpleNamespace(pid=1)
    child = SimpleNamespace(peer="gait", name="controller gait", process=process, compiling=lambda: False)
    every = SimpleNamespace(all=[child], ended=lambda: [])
    monkeypatch.setattr(children, "ADMISSION_S", 0.0)
    monkeypatch.setattr(children, "waited_s", lambda pid: starved)
    result: list[str] = []
    children.await_peers(Late(looks), every, False, result.append)  # type: ignore[arg-type]
    return result


def test_a_controller_that_has_no_core_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    starves = "waiting for controller gait: ready to run for 30.0 s without a core, which other processes have"
    assert waited(monkeypatch, 3, 30.0) == ["waiting for gait", starves]
    with pytest.raises(children.StartError, match=r"sent no hello within \d+ s$"):
        waited(monkeypatch, 10**9, 0.0)
    monkeypatch.setattr(children, "STARVED_S", 0.0)
    with pytest.raises(children.StartError, match=r"it was ready to run for 30\.0 s and got no core$"):
        waited(monkeypatch, 10**9, 30.0)


def test_the_time_without_a_core_is_the_systems() -> None:
    assert children.waited_s(os.getpid()) >= 0.0
    assert children.waited_s(2**22 + 1) == 0.0


@pytest.mark.parametrize("word", ["x", "-1", "\u0661"])
def test_a_parent_that_is_no_process_is_reported(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("RTMMS_PARENT", word)
    with pytest.raises(ModelError, match="environment variable RTMMS_PARENT: expected the process number"):
        end_with_parent()


def test_a_killed_process_leaves_no_zombie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit status comes later than a busy machine's patience."""
    monkeypatch.setattr(children, "_wait", lambda alive, patience: None)
    calls: list[str] = []

    class Process:
        returncode: int | None = None

        def poll(self) -> int | None:
            return self.returncode

        def terminate(self) -> None:
            calls.append("terminate")

        def kill(self) -> None:
            calls.append("kill")

        def wait(self, timeout: float) -> None:
            calls.append("wait")
            self.returncode = -9

    every = children.Children()
    every.all.append(SimpleNamespace(process=Process(), output_file=None, name="controller gait"))  # type: ignore[arg-type]
    assert every.close() == ["controller gait did not end when it was asked to, and was killed"]
    assert calls == ["terminate", "kill", "wait"]
