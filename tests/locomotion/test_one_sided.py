"""Contacts that come and go: runners that grip one way, their reactions, energy."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import model as m


def sledge(*runners: m.Axle) -> rtmms.TreePlant:
    hull = m.Body("hull", 2.0, inertia=np.diag([0.1, 0.1, 0.2]))
    description = m.Mechanism("sledge", [hull], contacts=[m.Plane("hull"), *runners])
    push = rtmms.model.BodyWrench("hull", ("fx", "fy", "mz"))
    return rtmms.TreePlant(description, 1e-3, actuators=[push])


def pushed(plant: rtmms.TreePlant, force: tuple[float, float, float], steps: int) -> dict[str, np.ndarray]:
    for _ in range(steps):
        plant.step(np.array(force))
    return plant.observe()


def test_a_runner_grips_one_way() -> None:
    plant = sledge(m.Axle("hull", one_sided=True))
    runner = plant.model.ground.names.index("hull.axle")
    observed = pushed(plant, (0.0, -3.0, 0.0), 100)  # against the runner: it holds, and pushes back
    assert observed["velocity"][1] == 0.0
    assert observed["reaction"][runner] == pytest.approx(3.0)
    observed = pushed(plant, (0.0, 4.0, 0.0), 500)  # the other way: it lets go
    assert observed["velocity"][1] == pytest.approx(4.0 / 2.0 * 0.5)
    assert observed["reaction"][runner] == 0.0
    observed = pushed(plant, (0.0, -4.0, 0.0), 400)  # back: free until it stands
    assert observed["velocity"][1] == pytest.approx(0.2)
    observed = pushed(plant, (0.0, -4.0, 0.0), 150)
    assert abs(observed["velocity"][1]) < 1e-12
    assert observed["reaction"][runner] == pytest.approx(4.0)
    assert observed["position"][1] == pytest.approx(0.25 + 0.25, abs=2e-3)
    assert 0.0 <= float(observed["dissipated_energy"]) < 1e-5


def test_two_runners_turn_it() -> None:
    """Pushed in the middle, a sledge that one runner holds turns about it; the other lets go."""
    plant = sledge(m.Axle("hull", m.at(0.5), one_sided=True, name="front"), m.Axle("hull", m.at(-0.5), name="rear"))
    observed = pushed(plant, (0.0, 1.0, 0.0), 200)
    front, rear = (plant.model.ground.names.index(name) for name in ("front", "rear"))
    assert observed["reaction"][front] == 0.0
    assert observed["velocity"][1] == pytest.approx(0.5 * observed["angular_velocity"][2], rel=1e-12)
    assert observed["angular_velocity"][2] > 0.0
    assert observed["reaction"][rear] != 0.0
    assert float(observed["dissipated_energy"]) == pytest.approx(0.0, abs=1e-15)


def test_impacts_are_accounted() -> None:
    """Energy in is energy kept and lost, through many grips; a snapshot goes on with the same bits."""
    plant = sledge(
        m.Axle("hull", m.at(0.3), one_sided=True, name="a"), m.Axle("hull", m.at(-0.3), one_sided=True, name="b")
    )
    rng = np.random.default_rng(4)
    forces, done = 3.0 * rng.normal(size=(60, 3)), 0.0

    def go(first: int, last: int) -> float:
        work = 0.0
        for force in forces[first:last]:
            for _ in range(25):
                before = plant.observe()
                plant.step(force)
                after = plant.observe()
                mean = 0.5 * (before["velocity"] + after["velocity"])
                turning = 0.5 * (before["angular_velocity"][2] + after["angular_velocity"][2])
                work += plant.dt * (force[0] * mean[0] + force[1] * mean[1] + force[2] * turning)
                assert after["reaction"][3:].min() >= -1e-9
                slips = [after["velocity"][1] + x * after["angular_velocity"][2] for x in (0.3, -0.3)]
                assert min(slips) >= -1e-12
        return work

    done = go(0, 30)
    stored = plant.snapshot()
    done += go(30, 60)
    observed, end = plant.observe(), plant.snapshot()
    assert float(observed["energy"]) + float(observed["dissipated_energy"]) == pytest.approx(done, rel=2e-3)
    plant.restore(stored)
    go(30, 60)
    assert plant.snapshot() == end
