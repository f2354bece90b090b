"""`set`: parameters that change while a plant runs have the effect that they have when it is built with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import settable
from rtmms.robots import eel, moth
from rtmms.robots.manta import plant as manta

SMALL = {"chains": 16, "links": 2}
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("manta", SMALL, {"current_m_s": (0.3, 0.0, 0.1)}),
    ("manta", SMALL, {"current_m_s": "0.3,0,0.1"}),  # as a person types it
    ("manta", SMALL | {"coupling": "iterated"}, {"young_modulus_pa": 3e7, "joint_damping_n_m_s": 0.2}),
    ("manta", SMALL, {"drag_coefficient": 2.0, "body_drag_coefficient": (0.1, 0.2, 0.3), "gravity_m_s2": 9.0}),
    ("manta", SMALL, {"servo_frequency_hz": 3.0, "rod_rate_limit_rad_s": 1.0}),
    ("eel", {"joints": 2}, {"current_x_m_s": 0.4, "current_z_m_s": -0.1}),
    ("eel", {"joints": 2}, {"c1": 0.3, "c2": 0.5, "gravity_m_s2": 9.0}),
    ("eel", {"joints": 2, "drive": "torque"}, {"kp_n_m": 5.0, "kd_n_m_s": 1.0}),
    ("moth", {"start": "rest"}, {"damping_n_m_s": 1.1e-5, "twist_root_n_m": 3.1e-3}),
    ("moth", {"start": "rest"}, {"pressure": 0.3}),
]
COMMANDS = {"manta": [0.2, 0.3, 0.2, 0.3]}


def steps(plant: Any, count: int) -> Any:
    command = np.zeros(len(plant.actuators))
    command[:4] = COMMANDS.get("manta" if len(command) == 4 and plant.actuators[0].name == "left.front" else "", 0.0)
    for _ in range(count):
        plant.step(command)
    return plant.observe()


@pytest.mark.parametrize(("robot", "built", "changed"), CASES)
def test_set_at_the_start_is_as_built_with_it(robot: str, built: dict[str, Any], changed: dict[str, Any]) -> None:
    item, other, plain = rtmms.load(robot, **built), rtmms.load(robot, **built, **changed), rtmms.load(robot, **built)
    item.set(**changed)  # type: ignore[attr-defined]
    result, expected, without = steps(item, 20), steps(other, 20), steps(plain, 20)
    for name, value in expected.items():
        np.testing.assert_array_equal(result[name], value, err_msg=name)
    assert any(not np.array_equal(result[name], without[name]) for name in without)  # and it has an effect at all
    assert item.parameters == other.parameters  # type: ignore[attr-defined]


@pytest.mark.parametrize(("robot", "built", "changed"), CASES[:1] + CASES[6:7])
def test_set_keeps_the_state_and_a_reset_keeps_what_was_set(robot: str, built: Any, changed: Any) -> None:
    plant, other = rtmms.load(robot, **built), rtmms.load(robot, **built, **changed)
    before = steps(plant, 10)
    plant.set(**changed)  # type: ignore[attr-defined]
    after = plant.observe()
    for name in ("position", "velocity", "joint_position", "joint_velocity"):
        np.testing.assert_array_equal(before[name], after[name])
    plant.reset()
    result, expected = steps(plant, 10), steps(other, 10)
    np.testing.assert_array_equal(result["velocity"], expected["velocity"])


@pytest.mark.parametrize(("robot", "built", "changed"), CASES[:1] + CASES[6:7])
def test_snapshots_are_tied_to_what_was_set(robot: str, built: Any, changed: Any) -> None:
    plant = rtmms.load(robot, **built)
    old = plant.snapshot()
    plant.set(**changed)  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="snapshot"):
        plant.restore(old)
    new = plant.snapshot()
    steps(plant, 3)
    plant.restore(new)
    assert plant.snapshot() == new


@pytest.mark.parametrize(
    ("robot", "built", "arguments", "text"),
    [
        ("manta", SMALL, {"curent_m_s": 1}, "did you mean current_m_s"),
        ("manta", SMALL, {"chains": 20}, "manta: chains cannot change while the plant runs; what can change"),
        ("manta", SMALL, {"drag_coefficient": -1}, "must be >= 0"),
        ("manta", SMALL, {"drag_coefficient": "x"}, "must be a number"),
        ("manta", SMALL, {"current_m_s": (1, 2)}, "must be 3 numbers, got 2"),
        ("manta", SMALL, {"gravity_m_s2": float("nan")}, "must be finite"),
        ("manta", SMALL, {}, "expected parameter = value"),
        ("eel", {"joints": 2}, {"c1": -1}, "c1 must be >= 0"),
        ("eel", {"joints": 2}, {"joints": 3}, "eel: joints cannot change while the plant runs"),
        ("moth", {"start": "rest"}, {"pressure": 2.0}, "moth: pressure must be <= 1, got 2"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(robot: str, built: Any, arguments: Any, text: str) -> None:
    plant = rtmms.load(robot, **built)
    before = plant.snapshot()
    with pytest.raises((ModelError, UnknownNameError), match=text):
        plant.set(**arguments)  # type: ignore[attr-defined]
    assert plant.snapshot() == before


@pytest.mark.parametrize(
    ("names", "parameters"),
    [(settable(type(item)), item) for item in (manta.MantaParameters(), eel.Eel(), moth.Moth())],
)
def test_each_settable_parameter_exists_and_takes_its_own_value(names: tuple[str, ...], parameters: Any) -> None:
    assert names
    assert set(names) <= set(type(parameters).__dataclass_fields__)


@pytest.mark.parametrize(("robot", "built"), [("manta", SMALL), ("eel", {"joints": 2}), ("moth", {"start": "rest"})])
def test_setting_all_to_what_they_are_changes_no_bit(robot: str, built: Any) -> None:
    plant, same = rtmms.load(robot, **built), rtmms.load(robot, **built)
    plant.set(**{name: getattr(plant.parameters, name) for name in plant.settable})  # type: ignore[attr-defined]
    assert plant.snapshot() == same.snapshot()
    steps(plant, 5), steps(same, 5)
    assert plant.snapshot() == same.snapshot()
