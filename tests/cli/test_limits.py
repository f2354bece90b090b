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


@pytest.mark.full
def test_shares_are_judged_at_the_end_and_are_keys_of_a_scenario_and_of_its_expectations(tmp_path: Path) -> None:
    """Of a controller that is too slow for every step but the first."""
    scenario = tmp_path / "slow.toml"
    head = 'robot = "pendulum"\nduration = 0.5\n{}[[controller]]\nname = "slow"\nanswer_s = 0.05\n{}'
    for keys, expect, status, ended in (
        ('max-misses = "100%"\nmax-stale = 0\n', '[expect]\nmax_stale = 0\nmax_misses = "100%"\n', 0, "duration"),
        ('max-misses = "10%"\n', "", 1, "policy"),
        ("", '[expect]\nmax_misses = "10%"\n', 1, "duration"),
        ("max-misses = 5\n", "", 1, "policy"),
    ):
        scenario.write_text(head.format(keys, expect))
        said = rtmms(tmp_path, "run", "slow.toml", "--json", "--quiet")
        assert (said.status, said.report["ended"]) == (status, ended), said.err
        assert said.report["steps"] == 50 or keys == "max-misses = 5\n"
    scenario.write_text(head.format('max-stale = "many"\n', ""))
    said = rtmms(tmp_path, "run", "slow.toml")
    assert (said.status, "slow.toml:3: max_stale: expected a count from 0" in said.err) == (2, True), said.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--max-misses", "-1"), "--max-misses"),
        (("--max-overruns", "1.5"), "--max-overruns"),
        (("--max-stale", "101%"), "a share from 0% to 100% such as 0.1%, got '101%'"),
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
