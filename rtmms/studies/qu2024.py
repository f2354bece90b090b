"""`rtmms reproduce qu2024`: the robotic manta's figures and numbers again, beside the paper's."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.base import files as whole_file
from rtmms.base.terminal import print_json, print_text
from rtmms.studies import qu2024_choices as choices
from rtmms.studies import qu2024_runs as runs
from rtmms.studies.qu2024_runs import Settings
from rtmms.view import tables as beside
from rtmms.view.tables import Table, rows_as_table
from rtmms.view.verdict import OTHER_MACHINE, OURS, Claim, Row, about, above, at_least, at_most

# Qu 2024's words and numbers beside ours, one row a claim.


Results = Mapping[str, Any]
Measured = Iterator[tuple[str, float, str]]
"""Key of the claim, the judged number, and its text ('' for the claim's own form)."""

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


def rows(result: Results) -> list[Row]:
    """Return all rows of the table.

    Parameters
    ----------
    result : Results
        Result of `compute`.

    Returns
    -------
    list[Row]
        Rows.
    """
    judged = {
        key: (value, shown)
        for part in (_waves, _thrust, _speed, _turns, _methods)
        for key, value, shown in part(result)
    }
    listed = [claim.row(judged[claim.key][0], shown=judged[claim.key][1]) for claim in CLAIMS if claim.key in judged]
    return [*listed, *_settled(result), *_windows(result)]


def _list(values: Any, form: str = ".1f") -> str:
    return ", ".join(f"{value:{form}}" for value in values)


def _waves(result: Results) -> Measured:
    wave = result["fig7"]
    for key in ("rear_lag", "chord_lag"):
        yield key, float(np.min(wave[f"{key}_deg"])), _list(wave[f"{key}_deg"])
    size = wave["rear_amplitude_deg"]
    yield "amplitudes", float(np.max(size)), _list(size, ".2f")


def _thrust(result: Results) -> Measured:
    sweep, wave = result["fig8"], result["fig7"]
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


def _speed(result: Results) -> Measured:
    settled = result["fig9"]["settled"]
    swing = [row["swing_m_s"] for row in settled]
    yield "swing", float(np.diff(swing).min()), f"{np.diff(swing).min():.2g}, of {_list(swing, '.3f')}"
    yield "early_speed", settled[-1]["mean_4_to_10_s_m_s"], ""
    for row in settled:
        if row["amplitude_deg"] == 40.0:
            yield "speed", row["speed_m_s"], ""
            yield "power", row["power_w"], ""
            yield "cost_of_transport", row["cost_of_transport"], ""
    yield "yaw", max(row["greatest_yaw_rad"] for row in settled), ""


def _turns(result: Results) -> Measured:
    phase, amplitude = (result["fig10_11"][name] for name in ("phase", "amplitude"))
    for key, name, form, unit in (("first_yaw", "first_yaw_acceleration_rad_s2", ".2f", "rad/s2"),
                                  ("spread", "yaw_moment_spread_n_m", ".2f", "N m")):  # fmt: skip
        ratio = phase[name] / amplitude[name]
        yield key, ratio, f"{ratio:.1f}: {phase[name]:{form}} over {amplitude[name]:{form}} {unit}"


def _methods(result: Results) -> Measured:
    yield "rk4_step", 1e3 * result["rk4_step_s"], ""
    yield "cost", result["cost"]["ms_for_10_ms"], ""
    balance = result["power_balance"]
    yield "balance", balance["relative_error"][-1], ""
    yield "iterated", max(result["coupling"]["iterated"]["position_m"]), ""


def _settled(result: Results) -> Iterator[Row]:
    """Return the rows of figure 9, a curve an amplitude."""
    for row in result["fig9"]["settled"]:
        name = f"settled speed, amplitude {row['amplitude_deg']:g} deg"
        text = f"{row['speed_m_s']:.3f}, 95 % after {row['reaches_95_percent_s']:.1f} s"
        yield Claim("", name, "curves", "m/s", where="fig. 9").row(row["speed_m_s"], shown=text)


def _windows(result: Results) -> Iterator[Row]:
    """Return the rows of figure 10, three parts of each turn."""
    for name, key in (("phase 40 and 0 deg", "phase"), ("amplitude 40 and 20 deg", "amplitude")):
        item = result["fig10_11"][key]
        for window, period_text in (
            ("5_to_10", "periods 5 to 10"),
            ("10_to_20", "periods 10 to 20"),
            ("settled", "settled"),
        ):
            rate, radius = abs(item["turn_rate_deg_s"][window]), item["turn_radius_m"][window]
            claim = Claim("", f"turn by {name}, {period_text}", "curves", "deg/s", where="fig. 10")
            yield claim.row(rate, shown=f"{rate:.1f}, radius {radius:.2f} m")


COST_STEPS = 4000


def main(out: Path | None, as_json: bool, settings: Settings | None = None) -> int:
    """Compute, print the tables (or one JSON object), and write figures, tables and data.

    Parameters
    ----------
    out : Path | None
        Folder of the files; None: no files.
    as_json : bool
        Print JSON.
    settings : Settings | None, optional
        Amount of computation.

    Returns
    -------
    int
        Exit status: 1 if a necessary result does not hold.
    """
    began = time.monotonic()
    result = compute(settings or Settings())
    listed = rows(result)
    built = tables(result, listed)
    data = {"paper": "qu2024", **_plain(result), "rows": [row.as_data() for row in listed]}
    if out is not None:
        from rtmms.studies.qu2024_figures import draw_all

        for path in draw_all(result, out):
            _print_line(f"wrote {path}")
        for name, text in (("qu2024.json", json.dumps(data) + "\n"), ("qu2024.md", beside.page(built))):
            with whole_file.new_file_beside(out / name, "-o") as part:
                part.write_text(text, encoding="utf-8")
        _print_line(f"wrote {out / 'qu2024.json'} and {out / 'qu2024.md'}")
    if as_json:
        print_json(json.dumps(data))
    else:
        print_text("".join(table.text() for table in built.values()))
    if out is None and not as_json:
        _print_line("for the figures: -o DIR")
    _print_line(f"done in {time.monotonic() - began:.0f} s")
    return beside.print_verdicts(listed)


def compute(settings: Settings) -> dict[str, Any]:
    """Compute all data of the figures and tables.

    Parameters
    ----------
    settings : Settings
        Amount of computation.

    Returns
    -------
    dict[str, Any]
        Data by part.
    """
    result: dict[str, Any] = {}
    _print_line("figure 7: waves")
    result["fig7"] = runs.waves(settings)
    _print_line("figure 8: thrust")
    result["fig8"] = runs.thrust_sweeps(settings)
    _print_line("figure 9: speed")
    result["fig9"] = runs.speeds(settings)
    _print_line("figures 10 and 11: turning")
    result["fig10_11"] = runs.turns(settings)
    result["cost"] = {"ms_for_10_ms": _cost()}
    result["paper_preset"] = choices.paper_preset(settings, _print_line)
    result["refusals"], result["rk4_step_s"] = choices.refusals(), choices.longest_rk4_step()
    result["power_balance"] = choices.power_balance(settings, _print_line)
    result["coupling"] = choices.coupling_error(settings, _print_line)
    result["thrust_error"] = choices.thrust_error(settings, _print_line)
    result["readings"] = choices.readings(settings, _print_line)
    return result


def _cost() -> float:
    """Return the time of this machine for 10 ms of the manta's, from Python, without observing, ms."""
    free, command = runs.plant(), np.zeros(4)
    began = time.perf_counter()
    for _ in range(COST_STEPS):
        free.step(command)
    return (time.perf_counter() - began) / COST_STEPS * 1e3 * (10e-3 / float(free.dt))


def _print_line(text: str) -> None:
    print_text(f"rtmms: {text}", err=True)


def _plain(value: Any) -> Any:
    """Convert to lists and floats of 6 digits for JSON; infinite values and nan become null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


# --- text -------------------------------------------------------------------------------------------------------------


def tables(result: dict[str, Any], table: Sequence[Row]) -> dict[str, Table]:
    """Return all tables; docs/manta.md has them between marks of these names.

    Parameters
    ----------
    result : dict[str, Any]
        Result of `compute`.
    table : Sequence[Row]
        Result of `rows`.

    Returns
    -------
    dict[str, Table]
        Tables by name.
    """
    built = {
        "claims": rows_as_table("Qu 2024 and this model", table),
        "readings": _readings(result),
        "coupling": _coupling(result),
    }
    if result["thrust_error"] is not None:
        built["thrust error"] = _thrust_error(result["thrust_error"])
    built["refused"] = Table(
        "Refused, because it would blow up", ("what", "in the plant's words"),
        [(name, reason or "it runs") for name, reason in result["refusals"].items()],
    )  # fmt: skip
    built["claims"] = replace(built["claims"], notes=(*built["claims"].notes, "", PICTURE_ONLY))
    return built


PICTURE_ONLY = "Picture only: the paper shows a curve and gives no number, so that only trends can be compared."


def _readings(result: dict[str, Any]) -> Table:
    """Return the table of every other reading and the paper preset, beside the default."""
    heads = ("reading", "thrust at 10", "at 30", "at 40 deg, N", "speed, m/s", "power, W", "turn, deg/s", "radius, m")
    lines = []
    default = result["readings"][0]
    for row in (*result["readings"], {"reading": "--preset paper", **result["paper_preset"]}):
        cells = [row["reading"]]
        for key in choices.NAMES:
            value = row[key]
            if value is None:
                cells.append("-")
                continue
            change = "" if row is default else f" ({100.0 * (value / default[key] - 1.0):+.1f} %)"
            form = ".4f" if key == "thrust_10_n" else ".3f" if key not in ("power_w", "turn_rate_deg_s") else ".2f"
            cells.append(f"{value:{form}}" + ("" if key in ("power_w", "turn_radius_m") else change))
        lines.append(tuple(cells))
    notes = [
        "Thrust: body held, 0.51 Hz, phase 30 deg. Speed and power: 0.6 Hz, amplitude and phase 40 deg. Turn: 0.8 Hz, "
        "phase 40 and 0 deg, periods 10 to 20.",
        *(f"{row['reading']}: {row['failed']}" for row in result["readings"] if row["failed"]),
    ]
    return Table("What each reading changes (ideal motors)", heads, lines, notes)


def _coupling(result: dict[str, Any]) -> Table:
    coupling = result["coupling"]
    heads = ("against", *(f"{dt * 1e3:g} ms" for dt in coupling["dt_s"]), "order")
    lines = []
    for name, against in (("sequential", "monolithic"), ("iterated", "monolithic"),
                          ("monolithic", f"itself at {coupling['reference_dt_s'] * 1e3:g} ms")):  # fmt: skip
        for key, unit in (("position_m", "m"), ("velocity_m_s", "m/s")):
            order = choices.order(coupling["dt_s"], coupling[name][key])
            text = "-" if order is None else f"{order:.2f}"
            lines.append((f"{name} against {against}, {unit}", *(_small(e) for e in coupling[name][key]), text))
    title = f"Error over the step: greatest difference in {coupling['simulated_s']:g} s, {coupling['gait']}"
    balance = result["power_balance"]
    text = ", ".join(
        f"{e:.1e} at {dt * 1e3:g} ms" for dt, e in zip(balance["dt_s"], balance["relative_error"], strict=True)
    )
    ending = "" if balance["order"] is None else f"; order {balance['order']:.2f}"
    return Table(
        title,
        heads,
        lines,
        [f"Power balance along a monolithic run of 3.2 s, share of the work put in: {text}{ending}."],
    )


def _small(error: float) -> str:
    """Return a bound as text for errors of rounding and of the tolerance."""
    return "below 1e-09" if error < 1e-9 else f"{error:.2e}"


def _thrust_error(item: dict[str, Any]) -> Table:
    lines = [(f"{dt * 1e3:g} ms", f"{thrust:.4f}", f"{error:+.4f}") for dt, thrust, error in
             zip(item["dt_s"], item["thrust_n"], item["error_percent"], strict=True)]  # fmt: skip
    title = (f"Mean thrust of the implicit method against explicit RK4 at {item['rk4_dt_s'] * 1e6:g} us: "
             f"{item['rk4_thrust_n']:.4f} N")  # fmt: skip
    return Table(title, ("step", "thrust, N", "error, %"), lines)
