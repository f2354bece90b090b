"""A bridge of your own: what the plant sends, as lines of CSV for any program that reads a pipe.

python examples/31_own_bridge.py | head
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from math import pi, sin

import rtmms
from rtmms.bridging.runner import Runner


@dataclass(kw_only=True)
class Lines(rtmms.Bridge):
    """An observer: it claims nothing, so the loop never waits for it."""

    outputs: tuple[str, ...] = ("position",)
    rate_hz: float = 10.0
    lines: int = 0
    opened: threading.Event = field(default_factory=threading.Event)

    def open(self, plant: rtmms.PlantInfo) -> None:
        print(",".join(["time", *(f"{name}[{k}]" for name in self.outputs for k in range(3))]))
        self.opened.set()

    def on_state(self, state: rtmms.State) -> None:
        print(",".join(f"{value:.6g}" for value in (state.time, *state.outputs["position"])))
        self.lines += 1


def main(seconds: float = 20.0) -> dict[str, int]:
    """Beside a plant in this program; a bridge of a package runs as `rtmms bridge NAME`. Returns the lines."""
    plant = rtmms.load("manta")
    with rtmms.embed(plant, robot="manta", steps=round(seconds / plant.dt)) as served:
        bridge = Lines()
        runner = Runner(bridge, served.exchange, "lines", None, lambda text: print(text, file=sys.stderr))
        extra = threading.Thread(target=runner.run, args=(5.0, 0.0))
        extra.start()
        bridge.opened.wait(10.0)
        with rtmms.connect(served.exchange, name="gait", claim=["*.back"]) as link:  # in lockstep: it begins here
            for state in link:
                angle = 0.6 * sin(2.0 * pi * 0.6 * state.time)
                link.command({"left.back": angle, "right.back": angle})
        served.wait()
        extra.join()
    return {"lines": bridge.lines}


if __name__ == "__main__":
    main()
