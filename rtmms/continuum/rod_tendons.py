"""Tendons of a tree whose rods bend by strain modes: their points on rods, and what they do to the rods' strains.

A point on a rod stands at one of its grid's points; its force F there, carried to the root as a wrench w = (F, p x F),
is J^T w on the strains and w on the root, by virtual work. All else is as of any tree (rtmms.mechanism.tendons).
"""

from __future__ import annotations

from typing import Any

from rtmms.continuum.layout import P_POS, P_ROT, P_TWIST
from rtmms.jit import kernel
from rtmms.mechanism.tendons import (
    AT,
    COUNT,
    FIRST,
    MOVES,
    PLACE,
    ROW,
    force,
    place_points,
    push_bodies,
    run_along,
    tendon_loss,
    tighten,
)
from rtmms.memory import Layout, scratch, state
from rtmms.model.layout import S_TWIST, S_WORLD_POS, S_WORLD_ROT
from rtmms.spatial import cross, scalar

PULLED = Layout(
    "Pulled", state("command", "commands"), state("lost", 1, unit="J"), scratch("wrench", "rods", "along", 6)
)  # fmt: skip
"""command: of all actuators; lost: in friction and dampers of tendons; wrench: of tendons on each point of each rod, in
the root's frame about the root."""


@scalar
def in_root(points: Any, k: Any, s: Any) -> Any:
    """A tendon's point k on a rod, m, in the root's frame. s: the rod's points."""
    i, y, z = int(points[k, PLACE]), points[k, PLACE + 1], points[k, PLACE + 2]
    r = P_ROT
    return (
        s[i, P_POS] + s[i, r + 1] * y + s[i, r + 2] * z,
        s[i, P_POS + 1] + s[i, r + 4] * y + s[i, r + 5] * z,
        s[i, P_POS + 2] + s[i, r + 7] * y + s[i, r + 8] * z,
    )


@kernel
def place_on_rod(tendons: Any, r: int, place: Any, j: int, head: Any, rod: Any, s: Any) -> None:
    """Where the tendons' points on rod r are and how they move, in the world.

    place (12,) of the root on row j;  head (3, 6) see root_motion;  rod (along, P_WIDTH) after `carry_along`
    """
    points, room, w = tendons.points, tendons.room, S_WORLD_ROT
    for k in range(points.shape[0]):
        if points[k, ROW] == -1.0 - r:
            i = int(points[k, PLACE])
            px, py, pz = in_root(points, k, rod)
            t = P_TWIST
            cx, cy, cz = cross(
                head[2, 3] + rod[i, t + 3], head[2, 4] + rod[i, t + 4], head[2, 5] + rod[i, t + 5], px, py, pz
            )
            vx, vy, vz = head[2, 0] + rod[i, t] + cx, head[2, 1] + rod[i, t + 1] + cy, head[2, 2] + rod[i, t + 2] + cz
            qx = place[9] + place[0] * px + place[1] * py + place[2] * pz
            qy = place[10] + place[3] * px + place[4] * py + place[5] * pz
            qz = place[11] + place[6] * px + place[7] * py + place[8] * pz
            ux = place[0] * vx + place[1] * vy + place[2] * vz
            uy = place[3] * vx + place[4] * vy + place[5] * vz
            uz = place[6] * vx + place[7] * vy + place[8] * vz
            for a in range(3):
                x, y, z = s[j, w + 3 * a], s[j, w + 3 * a + 1], s[j, w + 3 * a + 2]
                room[k, AT + a] = s[j, S_WORLD_POS + a] + x * qx + y * qy + z * qz
                room[k, MOVES + a] = x * ux + y * uy + z * uz


@kernel
def pull_rods(tendons: Any, pulled: Any, elapsed: float, carriers: Any, places: Any, rods: Any, s: Any) -> None:
    """After `place_on_rod` of every rod: the tendons' forces into S_WRENCH and `pulled.wrench`."""
    numbers, points, room, wrench = tendons.numbers, tendons.points, tendons.room, pulled.wrench
    wrench[:, :, :] = 0.0 * s[0, S_TWIST]
    for i in range(numbers.shape[0]):
        first, last = int(numbers[i, FIRST]), int(numbers[i, FIRST]) + int(numbers[i, COUNT]) - 1
        place_points(points, room, first, last - first + 1, s)
        length, rate = run_along(room, first, last - first + 1)
        tighten(tendons, pulled.command, elapsed, i, length, rate)
        push_bodies(points, room, first, last, s)
        for k in range(first, last + 1):
            if points[k, ROW] < 0.0:
                r = int(-1.0 - points[k, ROW])
                j, node, p, w = carriers[r], int(points[k, PLACE]), places[r], S_WORLD_ROT
                x, y, z = force(room, k, first, last)
                fx = s[j, w] * x + s[j, w + 3] * y + s[j, w + 6] * z
                fy = s[j, w + 1] * x + s[j, w + 4] * y + s[j, w + 7] * z
                fz = s[j, w + 2] * x + s[j, w + 5] * y + s[j, w + 8] * z
                gx, gy, gz = (
                    p[0] * fx + p[3] * fy + p[6] * fz, p[1] * fx + p[4] * fy + p[7] * fz,
                    p[2] * fx + p[5] * fy + p[8] * fz,
                )  # fmt: skip
                ax, ay, az = in_root(points, k, rods[r])
                mx, my, mz = cross(ax, ay, az, gx, gy, gz)
                one = wrench[r, node]
                one[0], one[1], one[2] = one[0] + gx, one[1] + gy, one[2] + gz
                one[3], one[4], one[5] = one[3] + mx, one[4] + my, one[5] + mz


@kernel
def lose(pulled: Any, tendons: Any, h: float) -> None:
    """Add what friction and dampers of tendons take at the evaluation just made, times h. pulled: None without any."""
    if pulled is not None:
        pulled.lost[0] += h * tendon_loss(tendons)


@kernel
def strain_under(wrench: Any, jacobian: Any, left: Any) -> None:
    """Take what pulls at a rod's points from left (6 + m,), its bias on root and strains. wrench: None for nothing."""
    if wrench is not None:
        for i in range(wrench.shape[0]):
            for k in range(6):
                left[k] -= wrench[i, k]
                for a in range(jacobian.shape[0]):
                    left[6 + a] -= jacobian[a, i, k] * wrench[i, k]
