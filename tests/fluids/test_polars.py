"""Tables over the angle of attack: against the law of the flapping blade, strips as blades, drag, glide, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.mechanism.flow import fluid_wrench
from rtmms.model.compiled import State
from rtmms.model.polars import Polar

AIR = 1.2
ANGLES = np.arange(-180.0, 181.0, 2.0)
RADIANS = np.radians(ANGLES)
DICKINSON = Polar(ANGLES, 1.8 * np.sin(2.0 * RADIANS), 1.92 - 1.55 * np.cos(2.0 * RADIANS))
"""The law of `Blade` without a polar."""
WING = Polar.with_stall_extension([-12, -8, -4, 0, 4, 8, 12], [-0.8, -0.45, -0.05, 0.35, 0.75, 1.1, 1.2],
                    [0.05, 0.025, 0.015, 0.012, 0.016, 0.028, 0.06], [-0.05] * 7)  # fmt: skip
ALONG = m.Placement(np.column_stack([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
"""Of a blade: span to the left, upper side up, leading edge ahead."""


def wrench(element: Any, twist: Any, current: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    model = rtmms.compile(rtmms.Mechanism("wing", [m.Body("wing", 1.0, inertia=np.eye(3), elements=[element])]))
    state = State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(0), np.array(twist, dtype=float), np.zeros(0))
    return np.asarray(fluid_wrench(model, state, rtmms.fluids.Flow(current))[0])


def blade(polar: Polar | None, **more: Any) -> m.Blade:
    return m.Blade(0.6, 0.1, AIR, **{"pressure": 0.25, "added": 0.0, "placement": ALONG, "polar": polar, **more})


@pytest.mark.full
@pytest.mark.parametrize("moving", [False, True])
def test_a_table_of_the_present_law_gives_its_numbers(moving: bool) -> None:
    """At all incidences, while the wing rolls and pitches; nothing flows along the span."""
    rng, current = np.random.default_rng(2), (1.0, 0.0, 0.5) if moving else (0.0, 0.0, 0.0)
    for _ in range(20):
        v, w = rng.normal(size=3), rng.normal(size=3)
        twist = [v[0], 0.0, v[2], w[0], w[1], 0.0]
        law = wrench(blade(None, pressure=0.0), twist, current)
        np.testing.assert_allclose(
            wrench(blade(DICKINSON, pressure=0.0), twist, current), law, atol=2e-6 * np.abs(law).max()
        )


def test_strip_and_blade_are_the_same_wing() -> None:
    """A strip's line is where a blade's force acts."""
    place = m.at(x=-0.025, y=0.3) @ m.Placement(np.column_stack([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    strip = m.Strip(0.6, placement=place, polar=WING, chord=0.1, density=AIR)
    rng = np.random.default_rng(3)
    for _ in range(5):
        twist = rng.normal(size=6)
        np.testing.assert_allclose(wrench(strip, twist), wrench(blade(WING), twist), rtol=1e-9, atol=1e-12)


def test_lift_drag_and_moment_are_those_of_the_table() -> None:
    """At the table's own angles; nose up is a negative moment about the axis to the left."""
    for alpha, lift, drag, moment in zip((-8, 0, 4), (-0.45, 0.35, 0.75), (0.025, 0.012, 0.016), [-0.05] * 3,
                                         strict=True):  # fmt: skip
        a, speed = math.radians(alpha), 10.0
        force = wrench(blade(WING), [speed * math.cos(a), 0.0, -speed * math.sin(a), 0.0, 0.0, 0.0])
        q = 0.5 * AIR * speed**2 * 0.6 * 0.1
        assert force[0] * math.sin(a) + force[2] * math.cos(a) == pytest.approx(q * lift, rel=1e-12)
        assert -force[0] * math.cos(a) + force[2] * math.sin(a) == pytest.approx(q * drag, rel=1e-12)
        assert force[4] == pytest.approx(0.025 * force[2] - q * 0.1 * moment, rel=1e-12)


def test_the_table_is_smooth_and_drag_takes_energy() -> None:
    """Values and slopes meet at every point; power in still air is never above 0, moment aside."""
    rows = WING.rows()
    rough = Polar([-180, -20, -10, 0, 10, 20, 180], [0, -1, -1, 0, 1, 1, 0], [1, 0.2, 0, 0, 0, 0.2, 1])
    assert np.all(np.diff(rows[:, 0]) > 0.0)
    rng = np.random.default_rng(4)
    for polar in (WING, rough, DICKINSON):
        still = Polar(polar.angles_deg, polar.lift, polar.drag)
        for _ in range(15):
            twist = rng.normal(size=6)
            assert wrench(blade(still), twist) @ twist <= 1e-12
    h = 1e-6

    def lift(angle: float) -> float:
        return float(wrench(blade(WING), [math.cos(angle), 0.0, -math.sin(angle), 0.0, 0.0, 0.0])[2])

    for angle in rows[2:-1:7, 0]:
        left, right = (lift(angle) - lift(angle - h)) / h, (lift(angle + h) - lift(angle)) / h
        assert left == pytest.approx(right, abs=2e-4)


def test_a_steady_glide_falls_by_drag_over_lift() -> None:
    """A wing that hardly turns, put on the path on which lift and drag carry it: way over height is L / D."""
    alpha, speed = 4.0, 8.0
    a = math.radians(alpha)
    force = wrench(blade(WING), [speed * math.cos(a), 0.0, -speed * math.sin(a), 0.0, 0.0, 0.0])[:3]
    lift = force[0] * math.sin(a) + force[2] * math.cos(a)
    drag = -force[0] * math.cos(a) + force[2] * math.sin(a)
    slope = math.atan2(drag, lift)
    weight = math.hypot(lift, drag)
    # pitched nose up by alpha less the slope of its path
    turn = a - slope
    bar = m.Body("bar", weight / 9.81, inertia=1e3 * np.eye(3), elements=[blade(WING, placement=m.at(y=-0.3) @ ALONG)])
    plant = rtmms.TreePlant(rtmms.Mechanism("bar", [bar]), 1e-2)
    pitch = [math.cos(-0.5 * turn), 0.0, math.sin(-0.5 * turn), 0.0]
    plant.place(quaternion=pitch, velocity=[speed * math.cos(a), 0.0, -speed * math.sin(a)])
    for _ in range(300):
        plant.step([])
    x, _, z = plant.observe()["position"]
    assert x > 20.0
    assert -x / z == pytest.approx(0.75 / 0.016, rel=0.02)


@pytest.mark.parametrize(
    ("polar", "text"),
    [
        (Polar([-20, 0, 25], [0, 0, 0], [0, 0, 0]), "expected a whole turn of 360 degrees"),
        (Polar([-180, 0, 180], [0, 1, 1], [0, 0, 0]), "expected the same lift, drag and moment at -180 and 180"),
        (Polar([-180, 0, 180], [0, 1, 0], [0, -1, 0]), "drag must be >= 0, got -1"),
        (Polar([-180, 0, 0, 180], [0, 1, 1, 0], [0, 0, 0, 0]), "angles_deg must rise"),
        (Polar([-180, 0, 180], [0, 1], [0, 0, 0]), "lift must be three or more finite numbers"),
        (Polar([-180, 0, 180], [0, math.nan, 0], [0, 0, 0]), "lift must be three or more finite numbers"),
        ("thin", "expected a Polar, got 'thin'"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_is_refused(polar: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=f"body 'wing': blade.polar.*{text}"):
        wrench(blade(polar), np.zeros(6))


def test_a_strip_with_a_table_needs_a_chord() -> None:
    with pytest.raises(
        rtmms.ModelError, match=r"strip.polar: expected chord > 0 m, density > 0 kg/m3 and no drag across"
    ):
        wrench(m.Strip(1.0, polar=WING), np.zeros(6))
