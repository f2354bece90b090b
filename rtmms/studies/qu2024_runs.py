"""Experiments of Qu 2024, section 5, again: curves for figures 7 to 11 and their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import rtmms.plant.loading
from rtmms.base.spatial import heading
from rtmms.robots.manta.plant import Flapping, mean
from rtmms.view.cycles import fundamental, lags_deg

if TYPE_CHECKING:
    from rtmms.robots.manta import Manta


Array = npt.NDArray[np.float64]


# A manta driven by the paper's gait in this process: no controller, no wire, the same plant.


OUTPUTS = ("position", "quaternion", "velocity", "angular_velocity", "thrust", "rod_power")


@dataclass(frozen=True, slots=True)
class Run:
    """Samples of a run.

    Attributes
    ----------
    gait : Flapping
        Gait of the run.
    time : Array
        (k,) times, s.
    outputs : dict[str, Array]
        {name: (k, ...)}.
    """

    gait: Flapping
    time: Array
    outputs: dict[str, Array] = field(repr=False)

    def periods(self, first: float, last: float) -> tuple[float, float]:
        """Return the instants at which two periods of the gait begin.

        Parameters
        ----------
        first, last : float
            Numbers of the periods; negative ones count from the end.

        Returns
        -------
        tuple[float, float]
            s.
        """
        whole = float(np.floor(self.time[-1] * self.gait.frequency_hz + 1e-9))
        start, end = (whole + number if number < 0 else number for number in (first, last))
        return start * self.gait.period_s, end * self.gait.period_s

    def mean(self, values: Array, start: float, end: float) -> float:
        """Return the time mean of values.

        Parameters
        ----------
        values : Array
            (k,) values.
        start, end : float
            Instants, s.

        Returns
        -------
        float
            In the values' unit.
        """
        return mean(self.time, values, start, end)

    @property
    def speed(self) -> Array:
        """Speed along body x, (k,) m/s."""
        return self.outputs["velocity"][:, 0]

    @property
    def thrust(self) -> Array:
        """Force of both fins on the body along body x, (k,) N."""
        both: Array = self.outputs["thrust"][:, :, 0].sum(axis=1)
        return both

    @property
    def power(self) -> Array:
        """Power into the rods, (k,) W."""
        return self.outputs["rod_power"]


def fly(plant: Manta, gait: Flapping, seconds: float, *, every_s: float = 0.01, names: Sequence[str] = OUTPUTS) -> Run:
    """Run the gait from rest.

    With ideal actuation the command is sent two steps ahead, as the motors lag by that (manta/rods.py), so that the
    rods are at the angles of (37) at every step size.

    Parameters
    ----------
    plant : Manta
        The manta.
    gait : Flapping
        The gait.
    seconds : float
        Simulated time, s.
    every_s : float, default 0.01
        Time between samples, s.
    names : Sequence[str], optional
        Sampled outputs.

    Returns
    -------
    Run
        The run.
    """
    p, dt = plant.parameters, plant.dt
    steps, every = round(seconds / dt), max(1, round(every_s / dt))
    ahead = 2 if p.actuation == "ideal" else 0
    time = np.arange(steps, dtype=np.float64) * dt + ahead * dt
    commands = gait.angles(time, p.back_rod_m / p.front_rod_m)
    plant.reset()
    stored: dict[str, list[Array]] = {name: [] for name in names}
    at = [0]
    _sample(plant, stored)
    for start in range(0, steps, every):
        end = min(start + every, steps)
        for k in range(start, end):
            plant.step(commands[k])
        at.append(end)
        _sample(plant, stored)
    return Run(gait, np.array(at) * dt, {name: np.array(values) for name, values in stored.items()})


def _sample(plant: Manta, stored: dict[str, list[Array]]) -> None:
    outputs = plant.observe()
    for name, values in stored.items():
        values.append(outputs[name])


WAVE = Flapping(40.0, 30.0, 0.51)
"""Gait of figure 7, body held. The paper does not state it; this is the one of its largest thrust in figure 8."""
PEAK = Flapping(50.0, 40.0, 0.6)
TURNS = {
    "phase": Flapping(40.0, 40.0, 0.8, right_phase_deg=0.0),
    "amplitude": Flapping(40.0, 40.0, 0.8, right_amplitude_deg=20.0),
}
SHOWN_EVERY = 4
"""Samples of long runs from one stored sample to the next, for figures and data."""
WINDOWS = {"5_to_10": (5, 10), "10_to_20": (10, 20), "settled": (-6, -1)}


@dataclass(frozen=True, slots=True)
class Settings:
    """Amount of computation; the defaults are those of `rtmms reproduce qu2024`.

    Attributes
    ----------
    frequencies_hz, amplitudes_deg, phases_deg : tuple[float, ...]
        Gaits of figure 8.
    swim_amplitudes_deg : tuple[float, ...], default (20.0, 30.0, 40.0, 50.0)
        Amplitudes of figure 9.
    held_periods : int, default 5
        Periods with the body held.
    settle_s : float, default 60.0
        Duration of a swim, s.
    turn_periods, settled_turn_periods : int
        Shown and simulated periods of a turn.
    coupling_steps_s, coupling_s : tuple[float, ...], float
        Steps and duration of the coupling's error, s.
    balance_steps_s : tuple[float, ...], optional
        Steps of the power balance, s.
    reference_step_s : float, default 0.00025
        Step of the reference of the coupling's error, s.
    rk4_step_s : float | None, default 9e-06
        Step of explicit RK4, s; None: without it.
    readings : tuple[str, ...] | None, optional
        Readings to compute; None: all.
    """

    frequencies_hz: tuple[float, ...] = (0.3, 0.4, 0.51, 0.6)
    amplitudes_deg: tuple[float, ...] = (10.0, 20.0, 30.0, 40.0, 50.0)
    phases_deg: tuple[float, ...] = (-30.0, -20.0, -10.0, 0.0, 10.0, 20.0, 30.0)
    swim_amplitudes_deg: tuple[float, ...] = (20.0, 30.0, 40.0, 50.0)
    held_periods: int = 5
    settle_s: float = 60.0
    turn_periods: int = 20
    settled_turn_periods: int = 40
    coupling_steps_s: tuple[float, ...] = (10e-3, 5e-3, 2e-3, 1e-3)
    coupling_s: float = 5.0
    balance_steps_s: tuple[float, ...] = (2e-3, 1e-3, 5e-4, 1e-4)
    reference_step_s: float = 0.25e-3
    rk4_step_s: float | None = 9e-6
    readings: tuple[str, ...] | None = None


def plant(**parameters: Any) -> Any:
    """Return a manta with the paper's ideal motors, at z = 0.

    Parameters
    ----------
    **parameters : Any
        Parameters of the manta.

    Returns
    -------
    : Manta
        The plant.
    """
    return rtmms.plant.loading.load("manta", **{"actuation": "ideal", "start_depth_m": 0.0, **parameters})


# --- figures 7 and 8: the body held -----------------------------------------------------------------------------------


def held_thrust(held: Any, gait: Flapping, periods: int) -> float:
    """Return the mean thrust of both fins over the last whole period, body held.

    Parameters
    ----------
    held : Any
        The manta, with its body held.
    gait : Flapping
        The gait.
    periods : int
        Periods after the soft start.

    Returns
    -------
    float
        N.
    """
    run = fly(held, gait, gait.ramp_s + periods * gait.period_s, names=("thrust",))
    return run.mean(run.thrust, *_last(run))


def _last(run: Run) -> tuple[float, float]:
    end = float(run.time[-1])
    return end - run.gait.period_s, end


def waves(settings: Settings) -> dict[str, Any]:
    """Compute figure 7.

    It has joint angles (k, 3) deg of the front and the rear chain over two periods, amplitudes and lags.

    Parameters
    ----------
    settings : Settings
        Amount of computation.

    Returns
    -------
    dict[str, Any]
        Data of the figure.
    """
    run = fly(plant(body="fixed"), WAVE, WAVE.ramp_s + (settings.held_periods + 2) * WAVE.period_s,
              names=("joint_position", "rod_angle", "thrust"))  # fmt: skip
    start = float(run.time[-1]) - 2.0 * WAVE.period_s
    inside = run.time >= start
    time, joints = run.time[inside], run.outputs["joint_position"][inside, 0]
    amplitude, phase = fundamental(time, joints, WAVE.frequency_hz)
    peak = fly(plant(body="fixed"), PEAK, PEAK.ramp_s + settings.held_periods * PEAK.period_s, names=("thrust",))
    late = peak.time >= peak.time[-1] - PEAK.period_s
    return {
        "gait": _named(WAVE), "time_s": time - start, "rear_deg": np.degrees(joints[:, :, 0]),
        "front_deg": np.degrees(joints[:, :, -1]), "rear_amplitude_deg": np.degrees(amplitude[:, 0]),
        "front_amplitude_deg": np.degrees(amplitude[:, -1]), "rear_lag_deg": lags_deg(phase[:, 0]),
        "front_lag_deg": lags_deg(phase[:, -1]),
        "chord_lag_deg": np.array([float(lags_deg(phase[j, [-1, 0]])[0]) for j in range(joints.shape[1])]),
        "mean_thrust_n": run.mean(run.thrust, *_last(run)), "peak_thrust_n": float(peak.thrust[late].max()),
        "peak_gait": _named(PEAK),
    }  # fmt: skip


def thrust_sweeps(settings: Settings) -> dict[str, Any]:
    """Compute figure 8: mean thrust (frequencies, amplitudes) at 30 deg of phase and (frequencies, phases) at 30 deg.

    Parameters
    ----------
    settings : Settings
        Amount of computation.

    Returns
    -------
    dict[str, Any]
        Data of the figure.
    """
    held, periods = plant(body="fixed"), settings.held_periods
    amplitude = [
        [held_thrust(held, Flapping(a, 30.0, f), periods) for a in settings.amplitudes_deg]
        for f in settings.frequencies_hz
    ]
    phase = [
        [held_thrust(held, Flapping(30.0, p, f), periods) for p in settings.phases_deg] for f in settings.frequencies_hz
    ]
    by_frequency = np.array(amplitude)[:, -1]
    slope = np.polyfit(np.log(settings.frequencies_hz), np.log(by_frequency), 1)[0]
    return {
        "frequency_hz": np.array(settings.frequencies_hz),
        "amplitude_deg": np.array(settings.amplitudes_deg),
        "thrust_by_amplitude_n": np.array(amplitude),
        "phase_deg": np.array(settings.phases_deg),
        "thrust_by_phase_n": np.array(phase),
        "frequency_exponent": float(slope),
    }


# --- figure 9: swimming straight --------------------------------------------------------------------------------------


def speeds(settings: Settings) -> dict[str, Any]:
    """Compute figure 9: speed over time at each amplitude, and the settled speed.

    Parameters
    ----------
    settings : Settings
        Amount of computation.

    Returns
    -------
    dict[str, Any]
        Data of the figure.
    """
    free, curves, rows = plant(), [], []
    for amplitude in settings.swim_amplitudes_deg:
        gait = Flapping(amplitude, 40.0, 0.6)
        run = fly(free, gait, settings.settle_s)
        curves.append(run.speed)
        rows.append({"amplitude_deg": amplitude, **steady_values(run, free.weight)})
    thin = slice(None, None, SHOWN_EVERY)
    return {"time_s": run.time[thin], "speed_m_s": np.array(curves)[:, thin], "settled": rows}


def steady_values(run: Run, weight: float) -> dict[str, float]:
    """Return speed, its swing, power and cost over the last four whole periods, and the time to 95 % of that speed.

    Parameters
    ----------
    run : Run
        The run.
    weight : float
        Weight of the manta, N.

    Returns
    -------
    dict[str, float]
        Numbers by name.
    """
    period = run.gait.period_s
    end = float(run.time[-1])
    start = end - 4.0 * period
    speed, power = run.mean(run.speed, start, end), run.mean(run.power, start, end)
    last = run.speed[run.time >= run.time[-1] - period]
    area = np.concatenate([[0.0], np.cumsum(0.5 * (run.speed[1:] + run.speed[:-1]) * np.diff(run.time))])
    after = run.time[run.time >= period]
    trailing = (np.interp(after, run.time, area) - np.interp(after - period, run.time, area)) / period
    return {
        "speed_m_s": speed,
        "swing_m_s": float(np.ptp(last)),
        "power_w": power,
        "cost_of_transport": power / (weight * speed),
        "reaches_95_percent_s": float(after[np.argmax(trailing >= 0.95 * speed)]),
        "mean_4_to_10_s_m_s": run.mean(run.speed, 4.0, 10.0),
        "greatest_yaw_rad": float(np.abs(heading(run.outputs["quaternion"])).max()),
    }


# --- figures 10 and 11: turning ---------------------------------------------------------------------------------------


def turns(settings: Settings) -> dict[str, Any]:
    """Compute figures 10 and 11: path, resultant wrench and numbers of both turning gaits.

    Parameters
    ----------
    settings : Settings
        Amount of computation.

    Returns
    -------
    dict[str, Any]
        Data of the figure.
    """
    free = plant()
    return {name: turn(free, gait, settings) for name, gait in TURNS.items()}


def turn(free: Any, gait: Flapping, settings: Settings) -> dict[str, Any]:
    """Compute one turning gait from rest.

    Parameters
    ----------
    free : Any
        The manta.
    gait : Flapping
        The gait.
    settings : Settings
        Amount of computation.

    Returns
    -------
    dict[str, Any]
        Data by name.
    """
    run = fly(free, gait, settings.settled_turn_periods * gait.period_s,
              names=(*OUTPUTS, "acceleration", "angular_acceleration"))  # fmt: skip
    shown = run.time <= settings.turn_periods * gait.period_s + 1e-9
    fins, resultant = run.outputs["thrust"].sum(axis=1), _resultant(free, run)
    first = run.time <= 2.0 * gait.period_s
    late = run.time >= (settings.turn_periods - 5) * gait.period_s
    late &= shown
    yaw_acceleration = run.outputs["angular_acceleration"][:, 2]
    windows = {name: turning(run, *run.periods(*window)) for name, window in WINDOWS.items()}
    return {
        "gait": _named(gait), "time_s": run.time[shown][::2], "position_m": run.outputs["position"][shown][::2],
        "fins_wrench": fins[shown][::2], "resultant_wrench": resultant[shown][::2],
        "turn_rate_deg_s": {name: rate for name, (rate, _) in windows.items()},
        "turn_radius_m": {name: radius for name, (_, radius) in windows.items()},
        "first_yaw_acceleration_rad_s2": float(np.abs(yaw_acceleration[first]).max()),
        "yaw_moment_mean_n_m": float(fins[late, 5].mean()), "yaw_moment_spread_n_m": float(fins[late, 5].std()),
    }  # fmt: skip


def turning(run: Run, start: float, end: float) -> tuple[float, float]:
    """Return turn rate and radius between two instants, as ground speed over turn rate.

    Parameters
    ----------
    run : Run
        The run.
    start, end : float
        Instants, s.

    Returns
    -------
    tuple[float, float]
        deg/s, positive to the left, and m.
    """
    yaw = heading(run.outputs["quaternion"])
    rate = (np.interp(end, run.time, yaw) - np.interp(start, run.time, yaw)) / (end - start)
    step = np.diff(run.outputs["position"][:, :2], axis=0)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(step[:, 0], step[:, 1]))])
    ground = (np.interp(end, run.time, along) - np.interp(start, run.time, along)) / (end - start)
    return float(np.degrees(rate)), float(ground / abs(rate)) if rate else float("inf")


def _resultant(free: Any, run: Run) -> Array:
    """Return (k, 6) N, N m: (35), the wrench that accelerates the body; body frame, about its mass centre."""
    p = free.parameters
    v, w = run.outputs["velocity"], run.outputs["angular_velocity"]
    inertia = np.array(p.body_inertia_kg_m2)
    force = p.body_mass_kg * (run.outputs["acceleration"] + np.cross(w, v))
    moment = inertia * run.outputs["angular_acceleration"] + np.cross(w, inertia * w)
    return np.concatenate([force, moment], axis=1)


def _named(gait: Flapping) -> dict[str, float]:
    right_amplitude = gait.amplitude_deg if gait.right_amplitude_deg is None else gait.right_amplitude_deg
    right_phase = gait.phase_deg if gait.right_phase_deg is None else gait.right_phase_deg
    return {
        "left_amplitude_deg": gait.amplitude_deg,
        "right_amplitude_deg": right_amplitude,
        "left_phase_deg": gait.phase_deg,
        "right_phase_deg": right_phase,
        "frequency_hz": gait.frequency_hz,
    }
