"""What a robot looks like: closed surfaces, outwards, through the points of its model, for every robot that we have."""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import asdict, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.drawing import SCENES, Membrane
from rtmms.plant.protocol import Channel
from rtmms.view.drawings import robot_drawing, shape_of
from rtmms.view.scene import Picture
from rtmms.view.surface import (
    Mesh,
    Visual,
    block,
    cylinder,
    ellipsoid,
    hub,
    merge_meshes,
    move_mesh,
    propeller,
    refine_stations,
    spline,
    tube,
    tyre,
)
from rtmms.view.visuals import DrawingVisual, visual_of
from rtmms.wire.protocol.received_state import PlantInfo
from tests.shapes.test_shape import plant_info

ROBOTS = sorted(entry.name for entry in entry_points(group="rtmms.plants") if entry.module.startswith("rtmms."))
LONG = ("modal_moth", "tendon_fish")
"""Robots whose kernels compile longest: in the full suite."""
RNG = np.random.default_rng(3)


def welcomed(robot: str) -> tuple[Any, PlantInfo]:
    plant: Any = rtmms.load(robot)
    shape = getattr(plant, "shape", {})
    return plant, replace(plant_info(robot, plant), shape=shape)


def observed(info: PlantInfo, outputs: dict[str, Any]) -> tuple[Visual, list[np.ndarray], tuple[np.ndarray, ...]]:
    """The visual, the skins of its shape, and the vertices of what bends."""
    shape = shape_of(info)
    visual = visual_of(info, shape)
    assert shape is not None
    assert visual is not None
    skins = [np.array(points, dtype=float).reshape(-1, 3) for points in shape.points(outputs)]
    return visual, skins, visual.bent(shape.frames(outputs), skins)


def bent_outputs(plant: Any, size: float = 0.2) -> dict[str, Any]:
    """Its outputs with joints at random."""
    outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
    for name in ("joint_position", "rod_angle"):
        if name in outputs:
            outputs[name] = RNG.uniform(-size, size, len(outputs[name])).tolist()
    return outputs


def open_edges(mesh: Mesh) -> int:
    """Edges that not exactly two triangles have, in opposite directions; points at one place are one."""
    vertices, faces = mesh
    span = max(float(np.ptp(vertices, axis=0).max()), 1e-12)
    _, number = np.unique(np.round(vertices / span, 6), axis=0, return_inverse=True)
    faces = number.ravel()[faces]
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
    edges = Counter((int(a), int(b)) for a, b, c in faces for a, b in ((a, b), (b, c), (c, a)))
    return sum(count != edges.get((b, a), 0) for (a, b), count in edges.items())


def volume(mesh: Mesh) -> float:
    a, b, c = (mesh[0][mesh[1][:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


@pytest.mark.parametrize("mesh", [
    ellipsoid(1.0, 2.0, 0.5), cylinder(0.3, 2.0), block(1.0, 2.0, 0.3), propeller(0.4, 3), tyre(0.3, 0.1),
    hub(0.3, 0.1), tube([(0.0, 0.0, 0.0), (1.0, 0.0, 0.2), (1.5, 1.0, 0.0)], 0.1),
    move_mesh(block(1.0, 1.0, 1.0), scale=(1.0, -1.0, 1.0)),
])  # fmt: skip
def test_meshes_are_closed_and_outwards(mesh: Mesh) -> None:
    assert open_edges(mesh) == 0
    assert volume(mesh) > 0.0


@pytest.mark.parametrize(
    "robot", [pytest.param(robot, marks=[pytest.mark.full] if robot in LONG else []) for robot in ROBOTS]
)
def test_every_robot_has_a_look_of_its_own_that_is_whole(robot: str) -> None:
    plant, info = welcomed(robot)
    visual, _, bent = observed(info, bent_outputs(plant))
    assert isinstance(visual, DrawingVisual)
    assert visual.scene in SCENES
    rigid = [surface for surface in visual.surfaces if surface.vertices is not None]
    for surface in rigid:
        assert volume((surface.vertices, surface.faces)) > 0.0, surface.name  # type: ignore[arg-type]
    bending = [surface for surface in visual.surfaces if surface.vertices is None]
    skin = [
        (points, item.faces) for item, points in zip(bending, bent, strict=True) if item.name != "joints"
    ]  # bands on it
    if skin:
        assert open_edges(merge_meshes(*skin)) == 0, "the colours of a skin meet, and it has no hole"
        assert volume(merge_meshes(*skin)) > 0.0
    assert sum(len(surface.faces) for surface in visual.surfaces) < 30_000


@pytest.mark.parametrize(
    "robot", [pytest.param(robot, marks=[pytest.mark.full] if robot in LONG else []) for robot in ROBOTS]
)
def test_a_drawing_is_data(robot: str) -> None:
    drawing = robot_drawing(welcomed(robot)[1])
    assert drawing is not None
    text = json.dumps(asdict(drawing))
    assert json.loads(text)["scene"] in SCENES


def test_viewers_name_no_robot() -> None:
    figures = {"figures.py", "manta_figure.py"}  # of runs; the manta's own shows what its paper does
    for path in (Path(rtmms.__file__).parent / "view").glob("*.py"):
        if path.name in figures:
            continue
        constants = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert not constants & set(ROBOTS), path.name


def test_the_mantas_skin_goes_through_its_joints() -> None:
    plant, info = welcomed("manta")
    outputs = bent_outputs(plant, 0.4)
    m, n = plant.parameters.links, plant.parameters.chains
    # all chains of a link much alike, as they are in water
    angles = RNG.uniform(-0.4, 0.4, (2, m, 1)) + RNG.uniform(-0.2, 0.2, (2, m, 1)) * np.linspace(0.0, 1.0, n)
    outputs["joint_position"] = angles.ravel().tolist()
    visual, (left, right, *_), (back, _, belly) = observed(info, outputs)
    assert isinstance(visual, DrawingVisual)
    (skin,) = visual.drawing.bending
    assert isinstance(skin, Membrane)
    middle = ((0.55 * back + belly) / 1.55).reshape(-1, skin.columns, 3)
    station = (np.arange(n) + 0.5) / n
    for fin, rows in ((left, middle), (right, middle[::-1])):
        joints = fin.reshape(m + 1, n, 3)
        # the tip first, `pieces` rows from one of the model's to the next; rows are shorter towards the tips
        for j in range(m):
            row = rows[skin.pieces * (m - j)]
            fine = np.linspace(station[0], station[-1], 2000)
            line = np.stack([np.interp(fine, station, joints[j, :, k]) for k in range(3)], axis=1)
            inside = row[2:-2]
            assert np.linalg.norm(inside[:, None] - line, axis=2).min(axis=1).max() < 0.003


def test_the_eels_skin_goes_through_its_rings() -> None:
    plant, info = welcomed("eel")
    visual, (skin,), (back, *_) = observed(info, bent_outputs(plant))
    rings = skin.reshape(-1, 13, 3)[:, :-1]
    fine = back.reshape(-1, 12, 3)[1:-1]
    assert (len(fine) - 1) % (len(rings) - 1) == 0
    np.testing.assert_allclose(fine[:: (len(fine) - 1) // (len(rings) - 1)], rings, atol=1e-9)
    assert visual.scene == "water"


def test_the_moths_leading_edge_goes_through_its_hinges() -> None:
    plant, info = welcomed("moth")
    _, (right, _), bent = observed(info, bent_outputs(plant))
    grid = (0.5 * (bent[0] + bent[3])).reshape(-1, 13, 3)
    hinges = right.reshape(-1, 4, 3)[:, 0]
    for hinge in hinges:
        assert np.linalg.norm(grid[:, 0] - hinge, axis=1).min() < 0.05 * plant.parameters.span_m


@pytest.mark.parametrize("robot", ["snake", "unicycle", "snakeboard", "roller_racer", "trikke"])
def test_robots_on_wheels_stand_on_their_ground(robot: str) -> None:
    plant, info = welcomed(robot)
    picture = Picture(info)
    drawn = picture.draw(dict(plant.observe()))
    assert picture.visual is not None
    assert picture.visual.ground == pytest.approx(picture.points(drawn)[:, 2].min(), abs=0.02)


HULL = {
    "joints": [{"parent": 0, "position": [0.5, 0.0, 0.0]}],
    "parts": [
        {"name": "hull", "body": 0, "kind": "ellipsoid", "size": [1.0, 0.3, 0.3]},
        {"name": "rotor", "body": 1, "kind": "rotor", "size": [0.4, 0.4, 0.02]},
    ],
    "skins": [{"name": "sail", "points": "sail", "triangles": [0, 1, 2, 1, 3, 2], "lines": []}],
    "cords": [{"name": "stay", "points": [[0, 0.5, 0.0, 0.0], [1, 0.0, 0.0, 0.5]]}],
    "scene": "air",
}  # fmt: skip


def custom(shape: dict[str, Any]) -> PlantInfo:
    outputs = (
        Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
        Channel("joint_position", "rad", (1,), ""), Channel("sail", "m", (4, 3), "body"),
    )  # fmt: skip
    return PlantInfo("boat", 1e-3, "free", None, None, (), outputs, shape=shape)


def test_a_robot_of_ones_own_gets_a_look_from_what_it_reports() -> None:
    sail = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.1, 1.0]]
    visual, _, (sheet, cord) = observed(custom(HULL), {"joint_position": [0.3], "sail": np.ravel(sail).tolist()})
    assert visual.scene == "air"
    names = [surface.name for surface in visual.surfaces]
    assert names == ["0.hull", "1.rotor", "1.rotor_disc", "sail", "cord1_0"]
    assert open_edges((sheet, visual.surfaces[3].faces)) == 0, "a sheet has two sides and a rim"
    np.testing.assert_allclose(0.5 * (sheet[:4] + sheet[4:]), sail, atol=1e-9)
    assert len(cord) == 16
    drawn = Picture(custom(HULL)).draw({"position": [0, 0, 0], "quaternion": [1, 0, 0, 0], "joint_position": [0.3],
                                     "sail": np.ravel(sail).tolist()})  # fmt: skip
    assert len(drawn.bent) == 2


def test_a_spline_goes_through_its_points() -> None:
    stations = np.array([0.0, 0.4, 1.0, 2.0])
    fine = refine_stations(stations, 3)
    assert len(fine) == 10
    np.testing.assert_allclose(spline(stations, fine)[::3], np.eye(4), atol=1e-12)
