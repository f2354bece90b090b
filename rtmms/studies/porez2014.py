"""Moth of Porez, Boyer and Belkhiri (2014): figures 5 to 8 again, and its numbers beside every reading's."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.analysis.trim import trim
from rtmms.base.errors import DivergedError
from rtmms.base.spatial import Array
from rtmms.dynamics import body_poses, centre_of_mass
from rtmms.model import Blade, Model, State
from rtmms.plant.monitor import UNSTABLE, Monitor
from rtmms.robots import moth
from rtmms.view.cycles import peak
from rtmms.view.tables import canvas, print_rows, save
from rtmms.view.verdict import OTHER_MACHINE, Claim, Row, Target, about, at_most

# What Porez, Boyer and Belkhiri (2014) state in numbers and in words, and our counterparts.


DRAG = (
    "torque and power go with the added mass and the air's pressure on the wing: with no added mass, the bending "
    "springs doubled give 0.40 W, half the twist springs 0.44 W and 120 W/kg, air of 1 kg/m3 0.55 W; with table I's "
    "own springs no reading tried gives the power"
)
TWIST = (
    "table I's twist springs are too stiff for it in every reading; half of them without added mass give 77 deg, 3e-3 "
    "N m/rad all along 73; the pressure at 0.25 in place of 0.4 chords moves it by 1 deg, a fifth of the damping by 6"
)
TWIST_LAG = (
    "with the paper's own words, largest twist where the stroke is zero, this lag would be 90 deg; the pressure at "
    "0.25 chords gives 69 to 72, a fifth of the damping 72, doubled bending springs 69, halved twist springs 90: no "
    "reading tried gives 58"
)
BEND = "the added mass bends the wing beyond it: none, or the fit, is near; doubled bending springs give 57 deg at 25"
THORAX = (
    "moved by every reading of the added mass and by the pressure's place (0.25 chords: 2.5 mm and 5.0 deg without "
    "added mass); halved twist springs give 2.1 mm and 8.3 deg"
)
VERTICAL = (
    "a small remainder of lift less weight: other springs, damping, pressure's place and air tried give 0.22 to 0.36 "
    "mm, only the printed added mass more than 0.5"
)

NUMBERS = (
    Claim("twist", "tip twist, peak", 79.0, "deg", about(79.0), ".1f", why=TWIST),
    Claim("twist_lag", "its lag behind the stroke, twist", 58.0, "deg", about(58.0), ".1f", why=TWIST_LAG,
          note="of the fundamental; the paper does not state how it reads a lag"),
    Claim("bend", "stroke and bending at the tip, peak", 68.0, "deg", about(68.0), ".1f", why=BEND),
    Claim("bend_lag", "its lag behind the stroke", 36.0, "deg", about(36.0), ".1f", why=BEND,
          note="of the peak, by a parabola through three samples 0.9 deg apart, to 0.1 deg"),
    Claim("torque", "peak stroke torque", 12.1, "mN m", about(12.1), ".2f", why=DRAG),
    Claim("power", "power a wing", 0.42, "W", about(0.42), ".3f", why=DRAG),
    Claim("specific", "specific power", 120.0, "W/kg", about(120.0), ".0f", why=DRAG),
    Claim("fore_aft", "thorax, fore-aft", 2.0, "mm", about(2.0), ".2f", why=THORAX),
    Claim("vertical", "thorax, vertical", 0.5, "mm", about(0.5), ".2f", why=VERTICAL),
    Claim("pitch", "thorax, pitch", 7.0, "deg", about(7.0), ".2f", why=THORAX),
)  # fmt: skip
AFTER = Target(0.0, 90.0)
PHASE = "phases are of the stroke, from a reversal, 90 deg is its middle; to 0.1 deg, by a parabola"
TEXT_CLAIMS = (
    Claim("twist_at", "twist is largest", "at the middle of the stroke", "deg", Target(60.0, 120.0), ".1f", note=PHASE),
    Claim("bend_at", "stroke and bending together are largest", "after the reversals", "deg", AFTER, ".1f",
          note="after a reversal is within the quarter period that follows it"),
    Claim("bend_alone_at", "bending alone is largest", "after the reversals", "deg", AFTER, ".1f"),
    Claim("torque_at", "stroke torque is largest", "after the reversals", "deg", AFTER, ".1f"),
    Claim("lift_at", "lift is largest", "at the middle of the stroke", "deg", Target(60.0, 120.0), ".1f"),
    Claim("no_lift_at", "lift is least", "when the wings turn", "deg", Target(-30.0, 30.0), ".1f",
          note="from the nearest reversal; less than 0 is before it"),
)  # fmt: skip
LIMIT = "at 41.3 deg without added mass its 0.1 ms is beyond the method's stable range; half of it holds"
METHOD = (
    Claim("abam", "the paper's integrator at its 0.1 ms: joints beside RK4's, ten strokes", "used", "rad",
          at_most(1e-3), ".1g", why=LIMIT, note="Adams-Bashforth-Moulton, from the periodic orbit"),
    Claim("abam_error", "error of its steps, as the monitor of runs has it", "not given", "of a step",
          at_most(UNSTABLE), ".1g", note="beyond 0.25 a run has left the range of its method", why=LIMIT),
    Claim("abam_half", "joints beside RK4's, the paper's integrator at 0.05 ms", "not given", "rad",
          at_most(1e-3), ".1g", must=True),
    Claim("abam_power", "power a wing by the paper's integrator, tenth stroke", 0.42, "W", about(0.42), ".3f",
          why=DRAG),
    Claim("weight", "mean lift over weight, on the orbit", "hovering", "", Target(1.0 - 1e-6, 1.0 + 1e-6), ".4f",
          must=True),
)  # fmt: skip
CLAIMS = NUMBERS + TEXT_CLAIMS + METHOD
CLOCK = Claim("clock", "one period on this machine, 400 steps", "17 s on a laptop", "ms", None, ".0f",
              note="compiled, RK4", unjudged=OTHER_MACHINE)  # fmt: skip


# Figures 5 to 8 of Porez, Boyer and Belkhiri (2014) again, from one stroke on the periodic orbit of each reading.


SNAPSHOTS = 10
VIEWS = (("sagittal: n and a", 1, 2), ("coronal: s and a", 0, 2))


@dataclass(frozen=True)
class Stroke:
    """One period on the periodic orbit, 400 samples.

    Attributes
    ----------
    time : Array
        (400,) times, s.
    stroke : Array
        Stroke of the right wing, rad.
    bend : Array
        Tip bending with stroke of the right wing, rad.
    twist : Array
        Tip twist of the right wing, rad.
    torque : Array
        Torque of the right wing, N m.
    power : Array
        Power of the right wing, W.
    moved : Array
        (400, 3) the thorax along n and a (m, less the period's travel) and its pitch (rad).
    velocity : Array
        (400, 3) of the thorax, m/s.
    spin : Array
        (400, 3) angular velocity of the thorax, rad/s.
    air : Array
        (400, 3) force of the air, N, world.
    vector : Array
        State at the period's start.
    model : Model
        The mechanism.
    states : list[State]
        Its states.
    """

    time: Array
    stroke: Array
    bend: Array
    twist: Array
    torque: Array
    power: Array
    moved: Array
    velocity: Array
    spin: Array
    air: Array
    vector: Array = field(repr=False)
    model: Model = field(repr=False)
    states: list[State] = field(repr=False)


def draw(strokes: dict[str, Stroke], out: Path) -> list[Path]:
    """Draw figures 6 to 8, every reading in the same axes, and figure 5 of the default reading.

    Parameters
    ----------
    strokes : dict[str, Stroke]
        Strokes by reading.
    out : Path
        Folder of the figures.

    Returns
    -------
    list[Path]
        Files of the figures.
    """
    figure, axes = canvas(2, 1, (7.0, 6.0))
    figure7, axes7 = canvas(3, 1, (7.0, 8.0))
    figure8, axes8 = canvas(2, 1, (7.0, 6.0))
    for name, s in strokes.items():
        t = s.time / s.time[-1]
        line = axes[0].plot(t, s.velocity[:, 1], label=f"{name}: n")[0]
        axes[0].plot(t, s.velocity[:, 2], "--", color=line.get_color())
        axes[1].plot(t, s.spin[:, 0], label=name)
        axes7[0].plot(t, np.degrees(s.bend), label=name)
        axes7[1].plot(t, np.degrees(s.twist))
        axes7[2].plot(t, 1e3 * s.torque)
        axes8[0].plot(t, s.air[:, 1], label=name)
        axes8[1].plot(t, s.air[:, 2])
    axes[0].set(ylabel="m/s, body (dashed: a)", title="Fig. 6: linear and angular velocity of the thorax")
    axes[1].set(xlabel="t / T", ylabel="rad/s about s")
    axes7[0].plot(t, np.degrees(s.stroke), "k:", label="stroke")
    axes7[0].set(ylabel="stroke and bending (deg)", title="Fig. 7: the right wing's tip, and its stroke torque")
    axes7[1].set(ylabel="twist (deg)")
    axes7[2].set(xlabel="t / T", ylabel="torque (mN m)")
    axes8[0].set(ylabel="along n (N)", title="Fig. 8: force of the air on the robot, world")
    axes8[1].axhline(-s.model.mass * float(s.model.gravity[2]), color="k", linestyle=":", linewidth=0.8)
    axes8[1].set(xlabel="t / T", ylabel="along a (N; dotted: weight)")
    for panel in (axes[0], axes7[0], axes8[0]):
        panel.legend()
    shown = strokes.get("rho pi c^2 / 4", s)
    return [
        save(_snapshots(shown), out, "porez2014-fig05"),
        save(figure, out, "porez2014-fig06"),
        save(figure7, out, "porez2014-fig07"),
        save(figure8, out, "porez2014-fig08"),
    ]


def _snapshots(s: Stroke) -> Any:
    """Draw figure 5: blades and thorax at ten instants, in two views."""
    figure, axes = canvas(2, SNAPSHOTS, (15.0, 4.0))
    blades = {s.model.body_names[k]: k for k in range(len(s.model.body_names)) if "blade" in s.model.body_names[k]}
    chords = [element for _, element in s.model.elements if isinstance(element, Blade)]
    for k in range(SNAPSHOTS):
        rotation, position = body_poses(s.model, s.states[k * len(s.states) // SNAPSHOTS])
        for row, (title, a, b) in enumerate(VIEWS):
            panel = axes[row, k]
            for (name, body), blade in zip(blades.items(), chords, strict=True):
                l, c = blade.length, blade.chord
                outline = np.array([[0, 0, 0], [l, 0, 0], [l, 0, -c], [0, 0, -c], [0, 0, 0]], dtype=float)
                points = 1e3 * (position[body] + outline @ rotation[body].T)
                panel.plot(points[:, a], points[:, b], "C0" if name.startswith("right") else "C1", linewidth=0.8)
            spine = 1e3 * (position[0] + np.array([[0, 0, -0.028], [0, 0, 0.028]]) @ rotation[0].T)
            panel.plot(spine[:, a], spine[:, b], "k", linewidth=2.0)
            panel.set(xlim=(-80, 80), ylim=(-45, 45), aspect="equal", xticks=[], yticks=[])
            if k == 0:
                panel.set(ylabel=title)
            if row == 0:
                panel.set(title=f"{k / SNAPSHOTS:g} T")
    figure.suptitle("Fig. 5: one stroke (right wing blue, left orange; 160 mm across)")
    return figure


# Strokes of the moth on the periodic orbit of each reading, and the numbers that are read off them.


READINGS: dict[str, dict[str, Any]] = {
    "no added mass": {"added_mass": "none"},
    "rho pi c^2 / 4": {"added_mass": "flat"},
    "rho pi c^2 (printed)": {"added_mass": "paper"},
    "fit": {"preset": "fit"},
}
SAMPLES = 400
STEP_S = 1e-4
STROKES = 10
"""Strokes of the run by the paper's integrator."""
LOST_RAD = 1e-2
"""Distance of joints from RK4's, rad, beyond which the run has left the orbit, and its power has no meaning."""


def stroke(**values: Any) -> Stroke:
    """Return the periodic orbit at the paper's amplitude, free thorax, found by shooting.

    Parameters
    ----------
    **values : Any
        Parameters of the moth.

    Returns
    -------
    Stroke
        The orbit.
    """
    result = trim(moth.in_paper_frame(dt=1e-3, **values))
    plant = moth.in_paper_frame(dt=STEP_S, **values)
    n, rows, states = plant.model.n, [], []
    plant.vector[:] = result.vector
    for _ in range(SAMPLES):
        plant.evaluate()
        y, torque = plant.vector, float(plant.torque[0])
        q = y[7 : 7 + n]
        bend, twist, pitch = q[0] + q[1] + q[3] + q[5] + q[7], q[2] + q[4] + q[6], 2.0 * math.atan2(y[4], y[3])
        power = torque * float(plant.system.work.qd[0])
        states.append(plant.state)
        rows.append([plant.time, q[0], bend, twist, torque, power, *y[1:3], pitch, *y[7 + n : 13 + n]])
        plant.step(plant.neutral)
    d = np.array(rows)
    d[:, 7] -= np.arange(SAMPLES) / SAMPLES * result.travel[2]
    # the air's force is what the centre of mass needs beyond its weight: second differences around the period
    centre = np.array([centre_of_mass(plant.model, state) for state in states])
    centre -= np.outer(np.arange(SAMPLES) / SAMPLES, result.travel)
    acceleration = (np.roll(centre, -1, 0) - 2.0 * centre + np.roll(centre, 1, 0)) / plant.dt**2
    air = plant.model.mass * (acceleration - plant.model.gravity)
    return Stroke(
        d[:, 0], d[:, 1], d[:, 2], d[:, 3], d[:, 4], d[:, 5], d[:, 6:9], d[:, 9:12], d[:, 12:15], air, result.vector,
        plant.model, states,
    )  # fmt: skip


def numbers(s: Stroke) -> dict[str, float]:
    """Return the numbers by the keys of NUMBERS and TEXT_CLAIMS, and the carried weight.

    Parameters
    ----------
    s : Stroke
        The orbit.

    Returns
    -------
    dict[str, float]
        Numbers by key.
    """
    half, power = np.ptp(s.moved, axis=0) / 2.0, float(np.mean(s.power))
    twist, bend, torque = peak(np.abs(s.twist)), peak(s.bend), peak(np.abs(s.torque))
    least = _phase(peak(-s.air[:, 2]))
    return {
        "twist": math.degrees(twist[1]), "twist_lag": lag_deg(s.twist),
        "bend": math.degrees(bend[1]), "bend_lag": 360.0 * bend[0],
        "torque": 1e3 * torque[1], "power": power, "specific": 2.0 * power / s.model.mass,
        "fore_aft": 1e3 * half[0], "vertical": 1e3 * half[1], "pitch": math.degrees(half[2]),
        "twist_at": _phase(twist), "bend_at": _phase(bend), "bend_alone_at": _phase(peak(np.abs(s.bend - s.stroke))),
        "torque_at": _phase(torque), "lift_at": _phase(peak(s.air[:, 2])),
        "no_lift_at": least - 180.0 if least > 90.0 else least,
        "weight": float(np.mean(s.air[:, 2])) / (s.model.mass * -float(s.model.gravity[2])),
    }  # fmt: skip


def _phase(reversal: tuple[float, float]) -> float:
    """Return the phase in deg, [0, 180), from the last reversal."""
    return 360.0 * reversal[0] % 180.0


def lag_deg(signal: Array) -> float:
    """Return the lag of the fundamental of one period behind cos, the stroke's own; of either sign.

    Parameters
    ----------
    signal : Array
        (k,) over one period.

    Returns
    -------
    float
        deg in [0, 180).
    """
    return math.degrees(-float(np.angle(np.fft.rfft(signal)[1]))) % 180.0


def by_own_integrator(vector: Array, step_s: float, **values: Any) -> tuple[float, float, float]:
    """Run the paper's predictor-corrector from a state on the orbit, beside RK4 at 0.1 ms.

    Parameters
    ----------
    vector : Array
        State on the orbit.
    step_s : float
        Step of the predictor-corrector, s.
    **values : Any
        Parameters of the moth.

    Returns
    -------
    tuple[float, float, float]
        Largest distance of the joints within STROKES strokes, rad; power of a wing over the last of them, W, nan where
        the orbit is lost; a step's error by the monitor of runs, of the change within the step.
    """
    moth_plant = moth.in_paper_frame(dt=STEP_S, step_s=step_s, **{**values, "integrator": "abam"})
    exact = moth.in_paper_frame(dt=STEP_S, **values)
    moth_plant.start(vector, 0)
    exact.start(vector, 0)
    monitor, due, far, n = Monitor(moth_plant.step_error_estimator()), 0, 0.0, moth_plant.model.n
    work = 0.0
    for k in range(STROKES * SAMPLES):
        if k == (STROKES - 1) * SAMPLES:
            work = float(moth_plant.observe()["work"])
        try:
            moth_plant.step(moth_plant.neutral)
        except DivergedError:
            return math.inf, math.nan, math.inf
        exact.step(exact.neutral)
        if k >= due and not monitor.hopeless:
            due = k + monitor.look(moth_plant.neutral)
        far = max(far, float(np.abs(moth_plant.vector[7 : 7 + n] - exact.vector[7 : 7 + n]).max()))
    power = (float(moth_plant.observe()["work"]) - work) / (2.0 * SAMPLES * STEP_S)
    return far, power if far < LOST_RAD else math.nan, monitor.verdict.step


def period_seconds() -> float:
    """Return the wall time of one period of 400 RK4 steps, the least of a few.

    Returns
    -------
    float
        s.
    """
    plant, least = moth.load(), math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(40):
            plant.step(plant.neutral)
        least = min(least, time.perf_counter() - start)
    return least


BEYOND = {"abam": LOST_RAD, "abam_error": UNSTABLE}
"""Bounds beyond which the orbit is lost and the motion is chaos: the distance is then a number of that machine's
roundings alone.
"""


def rows_of_reading(name: str, s: Stroke, values: dict[str, Any]) -> list[Row]:
    """Return all statements of the paper beside one reading.

    Parameters
    ----------
    name : str
        Name of the reading.
    s : Stroke
        Its orbit.
    values : dict[str, Any]
        Its parameters.

    Returns
    -------
    list[Row]
        Rows of the table.
    """
    result = numbers(s)
    result["abam"], result["abam_power"], result["abam_error"] = by_own_integrator(s.vector, STEP_S, **values)
    result["abam_half"] = by_own_integrator(s.vector, STEP_S / 2.0, **values)[0]
    remarks = {
        key: "beyond 45 deg is nearer to the middle of the stroke than to the reversal"
        for key in ("bend_at", "bend_alone_at", "torque_at")
        if result[key] > 45.0
    }
    lost = {key: f"more than {bound:g}" for key, bound in BEYOND.items() if result[key] > bound}
    return [
        claim.row(result[claim.key], case=name, shown=lost.get(claim.key, ""), remark=remarks.get(claim.key, ""))
        for claim in CLAIMS
    ]


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Find the orbit of every reading, draw, and print the numbers.

    The status is 1 if a necessary result does not hold.

    Parameters
    ----------
    out : Path | None, optional
        Folder of figures; None: no figures.
    as_json : bool, default False
        Print JSON.

    Returns
    -------
    int
        Exit status.
    """
    strokes = {name: stroke(**reading) for name, reading in READINGS.items()}
    rows = [row for name, s in strokes.items() for row in rows_of_reading(name, s, READINGS[name])]
    rows.append(CLOCK.row(1e3 * period_seconds()))
    return print_rows("porez2014", rows, draw(strokes, out) if out is not None else [], as_json, out)
