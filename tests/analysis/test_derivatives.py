"""A, B, C and P of compiled steps: against differences through `step`, the motion itself, and what is known."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.fork_pool import PackedFork
from rtmms.analysis.linearise import Linear, linearise_step, reach_of
from rtmms.analysis.linearise import linearise as linearise_motion
from rtmms.mechanism.plant import TreePlant
from rtmms.robots import eel
from tests.analysis.test_linearise_step import ChartedPendulum, TreeChart
from tests.pendulum import Pendulum

UNEVEN = np.array([0.50, 0.42, 0.45, 0.38])
"""rad, amplitudes of a manta's rods: left and right differ, so that no velocity of the body is 0."""


def on_its_way(plant: Any, seconds: float = 0.4) -> Any:
    """The plant after a while under commands that differ from actuator to actuator, and the next one of them."""
    low = np.array([-0.3 if actuator.lower is None else actuator.lower for actuator in plant.actuators])
    high = np.array([0.3 if actuator.upper is None else actuator.upper for actuator in plant.actuators])
    middle = 0.5 * (low + high)
    span = 0.2 * np.minimum(high - middle, middle - low)

    def at(k: int) -> Any:
        return middle + span * np.sin(4.0 * plant.dt * k + np.arange(len(middle)) / 3.0)

    steps = round(seconds / plant.dt)
    for k in range(steps):
        plant.step(at(k))
    return at(steps)


def off(linear: Linear, other: Linear, plant: Any) -> float:
    """The largest difference of an entry of A or B, in the chart's sizes."""
    size, reach = plant.chart().size, reach_of(plant.actuators)
    a, b = (linear.a - other.a) * size / size[:, None], (linear.b - other.b) * reach / size[:, None]
    return float(max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)))


@pytest.fixture(scope="module")
def small() -> Any:
    """A manta whose period has few steps."""
    return rtmms.load("manta", chains=5, links=2, dt=1e-2)


@pytest.fixture(scope="module")
def copter() -> Any:
    return rtmms.load("quadrotor")


@pytest.mark.full
def test_of_the_manta():
    """All 390 coordinates, in mid-flap: no more off than the reference itself, the same bits for any number of threads,
    and nothing of the plant is changed."""
    plant = rtmms.load("manta", start_depth_m=0.0)  # differences of a position 2 m away have larger roundings
    for k in range(400):
        plant.step(UNEVEN * np.sin(3.8 * plant.dt * k + np.arange(4) / 3.0))
    u = UNEVEN * np.sin(1.5 + np.arange(4) / 3.0)
    blob = plant.snapshot()
    result, other = rtmms.linearise(plant, u, threads=1), rtmms.linearise(plant, u, threads=2)
    assert plant.snapshot() == blob
    np.testing.assert_array_equal(result.a, other.a)
    np.testing.assert_array_equal(result.b, other.b)
    assert result.a.shape == (390, 390)
    assert result.b.shape == (390, 4)
    assert (len(result.units), result.dt, result.inputs) == (
        390,
        1e-3,
        tuple(actuator.name for actuator in plant.actuators),
    )
    units = dict(zip(result.states, result.units, strict=True))
    subset = [units[name] for name in ("x_error", "wz", "last_ax", "left.front.rate", "right[2,29]")]
    assert subset == ["m", "rad/s", "m/s2", "rad/s", "rad"]
    reference = linearise_step(plant, u)
    assert off(result, reference, plant) < 2e-9  # the reference's own roundings are about half of it
    assert off(result, reference, plant) < 3.0 * result.error < 1e-8


@pytest.mark.full
@pytest.mark.parametrize(
    "arguments",
    [
        {"coupling": "monolithic", "actuation": "ideal", "chains": 5},
        {"body": "fixed", "chains": 5},
        pytest.param({"coupling": "iterated", "added_mass": True}, marks=pytest.mark.full),
        pytest.param({"current_gradient_1_s": (0.1,) + (0.0,) * 8}, marks=pytest.mark.full),
    ],
    ids=["monolithic-ideal", "held", "iterated", "current"],
)
def test_of_other_mantas(arguments: dict[str, Any]):
    plant = rtmms.load("manta", links=2, **arguments)
    u = on_its_way(plant)
    result, reference = rtmms.linearise(plant, u), linearise_step(plant, u)
    assert result.states == reference.states
    assert off(result, reference, plant) < 1e-8 + 3.0 * (result.error + reference.error)


def test_long_chains_of_the_manta_go_by_differences():
    plant: Any = rtmms.load("manta", links=7, chains=2, dt=1e-2)
    assert rtmms.linearise(plant).method == "differences"
    with pytest.raises(rtmms.ModelError, match="'structure' does not support this"):
        rtmms.linearise(plant, method="structure")


@pytest.mark.parametrize("coupling", ["sequential", "monolithic"])
def test_of_the_manta_by_structure(coupling: str):
    """Against differences at random states, in a current, with a block that is not full; packed is what dense is."""
    plant = rtmms.load("manta", coupling=coupling, chains=18, links=2, current_m_s=(0.2, -0.1, 0.05))
    random, chart = np.random.default_rng(5), plant.chart()
    size, k = chart.size, len(chart.size)
    for _ in range(3):
        plant.reset()
        chart = plant.chart()
        chart.write(0.1 * size * random.normal(size=k))
        u = 0.2 * random.normal(size=4)
        plant.step(u)
        result = rtmms.linearise(plant, u)
        other = rtmms.linearise(plant, u, method="differences")
        assert (result.method, other.method) == ("structure", "differences")
        assert result.states == other.states
        assert off(result, other, plant) < 1e-7
        x = random.normal(size=(k, 3))
        np.testing.assert_allclose(result.packed.times(x), result.a @ x, atol=1e-12 * np.abs(result.a).max())
    assert (result.packed.spread is None) == (coupling == "sequential")


@pytest.mark.full
@pytest.mark.parametrize(
    ("robot", "arguments"),
    [
        ("eel", {"joints": 3}), ("quadrotor", {}), ("torpedo", {}),
        pytest.param("snake", {}, marks=pytest.mark.full), pytest.param("moth", {}, marks=pytest.mark.full),
        pytest.param("modal_moth", {}, marks=pytest.mark.full),
    ],
)  # fmt: skip
def test_of_trees(robot: str, arguments: dict[str, Any]):
    """Imposed joints behind filters, lags of rotors and thrusters, contacts, modal bodies."""
    plant: Any = rtmms.load(robot, **arguments)
    u = on_its_way(plant)
    blob = plant.snapshot()
    result = rtmms.linearise(plant, u)
    assert plant.snapshot() == blob
    reference = linearise_step(plant, u)
    assert plant.snapshot() == blob
    assert result.states == reference.states
    assert set(result.states) >= set(linearise_motion(plant).states) - {"x_error"}
    assert off(result, reference, plant) < 1e-9 + 3.0 * (result.error + reference.error)


@pytest.mark.full  # another tree's kernels
def test_of_a_tree_in_coordinates_of_another_hand():
    """The chart of rtmms.analysis.trim, written apart from the compiled one; and exp(A dt) of the complex step."""
    plant: Any = eel.load(joints=3, dt=2e-3, drive="torque", gait="none", kp_n_m=0.0, kd_n_m_s=0.0)
    plant.place(joint_position=0.1 * np.sin(np.arange(9.0)))
    plant.place(velocity=(-0.3, 0.05, 0.02), angular_velocity=(0.1, 0.2, 0.3))
    result = rtmms.linearise(plant)
    reference = linearise_step(plant, chart=TreeChart(plant))
    np.testing.assert_allclose(result.a, reference.a, atol=3e-9 * np.abs(reference.a).max())
    np.testing.assert_allclose(result.b, reference.b, atol=3e-9 * np.abs(reference.b).max())
    exact = linearise_motion(plant).held(plant.dt)
    assert exact.states == result.states
    np.testing.assert_allclose(result.a, exact.a, atol=2e-3 * np.abs(exact.a).max())


def test_a_multistep_method_starts_anew():
    """What it remembers of earlier steps is no coordinate: the slope is that of the step that starts it, rk4's."""
    like: Any = eel.load(joints=3, dt=2e-3, drive="torque")
    parts = (like.model, like.dt, like.law, like.drives)
    plants = [TreePlant(*parts, method=method, nodes=like.nodes) for method in ("rk4", "abam")]
    for plant in plants:
        plant.place(velocity=(-0.3, 0.05, 0.02), joint_velocity=0.1 * np.sin(np.arange(9.0)))
    for _ in range(5):
        plants[1].step(plants[1].neutral)
    plants[0].put(plants[1].present()[0], plants[1].present()[1])
    blob = plants[1].snapshot()
    item, other = (rtmms.linearise(plant, plant.neutral, method="differences") for plant in plants)
    assert rtmms.linearise(plants[1]).method == "differences"
    assert plants[1].snapshot() == blob
    np.testing.assert_array_equal(item.a, other.a)


def test_what_the_motion_gives(copter: Any):
    """A small error of everything becomes what A and B predict; `deviation` is that error."""
    copter.reset()
    u = on_its_way(copter)
    result, chart, blob = rtmms.linearise(copter, u), copter.chart(), copter.snapshot()
    random = np.random.default_rng(3)
    x, du = 1e-5 * chart.size * random.normal(size=16), 1e-3 * random.normal(size=4)
    copter.step(u)
    plain = result.deviation(copter)
    copter.restore(blob)
    np.testing.assert_array_equal(result.deviation(copter), 0.0)
    chart.write(x)
    np.testing.assert_allclose(result.deviation(copter), x, atol=1e-14)
    other = rtmms.load("quadrotor")
    other.restore(copter.snapshot())
    np.testing.assert_allclose(result.deviation(other), x, atol=1e-14)
    copter.step(u + du)
    np.testing.assert_allclose(result.deviation(copter) - plain, result.a @ x + result.b @ du, atol=3e-7)
    copter.restore(blob)


def test_deviation_of_others(copter: Any, small: Any):
    copter.reset()
    with pytest.raises(rtmms.ModelError, match=r"expected a plant with the 16 states .* got a Manta of others"):
        rtmms.linearise(copter).deviation(small)
    with pytest.raises(rtmms.ModelError, match="expected a linear model at one state"):
        linearise_motion(copter).deviation(copter)
    plant = ChartedPendulum()
    plant.state[:2] = 0.5, 0.2
    linear = rtmms.linearise(plant)
    plant.state[:2] = 0.6, -0.1
    blob = plant.snapshot()
    np.testing.assert_allclose(linear.deviation(plant), [0.1, -0.3])
    assert plant.snapshot() == blob


def test_outputs(copter: Any):
    """C: the position turns with the body's axes, the twist is itself; rows have names and units."""
    copter.reset()
    copter.place(quaternion=(0.9, 0.1, -0.3, 0.2), velocity=(1.0, 2.0, 3.0))
    blob = copter.snapshot()
    result = rtmms.linearise(copter, outputs=("position", "velocity", "energy"))
    assert copter.snapshot() == blob
    assert result.outputs == (*(f"position[{k}]" for k in range(3)), *(f"velocity[{k}]" for k in range(3)), "energy")
    assert result.output_units == ("m",) * 3 + ("m/s",) * 3 + ("J",)
    want = np.zeros((6, 16))
    want[:3, :3], want[3:, 6:9] = copter.state.rotation, np.eye(3)
    np.testing.assert_allclose(result.c[:6], want, atol=1e-8)
    mass, g = copter.parameters.mass_kg, copter.parameters.gravity_m_s2
    np.testing.assert_allclose(result.c[6, 6:9], mass * np.array([1.0, 2.0, 3.0]), rtol=1e-6)
    np.testing.assert_allclose(result.c[6, :3], mass * g * copter.state.rotation[2], rtol=1e-5, atol=1e-6)
    assert rtmms.linearise(copter).c is None


def test_parameters(small: Any):
    """P: by hand, of numbers and vectors, and to one side where there is no other."""
    small.reset()
    u = on_its_way(small)
    chart, blob, default = small.chart(), small.present(), small.parameters
    result = rtmms.linearise(small, u, with_respect_to=("drag_coefficient", "current_m_s"))
    assert result.parameters == ("drag_coefficient", "current_m_s[0]", "current_m_s[1]", "current_m_s[2]")
    assert small.parameters == default
    np.testing.assert_array_equal(small.present()[0], blob[0])
    ends = []
    for drag in (default.drag_coefficient + 1e-3, default.drag_coefficient - 1e-3):
        small.set(drag_coefficient=drag)
        small.step(u)
        ends.append(chart.read())
        small.put(*blob)
    small.set(drag_coefficient=default.drag_coefficient)
    want = (ends[0] - ends[1]) / 2e-3
    np.testing.assert_allclose(result.p[:, 0], want, atol=1e-6 * np.abs(want).max())
    assert np.abs(want).max() > 1e-3
    small.set(drag_coefficient=0.0)
    edge = rtmms.linearise(small, u, with_respect_to=("drag_coefficient",)).p
    small.set(drag_coefficient=default.drag_coefficient)
    assert np.abs(edge[:, 0]).max() > 1e-3
    small.put(*blob)


def test_forks_are_kept_and_follow_parameters(small: Any):
    small.reset()
    u, default = on_its_way(small), small.parameters.drag_coefficient
    before = rtmms.linearise(small, u)
    small.set(drag_coefficient=2.0 * default)
    after = rtmms.linearise(small, u)
    small.set(drag_coefficient=default)
    assert np.abs(after.a - before.a).max() > 1e-4
    np.testing.assert_array_equal(rtmms.linearise(small, u).a, before.a)


@pytest.mark.full
def test_a_period(small: Any):
    """The map of a period of the manta's own gait: what a small error, and commands that differ a little, become."""
    small.reset()
    commands = small.gait_commands(167)
    for _ in range(2):
        for command in commands:
            small.step(command)
    blob, chart = small.snapshot(), small.chart()
    result = rtmms.linearise(small, period=True)
    assert small.snapshot() == blob
    assert result.dt == pytest.approx(1.67)
    values = rtmms.linearise(small, commands, period=True, threads=1)
    np.testing.assert_array_equal(values.a, result.a)
    for command in commands:
        small.step(command)
    end = small.chart()
    random = np.random.default_rng(1)
    x, du = 1e-7 * chart.size * random.normal(size=len(chart.size)), 1e-7 * random.normal(size=4)
    ends = []
    for sign in (1.0, -1.0):
        small.restore(blob)
        chart.write(sign * x)
        for command in commands:
            small.step(command + sign * du)
        ends.append(end.read())
    small.restore(blob)
    moved = (ends[0] - ends[1]) / 2.0
    want = result.a @ x + result.b @ du
    np.testing.assert_allclose(moved / end.size, want / end.size, atol=1e-3 * np.abs(want / end.size).max())


def test_long_work_shows_how_far_it_is(small: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    small.reset()
    commands = small.gait_commands(40)
    for long, message in ((10**9, False), (1, True)):
        monkeypatch.setattr("rtmms.analysis.derivatives.LONG_STEPS", long)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        monkeypatch.delenv("RTMMS_QUIET", raising=False)
        rtmms.linearise(small, commands, period=True)
        observed = capsys.readouterr()
        assert ("linearise" in observed.err) == message
        assert not observed.out


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_it(copter: Any, threads: int):
    copter.reset()
    before, commands = copter.snapshot(), np.full((50_000, 4), 468.0)
    rtmms.linearise(copter, commands[:1], period=True, threads=threads)  # compiled
    observed: list[int] = []
    done = PackedFork.advance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PackedFork, "advance", lambda *values: observed.append(1) or done(*values))
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            rtmms.linearise(copter, commands, period=True, threads=threads)
    assert len(observed) < 40  # of 40 runs
    assert copter.snapshot() == before
    assert np.isfinite(rtmms.linearise(copter, threads=threads).a).all()


def test_a_period_of_a_gait_of_its_own():
    """One that its law has: joints come back, and the head's error in heading stays what it was."""
    plant: Any = eel.load(joints=3, dt=2e-3, drive="torque")
    result = rtmms.linearise(plant, period=True)
    assert result.dt == pytest.approx(2.0 * np.pi / plant.law.omega)
    yaw = result.states.index("yaw_error")
    assert result.a[yaw, yaw] == pytest.approx(1.0, abs=1e-6)


def test_of_a_plant_in_plain_python():
    plant = ChartedPendulum(dt=1e-2)
    plant.state[:2] = 0.9, 1.7
    result = rtmms.linearise(plant, (0.3, 0.5), outputs=("angle",))
    np.testing.assert_array_equal(result.a, linearise_step(plant, np.array([0.3, 0.5])).a)
    np.testing.assert_allclose(result.c, [[1.0, 0.0]], atol=1e-9)


def test_a_step_that_fails(copter: Any):
    copter.reset()
    copter.place(velocity=(1e150, 0.0, 0.0), angular_velocity=(1e200, 1e200, 0.0))
    with pytest.raises(rtmms.DivergedError, match="ran away"):
        rtmms.linearise(copter)
    copter.reset()
    assert np.isfinite(rtmms.linearise(copter).a).all()


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({"command": (1.0, 2.0)}, r"linearise: command must have shape \(4,\), got \(2,\)"),
        ({"command": "hover"}, "linearise: command: expected 4 finite numbers"),
        ({"command": [np.nan] * 4}, "must be finite"),
        ({"outputs": "position"}, "outputs: expected a sequence of names, got 'position'"),
        ({"outputs": ("positon",)}, "unknown output 'positon'"),
        ({"with_respect_to": "mass_kg"}, "with_respect_to: expected a sequence of names"),
        ({"with_respect_to": ("mas",)}, "unknown parameter that can change while the plant runs 'mas'"),
        ({"period": True}, "has no periodic gait; give the commands of a period"),
        (
            {"period": True, "command": (1.0, 2.0)},
            r"expected an array of shape \(steps, 4\) with period=True, got shape \(2,\)",
        ),
        ({"period": True, "command": np.full((2, 4), np.inf)}, "must be finite, got inf in step 0"),
        ({"period": "yes"}, "period: expected True or False, got 'yes'"),
        ({"threads": 0}, "threads: expected a whole number from 1 on, got 0"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], output: str, copter: Any):
    copter.reset()
    with pytest.raises(rtmms.RtmmsError, match=output):
        rtmms.linearise(copter, **arguments)


def test_which_plants_are_refused():
    with pytest.raises(rtmms.RtmmsError, match=r"plant: expected a plant, as rtmms\.load returns, got 'manta'"):
        rtmms.linearise("manta")  # type: ignore[arg-type]
    with pytest.raises(rtmms.ModelError, match=r"expected one with a method chart\(\), got a Pendulum"):
        rtmms.linearise(Pendulum())
    with pytest.raises(rtmms.ModelError, match="with_respect_to: expected a plant with compiled steps"):
        rtmms.linearise(ChartedPendulum(), with_respect_to=("damping",))


def test_placed(small: Any, copter: Any):
    """By the names of outputs; the rest stays; lanes without a chain move with the last one."""
    small.reset()
    on_its_way(small)
    before = small.observe()
    joints = 0.1 * np.arange(20.0).reshape(2, 2, 5)
    small.place(position=(1.0, 2.0, 3.0), quaternion=(0.0, 0.0, 0.0, 2.0), rod_angle=(0.1, 0.2, 0.3, 0.4),
                rod_rate=(1.0, 2.0, 3.0, 4.0), joint_velocity=joints)  # fmt: skip
    after = small.observe()
    np.testing.assert_array_equal(after["position"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(after["quaternion"], [0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(after["rod_angle"], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(after["rod_rate"], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(after["joint_velocity"], joints)
    for name in ("velocity", "angular_velocity", "joint_position"):
        np.testing.assert_array_equal(after[name], before[name])
    lanes = small.system.joints[:, 16:]
    np.testing.assert_array_equal(lanes[:, 5:], np.repeat(lanes[:, 4:5], 11, axis=1))
    blob = small.snapshot()
    for values, output in (
        ({"depth": 1.0}, "unknown part of a state 'depth'"),
        ({"position": 1.0}, r"place: position: expected finite numbers of shape \(3,\), got shape \(\)"),
        ({"rod_angle": (1.3, 0.0, 0.0, 0.0)}, "expected angles within 1.2 rad"),
        ({"velocity": (0.0, np.nan, 0.0)}, r"velocity: expected finite numbers .* got \[0.0, nan, 0.0\]"),
        ({"quaternion": (0.0,) * 4}, "quaternion: expected .* other than 0"),
    ):
        with pytest.raises(rtmms.RtmmsError, match=output):
            small.place(**values)
        assert small.snapshot() == blob
    copter.reset()
    with pytest.raises(rtmms.UnknownNameError, match="unknown part of a state 'rod_angle'"):
        copter.place(rod_angle=0.0)
    copter.place(angular_velocity=(1.0, 2.0, 3.0))
    np.testing.assert_array_equal(copter.observe()["angular_velocity"], [1.0, 2.0, 3.0])
    copter.reset()


@pytest.mark.full  # another tree's kernels
def test_the_pages_examples(capsys: pytest.CaptureFixture[str]):
    """The quadrotor comes back to its place; a beat's slowest errors outlast it."""
    page = (Path(__file__).parents[2] / "docs" / "linear_models.md").read_text(encoding="utf-8")
    hold, beat = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(hold, names)
    assert np.linalg.norm(names["plant"].observe()["position"]) < 1e-3
    exec(beat, names)
    assert names["beats"].dt == pytest.approx(1.67)
    assert len(names["slow"]) > 0
    assert capsys.readouterr().out.strip()
