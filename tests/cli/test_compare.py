"""rtmms compare: two runs side by side, in table, JSON and figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rtmms.cli.compare import settings
from rtmms.cli.running.report_table import change_rows
from rtmms.view import comparison
from rtmms.view.comparison import Run, table
from tests.cli.shell import finish, start


@pytest.mark.full
def test_two_runs_side_by_side(tmp_path: Path) -> None:
    for heading in (0, 40):
        word = f"heading:heading_deg={heading}"
        result = finish(start(tmp_path, "run", "manta", "--controller", word, "--mode", "lockstep", "--duration", "3",
                            "--log", f"to{heading}.mcap", "--quiet"), 120)  # fmt: skip
        assert result.status == 0, result.err
    result = finish(start(tmp_path, "compare", "to0.mcap", "to40.mcap", "-o", "both.png", "--json"), 60)
    assert result.status == 0, result.err
    content = json.loads(result.out)
    assert content["to0"]["heading_deg rms"] < 1.0 < content["to40"]["heading_deg rms"]
    assert content["to40"]["command rate, rms"] > 0.1
    assert {"plant p99, us", "misses", "mean_power_w"} <= content["to0"].keys()
    assert content["to0"]["controllers"] == content["to40"]["controllers"] == "heading"
    assert (content["to0"]["heading.heading_deg"], content["to40"]["heading.heading_deg"]) == ("0", "40")
    assert "chains" not in content["to0"], "what does not differ"
    assert (tmp_path / "both.png").stat().st_size > 20_000
    result = finish(start(tmp_path, "compare", "to0.mcap", "to40.mcap"), 60)
    assert "heading_deg rms" in result.out
    assert "to40" in result.out
    for arguments, text in ((["to0.mcap"], "expected two logs"), (["to0.mcap", "nowhere.mcap"], "nowhere.mcap")):
        result = finish(start(tmp_path, "compare", *arguments), 60)
        assert result.status == 2
        assert text in result.err


def test_what_one_run_has_not_is_reported_as_such() -> None:
    time = np.arange(5.0)
    item = Run("one", {"robot": "a", "tracking": {"depth_m": {"rms": 0.1}}}, time, np.outer(time, [1.0, -1.0]))
    other = Run("other", {"robot": "b"}, time, np.zeros((5, 2)))
    rows = dict(table([item, other]))
    assert rows["depth_m rms"] == [0.1, None]
    assert rows["command rate, rms"] == [pytest.approx(1.0), 0.0]
    assert "misses" not in rows


def test_the_figure_has_controllers_set_points_and_one_unit_a_panel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages, write = [], comparison.save
    monkeypatch.setattr(comparison, "save", lambda page, path: (pages.append(page), write(page, path)))
    time = np.linspace(0.0, 4.0, 50)

    def run(name: str, depth: float) -> Run:
        tracking = {"depth_m": {"rms": 0.1}, "heading_deg": {"rms": 4.0}}
        report = {"tracking": tracking, "summary": {"mean_power_w": 3.0}}
        series = {"depth_m": depth * np.tanh(time), "heading_deg": time}
        points = [(0.0, {"depth_m": depth, "cross_track_m": "x"})]
        settings = {"controllers": "autopilot", "autopilot.depth_m": depth, "chains": 30}
        return Run(name, report, time, np.zeros((50, 2)), series, points, settings)

    comparison.draw([run("one", 1.0), run("two", 2.0)], tmp_path / "both.png")
    (page,) = pages
    heads = [text.get_text() for text in page.texts]
    assert heads[1:] == ["one:  autopilot   (autopilot.depth_m 1)", "two:  autopilot   (autopilot.depth_m 2)"]
    panels = {axes.get_title(loc="left"): axes for axes in page.axes}
    depth = panels["Depth"]
    assert sorted({float(y) for line in depth.lines if len(line.get_ydata()) == 2 for y in line.get_ydata()}) == [
        1.0,
        2.0,
    ]
    assert len(panels["Heading"].lines) == 2
    bars = [title for title in panels if panels[title].patches]
    assert bars == [
        "Depth, rms off its set-point, m",
        "Heading, rms off its set-point, deg",
        "mean power, W",
        "command rate, rms",
    ]
    assert all(panels[title].get_xscale() == "linear" for title in bars)


def test_a_setting_that_changed_while_it_ran_has_all_its_values() -> None:
    changes = [
        {"run": 0, "step": 250, "op": "set", "args": {"drag_coefficient": 2.0}},
        {"run": 0, "step": 300, "op": "restore"},
    ]
    result = settings({"dt": 0.002, "description": {"drag_coefficient": 1.5}}, changes)
    assert result["drag_coefficient"] == "1.5, 2.0 from 0.5 s"
    assert [row[0] for row in change_rows([*changes] * 5, 0.002)][-2:] == ["0.6 s", "later"]


def test_settings_of_several_robots_are_by_robot() -> None:
    origin = {
        "controllers": ["autopilot:robot=a,depth_m=2.5", "autopilot:robot=b,depth_m=3.5"],
        "description": {"a": {"chains": 30}, "b": {"chains": 60, "current_m_s": [0.0, 0.1, 0.0]}},
    }
    result = settings(origin)
    assert (result["a.autopilot.depth_m"], result["b.autopilot.depth_m"]) == ("2.5", "3.5")
    assert (result["a.chains"], result["b.chains"], result["b.current_m_s"]) == (30, 60, "[0.0, 0.1, 0.0]")
    assert result["controllers"] == "a.autopilot, b.autopilot"
