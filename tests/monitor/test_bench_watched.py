"""`rtmms bench watched` in a tiny setting: the same state with and without the monitor; no time is judged."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rtmms_benchmarks import watched


def test_a_step_that_is_longer_shows_in_the_ratio_and_outside_its_interval():
    draw = np.random.default_rng(1)
    alone = [10.0 + draw.random(500) for _ in range(8)]
    found = watched.compared(alone, [1.3 * block for block in alone])
    for name in watched.QUANTILES:
        assert found[name]["ratio"] == pytest.approx(1.3)
        assert found[name]["between"][0] > 1.2
    same = watched.compared(alone, alone[::-1])
    assert same["p50"]["ratio"] == 1.0
    assert same["p50"]["between"][0] < 1.0 < same["p50"]["between"][1]


@pytest.mark.full
def test_both_of_a_pair_end_in_the_same_state(capsys):
    assert watched.main(True, pairs=2, seconds=0.05) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["same_state"]
    assert 0.0 < out["looks_a_step"] < 1.0
    watched.tell(out)
    assert "95 % of it" in capsys.readouterr().out
