"""The eel of Khalil, Gallot and Boyer (2007): figures 5 to 11 again, and what the paper says in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtmms.analysis.trim import trim
from rtmms.dynamics import body_poses
from rtmms.report.beside import Row, canvas, save, tell
from rtmms.robots import eel
from rtmms.spatial import Array


@dataclass(frozen=True)
class Swim:
    """A run: time (k,) s, nose (k, 3) m, quaternion (k, 4), velocity (k, 3) m/s world, joint and torque (k, 36)."""

    time: Array
    nose: Array
    quaternion: Array
    velocity: Array
    joint: Array
    torque: Array


def swim(seconds: float, dt: float = 4e-3, every: int = 5, **given: object) -> Swim:
    """A motion-driven run with the paper's fluid, sampled every few steps."""
    plant = eel.in_paper_frame(dt=dt, preset="paper", **given)
    rows = []
    n = plant.model.n
    for k in range(round(seconds / dt)):
        if k % every == 0:
            rate = plant.evaluate()
            y = plant.vector
            rows.append(np.concatenate([[plant.time], y[:7], rate[:3], y[7 : 7 + n], plant.torque]))
        plant.step(plant.neutral)
    data = np.array(rows)
    return Swim(data[:, 0], data[:, 1:4], data[:, 4:8], data[:, 8:11], data[:, 11 : 11 + n], data[:, 11 + n :])


def circle(x: Array, z: Array) -> tuple[float, float, float]:
    """Diameter and centre of the circle nearest to points."""
    fit = np.linalg.lstsq(np.column_stack([x, z, np.ones_like(x)]), x**2 + z**2, rcond=None)[0]
    cx, cz = fit[0] / 2.0, fit[1] / 2.0
    return float(2.0 * np.sqrt(fit[2] + cx**2 + cz**2)), float(cx), float(cz)


def rows_of(planar: Swim, loop: Swim) -> list[Row]:
    """What the paper states, and ours."""
    last = planar.time >= planar.time[-1] - 2.0
    speed = float(-np.mean(planar.velocity[last, 0]))
    final = float(-trim(eel.in_paper_frame(preset="paper", dt=4e-3), ["vx", "vy", "wz"], settle=3).travel[0] / 2.0)
    peak = np.max(np.abs(np.vstack([planar.torque, loop.torque])), axis=0)
    yaw, pitch, roll = (float(np.max(peak[k::3])) for k in range(3))
    late = loop.time > 60.0
    diameter, cx, cz = circle(loop.nose[late, 0], loop.nose[late, 2])
    angle = np.unwrap(np.arctan2(loop.nose[late, 2] - cz, loop.nose[late, 0] - cx))
    turn = float((loop.time[-1] - 60.0) / abs(angle[-1] - angle[0]) * 2.0 * np.pi)
    worst = 3 * int(np.argmax(peak[0::3])) + 1
    return [
        Row("speed after 30 s, planar", "final speed at about 30 s", speed, "m/s", False,
            f"{100 * (1 - speed / final):.0f} % below the asymptote of {final:.3f} m/s"),
        Row("nose, sideways", "drawn", float(np.ptp(planar.nose[last, 1]) / 2.0), "m"),
        Row("largest torque, yaw joints", 4.0, yaw, "N m", yaw <= 4.0, f"joint {worst}"),
        Row("largest torque, pitch joints", 4.0, pitch, "N m", pitch <= 4.0),
        Row("largest torque, roll joints", 0.7, roll, "N m", roll <= 0.7,
            f"joint {3 * int(np.argmax(peak[2::3])) + 3}"),
        Row("looping: a circle in the vertical plane", "drawn", diameter, "m across", True),
        Row("looping: time of a loop once steady", "60 s for one", turn, "s", True),
    ]  # fmt: skip


def draw(planar: Swim, loop: Swim, out: Path) -> list[Path]:
    """Figures 5 to 11."""
    made = []
    figure, axes = canvas()
    axes.plot(planar.nose[:, 0], planar.nose[:, 1])
    axes.set(xlabel="x (m)", ylabel="y (m)", title="Fig. 5: nose in the horizontal plane, 30 s", aspect="equal")
    made.append(save(figure, out, "khalil2007-fig05"))
    figure, axes = canvas()
    axes.plot(planar.time, planar.velocity[:, 0])
    axes.set(xlabel="t (s)", ylabel="dx/dt (m/s)", title="Fig. 6: velocity of the head, world")
    made.append(save(figure, out, "khalil2007-fig06"))
    for name, title, data, joints in (
        ("07", "Fig. 7: joints 1, 25, 34", loop.joint, (1, 25, 34)),
        ("08", "Fig. 8: torques of joints 1, 25, 34", loop.torque, (1, 25, 34)),
        ("09", "Fig. 9: torques of joints 2, 26, 35", loop.torque, (2, 26, 35)),
        ("10", "Fig. 10: torques of joints 3, 27, 36", loop.torque, (3, 27, 36)),
    ):
        figure, axes = canvas()
        first = loop.time <= 60.0
        for joint in joints:
            axes.plot(loop.time[first], data[first, joint - 1], label=f"joint {joint}", linewidth=0.8)
        axes.set(xlabel="t (s)", ylabel="rad" if name == "07" else "N m", title=title)
        axes.legend()
        made.append(save(figure, out, f"khalil2007-fig{name}"))
    figure, axes = canvas(size=(6.0, 6.0))
    first = loop.time <= 60.0
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
    made.append(save(figure, out, "khalil2007-fig11"))
    return made


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Run both examples, draw their figures into `out` if given, print the numbers; 0."""
    planar, loop = swim(30.0), swim(120.0, gait="loop")
    figures = draw(planar, loop, out) if out is not None else []
    return tell("khalil2007", rows_of(planar, loop), figures, as_json)
