"""Slopes of the residuals: their step, how fast a fit converges, and derivatives by structure as their oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.plant.protocol import Plant
from rtmms.studies import fitting
from rtmms.studies.fit_descent import Iteration
from rtmms.studies.fit_prediction import Predictor
from rtmms.studies.fit_residuals import START_STEP, STEP, Residuals, blocks
from rtmms.studies.fit_unknowns import Kind, Unknown
from rtmms.studies.fitting import Settings
from rtmms.studies.recordings import of_plant


def boat(mass_kg: float = 1.0, dt: float = 1e-2) -> rtmms.TreePlant:
    """A body that is pushed, with quadratic drag."""
    hull = m.Body("hull", mass_kg, inertia=0.02 * np.eye(3))
    drag = m.DragArea("hull", (0.02, 0.04, 0.06))
    tree = rtmms.Mechanism("boat", [hull], gravity=(0, 0, 0), elements=[drag])
    return rtmms.TreePlant(tree, dt, actuators=[m.BodyWrench("hull")])


def pushed(plant: Plant, steps: int = 100) -> np.ndarray:
    """(steps, n) forces and moments that change slowly."""
    time = plant.dt * np.arange(steps)[:, None]
    return np.sin(2.0 * np.pi * time + np.arange(len(plant.actuators)))


def residuals(plant: Plant, commands: np.ndarray, build: Any) -> Residuals:
    """Of outputs of a run whose first state is unknown, each with a deviation of 1."""
    known = of_plant(plant, commands, build, wanted=("velocity", "angular_velocity"))
    recordings = [replace(known, known=False)]
    segments = fitting._segments(recordings, Settings(hold_out=0.0))
    sigma = {item.channel: np.ones(item.width) for item in recordings[0].series}
    unknowns = fitting._first_states(recordings, segments, Settings())
    result = Residuals(Predictor(recordings, segments, 1), blocks(recordings, segments, sigma), unknowns)
    fitting._anchor(result, np.zeros(len(unknowns)))
    return result


def by_structure(robot: str, steps: int, **values: Any) -> tuple[np.ndarray, np.ndarray]:
    """(6, 12) slopes of the last twist by pose and twist at the beginning: by the residuals, and by structure."""
    plant: Any = rtmms.load(robot, **values)
    middle = np.array([actuator.neutral for actuator in plant.actuators])
    commands = middle + 0.05 * pushed(plant, steps)
    result = residuals(plant, commands, lambda **more: rtmms.load(robot, **{**values, **more}))
    rows = result.slope(np.zeros(len(result.unknowns)))
    ends = [result.sources[k].stop for k in range(len(result.blocks))]
    stored = [k for k, unknown in enumerate(result.unknowns) if unknown.coordinate < 12]
    scale = result.scale[stored]
    slopes = np.concatenate([rows[end - 3 : end][:, stored] for end in ends]) / scale
    plant.reset()
    linear = rtmms.linearise(plant, commands, period=True, method="structure")
    return slopes, linear.a[6:12, [result.unknowns[k].coordinate for k in stored]]


@pytest.mark.full
@pytest.mark.parametrize("robot", ["torpedo", "quadrotor", "eel"])
def test_slopes_by_the_first_state_are_those_by_structure(robot: str) -> None:
    """A product of the A of all steps; the differences are to one side, so they are right to about their step."""
    slopes, expected = by_structure(robot, 40)
    assert slopes.shape == expected.shape == (6, 12)
    size = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(slopes / size, expected / size, atol=100.0 * START_STEP)


@pytest.mark.parametrize(("force", "step"), [(1.0, START_STEP), (1.0, STEP), (1e-7, STEP)])
def test_a_fit_of_a_recording_without_noise_converges_in_a_few_iterations(
    force: float, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little it moves: a step of differences may be 1e10 deviations of what was measured."""
    monkeypatch.setattr("rtmms.studies.fit_residuals.START_STEP", step)
    plant = boat(1.1)
    commands = force * pushed(plant)
    rows = [plant.observe()]
    for command in commands:
        plant.step(command)
        rows.append(plant.observe())
    data = {"time": plant.dt * np.arange(len(rows))}
    data |= {f"command.{actuator.name}": np.append(commands[:, k], 0.0) for k, actuator in enumerate(plant.actuators)}
    data |= {name: np.array([row[name] for row in rows]) for name in ("position", "quaternion", "velocity")}
    observed: list[Iteration] = []
    result = rtmms.identify(boat, data, fit="mass_kg", starts=1, threads=1, progress=observed.append)
    assert result.values["mass_kg"] == pytest.approx(1.1, rel=1e-6)
    assert len(observed) <= 12


def test_slopes_by_first_states_need_one_run_each_and_by_parameters_two() -> None:
    """A parameter may change a plant by an iteration with a tolerance; a first state does not."""
    known = replace(of_plant(boat(), pushed(boat(), 10), boat, wanted=("velocity",)), known=False)
    segments = fitting._segments([known], Settings(hold_out=0.0))
    unknowns = [Unknown("mass_kg", Kind.MODEL, 1.0, 1.0), *fitting._first_states([known], segments, Settings())]
    with Predictor([known], segments, 1) as predictor:
        result = Residuals(predictor, blocks([known], segments, {"velocity": np.ones(3)}), unknowns)
        z = np.array([unknown.first / unknown.scale for unknown in unknowns])
        fitting._anchor(result, z)
        cases: list[Any] = []
        many = predictor.many

        def counted(values: Any) -> Any:
            cases.extend(values)
            return many(values)

        predictor.many = counted  # type: ignore[method-assign]
        result.slope(z)
    assert len(cases) == 2 + 12
