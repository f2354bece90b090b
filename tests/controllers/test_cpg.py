"""Coupled oscillators: where they settle, and that no change of any parameter makes the acceleration jump."""

from __future__ import annotations

from collections.abc import Callable
from math import asin, cos, pi, radians, sin
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.cpg import Cpg
from rtmms_controllers.mixer import Mixer
from rtmms_controllers.mixing import StrokeLimits, mix
from rtmms_controllers.oscillators import Follower, Oscillators

RODS = ("left.front", "left.back", "right.front", "right.back")
PLANT = PlantInfo("manta", 1e-3, "lockstep", None, None, tuple(Channel(n, "rad", lower=-1.2, upper=1.2) for n in RODS),
                  ())  # fmt: skip
EEL = PlantInfo("eel", 1e-3, "lockstep", None, None,
                tuple(Channel(f"{k}{i}.angle", "rad") for i in range(1, 6) for k in ("yaw", "pitch")), ())  # fmt: skip


def state(time: float, plant: PlantInfo = PLANT) -> State:
    return State({"step": round(time / plant.dt), "timestamp": time, "outputs": {}}, plant)


def played(controller: Any, begin: float, end: float, dt: float, plant: PlantInfo = PLANT) -> Any:
    """(samples, actuators) from begin to end."""
    times = np.arange(round(begin / dt), round(end / dt)) * dt
    return np.array([list(controller.update(state(float(t), plant)).values()) for t in times])


def test_a_follower_is_exact_whatever_its_steps() -> None:
    item, many = Follower(0.3, 4.0), Follower(0.3, 4.0)
    item.target = many.target = -1.0
    item.advance(0.7)
    for _ in range(70):
        many.advance(0.01)
    assert (item.v, item.v1, item.v2) == pytest.approx((many.v, many.v1, many.v2), rel=1e-12)
    # p''' = w^3 (P - p) - 3 w^2 p' - 3 w p'', by differences
    h, third = 1e-4, 0.0
    before = item.v2
    item.advance(h)
    third = (item.v2 - before) / h
    assert third == pytest.approx(64.0 * (-1.0 - item.v) - 48.0 * item.v1 - 12.0 * item.v2, rel=1e-2)


def test_phases_lock_at_their_lags_from_anywhere() -> None:
    o = Oscillators(3, ((0, 1), (2, 1)), (0.7, -0.4), 6.0, 6.0, 5.0)
    o.begin((0.7, -0.4), 1.0)
    o.theta = [2.0, 0.0, 1.0]
    for _ in range(500):
        o.advance(0.01)
    assert o.theta[0] - o.theta[1] == pytest.approx(0.7, abs=1e-6)
    assert o.theta[2] - o.theta[1] == pytest.approx(-0.4, abs=1e-6)


def test_it_settles_on_the_gait_of_the_paper() -> None:
    cpg = Cpg(amplitude_deg=30.0, frequency_hz=0.5, phase_deg=40.0, bias_deg=4.0, incidence_deg=3.0)
    cpg.start(PLANT)
    played(cpg, 0.0, 6.0, 0.01)
    for t in (6.0, 6.3, 7.1):
        output, cycle = cpg.update(state(t)), 2.0 * pi * 0.5 * t
        front = asin(0.185 / 0.215 * sin(radians(30.0)))
        assert output["left.back"] == pytest.approx(radians(30.0) * sin(cycle) + radians(1.0), abs=2e-4)
        assert output["right.front"] == pytest.approx(front * sin(cycle + radians(40.0)) + radians(7.0), abs=2e-4)


CHANGES: list[dict[str, Any]] = [
    {"amplitude_deg": 45.0}, {"frequency_hz": 1.6}, {"phase_deg": -60.0}, {"bias_deg": 10.0}, {"incidence_deg": -8.0},
    {"left_amplitude_deg": 5.0, "right_phase_deg": 0.0, "frequency_hz": 0.3, "bias_deg": -5.0},
]  # fmt: skip


def largest_jump(make: Callable[[], Any], values: dict[str, Any], dt: float, plant: PlantInfo) -> float:
    """Of the acceleration from sample to sample, around a change at 3 s; of a jump it does not go down with dt."""
    controller = make()
    controller.start(plant)
    before = played(controller, 0.0, 3.0, dt, plant)[-40:]
    controller.on_parameters_changed(values)
    after = played(controller, 3.0, 3.0 + 60 * dt, dt, plant)
    rate = np.diff(np.concatenate([before, after]), 2, axis=0) / dt**2
    return float(np.abs(np.diff(rate, axis=0)).max())


@pytest.mark.parametrize("values", CHANGES, ids=lambda values: ",".join(values))
def test_no_change_makes_the_acceleration_jump(values: dict[str, Any]) -> None:
    coarse, fine = (largest_jump(Cpg, values, dt, PLANT) for dt in (4e-3, 2e-3))
    assert fine < 0.65 * coarse


def test_along_the_eel_neither() -> None:
    values = {"amplitude_deg": 3.0, "phase_deg": 60.0, "frequency_hz": 1.0, "bias_deg": 5.0, "incidence_deg": 2.0}
    coarse, fine = (largest_jump(Cpg, values, dt, EEL) for dt in (4e-3, 2e-3))
    assert fine < 0.65 * coarse


def test_the_eels_chain_is_a_wave_from_head_to_tail() -> None:
    cpg = Cpg(amplitude_deg=6.0, frequency_hz=0.5, phase_deg=30.0, bias_deg=2.0, incidence_deg=1.0)
    cpg.start(EEL)
    played(cpg, 0.0, 6.0, 0.01, EEL)
    output = cpg.update(state(6.0, EEL))
    first = 2.0 * pi * 0.5 * 6.0
    assert output["pitch3.angle"] == pytest.approx(radians(1.0), abs=1e-6)
    grown = radians(6.0) * np.exp(0.17 * (np.arange(1, 6) - 5))
    assert [output[f"yaw{i}.angle"] for i in range(1, 6)] == pytest.approx(
        [a * sin(first - radians(30.0) * k) + radians(2.0) for k, a in enumerate(grown)], abs=1e-4)  # fmt: skip


def test_a_reset_begins_anew() -> None:
    cpg = Cpg()
    cpg.start(PLANT)
    played(cpg, 0.0, 1.0, 0.01)
    again = cpg.update(state(0.0))
    assert set(again.values()) == {0.0}


@pytest.mark.parametrize(("word", "value", "place"), [
    ("amplitude_deg", 95.0, "amplitude_deg"), ("frequency_hz", float("nan"), "frequency_hz"),
    ("left_phase_deg", 400.0, "left_phase_deg"), ("rate_1_s", 0.0, "rate_1_s"),
])  # fmt: skip
def test_words_that_make_no_sense_are_refused_with_their_place(word: str, value: float, place: str) -> None:
    with pytest.raises(rtmms.ModelError, match=f"controller 'cpg': {place}: expected"):
        Cpg(**{word: value})


def test_what_the_rods_cannot_do_is_refused_and_nothing_changes() -> None:
    cpg = Cpg()
    cpg.start(PLANT)
    with pytest.raises(rtmms.ModelError, match=r"left\.back would move to"):
        cpg.on_parameters_changed({"left_amplitude_deg": 80.0})
    assert cpg.left_amplitude_deg is None


@pytest.mark.parametrize("turn", ["phase", "amplitude", "both"])
def test_the_mixers_signs(turn: str) -> None:
    maximum = StrokeLimits(0.5, 1.0, 0.2, 0.2, turn)

    def thrust(stroke: Any) -> float:
        return float(stroke.amplitude**2 * stroke.lead)

    left, right = mix(maximum, 0.5, 0.0, 0.0, 0.0)
    assert thrust(left) == thrust(right) > 0.0
    left, right = mix(maximum, 0.5, 0.2, 0.0, 0.0)
    assert thrust(right) > thrust(left), "yaw > 0 turns left: the right fin is the stronger one"
    assert thrust(left) / thrust(right) == pytest.approx(3.0 / 7.0)
    left, right = mix(maximum, -0.5, 0.0, 0.3, 0.0)
    assert thrust(left) < 0.0
    assert left.incidence == right.incidence == pytest.approx(0.06)
    left, right = mix(maximum, 0.5, 0.0, 0.0, 0.3)
    assert left.incidence > 0.0 > right.incidence, "roll > 0: the right side goes down"
    assert mix(maximum, 0.0, 0.0, 0.0, 0.0)[0].amplitude == 0.0


def test_the_mixer_moves_smoothly_to_any_word_and_refuses_what_is_beyond() -> None:
    values = {"thrust": -1.0, "yaw": 1.0, "pitch": -0.5, "roll": 0.4, "turn": "both"}
    coarse, fine = (largest_jump(lambda: Mixer(thrust=0.5), values, dt, PLANT) for dt in (4e-3, 2e-3))
    assert fine < 0.65 * coarse
    with pytest.raises(rtmms.ModelError, match=r"yaw: expected a number from -1 to 1, got 1\.2"):
        Mixer(yaw=1.2)
    with pytest.raises(rtmms.ModelError, match="did you mean phase"):
        Mixer(turn="phases")


def test_rates_are_those_of_the_angles() -> None:
    o = Oscillators(2, ((0, 1),), (0.5,), 6.0, 6.0, 5.0)
    o.begin((0.5,), 1.0)
    o.amplitude[0].target, o.bias[0].target = 0.4, 0.1
    for _ in range(30):
        o.advance(0.01)
    before, rates = o.angles(), o.settled_rates()
    o.advance(1e-5)
    assert (np.array(o.angles()) - before) / 1e-5 == pytest.approx(np.array(rates), rel=1e-3, abs=1e-5)
    assert abs(cos(o.theta[0])) <= 1.0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["amplitude", "phase", "bias", "incidence"])
def test_an_eel_has_no_sides(side: str, name: str) -> None:
    with pytest.raises(rtmms.ModelError, match=f"{side}_{name}_deg: expected none for an eel"):
        Cpg(**{f"{side}_{name}_deg": 10.0}).start(EEL)
    Cpg(**{f"{side}_{name}_deg": 10.0}).start(PLANT)
