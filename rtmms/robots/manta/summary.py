"""What a run of the manta amounts to: means over whole flapping periods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rtmms.spatial import Array, heading

TRACE_OUTPUTS = ("position", "quaternion", "velocity", "thrust", "rod_power", "rod_angle", "tip")
BACK = 1
MIN_TURN = 1e-7
MIN_SPEED = 1e-9


def window(time: Array, angle: Array) -> tuple[float, float, int]:
    """(start, end, cycles): the last whole cycles of a rod within the second half of the run.

    Cycles run from one up-crossing of the rod's mean (over that half) to the next; where there are fewer than two
    crossings, the whole second half with 0 cycles.
    """
    half = time >= time[0] + 0.5 * (time[-1] - time[0])
    t, a = time[half], angle[half]
    if len(t) < 3:
        return float(time[0]), float(time[-1]), 0
    a = a - a.mean()
    if np.ptp(a) < 1e-6:
        return float(t[0]), float(t[-1]), 0
    up = np.flatnonzero((a[:-1] < 0.0) & (a[1:] >= 0.0))
    if len(up) < 2:
        return float(t[0]), float(t[-1]), 0
    cross = t[up] - a[up] * (t[up + 1] - t[up]) / (a[up + 1] - a[up])
    return float(cross[0]), float(cross[-1]), len(cross) - 1


def mean(time: Array, values: Array, start: float, end: float) -> float:
    """Time mean by the trapezoidal rule, with the ends interpolated."""
    inside = (time > start) & (time < end)
    t = np.concatenate([[start], time[inside], [end]])
    v = np.concatenate([[np.interp(start, time, values)], values[inside], [np.interp(end, time, values)]])
    return float(np.trapezoid(v, t) / (end - start)) if end > start else float(v[0])


def summarise(time: Array, trace: Mapping[str, Array], weight: float) -> dict[str, float | None]:
    """The manta's summary; None where a number is not defined (a cost without speed, a radius without a turn).

    time (k,) s; trace of TRACE_OUTPUTS, (k, ...) each; weight N in air.
    strouhal = frequency x peak-to-peak height of the left fin's rear tip / speed.
    """
    if len(time) < 2:
        names = ("mean_speed_m_s", "mean_thrust_n", "mean_power_w", "cost_of_transport", "strouhal", "turn_rate_deg_s")
        return dict.fromkeys((*names, "turn_radius_m"), None)
    start, end, cycles = window(time, trace["rod_angle"][:, BACK])
    speed = mean(time, trace["velocity"][:, 0], start, end)
    thrust = mean(time, trace["thrust"][:, :, 0].sum(axis=1), start, end)
    power = mean(time, trace["rod_power"].reshape(len(time)), start, end)
    yaw = heading(trace["quaternion"])
    turn = float(np.interp(end, time, yaw) - np.interp(start, time, yaw)) / max(end - start, 1e-12)
    inside = (time >= start) & (time <= end)
    strouhal = None
    if cycles and speed > MIN_SPEED:
        strouhal = cycles / (end - start) * float(np.ptp(trace["tip"][inside, 0, 2])) / speed
    step = np.diff(trace["position"][:, :2], axis=0)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(step[:, 0], step[:, 1]))])
    ground = float(np.interp(end, time, along) - np.interp(start, time, along)) / max(end - start, 1e-12)
    return {
        "mean_speed_m_s": speed,
        "mean_thrust_n": thrust,
        "mean_power_w": power,
        "cost_of_transport": power / (weight * speed) if speed > MIN_SPEED and weight > 0.0 else None,
        "strouhal": strouhal,
        "turn_rate_deg_s": float(np.degrees(turn)),
        "turn_radius_m": ground / abs(turn) if abs(turn) > MIN_TURN else None,
    }
