"""How a run ends when it is told to, and what it says of those that ended before it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.cli.shell import finish, rtmms, start


def test_ctrl_c_does_not_wait_for_the_end_of_a_long_step(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "pendulum", "--controller", "none", "--rate", "1e-5", "--json")
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith("exchange "))
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    said = finish(process, 60)
    assert (said.status, said.report["ended"]) == (130, "interrupt")


def test_a_killed_controller_is_dead_in_the_report_of_lockstep(tmp_path: Path) -> None:
    said = rtmms(tmp_path, "run", "pendulum", "--controller", "die", "--mode", "lockstep", "--json", "--quiet")
    assert said.status == 1
    assert [(peer["name"], peer["state"]) for peer in said.report["exchange"]["peers"]] == [("die", "dead")]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--figure", "run.xyz"), "--figure run.xyz: expected a name that ends in .png"),
        (("--figure", "run"), "--figure run: expected a name that ends in .png"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_before_the_run(
    tmp_path: Path, words: tuple[str, ...], text: str
) -> None:  # fmt: skip
    said = rtmms(tmp_path, "run", "pendulum", *words)
    assert (said.status, said.out) == (2, "")
    assert text in said.err


def test_an_endpoint_that_is_none_is_a_wrong_word(tmp_path: Path) -> None:
    said = rtmms(tmp_path, "serve", "pendulum", "--exchange", "garbage")
    assert said.status == 2
    assert "exchange endpoint 'garbage'" in said.err
