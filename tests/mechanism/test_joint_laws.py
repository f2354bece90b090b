"""The filters that commands of eel and moth pass through: exact whatever the step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from rtmms.mechanism.joint_laws import settle


@pytest.mark.parametrize("bandwidth", [0.5, 20.0, 60.0, 1e4, 1e6])
@pytest.mark.parametrize("dt", [1e-6, 1e-3, 0.1, 10.0])
def test_a_command_is_followed_by_the_matrix_exponential(bandwidth, dt):
    value, rate, target, w = 0.3, -1.7, 0.8, bandwidth
    matrix = np.array([[0, 1, 0], [-1, -2, 1], [0, 0, 0]]) * w * dt  # in units of 1 / w
    end = expm(matrix) @ np.array([value, rate / w, target])
    expected = np.array([end[0], end[1] * w, w * w * (end[2] - end[0]) - 2.0 * w * w * end[1]])
    scale = np.array([1.0, abs(rate) + w * abs(target - value), w * w * abs(target - value) + 2.0 * w * abs(rate)])
    assert (np.abs(settle(value, rate, target, w, dt) - expected) < 1e-12 * scale).all()
