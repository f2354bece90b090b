"""The report for a person: the first lines state what happened in words, and each number has its unit."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms.cli.running.plan import Plan
from rtmms.cli.running.report import blank
from rtmms.cli.running.report_table import as_table


def report(**values: Any) -> dict[str, Any]:
    """A run of 5 s at 1 kHz to its end; given: of its exchange, its schedule, or itself."""
    built = blank(Plan(robot="manta")) | {
        "ended": "duration", "simulated_s": 5.0, "wall_s": 5.01, "real_time_factor": 0.998, "steps": 5000, "dt": 1e-3,
    }  # fmt: skip
    built["schedule"]["period_us"] = 1000.0
    for name, value in values.items():
        part = next((built[part] for part in ("exchange", "schedule") if name in built[part]), built)
        part[name] = value
    return built


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, "in time: every command and every step"),
        ({"overruns": 31, "causes": {"machine": 31}}, "31 late steps of 5000, all caused by the computer"),
        ({"misses": 1, "causes": {"peer_gone": 1}}, "1 late command of 5000, caused by controllers that were gone"),
        ({"misses": 3, "max_consecutive_misses": 2, "overruns": 1, "causes": {"machine": 1, "peer_late": 3}},
         "3 late commands (at most 2 in a row) and 1 late step of 5000; "
         "caused by controllers that answered late 3, the computer 1"),
        ({"overruns": 1, "skipped": 2}, "1 late step of 5000; 2 periods skipped"),
        ({"misses": 2}, "2 late commands of 5000"),
        ({"stale": 45}, "45 of 5000 steps with values that were too old"),
    ],
)  # fmt: skip
def test_the_second_line_reports_what_was_late_and_why(arguments: dict[str, Any], line: str) -> None:
    result = as_table(report(**arguments)).splitlines()
    assert result[0] == "manta, realtime: 5 s simulated in 5.01 s, 5000 steps of 1 ms"
    assert result[1] == line


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"summary": {"mean_speed_m_s": 0.41487}}, "mean speed        0.4149 m/s"),
        ({"summary": {"one.turn_rate_deg_s": -3.0}}, "one.turn rate     -3 deg/s"),
        ({"summary": {"strouhal": None}}, "strouhal          -"),
        ({"final": {"velocity": [0.5, 0.0, -0.25]}, "units": {"velocity": "m/s"}},
         "velocity          0.5  0  -0.25 m/s"),
        ({"final": {"quaternion": [1.0, 0.0, 0.0, 0.0]}, "units": {"quaternion": "-"}}, "quaternion        1  0  0  0"),
        ({"estimate": {"attitude_deg": {"rms": 0.14, "nees": 3.0}}}, "attitude          rms 0.14 deg, nees 3"),
        ({"tracking": {"depth_m": {"rms": 0.1, "mean": 0.0, "max": 0.2, "settled_s": None}}},
         "depth             rms 0.1 m, mean 0 m, max 0.2 m; never settled"),
        ({"ended": "interrupt"}, "ended by Ctrl-C or SIGTERM"), ({"ended": "diverged"}, "; diverged"),
        ({"misses": 2, "late": 1, "commands_applied": 4998}, "in time for 4998 steps, missing for 2, late ones 1"),
    ],
)  # fmt: skip
def test_a_number_has_its_unit(arguments: dict[str, Any], text: str) -> None:
    assert [line for line in as_table(report(**arguments)).splitlines() if line.strip().endswith(text.strip())]


def test_what_is_long_or_of_two_dimensions_is_left_out() -> None:
    values = {"joints": [0.0] * 9, "thrust": [[1.0], [2.0]], "depth": 1.0}
    message = as_table(report(final=values, units={"depth": "m"}))
    assert "depth             1 m" in message
    assert "joints" not in message
    assert "thrust" not in message


WATCHED = {"watched": True, "learned": True, "period_s": 0.02, "silences_count": 1, "losses_count": 0}


def timed(**values: Any) -> dict[str, Any]:
    """A bridge that claims an actuator, in the report."""
    built: dict[str, Any] = {
        "name": "udp", "claim": ["left.*"], "connected_s": 0.0, "first_command_s": 0.012, "silences": [], "losses": [],
        "restarts": 0, "disconnected_s": None, "steps": {"applied": 4960, "stale": 40, "missed": 0}, "watch": WATCHED,
    }  # fmt: skip
    return built | values


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "connected at 0 s; first command at 0.012 s; never silent; steps: 4960 in time, 40 too old, 0 missing"),
        ({"silences": [{"begin_s": 3.0, "begin_step": 3000, "length_s": 1.5}], "restarts": 1},
         "silent once: from 3 s for 1.5 s; back once; steps"),
        ({"silences": [{"begin_s": float(k), "begin_step": k, "length_s": 0.5} for k in range(6)],
          "watch": WATCHED | {"silences_count": 100}},
         "silent 100 times: from 0 s for 0.5 s, from 1 s for 0.5 s, from 2 s for 0.5 s, "
         "from 3 s for 0.5 s and 96 more"),
        ({"losses": [2.5], "disconnected_s": 2.5}, "lost at 2.5 s; gone since 2.5 s"),
        ({"first_command_s": None}, "connected at 0 s; no command; never silent"),
        ({"watch": WATCHED | {"watched": False}}, "; its silence is not watched, because it sends on events only"),
    ],
)  # fmt: skip
def test_a_run_with_a_bridge_opens_with_the_times_of_each_peer(arguments: dict[str, Any], text: str) -> None:
    lines = as_table(report(peers=[timed(**arguments)])).splitlines()
    (head,) = (k for k, line in enumerate(lines) if line == "peers")
    assert head <= 4
    assert lines[head + 1].startswith("  udp ")
    assert text in lines[head + 1]


def test_a_run_of_controllers_that_were_always_there_has_no_such_lines() -> None:
    assert "peers" not in as_table(report(peers=[timed(name="gait", watch=None)])).splitlines()
    assert "peers" in as_table(report(peers=[timed(name="gait", watch=None, losses=[1.0])])).splitlines()
