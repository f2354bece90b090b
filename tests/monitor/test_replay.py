"""A run is taken again with its commands, in shorter steps: what lies between is the error that is reported."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rtmms
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.plant import TreePlant
from rtmms.model import Body, Joint, Mechanism
from rtmms.plant.monitor import Monitor, Verdict, enough
from rtmms.plant.replay import ReplayDifferences, path_error, work_error

RODS = np.array([0.3, 0.4, 0.3, 0.4])


def swinging(dt):
    """A pendulum of 1 kg m2, with a spring that makes it swing at 10 rad/s."""
    bodies = [Body("a", 1.0, inertia=np.eye(3)), Body("b", 1.0, inertia=np.eye(3))]
    model = rtmms.compile(Mechanism("swing", bodies, [Joint("j", "a", "b", stiffness=100.0)], base="fixed"))
    state = model.state()
    state.qd[0] = 1.0
    return TreePlant(model, dt, Law(np.zeros((1, 3))), initial=state)


def jumping(k):
    """Rods that jump every tenth step, as commands that come late do."""
    return RODS * math.sin(0.3 * (k // 10))


def watched(plant, steps, command=None):
    monitor = Monitor(plant.step_error_estimator())
    for k in range(steps):
        held = np.zeros(len(plant.actuators)) if command is None else command(k)
        plant.step(held)
        monitor.after(held)
    return monitor


def path_of(plant, steps, command, parts=1):
    """Places (steps + 1, 3) after each `parts` steps, a command held for them."""
    places = [plant.observe()["position"]]
    for k in range(steps):
        for _ in range(parts):
            plant.step(command(k))
        places.append(plant.observe()["position"])
    return np.array(places)


@pytest.mark.parametrize("maximum", [2, 8])
def test_joints_of_a_fixed_base_are_off_by_what_is_reported(maximum):
    """Against the exact swing, in steps of a sixteenth of its period: more is reported than true, less than twice."""
    plant, angles = swinging(0.04), [0.0]
    monitor = Monitor(plant.step_error_estimator())
    for _ in range(200):
        plant.step(plant.neutral)
        monitor.after(plant.neutral)
        angles.append(plant.vector[7])
    off = np.max(np.abs(np.array(angles) - 0.1 * np.sin(0.4 * np.arange(201))))
    result = monitor.conclude(9.0, maximum)
    assert result.place == "joints"
    truth = off / np.sum(np.abs(np.diff(angles)))
    assert 0.98 * truth < result.path < 2.0 * truth


def test_commands_that_jump_are_no_error_of_the_steps():
    """The same commands at an eighth of the step: that is the truth, and the estimate is close to it."""
    result = watched(rtmms.load("manta", dt=4e-3), 300, jumping).conclude(9.0)
    current, fine = (path_of(rtmms.load("manta", dt=4e-3 / parts), 300, jumping, parts) for parts in (1, 8))
    length = np.sum(np.linalg.norm(np.diff(fine, axis=0), axis=1))
    truth = np.max(np.linalg.norm(current - fine, axis=1)) / length
    assert result.path == pytest.approx(truth * 8.0 / 7.0, rel=1e-3)


def test_work_is_judged_as_the_path_is():
    result = watched(rtmms.load("manta", dt=0.05), 200, lambda k: RODS * math.sin(0.1885 * k)).conclude(9.0)
    assert result.path < 0.03
    assert result.verdict == "doubtful"
    assert "the work is off by" in result.sentence
    assert "use dt <= 0.0" in result.sentence
    assert result.sentence.count("%") == 1


@pytest.mark.full
@pytest.mark.parametrize("dt", [0.02, 0.04])
def test_the_work_of_the_manta_is_the_error_of_its_mean_power(dt):
    """Its motors follow a held command within the step, so the power at a step's end is far from the step's mean."""
    steps = round(4.0 / dt)

    def command(k):
        return RODS * math.sin(3.77 * dt * k)

    def mean(parts):
        plant, work = rtmms.load("manta", dt=dt / parts), 0.0
        for k in range(steps * parts):
            plant.step(command(k // parts))
            work += float(plant.observe()["rod_power"])
        return work / (steps * parts)

    current, true = mean(1), mean(32)
    result = watched(rtmms.load("manta", dt=dt), steps, command).conclude(9.0)
    assert 1.0 < result.work / abs((current - true) / true) < 1.5


@pytest.mark.parametrize(("dt", "verdict"), [(0.02, "fine"), (1.0, "doubtful")])
def test_a_robot_without_inertia_has_a_verdict(dt, verdict):
    result = watched(rtmms.load("purcell", dt=dt), round(12.0 / dt), lambda k: np.array([0.5, -0.5]) * (-1) ** k)
    assert result.conclude(9.0).verdict == verdict


@pytest.mark.parametrize(("robot", "arguments"), [
    ("eel", {}), ("manta", {}), ("purcell", {}), ("moth", {"preset": "fit", "integrator": "abam", "step_s": 1.25e-4}),
])  # fmt: skip
def test_taken_again_it_is_the_same_run_bit_for_bit(robot, arguments):
    plant = rtmms.load(robot, **arguments)
    estimator, command = plant.step_error_estimator(), np.full(len(plant.actuators), 0.2)
    begin, end = estimator.room(), estimator.room()
    estimator.keep(begin)
    estimator.start(begin, halves=False)
    for _ in range(300):
        plant.step(command)
        assert estimator.step(command, halves=False)
    estimator.keep(end)
    counts = 0 if robot == "manta" else 1  # the last number is the plant's count of steps
    np.testing.assert_array_equal(
        estimator.state.all[: estimator.state.all.size - counts], end.all[: end.all.size - counts]
    )


@pytest.mark.parametrize("steps", [51, 2000])
def test_another_run_than_that_of_the_commands_is_not_judged(steps):
    """The state was changed, with the count of steps or without, without a notice: the path is not known."""
    plant, moved = rtmms.load("manta"), rtmms.load("manta")
    monitor = Monitor(plant.step_error_estimator())
    for _ in range(steps):
        moved.step(RODS)
    for k in range(200):
        plant.step(0.0 * RODS)
        monitor.after(0.0 * RODS)
        if k == 50:
            plant.restore(moved.snapshot())
    assert math.isnan(monitor.conclude(9.0).path)


def test_after_a_change_that_was_reported_the_rest_is_judged():
    plant = rtmms.load("eel")
    monitor = Monitor(plant.step_error_estimator())
    for k in range(200):
        plant.step(plant.neutral)
        monitor.after(plant.neutral)
        if k == 50:
            plant.restore(rtmms.load("eel").snapshot())
            monitor.forget()
    result = monitor.conclude(9.0)
    assert result.path < 1e-9
    assert result.seconds is None


def test_without_time_the_beginning_is_judged_and_the_sentence_reports_it():
    monitor = watched(rtmms.load("eel"), 400)
    result = monitor.conclude(0.0)
    assert result.seconds is not None
    assert result.seconds < 0.1
    assert f"over the first {result.seconds:.3g} s" in result.worst


def test_shorter_steps_that_fail_make_a_run_worthless():
    monitor = watched(rtmms.load("eel"), 20)
    estimator = monitor.estimator
    step = estimator.step
    estimator.step = lambda command, halves: step(command, halves) and not halves
    result = monitor.conclude(9.0)
    assert (result.verdict, result.path, result.work) == ("doubtful", 1.0, 1.0)


def test_a_way_that_is_short_and_work_that_cancels_are_measured_against_more():
    estimator = rtmms.load("eel").step_error_estimator()
    assert path_error(1e-6, 0.0, estimator) == pytest.approx(1e-6 / (0.1 * estimator.length))
    assert path_error(1e-6, 100.0, estimator) == pytest.approx(1e-8)
    assert work_error(1.0, 2.0, 2.0) == pytest.approx(0.5)
    assert work_error(1e-9, 2e-9, 1.0) == pytest.approx(1e-9 / 0.02)
    assert work_error(0.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("path", "work", "message"),
    [(0.024, 0.0, "path is off by at most 2.4 % of its length"), (0.011, 0.2, "work is off by at most 20 %"),
     (7.0, 0.0, "more than 100 %")],
)  # fmt: skip
def test_one_number_in_one_sentence(path, work, message):
    sentence = Verdict("doubtful", 0.02, path, work, 50, ("dt", 0.006)).sentence
    assert message in sentence
    assert sentence.endswith("use dt <= 0.006 s")
    assert sentence.count("%") == 1


def test_the_work_is_what_the_plant_states():
    """With contacts it has two parts: what imposed joints do in impacts is not in that of the steps."""
    for robot, command in (("eel", [0.1] * 36), ("purcell", [0.5, -0.5]), ("unicycle", [9.0, 5.0])):
        plant = rtmms.load(robot)
        estimator = plant.step_error_estimator()
        state = estimator.room()
        for _ in range(20):
            plant.step(np.array(command))
        estimator.keep(state)
        assert state.work.sum() == pytest.approx(float(plant.observe()["work"]), rel=1e-12), robot
        assert state.work.sum() != 0.0


@pytest.mark.parametrize(
    ("tried", "share"),
    [
        # of path alone: 4 % of 1 % falls to 0.25 %: with the square, and 0.5 % lies between a half and a quarter
        ([(0.04, 0.0), (0.01, 0.0), (0.0025, 0.0)], (0.5 / 4.0) ** 0.5), ([(0.04, 0.0), (0.0025, 0.0)], 8.0**-0.25),
        # nothing was tried, or nothing was enough: by first order from the last
        ([(0.04, 0.0)], 0.125), ([(0.0, 0.5)], 0.05), ([(1.0, 0.0), (0.4, 0.0)], 0.5 * 0.5 / 40.0),
        # no order is to be seen
        ([(0.02, 0.0), (0.03, 0.0), (0.001, 0.0)], 0.5 ** (1.0 + math.log(6.0) / math.log(30.0))),
    ],
)  # fmt: skip
def test_the_step_that_would_do_lies_between_those_that_were_tried(tried, share):
    (path, work), *remaining = tried
    result = ReplayDifferences(path, work, 1.0, tuple((2 ** (k + 1), *item) for k, item in enumerate(remaining)))
    assert enough(result) == pytest.approx(share)


def test_the_step_that_is_named_would_do():
    """Stiff rods of first order, whatever the method's own is: at the step that is named the verdict is fine."""

    def run(dt):
        return watched(rtmms.load("manta", dt=dt), round(2.0 / dt), lambda k: RODS * math.sin(3.77 * k * dt)).conclude(
            9.0
        )

    doubted = run(0.02)
    assert doubted.verdict == "doubtful"
    name, step = doubted.finer
    assert name == "dt"
    assert run(step).verdict == "fine"
    assert step > 0.001


def test_power_is_summed_alike_however_far_the_run_is_taken_again(monkeypatch):
    """The manta's power is asked for at some steps alone: a run of which time reaches the beginning is judged by the
    same ones. (Its work was reported to be off by more than 100 %.)"""
    plant = rtmms.load("manta", chains=5)
    monitor = watched(plant, 2100, lambda k: RODS * math.sin(0.004 * k))
    whole = monitor.conclude(60.0, max_parts=2)
    clock = iter([*[0.0] * 40, 1e9, *[0.0] * 10_000])  # of the run as it was time is up after forty looks
    monkeypatch.setattr("rtmms.plant.replay.monotonic", lambda: next(clock))
    part = monitor.conclude(1.0, max_parts=2)
    assert part.seconds is not None
    assert 0.2 < part.seconds < 1.0
    assert part.work < 0.05 + 2.0 * whole.work
