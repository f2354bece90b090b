"""A glider of one body: wing, tail and fin by tables of lift and drag; it settles on its glide."""

import numpy as np

import rtmms
from rtmms import model as m


def table(zero_lift_deg: float, aspect: float) -> m.Polar:
    """Of a finite wing: 0.085 a degree, and induced drag; stalled beyond 10 degrees."""
    degrees = np.arange(-10.0, 11.0, 2.0)
    lift = 0.085 * (degrees - zero_lift_deg)
    return m.Polar.with_stall_extension(degrees, lift, 0.015 + lift**2 / (0.9 * np.pi * aspect))


def robot(dt: float = 2e-3) -> rtmms.TreePlant:
    """Return the glider, x ahead and z up. A left wing's placement is its root, a right wing's its tip."""
    flat, up, rise = m.at(roll=np.pi / 2, yaw=np.pi / 2), m.at(roll=np.pi, pitch=-np.pi / 2), 0.1
    ends = [m.at(0.03, 0, 0.03, roll=rise), m.at(0.03, -0.6 * np.cos(rise), 0.03 + 0.6 * np.sin(rise), roll=-rise)]
    wings = [m.Blade(0.6, 0.15, 1.2, 0.25, placement=end @ flat, polar=table(-4.0, 8.0)) for end in ends]
    tail = m.Blade(0.36, 0.08, 1.2, 0.25, placement=m.at(-0.57, -0.18, pitch=0.05) @ flat, polar=table(0.0, 4.0))
    fin = m.Blade(0.14, 0.09, 1.2, 0.25, placement=m.at(-0.56) @ up, polar=table(0.0, 4.0))
    boom = m.Cylinder(0.006, 0.7, 900.0, m.at(-0.3, pitch=np.pi / 2))
    hull = [m.Ellipsoid(0.18, 0.03, 0.03, 350.0, m.at(0.12)), boom]
    body = m.Body("glider", 0.08, inertia=np.diag([0.009, 3e-4, 0.009]), solids=hull, elements=[*wings, tail, fin])
    return rtmms.TreePlant(m.Mechanism("glider", [body]), dt, medium="air")


def main(seconds: float = 40.0) -> float:
    plant = robot()
    plant.place(velocity=[8.1, 0.0, -0.4])
    flight = rtmms.rollout(plant, np.zeros((1, round(seconds / plant.dt), 0))).outputs["position"][0]
    x, _, z = flight[-1] - flight[len(flight) // 2]
    print(f"glides {-x / z:.1f} to 1, {2.0 * x / seconds:.2f} m/s ahead")
    return float(-x / z)


if __name__ == "__main__":
    main()
