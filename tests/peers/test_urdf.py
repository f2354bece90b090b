"""URDF files: the same dynamics as Pinocchio's own reader gives, and refusals by name."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.model.random_tree import random_state
from rtmms.model.urdf import from_urdf

pytest.importorskip("yourdfpy")

pytestmark = pytest.mark.full

LINK = """<link name="{name}"><inertial><origin xyz="0.1 -0.02 0.03" rpy="0.3 -0.2 0.5"/><mass value="{mass}"/>
<inertia ixx="0.03" iyy="0.04" izz="0.05" ixy="0.002" ixz="-0.001" iyz="0.003"/></inertial></link>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="0.2 0.1 -0.3" rpy="0.4 0.1 -0.7"/>{more}</joint>"""


def write(tmp_path, kind="revolute", more='<axis xyz="0.6 0 0.8"/>'):
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    text = "".join(
        [
            *(LINK.format(name=n, mass=m) for n, m in (("base", 2.0), ("arm", 1.0), ("tool", 0.4), ("slide", 0.7))),
            JOINT.format(name="a", kind=kind, parent="base", child="arm", more=limit + more),
            JOINT.format(name="b", kind="fixed", parent="arm", child="tool", more=""),
            JOINT.format(name="c", kind="prismatic", parent="tool", child="slide", more=limit),
        ]
    )
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="thing">{text}</robot>')
    return path


@pytest.mark.peer
def test_same_dynamics_as_pinocchios_reader(tmp_path):
    pin = pytest.importorskip("pinocchio")
    path = write(tmp_path)
    model = rtmms.compile(from_urdf(path))
    peer = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data = peer.createData()
    state, torque = random_state(model, 3), np.array([0.3, -0.7])
    w, x, y, z = state.orientation
    q = np.array([*state.position, x, y, z, w, *state.q])
    a = pin.aba(peer, data, q, np.array([*state.twist, *state.qd]), np.array([*np.zeros(6), *torque]))
    out = dynamics.forward_dynamics(model, state, torque)
    np.testing.assert_allclose([*out.base_acceleration, *out.qdd], a, rtol=1e-9, atol=1e-9)
    assert model.joint_names == ("a", "c")
    assert model.body_names == ("base", "arm", "tool", "slide")


def test_damping_and_friction_are_read(tmp_path):
    path = write(tmp_path, more='<axis xyz="0 0 1"/><dynamics damping="0.7" friction="0.2"/>')
    joint = from_urdf(path, drive="motion").joints[0]
    assert (joint.damping, joint.coulomb, joint.drive) == (0.7, 0.2, "motion")


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"kind": "floating"}, "joint 'a': type 'floating' is not supported"),
        ({"kind": "planar"}, "joint 'a': type 'planar' is not supported"),
        ({"more": '<axis xyz="0 0 1"/><mimic joint="c"/>'}, "joint 'a': mimics 'c'"),
    ],
)
def test_what_cannot_be_built_is_refused(tmp_path, change, parts):
    with pytest.raises(rtmms.ModelError, match=parts):
        from_urdf(write(tmp_path, **change))


def test_zero_axis_missing_file_and_nonsense(tmp_path):
    with pytest.raises(rtmms.ModelError, match="joint 'a': axis must not be of zero length"):
        rtmms.compile(from_urdf(write(tmp_path, more='<axis xyz="0 0 0"/>')))
    with pytest.raises(rtmms.ModelError, match="no such file"):
        from_urdf(tmp_path / "none.urdf")
    path = tmp_path / "broken.urdf"
    path.write_text("<robot><link")
    with pytest.raises(rtmms.ModelError, match=r"broken.urdf': cannot be read"):
        from_urdf(path)


LINKS = '<link name="a"/><link name="b"/>'


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"<html><body/></html>", "expected the element <robot>, got <html>"),
        (b"\x7fELF\x00\x01", "cannot be read: expected XML: .*line 1"),
        (b'<?xml version="1.0" encoding="nosuch"?><robot/>', "cannot be read: expected XML: "),
        (b"<robot><link/></robot>", "<link> number 1: expected a name, got none"),
        (f'<robot>{LINKS}<joint name="j"/></robot>'.encode(), r"joint 'j': expected a type \(revolute"),
        (f'<robot>{LINKS}<joint name="j" type="fixed"><parent link="a"/></joint></robot>'.encode(),
         "joint 'j': expected <child link=.*, got none"),
        (b'<robot><link name="a"><inertial><mass value="two"/></inertial></link></robot>',
         "link 'a': <mass>: value: expected a number, got 'two'"),
        (b'<robot><link name="a"><visual><origin xyz="1 2"/></visual></link></robot>',
         "link 'a': <origin>: xyz: expected 3 numbers, got '1 2'"),
        (f"<robot name='r'>{LINKS}</robot>".encode(), "mechanism 'r': bodies 'a', 'b' have no joint above them"),
        (b'<robot name="r"><link name="a"><inertial><mass value="-1"/></inertial></link></robot>',
         "body 'a': mass must be >= 0 kg"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_urdf_is_reported_by_name_and_place(tmp_path, capfd, content, parts):
    path = tmp_path / "broken.urdf"
    path.write_bytes(content)
    with pytest.raises(rtmms.ModelError, match=rf"^urdf '.*broken\.urdf': {parts}"):
        rtmms.load(str(path))
    assert capfd.readouterr() == ("", "")
