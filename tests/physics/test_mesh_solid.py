"""Solids of mesh files: the numbers of the same box, units, density or mass, buoyancy, refusals."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.base.errors import ModelError
from rtmms.model.solids import inertia_of

SIZE = (0.3, 0.2, 0.1)
QUADS = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
"""Of a box whose corners are numbered by 4 k + 2 j + i for z, y, x: each counter-clockwise from outside."""


def corners(scale: float = 1.0, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    x, y, z = SIZE
    rows = [((i - 0.5) * x, (j - 0.5) * y, (k - 0.5) * z) for k in (0, 1) for j in (0, 1) for i in (0, 1)]
    return scale * (np.array(rows) + at)


def triangles() -> list[tuple[int, int, int]]:
    return [t for a, b, c, d in QUADS for t in ((a, b, c), (a, c, d))]


def write_obj(path: Path, points: np.ndarray, faces: list[tuple[int, int, int]]) -> Path:
    lines = [f"v {x} {y} {z}" for x, y, z in points] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_stl(path: Path, points: np.ndarray, faces: list[tuple[int, int, int]]) -> Path:
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *points[list(face)].ravel(), 0) for face in faces)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + body)
    return path


@pytest.mark.parametrize("kind", ["obj", pytest.param("stl", marks=pytest.mark.full)])
def test_a_mesh_of_a_box_has_its_numbers(kind: str, tmp_path: Path) -> None:
    """In mm in the file, off its origin."""
    if kind == "stl":
        pytest.importorskip("trimesh")
    write = write_obj if kind == "obj" else write_stl
    path = write(tmp_path / f"box.{kind}", corners(1000.0, (0.1, -0.2, 0.05)), triangles())
    solid = m.solid_from_mesh(path, density=700.0, scale=1e-3, placement=m.at(roll=0.4))
    box = m.Box(*SIZE, 700.0, m.at(roll=0.4) @ m.at(0.1, -0.2, 0.05))
    np.testing.assert_allclose(inertia_of(solid), inertia_of(box), rtol=1e-5, atol=1e-6)
    assert solid.volume == pytest.approx(np.prod(SIZE), rel=1e-6)


def test_a_mass_gives_the_density_and_turned_triangles_do_not_matter(tmp_path: Path) -> None:
    faces = [(a, c, b) for a, b, c in triangles()]
    solid = m.solid_from_mesh(write_obj(tmp_path / "box.obj", corners(), faces), mass=3.0)
    assert solid.mass_properties()[0] == pytest.approx(3.0)
    assert solid.density == pytest.approx(3.0 / np.prod(SIZE))


def test_a_mesh_floats_by_its_volume(tmp_path: Path) -> None:
    """A body of half the water's density rises with g less what it weighs."""
    solid = m.solid_from_mesh(write_obj(tmp_path / "box.obj", corners(), triangles()), density=500.0)
    body = m.Body("hull", solids=[solid], fluid_density=1000.0)
    plant = rtmms.TreePlant(rtmms.Mechanism("hull", [body]), 1e-2)
    plant.step(np.zeros(0))
    assert plant.observe()["velocity"][2] == pytest.approx(9.81e-2, rel=1e-6)
    assert plant.shape["parts"][0]["kind"] == "mesh"


def test_refusals_name_the_file_and_the_next_action(tmp_path: Path) -> None:
    whole = write_obj(tmp_path / "box.obj", corners(), triangles())
    with pytest.raises(ModelError, match=r"'box\.obj': expected density or mass, got neither"):
        m.solid_from_mesh(whole)
    with pytest.raises(ModelError, match="expected density or mass, got both"):
        m.solid_from_mesh(whole, density=1.0, mass=1.0)
    with pytest.raises(ModelError, match="density: expected a number > 0"):
        m.solid_from_mesh(whole, density=-1.0)
    open_one = write_obj(tmp_path / "open.obj", corners(), triangles()[:-1])
    with pytest.raises(ModelError, match=r"'open\.obj': expected a closed mesh .* got 3 edges .* repair"):
        m.solid_from_mesh(open_one, mass=1.0)
    with pytest.raises(ModelError, match="there is no such file"):
        m.solid_from_mesh(tmp_path / "none.stl", mass=1.0)
    with pytest.raises(ModelError, match=r"expected a file of \.stl, \.obj"):
        m.solid_from_mesh(tmp_path / "box.step", mass=1.0)


def test_without_trimesh_it_reports_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "trimesh", None)
    path = write_stl(tmp_path / "box.stl", corners(), triangles())
    with pytest.raises(ModelError, match=r"'box.stl': needs trimesh \(pip install .*urdf"):
        m.solid_from_mesh(path, mass=1.0)
