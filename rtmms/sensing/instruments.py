"""What each kind of instrument would read if it were perfect, from the motion of the body it is fixed to."""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.sensing.layout import (
    ACCELEROMETER,
    B_KIND,
    B_MORE,
    B_PLACE,
    B_ROTATION,
    B_SIZE,
    DEPTH,
    DVL,
    GPS,
    GYRO,
    M_BEFORE,
    M_EARLIER,
    M_GRAVITY,
    M_POSITION,
    M_QUATERNION,
    M_RATE,
    M_TIME,
    M_VELOCITY,
    MAGNETOMETER,
    RANGES,
)


@kernel
def turned(motion: Array, at: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Body -> world by the quaternion at motion[at]: v + 2 w (u x v) + 2 u x (u x v)."""
    w, a, b, c = motion[at], motion[at + 1], motion[at + 2], motion[at + 3]
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (
        x + w * tx + (b * tz - c * ty),
        y + w * ty + (c * tx - a * tz),
        z + w * tz + (a * ty - b * tx),
    )


@kernel
def turned_back(motion: Array, at: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """World -> body."""
    w, a, b, c = motion[at], -motion[at + 1], -motion[at + 2], -motion[at + 3]
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (
        x + w * tx + (b * tz - c * ty),
        y + w * ty + (c * tx - a * tz),
        z + w * tz + (a * ty - b * tx),
    )


@kernel
def velocity_of(motion: Array, at: int, block: Array) -> tuple[float, float, float]:
    """Of the mounting point, body frame, at the instant whose velocity and rate stand at motion[at]: V + W x p."""
    p, q, r = block[B_PLACE], block[B_PLACE + 1], block[B_PLACE + 2]
    wx, wy, wz = motion[at + 3], motion[at + 4], motion[at + 5]
    return (
        motion[at] + wy * r - wz * q,
        motion[at + 1] + wz * p - wx * r,
        motion[at + 2] + wx * q - wy * p,
    )


@kernel
def acceleration_of(motion: Array, block: Array) -> tuple[float, float, float]:
    """Return the acceleration of the mounting point at the instant of `motion`, m/s2, world axes.

    A difference over the last two steps: its error is of second order in the step. After one step it is the mean over
    that step, and 0 before."""
    over, before = motion[M_TIME] - motion[M_BEFORE], motion[M_BEFORE] - motion[M_EARLIER]
    if motion[M_BEFORE] < 0.0 or not over > 0.0:
        return 0.0, 0.0, 0.0
    shift = M_BEFORE - M_TIME
    now = turned(motion, M_QUATERNION, *velocity_of(motion, M_VELOCITY, block))
    then = turned(motion, M_QUATERNION + shift, *velocity_of(motion, M_VELOCITY + shift, block))
    x, y, z = (now[0] - then[0]) / over, (now[1] - then[1]) / over, (now[2] - then[2]) / over
    if motion[M_EARLIER] < 0.0 or not before > 0.0:
        return x, y, z
    # the parabola through three velocities: v'(t) = d1 + (d1 - d0) h1 / (h1 + h0), d the mean slopes of both steps
    shift = M_EARLIER - M_TIME
    first = turned(motion, M_QUATERNION + shift, *velocity_of(motion, M_VELOCITY + shift, block))
    share = over / (over + before)
    return (
        x + share * (x - (then[0] - first[0]) / before),
        y + share * (y - (then[1] - first[1]) / before),
        z + share * (z - (then[2] - first[2]) / before),
    )


@kernel
def remember(motion: Array) -> None:
    """Shift the motion one step into the past, before the next one is written."""
    size = M_BEFORE - M_TIME
    for k in range(size):
        motion[M_EARLIER + k] = motion[M_BEFORE + k]
        motion[M_BEFORE + k] = motion[M_TIME + k]


@kernel
def into_sensor(block: Array, x: float, y: float, z: float, out: Array) -> None:
    """Body -> the sensor's own axes."""
    for k in range(3):
        at = B_ROTATION + k
        out[k] = block[at] * x + block[at + 3] * y + block[at + 6] * z


@kernel
def altitude(motion: Array, block: Array) -> float:
    """Height of the mounting point, m, world."""
    _, _, z = turned(motion, M_QUATERNION, block[B_PLACE], block[B_PLACE + 1], block[B_PLACE + 2])
    return float(motion[M_POSITION + 2] + z)


@kernel
def perfect(motion: Array, block: Array, out: Array) -> bool:
    """The reading without errors into out; False where there is none (no bottom, no sky)."""
    kind = int(block[B_KIND])
    if kind == GYRO:
        into_sensor(block, motion[M_RATE], motion[M_RATE + 1], motion[M_RATE + 2], out)
    elif kind == ACCELEROMETER:
        # f = (d/dt of the point's velocity) - g
        x, y, z = acceleration_of(motion, block)
        x, y, z = x - motion[M_GRAVITY], y - motion[M_GRAVITY + 1], z - motion[M_GRAVITY + 2]
        x, y, z = turned_back(motion, M_QUATERNION, x, y, z)
        into_sensor(block, x, y, z, out)
    elif kind == MAGNETOMETER:
        x, y, z = turned_back(motion, M_QUATERNION, block[B_MORE], block[B_MORE + 1], block[B_MORE + 2])
        into_sensor(block, x, y, z, out)
    elif kind == DEPTH:
        out[0] = block[B_MORE] - altitude(motion, block)
    elif kind == DVL:
        x, y, z = velocity_of(motion, M_VELOCITY, block)
        into_sensor(block, x, y, z, out)
        return bool(locked(motion, block))
    elif kind == RANGES:
        for beam in range(4):
            out[beam] = slant(motion, block, beam)
        return bool(locked(motion, block))
    elif kind == GPS:
        x, y, z = turned(motion, M_QUATERNION, block[B_PLACE], block[B_PLACE + 1], block[B_PLACE + 2])
        out[0], out[1], out[2] = motion[M_POSITION] + x, motion[M_POSITION + 1] + y, motion[M_POSITION + 2] + z
        return bool(out[2] > block[B_MORE])
    else:  # a vector of the plant's own
        first = int(block[B_MORE])
        for k in range(int(block[B_SIZE])):
            out[k] = block[B_MORE + 1] * motion[first + k]
        return bool(block[B_MORE + 2] == 0.0 or out[0] <= block[B_MORE + 2])
    return True


@kernel
def slant(motion: Array, block: Array, beam: int) -> float:
    """Range along a beam to the flat bottom, m; 0 for one that does not meet it.

    The beams lean by an angle from the sensor's -z, to +x, +y, -x, -y turned by 45 deg."""
    angle = 0.25 * np.pi + 0.5 * np.pi * beam
    lean = block[B_MORE + 3]
    a, b, c = np.sin(lean) * np.cos(angle), np.sin(lean) * np.sin(angle), -np.cos(lean)
    at = B_ROTATION
    x = block[at] * a + block[at + 1] * b + block[at + 2] * c
    y = block[at + 3] * a + block[at + 4] * b + block[at + 5] * c
    z = block[at + 6] * a + block[at + 7] * b + block[at + 8] * c
    _, _, down = turned(motion, M_QUATERNION, x, y, z)
    above = altitude(motion, block) - block[B_MORE]
    return float(above / -down) if down < 0.0 and above > 0.0 else 0.0


@kernel
def locked(motion: Array, block: Array) -> bool:
    """Three beams of four within the range to the bottom give a velocity."""
    seen = 0
    for beam in range(4):
        distance = slant(motion, block, beam)
        seen += int(block[B_MORE + 1] <= distance <= block[B_MORE + 2])
    return seen >= 3
