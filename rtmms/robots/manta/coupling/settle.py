"""What follows from the coordinates of a state (rtmms.robots.manta.chart): the rest of the rods' motion, supports, and
the lanes without a chain."""

from __future__ import annotations

from typing import Any

from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling.interface import move_supports
from rtmms.robots.manta.coupling.layout import OK, RODS, SINGULAR, SUPPORTS
from rtmms.robots.manta.kernels.fin_layout import LANES
from rtmms.robots.manta.kernels.rods import ROD_SIZE, SERVO
from rtmms.robots.manta.kernels.servo import servo_acceleration


@kernel
def settle_rods(finned: Any, s: Array) -> None:
    """The rest of the rods' motion in a state s."""
    servo, dt = finned.servo, finned.dt
    for r in range(4):
        at = RODS + r * ROD_SIZE
        if finned.actuation == SERVO:
            s[at + 2] = servo_acceleration(s[at], s[at + 1], s[at + 3], servo[0], servo[1], servo[4], servo[5])
        else:
            last, before = s[at + 3], s[at + 4]
            third = 6.0 * s[at] - 4.0 * before - last  # the spline's oldest control point
            s[at + 1], s[at + 2] = (last - third) / (2.0 * dt), (last - 2.0 * before + third) / (dt * dt)


@kernel
def settle(manta: Any) -> int:
    """Put it in order in manta.state, a record of layout.MANTA; SINGULAR where the supports are."""
    finned, s, joints = manta.finned, manta.state, manta.joints
    settle_rods(finned, s)
    links, blocks = finned.links, finned.blocks
    own = finned.chains - (blocks - 1) * LANES  # chains of a fin's last block; its other lanes move as the last of them
    for f in range(2):
        for j in range(links):
            row = ((f + 1) * blocks - 1) * links + j
            for lane in range(own, LANES):
                joints[row, lane], joints[row, LANES + lane] = joints[row, own - 1], joints[row, LANES + own - 1]
    return OK if move_supports(finned, s, RODS, ROD_SIZE, s, SUPPORTS) else SINGULAR
