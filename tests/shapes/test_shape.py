"""Where viewers draw a robot's parts: against the plants' own kinematics."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
import rtmms.robots
from rtmms.dynamics.kinematics import body_poses
from rtmms.model.compiled import State
from rtmms.plant.drawing import sheet
from rtmms.robots import eel, moth
from rtmms.robots.manta import Manta
from rtmms.view.drawings import shape_of
from rtmms.view.manta_figure import LEFT, RIGHT, fin_points
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.wire.protocol.welcome import plain_parameters
from rtmms_bridges.motion.frames import xyzw
from rtmms_bridges.motion.joints import Joints
from tests.bridges.harness import state

RNG = np.random.default_rng(11)
SHAPE_ROBOTS = ("cat", "satellite", "purcell", "fluid_swimmer")


def plant_info(robot: str, plant: Any) -> PlantInfo:
    """What a plant's welcome has of it."""
    return PlantInfo(
        robot, plant.dt, "free", None, None, plant.actuators, plant.outputs, parameters=plain_parameters(plant)
    )


@pytest.mark.parametrize(
    "parameters", [{}, {"support_roll": "zero", "chains": 7, "links": 5, "fin_root_m": (-0.1, 0.2, 0.05)}]
)
def test_the_mantas_fins_are_where_its_figures_have_them(parameters: dict[str, Any]) -> None:
    plant: Manta = rtmms.load("manta", **parameters)  # type: ignore[assignment]
    shape = shape_of(plant_info("manta", plant))
    assert shape is not None
    p = plant.parameters
    rods, joints = RNG.uniform(-0.6, 0.6, 4), RNG.uniform(-0.4, 0.4, (2, p.links, p.chains))
    outputs = {"rod_angle": rods.tolist(), "joint_position": joints.ravel().tolist()}
    left, right, bars, _ = shape.points(outputs)
    for fin, points in ((LEFT, left), (RIGHT, right)):
        expected = fin_points(plant, fin, rods, joints)
        np.testing.assert_allclose(np.reshape(points, expected.shape), expected, atol=1e-13)
    frames = shape.frames(outputs)
    for name, points, side in (("left_fin", left, 1.0), ("right_fin", right, -1.0)):
        position, q = frames[name]
        local = Rotation.from_quat(xyzw(q)).inv().apply(np.array(points) - position)
        station = (np.arange(p.chains) + 0.5) * p.support_length_m / p.chains
        np.testing.assert_allclose(local[:, 0], np.tile(station, p.links + 1), atol=1e-13)
        np.testing.assert_allclose(local[p.chains : 2 * p.chains, 1] * side > 0, True)
    # the rods have their lengths but for the sliding of the front one
    front, tip_front, tip_back, back = map(np.array, bars)
    assert np.linalg.norm(tip_back - back) == pytest.approx(p.back_rod_m)
    assert np.linalg.norm(tip_front - front) == pytest.approx(p.front_rod_m)
    assert np.linalg.norm(tip_front - tip_back) == pytest.approx(p.support_length_m)


def poses(plant: Any, angles: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    remaining = plant.model.state()
    state = State(np.zeros(3), np.array([1.0, 0, 0, 0]), angles, np.zeros(6), np.zeros_like(angles))
    assert remaining.q.shape == angles.shape
    rotations, positions = body_poses(plant.model, state)
    return {name: (r, p) for name, r, p in zip(plant.model.body_names, rotations, positions, strict=True)}


def test_the_eels_links_are_where_its_model_has_them() -> None:
    plant = eel.load(joints=5)
    shape = shape_of(plant_info("eel", plant))
    assert shape is not None
    angles = RNG.uniform(-0.5, 0.5, 15)
    bodies = poses(plant, angles)
    outputs = {"joint_position": angles.tolist()}
    for name, (position, q) in shape.frames(outputs).items():
        np.testing.assert_allclose(position, bodies[name][1], atol=1e-13)
        np.testing.assert_allclose(Rotation.from_quat(xyzw(q)).as_matrix(), bodies[name][0], atol=1e-13)
    (skin,) = shape.points(outputs)
    assert len(skin) == max(shape.skins[0].triangles) + 1
    np.testing.assert_allclose(skin[-1], bodies["link5"][1], atol=1e-13)


def test_the_moths_blades_are_where_its_model_has_them() -> None:
    plant = moth.load(start="rest", sections=3)
    shape = shape_of(plant_info("moth", plant))
    assert shape is not None
    angles = RNG.uniform(-0.5, 0.5, 12)
    bodies = poses(plant, angles)
    outputs = {"joint_position": angles.tolist()}
    frames = shape.frames(outputs)
    assert len(frames) == 6
    for name, (position, q) in frames.items():
        rotation, expected = bodies[name.replace("_", ".")]
        np.testing.assert_allclose(position, expected, atol=1e-13)
        np.testing.assert_allclose(Rotation.from_quat(xyzw(q)).as_matrix(), rotation, atol=1e-13)
    right, left = shape.points(outputs)
    rotation, position = bodies["left.blade3"]
    tip = position + rotation @ [plant.parameters.span_m / 3, 0.0, 0.0]
    np.testing.assert_allclose(left[9], tip, atol=1e-13)
    assert len(right) == max(shape.skins[0].triangles) + 1


def test_the_continuous_eels_rings_stand_on_its_centreline() -> None:
    plant: Any = rtmms.load("continuous_eel", preset="spatial", nodes=25, dt=0.01)
    for _ in range(60):
        plant.step(plant.neutral)
    shape = shape_of(plant_info("continuous_eel", plant))
    assert shape is not None
    line = plant.observe()["centreline"]
    (skin,) = shape.points({"centreline": line.ravel().tolist()})
    assert len(skin) == max(shape.skins[0].triangles) + 1
    rings = np.array(skin).reshape(len(line) + 2, -1, 3)
    np.testing.assert_allclose(rings[:, :-1].mean(axis=1)[1:-1], line, atol=1e-12)
    # across and along: the half-height stands on the ridge, square to the body
    along = line[2] - line[0]
    ridge = rings[2, shape.skins[0].lines[0][2] % rings.shape[1]] - line[1]
    assert np.linalg.norm(ridge) == pytest.approx(0.09)
    assert abs(ridge @ along) < 1e-9
    frames = shape.frames({"centreline": line.ravel().tolist()})
    np.testing.assert_allclose(frames["tail"][0], line[-1], atol=1e-12)


def test_what_is_not_known_has_no_shape() -> None:
    manta = plant_info("manta", rtmms.load("manta"))
    assert shape_of(manta) is not None
    assert shape_of(replace(manta, robot="another")) is None
    assert shape_of(replace(manta, parameters={})) is None
    assert shape_of(replace(manta, parameters={**manta.parameters, "chains": 29})) is None
    assert shape_of(replace(manta, outputs=manta.outputs[:3])) is None


@pytest.mark.parametrize("name", ["wheeled", "manta.plant", "../manta", "manta_drawing", "", "con", "ä", "x" * 5000])
def test_no_module_but_a_drawing_is_imported_for_the_name_of_a_robot(name: str) -> None:
    manta = plant_info("manta", rtmms.load("manta"))
    before = set(sys.modules)
    assert shape_of(replace(manta, robot=name)) is None
    assert not {new for new in set(sys.modules) - before if new.startswith("rtmms")}


@pytest.mark.full
def test_drawings_load_neither_arrays_nor_kernels() -> None:
    names = [path.stem for path in Path(rtmms.robots.__file__).parent.glob("*_drawing.py")]
    assert {"manta_drawing", "eel_drawing"} <= set(names)
    program = "".join(f"import rtmms.robots.{name}\n" for name in names)
    program += "import sys, rtmms.view.drawings; print({'numpy', 'scipy', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_sheet_has_two_triangles_a_tile_and_its_lines() -> None:
    skin = sheet("s", 3, 2)
    assert skin.triangles == (0, 2, 1, 1, 2, 3, 2, 4, 3, 3, 4, 5)
    assert skin.lines == ((0, 2, 4), (1, 3, 5), (4, 5))


def test_joints_have_their_names() -> None:
    manta = plant_info("manta", rtmms.load("manta", chains=4))
    joints = Joints(manta, fields=False)
    assert joints.names == ("left.front", "left.back", "right.front", "right.back")
    outputs = {"rod_angle": [1.0, 2, 3, 4], "rod_rate": [5.0, 6, 7, 8], "rod_torque": [9.0, 10, 11, 12],
               "joint_position": [0.1] * 24, "joint_velocity": [0.2] * 24}  # fmt: skip
    assert joints(state(manta, **outputs)) == ([1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12])
    both = Joints(manta)
    assert both.names[4:6] == ("left_fin_0_0", "left_fin_0_1")
    assert both.names[-1] == "right_fin_2_3"
    angles, rates, torques = both(state(manta, **outputs))
    assert (len(angles), angles[4], rates[-1]) == (28, 0.1, 0.2)
    assert torques[:4] == [9, 10, 11, 12]
    assert all(torque != torque for torque in torques[4:])
    small = eel.load(joints=2)
    assert Joints(plant_info("eel", small)).names == small.model.joint_names
    wings = moth.load(start="rest", sections=3)
    assert Joints(plant_info("moth", wings)).names == wings.model.joint_names
    assert Joints(plant_info("another", small)).names == tuple(f"joint{i}" for i in range(1, 7))
    assert Joints(replace(manta, outputs=())).names == ()


@pytest.mark.parametrize("robot", ["snake", "unicycle", "snakeboard", "roller_racer", "trikke"])
def test_plates_of_the_robots_on_wheels_are_where_their_bodies_are(robot: str) -> None:
    plant: Any = rtmms.load(robot)
    shape = shape_of(plant_info(robot, plant))
    assert shape is not None
    angles = RNG.uniform(-1.0, 1.0, plant.model.n)
    known, frames = poses(plant, angles), shape.frames({"joint_position": angles.tolist()})
    assert set(frames) <= set(known)
    assert len(shape.skins) == len(frames) + 1
    for name, (position, q) in frames.items():
        rotation, place = known[name]
        np.testing.assert_allclose(position[:2], place[:2], atol=1e-13)
        if robot != "unicycle":  # whose wheels are drawn as they lie
            np.testing.assert_allclose(Rotation.from_quat(xyzw(q)).as_matrix(), rotation, atol=1e-13)
    assert all(len(points) == 4 for points in shape.points({"joint_position": angles.tolist()}))
    wrong = replace(plant_info(robot, plant), outputs=(rtmms.Channel("joint_position", "rad", (0,)),))
    assert shape_of(wrong) is None or robot == "unicycle"


DRAWN = {
    "cat": ("front", slice(100, 124), (0.0, 0.0, 0.5)), "satellite": ("wheel_y", slice(24, 25), (0.0, 0.0, 0.0)),
    "purcell": ("right", slice(1, 3), (1.0, 0.0, 0.0)), "fluid_swimmer": ("left", slice(24, 25), (-1.1, 0.0, 0.0)),
}  # fmt: skip
"""A part, some of its points, and where their middle is in its body's frame: the far end, or the middle."""


@pytest.mark.parametrize("robot", SHAPE_ROBOTS)
def test_parts_of_the_robots_that_their_shape_moves_are_where_their_bodies_are(robot: str) -> None:
    plant: Any = rtmms.load(robot)
    shape = shape_of(plant_info(robot, plant))
    assert shape is not None
    outputs = {"joint_position": RNG.uniform(-1.0, 1.0, 2).tolist()}
    known, frames = poses(plant, np.array(outputs["joint_position"])), shape.frames(outputs)
    assert set(frames) == set(known) - {plant.model.body_names[0]}
    for name, (position, q) in frames.items():
        rotation, place = known[name]
        np.testing.assert_allclose(position, place, atol=1e-13)
        np.testing.assert_allclose(Rotation.from_quat(xyzw(q)).as_matrix(), rotation, atol=1e-13)
    points = dict(zip((skin.name for skin in shape.skins), shape.points(outputs), strict=True))
    for skin in shape.skins:
        assert 0 <= min(skin.triangles) <= max(skin.triangles) < len(points[skin.name])
        assert max(max(line) for line in skin.lines) < len(points[skin.name])
    part, chosen, local = DRAWN[robot]
    rotation, place = known[part]
    np.testing.assert_allclose(np.mean(points[part][chosen], axis=0), place + rotation @ local, atol=1e-13)
    assert shape_of(replace(plant_info(robot, plant), outputs=(rtmms.Channel("joint_position", "rad", (3,)),))) is None
