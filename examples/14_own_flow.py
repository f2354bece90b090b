"""Water of your own: a function of place and time moves it, here an eddy that carries a torpedo round.

python examples/14_own_flow.py
"""

from __future__ import annotations

import numpy as np

import rtmms
from rtmms import model as m


def eddy(x: np.ndarray, t: float) -> tuple[float, float, float]:
    """m/s at x (3,) m and t s: solid rotation at 0.2 rad/s about the z axis, begun over a second."""
    omega = 0.2 * min(1.0, t)
    return -omega * x[1], omega * x[0], 0.0


def main(seconds: float = 20.0) -> dict[str, float]:
    """Let it drift; returns how far round it went, rad, and how far from the centre it ends, m."""
    along = m.at(pitch=0.5 * np.pi)  # its axis along x
    solid = m.EllipticCylinder(0.08, 0.08, 0.6, 1000.0, along)
    strip = m.elliptic_strip(0.08, 0.08, 0.6, 1000.0, m.at(), drag=(0.3, 1.2, 1.2))
    hull = m.Body("hull", solids=[solid], elements=[strip], fluid_density=1000.0)
    still = rtmms.TreePlant(rtmms.Mechanism("drifter", [hull]), dt=5e-3, flow=rtmms.fluids.Flow(field=eddy))
    start = still.vector.copy()
    start[0] = 2.0  # 2 m from the eddy's centre
    still.vector[:] = start
    for _ in range(round(seconds / still.dt)):
        still.step(np.zeros(0))
    x, y, _ = still.observe()["position"]
    turned, away = float(np.arctan2(y, x)), float(np.hypot(x, y))
    print(f"after {seconds:g} s it went round by {turned:.2f} rad and is {away:.2f} m from the centre")
    return {"turned": turned, "away": away}


if __name__ == "__main__":
    main()
