"""What every plant refuses of `step` and `reset`, and that commands beyond limits are brought within them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.sensing.faults import Faulty

ROBOTS = ("manta", "quadrotor", "torpedo", "bluerov2", "cat", "purcell")


@pytest.fixture(scope="module", params=[*ROBOTS, "failing quadrotor"])
def plant(request: pytest.FixtureRequest) -> Any:
    if request.param == "failing quadrotor":
        return Faulty(rtmms.load("quadrotor"))
    return rtmms.load(request.param)


def test_wrong_arguments_are_refused_and_change_nothing(plant: Any) -> None:
    before, n = plant.snapshot(), len(plant.actuators)
    for bad in ("x", None, {}, np.zeros(n + 1), np.zeros((n, 1)), ["a"] * n, [1j] * n, [np.nan] * n, [np.inf] * n,
                np.ma.array(np.zeros(n), mask=True), np.broadcast_to(0.0, (1 << 40, n))):  # fmt: skip
        with pytest.raises(rtmms.RtmmsError, match="command") as caught:
            plant.step(bad)
        assert isinstance(caught.value, ValueError)
    for seed in ("a", 1.5, None, True, 1 << 64, -1):
        with pytest.raises(rtmms.ArgumentError, match="seed: expected a whole number"):
            plant.reset(seed=seed)
    assert plant.snapshot() == before


def test_a_command_beyond_the_limits_does_what_the_limits_do(plant: Any) -> None:
    lower, upper = ([getattr(actuator, end) for actuator in plant.actuators] for end in ("lower", "upper"))
    for beyond, limit in ((1e9, upper), (-1e9, lower)):
        observed = []
        for command in (np.full(len(limit), beyond), np.array(limit, dtype=float)):
            plant.reset()
            for _ in range(5):
                plant.step(command)
            observed.append(plant.observe()["position"])
        np.testing.assert_array_equal(*observed)


def test_the_difference_of_a_fins_rods_is_reported_and_counted() -> None:
    """The plant's own word of what it obeys, from `limit_commands`."""
    from rtmms.robots.manta.rods import limit_commands

    plant: Any = rtmms.load("manta")
    for item in plant.coupled:
        for part, changed in ((0.999, False), (1.001, True)):
            command, out = np.zeros(4), np.zeros(4)
            command[item.first], command[item.second] = 0.5 * part * item.obeyed, -0.5 * part * item.obeyed
            assert limit_commands(-1.2, 1.2, item.max_difference, command, out, 0) == changed
        assert item.obeyed < item.max_difference == pytest.approx(plant.parameters.rod_difference_limit_rad)


def episodes(name: str, count: int, seconds: float) -> None:
    """Random commands within the declared limits, held for 0.2 s."""
    plant: Any = rtmms.load(name)
    lower = [-1.0 if actuator.lower is None else actuator.lower for actuator in plant.actuators]
    upper = [1.0 if actuator.upper is None else actuator.upper for actuator in plant.actuators]
    for seed in range(count):
        rng = np.random.default_rng(seed)
        plant.reset(seed=seed)
        for k in range(round(seconds / plant.dt)):
            if k % round(0.2 / plant.dt) == 0:
                command = rng.uniform(lower, upper)
            plant.step(command)
        assert all(np.isfinite(value).all() for value in plant.observe().values())


@pytest.mark.full
@pytest.mark.parametrize("name", [*ROBOTS, "snake", "eel", "fish", "snakeboard", "satellite"])
def test_random_commands_within_the_limits_end_well(name: str) -> None:
    episodes(name, 5, 10.0)
