"""The nonholonomic connection: wheels that roll, axles that do not slide, on the same faces as the other kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.locomotion import Connection, Path, gait_path, holonomy, reconstruct, rows
from rtmms.locomotion.connections import model_of
from rtmms.locomotion.group import bracket
from rtmms.locomotion.reconstruction import net_pose
from rtmms.locomotion.travelling import travel
from rtmms.model import Model
from rtmms.robots import snake, snakeboard, unicycle
from rtmms.robots.shape_gaits import GAITS
from tests.locomotion.bodies import loop, robot
from tests.locomotion.test_holonomy import apart

P = unicycle.Unicycle()


def rectangle(s: float, turn: float) -> np.ndarray:
    """Wheel angles: s ahead, a turn to the left, s back, the turn back."""
    a, b = s / P.wheel_m, turn * P.half_track_m / P.wheel_m
    return np.array([[0.0, 0.0], [a, a], [a - b, a + b], [-b, b], [0.0, 0.0]])


@pytest.mark.parametrize(("s", "turn"), [(0.7, 0.9), (0.3, -2.0), (1.5, 4.0)])
def test_the_unicycle_s_rectangle(s: float, turn: float) -> None:
    net = holonomy(unicycle.describe(P), rectangle(s, turn), "nonholonomic")
    np.testing.assert_allclose(net, [s * (1.0 - math.cos(turn)), -s * math.sin(turn), 0.0], atol=1e-12)


def test_paces_ways_back_and_scallops() -> None:
    item, path = Connection(unicycle.describe(P), "nonholonomic"), Path.fourier(4.0 * loop(1))
    assert item.planar
    same = path.retimed(lambda t: t + 0.9 * np.sin(t), lambda t: 1.0 + 0.9 * np.cos(t), path.breaks)
    assert apart(net_pose(item, path), net_pose(item, same)) < 1e-10
    np.testing.assert_allclose(holonomy(item, [[0.0, 0.0], [2.0, 3.0], [0.0, 0.0]]), 0.0, atol=1e-12)
    motion = reconstruct(item, path)
    assert motion.work > 0.0
    a, b = item.model.ground.rows.shape
    assert a > 3
    assert b > 6


def test_its_curvature_is_the_bracket_alone() -> None:
    """A does not depend on the wheels' angles: dA is 0, and what is left parks the car."""
    item, r = Connection(unicycle.describe(P), "nonholonomic"), np.array([0.3, 0.5])
    np.testing.assert_allclose(item.curvature(r, bracketed=False), 0.0, atol=1e-15)
    form = item.form(r)
    np.testing.assert_allclose(item.curvature(r)[:, 0, 1], -bracket(form[:, 0], form[:, 1])[[0, 1, 5]], atol=1e-15)
    assert abs(item.curvature(r)[1, 0, 1]) > 1e-3


def board() -> Model:
    return model_of(snakeboard.describe(snakeboard.Snakeboard()))


DRIVE = gait_path("drive", 3, GAITS["snakeboard"])


def test_what_contacts_leave_free_takes_dynamics() -> None:
    """The snakeboard from eta(0) = 0: its way and speed at the end of a cycle; the energy is what was put in."""
    done = travel(board(), DRIVE)
    np.testing.assert_allclose(done.displacement, [0.1244027847, -0.0011904385, -0.0604740265], atol=1e-9)
    assert done.twist[-1, 0] == pytest.approx(0.0399697886, abs=1e-9)
    for k in (0, 100, 256):
        a, b = rows(board(), done.shape[k])
        assert np.abs(a @ done.twist[k] + b @ done.rate[k]).max() < 1e-9
    spent = np.trapezoid(done.effort, done.time)
    state = board().state()
    ends = []
    for k in (0, -1):
        state.q, state.qd, state.twist = done.shape[k], done.rate[k], done.twist[k]
        ends.append(dynamics.energy(board(), state).kinetic)
    assert spent == pytest.approx(ends[1] - ends[0], abs=1e-5)
    assert done.work + (done.work - done.cost) == pytest.approx(spent, abs=1e-12)


def test_its_pace_does_not_matter_from_rest() -> None:
    """Without springs and friction time only scales the twist."""
    current, slow = travel(board(), DRIVE), travel(board(), DRIVE.lasting(20.0))
    np.testing.assert_allclose(slow.displacement, current.displacement, atol=1e-8)
    np.testing.assert_allclose(slow.twist[-1] * 20.0, current.twist[-1] * 2.0 * math.pi, atol=1e-8)


def test_where_contacts_decide_all_it_is_the_connection() -> None:
    item = Connection(unicycle.describe(P), "nonholonomic")
    corners = rectangle(0.7, 0.9)
    np.testing.assert_allclose(travel(item.model, corners).displacement, holonomy(item, corners), atol=1e-9)


def test_a_corner_keeps_the_momentum_along_what_is_free() -> None:
    """The same shapes by a path that is rounded within a short time end with the same twist, the closer the shorter."""
    there = np.array([[0.0, 0.3, -0.3], [0.5, 0.3, -0.3], [0.5, -0.2, 0.2]])
    sharp = travel(board(), Path.polygon(there, 2.0))

    def rounded(e: float) -> Path:
        first, second = there[1] - there[0], there[2] - there[1]

        def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x = np.clip((t - 1.0 + e) / (2.0 * e), 0.0, 1.0)
            share = x**3 * (10.0 + x * (6.0 * x - 15.0))
            whole = np.where(x >= 1.0, t - 1.0, 2.0 * e * (x**4 * 2.5 - x**5 * 3.0 + x**6))
            rate = first + share[:, None] * (second - first)
            return there[0] + t[:, None] * first + whole[:, None] * (second - first), rate

        return Path(motion, (0.0, 1.0 - e, 1.0 + e, 2.0))

    off = [np.abs(travel(board(), rounded(e)).twist[-1] - sharp.twist[-1]).max() for e in (0.04, 0.01)]
    assert off[1] < 0.3 * off[0] < 0.3 * np.abs(sharp.twist[-1]).max()


def test_refused() -> None:
    with pytest.raises(rtmms.ModelError, match=r"travel: expected contacts \(Mechanism.contacts\), got none"):
        travel(model_of(robot("cat")), Path.circle(1.0))
    with pytest.raises(rtmms.ModelError, match="expected a closed path for 2 cycles"):
        travel(board(), [[0.0, 0.0, 0.0], [1.0, 0.1, -0.1]], cycles=2)


def test_redundant_contacts_that_contradict_the_rate_are_reported_by_joint() -> None:
    item = Connection(snake.describe(snake.Snake()), "nonholonomic")
    r = np.linspace(0.1, 0.4, item.shape_size)
    with pytest.raises(rtmms.ModelError, match=r"contradict the contacts by .* m/s; let .* follow"):
        item.twist(r, np.ones(item.shape_size))
