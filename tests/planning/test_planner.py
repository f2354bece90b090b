"""Plans on a small model: a quadrotor that is to be higher."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.planning.planner import CHUNK, Knots, Planner
from tests.pendulum import Pendulum

HOVER = 468.0


@rtmms.cost(outputs=("position", "velocity"))
def higher(state: Any, command: Any, time: float) -> float:
    return (state.position[2] - 0.2) ** 2 + 0.1 * state.velocity[2] ** 2  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def model() -> Any:
    return rtmms.load("quadrotor", dt=0.01)


@pytest.fixture
def planner(model: Any) -> Iterator[Planner]:
    model.reset()
    parts = Knots(model.actuators, 3, 0.5, np.full(4, HOVER))
    parts.scale[:] = 20.0
    built = Planner(model, parts, higher, horizon_s=0.5, samples=24, seed=4)
    yield built
    built.close()


def test_plans_get_better_and_the_same_seed_gives_the_same(planner: Planner, model: Any) -> None:
    model.place(position=(0.0, 0.0, 0.0))
    first = planner.plan(planner.variables.start(), 0.0)
    for _ in range(6):
        last = planner.plan(planner.variables.start(), 0.0)
    assert last.least < 0.7 * first.least
    assert (first.finished, first.failed, first.good) == (24, 0, True)
    assert first.path.shape == (50, 3)
    assert first.shown.shape == (4, 3, 3)
    assert len({*first.shown[:, -1, 2].tolist(), float(first.path[-1, 2])}) == 5  # all others than the best
    again = Planner(model, planner.variables, higher, horizon_s=0.5, samples=24, seed=4, threads=2)
    assert again.plan(planner.variables.start(), 0.0).variables.tobytes() == first.variables.tobytes()
    again.close()


def test_when_time_is_up_the_best_so_far_counts(planner: Planner) -> None:
    result = planner.plan(planner.variables.start(), 0.0, time.monotonic() - 1.0)
    assert (result.finished, result.good) == (CHUNK, True)


def test_a_cost_that_is_no_number_leaves_the_plan(model: Any) -> None:
    @rtmms.cost(outputs=("position",))
    def none(state: Any, command: Any, time: float) -> float:
        return np.nan

    parts = Knots(model.actuators, 2, 0.1, np.full(4, HOVER))
    planner = Planner(model, parts, none, horizon_s=0.1, samples=8)
    result = planner.plan(parts.start(), 0.0)
    assert (result.good, result.failed) == (False, 8)
    np.testing.assert_array_equal(result.variables, parts.home)
    planner.close()


def test_what_holds_the_robot_is_in_the_plan(planner: Planner) -> None:
    observed: list[Any] = []

    def stuck(commands: Any) -> Any:
        commands[..., 0] = HOVER
        observed.append(commands)
        return commands

    planner.plan(planner.variables.start(), 0.0, fixed=stuck)
    assert len(observed) == 2
    assert all((block[..., 0] == HOVER).all() for block in observed)


@pytest.mark.parametrize(
    ("arguments", "fault", "text"),
    [
        ({"method": "best"}, rtmms.UnknownNameError, "method 'best'"),
        ({"cost": rtmms.cost(lambda s, c, t: 0.0, outputs=("depth",))}, rtmms.UnknownNameError, "'depth'"),
        ({"model": Pendulum()}, rtmms.ModelError, "expected a robot with compiled steps"),
    ],
)
def test_what_cannot_be_planned_is_refused(model: Any, arguments: dict[str, Any], fault: Any, text: str) -> None:
    parts = Knots(model.actuators, 2, 0.1, np.full(4, HOVER))
    with pytest.raises(fault, match=text):
        Planner(**{"model": model, "variables": parts, "cost": higher, **arguments})
