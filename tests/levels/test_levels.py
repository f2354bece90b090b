"""A plant and its cheaper variants: what a change keeps, what it costs, and that nothing changes without one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.loop.policies import Governor, Thresholds
from rtmms.plant.levels import Levels, levels_of
from rtmms.robots.manta.levels import cheaper, interpolate_stations
from tests.wire.bench import Toy


@pytest.fixture(scope="module")
def swimming() -> Levels:
    """In the middle of a stroke of the usual gait."""
    levels = Levels(rtmms.load("manta", chains=80))
    swim(levels, 700)
    return levels


def swim(plant: Any, steps: int) -> None:
    manta: Any = rtmms.load("manta", chains=16)
    commands = manta.gait_commands(round(manta.gait_period() / plant.dt))
    for k in range(steps):
        plant.step(commands[k % len(commands)] * min(1.0, k / 200))


def test_level_0_has_the_bits_of_the_plant_alone() -> None:
    levels, plant = Levels(rtmms.load("manta", chains=48)), rtmms.load("manta", chains=48)
    levels.reset()
    swim(levels, 50)
    swim(plant, 50)
    observed, message = levels.observe(), plant.observe()
    assert observed.pop("level") == 0.0
    assert {name: value.tobytes() for name, value in observed.items()} == {k: v.tobytes() for k, v in message.items()}


def test_a_change_keeps_the_body_to_the_bit_and_the_force_on_it_within_a_hundredth(swimming: Levels) -> None:
    blob, biggest = swimming.snapshot(), 0.0
    for level in (1, 2, 0, 2, 1, 0):
        before = swimming.observe()
        swimming.set(level=level)
        after = swimming.observe()
        assert after["level"] == level
        for name in ("position", "quaternion", "velocity", "angular_velocity", "rod_angle", "rod_rate"):
            assert np.array_equal(before[name], after[name]), name
        for part in (slice(0, 3), slice(3, 6)):
            jump = np.abs(after["thrust"] - before["thrust"])[:, part].max()
            biggest = max(biggest, jump / np.abs(before["thrust"])[:, part].max())
        assert after["kinetic_energy"] == pytest.approx(before["kinetic_energy"], rel=1e-3)
        assert after["elastic_energy"] == pytest.approx(before["elastic_energy"], rel=0.01)
        assert {name: np.shape(value) for name, value in after.items()} == {k: np.shape(v) for k, v in before.items()}
    assert 0.0 < biggest < 0.01
    swimming.restore(blob)


def test_a_changed_run_gives_the_same_bits_again(swimming: Levels) -> None:
    blob = swimming.snapshot()

    def go() -> bytes:
        swimming.restore(blob)
        for level in (0, 1, 2, 1, 0):
            swimming.set(level=level)
            swim(swimming, 20)
        return swimming.snapshot()

    once = go()
    assert go() == once
    swimming.restore(blob)
    swim(swimming, 100)
    assert swimming.snapshot() != once
    swimming.restore(blob)


def test_a_snapshot_knows_its_level(swimming: Levels) -> None:
    first = swimming.snapshot()
    swimming.set(level=2)
    second = swimming.snapshot()
    swimming.restore(first)
    assert swimming.level == 0
    swimming.restore(second)
    assert swimming.observe()["level"] == 2.0
    with pytest.raises(rtmms.ModelError, match="level: restore"):
        swimming.restore(first[:-1] + b"x")
    swimming.reset()
    assert swimming.level == 0
    swim(swimming, 700)


def test_what_is_set_is_set_of_all(swimming: Levels) -> None:
    swimming.set(current_m_s=(0.1, 0.0, 0.0), left_chains_lost=40)
    assert [2 * item.manta.parameters.left_chains_lost for item in swimming.plants[1:]] == [
        item.manta.parameters.chains for item in swimming.plants[1:]
    ]
    for plant in swimming.plants[1:]:
        assert plant.manta.parameters.current_m_s == (0.1, 0.0, 0.0)
    for wrong in (3.5, -1, 9, "low", True):
        with pytest.raises(rtmms.ModelError, match="level: expected a whole number from 0 to"):
            swimming.set(level=wrong)
    with pytest.raises(rtmms.UnknownNameError, match="did you mean current_m_s"):
        swimming.set(current_ms=(0.0, 0.0, 0.0), level=1)
    assert swimming.level == 0
    swimming.set(current_m_s=(0.0, 0.0, 0.0), left_chains_lost=0)


def test_the_variants_are_cheaper_one_by_one() -> None:
    plant: Any = rtmms.load("manta", chains=16)
    result = cheaper(plant.parameters, "monolithic")
    assert [(coupling, parts) for _, coupling, parts in result] == [("sequential", "coupling sequential")]
    many = [p.chains for p, _, _ in cheaper(rtmms.load("manta", chains=80).parameters, "sequential")]  # type: ignore[attr-defined]
    assert many == sorted(many, reverse=True)
    assert many[-1] == 16


def test_values_between_stations() -> None:
    stations, wanted = np.array([0.25, 0.75]), np.array([0.0, 0.25, 0.5, 1.0])
    assert interpolate_stations(stations, wanted, np.array([[1.0, 3.0]])).tolist() == [[0.0, 1.0, 2.0, 4.0]]
    assert interpolate_stations(np.array([0.5]), wanted, np.array([[2.0]])).tolist() == [[2.0] * 4]


class Coarse(Toy):
    """A third party's, with a variant of itself."""

    variant = "coarse"

    def variants(self) -> list[Any]:
        return [Coarse()]

    def copy_state_from(self, other: Any) -> None:
        self.restore(other.snapshot())


def test_a_third_partys_plant_offers_levels() -> None:
    levels = Levels(Coarse())
    levels.measure()
    assert len(levels.costs) == 2
    levels.step(np.full(4, 0.5))
    before = levels.full.snapshot()
    levels.set(level=1)
    assert levels.plants[1].snapshot() == before
    assert levels_of(levels) is levels
    assert levels_of(Toy()) is None


class Other(Coarse):
    def variants(self) -> list[Any]:
        wrong = Coarse()
        wrong.dt = 0.5
        return [wrong]


def test_who_offers_none_or_others_is_reported() -> None:
    with pytest.raises(rtmms.ModelError, match="--degrade: expected a robot with cheaper variants"):
        Levels(Toy())
    with pytest.raises(rtmms.ModelError, match=r"variant 1: expected dt = .* and the channels of the full"):
        Levels(Other())
    with pytest.raises(rtmms.ModelError, match="--degrade: expected 1 to 15 variants, got 0"):
        Levels(rtmms.load("manta", chains=16))


# --- when -------------------------------------------------------------------------------------------------------------

MS = 1_000_000


class Stepping:
    """A plant with levels whose steps take what they cost."""

    def __init__(self, *costs_ms: float) -> None:
        self.level, self.costs = 0, tuple(1e-3 * cost for cost in costs_ms)

    def drive(self, governor: Governor, busy_ms: list[float]) -> list[int]:
        """Steps with so much beside the plant; the level of each."""
        result = []
        for extra in busy_ms:
            plant_ns = round(1e9 * self.costs[self.level])
            result.append(self.level)
            level = governor.look(round(extra * MS) + plant_ns, plant_ns)
            if level != self.level:
                self.level = level
                governor.changed(len(result), level)
        return result


def test_full_periods_go_down_and_calm_ones_back() -> None:
    plant = Stepping(0.4, 0.2, 0.1)
    governor = Governor(plant, 1.0 * MS, Thresholds(calm_s=0.1))
    levels = plant.drive(governor, [0.05] * 200 + [0.7] * 40 + [0.05] * 400)
    assert set(levels[:200]) == {0}
    assert levels[205] >= 1
    assert max(levels) == 2
    assert levels[-1] == 0
    ups = [k for k in range(1, len(levels)) if levels[k] < levels[k - 1]]
    assert len(ups) == 2
    assert ups[1] - ups[0] >= 100  # each after a calm time of its own
    assert governor.report()["changes"][0][1] == 1
    assert sum(governor.steps) == 640


def test_one_stall_of_the_machine_changes_nothing() -> None:
    plant = Stepping(0.3, 0.1)
    levels = plant.drive(Governor(plant, 1.0 * MS), ([0.1] * 100 + [5.0]) * 5)
    assert set(levels) == {0}


def test_it_does_not_swing() -> None:
    """What would not fit with the better level stays at the cheaper one."""
    plant = Stepping(0.5, 0.1)
    levels = plant.drive(Governor(plant, 1.0 * MS, Thresholds(calm_s=0.05)), [0.45] * 2000)
    assert levels[-1] == 1
    assert sum(a != b for a, b in pairwise(levels)) == 1


def test_the_last_level_is_the_last() -> None:
    plant = Stepping(0.5, 0.4)
    assert plant.drive(Governor(plant, 1.0 * MS), [3.0] * 200)[-1] == 1
