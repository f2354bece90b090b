"""The eel of Khalil, Gallot and Boyer (2007): figures 5 to 11 again, the torques of all joints, and what the paper says
in numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rtmms.dynamics import body_poses
from rtmms.papers.khalil2007.claims import CLAIMS, ROLL, YAW
from rtmms.papers.khalil2007.runs import SHOWN_S, Swim, final_speed, numbers, remarks, swim
from rtmms.report.beside import canvas, save, tell
from rtmms.robots import eel


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Run both examples, draw their figures into `out` if given, print the numbers; 1 if what must hold does not."""
    planar, loop = swim(30.0), swim(120.0, gait="loop")
    found, more = numbers(planar, loop, final_speed()), remarks(planar, loop)
    rows = [claim.row(found[claim.key], remark=more.get(claim.key, "")) for claim in CLAIMS]
    return tell("khalil2007", rows, draw(planar, loop, out) if out is not None else [], as_json, out)


def draw(planar: Swim, loop: Swim, out: Path) -> list[Path]:
    """All figures."""
    return [_path(planar, out), _speed(planar, out), *_joints(loop, out), _looping(loop, out), _all(planar, loop, out)]


def _path(planar: Swim, out: Path) -> Path:
    """The way is a hundred times as long as the sway is wide: each axis has its own scale."""
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
    made = []
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
        made.append(save(figure, out, f"khalil2007-fig{name}"))
    return made


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
    """The largest torque of each of the 36 joints beside the actuators' limits."""
    figure, axes = canvas(3, 1, (7.0, 7.0))
    number = np.arange(1, planar.torque.shape[1] // 3 + 1)
    for k, (panel, kind, limit) in enumerate(zip(axes, ("yaw", "pitch", "roll"), (YAW, YAW, ROLL), strict=True)):
        for run, name, shift in ((planar, "planar, 30 s", -0.2), (loop, "looping, 120 s", 0.2)):
            panel.bar(number + shift, np.abs(run.torque[:, k::3]).max(axis=0), 0.4, label=name)
        panel.axhline(limit, color="k", linestyle=":", linewidth=0.8)
        panel.set(xticks=number, xticklabels=[str(3 * i - 2 + k) for i in number], ylabel=f"{kind}, N m")
    axes[0].set(title="Largest torque of each joint (dotted: the limits that the paper states)")
    axes[0].legend()
    axes[-1].set(xlabel="joint")
    return save(figure, out, "khalil2007-torques")
