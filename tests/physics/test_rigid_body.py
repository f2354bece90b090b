"""A pose moved by a twist, its canonical coordinates and the 6 x 6 solve, against scipy and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

from rtmms.dynamics.recursion import exponential_rate, move_pose, rotation_matrix, solve_spd6


def hat(twist: np.ndarray) -> np.ndarray:
    """(4, 4) of a twist [V; W]."""
    v, w = twist[:3], twist[3:]
    out = np.zeros((4, 4))
    out[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    out[:3, 3] = v
    return out


def vee(matrix: np.ndarray) -> np.ndarray:
    return np.array([*matrix[:3, 3], matrix[2, 1], matrix[0, 2], matrix[1, 0]])


def homogeneous(pose: np.ndarray) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = Rotation.from_quat(pose[[4, 5, 6, 3]]).as_matrix(), pose[:3]
    return out


def random_pose(rng: np.random.Generator) -> np.ndarray:
    x, y, z, w = Rotation.random(random_state=int(rng.integers(1 << 30))).as_quat()
    return np.array([*rng.normal(size=3), w, x, y, z])


@pytest.mark.parametrize("size", [1e-9, 3e-5, 9e-5, 1.1e-4, 1e-2, 1.0, 3.0])
def test_a_pose_moves_by_the_exponential_of_its_twist(size: float) -> None:
    """Either side of the angle where the series takes over, 1e-4."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        pose, twist = np.concatenate([np.zeros(2), random_pose(rng)]), np.concatenate([np.zeros(3), rng.normal(size=6)])
        twist[6:] *= size / np.linalg.norm(twist[6:]) / 0.7
        out = np.zeros(9)
        move_pose(pose, 2, twist, 3, 0.7, out, 1)
        expected = homogeneous(pose[2:]) @ expm(0.7 * hat(twist[3:]))
        # 1 - cos loses digits where the closed form begins: 1e-16 / size of the path
        np.testing.assert_allclose(homogeneous(out[1:8]), expected, atol=1e-12 if size < 1e-2 else 2e-15, rtol=1e-13)
        assert np.linalg.norm(out[4:8]) == pytest.approx(1.0, abs=1e-15)
        assert out[0] == out[8] == 0.0


def test_a_rotation_matrix_is_of_its_quaternion() -> None:
    pose = random_pose(np.random.default_rng(2))
    work = np.concatenate([[9.0], pose[3:], np.zeros(9)])
    rotation_matrix(work, 1, 5)
    np.testing.assert_allclose(work[5:].reshape(3, 3), homogeneous(pose)[:3, :3], atol=1e-15)


def test_canonical_coordinates_move_with_the_twist() -> None:
    """log(exp(xi) exp(h eta)) to first order in h is xi + h xi'; the series' next term is of fourth order in xi."""
    rng = np.random.default_rng(3)
    direction, twist = rng.normal(size=6), rng.normal(size=6)
    errors = []
    for size in (0.2, 0.1):
        xi, out, h = np.concatenate([[0.0], size * direction]), np.zeros(8), 1e-5
        exponential_rate(xi, 1, np.concatenate([[0.0, 0.0], twist]), 2, out, 2)
        ahead, behind = (vee(np.real(logm(expm(hat(xi[1:])) @ expm(k * h * hat(twist))))) for k in (1, -1))
        errors.append(np.abs(out[2:] - (ahead - behind) / (2 * h)).max())
    assert errors[0] < 2e-4
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.3)


def test_a_symmetric_system_is_solved() -> None:
    rng = np.random.default_rng(4)
    root, right, out = rng.normal(size=(6, 6)), rng.normal(size=6), np.zeros(6)
    matrix = root @ root.T + 6 * np.diag(np.arange(1.0, 7.0))
    work = np.concatenate([[0.0], matrix.ravel(), right])
    solve_spd6(work, 1, 37, out)
    np.testing.assert_allclose(out, np.linalg.solve(matrix, right), rtol=1e-12)
