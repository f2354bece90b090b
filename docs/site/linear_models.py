"""Draws docs/images/linear_models.png: A of a step of the manta, and the multipliers of its beat."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import rtmms

BEATS = 12


def main(path: Path, **values: object) -> None:
    """Write the picture. given: of the manta."""
    plant = rtmms.load("manta", **values)
    steps = round(plant.gait_period() / plant.dt)
    beat = plant.gait_commands(steps)
    for _ in range(BEATS):
        for command in beat:
            plant.step(command)
    step, beats = rtmms.linearise(plant, beat[0]), rtmms.linearise(plant, beat, period=True)
    size = plant.chart().size
    page, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
    entries = np.abs(step.a) * size / size[:, None]
    shown = left.imshow(np.log10(np.maximum(entries, 1e-9)), cmap="viridis", interpolation="nearest")
    page.colorbar(shown, ax=left, label="log10 of the entry, in the chart's sizes", shrink=0.85)
    left.set(title="A of one step", xlabel="state before", ylabel="state after")
    multipliers = np.linalg.eigvals(beats.a)
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    right.plot(np.cos(turn), np.sin(turn), color="0.7", lw=1.0)
    right.plot(multipliers.real, multipliers.imag, "o", ms=4.0, alpha=0.6)
    right.set(title=f"Multipliers of a beat of {beats.dt:.2f} s", xlabel="real", ylabel="imaginary", aspect="equal")
    page.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(__file__).resolve().parents[1] / "images" / "linear_models.png", dt=5e-3)
