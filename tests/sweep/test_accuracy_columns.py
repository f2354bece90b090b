"""What a row of a study has of its own accuracy, of settling and of misses, and what the summary makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.studies.case import Runner, has_settled
from rtmms.studies.sweep_study import Axis, Base, Study


def reports(dt: float, duration: float, frequencies: tuple[float, ...] = (0.6,)) -> list[dict[str, Any]]:
    base = Base(
        "manta", controllers=("gait",), parameters={"chains": 3, "links": 2}, dt=dt, duration=duration, seed=0,
    )  # fmt: skip
    study = Study(base, (Axis("gait.frequency_hz", frequencies),))
    runner = Runner(study)
    return [runner.report(case) for case in study.cases()]


def test_a_row_reports_whether_its_steps_are_too_long():
    """0.1 s is a sixteenth of a stroke: the work is off; 5 ms is not. Twice the same numbers."""
    (coarse,), (again,) = reports(0.1, 6.0), reports(0.1, 6.0)
    assert coarse["accuracy.doubtful"] == 1.0
    assert max(coarse["accuracy.path_error"] / 0.01, coarse["accuracy.work_error"] / 0.05) > 1.0
    assert {name: value for name, value in coarse.items() if name.startswith("accuracy")} == {
        name: value for name, value in again.items() if name.startswith("accuracy")
    }
    (fine,) = reports(0.005, 6.0)
    assert fine["accuracy.doubtful"] == 0.0
    assert fine["accuracy.path_error"] < coarse["accuracy.path_error"]
    assert fine["misses"] == 0


@pytest.mark.parametrize(("time_constant", "expected"), [(0.5, 1.0), (20.0, 0.0)])
def test_a_run_is_settled_when_its_means_no_longer_change(time_constant, expected):
    """A speed that rises as 1 - exp(-t / T): done after 20 T, still rising after T."""
    time = np.linspace(0.0, 20.0, 2001)
    speed = 1.0 - np.exp(-time / time_constant)

    def summarise(t: Any, values: Any) -> dict[str, float | None]:
        return {"mean_speed_m_s": float(np.mean(values["speed"][len(t) // 2 :])), "mean_power_w": None}

    assert has_settled(summarise, time, {"speed": speed}) == expected
    assert has_settled(lambda t, values: {}, time, {"speed": speed}) is None


@pytest.mark.full  # Parquet
def test_the_summary_names_the_rows_that_cannot_be_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    from matplotlib.figure import Figure

    from rtmms.cli.main import rtmms as program

    arguments = ["sweep", "manta", "--set", "chains=3", "--set", "links=2", "--dt", "0.1", "--duration", "6", "--vary",
             "gait.frequency_hz=0.5,1", "-o", str(tmp_path / "s.parquet"), "--threads", "1", "--quiet"]  # fmt: skip
    doubt = "not to be trusted: 2 of 2 runs (0, 1): steps too long"
    pages: list[Figure] = []
    monkeypatch.setattr("rtmms.studies.sweep_figure.save", lambda page, _: pages.append(page))
    assert program.main([*arguments, "--figure", str(tmp_path / "s.png")], standalone_mode=False) == 0
    assert doubt in capsys.readouterr().out
    (page,) = pages
    assert page.get_suptitle() == "manta: 2 runs of 6 s"
    assert doubt in page.get_supxlabel()
    titles = [axes.get_title(loc="left") for axes in page.axes]
    assert "mean speed, m/s" in titles
    assert not any(title.startswith(("accuracy", "settled")) for title in titles)
    assert program.main([*arguments, "--json"], standalone_mode=False) == 0
    assert json.loads(capsys.readouterr().out)["doubted"]["accuracy"] == [0, 1]
