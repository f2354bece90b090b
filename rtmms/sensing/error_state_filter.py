"""Error-state Kalman filter of attitude, velocity, position and biases: propagation and updates, compiled.

The nominal state x (16,) has position p 3 (m, world), velocity v 3 (m/s, world), quaternion q 4 (w x y z, body to
world), gyroscope's bias 3 (rad/s), accelerometer's bias 3 (m/s2). The error e (15,) has dp, dv, dtheta (rad, body: R =
R_hat exp(dtheta)), dbg, dba; its covariance is P (15, 15). Source: Sola, Quaternion kinematics for the error-state
Kalman filter (2017), sections 5 and 6.

Persistent errors of the sensors (scale, misalignment, iron, drifts), c (l,), have a covariance C (l, l) and a cross
covariance G (15, l) with the state's error. The filter estimates some of them and considers the others (the filter of
Schmidt, 1966): their gain is 0, and the covariance is that of this gain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rtmms.base.jit import Array, Floats, kernel
from rtmms.base.spatial import unit_quaternion_rows

Whole = npt.NDArray[np.int64]

X_P = 0
X_V = 3
X_Q = 6
X_BG = 10
X_BA = 13
X_SIZE = 16
E_P = 0
E_V = 3
E_Q = 6
E_BG = 9
E_BA = 12
E_SIZE = 15
N_GYRO, N_ACCEL, N_BG, N_BA, N_GRAVITY = range(5)
N_SIZE = N_GRAVITY + 3
"""Length of the noise: densities of gyroscope and accelerometer (rad/s/rt Hz, m/s2/rt Hz), of the random walks of their
biases (rad/s2/rt Hz, m/s3/rt Hz), then gravity (3) m/s2, world.
"""
OFFSET, SCALE, SKEW = range(3)
"""Kinds of a persistent error, by its addition to a measured vector v: e_k, v_k e_k, v x e_k (k its axis)."""
L_KIND, L_AXIS, L_TARGET = range(3)
"""Columns of a persistent error: kind, axis, and target: E_Q by the gyroscope, E_V by the accelerometer, -1 none."""


class CorrelatedErrors(NamedTuple):
    """Persistent errors of the sensors, l of them, which are correlated in time: constant, or Gauss-Markov processes.

    The filter estimates some and considers the others.

    Attributes
    ----------
    rows : Whole
        (l, 3) kind, axis and target of each, see L_KIND.
    estimated : Whole
        (l,) 1: the filter estimates the value, 0: it considers it.
    value : Array
        (l,) the estimates, 0 for the considered ones.
    among : Array
        (l, l) covariance of their errors.
    cross : Array
        (15, l) covariance of the state's error and theirs.
    variance : Array
        (l,) of each at any time, from its data sheet.
    fades : Array
        (l,) 1/s: 1 / tau of an error that drifts, 0 for a constant one.
    mount : Array
        (3, 3) axes of the imu, sensor to body.
    into, vector : Array
        (3,) scratch.
    keep : Array
        (l,) scratch.
    """

    rows: Whole
    estimated: Whole
    value: Array
    among: Array
    cross: Array
    variance: Array
    fades: Array
    mount: Array
    into: Array
    vector: Array
    keep: Array


@kernel
def rotation_of(x: Array, r: Array) -> None:
    """Write the rotation, body to world, of the state's quaternion.

    Parameters
    ----------
    x : Array
        (16,) nominal state.
    r : Array
        (3, 3) or more rows; the first three are written.
    """
    rows = unit_quaternion_rows(x[X_Q], x[X_Q + 1], x[X_Q + 2], x[X_Q + 3])
    for i in range(3):
        for j in range(3):
            r[i, j] = rows[3 * i + j]


@kernel
def turn(x: Array, a: float, b: float, c: float) -> None:
    """Turn the attitude by a rotation vector: q <- q exp(theta / 2), and normalise it.

    Parameters
    ----------
    x : Array
        (16,) nominal state, changed in place.
    a, b, c : float
        Components of theta, rad, body axes.
    """
    square = a * a + b * b + c * c
    if square > 1e-12:
        angle = np.sqrt(square)
        s, w = np.sin(0.5 * angle) / angle, np.cos(0.5 * angle)
    else:
        s, w = 0.5 - square / 48.0, 1.0 - square / 8.0
    a, b, c = s * a, s * b, s * c
    p, i, j, k = x[X_Q], x[X_Q + 1], x[X_Q + 2], x[X_Q + 3]
    n0, n1 = p * w - i * a - j * b - k * c, p * a + i * w + j * c - k * b
    n2, n3 = p * b - i * c + j * w + k * a, p * c + i * b - j * a + k * w
    length = 1.0 / np.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
    x[X_Q], x[X_Q + 1], x[X_Q + 2], x[X_Q + 3] = n0 * length, n1 * length, n2 * length, n3 * length


@kernel
def strapdown(x: Array, gyro: Array, accel: Array, dt: float, gravity: Array, r: Array) -> None:
    """Advance the nominal state over dt with the mean rate and specific force.

    Parameters
    ----------
    x : Array
        (16,) nominal state, changed in place.
    gyro, accel : Array
        (3,) mean rate (rad/s) and specific force (m/s2) over dt, as measured.
    dt : float
        Time step, s.
    gravity : Array
        (3,) gravity, m/s2, world.
    r : Array
        Scratch of three rows or more; the first three are the rotation at the middle of dt afterwards.
    """
    wx, wy, wz = gyro[0] - x[X_BG], gyro[1] - x[X_BG + 1], gyro[2] - x[X_BG + 2]
    turn(x, 0.5 * dt * wx, 0.5 * dt * wy, 0.5 * dt * wz)
    rotation_of(x, r)
    fx, fy, fz = accel[0] - x[X_BA], accel[1] - x[X_BA + 1], accel[2] - x[X_BA + 2]
    for k in range(3):
        a = r[k, 0] * fx + r[k, 1] * fy + r[k, 2] * fz + gravity[k]
        x[X_P + k] += dt * (x[X_V + k] + 0.5 * dt * a)
        x[X_V + k] += dt * a
    turn(x, 0.5 * dt * wx, 0.5 * dt * wy, 0.5 * dt * wz)


@kernel
def add_correlated(row: Array, vector: Array, out: Array) -> None:
    """Write the addition of a persistent error of 1 to a vector, in the sensor's axes.

    Parameters
    ----------
    row : Array
        (3,) of `CorrelatedErrors.rows`.
    vector : Array
        (3,) the measured vector.
    out : Array
        (3,) result.
    """
    out[0] = out[1] = out[2] = 0.0
    k = row[L_AXIS]
    if row[L_KIND] == OFFSET:
        out[k] = 1.0
    elif row[L_KIND] == SCALE:
        out[k] = vector[k]
    else:
        i, j = (k + 1) % 3, (k + 2) % 3
        out[i], out[j] = vector[j], -vector[i]


@kernel
def propagate(
    x: Array, covariance: Array, gyro: Array, accel: Array, dt: float, noise: Array, r: Array, f: Array,
    correlated: Any,
) -> None:  # fmt: skip
    """Advance state and covariance over dt: P <- F P F^T + Q, to first order in dt, with the persistent errors.

    Parameters
    ----------
    x : Array
        (16,) nominal state, changed in place.
    covariance : Array
        (15, 15) covariance, changed in place.
    gyro, accel : Array
        (3,) mean over dt as measured, rad/s and m/s2.
    dt : float
        Time step, s.
    noise : Array
        (N_SIZE,), see N_SIZE.
    r : Array
        (5, 3) scratch.
    f : Array
        (15, 15) scratch; the transition afterwards.
    correlated : Any
        Record of the persistent errors, see CorrelatedErrors.
    """
    wx, wy, wz = gyro[0] - x[X_BG], gyro[1] - x[X_BG + 1], gyro[2] - x[X_BG + 2]
    fx, fy, fz = accel[0] - x[X_BA], accel[1] - x[X_BA + 1], accel[2] - x[X_BA + 2]
    strapdown(x, gyro, accel, dt, noise[N_GRAVITY:], r)
    f[:, :] = 0.0
    for k in range(E_SIZE):
        f[k, k] = 1.0
    for k in range(3):
        f[E_P + k, E_V + k] = dt
        f[E_Q + k, E_BG + k] = -dt
        # dv' = -R [f]x dtheta - R dba
        f[E_V + k, E_Q] = -dt * (r[k, 1] * fz - r[k, 2] * fy)
        f[E_V + k, E_Q + 1] = -dt * (r[k, 2] * fx - r[k, 0] * fz)
        f[E_V + k, E_Q + 2] = -dt * (r[k, 0] * fy - r[k, 1] * fx)
        for m in range(3):
            f[E_V + k, E_BA + m] = -dt * r[k, m]
    # dtheta' = -[w]x dtheta - dbg
    f[E_Q, E_Q + 1], f[E_Q, E_Q + 2] = dt * wz, -dt * wy
    f[E_Q + 1, E_Q], f[E_Q + 1, E_Q + 2] = -dt * wz, dt * wx
    f[E_Q + 2, E_Q], f[E_Q + 2, E_Q + 1] = dt * wy, -dt * wx
    transit(f, covariance)
    for i in range(E_SIZE):
        for j in range(i):
            covariance[i, j], covariance[j, i] = covariance[j, i], covariance[i, j]
    transit(f, covariance)
    for i in range(E_SIZE):
        for j in range(i):  # as symmetric as it was
            covariance[j, i] = covariance[i, j]
    for k in range(3):
        covariance[E_V + k, E_V + k] += noise[N_ACCEL] ** 2 * dt
        covariance[E_Q + k, E_Q + k] += noise[N_GYRO] ** 2 * dt
        covariance[E_BG + k, E_BG + k] += noise[N_BG] ** 2 * dt
        covariance[E_BA + k, E_BA + k] += noise[N_BA] ** 2 * dt
    spread(x, covariance, (wx, wy, wz), (fx, fy, fz), dt, r, f, correlated)


@kernel
def spread(
    x: Array, covariance: Array, rate: Floats, force: Floats, dt: float, r: Array, f: Array, correlated: Any
) -> None:  # fmt: skip
    """Add the persistent errors' part to the covariance over dt, and advance their own covariances.

    Parameters
    ----------
    x : Array
        (16,) nominal state.
    covariance : Array
        (15, 15) covariance, changed in place.
    rate, force : Floats
        (3,) of the body, without the imu's biases, rad/s and m/s2.
    dt : float
        Time step, s.
    r : Array
        (3, 3) or more rows, rotation at the middle of dt.
    f : Array
        (15, 15) the transition.
    correlated : Any
        Record of the persistent errors, see CorrelatedErrors.
    """
    cross, rows, among, keep = correlated.cross, correlated.rows, correlated.among, correlated.keep
    into, vector, mount = correlated.into, correlated.vector, correlated.mount
    count = rows.shape[0]
    transit(f, cross)
    # P <- F P F^T + F G B^T + B (F G)^T + B C B^T and G <- F G + B C; those that enter the motion are not estimated,
    # and independent of each other
    for j in range(count):
        to = rows[j, L_TARGET]
        if to < 0:
            continue
        measured = rate if to == E_Q else force
        for k in range(3):
            vector[k] = mount[0, k] * measured[0] + mount[1, k] * measured[1] + mount[2, k] * measured[2]
        add_correlated(rows[j], vector, into)
        b0, b1, b2 = into[0], into[1], into[2]
        for k in range(3):
            vector[k] = mount[k, 0] * b0 + mount[k, 1] * b1 + mount[k, 2] * b2
        for k in range(3):
            if to == E_Q:
                into[k] = -dt * vector[k]
            else:
                into[k] = -dt * (r[k, 0] * vector[0] + r[k, 1] * vector[1] + r[k, 2] * vector[2])
        for k in range(3):
            for i in range(E_SIZE):
                more = cross[i, j] * into[k]
                covariance[i, to + k] += more
                covariance[to + k, i] += more
            for m in range(3):
                covariance[to + k, to + m] += into[k] * among[j, j] * into[m]
        for k in range(3):
            for i in range(count):
                cross[to + k, i] += into[k] * among[j, i]
    for j in range(count):
        keep[j] = np.exp(-dt * correlated.fades[j])
    for j in range(count):
        if correlated.fades[j] > 0.0:
            correlated.value[j] *= keep[j]
            for i in range(E_SIZE):
                cross[i, j] *= keep[j]
            for i in range(count):
                among[i, j] *= keep[j]
                among[j, i] *= keep[j]
            among[j, j] += (1.0 - keep[j] * keep[j]) * correlated.variance[j]


@kernel
def transit(f: Array, m: Array) -> None:
    """Compute m <- F m, by the blocks of F that are not zero.

    Parameters
    ----------
    f : Array
        (15, 15) the transition.
    m : Array
        (15, n) matrix, changed in place.
    """
    dt = f[E_P, E_V]
    for j in range(m.shape[1]):
        q0, q1, q2 = m[E_Q, j], m[E_Q + 1, j], m[E_Q + 2, j]
        a0, a1, a2 = m[E_BA, j], m[E_BA + 1, j], m[E_BA + 2, j]
        for k in range(3):
            m[E_P + k, j] += dt * m[E_V + k, j]
            m[E_V + k, j] += (
                f[E_V + k, E_Q] * q0 + f[E_V + k, E_Q + 1] * q1 + f[E_V + k, E_Q + 2] * q2
                + f[E_V + k, E_BA] * a0 + f[E_V + k, E_BA + 1] * a1 + f[E_V + k, E_BA + 2] * a2
            )  # fmt: skip
        m[E_Q, j] = q0 + f[E_Q, E_Q + 1] * q1 + f[E_Q, E_Q + 2] * q2 - dt * m[E_BG, j]
        m[E_Q + 1, j] = q1 + f[E_Q + 1, E_Q] * q0 + f[E_Q + 1, E_Q + 2] * q2 - dt * m[E_BG + 1, j]
        m[E_Q + 2, j] = q2 + f[E_Q + 2, E_Q] * q0 + f[E_Q + 2, E_Q + 1] * q1 - dt * m[E_BG + 2, j]


@kernel
def forward(x: Array, ring: Array, first: int, count: int, time: float, gravity: Array, r: Array) -> None:
    """Advance the nominal state from `time` along samples of a ring.

    Parameters
    ----------
    x : Array
        (16,) nominal state, changed in place.
    ring : Array
        (room, 10) samples: time, gyro 3, accel 3, gravity 3.
    first : int
        Row of the sample at `time`.
    count : int
        Number of samples from there.
    time : float
        Time of the state, s.
    gravity : Array
        (3,) scratch.
    r : Array
        (5, 3) scratch.
    """
    room = ring.shape[0]
    gyro, accel = r[3], r[4]
    for k in range(1, count):
        item, other = ring[(first + k - 1) % room], ring[(first + k) % room]
        for i in range(3):
            gyro[i] = 0.5 * (item[1 + i] + other[1 + i])
            accel[i] = 0.5 * (item[4 + i] + other[4 + i])
            gravity[i] = 0.5 * (item[7 + i] + other[7 + i])
        strapdown(x, gyro, accel, other[0] - time, gravity, r)
        time = other[0]


@kernel
def correct(
    x: Array,
    covariance: Array,
    rows: Array,
    error_slopes: Array,
    first: int,
    residual: Array,
    variance: Array,
    gate: float,
    work: Array,
    error: Array,
    correlated: Any,
) -> float:
    """Correct state and covariance by a measurement, unless its innovation is over the gate.

    Over the gate, nothing changes.

    Parameters
    ----------
    x : Array
        (16,) nominal state, changed in place.
    covariance : Array
        (15, 15) covariance, changed in place.
    rows : Array
        (m, 15) derivative of the measurement by the state's error.
    error_slopes : Array
        (m, n) derivative by the persistent errors first ... first + n - 1.
    first : int
        Index of the first persistent error of this sensor.
    residual : Array
        (m,) measured less expected.
    variance : Array
        (m,) of its independent errors.
    gate : float
        Largest normalised innovation squared; 0: no gate.
    work : Array
        (m + 1, m + 15 + l) scratch.
    error : Array
        (15,) scratch; the correction afterwards.
    correlated : Any
        Record of the persistent errors, see CorrelatedErrors.

    Returns
    -------
    float
        Normalised innovation squared.
    """
    m, n = residual.shape[0], error_slopes.shape[1]
    cross, among = correlated.cross, correlated.among
    count = among.shape[0]
    at = m + E_SIZE
    # U = H P + H_c G^T, V = H G + H_c C; S = U H^T + V H_c^T + R and its Cholesky factors, L y = residual: y^T y
    for i in range(m):
        for k in range(E_SIZE):
            total = 0.0
            for j in range(E_SIZE):
                total += rows[i, j] * covariance[j, k]
            for j in range(n):
                total += error_slopes[i, j] * cross[k, first + j]
            work[i, m + k] = total
        for k in range(count):
            total = 0.0
            for j in range(E_SIZE):
                total += rows[i, j] * cross[j, k]
            for j in range(n):
                total += error_slopes[i, j] * among[first + j, k]
            work[i, at + k] = total
    for i in range(m):
        for j in range(i + 1):
            total = variance[i] if i == j else 0.0
            for k in range(E_SIZE):
                total += work[i, m + k] * rows[j, k]
            for k in range(n):
                total += work[i, at + first + k] * error_slopes[j, k]
            work[i, j] = total
    squared = 0.0
    for j in range(m):
        pivot = work[j, j]
        for k in range(j):
            pivot -= work[j, k] * work[j, k]
        pivot = np.sqrt(pivot)
        work[j, j] = pivot
        for i in range(j + 1, m):
            total = work[i, j]
            for k in range(j):
                total -= work[i, k] * work[j, k]
            work[i, j] = total / pivot
    for i in range(m):
        total = residual[i]
        for k in range(i):
            total -= work[i, k] * work[m, k]
        work[m, i] = total / work[i, i]
        squared += work[m, i] * work[m, i]
    if 0.0 < gate < squared or not np.isfinite(squared):
        return squared
    # with W = L^-1 U and Z = L^-1 V: e = W^T y, P <- P - W^T W, G <- G - W^T Z
    for k in range(E_SIZE + count):
        for i in range(m):
            total = work[i, m + k]
            for j in range(i):
                total -= work[i, j] * work[j, m + k]
            work[i, m + k] = total / work[i, i]
    for k in range(E_SIZE):
        total = 0.0
        for i in range(m):
            total += work[i, m + k] * work[m, i]
        error[k] = total
        for j in range(k + 1):
            total = 0.0
            for i in range(m):
                total += work[i, m + k] * work[i, m + j]
            covariance[k, j] -= total
            if j != k:
                covariance[j, k] = covariance[k, j]
        for j in range(count):
            total = 0.0
            for i in range(m):
                total += work[i, m + k] * work[i, at + j]
            cross[k, j] -= total
    # and of those that are estimated: c <- c + Z^T y, C <- C - Z^T Z but where both are considered
    for k in range(count):
        if not correlated.estimated[k]:
            continue
        for i in range(m):
            correlated.value[k] += work[i, at + k] * work[m, i]
        for j in range(count):
            if correlated.estimated[j] and j > k:
                continue
            total = 0.0
            for i in range(m):
                total += work[i, at + k] * work[i, at + j]
            among[k, j] -= total
            if j != k:
                among[j, k] = among[k, j]
    inject(x, error)
    return squared


@kernel
def inject(x: Array, error: Array) -> None:
    """Add the error to the nominal state.

    The turn of the covariance with it, of second order in the error, is left out.

    Parameters
    ----------
    x : Array
        (16,) nominal state, changed in place.
    error : Array
        (15,) error of the state.
    """
    for k in range(3):
        x[X_P + k] += error[E_P + k]
        x[X_V + k] += error[E_V + k]
        x[X_BG + k] += error[E_BG + k]
        x[X_BA + k] += error[E_BA + k]
    turn(x, error[E_Q], error[E_Q + 1], error[E_Q + 2])


@kernel
def expect_correlated(first: int, expected: Array, error_slopes: Array, correlated: Any) -> None:
    """Add the estimates of the persistent errors to an expected measurement, and write their derivatives.

    Parameters
    ----------
    first : int
        Index of the sensor's first persistent error.
    expected : Array
        (m,) perfect measurement; the estimates are added in place.
    error_slopes : Array
        (m, n) result: derivative by the errors first ... first + n - 1.
    correlated : Any
        Record of the persistent errors, see CorrelatedErrors.
    """
    rows, into, vector = correlated.rows, correlated.into, correlated.vector
    size = expected.shape[0]
    for k in range(size):
        vector[k] = expected[k]
    for j in range(error_slopes.shape[1]):
        if size == 1:
            into[0] = 1.0 if rows[first + j, L_KIND] == OFFSET else vector[0]
        else:
            add_correlated(rows[first + j], vector, into)
        for k in range(size):
            error_slopes[k, j] = into[k]
            expected[k] += into[k] * correlated.value[first + j]


@kernel
def expect_depth(x: Array, place: Array, surface: float, r: Array, rows: Array, expected: Array) -> None:
    """Write the expected depth: surface - (p + R l)_z.

    Parameters
    ----------
    x : Array
        (16,) nominal state.
    place : Array
        (3,) l, place of the sensor, m, body.
    surface : float
        Height of the water's surface, m, world.
    r : Array
        (3, 3) scratch.
    rows : Array
        (1, 15) result: derivative by the state's error.
    expected : Array
        (1,) result, m.
    """
    rotation_of(x, r)
    rows[0, :] = 0.0
    rows[0, E_P + 2] = -1.0
    expected[0] = surface - x[X_P + 2]
    for k in range(3):
        expected[0] -= r[2, k] * place[k]
    # d(R l) = -R [l]x dtheta
    rows[0, E_Q] = r[2, 1] * place[2] - r[2, 2] * place[1]
    rows[0, E_Q + 1] = r[2, 2] * place[0] - r[2, 0] * place[2]
    rows[0, E_Q + 2] = r[2, 0] * place[1] - r[2, 1] * place[0]


@kernel
def expect_position(x: Array, place: Array, r: Array, rows: Array, expected: Array) -> None:
    """Write the expected position: p + R l.

    Parameters
    ----------
    x : Array
        (16,) nominal state.
    place : Array
        (3,) l, place of the sensor, m, body.
    r : Array
        (3, 3) scratch.
    rows : Array
        (3, 15) result: derivative by the state's error.
    expected : Array
        (3,) result, m, world.
    """
    rotation_of(x, r)
    rows[:, :] = 0.0
    for i in range(3):
        rows[i, E_P + i] = 1.0
        expected[i] = x[X_P + i] + r[i, 0] * place[0] + r[i, 1] * place[1] + r[i, 2] * place[2]
        rows[i, E_Q] = r[i, 2] * place[1] - r[i, 1] * place[2]
        rows[i, E_Q + 1] = r[i, 0] * place[2] - r[i, 2] * place[0]
        rows[i, E_Q + 2] = r[i, 1] * place[0] - r[i, 0] * place[1]


@kernel
def expect_direction(x: Array, vector: Array, mount: Array, r: Array, rows: Array, expected: Array) -> None:
    """Write the expected components of a constant vector of the world (the magnetic field): M^T R^T b.

    Parameters
    ----------
    x : Array
        (16,) nominal state.
    vector : Array
        (3,) b, world.
    mount : Array
        (3, 3) M, sensor to body.
    r : Array
        (3, 3) scratch.
    rows : Array
        (3, 15) result: derivative by the state's error.
    expected : Array
        (3,) result, in the sensor's axes and the vector's unit.
    """
    rotation_of(x, r)
    b0 = r[0, 0] * vector[0] + r[1, 0] * vector[1] + r[2, 0] * vector[2]
    b1 = r[0, 1] * vector[0] + r[1, 1] * vector[1] + r[2, 1] * vector[2]
    b2 = r[0, 2] * vector[0] + r[1, 2] * vector[1] + r[2, 2] * vector[2]
    rows[:, :] = 0.0
    for i in range(3):
        m0, m1, m2 = mount[0, i], mount[1, i], mount[2, i]
        expected[i] = m0 * b0 + m1 * b1 + m2 * b2
        # d(R^T b) = [R^T b]x dtheta
        rows[i, E_Q] = m1 * b2 - m2 * b1
        rows[i, E_Q + 1] = m2 * b0 - m0 * b2
        rows[i, E_Q + 2] = m0 * b1 - m1 * b0


@kernel
def expect_velocity(x: Array, gyro: Array, place: Array, mount: Array, r: Array, rows: Array, expected: Array) -> None:
    """Write the expected velocity of a point over the ground: M^T (R^T v + (gyro - bg) x l).

    Parameters
    ----------
    x : Array
        (16,) nominal state.
    gyro : Array
        (3,) measured rate, rad/s, body.
    place : Array
        (3,) l, place of the sensor, m, body.
    mount : Array
        (3, 3) M, sensor to body.
    r : Array
        (3, 3) scratch.
    rows : Array
        (3, 15) result: derivative by the state's error.
    expected : Array
        (3,) result, m/s, in the sensor's axes.
    """
    vector = x[X_V : X_V + 3]
    expect_direction(x, vector, mount, r, rows, expected)
    wx, wy, wz = gyro[0] - x[X_BG], gyro[1] - x[X_BG + 1], gyro[2] - x[X_BG + 2]
    px, py, pz = place[0], place[1], place[2]
    cx, cy, cz = wy * pz - wz * py, wz * px - wx * pz, wx * py - wy * px
    for i in range(3):
        m0, m1, m2 = mount[0, i], mount[1, i], mount[2, i]
        expected[i] += m0 * cx + m1 * cy + m2 * cz
        for k in range(3):
            rows[i, E_V + k] = m0 * r[k, 0] + m1 * r[k, 1] + m2 * r[k, 2]
        # -dbg x l = l x dbg
        rows[i, E_BG] = m1 * pz - m2 * py
        rows[i, E_BG + 1] = m2 * px - m0 * pz
        rows[i, E_BG + 2] = m0 * py - m1 * px
