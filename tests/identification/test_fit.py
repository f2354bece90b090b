"""Fits to runs whose parameters are known: what is found, its stated errors, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.studies.fit_evidence import Evidence, as_words, assess_fit
from rtmms.studies.fit_unknowns import asked_for
from rtmms.studies.fitting import Settings, Solution, fit
from rtmms.studies.recordings import Recording, of_plant
from tests.identification.swimming import BASE, build, noisy, recorded

TRUTH = {"drag_coefficient": 1.8, "joint_damping_n_m_s": 0.13}
ONE_START = Settings(others=0)


def results(
    recordings: Recording | list[Recording],
    names: str,
    settings: Settings = ONE_START,
    bounds: Any = None,
    prior: Any = None,
) -> tuple[Solution, Evidence]:
    several = recordings if isinstance(recordings, list) else [recordings]
    asked = asked_for(names.split(","), several, several[0].build(), bounds or {}, prior or {})
    solution = fit(several, asked, settings)
    return solution, assess_fit(solution)


@pytest.fixture(scope="module")
def run() -> Recording:
    return recorded(TRUTH)


def test_a_run_without_noise_gives_the_values_that_it_was_made_with(run: Recording) -> None:
    solution, evidence = results(run, "drag_coefficient,joint_damping_n_m_s", Settings(others=1))
    assert solution.values == pytest.approx(TRUTH, rel=1e-6)
    assert [round(z[0], 5) for z, _ in solution.others] == [round(float(solution.z[0]), 5)], (
        "another point, another end"
    )
    assert evidence.indistinct == []
    assert evidence.bound == ["", ""]


def test_errors_are_as_large_as_they_are_stated_to_be(run: Recording) -> None:
    """Eight draws of the noise: the squares of error over standard error have a mean near one."""
    squares = []
    for seed in range(8):
        solution, evidence = results(noisy(run, 0.05, seed), "drag_coefficient,joint_damping_n_m_s")
        off = np.array(list(solution.values.values())) - np.array(list(TRUTH.values()))
        squares += ((off / evidence.error) ** 2).tolist()
        for channel in evidence.channels.values():
            assert channel.held_out is not None
            assert channel.held_out < 1.2 * channel.noise
            assert channel.rms == pytest.approx(channel.noise, rel=0.2)
    assert (
        0.4 < np.mean(squares) < 2.0
    )  # of chi-square with 24 degrees of freedom, over 24: one in a thousand is beyond


def test_what_enters_as_a_product_is_named_as_a_pair(run: Recording) -> None:
    """Drag of the body goes by coefficient times area."""
    names = "drag_coefficient,body_drag_coefficient[0],body_drag_area_m2[0]"
    solution, evidence = results(noisy(run, 0.02, 1), names)
    message = as_words(solution, evidence, {})
    assert [sorted(item) for item in message["indistinct"]] == [["body_drag_area_m2[0]", "body_drag_coefficient[0]"]]
    assert message["correlation"]["body_drag_area_m2[0]"]["body_drag_coefficient[0]"] < -0.99
    assert solution.values["drag_coefficient"] == pytest.approx(1.8, abs=4.0 * evidence.error[0])


def test_added_mass_is_found() -> None:
    water = {"added_mass": True, "coupling": "monolithic"}
    run = recorded({**water, "added_mass_coefficient": 0.9}, seconds=4.0)
    model = replace(run, build=lambda **more: build(**{**water, **more}))
    solution, _ = results(model, "added_mass_coefficient,body_mass_kg")
    assert solution.values == pytest.approx({"added_mass_coefficient": 0.9, "body_mass_kg": 20.0}, rel=1e-5)


def test_delays_gains_and_offsets_of_channels_are_found(run: Recording) -> None:
    """A run whose angular velocity comes 17 ms late and 4 % large, and whose position is off by some centimetres."""
    series = []
    for item in run.series:
        if item.channel == "angular_velocity":
            item = replace(item, time=item.time + 0.017, values=1.04 * item.values)
        if item.channel == "position":
            item = replace(item, values=item.values + np.array([0.05, -0.02, 0.0]))
        series.append(item)
    late = replace(run, series=tuple(series))
    solution, _ = results(
        late, "drag_coefficient,joint_damping_n_m_s,delay.angular_velocity,gain.angular_velocity,bias.position"
    )
    assert solution.values == pytest.approx({
        **TRUTH, "delay.angular_velocity": 0.017, "gain.angular_velocity": 1.04, "bias.position[0]": 0.05,
        "bias.position[1]": -0.02, "bias.position[2]": 0.0,
    }, rel=2e-3, abs=2e-4)  # fmt: skip


@pytest.mark.full
def test_where_a_segment_begins_is_estimated(run: Recording) -> None:
    """Two segments, and a beginning that nobody knows; the joints go by the model's own run."""
    solution, evidence = results(
        replace(noisy(run, 0.02, 2), known=False), "drag_coefficient", Settings(others=0, segments=2)
    )
    starts = [unknown.name for unknown in solution.unknowns if unknown.name.startswith("start.")]
    assert len(starts) == 2 * 12
    assert solution.values["drag_coefficient"] == pytest.approx(1.8, abs=0.02)
    assert evidence.error[0] < 0.02


@pytest.mark.full
def test_through_sensors_with_errors_that_last() -> None:
    """What the sheets state of offsets and scales is among the unknowns, though not reported as found."""
    runs = [recorded(TRUTH, seconds=5.0, sensors="typical", seed=seed) for seed in (1, 2)]
    solution, evidence = results(runs, "drag_coefficient,joint_damping_n_m_s")
    off = np.array(list(solution.values.values())) - np.array(list(TRUTH.values()))
    assert (np.abs(off) < 4.0 * evidence.error).all()
    assert (evidence.error < [0.02, 0.01]).all()
    expected = as_words(solution, evidence, {})
    assert {"bias.imu.gyro[0]@1", "bias.imu.gyro[0]@2", "scale.dvl.velocity[1]"} <= expected["nuisances"].keys()
    for name, channel in evidence.channels.items():
        assert channel.held_out is not None
        assert channel.held_out < 1.25 * channel.noise, name


def test_bounds_and_priors(run: Recording) -> None:
    solution, evidence = results(run, "drag_coefficient", bounds={"drag_coefficient": (1.0, 1.6)})
    assert evidence.bound == ["high"]
    assert solution.values["drag_coefficient"] == pytest.approx(1.6)
    assert np.isfinite(evidence.error[0])
    solution, evidence = results(noisy(run, 0.5, 3), "drag_coefficient", prior={"drag_coefficient": (1.2, 1e-5)})
    assert solution.values["drag_coefficient"] == pytest.approx(1.2, abs=1e-3), "a sharp prior holds against the data"
    assert [
        text
        for text in evidence.causes
        if "drag_coefficient: the data contradict --prior 1.2:1e-05. They pull the value towards 1." in text
    ]
    _, evidence = results(noisy(run, 0.5, 3), "drag_coefficient", prior={"drag_coefficient": (1.7, 0.2)})
    assert not [text for text in evidence.causes if "the data contradict" in text]


@pytest.mark.parametrize(("names", "text"), [
    ("drag_coeficient", "unknown parameter of --fit 'drag_coeficient'; did you mean drag_coefficient"),
    ("chains", "--fit chains: expected a parameter that is a real number"),
    ("coupling", "unknown parameter of --fit 'coupling'"),
    ("body_drag_coefficient", r"has 3 numbers: expected one of body_drag_coefficient\[0\] to \[2\]"),
    ("body_drag_coefficient[3]", "has 3 numbers"),
    ("drag_coefficient[0]", "expected a parameter that is a real number"),
    ("gain.speed", "unknown channel of --fit gain 'speed'"),
    ("drag_coefficient,drag_coefficient", "is named twice"),
    ("added_mass_coefficient", "these recordings do not determine added_mass_coefficient"),
])  # fmt: skip
def test_what_cannot_be_fitted_is_refused(run: Recording, names: str, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        results(run, names)


def test_a_run_in_which_nothing_happens_is_refused() -> None:
    plant = build()
    still = of_plant(plant, np.zeros((100, 4)), build, robot="manta")
    with pytest.raises(ModelError, match="no excitation: the commands never change and nothing moves"):
        results(still, "drag_coefficient")


def test_a_robot_that_cannot_be_placed_needs_a_known_start() -> None:
    plant = rtmms.load("manta", **BASE, body="fixed")
    commands = np.linspace(0.0, 0.5, 100)[:, None] * np.ones(4)
    run = of_plant(plant, commands, lambda **more: build(body="fixed", **more), robot="manta")
    with pytest.raises(ModelError, match=re.escape("cannot start in an arbitrary state")):
        results(replace(run, known=False), "drag_coefficient")
