"""The legs of examples/mujoco/crawler.xml swing, the back pair a quarter of a period ahead: it creeps forwards."""

from __future__ import annotations

from math import pi, sin

import rtmms


class Crawl(rtmms.Controller):
    """Swings of 0.2 rad at 1.5 Hz."""

    claim = ("front_*", "back_*")

    def update(self, state: rtmms.State) -> dict[str, float]:
        phase = 2.0 * pi * 1.5 * state.time
        front, back = 0.2 * sin(phase), 0.2 * sin(phase + 1.6)
        return {"front_left": front, "front_right": front, "back_left": back, "back_right": back}
