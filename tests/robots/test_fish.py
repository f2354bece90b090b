"""The dead fish: against Lagrange's equations in plain numpy, its energy term by term, what a stream does to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rtmms
from rtmms.analysis.linearise import linearise
from rtmms.base.spatial import quaternion_matrix
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.plant import TreePlant
from rtmms.model.elongated import elongated_body
from rtmms.robots import fish
from rtmms.robots.fish_drawing import ROUND
from rtmms.view.drawings import shape_of
from rtmms_controllers.fish_wave import FishWave
from tests.controllers.test_eel import drive, info_of
from tests.robots.plain_fish import H, PlainFish


@pytest.fixture(scope="module")
def dead():
    return fish.load()


def planar(plant, seed, time=0.37):
    """A moving state, written into the plant at that time: (x, y, heading, joints) and rates of the plain fish."""
    rng = np.random.default_rng(seed)
    n = plant.model.n
    q, qd = np.concatenate([[0.03, 0.02, np.pi + 0.2], 0.2 * rng.normal(size=n)]), rng.normal(size=3 + n)
    qd[:3] *= 0.2
    write(plant, q, qd, round(time / plant.dt))
    return q, qd


def write(plant, q, qd, steps=0):
    n = plant.model.n
    c, s = np.cos(q[2]), np.sin(q[2])
    vector = np.zeros(13 + 2 * n)
    vector[:2], vector[[3, 6]], vector[7 : 7 + n] = q[:2], (np.cos(q[2] / 2), np.sin(q[2] / 2)), q[3:]
    vector[7 + n : 9 + n] = c * qd[0] + s * qd[1], -s * qd[0] + c * qd[1]
    vector[12 + n], vector[13 + n :] = qd[2], qd[3:]
    plant.start(vector, steps)


def accelerations(plant):
    """(x'', y'', heading'', joints'') of the plant's present state."""
    n, y = plant.model.n, plant.vector
    rate = plant.evaluate()
    r = quaternion_matrix(y[3:7])
    v, w = y[7 + n : 10 + n], y[10 + n : 13 + n]
    return np.concatenate([(r @ (rate[6 + n : 9 + n] + np.cross(w, v)))[:2], [rate[11 + n]], rate[12 + n :]])


@pytest.mark.parametrize("seed", [1, 2])
def test_lagranges_equations_give_the_same(dead, seed):
    plain = PlainFish(dead.parameters)
    q, qd = planar(dead, seed)
    ours, theirs = accelerations(dead), plain.accelerations(q, qd, dead.time)
    np.testing.assert_allclose(ours, theirs, rtol=2e-7, atol=2e-7 * np.abs(theirs).max())


@pytest.mark.parametrize("seed", [3, 4])
def test_energy_closes_term_by_term_at_an_instant(dead, seed):
    """d/dt of what is stored, by a complex step along the motion through the plain fish, against its powers."""
    plain = PlainFish(dead.parameters)
    q, qd = planar(dead, seed)
    info_of, qdd = dead.observe(), accelerations(dead)
    stored = plain.stored(q, qd, dead.time)
    for name, value in zip(("kinetic", "elastic", "fluid"), stored, strict=False):
        assert info_of[f"{name}_energy"] == pytest.approx(value, rel=1e-12), name
    moved = plain.stored(q + 1j * H * qd, qd + 1j * H * qdd, dead.time + 1j * H)
    powers = [float(info_of[f"{name}_power"]) for name in ("flow", "wake", "drag", "damping")]
    assert sum(part.imag / H for part in moved[:3]) == pytest.approx(sum(powers), abs=1e-12 * sum(map(abs, powers)))
    assert info_of["energy"] == pytest.approx(sum(stored[:3]), rel=1e-12)


def test_energy_closes_over_a_run_with_the_square_of_the_step(dead):
    off = []
    for dt in (1e-3, 5e-4):
        dead.reset()
        plant = dead if dt == dead.dt else fish.load(dt)
        start = plant.observe()["energy"]
        for _ in range(round(0.5 / dt)):
            plant.step(plant.neutral)
        end = plant.observe()
        spent = sum(end[f"{name}_work"] for name in ("flow", "wake", "drag", "damping")) + end["work"]
        off.append(abs(end["energy"] - start - spent) / end["flow_work"])
    assert off[0] < 2e-3
    assert np.log2(off[0] / off[1]) == pytest.approx(2.0, abs=0.4)


def test_only_the_motion_against_the_stream_counts(dead):
    """Galilean invariance: in a stream the fish accelerates as in still water, carried along."""
    free = rtmms.compile(replace(fish.describe(replace(dead.parameters, tether="none")), gravity=(0, 0, 0)))
    plant = TreePlant(free, 1e-3, method="implicit2", nodes={"strip_nodes": 1}, audited=True)
    carried = TreePlant(
        free, 1e-3, method="implicit2", nodes={"strip_nodes": 1}, audited=True, flow=Flow((0.3, -0.2, 0))
    )
    q, qd = planar(plant, 5)
    write(carried, q, qd + np.concatenate([[0.3, -0.2], np.zeros(len(q) - 2)]))
    still = accelerations(plant)
    np.testing.assert_allclose(accelerations(carried), still, atol=1e-14 * np.abs(still).max())


def test_a_neutral_fish_goes_with_an_accelerating_stream_exactly(dead):
    free = rtmms.compile(fish.describe(replace(dead.parameters, tether="none")))
    flow = Flow((0.1, 0, 0), acceleration=(0.7, -0.3, 0.0))
    plant = TreePlant(free, 1e-3, method="implicit2", nodes={"strip_nodes": 1}, flow=flow, audited=True)
    q = np.concatenate([[0.0, 0.0, 0.4], 0.2 * np.sin(np.arange(8.0))])
    write(plant, q, np.concatenate([[0.1, 0.0], np.zeros(len(q) - 2)]))
    plant.vector[7:15] = 0.0
    for _ in range(200):
        plant.step(plant.neutral)
    np.testing.assert_allclose(plant.vector[:2], [0.1 * 0.2 + 0.35 * 0.04, -0.15 * 0.04], atol=1e-12)
    np.testing.assert_allclose(plant.vector[7:15], 0.0, atol=1e-12)


def test_no_wake_feeds_energy_in(dead):
    q, qd = planar(dead, 6)
    qd[:] = 0.0
    ahead = np.array([np.cos(q[2]), np.sin(q[2])])
    for speed, sheds in ((-3.0, False), (3.0, True)):
        qd[:2], qd[-1] = speed * ahead, 5.0
        write(dead, q, qd)
        assert (float(dead.observe()["wake_power"]) != 0.0) == sheds


@pytest.mark.full
def test_the_papers_couple_is_found_and_breaks_the_energys_balance(dead):
    """(48): what the slices' own motion asks for, put in from outside, gives the same accelerations."""
    plant = fish.load(couple=1)
    q, qd = planar(plant, 9)
    planar(dead, 9)
    info_of, without = accelerations(plant), accelerations(dead)
    plain = PlainFish(plant.parameters)
    theirs = plain.accelerations(q, qd, plant.time)
    for _ in range(40):  # the same by repetition, through Lagrange's equations
        theirs = plain.accelerations(q, qd, plant.time, plain.couples(q, qd, theirs, plant.time))
    assert np.abs(info_of - without).max() > 1e-3 * np.abs(without).max()
    np.testing.assert_allclose(info_of, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.full
def test_a_dead_fish_swims_upstream_if_it_is_stiff_enough():
    drift = {}
    for stiffness in (2e-4, 5e-4, 1.5e-3, 3e-3):
        plant = fish.load(flexural_stiffness_n_m2=stiffness)
        x = []
        for _ in range(8000):
            plant.step(plant.neutral)
            x.append(plant.vector[0])
        drift[stiffness] = (x[-1] - x[3000]) / 5.0
        assert plant.observe()["work"] == 0.0
    assert drift[2e-4] > drift[5e-4] > 0.0 > drift[1.5e-3] > drift[3e-3]


def test_sections_without_area_and_other_impossible_fish_are_refused():
    with pytest.raises(
        rtmms.ModelError, match=r"body 'b': section at X = 0\.1\d* m: half-axes must be > 0 m, got \(0, 0.1\)"
    ):
        elongated_body("b", lambda x: (max(0.0, 0.1 - x), 0.1), 0.0, 0.2, 4, 1000.0)
    for values, why in (
        ({"flow": "file"}, "flow=file needs flow_file"),
        ({"flow": "file", "flow_file": "no.npz"}, "no.npz: there is no such file"),
        ({"width": 0.0}, "width must be > 0"),
        ({"core": 0.0}, "core: expected a number > 0"),
        ({"preset": "alive"}, "fish preset"),
    ):
        with pytest.raises(rtmms.RtmmsError, match=why):
            fish.load(**values)


def test_it_is_seen_where_it_is(dead):
    """The skin's tail is where the last link's end is; snapshots go on with the same bits."""
    q, _ = planar(dead, 7)
    shape, plain = shape_of(replace(info_of(dead), robot="fish")), PlainFish(dead.parameters)
    (points,) = shape.points(dead.observe())
    ring = np.array(points[-ROUND - 1 : -1])
    middle = quaternion_matrix(dead.vector[3:7]) @ ring.mean(axis=0) + dead.vector[:3]
    last = dead.parameters.length_m - plain.places[-1]
    np.testing.assert_allclose(middle[:2], plain.point(q, dead.model.n, last), atol=1e-12)
    blob = dead.snapshot()
    dead.step(dead.neutral)
    first = dead.vector.copy()
    dead.restore(blob)
    dead.step(dead.neutral)
    assert np.array_equal(dead.vector, first)


def test_muscles_over_the_wire_make_it_swim():
    plant = fish.load(flow="still", tether="none")
    drive(FishWave(), plant, 3000)
    assert plant.vector[0] < -0.1
    assert plant.observe()["work"] > 0.0


@pytest.mark.full
def test_derivatives_are_those_of_the_rates(dead):
    planar(dead, 8)
    n = dead.model.n
    result = linearise(dead)
    base, d, ends = dead.vector.copy(), 1e-6, []
    for sign in (1.0, -1.0):
        dead.vector[:] = base
        dead.vector[7 + 2] += sign * d
        ends.append(dead.evaluate()[6 + n :])
    column = result.a[:, result.states.index("bend3")]
    slope = (ends[0] - ends[1]) / (2.0 * d)
    np.testing.assert_allclose(column[6:12], slope[:6], rtol=1e-5, atol=1e-6 * np.abs(slope).max())
    np.testing.assert_allclose(column[12 + n :], slope[6:], rtol=1e-5, atol=1e-6 * np.abs(slope).max())
