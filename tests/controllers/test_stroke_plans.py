"""Linear plans of the moth by the controller `predictive`, step by step as lockstep would have it."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.welcome import plain_parameters
from rtmms_controllers.moth_hover import MothHover
from rtmms_controllers.plan_figures import summary
from rtmms_controllers.predictive import Predictive
from rtmms_controllers.senses import MotionSource

GUSTS = {0.3: (0.0, 0.3, 0.0), 0.8: (0.0, 0.0, 0.0), 1.0: (-0.3, 0.0, 0.0)}


def info_of(plant: Any, **other: Any) -> PlantInfo:
    return replace(
        PlantInfo("moth", plant.dt, "lockstep", None, None, plant.actuators, plant.outputs,
                  parameters=plain_parameters(plant), every=5, delay=5), **other,
    )  # fmt: skip


def fly(controller: rtmms.Controller, seconds: float, winds: dict[float, Any]) -> np.ndarray:
    """(steps, 3) m. Each fifth state is answered, for five steps later, in straight lines."""
    plant: Any = rtmms.load("moth")
    controller.start(info_of(plant))
    path, provided = [], [plant.neutral.copy(), plant.neutral.copy()]
    due = dict(winds)
    for k in range(round(seconds / plant.dt)):
        for at in [at for at in due if at <= k * plant.dt + 1e-9]:
            plant.set(**dict(zip(("wind_x_m_s", "wind_y_m_s", "wind_z_m_s"), due.pop(at), strict=True)))
        if k % 5 == 0:
            outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
            values = controller.update(
                State({"step": k, "timestamp": k * plant.dt, "outputs": outputs}, info_of(plant))
            )
            assert values is not None
            provided = [provided[-2], provided[-1], np.array([values[actuator.name] for actuator in plant.actuators])]
        path.append(plant.observe()["position"].copy())
        before, next_ = provided[-3] if len(provided) > 2 else provided[0], provided[-2]
        plant.step(before + (next_ - before) * (k % 5 + 1) / 5.0)
    return np.array(path)


@pytest.fixture(scope="module")
def prepared() -> Predictive:
    controller = Predictive(model="moth")
    controller.prepare()
    return controller


def test_it_holds_its_place_in_gusts_and_the_same_run_has_the_same_bits(prepared: Predictive) -> None:
    path = fly(prepared, 1.6, GUSTS)
    assert np.linalg.norm(path, axis=1).max() < 0.06
    assert prepared.plans == 80
    assert prepared.late_plans == 0
    assert prepared.failed == 0.0
    assert prepared.tried == 1.0
    assert prepared.plan_age_s == 0.0
    assert prepared.planned_motion.count(" ") == 4
    assert "80 plans" in summary(prepared._plans, 0, 32, iterating=True)
    np.testing.assert_array_equal(fly(prepared, 0.5, GUSTS), path[:500])
    extra = fly(MothHover(), 1.6, GUSTS)
    assert np.linalg.norm(extra, axis=1).max() > 0.1


def test_it_flies_aside_and_stops_there(prepared: Predictive) -> None:
    prepared.on_parameters_changed({"y_m": 0.2})
    path = fly(prepared, 1.5, {})
    prepared.on_parameters_changed({"y_m": 0.0})
    assert prepared._strokes is not None
    wind = prepared._strokes._planner.observer.wind
    assert np.abs(wind).max() < 1e-6  # the full model goes as the plant does, to the step
    np.testing.assert_allclose(path[-1], [0.0, 0.2, 0.0], atol=0.01)
    assert path[:, 1].max() < 0.22
    assert np.abs(path[:, [0, 2]]).max() < 0.05


class Slow:
    """A background that is done when it is asked to be."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Any]] = []

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        self.jobs.append((Future(), lambda: function(*arguments)))
        return self.jobs[-1][0]

    def finish(self) -> None:
        job, work = self.jobs[-1]
        job.set_result(work())


def test_a_late_plan_is_flown_from_its_second_knot_half_a_stroke_later(prepared: Predictive) -> None:
    plans, slow, plant = prepared._strokes, Slow(), rtmms.load("moth")
    assert plans is not None
    before = plans._background
    plans._background = slow  # type: ignore[assignment]
    try:
        plans.start(info_of(plant), False, plain_parameters(plant))
        motion = MotionSource("predictive")
        motion.start(info_of(plant))
        outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}

        def at(step: int) -> np.ndarray:
            now = motion.read(State({"step": step, "timestamp": step * plant.dt, "outputs": outputs}, info_of(plant)))
            return np.array(list(plans.update(now, (0.1, 0.0, 0.0), 0.0).values()))

        for step in (0, 5, 10):
            np.testing.assert_array_equal(at(step), 0.0)
        slow.finish()
        np.testing.assert_array_equal(at(15), 0.0)  # for 25 ms: beyond the middle it has begun as it was
        assert plans.late == 1
        assert len(plans.plans) == 1
        parts = plans.plans[0].variables
        np.testing.assert_array_equal(at(20), 0.0)  # 30 ms: the knot that stood
        assert len(slow.jobs) == 2
        np.testing.assert_allclose(at(25), 0.25 * parts[1], atol=1e-15)
        assert np.abs(parts[1]).max() > 1e-3
    finally:
        plans._job, plans._background = None, before


def test_what_does_not_fit_is_refused(prepared: Predictive) -> None:
    plant = rtmms.load("moth")
    with pytest.raises(rtmms.ModelError, match=r"expected a plan each half stroke, 40 Hz, got 50"):
        prepared.start(info_of(plant, parameters={**plain_parameters(plant), "omega_rad_s": 40.0 * np.pi}))
    with pytest.raises(rtmms.ModelError, match="needs a moth with start=hover, got start=rest"):
        prepared.start(info_of(rtmms.load("moth", start="rest")))
    with pytest.raises(rtmms.ModelError, match=r"got 'quadrotor' with"):
        prepared.start(info_of(rtmms.load("quadrotor", dt=1e-2), robot="quadrotor"))
    with pytest.raises(rtmms.ModelError, match="commands at most half of it ahead"):
        prepared.start(info_of(plant, delay=10))
    imu = tuple(rtmms.Channel(name, "", (3,)) for name in ("imu.gyro", "imu.accel", "imu.time"))
    with pytest.raises(rtmms.ModelError, match="needs the whole state"):
        prepared.start(info_of(plant, outputs=imu))
    prepared.start(info_of(plant))


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"model": "quadrotor", "method": "linear"}, "linear plans support the models moth, got model=quadrotor"),
        ({"model": "moth", "cost": "mine.py:far", "method": "linear"}, "expected none with method=linear"),
        ({"model": "moth", "rate_hz": 25.0}, r"even number of steps of grid_s.*got 0\.02 s, 25 Hz"),
        ({"model": "moth", "course": "helix"}, "a moth cannot follow a course"),
        ({"model": "moth", "method": "ilqr"}, "'moth' by ilqr has no default cost"),
    ],
)
def test_wrong_variables_are_refused(chosen: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Predictive(**chosen)
