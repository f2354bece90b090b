"""What differs from run to run: words and tables, the cases they make, and what is refused."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.studies.sweep_study import Base, Study, read_axis, read_study

BASE = Base("pendulum", controllers=("swing",), duration=1.0, dt=0.01)


def study(*over: str, table: dict[str, Any] | None = None, **more: Any) -> Study:
    values: dict[str, Any] = {"samples": None, "method": None, "columns": ()}
    return read_study("s.toml", BASE, table or {}, over, **{**values, **more})


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("0.5:2:4", (0.5, 1.0, 1.5, 2.0)),
        ("0:9:4", (0, 3, 6, 9)),
        ("0:1:3", (0.0, 0.5, 1.0)),
        ("1,2.5,sequential,true", (1, 2.5, "sequential", True)),
        ([1, 2], (1, 2)),
    ],
)
def test_an_axis_is_a_range_or_values(word: Any, values: tuple[Any, ...]) -> None:
    result = read_axis("--vary", "damping", word, "grid").values
    assert result == values
    assert [type(item) for item in result] == [type(value) for value in values]


@pytest.mark.parametrize("word", ["", "1:2", "2:1:3", "1:2:1", "1:2:3:4", "a:b:3", "0:inf:3", "1,1", "1,,2", "nan,1"])
def test_what_is_no_axis_is_refused(word: str) -> None:
    with pytest.raises(ModelError, match="--vary: damping: "):
        read_axis("--vary", "damping", word, "grid")


LONG = "9" * 308
NO_COLUMN = (
    [2**70, 1], [datetime.date(2026, 1, 1)], [None], ["x" * 5000], f"1,{2**63}", f"0:{'9' * 30}:3", f"-{LONG}:{LONG}:3",
)  # fmt: skip


@pytest.mark.parametrize("word", NO_COLUMN)
def test_values_that_no_table_holds_are_refused(word: Any) -> None:
    with pytest.raises(ModelError, match=r"sweep.over.*damping: expected") as message:
        read_axis("s.toml: [sweep.over]", "damping", word, "grid")
    assert len(str(message.value)) < 1000


def test_seeds_without_end_and_too_many_axes_are_refused() -> None:
    with pytest.raises(ModelError, match="seed: expected at most 10,000,000 values"):
        read_axis("--vary", "seed", "0:1e15", "sobol")
    with pytest.raises(ModelError, match="expected at most 64 varied parameters, got 65"):
        study(*(f"p{k}=0:1" for k in range(65)), method="sobol", samples=2)


def test_a_grid_has_every_combination_the_last_one_fastest() -> None:
    result = study("damping=0.1,0.2", "swing.amplitude=1:3:3")
    assert result.runs == 6
    assert result.cases() == [(0.1, 1), (0.1, 2), (0.1, 3), (0.2, 1), (0.2, 2), (0.2, 3)]


@pytest.mark.parametrize("method", ["sobol", "lhs"])
def test_samples_fill_their_ranges_and_are_those_of_their_seed(method: str) -> None:
    result = study("damping=0.1:0.5", "coupling=a,b", "seed=3:6", method=method, samples=64)
    cases = result.cases()
    assert result.runs == len(cases) == 64
    damping = np.array([case[0] for case in cases])
    assert damping.min() >= 0.1
    assert damping.max() <= 0.5
    assert np.histogram(damping, 8, (0.1, 0.5))[0].tolist() == [8] * 8
    assert {case[1] for case in cases} == {"a", "b"}
    assert {case[2] for case in cases} == {3, 4, 5, 6}
    assert study("damping=0.1:0.5", "coupling=a,b", "seed=3:6", method=method, samples=64).cases() == cases
    assert study("damping=0.1:0.5", "coupling=a,b", "seed=3:6", method=method, samples=64,
                 table={"seed": 1}).cases() != cases  # fmt: skip


def test_a_table_agrees_and_the_line_replaces_it() -> None:
    table = {"over": {"damping": "0.1:0.3:3", "swing": {"amplitude": [1.0, 2.0]}}, "columns": ["mean_angle_rad"]}
    result = study(table=table)
    assert result == study("damping=0.1:0.3:3", "swing.amplitude=1.0,2.0", columns=("mean_angle_rad",))
    assert study("damping=0.7,0.9", table=table).axes[0].values == (0.7, 0.9)
    assert result.digest() != study("damping=0.7,0.9", table=table).digest()


@pytest.mark.parametrize(
    ("over", "more", "text"),
    [
        ((), {}, "expected at least one parameter to vary"),
        (("damping",), {}, "expected KEY="),
        (("swng.amplitude=1,2",), {}, "unknown controller 'swng'; did you mean swing"),
        (("damping=1,2",), {"samples": 4, "method": "grid"}, "samples: expected method sobol or lhs"),
        (("damping=1:2",), {"method": "lhs"}, "samples: expected a whole number from 1"),
        (("seed=-1,2",), {}, "--vary seed: expected a whole number from 0 to .*, got -1"),
        (("dt=0.0,2.0",), {}, "--vary dt: expected a number > 0, got 0.0"),
        (("damping=0:1:9000000", "swing.amplitude=0:1:2"), {}, "18,000,000 runs; expected at most 10,000,000"),
    ],
)
def test_what_no_study_can_be(over: tuple[str, ...], more: dict[str, Any], text: str) -> None:
    with pytest.raises(ModelError, match=text):
        study(*over, **more)
