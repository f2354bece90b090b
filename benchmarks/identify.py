"""How often the true value lies within two standard errors, and how well what was held back is predicted.

    rtmms bench identify --seeds 100

Each case draws true parameters around the model's, lets a manta with few chains swim its gait, unevenly, and fits what
was told of it. `outputs`: its outputs with white noise that nobody tells; `sensors`: typical sensors, with all their
errors that last. One more fit of each kind asks for a pair that the data cannot tell apart.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

import rtmms
from rtmms.identification.evidence import weighed
from rtmms.identification.fitting import Settings, fit
from rtmms.identification.recording import Recording, of_plant
from rtmms.identification.unknowns import asked_for
from rtmms.sensing import Sensed, read_profile
from rtmms.terminal import print_json, print_text

from . import setting

SEEDS, SECONDS, DT, NOISE = 100, 6.0, 0.01, 0.05
"""Cases; simulated s of a run; s; of a channel's spread."""
WATER: dict[str, Any] = {"chains": 4, "added_mass": True, "coupling": "monolithic"}
SOUGHT = {"drag_coefficient": 1.5, "joint_damping_n_m_s": 0.1, "added_mass_coefficient": 0.785}
"""With the model's value of each; the true ones differ by up to a fourth."""
PAIR = ("body_drag_coefficient[0]", "body_drag_area_m2[0]")


def build(**parameters: Any) -> Any:
    """The model."""
    return rtmms.load("manta", dt=DT, **{**WATER, **parameters})


def swum(kind: str, truth: dict[str, float], seed: int) -> Recording:
    """A run of a manta with these parameters."""
    plant = build(**truth)
    period = plant.gait_commands(round(plant.gait_period() / DT))
    steps = round(SECONDS / DT)
    commands = np.tile(period, (steps // len(period) + 1, 1))[:steps] * np.array([1.0, 1.0, 0.8, 0.8])
    seen = Sensed(plant, read_profile("typical", plant)) if kind == "sensors" else plant
    run = of_plant(seen, commands, build, robot="manta", seed=seed)
    if kind == "sensors":
        return run
    chance = np.random.default_rng([seed, 1])
    series = []
    for one in run.series:
        size = NOISE * float(np.sqrt(np.mean(np.var(one.values, axis=0))))
        series.append(replace(one, values=one.values + size * chance.standard_normal(one.values.shape)))
    return replace(run, series=tuple(series))


def measured(kind: str, seeds: int) -> dict[str, Any]:
    """All cases of a kind."""
    names = list(SOUGHT)
    off: list[list[float]] = []
    ratios: list[float] = []
    worst: list[float] = []
    begun = time.perf_counter()
    for seed in range(seeds):
        chance = np.random.default_rng(seed)
        truth = {name: value * float(chance.uniform(0.75, 1.25)) for name, value in SOUGHT.items()}
        run = swum(kind, truth, seed)
        solution = fit([run], asked_for(names, [run], build(), {}, {}), Settings(others=0))
        evidence = weighed(solution)
        off.append([(solution.values[n] - truth[n]) / e for n, e in zip(names, evidence.error, strict=True)])
        held = [one.held_out / one.noise for one in evidence.channels.values() if one.held_out is not None]
        ratios.append(float(np.sqrt(np.mean(np.square(held)))))
        worst.append(max(held))
        if (seed + 1) % 5 == 0:
            shares = 100.0 * np.mean(np.abs(off) <= 2.0, axis=0)
            print_text(f"{kind}: {seed + 1} of {seeds}, within two: {shares.round().tolist()} %", err=True)
    table = np.array(off)
    pair = [*names[:1], *PAIR]
    run = swum(kind, {}, 0)
    named = weighed(fit([run], asked_for(pair, [run], build(), {}, {}), Settings(others=0))).indistinct
    return {
        "kind": kind, "runs": seeds,
        "within_two_percent": {n: 100.0 * float(np.mean(np.abs(table[:, k]) <= 2.0)) for k, n in enumerate(names)},
        "rms_in_standard_errors": {n: float(np.sqrt(np.mean(table[:, k] ** 2))) for k, n in enumerate(names)},
        "held_over_noise": float(np.mean(ratios)), "worst_channel": float(max(worst)),
        "pair_named": [sorted(one[0]) for one in named] == [sorted(PAIR)],
        "seconds_a_fit": (time.perf_counter() - begun) / seeds,
    }  # fmt: skip


def main(as_json: bool = False, *, seeds: int = SEEDS) -> int:
    """Run the table."""
    setting.refuse_less("identify: --seeds", seeds, 1)
    rows = [measured(kind, seeds) for kind in ("outputs", "sensors")]
    if as_json:
        print_json(json.dumps({"commit": setting.commit(), "machine": setting.machine(), "rows": rows}))
        return 0
    print_text(
        f"runs of {SECONDS:g} s at {DT:g} s, 30 % held back; target: 90 to 99 % within two standard errors, 1.2\n"
    )
    heads = ("", *SOUGHT, "held back / noise", "worst channel", "pair named", "a fit")
    print_text(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        shares = [f"{row['within_two_percent'][n]:.0f} % ({row['rms_in_standard_errors'][n]:.2f})" for n in SOUGHT]
        print_text(
            f"| {row['kind']}, {row['runs']} | {' | '.join(shares)} | {row['held_over_noise']:.3f} | "
            f"{row['worst_channel']:.2f} | {'yes' if row['pair_named'] else 'no'} | {row['seconds_a_fit']:.1f} s |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
