"""The description of a plant: from the members that it has, through the plants around it, and never out of date."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import RenamedWarning
from rtmms.plant.description import RENAMED_MEMBERS, PlantDescription, Wrapper, describe_plant
from rtmms.sensing import read_profile
from rtmms.sensing.faults import Faulty
from rtmms.sensing.sensed import Sensed
from tests.pendulum import Pendulum, Tuned
from tests.sensing.mover import Mover


class Basin(Mover):
    """In water that a file has until 4 s, with parameters that may change."""

    settable = ("gravity_m_s2",)
    coupling = "sequential"

    def __init__(self) -> None:
        super().__init__()
        self.parameters: dict[str, Any] = {"gravity_m_s2": 9.0}
        self.ends, self.trace_outputs, self.recent_outputs = 4.0, ("speed",), ("rod_angle",)

    def set(self, **parameters: Any) -> None:
        self.parameters = {**self.parameters, **parameters}

    def summarise(self, time: Any, trace: Any) -> dict[str, float | None]:
        return {"fastest_m_s": float(trace["speed"].max())}


class Outer(Wrapper):
    """Of a third party: takes the plant's summary away, and moves it into the air."""

    def __init__(self, plant: Any) -> None:
        self.description = replace(describe_plant(plant), medium="air", summarise=None)


def sensed(plant: Any) -> Sensed:
    return Sensed(plant, read_profile("typical", plant, {}))


def test_a_plant_with_its_eight_members_has_nothing_else() -> None:
    about = describe_plant(Pendulum())
    result = about.set, about.settable, about.step_error_estimator, about.gait
    assert (about.medium, result) == ("", (None, None, None, None))
    assert about.parameters() is about.shape() is about.ends() is about.initial_pose() is None
    assert about.environment().gravity == (0.0, 0.0, -9.80665)


@pytest.mark.parametrize(("old", "new"), RENAMED_MEMBERS.items())
def test_a_member_works_under_its_old_name_with_a_warning(old: str, new: str) -> None:
    plant: Any = Mover()
    setattr(plant, old, "made" if old == "home" else lambda: "made")  # the initial pose is a value
    with pytest.warns(RenamedWarning, match=rf"Mover\.{old} is Mover\.{new} now"):
        description = describe_plant(plant)
    assert getattr(description, new)() == "made"
    current = rtmms.load("eel")
    with pytest.warns(RenamedWarning, match=rf"\.{old} is \w+\.{new} now"):
        assert getattr(current, old) == getattr(current, new)


def test_members_that_belong_together_count_together() -> None:
    plant: Any = Mover()
    plant.trace_outputs = ("speed",)
    assert describe_plant(plant).trace_outputs == ()


def test_a_description_of_its_own_wins_and_another_attribute_of_that_name_does_not() -> None:
    plant: Any = Mover()
    plant.description = "a mover"
    assert describe_plant(plant).medium == "water"
    plant.description = PlantDescription(medium="air")
    assert describe_plant(plant).medium == "air"


@pytest.mark.parametrize("wrap", [Faulty, sensed, lambda plant: sensed(Faulty(plant))])
def test_what_changes_is_reported_as_it_is_now_through_any_wrapper(wrap: Any) -> None:
    plant = Basin()
    outer = wrap(plant)
    about = describe_plant(outer)
    about.set(gravity_m_s2=3.7)
    plant.ends = 5.0
    assert about.parameters() == outer.parameters == {"gravity_m_s2": 3.7}
    assert about.environment().gravity == (0.0, 0.0, -3.7)
    assert about.ends() == outer.ends == 5.0
    assert (about.medium, about.coupling) == ("water", "sequential")
    assert "gravity_m_s2" in outer.settable


def test_outputs_of_a_sensed_plant_have_their_names_there() -> None:
    about = describe_plant(sensed(Basin()))
    assert (about.trace_outputs, about.recent_outputs) == (("truth.speed",), ("truth.rod_angle",))
    assert about.summarise is not None
    assert about.summarise(np.arange(2.0), {"truth.speed": np.array([1.0, 2.0])}) == {"fastest_m_s": 2.0}


def test_a_wrapper_has_the_members_that_its_description_has_and_no_others() -> None:
    outer = Outer(Basin())
    assert (outer.medium, outer.recent_outputs) == ("air", ("rod_angle",))
    for name in ("summarise", "step_error_estimator", "figure", "truth", "step"):
        assert not hasattr(outer, name)


def test_limits_of_two_commands_are_those_of_the_plant_within() -> None:
    manta = rtmms.load("manta", chains=3, links=2)
    assert describe_plant(Faulty(manta)).coupled == manta.coupled  # type: ignore[attr-defined]


def test_a_plant_that_lists_what_can_change_reports_it() -> None:
    about = describe_plant(Tuned())
    assert about.settable == ("damping",)
    assert about.set is not None
