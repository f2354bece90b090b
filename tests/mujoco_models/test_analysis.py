"""Many runs, linear models, placing, and plans of MuJoCo plants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.linearise import linearise_step
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from tests.cli.shell import process
from tests.mujoco_models.models import BOX, KINDS, WALKER, mjcf

mujoco: Any = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'rtmms[mujoco]'")
pytestmark = [pytest.mark.full, pytest.mark.peer]


def build(folder: Path, text: str, **parameters: Any) -> Any:
    path = folder / "robot.xml"
    path.write_text(text)
    return rtmms.load(str(path), **parameters)


def random_commands(plant: Any, runs: int, steps: int) -> Any:
    lower = np.array([-1.0 if actuator.lower is None else actuator.lower for actuator in plant.actuators])
    upper = np.array([1.0 if actuator.upper is None else actuator.upper for actuator in plant.actuators])
    return lower + (upper - lower) * np.random.default_rng(4).random((runs, steps, len(lower)))


def stepped(plant: Any, commands: Any, names: tuple[str, ...], every: int) -> tuple[dict[str, Any], bytes]:
    """One run by hand."""
    samples: dict[str, list[Any]] = {name: [] for name in names}
    for k, command in enumerate(commands):
        plant.step(command)
        if (k + 1) % every == 0:
            outputs = plant.observe()
            for name in names:
                samples[name].append(outputs[name].copy())
    return {name: np.array(values) for name, values in samples.items()}, plant.snapshot()


@pytest.mark.parametrize("in_turn", [False, True], ids=["together", "in turn"])
@pytest.mark.parametrize("dt", [0.002, 0.004])
@pytest.mark.parametrize("case", KINDS)
def test_a_run_of_many_has_the_bits_of_stepping_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, dt: float, in_turn: bool
) -> None:
    plant = build(tmp_path, KINDS[case], dt=dt)
    if in_turn:
        monkeypatch.setattr(type(plant), "can_roll_out", lambda self: False)
    commands = random_commands(plant, 3, 40)
    for command in commands[0, :10]:
        plant.step(command)
    begin, names = plant.snapshot(), tuple(channel.name for channel in plant.outputs)
    runs = rtmms.rollout(plant, commands, outputs=names, every=3, threads=2)
    assert plant.snapshot() == begin
    assert runs.status.tolist() == [0, 0, 0]
    for k in range(3):
        plant.restore(begin)
        outputs, end = stepped(plant, commands[k], names, 3)
        assert runs.final[k] == end
        assert all(np.array_equal(runs.outputs[name][k], outputs[name]) for name in names)


def test_a_run_that_fails_ends_by_itself_and_names_the_reason(tmp_path: Path) -> None:
    text = mjcf(
        '<body><joint name="rail" type="slide"/><geom size=".1"/></body>', "",
        '<actuator><motor joint="rail" gear="1e15"/></actuator>',
    )  # fmt: skip
    plant = build(tmp_path, text)
    commands = np.full((3, 9, 1), 1e-15)
    commands[1, 4] = 1.0
    runs = rtmms.rollout(plant, commands, outputs=("joint_position",), threads=2)
    assert (runs.status != 0).tolist() == [False, True, False]
    assert runs.steps.tolist() == [9, 4, 9]
    assert "of 'rail' is not finite, or larger" in runs.reason(1)
    assert np.isnan(runs.outputs["joint_position"][1, 4:]).all()
    assert np.isfinite(runs.outputs["joint_position"][[0, 2]]).all()


def test_parameters_differ_between_runs_and_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = build(tmp_path, WALKER)
    commands, before = random_commands(plant, 1, 150), plant.snapshot()
    masses, pulls = [2.0, 20.0, 2.0], [9.0, 9.0, 3.0]
    runs = rtmms.rollout(plant, commands, parameters={"body/trunk/mass": masses, "gravity_m_s2": pulls}, every=50)
    assert plant.snapshot() == before
    assert "body/trunk/mass" not in plant.parameters
    for k, (mass, pull) in enumerate(zip(masses, pulls, strict=True)):
        alone = build(tmp_path, WALKER, **{"body/trunk/mass": mass, "gravity_m_s2": pull})
        outputs, end = stepped(alone, commands[0], ("position",), 50)
        assert np.array_equal(runs.outputs["position"][k], outputs["position"])
        assert runs.final[k] == end
    assert not np.array_equal(runs.outputs["position"][0], runs.outputs["position"][1])
    monkeypatch.setattr(type(plant), "can_roll_out", lambda self: False)
    with pytest.raises(ModelError, match="make one plant for each value"):
        rtmms.rollout(plant, commands, parameters={"body/trunk/mass": masses})


ARM = """
    <body name="trunk" pos="0 0 2"><freejoint/><geom type="box" size=".1 .2 .1"/>
      <body pos=".2 0 0"><joint name="elbow" axis="0 1 0" damping=".1" stiffness="2"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
        <body pos=".3 0 0"><joint name="wrist" type="ball" damping=".05"/><geom size=".05" pos=".1 0 0"/></body></body>
    </body>
"""
FILTERED = '<actuator><general joint="elbow" dyntype="filter" dynprm=".05"/><motor joint="elbow"/></actuator>'


@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_a_linear_model_predicts_a_displaced_step(tmp_path: Path, integrator: str, substeps: int) -> None:
    text = mjcf(ARM, f'<option integrator="{integrator}"/>', FILTERED)
    plant = build(tmp_path, text, dt=0.002 * substeps)
    command = np.array([0.3, -0.2])
    for _ in range(50):
        plant.step(command)
    before = plant.snapshot()
    linear = rtmms.linearise(plant, command, outputs=("position", "joint_position"))
    assert plant.snapshot() == before
    assert linear.method == ("stepping" if integrator == "RK4" else "mjd_transitionFD")
    assert linear.states[:4] == ("x", "y", "z", "roll")
    assert linear.states[6:8] == ("elbow", "wrist.roll")
    assert linear.states[-1] == "activation[0]"
    assert linear.error < 1e-6
    slow = linearise_step(plant, command)
    np.testing.assert_allclose(linear.a, slow.a, atol=1e-6)
    np.testing.assert_allclose(linear.b, slow.b, atol=1e-6)
    random = np.random.default_rng(3)
    x, u = 1e-4 * random.standard_normal(len(linear.states)), 1e-3 * random.standard_normal(2)
    chart = plant.chart()
    plant.step(command)
    undisturbed = chart.read()
    plant.restore(before)
    chart.write(x)
    np.testing.assert_allclose(linear.deviation(plant), x, atol=1e-12)
    plant.step(command + u)
    np.testing.assert_allclose(chart.read() - undisturbed, linear.a @ x + linear.b @ u, atol=1e-6)
    assert np.max(np.abs(linear.a @ x + linear.b @ u)) > 1e-4
    assert linear.c is not None
    assert linear.c.shape == (4, len(linear.states))


@pytest.mark.parametrize(
    ("texts", "why"),
    [({"period": True, "command": np.zeros((4, 2))}, "period"), ({"with_respect_to": ("gravity_m_s2",)}, "with_resp"),
     ({"method": "structure"}, "has no compiled steps")],
)  # fmt: skip
def test_what_linearise_cannot_do_is_refused_in_a_sentence(tmp_path: Path, texts: dict[str, Any], why: str) -> None:
    plant = build(tmp_path, mjcf(ARM, "", FILTERED))
    with pytest.raises(ModelError, match=why):
        rtmms.linearise(plant, **texts)


def test_delays_are_no_coordinates(tmp_path: Path) -> None:
    text = mjcf(ARM, "", '<actuator><motor joint="elbow" nsample="4" delay=".004"/></actuator>')
    try:
        plant = build(tmp_path, text)
    except ModelError:
        pytest.skip("this MuJoCo has no delays")
    with pytest.raises(ModelError, match="delays of the model are not supported"):
        rtmms.linearise(plant)


def test_a_plant_is_placed_by_the_names_of_its_outputs(tmp_path: Path) -> None:
    plant = build(tmp_path, mjcf(ARM, "", FILTERED))
    values = {
        "position": [1.0, 2.0, 3.0], "quaternion": [0.6, 0.0, 0.8, 0.0], "velocity": [0.5, 0.0, -1.0],
        "angular_velocity": [0.1, 0.2, 0.3], "joint_position": [0.4], "joint_velocity": [-2.0],
    }  # fmt: skip
    plant.place(**values)
    for name, value in values.items():
        np.testing.assert_allclose(plant.observe()[name], value, atol=1e-12)
    before = plant.snapshot()
    for wrong in ({"position": [0.0, 0.0]}, {"velocity": [np.nan, 0, 0]}, {"quaternion": [0, 0, 0, 0]},
                  {"joint_position": "x"}):  # fmt: skip
        with pytest.raises(ArgumentError, match=f"place: {next(iter(wrong))}: expected"):
            plant.place(joint_velocity=[5.0], **wrong)
    with pytest.raises(UnknownNameError, match="height"):
        plant.place(height=1.0)
    assert plant.snapshot() == before


COST = """
import rtmms

@rtmms.cost(outputs=("position", "velocity"))
def forward(state, command, time):
    return (state.position[0] - 0.5) ** 2 + 1e-7 * (command[0] ** 2 + command[1] ** 2)
"""
CART = mjcf(
    BOX.replace('pos="0 0 1"', 'pos="0 0 0.3"').replace("<freejoint/>", '<freejoint/><site name="seat"/>'),
    '<option gravity="0 0 0" density="1000" viscosity="1"/>',
    '<actuator><motor name="x" site="seat" gear="1 0 0 0 0 0" ctrlrange="-300 300"/>'
    '<motor name="y" site="seat" gear="0 1 0 0 0 0" ctrlrange="-300 300"/></actuator>',
)


def test_a_planner_with_a_cost_of_ones_own_reaches_its_goal(tmp_path: Path) -> None:
    (tmp_path / "cart.xml").write_text(CART)
    (tmp_path / "cost.py").write_text(COST)
    arguments = "predictive:model=cart.xml,cost=cost.py:forward,samples=12,horizon_s=1,seed=1"
    done = process(
        tmp_path,
        "run",
        "cart.xml",
        "--controller",
        arguments,
        "--mode",
        "lockstep",
        "--duration",
        "4",
        "--json",
        "--quiet",
    )
    assert done.status == 0, done.err
    assert done.report["final"]["position"][0] == pytest.approx(0.5, abs=0.15)
    assert done.report["exchange"]["peers"][0]["metrics"]["plans"] > 20


def test_a_model_without_a_free_body_has_no_plans(tmp_path: Path) -> None:
    from rtmms.planning.cost import cost
    from rtmms.planning.ilqr import IterativeLqr
    from rtmms.planning.planner import Knots, Planner

    text = mjcf('<body><joint name="h"/><geom size=".1"/></body>', "",
                '<actuator><motor joint="h" ctrlrange="-1 1"/></actuator>')  # fmt: skip
    plant = build(tmp_path, text, dt=0.02)
    least = cost(lambda state, command, time: 0.0, outputs=("joint_position",))
    arguments = Knots(plant.actuators, 3, 1.0, np.zeros(1))
    with pytest.raises(ModelError, match="give method=cem, mppi or ps"):
        IterativeLqr(plant, arguments, least)
    with pytest.raises(ModelError, match="got one without the output 'position'"):
        Planner(plant, arguments, least, horizon_s=1.0)
