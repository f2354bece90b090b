"""Tendons against MuJoCo's spatial tendons: lengths, rates, and accelerations that a tension gives."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from tests.mechanism.test_tendons import anywhere, finger, hand

pytestmark = [pytest.mark.full, pytest.mark.peer]


def xml(path: list[tuple[str, tuple[float, float, float]]]) -> str:
    """The hand of the tests with a free base, and one tendon."""
    sites = {body: "" for body, _ in path}
    for k, (body, (x, y, z)) in enumerate(path):
        sites[body] += f'<site name="s{k}" pos="{x} {y} {z}"/>'
    bone = '<geom type="box" size="0.05 0.01 0.01" pos="0.05 0 0" density="1000"/>'
    fingers = "".join(
        f'<body name="{side}.near" pos="0.05 {y} 0"><joint name="{side}.knuckle" axis="0 1 0"/>{bone}'
        f"{sites.get(f'{side}.near', '')}"
        f'<body name="{side}.far" pos="0.1 0 0"><joint name="{side}.tip" axis="0 1 0"/>{bone}'
        f"{sites.get(f'{side}.far', '')}</body></body>"
        for side, y in (("left", 0.05), ("right", -0.05))
    )
    through = "".join(f'<site site="s{k}"/>' for k in range(len(path)))
    return (
        '<mujoco><option gravity="0 0 0"><flag contact="disable"/></option><worldbody><body name="palm"><freejoint/>'
        f'<geom type="box" size="0.05 0.06 0.02" density="1000"/>{sites.get("palm", "")}{fingers}</body></worldbody>'
        f'<tendon><spatial name="t">{through}</spatial></tendon>'
        '<actuator><motor tendon="t" gear="-1"/></actuator></mujoco>'
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mujoco(seed: int) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = [*finger("left").path, ("right.far", (0.09, 0.004, 0.02)), ("palm", (0.01, 0.0, 0.05))]
    plant = rtmms.TreePlant(hand(False), 1e-3, actuators=[m.Tendon("t", path)])
    anywhere(plant, seed)
    peer = mujoco.MjModel.from_xml_string(xml(path))
    data, state, pull = mujoco.MjData(peer), plant.state, 3.0
    order = [peer.joint(name).qposadr[0] - 7 for name in plant.model.joint_names]
    turn = state.rotation
    data.qpos[:3], data.qpos[3:7] = state.position, state.orientation
    data.qpos[7:][order], data.qvel[6:][order] = state.q, state.qd
    data.qvel[:3], data.qvel[3:6] = turn @ state.twist[:3], state.twist[3:]  # MuJoCo: world's axes, and the body's
    accelerations = []
    for tension in (0.0, pull):
        data.ctrl[0] = tension
        mujoco.mj_forward(peer, data)
        plant.commanded[0] = tension
        outputs = plant.observe()
        assert outputs["tendon_length"][0] == pytest.approx(data.ten_length[0], rel=1e-8)
        assert outputs["tendon_rate"][0] == pytest.approx(data.ten_velocity[0], rel=1e-8)
        accelerations.append((plant.system.outputs.rate[6 + 4 :].copy(), data.qacc.copy()))
    (ours, theirs), (ours_pulled, theirs_pulled) = accelerations
    result, expected = ours_pulled - ours, theirs_pulled - theirs
    scale = np.abs(expected).max()
    np.testing.assert_allclose(result[6:], expected[6:][order], atol=1e-8 * scale)
    np.testing.assert_allclose(result[:3], turn.T @ expected[:3], atol=1e-8 * scale)
    np.testing.assert_allclose(result[3:6], expected[3:6], atol=1e-8 * scale)
    np.testing.assert_allclose(ours_pulled[6:], theirs_pulled[6:][order], atol=1e-8 * np.abs(theirs_pulled).max())
