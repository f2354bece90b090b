"""PyElastica on the rods that `rods.py` measures: accuracy and time in the same run (pip install pyelastica)."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from rtmms.spatial import Array

Push = Callable[[float], tuple[Array, Array]]


def installed() -> bool:
    """Whether there is PyElastica."""
    return find_spec("elastica") is not None


def _system(
    n: int, ends: tuple[Array, Array], inertia: float, numbers: tuple[float, float, float], push: Push, *,
    clamped: bool = False, damping: float = 0.0, dt: float = 1e-3,
) -> tuple[Any, Any]:  # fmt: skip
    """A plane rod of 1 kg/m from one end to the other; inertia kg m about z; numbers EI, EA, GA; push at a time:
    force and couple on its far end, world."""
    import elastica as ea

    parts: tuple[Any, ...] = (ea.BaseSystemCollection, ea.Constraints, ea.Forcing, ea.Damping)
    make: Any = type("System", parts, {})
    still: Any = ea.NoForces

    class Pushed(still):  # type: ignore[misc]
        def apply_forces(self, system: Any, time: Any = 0.0) -> None:
            system.external_forces[..., -1] += push(float(time))[0]

        def apply_torques(self, system: Any, time: Any = 0.0) -> None:
            system.external_torques[..., -1] += system.director_collection[..., -1] @ push(float(time))[1]

    way = ends[1] - ends[0]
    length, radius = float(np.linalg.norm(way)), 0.02
    rod = ea.CosseratRod.straight_rod(
        n, ends[0], way / length, np.array([0.0, 0.0, 1.0]), length, radius, 1.0 / (np.pi * radius**2),
        youngs_modulus=1e6, shear_modulus=5e5,
    )  # fmt: skip
    bend, stretch, shear = numbers
    rod.bend_matrix[:] = (bend * np.eye(3))[:, :, None]
    rod.shear_matrix[:] = np.diag([shear, shear, stretch])[:, :, None]
    rod.mass_second_moment_of_inertia[:] = (inertia * length / n * np.eye(3))[:, :, None]
    rod.inv_mass_second_moment_of_inertia[:] = (n / (inertia * length) * np.eye(3))[:, :, None]
    system = make()
    system.append(rod)
    if clamped:
        system.constrain(rod).using(
            ea.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,)
        )  # fmt: skip
    system.add_forcing_to(rod).using(Pushed)
    if damping:
        system.dampen(rod).using(ea.AnalyticalLinearDamper, damping_constant=damping, time_step=dt)
    system.finalize()
    return system, rod


def fly(n: int, ends: tuple[Array, Array], numbers: Any, push: Push, times: Array, dt: float) -> tuple[Array, float]:
    """(k, 2, 3) both ends at `times`, and s of wall clock: position Verlet of step dt."""
    import elastica as ea

    system, rod = _system(n, ends, numbers[3], numbers[:3], push)
    stepper, found = ea.PositionVerlet(), []
    steps, now = round(float(times[-1]) / dt), np.float64(0.0)
    wanted = {round(float(t) / dt) for t in times}
    now = stepper.step(system, now, np.float64(dt))  # compiled and warm
    start = time.perf_counter()
    for k in range(1, steps):
        now = stepper.step(system, now, np.float64(dt))
        if k + 1 in wanted:
            found.append([rod.position_collection[:, 0].copy(), rod.position_collection[:, -1].copy()])
    return np.array(found), time.perf_counter() - start


def rest(n: int, force: float, dt: float, until: float) -> tuple[float, float]:
    """Deflection of a unit cantilever under a force across its tip, by damped motion; s of wall clock."""
    import elastica as ea

    ends = (np.zeros(3), np.array([1.0, 0.0, 0.0]))
    load = np.array([0.0, force, 0.0])
    still = np.zeros(3)
    system, rod = _system(
        n, ends, 1e-3, (1.0, 1e4, 1e4), lambda t: (load * min(1.0, t), still), clamped=True, damping=4.0, dt=dt
    )
    stepper, now = ea.PositionVerlet(), np.float64(0.0)
    now = stepper.step(system, now, np.float64(dt))
    start = time.perf_counter()
    for _ in range(round(until / dt)):
        now = stepper.step(system, now, np.float64(dt))
    return float(rod.position_collection[1, -1]), time.perf_counter() - start
