"""Sections 4 and 6, robots on wheels.

Snakeboard and wheeled snake are plants, the unicycle moves by its connection, and roller racer and trikke start from
rest.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.locomotion.paths import Path as Gait
from rtmms.locomotion.paths import gait_path
from rtmms.locomotion.plant import HasLocomotion
from rtmms.locomotion.reconstruction import holonomy
from rtmms.locomotion.reduced_dynamics import rows as contact_rows
from rtmms.locomotion.travelling import travel
from rtmms.mechanism.actuators import JointSpeed
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.plant import TreePlant
from rtmms.plant.loading import load
from rtmms.robots import snake, snakeboard, unicycle
from rtmms.studies.boyer2015_claims import WHEELS
from rtmms.view.gait_figure import draw_motion
from rtmms.view.style import figure_file
from rtmms.view.verdict import Row, rows_of

STEPS = 1500
FORWARD_M = 0.8
TURN = 0.9
TRAVELS = ("snakeboard", "roller_racer", "trikke")


def part(out: Path | None) -> tuple[list[Row], list[Path]]:
    """Compute the rows, and draw the figures.

    Parameters
    ----------
    out : Path | None
        Folder of figures; None: no figures.

    Returns
    -------
    tuple[list[Row], list[Path]]
        Rows of the table, and files of the figures.
    """
    board, follower = _board(), _snake()
    numbers = {
        "board_x": board["x"], "board_turn": board["turn"], "board_speed": board["speed"],
        "board_work": abs(board["work"] - board["energy"]), "snake_x": follower["x"], "snake_y": follower["y"],
        "slip": max(board["slip"], follower["slip"]), **_unicycle(),
    }  # fmt: skip
    return rows_of(WHEELS, numbers), [] if out is None else [_drawn(name, out) for name in TRAVELS]


def _board() -> dict[str, float]:
    """Return the numbers of a period of `drive`, 1:1, with all joints exactly on their sines."""
    law = Law(np.column_stack([np.zeros(3), np.zeros(3), [0.7, 0.3, -0.3]]))
    return _run(TreePlant(snakeboard.describe(snakeboard.Snakeboard()), 2.0 * math.pi / STEPS, law))


def _snake() -> dict[str, float]:
    """Return the numbers of a period of 4 s: the head driven at 0.2 m/s, its first joint a sine, the others follow."""
    motion = np.zeros((8, 3))
    motion[0, 2] = 0.6
    speed = JointSpeed("wheel", neutral=4.0)
    description = snake.describe(snake.Snake())
    return _run(TreePlant(description, 4.0 / STEPS, Law(motion, 0.5 * math.pi), actuators=[speed]))


def _run(plant: Any) -> dict[str, float]:
    n, worst, start = plant.model.n, 0.0, float(plant.observe()["energy"])
    for k in range(STEPS):
        plant.step(plant.neutral)
        if k % 100 == 0:
            y = plant.vector
            a, b = contact_rows(plant.model, y[7 : 7 + n])
            worst = max(worst, float(np.abs(a @ y[7 + n : 13 + n] + b @ y[13 + n :]).max()))
    outputs = plant.observe()
    q = outputs["quaternion"]
    return {
        "x": float(outputs["position"][0]), "y": float(outputs["position"][1]), "turn": 2.0 * math.atan2(q[3], q[0]),
        "speed": float(outputs["velocity"][0]), "slip": worst, "work": float(outputs["work"]),
        "energy": float(outputs["energy"]) - start,
    }  # fmt: skip


def _unicycle() -> dict[str, float]:
    """Return the distance of forward, turn, back, turn back from the closed form x = s (1 - cos), y = -s sin."""
    p = unicycle.Unicycle()
    ahead, about = FORWARD_M / p.wheel_m, TURN * p.half_track_m / p.wheel_m
    corners = [(0.0, 0.0), (ahead, ahead), (ahead - about, ahead + about), (-about, about), (0.0, 0.0)]
    net = holonomy(unicycle.describe(p), Gait.polygon(corners), "nonholonomic")
    exact = (FORWARD_M * (1.0 - math.cos(TURN)), -FORWARD_M * math.sin(TURN), 0.0)
    return {"unicycle": float(np.abs(np.asarray(net) - exact).max())}


def _drawn(name: str, out: Path) -> Path:
    plant: Any = load(name)
    assert isinstance(plant, HasLocomotion)
    assert plant.locomotion is not None
    gaits = plant.locomotion.gaits
    word = next(iter(gaits))
    path = figure_file(out, f"boyer2015-{name}")
    motion = travel(plant.model, gait_path(word, plant.model.n, gaits), cycles=4)
    draw_motion(motion, plant.model.joint_names, f"{name}: four cycles of `{word}` from rest", path)
    return path
