"""Qu 2024's words and numbers beside ours, one row a claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Found = Mapping[str, Any]

PICTURE = "picture only"
AGREES, DIFFERS, OURS, OTHER_MACHINE = "agrees", "differs", "ours alone", "other machine"


@dataclass(frozen=True, slots=True)
class Row:
    """where in the paper, what, the paper's word or number, ours, and whether they can be and are alike."""

    where: str
    what: str
    paper: str
    ours: str
    verdict: str


def rows(found: Found) -> list[Row]:
    """All rows; `found` as `reproduce.compute` returns it."""
    return [*_waves(found), *_thrust(found), *_speed(found), *_turns(found), *_methods(found)]


def as_data(table: list[Row]) -> list[dict[str, str]]:
    """The same as plain data."""
    return [asdict(row) for row in table]


def _alike(truth: bool) -> str:
    return AGREES if truth else DIFFERS


def _list(values: Any, form: str = ".1f") -> str:
    return ", ".join(f"{value:{form}}" for value in values)


def _waves(found: Found) -> Iterator[Row]:
    wave = found["fig7"]
    lag, chord = wave["rear_lag_deg"], wave["chord_lag_deg"]
    yield Row("fig. 7, 5.1", "lag from joint to joint, rear chain", "highly noticeable",
              f"{_list(lag)} deg", _alike(bool(np.all(lag > 5.0))))  # fmt: skip
    yield Row("fig. 7, 5.1", "lag from front to rear chain, joints 1 to 3", "conspicuous",
              f"{_list(chord)} deg", _alike(bool(np.all(chord > 5.0))))  # fmt: skip
    yield Row("fig. 7", "amplitudes of the rear chain's joints", "curves",
              f"{_list(wave['rear_amplitude_deg'], '.2f')} deg", PICTURE)  # fmt: skip


def _thrust(found: Found) -> Iterator[Row]:
    sweep, wave = found["fig8"], found["fig7"]
    by_amplitude, by_phase = sweep["thrust_by_amplitude_n"], sweep["thrust_by_phase_n"]
    yield Row("fig. 8, 5.1", "thrust over the amplitude, at each frequency", "grows",
              f"{by_amplitude.min():.2f} to {by_amplitude.max():.2f} N",
              _alike(bool(np.all(np.diff(by_amplitude, axis=1) > 0))))  # fmt: skip
    grows = "grows throughout" if np.all(np.diff(by_phase, axis=1) > 0) else "does not grow throughout"
    yield Row("fig. 8, 5.1", "thrust over the phase, -30 to 30 deg", "trend as measured", grows, PICTURE)
    nearest = int(np.argmin(np.abs(sweep["phase_deg"])))
    share = np.abs(by_phase[:, nearest]) / np.abs(by_phase[:, -1])
    yield Row("fig. 8", "thrust without phase, share of that at the largest phase", "curves",
              f"at most {100 * share.max():.1f} %", PICTURE)  # fmt: skip
    yield Row("fig. 8", "thrust over the frequency, exponent", "curves", f"{sweep['frequency_exponent']:.2f}", PICTURE)
    yield Row("fig. 8, 5.1", "mean thrust, 0.51 Hz, phase 30, amplitude 40 deg",
              "1.8 N off the experiment", f"{wave['mean_thrust_n']:.3f} N", PICTURE)  # fmt: skip
    yield Row("same group's prototype", "peak thrust, 0.6 Hz, phase 40, amplitude 50 deg", "about 20 N",
              f"{wave['peak_thrust_n']:.1f} N", _alike(abs(wave["peak_thrust_n"] - 20.0) < 2.0))  # fmt: skip


def _speed(found: Found) -> Iterator[Row]:
    settled = found["fig9"]["settled"]
    for row in settled:
        yield Row("fig. 9", f"settled speed, amplitude {row['amplitude_deg']:g} deg", "curves",
                  f"{row['speed_m_s']:.3f} m/s, 95 % after {row['reaches_95_percent_s']:.1f} s", PICTURE)  # fmt: skip
    swing = [row["swing_m_s"] for row in settled]
    yield Row("5.2", "swing of the speed within a period, over the amplitude", "grows",
              f"{_list(swing, '.3f')} m/s", _alike(bool(np.all(np.diff(swing) > 0))))  # fmt: skip
    last = settled[-1]
    yield Row("5.2", f"mean speed from 4 to 10 s, amplitude {last['amplitude_deg']:g} deg",
              "0.07 m/s off the experiment", f"{last['mean_4_to_10_s_m_s']:.3f} m/s", PICTURE)  # fmt: skip
    for row in settled:
        if row["amplitude_deg"] == 40.0:
            yield Row("1.1; other robots", "speed, amplitude 40 deg", "animals 0.25 to 0.47; robots 0.51, 0.7 m/s",
                      f"{row['speed_m_s']:.3f} m/s", OURS)  # fmt: skip
            yield Row("", "rod power and cost of transport, amplitude 40 deg", "not given",
                      f"{row['power_w']:.2f} W, {row['cost_of_transport']:.4f}", OURS)  # fmt: skip
    yaw = max(row["greatest_yaw_rad"] for row in settled)
    yield Row("", "yaw of a symmetric gait", "none expected", f"{yaw:.1g} rad", _alike(yaw < 1e-9))


def _turns(found: Found) -> Iterator[Row]:
    phase, amplitude = found["fig10_11"]["phase"], found["fig10_11"]["amplitude"]
    for name, one in (("phase 40 and 0 deg", phase), ("amplitude 40 and 20 deg", amplitude)):
        for window, words in (("5_to_10", "periods 5 to 10"), ("10_to_20", "periods 10 to 20"), ("settled", "settled")):
            yield Row("fig. 10", f"turn by {name}, {words}", "curves",
                      f"{abs(one['turn_rate_deg_s'][window]):.1f} deg/s, radius {one['turn_radius_m'][window]:.2f} m",
                      PICTURE)  # fmt: skip
    first = phase["first_yaw_acceleration_rad_s2"], amplitude["first_yaw_acceleration_rad_s2"]
    yield Row("fig. 11, 5.2", "first yaw acceleration, phase against amplitude", "higher for phase",
              f"{first[0]:.2f} against {first[1]:.2f} rad/s2", _alike(first[0] > first[1]))  # fmt: skip
    spread = [one["yaw_moment_spread_n_m"] for one in (phase, amplitude)]
    mean = [one["yaw_moment_mean_n_m"] for one in (phase, amplitude)]
    yield Row("fig. 11, 5.2", "fins' yaw moment, periods 15 to 20: mean and spread", "steady for amplitude",
              f"{mean[1]:.2f} +- {spread[1]:.2f} against {mean[0]:.2f} +- {spread[0]:.2f} N m",
              _alike(spread[1] < spread[0]))  # fmt: skip


def _methods(found: Found) -> Iterator[Row]:
    refused = found["refusals"]["RK4 at 10 ms"]
    yield Row("sec. 4", "RK4 at 10 ms with table 1's damping", "used",
              "refused, see below" if refused else "runs", _alike(not refused))  # fmt: skip
    cost = found["cost"]
    yield Row("sec. 4", "computing 10 ms, 30 chains of 3 links", "180 ms",
              f"{cost['ms_for_10_ms']:.3f} ms in steps of 1 ms", OTHER_MACHINE)  # fmt: skip
    balance = found["power_balance"]
    yield Row("", f"power balance, monolithic, at {balance['dt_s'][-1] * 1e3:g} ms", "not given",
              f"{balance['relative_error'][-1]:.1e}", OURS)  # fmt: skip
