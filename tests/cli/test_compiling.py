"""A controller that compiles before it sends a hello is waited for."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest

from rtmms.cli.running import children
from rtmms.cli.running.children import Child, Children, StartError, await_peers
from tests.bridges.harness import wait

PROGRAM = "import sys, time; print('rtmms: compiling it', file=sys.stderr, flush=True); time.sleep(60)"


class Nobody:
    """A plant to which nobody sends a hello."""

    def serve(self, until_ns: int) -> None: ...

    def admitted(self) -> set[str]:
        return set()


@pytest.mark.full
def test_it_is_known_by_its_words() -> None:
    parts = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the child's
    child = Child("controller slow", "slow", ["-c", "pass"], output_file=parts)
    child.process.wait(30)
    for text, compiling in (
        ("", False), ("rtmms: compiling the planner\n", True), ("rtmms: compiling the manta\n", True),
        ("rtmms: compiled 3 functions in 2.0 s\n", True), ("rtmms: compiled 4 functions in 3.0 s\n", False),
    ):  # fmt: skip
        parts.write(text.encode())
        assert child.compiling() is compiling, text
    parts.close()


@pytest.mark.full
def test_it_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "ADMISSION_S", 0.2)
    monkeypatch.setattr(children, "COMPILING_S", 0.5)
    monkeypatch.setattr(children, "waited_s", lambda pid: 0.0)
    parts = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the child's
    every = Children()
    child = Child("controller slow", "slow", ["-c", PROGRAM], output_file=parts)
    every.all.append(child)
    wait(child.compiling)  # the machine may be busy
    output: list[str] = []
    server: Any = Nobody()
    with pytest.raises(StartError, match="controller slow sent no hello"):
        await_peers(server, every, False, output.append)
    child.process.kill()
    child.process.wait()
    parts.close()
