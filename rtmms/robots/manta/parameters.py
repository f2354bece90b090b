"""Parameters of the robotic manta (Qu 2024, table 1 and sec. 3, corrected) and the named presets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from rtmms.errors import ModelError, UnknownNameError

CHAINS_MAX, LINKS_MAX = 1000, 24
TABLE_CHAINS, TABLE_LINKS = 30, 3
"""The mesh that table 1's damping of a joint is for."""
RODS_NAMES = ("left.front", "left.back", "right.front", "right.back")


def _f(default: Any, unit: str, source: str, *, low: float | None = None, strict: bool = False, **more: Any) -> Any:
    """A field: default, unit, where it comes from; `low` is its least value, excluded when strict, `high` (among
    `more`) its greatest: beyond it no robot, fluid or motor is, or the method would answer something else."""
    return field(default=default, metadata={"unit": unit, "source": source, "low": low, "strict": strict, **more})


def _choice(*words: str, source: str) -> Any:
    return field(default=words[0], metadata={"unit": "", "source": source, "choices": words})


@dataclass(frozen=True, slots=True)
class MantaParameters:
    """Everything that makes a manta; SI units, body x forward, y left, z up. Metadata: unit and source of each."""

    chains: int = _f(30, "", "table 1, n", low=1, high=CHAINS_MAX)
    links: int = _f(3, "", "table 1, m", low=1, high=LINKS_MAX)
    body: str = _choice("free", "fixed", source="sec. 5.1: fixed is the tank test")
    actuation: str = _choice("servo", "ideal", source="ours; sec. 3.1 assumes ideal motors")
    added_mass: bool = _f(False, "", "ours: none in the paper")
    support_roll: str = _choice("mean", "zero", source="ours: the fin flaps with its rods; zero is eq. (9)")
    fin_normal: str = _choice("link", "neighbour", source="ours: the link's own z axis; neighbour is eq. (11)")
    body_drag: str = _choice("norm", "componentwise", source="eq. (34)")
    body_moment: str = _choice("componentwise", "norm", "linear", source="ours: quadratic; linear is eq. (34)")
    integrator: str = _choice("implicit", "rk4", source="ours; sec. 4 names RK4")
    body_method: str = _choice("matched", "euler", source="ours: of the chains' order; sec. 4 names forward Euler")

    support_length_m: float = _f(0.315, "m", "table 1, L", low=0.0, strict=True, high=100.0)
    front_rod_m: float = _f(
        0.215, "m", "ours, r1: longer than r2, so that the chains sweep aft", low=0.0, strict=True, high=100.0
    )
    back_rod_m: float = _f(0.185, "m", "table 1, r2", low=0.0, strict=True, high=100.0)
    fin_root_m: tuple[float, float, float] = _f(
        (-0.16, 0.30, 0.0), "m", "table 1, P_l with its sign restored; left fin", low=-100.0, high=100.0
    )
    chain_length_back_m: float = _f(0.30, "m", "ours: chain at the back rod", low=0.0, strict=True, high=100.0)
    chain_length_front_m: float = _f(
        0.15, "m", "ours: chain at the front rod; linear between", low=0.0, strict=True, high=100.0
    )
    link_thickness_m: tuple[float, float, float] = _f(
        (0.010, 0.007, 0.0045),
        "m",
        "ours: at 1/6, 1/2, 5/6 of a chain, linear between, flat beyond",
        low=0.0,
        strict=True,
        high=10.0,
    )
    fin_density_kg_m3: float = _f(1000.0, "kg/m3", "sec. 3.3.2: as dense as water", low=0.0, strict=True, high=3e4)
    young_modulus_pa: float = _f(1e8, "Pa", "table 1, E", low=0.0, high=1e15)
    joint_damping_n_m_s: float = _f(0.1, "N m s", "table 1, c_j, a joint of 30 chains of 3 links", low=0.0, high=1e6)
    bending: str = _choice("carried", "centred", source="ours: of the link carried; centred: of what is around a joint")
    damping_per: str = _choice("fin", "joint", source="ours: fin, whatever the mesh; joint is table 1, c_j of each")
    drag_coefficient: float = _f(1.5, "", "ours, C_D: flat plate, 1.2 to 2", low=0.0, high=100.0)
    added_mass_coefficient: float = _f(math.pi / 4.0, "", "strip of chord L: rho c L w l a link", low=0.0, high=100.0)

    body_mass_kg: float = _f(20.0, "kg", "table 1, m_b", low=0.0, strict=True, high=1e9)
    body_inertia_kg_m2: tuple[float, float, float] = _f(
        (1.33, 1.93, 2.73), "kg m2", "table 1, J_b", low=0.0, strict=True, high=1e12
    )
    buoyancy_centre_m: tuple[float, float, float] = _f((0.0, 0.0, 0.05), "m", "table 1, r_b", low=-100.0, high=100.0)
    body_drag_coefficient: tuple[float, float, float] = _f(
        (0.02, 0.5, 0.1), "", "table 1, C_B; y is ours (table 1: 0.04)", low=0.0, high=100.0
    )
    body_drag_area_m2: tuple[float, float, float] = _f((0.32, 0.4, 0.8), "m2", "table 1, S_B", low=0.0, high=1e5)
    body_moment_coefficient: tuple[float, float, float] = _f(
        (0.015, 0.01, 0.02), "kg m2 (linear: N m s)", "table 1, C_M", low=0.0, high=1e9
    )
    water_density_kg_m3: float = _f(1000.0, "kg/m3", "table 1's 9800 is rho g", low=0.0, strict=True, high=2e4)
    left_chains_lost: int = _f(0, "", "ours: a damaged fin, chains gone from the back rod on", low=0, high=CHAINS_MAX)
    right_chains_lost: int = _f(0, "", "ours: the same of the right fin", low=0, high=CHAINS_MAX)
    gravity_m_s2: float = _f(9.81, "m/s2", "standard", low=0.0, high=1e3)

    servo_frequency_hz: float = _f(5.0, "Hz", "ours", low=0.0, strict=True, high=1e4)
    servo_damping: float = _f(0.7, "", "ours", low=0.0, strict=True, high=1e5)
    rod_limit_rad: float = _f(1.2, "rad", "ours: commands beyond are clamped", low=0.0, strict=True, high=math.pi)
    rod_difference_limit_rad: float = _f(
        1.6,
        "rad",
        "ours: of a fin's two rods, front - back; beyond, the support has no solution",
        low=0.0,
        strict=True,
        high=math.pi,
    )
    rod_rate_limit_rad_s: float = _f(8.0, "rad/s", "ours", low=0.0, strict=True, high=1e12)
    rod_acceleration_limit_rad_s2: float = _f(200.0, "rad/s2", "ours", low=0.0, strict=True, high=1e12)

    current_m_s: tuple[float, float, float] = _f(
        (0.0, 0.0, 0.0), "m/s", "uniform current, world axes", low=-100.0, high=100.0
    )
    current_gradient_1_s: tuple[float, ...] = _f(
        (0.0,) * 9, "1/s", "du_i/dx_j of a current that varies in space, row by row, world axes", low=-1e3, high=1e3
    )
    interface_tolerance_m_s2: float = _f(
        1e-9, "m/s2, rad/s2", "ours: iterated coupling", low=0.0, strict=True, high=1e-3
    )
    interface_passes_max: int = _f(500, "", "ours: iterated coupling", low=1, high=100_000)

    @property
    def damping_of_a_joint(self) -> float:
        """N m s. Of a fin's material it goes with a chain's width over a link's length, as the stiffness does."""
        if self.damping_per == "joint":
            return self.joint_damping_n_m_s
        return self.joint_damping_n_m_s * ((TABLE_CHAINS / self.chains) * (self.links / TABLE_LINKS))

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, _checked(f.name, f.type, f.metadata, getattr(self, f.name)))
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
        least, middle, most = sorted(self.body_inertia_kg_m2)
        if most > (least + middle) * (1.0 + 1e-9):
            raise ModelError(
                "body_inertia_kg_m2: no body has a moment of inertia greater than the sum of the other two; "
                f"got {', '.join(f'{j:g}' for j in self.body_inertia_kg_m2)}"
            )
        reach = self.front_rod_m - self.back_rod_m
        if reach >= self.support_length_m:
            raise ModelError(
                f"support_length_m: must exceed front_rod_m - back_rod_m = {reach:g} m, got {self.support_length_m:g}"
            )


def _number(place: str, value: Any, want: str) -> float:
    if isinstance(value, bool):
        raise ModelError(f"{place}: expected {want}, got {value!r}")
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{place}: expected {want}, got {value!r}") from None
    if not math.isfinite(x):
        raise ModelError(f"{place}: must be finite, got {x}")
    return x


def _in_range(place: str, x: float, meta: Mapping[str, Any]) -> float:
    low, high, unit = meta.get("low"), meta.get("high"), f" {meta['unit']}" if meta["unit"] else ""
    if low is not None and (x < low or (meta.get("strict") and x == low)):
        raise ModelError(f"{place}: must be {'>' if meta.get('strict') else '>='} {low:g}{unit}, got {x:g}")
    if high is not None and x > high:
        raise ModelError(f"{place}: must be <= {high:g}{unit}, got {x:g}")
    return x


def _checked(name: str, kind: Any, meta: Mapping[str, Any], value: Any) -> Any:
    """The value in its field's type, also from the words a person types; ModelError that names the field."""
    place = f"manta parameter '{name}'"
    if "choices" in meta:
        if value not in meta["choices"]:
            raise ModelError(f"{place}: expected one of {', '.join(meta['choices'])}; got {value!r}")
        return value
    if kind == "bool":
        words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
        if isinstance(value, str) and value.strip().lower() in words:
            return words[value.strip().lower()]
        if isinstance(value, bool):
            return value
        raise ModelError(f"{place}: expected true or false, got {value!r}")
    if kind == "int":
        x = _number(place, value, "a whole number")
        if x != int(x):
            raise ModelError(f"{place}: expected a whole number, got {value!r}")
        return int(_in_range(place, x, meta))
    if kind == "float":
        return _in_range(
            place, _number(place, value, f"a number in {meta['unit']}" if meta["unit"] else "a number"), meta
        )
    size = 9 if "..." in kind else 3
    parts = value.split(",") if isinstance(value, str) else value
    try:
        parts = list(parts)
    except TypeError:
        parts = [value]
    if len(parts) != size:
        raise ModelError(f"{place}: expected {size} numbers, got {len(parts)}")
    return tuple(_in_range(f"{place}[{i}]", _number(f"{place}[{i}]", v, "a number"), meta) for i, v in enumerate(parts))


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
"""Named sets of parameters ('dt' and 'coupling' may be among them); docs/manta.md says what each entry does."""


def build(preset: str | None, given: Mapping[str, Any]) -> MantaParameters:
    """Parameters from a preset and what is given beside it; UnknownNameError and ModelError name the field."""
    known = {f.name for f in fields(MantaParameters)}
    for name in given:
        if name not in known:
            raise UnknownNameError("manta parameter", name, known | {"dt", "coupling"})
    chosen = {k: v for k, v in preset_values(preset).items() if k in known}
    return replace(MantaParameters(), **{**chosen, **given})


def preset_values(preset: str | None) -> dict[str, Any]:
    if preset is None:
        return {}
    if preset not in PRESETS:
        raise UnknownNameError("manta preset", preset, PRESETS)
    return PRESETS[preset]


def describe() -> list[tuple[str, Any, str, str]]:
    """(name, default, unit, source) of every parameter, for the documentation and `rtmms list`."""
    return [
        (f.name, None if f.default is MISSING else f.default, f.metadata["unit"], f.metadata["source"])
        for f in fields(MantaParameters)
    ]
