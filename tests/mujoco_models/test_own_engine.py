"""MJCF files on rtmms's own engine: against MuJoCo, what it refuses, parameters, snapshots, and water."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.dynamics.inertia import mass_matrix
from rtmms.mechanism.equations import evaluate
from rtmms.mujoco_models.own_engine import OwnOptions
from rtmms.mujoco_models.tree import read_state
from rtmms.mujoco_models.unsupported import FEATURES
from tests.cli.shell import process
from tests.mujoco_models.models import WALKER
from tests.mujoco_models.own_models import ALIKE, EVERYTHING, FISH, REFUSED
from tests.mujoco_models.random_models import RandomModel

mujoco: Any = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'rtmms[mujoco]'")
pytestmark = [pytest.mark.full, pytest.mark.peer]


def written(folder: Path, text: str) -> str:
    path = folder / "robot.xml"
    path.write_text(text)
    return str(path)


def both(folder: Path, text: str, **parameters: Any) -> tuple[Any, Any, Any]:
    """MuJoCo's model and data, and the plant on the own engine."""
    path = written(folder, text)
    model = mujoco.MjModel.from_xml_path(path)
    return model, mujoco.MjData(model), rtmms.load(path, engine="rtmms", **parameters)


def own_state(model: Any, data: Any, plant: Any) -> Any:
    return read_state(mujoco, model, plant.rebuild.file.tree, data.qpos.copy(), data.qvel.copy())


def moved(model: Any, data: Any, plant: Any, size: float = 0.3, seed: int = 3) -> None:
    """Both to one random velocity, and away from the initial pose."""
    rng = np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), size)
    data.qvel[:] = size * rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    plant.place(own_state(model, data, plant))


@pytest.mark.parametrize("case", ALIKE)
def test_joint_positions_are_mujocos(tmp_path: Path, case: str) -> None:
    if case == "ball" and mujoco.mj_versionString() < "4":
        pytest.skip("RK4 of MuJoCo 3 turns a ball joint to 1e-5 in 2 s")
    model, data, plant = both(tmp_path, ALIKE[case], integrator="rk4", substeps=1)
    moved(model, data, plant)
    data.ctrl[:] = 0.3 * np.random.default_rng(5).normal(size=model.nu)
    command = data.ctrl.copy()
    before = plant.vector.copy()
    for _ in range(2000):
        mujoco.mj_step(model, data)
        plant.step(command)
    state, n = own_state(model, data, plant), plant.model.n
    turn = np.angle(np.exp(1j * (plant.vector[7 : 7 + n] - state.q))) if case == "ball" else (
        plant.vector[7 : 7 + n] - state.q
    )  # fmt: skip
    assert np.abs(turn).max() < 1e-6
    assert np.abs(plant.vector[:3] - state.position).max() < 1e-6
    assert 1.0 - abs(plant.vector[3:7] @ state.orientation) < 1e-12
    assert np.abs(plant.vector - before).max() > 0.1


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_models_move_as_mujocos(tmp_path: Path, first: int) -> None:
    """None is refused, and few are at rest."""
    moving = 0
    for seed in range(first, first + 20):
        model, data, plant = both(tmp_path, RandomModel(seed).text, integrator="rk4", substeps=1)
        moved(model, data, plant, seed=seed)
        data.ctrl[:] = 0.5 * np.random.default_rng(seed).normal(size=model.nu)
        command = data.ctrl.copy()
        for _ in range(200):
            mujoco.mj_step(model, data)
            plant.step(command)
        state, n = own_state(model, data, plant), plant.model.n
        assert plant.vector[7 : 7 + n] == pytest.approx(state.q, abs=1e-8), seed
        assert plant.vector[:3] == pytest.approx(state.position, abs=1e-8), seed
        assert 1.0 - abs(plant.vector[3:7] @ state.orientation) < 1e-12, seed
        moving += np.abs(data.qvel).max() > 0.1
    assert moving > 15


@pytest.mark.parametrize("case", [*ALIKE, "fish"])
def test_masses_sites_and_tendons_are_mujocos(tmp_path: Path, case: str) -> None:
    model, data, plant = both(tmp_path, FISH if case == "fish" else ALIKE[case])
    moved(model, data, plant)
    file, n = plant.rebuild.file, plant.model.n
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    dry = rtmms.compile(rtmms.from_mjcf(file.path, fluid_density_kg_m3=0.0).mechanism)
    if case != "ball":  # whose three angles are other coordinates
        result = mass_matrix(dry, own_state(model, data, plant))[-n:, -n:]
        assert np.allclose(result, mass[-n:, -n:], rtol=1e-9, atol=1e-9)
    assert dry.mass == pytest.approx(float(model.body_mass.sum()), rel=1e-12)
    outputs = plant.observe()
    for k in range(model.nsite):
        name = f"site_{mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_SITE, k)}"
        if model.site_bodyid[k]:
            assert np.allclose(outputs[name], data.site_xpos[k], atol=1e-12)
    lengths = {round(float(item), 9) for item in data.ten_length}
    assert {round(float(item), 9) for item in outputs.get("tendon_length", ())} <= lengths
    assert len(outputs.get("tendon_length", ())) >= (model.ntendon > 0)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_simulated_is_named_and_left_out_on_request(tmp_path: Path, case: str) -> None:
    feature, text = REFUSED[case]
    path = written(tmp_path, text)
    with pytest.raises(ModelError) as refused:
        rtmms.from_mjcf(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: engine=rtmms does not simulate {feature} (")
    assert f"--set ignore={feature}, or run the file with engine=mujoco" in message
    assert "\n" not in message
    mechanism, actuators = rtmms.from_mjcf(path, ignore=feature)
    model = rtmms.compile(mechanism)
    assert model.mass > 0.0
    names = [getattr(actuator, "name", "") for actuator in actuators]
    left = {"muscle", "activation", "actuator", "plugin"}
    if feature in left and case != "one of two with a forcerange":
        assert not names


def test_every_feature_has_a_model_that_is_refused() -> None:
    assert {feature for feature, _ in REFUSED.values()} == set(FEATURES)


def test_one_sentence_names_all_that_is_not_simulated(tmp_path: Path) -> None:
    path = written(tmp_path, EVERYTHING)
    names = ("contact", "equality", "gravcomp", "muscle", "tendon")
    with pytest.raises(ModelError) as refused:
        rtmms.from_mjcf(path, ignore="equality,muscle")
    message = str(refused.value)
    for name in names:
        assert (f"{name} (" in message) == (name not in ("equality", "muscle"))
    wanted = message.partition("ignore=")[2].partition(", or")[0]
    assert set(wanted.split(",")) == set(names)
    assert rtmms.compile(rtmms.from_mjcf(path, ignore=wanted).mechanism).n == 1
    with pytest.raises(UnknownNameError, match="'contacts'; did you mean contact"):
        rtmms.from_mjcf(path, ignore="contacts")


def test_a_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mesh.stl").write_bytes(b"")
    (tmp_path / "robots").mkdir()
    text = '<mujoco><asset><mesh name="a" file="../mesh.stl"/></asset><worldbody/></mujoco>'
    path = written(tmp_path / "robots", text)
    for make in (rtmms.from_mjcf, lambda path: rtmms.load(path, engine="rtmms")):
        with pytest.raises(ModelError, match="leads out of the folder of the model"):
            make(path)


def test_a_keyframe_is_the_initial_state(tmp_path: Path) -> None:
    path = written(tmp_path, WALKER)
    plant: Any = rtmms.load(path, engine="rtmms", preset="crouch", ignore="contact,tree")
    outputs = plant.observe()
    assert np.allclose(outputs["position"], [0.0, 0.0, 0.45])
    assert np.allclose(outputs["joint_position"], [0.4, 0.01])
    assert [actuator.name for actuator in plant.actuators] == ["hip", "slide"]
    assert plant.actuators[0].neutral == 0.4
    plant.step(np.zeros(2))
    plant.reset()
    assert np.allclose(plant.observe()["joint_position"], [0.4, 0.01])
    with pytest.raises(UnknownNameError, match="keyframe"):
        rtmms.load(path, engine="rtmms", preset="crouched", ignore="contact,tree")


def test_named_fields_and_surroundings_change(tmp_path: Path) -> None:
    path = written(tmp_path, ALIKE["servos"])
    fields: dict[str, Any] = {"body/lower/mass": 7.0, "joint/a/damping": 0.5}
    heavy: Any = rtmms.load(path, engine="rtmms", gravity_m_s2=1.5, **fields)
    model = mujoco.MjModel.from_xml_path(path)
    mass = 7.0 + float(model.body_mass[1])
    assert heavy.model.mass == pytest.approx(mass)
    assert heavy.keywords == fields
    assert heavy.parameters.gravity_m_s2 == (0.0, 0.0, -1.5)
    assert heavy.settable == ("gravity_m_s2", "wind_m_s")
    heavy.set(gravity_m_s2=0.0)
    assert np.array_equal(heavy.model.gravity, np.zeros(3))
    start = heavy.observe()["joint_position"].copy()
    for _ in range(100):
        heavy.step(np.zeros(4))
    assert np.abs(heavy.observe()["joint_position"] - start).max() < 1e-12  # nothing pulls any longer
    with pytest.raises(ModelError, match="substeps cannot change while the plant runs"):
        heavy.set(substeps=2)
    with pytest.raises(UnknownNameError, match="body/lower/mas"):
        rtmms.load(path, engine="rtmms", **{"body/lower/mas": 1.0})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="dt must be > 0"):
        rtmms.load(path, engine="rtmms", dt=0.0)
    with pytest.raises(ModelError, match="substeps"):
        rtmms.load(path, engine="rtmms", substeps=1.5)


@pytest.mark.parametrize("case", ["free", "tendons", "ball"])
def test_a_snapshot_continues_with_the_same_bits(tmp_path: Path, case: str) -> None:
    plant: Any = rtmms.load(written(tmp_path, ALIKE[case]), engine="rtmms")
    command = np.full(len(plant.actuators), 0.2)
    for _ in range(20):
        plant.step(command)
    blob = plant.snapshot()
    ends = []
    for _ in range(2):
        plant.restore(blob)
        for _ in range(20):
            plant.step(command)
        ends.append(plant.snapshot())
    assert ends[0] == ends[1]
    assert ends[0] != blob


def test_a_model_with_limits_is_held_within_them(tmp_path: Path) -> None:
    text = ALIKE["pendulum"].replace('armature=".01"', 'armature=".01" range="-.2 .3" limited="true"')
    plant: Any = rtmms.load(written(tmp_path, text), engine="rtmms")
    for _ in range(1500):
        plant.step(np.array([5.0]))
    angle = float(plant.observe()["joint_position"][0])
    assert min(abs(angle + 0.2), abs(angle - 0.3)) < 1e-4


def test_the_command_runs_and_replays_a_file(tmp_path: Path) -> None:
    written(tmp_path, WALKER)
    refused = process(tmp_path, "run", "robot.xml", "--set", "engine=rtmms", "--duration", "0.1")
    assert refused.status != 0
    assert "--set ignore=contact,tree" in " ".join(refused.err.split())
    ran = process(
        tmp_path, "run", "robot.xml", "--set", "engine=rtmms", "--set", "ignore=contact,tree",
        "--set", "body/foot/mass=0.4", "--preset", "crouch", "--mode", "lockstep", "--duration", "0.1", "--log",
        "run.mcap",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    replayed = process(tmp_path, "replay", "run.mcap", "--trust-log")
    assert "the replay is identical" in replayed.out + replayed.err


# --- water ---------------------------------------------------------------------------------------------------------

GEOM = (
    '<mujoco><option gravity="0 0 {gravity}" density="1000" viscosity="{viscosity}" timestep="0.001"><flag '
    'contact="disable"/></option><worldbody><body name="b"><freejoint/>{geom}</body></worldbody></mujoco>'
)


def in_water(folder: Path, geom: str, gravity: float = 0.0, viscosity: float = 0.0) -> tuple[Any, Any, Any]:
    return both(folder, GEOM.format(gravity=gravity, viscosity=viscosity, geom=geom))


def acceleration(plant: Any) -> Any:
    """(6,) of the free body in its present state."""
    rate = np.zeros(12 + 2 * plant.model.n)
    evaluate(plant.system, plant.vector, 0.0, 0.0, rate)
    return rate[6:12]


@pytest.mark.parametrize("velocity", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.3, -0.8, 0), (-0.3, -0.8, 0), (-1, 0.2, 0)])
def test_drag_and_lift_across_the_longest_axis_are_mujocos(tmp_path: Path, velocity: Any) -> None:
    geom = '<geom type="ellipsoid" size=".05 .12 .3" fluidshape="ellipsoid" fluidcoef=".5 .25 1.5 1.0 0"/>'
    model, data, plant = in_water(tmp_path, geom)
    data.qvel[:3] = velocity
    mujoco.mj_forward(model, data)
    plant.place(velocity=velocity)
    force = mass_matrix(plant.model, plant.model.state())[:3, :3] @ acceleration(plant)[:3]
    size = np.abs(data.qfrc_fluid[:3]).max()
    assert np.abs(force - data.qfrc_fluid[:3]).max() < 1e-3 * size
    assert size > 1.0


def test_viscous_drag_is_mujocos(tmp_path: Path) -> None:
    geom = '<geom type="ellipsoid" size=".05 .12 .3" fluidshape="ellipsoid" fluidcoef="0 0 0 0 0"/>'
    model, data, plant = in_water(tmp_path, geom, viscosity=3.0)
    data.qvel[:] = [0.1, 0.2, -0.1, 0.3, -0.2, 0.1]
    mujoco.mj_forward(model, data)
    forces = [data.qfrc_fluid.copy()]
    model.opt.viscosity = 0.0
    mujoco.mj_forward(model, data)
    forces.append(data.qfrc_fluid.copy())
    still = both(tmp_path, GEOM.format(gravity=0, viscosity=0, geom=geom))[2]
    for item in (plant, still):
        item.place(velocity=data.qvel[:3], angular_velocity=data.qvel[3:])
    wrench = mass_matrix(plant.model, plant.model.state())[:6, :6] @ (acceleration(plant) - acceleration(still))
    assert np.allclose(wrench, forces[0] - forces[1], rtol=1e-9)


SHAPES = {
    "ellipsoid": ('type="ellipsoid" size=".1 .2 .3"', 4.0 / 3.0 * np.pi * 0.1 * 0.2 * 0.3),
    "sphere": ('size=".1"', 4.0 / 3.0 * np.pi * 0.1**3),
    "capsule": ('type="capsule" size=".1 .2"', np.pi * 0.01 * (0.4 + 0.4 / 3.0)),
    "cylinder": ('type="cylinder" size=".1 .2"', np.pi * 0.01 * 0.4),
    "box": ('type="box" size=".1 .2 .3"', 8.0 * 0.1 * 0.2 * 0.3),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_neutral_body_stays_and_its_added_mass_is_mujocos(tmp_path: Path, shape: str) -> None:
    arguments, volume = SHAPES[shape]
    geom = f'<geom {arguments} density="1000" fluidshape="ellipsoid" pos=".1 0 .05" euler="20 0 0"/>'
    model, _, plant = in_water(tmp_path, geom, gravity=-9.81)
    assert model.body_mass[1] == pytest.approx(1000.0 * volume)
    assert np.abs(acceleration(plant)).max() < 1e-9
    virtual = 1000.0 * model.geom_fluid[0, 6:9]
    mass = mass_matrix(plant.model, plant.model.state())[:3, :3]
    assert np.allclose(np.linalg.eigvalsh(mass), np.sort(model.body_mass[1] + virtual), rtol=1e-9)


def test_ballast_rights_a_body_and_a_light_one_rises(tmp_path: Path) -> None:
    geom = (
        '<geom type="ellipsoid" size=".2 .1 .1" density="900" fluidshape="ellipsoid"/>'
        '<geom size=".02" mass="{}" pos="0 0 -.06"/>'
    )
    _, _, plant = in_water(tmp_path, geom.format(0.8), gravity=-9.81)
    plant.place(quaternion=[np.cos(0.4), np.sin(0.4), 0.0, 0.0])
    rolling = [acceleration(plant)[3]]
    for _ in range(20_000):
        plant.step(np.zeros(0))
    roll = 2.0 * np.arctan2(plant.observe()["quaternion"][1], plant.observe()["quaternion"][0])
    assert rolling[0] < 0.0
    assert abs(roll) < 0.4  # from 0.8 rad
    assert plant.observe()["position"][2] > 0.01


def test_a_fish_of_cables_swims_head_first(tmp_path: Path) -> None:
    model, data, plant = both(tmp_path, FISH)
    mujoco.mj_forward(model, data)
    assert np.allclose(plant.observe()["tendon_length"], data.ten_length, rtol=1e-12)
    assert plant.parameters.integrator == "implicit2"
    for _ in range(6000):
        plant.step(np.array([6.0]))  # at once: the law wants more than its forcerange, and must not swing
    outputs = plant.observe()
    assert outputs["joint_velocity"][3] == pytest.approx(6.0, abs=0.3)
    assert outputs["body_head"][0] < -0.02


def test_options_have_the_models_surroundings(tmp_path: Path) -> None:
    plant: Any = rtmms.load(written(tmp_path, FISH), engine="rtmms")
    assert isinstance(plant.parameters, OwnOptions)
    assert plant.parameters.fluid_density_kg_m3 == 1000.0
    assert plant.parameters.gravity_m_s2 == (0.0, 0.0, 0.0)
    assert plant.environment().density == 1000.0
