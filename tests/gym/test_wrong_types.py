"""What a program hands to an environment by mistake is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms.base.errors import ArgumentError, ModelError

pytest.importorskip("gymnasium", reason="pip install 'rtmms[gym]'")

from rtmms.gym.environments import RobotEnv, RobotVectorEnv

pytestmark = pytest.mark.full

NAN = float("nan")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"dt": 3}, "gym: parameters: expected names of the robot's parameters, got 'dt'; give dt= beside it"),
        ({"robot": "eel"}, "got 'robot'; give robot= beside it"),
        ({1: 2}, "got 1"),
        ({"preset": 3}, "preset: expected a name or a FILE.toml, got 3"),
    ],
)
def test_parameters_of_an_environment(arguments: dict[Any, Any], text: str) -> None:
    with pytest.raises((ArgumentError, ModelError), match=text):
        RobotEnv("MantaDepth", parameters=arguments)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True, NAN, 1 << 200])
def test_seeds_of_an_environment(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="gym: seed: expected a"):
        RobotEnv("MantaDepth").reset(seed=seed)
    many = RobotVectorEnv("MantaDepth", 2)
    for values in (seed, [seed, 1]):
        with pytest.raises(ArgumentError, match="gym: seed: expected a"):
            many.reset(seed=values)
