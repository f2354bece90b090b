"""A linear model for the design of a controller: A and B of a quadrotor's hover, and the gains of an LQR from them.

python examples/15_linear_model.py
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_continuous_are

import rtmms
from rtmms.analysis.linearise import linearise


def main() -> dict[str, float]:
    """Linearise about hover, solve the Riccati equation; returns the slowest pole before and after."""
    plant = rtmms.load("quadrotor")
    p = plant.parameters
    hover = np.full(4, np.sqrt(p.mass_kg * p.gravity_m_s2 / (4.0 * p.thrust_n_s2)))
    for _ in range(2000):  # until the motors turn as commanded
        plant.step(hover)
    result = linearise(plant)
    a, b = result.a, result.b
    x = solve_continuous_are(a, b, np.eye(len(a)), 1e-4 * np.eye(4))
    gains = 1e4 * b.T @ x
    before, after = np.linalg.eigvals(a).real.max(), np.linalg.eigvals(a - b @ gains).real.max()
    print(f"{len(a)} states, 4 inputs; slowest pole {before:+.3f} 1/s alone, {after:+.3f} 1/s with the gains")
    return {"before": float(before), "after": float(after)}


if __name__ == "__main__":
    main()
