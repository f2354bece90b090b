"""Effects of the choices: other readings of Qu 2024, the coupling's error, the method's, and the paper preset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import DivergedError, ModelError
from rtmms.robots.manta.methods import STABILITY
from rtmms.robots.manta.model import largest_step
from rtmms.robots.manta.plant import Flapping
from rtmms.studies.qu2024_runs import TURNS, Settings, fly, held_thrust, plant, steady_values, turning

Array = npt.NDArray[np.float64]
Report = Callable[[str], None]

SWIM = Flapping(40.0, 40.0, 0.6)
SWIM_S = 45.0
THRUST_AMPLITUDES = (10.0, 30.0, 40.0)
NAMES = ("thrust_10_n", "thrust_30_n", "thrust_40_n", "speed_m_s", "power_w", "turn_rate_deg_s", "turn_radius_m")

READINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "fin normal: neighbour chains (11)": {"fin_normal": "neighbour"},
    "support without roll (9)": {"support_roll": "zero"},
    "c_j per fin, 0.1/30 a chain": {"joint_damping_n_m_s": 0.1 / 30.0},
    "C_B,y = 0.04 (table 1)": {"body_drag_coefficient": (0.02, 0.04, 0.1)},
    "body drag by components": {"body_drag": "componentwise"},
    "body moment by the norm": {"body_moment": "norm"},
    "body moment linear (34)": {"body_moment": "linear"},
    "the last and C_B,y = 0.04": {"body_moment": "linear", "body_drag_coefficient": (0.02, 0.04, 0.1)},
    "rho = 9800 (table 1)": {"water_density_kg_m3": 9800.0},
    "C_D = 1.2": {"drag_coefficient": 1.2},
    "C_D = 2": {"drag_coefficient": 2.0},
    "front rod 0.20 m": {"front_rod_m": 0.20},
    "front rod 0.24 m": {"front_rod_m": 0.24},
    "thickness 7 mm throughout": {"link_thickness_m": (0.007, 0.007, 0.007)},
    "added mass": {"added_mass": True, "coupling": "monolithic"},
    "6 links a chain": {"links": 6},
    "6 links a chain, c_j of each joint": {"links": 6, "damping_per": "joint"},
    "servo in place of ideal motors": {"actuation": "servo"},
}
"""Other readings, each beside the default; docs/manta.md explains them."""


def readings(settings: Settings, report: Report) -> list[dict[str, Any]]:
    """Return one row for each reading.

    Thrust is held at 0.51 Hz, phase 30 deg; swimming at 0.6 Hz, 40 and 40 deg; turning by phase.

    Parameters
    ----------
    settings : Settings
        Amount of computation.
    report : Report
        Receives a line about the progress.

    Returns
    -------
    list[dict[str, Any]]
        Rows.
    """
    rows = []
    for name, parameters in READINGS.items():
        if settings.readings is not None and name not in settings.readings:
            continue
        report(f"reading: {name}")
        rows.append({"reading": name, "parameters": parameters, **measure(settings, **parameters)})
    for row in rows:
        row["change_percent"] = {key: _change(row[key], rows[0][key]) for key in NAMES}
    return rows


def _change(value: float | None, default: float | None) -> float | None:
    return None if value is None or not default else 100.0 * (value / default - 1.0)


def measure(settings: Settings, **parameters: Any) -> dict[str, Any]:
    """Return the numbers of one set of parameters.

    Parameters
    ----------
    settings : Settings
        Amount of computation.
    **parameters : Any
        Parameters of the manta.

    Returns
    -------
    dict[str, Any]
        Numbers by name; None where the run diverged, with the reason in 'failed'.
    """
    row: dict[str, Any] = dict.fromkeys(NAMES)
    row["failed"] = ""
    try:
        held = plant(**{**parameters, "body": "fixed"})
        for amplitude in THRUST_AMPLITUDES:
            row[f"thrust_{amplitude:g}_n"] = held_thrust(held, Flapping(amplitude, 30.0, 0.51), settings.held_periods)
        free = plant(**parameters)
        swim = steady_values(fly(free, SWIM, min(SWIM_S, settings.settle_s)), free.weight)
        row["speed_m_s"], row["power_w"] = swim["speed_m_s"], swim["power_w"]
        gait = TURNS["phase"]
        run = fly(free, gait, settings.turn_periods * gait.period_s)
        half = settings.turn_periods // 2
        row["turn_rate_deg_s"], row["turn_radius_m"] = turning(run, *run.periods(half, settings.turn_periods))
    except DivergedError as error:
        row["failed"] = str(error)
    return row


# --- errors of the methods --------------------------------------------------------------------------------------------


def _states(dt: float, coupling: str, seconds: float) -> tuple[Array, Array]:
    """Return position (k, 3) m and twist (k, 6) m/s, rad/s, at the same instants for any dt."""
    names = ("position", "velocity", "angular_velocity")
    out = fly(plant(dt=dt, coupling=coupling), SWIM, seconds, every_s=0.05, names=names).outputs
    return out["position"], np.concatenate([out["velocity"], out["angular_velocity"]], axis=1)


def coupling_error(settings: Settings, report: Report) -> dict[str, Any]:
    """Return the largest difference of position (m) and velocity (m/s) over a run from `monolithic` at the same step.

    The method's own error is beside it: monolithic against itself at `reference_step_s`. `order` is the slope of log
    error over log dt.

    Parameters
    ----------
    settings : Settings
        Amount of computation.
    report : Report
        Receives a line about the progress.

    Returns
    -------
    dict[str, Any]
        Errors by coupling.
    """
    steps, seconds = settings.coupling_steps_s, settings.coupling_s
    report("coupling: the reference")
    reference = _states(settings.reference_step_s, "monolithic", seconds)
    rows: dict[str, dict[str, list[float]]] = {
        name: {"position_m": [], "velocity_m_s": []} for name in ("sequential", "iterated", "monolithic")
    }
    for dt in steps:
        report(f"coupling: {dt * 1e3:g} ms")
        exact = _states(dt, "monolithic", seconds)
        result = {name: _states(dt, name, seconds) for name in ("sequential", "iterated")}
        for name, against in (("sequential", exact), ("iterated", exact), ("monolithic", reference)):
            state = result.get(name, exact)
            rows[name]["position_m"].append(float(np.abs(state[0] - against[0]).max()))
            rows[name]["velocity_m_s"].append(float(np.abs(state[1] - against[1])[:, :3].max()))
    return {
        "gait": "free, 0.6 Hz, amplitude 40 deg, phase 40 deg",
        "simulated_s": seconds,
        "dt_s": list(steps),
        "reference_dt_s": settings.reference_step_s,
        **{name: {**errors, "order": order(steps, errors["position_m"])} for name, errors in rows.items()},
    }


def order(steps: Any, errors: Any) -> float | None:
    """Return the slope of log error over log step.

    Parameters
    ----------
    steps : Any
        Steps, s.
    errors : Any
        Error of each step.

    Returns
    -------
    float | None
        None where the error is that of rounding and of the tolerance.

    Examples
    --------
    >>> from rtmms.studies.qu2024_choices import order
    >>> round(order([0.1, 0.01], [1e-2, 1e-4]), 6)
    2.0
    """
    if len(steps) < 2 or min(errors) < 1e-9:
        return None
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def thrust_error(settings: Settings, report: Report) -> dict[str, Any] | None:
    """Return the error of the mean thrust of the second period, body held, against explicit RK4 at a stable step.

    Parameters
    ----------
    settings : Settings
        Amount of computation.
    report : Report
        Receives a line about the progress.

    Returns
    -------
    dict[str, Any] | None
        In % at each dt; None without a step for RK4.
    """
    if settings.rk4_step_s is None:
        return None
    gait = Flapping(40.0, 30.0, 0.51, ramp_s=0.5)
    report("method: explicit RK4 at a small step")

    def thrust(dt: float, **parameters: Any) -> float:
        run = fly(plant(dt=dt, body="fixed", **parameters), gait, 2.0 * gait.period_s, names=("thrust",))
        return run.mean(run.thrust, float(run.time[-1]) - gait.period_s, float(run.time[-1]))

    exact = thrust(settings.rk4_step_s, integrator="rk4")
    result = [thrust(dt) for dt in settings.coupling_steps_s]
    return {
        "rk4_dt_s": settings.rk4_step_s,
        "rk4_thrust_n": exact,
        "dt_s": list(settings.coupling_steps_s),
        "thrust_n": result,
        "error_percent": [100.0 * (value / exact - 1.0) for value in result],
    }


def power_balance(settings: Settings, report: Report) -> dict[str, Any]:
    """Return |energy gained - work in + losses| over the work put in, along a monolithic run, at each dt.

    Parameters
    ----------
    settings : Settings
        Amount of computation.
    report : Report
        Receives a line about the progress.

    Returns
    -------
    dict[str, Any]
        Steps, errors and order.
    """
    names = ("rod_power", "drag_power", "damping_power", "kinetic_energy", "elastic_energy", "buoyancy_energy")
    steps, errors = settings.balance_steps_s, []
    for dt in steps:
        report(f"power balance: {dt * 1e3:g} ms")
        out = fly(plant(dt=dt, coupling="monolithic"), SWIM, 3.2, every_s=dt, names=names).outputs
        energy = out["kinetic_energy"] + out["elastic_energy"] + out["buoyancy_energy"]
        work = _simpson(out["rod_power"], dt)
        lost = _simpson(out["drag_power"] + out["damping_power"], dt)
        errors.append(float(abs(energy[-1] - energy[0] - work + lost) / work))
    return {"dt_s": list(steps), "relative_error": errors, "order": order(steps, errors)}


def _simpson(values: Array, dt: float) -> float:
    """Return the integral of an odd number of evenly spaced values."""
    return float(dt / 3.0 * (values[0] + values[-1] + 4.0 * values[1:-1:2].sum() + 2.0 * values[2:-1:2].sum()))


# --- the paper's own numbers, as far as they run ----------------------------------------------------------------------


def paper_preset(settings: Settings, report: Report) -> dict[str, Any]:
    """Return the numbers of `--preset paper`.

    Parameters
    ----------
    settings : Settings
        Amount of computation.
    report : Report
        Receives a line about the progress.

    Returns
    -------
    dict[str, Any]
        Numbers by name.
    """
    report("preset paper")
    return measure(settings, preset="paper")


REFUSED: dict[str, dict[str, Any]] = {
    "RK4 at 10 ms": {"integrator": "rk4", "dt": 10e-3},
    "added mass, sequential, 10 ms": {"added_mass": True, "dt": 10e-3},
    "added mass, sequential, body of 2 kg": {"added_mass": True, "body_mass_kg": 2.0},
    "sequential, body of 1 kg": {"body_mass_kg": 1.0},
}
"""Parameters that would diverge."""


def refusals() -> dict[str, str]:
    """Return the plant's refusal of each.

    Returns
    -------
    dict[str, str]
        By name, '' where it would run.
    """
    refusals = {}
    for name, parameters in REFUSED.items():
        try:
            plant(**parameters)
            refusals[name] = ""
        except ModelError as error:
            refusals[name] = str(error)
    return refusals


def longest_rk4_step(**parameters: Any) -> float:
    """Return the longest stable step of explicit RK4.

    Parameters
    ----------
    **parameters : Any
        Parameters of the manta.

    Returns
    -------
    float
        s.
    """
    return largest_step(plant(**parameters).model.links, float(STABILITY["rk4"] or np.inf))
