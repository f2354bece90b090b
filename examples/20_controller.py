"""A controller in a script of its own: connect to a plant that runs, read its states, answer with commands.

rtmms serve manta                     in one terminal
python examples/20_controller.py      in another
"""

from __future__ import annotations

from math import pi, radians, sin

import rtmms


def main(exchange: str | None = None, seconds: float = 20.0) -> dict[str, float]:
    """Beat both fins for so many simulated seconds; returns what happened."""
    states = late = 0
    address = {} if exchange is None else {"exchange": exchange}  # default: the port of RTMMS_PORT, or 9870
    with rtmms.connect(**address, name="example", claim=["left.*", "right.*"]) as link:
        print(f"driving {', '.join(link.plant.granted)} of {link.plant.robot} at {1e3 * link.plant.dt:g} ms")
        start = None
        for state in link:
            start = state.time if start is None else start
            if state.time - start >= seconds:
                break
            angle = 2.0 * pi * 0.6 * state.time
            soft = min(1.0, state.time - start)  # no jump at the start
            front = soft * radians(34.0) * sin(angle + radians(40.0))  # the front rods lead: forward
            back = soft * radians(40.0) * sin(angle)
            link.command({"left.front": front, "left.back": back, "right.front": front, "right.back": back})
            states += 1
            late += state.applied.policy != ""  # a policy stood in for us in the step before
    print(f"{states} states answered, {late} steps without our command; {link.ended}")
    return {"states": states, "late": late}


if __name__ == "__main__":
    main()
