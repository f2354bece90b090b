"""Limits and grace on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import rtmms

SLOW = ("run", "pendulum", "--controller", "slow:answer_s=0.05", "--duration", "1", "--json", "--quiet")


@pytest.mark.full
@pytest.mark.parametrize("option", ["--max-misses", "--max-consecutive-misses"])
def test_a_limit_on_misses_ends_the_run_with_1_and_reports_which(tmp_path: Path, option: str) -> None:
    result = rtmms(tmp_path, *SLOW, option, "2")
    assert (result.status, result.report["ended"]) == (1, "policy")
    assert f"2 allowed ({option}); no command from slow" in result.err
    assert "Traceback" not in result.err
    assert result.report["exchange"]["misses"] == 3
    assert result.report["exchange"]["commands_applied"] >= 1  # step 0 waits for the first answer


@pytest.mark.full
def test_a_limit_on_overruns(tmp_path: Path) -> None:
    result = rtmms(
        tmp_path, "run", "pendulum", "--controller", "none", "--dt", "1e-6", "--on-overrun", "slip", "--json",
        "--max-consecutive-overruns", "5",
    )  # fmt: skip
    assert (result.status, result.report["ended"]) == (1, "policy")
    assert "6 overruns in a row, 5 allowed (--max-consecutive-overruns)" in result.err


@pytest.mark.full
def test_in_the_grace_neither_limits_nor_abort_act(tmp_path: Path) -> None:
    arguments = ("--max-misses", "0", "--on-miss", "abort", "--grace", "60")
    result = rtmms(tmp_path, *SLOW, *arguments)
    assert (result.status, result.report["ended"]) == (0, "duration")
    assert result.report["exchange"]["misses"] > 0


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
        result = rtmms(tmp_path, "run", "slow.toml", "--json", "--quiet")
        assert (result.status, result.report["ended"]) == (status, ended), result.err
        assert result.report["steps"] == 50 or keys == "max-misses = 5\n"
    scenario.write_text(head.format('max-stale = "many"\n', ""))
    result = rtmms(tmp_path, "run", "slow.toml")
    assert (result.status, "slow.toml:3: max_stale: expected a count from 0" in result.err) == (2, True), result.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--max-misses", "-1"), "--max-misses"),
        (("--max-overruns", "1.5"), "--max-overruns"),
        (("--max-stale", "101%"), "a share from 0% to 100% such as 0.1%, got '101%'"),
        (("--grace", "-1"), "expected a number >= 0 s, got '-1'"),
        (("--hold-timeout", "0"), "expected a number > 0 s, got '0'"),
        (("--catchup", "0"), "--catchup"),
    ],
)
def test_wrong_words(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    result = rtmms(tmp_path, "run", "pendulum", *arguments)
    assert result.status == 2
    assert text in result.err
    assert "Traceback" not in result.err


@pytest.mark.full
def test_a_deadline_shorter_than_a_wait_is_raised_and_reported(tmp_path: Path) -> None:
    arguments = ("--deadline", "1e-8", "--duration", "0.05", "--json")
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "none", *arguments)
    assert result.status == 0
    assert "--deadline 0.01 us is below what a wait takes here" in result.err
    assert result.report["schedule"]["deadline_us"] > 0.01


@pytest.mark.full
@pytest.mark.parametrize("rate", ["0.25", "4"])
def test_any_rate(tmp_path: Path, rate: str) -> None:
    output = rtmms(tmp_path, "run", "pendulum", "--controller", "none", "--rate", rate, "--duration", "0.2", "--json")
    assert output.report["schedule"]["period_us"] == pytest.approx(10_000 / float(rate))
    assert 0.5 <= output.report["schedule"]["deadline_us"] / output.report["schedule"]["period_us"] <= 0.9001
