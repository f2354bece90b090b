"""An octopus of four tapered arms that tendons bend: it closes them fast, lets them open, and so swims upwards."""

import numpy as np

import rtmms
from rtmms import model as m

WATER = 1000.0
ARMS = {"east": 0.0, "north": np.pi / 2, "west": np.pi, "south": -np.pi / 2}
radius = lambda x: 0.014 - 0.03 * x  # m, of an arm of 0.3 m, x from its root


def arm(name: str, angle: float) -> m.Rod:
    section = lambda x: m.elliptic_section(radius(x), radius(x), WATER, 1e5)
    skin = lambda x, dx, at: m.elliptic_strip(radius(x), radius(x), dx, WATER, at, drag=(0.02, 1.1, 1.1))
    place = m.at(yaw=angle) @ m.at(x=0.03, pitch=0.6)
    return m.Rod(name, "head", 0.3, section, 5, place, damping_s=0.05, freedoms=("bend_y", "bend_z"), skin=skin)


def robot(dt: float = 2e-3) -> rtmms.TreePlant:
    """Return a body with a tendon below each arm. `rtmms run examples/18_octopus.py:robot` runs it as well."""
    skin = m.elliptic_strip(0.05, 0.05, 0.14, WATER, m.at(z=0.05, pitch=0.5 * np.pi), drag=(0.1, 1.0, 1.0))
    head = m.Body("head", solids=[m.Ellipsoid(0.05, 0.05, 0.07, WATER, m.at(z=0.05))], elements=[skin])
    tree = m.Mechanism("octopus", [head], gravity=(0, 0, 0), rods=[arm(*item) for item in ARMS.items()])
    paths = {k: [("head", (0, 0, -0.03)), *((k, (x, 0, -radius(x))) for x in np.linspace(0.03, 0.2, 5))] for k in ARMS}
    tendons = [m.Tendon(k, path, friction=0.05, upper=5.0, time_constant=0.05) for k, path in paths.items()]
    return rtmms.TreePlant(tree, dt, actuators=tendons, method="implicit2", medium="water", density=WATER)


def main(seconds: float = 10.0) -> float:
    plant = robot()
    for k in range(round(seconds / plant.dt)):
        plant.step(np.full(4, 2.0 if k * plant.dt % 2.0 < 0.5 else 0.0))  # N, for a quarter of each 2 s
    print(f"{plant.state.position[2]:.3f} m up, {plant.observe()['work']:.2f} J from its tendons in {seconds:g} s")
    return float(plant.state.position[2])


if __name__ == "__main__":
    main()
