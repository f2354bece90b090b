"""What is read off the runs of a paper: made-up runs that are wrong in one thing turn the verdict of that thing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtmms.studies import khalil2007 as eel
from rtmms.studies import khalil2007 as eel_claims
from rtmms.studies import porez2014 as moth
from rtmms.studies import porez2014 as moth_claims
from rtmms.studies import qu2024 as manta
from rtmms.studies.qu2024_runs import WINDOWS
from rtmms.view.verdict import AGREES, DIFFERS

TIME = np.arange(6000) * 0.02


def _swim(nose: Any, torque: float = 0.5) -> eel.Swim:
    k = len(nose)
    return eel.Swim(TIME[:k], nose, np.zeros((k, 4)), np.zeros((k, 36)), np.full((k, 36), torque), np.full(2, 1e-12))


def _planar(route: float = 0.5) -> eel.Swim:
    t = TIME[:1500]
    return _swim(np.stack([-route * t, 0.05 * np.sin(np.pi * t), 0.0 * t], axis=1))


def _loop(flat: float = 1.0, aside: float = 0.0) -> eel.Swim:
    angle = 2.0 * np.pi * TIME / 60.0
    return _swim(np.stack([np.cos(angle), aside * TIME, flat * np.sin(angle)], axis=1))


def _eel(planar: eel.Swim, loop: eel.Swim, final: float = 0.5) -> dict[str, str]:
    result = eel.numbers(planar, loop, final)
    return {claim.key: claim.row(result[claim.key]).verdict for claim in eel_claims.CLAIMS}


JUDGED = {claim.key for claim in eel_claims.CLAIMS if claim.target is not None}
TURNED = {
    "missing": (_planar(0.4), _loop()),
    "yaw": (replace(_planar(), torque=np.full((1500, 36), [4.1, 0.5, 0.5] * 12)), _loop()),
    "pitch": (_planar(), replace(_loop(), torque=np.full((6000, 36), [0.5, -4.1, 0.5] * 12))),
    "roll": (_planar(), replace(_loop(), torque=np.full((6000, 36), [0.5, 0.5, -0.71] * 12))),
    "agreement_base": (replace(_planar(), apart=np.array([1e-7, 0.0])), _loop()),
    "agreement_joints": (_planar(), replace(_loop(), apart=np.array([0.0, 1e-7]))),
    "roundness": (_planar(), _loop(flat=0.8)),
    "out_of_plane": (_planar(), _loop(aside=0.01)),
    "planar_25": (replace(_planar(), torque=np.where(np.arange(36) == 24, -4.1, 0.5) * np.ones((1500, 1))), _loop()),
    **{
        f"drawn_{joint}": (
            _planar(), replace(_loop(), torque=np.where(np.arange(36) == joint - 1, 4.1, 0.5) * np.ones((6000, 1))),
        )
        for joint in eel_claims.DRAWN
    },
}  # fmt: skip


def test_an_eel_as_it_should_be() -> None:
    message = _eel(_planar(), _loop())
    assert {key for key, verdict in message.items() if verdict == AGREES} == JUDGED
    result = eel.numbers(_planar(), _loop(), 0.5)
    assert result["speed"] == pytest.approx(0.5, rel=1e-4)
    assert result["sway"] == pytest.approx(0.05, rel=1e-3)
    assert result["diameter"] == pytest.approx(2.0)
    assert result["loop_time"] == pytest.approx(60.0, rel=1e-3)
    assert result["turned"] == pytest.approx(354.0, abs=3.0)  # the way over the first period is that at 1 s


def test_an_eel_that_swims_the_other_way_has_the_same_numbers() -> None:
    there, back = _planar(), replace(_planar(), nose=_planar().nose * [-1.0, 1.0, 1.0])
    for key in ("speed", "sway", "missing"):
        assert eel.numbers(there, _loop(), 0.5)[key] == pytest.approx(eel.numbers(back, _loop(), 0.5)[key])


@pytest.mark.parametrize("key", sorted(JUDGED))
def test_an_eel_that_is_wrong_in_one_thing(key: str) -> None:
    assert _eel(*TURNED[key])[key] == DIFFERS


# --- the moth ---------------------------------------------------------------------------------------------------------


def _moth(**late: float) -> dict[str, float]:
    """Numbers of a stroke whose signals peak so many deg after a reversal."""
    phase = 2.0 * np.pi * np.arange(400) / 400

    def signal(name: str, harmonic: int, degrees: float) -> Any:
        return np.cos(harmonic * (phase - np.radians(late.get(name, degrees))))

    twist, bend, lift = signal("twist", 1, 85.0), signal("bend", 1, 40.0), 0.07 + 0.1 * signal("lift", 2, 90.0)
    torque = signal("torque", 1, 60.0)
    stroke, air = np.cos(phase), np.stack([0 * phase, 0 * phase, lift], axis=1)
    model = SimpleNamespace(mass=0.07 / 9.81, gravity=np.array([0.0, 0.0, -9.81]))
    built: Any = SimpleNamespace(
        stroke=stroke, bend=bend + stroke if "alone" in late else bend, twist=twist, torque=torque,
        power=0.4 + 0 * phase, moved=np.zeros((400, 3)), air=air, model=model,
    )  # fmt: skip
    return moth.numbers(built)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("twist_at", {"twist": 85.0}, {"twist": 45.0}), ("twist_lag", {"twist": 60.0}, {"twist": 85.0}),
        ("bend_at", {"bend": 36.0}, {"bend": 110.0}), ("bend_lag", {"bend": 36.0}, {"bend": 60.0}),
        ("bend_alone_at", {"bend": 30.0, "alone": 1.0}, {"bend": 150.0, "alone": 1.0}),
        ("torque_at", {"torque": 60.0}, {"torque": 150.0}), ("lift_at", {"lift": 100.0}, {"lift": 50.0}),
        ("no_lift_at", {"lift": 100.0}, {"lift": 50.0}),
    ],
)  # fmt: skip
def test_a_moth_s_phases(key: str, good: dict[str, float], bad: dict[str, float]) -> None:
    claim = next(claim for claim in moth_claims.CLAIMS if claim.key == key)
    assert claim.row(_moth(**good)[key]).verdict == AGREES
    assert claim.row(_moth(**bad)[key]).verdict == DIFFERS
    assert _moth(lift=100.0)["no_lift_at"] == pytest.approx(10.0, abs=0.01)
    assert _moth(lift=80.0)["no_lift_at"] == pytest.approx(-10.0, abs=0.01)
    assert _moth()["weight"] == pytest.approx(1.0)


# --- the manta --------------------------------------------------------------------------------------------------------


def _manta() -> dict[str, Any]:
    """What the command computes, made up: all that is judged agrees."""
    rising = np.array([[0.1, 0.2, 0.4], [0.2, 0.5, 0.9]])
    turn = {"turn_rate_deg_s": dict.fromkeys(WINDOWS, 20.0), "turn_radius_m": dict.fromkeys(WINDOWS, 1.6)}
    return {
        "fig7": {
            "rear_lag_deg": np.array([20.0, 30.0]), "chord_lag_deg": np.array([30.0, 40.0, 35.0]),
            "rear_amplitude_deg": np.array([8.0, 9.0, 3.0]), "mean_thrust_n": 3.4, "peak_thrust_n": 20.0,
        },
        "fig8": {
            "thrust_by_amplitude_n": rising, "thrust_by_phase_n": rising, "phase_deg": np.array([-30.0, 0.0, 30.0]),
            "frequency_exponent": 1.8,
        },
        "fig9": {"settled": [
            {"amplitude_deg": a, "speed_m_s": 0.5, "swing_m_s": 1e-3 * a, "mean_4_to_10_s_m_s": 0.7, "power_w": 5.0,
             "cost_of_transport": 0.04, "reaches_95_percent_s": 12.0, "greatest_yaw_rad": 0.0}
            for a in (20.0, 40.0)
        ]},
        "fig10_11": {
            "phase": {**turn, "first_yaw_acceleration_rad_s2": 1.0, "yaw_moment_spread_n_m": 0.9},
            "amplitude": {**turn, "first_yaw_acceleration_rad_s2": 0.4, "yaw_moment_spread_n_m": 0.3},
        },
        "rk4_step_s": 0.02, "cost": {"ms_for_10_ms": 0.1}, "power_balance": {"relative_error": [1e-5, 1e-6]},
        "coupling": {"iterated": {"position_m": [1e-12, 2e-12]}},
    }  # fmt: skip


WRONG: dict[str, tuple[tuple[Any, ...], Any]] = {
    "rear_lag": (("fig7", "rear_lag_deg"), np.array([20.0, 4.0])),
    "chord_lag": (("fig7", "chord_lag_deg"), np.array([-30.0, 40.0, 35.0])),
    "over_amplitude": (("fig8", "thrust_by_amplitude_n"), np.array([[0.1, 0.2, 0.3], [0.2, 0.5, 0.4]])),
    "over_phase": (("fig8", "thrust_by_phase_n"), np.array([[0.1, 0.1, 0.3], [0.2, 0.3, 0.4]])),
    "peak_thrust": (("fig7", "peak_thrust_n"), 23.0),
    "swing": (("fig9", "settled", 0, "swing_m_s"), 1.0),
    "yaw": (("fig9", "settled", 1, "greatest_yaw_rad"), 1e-6),
    "first_yaw": (("fig10_11", "phase", "first_yaw_acceleration_rad_s2"), 0.3),
    "spread": (("fig10_11", "amplitude", "yaw_moment_spread_n_m"), 1.0),
    "rk4_step": (("rk4_step_s",), 0.0099),
    "balance": (("power_balance", "relative_error"), [1e-5, 1e-3]),
    "iterated": (("coupling", "iterated", "position_m"), [1e-6, 2e-12]),
}


def _differing(result: dict[str, Any]) -> list[str]:
    return [row.name for row in manta.rows(result) if row.verdict == DIFFERS]


def test_a_manta_as_it_should_be() -> None:
    message = manta.rows(_manta())
    assert not _differing(_manta())
    assert {claim.name for claim in manta.CLAIMS} <= {row.name for row in message}
    assert {claim.key for claim in manta.CLAIMS if claim.target is not None} == set(WRONG)


@pytest.mark.parametrize("key", WRONG)
def test_a_manta_that_is_wrong_in_one_thing(key: str) -> None:
    result, (path, value) = _manta(), WRONG[key]
    inner: Any = result
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    assert _differing(result) == [next(claim.name for claim in manta.CLAIMS if claim.key == key)]
