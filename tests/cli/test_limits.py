"""Limits and grace on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import rtmms

SLOW = ("run", "pendulum", "--controller", "slow:answer_s=0.05", "--duration", "1", "--json", "--quiet")


@pytest.mark.full
@pytest.mark.parametrize("option", ["--max-misses", "--max-consecutive-misses"])
def test_a_limit_on_misses_ends_the_run_with_1_and_says_which(tmp_path: Path, option: str) -> None:
    said = rtmms(tmp_path, *SLOW, option, "2")
    assert (said.status, said.report["ended"]) == (1, "policy")
    assert f"2 allowed ({option}); no command from slow" in said.err
    assert "Traceback" not in said.err
    assert said.report["exchange"]["misses"] == 3
    assert said.report["exchange"]["commands_applied"] >= 1  # step 0 waits for the first answer


@pytest.mark.full
def test_a_limit_on_overruns(tmp_path: Path) -> None:
    said = rtmms(
        tmp_path, "run", "pendulum", "--controller", "none", "--dt", "1e-6", "--on-overrun", "slip", "--json",
        "--max-consecutive-overruns", "5",
    )  # fmt: skip
    assert (said.status, said.report["ended"]) == (1, "policy")
    assert "6 overruns in a row, 5 allowed (--max-consecutive-overruns)" in said.err


@pytest.mark.full
def test_in_the_grace_neither_limits_nor_abort_act(tmp_path: Path) -> None:
    words = ("--max-misses", "0", "--on-miss", "abort", "--grace", "60")
    said = rtmms(tmp_path, *SLOW, *words)
    assert (said.status, said.report["ended"]) == (0, "duration")
    assert said.report["exchange"]["misses"] > 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--max-misses", "-1"), "--max-misses"),
        (("--max-overruns", "1.5"), "--max-overruns"),
        (("--grace", "-1"), "expected a number >= 0 s, got '-1'"),
        (("--hold-timeout", "0"), "expected a number > 0 s, got '0'"),
        (("--catchup", "0"), "--catchup"),
    ],
)
def test_wrong_words(tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    said = rtmms(tmp_path, "run", "pendulum", *words)
    assert said.status == 2
    assert text in said.err
    assert "Traceback" not in said.err


@pytest.mark.full
def test_a_deadline_shorter_than_a_wait_is_raised_and_told(tmp_path: Path) -> None:
    words = ("--deadline", "1e-8", "--duration", "0.05", "--json")
    said = rtmms(tmp_path, "run", "pendulum", "--controller", "none", *words)
    assert said.status == 0
    assert "--deadline 0.01 us is below what a wait takes here" in said.err
    assert said.report["schedule"]["deadline_us"] > 0.01


@pytest.mark.full
@pytest.mark.parametrize("rate", ["0.25", "4"])
def test_any_rate(tmp_path: Path, rate: str) -> None:
    said = rtmms(tmp_path, "run", "pendulum", "--controller", "none", "--rate", rate, "--duration", "0.2", "--json")
    assert said.report["schedule"]["period_us"] == pytest.approx(10_000 / float(rate))
    assert 0.5 <= said.report["schedule"]["deadline_us"] / said.report["schedule"]["period_us"] <= 0.9001
