"""Instruments: ideal readings, their errors, their sampling times, and random numbers without state."""

from __future__ import annotations

import numpy as np

from rtmms.base.jit import Array, kernel
from rtmms.sensing.layout import (
    ACCELEROMETER,
    B_AT,
    B_DRIFT,
    B_DRIFTS,
    B_KEEP,
    B_KIND,
    B_MATRIX,
    B_MORE,
    B_OFFSET,
    B_PLACE,
    B_RANGE,
    B_ROTATION,
    B_SIZE,
    B_STEP,
    B_TURN_ON,
    B_TURNED,
    B_WHITE,
    BIAS,
    CAMERA,
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
    READING_TIME,
    READING_VALID,
    READING_VALUES,
    SILENT,
    SPIKES,
    STUCK,
    T_BLOCK,
    T_BLOCKS,
    T_COUNT,
    T_DROPOUT,
    T_FAULT,
    T_JITTER,
    T_LATENCY,
    T_PHASE,
    T_QUEUE,
    T_RATE,
    T_READING,
    T_ROOM,
    T_WIDTH_OF,
)

# What each kind of instrument would read if it were perfect, from the motion of the body it is fixed to.


@kernel
def turned(motion: Array, at: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Turn a vector from body to world by the quaternion at motion[at]: v + 2 w (u x v) + 2 u x (u x v).

    Parameters
    ----------
    motion : Array
        The measured motion, see rtmms.sensing.layout.
    at : int
        Index of the quaternion.
    x, y, z : float
        Components, body.

    Returns
    -------
    tuple[float, float, float]
        Components, world.
    """
    w, a, b, c = motion[at], motion[at + 1], motion[at + 2], motion[at + 3]
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (
        x + w * tx + (b * tz - c * ty),
        y + w * ty + (c * tx - a * tz),
        z + w * tz + (a * ty - b * tx),
    )


@kernel
def turned_back(motion: Array, at: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Turn a vector from world to body by the quaternion at motion[at].

    Parameters
    ----------
    motion : Array
        The measured motion, see rtmms.sensing.layout.
    at : int
        Index of the quaternion.
    x, y, z : float
        Components, world.

    Returns
    -------
    tuple[float, float, float]
        Components, body.
    """
    w, a, b, c = motion[at], -motion[at + 1], -motion[at + 2], -motion[at + 3]
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (
        x + w * tx + (b * tz - c * ty),
        y + w * ty + (c * tx - a * tz),
        z + w * tz + (a * ty - b * tx),
    )


@kernel
def velocity_of(motion: Array, at: int, block: Array) -> tuple[float, float, float]:
    """Return the velocity of the mounting point: V + W x p.

    Parameters
    ----------
    motion : Array
        The measured motion.
    at : int
        Index of velocity and rate of the wanted instant.
    block : Array
        (B_WIDTH,) block of the sensor.

    Returns
    -------
    tuple[float, float, float]
        Components, m/s, body.
    """
    p, q, r = block[B_PLACE], block[B_PLACE + 1], block[B_PLACE + 2]
    wx, wy, wz = motion[at + 3], motion[at + 4], motion[at + 5]
    return (
        motion[at] + wy * r - wz * q,
        motion[at + 1] + wz * p - wx * r,
        motion[at + 2] + wx * q - wy * p,
    )


@kernel
def acceleration_of(motion: Array, block: Array) -> tuple[float, float, float]:
    """Return the acceleration of the mounting point at the instant of `motion`.

    It is a difference over the last two steps: its error is of second order in the step. After one step it is the mean
    over that step, and 0 before.

    Parameters
    ----------
    motion : Array
        The measured motion.
    block : Array
        (B_WIDTH,) block of the sensor.

    Returns
    -------
    tuple[float, float, float]
        Components, m/s2, world.
    """
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
    """Shift the motion one step into the past, before the next one is written.

    Parameters
    ----------
    motion : Array
        The measured motion, changed in place.
    """
    size = M_BEFORE - M_TIME
    for k in range(size):
        motion[M_EARLIER + k] = motion[M_BEFORE + k]
        motion[M_BEFORE + k] = motion[M_TIME + k]


@kernel
def into_sensor(block: Array, x: float, y: float, z: float, out: Array) -> None:
    """Turn a vector from body to the sensor's own axes.

    Parameters
    ----------
    block : Array
        (B_WIDTH,) block of the sensor.
    x, y, z : float
        Components, body.
    out : Array
        (3,) result.
    """
    for k in range(3):
        at = B_ROTATION + k
        out[k] = block[at] * x + block[at + 3] * y + block[at + 6] * z


@kernel
def altitude(motion: Array, block: Array) -> float:
    """Return the height of the mounting point.

    Parameters
    ----------
    motion : Array
        The measured motion.
    block : Array
        (B_WIDTH,) block of the sensor.

    Returns
    -------
    float
        m, world.
    """
    _, _, z = turned(motion, M_QUATERNION, block[B_PLACE], block[B_PLACE + 1], block[B_PLACE + 2])
    return float(motion[M_POSITION + 2] + z)


@kernel
def perfect(motion: Array, block: Array, out: Array) -> bool:
    """Write the reading without errors.

    Parameters
    ----------
    motion : Array
        The measured motion.
    block : Array
        (B_WIDTH,) block of the sensor.
    out : Array
        (size,) result.

    Returns
    -------
    bool
        False where there is no reading (no bottom, no sky).
    """
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
        return bool(has_bottom_lock(motion, block))
    elif kind == RANGES:
        for beam in range(4):
            out[beam] = slant_range(motion, block, beam)
        return bool(has_bottom_lock(motion, block))
    elif kind == GPS:
        x, y, z = turned(motion, M_QUATERNION, block[B_PLACE], block[B_PLACE + 1], block[B_PLACE + 2])
        out[0], out[1], out[2] = motion[M_POSITION] + x, motion[M_POSITION + 1] + y, motion[M_POSITION + 2] + z
        return bool(out[2] > block[B_MORE])
    elif kind == CAMERA:
        first = int(block[B_MORE])
        x, y = motion[first] - block[B_PLACE], motion[first + 1] - block[B_PLACE + 1]
        z = motion[first + 2] - block[B_PLACE + 2]
        for k in range(2):
            at = B_ROTATION + k
            out[k] = block[B_MORE + 1] * (block[at] * x + block[at + 3] * y + block[at + 6] * z) + block[B_MORE + 2 + k]
    else:  # a vector of the plant's own
        first = int(block[B_MORE])
        for k in range(int(block[B_SIZE])):
            out[k] = block[B_MORE + 1] * motion[first + k]
        return bool(block[B_MORE + 2] == 0.0 or out[0] <= block[B_MORE + 2])
    return True


@kernel
def slant_range(motion: Array, block: Array, beam: int) -> float:
    """Return the range along a beam to the flat bottom.

    The beams lean by an angle from the sensor's -z, to +x, +y, -x, -y turned by 45 deg.

    Parameters
    ----------
    motion : Array
        The measured motion.
    block : Array
        (B_WIDTH,) block of the ranges.
    beam : int
        0 to 3.

    Returns
    -------
    float
        m; 0 for a beam that does not meet the bottom.
    """
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
def has_bottom_lock(motion: Array, block: Array) -> bool:
    """Return whether at least three beams of four reach the bottom within their range, which a velocity needs.

    Parameters
    ----------
    motion : Array
        The measured motion.
    block : Array
        (B_WIDTH,) block of the sensor.

    Returns
    -------
    bool
        True with three beams or four.
    """
    beams = 0
    for beam in range(4):
        distance = slant_range(motion, block, beam)
        beams += int(block[B_MORE + 1] <= distance <= block[B_MORE + 2])
    return beams >= 3


# Random numbers that carry no state: each is a function of a seed, a stream and a count.
#
# A run that is restored, or paced in another way, draws the same ones.
#
# The mixing function is SplitMix64's (Steele, Lea and Flood, 2014); normal numbers are Box and Muller's.


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30 = np.uint64(30)
_27 = np.uint64(27)
_31 = np.uint64(31)
_11 = np.uint64(11)
_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@kernel
def mix_bits(x: np.uint64) -> np.uint64:
    """Compute a bijection of 64 bits in which each bit of x changes half of the others.

    Parameters
    ----------
    x : np.uint64
        64 bits.

    Returns
    -------
    np.uint64
        64 bits.
    """
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@kernel
def uniform(seed: int, stream: int, count: int) -> float:
    """Return a random number in (0, 1).

    Parameters
    ----------
    seed : int
        Seed of the run.
    stream : int
        Number of the stream.
    count : int
        Index in the stream.

    Returns
    -------
    float
        The same for the same seed, stream and count.
    """
    x = mix_bits(np.uint64(seed) + _GOLDEN)
    x = mix_bits(x ^ (np.uint64(stream) * _GOLDEN))
    x = mix_bits(x + np.uint64(count) * _GOLDEN)
    return (float(x >> _11) + 0.5) * _UNIT


@kernel
def normal(seed: int, stream: int, count: int) -> float:
    """Return a random number of the normal distribution of mean 0 and variance 1.

    Parameters
    ----------
    seed : int
        Seed of the run.
    stream : int
        Number of the stream.
    count : int
        Index in the stream.

    Returns
    -------
    float
        The same for the same seed, stream and count.
    """
    radius = np.sqrt(-2.0 * np.log(uniform(seed, stream, 2 * count)))
    return float(radius * np.cos(2.0 * np.pi * uniform(seed, stream, 2 * count + 1)))


# How wrong a reading is: scale and misalignment, turn-on error, a drift that wanders, white noise, range, quantum.
#
# The drift is a Gauss-Markov process of first order, x' = -x / tau + noise, sampled exactly: x_k+1 = phi x_k +
# sigma sqrt(1 - phi^2) n_k with phi = exp(-1 / (rate tau)). Its Allan variance is known in closed form (IEEE Std 952,
# annex C), and so is that of white noise of density N: N^2 / t.


DRAWS = 1 << 8
"""Streams of a block: of value k white noise 3 k, drift 3 k + 1, turn-on error 3 k + 2."""


@kernel
def switch_on(block: Array, stream: int, seed: int, state: Array) -> None:
    """Draw the turn-on errors and the drifts' first values.

    Parameters
    ----------
    block : Array
        (B_WIDTH,) block of the sensor.
    stream : int
        Index of the block.
    seed : int
        Seed of the run.
    state : Array
        State of the suite, changed in place.
    """
    drifts, turned = int(block[B_DRIFTS]), int(block[B_TURNED])
    for k in range(int(block[B_SIZE])):
        draw = stream * DRAWS + 3 * k
        state[drifts + k] = block[B_DRIFT] * normal(seed, draw + 1, 0)
        state[turned + k] = block[B_TURN_ON] * normal(seed, draw + 2, 0)


@kernel
def disturb(block: Array, stream: int, seed: int, count: int, state: Array, value: Array) -> None:
    """Add the instrument's errors to a perfect reading, and advance the drift by one sample.

    Parameters
    ----------
    block : Array
        (B_WIDTH,) block of the sensor.
    stream : int
        Index of the block.
    seed : int
        Seed of the run.
    count : int
        Number of the sample, from 1 on.
    state : Array
        State of the suite, changed in place.
    value : Array
        (size,) perfect reading, changed in place.
    """
    size = int(block[B_SIZE])
    if size == 3:
        x, y, z = value[0], value[1], value[2]
        for k in range(3):
            at = B_MATRIX + 3 * k
            value[k] = block[at] * x + block[at + 1] * y + block[at + 2] * z + block[B_OFFSET + k]
    else:
        for k in range(size):
            value[k] = block[B_MATRIX] * value[k] + block[B_OFFSET]
    drifts, turned = int(block[B_DRIFTS]), int(block[B_TURNED])
    keep, limit, step = block[B_KEEP], block[B_RANGE], block[B_STEP]
    fresh = block[B_DRIFT] * np.sqrt(1.0 - keep * keep)
    for k in range(size):
        draw = stream * DRAWS + 3 * k
        if block[B_DRIFT] > 0.0:
            state[drifts + k] = keep * state[drifts + k] + fresh * normal(seed, draw + 1, count)
        measured = value[k] + state[turned + k] + state[drifts + k]
        if block[B_WHITE] > 0.0:
            measured += block[B_WHITE] * normal(seed, draw, count)
        if limit > 0.0:
            measured = min(max(measured, -limit), limit)
        if step > 0.0:
            measured = step * np.rint(measured / step)
        value[k] = measured


def drift_allan_variance(time: float, deviation: float, tau: float) -> float:
    """Return the Allan variance of a Gauss-Markov process.

    Parameters
    ----------
    time : float
        Averaging time, s.
    deviation : float
        Standard deviation of the process.
    tau : float
        Its correlation time, s.

    Returns
    -------
    float
        In the square of the deviation's unit.
    """
    x = time / tau
    return float(2.0 * deviation**2 / x * (1.0 - (3.0 - 4.0 * np.exp(-x) + np.exp(-2.0 * x)) / (2.0 * x)))


def drift_of(density: float, instability: float, tau: float) -> float:
    """Return the standard deviation of the drift whose lowest Allan deviation, together with white noise, is given.

    The lowest one is sought from tau / 10 to 3 tau, where a data sheet reads it: at shorter times, white noise is above
    the drift. Without white noise the curve has no lowest point. Then the instability is the highest Allan deviation of
    the drift, 0.617 of its standard deviation.

    Parameters
    ----------
    density : float
        Density of the white noise, unit/sqrt(Hz).
    instability : float
        Lowest Allan deviation, which a data sheet calls in-run bias stability.
    tau : float
        Correlation time of the drift, s.

    Returns
    -------
    float
        0 where white noise alone is above the instability up to 3 tau, or without instability.
    """
    from scipy.optimize import brentq

    times = tau * np.geomspace(1e-3, 3.0, 400)
    if density == 0.0:
        return instability / float(np.sqrt(max(drift_allan_variance(t, 1.0, tau) for t in times)))

    def variance(deviation: float) -> Array:
        drift: Array = np.array([drift_allan_variance(t, deviation, tau) for t in times])
        return density**2 / times + drift

    def lowest(deviation: float) -> float:
        return float(np.sqrt(variance(deviation).min())) - instability

    if instability <= 0.0 or lowest(0.0) >= 0.0:
        return 0.0

    def solve_deviation() -> float:
        top = 100.0 * instability
        return float(brentq(lowest, 0.0, top, xtol=1e-12 * instability, rtol=1e-12))  # type: ignore[no-untyped-call]

    deviation = solve_deviation()
    if times[variance(deviation).argmin()] >= 0.1 * tau:
        return deviation
    times = times[times >= 0.1 * tau]
    return solve_deviation()


# Times at which sensors sample and report: rate, phase, latency, jitter, loss. One kernel runs in each step.


ROUNDING = 1e-9
"""Tolerance of a sample's instant, as a share of the sample's period."""
SPIKED = 0.05
"""Share of the samples with a spike, of a sensor with that fault."""
_LOSS = 1 << 20
_JITTER = 1 << 21
_SPIKE = 1 << 22


@kernel
def start(timing: Array, block: Array, seed: int, state: Array) -> None:
    """Switch all sensors on: nothing sampled, nothing reported.

    Parameters
    ----------
    timing : Array
        (sensors, T_WIDTH), see rtmms.sensing.layout.
    block : Array
        (blocks, B_WIDTH) blocks of the instruments.
    seed : int
        Seed of the run.
    state : Array
        State of the suite, changed in place.
    """
    state[:] = 0.0
    for s in range(timing.shape[0]):
        state[int(timing[s, T_READING]) + READING_TIME] = -1.0
    for b in range(block.shape[0]):
        switch_on(block[b], b, seed, state)


@kernel
def samples_due(row: Array, time: float) -> float:
    """Return how many samples a sensor has taken by an instant.

    Parameters
    ----------
    row : Array
        (T_WIDTH,) of the timing.
    time : float
        Time, s.

    Returns
    -------
    float
        A whole number.
    """
    return float(np.floor((time - row[T_PHASE]) * row[T_RATE] + ROUNDING) + 1.0)


@kernel
def look(timing: Array, block: Array, seed: int, motion: Array, scratch: Array, state: Array) -> None:
    """Take the samples that are due at the instant of `motion`, and report those that have arrived.

    Parameters
    ----------
    timing : Array
        (sensors, T_WIDTH), see rtmms.sensing.layout.
    block : Array
        (blocks, B_WIDTH) blocks of the instruments.
    seed : int
        Seed of the run.
    motion : Array
        The measured motion.
    scratch : Array
        Values of the widest sensor.
    state : Array
        State of the suite, changed in place.

    Notes
    -----
    From state[count] on: samples so far, the queue's head and length, and the arrival of its last sample. From
    state[queue] on: a ring of samples, each with arrival, time of sampling, valid, values.
    """
    time = motion[M_TIME]
    for s in range(timing.shape[0]):
        width, queue, room = int(timing[s, T_WIDTH_OF]), int(timing[s, T_QUEUE]), int(timing[s, T_ROOM])
        count = int(timing[s, T_COUNT])
        due = samples_due(timing[s], time)
        if due > state[count]:
            state[count] = due
            sample(timing[s], s, block, seed, motion, scratch, state)
        reported = int(timing[s, T_READING])
        while state[count + 2] > 0.0:
            head = queue + int(state[count + 1]) * (3 + width)
            if state[head] > time + ROUNDING / timing[s, T_RATE]:
                break
            state[reported + READING_TIME], valid = state[head + 1], state[head + 2]
            state[reported + READING_VALID] = valid
            if valid > 0.0:  # what cannot be measured keeps its last value
                for k in range(width):
                    state[reported + READING_VALUES + k] = state[head + 3 + k]
            state[count + 1] = (state[count + 1] + 1.0) % room
            state[count + 2] -= 1.0


@kernel
def sample(row: Array, s: int, block: Array, seed: int, motion: Array, scratch: Array, state: Array) -> None:
    """Put one sample of a sensor into its queue, unless it is lost by chance or the queue is full.

    Parameters
    ----------
    row : Array
        (T_WIDTH,) timing of the sensor.
    s : int
        Index of the sensor.
    block : Array
        (blocks, B_WIDTH) blocks of the instruments.
    seed : int
        Seed of the run.
    motion : Array
        The measured motion.
    scratch : Array
        Values of the widest sensor.
    state : Array
        State of the suite, changed in place.
    """
    width, count, room = int(row[T_WIDTH_OF]), int(row[T_COUNT]), int(row[T_ROOM])
    number = int(state[count])
    first, valid = int(row[T_BLOCK]), True
    for b in range(first, first + int(row[T_BLOCKS])):
        at, size = int(block[b, B_AT]), int(block[b, B_SIZE])
        value = scratch[at : at + size]
        valid = perfect(motion, block[b], value) and valid
        disturb(block[b], b, seed, number, state, value)
    lost = row[T_DROPOUT] > 0.0 and uniform(seed, _LOSS + s * DRAWS, number) < row[T_DROPOUT]
    fault, by = int(state[int(row[T_FAULT])]), state[int(row[T_FAULT]) + 1]
    if lost or fault == SILENT or state[count + 2] >= room:
        return
    reported = int(row[T_READING]) + READING_VALUES
    chance = uniform(seed, _SPIKE + s * DRAWS, number) if fault == SPIKES else 1.0
    for k in range(width):
        if fault == STUCK:
            scratch[k] = state[reported + k]
        elif fault == BIAS:
            scratch[k] += by
        elif chance < SPIKED:
            scratch[k] += by if chance < 0.5 * SPIKED else -by
    arrives = motion[M_TIME] + row[T_LATENCY]
    if row[T_JITTER] > 0.0:
        arrives += row[T_JITTER] * uniform(seed, _JITTER + s * DRAWS, number)
    arrives = max(arrives, state[count + 3])  # a bus keeps the order
    state[count + 3] = arrives
    tail = (int(state[count + 1]) + int(state[count + 2])) % room
    head = int(row[T_QUEUE]) + tail * (3 + width)
    state[head], state[head + 1], state[head + 2] = arrives, motion[M_TIME], 1.0 if valid else 0.0
    for k in range(width):
        state[head + 3 + k] = scratch[k]
    state[count + 2] += 1.0
