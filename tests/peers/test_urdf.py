"""URDF files: the same dynamics as Pinocchio's own reader gives, and refusals by name."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.model.urdf import from_urdf
from tests.random_tree import random_state

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


def random_urdf(seed):
    """Text of a robot with links in a random tree, some of them fixed or without inertia, and its movable joints."""
    rng = np.random.default_rng(seed)
    numbers = lambda size, scale: " ".join(f"{value:.6g}" for value in scale * rng.normal(size=size))
    parts, movable = [], []
    for k in range(int(rng.integers(2, 9))):
        half = 0.1 * rng.normal(size=(3, 3))
        i = np.sum(half**2) * np.eye(3) - half @ half.T  # of points
        inertia = " ".join(f'i{"xyz"[a]}{"xyz"[b]}="{i[a, b]:.6g}"' for a in range(3) for b in range(a, 3))
        kind = str(rng.choice(["revolute", "continuous", "prismatic", "fixed"], p=[0.3, 0.2, 0.2, 0.3]))
        origin = lambda: f'<origin xyz="{numbers(3, 0.3)}" rpy="{numbers(3, 1.0)}"/>'
        inertial = f'<inertial>{origin()}<mass value="{rng.uniform(0.2, 2.0):.6g}"/><inertia {inertia}/></inertial>'
        is_bare = k > 0 and kind == "fixed" and rng.random() < 0.4
        parts.append(f'<link name="l{k}">{"" if is_bare else inertial}</link>')
        if k:
            axis = f'<axis xyz="{numbers(3, 1.0)}"/>' if rng.random() < 0.8 else ""
            limit = '<limit lower="-9" upper="9" effort="9" velocity="9"/>'
            ends = f'<parent link="l{rng.integers(k)}"/><child link="l{k}"/>'
            parts.append(f'<joint name="j{k}" type="{kind}">{ends}{origin()}{axis}{limit}</joint>')
            movable += [f"j{k}"] * (kind != "fixed")
    return f'<robot name="thing">{"".join(parts)}</robot>', movable


@pytest.mark.peer
def test_random_robots_have_the_dynamics_of_pinocchios_reader(tmp_path):
    """Angles of continuous joints are cosine and sine there; its joints are in an order of its own."""
    pin = pytest.importorskip("pinocchio")
    path = tmp_path / "robot.urdf"
    for seed in range(40):
        text, movable = random_urdf(seed)
        path.write_text(text)
        model = rtmms.compile(from_urdf(path))
        assert sorted(model.joint_names) == sorted(movable), seed
        peer = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
        state, torque = random_state(model, seed), np.random.default_rng(seed).normal(size=model.n)
        w, x, y, z = state.orientation
        q, v, tau = pin.neutral(peer), np.zeros(peer.nv), np.zeros(peer.nv)
        q[:7], v[:6] = (*state.position, x, y, z, w), state.twist
        places = []
        for name, angle, rate, values in zip(model.joint_names, state.q, state.qd, torque, strict=True):
            joint = peer.joints[peer.getJointId(name)]
            q[joint.idx_q : joint.idx_q + joint.nq] = angle if joint.nq == 1 else (np.cos(angle), np.sin(angle))
            v[joint.idx_v], tau[joint.idx_v] = rate, values
            places.append(joint.idx_v)
        a = pin.aba(peer, peer.createData(), q, v, tau)
        out = dynamics.forward_dynamics(model, state, torque)
        expected = [*a[:6], *(a[k] for k in places)]
        np.testing.assert_allclose(
            [*out.base_acceleration, *out.qdd], expected, rtol=1e-8, atol=1e-8, err_msg=str(seed)
        )


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
        (f"<robot name='r'>{LINKS}</robot>".encode(), "mechanism 'r': expected one body that is no joint's child"),
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
