"""The files of an MJCF model are checked before MuJoCo reads them: these tests need no MuJoCo."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.mujoco_models.files import check_model_files
from rtmms.mujoco_models.library import load_mujoco
from tests.mujoco_models.models import BOX, mjcf

MESH = '<geom type="mesh" mesh="a"/>'


def written(folder: Path, text: str) -> Path:
    path = folder / "robot.xml"
    path.write_text(text)
    return path


def of_mesh(file: str, before: str = "") -> str:
    return mjcf(MESH, f'{before}<asset><mesh name="a" file="{file}"/></asset>')


def test_files_in_the_folder_or_below_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").write_bytes(b"solid")
    (tmp_path / "part.xml").write_text("<mujocoinclude><worldbody/></mujocoinclude>")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.stl").write_bytes(b"solid")
    (tmp_path / "sub" / "model.xml").write_text(of_mesh("b.stl"))
    for text in (
        of_mesh("meshes/a.stl"), of_mesh("a.stl", '<compiler meshdir="meshes"/>'), of_mesh("./sub/../meshes/a.stl"),
        '<mujoco><include file="part.xml"/></mujoco>', mjcf(BOX, '<asset><model file="sub/model.xml"/></asset>'),
        of_mesh(r"meshes\a.stl"),
    ):  # fmt: skip
        check_model_files(written(tmp_path, text))


REFUSED = {
    "a parent folder": (of_mesh("../a.stl"), "<mesh> file: '../a.stl' leads out of the folder"),
    "a hidden parent": (of_mesh("x/../../a.stl"), "leads out of the folder"),
    "a backslash": (of_mesh(r"..\a.stl"), "leads out of the folder"),
    "an absolute file": (of_mesh("/etc/passwd"), "leads out of the folder"),
    "a mesh folder": (of_mesh("passwd", '<compiler meshdir="/etc"/>'), "<compiler> meshdir: '/etc' leads out"),
    "an asset folder": (of_mesh("a.stl", '<compiler assetdir="../.."/>'), "<compiler> assetdir: '../..' leads out"),
    "an include": ('<mujoco><include file="../secret.xml"/></mujoco>', "<include> file: '../secret.xml' leads out"),
    "a link": (of_mesh("link.stl"), "'link.stl' leads out of the folder"),
    "a texture": (
        mjcf(BOX, '<asset><texture type="cube" fileright="/etc/x"/></asset>'), "<texture> fileright: '/etc/x' leads",
    ),
    "a model": (mjcf(BOX, '<asset><model file="../m.xml"/></asset>'), "<model> file: '../m.xml' leads out"),
    "no mesh": (of_mesh("none.stl"), "'none.stl': there is no such file in"),
    "no include": ('<mujoco><include file="none.xml"/></mujoco>', "'none.xml': there is no such file in"),
    "a pipe": (of_mesh("pipe.stl"), "'pipe.stl': there is no such file"),
    "no XML": ("hello", "expected XML"),
    "a document type": ("<!DOCTYPE x [<!ENTITY a 'b'>]><mujoco/>", "expected no document type"),
    "another root": ("<sdf/>", "expected an MJCF file, whose root is <mujoco>, got <sdf>"),
    "a URDF": ("<robot/>", "got <robot>; name a URDF file"),
    "a part": ("<mujocoinclude/>", "name the file that includes it"),
    "copies": (mjcf('<replicate count="200"><replicate count="200"><geom/></replicate></replicate>'), "10000 copies"),
    "a grid": (mjcf('<flexcomp name="a" count="1000 1000 1"/>'), "<flexcomp> count: expected at most"),
    "a height field": (mjcf(BOX, '<asset><hfield name="a" nrow="1e9" ncol="2"/></asset>'), "<hfield> nrow"),
    "memory": (mjcf(BOX, '<size memory="100T"/>'), "<size> memory: expected at most 8G, got '100T'"),
    "depth": ("<mujoco>" + "<body>" * 200 + "</body>" * 200 + "</mujoco>", "within each other"),
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links")
@pytest.mark.parametrize("case", REFUSED)
def test_other_files_are_refused_by_name(tmp_path: Path, case: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "a.stl").write_bytes(b"solid")
    (tmp_path / "secret.xml").write_text("<mujocoinclude/>")
    (folder / "link.stl").symlink_to(tmp_path / "a.stl")
    os.mkfifo(folder / "pipe.stl")
    text, why = REFUSED[case]
    path = written(folder, text)
    with pytest.raises(ModelError) as refused:
        check_model_files(path)
    message = str(refused.value)
    assert why in message
    assert "robot.xml" in message
    assert "\n" not in message


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    check_model_files(written(tmp_path, '<mujoco><include file="robot.xml"/></mujoco>'))  # MuJoCo refuses it


def test_without_mujoco_the_error_has_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for make in (lambda: rtmms.load(str(written(tmp_path, mjcf(BOX)))), lambda: load_mujoco("robot.xml")):
        with pytest.raises(ModelError, match=r"robot\.xml: .*MuJoCo, which is not installed: pip install .*\[mujoco\]"):
            make()
