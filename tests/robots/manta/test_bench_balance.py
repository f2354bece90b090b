"""`rtmms bench balance`: the joints' damping is what the step's second order is lost to."""

from __future__ import annotations

import json

import pytest

from rtmms.errors import ModelError
from rtmms_benchmarks import balance


@pytest.mark.full
def test_light_damping_has_the_methods_order_and_stiff_damping_less(capsys: pytest.CaptureFixture[str]) -> None:
    assert balance.main(True, steps="1e-3,5e-4", dampings="0.1,0.001", seconds=0.8) == 0
    rows = {(row["added_mass"], row["damping_n_m_s"]): row for row in json.loads(capsys.readouterr().out)["rows"]}
    for added_mass in (False, True):
        assert rows[added_mass, 0.001]["orders"] == pytest.approx([2.0], abs=0.1)
        assert rows[added_mass, 0.1]["orders"][0] < 1.85
        assert rows[added_mass, 0.1]["residual"][0] > 2.0 * rows[added_mass, 0.001]["residual"][0]


def test_a_step_that_is_no_number_is_refused() -> None:
    with pytest.raises(ModelError, match="expected numbers"):
        balance.main(True, steps="1 ms")
