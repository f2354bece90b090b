"""`rtmms reproduce qu2024`: the robotic manta's figures and numbers again, beside the paper's."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from rtmms.report.qu2024 import choices, runs
from rtmms.report.qu2024.runs import Settings
from rtmms.report.qu2024.table import Row, as_data, rows

COST_STEPS = 4000


def main(out: Path | None, as_json: bool, settings: Settings | None = None) -> int:
    """Compute, print the tables (or one JSON object), and write figures, tables and data into `out` if it is given."""
    began = time.monotonic()
    found = compute(settings or Settings())
    table = rows(found)
    data = {"paper": "qu2024", **_plain(found), "table": as_data(table)}
    if out is not None:
        from rtmms.report.qu2024.figures import draw_all

        for path in draw_all(found, out):
            _say(f"wrote {path}")
        (out / "qu2024.json").write_text(json.dumps(data) + "\n", encoding="utf-8")
        (out / "qu2024.md").write_text(as_text(found, table, markdown=True), encoding="utf-8")
        _say(f"wrote {out / 'qu2024.json'} and {out / 'qu2024.md'}")
    click.echo(json.dumps(data) if as_json else as_text(found, table))
    if out is None and not as_json:
        _say("for the figures: -o DIR")
    _say(f"done in {time.monotonic() - began:.0f} s")
    return 0


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
    found["refusals"] = choices.refusals()
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
    click.echo(f"rtmms: {words}", err=True)


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


def as_text(found: dict[str, Any], table: Sequence[Row], markdown: bool = False) -> str:
    """All tables, aligned; as Markdown they are tables there too."""
    parts = [
        _table("Qu 2024 and this model", ("where", "what", "paper", "ours", "verdict"),
               [(row.where, row.what, row.paper, row.ours, row.verdict) for row in table], markdown),
        _note(
            "Verdict 'picture only': the paper shows a curve and gives no number, so that only trends can be compared."
        ),
        _readings(found, markdown),
        _coupling(found, markdown),
        _thrust_error(found, markdown),
        _table("Refused, because it would blow up", ("what", "in the plant's words"),
               [(name, words or "it runs") for name, words in found["refusals"].items()], markdown),
    ]  # fmt: skip
    return "\n".join(parts)


def _readings(found: dict[str, Any], markdown: bool) -> str:
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
            if key in ("thrust_30_n", "thrust_40_n", "thrust_10_n", "speed_m_s", "turn_rate_deg_s"):
                cells.append(f"{value:{form}}{change}")
            else:
                cells.append(f"{value:{form}}")
        lines.append(tuple(cells))
    table = _table("What each reading changes (ideal motors)", heads, lines, markdown)
    return table + _note(
        "Thrust: body held, 0.51 Hz, phase 30 deg. Speed and power: 0.6 Hz, amplitude and phase 40 deg. Turn: 0.8 Hz, "
        "phase 40 and 0 deg, periods 10 to 20."
    ) + "".join(_note(f"{row['reading']}: {row['failed']}") for row in found["readings"] if row["failed"])  # fmt: skip


def _coupling(found: dict[str, Any], markdown: bool) -> str:
    one = found["coupling"]
    heads = ("against", *(f"{dt * 1e3:g} ms" for dt in one["dt_s"]), "order")
    lines = []
    for name, against in (("sequential", "monolithic"), ("iterated", "monolithic"),
                          ("monolithic", f"itself at {one['reference_dt_s'] * 1e3:g} ms")):  # fmt: skip
        for key, unit in (("position_m", "m"), ("velocity_m_s", "m/s")):
            order = choices.order(one["dt_s"], one[name][key])
            text = "-" if order is None else f"{order:.2f}"
            lines.append((f"{name} against {against}, {unit}", *(f"{e:.2e}" for e in one[name][key]), text))
    title = f"Error over the step: greatest difference in {one['simulated_s']:g} s, {one['gait']}"
    balance = found["power_balance"]
    text = ", ".join(
        f"{e:.1e} at {dt * 1e3:g} ms" for dt, e in zip(balance["dt_s"], balance["relative_error"], strict=True)
    )
    ending = "" if balance["order"] is None else f"; order {balance['order']:.2f}"
    return _table(title, heads, lines, markdown) + _note(
        f"Power balance along a monolithic run of 3.2 s, share of the work put in: {text}{ending}."
    )


def _thrust_error(found: dict[str, Any], markdown: bool) -> str:
    one = found["thrust_error"]
    if one is None:
        return ""
    lines = [(f"{dt * 1e3:g} ms", f"{thrust:.4f}", f"{error:+.4f}") for dt, thrust, error in
             zip(one["dt_s"], one["thrust_n"], one["error_percent"], strict=True)]  # fmt: skip
    title = (f"Mean thrust of the implicit method against explicit RK4 at {one['rk4_dt_s'] * 1e6:g} us: "
             f"{one['rk4_thrust_n']:.4f} N")  # fmt: skip
    return _table(title, ("step", "thrust, N", "error, %"), lines, markdown)


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], markdown: bool) -> str:
    if markdown:
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"## {title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n{body}\n\n"
    widths = [max(len(line[k]) for line in (heads, *lines)) for k in range(len(heads))]
    text = [title, ""]
    for line in (heads, *lines):
        text.append("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    text.insert(3, "  " + "  ".join("-" * width for width in widths))
    return "\n".join(text) + "\n\n"


def _note(text: str) -> str:
    return f"{text}\n\n"
