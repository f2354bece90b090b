"""What surrounds the plant: models that do not load, URDF files, geometry for viewers, the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError, RtmmsWarning
from rtmms.plant.description import describe_plant
from rtmms.view.drawings import shape_of
from rtmms.wire.protocol.received_state import PlantInfo
from tests.cli.shell import process
from tests.mujoco_models.models import BOX, KINDS, WALKER, mjcf

mujoco: Any = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'rtmms[mujoco]'")
pytestmark = [pytest.mark.full, pytest.mark.peer]

BAD = {
    "a missing plugin": (mjcf("", '<extension><plugin plugin="a.b"/></extension>'), "plugin a.b not found"),
    "an unknown element": (mjcf("<bdy/>"), "unrecognized element"),
    "a body without mass": (mjcf("<body><freejoint/></body>"), "mass and inertia"),
    "an unknown mesh": (mjcf('<geom type="mesh" mesh="x"/>'), "mesh 'x' not found"),
    "a broken mesh": (
        mjcf('<geom type="mesh" mesh="a"/>', '<asset><mesh name="a" file="bad.stl"/></asset>'), "bad.stl",
    ),
    "a moving mocap body": (mjcf(BOX.replace("</body>", '<body mocap="true"/></body>')), "mocap"),
    "nothing": (mjcf('<geom size="1"/>'), "nothing to run"),
    "sleep": (mjcf(BOX, '<option><flag sleep="enable"/></option>'), "remove the flag"),
    "a state that is not finite": (mjcf('<body pos="nan 0 0"><freejoint/><geom size=".1"/></body>'), "initial state"),
    "too little memory": (mjcf(BOX.replace('z="1"', "") * 1, '<size memory="1"/>'), "memory"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_model_that_does_not_load_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.stl").write_bytes(b"no mesh")
    text, why = BAD[case]
    (tmp_path / "robot.xml").write_text(text)
    with pytest.raises(ModelError) as refused:
        rtmms.load("robot.xml")
    message = str(refused.value)
    assert why in message
    assert message.startswith("robot.xml: ")
    assert "\n" not in message
    assert {path.name for path in tmp_path.iterdir()} == {"bad.stl", "robot.xml"}  # no MUJOCO_LOG.TXT


def test_a_programs_own_warning_handler_stays(tmp_path: Path) -> None:
    before = mujoco.get_mju_user_warning()
    current: list[str] = []
    mujoco.set_mju_user_warning(current.append)
    try:
        (tmp_path / "robot.xml").write_text(mjcf('<body pos="nan 0 0"><freejoint/><geom size=".1"/></body>'))
        with pytest.raises(ModelError, match="initial state"):
            rtmms.load(str(tmp_path / "robot.xml"))
        assert any("QPOS" in item for item in current)
    finally:
        mujoco.set_mju_user_warning(before)


@pytest.mark.parametrize("case", ["contacts", "tendon", "activation", "rk4"])
def test_viewers_place_each_geom_where_mujoco_has_it(tmp_path: Path, case: str) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(KINDS[case])
    plant: Any = rtmms.load(str(path))
    for _ in range(100):
        plant.step(np.full(len(plant.actuators), 0.7))
    table = describe_plant(plant).shape()
    info = PlantInfo("robot.xml", plant.dt, "", None, None, plant.actuators, plant.outputs, shape=table)
    shape = shape_of(info)
    assert shape is not None
    outputs = {name: value.ravel().tolist() for name, value in plant.observe().items()}
    frames = shape.frames(outputs)
    data, free = plant.data, "position" in outputs
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.array(outputs["quaternion"] if free else [1.0, 0, 0, 0]))
    origin = np.array(outputs["position"] if free else [0.0, 0, 0])
    observed = 0
    for solid in shape.solids:
        place, attitude = frames.get(solid.frame, ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)))
        local = np.zeros(3)
        mujoco.mju_rotVecQuat(local, np.array(solid.centre), np.array(attitude))
        result = origin + turn.reshape(3, 3) @ (local + np.array(place))
        if not solid.name.endswith((".top", ".bottom")):
            number = int(solid.name[4:]) if solid.name.startswith("geom") else plant.model.geom(solid.name).id
            np.testing.assert_allclose(result, data.geom_xpos[number], atol=1e-9)
            observed += 1
    assert observed >= 1


def test_a_mesh_is_drawn(tmp_path: Path) -> None:
    corners = "0 0 0  1 0 0  0 1 0  0 0 1"
    text = mjcf('<body><freejoint/><geom type="mesh" mesh="a" rgba="1 0 0 1"/></body>',
                f'<asset><mesh name="a" vertex="{corners}"/></asset>')  # fmt: skip
    (tmp_path / "robot.xml").write_text(text)
    plant = rtmms.load(str(tmp_path / "robot.xml"))
    (part,) = describe_plant(plant).shape()["parts"]  # type: ignore[index]
    assert (part["kind"], tuple(part["colour"])) == ("mesh", (255, 0, 0))
    np.testing.assert_allclose(sorted(part["size"]), [1.0, 1.0, 1.0], atol=0.8)


URDF = """
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.15 0 0"/><mass value="1.0"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.008" iyz="0" izz="0.008"/></inertial>{shapes}</link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="20" velocity="99"/><dynamics damping="0.05"/></joint>
</robot>
"""
MESH = '<{tag}><geometry><mesh filename="{file}"/></geometry></{tag}>'


def urdf(folder: Path, shapes: str = "") -> str:
    path = folder / "arm.urdf"
    path.write_text(URDF.format(shapes=shapes))
    return str(path)


def test_a_urdf_on_mujoco_moves_as_on_our_engine(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy", reason="needs yourdfpy: pip install 'rtmms[urdf]'")
    path = urdf(tmp_path)
    ours: Any = rtmms.load(path, dt=1e-4)
    theirs: Any = rtmms.load(path, engine="mujoco", dt=1e-4, substeps=1)
    assert (
        [actuator.name for actuator in ours.actuators]
        == [actuator.name for actuator in theirs.actuators]
        == ["shoulder.torque"]
    )
    assert [(actuator.lower, actuator.upper) for actuator in theirs.actuators] == [(-20.0, 20.0)]
    for _ in range(2000):
        ours.step(np.array([0.4]))
        theirs.step(np.array([0.4]))
    assert abs(float(ours.observe()["joint_position"][0])) > 0.1
    np.testing.assert_allclose(theirs.observe()["joint_position"], ours.observe()["joint_position"], atol=1e-3)


def test_a_urdf_has_servos_a_free_base_and_parameters(tmp_path: Path) -> None:
    plant: Any = rtmms.load(urdf(tmp_path), engine="mujoco", drive="servo", servo_n_m=80.0)
    assert [(actuator.name, actuator.unit, actuator.lower, actuator.upper) for actuator in plant.actuators] == [
        ("shoulder.angle", "rad", -1.5, 1.5)
    ]
    assert plant.model.actuator_gainprm[0, 0] == 80.0
    assert plant.parameters["drive"] == "servo"
    with pytest.raises(ModelError, match="mass and inertia of moving bodies"):  # the base has no mass
        rtmms.load(urdf(tmp_path), engine="mujoco", base="free")
    for wrong in ({"drive": "motion"}, {"base": "x"}, {"drag": 1.0}, {"servo_n_m": -1}):
        with pytest.raises(ModelError, match=next(iter(wrong))):
            rtmms.load(urdf(tmp_path), engine="mujoco", **wrong)  # type: ignore[arg-type]


def test_meshes_of_a_urdf(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    shapes = MESH.format(tag="visual", file="a.obj") + MESH.format(tag="collision", file="package://arm/a.obj")
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / "a.obj").write_text((tmp_path / "a.obj").read_text())
    plant: Any = rtmms.load(urdf(tmp_path, shapes), engine="mujoco")
    assert plant.model.nmesh == 2
    with pytest.warns(RtmmsWarning, match=r"link 'upper': mesh 'none.stl': there is no such file.*not drawn"):
        rtmms.load(urdf(tmp_path, MESH.format(tag="visual", file="none.stl")), engine="mujoco")
    with pytest.raises(ModelError, match=r"link 'upper': mesh 'none.stl': there is no such file"):
        rtmms.load(urdf(tmp_path, MESH.format(tag="collision", file="none.stl")), engine="mujoco")


def test_a_run_states_the_time_of_a_step_before_it_starts(tmp_path: Path) -> None:
    (tmp_path / "walker.xml").write_text(WALKER)
    two = '[[robot]]\nname = "a"\nrobot = "walker.xml"\n[[robot]]\nname = "b"\nrobot = "walker.xml"\n'
    (tmp_path / "two.toml").write_text("duration = 0.05\n" + two)
    for subject in (["walker.xml", "--duration", "0.05"], ["two.toml"]):
        done = process(tmp_path, "run", *subject, "--json")
        assert done.status == 0, done.err
        measured = done.report["schedule"]["trial_us"]
        assert 0.0 < measured["p99"] <= measured["p999"]
        assert f"step: {measured['p99']:.3g} us (p99, measured at neutral commands) of a period of 2000 us" in done.err
        assert "contacts and the iterations of MuJoCo's solver can make a step longer" in done.err
    free = process(tmp_path, "run", "walker.xml", "--duration", "0.05", "--mode", "free", "--json")
    assert "step:" not in free.err


def test_a_run_is_replayed_to_the_bit(tmp_path: Path) -> None:
    (tmp_path / "walker.xml").write_text(WALKER)
    (tmp_path / "walk.toml").write_text(
        'robot = "walker.xml"\nmode = "free"\nduration = 0.4\npreset = "crouch"\n'
        '[parameters]\n"geom/floor/friction" = 0.9\n'
        '[[event]]\nat_s = 0.2\nset = { "geom/floor/friction" = 0.1, gravity_m_s2 = [0.0, 0.0, -4.0] }\n'
    )
    done = process(tmp_path, "run", "walk.toml", "--log", "a.mcap", "--json", "--quiet", "--figure", "a.png")
    assert done.status == 0, done.err
    assert done.report["steps"] == 200
    again = process(tmp_path, "replay", "a.mcap", "--trust-log")
    assert "200 steps, the replay is identical" in again.out + again.err
    branch = process(tmp_path, "run", "--from", "a.mcap@0.3", "--trust-log", "--duration", "0.1", "--log", "b.mcap")
    assert branch.status == 0, branch.err
    assert "the replay is identical" in (third := process(tmp_path, "replay", "b.mcap", "--trust-log")).out + third.err
    listed = process(tmp_path, "list", "walker.xml")
    assert "hip                    rad, from -1 to 1" in listed.out
    refused = process(tmp_path, "replay", "a.mcap")
    assert refused.status == 2
    assert "--trust-log" in refused.err
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
