"""`rtmms reproduce qu2024`: the robotic manta's figures and numbers again, beside the paper's."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rtmms import whole_file
from rtmms.papers.qu2024 import choices, runs
from rtmms.papers.qu2024.runs import Settings
from rtmms.papers.qu2024.table import rows
from rtmms.report import beside
from rtmms.report.tables import Table, of_rows
from rtmms.report.verdict import Row
from rtmms.terminal import print_json, print_text

COST_STEPS = 4000


def main(out: Path | None, as_json: bool, settings: Settings | None = None) -> int:
    """Compute, print the tables (or one JSON object), and write figures, tables and data into `out` if it is given; 1
    if what must hold does not."""
    began = time.monotonic()
    found = compute(settings or Settings())
    told = rows(found)
    made = tables(found, told)
    data = {"paper": "qu2024", **_plain(found), "rows": [row.as_data() for row in told]}
    if out is not None:
        from rtmms.papers.qu2024.figures import draw_all

        for path in draw_all(found, out):
            _say(f"wrote {path}")
        for name, text in (("qu2024.json", json.dumps(data) + "\n"), ("qu2024.md", beside.page(made))):
            with whole_file.beside(out / name, "-o") as part:
                part.write_text(text, encoding="utf-8")
        _say(f"wrote {out / 'qu2024.json'} and {out / 'qu2024.md'}")
    if as_json:
        print_json(json.dumps(data))
    else:
        print_text("".join(table.text() for table in made.values()))
    if out is None and not as_json:
        _say("for the figures: -o DIR")
    _say(f"done in {time.monotonic() - began:.0f} s")
    return beside.told(told)


def compute(settings: Settings) -> dict[str, Any]:
    """Everything the figures and tables are made of."""
    found: dict[str, Any] = {}
    _say("figure 7: waves")
    found["fig7"] = runs.waves(settings)
    _say("figure 8: thrust")
    found["fig8"] = runs.thrust_sweeps(settings)
    _say("figure 9: speed")
    found["fig9"] = runs.speeds(settings)
    _say("figures 10 and 11: turning")
    found["fig10_11"] = runs.turns(settings)
    found["cost"] = {"ms_for_10_ms": _cost()}
    found["paper_preset"] = choices.paper_preset(settings, _say)
    found["refusals"], found["rk4_step_s"] = choices.refusals(), choices.longest_rk4_step()
    found["power_balance"] = choices.power_balance(settings, _say)
    found["coupling"] = choices.coupling_error(settings, _say)
    found["thrust_error"] = choices.thrust_error(settings, _say)
    found["readings"] = choices.readings(settings, _say)
    return found


def _cost() -> float:
    """ms of this machine for 10 ms of the manta's, from Python, without observing."""
    free, command = runs.plant(), np.zeros(4)
    began = time.perf_counter()
    for _ in range(COST_STEPS):
        free.step(command)
    return (time.perf_counter() - began) / COST_STEPS * 1e3 * (10e-3 / float(free.dt))


def _say(words: str) -> None:
    print_text(f"rtmms: {words}", err=True)


def _plain(value: Any) -> Any:
    """Lists and floats of 6 digits for JSON; what is not finite is null."""
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


def tables(found: dict[str, Any], table: Sequence[Row]) -> dict[str, Table]:
    """All tables by name; docs/manta.md has them between marks of these names."""
    made = {
        "claims": of_rows("Qu 2024 and this model", table),
        "readings": _readings(found),
        "coupling": _coupling(found),
    }
    if found["thrust_error"] is not None:
        made["thrust error"] = _thrust_error(found["thrust_error"])
    made["refused"] = Table(
        "Refused, because it would blow up", ("what", "in the plant's words"),
        [(name, words or "it runs") for name, words in found["refusals"].items()],
    )  # fmt: skip
    made["claims"] = replace(made["claims"], notes=(*made["claims"].notes, "", PICTURE_ONLY))
    return made


PICTURE_ONLY = "Picture only: the paper shows a curve and gives no number, so that only trends can be compared."


def _readings(found: dict[str, Any]) -> Table:
    """Every other reading and the paper preset, beside the default."""
    heads = ("reading", "thrust at 10", "at 30", "at 40 deg, N", "speed, m/s", "power, W", "turn, deg/s", "radius, m")
    lines = []
    default = found["readings"][0]
    for row in (*found["readings"], {"reading": "--preset paper", **found["paper_preset"]}):
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
        *(f"{row['reading']}: {row['failed']}" for row in found["readings"] if row["failed"]),
    ]
    return Table("What each reading changes (ideal motors)", heads, lines, notes)


def _coupling(found: dict[str, Any]) -> Table:
    one = found["coupling"]
    heads = ("against", *(f"{dt * 1e3:g} ms" for dt in one["dt_s"]), "order")
    lines = []
    for name, against in (("sequential", "monolithic"), ("iterated", "monolithic"),
                          ("monolithic", f"itself at {one['reference_dt_s'] * 1e3:g} ms")):  # fmt: skip
        for key, unit in (("position_m", "m"), ("velocity_m_s", "m/s")):
            order = choices.order(one["dt_s"], one[name][key])
            text = "-" if order is None else f"{order:.2f}"
            lines.append((f"{name} against {against}, {unit}", *(_small(e) for e in one[name][key]), text))
    title = f"Error over the step: greatest difference in {one['simulated_s']:g} s, {one['gait']}"
    balance = found["power_balance"]
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
    """Below that, digits are those of rounding and of the tolerance."""
    return "below 1e-09" if error < 1e-9 else f"{error:.2e}"


def _thrust_error(one: dict[str, Any]) -> Table:
    lines = [(f"{dt * 1e3:g} ms", f"{thrust:.4f}", f"{error:+.4f}") for dt, thrust, error in
             zip(one["dt_s"], one["thrust_n"], one["error_percent"], strict=True)]  # fmt: skip
    title = (f"Mean thrust of the implicit method against explicit RK4 at {one['rk4_dt_s'] * 1e6:g} us: "
             f"{one['rk4_thrust_n']:.4f} N")  # fmt: skip
    return Table(title, ("step", "thrust, N", "error, %"), lines)
