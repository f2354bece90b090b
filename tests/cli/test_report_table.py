"""The report for a person: the first lines say what happened in words, and each number has its unit."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms.cli.running.plan import Plan
from rtmms.cli.running.report import blank
from rtmms.cli.running.report_table import as_table


def report(**given: Any) -> dict[str, Any]:
    """A run of 5 s at 1 kHz to its end; given: of its exchange, its schedule, or itself."""
    made = blank(Plan(robot="manta")) | {
        "ended": "duration", "simulated_s": 5.0, "wall_s": 5.01, "real_time_factor": 0.998, "steps": 5000, "dt": 1e-3,
    }  # fmt: skip
    made["schedule"]["period_us"] = 1000.0
    for name, value in given.items():
        part = next((made[part] for part in ("exchange", "schedule") if name in made[part]), made)
        part[name] = value
    return made


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "in time: every command and every step"),
        ({"overruns": 31, "blame": {"machine": 31}}, "31 late steps of 5000, all caused by the computer"),
        ({"misses": 1, "blame": {"peer_gone": 1}}, "1 late command of 5000, caused by controllers that were gone"),
        ({"misses": 3, "max_consecutive_misses": 2, "overruns": 1, "blame": {"machine": 1, "peer_late": 3}},
         "3 late commands (at most 2 in a row) and 1 late step of 5000; "
         "caused by controllers that answered late 3, the computer 1"),
        ({"overruns": 1, "skipped": 2}, "1 late step of 5000; 2 periods skipped"),
        ({"misses": 2}, "2 late commands of 5000"),
    ],
)  # fmt: skip
def test_the_second_line_says_what_was_late_and_why(given: dict[str, Any], line: str) -> None:
    told = as_table(report(**given)).splitlines()
    assert told[0] == "manta, realtime: 5 s simulated in 5.01 s, 5000 steps of 1 ms"
    assert told[1] == line


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"summary": {"mean_speed_m_s": 0.41487}}, "mean speed        0.4149 m/s"),
        ({"summary": {"one.turn_rate_deg_s": -3.0}}, "one.turn rate     -3 deg/s"),
        ({"summary": {"strouhal": None}}, "strouhal          -"),
        ({"final": {"velocity": [0.5, 0.0, -0.25]}, "units": {"velocity": "m/s"}},
         "velocity          0.5  0  -0.25 m/s"),
        ({"final": {"quaternion": [1.0, 0.0, 0.0, 0.0]}, "units": {"quaternion": "-"}}, "quaternion        1  0  0  0"),
        ({"estimate": {"attitude_deg": {"rms": 0.14, "nees": 3.0}}}, "attitude          rms 0.14 deg, nees 3"),
        ({"tracking": {"depth_m": {"rms": 0.1, "mean": 0.0, "max": 0.2, "settled_s": None}}},
         "depth             rms 0.1 m, mean 0 m, most 0.2 m; never settled"),
        ({"ended": "interrupt"}, "ended by Ctrl-C or SIGTERM"), ({"ended": "diverged"}, "; diverged"),
        ({"misses": 2, "late": 1, "commands_applied": 4998}, "in time for 4998 steps, missing for 2, late ones 1"),
    ],
)  # fmt: skip
def test_a_number_has_its_unit(given: dict[str, Any], text: str) -> None:
    assert [line for line in as_table(report(**given)).splitlines() if line.strip().endswith(text.strip())]


def test_what_is_long_or_of_two_dimensions_is_left_out() -> None:
    given = {"joints": [0.0] * 9, "thrust": [[1.0], [2.0]], "depth": 1.0}
    told = as_table(report(final=given, units={"depth": "m"}))
    assert "depth             1 m" in told
    assert "joints" not in told
    assert "thrust" not in told
