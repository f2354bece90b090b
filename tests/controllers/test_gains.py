"""The gains of the manta's pilot are those of rules for its period-averaged linear model, and leave good margins.

The map of a beat (rtmms.analysis.period_map) around steady swimming gives each loop a plant of first order (of second
order in pitch): pole -ln(a) / T of the map's entry a, gain so that a period's step is the map's. Gains follow by rules
that stand beside them; margins are those of the loop with the generator's followers, the step's hold and one sample of
delay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.linearise import Linear
from rtmms.analysis.period_map import period_map
from rtmms_controllers.mixing import StrokeLimits, mix
from rtmms_controllers.pilot import STROKE_LIMITS, Gains
from rtmms_controllers.strokes import BIAS_RATE_1_S, RATE_1_S

Array = Any
COORDINATES = ("z_error", "roll_error", "pitch_error", "yaw_error", "vx", "vy", "vz", "wx", "wy", "wz")
_SIZES = (0.01, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.05, 0.05, 0.05)
INPUTS = ("thrust", "yaw", "pitch", "roll", "bias")
_STEPS = (0.05, 0.05, 0.1, 0.05, 0.3)
FREQUENCY_HZ = 0.8
SAMPLE_S = 5e-3
CROSSOVER = {"depth": 0.5, "turn": 1.5, "roll": 0.8, "speed": 0.3}
"""rad/s, well below the beat's 5 rad/s, of which the averaged model knows nothing."""


@dataclass(frozen=True)
class Margin:
    """gain: factor at which it is on the edge (inf: none); phase deg and crossover rad/s (nan: it never crosses)."""

    gain: float
    phase_deg: float
    crossover_rad_s: float


def beat(thrust: float, ratio: float, stroke_limits: StrokeLimits, parts: Array, steps: int) -> Array:
    """(steps, 4) rod angles of one beat; words (5,) added to (thrust, 0, 0, 0, 0)."""
    w = np.asarray(parts, dtype=float)
    t, columns = 2.0 * math.pi * np.arange(1, steps + 1) / steps, []
    for side in mix(stroke_limits, thrust + w[0], w[1], w[2], w[3], w[4]):
        front = math.asin(ratio * math.sin(side.amplitude))
        columns.append(front * np.sin(t + side.lead) + side.bias + side.incidence)
        columns.append(side.amplitude * np.sin(t) + side.bias - side.incidence)
    return np.array(columns).T


def averaged(thrust: float, beats: int = 20) -> tuple[Linear, float]:
    """The map of a beat of steady swimming, and the mean speed of it, m/s."""
    plant = rtmms.load("manta")
    ratio = plant.parameters.back_rod_m / plant.parameters.front_rod_m  # type: ignore[attr-defined]
    steps = round(1.0 / FREQUENCY_HZ / plant.dt)

    def commands(parts: Array) -> Array:
        return beat(thrust, ratio, STROKE_LIMITS, parts, steps)

    steady = commands(np.zeros(len(INPUTS)))
    x = 0.0
    for _ in range(beats):
        x = float(plant.observe()["position"][0])
        for row in steady:
            plant.step(row)
    speed = (float(plant.observe()["position"][0]) - x) * FREQUENCY_HZ
    return period_map(plant, commands, INPUTS, COORDINATES, sizes=_SIZES, steps=_STEPS), speed


@dataclass(frozen=True)
class Model:
    """Of a loop: poles -a (1/s) and b, v' = -a v + b u;  pitch: natural frequency, damping, angle of a word held."""

    lift: tuple[float, float]
    turn: tuple[float, float]
    roll: tuple[float, float]
    speed: tuple[float, float]
    pitch: tuple[float, float, float]


def models(linear: Linear) -> Model:
    """Of each loop, from the map's entries."""

    def entry(x: str, y: str) -> float:
        return float(linear.a[linear.states.index(x), linear.states.index(y)])

    def gain(x: str, u: str) -> float:
        return float(linear.b[linear.states.index(x), linear.inputs.index(u)])

    period = float(linear.dt or 1.0)

    def first(x: str, u: str, current: float | None = None) -> tuple[float, float]:
        stored = entry(x, x) if current is None else current
        a = -math.log(max(stored, 1e-3)) / period
        return a, gain(x, u) / (1.0 - stored) * a

    two = [linear.states.index(name) for name in ("pitch_error", "wy")]
    block = linear.a[np.ix_(two, two)]
    pole = np.log(complex(np.linalg.eigvals(block)[0])) / period
    natural = abs(pole)
    turned = np.linalg.solve(np.eye(2) - block, linear.b[two, linear.inputs.index("bias")])
    return Model(
        first("vz", "pitch"), first("wz", "yaw"), first("roll_error", "roll"), first("vx", "thrust"),
        (natural, -pole.real / natural, float(turned[0])),
    )  # fmt: skip


def gains(model: Model, thrust: float, speed: float) -> Gains:
    """By the rules beside each."""
    lift, turn = model.lift[1] / model.lift[0], model.turn
    w = CROSSOVER
    # the lift is fast beside the loop: climb = lift u, |p lift / (j w)| = 1; the integral a sixth of the crossover
    depth_p = w["depth"] / lift
    # a pole cancelled by the zero of its loop: p (s + a) / s b / (s + a)
    turn_p, roll_p, speed_p = (w[name] / b for name, (_, b) in (("turn", turn), ("roll", model.roll),
                                                                ("speed", model.speed)))  # fmt: skip
    natural, damping, held = model.pitch
    # only an integral: its peak at the pendulum's resonance at a fifth
    pitch_i = 0.2 * 2.0 * damping * natural / held
    return Gains(
        depth_p=depth_p, depth_i=depth_p * w["depth"] / 6.0, heading_p=w["turn"] / 1.5, turn_p=turn_p,
        turn_i=turn_p * turn[0], roll_p=roll_p, roll_i=roll_p * model.roll[0], pitch_i=pitch_i, speed_p=speed_p,
        speed_i=speed_p * model.speed[0], steady_s2_m2=thrust / speed**2,
    )  # fmt: skip


def margins(model: Model, gains: Gains) -> dict[str, Margin]:
    """Of each loop broken at its actuator, by its name."""

    def lag(s: Any, rate_1_s: float) -> Any:
        return (rate_1_s / (s + rate_1_s)) ** 3 * np.exp(-1.5 * SAMPLE_S * s)

    def first(s: Any, ab: tuple[float, float]) -> Any:
        return ab[1] / (s + ab[0])

    natural, damping, held = model.pitch
    g = gains
    loops: dict[str, Callable[[Any], Any]] = {
        "depth": lambda s: (g.depth_p + g.depth_i / s + g.climb_d * s) * first(s, model.lift) / s
        * lag(s, BIAS_RATE_1_S),
        "turn": lambda s: (g.turn_p + g.turn_i / s) * first(s, model.turn) * lag(s, RATE_1_S),
        "heading": lambda s: (g.turn_p + g.turn_i / s) * (1.0 + g.heading_p / s) * first(s, model.turn)
        * lag(s, RATE_1_S),
        "roll": lambda s: (g.roll_p + g.roll_i / s + g.roll_d * s) * first(s, model.roll) * lag(s, BIAS_RATE_1_S),
        "speed": lambda s: (g.speed_p + g.speed_i / s) * first(s, model.speed) * lag(s, RATE_1_S),
        "pitch": lambda s: (g.pitch_i / s + g.pitch_d * s) * held * natural**2
        / (s**2 + 2.0 * damping * natural * s + natural**2) * lag(s, BIAS_RATE_1_S),
    }  # fmt: skip
    return {name: margin(loop) for name, loop in loops.items()}


def margin(loop: Callable[[Any], Any]) -> Margin:
    """Of a loop L(s) that is stable open, or integrates: least gain margin, phase margin at the last crossing of 1."""
    w = np.geomspace(1e-3, 1e2, 20000)
    value = loop(1j * w)
    size, phase = np.abs(value), np.unwrap(np.angle(value))
    crossed = np.flatnonzero((size[:-1] >= 1.0) & (size[1:] < 1.0))
    turned = np.flatnonzero(np.diff(np.floor((phase + math.pi) / (2.0 * math.pi))) != 0)
    factor = min((1.0 / size[k] for k in turned), default=math.inf)
    if not len(crossed):
        return Margin(float(factor), math.nan, math.nan)
    least = min(crossed, key=lambda k: (phase[k] + math.pi) % (2.0 * math.pi))
    degrees = math.degrees((phase[least] + math.pi) % (2.0 * math.pi))
    return Margin(float(factor), degrees, float(w[least]))


DESIGN = 0.31
"""Thrust word of the speed for which the gains are computed."""
MARGINS = {"depth": (10.8, 63, 0.50), "turn": (8.1, 72, 1.49), "heading": (6.8, 39, 1.72), "roll": (15.3, 80, 0.80),
           "speed": (40.3, 87, 0.30), "pitch": (5.3, 89, 0.08)}  # fmt: skip
"""Of docs/controllers.md: gain margin, phase margin in deg, crossover in rad/s."""


@pytest.fixture(scope="module")
def design() -> tuple[Model, float]:
    linear, speed = averaged(DESIGN)
    return models(linear), speed


@pytest.mark.full
def test_the_gains_are_those_of_the_rules(design: tuple[Model, float]) -> None:
    model, speed = design
    assert speed == pytest.approx(0.40, abs=0.01)
    ours, used = asdict(gains(model, DESIGN, speed)), asdict(Gains())
    assert ours == pytest.approx(used, rel=0.1)


@pytest.mark.full
def test_the_margins_are_those_of_the_page(design: tuple[Model, float]) -> None:
    result = margins(design[0], Gains())
    for name, expected in MARGINS.items():
        item = result[name]
        assert (item.gain, item.phase_deg, item.crossover_rad_s) == pytest.approx(expected, rel=0.05, abs=1.0), name
