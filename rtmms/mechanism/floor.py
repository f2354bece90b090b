"""Compute contact of points with a horizontal floor, in kernels: a unilateral spring and damper, and anchored friction.

A point at height z over a floor at h penetrates by d = h - z > 0. With the stiffness k, the damping c and the depth d_0
of a body at rest, the force along the world's z is

    N = max(0, k d - c r z'),   r = min(1, d / d_0)

and along x and y it is -(k s + c r v), scaled back to at most mu N, with s = x - a the distance from its anchor a. The
anchor is where the point touched down. At a step's end it follows at the distance mu k d / k = mu d where s is longer,
so a point at rest does not creep: its force is a spring's. Spring, damper and sliding anchor dissipate energy, and
never add it.

A cheap test skips all work in the air: no point of the tree is farther from the base than `reach`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import INTEGER, Layout, model, number, scratch, state
from rtmms.base.spatial import cross
from rtmms.dynamics.recursion import configure, place
from rtmms.model.floor_rows import F_DAMPING, F_DEPTH, F_FRICTION, F_HEIGHT, F_PLACE, F_ROW, F_STIFFNESS, FLOOR_WIDTH
from rtmms.model.layout import S_TWIST, S_WORLD_POS, S_WORLD_ROT, S_WRENCH

ANCHOR_X, ANCHOR_Y, TOUCHES = range(3)
PRESSES, STORED = range(2)
FLOOR = Layout(
    "Floor",
    model("points", "floor_points", FLOOR_WIDTH), number("reach", unit="m"), number("highest", unit="m"),
    number("count", INTEGER), state("anchor", "floor_points", 3), scratch("loads", "floor_points", 2),
)  # fmt: skip
"""Floors of a tree.

`anchor` has x, y (m, world) and 1 where the point touches. `loads` has N (N) and the energy in the springs (J) of the
last evaluation. `highest` is the height of the highest floor. `count` is the number of points, 0 for a tree without a
floor.
"""


@kernel
def is_near(floor: Any, state: Any) -> bool:
    """Return whether a point of the tree may be below the highest floor.

    Parameters
    ----------
    floor : Record
        Record of `FLOOR`.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.

    Returns
    -------
    bool
        Whether contact is possible.
    """
    height: float = state[2].real
    return height - floor.reach < floor.highest


@kernel
def press(floor: Any, topology: Any, state: Any, s: Any) -> None:
    """Add the floor's forces to S_WRENCH, after `outward`.

    Parameters
    ----------
    floor : Record or None
        Record of `FLOOR`; an argument so that the compiler specialises on None.
    topology : (rows, T_WIDTH) array
        Of the model.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    if floor is not None:  # noqa: SIM102
        if floor.count > 0:
            points, anchor, loads = floor.points, floor.anchor, floor.loads
            for i in range(points.shape[0]):
                loads[i, PRESSES] = loads[i, STORED] = 0.0 * state[2]
            if is_near(floor, state):
                place(topology, state[0:3], state[3:7], s)
                for i in range(points.shape[0]):
                    press_point(points, anchor, loads, i, s)


@kernel
def press_point(points: Any, anchor: Any, loads: Any, i: int, s: Any) -> None:
    """Add the force on one point to S_WRENCH.

    Parameters
    ----------
    points, anchor, loads : array
        Arrays of `FLOOR`.
    i : int
        Index of the point.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    j, w = int(points[i, F_ROW]), S_WORLD_ROT
    px, py, pz = points[i, F_PLACE], points[i, F_PLACE + 1], points[i, F_PLACE + 2]
    z = s[j, S_WORLD_POS + 2] + s[j, w + 6] * px + s[j, w + 7] * py + s[j, w + 8] * pz
    d = points[i, F_HEIGHT] - z
    if not d.real > 0.0:
        return
    cx, cy, cz = cross(s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5], px, py, pz)
    a, b, c = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
    vx = s[j, w] * a + s[j, w + 1] * b + s[j, w + 2] * c
    vy = s[j, w + 3] * a + s[j, w + 4] * b + s[j, w + 5] * c
    vz = s[j, w + 6] * a + s[j, w + 7] * b + s[j, w + 8] * c
    k, slow = points[i, F_STIFFNESS], points[i, F_DAMPING] + 0.0 * d
    if d.real < points[i, F_DEPTH]:
        slow = points[i, F_DAMPING] / points[i, F_DEPTH] * d
    normal = k * d - slow * vz
    if not normal.real > 0.0:
        normal = 0.0 * d
    loads[i, PRESSES], loads[i, STORED] = normal, 0.5 * k * d * d
    x, y = 0.0 * d, 0.0 * d
    if anchor[i, TOUCHES].real > 0.0:
        x = s[j, S_WORLD_POS] + s[j, w] * px + s[j, w + 1] * py + s[j, w + 2] * pz - anchor[i, ANCHOR_X]
        y = s[j, S_WORLD_POS + 1] + s[j, w + 3] * px + s[j, w + 4] * py + s[j, w + 5] * pz - anchor[i, ANCHOR_Y]
        loads[i, STORED] += 0.5 * k * (x * x + y * y)
    x, y = -k * x - slow * vx, -k * y - slow * vy
    size, maximum = x * x + y * y, points[i, F_FRICTION] * normal
    if size.real > (maximum * maximum).real:
        share = maximum / np.sqrt(size)
        x, y = share * x, share * y
    fx = s[j, w] * x + s[j, w + 3] * y + s[j, w + 6] * normal
    fy = s[j, w + 1] * x + s[j, w + 4] * y + s[j, w + 7] * normal
    fz = s[j, w + 2] * x + s[j, w + 5] * y + s[j, w + 8] * normal
    tx, ty, tz = cross(px, py, pz, fx, fy, fz)
    s[j, S_WRENCH] += fx
    s[j, S_WRENCH + 1] += fy
    s[j, S_WRENCH + 2] += fz
    s[j, S_WRENCH + 3] += tx
    s[j, S_WRENCH + 4] += ty
    s[j, S_WRENCH + 5] += tz


@kernel
def finish_floor(floor: Any, tree: Any, work: Any, state: Any) -> None:
    """Move the anchors at a step's end: to points that touch down, and behind points that slide.

    Parameters
    ----------
    floor : Record or None
        Record of `FLOOR`; an argument so that the compiler specialises on None.
    tree : Record
        Record of the compiled model.
    work : Record
        Scratch of an evaluation.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    """
    if floor is not None:  # noqa: SIM102
        if floor.count > 0:
            points, anchor = floor.points, floor.anchor
            if not is_near(floor, state):
                for i in range(points.shape[0]):
                    anchor[i, TOUCHES] = 0.0
                return
            s, q, w = work.s, work.q, S_WORLD_ROT
            for j in range(q.shape[0]):
                q[j] = state[7 + j]
            configure(tree.topology, tree.constant, state[3:7], tree.gravity, q, s)
            place(tree.topology, state[0:3], state[3:7], s)
            for i in range(points.shape[0]):
                j = int(points[i, F_ROW])
                px, py, pz = points[i, F_PLACE], points[i, F_PLACE + 1], points[i, F_PLACE + 2]
                x = s[j, S_WORLD_POS] + s[j, w] * px + s[j, w + 1] * py + s[j, w + 2] * pz
                y = s[j, S_WORLD_POS + 1] + s[j, w + 3] * px + s[j, w + 4] * py + s[j, w + 5] * pz
                z = s[j, S_WORLD_POS + 2] + s[j, w + 6] * px + s[j, w + 7] * py + s[j, w + 8] * pz
                d = points[i, F_HEIGHT] - z
                if not d > 0.0:
                    anchor[i, TOUCHES] = 0.0
                elif anchor[i, TOUCHES] == 0.0:
                    anchor[i, ANCHOR_X], anchor[i, ANCHOR_Y], anchor[i, TOUCHES] = x, y, 1.0
                else:
                    a, b = x - anchor[i, ANCHOR_X], y - anchor[i, ANCHOR_Y]
                    far, maximum = np.sqrt(a * a + b * b), points[i, F_FRICTION] * d
                    if far > maximum:
                        anchor[i, ANCHOR_X] = x - a * maximum / far
                        anchor[i, ANCHOR_Y] = y - b * maximum / far


@kernel
def floor_energy(floor: Any) -> float:
    """Return the energy in the floor's springs at the evaluation just made.

    Parameters
    ----------
    floor : Record or None
        Record of `FLOOR`; an argument so that the compiler specialises on None.

    Returns
    -------
    float
        J.
    """
    energy = 0.0
    if floor is not None:
        for i in range(floor.loads.shape[0]):
            energy += floor.loads[i, STORED]
    return energy
