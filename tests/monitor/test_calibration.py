"""What a run has measured is known at the next start, and a step known to be too long is warned of."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import rtmms
from rtmms.plant.monitor import Monitor, Verdict
from rtmms.plant.step_advice import Calibration, known_step
from rtmms.robots.manta.plant import Flapping


def verdict(path, work=0.0, measured=50):
    return Verdict("fine", 1e-3, path, work, measured)


def of(folder, dt=1e-3, **values):
    plant = rtmms.load("manta", dt=dt, **values)
    return Calibration(plant, plant.step_error_estimator(), folder)


def test_the_order_of_the_method_reports_the_other_steps(tmp_path):
    """Second order: a hundredth of the error at a tenth of the step; beyond four times it is no bound."""
    item = of(tmp_path)
    current = item.steps()[0.01]
    item.keep(verdict(1e-6))
    assert item.steps()[0.01] == current, "farther than is trusted: no bound"
    item.keep(verdict(1e-3, measured=60))
    assert item.steps()[0.001] == pytest.approx(1e-3)
    assert item.steps()[0.01] == pytest.approx(1e-3 * 10.0**0.5)
    assert "dt <= 0.0032 s keeps 1 % of the path and 5 % of the work, dt <= 0.001 s keeps 0.1 %" in item.sentences()[0]


def test_in_any_order_a_known_step_only_gets_tighter(tmp_path):
    """40 runs over steps of 0.1 to 20 times the default and three gaits, one cache: evidence that is kinder, of other
    steps, or of fewer measurements makes no known step longer, and the same evidence ends in the same one."""
    built = {ratio: rtmms.load("manta", dt=1e-3 * ratio) for ratio in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)}
    gaits = ("gait", "gait:frequency_hz=1.2", "gait:amplitude_deg=20,frequency_hz=0.3")
    draw = np.random.default_rng(44)
    runs = [(gait, ratio) for gait in gaits for ratio in (*built, *built)][:40]
    errors = {run: float(draw.uniform(0.2, 5.0)) * 1e-3 * run[1] ** 2 for run in runs}
    ends = []
    for order in range(3):
        folder, last = tmp_path / str(order), dict[str, float]()
        for gait, ratio in draw.permutation(np.array(runs, dtype=object)).tolist():
            plant = built[ratio]
            before = known_step(plant, (gait,), folder)
            assert before is not None
            assert before.steps[0.01] <= last.get(gait, math.inf)
            error = errors[gait, ratio]
            Calibration(plant, plant.step_error_estimator(), folder, (gait,)).keep(
                verdict(error, 5.0 * error, int(draw.integers(9, 90)))
            )
            last[gait] = known_step(plant, (gait,), folder).steps[0.01]
            assert last[gait] <= before.steps[0.01]
        ends.append(last)
    assert ends[0] == pytest.approx(ends[1])
    assert ends[0] == pytest.approx(ends[2])
    assert len(set(ends[0].values())) == 3, "each gait has a known step of its own"


def test_a_gait_written_otherwise_is_the_same_condition(tmp_path):
    plant = rtmms.load("manta")
    parts = ("gait:frequency_hz=0.50,amplitude_deg=30", "gait:amplitude_deg=30.0,frequency_hz=.5")
    item, other = (Calibration(plant, plant.step_error_estimator(), tmp_path, (word,)) for word in parts)
    assert item.file == other.file
    assert item.conditions["controllers"] == ["gait:amplitude_deg=30,frequency_hz=0.5"]
    item.keep(verdict(1e-3))
    assert json.loads(item.file.read_text())["conditions"]["parameters"]["chains"] == plant.parameters.chains


def test_the_work_counts_as_the_path_does(tmp_path):
    """Five times as much of it is allowed: 20 % of the work at 1 ms, 5 % at half of it by the second order."""
    item = of(tmp_path)
    item.keep(verdict(1e-6, work=0.2))
    assert item.steps()[0.01] == pytest.approx(5e-4)
    assert "use dt <= 0.0005 s" in item.sentences()[1]


def test_another_step_of_the_same_robot_reads_it_and_another_robot_does_not(tmp_path):
    of(tmp_path).keep(verdict(1e-3))
    known, warning = of(tmp_path, dt=0.02).sentences()
    assert "earlier runs" in known
    assert "dt = 0.02 s is known to be inaccurate" in warning
    assert not of(tmp_path, drag_coefficient=3.0).read()


def test_the_manta_knows_its_own_gait(tmp_path):
    assert of(tmp_path).sentences()[1] == ""
    assert "use dt <= 0.02 s" in of(tmp_path, dt=0.5).sentences()[1]


def test_a_method_with_a_bound_reaches_no_further_than_was_measured(tmp_path):
    plant = rtmms.load("eel")
    item = Calibration(plant, plant.step_error_estimator(), tmp_path)
    assert item.sentences() == ("", "")
    item.keep(verdict(1e-9, work=1e-9))
    assert item.steps() == {0.01: pytest.approx(1e-3), 0.001: pytest.approx(1e-3)}
    finer = rtmms.load("eel", dt=5e-4)
    Calibration(finer, finer.step_error_estimator(), tmp_path).keep(verdict(1e-9, work=1e-9))
    assert item.steps()[0.01] == pytest.approx(1e-3), "a shorter step that is fine makes none shorter"
    longer = rtmms.load("eel", dt=2e-3)
    other = Calibration(longer, longer.step_error_estimator(), tmp_path)
    assert other.sentences()[1] == ""  # longer than any that was measured is not known to be wrong
    item.keep(verdict(0.3, measured=60))
    assert "is known to be inaccurate" in other.sentences()[1]


def test_two_trees_without_parameters_do_not_share_what_is_known(tmp_path):
    def ball(mass):
        body = rtmms.model.Body("ball", solids=[rtmms.model.Box(0.1, 0.1, 0.1, 1000.0 * mass)])
        plant = rtmms.TreePlant(rtmms.Mechanism("one", [body]))
        return Calibration(plant, plant.step_error_estimator(), tmp_path)

    ball(1.0).keep(verdict(1e-3))
    assert ball(1.0).read()
    assert not ball(2.0).read()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', '{"1e-3": {"path_error": 1}}'])
def test_a_file_that_is_broken_is_none(tmp_path, text):
    item = of(tmp_path)
    item.file.write_text(text)
    assert item.read() == {}
    item.keep(verdict(1e-3))
    assert len(json.loads(item.file.read_text())["measured"]) == 1


def test_what_is_hopeless_or_cannot_be_written_is_not_kept(tmp_path):
    item = of(tmp_path)
    item.keep(Verdict("diverged", 1.0, 1.0, 0.0, 50))
    assert not item.file.exists()
    item.file = tmp_path / "file"
    item.file.write_text("")
    item.file = item.file / "below"
    item.keep(verdict(1e-3))


def test_what_one_gait_needs_is_not_asked_of_another(tmp_path):
    plant = rtmms.load("manta", dt=5e-3)
    wild, calm = (
        Calibration(plant, plant.step_error_estimator(), tmp_path, (word,)) for word in ("gait:frequency_hz=2", "gait")
    )
    wild.keep(verdict(0.3))
    assert "known to be inaccurate" in wild.sentences()[1]
    assert "known to be inaccurate" not in calm.sentences()[1]
    assert "the default gait" in calm.sentences()[0]


@pytest.mark.timeout(1800)
@pytest.mark.full  # 40 runs, the shortest steps of them 20,000
def test_40_runs_make_no_known_step_longer_and_report_how_far_they_are_off(tmp_path):
    """Steps of 0.1 to 20 times the default and three gaits in any order; the truth has the same commands in eighths."""
    ratios, gaits = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0), (0.3, 0.6, 1.2)
    small = {"chains": 3, "links": 2}
    draw, last, parts = np.random.default_rng(44), dict[float, float](), 8
    cases = [(gait, ratio) for gait in gaits for ratio in (*ratios, *ratios)][:40]
    for k in draw.permutation(len(cases)).tolist():
        frequency, ratio = cases[k]
        plant = rtmms.load("manta", dt=1e-3 * ratio, **small)
        fine = rtmms.load("manta", dt=1e-3 * ratio / parts, **small)
        p, steps = plant.parameters, round(2.0 / plant.dt)
        gait = Flapping(40.0, 40.0, frequency)
        commands = gait.angles(plant.dt * np.arange(steps), p.back_rod_m / p.front_rod_m)
        monitor, length, place = Monitor(plant.step_error_estimator()), 0.0, plant.observe()["position"]
        for command in commands:
            plant.step(command)
            monitor.after(command)
            length += float(np.linalg.norm(plant.observe()["position"] - place))
            place = plant.observe()["position"]
            for _ in range(parts):
                fine.step(command)
        result = monitor.conclude(math.inf, max_parts=2)
        off = float(np.linalg.norm(place - fine.observe()["position"])) / length
        assert off <= max(3.0 * result.path, 0.01), cases[k]
        Calibration(plant, monitor.estimator, tmp_path, (f"gait:frequency_hz={frequency}",)).keep(result)
        known = known_step(plant, (f"gait:frequency_hz={frequency}",), tmp_path).steps[0.01]
        assert known <= last.get(frequency, math.inf)
        last[frequency] = known
    assert len(last) == len(gaits)
