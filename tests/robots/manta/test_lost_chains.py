"""A fin that lost chains: they vanish from every sum, and the other fin does not notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.robots.manta.fin_layout import LANES, LENGTH, MASS, L, pack_links
from rtmms.robots.manta.model import compile_manta, link_fields
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.sensing.faults import Faulty


def swum(steps: int = 400, **parameters: Any) -> Any:
    plant = rtmms.load("manta", **parameters)
    for k in range(steps):
        plant.step(0.4 * np.sin(0.01 * k + np.array([0.0, -0.7, 0.0, -0.7])))
    return plant


def test_the_table_of_each_fin() -> None:
    whole, broken = (compile_manta(MantaParameters(left_chains_lost=k), 1e-3, "sequential").param for k in (0, 20))
    np.testing.assert_array_equal(whole[0], whole[1])
    np.testing.assert_array_equal(broken[1], whole[1])
    links, station, _ = link_fields(MantaParameters())
    np.testing.assert_array_equal(whole[0], pack_links(links, station))
    for b in range(2):
        for i in range(LANES):
            lost = 16 * b + i < 20
            for field in range(LENGTH, MASS):
                assert broken[0, b, field * LANES + i] == whole[0, b, field * LANES + i]
            at = 2 * L + MASS * LANES + i
            assert (broken[0, b, at] < 1e-25) == (lost or 16 * b + i >= 30)


def test_a_lost_fin_pushes_nothing_and_the_other_is_as_it_was() -> None:
    """Of a body that is held, so that neither fin feels the other."""
    whole, broken = swum(body="fixed"), swum(body="fixed", left_chains_lost=30)
    item, other = whole.observe(), broken.observe()
    np.testing.assert_array_equal(other["thrust"][1], item["thrust"][1])
    np.testing.assert_array_equal(other["rod_torque"][2:], item["rod_torque"][2:])
    assert np.abs(other["thrust"][0]).max() < 1e-20 * np.abs(item["thrust"][0]).max()
    assert np.abs(other["rod_torque"][:2]).max() < 1e-20
    np.testing.assert_array_equal(other["joint_position"], item["joint_position"])


def test_what_each_chain_adds_is_what_is_missing_without_it() -> None:
    """Kinetic and elastic energy are sums over chains: of 7 of 30, and of the other 23 in mirrored fins."""
    energies = {
        lost: np.array([float(swum(body="fixed", **lost_of(lost)).observe()[name]) for name in ENERGIES])
        for lost in ((0, 0), (7, 0), (0, 7), (7, 7))
    }
    whole = energies[0, 0]
    assert energies[7, 0] == pytest.approx(energies[0, 7], rel=1e-12)
    assert energies[7, 0] - energies[7, 7] == pytest.approx(whole - energies[0, 7], rel=1e-9)
    assert (energies[7, 7] < 0.95 * whole).all()


ENERGIES = ("kinetic_energy", "elastic_energy")


def lost_of(lost: tuple[int, int]) -> dict[str, int]:
    return {"left_chains_lost": lost[0], "right_chains_lost": lost[1]}


def test_a_fault_begins_and_ends() -> None:
    plant = Faulty(rtmms.load("manta"))
    assert {"fault.left", "fault.right", "fault.left.front"} <= set(plant.settable)
    command, thrusts, before = np.zeros(4), [], plant.observe()
    for k in range(900):
        if k in (300, 600):
            plant.set(**{"fault.left": "lost_chains=15" if k == 300 else ""})
            np.testing.assert_array_equal(plant.observe()["velocity"], before["velocity"])
        command[:] = 0.4 * np.sin(0.01 * k)
        plant.step(command)
        before = plant.observe()
        thrusts.append(np.abs(before["thrust"][:, 2]))
        assert np.isfinite(before["velocity"]).all()
        assert np.linalg.norm(before["velocity"]) < 0.5
    left, right = np.array(thrusts).T
    assert left[:300] == pytest.approx(right[:300], rel=1e-9)
    assert left[350:600].mean() < 0.9 * right[350:600].mean()
    assert left[700:].mean() == pytest.approx(right[700:].mean(), rel=0.3)
    plant.set(**{"fault.right": "lost_chains=3"})
    plant.reset()
    assert plant.parameters.right_chains_lost == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [("lost_chains", "lost_chains=NUMBER"), ("lost_chains=31", "at most the fin's 30 chains, got 31"),
     ("lost_chains=-1", "must be >= 0"), ("lost_chains=1.5", "a whole number, got 1.5"), ("stuck", "lost_chains")],
)  # fmt: skip
def test_what_cannot_be_lost(value: str, message: str) -> None:
    plant = Faulty(rtmms.load("manta"))
    with pytest.raises(ModelError, match=message):
        plant.set(**{"fault.left": value})
