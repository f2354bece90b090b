"""Every actuator and every limit of a joint in steps from 0.1 to 20 ms: no run is wrong and called fine."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.plant.monitor import Errors
from rtmms_benchmarks import guards
from rtmms_benchmarks.guards_cases import ACTUATORS, TREE_METHODS, Case, limits, swimmer

pytestmark = pytest.mark.full

METHODS = [method if method == "rk4" else pytest.param(method, marks=pytest.mark.full) for method in TREE_METHODS]


def cells_of(case: Case, steps: tuple[float, ...]) -> list[guards.Cell]:
    return guards.line(Case(case.robot, case.method, case.knob, case.load, steps, 0.6, case.command))


@pytest.mark.parametrize("knob", ACTUATORS)
@pytest.mark.parametrize("method", METHODS)
def test_no_cell_is_wrong_and_fine(method: str, knob: str) -> None:
    case = next(limit for limit in limits(methods=(method,)) if limit.knob == knob)
    cells = cells_of(case, (2e-4, 1e-3, 4e-3, 1e-2, 2e-2))
    assert [cell for cell in cells if cell.fate in ("silent", "refused though right", "no reference")] == []


def test_a_step_beyond_the_braking_time_is_measured_and_does_not_stop_the_run() -> None:
    """A limit of 4 ms in steps of 5 ms brakes over 10 ms: the verdict has the error, the method is not unstable."""
    case = next(limit for limit in limits(methods=("rk4",)) if limit.knob == "limit")
    right, wrong = cells_of(case, (1e-3, 5e-3))
    assert (right.verdict, wrong.verdict) == ("fine", "doubtful")
    for what in ("path", "power"):
        truth, reported = getattr(wrong, what), getattr(wrong, f"estimated_{what}")
        assert truth < reported < 1.5 * truth
    assert not swimmer(5e-3, "rk4", ACTUATORS["limit"][0]).step_error_estimator().bounded
    assert swimmer(2e-3, "rk4", ACTUATORS["limit"][0]).step_error_estimator().bounded
    assert swimmer(5e-3, "rk4", ACTUATORS["limit, T = 20 ms"][0]).step_error_estimator().bounded


def test_few_unstable_steps_are_impacts() -> None:
    """One step of an impact among many that are right: the run goes on."""
    plant = swimmer(1e-3, "rk4", ACTUATORS["motion"][0])
    estimator = plant.step_error_estimator()
    errors, begin, end, off = Errors(estimator), estimator.room(), estimator.room(), estimator.room()
    end.twist[:], off.twist[:] = 1.0, 1.0
    for k in range(40):
        off.twist[0] = 3.0 if k == 20 else 1.0
        errors.add(begin, end, off, True, 10.0)
    assert (errors.unstable_steps, errors.unstable) == (1, pytest.approx(1.0 / 40.0))
    errors.clear()
    assert (errors.unstable_steps, errors.unstable) == (0, 0.0)
    assert np.isfinite(errors.step.largest)
