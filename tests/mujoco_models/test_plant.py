"""MuJoCo models as plants: the bits of MuJoCo's own steps, outputs, snapshots, parameters, keyframes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ArgumentError, DivergedError, ModelError, UnknownNameError
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Plant
from tests.mujoco_models.models import BOX, KINDS, WALKER, installed_models, mjcf

mujoco: Any = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'rtmms[mujoco]'")
pytestmark = [pytest.mark.full, pytest.mark.peer]
CASES = [*KINDS, *installed_models()]


def build(folder: Path, text: str, **parameters: Any) -> Any:
    path = folder / "robot.xml"
    path.write_text(text)
    return rtmms.load(str(path), **parameters)


def path_of(folder: Path, case: str | Path) -> Path:
    if isinstance(case, Path):
        return case
    (folder / f"{case}.xml").write_text(KINDS[case])
    return folder / f"{case}.xml"


def commands(plant: Plant, steps: int) -> Any:
    """Random commands within the limits."""
    lower = np.array([-1.0 if actuator.lower is None else actuator.lower for actuator in plant.actuators])
    upper = np.array([1.0 if actuator.upper is None else actuator.upper for actuator in plant.actuators])
    return lower + (upper - lower) * np.random.default_rng(4).random((steps, len(lower)))


def copied(outputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value.copy() for name, value in outputs.items()}


@pytest.mark.parametrize(
    "case", CASES, ids=lambda item: item if isinstance(item, str) else f"{item.parts[-4]}-{item.stem}"
)
def test_steps_are_mujocos_and_a_snapshot_continues_with_the_same_bits(tmp_path: Path, case: str | Path) -> None:
    path = path_of(tmp_path, case)
    try:
        plant: Any = rtmms.load(str(path))
    except ModelError as refused:
        assert "nothing to run" in str(refused)  # noqa: PT017 - a scene without joints
        return
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    values = commands(plant, 40)
    for command in values[:20]:
        plant.step(command)
        data.ctrl[:] = command
        mujoco.mj_step(model, data)
    np.testing.assert_array_equal(plant.data.qpos, data.qpos)
    np.testing.assert_array_equal(plant.data.qvel, data.qvel)
    middle, before = plant.snapshot(), copied(plant.observe())
    for command in values[20:]:
        plant.step(command)
    end, after = plant.snapshot(), copied(plant.observe())
    assert any(not np.array_equal(before[name], after[name]) for name in after)
    other: Any = rtmms.load(str(path))
    for again in (plant, other):
        again.restore(middle)
        assert all(np.array_equal(value, before[name]) for name, value in again.observe().items())
        for command in values[20:]:
            again.step(command)
        assert again.snapshot() == end
        assert all(np.array_equal(value, after[name]) for name, value in again.observe().items())
    names = {channel.name: channel.shape for channel in plant.outputs}
    assert {name: value.shape for name, value in after.items()} == names


def test_outputs_are_in_the_frames_of_the_project(tmp_path: Path) -> None:
    plant = build(tmp_path, WALKER)
    for command in commands(plant, 50):
        plant.step(command)
    out, data = plant.observe(), plant.data
    turn = data.body("trunk").xmat.reshape(3, 3)
    np.testing.assert_allclose(out["position"], data.qpos[:3], atol=1e-15)
    np.testing.assert_allclose(turn @ out["velocity"], data.qvel[:3], atol=1e-12)
    np.testing.assert_allclose(out["angular_velocity"], data.qvel[3:6], atol=0)
    assert np.linalg.norm(out["velocity"] - data.qvel[:3]) > 1e-3  # the body has turned, so the frames differ
    np.testing.assert_array_equal(out["joint_position"], data.qpos[7:9])
    np.testing.assert_array_equal(out["stone.position"], data.xpos[plant.model.body("stone").id])
    units = {channel.name: (channel.unit, channel.frame) for channel in plant.outputs}
    assert units["position"] == ("m", "world")
    assert units["velocity"] == ("m/s", "body")
    assert units["acceleration"] == ("m/s2", "")
    assert units["sensor.velocity"] == ("rad/s", "")  # the name was taken by an output
    assert units["touch"] == ("N", "")
    assert units["joint_position"] == ("", "")  # a hinge and a slide
    np.testing.assert_array_equal(out["hip_angle"], data.qpos[7])  # at the present state, not at the last step's start


def test_actuators_have_names_limits_and_units(tmp_path: Path) -> None:
    hip, slide = build(tmp_path, WALKER).actuators
    assert (hip.name, hip.unit, hip.lower, hip.upper, hip.neutral) == ("hip", "rad", -1.0, 1.0, 0.0)
    assert (slide.name, slide.unit, slide.lower, slide.upper) == ("slide", "", None, None)  # gear 30: no unit


def test_a_keyframe_is_a_preset(tmp_path: Path) -> None:
    plant = build(tmp_path, WALKER, preset="crouch")
    np.testing.assert_array_equal(plant.observe()["joint_position"], [0.4, 0.01])
    assert [actuator.neutral for actuator in plant.actuators] == [0.4, 0.0]
    plant.step(np.array([0.1, 0.0]))
    plant.reset()
    np.testing.assert_array_equal(plant.observe()["joint_position"], [0.4, 0.01])
    assert build(tmp_path, WALKER, preset="0").snapshot() == plant.snapshot()
    with pytest.raises(UnknownNameError, match=r"keyframe of .*'crawl'.*crouch"):
        build(tmp_path, WALKER, preset="crawl")


CHANGES: list[dict[str, Any]] = [
    {"gravity_m_s2": (0.0, 1.0, -3.0)}, {"gravity_m_s2": 3.7}, {"gravity_m_s2": "0,0,-2"},
    {"fluid_density_kg_m3": 500.0, "wind_m_s": (1.0, 0.0, 0.0)}, {"fluid_viscosity_pa_s": 3.0},
    {"geom/foot/friction": 0.05, "geom/floor/friction": 0.05}, {"body/trunk/mass": 9.0}, {"joint/hip/damping": 5.0},
    {"joint/slide/armature": 2.0}, {"actuator/hip/gainprm[0]": 90.0}, {"geom/leg/solref": "0.02,1"},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda item: next(iter(item)))
def test_set_has_the_effect_of_building_with_it(tmp_path: Path, change: dict[str, Any]) -> None:
    changed, built, plain = build(tmp_path, WALKER), build(tmp_path, WALKER, **change), build(tmp_path, WALKER)
    changed.set(**change)
    values = commands(plain, 150)  # until the foot is on the floor
    for plant in (changed, built, plain):
        for command in values:
            plant.step(command)
    if "geom/leg/solref" not in change:
        assert not np.array_equal(built.data.qpos, plain.data.qpos)
    np.testing.assert_array_equal(changed.data.qpos, built.data.qpos)
    np.testing.assert_array_equal(changed.data.qvel, built.data.qvel)
    assert changed.parameters == built.parameters
    with pytest.raises(ModelError, match="a snapshot of the present model"):
        built.restore(plain.snapshot())
    built.restore(changed.snapshot())


def test_a_refused_change_changes_nothing(tmp_path: Path) -> None:
    plant = build(tmp_path, WALKER)
    before, key = plant.parameters, plant.snapshot()
    for wrong, why in (
        ({"gravity_m_s2": 1.0, "geom/flor/friction": 1}, "geom/floor/friction"), ({"substeps": 2}, "cannot change"),
        ({"geom/floor/friction": -1}, ">= 0"), ({"body/trunk/mass": 0}, "> 0"), ({}, "got nothing"),
        ({"geom/floor/friction": [1, 2, 3, 4]}, "1 to 3 numbers"), ({"geom/floor/friction": "nan"}, "finite"),
        ({"geom/floor/friction[3]": 1}, "from 0 to 2"), ({"speed": 1}, "KIND/NAME/FIELD"),
        ({"wind_m_s": 1}, "3 numbers"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=why):
            plant.set(**wrong)
    assert plant.parameters == before
    assert plant.snapshot() == key


def test_the_step_is_the_models_or_a_multiple(tmp_path: Path) -> None:
    item, three = build(tmp_path, WALKER), build(tmp_path, WALKER, dt=0.006)
    assert (item.dt, three.dt, three.parameters["substeps"]) == (0.002, 0.006, 3)
    command = np.array([0.2, 0.1])
    for _ in range(10):
        three.step(command)
    for _ in range(30):
        item.step(command)
    np.testing.assert_array_equal(item.data.qpos, three.data.qpos)
    finer = build(tmp_path, WALKER, dt=0.002, substeps=2)
    assert (finer.dt, finer.model.opt.timestep) == (0.002, 0.001)
    for wrong in (0.001, 0.005, -1.0, float("nan")):
        with pytest.raises(ModelError, match=r"robot\.xml: dt must be"):
            build(tmp_path, WALKER, dt=wrong)


def test_a_step_that_diverges_reports_where_and_stays_at_the_last_state(tmp_path: Path) -> None:
    text = mjcf(
        '<body><joint name="rail" type="slide"/><geom size=".1"/></body>', "",
        '<actuator><motor joint="rail" gear="1e15"/></actuator>',
    )  # fmt: skip
    plant = build(tmp_path, text)
    plant.step(np.array([0.0]))
    before, place = plant.snapshot(), copied(plant.observe())["joint_position"]
    with pytest.raises(DivergedError, match=r"t = 0.004 s: joint .* of 'rail' is not finite, or larger") as fault:
        plant.step(np.array([1.0]))
    assert fault.value.last_good["joint_position"] == place
    assert plant.snapshot() == before
    plant.step(np.array([0.0]))
    with pytest.raises(ArgumentError, match="rail must be finite"):
        plant.step(np.array([np.nan]))
    with pytest.raises(ArgumentError, match="shape"):
        plant.step(np.zeros(2))


RAIL = """
    <geom type="plane" size="5 5 .1"/>
    <body name="box" pos="0 0 .3"><freejoint/><geom size=".1 .2 .1" type="box"/><site name="imu"/></body>
    <body pos="0 3 0"><joint name="rail" type="slide"/><geom size=".1"/></body>
"""
AFTER = """
    <actuator><motor joint="rail" gear="1e15"/></actuator>
    <sensor><accelerometer name="acceleration" site="imu"/>
      <framepos objtype="site" objname="imu" name="place"/></sensor>
"""


@pytest.mark.parametrize("accepted", [0, 1, 15, 16, 17, 150])
@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_a_failing_step_leaves_the_state_and_the_readings_before_it(
    tmp_path: Path, integrator: str, accepted: int
) -> None:
    """However many steps lie between the state that the plant has saved and the step that fails."""
    text = mjcf(RAIL, f'<option integrator="{integrator}"/>', AFTER)
    failed, reference = build(tmp_path, text), build(tmp_path, text)
    for command in 1e-15 * np.random.default_rng(1).random((accepted, 1)):
        failed.step(command)
        reference.step(command)
    with pytest.raises(DivergedError, match=f"t = {0.002 * (accepted + 1):.6g} s"):
        failed.step(np.array([1.0]))
    before = copied(reference.observe())
    assert all(np.array_equal(value, before[name]) for name, value in failed.observe().items())
    assert failed.snapshot() == reference.snapshot()
    for plant in (failed, reference):
        plant.step(np.array([1e-15]))
    assert failed.snapshot() == reference.snapshot()


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_a_step_evaluates_positions_as_often_as_mujocos(tmp_path: Path, integrator: str) -> None:
    """Outputs are of the new state, but the next step computes no position again."""
    plant = build(tmp_path, mjcf(RAIL, f'<option integrator="{integrator}"/>', AFTER))
    alone = mujoco.MjData(plant.model)
    position = int(mujoco.mjtTimer.mjTIMER_POSITION)
    before = plant.data.timer[position].number
    for _ in range(10):
        mujoco.mj_step(plant.model, alone)
        plant.step(np.zeros(1))
    assert alone.timer[position].number >= 10
    assert plant.data.timer[position].number - before == alone.timer[position].number


def test_who_writes_into_an_output_leaves_the_plant(tmp_path: Path) -> None:
    plant = build(tmp_path, WALKER)
    before = plant.snapshot()
    for value in plant.observe().values():
        value[...] = 7.0
    assert plant.snapshot() == before
    assert plant.observe()["position"][0] != 7.0


def test_contacts_without_memory_end_the_run(tmp_path: Path) -> None:
    """MuJoCo would leave contacts out."""
    bodies = "".join(
        f'<body pos="{0.3 * k} 0 2"><freejoint/><geom type="box" size=".1 .1 .1"/></body>' for k in range(40)
    )
    text = mjcf('<geom type="plane" size="9 9 .1"/>' + bodies, '<size memory="60K"/>')
    plant = build(tmp_path, text)

    def fall() -> None:
        for _ in range(500):
            plant.step(np.zeros(0))

    with pytest.raises(DivergedError, match=r"<size memory=\"...\"/>"):
        fall()


def test_a_description_for_the_rest_of_the_program(tmp_path: Path) -> None:
    plant = build(tmp_path, mjcf(BOX, '<option density="1000"/>'))
    about = describe_plant(plant)
    assert about.environment().density == 1000.0
    assert about.environment().gravity == (0.0, 0.0, -9.81)
    assert "body/box/mass" in (about.settable or ())
    assert about.parameters()["fluid_density_kg_m3"] == 1000.0
    plant.set(gravity_m_s2=(0.0, 0.0, -1.0))
    assert about.environment().gravity == (0.0, 0.0, -1.0)


def test_no_log_of_mujocos_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"robot\.xml: MuJoCo warns about the initial state"):
        build(tmp_path, mjcf('<body pos="nan 0 0"><freejoint/><geom size=".1"/></body>'))
    assert [path.name for path in tmp_path.iterdir()] == ["robot.xml"]
