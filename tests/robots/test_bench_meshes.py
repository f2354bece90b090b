"""`rtmms bench mesh`: each robot that has a mesh is in it, with the defaults of its parameters."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from rtmms.continuum.strain_rod import USUAL
from rtmms.robots.continuous_eel import ContinuousEel
from rtmms.robots.eel import Eel
from rtmms.robots.fish import Fish
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.modal_moth import ModalMoth
from rtmms.robots.moth.face import Moth
from rtmms_benchmarks import meshes
from rtmms_benchmarks.mesh import main

ROBOTS = {
    "manta": MantaParameters, "eel": Eel, "moth": Moth, "modal_moth": ModalMoth, "fish": Fish,
    "continuous_eel": ContinuousEel,
}  # fmt: skip


def test_meshes_are_those_of_the_defaults() -> None:
    listed = {(one.robot, one.knob): one.usual for one in meshes.meshes()}
    assert listed.pop(("StrainRod", "nodes")) == USUAL
    assert listed.pop(("StrainRod", "shapes")) == 4
    assert {robot for robot, _ in listed} == set(ROBOTS)
    for (robot, knob), usual in listed.items():
        assert {f.name: f.default for f in fields(ROBOTS[robot])}[knob] == usual, (robot, knob)


def test_the_default_fish_is_fine_and_a_coarser_one_is_worse() -> None:
    """The dead fish over 0.5 s: sections at Gauss points; half a per cent of its way is a coarse mesh's."""
    (mesh,) = [one for one in meshes.meshes() if one.name == "fish" and one.knob == "pieces"]
    short = replace(mesh, seconds=0.5)
    path, work = meshes.off(short)
    assert path < 2e-3
    assert work == 0.0
    assert meshes.off(replace(short, usual=2))[0] > 2.0 * path


def test_a_soft_rod_of_more_shapes_moves_elsewhere_but_not_by_its_points(capsys: pytest.CaptureFixture[str]) -> None:
    nodes, shapes = (one for one in meshes.meshes() if one.robot == "StrainRod")
    assert meshes.off(replace(nodes, seconds=0.05))[0] < 1e-4
    assert meshes.off(replace(shapes, seconds=0.05))[0] < 0.1
    rows = [{"robot": "one", "mesh": "links", "default": 3, "beside": 12, "path": 0.0123, "work": 0.5}]
    meshes.tell(rows)
    assert "| one | links | 3 | 12 | 1.2 % | 50 % |" in capsys.readouterr().out
    assert main(only="nothing") == 0
