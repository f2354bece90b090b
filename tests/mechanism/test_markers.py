"""Markers: positions in the world and in bodies' frames, chosen outputs, refusals; a camera that observes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.dynamics import body_poses
from rtmms.model.description import facing
from rtmms.sensing.data_sheets import Camera
from rtmms.sensing.sensed import Sensed

NOSE = (0.3, 0.02, 0.01)
TIP = (0.2, 0.0, -0.03)


def arm(markers: Any = None, turned: bool = False, **more: Any) -> rtmms.TreePlant:
    """A hull with an arm that swings about y."""
    hull, bone = m.Body("hull", 2.0, inertia=0.1 * np.eye(3)), m.Body("arm", solids=[m.Box(0.2, 0.02, 0.02, 500.0)])
    joint = m.Joint("shoulder", "hull", "arm", placement=m.at(0.2, 0.0, 0.1, yaw=0.4), axis=(0, 1, 0))
    values = markers if markers is not None else [
        m.Marker("nose", "hull", NOSE), m.Marker("tip", "arm", TIP), m.Marker("seen", "arm", TIP, relative_to="hull"),
        m.Marker("back", "hull", NOSE, relative_to="arm"),
    ]  # fmt: skip
    mechanism = rtmms.Mechanism("arm", [hull, bone], [joint], markers=values, gravity=(0, 0, 0))
    if turned:
        mechanism = facing(mechanism, np.diag([-1.0, -1.0, 1.0]))
    return rtmms.TreePlant(mechanism, 1e-3, **more)


@pytest.mark.parametrize("turned", [False, True])
def test_markers_are_where_the_bodies_poses_have_them(turned: bool) -> None:
    plant, rng = arm(turned=turned), np.random.default_rng(2)
    for _ in range(3):
        turn = rng.normal(size=4)
        plant.place(
            position=rng.normal(size=3), quaternion=turn / np.linalg.norm(turn), joint_position=rng.normal(size=1)
        )
        outputs = plant.observe()
        rotation, position = body_poses(plant.model, plant.state)
        hull, bone = plant.model.body("hull"), plant.model.body("arm")
        nose, tip = (position[k] + rotation[k] @ np.array(at) for k, at in ((hull, NOSE), (bone, TIP)))
        np.testing.assert_allclose(outputs["nose"], nose, atol=1e-12)
        np.testing.assert_allclose(outputs["tip"], tip, atol=1e-12)
        np.testing.assert_allclose(outputs["seen"], rotation[hull].T @ (tip - position[hull]), atol=1e-12)
        np.testing.assert_allclose(outputs["back"], rotation[bone].T @ (nose - position[bone]), atol=1e-12)


def test_markers_are_outputs_by_their_names() -> None:
    plant = arm(outputs=["tip", "arm.position", "velocity"])
    assert [channel.name for channel in plant.outputs] == ["tip", "arm.position", "velocity"]
    assert set(plant.observe()) == {"tip", "arm.position", "velocity"}
    frames = {channel.name: (channel.unit, channel.frame) for channel in arm().outputs}
    assert frames["tip"] == ("m", "world")
    assert frames["seen"] == ("m", "hull")


@pytest.mark.parametrize(
    ("markers", "text"),
    [
        ([m.Marker("a.b", "hull", NOSE)], "name: expected a name without a dot"),
        ([m.Marker("a", "hull", NOSE), m.Marker("a", "arm", NOSE)], "another marker has this name"),
        ([m.Marker("a", "leg", NOSE)], "body: unknown body 'leg'"),
        ([m.Marker("a", "hull", NOSE, relative_to="leg")], "relative_to: unknown body 'leg'"),
        ([m.Marker("a", "hull", (1.0, 2.0))], r"point must have shape \(3,\)"),
        ([m.Marker("position", "hull", NOSE)], "marker 'position': an output has this name"),
        (["a"], r"markers\[0\]: expected a Marker"),
    ],
)
def test_refusals_name_place_and_expectation(markers: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        arm(markers)


def test_a_perfect_camera_is_a_projection() -> None:
    """From above: x to the right, y up; turned by 90 deg about z and put 1 m aside, the same in its own axes."""
    plant = arm()
    plain = Sensed(plant, {"camera": Camera(rate_hz=500.0, scale_px_m=800.0)})
    aside = Camera(rate_hz=500.0, position_m=(1.0, 0.0, 3.0), rotation_deg=(0.0, 0.0, 90.0), of="tip, nose",
                   centre_x_px=320.0, centre_y_px=240.0)  # fmt: skip
    turned = Sensed(arm(), {"camera": aside})
    assert {channel.name for channel in plain.suite.channels} == {"camera.nose", "camera.tip", "camera.time"}
    observed, other = plain.observe(), turned.observe()
    tip = observed["truth.tip"]
    np.testing.assert_allclose(observed["camera.tip"], 800.0 * tip[:2], atol=1e-9)
    away = tip - np.array([1.0, 0.0, 3.0])
    np.testing.assert_allclose(other["camera.tip"], [320.0 + 1000.0 * away[1], 240.0 - 1000.0 * away[0]], atol=1e-9)


def test_a_camera_has_rate_latency_noise_and_lost_frames() -> None:
    camera = Camera(rate_hz=50.0, latency_s=0.04, noise_px=2.0, resolution_px=0.5, dropout=0.3)
    plant = Sensed(arm(), {"camera": camera})
    plant.reset(3)
    times, pixels = [], []
    for _ in range(10000):
        plant.step(np.zeros(0))
        outputs = plant.observe()
        if not times or outputs["camera.time"] != times[-1]:
            times.append(float(outputs["camera.time"]))
            pixels.append(np.array(outputs["camera.tip"]))
    shown = np.array(pixels[1:])
    assert len(shown) == pytest.approx(0.7 * 500, rel=0.1)
    assert np.all(np.mod(shown, 0.5) == 0.0)
    truth = 1000.0 * np.asarray(plant.observe()["truth.tip"])[:2]
    assert np.abs(shown.mean(axis=0) - truth).max() < 0.5
    assert shown.std(axis=0) == pytest.approx([2.0, 2.0], rel=0.15)
    gaps = np.diff(times[1:])
    assert gaps.min() == pytest.approx(0.02)
    assert gaps.max() > 0.03  # lost frames


@pytest.mark.parametrize(
    ("camera", "text"),
    [(Camera(of="fin"), "camera: of: unknown marker 'fin'"), (Camera(of="seen"), "unknown marker 'seen'")],
)
def test_a_camera_observes_markers_of_the_world_alone(camera: Camera, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        Sensed(arm(), {"camera": camera})
    with pytest.raises(ModelError, match="expected a plant with markers"):
        Sensed(arm([]), {"camera": Camera()})


def test_an_output_that_is_not_there_lists_the_markers() -> None:
    with pytest.raises(UnknownNameError, match="tipp"):
        arm(outputs=["tipp"])
