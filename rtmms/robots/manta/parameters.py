"""Declare the parameters of the robotic manta (Qu 2024, table 1 and sec. 3, corrected) and the named presets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter, parameters_of, read_value
from rtmms.robots.manta.fin_layout import MAX_LINKS
from rtmms.robots.parameters import START_DEPTH_M, StartDepth

MAX_CHAINS = 1000
TABLE_CHAINS = 30
"""Chains of the mesh to which table 1's damping of a joint refers."""
TABLE_LINKS = 3
"""Links of a chain of that mesh."""
RODS_NAMES = ("left.front", "left.back", "right.front", "right.back")


@dataclass(frozen=True, slots=True)
class MantaParameters:
    """Parameters of a manta, in SI units; body x is forward, y left, z up.

    The declaration of each field has its meaning, source, unit and range.
    """

    # fmt: off
    chains: Annotated[int, Parameter("Chains of a fin (Qu 2024, table 1, n).", ge=1, le=MAX_CHAINS)] = 30
    links: Annotated[int, Parameter("Links of a chain (Qu 2024, table 1, m).", ge=1, le=MAX_LINKS)] = 3
    body: Annotated[str, Parameter(
        "Whether the body moves (free), or is held as in the tank test (fixed; Qu 2024, sec. 5.1).",
        choices=("free", "fixed"),
    )] = "free"
    actuation: Annotated[str, Parameter(
        "Drive of the rods: servo, which is not in the paper, or ideal motors (Qu 2024, sec. 3.1).",
        choices=("servo", "ideal"),
    )] = "servo"
    added_mass: Annotated[bool, Parameter(
        "Whether the added mass of the fins' links counts; the paper has none.",
    )] = False
    support_roll: Annotated[str, Parameter(
        "Roll of a fin's support. mean: mean of its rods' angles, not in the paper; zero: none (Qu 2024, eq. 9).",
        choices=("mean", "zero"),
    )] = "mean"
    fin_normal: Annotated[str, Parameter(
        "Normal of a link for its drag. link: its z axis, not in the paper; neighbour: across neighbouring chains (Qu "
        "2024, eq. 11).",
        choices=("link", "neighbour"),
    )] = "link"
    body_drag: Annotated[str, Parameter(
        "Law of the body's drag. norm: with the velocity's size (Qu 2024, eq. 34); componentwise: each component by "
        "itself.",
        choices=("norm", "componentwise"),
    )] = "norm"
    body_moment: Annotated[str, Parameter(
        "Law of the body's drag moment. componentwise, norm: quadratic, not in the paper; linear: Qu 2024, eq. 34.",
        choices=("componentwise", "norm", "linear"),
    )] = "componentwise"
    integrator: Annotated[str, Parameter(
        "Integration method: implicit, which is not in the paper, or rk4 (Qu 2024, sec. 4).",
        choices=("implicit", "rk4"),
    )] = "implicit"
    body_method: Annotated[str, Parameter(
        "Integration method of the body. matched: of the chains' order, not in the paper; euler: Qu 2024, sec. 4.",
        choices=("matched", "euler"),
    )] = "matched"

    support_length_m: Annotated[float, Parameter(
        "Length of a fin's support (Qu 2024, table 1, L).", "m", le=100,
    )] = 0.315
    front_rod_m: Annotated[float, Parameter(
        "Length r1 of the front rod; not in the paper. It is longer than r2, so that the chains sweep aft.",
        "m", le=100,
    )] = 0.215
    back_rod_m: Annotated[float, Parameter("Length of the back rod (Qu 2024, table 1, r2).", "m", le=100)] = 0.185
    fin_root_m: Annotated[tuple[float, float, float], Parameter(
        "Place of the left fin's root, body frame (Qu 2024, table 1, P_l with its sign restored).",
        "m", ge=-100, le=100,
    )] = (-0.16, 0.30, 0.0)
    chain_length_back_m: Annotated[float, Parameter(
        "Length of the chain at the back rod; not in the paper.", "m", le=100,
    )] = 0.30
    chain_length_front_m: Annotated[float, Parameter(
        "Length of the chain at the front rod; not in the paper. Lengths between are linear.", "m", le=100,
    )] = 0.15
    link_thickness_m: Annotated[tuple[float, float, float], Parameter(
        "Thickness at 1/6, 1/2, 5/6 of a chain, linear between, constant beyond; not in the paper.", "m", le=10,
    )] = (0.010, 0.007, 0.0045)
    fin_density_kg_m3: Annotated[float, Parameter(
        "Density of the fins; the default is that of water (Qu 2024, sec. 3.3.2).", "kg/m3", le=30000,
    )] = 1000.0
    young_modulus_pa: Annotated[float, Parameter(
        "Young's modulus of the fins (Qu 2024, table 1, E).", "Pa", ge=0, le=1e15, live=True,
    )] = 1e8
    joint_damping_n_m_s: Annotated[float, Parameter(
        "Damping of a joint of 30 chains of 3 links (Qu 2024, table 1, c_j).", "N m s", ge=0, le=1e6, live=True,
    )] = 0.1
    bending: Annotated[str, Parameter(
        "Part that bends at a joint; not in the paper. carried: the link it carries; centred: half a link to either "
        "side.",
        choices=("carried", "centred"),
    )] = "carried"
    damping_per: Annotated[str, Parameter(
        "Reference of the joints' damping. fin: the fin, whatever its mesh, not in the paper; joint: each joint, as "
        "c_j (Qu 2024, table 1).",
        choices=("fin", "joint"),
    )] = "fin"
    drag_coefficient: Annotated[float, Parameter(
        "Drag coefficient C_D of a link; not in the paper. A flat plate has 1.2 to 2.", ge=0, le=100, live=True,
    )] = 1.5
    added_mass_coefficient: Annotated[float, Parameter(
        "Coefficient c of a link's added mass rho c L w l (length l, width w), as of a strip of chord L.", ge=0, le=100,
    )] = math.pi / 4.0

    body_mass_kg: Annotated[float, Parameter("Mass of the body (Qu 2024, table 1, m_b).", "kg", le=1e9)] = 20.0
    body_inertia_kg_m2: Annotated[tuple[float, float, float], Parameter(
        "Principal moments of inertia of the body (Qu 2024, table 1, J_b).", "kg m2", le=1e12,
    )] = (1.33, 1.93, 2.73)
    buoyancy_centre_m: Annotated[tuple[float, float, float], Parameter(
        "Centre of buoyancy of the body, from its mass centre (Qu 2024, table 1, r_b).",
        "m", ge=-100, le=100, live=True,
    )] = (0.0, 0.0, 0.05)
    body_drag_coefficient: Annotated[tuple[float, float, float], Parameter(
        "Drag coefficients of the body along x, y, z (Qu 2024, table 1, C_B). The paper has 0.04 for y.",
        ge=0, le=100, live=True,
    )] = (0.02, 0.5, 0.1)
    body_drag_area_m2: Annotated[tuple[float, float, float], Parameter(
        "Drag areas of the body along x, y, z (Qu 2024, table 1, S_B).", "m2", ge=0, le=100000, live=True,
    )] = (0.32, 0.4, 0.8)
    body_moment_coefficient: Annotated[tuple[float, float, float], Parameter(
        "Coefficients of the body's drag moment about x, y, z (Qu 2024, table 1, C_M).",
        "kg m2 (linear: N m s)", ge=0, le=1e9, live=True,
    )] = (0.015, 0.01, 0.02)
    water_density_kg_m3: Annotated[float, Parameter(
        "Density of the water; the 9800 of Qu 2024, table 1, is rho g.", "kg/m3", le=20000,
    )] = 1000.0
    left_chains_lost: Annotated[int, Parameter(
        "Chains that the left fin has lost, from the back rod on; not in the paper.", ge=0, le=MAX_CHAINS, live=True,
    )] = 0
    right_chains_lost: Annotated[int, Parameter(
        "Chains that the right fin has lost, from the back rod on; not in the paper.", ge=0, le=MAX_CHAINS, live=True,
    )] = 0
    gravity_m_s2: Annotated[float, Parameter(
        "Gravity, along -z of the world.", "m/s2", ge=0, le=1000, live=True,
    )] = 9.81

    start_depth_m: StartDepth = START_DEPTH_M

    servo_frequency_hz: Annotated[float, Parameter(
        "Natural frequency of a rod's servo; not in the paper.", "Hz", le=10000, live=True,
    )] = 5.0
    servo_damping: Annotated[float, Parameter(
        "Damping ratio of a rod's servo; not in the paper.", le=100000, live=True,
    )] = 0.7
    rod_limit_rad: Annotated[float, Parameter(
        "Limit of a rod's angle, to which commands are clamped; not in the paper.", "rad", le=math.pi,
    )] = 1.2
    rod_difference_limit_rad: Annotated[float, Parameter(
        "Limit of the commanded difference front - back of a fin's rods; not in the paper. Greater differences can "
        "leave the support without a solution.",
        "rad", le=math.pi,
    )] = 1.6
    rod_rate_limit_rad_s: Annotated[float, Parameter(
        "Limit of the rate of a rod's servo; not in the paper.", "rad/s", le=1e12, live=True,
    )] = 8.0
    rod_acceleration_limit_rad_s2: Annotated[float, Parameter(
        "Limit of the acceleration of a rod's servo; not in the paper.", "rad/s2", le=1e12, live=True,
    )] = 200.0

    current_m_s: Annotated[tuple[float, float, float], Parameter(
        "Velocity of the uniform current, world frame.", "m/s", ge=-100, le=100, live=True,
    )] = (0.0, 0.0, 0.0)
    current_gradient_1_s: Annotated[tuple[float, ...], Parameter(
        "Gradient du_i/dx_j of a current that varies in space, row by row, world frame.", "1/s", ge=-1000, le=1000,
    )] = (0.0,) * 9
    interface_tolerance_m_s2: Annotated[float, Parameter(
        "Change of the acceleration below which the iterated coupling ends; not in the paper.",
        "m/s2, rad/s2", le=0.001,
    )] = 1e-9
    interface_passes_max: Annotated[int, Parameter(
        "Maximum number of passes of the iterated coupling; not in the paper.", ge=1, le=100_000,
    )] = 500
    # fmt: on

    @property
    def damping_of_a_joint(self) -> float:
        """Damping of a joint, N m s.

        For a fin's material it is proportional to a chain's width over a link's length, as the stiffness is.
        """
        if self.damping_per == "joint":
            return self.joint_damping_n_m_s
        return self.joint_damping_n_m_s * ((TABLE_CHAINS / self.chains) * (self.links / TABLE_LINKS))

    def __post_init__(self) -> None:
        """Convert and check the fields; ModelError names a field that is wrong."""
        declared = parameters_of(MantaParameters)
        for f in fields(self):
            value = read_value(f"manta parameter '{f.name}'{{}}:", f.default, declared[f.name], getattr(self, f.name))
            object.__setattr__(self, f.name, value)
        if self.front_rod_m < self.back_rod_m:
            raise ModelError(
                f"front_rod_m: must be at least back_rod_m = {self.back_rod_m:g} m, or the front rod's amplitude "
                f"asin(r2 sin A2 / r1) is not defined; got {self.front_rod_m:g}"
            )
        for name in ("left_chains_lost", "right_chains_lost"):
            if getattr(self, name) > self.chains:
                raise ModelError(
                    f"manta parameter '{name}': expected at most the fin's {self.chains} chains, got "
                    f"{getattr(self, name)}"
                )
        least, middle, maximum = sorted(self.body_inertia_kg_m2)
        if maximum > (least + middle) * (1.0 + 1e-9):
            raise ModelError(
                "body_inertia_kg_m2: no body has a moment of inertia greater than the sum of the other two; "
                f"got {', '.join(f'{j:g}' for j in self.body_inertia_kg_m2)}"
            )
        reach = self.front_rod_m - self.back_rod_m
        if reach >= self.support_length_m:
            raise ModelError(
                f"support_length_m: must exceed front_rod_m - back_rod_m = {reach:g} m, got {self.support_length_m:g}"
            )


PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "dt": 0.01,
        "actuation": "ideal",
        "support_roll": "zero",
        "fin_normal": "neighbour",
        "body_moment": "linear",
        "body_method": "euler",
        "body_drag_coefficient": (0.02, 0.04, 0.1),
        "damping_per": "joint",
    },
}
"""Named sets of parameters ('dt' and 'coupling' may be among them); docs/manta.md explains each entry."""


def build(preset: str | None, values: Mapping[str, Any]) -> MantaParameters:
    """Return parameters from a preset and further values.

    Parameters
    ----------
    preset : str or None
        Name of a preset, or None.
    values : Mapping[str, Any]
        Values that replace those of the preset.

    Returns
    -------
    MantaParameters
        The parameters.

    Raises
    ------
    UnknownNameError, ModelError
        A field or the preset is wrong; the message names it.
    """
    known = {f.name for f in fields(MantaParameters)}
    for name in values:
        if name not in known:
            raise UnknownNameError("manta parameter", name, known | {"dt", "coupling"})
    chosen = {k: v for k, v in preset_values(preset).items() if k in known}
    return replace(MantaParameters(), **{**chosen, **values})


def preset_values(preset: str | None) -> dict[str, Any]:
    """Return the values of a preset.

    Parameters
    ----------
    preset : str or None
        Name, or None for none.

    Returns
    -------
    dict[str, Any]
        Values by name.

    Raises
    ------
    UnknownNameError
        There is no such preset.
    """
    if preset is None:
        return {}
    if preset not in PRESETS:
        raise UnknownNameError("manta preset", preset, PRESETS)
    return PRESETS[preset]
