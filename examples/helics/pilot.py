"""A pilot for a robot in a HELICS federation, written against HELICS alone: rtmms is not imported.

helics_broker -f 2 &
rtmms run manta --mode lockstep --duration 5 --controller none --bridge 'helics:claim=*,period_s=0.01' &
python examples/helics/pilot.py
"""

from __future__ import annotations

import math
import sys

import helics as h


def main(robot: str = "manta", seconds: float = 5.0, core_words: str = "", period_s: float = 0.1) -> float:
    """Beat all rods at 0.6 Hz, given in degrees at 10 Hz; returns how far the robot came, in feet."""
    info = h.helicsCreateFederateInfo()
    h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
    h.helicsFederateInfoSetCoreInitString(info, f"--federates=1 --loglevel=no_print {core_words}")
    pilot = h.helicsCreateValueFederate("pilot", info)
    h.helicsFederateSetFlagOption(pilot, h.HELICS_FLAG_UNINTERRUPTIBLE, True)
    rods = ("left.front", "left.back", "right.front", "right.back")
    angles = [
        h.helicsFederateRegisterGlobalPublication(pilot, f"pilot/{robot}/{rod}", h.HELICS_DATA_TYPE_DOUBLE, "deg")
        for rod in rods
    ]
    for rod, angle in zip(rods, angles, strict=True):
        h.helicsPublicationAddTarget(angle, f"{robot}/{rod}")  # HELICS converts: the input is in rad
    position = h.helicsFederateRegisterSubscription(pilot, f"{robot}/position", "ft")
    h.helicsFederateEnterExecutingMode(pilot)
    far = 0.0
    for k in range(round(seconds / period_s)):
        now = h.helicsFederateRequestTime(pilot, k * period_s) if k else 0.0
        if k:
            x, y, _ = h.helicsInputGetVector(position)
            far = math.hypot(x, y)
        for i, angle in enumerate(angles):
            phase = math.tau * 0.6 * now - (0.7 if i % 2 else 0.0)  # the back rods follow the front ones
            h.helicsPublicationPublishDouble(angle, 35.0 * min(1.0, now) * math.sin(phase))
    h.helicsFederateDisconnect(pilot)
    print(f"after {now:g} s the {robot} is {far:.1f} ft away")
    return far


if __name__ == "__main__":
    main(*sys.argv[1:2])
