"""Tables with clocks that are rounded, gaps, other units of time, and rows that are missing."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.base.errors import ModelError, RtmmsWarning
from rtmms.mechanism.actuators import JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Box, at
from rtmms.studies.fit_tables import from_table, of_mapping, of_table
from rtmms.studies.recordings import Recording, Series, is_sparse, noise_of, refuse_still

ROWS = 600


def plant(dt: float, limit: float | None = None) -> TreePlant:
    rod = Box(0.04, 0.04, 0.5, 1000.0, at(z=-0.25))
    mechanism = Mechanism(
        "pendulum", [Body("base"), Body("arm", solids=[rod])], [Joint("shoulder", "base", "arm", axis=(0, 1, 0))],
        base="fixed",
    )  # fmt: skip
    return TreePlant(mechanism, dt, actuators=[JointTorque("shoulder", limit=limit)])


def columns(dt: float, rows: int = ROWS) -> dict[str, Any]:
    chance = np.random.default_rng(7)
    return {
        "time": dt * np.arange(rows), "command.shoulder.torque": chance.normal(size=rows),
        "joint_position[0]": np.sin(0.05 * np.arange(rows)) + 0.01 * chance.normal(size=rows),
    }  # fmt: skip


def recording(data: dict[str, Any], dt: float) -> Recording:
    return of_table(of_mapping(data, "table"), "table", "pendulum", {}, dt=dt, make=lambda **_: plant(dt))


@pytest.mark.parametrize("dt", [0.01, 1.0 / 60.0, 1.0 / 400.0, 1.0 / 3.0])
@pytest.mark.parametrize("clock", [
    lambda t: t, lambda t: t + 1.7e9, lambda t: np.round(t, 3), lambda t: np.round(t, 6), lambda t: t + 0.0371,
    lambda t: np.round(t + 12.3456, 4),
], ids=["zero", "unix", "ms", "us", "later", "later, rounded"])  # fmt: skip
def test_a_clock_that_is_rounded_delays_no_command(dt: float, clock: Callable[[Any], Any]) -> None:
    data = columns(dt)
    time = clock(data["time"])
    if np.abs(time - time[0] - data["time"]).max() > 0.1 * dt:
        pytest.skip("the clock is coarser than a tenth of a step")
    result = recording(data | {"time": time}, dt)
    assert result.commands.shape == (ROWS - 1, 1)
    assert np.array_equal(result.commands[:, 0], data["command.shoulder.torque"][:-1])


def test_a_command_that_changes_within_a_step_counts_by_its_mean() -> None:
    data = columns(0.01)
    command = data["command.shoulder.torque"]
    result = recording(data | {"time": 0.5 * data["time"]}, 0.01)  # two rows a step
    np.testing.assert_allclose(result.commands[:, 0], command.reshape(-1, 2).mean(axis=1)[: len(result.commands)])
    late = np.random.default_rng(3).uniform(0.1, 0.4, ROWS) * 0.01  # a logger that is late by up to 4 ms
    late[0] = 0.0
    result = recording(data | {"time": data["time"] + late}, 0.01)
    share = late[:-1] / 0.01
    before = np.concatenate([command[:1], command[:-2]])
    np.testing.assert_allclose(result.commands[:, 0], share * before + (1.0 - share) * command[:-1], atol=1e-12)


def test_the_last_sample_counts_whatever_the_clock() -> None:
    data = columns(0.01)
    for begin in (0.0, 1.7e9):
        (item,) = recording(data | {"time": data["time"] + begin}, 0.01).series
        assert item.time[-1] == pytest.approx(0.01 * (ROWS - 1), abs=1e-12)
        assert item.time[-1] <= 0.01 * (ROWS - 1) * (1.0 + 1e-12)


@pytest.mark.parametrize("gaps", [[], [(50, 100)], [(50, 100), (200, 260), (300, 350)]])
@pytest.mark.parametrize("how", ["nan", "rows"])
def test_the_noise_of_samples_does_not_grow_with_gaps(gaps: list[tuple[int, int]], how: str) -> None:
    time = 0.01 * np.arange(ROWS)
    value = 2.0 * np.sin(3.0 * time) + 0.01 * np.random.default_rng(5).normal(size=ROWS)
    there = np.ones(ROWS, bool)
    for begin, end in gaps:
        there[begin:end] = False
    value[~there] = np.nan
    rows = there if how == "rows" else np.ones(ROWS, bool)
    item = Series("joint_position", time[rows], value[rows, None], "rad", np.array([np.nan]))
    assert noise_of(item) == pytest.approx([0.01], rel=0.1)


def test_a_sensor_that_is_stuck_is_named() -> None:
    result = recording(columns(0.01) | {"joint_position[0]": np.full(ROWS, 0.3)}, 0.01)
    with pytest.raises(ModelError, match="joint_position: expected measurements that change, got one value for all"):
        refuse_still(result)


def test_a_time_in_ms_and_lost_rows_are_warned_of() -> None:
    data = columns(0.01, 60)
    with pytest.warns(RtmmsWarning, match=r"rows are 10 s apart and a step has 0\.01 s.*the column time is in s"):
        recording(data | {"time": 1000.0 * data["time"]}, 0.01)
    data = columns(0.01)
    rows = np.r_[0:200, 350:ROWS]
    with pytest.warns(RtmmsWarning, match=r"table: row 202: no rows for 1\.51 s, from t = 1\.99 s on"):
        recording({name: column[rows] for name, column in data.items()}, 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recording({name: column[::10] for name, column in data.items()}, 0.01)  # a controller of 10 Hz


@pytest.mark.parametrize("stored", [slice(0, ROWS, 10), np.r_[0:100, 101:ROWS]], ids=["every", "one lost"])
def test_a_table_of_a_log_without_some_steps_is_refused(stored: Any, tmp_path: Path) -> None:
    """A row has the command of the step before it: between the rows there are others."""
    data = columns(0.01) | {"step": np.arange(ROWS, dtype=float)}
    data["time"] = data["time"] + 0.01
    assert len(recording(data, 0.01).commands) == ROWS
    with pytest.raises(ModelError, match=re.escape("the commands between are missing; give the log itself")):
        recording({name: column[stored] for name, column in data.items()}, 0.01)


@pytest.mark.parametrize("first", [0.0, 5.0])
def test_a_counter_of_rows_is_no_step_of_a_log(first: float) -> None:
    """At the row of a log's step the time is that of its end; a counter of another program has that of its begin."""
    data = columns(0.01) | {"step": first + np.arange(ROWS)}
    result = recording(data, 0.01)
    assert np.array_equal(result.commands[:, 0], data["command.shoulder.torque"][:-1])
    assert not result.known
    result = recording(data | {"time": data["time"] + 0.01 * (first + 1.0)}, 0.01)
    assert np.array_equal(result.commands[:, 0], data["command.shoulder.torque"])
    assert result.known == (first == 0.0)


@pytest.mark.parametrize("parts", [2, 5])
def test_a_table_of_a_log_counts_in_the_logs_own_steps(parts: int) -> None:
    """The model's step is longer: it begins where the log does, and its commands are means."""
    fine = 0.01 / parts
    data = columns(fine) | {"step": np.arange(ROWS, dtype=float)}
    data["time"] = data["time"] + fine
    result = recording(data, 0.01)
    expected = data["command.shoulder.torque"].reshape(-1, parts).mean(axis=1)
    np.testing.assert_allclose(result.commands[:, 0], expected, atol=1e-12)
    assert result.series[0].time[0] == pytest.approx(fine)
    coarse = recording(data, fine)
    assert np.array_equal(coarse.commands[:, 0], data["command.shoulder.torque"])


def test_a_table_of_a_log_that_was_altered_is_refused() -> None:
    data = columns(0.01) | {"step": np.arange(ROWS, dtype=float), "altered": np.arange(ROWS) == 150}
    data["time"] = data["time"] + 0.01
    with pytest.raises(ModelError, match=r"table: row 152: a request changed the state or the parameters"):
        recording(data, 0.01)
    recording({name: column[:150] for name, column in data.items()}, 0.01)


@pytest.mark.parametrize("name", ["time", "command.shoulder.torque", "joint_position[0]"])
@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_an_infinite_number_is_refused(name: str, bad: float) -> None:
    data = columns(0.01)
    data[name] = data[name].copy()
    data[name][7] = bad
    with pytest.raises(ModelError, match=rf"table: row 9: {re.escape(name)}: expected a number or nothing"):
        recording(data, 0.01)


def test_commands_beyond_the_limits_are_named() -> None:
    def read(factor: float) -> None:
        data = columns(0.01)
        data["command.shoulder.torque"] = factor * np.sin(0.1 * np.arange(ROWS))
        of_table(of_mapping(data, "table"), "table", "pendulum", {}, dt=0.01, make=lambda **_: plant(0.01, 1.0))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(1.0)
    with pytest.warns(
        RtmmsWarning, match=r"command\.shoulder\.torque: 9\d.* % of the commands are beyond the limits -1"
    ):
        read(57.3)


def noise(channel: str, values: Any, period: float = 0.01) -> Series:
    table = np.asarray(values, dtype=float)
    return Series(channel, period * np.arange(len(table)), table, "", np.full(table.shape[1], math.nan), None)


def test_noise_is_estimated_in_spite_of_outliers_and_signs() -> None:
    chance = np.random.default_rng(3)
    time = 0.01 * np.arange(3000)
    clean = np.stack([np.cos(0.4 * time), np.sin(0.4 * time), 0 * time, 0 * time], axis=1)
    clean += 2e-3 * chance.normal(size=clean.shape)
    expected = noise_of(noise("quaternion", clean))
    np.testing.assert_allclose(expected, 2e-3, rtol=0.05)
    for every in (2, 7, 500):
        flipped = clean * np.where(np.arange(3000) // every % 2, -1.0, 1.0)[:, None]
        assert np.array_equal(noise_of(noise("mocap.quaternion", flipped)), expected)
    bad = clean.copy()
    bad[[100, 900, 2000]] += 50.0
    np.testing.assert_allclose(noise_of(noise("velocity", bad)), expected, rtol=0.02)


def test_samples_that_are_far_apart_are_known() -> None:
    chance = np.random.default_rng(4)
    for period, sparse in ((0.2, True), (0.01, False)):
        time = period * np.arange(400)
        values = np.sin(5.0 * time)[:, None] + 2e-3 * chance.normal(size=(400, 1))
        assert is_sparse(noise("velocity", values, period)) == sparse
        assert not is_sparse(replace(noise("velocity", values, period), noise=np.array([2e-3])))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time,command.shoulder.torque,q,q\n0,0,0,0\n")
    with pytest.raises(ModelError, match=r"a\.csv: expected columns with unique names, got 'q' 2 times"):
        from_table(path, "pendulum", {}, dt=0.01, make=lambda **_: plant(0.01))
