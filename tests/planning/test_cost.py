"""Costs of runs: the compiled loop against plain Python, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.courses import course
from rtmms.planning.cost import POSE, Cost
from rtmms.planning.swaying import sway_along, sway_holding
from rtmms.planning.tasks import along_course, begin_at, hold

RUNS = 4
SAMPLES = 6


@pytest.fixture
def outputs() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    quaternion = rng.normal(size=(RUNS, SAMPLES, 4))
    return {
        "position": rng.normal(size=(RUNS, SAMPLES, 3)), "velocity": rng.normal(size=(RUNS, SAMPLES, 3)),
        "quaternion": quaternion / np.linalg.norm(quaternion, axis=2, keepdims=True),
        "angular_velocity": rng.normal(size=(RUNS, SAMPLES, 3)), "rod_power": rng.normal(size=(RUNS, SAMPLES)),
    }  # fmt: skip


def test_the_mean_of_the_running_cost_and_the_last_state_with_memory(outputs: dict[str, Any]) -> None:
    @rtmms.cost(outputs=("position", "rod_power"), memory=1)
    def build(state: Any, command: Any, time: float, memory: Any) -> float:
        memory[0] += 1.0
        return state.position[2] ** 2 + state.rod_power * command[0] + time + memory[0]  # type: ignore[no-any-return]

    @build.terminal
    def last(state: Any, memory: Any) -> float:
        return 7.0 * state.position[0] + memory[0]  # type: ignore[no-any-return]

    commands = np.random.default_rng(3).normal(size=(1, 2 * SAMPLES, 2))
    used = np.full(RUNS, 2 * SAMPLES)
    result = build.total(outputs, commands, 0.1, 2, used)
    for run in range(RUNS):
        z, power = outputs["position"][run, :, 2], outputs["rod_power"][run]
        each = z**2 + power * commands[0, 1::2, 0] + 0.2 * np.arange(1, SAMPLES + 1) + np.arange(1, SAMPLES + 1)
        expected = each.mean() + 7.0 * outputs["position"][run, -1, 0] + SAMPLES
        assert result[run] == pytest.approx(expected, rel=1e-12)


def test_runs_that_ended_early_or_cost_no_number_are_infinite(outputs: dict[str, Any]) -> None:
    @rtmms.cost(outputs=("position",))
    def root(state: Any, command: Any, time: float) -> float:
        return np.sqrt(state.position[0])  # type: ignore[no-any-return]

    outputs["position"][:, :, 0] = 1.0
    outputs["position"][1, 3, 0] = np.nan
    result = root.total(outputs, np.zeros((1, 1, 1)), 0.1, 1, np.array([SAMPLES, SAMPLES, SAMPLES - 1, SAMPLES]))
    assert result.tolist() == [1.0, math.inf, math.inf, 1.0]


def test_what_numba_cannot_compile_is_reported_in_a_sentence(outputs: dict[str, Any]) -> None:
    @rtmms.cost(outputs=("position",))
    def odd(state: Any, command: Any, time: float) -> float:
        return state.nothing + 1.0  # type: ignore[no-any-return]

    @rtmms.cost(outputs=("position",))
    def opens(state: Any, command: Any, time: float) -> float:
        open("x")  # noqa: SIM115
        return 0.0

    @rtmms.cost(outputs=("position",))
    def vector(state: Any, command: Any, time: float) -> float:
        return state.position  # type: ignore[no-any-return]

    @rtmms.cost(outputs=("position",))
    def beyond(state: Any, command: Any, time: float) -> float:
        return state.position[7]  # type: ignore[no-any-return]

    for cost, text in (
        (odd, r"'odd': numba cannot compile it: .*test_cost.py, line \d+: state has no 'nothing'; name it in outputs="),
        (opens, r"'opens': numba cannot compile it: .*test_cost.py, line \d+: Untyped global name 'open'"),
        (vector, "'vector': numba cannot compile it: expected a number from it"),
        (beyond, "'beyond': an index is beyond the end"),
    ):
        with pytest.raises(rtmms.ModelError, match=text):
            cost.total(outputs, np.zeros((1, 1, 1)), 0.1, 1, np.full(RUNS, SAMPLES))


def item(state: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rtmms.cost(item), "running cost 'item': expected a function"),
        (lambda: rtmms.cost(3), "expected a function"),
        (lambda: rtmms.cost(outputs="position"), "outputs: expected names"),
        (lambda: rtmms.cost(memory=-1), "memory: expected a whole number"),
        (lambda: Cost(lambda s, c, t: 0.0, POSE, 0).terminal(lambda: 0.0), "terminal cost"),
    ],
)
def test_wrong_costs_are_refused(make: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make()


@pytest.mark.full
def test_given_costs_are_those_of_the_general_loop(outputs: dict[str, Any]) -> None:
    """The kept kernels of the tasks hold no second law."""
    route = course("helix", radius_m=1.0, rise_m=-0.5, turns=1.0, depth_m=0.0)
    for built in (along_course(route, 0.4, 0.1 * SAMPLES), hold(1.0, 0.5, 0.4, 0.1 * SAMPLES)):
        general = Cost(built.running, POSE, built.memory, built.data)
        assert built.terminal_cost is not None
        general.terminal(built.terminal_cost)
        values = outputs, np.zeros((1, 1, 1)), 0.1, 1, np.array([SAMPLES, SAMPLES, 2, SAMPLES])
        result, expected = built.total(*values), general.total(*values)
        np.testing.assert_allclose(result, expected, rtol=1e-13)
        assert np.isinf(result).tolist() == [False, False, True, False]


def test_on_a_course_only_what_is_late_costs() -> None:
    """Level and along it, at its speed, nothing does; a tenth to the side costs its square."""
    route = course("waypoints", waypoints="0 0 0; 10 0 0")
    built = along_course(route, 0.5, 1.0)
    place = np.zeros((1, 10, 3))
    place[0, :, 0] = 0.3 + 0.05 * np.arange(1, 11)
    result = {
        "position": place, "quaternion": np.tile([1.0, 0, 0, 0], (1, 10, 1)),
        "velocity": np.tile([0.5, 0, 0], (1, 10, 1)), "angular_velocity": np.zeros((1, 10, 3)),
    }  # fmt: skip
    assert begin_at(built, np.array([0.3, 0.0, 0.0])) == pytest.approx(0.3)
    assert built.total(result, np.zeros((1, 1, 1)), 0.1, 1, np.array([10]))[0] == pytest.approx(0.0, abs=1e-20)
    place[0, :, 1] = 0.1
    cost = built.total(result, np.zeros((1, 1, 1)), 0.1, 1, np.array([10]))[0]
    assert cost == pytest.approx(0.01 + 0.5 * 0.01, rel=1e-9)


@pytest.mark.parametrize("what", ["course", "hold"])
def test_a_head_that_swings_with_its_beat_costs_no_more_at_the_end(what: str) -> None:
    """Along the wanted line, swinging to both sides over whole beats, with the speed that is wanted: only the running
    cost is left. Swimming off to a side costs what is written at the head of the file."""
    times = 0.025 * np.arange(1, 101)  # 2.5 s, two beats
    swing = 0.1 * np.sin(2.0 * math.pi * 0.8 * times)
    runs: dict[str, Any] = {name: np.zeros((2, 100, size)) for name, size in zip(POSE, (3, 4, 3, 3), strict=True)}
    runs["position"][:, :, 0] = 0.2 * times
    runs["position"][1, :, 2] = 0.04 * times
    if what == "course":
        runs["position"][:, :, 1] = swing
        runs["quaternion"][:, :, 0] = 1.0
        cost = sway_along(course("waypoints", waypoints="0 0 0; 10 0 0"), 0.2, 2.5)
        begin_at(cost, np.zeros(3))
    else:
        runs["quaternion"][:, :, 0], runs["quaternion"][:, :, 3] = np.cos(0.5 * swing), np.sin(0.5 * swing)
        cost = sway_holding(0.0, 0.0, 0.2, 2.5)
    result = cost.total(runs, np.zeros((1, 1, 1)), 0.025, 1, np.array([100, 100]))
    swinging = np.mean(swing**2) * (1.0 if what == "course" else 0.5)
    high = runs["position"][1, :, 2]
    going = 2.0 * high[50:].mean() - high[:50].mean()
    np.testing.assert_allclose(result, [swinging, swinging + np.mean(high**2) + 2.0 * going**2], atol=1e-12)
