"""Both examples of Khalil, Gallot and Boyer (2007), run, and the numbers that are read off them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmms.analysis.trim import trim
from rtmms.papers.khalil2007.claims import DRAWN
from rtmms.robots import eel
from rtmms.spatial import Array

STEP_S, EVERY = 4e-3, 5
PERIOD_S = 2.0
STEADY_S, SHOWN_S = 60.0, 60.0
"""The looping is steady from then on; the paper shows it so long."""


@dataclass(frozen=True)
class Swim:
    """A run: time (k,) s, nose (k, 3) m, quaternion (k, 4), joint (k, 36) rad and torque (k, 36) N m.

    apart  (2,) by how much the direct model is off the inverse one along the run, of the largest acceleration: head
           (all six components), joints
    """

    time: Array
    nose: Array
    quaternion: Array
    joint: Array
    torque: Array
    apart: Array


def swim(seconds: float, dt: float = STEP_S, every: int = EVERY, **given: object) -> Swim:
    """A motion-driven run with the paper's fluid, sampled every few steps, and the direct model beside it."""
    plant = eel.in_paper_frame(dt=dt, preset="paper", **given)
    direct = eel.in_paper_frame(dt=dt, preset="paper", drive="torque", gait="none", kp_n_m=0.0, kd_n_m_s=0.0)
    rows, apart, largest = [], np.zeros(2), np.zeros(2)
    n = plant.model.n
    for k in range(round(seconds / dt)):
        if k % every == 0:
            rate, y = plant.evaluate(), plant.vector
            rows.append(np.concatenate([[plant.time], y[: 7 + n], plant.torque]))
            direct.vector[:], direct.system.hold.torque[:] = y, plant.torque
            off = np.abs(direct.evaluate() - rate)[6 + n :]
            for part, where in enumerate((slice(6), slice(6, None))):
                apart[part] = max(apart[part], off[where].max())
                largest[part] = max(largest[part], np.abs(rate[6 + n :][where]).max())
        plant.step(plant.neutral)
    data = np.array(rows)
    return Swim(
        data[:, 0], data[:, 1:4], data[:, 4:8], data[:, 8 : 8 + n], data[:, 8 + n :], apart / np.maximum(largest, 1e-12)
    )


def final_speed() -> float:
    """m/s, of the periodic swim, whichever way it goes."""
    found = trim(eel.in_paper_frame(preset="paper", dt=STEP_S), ["vx", "vy", "wz"], settle=3)
    return float(np.linalg.norm(found.travel)) / PERIOD_S


def circle(x: Array, z: Array) -> tuple[float, float, float]:
    """Diameter and centre of the circle nearest to points."""
    fit = np.linalg.lstsq(np.column_stack([x, z, np.ones_like(x)]), x**2 + z**2, rcond=None)[0]
    cx, cz = fit[0] / 2.0, fit[1] / 2.0
    return float(2.0 * np.sqrt(fit[2] + cx**2 + cz**2)), float(cx), float(cz)


def along(run: Swim) -> tuple[float, float]:
    """(m/s, m) mean speed over the last period and half the sway across its way, whichever way that goes."""
    last = run.time >= run.time[-1] - PERIOD_S - 1e-9
    way = run.nose[last][-1] - run.nose[last][0]
    across = np.array([-way[1], way[0]]) / np.hypot(way[0], way[1])
    return float(np.linalg.norm(way)) / PERIOD_S, float(np.ptp(run.nose[last, :2] @ across)) / 2.0


def heading(run: Swim) -> Array:
    """(k,) deg by which the path has turned in the vertical plane since the first period; the way is over a period."""
    count = round(PERIOD_S / (run.time[1] - run.time[0]))
    way = run.nose[count:] - run.nose[:-count]
    angle = np.degrees(np.unwrap(np.arctan2(way[:, 2], way[:, 0])))
    turned = np.interp(run.time - PERIOD_S / 2.0, run.time[: len(angle)], angle)
    return np.asarray(np.abs(turned - turned[0]))


def numbers(planar: Swim, loop: Swim, final: float) -> dict[str, float]:
    """By the keys of CLAIMS."""
    speed, sway = along(planar)
    flat, looped = np.abs(planar.torque).max(axis=0), np.abs(loop.torque).max(axis=0)
    shown, late = loop.time <= SHOWN_S, loop.time > STEADY_S
    in_figures = np.abs(loop.torque[shown]).max(axis=0)
    diameter, cx, cz = circle(loop.nose[late, 0], loop.nose[late, 2])
    x, z = loop.nose[late, 0] - cx, loop.nose[late, 2] - cz
    angle = np.unwrap(np.arctan2(z, x))
    apart = np.maximum(planar.apart, loop.apart)
    return {
        "agreement_base": float(apart[0]), "agreement_joints": float(apart[1]),
        "speed": speed, "final": final, "missing": 100.0 * (1.0 - speed / final), "sway": sway,
        "yaw": float(max(flat[0::3].max(), looped[0::3].max())),
        "pitch": float(max(flat[1::3].max(), looped[1::3].max())),
        "roll": float(max(flat[2::3].max(), looped[2::3].max())),
        **{f"drawn_{joint}": float(in_figures[joint - 1]) for joint in DRAWN},
        "planar_25": float(flat[24]),
        "roundness": float(np.abs(2.0 * np.hypot(x, z) / diameter - 1.0).max()),
        "out_of_plane": float(np.abs(_smooth(loop)[shown]).max()) / diameter,
        "diameter": diameter,
        "loop_time": float((loop.time[-1] - loop.time[late][0]) / abs(angle[-1] - angle[0]) * 2.0 * np.pi),
        "turned": float(np.interp(SHOWN_S, loop.time, heading(loop))),
    }  # fmt: skip


def remarks(planar: Swim, loop: Swim) -> dict[str, str]:
    """Which joint needs the largest torque, when, and what is left of it later; by the keys of CLAIMS."""
    out = {}
    for key, run, first, later in (("yaw", planar, 0, planar.time[-1] - PERIOD_S), ("roll", loop, 2, 30.0)):
        size = np.abs(run.torque[:, first::3])
        when, joint = np.unravel_index(int(np.argmax(size)), size.shape)
        left = float(size[run.time >= later].max())
        out[key] = (
            f"of joint {3 * joint + first + 1}, {run.time[when]:.1f} s from the start; {left:.3g} from {later:.0f} s on"
        )
    return out


def _smooth(run: Swim) -> Array:
    """(k,) m, y of the nose, mean over a period: its sway is no way out of the plane."""
    count = round(PERIOD_S / (run.time[1] - run.time[0]))
    total = np.concatenate([[0.0], np.cumsum(run.nose[:, 1])])
    mean = (total[count:] - total[:-count]) / count
    return np.asarray(np.interp(run.time, run.time[: len(mean)] + PERIOD_S / 2.0, mean))
