"""The legs of examples/mujoco/crawler.xml swing, the back pair after the front pair: it creeps forwards."""

from __future__ import annotations

from math import pi, sin

import rtmms


class Crawl(rtmms.Controller):
    """Swings of 0.4 rad at 3 Hz."""

    claim = ("front_*", "back_*")

    def update(self, state: rtmms.State) -> dict[str, float]:
        phase = 2.0 * pi * 3.0 * state.time
        front, back = 0.4 * sin(phase), 0.4 * sin(phase - 2.4)
        return {"front_left": front, "front_right": front, "back_left": back, "back_right": back}
