"""Eel of Khalil, Gallot and Boyer (2007): figures 5 to 11 again, torques of all joints, the paper's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtmms.analysis.trim import trim
from rtmms.base.spatial import Array
from rtmms.dynamics import body_poses
from rtmms.robots import eel
from rtmms.view.tables import canvas, print_rows, save
from rtmms.view.verdict import Claim, at_most

# What Khalil, Gallot and Boyer (2007) state in numbers and in words, and our counterparts.


MAX_YAW = 4.0
"""Limit of the yaw actuators, which the gait keeps according to the paper, N m."""
MAX_ROLL = 0.7
"""Limit of the roll actuators, which the gait keeps according to the paper, N m."""
DRAWN = (1, 25, 34, 2, 26, 35, 3, 27, 36)
"""Joints whose torques figures 8 to 10 show, in the looping."""


def _limit(joint: int) -> float:
    return MAX_ROLL if joint % 3 == 0 else MAX_YAW


CLAIMS = (
    Claim("agreement_base", "head's acceleration, direct against inverse model, both examples", "the same results",
          "of the largest", at_most(1e-8), ".0e", must=True,
          note="the direct model gets q, its rate and the torques of the inverse one, as in the paper, every 20 ms; "
               "torques alone are unstable, an error grows at 20 1/s"),
    Claim("agreement_joints", "joints' accelerations, direct against inverse model", "the same results",
          "of the largest", at_most(1e-8), ".0e", must=True),
    Claim("speed", "speed, 28 to 30 s, planar", "a curve", "m/s", None, ".3f"),
    Claim("final", "final speed, planar (trim)", "a curve", "m/s", None, ".3f"),
    Claim("missing", "speed at 30 s below the final one", "about 30 s to the final speed", "%", at_most(5.0), ".0f",
          why="other ends of the body (rounded over 0.02 to 0.18 m) give 14 to 16 %, a soft start of 0.5 s 14 %, a "
              "lateral drag of 0.8 in place of 1 16 %; twice the axial drag (c1 = 0.02) 6 %, at a final speed of 0.39 "
              "m/s, so that the paper's eel had more drag along itself, or was not yet at its final speed"),
    Claim("sway", "nose, sideways, planar", "a curve", "m", None, ".4f"),
    Claim("yaw", "largest torque of the yaw joints, both examples", MAX_YAW, "N m", at_most(MAX_YAW), ".2f",
          why="a soft start twice as long gives 4.98, other ends of the body 5.1 to 5.3, Kirchhoff's added mass 5.0, "
              "half the step the same, lateral added mass lower by 30 % (c5 = 0.7) 4.25: none keeps the limit"),
    Claim("pitch", "largest torque of the pitch joints, both examples", MAX_YAW, "N m", at_most(MAX_YAW), ".2f"),
    Claim("roll", "largest torque of the roll joints, both examples", MAX_ROLL, "N m", at_most(MAX_ROLL), ".3f"),
    *(Claim(f"drawn_{joint}", f"largest torque of joint {joint}, looping, 60 s", _limit(joint), "N m",
            at_most(_limit(joint)), ".3f") for joint in DRAWN),
    Claim("planar_25", "largest torque of joint 25, planar", MAX_YAW, "N m", at_most(MAX_YAW), ".2f"),
    Claim("roundness", "looping: largest distance from a circle, once steady", "a vertical circular trajectory",
          "of the radius", at_most(0.05), ".3f"),
    Claim("out_of_plane", "looping: way out of the vertical plane in 60 s", "a vertical circular trajectory",
          "of the diameter", at_most(0.05), ".3f",
          why="the first swing of the tail sets the course: a soft start of 4 s in place of 2 leaves a seventh of it; "
              "half the step changes nothing"),
    Claim("diameter", "looping: diameter of that circle", "a curve", "m", None, ".2f"),
    Claim("loop_time", "looping: time of a loop, once steady", "60 s are shown", "s", None, ".0f"),
    Claim("turned", "looping: turned within 60 s from rest", "60 s are shown", "deg", None, ".0f",
          note="the paper does not state that the circle closes within them"),
)  # fmt: skip


# Both examples of Khalil, Gallot and Boyer (2007), run, and the numbers that are read off them.


STEP_S = 4e-3
EVERY = 5
PERIOD_S = 2.0
STEADY_S = 60.0
"""Time from which on the looping is steady, s."""
SHOWN_S = 60.0
"""Duration that the paper shows, s."""


@dataclass(frozen=True)
class Swim:
    """Run of the eel.

    Attributes
    ----------
    time : Array
        (k,) times, s.
    nose : Array
        (k, 3) positions of the nose, m.
    quaternion : Array
        (k, 4) quaternions.
    joint : Array
        (k, 36) joint angles, rad.
    torque : Array
        (k, 36) joint torques, N m.
    apart : Array
        (2,) error of the direct model against the inverse one along the run, of the largest acceleration: head (all six
        components), joints.
    """

    time: Array
    nose: Array
    quaternion: Array
    joint: Array
    torque: Array
    apart: Array


def swim(seconds: float, dt: float = STEP_S, every: int = EVERY, **values: object) -> Swim:
    """Run the motion-driven eel with the paper's fluid, and the direct model beside it.

    Parameters
    ----------
    seconds : float
        Simulated time, s.
    dt : float, default STEP_S
        Step, s.
    every : int, default EVERY
        Steps between samples.
    **values : object
        Parameters of the eel.

    Returns
    -------
    Swim
        The run.
    """
    plant = eel.in_paper_frame(dt=dt, preset="paper", **values)
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
    """Return the speed of the periodic swim, in any direction.

    Returns
    -------
    float
        m/s.
    """
    result = trim(eel.in_paper_frame(preset="paper", dt=STEP_S), ["vx", "vy", "wz"], settle=3)
    return float(np.linalg.norm(result.travel)) / PERIOD_S


def circle(x: Array, z: Array) -> tuple[float, float, float]:
    """Fit a circle to points.

    Parameters
    ----------
    x, z : Array
        (k,) coordinates.

    Returns
    -------
    tuple[float, float, float]
        Diameter and centre.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms.studies.khalil2007 import circle
    >>> round(circle(np.array([1.0, 0.0, -1.0, 0.0]), np.array([0.0, 1.0, 0.0, -1.0]))[0], 6)
    2.0
    """
    fit = np.linalg.lstsq(np.column_stack([x, z, np.ones_like(x)]), x**2 + z**2, rcond=None)[0]
    cx, cz = fit[0] / 2.0, fit[1] / 2.0
    return float(2.0 * np.sqrt(fit[2] + cx**2 + cz**2)), float(cx), float(cz)


def along(run: Swim) -> tuple[float, float]:
    """Return the mean speed over the last period, and half the sway across its direction.

    Parameters
    ----------
    run : Swim
        The run.

    Returns
    -------
    tuple[float, float]
        m/s and m.
    """
    last = run.time >= run.time[-1] - PERIOD_S - 1e-9
    displacement = run.nose[last][-1] - run.nose[last][0]
    across = np.array([-displacement[1], displacement[0]]) / np.hypot(displacement[0], displacement[1])
    return float(np.linalg.norm(displacement)) / PERIOD_S, float(np.ptp(run.nose[last, :2] @ across)) / 2.0


def heading(run: Swim) -> Array:
    """Return the turn of the path in the vertical plane since the first period; directions are over a period.

    Parameters
    ----------
    run : Swim
        The run.

    Returns
    -------
    Array
        (k,) deg.
    """
    count = round(PERIOD_S / (run.time[1] - run.time[0]))
    displacements = run.nose[count:] - run.nose[:-count]
    angle = np.degrees(np.unwrap(np.arctan2(displacements[:, 2], displacements[:, 0])))
    turned = np.interp(run.time - PERIOD_S / 2.0, run.time[: len(angle)], angle)
    return np.asarray(np.abs(turned - turned[0]))


def numbers(planar: Swim, loop: Swim, final: float) -> dict[str, float]:
    """Return the numbers by the keys of CLAIMS.

    Parameters
    ----------
    planar, loop : Swim
        Runs of both examples.
    final : float
        Speed of the periodic swim, m/s.

    Returns
    -------
    dict[str, float]
        Numbers by key.
    """
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
    """Return which joint needs the largest torque, at which time, and the largest later one.

    Parameters
    ----------
    planar, loop : Swim
        Runs of both examples.

    Returns
    -------
    dict[str, str]
        Texts by the keys of CLAIMS.
    """
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
    """Return y of the nose (k,) m, its mean over a period, as its sway is no motion out of the plane."""
    count = round(PERIOD_S / (run.time[1] - run.time[0]))
    total = np.concatenate([[0.0], np.cumsum(run.nose[:, 1])])
    mean = (total[count:] - total[:-count]) / count
    return np.asarray(np.interp(run.time, run.time[: len(mean)] + PERIOD_S / 2.0, mean))


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Run both examples, draw their figures, and print the numbers.

    The status is 1 if a necessary result does not hold.

    Parameters
    ----------
    out : Path | None, optional
        Folder of figures; None: no figures.
    as_json : bool, default False
        Print JSON.

    Returns
    -------
    int
        Exit status.
    """
    planar, loop = swim(30.0), swim(120.0, gait="loop")
    result, more = numbers(planar, loop, final_speed()), remarks(planar, loop)
    rows = [claim.row(result[claim.key], remark=more.get(claim.key, "")) for claim in CLAIMS]
    return print_rows("khalil2007", rows, draw(planar, loop, out) if out is not None else [], as_json, out)


def draw(planar: Swim, loop: Swim, out: Path) -> list[Path]:
    """Draw all figures.

    Parameters
    ----------
    planar, loop : Swim
        Runs of both examples.
    out : Path
        Folder of the figures.

    Returns
    -------
    list[Path]
        Files of the figures.
    """
    return [_path(planar, out), _speed(planar, out), *_joints(loop, out), _looping(loop, out), _all(planar, loop, out)]


def _path(planar: Swim, out: Path) -> Path:
    """Draw the path, a hundred times as long as the sway is wide: each axis has its own scale."""
    figure, axes = canvas()
    axes.plot(planar.nose[:, 0], 1e3 * planar.nose[:, 1])
    axes.set(xlabel="x (m)", ylabel="y (mm)", title="Fig. 5: nose in the horizontal plane, 30 s (y stretched)")
    return save(figure, out, "khalil2007-fig05")


def _speed(planar: Swim, out: Path) -> Path:
    figure, axes = canvas()
    axes.plot(planar.time, np.gradient(planar.nose[:, 0], planar.time))
    axes.set(xlabel="t (s)", ylabel="dx/dt (m/s)", title="Fig. 6: velocity of the head, world")
    return save(figure, out, "khalil2007-fig06")


def _joints(loop: Swim, out: Path) -> list[Path]:
    built = []
    for name, title, data, joints in (
        ("07", "Fig. 7: joints 1, 25, 34", loop.joint, (1, 25, 34)),
        ("08", "Fig. 8: torques of joints 1, 25, 34", loop.torque, (1, 25, 34)),
        ("09", "Fig. 9: torques of joints 2, 26, 35", loop.torque, (2, 26, 35)),
        ("10", "Fig. 10: torques of joints 3, 27, 36", loop.torque, (3, 27, 36)),
    ):
        figure, axes = canvas()
        first = loop.time <= SHOWN_S
        for joint in joints:
            axes.plot(loop.time[first], data[first, joint - 1], label=f"joint {joint}", linewidth=0.8)
        axes.set(xlabel="t (s)", ylabel="rad" if name == "07" else "N m", title=title)
        axes.legend()
        built.append(save(figure, out, f"khalil2007-fig{name}"))
    return built


def _looping(loop: Swim, out: Path) -> Path:
    figure, axes = canvas(size=(6.0, 6.0))
    first = loop.time <= SHOWN_S
    axes.plot(loop.nose[first, 0], loop.nose[first, 2], linewidth=0.8)
    model = eel.in_paper_frame(preset="paper").model
    for t in range(6, 61, 6):
        k = int(np.argmin(np.abs(loop.time - t)))
        state = model.state()
        state.position, state.orientation, state.q = loop.nose[k], loop.quaternion[k], loop.joint[k]
        _, position = body_poses(model, state)
        links = [i for i, name in enumerate(model.body_names) if name == "head" or name.startswith("link")]
        axes.plot(position[links, 0], position[links, 2], "k", linewidth=1.2)
    axes.set(xlabel="x (m)", ylabel="z (m)", title="Fig. 11: looping, the eel every 6 s", aspect="equal")
    return save(figure, out, "khalil2007-fig11")


def _all(planar: Swim, loop: Swim, out: Path) -> Path:
    """Draw the largest torque of each of the 36 joints beside the actuators' limits."""
    figure, axes = canvas(3, 1, (7.0, 7.0))
    number = np.arange(1, planar.torque.shape[1] // 3 + 1)
    for k, (panel, kind, limit) in enumerate(
        zip(axes, ("yaw", "pitch", "roll"), (MAX_YAW, MAX_YAW, MAX_ROLL), strict=True)
    ):
        for run, name, shift in ((planar, "planar, 30 s", -0.2), (loop, "looping, 120 s", 0.2)):
            panel.bar(number + shift, np.abs(run.torque[:, k::3]).max(axis=0), 0.4, label=name)
        panel.axhline(limit, color="k", linestyle=":", linewidth=0.8)
        panel.set(xticks=number, xticklabels=[str(3 * i - 2 + k) for i in number], ylabel=f"{kind}, N m")
    axes[0].set(title="Largest torque of each joint (dotted: the limits that the paper states)")
    axes[0].legend()
    axes[-1].set(xlabel="joint")
    return save(figure, out, "khalil2007-torques")
