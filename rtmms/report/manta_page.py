"""The tables of parameters and outputs in docs/manta.md, which `rtmms bench tables` writes."""

from __future__ import annotations

import rtmms.plant
from rtmms.report.parameter_table import parameters_table, table
from rtmms.robots.manta.parameters import MantaParameters

MEANINGS = {
    "position": "mass centre of the body",
    "quaternion": "w, x, y, z, body to world",
    "velocity": "of the mass centre, x forward",
    "angular_velocity": "",
    "acceleration": "rate of the components of `velocity`",
    "angular_acceleration": "rate of the components of `angular_velocity`",
    "rod_angle": "left front, left back, right front, right back",
    "rod_rate": "",
    "rod_torque": "what the motors must give, by virtual power",
    "thrust": "[force; moment] of each fin on the body, about its mass centre; left, right",
    "rod_power": "into the rods",
    "drag_power": "lost to drag, of fins and body",
    "damping_power": "lost in the joints",
    "kinetic_energy": "of body and fins",
    "elastic_energy": "of the joints",
    "buoyancy_energy": "of the body's righting moment",
    "interface_passes": "of the last step, coupling `iterated`",
    "interface_residual": "by how much fins and body disagreed on its acceleration in the last step; 0 if `monolithic`",
    "tip": "free end of the rearmost chain of each fin",
    "joint_position": "fin, link from the root, chain from the back rod; 0 straight",
    "joint_velocity": "",
}


def parameter_table() -> str:
    """Every parameter with default, unit and source."""
    return parameters_table(MantaParameters, "source")


def output_table() -> str:
    """Every output with unit, shape, frame and meaning."""
    lines = []
    for channel in rtmms.plant.load("manta").outputs:
        shape = " x ".join(str(size) for size in channel.shape)
        lines.append((f"`{channel.name}`", channel.unit, shape, channel.frame, MEANINGS[channel.name]))
    return table(("output", "unit", "shape", "frame", ""), lines)
