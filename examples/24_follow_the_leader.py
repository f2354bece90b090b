"""Several robots on one clock: a manta swims after another one, which turns.

python examples/24_follow_the_leader.py
"""

from __future__ import annotations

from math import atan2, hypot, pi, radians, remainder, sin

import rtmms


def beat(time: float, left_deg: float, right_deg: float, name: str) -> dict[str, float]:
    """Both fins of one manta, each with its own amplitude."""
    angle, soft = 2.0 * pi * 0.6 * time, min(1.0, time)
    fins = {"left": radians(left_deg), "right": radians(right_deg)}
    rods = {"front": pi / 4.0, "back": 0.0}
    return {
        f"{name}.{fin}.{rod}": soft * a * sin(angle + lead) for fin, a in fins.items() for rod, lead in rods.items()
    }


def main(seconds: float = 20.0) -> dict[str, float]:
    """Both are commanded by one link; returns their distance at the end and the turn of each, m and rad."""
    start = {"position": (-2.0, 0.0, 0.0)}
    world = rtmms.World([("leader", "manta"), ("follower", "manta", start)])
    outputs = ["*.position", "*.quaternion"]
    with rtmms.embed(world, robot="world", steps=round(seconds / world.dt)) as served:
        with rtmms.connect(served.exchange, claim="*", outputs=outputs) as link:
            for state in link:
                x, y, _ = state["leader.position"] - state["follower.position"]
                w, _, _, z = state["follower.quaternion"]
                left = max(-1.0, min(1.0, remainder(atan2(y, x) - 2.0 * atan2(z, w), 2.0 * pi)))  # of its nose
                follower = beat(state.time, 30.0 - 15.0 * left, 30.0 + 15.0 * left, "follower")
                link.command(beat(state.time, 32.0, 26.0, "leader") | follower)
        final = served.wait().final
    ahead = final["leader.position"] - final["follower.position"]
    turns = {name: 2.0 * atan2(final[f"{name}.quaternion"][3], final[f"{name}.quaternion"][0]) for name in world.robots}
    print(f"{hypot(*ahead[:2]):.2f} m behind; turned by {turns['leader']:.2f} and {turns['follower']:.2f} rad")
    return {"distance": hypot(*ahead[:2]), **turns}


if __name__ == "__main__":
    main()
