"""Controllers whose parameters change while they run: what they make of it, and what they refuse."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians

import pytest

import rtmms
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.gait import Gait
from rtmms_controllers.heading import Heading

RODS = ("left.front", "left.back", "right.front", "right.back")
PLANT = PlantInfo(
    "manta", 1e-3, "realtime", 1e-3, 5e-4, tuple(Channel(name, "rad", lower=-1.2, upper=1.2) for name in RODS), ()
)


def state(step: int, **outputs: object) -> State:
    return State({"step": step, "timestamp": step * 1e-3, "outputs": outputs}, PLANT)


@pytest.mark.parametrize("name", ["frequency_hz", "left_frequency_hz"])
def test_a_frequency_changes_without_a_jump(name: str) -> None:
    gait = Gait(ramp_s=0.0)
    gait.start(PLANT)
    before, last = gait.update(state(7_122)), gait.update(state(7_123))
    gait.on_parameters_changed({name: 1.1})
    after = gait.update(state(7_124))
    for rod in RODS:
        step = last[rod] - before[rod]
        assert abs(after[rod] - last[rod]) <= 2.0 * abs(step) + 1e-3
    fresh = Gait(ramp_s=0.0, **{name: 1.1})
    fresh.start(PLANT)
    rate = (gait.update(state(8_000))["left.back"] - fresh.update(state(8_000))["left.back"]) != 0.0
    assert rate, "the new frequency counts from the change on, not from the start"


def test_a_strength_changes_at_once() -> None:
    gait, fresh = Gait(ramp_s=0.0), Gait(ramp_s=0.0, amplitude_deg=20.0, right_phase_deg=0.0, bias_deg=5.0)
    for item in (gait, fresh):
        item.start(PLANT)
    gait.update(state(500))
    gait.on_parameters_changed({"amplitude_deg": 20.0, "right_phase_deg": 0.0, "bias_deg": 5.0})
    assert gait.update(state(501)) == fresh.update(state(501))
    assert gait.amplitude_deg == 20.0


@pytest.mark.parametrize("controller", [Gait(), Heading()])
@pytest.mark.parametrize("wrong", [{"amplitude_deg": 300.0}, {"phase_deg": 500.0}, {"amplitude_deg": 75.0}])
def test_what_the_rods_cannot_do_is_refused_and_nothing_changes(
    controller: rtmms.Controller, wrong: dict[str, float]
) -> None:
    controller.start(PLANT)
    there = {"quaternion": [1.0, 0.0, 0.0, 0.0], "angular_velocity": [0.0, 0.0, 0.0]}
    known = dict(vars(controller))
    with pytest.raises(rtmms.ModelError):
        controller.on_parameters_changed(wrong)
    assert {name: getattr(controller, name) for name in ("amplitude_deg", "phase_deg")} == {
        name: known[name] for name in ("amplitude_deg", "phase_deg")
    }
    assert controller.update(state(3, **there)) is not None


def test_a_heading_is_turned_to() -> None:
    heading = Heading(ramp_s=0.0)
    heading.start(PLANT)
    heading.on_parameters_changed({"heading_deg": 90.0})
    assert heading._heading == pytest.approx(radians(90.0))


def test_a_dataclass_of_ones_own_refuses_by_its_constructor() -> None:
    @dataclass
    class Mine(rtmms.Controller):
        gain: float = 1.0
        tunable_parameters = ("gain",)

        def __post_init__(self) -> None:
            if self.gain < 0:
                raise ValueError("gain must be >= 0")

    mine = Mine()
    mine.on_parameters_changed({"gain": 2.0})
    assert mine.gain == 2.0
    with pytest.raises(ValueError, match="gain must be"):
        mine.on_parameters_changed({"gain": -1.0})
    assert mine.gain == 2.0
