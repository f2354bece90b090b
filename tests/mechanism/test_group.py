"""States on the group: displaced by an exponential, stages pulled back to it, rates of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rtmms.mechanism.step import displace, lead, normalise, plain_rate, uncurl

N = 3


def random_state(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    state = rng.normal(size=13 + 2 * N)
    state[3:7] /= np.linalg.norm(state[3:7])
    return state


def turn(state: np.ndarray) -> Rotation:
    return Rotation.from_quat(state[[4, 5, 6, 3]])


@pytest.mark.parametrize("angle", [1e-9, 9e-5, 1.1e-4])
def test_a_small_turn_from_rest_has_all_its_digits(angle: float) -> None:
    state, rate = np.zeros(13 + 2 * N), np.zeros(12 + 2 * N)
    state[3], rate[3:6] = 1.0, (0.6 * angle, 0.0, -0.8 * angle)
    displace(state, rate, 1.0, state)
    assert state[4:7] == pytest.approx(np.sin(0.5 * angle) * np.array([0.6, 0.0, -0.8]), rel=1e-13, abs=0.0)


@pytest.mark.parametrize("angle", [1e-9, 9e-5, 1.1e-4, 0.5, 2.5])
def test_a_displaced_attitude_is_the_exponential(angle: float) -> None:
    state, rate, out = random_state(1), random_state(2)[1:], np.zeros(13 + 2 * N)
    rate[3:6] *= angle / 0.3 / np.linalg.norm(rate[3:6])
    displace(state, rate, 0.3, out)
    expected = (turn(state) * Rotation.from_rotvec(0.3 * rate[3:6])).as_matrix()
    np.testing.assert_allclose(turn(out).as_matrix(), expected, atol=1e-15)
    np.testing.assert_allclose(out[:3], state[:3] + 0.3 * rate[:3], rtol=1e-15)
    np.testing.assert_allclose(out[7:], state[7:] + 0.3 * rate[6:], rtol=1e-15)
    assert np.linalg.norm(out[3:7]) == pytest.approx(1.0, abs=1e-15)


def test_the_rate_of_the_exponentials_coordinate() -> None:
    """log(exp(theta) exp(t W)) to first order in t, up to the fourth order in theta."""
    errors = []
    for size in (0.4, 0.2):
        before, rate = random_state(3)[1:], random_state(4)[1:]
        theta, w, t = size * before[3:6], rate[3:6].copy(), 1e-6
        other = rate.copy()
        uncurl(rate, before, size)
        ahead, behind = ((Rotation.from_rotvec(theta) * Rotation.from_rotvec(k * t * w)).as_rotvec() for k in (1, -1))
        errors.append(np.abs(rate[3:6] - (ahead - behind) / (2 * t)).max())
        other[3:6] = rate[3:6]
        np.testing.assert_array_equal(rate, other)
    assert errors[0] < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.3)


def test_a_lead_moves_the_velocities_first() -> None:
    state, rate, h = random_state(5), random_state(6)[1:], 0.2
    rate[6 : 6 + N], before = state[13 + N :], rate.copy()
    rate[3:6], before[3:6] = state[10 + N : 13 + N], state[10 + N : 13 + N]
    lead(state, rate, h)
    velocity, turning = (state[7 + N + k : 10 + N + k] + h * before[6 + N + k : 9 + N + k] for k in (0, 3))
    np.testing.assert_allclose(rate[:3], turn(state).apply(velocity), rtol=1e-14)
    np.testing.assert_allclose(rate[3:6], turning, rtol=1e-14)
    np.testing.assert_allclose(rate[6 : 6 + N], state[13 + N :] + h * before[12 + N :], rtol=1e-14)
    np.testing.assert_array_equal(rate[6 + N :], before[6 + N :])


def test_the_rate_of_a_vector_is_what_a_small_displacement_does() -> None:
    state, rate, out, h = random_state(7), random_state(8)[1:], np.zeros(13 + 2 * N), 1e-6
    plain_rate(state, rate, out)
    ahead, behind = np.zeros_like(out), np.zeros_like(out)
    displace(state, rate, h, ahead)
    displace(state, rate, -h, behind)
    np.testing.assert_allclose(out, (ahead - behind) / (2 * h), rtol=1e-8, atol=1e-8)


def test_a_quaternion_gets_its_length_back() -> None:
    state = random_state(9)
    longer = state.copy()
    longer[3:7] *= 1.01
    normalise(longer)
    np.testing.assert_allclose(longer, state, rtol=1e-15)
