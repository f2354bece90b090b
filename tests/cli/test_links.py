"""rtmms run --link and [[link]]: recorded, replayed without a link, branched from, refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmms.base.errors import ModelError
from rtmms.cli.main import main
from rtmms.scenario.links import as_word, from_words
from rtmms.scenario.reading import read
from tests.cli.shell import rtmms
from tests.cli.test_branch import QUIET, steps

LINK = "tired:delay_ms=40,jitter_ms=15,loss=0.1,duplicate=0.05,reorder=0.05"
ARGUMENTS = ("run", "tuned", "--controller", "tired", "--duration", "2", "--seed", "3", "--set", "damping=0.3", *QUIET)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links")
    result = rtmms(folder, *ARGUMENTS, "--mode", "lockstep", "--link", LINK, "--log", "a.mcap")
    assert result.status == 0, result.err
    tired = result.report["exchange"]["links"]["tired"]
    assert result.report["exchange"]["commands_applied"] == 200
    assert 0 < tired["lost"] < 80
    assert 40.0 < tired["mean_delay_ms"] < 55.0
    return folder


@pytest.mark.full
def test_a_replay_needs_no_link(recorded: Path) -> None:
    assert rtmms(recorded, "replay", "a.mcap", "--check").status == 0


@pytest.mark.full
def test_in_real_time_the_bits_are_those_of_lockstep(recorded: Path) -> None:
    result = rtmms(recorded, *ARGUMENTS, "--rate", "0.5", "--link", LINK, "--log", "b.mcap")
    assert result.status == 0, result.err
    if result.report["exchange"]["misses"]:
        pytest.skip("the machine was busy: a command was missed")
    assert steps(recorded / "b.mcap") == steps(recorded / "a.mcap")


@pytest.mark.full
def test_a_run_from_the_log_has_its_links(recorded: Path) -> None:
    """And what was under way at the moment from which it goes on."""
    result = rtmms(recorded, "run", "--from", "a.mcap@1.2", "--log", "c.mcap", *QUIET)
    assert result.status == 0, result.err
    whole, branch = steps(recorded / "a.mcap"), steps(recorded / "c.mcap")
    assert list(branch) == list(range(120, 200))
    assert branch == {k: whole[k] for k in branch}


@pytest.mark.full
def test_without_the_link_it_is_another_run(recorded: Path) -> None:
    assert rtmms(recorded, *ARGUMENTS, "--mode", "lockstep", "--log", "d.mcap").status == 0
    assert steps(recorded / "d.mcap") != steps(recorded / "a.mcap")


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("gate:delay_ms=20", "unknown controller 'gate'; did you mean gait"),
        ("gait:rate_hz=0", "rate_hz: expected a number > 0 and <= 1e+06, got '0'"),
        ("gait:delay=20", "unknown key of link 'delay'; did you mean delay_ms"),
        ("gait:delay_ms", "expected CONTROLLER:key=value,..., got 'delay_ms'"),
        ("gait", "expected CONTROLLER:key=value,... with some of delay_ms"),
        ("gait:from_s=2,until_s=1", "until_s: expected a time after from_s, 2 s, got 1"),
    ],
)
def test_wrong_words_are_refused_with_their_place(
    word: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    with pytest.raises(SystemExit, match="2"):
        main(["run", "manta", "--controller", "gait", "--duration", "1", "--link", word])
    message = capsys.readouterr().err
    assert f"--link {word}: " in message
    assert text in message


def test_two_links_of_a_controller_are_for_times_apart() -> None:
    with pytest.raises(ModelError, match=r"two links of controller 'a' overlap at t = 2 s"):
        from_words(["a:loss=0.1", "a:delay_ms=3,from_s=2"])
    assert len(from_words(["a:loss=0.1,until_s=2", "a:delay_ms=3,from_s=2", "b:loss=1"])) == 3


def test_a_link_is_read_again_from_its_word() -> None:
    result = from_words(["a:delay_ms=20,jitter_ms=5.5,loss=0.01,until_s=3", "b:rate_hz=50"])
    assert from_words([as_word(item) for item in result]) == result


SCENARIO = """robot = "manta"
duration = 1.0
[[controller]]
name = "gait"
[[link]]
controller = "gait"
delay_ms = 20
loss = 0.5
"""


def test_a_scenario_has_links(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO)
    (link,) = read(path).links
    assert (link.controller, link.delay_ms, link.loss, link.until_s) == ("gait", 20.0, 0.5, None)


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ('controller = "gait"', 'controller = "pilot"', 6, "unknown controller 'pilot'"),
        ("[[link]]", "[link]", 5, r"expected tables [[link]], got a table"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, line: int, text: str
) -> None:
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO.replace(old, new))
    with pytest.raises(SystemExit, match="2"):
        main(["run", str(path)])
    message = capsys.readouterr().err
    assert f"one.toml:{line}: link: " in message
    assert text in message


def test_a_link_that_begins_after_the_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "manta", "--controller", "gait", "--duration", "3", "--link", "gait:from_s=3,loss=1"])
    assert ended.value.code == 2
    assert "--link gait: from_s=3: expected less than the duration, 3 s" in capsys.readouterr().err
