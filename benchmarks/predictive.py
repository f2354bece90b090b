"""Predictive control beside the controllers without a model, on the same scenarios and seeds.

    rtmms bench predictive --seeds 3

Typical sensors without GPS, the estimator in the loop, a current of 0.1 m/s that nobody tells the controller of. Each
run is `rtmms run FILE --seed N` in lockstep.
"""

from __future__ import annotations

import json
from typing import Any

from rtmms.terminal import print_json, print_text

from . import setting
from .closing import SCENARIOS, run

SEEDS = 3
LINES = (
    ("helix", "predictive", "predictive_helix", 2.5), ("helix", "path", "helix", None),
    ("figure of eight", "predictive", "predictive_eight", 5.5), ("figure of eight", "path", "figure_of_eight", None),
)  # fmt: skip
"""Course, controller, scenario, and what the mean over seeds is to be, cm."""


def measured(scenario: str, seed: int) -> tuple[float | None, float | None, float | None]:
    """Root mean square of the way to the course, cm; power of the rods, W; mean speed, m/s. None: it did not end."""
    report = run([str(SCENARIOS / f"{scenario}.toml"), "--seed", str(seed), "--priority", "off"])
    if report["ended"] != "duration":
        return None, None, None
    off = report["tracking"]["cross_track_m"]["rms"]
    summary = report["summary"]
    return None if off is None else 100.0 * off, summary["mean_power_w"], summary["mean_speed_m_s"]


def main(as_json: bool = False, *, seeds: int = SEEDS) -> int:
    """Run the table."""
    setting.refuse_less("predictive: --seeds", seeds, 1)
    rows: list[dict[str, Any]] = []
    for course, controller, scenario, target in LINES:
        found = [measured(scenario, seed) for seed in range(1, seeds + 1)]
        kept = [one for one in found if one[0] is not None]
        means = [
            sum(float(one[k] or 0.0) for one in kept) / len(kept) if len(kept) == seeds else None for k in range(3)
        ]
        rows.append({
            "course": course, "controller": controller, "target_cm": target, "mean_cm": means[0],
            "worst_cm": max((one[0] for one in kept if one[0] is not None), default=None), "power_w": means[1],
            "speed_m_s": means[2], "runs": seeds, "lost": seeds - len(kept),
        })  # fmt: skip
        print_text(f"{course}, {controller}: done", err=True)
    if as_json:
        print_json(json.dumps({"commit": setting.commit(), "rows": rows}))
        return 0
    print_text(
        "| course | controller | target | mean | worst | power | speed | runs |\n|---|---|---|---|---|---|---|---|"
    )
    for row in rows:
        wanted = "" if row["target_cm"] is None else f"{row['target_cm']:g} cm"
        numbers = [
            "-" if row[name] is None else f"{row[name]:.2f} {unit}"
            for name, unit in (("mean_cm", "cm"), ("worst_cm", "cm"), ("power_w", "W"), ("speed_m_s", "m/s"))
        ]
        print_text(f"| {row['course']} | `{row['controller']}` | {wanted} | {' | '.join(numbers)} | {row['runs']} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
