"""What a URDF file looks like to viewers: its visuals, meshes thinned, in colour; sent in few bytes and read back."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.model.description import MAX_DRAWN_POINTS, Drawing, mesh, simplify_mesh
from rtmms.model.solids import Placement, at
from rtmms.view.drawings import shape_of
from rtmms.view.surface import ellipsoid
from rtmms.view.visual_bodies import BodiesVisual
from rtmms.view.visuals import visual_of
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.wire.protocol.welcome import plain_shape, read_shape

LINK = """<link name="{name}"><inertial><origin xyz="0 0 0.25"/><mass value="1"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial>{visual}</link>"""
MESH = '<visual><origin xyz="0 0 0.1"/><geometry><mesh filename="{file}" scale="1 1 2"/></geometry></visual>'
BOX = """<visual><geometry><box size="0.4 0.2 0.1"/></geometry>
  <material name="red"><color rgba="1 0 0 1"/></material></visual>"""


def written(folder: Path, *visuals: str) -> Path:
    links = "".join(LINK.format(name=f"l{k}", visual=visual) for k, visual in enumerate(visuals))
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="0 1 0"/>'
        '<origin xyz="0 0 0.5"/></joint>' for k in range(len(visuals) - 1)
    )  # fmt: skip
    path = folder / "arm.urdf"
    path.write_text(f'<robot name="arm">{links}{joints}</robot>')
    return path


def ball(path: Path) -> None:
    """A sphere of many triangles, 0.2 m wide."""
    trimesh = pytest.importorskip("trimesh")
    vertices, faces = ellipsoid(0.2, 0.2, 0.2, 96)
    path.parent.mkdir(exist_ok=True)
    trimesh.Trimesh(vertices, faces).export(path)


def observed(plant: Any) -> tuple[PlantInfo, dict[str, Any]]:
    """As a viewer gets it over the wire."""
    text = plain_shape(plant)
    assert 0 < len(text) <= 1 << 15
    shape = read_shape(text)
    return PlantInfo("arm", 1e-3, "free", None, None, (), plant.outputs, shape=shape), shape


@pytest.mark.full
@pytest.mark.parametrize("name", ["meshes/ball.stl", "package://arm/meshes/ball.stl", "file://{}/meshes/ball.stl"])
def test_meshes_of_a_urdf_are_drawn(tmp_path: Path, name: str) -> None:
    pytest.importorskip("yourdfpy")
    ball(tmp_path / "meshes" / "ball.stl")
    path = written(tmp_path, BOX, MESH.format(file=name.format(tmp_path)))
    plant: Any = rtmms.load(str(path))
    info, message = observed(plant)
    assert [part["kind"] for part in message["parts"]] == ["box", "mesh"]
    assert message["parts"][0]["colour"] == [255, 0, 0]
    shape = shape_of(info)
    visual = visual_of(info, shape)
    assert isinstance(visual, BodiesVisual)
    box, drawn = visual.surfaces
    assert box.colour == (255, 0, 0)
    assert drawn.vertices is not None
    assert 100 < len(drawn.vertices) <= MAX_DRAWN_POINTS
    # the ball, twice as high, in the second link's frame, which turns about its z: the link's y
    size = np.sort(np.ptp(drawn.vertices, axis=0))
    np.testing.assert_allclose(size, [0.2, 0.2, 0.4], atol=0.02)


@pytest.mark.full
def test_a_mesh_that_is_not_there_leaves_the_link_to_its_inertia(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    with pytest.warns(RuntimeWarning, match=r"urdf '.*': link '.*': mesh 'nowhere.stl': there is no such file"):
        plant: Any = rtmms.load(str(written(tmp_path, BOX, MESH.format(file="nowhere.stl"))))
    assert [part["kind"] for part in plant.shape["parts"]] == ["box", "ellipsoid"]


def test_a_mesh_is_thinned_and_rounded_to_a_thousandth_of_its_size() -> None:
    vertices, faces = ellipsoid(0.4, 0.2, 0.1, 96)
    points, corners = simplify_mesh(vertices, faces, 200)
    assert 60 < len(points) <= 200
    assert corners.max() < len(points)
    built = mesh(vertices, faces, at(z=1.0), max_points=200)
    assert built is not None
    result = built.as_data()
    steps = np.frombuffer(b64decode(result["points"]), "<i2").reshape(-1, 3)
    np.testing.assert_allclose(steps / 32767.0 * 0.5 * np.array(built.size), built.vertices, atol=4e-4)


@pytest.mark.parametrize("arguments", [{"kind": "cone"}, {"kind": "mesh"}])
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"drawing: "):
        Drawing(placement=Placement(), size=(1.0, 1.0, 1.0), **arguments)


@pytest.mark.parametrize("more", [
    {"points": "AAAA", "triangles": "AAAA"}, {"points": "not base64", "triangles": ""}, {"triangles": "AAAAAAAA"},
    {"colour": [1, 2]}, {"colour": [1, 2, 999]},
])  # fmt: skip
def test_a_broken_mesh_of_others_is_not_drawn(more: dict[str, Any]) -> None:
    kind = "mesh" if "triangles" in more else "box"
    part = {"name": "hull", "body": 0, "kind": kind, "size": [1.0, 1.0, 1.0], **more}
    assert shape_of(PlantInfo("boat", 1e-3, "free", None, None, (), (), shape={"parts": [part]})) is None
