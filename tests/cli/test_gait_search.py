"""rtmms gaits --search: a front that its seed gives again, broken off or not; its files; words that are wrong."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.base.budget import OutOfTimeError
from rtmms.base.errors import ModelError
from rtmms.cli.main import main
from rtmms.studies import gait_search
from rtmms.studies.gait_search import GOALS, Model, Search, search
from rtmms.wire.peer.plugins import build
from tests.cli.shell import ROOT

ASKED = Search("manta", ("speed", "cost_of_transport"), points=1, generations=3, size=6, most_power_w=20.0)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gaits have values by a formula, without a robot: how many were asked for, call by call."""
    asked: list[int] = []

    def values(self: Model, gaits: Any, goals: Any) -> list[Any]:
        asked.append(len(gaits))
        result = []
        for parts in gaits:
            swing = parts.get("amplitude_deg", 40.0) * parts.get("frequency_hz", 0.6) / 20.0
            slip = 0.01 + (parts.get("phase_deg", 40.0) / 100.0 - 0.8) ** 2
            built = {"speed": swing / (1.0 + slip), "cost_of_transport": slip * (1.0 + swing**2), "power": 5.0 * swing}
            result.append({goal: built[goal] for goal in goals} if swing < 2.5 else None)
        return result

    monkeypatch.setattr(Model, "values", values)
    return asked


@pytest.mark.full
def test_the_front_has_what_no_other_one_beats_within_the_power(made_up: list[int]) -> None:
    """Of the formula the best is a lead of 80 deg at any speed; beyond 20 W (speed 4) and at 2.5 nothing counts."""
    match = search(Search("manta", ("speed", "cost_of_transport"), points=2, generations=25, most_power_w=10.0))
    speeds, costs = np.array([[gait.values[goal] for goal in found_goals()] for gait in match.gaits]).T
    assert (np.diff(speeds) < 0.0).all()
    assert (np.diff(costs) < 0.0).all()
    assert max(speeds) == pytest.approx(2.0 / 1.01, rel=0.03)
    assert all(gait.values["power"] <= 10.0 for gait in match.gaits)
    assert all(abs(gait.parameters["phase_deg"] - 80.0) < 12.0 for gait in match.gaits)


def found_goals() -> tuple[str, str]:
    return "speed", "cost_of_transport"


@pytest.mark.full
def test_a_search_that_was_broken_off_goes_on_and_gives_the_same(
    made_up: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured is not measured again; another seed gives another front."""
    whole = search(ASKED, file=tmp_path / "whole.json")
    default, calls = Model.values, len(made_up)

    def breaking(self: Model, gaits: Any, goals: Any) -> list[Any]:
        if len(made_up) >= calls + 4:
            raise KeyboardInterrupt
        return default(self, gaits, goals)

    monkeypatch.setattr(Model, "values", breaking)
    with pytest.raises(KeyboardInterrupt):
        search(ASKED, file=tmp_path / "part.json")
    monkeypatch.setattr(Model, "values", default)
    made_up.clear()
    again = search(ASKED, file=tmp_path / "part.json")
    assert len(made_up) == calls - 4
    assert again.gaits == whole.gaits
    assert (tmp_path / "part.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    other = search(Search(**{**ASKED.__dict__, "seed": 1}))
    assert other.gaits != whole.gaits
    (tmp_path / "part.json").write_text("{")
    with pytest.raises(ModelError, match="is not the state of a search"):
        search(ASKED, file=tmp_path / "part.json")


@pytest.mark.full
def test_a_search_that_ends_early_gives_the_best_so_far(
    made_up: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C and the end of a budget: the front of what was measured, a note, and the state to go on from."""
    default = Model.values

    def ending(fault: type[BaseException]) -> Any:
        def values(self: Model, gaits: Any, goals: Any) -> list[Any]:
            if len(made_up) == 3:
                made_up.append(0)
                raise fault
            return default(self, gaits, goals)

        return values

    for fault, status in ((KeyboardInterrupt, 130), (OutOfTimeError, 0)):
        made_up.clear()
        monkeypatch.setattr(Model, "values", ending(fault))
        with pytest.raises(SystemExit) as ended:
            main(["gaits", "manta", "--search", "speed,cost_of_transport", "--generations", "3", "--points", "1",
                  "-o", str(tmp_path / str(status)), "--json"])  # fmt: skip
        result = capsys.readouterr()
        assert result.out, result.err
        message = json.loads(result.out)
        assert (ended.value.code or 0) == status
        assert "3 of 9 generations are done; these are the best gaits so far" in message["note"]
        assert message["front"]
        assert "run the same command again to continue" in result.err
    made_up.clear()
    with pytest.raises(SystemExit):
        main(["gaits", "manta", "--search", "speed", "--budget", "1e-9"])
    assert "and no gait was found; give a longer budget" in capsys.readouterr().err


@pytest.mark.full
def test_the_robot_s_own_numbers_and_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate has the summary of a run of the same commands; beyond the rods' limits there is none."""
    import rtmms

    monkeypatch.setattr(gait_search, "SECONDS", 3.0)
    plant = rtmms.load("manta", chains=16, dt=0.02)
    parts: list[dict[str, float]] = [{}, {"amplitude_deg": 40.0, "phase_deg": 80.0}, {"amplitude_deg": 89.0}]
    tables = [Model("manta", "gait", plant, threads).values(parts, tuple(GOALS)) for threads in (1, 2)]
    assert tables[0] == tables[1]
    assert tables[0][2] is None
    model = Model("manta", "gait", plant, 1)
    commands = model._commands({})
    assert commands is not None
    plant.reset(0)
    samples = [plant.observe()]
    for command in commands:
        plant.step(command)
        samples.append(plant.observe())
    trace = {name: np.array([np.array(sample[name]) for sample in samples]) for name in plant.trace_outputs}
    result = plant.summarise(np.arange(len(samples)) * 0.02, trace)
    assert tables[0][0] == {goal: result[name] for goal, (name, _, _) in GOALS.items()}


def test_a_controller_takes_its_words_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found.toml").write_text("# a gait\namplitude_deg = 31.5\nphase_deg = 80\n")
    built: Any = build("gait:found.toml,phase_deg=70")
    assert (built.amplitude_deg, built.phase_deg, built.frequency_hz) == (31.5, 70.0, 0.6)
    (tmp_path / "bad.toml").write_text("amplitude_deg = [1]\n")
    with pytest.raises(ModelError, match="amplitude_deg: expected a number or a text"):
        build("gait:bad.toml")
    with pytest.raises(ModelError, match=r"none\.toml"):
        build("gait:none.toml")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("manta", "--search", "sped"), "did you mean speed?"),
        (("manta", "--search", "speed,power,cost_of_transport"), "expected one goal, or two different ones"),
        (("manta", "--search", "speed,speed"), "expected one goal, or two different ones"),
        (("manta", "--search", "speed", "--at", "0.5"), "--at: expected two goals"),
        (("manta", "--search", "speed,power", "--at", "x"), "--at: expected finite numbers separated by commas, got"),
        (("cat", "--search", "speed"), "--search: expected a robot whose gait has parameters to search"),
        (("manta", "--search", "speed", "--gait", "circle"), "expected no --gait with it"),
        (("manta", "--at", "1"), "--at: expected --search with it"),
        (("cat", "--seed", "1", "--points", "3"), "--points, --seed: expected --search with it"),
        (("cat", "--gait", "circle:a=1", "--goal", "turn"), "--goal: expected no --gait with it"),
        (("cat", "--gait", "circle:a=1", "--format", "svg"), "--format: expected -o DIR with it"),
        (("manta", "--search", "speed", "--cycles", "2"), "--cycles: expected no --search with it"),
    ],
)
def test_wrong_words(arguments: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gaits", *arguments])
    assert (ended.value.code, text in capsys.readouterr().err) == (2, True)


@pytest.mark.full
def test_the_command_writes_front_files_and_figure(
    made_up: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of docs/manta.md, on the formula."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "manta.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("rtmms gaits manta --search"))
    parts = [*shlex.split(line, comments=True)[1:], "--generations", "3", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(parts)
    message = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert message["evaluations"] == 6 * 3 * 10
    assert len(message["front"]) >= 2
    for item in message["front"]:
        built: Any = build(f"gait:{item['file']}")
        assert built.amplitude_deg == item["words"]["amplitude_deg"]
    assert Path(message["figures"][0]).stat().st_size > 10_000
    with pytest.raises(SystemExit):
        main(parts)
    assert json.loads(capsys.readouterr().out) == message
