"""A and B of a step by the structure of the manta's equations, against differences of all coordinates, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.linearise import Linear, reach_of

FEW: dict[str, Any] = {"chains": 5, "links": 2, "dt": 1e-2}
UNEVEN = np.array([0.50, 0.42, 0.45, 0.38])
"""rad, amplitudes of the rods: left and right differ."""


def flapping(plant: Any, steps: int = 70) -> Any:
    """The plant in mid-flap, and the next command."""
    for k in range(steps):
        plant.step(UNEVEN * np.sin(3.8 * plant.dt * k + np.arange(4) / 3.0))
    return UNEVEN * np.sin(3.8 * plant.dt * steps + np.arange(4) / 3.0)


def off(linear: Linear, other: Linear, plant: Any) -> float:
    """The largest difference of an entry of A or B, in the chart's sizes; of the largest where that is above 1."""
    size = plant.chart().size
    by, both = np.concatenate([size, reach_of(plant.actuators)]), np.hstack([other.a, other.b])
    wrong = (np.hstack([linear.a, linear.b]) - both) * by / size[:, None]
    return float(np.abs(wrong).max() / max(1.0, np.abs(both * by / size[:, None]).max()))


def both(plant: Any, command: Any) -> tuple[Linear, Linear]:
    blob = plant.snapshot()
    result, other = rtmms.linearise(plant, command), rtmms.linearise(plant, command, method="differences")
    assert plant.snapshot() == blob
    assert (result.method, other.method) == ("structure", "differences")
    assert result.states == other.states
    assert result.b.shape == other.b.shape
    return result, other


@pytest.mark.full
@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"chains": 20}, {"current_m_s": (0.2, -0.1, 0.05)}, {"left_chains_lost": 2}, {"actuation": "ideal"},
        {"support_roll": "zero", "body_moment": "norm", "body_drag": "norm"}, {"body_method": "euler"},
        {"fin_root_m": (0.05, 0.1, 0.02), "body_inertia_kg_m2": (0.2, 0.3, 0.5)}, {"dt": 1e-3},
        {"links": 3, "chains": 17}, {"links": 5}, {"links": 5, "left_chains_lost": 1}, {"coupling": "monolithic"},
        {"coupling": "monolithic", "links": 4, "current_m_s": (0.2, -0.1, 0.05)},
        {"coupling": "monolithic", "body_method": "euler"}, {"coupling": "monolithic", "right_chains_lost": 2},
    ],
    ids=lambda values: "-".join(values) or "plain",
)  # fmt: skip
def test_in_mid_flap(arguments: dict[str, Any]):
    plant = rtmms.load("manta", **FEW | arguments)
    result, other = both(plant, flapping(plant))
    ideal = "actuation" in arguments  # whose rates are differences of commands over dt
    assert off(result, other, plant) < (1e-7 if ideal else 1e-8)
    assert ideal or result.error < 1e-7
    assert np.abs(result.a - np.eye(len(result.a))).max() > 0.1


def test_by_what_a_coordinate_reaches():
    """Joints of one chain do not know those of another; the blocks are the same as the whole."""
    plant = rtmms.load("manta", **FEW)
    result, other = both(plant, flapping(plant))
    left, right = result.states.index("left[0,1]"), result.states.index("left[1,2].rate")
    assert result.a[left, right] == other.a[left, right] == 0.0
    packed: Any = result.packed
    x = np.random.default_rng(2).normal(size=(len(result.states), 3))
    np.testing.assert_allclose(packed.times(x), result.a @ x, atol=1e-12 * np.abs(result.a).max())
    np.testing.assert_allclose(packed.times(x[:, 0]), result.a @ x[:, 0], atol=1e-12 * np.abs(result.a).max())
    again = rtmms.linearise(plant, np.zeros(4))
    assert np.abs(again.a - result.a).max() > 1e-3  # and what was found before is kept
    np.testing.assert_array_equal(packed.dense(), result.a)


def test_at_rest():
    """Drag has a kink in its slope there: the mean of both sides, of which differences are off by their step."""
    plant = rtmms.load("manta", **FEW)
    for command in (np.zeros(4), np.array([0.7, -0.7, 0.7, 0.3])):
        result, other = both(plant, command)
        assert off(result, other, plant) < 3.0 * other.error < 1e-4


@pytest.mark.parametrize("steps", [0, 30])
def test_commands_at_and_beyond_limits(steps: int):
    """At a limit a command's slope is the mean of both sides, beyond it 0; so with that of two rods' difference."""
    plant = rtmms.load("manta", **FEW)
    limit = plant.actuators[0].upper
    flapping(plant)
    for _ in range(steps):
        plant.step(np.array([limit, limit, -limit, 0.4]))
    result, other = both(plant, np.array([limit, limit, -2.0 * limit, 0.4]))
    assert off(result, other, plant) < 1e-8 + other.error < 1e-5  # a kink of drag is near
    last = [result.states.index(f"{name}.last") for name in ("left.front", "right.back")]
    assert result.b[last[0], 0] == pytest.approx(0.5)
    assert result.b[last[1], 2] == pytest.approx(other.b[last[1], 2])


@pytest.mark.parametrize(
    "arguments",
    [
        {"integrator": "rk4", "dt": 1e-4}, {"body": "fixed"}, {"fin_normal": "neighbour"}, {"coupling": "iterated"},
        {"coupling": "monolithic", "links": 7},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.full
def test_where_the_structure_is_another(arguments: dict[str, Any]):
    """Differences serve, with a notice."""
    plant = rtmms.load("manta", **FEW | arguments)
    u = flapping(plant)
    assert rtmms.linearise(plant, u).method == "differences"
    with pytest.raises(rtmms.ModelError, match="linearise: method: 'structure' does not support this Manta"):
        rtmms.linearise(plant, u, method="structure")


def test_methods_by_name():
    plant = rtmms.load("manta", **FEW)
    assert rtmms.linearise(plant, method="structure").method == "structure"
    assert rtmms.linearise(plant, method="differences").method == "differences"
    with pytest.raises(rtmms.UnknownNameError, match="unknown method of linearise 'strukture'"):
        rtmms.linearise(plant, method="strukture")


def test_parameters_that_change():
    """The structure follows `set`."""
    plant = rtmms.load("manta", **FEW)
    u = flapping(plant)
    before, _ = both(plant, u)
    plant.set(drag_coefficient=3.0, current_m_s=(0.1, 0.0, 0.0))
    result, other = both(plant, u)
    assert off(result, other, plant) < 1e-8
    assert np.abs(result.a - before.a).max() > 1e-3


@pytest.mark.parametrize("coupling", ["sequential", "monolithic"])
def test_a_period(coupling: str):
    """Steps chained are differences of whole periods; the same bits for any number of threads."""
    plant = rtmms.load("manta", **FEW, coupling=coupling)
    u = plant.gait_commands(167)
    for command in u[:90]:
        plant.step(command + 0.01 * np.arange(4))
    plant.place(quaternion=(0.9, 0.1, -0.3, 0.2))
    blob = plant.snapshot()
    result, other = rtmms.linearise(plant, u, period=True, threads=1), rtmms.linearise(plant, u, period=True, threads=2)
    apart = rtmms.linearise(plant, u, period=True, method="differences")
    assert plant.snapshot() == blob
    assert (result.method, apart.method, result.dt) == ("structure", "differences", apart.dt)
    np.testing.assert_array_equal(result.a, other.a)
    np.testing.assert_array_equal(result.b, other.b)
    assert off(result, apart, plant) < 1e-6
