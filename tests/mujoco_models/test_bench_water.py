"""`rtmms bench water`: rtmms's elements have the closed forms, and the page states where MuJoCo is right."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms_benchmarks import water
from rtmms_benchmarks.water import Case, Start, by_mujoco, by_rtmms, cases, ellipsoid_added, is_right

mujoco: Any = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'rtmms[mujoco]'")
pytestmark = [pytest.mark.full, pytest.mark.peer]
CASES = cases()
RIGHT = {
    "a neutral sphere stays: speed after 2 s", "a sphere of 1.2 times its water sinks: terminal speed",
    "Munk's moment at 1 m/s and 30 deg", "power balance without drag: E(2 s) / E(0)",
    "power balance with drag: energy lost / work of drag",
}  # fmt: skip
"""Cases in which MuJoCo 4.0 has the closed form."""
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "mujoco.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda item: item.name)
def test_rtmms_has_the_closed_form(case: Case) -> None:
    result = case.measure(by_rtmms)
    assert result == pytest.approx(case.closed_form, rel=1e-3, abs=1e-3 * case.scale)


@pytest.mark.parametrize("case", CASES, ids=lambda item: item.name)
def test_mujoco_is_right_where_the_page_has_it(case: Case) -> None:
    assert is_right(case, case.measure(by_mujoco)) == (case.name in RIGHT)
    row = next(line for line in PAGE.splitlines() if line.startswith(f"{case.name} "))
    assert row.endswith(" right" if case.name in RIGHT else " wrong")


def test_the_page_has_the_numbers_that_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert water.main(as_json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["cases"]) == len(CASES)
    assert printed["versions"]["mujoco"] == mujoco.__version__
    for row in printed["cases"]:
        assert row["rtmms_is_right"]
        if not mujoco.__version__.startswith("4.0"):
            continue
        line = next(line for line in PAGE.splitlines() if line.startswith(f"{row['name']} "))
        closed, ours, theirs = (float(cell) for cell in line.removeprefix(row["name"]).split()[:3])
        tiny = 1e-6
        assert closed == pytest.approx(row["closed_form"], rel=1e-3, abs=tiny)
        assert ours == pytest.approx(row["rtmms"], rel=1e-3, abs=tiny)
        assert theirs == pytest.approx(row["mujoco"], rel=1e-3, abs=tiny)
    assert ", mujoco 4.0" in PAGE, "the version whose numbers the page has"


@pytest.mark.parametrize("half_axes", [(0.1, 0.1, 0.1), (0.3, 0.06, 0.06), (0.3, 0.1, 0.05)])
def test_mujoco_has_the_added_masses_that_it_does_not_use(half_axes: tuple[float, float, float]) -> None:
    """Its compiler computes the same integrals: two implementations of Lamb's formula."""
    body = water.ellipsoid(half_axes)
    model = mujoco.MjModel.from_xml_string(water.mjcf_of(body, 1e-3))
    theirs = 1000.0 * np.array(model.geom_fluid[0, 6:12])
    np.testing.assert_allclose(ellipsoid_added(half_axes), theirs, rtol=2e-3, atol=1e-9)
    if half_axes[0] == half_axes[1]:
        np.testing.assert_allclose(ellipsoid_added(half_axes)[:3], 0.5 * body.displaced, rtol=1e-8)


def test_a_measure_can_fail() -> None:
    """A body without its added mass, its buoyancy or its weight below differs from the closed forms."""
    ball = water.sphere(0.1)
    push = next(case for case in CASES if case.name.startswith("pushed sphere"))
    bare = replace(ball, added=np.zeros(6))
    assert not is_right(push, water._push("bare", bare, 0).measure(by_rtmms))
    sinking = by_rtmms(replace(ball, displaced=0.0), Start(), 0.1, 1e-2).speeds[-1]
    assert sinking == pytest.approx(0.1 * 9.81 / 1.5, rel=1e-6)
    upright = by_rtmms(ball, Start(pitch=0.1), 1e-2, 1e-3)
    assert math.isclose(float(upright.angular_velocity[1]), 0.0, abs_tol=1e-12)
