"""The body with imposed strain: against the equations solved otherwise, and by what must hold whatever the shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rtmms.base.spatial import quaternion_matrix
from rtmms.continuum import layout as at
from rtmms.continuum.body import CosseratBody, Section
from rtmms.continuum.field import SETTLE, Field
from rtmms.continuum.plant import CosseratPlant
from rtmms.robots import continuous_eel
from tests.continuum.reference import Tube, march, solve, tail_force

MOVING = {"preset": "spatial", "dt": 4e-3, "density_kg_m3": 1080.0, "current_x_m_s": 0.3, "current_y_m_s": -0.2}


def spread(plant: Any, steps: int) -> Any:
    """The plant after some steps with every command moving."""
    for k in range(steps):
        plant.step(plant.neutral * (1.0 + 0.2 * math.sin(0.1 * k)) + 0.02)
    return plant


def reference(plant: Any) -> tuple[Any, ...]:
    """tube, field, rotation, twist, current, gravity of the plant's present state."""
    p, y = plant.parameters, plant.state
    tube = Tube(
        rho=p.density_kg_m3, c=tuple(getattr(p, f"c{k}") for k in range(1, 8)), wake=p.wake == "on"
    )  # fmt: skip
    plant.look()
    parameters, out = plant.system.p.copy(), np.zeros((3, 6))
    function, t = plant.field.function, plant.time

    def field(x: float) -> Any:
        function(x, t, parameters, out)
        return out.copy()

    current = np.array([p.current_x_m_s, p.current_y_m_s, p.current_z_m_s])
    return tube, field, quaternion_matrix(y[3:7]), y[7:13].copy(), current, np.array([0.0, 0.0, -p.gravity_m_s2])


@pytest.fixture(scope="module")
def moving() -> Any:
    return spread(continuous_eel.in_paper_frame(**MOVING), 130)


def test_acceleration_wrenches_and_power_are_those_of_the_equations(moving: Any) -> None:
    values = reference(moving)
    wanted = solve(*values)
    fine = continuous_eel.in_paper_frame(**MOVING, nodes=129, points=5)
    fine.start(moving.memory, moving.now)
    for plant, tolerance in ((moving, 2e-5), (fine, 1e-9)):
        plant.look()
        np.testing.assert_allclose(plant.acceleration, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())
    x = fine.section[fine.stations, at.K_X]
    rows = march(*values[:4], wanted, *values[4:], at=x)
    observed = fine.scratch[fine.stations]
    np.testing.assert_allclose(observed[:, at.P_WRENCH : at.P_WRENCH + 6], rows[:, 24:30], atol=1e-7)
    np.testing.assert_allclose(fine.energies[at.POWER], rows[-1, 30], rtol=1e-8)
    # the stress at the end, integrated along the body with the plant's own acceleration at 64 nodes
    moving.look()
    end = march(*values[:4], moving.acceleration, *values[4:])[-1]
    scale = np.abs(rows[:, 24:30]).max()
    assert np.abs(end[24:30] - tail_force(values[0], end, values[4])).max() < 1e-5 * scale


@pytest.mark.parametrize(("points", "order"), [(3, 4), (4, 6)])
def test_order_in_x(moving: Any, points: int, order: int) -> None:
    def results(nodes: int, points: int) -> Any:
        plant = continuous_eel.in_paper_frame(**MOVING, nodes=nodes, points=points)
        plant.start(moving.memory, moving.now)
        plant.look()
        return np.append(plant.acceleration, plant.energies[at.POWER])

    best = results(257, 5)
    cells = np.array([16, 32])
    errors = [np.abs(results(int(c) * (points - 1) + 1, points) - best).max() for c in cells]
    assert math.log2(errors[0] / errors[1]) > order - 0.4


def test_energy_and_work(moving: Any) -> None:
    """energy + lost = work, with wake, drag, current and weight, at 64 nodes."""
    plant = continuous_eel.load(preset="spatial", dt=4e-3, current_x_m_s=0.3)
    begun = float(plant.observe()["energy"])
    for _ in range(200):
        plant.step(plant.neutral)
    outputs = plant.observe()
    assert float(outputs["work"]) > 3.0
    assert abs(float(outputs["energy"]) - begun + float(outputs["dissipated_energy"]) - float(outputs["work"])) < 1e-4


def test_the_energy_identity_of_a_step(moving: Any) -> None:
    """Of a fine grid to 1e-12 J a step: what is left at 64 nodes is the error of the integrals along X."""
    residuals = []
    for nodes, points in ((64, 4), (257, 5)):
        plant = continuous_eel.in_paper_frame(**{**MOVING, "dt": 5e-4}, nodes=nodes, points=points)
        plant.start(moving.memory, moving.now * 8)
        before = plant.observe()
        plant.step(plant.neutral)
        after = plant.observe()
        change = {name: float(after[name] - before[name]) for name in ("energy", "dissipated_energy", "work")}
        residuals.append(abs(change["energy"] + change["dissipated_energy"] - change["work"]))
        assert abs(change["work"]) > 1e-5
    assert residuals[0] < 1e-7
    assert residuals[1] < 1e-12


def test_galilean() -> None:
    still = continuous_eel.load(preset="spatial", dt=4e-3, start_depth_m=0.0)
    stream = continuous_eel.load(preset="spatial", dt=4e-3, current_x_m_s=0.4, current_y_m_s=-0.3, current_z_m_s=0.1)
    u = np.array([0.4, -0.3, 0.1])
    stream.place(np.zeros(3), [1.0, 0.0, 0.0, 0.0], [*u, 0.0, 0.0, 0.0])
    for _ in range(150):
        still.step(still.neutral)
        stream.step(stream.neutral)
    a, b = still.observe(), stream.observe()
    np.testing.assert_allclose(b["position"] - u * stream.time, a["position"], atol=1e-7)
    np.testing.assert_allclose(b["quaternion"], a["quaternion"], atol=1e-7)
    np.testing.assert_allclose(b["internal_wrench"], a["internal_wrench"], atol=1e-5)


def test_a_straight_body_coasts_in_a_stream() -> None:
    plant = continuous_eel.load(
        yaw_rad_m=0.0, yaw_growth_rad_m2=0.0, current_x_m_s=1.0, wake="off", dt=0.02, points=3, nodes=24
    )
    for _ in range(200):
        plant.step(plant.neutral)
    a, b, t = 0.065, 0.09, plant.time
    c = 0.5 * 0.01 * math.pi * (a + b) / 2.0 / (math.pi * a * b)
    x = t - math.log(1.0 + c * t) / c
    np.testing.assert_allclose(plant.observe()["position"], [x, 0.0, -2.0], atol=1e-9)


def standing(x: float, t: float, p: Any, out: Any) -> None:
    """Parameter 0: 0 a standing wave, 1 a travelling one; it starts and stays periodic."""
    w, k = 2.0 * math.pi, 2.0 * math.pi / 2.08
    lead = k * x if p[0, 0] > 0.5 else 0.0
    shape = 0.6 + 0.5 * x
    out[:] = 0.0
    out[0, 0] = 1.0
    out[0, 5] = shape * (math.sin(w * t - lead) + math.sin(lead))
    out[1, 5] = shape * w * math.cos(w * t - lead)
    out[2, 5] = -shape * w * w * math.sin(w * t - lead)
    if p[0, 0] < 0.5:  # from rest: K_t = 0 at t = 0 needs no impulse in a cosine
        out[0, 5], out[1, 5] = shape * (1.0 - math.cos(w * t)), shape * w * math.sin(w * t)
        out[2, 5] = shape * w * w * math.cos(w * t)


def custom(kind: float, **more: Any) -> CosseratPlant:
    body = CosseratBody("own", 2.08, Section(0.065, 0.09, drag=(0.0, 0.0, 0.0), roll_drag=0.0))
    field = Field(standing, np.array([kind]), np.array([SETTLE]), np.zeros((1, 0)))
    return CosseratPlant(body, field, dt=4e-3, wake=False, gravity=0.0, **more)


def test_momentum_stays_and_only_a_travelling_wave_swims() -> None:
    """Without drag and wake: the hydrodynamic connection."""
    ways = []
    for kind in (0.0, 1.0):
        plant = custom(kind)
        if kind:  # a travelling wave moves at once: the head gets the twist that leaves the momentum at 0
            plant.state[at.Y_TWIST : at.Y_TWIST + 6] = still_twist(plant)
        maximum = 0.0
        for _ in range(250):
            plant.step(np.zeros(0))
            maximum = max(maximum, float(np.abs(plant.momentum()).max()))
        assert maximum < 2e-5
        ways.append(float(np.linalg.norm(plant.observe()["position"])))
    assert ways[0] < 1e-6
    assert ways[1] > 1e-3


def still_twist(plant: CosseratPlant) -> Any:
    plant.look()
    base = plant.momentum()
    columns = []
    for e in np.eye(6):
        plant.state[at.Y_TWIST : at.Y_TWIST + 6] = e
        columns.append(plant.momentum() - base)
    plant.state[at.Y_TWIST : at.Y_TWIST + 6] = 0.0
    return np.linalg.solve(np.array(columns).T, -base)


def test_time_scaling_leaves_the_path() -> None:
    ends = []
    for scale in (1.0, 2.5):
        plant = continuous_eel.load(period_s=scale, ramp_s=scale, dt=4e-3 * scale, bandwidth_rad_s=20.0 / scale)
        for _ in range(200):
            plant.step(plant.neutral)
        outputs = plant.observe()
        ends.append((outputs["position"], outputs["quaternion"], outputs["work"] * scale**2))
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-10)
