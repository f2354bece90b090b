"""Laws of drag that were tried for tendon_fish (docs/tendon_fish.md), and the drag that each recording needs.

`print_candidates` fits each law to the two recordings of `rtmms.studies.fishsim` and prints a row of the page's table.
`print_needed_drag` prints the drag area with which the model has each measured speed. Laws that the robot itself does
not have are drag curves on its head.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from rtmms.base.errors import RtmmsError
from rtmms.base.parameters import Parameter, build, parameter_values
from rtmms.base.spatial import Array
from rtmms.base.terminal import print_text
from rtmms.mechanism.plant import TreePlant
from rtmms.model.resistances import DragCurve
from rtmms.model.solids import Placement, at
from rtmms.robots import tendon_fish
from rtmms.studies.fishsim import BEATS_HZ, FIXED, SPEED_M_S, START, Outcome, fit, predict, swim

GRAVITY_M_S2 = 9.81
BOX_M = (0.12, 0.08, 0.06)
"""Length, beam and draught of the box on the head, which pierces the surface in this model, m."""
LAW_SPEED_M_S = 0.1
"""Speed at which a power law has its coefficient, m/s."""
LAW_SPEEDS_M_S = np.geomspace(0.005, 0.5, 16)
"""Rows of the tables of drag curves, (16,) m/s."""
STATIONS = 3
"""Places along the head at which a law of the drag across acts."""


@dataclass(frozen=True)
class FishWithLaws(tendon_fish.TendonFish):
    """Parameters of tendon_fish, and of laws of the drag of its head.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    wave: Annotated[float, Parameter("Factor of the wave drag of the box on the head.", ge=0)] = 0.0
    power_area_m2: Annotated[float, Parameter("Drag area along the head at 0.1 m/s, of a power law.", "m2", ge=0)] = 0.0
    power: Annotated[float, Parameter("Exponent of the speed in the power law of power_area_m2.", ge=0, le=4)] = 2.0
    separated_drag: Annotated[float, Parameter(
        "Coefficient of the drag across the head at 0.1 m/s, proportional to the speed to the power 5/3.", ge=0,
    )] = 0.0
    # fmt: on


def michell_wave_drag(speed_m_s: float, length: float, beam: float, draught: float) -> float:
    """Return the wave drag of a thin vertical strut with parabolic waterlines that pierces the water's surface.

    Parameters
    ----------
    speed_m_s : float
        Speed, m/s, > 0.
    length, beam, draught : float
        Dimensions of the strut, m.

    Returns
    -------
    float
        N.

    Notes
    -----
    Michell's integral (1898; Tuck 1989, The wave resistance formula of J. H. Michell) with k = g / U^2 and c = cosh u:

        R = 4 rho g^2 / (pi U^2) * integral over u from 0 to infinity of (J Z c)^2
        J = integral over x of f'(x) sin(k c x),  f = beam / 2 (1 - (2 x / length)^2)
        Z = (1 - exp(-k c^2 draught)) / (k c^2)

    The theory is of a thin hull: beam much less than length.
    """
    k, h = GRAVITY_M_S2 / speed_m_s**2, 0.5 * length
    u = np.linspace(0.0, MICHELL_END, MICHELL_NODES)
    c = np.cosh(u)
    a = k * c
    j = -8.0 * beam / length**2 * (np.sin(a * h) / a**2 - h * np.cos(a * h) / a)
    z = (1.0 - np.exp(-k * c**2 * draught)) / (k * c**2)
    density = 1000.0
    return float(4.0 * density * GRAVITY_M_S2**2 / (math.pi * speed_m_s**2) * np.trapezoid((j * z * c) ** 2, u))


MICHELL_END = 6.0
"""End of Michell's integral."""
MICHELL_NODES = 20_001
"""Nodes of Michell's integral."""


def wave_table(factor: float) -> Array:
    """Return the drag curve of a factor of the wave drag of the box.

    Parameters
    ----------
    factor : float
        Factor on the drag.

    Returns
    -------
    Array
        (16, 2) speed (m/s) and drag area (m2), for a DragCurve.
    """
    drag = np.array([michell_wave_drag(speed, *BOX_M) for speed in LAW_SPEEDS_M_S])
    return np.stack([LAW_SPEEDS_M_S, factor * 2.0 * drag / (1000.0 * LAW_SPEEDS_M_S**2)], axis=1)


def power_table(area_m2: float, power: float) -> Array:
    """Return the drag curve of a drag that is a power of the speed.

    Parameters
    ----------
    area_m2 : float
        Drag area at 0.1 m/s.
    power : float
        The power.

    Returns
    -------
    Array
        (16, 2) speed (m/s) and drag area (m2).
    """
    return np.stack([LAW_SPEEDS_M_S, area_m2 * (LAW_SPEEDS_M_S / LAW_SPEED_M_S) ** (power - 2.0)], axis=1)


def load(dt: float | None = None, **values: Any) -> TreePlant:
    """Return tendon_fish with laws of its head's drag.

    Parameters
    ----------
    dt : float | None, optional
        Step, s.
    **values : Any
        Parameters of FishWithLaws.

    Returns
    -------
    TreePlant
        The plant.
    """
    p: FishWithLaws = build(FishWithLaws, values, robot="tendon_fish")
    curves = []
    if p.wave:
        curves.append(DragCurve("head", wave_table(p.wave)))
    if p.power_area_m2:
        curves.append(DragCurve("head", power_table(p.power_area_m2, p.power)))
    if p.separated_drag:
        nose, end = tendon_fish.HEAD_ENDS_M
        area = p.separated_drag * 2.0 * tendon_fish.HEAD_HALF_HEIGHT_M * (end - nose) / STATIONS
        table = power_table(area, 5.0 / 3.0)
        across = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # its x axis is the head's y axis
        for k in range(STATIONS):
            x = nose + (k + 0.5) * (end - nose) / STATIONS
            curves.append(DragCurve("head", table, placement=Placement(across, at(x).position)))
    return tendon_fish.plant_of(p, dt, curves)


class Candidate(NamedTuple):
    """Law that was tried.

    Attributes
    ----------
    start : dict[str, float]
        Parameters of the fit with their start values.
    fixed : dict[str, Any]
        Parameters that are held.
    """

    start: dict[str, float]
    fixed: dict[str, Any]


_ALONG = {name: value for name, value in START.items() if name != "drag_area_m2"}
_HEAD = {name: value for name, value in START.items() if name != "head_drag"}
CANDIDATES: dict[str, Candidate] = {
    "quadratic drag (the preset)": Candidate(START, FIXED),
    "linear and quadratic drag": Candidate({**START, "linear_drag_n_s_m": 0.85}, FIXED),
    "linear drag": Candidate({**_ALONG, "linear_drag_n_s_m": 7.0}, {**FIXED, "drag_area_m2": 0.0}),
    "laminar skin friction": Candidate({**_ALONG, "skin_area_m2": 10.0}, {**FIXED, "drag_area_m2": 0.0}),
    "a power of the speed along": Candidate(
        {**_ALONG, "power_area_m2": 0.045, "power": 1.8}, {**FIXED, "drag_area_m2": 0.0}
    ),
    "quadratic drag, wave drag of the box": Candidate({**START, "wave": 1.0}, FIXED),
    "quadratic drag, separated flow at the head": Candidate(
        {**_HEAD, "separated_drag": 30.0}, {**FIXED, "head_drag": 0.0}
    ),
    "quadratic drag, a wake": Candidate({**START, "wake": 0.05}, FIXED),
    "quadratic drag, stiffness of the hinges": Candidate({**START, "sheet_n_m": 0.9}, FIXED),
    "quadratic drag, a flexible fin": Candidate({**START, "fin_n_m": 0.6}, FIXED),
}
"""Laws by the name of their row on the page."""


def print_candidates(names: Sequence[str] = tuple(CANDIDATES), log: Callable[[str], None] | None = None) -> None:
    """Fit each law of CANDIDATES, and print a row of docs/tendon_fish.md for it.

    Parameters
    ----------
    names : Sequence[str], default tuple(CANDIDATES)
        Names of laws.
    log : Callable[[str], None] | None, optional
        Receives a sentence about each iteration.
    """
    for name in names:
        start, fixed = CANDIDATES[name]
        begun = time.perf_counter()
        dt = None if fixed["fin_n_m"] or "fin_n_m" in start else CANDIDATE_STEP_S
        try:
            values = fit(start, fixed, dt=dt, log=log, make=load)
            fit_s = time.perf_counter() - begun
            data = Outcome(values, fit_s, predict({**fixed, **values}, dt, make=load)).as_data()
        except RtmmsError as fault:
            print_text(f"| {name} | {fault} |")
            continue
        rows, mean = data["recordings"], data["mean_abs_error_m_s"]
        off = [1e3 * (rows[key]["model_m_s"] - rows[key]["measured_m_s"]) for key in ("f0_50", "f2_25")]
        tail = [1e3 * row["tail_rms_m"] for row in data["amplitudes"].values()]
        print_text(
            f"| {name} | {mean['all']:.4f} | {mean['not_fitted']:.4f} | {off[0]:+.0f}, {off[1]:+.0f} | "
            f"{tail[0]:.1f}, {tail[1]:.1f} | {data['fit_s']:.0f} |"
        )
        if log is not None:
            log(", ".join(f"{key} {value:.4g}" for key, value in values.items()))


def needed_drag_area(name: str, values: Mapping[str, Any]) -> float:
    """Return the drag area along the head with which the model has the measured speed of a recording.

    It is a diagnosis, not a fit: it uses speeds that the fit does not.

    Parameters
    ----------
    name : str
        Recording.
    values : Mapping[str, Any]
        Parameters of tendon_fish.

    Returns
    -------
    float
        m2.
    """
    from scipy.optimize import brentq

    solve: Any = brentq

    def excess(logarithm: float) -> float:
        plant = tendon_fish.load(**{**values, "drag_area_m2": math.exp(logarithm)})
        return swim(plant, BEATS_HZ[name]).speed - SPEED_M_S[name]

    return math.exp(solve(excess, math.log(MIN_AREA_M2), math.log(MAX_AREA_M2), xtol=AREA_TOLERANCE))


def print_needed_drag() -> None:
    """Print the drag area that each recording needs, and the effect of the coefficient of the head's drag."""
    values = parameter_values(tendon_fish.load())
    areas = {name: needed_drag_area(name, values) for name in BEATS_HZ}
    print_text("| recording | speed, m/s | drag area, m2 |\n|---|---|---|")
    for name, area in areas.items():
        print_text(f"| {name} | {SPEED_M_S[name]:.4f} | {area:.3f} |")
    speeds = np.log([SPEED_M_S[name] for name in areas])
    power = 2.0 + float(np.polyfit(speeds, np.log(list(areas.values())), 1)[0])
    print_text(f"drag along the head that these areas make: proportional to the speed to the power {power:.1f}")
    for share in HEAD_SHARES:
        plant = tendon_fish.load(**{**values, "head_drag": share * values["head_drag"]})
        slow, fast = (swim(plant, BEATS_HZ[name]).speed for name in ("f0_50", "f2_25"))
        print_text(f"head_drag times {share:g}: {slow:.4f} m/s at f0_50, {fast:.4f} m/s at f2_25")


CANDIDATE_STEP_S = 1.0 / 720.0
"""Step of the fits of other laws, s: some of them diverge in steps of 1/360 s."""
MIN_AREA_M2 = 0.01
"""Lower limit of the search for a drag area, m2."""
MAX_AREA_M2 = 0.3
"""Upper limit of the search for a drag area, m2."""
AREA_TOLERANCE = 5e-3
"""Tolerance of the logarithm of a drag area."""
HEAD_SHARES = (0.85, 1.0, 1.15)
"""Factors of head_drag that are tried."""
