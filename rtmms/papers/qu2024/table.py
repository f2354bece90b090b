"""Qu 2024's words and numbers beside ours, one row a claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rtmms.report.verdict import OTHER_MACHINE, OURS, Claim, Row, about, above, at_least, at_most

Found = Mapping[str, Any]
Measured = Iterator[tuple[str, float, str]]
"""Key of the claim, the number that is judged, and how it is printed ('' for the claim's own form)."""

NOTICEABLE_DEG = 5.0
STIFF = (
    "table 1's damping on links this light is stiff: 0.1/30 N m s in its place lets RK4 take 0.29 ms, next to none "
    "(1e-5) 2.8 ms, added mass 0.08 ms, fins four times as heavy 0.04 ms; none comes to 10 ms"
)

CLAIMS = (
    Claim("rear_lag", "least lag from joint to joint, rear chain", "highly noticeable", "deg", at_least(NOTICEABLE_DEG),
          where="fig. 7, 5.1", note="joint after joint from the root; noticeable is from 5 deg on"),
    Claim("chord_lag", "least lag from front to rear chain, joints 1 to 3", "conspicuous", "deg",
          at_least(NOTICEABLE_DEG), where="fig. 7, 5.1"),
    Claim("amplitudes", "amplitudes of the rear chain's joints", "curves", "deg", where="fig. 7"),
    Claim("over_amplitude", "thrust over the amplitude: least rise, each frequency", "grows", "N", above(0.0),
          where="fig. 8, 5.1"),
    Claim("over_phase", "thrust over the phase, -30 to 30 deg: least rise", "trend as measured", "N", above(0.0),
          where="fig. 8, 5.1", note="the measured trend is a rise"),
    Claim("no_phase", "thrust without phase, share of that at the largest phase", "curves", "%", None, ".1f",
          where="fig. 8"),
    Claim("exponent", "thrust over the frequency, exponent", "curves", "", None, ".2f", where="fig. 8"),
    Claim("thrust", "mean thrust, 0.51 Hz, phase 30, amplitude 40 deg", "1.8 N off the experiment", "N", None, ".3f",
          where="fig. 8, 5.1"),
    Claim("peak_thrust", "peak thrust, 0.6 Hz, phase 40, amplitude 50 deg", "about 20", "N", about(20.0), ".1f",
          where="same group's prototype"),
    Claim("swing", "swing of the speed within a period: least rise over the amplitude", "grows", "m/s", above(0.0),
          where="5.2"),
    Claim("early_speed", "mean speed from 4 to 10 s, largest amplitude", "0.07 m/s off the experiment", "m/s", None,
          ".3f", where="5.2"),
    Claim("speed", "speed, amplitude 40 deg", "animals 0.25 to 0.47; robots 0.51, 0.7", "m/s", None, ".3f",
          where="1.1; other robots", unjudged=OURS),
    Claim("power", "rod power, amplitude 40 deg", "not given", "W", None, ".2f", unjudged=OURS),
    Claim("cost_of_transport", "cost of transport, amplitude 40 deg", "not given", "", None, ".4f", unjudged=OURS),
    Claim("yaw", "yaw of a symmetric gait", "none expected", "rad", at_most(1e-9), ".0e", must=True),
    Claim("first_yaw", "first yaw acceleration, phase over amplitude", "higher for phase", "", above(1.0),
          where="fig. 11, 5.2"),
    Claim("spread", "spread of the fins' yaw moment, periods 15 to 20, phase over amplitude", "steady for amplitude",
          "", above(1.0), where="fig. 11, 5.2"),
    Claim("rk4_step", "longest step of RK4 with table 1's damping", "10 ms used", "ms", at_least(10.0), ".4f",
          where="sec. 4", why=STIFF),
    Claim("cost", "computing 10 ms, 30 chains of 3 links, in steps of 1 ms", "180", "ms", None, ".3f", where="sec. 4",
          unjudged=OTHER_MACHINE),
    Claim("balance", "power balance, monolithic, shortest step, share of the work", "not given", "", at_most(1e-4),
          ".1e", must=True),
    Claim("iterated", "iterated against monolithic coupling, largest distance in the runs below", "not given", "m",
          at_most(1e-9), ".0e", must=True),
)  # fmt: skip
BY_KEY = {claim.key: claim for claim in CLAIMS}


def rows(found: Found) -> list[Row]:
    """All rows; `found` as `reproduce.compute` returns it."""
    judged = {
        key: (value, shown) for part in (_waves, _thrust, _speed, _turns, _methods) for key, value, shown in part(found)
    }
    told = [claim.row(judged[claim.key][0], shown=judged[claim.key][1]) for claim in CLAIMS if claim.key in judged]
    return [*told, *_settled(found), *_windows(found)]


def _list(values: Any, form: str = ".1f") -> str:
    return ", ".join(f"{value:{form}}" for value in values)


def _waves(found: Found) -> Measured:
    wave = found["fig7"]
    for key in ("rear_lag", "chord_lag"):
        yield key, float(np.min(wave[f"{key}_deg"])), _list(wave[f"{key}_deg"])
    size = wave["rear_amplitude_deg"]
    yield "amplitudes", float(np.max(size)), _list(size, ".2f")


def _thrust(found: Found) -> Measured:
    sweep, wave = found["fig8"], found["fig7"]
    by_amplitude, by_phase = sweep["thrust_by_amplitude_n"], sweep["thrust_by_phase_n"]
    for key, by in (("over_amplitude", by_amplitude), ("over_phase", by_phase)):
        rise = float(np.diff(by, axis=1).min())
        yield key, rise, f"{rise:.2g}, of {by.min():.2f} to {by.max():.2f}"
    nearest = int(np.argmin(np.abs(sweep["phase_deg"])))
    share = 100.0 * float(np.max(np.abs(by_phase[:, nearest]) / np.abs(by_phase[:, -1])))
    yield "no_phase", share, f"at most {share:.1f}"
    yield "exponent", sweep["frequency_exponent"], ""
    yield "thrust", wave["mean_thrust_n"], ""
    yield "peak_thrust", wave["peak_thrust_n"], ""


def _speed(found: Found) -> Measured:
    settled = found["fig9"]["settled"]
    swing = [row["swing_m_s"] for row in settled]
    yield "swing", float(np.diff(swing).min()), f"{np.diff(swing).min():.2g}, of {_list(swing, '.3f')}"
    yield "early_speed", settled[-1]["mean_4_to_10_s_m_s"], ""
    for row in settled:
        if row["amplitude_deg"] == 40.0:
            yield "speed", row["speed_m_s"], ""
            yield "power", row["power_w"], ""
            yield "cost_of_transport", row["cost_of_transport"], ""
    yield "yaw", max(row["greatest_yaw_rad"] for row in settled), ""


def _turns(found: Found) -> Measured:
    phase, amplitude = (found["fig10_11"][name] for name in ("phase", "amplitude"))
    for key, name, form, unit in (("first_yaw", "first_yaw_acceleration_rad_s2", ".2f", "rad/s2"),
                                  ("spread", "yaw_moment_spread_n_m", ".2f", "N m")):  # fmt: skip
        ratio = phase[name] / amplitude[name]
        yield key, ratio, f"{ratio:.1f}: {phase[name]:{form}} over {amplitude[name]:{form}} {unit}"


def _methods(found: Found) -> Measured:
    yield "rk4_step", 1e3 * found["rk4_step_s"], ""
    yield "cost", found["cost"]["ms_for_10_ms"], ""
    balance = found["power_balance"]
    yield "balance", balance["relative_error"][-1], ""
    yield "iterated", max(found["coupling"]["iterated"]["position_m"]), ""


def _settled(found: Found) -> Iterator[Row]:
    """What figure 9 shows, a curve an amplitude."""
    for row in found["fig9"]["settled"]:
        name = f"settled speed, amplitude {row['amplitude_deg']:g} deg"
        text = f"{row['speed_m_s']:.3f}, 95 % after {row['reaches_95_percent_s']:.1f} s"
        yield Claim("", name, "curves", "m/s", where="fig. 9").row(row["speed_m_s"], shown=text)


def _windows(found: Found) -> Iterator[Row]:
    """What figure 10 shows, three parts of each turn."""
    for name, key in (("phase 40 and 0 deg", "phase"), ("amplitude 40 and 20 deg", "amplitude")):
        one = found["fig10_11"][key]
        for window, words in (("5_to_10", "periods 5 to 10"), ("10_to_20", "periods 10 to 20"), ("settled", "settled")):
            rate, radius = abs(one["turn_rate_deg_s"][window]), one["turn_radius_m"][window]
            claim = Claim("", f"turn by {name}, {words}", "curves", "deg/s", where="fig. 10")
            yield claim.row(rate, shown=f"{rate:.1f}, radius {radius:.2f} m")
